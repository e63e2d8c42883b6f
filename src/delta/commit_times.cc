#include "delta/commit_times.h"

#include "delta/log_files.h"
#include "delta/replay.h"

namespace strandline::delta {

CommitTimes::CommitTimes(const Table& table, const Snapshot& latest, const LogFiles& log)
    : table_(table),
      latest_(latest.version),
      latest_ms_(latest.timestamp_ms),
      first_own_(first_in_commit_version(latest)),
      file_times_(file_timestamps(log)) {}

Result<CommitTimes> CommitTimes::of_table(const Table& table, const Snapshot& latest) {
  SL_ASSIGN(const LogFiles log, list_log(table.store().get(), table.path()));
  return CommitTimes(table, latest, log);
}

std::optional<int64_t> CommitTimes::without_reading(Version version) const {
  if (version >= latest_) return latest_ms_;
  if (first_own_ && version >= *first_own_) return std::nullopt;
  const auto found = file_times_.find(version);
  return found == file_times_.end() ? latest_ms_ : found->second;
}

Result<int64_t> CommitTimes::of(Version version) const {
  if (const auto known = without_reading(version)) return *known;
  SL_ASSIGN(const std::vector<Action> actions, table_.commit(version));
  return in_commit_timestamp(actions, commit_path(table_.path(), version));
}

Result<int64_t> CommitTimes::of(Version version, const std::vector<Action>& actions) const {
  if (const auto known = without_reading(version)) return *known;
  return in_commit_timestamp(actions, commit_path(table_.path(), version));
}

}  // namespace strandline::delta
