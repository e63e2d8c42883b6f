// Column definitions and constraints of CREATE TABLE as a Delta table keeps them. The rules are
// taken as written: duck/check_rules.h asks whether they make sense.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/data_type.h"
#include "cdc/plan.h"
#include "duck/connection.h"
#include "sql/ast.h"

namespace strandline::pipeline {

// Type, nullability, comment, default, generation and identity of a column.
Field declared_field(const sql::ColumnDefinition& column);

// The properties that stand for the CHECK constraints of a table, by key.
std::map<std::string, std::string> declared_constraints(const sql::TableOptions& options);

// Whether the table gives the column its value when rows are written: generated, or an identity.
bool is_filled_at_write(const Field& field);

// The names that the column list of a materialized view gives to the `given` columns of its query,
// in order: all of the list, or all but those that the table fills itself. shown: the view as
// messages name it. Errors: CREATE_VIEW_COLUMN_ARITY_MISMATCH (kInvalidArgument).
Result<std::vector<std::string>> column_labels(const sql::TableOptions& options, size_t given,
                                               const std::string& shown);

// The declared columns, with the types of the query's columns where the list has none.
Schema with_types_of(Schema declared, const Schema& query);

// Fills in defaults and generated: of the declared columns as declared, of others as the table has
// them. Errors: kCorrupt for rules that are none; kUnsupported DELTA_UNSUPPORTED_EXPRESSION.
Status add_column_rules(cdc::TargetFacts* facts);

// Whether the declared rules make sense, as CREATE TABLE asks; each error at its column or
// constraint.
std::vector<Error> check_declared_rules(duck::Connection& connection,
                                        const sql::TableOptions& options, const Schema& schema);

}  // namespace strandline::pipeline
