// Removing expired parts of the log (delta-protocol.md 10.10).
#pragma once

#include <optional>

#include "delta/snapshot.h"

namespace strandline::delta {

// Removes what lies before the newest checkpoint that is older than delta.logRetentionDuration (30
// days) at the last midnight of UTC: commits, checkpoints, checksums. That checkpoint, its commit
// and all after it stay, so every version from it on can be read; at each moment in between,
// versions are either readable or told to be gone. Sidecars go when no checkpoint names them and
// they are a day old. Nothing is done where delta.enableExpiredLogCleanup is false and while that
// checkpoint cannot be read. With the feature checkpointProtection all before the protected version
// goes in one run, commits before checkpoints, or nothing. retention_ms, if given, stands for these
// properties and counts from now. Returns the number of files removed. Errors: kIo and what reading
// the log reports; what is removed by then stays removed.
Result<int64_t> clean_log(const Table& table, const Snapshot& snapshot, int64_t now_ms,
                          std::optional<int64_t> retention_ms = {});

// With the feature checkpointProtection: the version before which checkpoints are protected, since
// the features of older versions were dropped.
inline constexpr const char* kProtectedBeforeProperty =
    "delta.requireCheckpointProtectionBeforeVersion";
// 0 where nothing is protected.
Version protected_before(const Snapshot& snapshot);

}  // namespace strandline::delta
