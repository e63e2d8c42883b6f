// What the batches of all kinds of flows have in common: the plan they run by, their rows, the
// target before and after. Each kind: flow_auto_cdc.cc, snapshot_flow.cc, flow_write.cc.
#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "delta/empty_partitions.h"
#include "delta/find_damage.h"
#include "duck/change_scan.h"
#include "duck/delta_io.h"
#include "duck/engine_errors.h"
#include "duck/table_change.h"
#include "pipeline/feed_source.h"
#include "pipeline/file_reader.h"
#include "pipeline/flow_execution.h"
#include "pipeline/flow_run.h"
#include "pipeline/row_changes.h"
#include "pipeline/table_properties.h"
#include "sql/duckdb_printer.h"

namespace strandline::pipeline {
namespace {

// A target commit that lost against another writer is computed anew this often.
constexpr int kAttempts = 20;

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
                      error.code == "MALFORMED_RECORD" || error.code == "DELTA_FILE_NOT_FOUND" ||
                      error.code == "DELTA_DATA_FILE_DAMAGED" ||
                      error.code == "DELTA_CHANGE_DATA_FILE_NOT_FOUND";
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
  return duck::in_users_words(std::move(error), flow_.query, flow_.place);
}

// A data file of a table that the batch reads and that is gone or damaged.
std::optional<Error> FlowRun::find_lost_file(const Source& source, size_t index,
                                             const BatchPlan& plan) const {
  if (!source.table || newest_[index] == nullptr) return {};
  auto* const store = source.table->store().get();
  if (source.kind == SourceKind::kTable || source.kind == SourceKind::kChanges) {
    const auto pinned = plan.pinned.find(source.key);
    if (pinned == plan.pinned.end()) return {};
    if (source.changes) {
      const auto changes = changes_of(source, pinned->second, plan.time_us);
      return changes.ok() ? cdf::find_missing_file(store, *changes) : std::nullopt;
    }
    const auto snapshot = source.table->snapshot(pinned->second);
    return snapshot.ok() ? delta::find_damage(store, **snapshot) : std::nullopt;
  }
  for (const auto& part : plan.sources) {
    if (part.key != source.key || !part.from || !part.to) continue;
    if (source.is_feed()) {
      const auto changes =
          feed_range(*source.table, newest_[index], source.stream, *part.from, *part.to);
      if (!changes.ok()) return {};
      auto missing = cdf::find_missing_file(store, *changes);
      if (missing) missing = with_way_on(*std::move(missing), source.shown, true);
      return missing;
    }
    std::vector<delta::Version> versions;
    const auto range = delta_range(*source.table, *newest_[index], source.stream, *part.from,
                                   *part.to, source.shown, &versions);
    if (!range.ok() || !delta::find_damage(store, **range)) return {};
    delta::Snapshot at = **range;
    for (size_t i = 0; i < versions.size(); ++i) {
      at.version = versions[i];
      const std::vector<size_t> one = {i};
      if (auto damage = delta::find_damage(store, at, &one)) {
        if (damage->code == "DELTA_FILE_NOT_FOUND" && !part.from->initial)
          damage = with_way_on(*std::move(damage), source.shown, false);
        return damage->with_context(fmt::format("stream of '{}'", source.shown));
      }
    }
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
  // A declared one is the table's before a batch begins.
  facts.type_widening = target.property_is_true(kTypeWidening) ||
                        (target_->widens_types() && !checkpoint_->unfinished());
  facts.selected_elsewhere = selected_elsewhere_;
  facts.clauses_elsewhere = clauses_elsewhere_;
  for (const auto& field : delta::columns_without_empty(target.metadata, target.schema))
    facts.columns_without_empty.push_back(field.name);
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
    schema = declared_schema(facts_->schema).value_or(facts_->schema);
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

Result<std::shared_ptr<const delta::Snapshot>> FlowRun::target_before(const BatchPlan& plan) {
  SL_ASSIGN(auto target, target_->snapshot(*checkpoint_));
  if (!target) return internal_error("NO_TARGET", "'{}' is not there", target_->dataset().shown);
  if (target->txn_version(target_->app_id(flow_.name)).value_or(-1) >= plan.batch) {
    committed_ = true;
    target = nullptr;
  }
  return target;
}

void FlowRun::tell_empty_partitions(const delta::Snapshot& target, int64_t rows,
                                    const std::string& example) {
  if (rows == 0) return;
  add_metric("num_empty_partition_values", static_cast<double>(rows));
  constexpr const char* kCode = "EMPTY_PARTITION_VALUE";
  // The first batch of an update with such rows speaks for all.
  if (std::any_of(warnings_.begin(), warnings_.end(),
                  [&](const Error& known) { return known.code == kCode; })) {
    return;
  }
  const auto& columns = target.metadata.partition_columns;
  warn({invalid_data(
      kCode,
      "flow '{}': {} row{} with an empty value in a partition column ({}) of '{}'{}: "
      "it is null there, as a Delta table keeps no empty partition value",
      flow_.name, rows, rows == 1 ? "" : "s", fmt::join(columns, ", "), target_->dataset().shown,
      example.empty() ? "" : ", for example of " + example)});
}

void FlowRun::warn(const std::vector<Error>& warnings) {
  for (const auto& warning : warnings) {
    const auto same = [&](const Error& other) { return other.message == warning.message; };
    if (std::none_of(warnings_.begin(), warnings_.end(), same))
      warnings_.push_back(placed(warning, flow_.place));
  }
}

Result<delta::Transaction> FlowRun::change_target(
    const std::shared_ptr<const delta::Snapshot>& target, const cdc::Plan& plan,
    const cdc::Program& program, const duck::BatchMetrics& metrics, const std::string& old_rows,
    duck::AppliedChange* applied) {
  const bool current = target_->is_current(*target);
  SL_ASSIGN(auto transaction, delta::Transaction::begin(target_->table(), target));
  delta::Metadata metadata = target->metadata;
  auto& properties = metadata.configuration;
  if (!current) {
    target_->declare_kind(&properties);
    properties[kPrimaryKeyProperty] = primary_key(plan);
    properties[kScdTypeProperty] = cdc::to_string(plan.scd_type);
  }
  if (takes_snapshots()) properties[kStateSpecProperty] = plan.state_spec.to_json();
  if (properties != target->metadata.configuration) transaction.set_metadata(std::move(metadata));
  if (current ? plan.target_schema_changed : !same_schema(plan.target_schema, target->schema))
    transaction.set_schema(plan.target_schema);
  duck::TableChange change{program.target_new, program.target_dead, !current, true};
  change.new_count = metrics.num_upserted_rows;
  change.dead_count = metrics.num_dead_rows;
  if (old_rows.empty()) {
    change.dead_rows.clear();
  } else if (target->property_is_true("delta.enableChangeDataFeed")) {
    change.rows = replaced_rows(target->schema, plan.target_schema, key_parts(plan), old_rows,
                                program.target_dead, program.target_new);
  }
  auto done = duck::apply_change(*context_.connection, transaction, target_->table(), target,
                                 change, applied);
  if (!done.ok()) {
    duck::remove_files(target_->table(), *applied);
    return std::move(done).error();
  }
  return transaction;
}

// The flow's query over exactly the plan's data.
Result<std::string> FlowRun::print_batch(const BatchPlan& plan, Execution* execution) const {
  auto& connection = *context_.connection;
  const auto& sources = sources_.sources();
  const auto of_changes = [&](const Source& source, const cdf::ChangePlan& changes,
                              size_t i) -> Result<std::string> {
    if (changes.commits.empty()) return empty_relation(*schemas_[i]);
    SL_ASSIGN(auto scan, duck::scan_changes(connection, *source.table, changes));
    std::string sql = scan->sql();
    execution->scans.push_back(std::move(scan));
    return sql;
  };
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
        return of_changes(source, changes, i);
      }
      SL_ASSIGN(snapshot, delta_range(*source.table, *newest_[i], source.stream, *part->from,
                                      *part->to, source.shown));
      if (snapshot->files.empty()) return empty_relation(*schemas_[i]);
    } else {
      const auto pinned = plan.pinned.find(source.key);
      if (pinned == plan.pinned.end()) return empty_relation(*schemas_[i]);
      if (source.changes) {
        SL_ASSIGN(const auto changes, changes_of(source, pinned->second, plan.time_us));
        return of_changes(source, changes, i);
      }
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

}  // namespace strandline::pipeline
