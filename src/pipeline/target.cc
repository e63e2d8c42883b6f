#include "pipeline/target.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "delta/alter.h"
#include "delta/column_rules.h"
#include "delta/features.h"
#include "pipeline/declared_columns.h"
#include "pipeline/hand_rows.h"
#include "pipeline/table_properties.h"

namespace strandline::pipeline {
namespace {

constexpr const char* kStateFolder = "_strandline_state";
constexpr const char* kAppPrefix = "strandline:";
constexpr const char* kMaterializedView = "MATERIALIZED VIEW";

Error replaced(const std::string& shown, const std::string& how) {
  return invalid_data(
      "AUTOCDC_INVALID_STATE.TARGET_REPLACED",
      "'{}' {}, so what its flows know of it no longer holds: run a full refresh of that table "
      "(--full-refresh {})",
      shown, how, shown);
}

enum class Kind { kAutoCdc, kInserts, kView };

Kind kind_of(const delta::Snapshot& snapshot) {
  if (snapshot.property(kScdTypeProperty)) return Kind::kAutoCdc;
  return snapshot.property(kDatasetProperty) ? Kind::kView : Kind::kInserts;
}

Kind kind_of(const Dataset& dataset) {
  if (dataset.kind == DatasetKind::kMaterializedView) return Kind::kView;
  return dataset.auto_cdc ? Kind::kAutoCdc : Kind::kInserts;
}

const char* to_string(Kind kind) {
  return kind == Kind::kAutoCdc   ? "a table that AUTO CDC flows fill"
         : kind == Kind::kInserts ? "a table that INSERT flows fill"
                                  : "a materialized view";
}

}  // namespace

Status Context::check_cancelled() const {
  if (cancelled && cancelled()) return strandline::cancelled("CANCELED", "the update was stopped");
  return {};
}

Target::Target(const Context& context, size_t dataset, delta::Table table,
               TargetCheckpoint checkpoint)
    : context_(&context),
      dataset_(&context.graph.datasets[dataset]),
      table_(std::move(table)),
      checkpoint_(std::move(checkpoint)) {}

Result<Target> Target::open(const Context& context, size_t dataset) {
  const auto& name = context.graph.datasets[dataset].name;
  SL_ASSIGN(auto table, context.warehouse->table(name));
  const std::string directory = context.warehouse->pipeline_directory(context.spec.name) +
                                "/checkpoints/" + checkpoint_name(name.catalog) + "." +
                                checkpoint_name(name.schema) + "." + checkpoint_name(name.name);
  SL_ASSIGN(auto checkpoint, TargetCheckpoint::open(context.store, directory));
  return Target(context, dataset, std::move(table), std::move(checkpoint));
}

delta::Table Target::state_table() const {
  return delta::Table(table_.store(), table_.parquet(), table_.path() + "/" + kStateFolder);
}

std::string Target::generation_prefix() const {
  return fmt::format("{}{}:{}:", kAppPrefix, context_->pipeline_id, checkpoint_.generation());
}

int64_t Target::newest_generation(const delta::Snapshot& snapshot) const {
  const std::string prefix = fmt::format("{}{}:", kAppPrefix, context_->pipeline_id);
  const auto number = [](const std::string& text) {
    int64_t value = -1;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  };
  int64_t newest = number(snapshot.property(kStateGenerationProperty).value_or(""));
  for (auto it = snapshot.txns.lower_bound(prefix);
       it != snapshot.txns.end() && it->first.starts_with(prefix); ++it) {
    newest = std::max(newest, number(it->first.substr(prefix.size())));
  }
  return newest;
}

Status Target::begin_refresh() {
  // Where the folder of progress is not the table's own, numbers of its batches may be in the log.
  int64_t used = -1;
  for (const delta::Table& table : {table_, state_table()}) {
    SL_ASSIGN(const bool exists, table.exists());
    if (!exists) continue;
    SL_ASSIGN(const auto snapshot, table.snapshot());
    used = std::max(used, newest_generation(*snapshot));
  }
  SL_TRY(checkpoint_.begin_refresh(used));
  checkpoint_.remove_old();
  return {};
}

std::string Target::app_id(const std::string& flow) const {
  return generation_prefix() + checkpoint_name(flow);
}

Result<std::shared_ptr<const delta::Snapshot>> Target::snapshot(
    const FlowCheckpoint& progress) const {
  SL_ASSIGN(const bool exists, table_.exists());
  if (!exists) {
    if (!progress.target_id().empty()) return replaced(dataset_->shown, "was dropped");
    return std::shared_ptr<const delta::Snapshot>();
  }
  SL_ASSIGN(auto snapshot, newest(table_, seen_));
  SL_TRY(check_owner(*snapshot, progress));
  if (dataset_->auto_cdc && is_current(*snapshot) && snapshot->version != checked_version_) {
    SL_ASSIGN(const auto edits, edits_since(*snapshot, -1));
    (void)edits;
    checked_version_ = snapshot->version;
  }
  return snapshot;
}

Result<std::shared_ptr<const delta::Snapshot>> Target::newest(
    const delta::Table& table, std::shared_ptr<const delta::Snapshot>& cache) {
  // A look at what follows the newest one known: listing a log takes longer the longer it is.
  if (!cache) {
    SL_ASSIGN(cache, table.snapshot());
  } else {
    SL_ASSIGN(cache, table.snapshot_after(cache));
  }
  return cache;
}

Status Target::check_owner(const delta::Snapshot& snapshot, const FlowCheckpoint& progress) const {
  if (!progress.target_id().empty() && progress.target_id() != snapshot.metadata.id) {
    return replaced(dataset_->shown, "was dropped and made anew");
  }
  const auto owner = snapshot.property(kPipelineIdProperty);
  if (!owner && dataset_->auto_cdc) return {};
  if (!owner) {
    return invalid_argument(
        "TARGET_NOT_OWNED",
        "table '{}' is there already and no pipeline made it: drop it, or give the target "
        "another name",
        dataset_->shown);
  }
  if (*owner != context_->pipeline_id &&
      snapshot.property(kPipelineNameProperty) == context_->spec.name) {
    return invalid_argument(
        "TARGET_OF_OTHER_PIPELINE",
        "'{0}' was made by a pipeline '{1}' whose progress the warehouse does not have: bring its "
        "folder _strandline/pipelines/{1} back, give the target another name, or drop the table",
        dataset_->shown, context_->spec.name);
  }
  if (*owner != context_->pipeline_id) {
    return invalid_argument(
        "TARGET_OF_OTHER_PIPELINE",
        "'{}' belongs to pipeline '{}', so pipeline '{}' cannot write it: give the target "
        "another name, or drop the table",
        dataset_->shown, snapshot.property(kPipelineNameProperty).value_or(*owner),
        context_->spec.name);
  }
  if (is_current(snapshot) && !is_of_declared_kind(snapshot)) {
    // What is declared on its own is not kept when it fails, so that no refresh would know of it.
    const std::string way_on =
        context_->spec.of_one_table
            ? "drop the table first"
            : fmt::format("let a full refresh rebuild it from its sources (--full-refresh {})",
                          dataset_->shown);
    return invalid_argument(
        "TARGET_OF_OTHER_KIND",
        "'{}' is {} and is declared as {} now: declare it as it was, give the new one another "
        "name, or {}",
        dataset_->shown, to_string(kind_of(snapshot)), to_string(kind_of(*dataset_)), way_on);
  }
  return {};
}

Result<std::vector<Target::Versions>> Target::hand_edits(const delta::Snapshot& target,
                                                         const delta::Snapshot* state) const {
  delta::Version floor = -1;
  if (state != nullptr && is_current_state(*state)) {
    const auto folded = state->property(kStateEditsProperty);
    if (folded) floor = std::strtoll(folded->c_str(), nullptr, 10);
  }
  // Snapshots leave no state.
  const bool begins = state == nullptr ? !has_batches(target) : !is_current_state(*state);
  if (begins && checkpoint_.generation() == 0 && target.property(kAdoptedProperty)) {
    if (target.files.empty()) return std::vector<Versions>();
    return std::vector<Versions>{{0, target.version}};
  }
  return edits_since(target, floor);
}

// Walks back to the last commit of this pipeline, and on to what that one did not see.
Result<std::vector<Target::Versions>> Target::edits_since(const delta::Snapshot& snapshot,
                                                          delta::Version floor) const {
  const std::string ours = fmt::format("{}{}:", kAppPrefix, context_->pipeline_id);
  std::vector<Versions> edits;
  bool only_repairs = true;
  for (delta::Version version = snapshot.version; version > floor; --version) {
    const auto actions = table_.commit(version);
    if (!actions.ok()) {
      // A log that starts later was cleaned up after older commits had been seen.
      if (actions.error().kind == ErrorKind::kNotFound) break;
      return actions.error();
    }
    bool changes_rows = false, is_ours = false, creates = false, repairs = false;
    std::string operation;
    std::optional<delta::Version> read_version;
    for (const auto& action : *actions) {
      if (const auto* txn = std::get_if<delta::Txn>(&action)) {
        is_ours = is_ours || txn->app_id.rfind(ours, 0) == 0;
      } else if (const auto* add = std::get_if<delta::AddFile>(&action)) {
        changes_rows = changes_rows || add->data_change;
      } else if (const auto* remove = std::get_if<delta::RemoveFile>(&action)) {
        changes_rows = changes_rows || remove->data_change;
      } else if (const auto* info = std::get_if<delta::CommitInfo>(&action)) {
        operation = info->operation;
        read_version = info->read_version;
        repairs = is_repair(*info);
      } else if (const auto* metadata = std::get_if<delta::Metadata>(&action)) {
        creates = version == 0 && metadata->configuration.count(kPipelineIdProperty) > 0;
      }
    }
    if (is_ours) {
      floor = std::max(floor, read_version.value_or(version - 1));
      continue;
    }
    if (operation == "RESTORE" || operation.rfind("CREATE OR REPLACE", 0) == 0 ||
        operation.rfind("REPLACE TABLE", 0) == 0) {
      return replaced(dataset_->shown,
                      fmt::format("was {} at version {}",
                                  operation == "RESTORE" ? "restored" : "replaced", version));
    }
    if (!changes_rows || creates) continue;
    only_repairs = only_repairs && repairs;
    if (!edits.empty() && edits.back().first == version + 1) {
      edits.back().first = version;
    } else {
      edits.emplace_back(version, version);
    }
  }
  if (only_repairs) return std::vector<Versions>();
  std::reverse(edits.begin(), edits.end());
  return edits;
}

Status Target::check_removed_flows(const std::vector<std::string>& flows) const {
  auto listed = table_.store()->list(checkpoint_.directory());
  if (!listed.ok()) {
    if (listed.error().kind == ErrorKind::kNotFound) return {};
    return listed.error();
  }
  for (const auto& entry : *listed) {
    const std::string folder = entry.path.substr(entry.path.rfind('/') + 1);
    const auto known = [&](const std::string& flow) { return checkpoint_name(flow) == folder; };
    if (!entry.is_directory || std::any_of(flows.begin(), flows.end(), known)) continue;
    SL_ASSIGN(const auto progress, FlowCheckpoint::open(table_.store(), entry.path));
    if (!progress.unfinished()) continue;
    const int64_t batch = progress.unfinished()->batch;
    const auto in_log = [&](const delta::Table& table) -> Result<bool> {
      SL_ASSIGN(const bool exists, table.exists());
      if (!exists) return false;
      SL_ASSIGN(const auto snapshot, table.snapshot());
      return snapshot->txn_version(generation_prefix() + folder).value_or(-1) >= batch;
    };
    SL_ASSIGN(const bool in_state, in_log(state_table()));
    SL_ASSIGN(const bool in_target, in_log(table_));
    if (in_state && !in_target) {
      return invalid_data(
          "UNFINISHED_BATCH",
          "flow '{}' into '{}' was interrupted half-way and is no longer in the pipeline: put it "
          "back and run once, or run a full refresh of that table",
          folder, dataset_->shown);
    }
  }
  return {};
}

bool Target::is_current(const delta::Snapshot& snapshot) const {
  return checkpoint_.generation() == 0 || has_batches(snapshot);
}

bool Target::has_batches(const delta::Snapshot& snapshot) const {
  const std::string prefix = generation_prefix();
  const auto it = snapshot.txns.lower_bound(prefix);
  return it != snapshot.txns.end() && it->first.rfind(prefix, 0) == 0;
}

bool Target::is_of_declared_kind(const delta::Snapshot& snapshot) const {
  // Another program that replaced the table left nothing that tells what it was.
  return !snapshot.property(kPipelineNameProperty) || kind_of(snapshot) == kind_of(*dataset_);
}

void Target::declare_kind(std::map<std::string, std::string>* properties) const {
  const auto& options = dataset_->options.properties;
  const Kind kind = kind_of(*dataset_);
  std::erase_if(*properties, [&](const auto& property) {
    const std::string& key = property.first;
    if (std::any_of(options.begin(), options.end(),
                    [&](const auto& option) { return same_name(option.key, key); })) {
      return false;
    }
    return key == kDatasetProperty || key == kScdTypeProperty || key == kPrimaryKeyProperty ||
           key == kStateSpecProperty || key.starts_with(kSnapshotPropertyPrefix) ||
           (key == kAdoptedProperty && kind != Kind::kAutoCdc);
  });
  if (kind == Kind::kView) (*properties)[kDatasetProperty] = kMaterializedView;
}

delta::NewTable Target::definition(const Schema& schema) const {
  delta::NewTable definition;
  definition.schema = schema;
  for (const auto& column : dataset_->options.partitioned_by)
    definition.partition_columns.push_back(column.text);
  for (const auto& column : dataset_->options.cluster_by)
    definition.clustering_columns.push_back(column.parts);
  for (const auto& option : dataset_->options.properties)
    definition.properties[option.key] = option.value;
  for (auto& [key, condition] : declared_constraints(dataset_->options))
    definition.properties[key] = condition;
  definition.properties[kPipelineNameProperty] = context_->spec.name;
  if (dataset_->kind == DatasetKind::kMaterializedView)
    definition.properties[kDatasetProperty] = kMaterializedView;
  definition.description = dataset_->options.comment;
  return definition;
}

Status Target::check_definition(const Schema& schema) const {
  const auto transaction = delta::Transaction::create(table_, definition(schema));
  return transaction.ok() ? Status() : Status(transaction.error());
}

Result<std::shared_ptr<const delta::Snapshot>> Target::create(
    const Schema& schema, const std::map<std::string, std::string>& properties) const {
  delta::NewTable definition = this->definition(schema);
  for (const auto& [key, value] : properties) definition.properties[key] = value;
  definition.properties[kPipelineIdProperty] = context_->pipeline_id;
  SL_TRY(context_->warehouse->create_schema(dataset_->name.catalog, dataset_->name.schema, true));
  SL_ASSIGN(auto transaction, delta::Transaction::create(table_, definition));
  transaction.set_operation(dataset_->kind == DatasetKind::kMaterializedView
                                ? "CREATE MATERIALIZED VIEW"
                                : "CREATE STREAMING TABLE");
  SL_ASSIGN(const auto version, transaction.commit_or_error());
  return table_.snapshot(version);
}

bool Target::is_unowned(const delta::Snapshot& snapshot) {
  return !snapshot.property(kPipelineIdProperty);
}

Result<std::shared_ptr<const delta::Snapshot>> Target::adopt(
    std::shared_ptr<const delta::Snapshot> snapshot,
    const std::map<std::string, std::string>& properties) const {
  delta::Metadata metadata = snapshot->metadata;
  for (const auto& [key, value] : properties) metadata.configuration[key] = value;
  metadata.configuration[kPipelineIdProperty] = context_->pipeline_id;
  metadata.configuration[kPipelineNameProperty] = context_->spec.name;
  metadata.configuration[kAdoptedProperty] = "true";
  SL_ASSIGN(auto transaction, delta::Transaction::begin(table_, snapshot));
  transaction.set_metadata(std::move(metadata));
  transaction.set_operation("SET TBLPROPERTIES");
  SL_ASSIGN(const auto version, transaction.commit_or_error());
  return table_.snapshot(version);
}

bool Target::widens_types() const {
  const auto& properties = dataset_->options.properties;
  return std::any_of(properties.begin(), properties.end(), [](const auto& option) {
    return option.key == kTypeWidening && same_name(option.value, "true");
  });
}

void Target::warn_of_fixed(const delta::Snapshot& snapshot, std::vector<Error>* warnings) const {
  const auto warn = [&](Error warning) {
    warning.place = dataset_->place;
    const auto same = [&](const Error& other) { return other.message == warning.message; };
    if (std::none_of(warnings->begin(), warnings->end(), same))
      warnings->push_back(std::move(warning));
  };
  for (const auto& option : dataset_->options.properties) {
    if (!option.key.starts_with("delta.") || snapshot.property(option.key) == option.value)
      continue;
    if (option.key == kTypeWidening && widens_types()) continue;
    // A feature that the table has, though no property says so.
    constexpr std::string_view kFeature = "delta.feature.";
    if (option.key.starts_with(kFeature) &&
        delta::supports(snapshot.protocol, option.key.substr(kFeature.size()))) {
      continue;
    }
    warn(unsupported(
        "TABLE_PROPERTY_FIXED",
        "'{0}' of '{1}' is {2} and stays so, as a declaration sets delta.* properties "
        "when the table is made: ALTER TABLE {1} SET TBLPROPERTIES ('{0}' = '{3}') "
        "changes it",
        option.key, dataset_->shown,
        snapshot.property(option.key) ? "'" + *snapshot.property(option.key) + "'" : "not set",
        option.value));
  }
  for (const auto& [key, condition] : declared_constraints(dataset_->options)) {
    if (snapshot.property(key) == condition) continue;
    warn(
        unsupported("CONSTRAINT_FIXED",
                    "the CHECK constraint {} of '{}' stays as the table was made with it: drop the "
                    "table to change it",
                    key.substr(std::string(delta::kConstraintPrefix).size()), dataset_->shown));
  }
  std::vector<std::string> partitions;
  partitions.reserve(dataset_->options.partitioned_by.size());
  for (const auto& column : dataset_->options.partitioned_by) partitions.push_back(column.text);
  const auto& kept = snapshot.metadata.partition_columns;
  const bool same_partitions =
      std::equal(partitions.begin(), partitions.end(), kept.begin(), kept.end(), same_name);
  // A table that was taken over is as another one made it.
  const bool leaves_it = partitions.empty() && snapshot.property(kAdoptedProperty);
  if (!same_partitions && !leaves_it) {
    warn(unsupported("PARTITIONING_FIXED",
                     "'{}' keeps the partition columns it was made with: drop the table to "
                     "change them",
                     dataset_->shown));
  }
}

Result<std::shared_ptr<const delta::Snapshot>> Target::update_properties(
    std::shared_ptr<const delta::Snapshot> snapshot, std::vector<Error>* warnings) const {
  warn_of_fixed(*snapshot, warnings);
  const bool widens = widens_types() && !snapshot->property_is_true(kTypeWidening);
  delta::Metadata metadata = snapshot->metadata;
  bool changed = widens;
  for (const auto& option : dataset_->options.properties) {
    if (option.key.starts_with("delta.") || snapshot->property(option.key) == option.value)
      continue;
    metadata.configuration[option.key] = option.value;
    changed = true;
  }
  if (dataset_->auto_cdc) {
    // What an earlier declaration said of snapshots would seem to hold still.
    changed |= std::erase_if(metadata.configuration, [&](const auto& property) {
                 return property.first.starts_with(kSnapshotPropertyPrefix) &&
                        std::none_of(dataset_->options.properties.begin(),
                                     dataset_->options.properties.end(), [&](const auto& option) {
                                       return same_name(option.key, property.first);
                                     });
               }) > 0;
  }
  if (dataset_->options.comment && metadata.description != dataset_->options.comment) {
    metadata.description = dataset_->options.comment;
    changed = true;
  }
  if (!changed) return snapshot;
  SL_ASSIGN(auto transaction, delta::Transaction::begin(table_, snapshot));
  if (widens) {
    delta::Alteration alteration(*snapshot);
    SL_TRY(alteration.set_properties({{kTypeWidening, "true"}}));
    alteration.apply_to(&transaction);
    metadata.configuration[kTypeWidening] = "true";
  }
  transaction.set_metadata(std::move(metadata));
  transaction.set_operation("SET TBLPROPERTIES");
  SL_ASSIGN(const auto version, transaction.commit_or_error());
  return table_.snapshot(version);
}

Result<std::shared_ptr<const delta::Snapshot>> Target::state(const delta::Snapshot& target,
                                                             const FlowCheckpoint& progress) const {
  if (is_current(target) && target.property(kStateSpecProperty)) {
    return invalid_argument("AUTOCDC_INVALID_STATE.SNAPSHOT_DRIFT",
                            "'{0}' followed snapshots and is now to follow changes: run a full "
                            "refresh of the table (--full-refresh {0})",
                            dataset_->shown);
  }
  const delta::Table table = state_table();
  SL_ASSIGN(const bool exists, table.exists());
  const std::string prefix = generation_prefix();
  const auto known = target.txns.lower_bound(prefix);
  const bool needed =
      progress.had_state() || (known != target.txns.end() && known->first.rfind(prefix, 0) == 0);
  if (!exists) {
    if (needed) return state_missing();
    return std::shared_ptr<const delta::Snapshot>();
  }
  SL_ASSIGN(auto state, newest(table, seen_state_));
  if (needed && !is_current_state(*state)) return state_missing();
  if (is_current_state(*state) && state->property(kStateTargetProperty) != target.metadata.id) {
    return replaced(dataset_->shown, "is not the table its state was made for");
  }
  return state;
}

Error Target::state_missing() const {
  return invalid_data(
      "AUTOCDC_INVALID_STATE.STATE_MISSING",
      "the state of '{}' ({}) is gone: restore that folder, or run a full refresh of the table "
      "(--full-refresh {})",
      dataset_->shown, state_table().path(), dataset_->shown);
}

void Target::look_on_from(const Target& earlier) {
  seen_ = earlier.seen_;
  seen_state_ = earlier.seen_state_;
}

Result<std::optional<int64_t>> tombstone_seconds(const std::string& property,
                                                 const std::string& value,
                                                 const std::string& shown) {
  if (std::none_of(std::begin(kTombstoneProperties), std::end(kTombstoneProperties),
                   [&](const char* name) { return property == name; })) {
    return std::optional<int64_t>();
  }
  int64_t seconds = 0;
  const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), seconds);
  if (problem != std::errc() || end != value.data() + value.size() || seconds < 0) {
    return invalid_argument("INVALID_TABLE_PROPERTY",
                            "property '{}' of '{}' is '{}': give a number of seconds, 0 or more",
                            property, shown, value);
  }
  return std::optional<int64_t>(seconds);
}

Result<std::optional<int64_t>> tombstone_seconds(const delta::Snapshot& target,
                                                 const std::string& shown) {
  for (const char* name : kTombstoneProperties) {
    if (const auto value = target.property(name)) return tombstone_seconds(name, *value, shown);
  }
  return std::optional<int64_t>();
}

bool Target::is_current_state(const delta::Snapshot& state) const {
  return state.property(kStateGenerationProperty) == std::to_string(checkpoint_.generation());
}

}  // namespace strandline::pipeline
