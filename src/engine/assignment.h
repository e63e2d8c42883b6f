// How values enter the columns of a table: store assignment.
#pragma once

#include <string>
#include <vector>

#include "base/data_type.h"
#include "duck/connection.h"
#include "sql/expr.h"

namespace strandline::engine {

// How the members of a struct find their places: by name, where missing ones become null or are an
// error, or by position whatever their names are.
enum class StructsBy { kName, kWholeName, kPosition };

// Names and types a query gives. What is nothing but NULL, which the engine calls an INTEGER, is
// VOID here, also inside other types (the items of array()): any column takes it.
Result<std::vector<duck::ResultColumn>> given_columns(duck::Connection& connection,
                                                      const std::string& query);

// DuckDB text that gives value (a column reference of the source's type) as the column's type.
// Casts up, or checks each value: a number that does not fit exactly is CAST_OVERFLOW, text that
// does not parse is CAST_INVALID_INPUT, a null in a NOT NULL column is
// DELTA_NOT_NULL_CONSTRAINT_VIOLATED.
// Errors: kInvalidArgument INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST for types that never fit,
// INSERT_COLUMN_ARITY_MISMATCH... for structs by position, DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION
// for structs by whole name that have other members.
Result<std::string> assign(const std::string& value, const duck::ResultColumn& source,
                           const Field& column, const std::string& table,
                           StructsBy structs_by = StructsBy::kName);
// The same for a value that is always null.
Result<std::string> assign_null(const Field& column, const std::string& table);

// What a column has where a row does not give it: its default, or NULL.
Result<sql::ExprPtr> default_of(const Field& column);
Result<std::string> assign_default(const Field& column, const std::string& table);

// The table computes the column: rows that leave it null get its value (duck/row_rules.h).
bool is_generated(const Field& column);
bool is_identity(const Field& column);
// Whether a statement may give an identity column values of its own. Errors:
// DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED,
// DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED.
Status check_identity(const Field& column, bool updates, const std::string& table);

struct AssignOptions {
  std::vector<std::string> columns;  // target column of each source column; empty = all, in order
  bool by_name = false;              // the source columns' own names are the targets
};

// A query of exactly the schema's columns over source, whose columns are given; columns without a
// source take their default, or null. Structs go by position unless the columns go by name. Errors:
// those of assign(), and wrong numbers or names of columns.
Result<std::string> assign_all(const std::string& source,
                               const std::vector<duck::ResultColumn>& given, const Schema& schema,
                               const std::string& table, const AssignOptions& options);

// A given type in the column's words: members have the names of those they are meant for, and VOID
// is what the column has there.
DataType aligned_type(const DataType& given, const DataType& column, StructsBy structs_by);

// The type a new column of a result gets. Errors: kUnsupported for types no table can hold.
Result<DataType> storable_type(const duck::ResultColumn& column);

}  // namespace strandline::engine
