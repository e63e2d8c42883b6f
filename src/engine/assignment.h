// How values enter the columns of a table: store assignment.
#pragma once

#include <string>
#include <vector>

#include "base/data_type.h"
#include "duck/connection.h"

namespace strandline::engine {

// DuckDB text that gives value (a column reference of type from) as the column's type. Casts up, or
// checks each value: a number that does not fit exactly is CAST_OVERFLOW, text that does not parse
// is CAST_INVALID_INPUT, a null in a NOT NULL column is DELTA_NOT_NULL_CONSTRAINT_VIOLATED.
// Errors: kInvalidArgument INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST for types that never fit.
Result<std::string> assign(const std::string& value, const DataType& from, const Field& column,
                           const std::string& table);

// The columns of a query as store assignment sees them: one of nothing but NULL is VOID, which any
// column takes (describe() says INTEGER). Errors: those of the engine for a query it cannot plan.
Result<std::vector<duck::ResultColumn>> given_columns(duck::Connection& connection,
                                                      const std::string& query);

struct AssignOptions {
  std::vector<std::string> columns;  // target column of each source column; empty = all, in order
  bool by_name = false;              // the source columns' own names are the targets
};

// A query of exactly the schema's columns over source, whose columns are given; columns without a
// source are null. Errors: those of assign(), and wrong numbers or names of columns.
Result<std::string> assign_all(const std::string& source,
                               const std::vector<duck::ResultColumn>& given, const Schema& schema,
                               const std::string& table, const AssignOptions& options);

// The type a new column of a result gets. Errors: kUnsupported for types no table can hold.
Result<DataType> storable_type(const duck::ResultColumn& column);

}  // namespace strandline::engine
