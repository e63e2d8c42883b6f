#include "support/toy_lake.h"

#include <fmt/format.h>

#include "base/error.h"

namespace strandline::test {

namespace {

constexpr const char* kTarget = "toy_target";
constexpr const char* kState = "toy_state";
constexpr const char* kBefore = "toy_before";

std::string name_list(const Schema& schema) {
  std::string text;
  for (const Field& field : schema.fields) text += duck::quote_name(field.name) + ", ";
  return text;
}

}  // namespace

const char* ToyLake::target_table() { return kTarget; }

ToyLake::~ToyLake() {
  for (const char* name : {kTarget, kState}) {
    if (const auto done = connection_.execute(fmt::format("DROP TABLE IF EXISTS {}", name));
        !done.ok())
      return;
  }
}

cdc::TargetFacts ToyLake::facts() const {
  cdc::TargetFacts facts;
  facts.declared = declared;
  facts.clauses_elsewhere = clauses_elsewhere;
  facts.existing = target_schema_;
  facts.existing_state = state_schema_;
  facts.has_rows = has_rows_;
  facts.edited = edited_;
  if (note && note_default != nullptr) facts.defaults[note->name] = note_default;
  if (state_spec_) facts.state = cdc::StateSpec::from_json(*state_spec_).value();
  return facts;
}

std::string ToyLake::relation(const char* name, const Schema& schema) {
  return fmt::format(
      "(SELECT {}CAST(0 AS INTEGER) AS \"__strandline_file\", \"__toy_pos\" AS "
      "\"__strandline_row\", "
      "\"__toy_row_id\" AS \"__strandline_row_id\", CAST(0 AS BIGINT) AS "
      "\"__strandline_row_commit_version\" FROM {})",
      name_list(schema), name);
}

// The table under its new schema; values are kept, new columns are null.
Status ToyLake::reshape(const char* name, const std::optional<Schema>& before,
                        const Schema& after) {
  std::string columns;
  for (const Field& field : after.fields) {
    const bool had = before && before->find(field.name).has_value();
    columns += fmt::format("CAST({} AS {}) AS {}, ", had ? duck::quote_name(field.name) : "NULL",
                           duck::engine_type(field.type), duck::quote_name(field.name));
  }
  const std::string source =
      before ? fmt::format("SELECT {}\"__toy_pos\", \"__toy_row_id\" FROM {}", columns, name)
             : fmt::format(
                   "SELECT {}CAST(0 AS BIGINT) AS \"__toy_pos\", CAST(0 AS BIGINT) AS "
                   "\"__toy_row_id\" WHERE false",
                   columns);
  SL_TRY(connection_.execute(
      fmt::format("CREATE OR REPLACE TEMP TABLE toy_reshaped AS {0}; DROP TABLE IF EXISTS {1}; "
                  "ALTER TABLE toy_reshaped RENAME TO {1}",
                  source, name)));
  return {};
}

Result<int64_t> ToyLake::append(const char* name, const Schema& schema, const std::string& query,
                                bool with_row_id) {
  const std::string next = fmt::format("{} + row_number() OVER ()", last_position_);
  Result<int64_t> added = connection_.execute(fmt::format(
      "INSERT INTO {} SELECT {}{}, {} FROM ({})", name, name_list(schema), next,
      with_row_id ? fmt::format("coalesce(\"__strandline_row_id\", {})", next) : next, query));
  if (added.ok()) last_position_ += *added;
  return added;
}

Result<int64_t> ToyLake::remove(const char* name, const std::string& query) {
  return connection_.execute(
      fmt::format("DELETE FROM {} WHERE \"__toy_pos\" IN (SELECT \"__strandline_row\" FROM ({}))",
                  name, query));
}

Result<BatchOutcome> ToyLake::run_batch(const cdc::Declaration& declaration,
                                        const cdc::SourceFacts& source_facts,
                                        const std::string& source,
                                        const cdc::ProgramOptions& options) {
  if (note && !target_schema_) {
    const cdc::PlanOrErrors first = make_plan(declaration, source_facts, facts());
    if (!first.plan) return first.errors.front();
    Schema schema = first.plan->target_schema;
    schema.fields.insert(schema.fields.begin(), *note);
    SL_TRY(reshape(kTarget, std::nullopt, schema));
    target_schema_ = schema;
  }
  const cdc::TargetFacts before = facts();
  cdc::PlanOrErrors planned = make_plan(declaration, source_facts, before);
  if (!planned.plan) return planned.errors.front();
  const cdc::Plan& plan = *planned.plan;

  cdc::BatchRelations relations;
  relations.source = source;
  if (target_schema_) relations.target = relation(kTarget, *target_schema_);
  if (state_schema_) relations.state = relation(kState, *state_schema_);
  if (edited_) {
    std::string all;
    for (const Field& field : target_schema_->fields)
      all += (all.empty() ? "" : ", ") + duck::quote_name(field.name);
    relations.edits = fmt::format(
        "(SELECT *, 1 AS {3} FROM (SELECT {0} FROM {2} EXCEPT ALL SELECT {0} FROM {1}) UNION ALL "
        "SELECT *, -1 FROM (SELECT {0} FROM {1} EXCEPT ALL SELECT {0} FROM {2}))",
        all, kBefore, kTarget, cdc::kEditSign);
  }
  SL_ASSIGN(cdc::Program program, make_duckdb_program(plan, relations, options));
  if (tamper) tamper(&program);

  BatchOutcome outcome;
  SL_ASSIGN(outcome.metrics, duck::run_program(connection_, program));
  for (const auto& [table, query] : {std::pair("toy_target_new", program.target_new),
                                     std::pair("toy_target_dead", program.target_dead),
                                     std::pair("toy_state_new", program.state_new),
                                     std::pair("toy_state_dead", program.state_dead)}) {
    SL_TRY(connection_.execute(fmt::format("CREATE OR REPLACE TEMP TABLE {} AS {}", table, query)));
  }
  SL_TRY(duck::clean_up(connection_, program));
  edited_ = false;

  if (plan.target_schema_changed) SL_TRY(reshape(kTarget, target_schema_, plan.target_schema));
  if (plan.state_schema_changed) SL_TRY(reshape(kState, state_schema_, plan.state_schema));
  target_schema_ = plan.target_schema;
  state_schema_ = plan.state_schema;
  state_spec_ = plan.state_spec.to_json();

  SL_ASSIGN(outcome.target_dead, remove(kTarget, "FROM toy_target_dead"));
  SL_ASSIGN(const int64_t listed_dead,
            connection_.query_int("SELECT count(*) FROM toy_target_dead"));
  SL_ASSIGN(outcome.target_new, append(kTarget, *target_schema_, "FROM toy_target_new", true));
  SL_ASSIGN(outcome.state_dead, remove(kState, "FROM toy_state_dead"));
  SL_ASSIGN(const int64_t listed_state_dead,
            connection_.query_int("SELECT count(*) FROM toy_state_dead"));
  SL_ASSIGN(outcome.state_new, append(kState, *state_schema_, "FROM toy_state_new", false));
  if (outcome.target_new != outcome.metrics.num_upserted_rows ||
      listed_dead != outcome.metrics.num_dead_rows) {
    return internal_error("TOY_COUNTS", "{} rows new and {} dead, but {} and {} counted",
                          outcome.target_new, listed_dead, outcome.metrics.num_upserted_rows,
                          outcome.metrics.num_dead_rows);
  }
  if (listed_dead != outcome.target_dead || listed_state_dead != outcome.state_dead) {
    return internal_error("TOY_DEAD_ROWS", "{} + {} positions are dead, but {} + {} rows died",
                          listed_dead, listed_state_dead, outcome.target_dead, outcome.state_dead);
  }
  SL_ASSIGN(const int64_t rows,
            connection_.query_int(fmt::format("SELECT count(*) FROM {}", kTarget)));
  has_rows_ = rows > 0;
  return outcome;
}

Status ToyLake::remember_before() {
  if (!tells_edits || edited_) return {};
  edited_ = true;
  SL_TRY(connection_.execute(
      fmt::format("CREATE OR REPLACE TEMP TABLE {} AS FROM {}", kBefore, kTarget)));
  return {};
}

Status ToyLake::insert_by_hand(const std::vector<std::string>& rows) {
  SL_TRY(remember_before());
  for (const std::string& row : rows) {
    ++last_position_;
    SL_TRY(connection_.execute(fmt::format("INSERT INTO {0} SELECT *, {1}, {1} FROM (VALUES ({2}))",
                                           kTarget, last_position_, row)));
  }
  has_rows_ = true;
  return {};
}

Status ToyLake::delete_by_hand(const std::string& condition) {
  SL_TRY(remember_before());
  SL_TRY(connection_.execute(fmt::format("DELETE FROM {} WHERE {}", kTarget, condition)));
  return {};
}

Status ToyLake::update_by_hand(const std::string& assignment, const std::string& condition) {
  SL_TRY(remember_before());
  SL_TRY(connection_.execute(
      fmt::format("UPDATE {} SET {} WHERE {}", kTarget, assignment, condition)));
  return {};
}

Result<duck::Rows> ToyLake::target_rows() const {
  if (!target_schema_) return duck::Rows{};
  return connection_.query(fmt::format("SELECT {}\"__toy_row_id\" FROM {} ORDER BY \"__toy_pos\"",
                                       name_list(*target_schema_), kTarget));
}

Result<duck::Rows> ToyLake::state_rows() const {
  if (!state_schema_) return duck::Rows{};
  return connection_.query(fmt::format("SELECT {}\"__toy_pos\" FROM {} ORDER BY \"__toy_pos\"",
                                       name_list(*state_schema_), kState));
}

}  // namespace strandline::test
