#include "cdc/program_builder.h"

#include <algorithm>

#include "base/error.h"
#include "sql/duckdb_printer.h"

namespace strandline::cdc {

namespace {

constexpr const char* kSource = "__strandline_source";
constexpr const char* kTarget = "__strandline_target";
constexpr const char* kState = "__strandline_state";

}  // namespace

ProgramBuilder::ProgramBuilder(const Plan& plan, const BatchRelations& relations,
                               const ProgramOptions& options)
    : plan_(plan), relations_(relations), options_(options) {
  for (const Field& key : plan.keys) {
    for (size_t i = 0; i < plan.columns.size(); ++i) {
      if (same_name(plan.columns[i].name, key.name)) keys_.push_back(i);
    }
  }
  for (size_t i = 0; i < plan.columns.size(); ++i) {
    if (plan.columns[i].is_key) continue;
    if (plan.columns[i].owned) {
      values_.push_back(i);
    } else {
      user_columns_.push_back(i);
    }
  }
  std::sort(values_.begin(), values_.end(), [&](size_t a, size_t b) {
    return fold_name(plan.columns[a].name) < fold_name(plan.columns[b].name);
  });
}

std::string ProgramBuilder::table(const char* name) {
  return std::string("__strandline_cdc_") + name;
}

std::string ProgramBuilder::column(size_t index) { return fmt::format("c{}", index); }

std::string ProgramBuilder::keys(const std::string& alias) const {
  const std::string prefix = alias.empty() ? "" : alias + ".";
  std::vector<std::string> parts;
  parts.reserve(keys_.size());
  for (const size_t i : keys_) parts.push_back(prefix + column(i));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string ProgramBuilder::keys_equal(const std::string& a, const std::string& b) const {
  std::vector<std::string> parts;
  // Keys are never null, and = makes a hash join; inside nested keys it takes nulls as equal.
  parts.reserve(keys_.size());
  for (const size_t i : keys_) {
    parts.push_back(fmt::format("{0}.{2} = {1}.{2}", a, b, column(i)));
  }
  return fmt::format("{}", fmt::join(parts, " AND "));
}

std::string ProgramBuilder::keys_text(const std::string& alias) const {
  std::vector<std::string> parts;
  parts.reserve(keys_.size());
  for (const size_t i : keys_) {
    parts.push_back(fmt::format("{} || coalesce(CAST({}.{} AS VARCHAR), 'NULL')",
                                quote_literal(plan_.columns[i].name + " = "), alias, column(i)));
  }
  return fmt::format("concat_ws(', ', {})", fmt::join(parts, ", "));
}

std::string ProgramBuilder::greatest_first(const std::string& alias) const {
  std::vector<std::string> terms, spellings;
  for (const size_t i : values_) {
    const std::string value = alias + "." + column(i);
    terms.push_back(order_value(value, plan_.columns[i].type) + " DESC NULLS LAST");
    if (has_look_alikes(plan_.columns[i].type)) {
      spellings.push_back(spelling(value) + " DESC NULLS LAST");
    }
  }
  terms.insert(terms.end(), spellings.begin(), spellings.end());
  if (terms.empty()) terms.emplace_back("1");
  return fmt::format("{}", fmt::join(terms, ", "));
}

std::string ProgramBuilder::values_greater(const std::string& a, const std::string& b) const {
  std::string text = "CASE", spellings;
  for (const size_t i : values_) {
    const DataType& type = plan_.columns[i].type;
    const std::string x = a + "." + column(i);
    const std::string y = b + "." + column(i);
    text += fmt::format(" WHEN {} THEN {}", not_equal(x, y, type), greater(x, y, type));
    if (has_look_alikes(type)) {
      spellings += fmt::format(" WHEN {0} IS DISTINCT FROM {1} THEN coalesce({0} > {1}, false)",
                               spelling(x), spelling(y));
    }
  }
  if (values_.empty()) return "false";
  return text + spellings + " ELSE false END";
}

std::string ProgramBuilder::values_equal(const std::string& a, const std::string& b) const {
  std::vector<std::string> parts;
  parts.reserve(values_.size());
  for (const size_t i : values_) {
    parts.push_back(equal(a + "." + column(i), b + "." + column(i), plan_.columns[i].type));
  }
  if (parts.empty()) return "true";
  return fmt::format("({})", fmt::join(parts, " AND "));
}

std::string ProgramBuilder::values_identical(const std::string& a, const std::string& b) const {
  std::vector<std::string> parts{values_equal(a, b)};
  for (const size_t i : values_) {
    if (!has_look_alikes(plan_.columns[i].type)) continue;
    parts.push_back(fmt::format("{} IS NOT DISTINCT FROM {}", spelling(a + "." + column(i)),
                                spelling(b + "." + column(i))));
  }
  return fmt::format("({})", fmt::join(parts, " AND "));
}

Result<std::string> ProgramBuilder::read_events() const {
  sql::PrintOptions print;
  print.now_us = relations_.now_us;

  std::string text = "SELECT ";
  for (size_t i = 0; i < plan_.columns.size(); ++i) {
    const PlanColumn& target = plan_.columns[i];
    if (!target.owned) continue;
    std::string value =
        target.source ? cast_up(fmt::format("{}.{}", kSource, quote_name(target.source->name)),
                                target.source->type, target.type)
                      : typed_null(target.type);
    if (target.is_key) value = normal_zero(value, target.type);
    text += fmt::format("{} AS {}, ", value, column(i));
  }
  SL_ASSIGN(const std::string sequence, sql::print_duckdb(*plan_.sequence_by, print));
  text +=
      normal_zero(fmt::format("CAST({} AS {})", sequence, sequence_type()), plan_.sequence_type) +
      " AS seq, ";
  std::string kind;
  if (plan_.truncate_when != nullptr) {
    SL_ASSIGN(const std::string condition, sql::print_duckdb(*plan_.truncate_when, print));
    kind += fmt::format(" WHEN ({}) THEN 2", condition);
  }
  if (plan_.delete_when != nullptr) {
    SL_ASSIGN(const std::string condition, sql::print_duckdb(*plan_.delete_when, print));
    kind += fmt::format(" WHEN ({}) THEN 0", condition);
  }
  kind = kind.empty() ? "1" : fmt::format("CASE{} ELSE 1 END", kind);
  return text +
         fmt::format("CAST({} AS TINYINT) AS kind FROM {} AS {}", kind, relations_.source, kSource);
}

std::string ProgramBuilder::target_column(const std::string& name) const {
  return fmt::format("{}.{}", kTarget, quote_name(name));
}

std::string ProgramBuilder::read_target(const std::vector<size_t>& columns,
                                        const std::string& more) const {
  std::string text = "SELECT ";
  for (const size_t i : columns) {
    const PlanColumn& target = plan_.columns[i];
    std::string value = has_target() && target.existing
                            ? cast_up(target_column(target.name), *target.existing, target.type)
                            : typed_null(target.type);
    if (target.is_key) value = normal_zero(value, target.type);
    text += fmt::format("{} AS {}, ", value, column(i));
  }
  text += more;
  if (!has_target()) {
    return text +
           "CAST(NULL AS INTEGER) AS row_file, CAST(NULL AS BIGINT) AS row_pos, "
           "CAST(NULL AS BIGINT) AS row_id WHERE false";
  }
  return text + fmt::format(
                    "{0}.__strandline_file AS row_file, {0}.__strandline_row AS row_pos, "
                    "{0}.__strandline_row_id AS row_id FROM {1} AS {0}",
                    kTarget, relations_.target);
}

std::string ProgramBuilder::read_state(bool with_values) const {
  const bool exists = has_state();
  std::vector<size_t> columns = keys_;
  if (with_values) columns.insert(columns.end(), values_.begin(), values_.end());
  std::string text = "SELECT ";
  for (const size_t i : columns) {
    const PlanColumn& target = plan_.columns[i];
    const std::string value = exists && target.existing_state
                                  ? cast_up(fmt::format("{}.{}", kState, quote_name(target.name)),
                                            *target.existing_state, target.type)
                                  : typed_null(target.type);
    text += fmt::format("{} AS {}, ", value, column(i));
  }
  if (!exists) {
    return text + fmt::format(
                      "{} AS seq, CAST(NULL AS TINYINT) AS kind, CAST(NULL AS INTEGER) AS "
                      "row_file, CAST(NULL AS BIGINT) AS row_pos WHERE false",
                      typed_null(plan_.sequence_type));
  }
  return text + fmt::format(
                    "CAST({0}.{1} AS {2}) AS seq, {0}.{3} AS kind, {0}.__strandline_file AS "
                    "row_file, {0}.__strandline_row AS row_pos FROM {4} AS {0}",
                    kState, quote_name(kStateSequence), sequence_type(), quote_name(kStateKind),
                    relations_.state);
}

void ProgramBuilder::run(const char* stage, std::string sql, std::string only_if) {
  program_.steps.push_back(
      Step{Step::Kind::kRun, stage, std::move(sql), "", "", std::move(only_if)});
}

void ProgramBuilder::check(const char* stage, std::string sql, std::string code,
                           std::string message, std::string only_if) {
  program_.steps.push_back(Step{Step::Kind::kCheck, stage, std::move(sql), std::move(code),
                                std::move(message), std::move(only_if)});
}

void ProgramBuilder::make_table(const char* stage, const char* name, const std::string& query) {
  run(stage, fmt::format("CREATE OR REPLACE TEMP TABLE {} AS {}", table(name), query));
  program_.cleanup.push_back(fmt::format("DROP TABLE IF EXISTS {}", table(name)));
}

void ProgramBuilder::fill_table(const char* stage, const char* name, const std::string& query,
                                const std::string& only_if) {
  make_table(stage, name, fmt::format("SELECT * FROM ({}) LIMIT 0", query));
  run(stage, fmt::format("INSERT INTO {} {}", table(name), query), only_if);
}

void ProgramBuilder::give_keys(const std::string& events) {
  if (plan_.truncate_when != nullptr || plan_.state_spec.truncates) return;
  program_.keys = fmt::format("SELECT {} FROM {}", keys(), events);
}

void ProgramBuilder::validate_events(const std::string& events) {
  std::vector<std::string> names, nulls;
  for (const size_t i : keys_) {
    names.push_back(plan_.columns[i].name);
    nulls.push_back(fmt::format("e.{} IS NULL", column(i)));
  }
  const std::string remedy =
      "; nothing was written. Leave such rows out with WHERE in the source query, as in FROM "
      "(SELECT * FROM STREAM ... WHERE ... IS NOT NULL)";
  check("validate",
        fmt::format("SELECT count(*), min({}) FROM {} AS e WHERE e.seq IS NULL", keys_text("e"),
                    events),
        "AUTOCDC_MICROBATCH_VALIDATION.NULL_SEQUENCE",
        "flow " + plan_.flow_name +
            ": {count} events have no sequence, SEQUENCE BY is null, for example the one with "
            "{example}" +
            remedy);
  check("validate",
        fmt::format("SELECT count(*), min({} || ', sequence = ' || CAST(e.seq AS VARCHAR)) FROM {} "
                    "AS e WHERE e.kind <> 2 AND ({})",
                    keys_text("e"), events, fmt::join(nulls, " OR ")),
        "AUTOCDC_MICROBATCH_VALIDATION.NULL_KEY",
        "flow " + plan_.flow_name + ": {count} events have a null in the key (" +
            fmt::format("{}", fmt::join(names, ", ")) + "), for example the one with {example}" +
            remedy);
}

void ProgramBuilder::check_not_null_columns() {
  for (const PlanColumn& target : plan_.columns) {
    if (target.nullable || target.is_key) continue;
    std::vector<std::string> parts;
    parts.reserve(plan_.keys.size());
    for (const Field& key : plan_.keys) {
      parts.push_back(fmt::format("{} || CAST({} AS VARCHAR)", quote_literal(key.name + " = "),
                                  quote_name(key.name)));
    }
    check("validate",
          fmt::format("SELECT count(*), min(concat_ws(', ', {})) FROM ({}) WHERE {} IS NULL",
                      fmt::join(parts, ", "), program_.target_new, quote_name(target.name)),
          "DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
          "flow " + plan_.flow_name + ": column '" + target.name + "' of " + plan_.target +
              " is NOT NULL and {count} new rows have a null there, for example the one with "
              "{example}; nothing was written");
  }
}

std::string ProgramBuilder::target_row(const std::string& alias, const std::string& user_alias,
                                       const std::string& start, const std::string& stop) const {
  std::vector<std::string> parts;
  size_t i = 0;
  for (const Field& field : plan_.target_schema.fields) {
    std::string value;
    if (!start.empty() && same_name(field.name, kStartAt)) {
      value = start;
    } else if (!start.empty() && same_name(field.name, kEndAt)) {
      value = stop;
    } else {
      value = (plan_.columns[i].owned ? alias : user_alias) + "." + column(i);
      ++i;
    }
    parts.push_back(value + " AS " + quote_name(field.name));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

Result<Program> make_duckdb_program(const Plan& plan, const BatchRelations& relations,
                                    const ProgramOptions& options) {
  switch (plan.scd_type) {
    case ScdType::kType1:
      return make_scd1_program(plan, relations, options);
    case ScdType::kType2:
      return make_scd2_program(plan, relations, options);
    case ScdType::kBitemporal:
      break;
  }
  return unsupported("UNSUPPORTED_FEATURE",
                     "STORED AS BITEMPORAL of flow {} is not built yet: use STORED AS SCD TYPE 2",
                     plan.flow_name);
}

}  // namespace strandline::cdc
