// Column definitions and constraints of CREATE TABLE as a Delta table keeps them. The rules are
// taken as written: duck/check_rules.h asks whether they make sense.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/data_type.h"
#include "duck/connection.h"
#include "sql/ast.h"

namespace strandline::pipeline {

// Type, nullability, comment, default, generation and identity of a column.
Field declared_field(const sql::ColumnDefinition& column);

// The properties that stand for the CHECK constraints of a table, by key.
std::map<std::string, std::string> declared_constraints(const sql::TableOptions& options);

// Whether the table gives the column its value when rows are written: generated, or an identity.
bool is_filled_at_write(const Field& field);

// A declared column that a query does not give and that has a value all the same.
struct ComputedColumn {
  Field field;  // name and type alone
  std::string sql;
  bool generated = false;  // from the other columns; else a DEFAULT
};

// Those of the declared schema that are not among the given columns. Errors: kCorrupt for rules
// that are none; kInvalidArgument GENERATED_COLUMN_WITHOUT_SOURCE for an expression over a column
// that nothing gives.
Result<std::vector<ComputedColumn>> computed_columns(const Schema& declared, const Schema& given);

// The query with these columns behind its own. now_us: the batch's time, microseconds UTC.
Result<std::string> with_computed(const std::string& query,
                                  const std::vector<ComputedColumn>& columns, int64_t now_us);

// Whether the declared rules make sense, as CREATE TABLE asks; each error at its column or
// constraint.
std::vector<Error> check_declared_rules(duck::Connection& connection,
                                        const sql::TableOptions& options, const Schema& schema);

}  // namespace strandline::pipeline
