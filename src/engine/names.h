// Names of a statement checked against tables, and what every statement that changes one asks
// first.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/data_type.h"
#include "delta/field_path.h"
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
// The same, but AUTO CDC targets of type 1 and 2 take rows changed by hand in with their next batch
// (auto-cdc.md section 8).
Status refuse_pipeline_rows(const FoundTable& found, const char* verb);

// Definitions of tables that a pipeline owns follow from its declarations.
// Errors: PIPELINE_TABLE_FIXED naming the pipeline.
Status refuse_pipeline_definition(const FoundTable& found, const char* verb);

// The clustering columns of a table by the names they have today.
std::vector<delta::FieldPath> clustering_of(const delta::Snapshot& snapshot);

// Catalog and schema of a name that means a schema. Errors: INVALID_NAME.
Result<std::pair<std::string, std::string>> schema_named(const Context& context,
                                                         const sql::TableName& name);

// The same for a schema that exists. Errors: also SCHEMA_NOT_FOUND with the nearest name.
Result<std::pair<std::string, std::string>> known_schema(const Context& context,
                                                         const sql::TableName& name);

// Properties that no other table may have: names and ids of its own, what a pipeline knows of it.
bool belongs_to_one_table(const std::string& property);

// Whether a query may read the table; views count as reading everything.
bool may_read(const Context& context, const sql::Query& query, const delta::Table& table);

}  // namespace strandline::engine
