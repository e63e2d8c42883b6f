// What a materialized view's query is made of, as far as it decides whether the view can follow
// what changed in its sources (change-data-feed.md, materialized views).
#pragma once

#include <string>
#include <vector>

#include "pipeline/sources.h"
#include "sql/query.h"

namespace strandline::pipeline {

// The temporary table of the groups that ViewShape::of_groups computes, with its columns
// kGroupColumn0, kGroupColumn1, …
inline constexpr const char* kGroupsTable = "__strandline_groups";
inline constexpr const char* kGroupColumn = "__strandline_group_";

struct ViewShape {
  enum class Kind {
    kRows,    // filtered and computed rows of inner joins: each row of the result comes of one row
              // of each source of its part
    kGroups,  // the same, grouped
    kOther,
  };
  Kind kind = Kind::kOther;
  std::string why;  // kOther: what in the query, as "it has LIMIT"

  // kRows: the SELECTs whose rows are the result's: several where UNION ALL joins them.
  struct Part {
    sql::QueryPtr query;
    std::vector<size_t> sources;  // that it reads, ascending; no other part does
    // For each of them how a select item names its columns; empty where one cannot be named.
    std::vector<std::string> row_names;
    bool has_star = false;  // among its columns
  };
  std::vector<Part> parts;
  // kGroups: columns of the result that tell groups apart, and the query of their values before
  // grouping, as kGroupColumn0, …
  struct Column {
    std::string name;
    size_t at = 0;  // among those of the result
  };
  std::vector<Column> group_columns;
  size_t columns = 0;  // of the result; 0: not known
  sql::QueryPtr groups;
  sql::QueryPtr of_groups;  // the view's query, for the groups in kGroupsTable alone
};

// What in the query or the views it reads makes its result another one while its tables stay as
// they are, as "it calls rand()"; empty: nothing.
std::string why_it_changes_by_itself(const sql::Query& query, const FlowSources& sources);

ViewShape shape_of(const sql::Query& query, const FlowSources& sources);

// The query with further columns, each a column of a source given as {source's name, column}.
sql::QueryPtr with_columns(const sql::Query& query,
                           const std::vector<std::vector<std::string>>& columns);

}  // namespace strandline::pipeline
