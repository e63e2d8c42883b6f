#include "duck/check_rules.h"

#include <strandline/suggest.h>

#include "base/error.h"
#include "duck/row_rules.h"
#include "sql/duckdb_printer.h"

namespace strandline::duck {
namespace {

bool is_number(const DataType& type) {
  switch (type.id) {
    case TypeId::kByte:
    case TypeId::kShort:
    case TypeId::kInteger:
    case TypeId::kLong:
    case TypeId::kFloat:
    case TypeId::kDouble:
    case TypeId::kDecimal:
      return true;
    default:
      return false;
  }
}

Status refuse_nondeterministic(const sql::Expr& expr, const std::string& what) {
  const auto calls = sql::nondeterministic_calls(expr);
  if (calls.empty()) return {};
  return invalid_argument("DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
                          "{} uses {}(), which gives another value each time: compute it in the "
                          "rows",
                          what, calls[0].text);
}

// Every column read is one of the schema.
Status check_columns(const sql::Expr& expr, const Schema& schema, const std::string& what) {
  for (const auto& read : sql::columns_read(expr)) {
    const auto first = read.text.substr(0, read.text.find('.'));
    if (schema.get(read.text) != nullptr || schema.get(first) != nullptr) continue;
    std::vector<std::string> known;
    known.reserve(schema.fields.size());
    for (const auto& field : schema.fields) known.push_back(field.name);
    const auto near = nearest_name(first, known);
    return invalid_argument("UNRESOLVED_COLUMN.WITH_SUGGESTION",
                            "{} names {}, which is no column of the table{}", what, read.text,
                            near ? ": did you mean " + *near + "?" : "");
  }
  return {};
}

// The type of an expression over a row of the schema. It also stands where rows are filtered, as
// later: aggregates and window functions are errors.
Result<ResultColumn> type_of(Connection& connection, const RuleText& text, const Schema& schema,
                             const std::string& what) {
  auto columns = connection.describe(fmt::format(
      "SELECT {0} AS v FROM {1} AS r WHERE ({0}) IS NULL", text.duckdb, no_rows(schema)));
  if (!columns.ok()) return std::move(columns).error().with_context(what);
  return (*columns)[0];
}

Status check_default(Connection& connection, const Field& field, const std::string& sql) {
  const auto what = fmt::format("the default of column {} ({})", field.name, sql);
  SL_ASSIGN(const auto text, rule_text(sql, what));
  if (!sql::columns_read(*text.expr).empty()) {
    return invalid_argument("INVALID_DEFAULT_VALUE.UNRESOLVED_EXPRESSION",
                            "{} names a column: use GENERATED ALWAYS AS for what follows from "
                            "other columns",
                            what);
  }
  SL_ASSIGN(const auto given, type_of(connection, text, Schema{{field}}, what));
  const auto misfit = [&] {
    return invalid_argument("INVALID_DEFAULT_VALUE.DATA_TYPE", "{} is {}, which does not fit {}",
                            what, to_sql(given.type), to_sql(field.type));
  };
  const auto common = least_common_type(given.type, field.type);
  if (common && same_type(*common, field.type)) return {};
  const auto type = engine_type(field.type);
  if (is_number(given.type) && is_number(field.type)) {
    const auto same = connection.query_int(fmt::format(
        "SELECT CAST(({0}) IS NULL OR TRY_CAST({0} AS {1}) = ({0}) AS BIGINT)", text.duckdb, type));
    if (!same.ok()) return same.error();
    return *same == 1 ? Status() : Status(misfit());
  }
  // A text that reads as a value of the type, and plain values as text.
  const bool castable = (given.type.id == TypeId::kString && !field.type.is_nested()) ||
                        (field.type.id == TypeId::kString && !given.type.is_nested());
  if (!castable) return misfit();
  const auto fits = connection.query_int(
      fmt::format("SELECT CAST(({0}) IS NULL OR TRY_CAST({0} AS {1}) IS NOT NULL AS BIGINT)",
                  text.duckdb, type));
  if (!fits.ok()) return fits.error();
  return *fits == 1 ? Status() : Status(misfit());
}

Status check_generated(Connection& connection, const Schema& schema, const Field& field,
                       const std::string& sql) {
  const auto what = fmt::format("the generated column {} ({})", field.name, sql);
  SL_ASSIGN(const auto text, rule_text(connection, schema, sql, what));
  SL_TRY(check_columns(*text.expr, schema, what));
  SL_TRY(refuse_nondeterministic(*text.expr, what));
  SL_ASSIGN(const auto rules, delta::table_rules(delta::Metadata{}, schema));
  for (const auto& read : sql::columns_read(*text.expr)) {
    const auto* exact = schema.get(read.text);
    const auto name = exact != nullptr ? exact->name : read.text.substr(0, read.text.find('.'));
    const auto* rule = rules.find(name);
    const bool computed = rule != nullptr && (rule->generated_sql || rule->identity);
    if (same_name(name, field.name) || computed) {
      return invalid_argument("DELTA_INVALID_GENERATED_COLUMN_REFERENCES",
                              "{} names {}: a generated column cannot read generated or identity "
                              "columns",
                              what, name);
    }
  }
  SL_ASSIGN(const auto given, type_of(connection, text, schema, what));
  const auto common = least_common_type(given.type, field.type);
  if (common && same_type(*common, field.type)) return {};
  return invalid_argument("DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH",
                          "{} is {}, but the column is {}: cast the expression", what,
                          to_sql(given.type), to_sql(field.type));
}

}  // namespace

Status check_column_rule(Connection& connection, const Schema& schema,
                         const delta::ColumnRule& rule) {
  if (rule.path.size() != 1) return {};
  const auto* field = schema.get(rule.path[0]);
  if (field == nullptr) return {};
  if (rule.default_sql) SL_TRY(check_default(connection, *field, *rule.default_sql));
  if (rule.generated_sql) SL_TRY(check_generated(connection, schema, *field, *rule.generated_sql));
  if (rule.identity && field->type.id != TypeId::kLong) {
    return invalid_argument("DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE",
                            "the identity column {} is {}: make it BIGINT", field->name,
                            to_sql(field->type));
  }
  return {};
}

Status check_constraint(Connection& connection, const Schema& schema,
                        const delta::CheckConstraint& check) {
  const auto what = fmt::format("the constraint {} ({})", check.name, check.sql);
  SL_ASSIGN(const auto text, rule_text(connection, schema, check.sql, what));
  SL_TRY(check_columns(*text.expr, schema, what));
  SL_TRY(refuse_nondeterministic(*text.expr, what));
  SL_ASSIGN(const auto given, type_of(connection, text, schema, what));
  if (given.type.id == TypeId::kBoolean) return {};
  return invalid_argument("DELTA_NON_BOOLEAN_CHECK_CONSTRAINT",
                          "{} is {}: a CHECK is a condition, true or false", what,
                          to_sql(given.type));
}

}  // namespace strandline::duck
