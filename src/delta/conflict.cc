#include "delta/conflict.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <map>

#include "delta/column_mapping.h"
#include "delta/data_path.h"
#include "delta/features.h"

namespace strandline::delta {

const char* to_string(Isolation isolation) {
  switch (isolation) {
    case Isolation::kSerializable:
      return "Serializable";
    case Isolation::kWriteSerializable:
      return "WriteSerializable";
    case Isolation::kSnapshot:
      return "SnapshotIsolation";
  }
  return "Serializable";
}

namespace {

constexpr const char* kRowTrackingDomain = "delta.rowTracking";

struct Winner {
  std::string operation = "a write";
  bool blind_append = false;
  const Protocol* protocol = nullptr;
  const Metadata* metadata = nullptr;
};

Winner summarise(const std::vector<Action>& actions) {
  Winner winner;
  bool removes = false;
  for (const Action& action : actions) {
    if (const auto* const info = std::get_if<CommitInfo>(&action)) {
      winner.blind_append = info->is_blind_append.value_or(false);
      if (!info->operation.empty()) winner.operation = info->operation;
    } else if (const auto* const protocol = std::get_if<Protocol>(&action)) {
      winner.protocol = protocol;
    } else if (const auto* const metadata = std::get_if<Metadata>(&action)) {
      winner.metadata = metadata;
    } else if (std::holds_alternative<RemoveFile>(action)) {
      removes = true;
    }
  }
  winner.blind_append = winner.blind_append && !removes;
  return winner;
}

// Features whose arrival changes nothing that a writer of the old protocol has prepared: it takes
// them over when it commits.
constexpr const char* kHarmlessFeatures[] = {
    "columnMapping", "deletionVectors", "domainMetadata",      "inCommitTimestamp",
    "rowTracking",   "v2Checkpoint",    "vacuumProtocolCheck",
};

bool is_harmless_upgrade(const Protocol& before, const Protocol& after) {
  const std::set<std::string> old_features = supported_features(before);
  const std::set<std::string> features = supported_features(after);
  if (!std::includes(features.begin(), features.end(), old_features.begin(), old_features.end())) {
    return false;
  }
  return std::all_of(features.begin(), features.end(), [&](const std::string& name) {
    return old_features.count(name) > 0 ||
           std::find(std::begin(kHarmlessFeatures), std::end(kHarmlessFeatures), name) !=
               std::end(kHarmlessFeatures);
  });
}

using Properties = std::map<std::string, std::string>;

std::string value_of(const Properties& properties, const char* key) {
  const auto found = properties.find(key);
  return found == properties.end() ? "" : found->second;
}

// A property that may be switched on while others write, and what is set along with it.
struct Switch {
  const char* key;
  const char* value;
  std::initializer_list<const char*> along;
};

const Switch kSwitches[] = {
    {"delta.enableDeletionVectors", "true", {}},
    {"delta.checkpointPolicy", "v2", {}},
    {"delta.enableRowTracking",
     "true",
     {"delta.rowTracking.materializedRowIdColumnName",
      "delta.rowTracking.materializedRowCommitVersionColumnName"}},
    {"delta.enableInCommitTimestamps",
     "true",
     {"delta.inCommitTimestampEnablementVersion", "delta.inCommitTimestampEnablementTimestamp"}},
    {kMappingModeProperty, "name", {kMaxColumnIdProperty}},
};

// Takes what the switches set out of both; what is left must be equal.
bool only_switches_on(Properties before, Properties after) {
  for (const Switch& one : kSwitches) {
    const bool switched =
        value_of(before, one.key) != one.value && value_of(after, one.key) == one.value;
    if (!switched) continue;
    before.erase(one.key);
    after.erase(one.key);
    for (const char* key : one.along) {
      before.erase(key);
      after.erase(key);
    }
  }
  return before == after;
}

// The schema without what may change: high water marks, and ids and names that say what was so.
std::string essence(const std::string& schema_string, bool without_mapping) {
  auto schema = parse_schema(schema_string);
  if (!schema.ok()) return schema_string;
  if (without_mapping) strip_mapping(&*schema);
  for (Field& field : schema->fields) field.metadata.erase("delta.identity.highWaterMark");
  return print_schema(*schema);
}

}  // namespace

bool is_harmless_change(const Metadata& before, const Metadata& after) {
  if (before.id != after.id || before.partition_columns != after.partition_columns) return false;
  if (!only_switches_on(before.configuration, after.configuration)) return false;
  if (before.schema_string == after.schema_string) return true;
  const bool maps = mapping_mode(before) == "none" && mapping_mode(after) == "name";
  if (maps) {
    const auto schema = parse_schema(after.schema_string);
    if (!schema.ok() || !physical_names_are_current(*schema)) return false;
  }
  return essence(before.schema_string, maps) == essence(after.schema_string, maps);
}

std::optional<Conflict> find_conflict(const Footprint& ours, const std::vector<Action>& actions,
                                      const std::string& table_path, Version version) {
  const Winner winner = summarise(actions);
  const auto conflict = [&](const char* code, const std::string& what) {
    return Conflict{
        fmt::format("table {}: version {} ({}), committed meanwhile by another writer, {}; nothing "
                    "was written, start again from the new version",
                    table_path, version, winner.operation, what),
        code};
  };

  if (winner.protocol != nullptr) {  // 2.1
    if (ours.changes_protocol || !is_harmless_upgrade(ours.table->protocol, *winner.protocol)) {
      return conflict("DELTA_PROTOCOL_CHANGED", "changed the protocol");
    }
  }
  if (winner.metadata != nullptr) {  // 2.2
    if (ours.changes_metadata || !is_harmless_change(ours.table->metadata, *winner.metadata)) {
      return conflict("DELTA_METADATA_CHANGED", "changed the schema or the properties");
    }
  }

  for (const Action& action : actions) {
    if (const auto* const domain = std::get_if<DomainMetadata>(&action)) {  // 2.3
      if (domain->domain != kRowTrackingDomain && ours.domains.count(domain->domain) > 0) {
        return conflict("DELTA_DOMAIN_METADATA_CONFLICT",
                        fmt::format("also changed the metadata domain '{}'", domain->domain));
      }
    } else if (const auto* const txn = std::get_if<Txn>(&action)) {  // 2.4
      if (ours.app_ids.count(txn->app_id) > 0) {
        return conflict("DELTA_CONCURRENT_TRANSACTION",
                        fmt::format("moved the progress of application '{}'", txn->app_id));
      }
    }
  }

  // 2.5
  const bool appends_conflict = ours.isolation == Isolation::kSerializable ||
                                (ours.isolation == Isolation::kWriteSerializable &&
                                 (!winner.blind_append || ours.changes_metadata));
  if (ours.reads_files && appends_conflict) {
    // Rows of a file that only gets another deletion vector, and rows that are only rearranged,
    // come from files that the commit removes: rule 2.6 or 2.7 judges those.
    std::unordered_set<std::string> removed;
    for (const Action& action : actions) {
      if (const auto* const remove = std::get_if<RemoveFile>(&action))
        removed.insert(canonical_path(table_path, remove->path));
    }
    FileJudge judge(ours.read_predicate);
    for (const Action& action : actions) {
      const auto* const add = std::get_if<AddFile>(&action);
      if (add == nullptr || !add->data_change ||
          removed.count(canonical_path(table_path, add->path)) > 0 || !judge.may_match(*add)) {
        continue;
      }
      return conflict("DELTA_CONCURRENT_APPEND",
                      fmt::format("added files to the data that was read, such as {}", add->path));
    }
  }

  for (const Action& action : actions) {
    const auto* const remove = std::get_if<RemoveFile>(&action);
    if (remove == nullptr) continue;
    const std::string path = canonical_path(table_path, remove->path);
    if (ours.removed_paths.count(path) > 0) {  // 2.7, the narrower name
      return conflict(
          "DELTA_CONCURRENT_DELETE_DELETE",
          fmt::format("changed or removed file {}, which this commit changes too", remove->path));
    }
    if (ours.reads_whole_table || ours.read_paths.count(path) > 0) {  // 2.6
      return conflict("DELTA_CONCURRENT_DELETE_READ",
                      fmt::format("changed or removed file {}, which was read", remove->path));
    }
  }
  return std::nullopt;
}

}  // namespace strandline::delta
