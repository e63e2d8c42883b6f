#include "delta/drop_feature.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "delta/check_schema.h"
#include "delta/checkpoint.h"
#include "delta/column_mapping.h"
#include "delta/column_rules.h"
#include "delta/definition.h"
#include "delta/feature_table.h"
#include "delta/features.h"
#include "delta/log_cleanup.h"
#include "delta/log_files.h"
#include "delta/properties.h"
#include "delta/row_id_columns.h"

namespace strandline::delta {

namespace {

constexpr const char* kProtection = "checkpointProtection";
constexpr const char* kTypeChanges = "delta.typeChanges";
constexpr const char* kTypeWidening = "delta.enableTypeWidening";
constexpr const char* kRowTracking = "delta.enableRowTracking";
constexpr const char* kSuspended = "delta.rowTrackingSuspended";
constexpr const char* kCheckpointPolicy = "delta.checkpointPolicy";
constexpr int64_t kTruncateRetentionMs = 86'400'000;
constexpr int kAttempts = 20;

bool widens_types(const std::string& feature) {
  return feature == "typeWidening" || feature == "typeWidening-preview";
}

// Columns that use a feature by their metadata or types.
std::vector<std::string> columns_using(const Feature& feature, const Schema& schema) {
  std::vector<std::string> names;
  for (const Field& field : schema.fields) {
    if (is_used(feature, Metadata(), Schema{{field}})) names.push_back(to_string({field.name}));
  }
  return names;
}

// Why a feature is used, and what ends that.
Error in_use(const Feature& feature, const Metadata& metadata, const Schema& schema,
             const std::string& table_path) {
  const std::string columns = fmt::format("{}", fmt::join(columns_using(feature, schema), ", "));
  const std::string name = feature.name;
  if (feature.use == Feature::Use::kPropertyPrefix) {
    std::string names;
    for (const auto& [key, value] : metadata.configuration) {
      if (!key.starts_with(feature.what)) continue;
      names +=
          (names.empty() ? "" : ", ") + to_string({key.substr(std::string(feature.what).size())});
    }
    return invalid_argument("DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE",
                            "the feature {} cannot be dropped from table {}, which has the CHECK "
                            "constraints {}: ALTER TABLE ... DROP CONSTRAINT them first",
                            name, table_path, names);
  }
  const std::string way_out =
      feature.use == Feature::Use::kDomain ? "is clustered: ALTER TABLE ... CLUSTER BY NONE first"
      : feature.use == Feature::Use::kType
          ? fmt::format("has columns of that type: ALTER TABLE ... DROP COLUMNS ({}) first",
                        columns)
      : name == "allowColumnDefaults"
          ? fmt::format("has defaults: ALTER TABLE ... ALTER COLUMN ... DROP DEFAULT of {} first",
                        columns)
      : feature.use == Feature::Use::kColumn
          ? fmt::format(
                "has such columns ({}): drop them, or write the rows into a table without them",
                columns)
          : fmt::format("has '{0}': ALTER TABLE ... UNSET TBLPROPERTIES ('{0}') first",
                        feature.what);
  return invalid_argument("DELTA_FEATURE_DROP_FEATURE_IN_USE",
                          "the feature {} cannot be dropped from table {}, which {}", name,
                          table_path, way_out);
}

// What DROP FEATURE takes away by itself: nothing of it is seen by who reads or writes rows.
bool goes_by_itself(const std::string& feature) {
  constexpr const char* kNames[] = {
      "columnMapping",       "deletionVectors",      "domainMetadata",       "inCommitTimestamp",
      "rowTracking",         "typeWidening",         "typeWidening-preview", "v2Checkpoint",
      "vacuumProtocolCheck", "checkpointProtection",
  };
  return std::find(std::begin(kNames), std::end(kNames), feature) != std::end(kNames);
}

Error traces_again(const std::string& feature, const std::string& table_path) {
  return invalid_argument("DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL",
                          "table {} has traces of the feature {} again, which another writer left "
                          "meanwhile: run DROP FEATURE again",
                          table_path, feature);
}

// Whether an action of an old version is of no use to those who lack the feature.
bool uses(const Action& action, const Feature& feature) {
  const std::string name = feature.name;
  if (const auto* const metadata = std::get_if<Metadata>(&action)) {
    const auto schema = parse_schema(metadata->schema_string);
    if (!schema.ok() || is_used(feature, *metadata, *schema)) return true;
    return widens_types(name) && (has_field_metadata(*schema, kTypeChanges) ||
                                  metadata->configuration.count(kTypeWidening) > 0);
  }
  if (name != "deletionVectors") return false;
  if (const auto* const add = std::get_if<AddFile>(&action))
    return static_cast<bool>(add->deletion_vector);
  if (const auto* const remove = std::get_if<RemoveFile>(&action))
    return static_cast<bool>(remove->deletion_vector);
  return false;
}

bool is_v2(const Checkpoint& checkpoint) {
  return std::any_of(checkpoint.paths.begin(), checkpoint.paths.end(), [](const std::string& path) {
    const std::string name = path.substr(path.rfind('/') + 1);
    return name.ends_with(".json") || name.find('-') != std::string::npos;
  });
}

// Where the log still tells of the feature; "" for nowhere.
Result<std::string> find_old_trace(const Table& table, const Snapshot& newest,
                                   const Feature& feature) {
  SL_ASSIGN(const LogFiles log, list_log(table.store().get(), table.path()));
  if (std::string(feature.name) == "v2Checkpoint") {
    for (const Checkpoint& checkpoint : log.checkpoints) {
      if (is_v2(checkpoint)) return fmt::format("the checkpoint of version {}", checkpoint.version);
    }
  }
  SL_ASSIGN(const auto earliest, table.snapshot(log.earliest()));
  const bool in_files =
      std::any_of(earliest->files.begin(), earliest->files.end(),
                  [&](const AddFile& file) { return uses(Action(file), feature); });
  if (in_files || uses(Action(earliest->metadata), feature))
    return fmt::format("version {}", earliest->version);
  for (const auto& [version, file] : log.commits) {
    if (version > newest.version) break;
    SL_ASSIGN(const std::vector<Action> actions, table.commit(version));
    const bool used = std::any_of(actions.begin(), actions.end(),
                                  [&](const Action& action) { return uses(action, feature); });
    if (used) return fmt::format("version {}", version);
  }
  return std::string();
}

// Repeats a change of the table that another writer came before.
template <typename Try>
Status until_committed(const Try& attempt) {
  Status done;
  for (int i = 0; i < kAttempts; ++i) {
    done = attempt();
    if (done.ok() || done.error().kind != ErrorKind::kConflict) break;
  }
  return done;
}

void forget(std::vector<Field>* fields, const char* key);

void forget(DataType* type, const char* key) {
  const auto part = [&](std::shared_ptr<const DataType>* shared) {
    if (*shared == nullptr) return;
    DataType changed = **shared;
    forget(&changed, key);
    *shared = std::make_shared<const DataType>(std::move(changed));
  };
  part(&type->element);
  part(&type->key);
  if (type->fields == nullptr) return;
  std::vector<Field> fields = *type->fields;
  forget(&fields, key);
  type->fields = std::make_shared<const std::vector<Field>>(std::move(fields));
}

void forget(std::vector<Field>* fields, const char* key) {
  for (Field& field : *fields) {
    field.metadata.erase(key);
    forget(&field.type, key);
  }
}

}  // namespace

bool needs_history_protection(const std::string& feature) {
  const Feature* const known = find_feature(feature);
  return known != nullptr && known->kind == Feature::Kind::kReaderWriter;
}

Status check_droppable(const Snapshot& snapshot, const FeatureDrop& drop) {
  const std::string& name = drop.feature;
  const std::set<std::string> present = supported_features(snapshot.protocol);
  const Feature* const feature = find_feature(name);
  if (present.count(name) == 0) {
    if (name.starts_with("delta.")) {
      return invalid_argument("DELTA_FEATURE_DROP_FEATURE_IS_DELTA_PROPERTY",
                              "{} is a table property, not a feature: ALTER TABLE ... UNSET "
                              "TBLPROPERTIES takes it away",
                              name);
    }
    return invalid_argument("DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT",
                            "table {} does not have the feature {}; it has: {}",
                            snapshot.table_path, name, fmt::format("{}", fmt::join(present, ", ")));
  }
  if (feature == nullptr) {
    return unsupported("DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE",
                       "Strandline does not know the feature {} of table {}: drop it with the "
                       "engine that wrote the table",
                       name, snapshot.table_path);
  }
  if (feature->write == Feature::Write::kNo) {
    return unsupported("DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE",
                       "Strandline cannot write tables with the feature {}, so it cannot drop it "
                       "from table {}: drop it with the engine that wrote the table",
                       name, snapshot.table_path);
  }
  if (drop.truncate_history && !needs_history_protection(name) && name != kProtection) {
    return invalid_argument("DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED",
                            "the feature {} leaves nothing in the history that readers must not "
                            "see: leave out TRUNCATE HISTORY",
                            name);
  }
  if (name == kProtection && !drop.truncate_history) {
    return invalid_argument(
        "DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION",
        "the feature {} protects the history of table {}, and goes only with it: "
        "write DROP FEATURE {} TRUNCATE HISTORY",
        name, snapshot.table_path, name);
  }
  if (name == "domainMetadata") {
    for (const char* dependent : {"rowTracking", "clustering"}) {
      if (present.count(dependent) == 0) continue;
      return invalid_argument("DELTA_FEATURE_DROP_DEPENDENT_FEATURE",
                              "the feature {} of table {} is needed by {}: drop that first", name,
                              snapshot.table_path, dependent);
    }
  }
  const bool clustered = name == "clustering" && !clustering_columns(snapshot.domains).empty();
  if (!goes_by_itself(name) &&
      (clustered || is_used(*feature, snapshot.metadata, snapshot.schema))) {
    return in_use(*feature, snapshot.metadata, snapshot.schema, snapshot.table_path);
  }
  return {};
}

Protocol without_feature(const Protocol& protocol, const std::string& feature) {
  std::set<std::string> left = supported_features(protocol);
  left.erase(feature);
  constexpr int kLastLegacyWriter = 6;
  for (int writer = 1; writer <= kLastLegacyWriter; ++writer) {
    for (int reader = 1; reader <= 2; ++reader) {
      const Protocol legacy{reader, writer, {}, {}};
      if (supported_features(legacy) == left) return legacy;
    }
  }
  constexpr int kFeatureReader = 3;
  Protocol result{1, 7, {}, left};
  const auto is_of_readers = [&](const std::string& name) {
    const Feature* const known = find_feature(name);
    return known == nullptr ? protocol.reader_features.count(name) > 0
                            : known->kind == Feature::Kind::kReaderWriter;
  };
  for (const std::string& name : left) {
    if (!is_of_readers(name)) continue;
    const Feature* const known = find_feature(name);
    const bool legacy = known != nullptr && known->legacy_reader > 0;
    result.min_reader_version =
        std::max(result.min_reader_version, legacy ? known->legacy_reader : kFeatureReader);
  }
  if (result.min_reader_version == kFeatureReader) {
    std::copy_if(left.begin(), left.end(),
                 std::inserter(result.reader_features, result.reader_features.end()),
                 is_of_readers);
  }
  return result;
}

bool has_file_traces(const Snapshot& snapshot, const std::string& feature) {
  if (feature == "columnMapping") {
    return mapping_mode(snapshot.metadata) != "none" ||
           has_field_metadata(snapshot.schema, "delta.columnMapping.");
  }
  if (widens_types(feature)) return has_field_metadata(snapshot.schema, kTypeChanges);
  if (feature == "deletionVectors") {
    return std::any_of(snapshot.files.begin(), snapshot.files.end(),
                       [](const AddFile& file) { return static_cast<bool>(file.deletion_vector); });
  }
  return false;
}

Result<Metadata> without_column_mapping(const Snapshot& snapshot) {
  Schema schema = snapshot.schema;
  strip_mapping(&schema);
  if (auto checked = check_columns(schema.fields, false); !checked.ok()) {
    Error error = std::move(checked).error();
    return invalid_argument("DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING",
                            "column mapping cannot be dropped from table {}: {}",
                            snapshot.table_path, error.message);
  }
  Metadata metadata = snapshot.metadata;
  metadata.configuration.erase(kMappingModeProperty);
  metadata.configuration.erase(kMaxColumnIdProperty);
  SL_TRY(check_reserved_names(schema, schema, metadata));
  metadata.schema_string = print_schema(schema);
  return metadata;
}

Result<Metadata> without_type_changes(const Snapshot& snapshot) {
  Schema schema = snapshot.schema;
  forget(&schema.fields, kTypeChanges);
  Metadata metadata = snapshot.metadata;
  metadata.schema_string = print_schema(schema);
  return metadata;
}

Status withdraw_row_ids(const Table& table) {
  return until_committed([&]() -> Status {
    SL_ASSIGN(const auto snapshot, table.snapshot());
    SL_ASSIGN(Transaction transaction, Transaction::begin(table, snapshot));
    std::vector<size_t> touched;
    for (size_t i = 0; i < snapshot->files.size(); ++i) {
      AddFile file = snapshot->files[i];
      if (!file.base_row_id && !file.default_row_commit_version) continue;
      file.base_row_id.reset();
      file.default_row_commit_version.reset();
      file.data_change = false;
      transaction.add_file(std::move(file));
      touched.push_back(i);
    }
    if (touched.empty()) return {};
    transaction.set_read_files(std::move(touched));
    transaction.set_row_ids_preserved(false);
    transaction.set_operation("ROW TRACKING UNBACKFILL");
    SL_TRY(transaction.commit_or_error());
    return {};
  });
}

Status remove_domains(const Table& table) {
  return until_committed([&]() -> Status {
    SL_ASSIGN(const auto snapshot, table.snapshot());
    if (snapshot->domains.empty()) return {};
    SL_ASSIGN(Transaction transaction, Transaction::begin(table, snapshot));
    for (const auto& [name, domain] : snapshot->domains) {
      DomainMetadata gone = domain;
      gone.removed = true;
      transaction.set_domain(std::move(gone));
    }
    transaction.set_blind_append();
    transaction.set_operation("DOMAIN METADATA CLEANUP");
    SL_TRY(transaction.commit_or_error());
    return {};
  });
}

Status write_barrier(const Table& table, int checkpoints) {
  for (int i = 0; i < checkpoints; ++i) {
    SL_TRY(until_committed([&]() -> Status {
      SL_ASSIGN(const auto snapshot, table.snapshot());
      SL_ASSIGN(Transaction transaction, Transaction::begin(table, snapshot));
      transaction.set_logged_always();
      transaction.set_blind_append();
      transaction.set_operation("EMPTY COMMIT");
      SL_ASSIGN(const Version version, transaction.commit_or_error());
      SL_ASSIGN(const auto committed, table.snapshot_after(snapshot, version));
      return write_checkpoint(table, *committed);
    }));
  }
  return {};
}

Status truncate_history(const Table& table, const std::string& feature, int64_t now_ms) {
  const Feature* const known = find_feature(feature);
  if (known == nullptr) return {};
  SL_ASSIGN(const auto snapshot, table.snapshot());
  const auto text = snapshot->property("delta.dropFeatureTruncateHistory.retentionDuration");
  const int64_t retention_ms =
      (text ? parse_interval_ms(*text) : std::nullopt).value_or(kTruncateRetentionMs);
  SL_TRY(clean_log(table, *snapshot, now_ms, retention_ms));
  const double hours = static_cast<double>(retention_ms) / 3'600'000;
  if (feature == kProtection) {
    SL_ASSIGN(const LogFiles log, list_log(table.store().get(), table.path()));
    const Version border = protected_before(*snapshot);
    const bool left = (!log.commits.empty() && log.commits.begin()->first < border) ||
                      (!log.checkpoints.empty() && log.checkpoints.front().version < border);
    if (!left) return {};
    return invalid_argument(
        "DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD",
        "table {} still has versions before {}, whose features were dropped later: run "
        "DROP FEATURE {} TRUNCATE HISTORY again when they are {} hours old",
        table.path(), border, feature, hours);
  }
  SL_ASSIGN(const std::string trace, find_old_trace(table, *snapshot, *known));
  if (trace.empty()) return {};
  return invalid_argument(
      "DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST",
      "{1} of table {0} still uses the feature {2}: run DROP FEATURE {2} TRUNCATE "
      "HISTORY again when it is {3} hours old, or DROP FEATURE {2}, which keeps the history",
      table.path(), trace, feature, hours);
}

// What uses a feature and is nothing that rows are seen by is switched off.
Status Alteration::stop_using(const std::string& feature) {
  auto& properties = metadata_.configuration;
  if (feature == "deletionVectors") {
    properties.erase("delta.enableDeletionVectors");
  } else if (widens_types(feature)) {
    properties.erase(kTypeWidening);
  } else if (feature == "v2Checkpoint") {
    if (properties.count(kCheckpointPolicy) > 0) properties[kCheckpointPolicy] = "classic";
  } else if (feature == "inCommitTimestamp") {
    properties.erase("delta.enableInCommitTimestamps");
  } else if (feature == "rowTracking") {
    properties[kRowTracking] = "false";
    properties[kSuspended] = "true";
  }
  finish();
  return {};
}

Status Alteration::drop_feature(const FeatureDrop& drop) {
  SL_TRY(check_droppable(*base_, drop));
  const std::string& name = drop.feature;
  const auto has_row_ids = [](const AddFile& file) {
    return file.base_row_id || file.default_row_commit_version;
  };
  const bool dirty = is_used(*find_feature(name), metadata_, schema_) ||
                     has_file_traces(*base_, name) ||
                     (name == "rowTracking" &&
                      std::any_of(base_->files.begin(), base_->files.end(), has_row_ids)) ||
                     (name == "domainMetadata" && !domains_.empty());
  if (dirty) return traces_again(name, base_->table_path);

  auto& properties = metadata_.configuration;
  if (name == "rowTracking") {
    // The domain with the last id stays, so that no id is ever given twice.
    for (const char* key :
         {kRowTracking, kSuspended, kRowIdColumnProperty, kRowVersionColumnProperty})
      properties.erase(key);
  }
  if (name == kProtection) properties.erase(kProtectedBeforeProperty);
  if (name == "clustering" && domains_.count(kClusteringDomain) > 0) {
    DomainMetadata gone = domains_[kClusteringDomain];
    gone.removed = true;
    changed_domains_[kClusteringDomain] = std::move(gone);
    domains_.erase(kClusteringDomain);
  }
  protocol_ = without_feature(protocol_, name);
  if (needs_history_protection(name) && !drop.truncate_history) {
    protocol_ = with_features(protocol_, {kProtection});
    properties[kProtectedBeforeProperty] = std::to_string(base_->version + 1);
  }
  // Whatever others commit meanwhile may have traces.
  depends_on_rows_ = true;
  return {};
}

}  // namespace strandline::delta
