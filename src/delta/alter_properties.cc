// Changes of properties, constraints and clustering.
#include <algorithm>

#include "base/error.h"
#include "delta/alter.h"
#include "delta/check_schema.h"
#include "delta/column_mapping.h"
#include "delta/column_rules.h"
#include "delta/definition.h"
#include "delta/features.h"
#include "delta/log_cleanup.h"
#include "delta/properties.h"
#include "delta/row_id_columns.h"

namespace strandline::delta {

namespace {

constexpr const char* kRowTracking = "delta.enableRowTracking";
constexpr const char* kInCommitTimestamps = "delta.enableInCommitTimestamps";

// What the protocol keeps in the properties for itself.
constexpr const char* kKeptByDelta[] = {
    kMaxColumnIdProperty,
    "delta.inCommitTimestampEnablementVersion",
    "delta.inCommitTimestampEnablementTimestamp",
    kRowIdColumnProperty,
    kRowVersionColumnProperty,
    kProtectedBeforeProperty,
};

Status check_settable(const std::string& key) {
  if (key.starts_with(kConstraintPrefix)) {
    return invalid_argument("DELTA_ADD_CONSTRAINTS",
                            "the table property '{}' is a CHECK constraint: use ALTER TABLE ADD or "
                            "DROP CONSTRAINT",
                            key);
  }
  if (std::find(std::begin(kKeptByDelta), std::end(kKeptByDelta), key) != std::end(kKeptByDelta)) {
    return invalid_argument(
        "DELTA_CANNOT_MODIFY_TABLE_PROPERTY",
        "the table property '{}' follows from others and cannot be set or unset "
        "by hand",
        key);
  }
  return {};
}

bool is_true(const Metadata& metadata, const char* key) {
  const auto found = metadata.configuration.find(key);
  return found != metadata.configuration.end() && found->second == "true";
}

void forget_enablement(Metadata* metadata) {
  metadata->configuration.erase("delta.inCommitTimestampEnablementVersion");
  metadata->configuration.erase("delta.inCommitTimestampEnablementTimestamp");
}

}  // namespace

void Alteration::finish() {
  if (!is_true(metadata_, kInCommitTimestamps)) forget_enablement(&metadata_);
  std::set<std::string> features = required_features(metadata_, schema_);
  if (!changed_domains_.empty() || features.count("rowTracking") > 0) {
    features.insert("domainMetadata");
  }
  if (changed_domains_.count(kClusteringDomain) > 0) features.insert("clustering");
  protocol_ = with_features(protocol_, features);
}

bool Alteration::changed() const {
  const Metadata& before = base_->metadata;
  return !changed_domains_.empty() || metadata_.schema_string != before.schema_string ||
         metadata_.configuration != before.configuration ||
         metadata_.partition_columns != before.partition_columns ||
         metadata_.description != before.description ||
         protocol_.min_reader_version != base_->protocol.min_reader_version ||
         protocol_.min_writer_version != base_->protocol.min_writer_version ||
         protocol_.writer_features != base_->protocol.writer_features ||
         protocol_.reader_features != base_->protocol.reader_features;
}

Status Alteration::change_mapping_mode(const std::string& before, Schema* schema,
                                       Metadata* metadata) const {
  const std::string after = mapping_mode(*metadata);
  if (before == after) return {};
  if (before != "none" || after != "name") {
    return unsupported(
        "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
        "table {} has '{}' = '{}', which cannot become '{}': a table can go from none to name; {}",
        base_->table_path, kMappingModeProperty, before, after,
        after == "id" ? "id is for tables that are created with it"
                      : "the files keep the physical names");
  }
  assign_mapping(schema, metadata, PhysicalNames::kCurrent);
  return {};
}

Status Alteration::set_properties(const std::map<std::string, std::string>& properties) {
  std::map<std::string, std::string> checked = properties;
  for (const auto& [key, value] : checked) SL_TRY(check_settable(key));
  SL_TRY(check_properties(&checked));
  const std::set<std::string> features = take_feature_properties(&checked);

  Metadata metadata = metadata_;
  Schema schema = schema_;
  for (const auto& [key, value] : checked) metadata.configuration[key] = value;
  // A table that dropped the mode's property by hand may still have ids: they go on.
  SL_TRY(change_mapping_mode(mapping_mode(metadata_), &schema, &metadata));
  SL_TRY(check_reserved_names(schema, schema, metadata));
  bool needs_row_ids = needs_row_ids_;
  if (is_true(metadata, kRowTracking) && !base_->row_tracking_enabled()) {
    name_row_tracking_columns(&metadata.configuration);
    needs_row_ids = std::any_of(base_->files.begin(), base_->files.end(),
                                [](const AddFile& file) { return !file.base_row_id; });
  }
  const Protocol protocol = with_features(protocol_, features);
  metadata.schema_string = print_schema(schema);
  SL_TRY(check_writable(with_features(protocol, required_features(metadata, schema)),
                        base_->table_path));

  metadata_ = std::move(metadata);
  schema_ = std::move(schema);
  protocol_ = protocol;
  needs_row_ids_ = needs_row_ids;
  finish();
  return {};
}

Status Alteration::unset_properties(const std::vector<std::string>& keys, bool if_exists) {
  Metadata metadata = metadata_;
  for (const std::string& key : keys) {
    SL_TRY(check_settable(key));
    if (metadata.configuration.erase(key) == 0 && !if_exists) {
      return invalid_argument("DELTA_UNSET_NON_EXISTENT_PROPERTY",
                              "table {} has no property '{}': use UNSET TBLPROPERTIES IF EXISTS",
                              base_->table_path, key);
    }
  }
  Schema schema = schema_;
  SL_TRY(change_mapping_mode(mapping_mode(metadata_), &schema, &metadata));
  metadata_ = std::move(metadata);
  finish();
  return {};
}

Status Alteration::set_description(const std::optional<std::string>& description) {
  metadata_.description = description;
  return {};
}

Status Alteration::add_constraint(const std::string& name, const std::string& sql) {
  const std::string key = kConstraintPrefix + fold_name(name);
  const auto known = metadata_.configuration.find(key);
  if (known != metadata_.configuration.end()) {
    return already_exists("DELTA_CONSTRAINT_ALREADY_EXISTS",
                          "table {} has a constraint {} already: CHECK ({})", base_->table_path,
                          name, known->second);
  }
  metadata_.configuration[key] = sql;
  depends_on_rows_ = true;
  finish();
  return {};
}

Status Alteration::drop_constraint(const std::string& name, bool if_exists) {
  if (metadata_.configuration.erase(kConstraintPrefix + fold_name(name)) == 0 && !if_exists) {
    return not_found("DELTA_CONSTRAINT_DOES_NOT_EXIST",
                     "table {} has no constraint {}: use DROP CONSTRAINT IF EXISTS",
                     base_->table_path, name);
  }
  finish();
  return {};
}

Status Alteration::set_clustering(const std::vector<FieldPath>& columns) {
  if (!metadata_.partition_columns.empty()) {
    return invalid_argument("DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED",
                            "table {} is partitioned: only unpartitioned tables can be clustered",
                            base_->table_path);
  }
  const bool mapped = mapping_mode(metadata_) != "none";
  SL_ASSIGN(const std::vector<FieldPath> physical, resolve_clustering(schema_, mapped, columns));
  if (physical == clustering_columns(domains_)) return {};
  DomainMetadata domain = clustering_domain(physical);
  domains_[domain.domain] = domain;
  changed_domains_[domain.domain] = std::move(domain);
  finish();
  return {};
}

void Alteration::apply_to(Transaction* transaction) const {
  if (!changed()) return;
  const Metadata& before = base_->metadata;
  if (metadata_.schema_string != before.schema_string ||
      metadata_.configuration != before.configuration ||
      metadata_.partition_columns != before.partition_columns ||
      metadata_.description != before.description) {
    transaction->set_metadata(metadata_);
  }
  if (protocol_.min_reader_version != base_->protocol.min_reader_version ||
      protocol_.min_writer_version != base_->protocol.min_writer_version ||
      protocol_.writer_features != base_->protocol.writer_features ||
      protocol_.reader_features != base_->protocol.reader_features) {
    transaction->set_protocol(protocol_);
  }
  for (const auto& [name, domain] : changed_domains_) transaction->set_domain(domain);
}

}  // namespace strandline::delta
