#include "duck/row_rules.h"

#include <algorithm>
#include <atomic>

#include "base/error.h"
#include "delta/empty_partitions.h"
#include "delta/text_length.h"
#include "duck/describer.h"
#include "sql/duckdb_printer.h"
#include "sql/parser.h"

namespace strandline::duck {
namespace {

// A table alias that no column or member has.
constexpr const char* kRowAlias = "__strandline_new_row";

Result<RuleText> print_rule(const std::string& sql, const std::string& what,
                            const sql::PrintOptions& options) {
  const auto refuse = [&](const Error& error) {
    return unsupported("DELTA_UNSUPPORTED_EXPRESSION", "{} is {}, which cannot be evaluated: {}",
                       what, sql, error.message);
  };
  const auto parsed = sql::parse_expression(sql, "");
  if (!parsed.ok()) return refuse(parsed.error());
  auto printed = sql::print_duckdb(**parsed, options);
  if (!printed.ok()) {
    Error error = printed.error();
    if (!error.code.starts_with("DATATYPE_MISMATCH")) return refuse(error);
    error.place.reset();  // a place in the rule's text
    return std::move(error).with_context(what);
  }
  return RuleText{*parsed, std::move(printed).value()};
}

}  // namespace

Result<RuleText> rule_text(const std::string& sql, const std::string& what,
                           std::optional<int64_t> now_us) {
  return print_rule(sql, what, sql::PrintOptions{now_us});
}

Result<RuleText> rule_text(Connection& connection, const Schema& schema, const std::string& sql,
                           const std::string& what) {
  sql::PrintOptions options;
  options.describe = describer(connection);
  options.from = no_rows(schema) + " AS " + kRowAlias;
  return print_rule(sql, what, options);
}

std::string no_rows(const Schema& schema) {
  std::string columns;
  for (const auto& field : schema.fields) {
    columns += fmt::format("{}{} AS {}", columns.empty() ? "" : ", ",
                           field.type.id == TypeId::kVoid
                               ? "NULL"
                               : fmt::format("CAST(NULL AS {})", described_type(field)),
                           quote_name(field.name));
  }
  return fmt::format("(SELECT {} WHERE false)", columns);
}

std::string shown_row(const sql::Expr& expr, const Schema& schema) {
  std::vector<std::string> names;
  const auto add = [&names](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const auto& read : sql::columns_read(expr)) {
    // A column, or a member of one: "address.city". Where both are there, both are shown.
    for (const auto& name : {read.text, read.text.substr(0, read.text.find('.'))}) {
      if (const auto* field = schema.get(name)) add(field->name);
    }
  }
  if (names.empty()) {
    for (const auto& field : schema.fields) add(field.name);
  }
  std::string parts;
  for (const auto& name : names) {
    parts +=
        fmt::format("{}{}, coalesce(CAST({} AS VARCHAR), 'NULL')", parts.empty() ? "" : ", ",
                    quote_literal((parts.empty() ? "" : ", ") + name + " = "), quote_name(name));
  }
  return "concat(" + parts + ")";
}

Result<std::string> default_value(const Field& column, std::optional<int64_t> now_us) {
  SL_ASSIGN(const auto rules, delta::table_rules(delta::Metadata{}, Schema{{column}}));
  const auto type = engine_type(column.type);
  const auto* rule = rules.find(column.name);
  if (rule == nullptr || !rule->default_sql) return fmt::format("CAST(NULL AS {})", type);
  SL_ASSIGN(const auto text,
            rule_text(*rule->default_sql, "the default of column " + column.name, now_us));
  return fmt::format("CAST({} AS {})", text.duckdb, type);
}

RowRules::RowRules(RowRules&& other) noexcept
    : connection_(other.connection_),
      generated_(std::move(other.generated_)),
      lengths_(std::move(other.lengths_)),
      partitions_(std::move(other.partitions_)),
      checks_(std::move(other.checks_)),
      identities_(std::move(other.identities_)) {
  other.identities_.clear();
}

RowRules::~RowRules() {
  for (const auto& identity : identities_) {
    (void)connection_->execute("DROP SEQUENCE IF EXISTS temp." + quote_name(identity.sequence));
  }
}

Result<RowRules> RowRules::of(Connection& connection, const delta::Snapshot& definition) {
  SL_ASSIGN(const auto rules, delta::table_rules(definition.metadata, definition.schema));
  RowRules result(connection);
  for (const auto& rule : rules.columns) SL_TRY(result.add(rule, definition.schema));
  for (const auto& field : definition.schema.fields) {
    if (field.nullable) continue;
    result.checks_.push_back(
        {quote_name(field.name) + " IS NULL",
         quote_literal(fmt::format("[DELTA_NOT_NULL_CONSTRAINT_VIOLATED] column {} of {} is NOT "
                                   "NULL, but a row has no value for it",
                                   field.name, definition.table_path))});
  }
  for (const auto& field : definition.schema.fields) SL_TRY(result.add_length(field));
  for (const auto& field : delta::columns_without_empty(definition.metadata, definition.schema)) {
    // A generated column is checked against the value that its expression gives.
    const bool computed =
        std::any_of(result.generated_.begin(), result.generated_.end(),
                    [&](const Generated& one) { return one.column == field.name; });
    if (!computed) result.partitions_.push_back(field);
  }
  for (const auto& check : rules.checks) {
    SL_TRY(result.add_condition(
        fmt::format("CHECK constraint {} ({}) of {}", check.name, check.sql, definition.table_path),
        check.sql, definition.schema));
  }
  return result;
}

Status RowRules::add(const delta::ColumnRule& rule, const Schema& schema) {
  static std::atomic<int64_t> next_sequence{0};
  const auto index = schema.find(rule.path[0]);
  if (!index) return {};
  const Field& field = schema.fields[*index];
  if (rule.invariant_sql) {
    const DataType* type = &field.type;
    for (size_t i = 1; i < rule.path.size(); ++i) {
      if (type->id != TypeId::kStruct) {
        return unsupported("DELTA_UNSUPPORTED_EXPRESSION",
                           "column {} has the invariant {} inside an array or map, which cannot be "
                           "checked: write the table with the engine that made it",
                           fmt::join(rule.path, "."), *rule.invariant_sql);
      }
      const auto member = Schema{*type->fields}.get(rule.path[i]);
      if (member == nullptr) return {};
      type = &member->type;
    }
    SL_TRY(add_condition(fmt::format("the invariant ({}) of column {}", *rule.invariant_sql,
                                     fmt::join(rule.path, ".")),
                         *rule.invariant_sql, schema));
  }
  if (rule.generated_sql) {
    SL_ASSIGN(const auto text, rule_text(*connection_, schema, *rule.generated_sql,
                                         "the value of the generated column " + field.name));
    auto value = fmt::format("CAST({} AS {})", text.duckdb, engine_type(field.type));
    checks_.push_back(
        {fmt::format("{} IS DISTINCT FROM {}", quote_name(field.name), value),
         fmt::format("concat({}, {}, ' with ', {})",
                     quote_literal(fmt::format(
                         "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] column {} is generated as ({}): "
                         "leave it out, or give that value; a row has {} = ",
                         field.name, *rule.generated_sql, field.name)),
                     fmt::format("coalesce(CAST({} AS VARCHAR), 'NULL')", quote_name(field.name)),
                     shown_row(*text.expr, schema))});
    generated_.push_back({field.name, std::move(value)});
  }
  if (rule.identity) {
    SL_ASSIGN(const auto first, rule.identity->next());
    Identity identity{field.name, *rule.identity, first,
                      fmt::format("__strandline_identity_{}", ++next_sequence)};
    SL_TRY(connection_->execute(fmt::format("CREATE TEMP SEQUENCE {} MINVALUE 0 START WITH 0",
                                            quote_name(identity.sequence))));
    identities_.push_back(std::move(identity));
  }
  return {};
}

// Blanks at the end are cut to the length, a CHAR is filled up with them.
Status RowRules::add_length(const Field& field) {
  SL_ASSIGN(const auto limit, delta::text_length(field));
  if (!limit) return {};
  const int64_t length = limit->length;
  const std::string name = quote_name(field.name);
  checks_.push_back({fmt::format("length({}) > {}", name, length),
                     fmt::format("concat({}, length({}), ' characters')",
                                 quote_literal(fmt::format(
                                     "[EXCEED_LIMIT_LENGTH] column {} is {}, but a row has ",
                                     field.name, delta::declared_type(field))),
                                 name)});
  std::string value = fmt::format(
      "CASE WHEN length({0}) > {1} THEN rpad(rtrim({0}, ' '), CAST(greatest({1}, length(rtrim({0}, "
      "' '))) AS INTEGER), ' ') ELSE {0} END",
      name, length);
  if (limit->is_char)
    value =
        fmt::format("rpad({0}, CAST(greatest(length({0}), {1}) AS INTEGER), ' ')", value, length);
  lengths_.push_back({field.name, std::move(value)});
  return {};
}

Status RowRules::add_condition(const std::string& title, const std::string& sql,
                               const Schema& schema) {
  SL_ASSIGN(const auto text, rule_text(*connection_, schema, sql, title));
  checks_.push_back({fmt::format("NOT coalesce({}, false)", text.duckdb),
                     fmt::format("concat({}, {})",
                                 quote_literal("[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] " + title +
                                               " is violated by a row with "),
                                 shown_row(*text.expr, schema))});
  return {};
}

Result<std::string> RowRules::apply(const std::string& rows) {
  if (rows.empty()) return rows;
  std::string query = rows;
  const auto replace = [&query](const std::string& items) {
    if (items.empty()) return;
    query = fmt::format("SELECT * REPLACE ({}) FROM ({}) AS {}", items, query, kRowAlias);
  };
  const auto filled = [](std::string* items, const std::string& column, const std::string& value) {
    *items +=
        fmt::format("{}CASE WHEN {} IS NULL THEN {} ELSE {} END AS {}", items->empty() ? "" : ", ",
                    quote_name(column), value, quote_name(column), quote_name(column));
  };
  std::string items, given, given_names, back;
  // What was given comes back in the end: whoever writes the rows counts them.
  if (!generated_.empty() || !checks_.empty()) {
    for (size_t i = 0; i < partitions_.size(); ++i) {
      const std::string name = quote_name(partitions_[i].name);
      const std::string kept = fmt::format("__strandline_given_{}", i);
      const std::string nothing = fmt::format("CAST('' AS {})", engine_type(partitions_[i].type));
      items += fmt::format("{}nullif({}, {}) AS {}", i == 0 ? "" : ", ", name, nothing, name);
      given += fmt::format(", {} = {} AS {}", name, nothing, kept);
      given_names += (i == 0 ? "" : ", ") + kept;
      back += fmt::format("{}CASE WHEN {} THEN {} ELSE {} END AS {}", i == 0 ? "" : ", ", kept,
                          nothing, name, name);
    }
  }
  if (!items.empty())
    query = fmt::format("SELECT * REPLACE ({}){} FROM ({}) AS {}", items, given, query, kRowAlias);
  items.clear();
  for (const auto& identity : identities_) {
    filled(&items, identity.column, identity.next_value());
  }
  replace(items);
  items.clear();
  for (const auto& generated : generated_) filled(&items, generated.column, generated.value);
  replace(items);
  items.clear();
  for (const auto& sized : lengths_) {
    items +=
        fmt::format("{}{} AS {}", items.empty() ? "" : ", ", sized.value, quote_name(sized.column));
  }
  replace(items);
  if (!checks_.empty()) {
    std::string cases;
    for (const auto& check : checks_) {
      cases += fmt::format("WHEN {} THEN error({}) ", check.broken, check.message);
    }
    query =
        fmt::format("SELECT * FROM ({}) AS {} WHERE CASE {}ELSE true END", query, kRowAlias, cases);
  }
  if (back.empty()) return query;
  return fmt::format("SELECT * EXCLUDE ({}) REPLACE ({}) FROM ({}) AS {}", given_names, back, query,
                     kRowAlias);
}

Status RowRules::fill_identity(const std::string& temporary_table) {
  for (const auto& identity : identities_) {
    auto filled = connection_->execute(fmt::format("UPDATE {0} SET {1} = {2} WHERE {1} IS NULL",
                                                   temporary_table, quote_name(identity.column),
                                                   identity.next_value()));
    if (!filled.ok()) return explain(std::move(filled).error());
  }
  return {};
}

// Wider than BIGINT, so that the last value can be given out.
std::string RowRules::Identity::next_value() const {
  return fmt::format("CAST(CAST('{}' AS HUGEINT) + CAST(nextval({}) AS HUGEINT) * {} AS BIGINT)",
                     first, quote_literal(sequence), rule.step);
}

std::optional<int64_t> RowRules::Identity::value_at(int64_t steps) const {
  int64_t value = 0;
  if (__builtin_mul_overflow(steps, rule.step, &value) ||
      __builtin_add_overflow(first, value, &value)) {
    return std::nullopt;
  }
  return value;
}

Result<std::optional<int64_t>> RowRules::last_step(const Identity& identity) const {
  SL_ASSIGN(const auto rows,
            connection_->query(fmt::format("SELECT last_value FROM duckdb_sequences() WHERE "
                                           "temporary AND sequence_name = {}",
                                           quote_literal(identity.sequence))));
  if (rows.rows.empty() || !rows.rows[0][0]) return std::optional<int64_t>();
  return std::optional<int64_t>(std::stoll(*rows.rows[0][0]));
}

Error RowRules::explain(Error error) const {
  if (error.code != "ENGINE_ERROR") return error;
  for (const auto& identity : identities_) {
    const auto last = last_step(identity);
    if (!last.ok() || !*last || identity.value_at(**last)) continue;
    return invalid_data("DELTA_IDENTITY_COLUMN_EXHAUSTED",
                        "the identity column {} has too few BIGINTs left for the new rows, in "
                        "steps of {}: give it values by hand, or make the table anew",
                        identity.column, identity.rule.step);
  }
  return error;
}

Status RowRules::keep_identity(delta::Transaction* transaction) const {
  if (identities_.empty()) return {};
  Schema schema = transaction->snapshot().schema;
  bool moved = false;
  for (const auto& identity : identities_) {
    SL_ASSIGN(const auto last, last_step(identity));
    const auto index = schema.find(identity.column);
    if (!last || !index) continue;
    auto rule = identity.rule;
    rule.high_water_mark = identity.value_at(*last);
    if (!rule.high_water_mark) continue;
    delta::set_identity(&schema.fields[*index], rule);
    moved = true;
  }
  if (moved) transaction->set_schema(schema);
  return {};
}

}  // namespace strandline::duck
