#include "delta/log_cleanup.h"

#include <set>

#include "base/error.h"
#include "delta/action_json.h"
#include "delta/data_path.h"
#include "delta/features.h"
#include "delta/log_files.h"
#include "delta/properties.h"
#include "delta/replay.h"

namespace strandline::delta {

namespace {

constexpr int64_t kMinuteMs = 60'000;
constexpr int64_t kDayMs = 86'400'000;
constexpr int64_t kDefaultLogRetentionMs = 30 * kDayMs;

// The sidecars that a checkpoint names.
class SidecarNames : public CheckpointVisitor {
 public:
  bool wants_adds() const override { return false; }
  bool wants_removes() const override { return false; }
  void expect(size_t) override {}
  Status take(Action) override { return {}; }
  Status take_sidecar(std::string path) override {
    names.push_back(std::move(path));
    return {};
  }

  std::vector<std::string> names;
};

class LogCleaner {
 public:
  LogCleaner(const Table& table, const Snapshot& snapshot, int64_t now_ms,
             std::optional<int64_t> retention_ms)
      : table_(table),
        store_(*table.store()),
        snapshot_(snapshot),
        now_ms_(now_ms),
        retention_ms_(retention_ms) {}

  Result<int64_t> clean() {
    if (!retention_ms_ && snapshot_.property("delta.enableExpiredLogCleanup") == "false") return 0;
    SL_ASSIGN(const LogFiles log, list_log(&store_, table_.path()));
    SL_ASSIGN(const Checkpoint* const first_kept, first_kept_checkpoint(log));
    if (first_kept == nullptr || first_kept->version < protected_before(snapshot_)) return 0;
    const std::vector<std::string> expired = files_before(log, first_kept->version);
    if (expired.empty()) return 0;
    SL_TRY(check_readable(*first_kept));
    for (const std::string& path : expired) SL_TRY(remove(path));
    if (supports(snapshot_.protocol, "v2Checkpoint")) SL_TRY(clean_sidecars());
    return removed_;
  }

 private:
  // The newest checkpoint whose version had come when the retention began; nullptr if there is
  // none.
  Result<const Checkpoint*> first_kept_checkpoint(const LogFiles& log) {
    const std::optional<std::string> text = snapshot_.property("delta.logRetentionDuration");
    const int64_t retention_ms = retention_ms_.value_or(
        (text ? parse_interval_ms(*text) : std::nullopt).value_or(kDefaultLogRetentionMs));
    const std::map<Version, int64_t> file_times = file_timestamps(log);
    const std::optional<Version> first_own = first_in_commit_version(snapshot_);
    const auto time_of = [&](const Checkpoint& checkpoint) -> Result<int64_t> {
      const auto file_time = file_times.find(checkpoint.version);
      if (file_time == file_times.end()) return checkpoint.modified_ms;
      if (!first_own || checkpoint.version < *first_own) return file_time->second;
      SL_ASSIGN(const std::vector<Action> actions, table_.commit(checkpoint.version));
      return in_commit_timestamp(actions, commit_path(table_.path(), checkpoint.version));
    };
    // Down to a day in UTC, as Delta's other writers do: they trust that the commits of today,
    // which one that is at work may have to look at, are there. Who asks for a retention has
    // thought of them.
    const int64_t unit_ms = retention_ms_ ? kMinuteMs : kDayMs;
    const int64_t cutoff_ms = (now_ms_ - retention_ms) / unit_ms * unit_ms;
    // Times grow with versions.
    size_t low = 0;
    size_t high = log.checkpoints.size();
    while (low < high) {
      const size_t middle = low + (high - low) / 2;
      SL_ASSIGN(const int64_t time_ms, time_of(log.checkpoints[middle]));
      if (time_ms <= cutoff_ms) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low == 0 ? nullptr : &log.checkpoints[low - 1];
  }

  // In the order of their removal: by version, and a version's checkpoint before its commit, so
  // that a version that lost its commits has lost the checkpoint below them too. Protected
  // checkpoints come after all commits.
  std::vector<std::string> files_before(const LogFiles& log, Version border) const {
    std::multimap<Version, std::string> files;
    std::vector<std::string> paths;
    const bool commits_first = protected_before(snapshot_) > 0;
    if (commits_first) {
      for (const auto& [version, file] : log.commits) {
        if (version < border) paths.push_back(file.path);
      }
    }
    for (const Checkpoint& checkpoint : log.checkpoints) {
      if (checkpoint.version >= border) break;
      for (const std::string& path : checkpoint.paths) files.emplace(checkpoint.version, path);
    }
    for (const auto& [version, path] : log.others) {
      if (version < border) files.emplace(version, path);
    }
    for (const auto& [version, path] : log.checksums) {
      if (version < border) files.emplace(version, path);
    }
    for (const auto& [version, file] : log.commits) {
      if (version < border && !commits_first) files.emplace(version, file.path);
    }
    for (auto& [version, path] : files) paths.push_back(std::move(path));
    return paths;
  }

  // What is removed cannot stand in for a damaged checkpoint.
  Status check_readable(const Checkpoint& checkpoint) {
    LogFiles alone;
    alone.checkpoints.push_back(checkpoint);
    LogReader reader(&store_, table_.parquet().get(), table_.path());
    const auto read = reader.tombstones(alone, checkpoint.version);
    if (read.ok()) return {};
    return read.error().with_context("expired log files are kept");
  }

  Status clean_sidecars() {
    const std::string directory = sidecar_directory(table_.path());
    const auto listed = store_.list(directory);
    if (!listed.ok() && listed.error().kind == ErrorKind::kNotFound) return {};
    if (!listed.ok()) return listed.error();
    std::vector<std::string> old;
    for (const storage::FileInfo& file : *listed) {
      if (!file.is_directory && file.modified_ms < now_ms_ - kDayMs) old.push_back(file.path);
    }
    if (old.empty()) return {};
    // Those of checkpoints written since the listing are younger than a day.
    SL_ASSIGN(const LogFiles log, list_log(&store_, table_.path()));
    std::set<std::string> named;
    for (const Checkpoint& checkpoint : log.checkpoints) {
      SidecarNames sidecars;
      for (const std::string& path : checkpoint.paths) {
        if (path.ends_with(".json")) {
          SL_ASSIGN(std::string text, store_.read(path));
          SL_TRY(parse_actions(std::move(text), path, &sidecars.names));
        } else {
          SL_TRY(table_.parquet()->read_checkpoint(path, &sidecars));
        }
      }
      for (const std::string& name : sidecars.names) {
        SL_ASSIGN(std::string path, resolve_data_path(directory, name));
        named.insert(std::move(path));
      }
    }
    for (const std::string& path : old) {
      if (named.count(path) == 0) SL_TRY(remove(path));
    }
    return {};
  }

  Status remove(const std::string& path) {
    SL_TRY(store_.remove(path));
    ++removed_;
    return {};
  }

  const Table& table_;
  storage::Store& store_;
  const Snapshot& snapshot_;
  const int64_t now_ms_;
  const std::optional<int64_t> retention_ms_;
  int64_t removed_ = 0;
};

}  // namespace

Result<int64_t> clean_log(const Table& table, const Snapshot& snapshot, int64_t now_ms,
                          std::optional<int64_t> retention_ms) {
  return LogCleaner(table, snapshot, now_ms, retention_ms).clean();
}

Version protected_before(const Snapshot& snapshot) {
  if (!supports(snapshot.protocol, "checkpointProtection")) return 0;
  return integer_property(snapshot.metadata.configuration, kProtectedBeforeProperty, 0);
}

}  // namespace strandline::delta
