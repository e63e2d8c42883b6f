#include "pipeline/declared_columns.h"

#include "base/error.h"
#include "base/json.h"
#include "delta/column_rules.h"
#include "duck/check_rules.h"
#include "duck/row_rules.h"
#include "sql/duckdb_printer.h"

namespace strandline::pipeline {

Field declared_field(const sql::ColumnDefinition& column) {
  Field field{column.name.text, column.type, column.nullable, {}};
  if (column.comment) field.metadata["comment"] = json_string(*column.comment);
  if (column.default_value != nullptr) delta::set_default(&field, column.default_sql);
  if (column.generated_as != nullptr) delta::set_generated(&field, column.generated_sql);
  if (column.identity) {
    delta::IdentityRule rule;
    rule.start = column.identity->start;
    rule.step = column.identity->step;
    rule.allow_explicit_insert = column.identity->by_default;
    delta::set_identity(&field, rule);
  }
  return field;
}

std::map<std::string, std::string> declared_constraints(const sql::TableOptions& options) {
  std::map<std::string, std::string> properties;
  for (const auto& check : options.checks) {
    properties[delta::kConstraintPrefix + fold_name(check.name.text)] = check.sql;
  }
  return properties;
}

bool is_filled_at_write(const Field& field) {
  const auto rules = delta::table_rules(delta::Metadata{}, Schema{{field}});
  if (!rules.ok()) return false;  // reported where the rules are checked
  const auto* rule = rules->find(field.name);
  return rule != nullptr && (rule->generated_sql || rule->identity);
}

Result<std::vector<ComputedColumn>> computed_columns(const Schema& declared, const Schema& given) {
  SL_ASSIGN(const auto rules, delta::table_rules(delta::Metadata{}, declared));
  std::vector<ComputedColumn> columns;
  Schema known = given;
  const auto add = [&](const Field& field, const std::string& sql, bool generated) {
    columns.push_back({Field{field.name, field.type, true, {}}, sql, generated});
    known.fields.push_back(columns.back().field);
  };
  for (const auto& rule : rules.columns) {
    const auto* field = declared.get(rule.path[0]);
    if (field == nullptr || given.find(field->name)) continue;
    if (rule.default_sql) add(*field, *rule.default_sql, false);
  }
  for (const auto& rule : rules.columns) {
    const auto* field = declared.get(rule.path[0]);
    if (field == nullptr || given.find(field->name) || !rule.generated_sql) continue;
    SL_ASSIGN(const auto text,
              duck::rule_text(*rule.generated_sql, "the generated column " + field->name));
    for (const auto& read : sql::columns_read(*text.expr)) {
      const auto first = read.text.substr(0, read.text.find('.'));
      if (known.find(read.text) || known.find(first)) continue;
      return invalid_argument("GENERATED_COLUMN_WITHOUT_SOURCE",
                              "the column {} is generated from {}, which the flow does not give: "
                              "select it, or give {} a DEFAULT",
                              field->name, read.text, first);
    }
    add(*field, *rule.generated_sql, true);
  }
  return columns;
}

Result<std::string> with_computed(const std::string& query,
                                  const std::vector<ComputedColumn>& columns, int64_t now_us) {
  std::string result = query;
  for (const bool generated : {false, true}) {
    std::string items;
    for (const auto& column : columns) {
      if (column.generated != generated) continue;
      SL_ASSIGN(const auto text,
                duck::rule_text(column.sql, "the value of column " + column.field.name, now_us));
      items +=
          fmt::format(", CAST({} AS {}) AS {}", text.duckdb, duck::engine_type(column.field.type),
                      duck::quote_name(column.field.name));
    }
    if (!items.empty()) result = fmt::format("SELECT s.*{} FROM ({}) AS s", items, result);
  }
  return result;
}

std::vector<Error> check_declared_rules(duck::Connection& connection,
                                        const sql::TableOptions& options, const Schema& schema) {
  std::vector<Error> errors;
  const auto keep = [&errors](Status status, const SourcePlace& place) {
    if (status.ok()) return;
    auto error = std::move(status).error();
    error.place = place;
    errors.push_back(std::move(error));
  };
  for (const auto& column : options.columns) {
    const auto rules = delta::table_rules(delta::Metadata{}, Schema{{declared_field(column)}});
    if (!rules.ok()) {
      keep(rules.error(), column.name.place);
      continue;
    }
    for (const auto& rule : rules->columns) {
      keep(duck::check_column_rule(connection, schema, rule), column.name.place);
    }
  }
  for (const auto& check : options.checks) {
    keep(duck::check_constraint(connection, schema, {fold_name(check.name.text), check.sql}),
         check.name.place);
  }
  return errors;
}

}  // namespace strandline::pipeline
