// How a batch of AUTO CDC is computed and committed (auto-cdc.md section 9, steps 2 and 3).
#include <algorithm>

#include "base/error.h"
#include "cdc/program.h"
#include "delta/alter.h"
#include "delta/column_mapping.h"
#include "duck/program_runner.h"
#include "duck/table_change.h"
#include "pipeline/feed_flow.h"
#include "pipeline/flow_execution.h"
#include "pipeline/flow_run.h"
#include "pipeline/hand_rows.h"
#include "pipeline/rebase_change.h"

namespace strandline::pipeline {
namespace {

using duck::quote_name;

// The state holds columns of the target: their names may need column mapping, their types widen.
std::map<std::string, std::string> shared_properties(const delta::Snapshot& target) {
  std::map<std::string, std::string> properties;
  if (target.column_mapping_mode() != "none") properties[delta::kMappingModeProperty] = "name";
  if (target.property_is_true("delta.enableTypeWidening")) {
    properties["delta.enableTypeWidening"] = "true";
  }
  return properties;
}

// The kinds of state rows that may be forgotten, as a SQL list, empty for none: deletes that no row
// of the target shows, and what is only known so that it changes nothing when it comes again.
std::string forgettable_kinds(const cdc::Plan& plan) {
  switch (plan.scd_type) {
    case cdc::ScdType::kType1:
      return "0, 5";
    case cdc::ScdType::kType2:
      // Under partial updates a delete also says what later events do not inherit.
      return plan.state_spec.partial ? "6, 7, 8, 9" : "0, 6, 7, 8, 9";
    case cdc::ScdType::kBitemporal:
      break;
  }
  return "";
}

// Positions of state rows whose time is over, where the batch writes the state anyway; empty for
// none. They are looked for in files as old as the threshold, four times while it passes.
Result<std::string> forgotten_rows(duck::Connection& connection, const delta::Table& table,
                                   const std::shared_ptr<const delta::Snapshot>& state,
                                   const delta::Snapshot& target, const BatchPlan& plan,
                                   const cdc::Plan& cdc_plan, const cdc::Program& program,
                                   std::vector<std::unique_ptr<duck::Scan>>* scans) {
  SL_ASSIGN(const auto seconds, tombstone_seconds(target, cdc_plan.target));
  const std::string kinds = forgettable_kinds(cdc_plan);
  if (!seconds || kinds.empty()) return std::string();
  const auto last = state->property(kStateForgottenProperty);
  const int64_t last_us = last ? std::strtoll(last->c_str(), nullptr, 10) : 0;
  constexpr int64_t kMicros = 1000000;
  if (last && plan.time_us - last_us < *seconds * kMicros / 4) return std::string();
  std::vector<size_t> old_files;
  for (size_t i = 0; i < state->files.size(); ++i) {
    if (state->files[i].modification_time_ms * 1000 <= plan.time_us - *seconds * kMicros)
      old_files.push_back(i);
  }
  if (old_files.empty()) return std::string();
  SL_ASSIGN(const auto changes,
            connection.query_int(fmt::format("SELECT count(*) FROM (SELECT 1 FROM ({}) LIMIT 1)",
                                             program.state_new)));
  if (changes == 0) return std::string();
  SL_ASSIGN(const auto rows, positioned(connection, table, state, old_files, false, scans));
  return fmt::format("SELECT {}, {} FROM {} WHERE {} IN ({})", duck::kFileColumn, duck::kRowColumn,
                     rows, quote_name(cdc::kStateKind), kinds);
}

}  // namespace

struct FlowRun::BatchState {
  std::shared_ptr<const delta::Snapshot> newest;  // null for none
  // What the batch builds on: the newest, or the planned one when the batch's own is there.
  std::shared_ptr<const delta::Snapshot> base;
  bool is_done = false;  // the batch's own is there
  bool is_read = false;  // the program reads rows of base
  bool edited = false;   // hands changed rows of the target that are not yet part of it
  // Hands changed rows after the batch wrote its state: that is made anew with them.
  bool redo = false;
  TouchedFiles files;  // of base
};

Result<bool> FlowRun::takes_edits(const std::shared_ptr<const delta::Snapshot>& target,
                                  const std::vector<Target::Versions>& edits) const {
  if (edits.empty()) return false;
  if (flow_.declaration->clauses.stored_as != sql::StoredAs::kBitemporal) return true;
  const std::string& shown = target_->dataset().shown;
  std::vector<std::unique_ptr<duck::Scan>> scans;
  SL_ASSIGN(const auto rows,
            rows_by_hand(*context_.connection, target_->table(), target, edits, shown, &scans));
  SL_ASSIGN(const auto changed, context_.connection->query_int("SELECT count(*) FROM " + rows));
  if (changed == 0) return false;
  return placed(
      invalid_data("AUTOCDC_INVALID_STATE.INVALID_TARGET_ROWS",
                   "version {0} of '{1}' changed rows by hand, and a BITEMPORAL table cannot be: "
                   "where it wrote rows that were there already, `strandline repair {1} --apply` "
                   "takes them away; else run a full refresh of that table (--full-refresh {1})",
                   edits.front().first, shown),
      flow_.place);
}

Result<FlowRun::BatchState> FlowRun::state_before(const BatchPlan& plan,
                                                  const delta::Snapshot& target) const {
  BatchState state;
  SL_ASSIGN(state.newest, target_->state(target, *checkpoint_));
  const std::string app = target_->app_id(flow_.name);
  state.is_done = state.newest && state.newest->txn_version(app).value_or(-1) >= plan.batch;
  if (!state.is_done) {
    state.base = state.newest;
  } else if (plan.state_version >= 0) {
    SL_ASSIGN(state.base, target_->state_table().snapshot(plan.state_version));
  }
  return state;
}

Status FlowRun::execute_auto_cdc(const BatchPlan& plan) {
  auto& connection = *context_.connection;
  SL_ASSIGN(const auto target, target_before(plan));
  if (!target) return {};
  const bool current = target_->is_current(*target);
  SL_ASSIGN(auto state, state_before(plan, *target));
  committed_ = state.is_done;
  SL_ASSIGN(auto facts, target_facts(*target, state.base.get()));
  std::vector<Target::Versions> edits;
  if (current) {
    SL_ASSIGN(edits, target_->hand_edits(*target, state.base.get()));
  }
  state.edited = !edits.empty();
  SL_ASSIGN(facts.edited, takes_edits(target, edits));
  if (state.is_done && state.edited) {
    const auto seen = state.newest->property(kStateEditsProperty);
    const delta::Version last = seen ? std::strtoll(seen->c_str(), nullptr, 10) : -1;
    state.redo = edits.back().second > last;
  }
  SL_ASSIGN(const auto cdc_plan, make_plan(facts));
  warn(cdc_plan.warnings);
  SL_TRY(tombstone_seconds(*target, target_->dataset().shown));

  // Relations.
  Execution execution;
  cdc::BatchRelations relations;
  SL_ASSIGN(auto query, print_batch(plan, &execution));
  if (sources_.reads_feed()) {
    std::vector<std::string> keys;
    for (const auto& key : cdc_plan.keys) keys.push_back(key.name);
    SL_ASSIGN(query, feed_events(query, keys, *declaration_));
  }
  SL_ASSIGN(const auto events, expected_events(cdc_plan, query, plan, &execution));
  relations.source = "(" + events + ")";
  relations.now_us = plan.time_us;
  // The events come first; their keys say which files of target and state are read.
  const bool reads_target = current && !target->files.empty();
  state.is_read =
      state.base && target_->is_current_state(*state.base) && !state.base->files.empty();
  if (reads_target) relations.target = "target";
  if (state.is_read) relations.state = "state";
  if (facts.edited) {
    SL_ASSIGN(relations.edits, rows_by_hand(connection, target_->table(), target, edits,
                                            target_->dataset().shown, &execution.scans));
  }
  SL_ASSIGN(auto program, cdc::make_duckdb_program(cdc_plan, relations));

  const ProgramTables tables(connection, program);
  const duck::OnStage on_stage = [&](const std::string& name) { stage(name); };
  SL_ASSIGN(const size_t staged, duck::stage_events(connection, program, on_stage));
  TouchedFiles target_files;
  if (reads_target || state.is_read) {
    SL_ASSIGN(execution.keys, BatchKeys::of(connection, cdc_plan, program));
    auto& keys = *execution.keys;
    if (reads_target) {
      target_files = keys.files(*target);
      SL_ASSIGN(const auto rows, positioned(connection, target_->table(), target,
                                            target_files.selection.files, true, &execution.scans));
      SL_ASSIGN(relations.target, keys.rows(connection, rows, *target, target_files));
    }
    if (state.is_read) {
      state.files = keys.files(*state.base);
      SL_ASSIGN(const auto rows, positioned(connection, target_->state_table(), state.base,
                                            state.files.selection.files, false, &execution.scans));
      SL_ASSIGN(relations.state, keys.rows(connection, rows, *state.base, state.files));
    }
    SL_ASSIGN(program, cdc::make_duckdb_program(cdc_plan, relations));
  }
  SL_ASSIGN(const auto metrics, duck::run_program(connection, program, on_stage, staged));
  SL_TRY(context_.check_cancelled());
  SL_TRY(check_files_unchanged(plan));

  // The target's part is prepared first: whether it changes decides whether the state must exist.
  stage("write");
  duck::AppliedChange applied;
  SL_ASSIGN(auto transaction,
            change_target(target, cdc_plan, program, metrics, relations.target, &applied));
  const bool target_changes = transaction.has_changes();
  target_files.read_by(&transaction);

  if (!state.is_done || state.redo) {
    auto status = commit_state(cdc_plan, program, plan, *target, state, target_changes);
    if (!status.ok()) {
      duck::remove_files(target_->table(), applied);
      return status;
    }
  }
  const auto marks = target_->marks();
  if (!marks.ok()) {
    duck::remove_files(target_->table(), applied);
    return marks.error();
  }
  const int64_t input_rows =
      metrics.num_input_rows + (execution.checked ? execution.checked->dropped_rows() : 0);
  if (target_changes) {
    transaction.set_txn(target_->app_id(flow_.name), plan.batch);
    transaction.set_operation("AUTO CDC",
                              {{"flow", flow_.name}, {"batch", std::to_string(plan.batch)}});
    Target::sign_commit(&transaction, plan, marks->state);
    transaction.set_metric("num_upserted_rows", metrics.num_upserted_rows);
    transaction.set_metric("num_deleted_rows", metrics.num_deleted_rows);
    transaction.set_metric("num_input_rows", input_rows);
    if (reads_target) {
      transaction.set_metric("numFilesBeforeSkipping",
                             static_cast<int64_t>(target_files.selection.total));
      transaction.set_metric("numFilesAfterSkipping",
                             static_cast<int64_t>(target_files.selection.files.size()));
    }
    stage("commit");
    SL_TRY(duck::commit_change(transaction, target_->table(), applied));
    committed_ = true;
  }
  add_metric("num_upserted_rows", static_cast<double>(metrics.num_upserted_rows));
  add_metric("num_deleted_rows", static_cast<double>(metrics.num_deleted_rows));
  add_metric("num_input_rows", static_cast<double>(input_rows));
  add_metric("num_late_rows", static_cast<double>(metrics.num_late_rows));
  add_metric("num_sequence_conflicts", static_cast<double>(metrics.num_sequence_conflicts));
  add_metric("num_output_bytes", static_cast<double>(applied.written_bytes()));
  for (const auto* selection : {&target_files.selection, &state.files.selection}) {
    add_metric("num_files_read", static_cast<double>(selection->files.size()));
    add_metric("num_files_skipped", static_cast<double>(selection->skipped()));
  }
  count_expectations(execution);
  tell_empty_partitions(*target, metrics.num_emptied_rows, metrics.emptied_example);
  if (metrics.num_sequence_conflicts > 0 && !conflict_warned_) {
    conflict_warned_ = true;
    warnings_.push_back(placed(
        invalid_data(
            "SEQUENCE_CONFLICT",
            "flow '{}': events of one key and sequence differ (count: {}, for example {}); the "
            "greatest counts. For arrival order write SEQUENCE BY STRUCT(…, _metadata.file_path, "
            "_metadata.row_index)",
            flow_.name, metrics.num_sequence_conflicts, metrics.conflict_example),
        flow_.place));
  }
  return {};
}

Status FlowRun::commit_state(const cdc::Plan& cdc_plan, const cdc::Program& program,
                             const BatchPlan& plan, const delta::Snapshot& target,
                             const BatchState& state, bool target_changes) {
  auto& connection = *context_.connection;
  const delta::Table table = target_->state_table();
  const auto& newest = state.newest;
  const std::string generation = std::to_string(target_->checkpoint().generation());
  const std::string spec = cdc_plan.state_spec.to_json();
  const bool fits = newest && target_->is_current_state(*newest);
  const std::string edits_up_to = std::to_string(target.version);
  std::optional<delta::Transaction> transaction;
  if (!newest) {
    delta::NewTable definition;
    definition.is_internal = true;
    definition.schema = cdc_plan.state_schema;
    definition.properties = {{kStateSpecProperty, spec},
                             {kStateTargetProperty, target.metadata.id},
                             {kStateGenerationProperty, generation},
                             {"delta.enableRowTracking", "false"}};
    if (state.edited) definition.properties[kStateEditsProperty] = edits_up_to;
    definition.properties.merge(shared_properties(target));
    SL_ASSIGN(auto created, delta::Transaction::create(table, definition));
    transaction.emplace(std::move(created));
  } else {
    SL_ASSIGN(auto begun, delta::Transaction::begin(table, newest));
    transaction.emplace(std::move(begun));
    delta::Alteration alteration(*newest);
    SL_TRY(alteration.set_properties(shared_properties(target)));
    alteration.apply_to(&*transaction);
    if (!fits || state.edited || newest->property(kStateSpecProperty) != spec) {
      delta::Metadata metadata = transaction->snapshot().metadata;
      metadata.configuration[kStateSpecProperty] = spec;
      if (!fits) {
        metadata.configuration.erase(kStateEditsProperty);
        metadata.configuration.erase(kStateForgottenProperty);
      }
      if (state.edited) metadata.configuration[kStateEditsProperty] = edits_up_to;
      metadata.configuration[kStateTargetProperty] = target.metadata.id;
      metadata.configuration[kStateGenerationProperty] = generation;
      transaction->set_metadata(std::move(metadata));
    }
    if (fits && !state.redo ? cdc_plan.state_schema_changed
                            : !same_schema(cdc_plan.state_schema, newest->schema)) {
      transaction->set_schema(cdc_plan.state_schema);
    }
  }
  std::string dead_rows = state.is_read ? program.state_dead : "";
  std::vector<std::unique_ptr<duck::Scan>> scans;
  if (state.is_read) {
    SL_ASSIGN(const auto forgotten, forgotten_rows(connection, table, state.base, target, plan,
                                                   cdc_plan, program, &scans));
    if (!forgotten.empty()) {
      dead_rows = fmt::format("SELECT * FROM ({}) UNION ({})", dead_rows, forgotten);
      delta::Metadata metadata = transaction->snapshot().metadata;
      metadata.configuration[kStateForgottenProperty] = std::to_string(plan.time_us);
      transaction->set_metadata(std::move(metadata));
    }
  }
  RowsChange rows{program.state_new, dead_rows};
  if (state.redo) {
    const auto base = state.is_read ? state.base : nullptr;
    SL_ASSIGN(rows,
              rebase_change(connection, table, base, newest, cdc_plan.state_schema, rows, &scans));
  }
  const duck::TableChange change{rows.new_rows, rows.dead_rows, newest && !fits, false};
  duck::AppliedChange applied;
  auto done = duck::apply_change(connection, *transaction, table, newest, change, &applied);
  if (!done.ok()) {
    duck::remove_files(table, applied);
    return std::move(done).error();
  }
  // A new or reset state is needed as soon as anything was applied; else only when it changes.
  const bool begins = !newest || !fits;
  if (begins ? (applied.written.empty() && !target_changes) : !transaction->has_changes())
    return {};
  // Positions that were read are those of another version when the state is made anew.
  if (!state.redo) state.files.read_by(&*transaction);
  transaction->set_txn(target_->app_id(flow_.name), plan.batch);
  transaction->set_operation("AUTO CDC STATE", {{"flow", flow_.name}});
  Target::sign_commit(&*transaction, plan);
  stage("commit state");
  SL_TRY(duck::commit_change(*transaction, table, applied));
  committed_ = true;
  return {};
}

}  // namespace strandline::pipeline
