// DuckDB dialect of queries and expressions; the only maker of DuckDB text from user SQL.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/data_type.h"
#include "sql/query.h"

namespace strandline::sql {

// Gives the DuckDB relation (parenthesised SELECT or quoted name) that stands for a table use.
using Resolve = std::function<Result<std::string>(const TableUse&)>;

// Every table use of a query, CTE names excluded, in text order: the edges of the pipeline graph.
std::vector<TableUse> table_uses(const Query& query);
// Columns an expression reads, as written (dots kept), without duplicates.
std::vector<Name> columns_read(const Expr& expr);
// Where a statement first names a column or field, in a reference of one or several parts.
std::optional<SourcePlace> place_of_column(const Statement& statement, const std::string& name);
// What may go wrong while a statement runs.
enum class FailingValue { kDivision, kCast, kArithmetic };
// The place of the one expression of a statement that can have failed so; nothing where several
// can.
std::optional<SourcePlace> place_of_failure(const Statement& statement, FailingValue what);
// Non-deterministic functions used (rand, uuid, ...); current_timestamp and kin are not among them.
std::vector<Name> nondeterministic_calls(const Query& query);
std::vector<Name> nondeterministic_calls(const Expr& expr);
// STRUCT(a, b) sequences: the parts; else the expression alone.
std::vector<ExprPtr> sequence_parts(const Expr& expr);
// The column name if the expression is one plain (unqualified) column.
std::optional<Name> plain_column(const Expr& expr);
// The literal's value as text, if the expression is a literal.
std::optional<std::string> literal_text(const Expr& expr);

// The name Spark gives a column without an alias.
std::string output_name(const Expr& expr);

// Names and types of the columns that a DuckDB query gives; nothing where it does not bind.
// VOID stands for types that have no other name here, and for NULL.
using DescribeQuery = std::function<std::optional<std::vector<Field>>(const std::string& query)>;

struct PrintOptions {
  // Text for current_timestamp(), now(), current_date(): the batch's planned time, microseconds
  // UTC.
  std::optional<int64_t> now_us;
  // Tables around an expression, whose columns may be written in full (schema.table.column).
  std::vector<TableName> tables = {};
  // Tells the types of columns, where meaning depends on them; null: they are not known. Asked
  // only where it matters.
  DescribeQuery describe = nullptr;
  // The FROM clause, as DuckDB text, around an expression that stands outside a query.
  std::string from = {};
  // Whether conditions whose type only the engine can tell carry a mark, a comment with their
  // place: "/*?12:5*/(x)". Their reader checks that they are booleans.
  bool mark_conditions = false;
};

// Errors: kUnsupported naming the function or construct with its place; resolve's own errors.
Result<std::string> print_duckdb(const Query& query, const Resolve& resolve,
                                 const PrintOptions& options = {});
// An expression that stands outside a query; subqueries in it need the form with resolve.
Result<std::string> print_duckdb(const Expr& expr, const PrintOptions& options = {});
Result<std::string> print_duckdb(const Expr& expr, const Resolve& resolve,
                                 const PrintOptions& options = {});

// A STRING, given as DuckDB text, as another type: null for texts that Spark does not take for one.
std::string duckdb_try_cast_of_text(const std::string& text, const DataType& to);
// The same with an error CAST_INVALID_INPUT for them.
std::string duckdb_cast_of_text(const std::string& text, const DataType& to);
// A STRING, given as DuckDB text, as an instant: null, where it only tries, for what is none. A local
// time that comes twice in the zone it names is the earlier one; one that the zone leaves out is
// later by what is left out.
std::string duckdb_instant_of_text(const std::string& text, bool try_cast);
// A number of one type, given as DuckDB text, as another where the engine's own cast is not exact:
// a FLOAT or DOUBLE as the DECIMAL nearest to its shortest decimal text (half away from zero; null
// for NaN and infinities; NUMERIC_VALUE_OUT_OF_RANGE or, where it only tries, null for what does
// not fit), a DECIMAL as the nearest FLOAT or DOUBLE. Inside arrays and maps, too. "" where the
// engine's cast is right.
std::string duckdb_exact_cast(const std::string& value, const DataType& from, const DataType& to,
                              bool try_cast);
// A value of that type, given as DuckDB text, as a STRING; "" for types that have none.
std::string duckdb_text_of(const std::string& value, const DataType& type);

// Spark text of an expression or query, normalised; for messages, plans and golden tests.
std::string print_spark(const Expr& expr);
std::string print_spark(const Query& query);

}  // namespace strandline::sql
