// Names in a flow's query, told from the columns of its sources before the engine sees it: the
// engine renames columns that differ only in case, and places its errors in the text it was given.
#pragma once

#include <strandline/result.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sql/query.h"

namespace strandline::pipeline {

struct OutputColumn {
  std::string name;
  SourcePlace place;
};
// nullopt: not known here.
using OutputColumns = std::optional<std::vector<OutputColumn>>;
using ColumnsOf = std::function<OutputColumns(const sql::TableUse&)>;

// Columns of the query in order, repeated names included; nullopt where they cannot be told (USING,
// LATERAL VIEW, fields of a struct by star). Names that a SELECT over a single relation reads and
// that relation lacks are added to errors as UNRESOLVED_COLUMN, names it has twice as
// AMBIGUOUS_REFERENCE. `_metadata` counts as a column of every relation.
OutputColumns output_columns(const sql::Query& query, const ColumnsOf& columns_of,
                             std::vector<Error>* errors);

// COLUMN_ALREADY_EXISTS for the first two columns that are one name.
std::optional<Error> repeated_column(const std::vector<OutputColumn>& columns);

}  // namespace strandline::pipeline
