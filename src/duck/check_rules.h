// Whether the rules that a table is given make sense: asked once, when they are declared.
#pragma once

#include "delta/column_rules.h"
#include "duck/connection.h"

namespace strandline::duck {

// The rules of one column. Errors, each naming the column and its SQL: INVALID_DEFAULT_VALUE.*
// (columns, queries, a value that does not fit), DELTA_INVALID_GENERATED_COLUMN_REFERENCES,
// DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH, DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED,
// DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE, UNRESOLVED_COLUMN.WITH_SUGGESTION, and those of
// rule_text().
Status check_column_rule(Connection& connection, const Schema& schema,
                         const delta::ColumnRule& rule);

// Errors: UNRESOLVED_COLUMN.WITH_SUGGESTION, DELTA_NON_BOOLEAN_CHECK_CONSTRAINT,
// DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED, and those of rule_text().
Status check_constraint(Connection& connection, const Schema& schema,
                        const delta::CheckConstraint& check);

}  // namespace strandline::duck
