// How one batch is computed and committed (auto-cdc.md section 9, steps 2 and 3).
#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "cdc/program.h"
#include "delta/alter.h"
#include "delta/column_mapping.h"
#include "delta/column_rules.h"
#include "delta/find_damage.h"
#include "duck/change_scan.h"
#include "duck/delta_io.h"
#include "duck/program_runner.h"
#include "duck/row_rules.h"
#include "duck/table_change.h"
#include "pipeline/batch_keys.h"
#include "pipeline/feed_flow.h"
#include "pipeline/feed_source.h"
#include "pipeline/file_reader.h"
#include "pipeline/flow_execution.h"
#include "pipeline/flow_run.h"
#include "pipeline/rebase_change.h"
#include "pipeline/row_changes.h"
#include "pipeline/view_refresh.h"
#include "sql/duckdb_printer.h"

namespace strandline::pipeline {
namespace {

using duck::quote_name;

// A target commit that lost against another writer is computed anew this often.
constexpr int kAttempts = 20;
constexpr const char* kTypeWidening = "delta.enableTypeWidening";
std::string operation_of(const Flow& flow) {
  switch (flow.kind) {
    case FlowKind::kAutoCdc:
      return "AUTO CDC";
    case FlowKind::kAppend:
      return "STREAMING UPDATE";
    case FlowKind::kMaterialize:
      return "REFRESH";
  }
  return "";
}

// The state holds columns of the target: their names may need column mapping, their types widen.
std::map<std::string, std::string> shared_properties(const delta::Snapshot& target) {
  std::map<std::string, std::string> properties;
  if (target.column_mapping_mode() != "none") properties[delta::kMappingModeProperty] = "name";
  if (target.property_is_true("delta.enableTypeWidening")) {
    properties["delta.enableTypeWidening"] = "true";
  }
  return properties;
}

// Of an identity column, in its metadata.
const std::string kHighWaterMark = std::string(delta::kIdentityPrefix) + "highWaterMark";

}  // namespace

std::vector<cdf::KeyPart> key_parts(const cdc::Plan& plan) {
  std::vector<cdf::KeyPart> parts;
  for (const auto& key : plan.keys) parts.push_back({key.name});
  if (plan.scd_type != cdc::ScdType::kType1) parts.push_back({cdc::kStartAt, cdc::kEndAt});
  if (plan.scd_type == cdc::ScdType::kBitemporal) parts.push_back({cdc::kSystemStartAt});
  return parts;
}

std::string primary_key(const cdc::Plan& plan) {
  JsonWriter w;
  w.begin_array();
  for (const auto& part : key_parts(plan)) {
    w.value(part.size() == 1 ? part[0] : fmt::format("coalesce({}, {})", part[0], part[1]));
  }
  w.end_array();
  return w.take();
}

bool same_schema(const Schema& a, const Schema& b) {
  if (a.fields.size() != b.fields.size()) return false;
  for (size_t i = 0; i < a.fields.size(); ++i) {
    if (a.fields[i].name != b.fields[i].name || !same_type(a.fields[i].type, b.fields[i].type) ||
        a.fields[i].nullable != b.fields[i].nullable) {
      return false;
    }
  }
  return true;
}

Status FlowRun::execute(const BatchPlan& plan) {
  for (int attempt = 1;; ++attempt) {
    SL_TRY(context_.check_cancelled());
    SL_TRY(check_files_unchanged(plan));
    auto status = takes_snapshots()                  ? execute_snapshot(plan)
                  : flow_.kind == FlowKind::kAutoCdc ? execute_auto_cdc(plan)
                                                     : execute_write(plan);
    if (status.ok() || status.error().kind != ErrorKind::kConflict || attempt == kAttempts)
      return status;
  }
}

// A file of the batch is read whole at the size it was planned with, or not at all.
Status FlowRun::check_files_unchanged(const BatchPlan& plan) const {
  for (const auto& source : plan.sources) {
    for (const auto& file : source.files) {
      const auto info = context_.store->stat(file.path);
      if (!info.ok()) {
        if (info.error().kind != ErrorKind::kNotFound) return info.error();
        const auto half = is_state_committed(plan.batch);
        const bool needed = !half.ok() || *half;
        return not_found("SOURCE_FILE_VANISHED",
                         "file '{}' was there when batch {} of flow '{}' was planned and is gone: "
                         "bring it back, or {}",
                         file.path, plan.batch, flow_.name,
                         needed ? "run a full refresh with --allow-missing-sources"
                                : "run again to go on without it");
      }
      if (info->size_bytes != file.size_bytes) {
        return invalid_data(
            "SOURCE_FILE_CHANGED",
            "file '{}' changed while batch {} of flow '{}' was under way ({} bytes when planned, "
            "{} "
            "now): write files under another name and rename them when they are complete",
            file.path, plan.batch, flow_.name, file.size_bytes, info->size_bytes);
      }
    }
  }
  return {};
}

// The record behind an engine's error, when it is one of the batch's files.
Error FlowRun::explain(const BatchPlan& plan, Error error) const {
  const bool engine = error.code == "ENGINE_ERROR" || error.code == "VALUE_OUT_OF_TYPE" ||
                      error.code == "MALFORMED_RECORD";
  if (!engine || error.kind == ErrorKind::kCancelled) return error;
  const auto& sources = sources_.sources();
  for (size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].kind != SourceKind::kFiles || !schemas_[i]) continue;
    for (const auto& part : plan.sources) {
      if (part.key != sources[i].key) continue;
      if (auto why = explain_failure(*context_.connection, *context_.store, sources[i].files,
                                     *schemas_[i], part.files, error)) {
        return *why;
      }
    }
  }
  for (size_t i = 0; i < sources.size(); ++i) {
    if (auto why = find_lost_file(sources[i], i, plan)) return placed(std::move(*why), flow_.place);
  }
  return placed(std::move(error), flow_.place);
}

// A data file of a table that the batch reads and that is gone or damaged.
std::optional<Error> FlowRun::find_lost_file(const Source& source, size_t index,
                                             const BatchPlan& plan) const {
  if (!source.table || newest_[index] == nullptr) return {};
  auto* const store = source.table->store().get();
  if (source.kind == SourceKind::kTable) {
    const auto pinned = plan.pinned.find(source.key);
    if (pinned == plan.pinned.end()) return {};
    const auto snapshot = source.table->snapshot(pinned->second);
    return snapshot.ok() ? delta::find_damage(store, **snapshot) : std::nullopt;
  }
  for (const auto& part : plan.sources) {
    if (part.key != source.key || !part.from || !part.to) continue;
    if (source.is_feed()) {
      const auto changes =
          feed_range(*source.table, newest_[index], source.stream, *part.from, *part.to);
      return changes.ok() ? cdf::find_missing_file(store, *changes) : std::nullopt;
    }
    const auto range = delta_range(*source.table, *newest_[index], source.stream, *part.from,
                                   *part.to, source.shown);
    auto damage = range.ok() ? delta::find_damage(store, **range) : std::nullopt;
    if (!damage) return {};
    return damage->with_context(fmt::format("stream of '{}', versions {} to {}", source.shown,
                                            part.from->version, part.to->version));
  }
  return {};
}

Result<cdc::Plan> FlowRun::make_plan(const cdc::TargetFacts& known) const {
  cdc::TargetFacts target = known;
  SL_TRY(add_column_rules(&target));
  auto made = cdc::make_plan(
      *declaration_,
      {facts_->schema, facts_->sequence_type, facts_->hidden, facts_->system_sequence_type},
      target);
  if (!made.plan) {
    if (made.errors.empty()) return internal_error("NO_PLAN", "flow '{}' has no plan", flow_.name);
    return placed(made.errors.front(), flow_.place);
  }
  return std::move(*made.plan);
}

Result<cdc::TargetFacts> FlowRun::target_facts(const delta::Snapshot& target,
                                               const delta::Snapshot* state) const {
  cdc::TargetFacts facts;
  const bool current = target_->is_current(target);
  facts.declared = target_->dataset().declared_schema();
  facts.has_rows = current && !target.files.empty();
  facts.type_widening = target.property_is_true(kTypeWidening);
  if (current) facts.existing = target.schema;
  if (takes_snapshots()) {
    // What a snapshot flow remembers besides its versions stands in the target.
    const auto spec = target.property(kStateSpecProperty);
    if (spec && current && checkpoint_->snapshot_version()) {
      SL_ASSIGN(facts.state, cdc::StateSpec::from_json(*spec));
    }
    return facts;
  }
  if (state != nullptr && target_->is_current_state(*state)) {
    facts.existing_state = state->schema;
    SL_ASSIGN(facts.state,
              cdc::StateSpec::from_json(state->property(kStateSpecProperty).value_or("")));
  }
  return facts;
}

// The table, made from what is known of the flow if it is not there yet.
Result<std::shared_ptr<const delta::Snapshot>> FlowRun::ensure_target() {
  SL_ASSIGN(auto snapshot, target_->snapshot(*checkpoint_));
  if (snapshot && flow_.kind == FlowKind::kAutoCdc && Target::is_unowned(*snapshot)) {
    // A table that fits is taken over.
    SL_ASSIGN(const auto facts, target_facts(*snapshot, nullptr));
    SL_ASSIGN(const auto plan, make_plan(facts));
    SL_ASSIGN(snapshot, target_->adopt(snapshot, {{kPrimaryKeyProperty, primary_key(plan)},
                                                  {kScdTypeProperty, to_string(plan.scd_type)}}));
  }
  if (snapshot) return target_->update_properties(std::move(snapshot), &warnings_);
  const auto& dataset = target_->dataset();
  std::map<std::string, std::string> properties;
  Schema schema;
  if (flow_.kind == FlowKind::kAutoCdc) {
    cdc::TargetFacts facts;
    facts.declared = dataset.declared_schema();
    facts.has_rows = false;
    SL_ASSIGN(const auto plan, make_plan(facts));
    schema = plan.target_schema;
    properties[kPrimaryKeyProperty] = primary_key(plan);
    properties[kScdTypeProperty] = cdc::to_string(plan.scd_type);
    if (takes_snapshots()) properties[kStateSpecProperty] = plan.state_spec.to_json();
  } else {
    schema = dataset.declared_schema().value_or(facts_->schema);
    for (auto& field : schema.fields) {
      if (field.type.id == TypeId::kVoid) {
        return placed(invalid_argument("UNSUPPORTED_TYPE",
                                       "column '{}' holds only nulls: cast it to a type in the "
                                       "query",
                                       field.name),
                      flow_.place);
      }
    }
  }
  stage("create table");
  return target_->create(schema, properties);
}

// --- AUTO CDC -----------------------------------------------------------------------------------

Result<std::string> positioned(duck::Connection& connection, const delta::Table& table,
                               const std::shared_ptr<const delta::Snapshot>& snapshot,
                               const std::vector<size_t>& files, bool with_row_ids,
                               std::vector<std::unique_ptr<duck::Scan>>* scans) {
  duck::ScanOptions options;
  options.files = files;
  options.with_positions = true;
  options.with_row_ids = with_row_ids && snapshot->row_tracking_enabled();
  SL_ASSIGN(auto scan, duck::scan_table(connection, table, snapshot, options));
  std::string sql = scan->sql();
  scans->push_back(std::move(scan));
  if (!with_row_ids || options.with_row_ids) return sql;
  return fmt::format("(SELECT *, CAST(NULL AS BIGINT) AS {}, CAST(NULL AS BIGINT) AS {} FROM {})",
                     duck::kRowIdColumn, duck::kRowVersionColumn, sql);
}

namespace {

// The files of `a` that `b` does not have with the same rows.
std::vector<size_t> files_not_in(const delta::Snapshot& a, const delta::Snapshot& b) {
  const auto name = [](const delta::AddFile& file) {
    std::string text = file.path;
    if (file.deletion_vector) text += "\n" + file.deletion_vector->unique_id();
    return text;
  };
  std::set<std::string> there;
  for (const auto& file : b.files) there.insert(name(file));
  std::vector<size_t> indexes;
  for (size_t i = 0; i < a.files.size(); ++i) {
    if (there.count(name(a.files[i])) == 0) indexes.push_back(i);
  }
  return indexes;
}

// Queries of the rows that one version of a table has and another one has not, with these columns.
struct RowDifference {
  std::string now, before;
};

Result<RowDifference> row_difference(duck::Connection& connection, const delta::Table& table,
                                     const std::shared_ptr<const delta::Snapshot>& before,
                                     const std::shared_ptr<const delta::Snapshot>& after,
                                     const Schema& columns,
                                     std::vector<std::unique_ptr<duck::Scan>>* scans) {
  const auto rows = [&](const std::shared_ptr<const delta::Snapshot>& snapshot,
                        const std::vector<size_t>& files) -> Result<std::string> {
    std::string names;
    for (const auto& field : columns.fields) {
      const std::string name = quote_name(field.name);
      names += fmt::format("{}CAST({} AS {}) AS {}", names.empty() ? "" : ", ",
                           snapshot->schema.find(field.name) ? name : "NULL",
                           duck::engine_type(field.type), name);
    }
    duck::ScanOptions options;
    options.files = files;
    SL_ASSIGN(auto scan, duck::scan_table(connection, table, snapshot, options));
    std::string sql = fmt::format("(SELECT {} FROM {})", names, scan->sql());
    scans->push_back(std::move(scan));
    return sql;
  };
  SL_ASSIGN(const auto old_rows, rows(before, files_not_in(*before, *after)));
  SL_ASSIGN(const auto new_rows, rows(after, files_not_in(*after, *before)));
  return RowDifference{fmt::format("({} EXCEPT ALL {})", new_rows, old_rows),
                       fmt::format("({} EXCEPT ALL {})", old_rows, new_rows)};
}

// Two versions of a table that hands changed rows between, with all files that tell which.
// Errors: AUTOCDC_INVALID_STATE.HAND_EDITS_LOST (kInvalidData) where VACUUM or a cleaned log have
// taken something of it.
struct Edited {
  std::shared_ptr<const delta::Snapshot> before, after;
};
Result<Edited> edited_versions(const delta::Table& table, const Target::Versions& edits,
                               const std::string& shown) {
  const auto lost = [&](const Error& why) {
    return invalid_data(
        "AUTOCDC_INVALID_STATE.HAND_EDITS_LOST",
        "versions {} to {} of '{}' changed rows by hand, and what they changed cannot be read any "
        "more ({}): run a full refresh of that table (--full-refresh {}), which goes without them",
        edits.first, edits.second, shown, why.message, shown);
  };
  Edited edited;
  for (auto [version, snapshot] :
       {std::pair(edits.first - 1, &edited.before), std::pair(edits.second, &edited.after)}) {
    auto found = table.snapshot(version);
    if (!found.ok()) {
      if (found.error().kind != ErrorKind::kNotFound) return found.error();
      return lost(found.error());
    }
    *snapshot = *std::move(found);
  }
  for (const auto& [one, other] :
       {std::pair(edited.before, edited.after), std::pair(edited.after, edited.before)}) {
    const auto files = files_not_in(*one, *other);
    if (const auto damage = delta::find_damage(table.store().get(), *one, &files))
      return lost(*damage);
  }
  return edited;
}

// The rows that hands changed in these versions, as a program reads them.
Result<std::string> rows_by_hand(duck::Connection& connection, const delta::Table& table,
                                 const std::shared_ptr<const delta::Snapshot>& target,
                                 const std::vector<Target::Versions>& edits,
                                 const std::string& shown,
                                 std::vector<std::unique_ptr<duck::Scan>>* scans) {
  std::string now, before;
  for (const auto& versions : edits) {
    if (versions.first == 0) {
      // Taken over with all its rows.
      SL_ASSIGN(auto scan, duck::scan_table(connection, table, target));
      const std::string sql =
          fmt::format("(SELECT *, 1 AS {} FROM {})", cdc::kEditSign, scan->sql());
      scans->push_back(std::move(scan));
      return sql;
    }
    SL_ASSIGN(const auto edited, edited_versions(table, versions, shown));
    SL_ASSIGN(const auto difference, row_difference(connection, table, edited.before, edited.after,
                                                    target->schema, scans));
    now += (now.empty() ? "" : " UNION ALL ") + difference.now;
    before += (before.empty() ? "" : " UNION ALL ") + difference.before;
  }
  // What one change made and a later one took away was never there for the program.
  if (edits.size() > 1) {
    const std::string all = fmt::format("(({}) EXCEPT ALL ({}))", now, before);
    before = fmt::format("(({}) EXCEPT ALL ({}))", before, now);
    now = all;
  }
  return fmt::format("(SELECT *, 1 AS {} FROM {} UNION ALL SELECT *, -1 FROM {})", cdc::kEditSign,
                     now, before);
}

// The kinds of state rows that may be forgotten, as a SQL list, empty for none: deletes that no row
// of the target shows, and what is only known so that it changes nothing when it comes again.
std::string forgettable_kinds(const cdc::Plan& plan) {
  switch (plan.scd_type) {
    case cdc::ScdType::kType1:
      return "0, 5";
    case cdc::ScdType::kType2:
      // Under partial updates a delete also says what later events do not inherit.
      return plan.state_spec.partial ? "6" : "0, 6";
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

Status FlowRun::check_edits(const cdc::Plan& plan,
                            const std::vector<Target::Versions>& edits) const {
  if (edits.empty() || plan.scd_type != cdc::ScdType::kBitemporal) return {};
  return placed(
      invalid_data("AUTOCDC_INVALID_STATE.INVALID_TARGET_ROWS",
                   "version {} of '{}' changed rows by hand, and a BITEMPORAL table cannot be: run "
                   "a full refresh of that table (--full-refresh {})",
                   edits.front().first, target_->dataset().shown, target_->dataset().shown),
      flow_.place);
}

Status FlowRun::execute_auto_cdc(const BatchPlan& plan) {
  auto& connection = *context_.connection;
  const std::string app = target_->app_id(flow_.name);
  SL_ASSIGN(const auto target, target_->snapshot(*checkpoint_));
  if (!target) return internal_error("NO_TARGET", "'{}' is not there", target_->dataset().shown);
  if (target->txn_version(app).value_or(-1) >= plan.batch) {
    committed_ = true;
    return {};
  }
  const bool current = target_->is_current(*target);

  // The state the batch builds on: the newest, or the planned one when this batch's own is there.
  const delta::Table state_table = target_->state_table();
  SL_ASSIGN(auto newest_state, target_->state(*target, *checkpoint_));
  const bool state_done = newest_state && newest_state->txn_version(app).value_or(-1) >= plan.batch;
  committed_ = state_done;
  auto state = newest_state;
  if (state_done) {
    state = nullptr;
    if (plan.state_version >= 0) {
      SL_ASSIGN(state, state_table.snapshot(plan.state_version));
    }
  }
  const bool state_current = state && target_->is_current_state(*state);

  SL_ASSIGN(auto facts, target_facts(*target, state.get()));
  std::vector<Target::Versions> edits;
  if (current) {
    SL_ASSIGN(edits, target_->hand_edits(*target, state.get()));
  }
  // Rows were changed by hand after the batch wrote its state: the state is made anew with them.
  bool redo_state = false;
  if (state_done) {
    const auto seen = newest_state->property(kStateEditsProperty);
    const delta::Version last = seen ? std::strtoll(seen->c_str(), nullptr, 10) : -1;
    redo_state = !edits.empty() && edits.back().second > last;
  }
  facts.edited = !edits.empty();
  SL_ASSIGN(const auto cdc_plan, make_plan(facts));
  SL_TRY(check_edits(cdc_plan, edits));
  for (const auto& warning : cdc_plan.warnings) {
    const auto same = [&](const Error& other) { return other.message == warning.message; };
    if (std::none_of(warnings_.begin(), warnings_.end(), same))
      warnings_.push_back(placed(warning, flow_.place));
  }

  SL_ASSIGN(const auto forget, tombstone_seconds(*target, target_->dataset().shown));
  (void)forget;

  // Relations.
  Execution execution;
  cdc::BatchRelations relations;
  SL_ASSIGN(auto query, print_batch(plan, &execution));
  if (sources_.reads_feed()) {
    std::vector<std::string> keys;
    for (const auto& key : cdc_plan.keys) keys.push_back(key.name);
    query = feed_events(query, keys, *declaration_);
  }
  SL_ASSIGN(const auto events, expected_events(cdc_plan, query, plan, &execution));
  relations.source = "(" + events + ")";
  relations.now_us = plan.time_us;
  // The events come first; their keys say which files of target and state are read.
  const bool reads_target = current && !target->files.empty();
  const bool reads_state = state_current && !state->files.empty();
  if (reads_target) relations.target = "target";
  if (reads_state) relations.state = "state";
  if (!edits.empty()) {
    SL_ASSIGN(relations.edits, rows_by_hand(connection, target_->table(), target, edits,
                                            target_->dataset().shown, &execution.scans));
  }
  SL_ASSIGN(auto program, cdc::make_duckdb_program(cdc_plan, relations));

  struct CleanUp {
    duck::Connection& connection;
    const cdc::Program& program;
    ~CleanUp() { (void)duck::clean_up(connection, program).ok(); }
  } clean_up{connection, program};
  const duck::OnStage on_stage = [&](const std::string& name) { stage(name); };
  SL_ASSIGN(const size_t staged, duck::stage_events(connection, program, on_stage));
  TouchedFiles target_files, state_files;
  if (reads_target || reads_state) {
    SL_ASSIGN(execution.keys, BatchKeys::of(connection, cdc_plan, program));
    auto& keys = *execution.keys;
    if (reads_target) {
      target_files = keys.files(*target);
      SL_ASSIGN(const auto rows, positioned(connection, target_->table(), target,
                                            target_files.selection.files, true, &execution.scans));
      SL_ASSIGN(relations.target, keys.rows(connection, rows, *target, target_files));
    }
    if (reads_state) {
      state_files = keys.files(*state);
      SL_ASSIGN(const auto rows, positioned(connection, state_table, state,
                                            state_files.selection.files, false, &execution.scans));
      SL_ASSIGN(relations.state, keys.rows(connection, rows, *state, state_files));
    }
    SL_ASSIGN(program, cdc::make_duckdb_program(cdc_plan, relations));
  }
  SL_ASSIGN(const auto metrics, duck::run_program(connection, program, on_stage, staged));
  SL_TRY(context_.check_cancelled());
  SL_TRY(check_files_unchanged(plan));

  // The target's part is prepared first: whether it changes decides whether the state must exist.
  stage("write");
  SL_ASSIGN(auto transaction, delta::Transaction::begin(target_->table(), target));
  if (!current) {
    delta::Metadata metadata = target->metadata;
    metadata.configuration[kPrimaryKeyProperty] = primary_key(cdc_plan);
    metadata.configuration[kScdTypeProperty] = cdc::to_string(cdc_plan.scd_type);
    metadata.configuration.erase(kStateSpecProperty);  // of snapshots before
    if (metadata.configuration != target->metadata.configuration)
      transaction.set_metadata(std::move(metadata));
  }
  if (current ? cdc_plan.target_schema_changed
              : !same_schema(cdc_plan.target_schema, target->schema)) {
    transaction.set_schema(cdc_plan.target_schema);
  }
  duck::TableChange change{program.target_new, program.target_dead, !current, true};
  if (relations.target.empty()) {
    change.dead_rows.clear();
  } else if (target->property_is_true("delta.enableChangeDataFeed")) {
    change.rows = replaced_rows(target->schema, cdc_plan.target_schema, key_parts(cdc_plan),
                                relations.target, program.target_dead, program.target_new);
  }
  duck::AppliedChange applied;
  SL_TRY(duck::apply_change(connection, transaction, target_->table(), target, change, &applied));
  const bool target_changes = transaction.has_changes();
  target_files.read_by(&transaction);

  if (!state_done || redo_state) {
    // Positions that were read are those of another version when the state is made anew.
    const auto read_by_keys = [&](delta::Transaction* of_state) {
      if (!redo_state) state_files.read_by(of_state);
    };
    auto status = commit_state(cdc_plan, program, plan, app, *target, newest_state,
                               relations.state.empty() ? nullptr : state, target_changes,
                               facts.edited, redo_state, read_by_keys);
    if (!status.ok()) {
      duck::remove_files(target_->table(), applied);
      return status;
    }
  }
  const int64_t input_rows =
      metrics.num_input_rows + (execution.checked ? execution.checked->dropped_rows() : 0);
  if (target_changes) {
    transaction.set_txn(app, plan.batch);
    transaction.set_operation(operation_of(flow_),
                              {{"flow", flow_.name}, {"batch", std::to_string(plan.batch)}});
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
  for (const auto* selection : {&target_files.selection, &state_files.selection}) {
    add_metric("num_files_read", static_cast<double>(selection->files.size()));
    add_metric("num_files_skipped", static_cast<double>(selection->skipped()));
  }
  count_expectations(execution);
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
                             const BatchPlan& plan, const std::string& app,
                             const delta::Snapshot& target,
                             const std::shared_ptr<const delta::Snapshot>& newest,
                             const std::shared_ptr<const delta::Snapshot>& base,
                             bool target_changes, bool edited, bool redo,
                             const std::function<void(delta::Transaction*)>& read_by_keys) {
  auto& connection = *context_.connection;
  const delta::Table table = target_->state_table();
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
    if (edited) definition.properties[kStateEditsProperty] = edits_up_to;
    definition.properties.merge(shared_properties(target));
    SL_ASSIGN(auto created, delta::Transaction::create(table, definition));
    transaction.emplace(std::move(created));
  } else {
    SL_ASSIGN(auto begun, delta::Transaction::begin(table, newest));
    transaction.emplace(std::move(begun));
    delta::Alteration alteration(*newest);
    SL_TRY(alteration.set_properties(shared_properties(target)));
    alteration.apply_to(&*transaction);
    if (!fits || edited || newest->property(kStateSpecProperty) != spec) {
      delta::Metadata metadata = transaction->snapshot().metadata;
      metadata.configuration[kStateSpecProperty] = spec;
      if (!fits) {
        metadata.configuration.erase(kStateEditsProperty);
        metadata.configuration.erase(kStateForgottenProperty);
      }
      if (edited) metadata.configuration[kStateEditsProperty] = edits_up_to;
      metadata.configuration[kStateTargetProperty] = target.metadata.id;
      metadata.configuration[kStateGenerationProperty] = generation;
      transaction->set_metadata(std::move(metadata));
    }
    if (fits && !redo ? cdc_plan.state_schema_changed
                      : !same_schema(cdc_plan.state_schema, newest->schema)) {
      transaction->set_schema(cdc_plan.state_schema);
    }
  }
  std::string dead_rows = base ? program.state_dead : "";
  std::vector<std::unique_ptr<duck::Scan>> scans;
  if (base) {
    SL_ASSIGN(const auto forgotten,
              forgotten_rows(connection, table, base, target, plan, cdc_plan, program, &scans));
    if (!forgotten.empty()) {
      dead_rows = fmt::format("SELECT * FROM ({}) UNION ({})", dead_rows, forgotten);
      delta::Metadata metadata = transaction->snapshot().metadata;
      metadata.configuration[kStateForgottenProperty] = std::to_string(plan.time_us);
      transaction->set_metadata(std::move(metadata));
    }
  }
  RowsChange rows{program.state_new, dead_rows};
  if (redo) {
    SL_ASSIGN(rows,
              rebase_change(connection, table, base, newest, cdc_plan.state_schema, rows, &scans));
  }
  const duck::TableChange change{rows.new_rows, rows.dead_rows, newest && !fits, false};
  duck::AppliedChange applied;
  SL_TRY(duck::apply_change(connection, *transaction, table, newest, change, &applied));
  // A new or reset state is needed as soon as anything was applied; else only when it changes.
  const bool begins = !newest || !fits;
  if (begins ? (applied.written.empty() && !target_changes) : !transaction->has_changes())
    return {};
  read_by_keys(&*transaction);
  transaction->set_txn(app, plan.batch);
  transaction->set_operation("AUTO CDC STATE", {{"flow", flow_.name}});
  stage("commit state");
  SL_TRY(duck::commit_change(*transaction, table, applied));
  committed_ = true;
  return {};
}

// The flow's query over exactly the plan's data.
Result<std::string> FlowRun::print_batch(const BatchPlan& plan, Execution* execution) const {
  auto& connection = *context_.connection;
  const auto& sources = sources_.sources();
  const auto relation_of = [&](size_t i) -> Result<std::string> {
    const auto& source = sources[i];
    const auto part = std::find_if(plan.sources.begin(), plan.sources.end(),
                                   [&](const auto& other) { return other.key == source.key; });
    if (source.kind == SourceKind::kFiles) {
      FileRelationOptions options;
      options.with_metadata = flow_.mentions_metadata;
      options.with_row_index = flow_.mentions_row_index;
      return file_relation(connection, *context_.store, source.files, *schemas_[i],
                           part == plan.sources.end() ? std::vector<ConsumedFile>{} : part->files,
                           options);
    }
    if (source.kind == SourceKind::kJdbc) return duck::jdbc_relation(connection, source.jdbc);
    std::shared_ptr<const delta::Snapshot> snapshot;
    if (source.kind == SourceKind::kStream) {
      if (part == plan.sources.end() || !part->from || !part->to)
        return empty_relation(*schemas_[i]);
      if (source.is_feed()) {
        SL_ASSIGN(const auto changes,
                  feed_range(*source.table, newest_[i], source.stream, *part->from, *part->to));
        if (changes.commits.empty()) return empty_relation(*schemas_[i]);
        SL_ASSIGN(auto scan, duck::scan_changes(connection, *source.table, changes));
        std::string sql = scan->sql();
        execution->scans.push_back(std::move(scan));
        return sql;
      }
      SL_ASSIGN(snapshot, delta_range(*source.table, *newest_[i], source.stream, *part->from,
                                      *part->to, source.shown));
      if (snapshot->files.empty()) return empty_relation(*schemas_[i]);
    } else {
      const auto pinned = plan.pinned.find(source.key);
      if (pinned == plan.pinned.end()) return empty_relation(*schemas_[i]);
      SL_ASSIGN(snapshot, source.table->snapshot(pinned->second));
    }
    SL_ASSIGN(auto scan, duck::scan_table(connection, *source.table, snapshot));
    std::string sql = scan->sql();
    execution->scans.push_back(std::move(scan));
    return sql;
  };
  // A view that is read in two places is checked and counted once.
  const auto check_view = [&](size_t index, const std::string& text) -> Result<std::string> {
    const auto known = execution->views.find(index);
    if (known != execution->views.end()) return known->second;
    const auto& view = context_.graph.datasets[index];
    RowsToCheck rows;
    rows.query = "SELECT * FROM " + text;
    rows.now_us = plan.time_us;
    SL_ASSIGN(const auto columns, connection.describe(rows.query));
    rows.columns = columns_of(columns);
    SL_ASSIGN(auto checked, CheckedRows::make(connection, view.options.expectations,
                                              view.name.to_string(), view.shown, rows));
    execution->views[index] = checked->sql();
    execution->checked_views.push_back(std::move(checked));
    return execution->views[index];
  };
  return sources_.print(*flow_.query, plan.time_us, relation_of, check_view, connection);
}

// --- expectations -------------------------------------------------------------------------------

Result<std::string> FlowRun::expected_events(const cdc::Plan& cdc_plan, const std::string& query,
                                             const BatchPlan& plan, Execution* execution) const {
  const auto& dataset = target_->dataset();
  if (dataset.options.expectations.empty()) return query;
  RowsToCheck rows;
  rows.query = query;
  rows.now_us = plan.time_us;
  for (const auto& column : cdc_plan.columns) {
    if (column.source) {
      rows.columns.fields.push_back(Field{column.name, column.source->type, true, {}});
    } else if (!column.generated) {
      rows.missing.fields.push_back(Field{column.name, column.type, true, {}});
    }
  }
  for (const auto& field : target_columns_.fields) {
    if (!rows.columns.find(field.name) && !rows.missing.find(field.name))
      rows.missing.fields.push_back(field);
  }
  sql::PrintOptions options;
  options.now_us = plan.time_us;
  for (const auto& condition : {cdc_plan.truncate_when, cdc_plan.delete_when}) {
    if (condition == nullptr) continue;
    SL_ASSIGN(const auto text, sql::print_duckdb(*condition, options));
    rows.exempt += fmt::format("{}coalesce({}, false)", rows.exempt.empty() ? "" : " OR ", text);
  }
  SL_ASSIGN(execution->checked,
            CheckedRows::make(*context_.connection, dataset.options.expectations,
                              dataset.name.to_string(), dataset.shown, rows));
  return "SELECT * FROM " + execution->checked->sql();
}

Result<std::string> FlowRun::expected_rows(const Schema& schema, const std::string& query,
                                           const BatchPlan& plan, Execution* execution) const {
  const auto& dataset = target_->dataset();
  if (dataset.options.expectations.empty()) return query;
  RowsToCheck rows;
  rows.query = query;
  rows.now_us = plan.time_us;
  for (const auto& field : schema.fields) {
    if (sees(field)) rows.columns.fields.push_back(field);
  }
  for (const auto& field : target_columns_.fields) {
    if (!schema.find(field.name)) rows.missing.fields.push_back(field);
  }
  SL_ASSIGN(execution->checked,
            CheckedRows::make(*context_.connection, dataset.options.expectations,
                              dataset.name.to_string(), dataset.shown, rows));
  return "SELECT * FROM " + execution->checked->sql();
}

int64_t FlowRun::count_expectations(const Execution& execution) {
  const auto add = [&](const CheckedRows& checked) {
    add_counts(&report_.expectations, checked.counts());
    report_.dropped_records += checked.dropped_rows();
  };
  for (const auto& view : execution.checked_views) add(*view);
  if (!execution.checked) return 0;
  add(*execution.checked);
  return execution.checked->dropped_rows();
}

// --- INSERT and materialized views --------------------------------------------------------------

Result<std::unique_ptr<ViewChange>> FlowRun::refresh_view(
    const BatchPlan& plan, const std::shared_ptr<const delta::Snapshot>& view,
    const std::string& select, const std::string& rows,
    std::vector<std::unique_ptr<duck::Scan>>* scans) {
  auto& connection = *context_.connection;
  const ViewShape shape = shape_of(*flow_.query, sources_);
  const ViewRefresh refresh{flow_, sources_, *checkpoint_, plan, *target_, view, select};
  std::string why;
  SL_ASSIGN(auto change, follow_sources(connection, refresh, shape, scans, &why));
  if (change != nullptr) {
    refresh_plan_ = shape.kind == ViewShape::Kind::kRows
                        ? "INCREMENTAL: from the rows that changed in its sources"
                        : "INCREMENTAL: only the groups that changed";
    return change;
  }
  refresh_plan_ = "FULL: " + why;
  return ViewChange::make(connection, target_->table(), view, {rows, view_key(shape, *view), ""});
}

Status FlowRun::execute_write(const BatchPlan& plan) {
  auto& connection = *context_.connection;
  const std::string app = target_->app_id(flow_.name);
  SL_ASSIGN(const auto target, target_->snapshot(*checkpoint_));
  if (!target) return internal_error("NO_TARGET", "'{}' is not there", target_->dataset().shown);
  if (target->txn_version(app).value_or(-1) >= plan.batch) {
    committed_ = true;
    return {};
  }
  const bool replace = flow_.kind == FlowKind::kMaterialize || !target_->is_current(*target);
  const auto declared = target_->dataset().declared_schema();
  Schema schema = declared ? *declared : target->schema;
  // What the table knows of its columns and the declaration does not: values given so far.
  for (auto& field : schema.fields) {
    if (const auto* known = target->schema.get(field.name)) {
      const auto mark = known->metadata.find(kHighWaterMark);
      if (mark != known->metadata.end()) field.metadata.insert(*mark);
    }
  }
  if (replace && !declared) schema = facts_->schema;

  // Each target column from the query's column: by name, or by place.
  const Schema& given = facts_->schema;
  if (!flow_.by_name && given.fields.size() != schema.fields.size()) {
    return placed(
        invalid_argument("COLUMN_COUNT", "flow '{}' gives {} columns, '{}' has {}", flow_.name,
                         given.fields.size(), target_->dataset().shown, schema.fields.size()),
        flow_.place);
  }
  for (const auto& field : given.fields) {
    if (!flow_.by_name || schema.find(field.name)) continue;
    if (declared) {
      return placed(invalid_argument("COLUMN_NOT_IN_TARGET",
                                     "column '{}' of flow '{}' is not among the declared "
                                     "columns of '{}'",
                                     field.name, flow_.name, target_->dataset().shown),
                    flow_.place);
    }
    schema.fields.push_back(field);
  }
  std::string select;
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    const auto& field = schema.fields[i];
    const auto index = flow_.by_name ? given.find(field.name) : std::optional(i);
    if (!select.empty()) select += ", ";
    if (!index) {
      SL_ASSIGN(const auto value, duck::default_value(field, plan.time_us));
      select += fmt::format("{} AS {}", value, quote_name(field.name));
      continue;
    }
    const auto& from = given.fields[*index];
    const auto common = least_common_type(from.type, field.type);
    if (!common || !same_type(*common, field.type)) {
      return placed(invalid_data("CANNOT_MERGE_INCOMPATIBLE_DATA_TYPE",
                                 "column '{}' of flow '{}' is {}, '{}' has {}: cast it in the "
                                 "flow's query, or run a full "
                                 "refresh of that table",
                                 from.name, flow_.name, to_sql(from.type), target_->dataset().shown,
                                 to_sql(field.type)),
                    flow_.place);
    }
    if (same_type(from.type, field.type)) {
      select += fmt::format("q.{} AS {}", quote_name(from.name), quote_name(field.name));
    } else {
      select += fmt::format("CAST(q.{} AS {}) AS {}", quote_name(from.name),
                            duck::engine_type(field.type), quote_name(field.name));
    }
  }
  Execution execution;
  SL_ASSIGN(const auto query, print_batch(plan, &execution));
  SL_ASSIGN(const auto rows,
            expected_rows(schema, fmt::format("SELECT {} FROM ({}) AS q", select, query), plan,
                          &execution));
  stage("write");
  SL_ASSIGN(auto transaction, delta::Transaction::begin(target_->table(), target));
  if (!same_schema(schema, target->schema)) transaction.set_schema(schema);
  duck::AppliedChange applied;
  duck::TableChange change{rows, "", replace, false};
  std::unique_ptr<ViewChange> view;
  if (flow_.kind == FlowKind::kMaterialize) {
    refresh_plan_ = checkpoint_->last_batch() < 0 && target->files.empty()
                        ? "FULL: it is new"
                        : "FULL: it has no rows that a difference could be told from";
    if (target_->is_current(*target) && can_compare(*target, schema)) {
      SL_ASSIGN(view, refresh_view(plan, target, select, rows, &execution.scans));
      change = view->change();
    }
  }
  SL_TRY(duck::apply_change(connection, transaction, target_->table(), target, change, &applied));
  auto unchanged = check_files_unchanged(plan);
  if (!unchanged.ok()) {
    duck::remove_files(target_->table(), applied);
    return unchanged;
  }
  if (!transaction.has_changes()) {
    const int64_t rows_seen = view ? view->result_rows() : 0;
    add_metric("num_input_rows", static_cast<double>(rows_seen + count_expectations(execution)));
    return {};
  }
  if (!replace) transaction.set_blind_append();
  transaction.set_txn(app, plan.batch);
  transaction.set_operation(operation_of(flow_),
                            {{"flow", flow_.name}, {"batch", std::to_string(plan.batch)}});
  const int64_t output = applied.written_rows() - applied.copied_rows;
  const int64_t input = view ? view->result_rows() : output;
  transaction.set_metric("num_output_rows", output);
  stage("commit");
  SL_TRY(duck::commit_change(transaction, target_->table(), applied));
  committed_ = true;
  add_metric("num_output_rows", static_cast<double>(output));
  add_metric("num_input_rows", static_cast<double>(input + count_expectations(execution)));
  add_metric("num_output_bytes", static_cast<double>(applied.written_bytes()));
  return {};
}

}  // namespace strandline::pipeline
