#include "delta/snapshot.h"

#include <charconv>

#include "base/json.h"
#include "delta/features.h"
#include "delta/row_id_columns.h"

namespace strandline::delta {

std::optional<std::string> Snapshot::property(const std::string& key) const {
  const auto found = metadata.configuration.find(key);
  if (found == metadata.configuration.end()) return std::nullopt;
  return found->second;
}

bool Snapshot::property_is_true(const std::string& key) const {
  const auto found = metadata.configuration.find(key);
  return found != metadata.configuration.end() && fold_name(found->second) == "true";
}

std::optional<int64_t> Snapshot::txn_version(const std::string& app_id) const {
  const auto found = txns.find(app_id);
  if (found == txns.end()) return std::nullopt;
  return found->second.version;
}

bool Snapshot::deletion_vectors_enabled() const {
  return property_is_true("delta.enableDeletionVectors") && supports(protocol, "deletionVectors");
}

bool Snapshot::row_tracking_enabled() const {
  return property_is_true("delta.enableRowTracking") &&
         !property_is_true("delta.rowTrackingSuspended") && supports(protocol, "rowTracking");
}

bool Snapshot::in_commit_timestamps_enabled() const {
  return property_is_true("delta.enableInCommitTimestamps") &&
         supports(protocol, "inCommitTimestamp");
}

std::optional<std::string> Snapshot::row_id_column() const {
  if (!row_tracking_enabled()) return std::nullopt;
  return property(kRowIdColumnProperty);
}

std::optional<std::string> Snapshot::row_commit_version_column() const {
  if (!row_tracking_enabled()) return std::nullopt;
  return property(kRowVersionColumnProperty);
}

int64_t Snapshot::row_id_high_water_mark() const {
  const auto domain = domains.find("delta.rowTracking");
  if (domain == domains.end()) return -1;
  const auto json = Json::parse(domain->second.configuration);
  if (!json.ok()) return -1;
  const Json* const mark = json->get("rowIdHighWaterMark");
  return mark == nullptr ? -1 : mark->as_int().value_or(-1);
}

std::string Snapshot::column_mapping_mode() const {
  if (!supports(protocol, "columnMapping")) return "none";
  return property("delta.columnMapping.mode").value_or("none");
}

std::string Snapshot::physical_name(const Field& field) {
  const auto found = field.metadata.find("delta.columnMapping.physicalName");
  if (found == field.metadata.end()) return field.name;
  const auto json = Json::parse(found->second);
  return json.ok() && json->is_string() ? json->text() : field.name;
}

std::optional<int64_t> num_records(const AddFile& file) {
  if (!file.stats) return std::nullopt;
  // Nearly every writer puts the count first.
  constexpr std::string_view kStart = "{\"numRecords\":";
  const std::string text = *file.stats;
  if (std::string_view(text).starts_with(kStart)) {
    int64_t count = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + kStart.size(), end, count);
    if (error == std::errc() && stop != end && (*stop == ',' || *stop == '}')) {
      return count < 0 ? std::nullopt : std::optional(count);
    }
  }
  const auto json = Json::parse(text);
  if (!json.ok()) return std::nullopt;
  const Json* const count = json->get("numRecords");
  const std::optional<int64_t> number = count == nullptr ? std::nullopt : count->as_int();
  return number && *number < 0 ? std::nullopt : number;
}

std::optional<int64_t> live_row_count(const Snapshot& snapshot) {
  int64_t total = 0;
  for (const AddFile& file : snapshot.files) {
    const std::optional<int64_t> count = num_records(file);
    if (!count) return std::nullopt;
    total += *count - (file.deletion_vector ? file.deletion_vector->cardinality : 0);
  }
  return total;
}

}  // namespace strandline::delta
