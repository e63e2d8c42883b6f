#include "cdc/program_builder.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/invariant.h"
#include "cdc/leaves.h"

namespace strandline::cdc {

namespace {

constexpr const char* kSource = "__strandline_source";
constexpr const char* kTarget = "__strandline_target";
constexpr const char* kState = "__strandline_state";

}  // namespace

std::string repair_advice(const Plan& plan) {
  return ": `strandline repair " + plan.target +
         "` shows them, and with --apply leaves one of those that are equal in all columns";
}

ProgramBuilder::ProgramBuilder(const Dialect& dialect, const Plan& plan,
                               const BatchRelations& relations, const ProgramOptions& options)
    : ValueText(dialect), plan_(plan), relations_(relations), options_(options) {
  for (const Field& key : plan.keys) {
    for (size_t i = 0; i < plan.columns.size(); ++i) {
      if (same_name(plan.columns[i].name, key.name)) keys_.push_back(i);
    }
  }
  for (size_t i = 0; i < plan.columns.size(); ++i) {
    if (plan.columns[i].is_key) continue;
    if (plan.columns[i].owned) {
      values_.push_back(i);
    } else if (!plan.columns[i].generated) {
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
    parts.push_back(fmt::format("{} || coalesce({}, 'NULL')",
                                quote_literal(plan_.columns[i].name + " = "),
                                as_literal(alias + "." + column(i), plan_.columns[i].type)));
  }
  return fmt::format("concat_ws(', ', {})", fmt::join(parts, ", "));
}

std::string ProgramBuilder::greatest_first(const std::string& alias) const {
  std::vector<std::string> terms, spellings;
  for (const size_t i : values_) {
    const std::string value = alias + "." + column(i);
    terms.push_back(rank_value(value, plan_.columns[i].type) + " DESC NULLS LAST");
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

std::string ProgramBuilder::default_of(size_t i) const {
  const auto given = defaults_.find(i);
  return given == defaults_.end() ? typed_null(plan_.columns[i].type) : given->second;
}

std::string ProgramBuilder::kept_or_default(size_t i, const std::string& alias,
                                            const std::string& is_new) const {
  const std::string kept = alias + "." + column(i);
  if (defaults_.count(i) == 0) return kept;
  return fmt::format("CASE WHEN {} THEN {} ELSE {} END", is_new, default_of(i), kept);
}

Status ProgramBuilder::print_defaults() {
  for (const size_t i : user_columns_) {
    const PlanColumn& target = plan_.columns[i];
    if (target.default_value == nullptr) continue;
    SL_ASSIGN(const std::string value, print(*target.default_value));
    defaults_[i] = fmt::format("CAST({} AS {})", value, type_text(target.type));
  }
  return {};
}

Result<std::string> ProgramBuilder::print(const sql::Expr& expr) const {
  return dialect_.print(expr, relations_.now_us);
}

Result<std::string> ProgramBuilder::sequence_of(const sql::Expr& expr, const DataType& type) const {
  SL_ASSIGN(const std::string sequence, print(expr));
  return normal_zero(fmt::format("CAST({} AS {})", sequence, type_text(type)), type);
}

std::string ProgramBuilder::source_values() const {
  std::string text;
  for (size_t i = 0; i < plan_.columns.size(); ++i) {
    const PlanColumn& target = plan_.columns[i];
    if (!target.owned) continue;
    std::string value =
        target.source ? cast_up(fmt::format("{}.{}", kSource, quote_name(target.source->name)),
                                target.source->type, target.type)
                      : typed_null(target.type);
    if (target.is_key) {
      value = normal_zero(value, target.type);
    } else if (target.empty_is_null && target.source) {
      value = fmt::format("nullif({}, {})", value, empty_value(target.type));
    }
    text += fmt::format("{} AS {}, ", value, column(i));
  }
  return text;
}

std::string ProgramBuilder::empty_value(const DataType& type) const {
  return fmt::format("CAST('' AS {})", type_text(type));
}

std::string ProgramBuilder::emptied_flag() const {
  std::vector<std::string> parts;
  for (const PlanColumn& target : plan_.columns) {
    if (!target.empty_is_null || target.is_key || !target.source) continue;
    parts.push_back(
        fmt::format("{} = {}",
                    cast_up(fmt::format("{}.{}", kSource, quote_name(target.source->name)),
                            target.source->type, target.type),
                    empty_value(target.type)));
  }
  if (parts.empty()) return {};
  return fmt::format(", coalesce({}, false) AS {}", fmt::join(parts, " OR "), kEmptied);
}

void ProgramBuilder::tell_emptied(const std::string& rows) {
  if (emptied_flag().empty()) return;
  program_.emptied = fmt::format("SELECT count(*), min({}) FROM {} AS e WHERE e.{}", keys_text("e"),
                                 rows, kEmptied);
}

void ProgramBuilder::check_empty_keys(const std::string& rows, const std::string& condition,
                                      const std::string& what) {
  std::vector<std::string> names, empty;
  for (const size_t i : keys_) {
    const PlanColumn& key = plan_.columns[i];
    if (!key.empty_is_null) continue;
    names.push_back("'" + key.name + "'");
    empty.push_back(fmt::format("e.{} = {}", column(i), empty_value(key.type)));
  }
  if (names.empty()) return;
  check(
      "validate",
      fmt::format("SELECT count(*), min({}) FROM {} AS e WHERE {} AND ({})", keys_text("e"), rows,
                  condition, fmt::join(empty, " OR ")),
      "DELTA_EMPTY_PARTITION_VALUE",
      fmt::format("flow {}: {} of the key partition{} {} and {} empty in {{count}} of the {}, for "
                  "example in the one with {{example}}: a Delta table keeps an empty partition "
                  "value as null, which is no key. Partition by another column, or leave such "
                  "rows out with WHERE in the source query",
                  plan_.flow_name, fmt::join(names, ", "), names.size() > 1 ? "" : "s",
                  plan_.target, names.size() > 1 ? "are" : "is", what));
}

Result<std::string> ProgramBuilder::event_kind(StateKind upsert) const {
  std::string kind;
  if (plan_.truncate_when != nullptr) {
    SL_ASSIGN(const std::string condition, print(*plan_.truncate_when));
    kind += fmt::format(" WHEN ({}) THEN 2", condition);
  }
  if (plan_.delete_when != nullptr) {
    SL_ASSIGN(const std::string condition, print(*plan_.delete_when));
    kind += fmt::format(" WHEN ({}) THEN 0", condition);
  }
  kind = kind.empty() ? fmt::format("{}", static_cast<int>(upsert))
                      : fmt::format("CASE{} ELSE {} END", kind, static_cast<int>(upsert));
  return fmt::format("CAST({} AS TINYINT)", kind);
}

Result<std::string> ProgramBuilder::read_events() const {
  SL_ASSIGN(const std::string sequence, sequence_of(*plan_.sequence_by, plan_.sequence_type));
  SL_ASSIGN(const std::string kind, event_kind(StateKind::kUpsert));
  return fmt::format("SELECT {}{} AS seq, {} AS kind{} FROM {} AS {}", source_values(), sequence,
                     kind, emptied_flag(), relations_.source, kSource);
}

Result<std::string> ProgramBuilder::read_partial_events() const {
  SL_ASSIGN(const std::string sequence, sequence_of(*plan_.sequence_by, plan_.sequence_type));
  SL_ASSIGN(const std::string kind,
            event_kind(plan_.gives_partly ? StateKind::kPartial : StateKind::kUpsert));
  std::string inner =
      fmt::format("{}{} AS seq, {} AS kind{}", source_values(), sequence, kind, emptied_flag());
  std::string outer, system;
  if (!emptied_flag().empty()) system = fmt::format("{}, ", kEmptied);
  if (is_bitemporal()) {
    SL_ASSIGN(const std::string text,
              sequence_of(*plan_.system_sequence_by, plan_.system_sequence_type));
    inner += fmt::format(", {} AS sys", text);
    system += "sys, ";
  }
  const DataType names = DataType::array(DataType::primitive(TypeId::kString));
  if (plan_.columns_to_update) {
    inner += fmt::format(", CAST({}.{} AS {}) AS names", kSource,
                         quote_name(plan_.columns_to_update->name), type_text(names));
    system += "names, ";
  }
  std::vector<std::string> nulls;
  for (size_t i = 0; i < plan_.columns.size(); ++i) {
    const PlanColumn& target = plan_.columns[i];
    if (!target.owned) continue;
    std::string value = column(i);
    if (plan_.gives_partly && !target.is_key && target.source) {
      std::string given;
      if (target.gives == Gives::kWhenNamed) {
        given = fmt::format("(names IS NULL OR {})", list_has_name("names", target.name));
        value = fmt::format("CASE WHEN {} THEN {} END", given, value);
        given += " AND ";
      }
      if (target.gives == Gives::kLeavesNotNull) {
        value = without_empty_structs(*this, value, target.type);
      } else {
        std::set<std::string> in_source;
        for (const Leaf& leaf : leaves_of(*this, target.name, "", target.source->type)) {
          in_source.insert(leaf.path);
        }
        for (const Leaf& leaf : leaves_of(*this, target.name, column(i), target.type)) {
          if (in_source.count(leaf.path) == 0) continue;
          nulls.push_back(fmt::format("CASE WHEN {}({}) IS NULL THEN {} END", given, leaf.value,
                                      quote_literal(leaf.path)));
        }
      }
    }
    outer += fmt::format("{} AS {}, ", value, column(i));
  }
  return fmt::format("SELECT {}seq, {}kind, {} AS nulls FROM (SELECT {} FROM {} AS {})", outer,
                     system, list_of_texts(nulls), inner, relations_.source, kSource);
}

std::string ProgramBuilder::target_column(const std::string& name) const {
  return fmt::format("{}.{}", kTarget, quote_name(name));
}

std::string ProgramBuilder::read_edits(const std::vector<size_t>& columns,
                                       const std::string& more) const {
  std::string text = "SELECT ";
  for (const size_t i : columns) {
    const PlanColumn& target = plan_.columns[i];
    std::string value = target.existing
                            ? cast_up(target_column(target.name), *target.existing, target.type)
                            : typed_null(target.type);
    if (target.is_key) value = normal_zero(value, target.type);
    text += fmt::format("{} AS {}, ", value, column(i));
  }
  return text + fmt::format("{}{} AS change FROM {} AS {}", more, target_column(kEditSign),
                            relations_.edits, kTarget);
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

std::string ProgramBuilder::state_column(const char* name, const DataType& type) const {
  const bool has = has_state() && plan_.state_columns_before.count(name) > 0;
  return has ? fmt::format("CAST({}.{} AS {})", kState, quote_name(name), type_text(type))
             : typed_null(type);
}

std::string ProgramBuilder::shown_sequence() const {
  if (!plan_.sequence_column) return typed_null(plan_.sequence_type);
  return normal_zero(target_column(*plan_.sequence_column), plan_.sequence_type);
}

std::string ProgramBuilder::read_state(bool with_values, const std::string& more) const {
  const bool exists = has_state();
  std::vector<size_t> columns = keys_;
  if (with_values) {
    columns.insert(columns.end(), values_.begin(), values_.end());
    for (const size_t i : user_columns_) {
      if (plan_.columns[i].noted) columns.push_back(i);
    }
  }
  std::string text = "SELECT ";
  for (const size_t i : columns) {
    const PlanColumn& target = plan_.columns[i];
    const std::string value = exists && target.existing_state
                                  ? cast_up(fmt::format("{}.{}", kState, quote_name(target.name)),
                                            *target.existing_state, target.type)
                                  : typed_null(target.type);
    text += fmt::format("{} AS {}, ", value, column(i));
  }
  text += more;
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

void ProgramBuilder::check(const char* stage, std::string sql, std::string code,
                           std::string message, std::string only_if) {
  program_.steps.push_back(Step{Step::Kind::kCheck, stage, "", std::move(sql), std::move(code),
                                std::move(message), std::move(only_if)});
}

void ProgramBuilder::balance(const char* stage,
                             const std::vector<std::pair<std::string, std::string>>& tables,
                             const std::vector<Counts>& counts) {
  std::vector<std::string> wrong, from;
  for (const Counts& pair : counts) {
    wrong.push_back(fmt::format(
        "CASE WHEN {0} IS DISTINCT FROM {1} THEN concat({2}, {3}, {4}, {5}) ELSE '' END",
        pair.expected, pair.found, as_text(pair.expected), quote_literal(" " + pair.of + ", but "),
        as_text(pair.found), quote_literal(" " + pair.what + "; ")));
  }
  for (const auto& [alias, query] : tables) {
    from.push_back(fmt::format("({}) AS {}", query, alias));
  }
  check(stage,
        fmt::format("SELECT CASE WHEN wrong = '' THEN 0 ELSE 1 END, wrong FROM (\nSELECT "
                    "concat({}) AS wrong\nFROM {}) AS b",
                    fmt::join(wrong, ",\n  "), fmt::join(from, ",\n  ")),
        kInternalInvariant,
        fmt::format("flow {}, stage {}: {{example}}the stages of the batch do not balance{}",
                    plan_.flow_name, stage, kReportInvariant));
}

void ProgramBuilder::make_table(const char* stage, const char* name, const std::string& query,
                                const std::string& only_if) {
  program_.steps.push_back(Step{Step::Kind::kMake, stage, table(name), query, "", "", only_if});
}

void ProgramBuilder::make_numbered(const char* stage, const char* name, const std::string& query) {
  numbered_.insert(name);
  make_table(stage, name, dialect_.numbered(query));
}

void ProgramBuilder::append(const char* stage, const char* name, const std::string& query,
                            const std::string& only_if) {
  program_.steps.push_back(Step{Step::Kind::kChange, stage, table(name),
                                dialect_.append(table(name), query, numbered_.count(name) > 0), "",
                                "", only_if});
}

void ProgramBuilder::update(const char* stage, const char* name, const std::string& column,
                            const std::string& value, const std::string& from,
                            const std::string& condition, const std::string& only_if) {
  program_.steps.push_back(Step{Step::Kind::kChange, stage, table(name),
                                dialect_.update(table(name), column, value, from, condition), "",
                                "", only_if});
}

void ProgramBuilder::remove(const char* stage, const char* name, const std::string& from,
                            const std::string& condition, const std::string& only_if) {
  program_.steps.push_back(Step{Step::Kind::kChange, stage, table(name),
                                dialect_.remove(table(name), from, condition), "", "", only_if});
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
  check("validate",
        fmt::format("SELECT count(*), min({}) FROM {} AS e WHERE e.seq IS NULL", keys_text("e"),
                    events),
        "AUTOCDC_MICROBATCH_VALIDATION.NULL_SEQUENCE",
        "flow " + plan_.flow_name +
            ": SEQUENCE BY is null in {count} of the batch's events, for example in the one with "
            "{example}" +
            kLeaveOut);
  check(
      "validate",
      fmt::format("SELECT count(*), min({} || ', sequence = ' || {}) FROM {} AS e WHERE e.kind <> "
                  "2 AND ({})",
                  keys_text("e"), as_literal("e.seq", plan_.sequence_type), events,
                  fmt::join(nulls, " OR ")),
      "AUTOCDC_MICROBATCH_VALIDATION.NULL_KEY",
      "flow " + plan_.flow_name + ": the key (" + fmt::format("{}", fmt::join(names, ", ")) +
          ") has a null in {count} of the batch's events, for example in the one with {example}" +
          kLeaveOut);
  check_empty_keys(events, "e.kind NOT IN (0, 2)", "batch's upserts");
  tell_emptied(events);
}

void ProgramBuilder::check_not_null_columns() {
  for (const PlanColumn& target : plan_.columns) {
    if (target.nullable || target.is_key || target.generated) continue;
    std::vector<std::string> parts;
    parts.reserve(plan_.keys.size());
    for (const Field& key : plan_.keys) {
      parts.push_back(fmt::format("{} || {}", quote_literal(key.name + " = "),
                                  as_literal(quote_name(key.name), key.type)));
    }
    check("validate",
          fmt::format("SELECT count(*), min(concat_ws(', ', {})) FROM ({}) WHERE {} IS NULL",
                      fmt::join(parts, ", "), program_.target_new, quote_name(target.name)),
          "DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
          "flow " + plan_.flow_name + ": column '" + target.name + "' of " + plan_.target +
              " is NOT NULL and null in {count} of the new rows, for example in the one with "
              "{example}; nothing was written");
  }
}

void ProgramBuilder::find_mark() {
  make_table(
      "validate", "mark",
      fmt::format(R"(
SELECT before.seq AS mark_before,
       CASE WHEN coalesce({later}, true) THEN coalesce(batch.seq, before.seq) ELSE before.seq END AS mark_now,
       batch.seq IS NOT NULL AND coalesce({later}, true) AS moved
FROM (SELECT {greatest} AS seq FROM ({state}) WHERE kind = 2) AS before,
     (SELECT {greatest} AS seq FROM {events} WHERE kind = 2) AS batch)",
                  fmt::arg("later", less("before.seq", "batch.seq")),
                  fmt::arg("greatest", value_of_greatest("seq", order("seq"))),
                  fmt::arg("state", read_state(false)), fmt::arg("events", table("events"))));
}

std::string ProgramBuilder::target_row(const std::string& alias,
                                       const std::function<std::string(size_t)>& user_value,
                                       const std::vector<std::string>& intervals) const {
  static const std::vector<std::string> names = {kStartAt, kEndAt, kSystemStartAt, kSystemEndAt};
  std::vector<std::string> parts;
  size_t i = 0;
  for (const Field& field : plan_.target_schema.fields) {
    std::string value;
    for (size_t k = 0; k < intervals.size(); ++k) {
      if (same_name(field.name, names[k])) value = intervals[k];
    }
    if (value.empty()) {
      const PlanColumn& target = plan_.columns[i];
      value = target.owned       ? alias + "." + column(i)
              : target.generated ? typed_null(target.type)
                                 : user_value(i);
      ++i;
    }
    parts.push_back(value + " AS " + quote_name(field.name));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

namespace {

Result<Program> make_program(const Dialect& dialect, const Plan& plan,
                             const BatchRelations& relations, const ProgramOptions& options) {
  for (const Field& field : plan.target_schema.fields) SL_TRY(dialect.check(field));
  const bool one_by_one =
      plan.state_spec.partial || plan.state_spec.edited || plan.scd_type == ScdType::kBitemporal;
  if (one_by_one) return make_history_program(dialect, plan, relations, options);
  if (plan.scd_type == ScdType::kType1) {
    return make_scd1_program(dialect, plan, relations, options);
  }
  return make_scd2_program(dialect, plan, relations, options);
}

}  // namespace

Result<Program> make_duckdb_program(const Plan& plan, const BatchRelations& relations,
                                    const ProgramOptions& options) {
  return make_program(duckdb_dialect(), plan, relations, options);
}

Result<Program> make_spark_program(const Plan& plan, const BatchRelations& relations,
                                   const ProgramOptions& options) {
  return make_program(spark_dialect(), plan, relations, options);
}

}  // namespace strandline::cdc
