#include "delta/checkpoint.h"

#include "base/clock.h"
#include "base/ids.h"
#include "base/json.h"
#include "delta/log_files.h"
#include "delta/properties.h"

namespace strandline::delta {

namespace {

constexpr int64_t kDefaultInterval = 10;
constexpr int64_t kDefaultTombstoneRetentionMs = 7 * 86'400'000ll;

std::optional<int64_t> interval_property(const Snapshot& snapshot, const std::string& key) {
  const std::optional<std::string> text = snapshot.property(key);
  return text ? parse_interval_ms(*text) : std::nullopt;
}

}  // namespace

bool checkpoint_is_due(const Snapshot& snapshot, Version version) {
  const int64_t interval = integer_property(snapshot.metadata.configuration,
                                            "delta.checkpointInterval", kDefaultInterval);
  return version > 0 && version % std::max<int64_t>(interval, 1) == 0;
}

std::vector<Action> checkpoint_actions(const Snapshot& snapshot, int64_t now_ms) {
  std::vector<Action> actions;
  actions.reserve(snapshot.files.size() + snapshot.tombstones.size() + 8);
  actions.emplace_back(snapshot.protocol);
  actions.emplace_back(snapshot.metadata);
  const std::optional<int64_t> txn_retention_ms =
      interval_property(snapshot, "delta.setTransactionRetentionDuration");
  for (const auto& [app_id, txn] : snapshot.txns) {
    const bool expired = txn_retention_ms && txn.last_updated_ms &&
                         *txn.last_updated_ms < now_ms - *txn_retention_ms;
    if (!expired) actions.emplace_back(txn);
  }
  for (const auto& [name, domain] : snapshot.domains) actions.emplace_back(domain);
  for (AddFile file : snapshot.files) {
    file.data_change = false;
    actions.emplace_back(std::move(file));
  }
  const int64_t tombstone_retention_ms =
      interval_property(snapshot, "delta.deletedFileRetentionDuration")
          .value_or(kDefaultTombstoneRetentionMs);
  for (RemoveFile file : snapshot.tombstones) {
    if (file.deletion_timestamp_ms.value_or(0) < now_ms - tombstone_retention_ms) continue;
    file.data_change = false;
    actions.emplace_back(std::move(file));
  }
  return actions;
}

Status write_checkpoint(const Table& table, const Snapshot& snapshot) {
  storage::Store& store = *table.store();
  const std::vector<Action> actions = checkpoint_actions(snapshot, now_ms());
  const std::string path = classic_checkpoint_path(table.path(), snapshot.version);
  const size_t name_at = path.rfind('/') + 1;
  const std::string temporary =
      path.substr(0, name_at) + "." + path.substr(name_at) + "." + new_uuid() + ".tmp";

  const auto write = [&]() -> Status {
    SL_TRY(store.before_external_write(temporary));
    SL_TRY(table.parquet()->write_checkpoint(temporary, actions));
    SL_TRY(store.after_external_write(temporary));
    return store.rename(temporary, path);
  };
  if (Status written = write(); !written.ok()) {
    // Hidden, so that a leftover harms nobody.
    (void)store.remove(temporary);
    return written;
  }

  SL_ASSIGN(const storage::FileInfo file, store.stat(path));
  JsonWriter hint;
  hint.begin_object();
  hint.key("version");
  hint.value(snapshot.version);
  hint.key("size");
  hint.value(static_cast<int64_t>(actions.size()));
  hint.key("sizeInBytes");
  hint.value(file.size_bytes);
  hint.key("numOfAddFiles");
  hint.value(static_cast<int64_t>(snapshot.files.size()));
  hint.end_object();
  return store.put(log_directory(table.path()) + "/_last_checkpoint", hint.take());
}

}  // namespace strandline::delta
