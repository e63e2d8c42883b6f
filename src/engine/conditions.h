// Conditions of a statement must be truth values: numbers and text, which the engine takes as such,
// would choose rows that nobody meant.
#pragma once

#include <string>

#include "duck/connection.h"
#include "sql/expr.h"

namespace strandline::engine {

// The conditions of a query that was printed with marks (sql/duckdb_printer.h).
// Errors: DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN at the condition's place. A query that does not bind
// for another reason is left to who runs it.
Status check_conditions(duck::Connection& connection, const std::string& query);

// A condition over a relation. Errors: the same, unknown names.
Status check_condition(duck::Connection& connection, const std::string& condition,
                       const std::string& from, const SourcePlace& place);

// Which rows a statement changes must not depend on chance: the condition is asked more than once.
// Errors: DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED naming the function and the verb.
Status refuse_chance(const sql::ExprPtr& condition, const char* verb);

}  // namespace strandline::engine
