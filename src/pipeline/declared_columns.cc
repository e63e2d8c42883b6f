#include "pipeline/declared_columns.h"

#include "base/error.h"
#include "base/json.h"
#include "delta/column_rules.h"
#include "delta/text_length.h"
#include "duck/check_rules.h"
#include "duck/row_rules.h"
#include "sql/duckdb_printer.h"

namespace strandline::pipeline {

Field declared_field(const sql::ColumnDefinition& column) {
  Field field{column.name.text, column.type, column.nullable, {}};
  delta::set_text_type(&field, column.sized_type);
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

Result<std::vector<std::string>> column_labels(const sql::TableOptions& options, size_t given,
                                               const std::string& shown) {
  std::vector<std::string> all, computed_by_query;
  for (const auto& column : options.columns) {
    all.push_back(column.name.text);
    if (!is_filled_at_write(declared_field(column))) computed_by_query.push_back(column.name.text);
  }
  if (given == all.size()) return all;
  if (given == computed_by_query.size()) return computed_by_query;
  return invalid_argument(
      "CREATE_VIEW_COLUMN_ARITY_MISMATCH",
      "the column list of '{}' names {} columns, but its query gives {}: the list names the "
      "query's columns in their order",
      shown, computed_by_query.size(), given);
}

Schema with_types_of(Schema declared, const Schema& query) {
  for (auto& field : declared.fields) {
    const auto* const of_query = query.get(field.name);
    if (field.type.id == TypeId::kVoid && of_query != nullptr) field.type = of_query->type;
  }
  return declared;
}

Status add_column_rules(cdc::TargetFacts* facts) {
  const auto& existing = facts->existing;
  const auto name_of = [&](const Field& field) {
    const Field* known = existing ? existing->get(field.name) : nullptr;
    return known == nullptr ? field.name : known->name;
  };
  const auto add = [&](const Schema& schema, bool is_of_table) -> Status {
    SL_ASSIGN(const auto rules, delta::table_rules(delta::Metadata{}, schema));
    for (const auto& rule : rules.columns) {
      const Field* field = schema.get(rule.path[0]);
      if (field == nullptr) continue;
      const std::string name = name_of(*field);
      // What a table that is there computes, its own log says.
      const bool counts = is_of_table || !existing || !existing->find(name);
      if (rule.generated_sql && counts) facts->generated.insert(name);
      if (!rule.default_sql) continue;
      SL_ASSIGN(const auto text,
                duck::rule_text(*rule.default_sql, "the default of column " + name));
      facts->defaults[name] = text.expr;
    }
    return {};
  };
  if (existing) SL_TRY(add(*existing, true));
  if (!facts->declared) return {};
  for (const auto& field : facts->declared->fields) facts->defaults.erase(name_of(field));
  return add(*facts->declared, false);
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
