// Names of a statement checked against tables, and what every statement that changes one asks
// first.
#pragma once

#include <string>
#include <vector>

#include "base/data_type.h"
#include "engine/context.h"
#include "sql/query.h"

namespace strandline::engine {

// The error at a place of the text, unless it has one already.
Error at(Error error, const SourcePlace& place);

// The schema's spelling of column names that a clause gives.
// Errors: UNRESOLVED_COLUMN.WITH_SUGGESTION with the nearest name.
Result<std::vector<std::string>> known_columns(const std::vector<sql::Name>& names,
                                               const Schema& schema, const char* clause);

// Rows of a table that a pipeline owns would be undone or misread by its next update.
// Errors: DML_ON_PIPELINE_TABLE naming the pipeline.
Status refuse_pipeline_table(const FoundTable& found, const char* verb);

// Whether a query may read the table; views count as reading everything.
bool may_read(const Context& context, const sql::Query& query, const delta::Table& table);

}  // namespace strandline::engine
