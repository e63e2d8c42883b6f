#include "delta/conflict.h"

#include <fmt/format.h>

#include "delta/data_path.h"

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
  bool protocol = false;
  bool metadata = false;
};

Winner summarise(const std::vector<Action>& actions) {
  Winner winner;
  bool removes = false;
  for (const Action& action : actions) {
    if (const auto* const info = std::get_if<CommitInfo>(&action)) {
      winner.blind_append = info->is_blind_append.value_or(false);
      if (!info->operation.empty()) winner.operation = info->operation;
    } else if (std::holds_alternative<Protocol>(action)) {
      winner.protocol = true;
    } else if (std::holds_alternative<Metadata>(action)) {
      winner.metadata = true;
    } else if (std::holds_alternative<RemoveFile>(action)) {
      removes = true;
    }
  }
  winner.blind_append = winner.blind_append && !removes;
  return winner;
}

}  // namespace

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

  // 2.1 and 2.2. Which protocol and metadata changes are harmless is not worked out: none is.
  if (winner.protocol) return conflict("DELTA_PROTOCOL_CHANGED", "changed the protocol");
  if (winner.metadata)
    return conflict("DELTA_METADATA_CHANGED", "changed the schema or the properties");

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
