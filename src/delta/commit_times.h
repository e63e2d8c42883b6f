// When versions were committed (delta-protocol.md section 11).
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "delta/snapshot.h"

namespace strandline::delta {

struct LogFiles;

// The one time of each version, for time travel, histories and feeds: its in-commit timestamp from
// the version on that enabled them, before it the time of its file, made strictly increasing. What
// else a commit says of its time is its writer's clock and counts for nothing.
class CommitTimes {
 public:
  // log: a listing that is not older than the snapshot. Keeps the table, not the others.
  CommitTimes(const Table& table, const Snapshot& latest, const LogFiles& log);
  // Lists the log. Errors: of list_log.
  static Result<CommitTimes> of_table(const Table& table, const Snapshot& latest);

  // In milliseconds since 1970; of a version after the listing, that of the snapshot. Errors: of
  // Table::commit; kCorrupt DELTA_MISSING_COMMIT_TIMESTAMP.
  Result<int64_t> of(Version version) const;
  // The same of a version whose actions are read already.
  Result<int64_t> of(Version version, const std::vector<Action>& actions) const;

 private:
  // nullopt: its commit has to be looked at.
  std::optional<int64_t> without_reading(Version version) const;

  const Table& table_;
  Version latest_;
  int64_t latest_ms_;
  std::optional<Version> first_own_;
  std::map<Version, int64_t> file_times_;
};

}  // namespace strandline::delta
