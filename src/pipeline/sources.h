// What a flow reads: every table use of its query, through views, resolved against the pipeline and
// the warehouse, and printed as relations of the engine.
#pragma once

#include <strandline/result.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "catalog/warehouse.h"
#include "delta/snapshot.h"
#include "duck/connection.h"
#include "duck/jdbc.h"
#include "pipeline/delta_source.h"
#include "pipeline/file_options.h"
#include "pipeline/graph.h"
#include "pipeline/query_names.h"
#include "sql/table_changes.h"

namespace strandline::pipeline {

enum class SourceKind {
  kFiles,    // read_files
  kStream,   // STREAM table, also with its change feed
  kTable,    // table, read whole at a pinned version
  kChanges,  // table_changes: a range of a table's feed, without an end up to a pinned version
  kJdbc,     // read_jdbc, read whole as it is then
};

struct Source {
  SourceKind kind = SourceKind::kTable;
  std::string key;                           // in the flow's checkpoint
  std::string shown;                         // in messages
  FileOptions files;                         // kFiles
  bool whole = false;                        // kFiles: every batch reads all files there are
  StreamOptions stream;                      // kStream
  duck::JdbcRead jdbc;                       // kJdbc
  std::optional<delta::Table> table;         // kStream, kTable, kChanges
  std::optional<sql::TableChanges> changes;  // kChanges
  // Whether a range of a feed may go beyond the newest commit; a stream waits for its start.
  bool tolerates_out_of_range = false;
  std::optional<delta::Version> version;  // kTable: VERSION AS OF
  std::optional<size_t> dataset;          // of this pipeline
  SourcePlace place;

  bool is_feed() const { return kind == SourceKind::kStream && stream.read_change_feed; }
};

class FlowSources {
 public:
  // Errors (all of them, with places): unknown tables, options, streams of what does not stream.
  static FlowSources analyze(const Graph& graph, const Flow& flow, const PipelineSpec& spec,
                             const catalog::Warehouse& warehouse, std::vector<Error>* errors);

  const std::vector<Source>& sources() const { return sources_; }
  // Whether one of them is a change data feed.
  bool reads_feed() const;
  // What the warehouse's views that it reads say, those inside others too; empty: it reads none.
  std::string texts_of_views() const;
  // Datasets that are views with expectations, each once.
  std::set<size_t> expecting_views() const;

  // What a use of its query stands for: a source by its index, or a view's query.
  std::optional<size_t> source_of(const sql::TableUse& use) const;
  const sql::Query* view_of(const sql::TableUse& use) const;

  using RelationOf = std::function<Result<std::string>(size_t)>;
  // Given a dataset that is a view with expectations and its relation: what stands for it.
  using CheckView = std::function<Result<std::string>(size_t, const std::string&)>;

  // The flow's query as DuckDB SQL with relation_of(source index) for each source, whose columns'
  // types the connection tells. Names that begin with "__strandline_" are temporary tables.
  Result<std::string> print(const sql::Query& query, int64_t now_us, const RelationOf& relation_of,
                            const CheckView& check_view, duck::Connection& connection) const;

  // Columns of the flow's query, see query_names.h; columns_of gives those of a source.
  OutputColumns output_columns(const sql::Query& query,
                               const std::function<OutputColumns(size_t)>& columns_of,
                               std::vector<Error>* errors) const;

 private:
  struct ViewUse {
    sql::QueryPtr query;
    std::vector<std::string> columns;
    std::optional<size_t> expecting;  // the view, if it has expectations
  };

  std::vector<Source> sources_;
  std::map<std::string, size_t> source_at_;        // place of use -> sources_
  std::map<std::string, ViewUse> view_at_;         // place of use -> view
  std::map<std::string, std::string> view_texts_;  // of the warehouse, by name

  friend class SourceAnalyzer;
};

// Parenthesised SELECT with these columns and no row.
std::string empty_relation(const Schema& schema);

}  // namespace strandline::pipeline
