// Removing expired parts of the log (delta-protocol.md 10.10).
#pragma once

#include "delta/snapshot.h"

namespace strandline::delta {

// Removes what lies before the newest checkpoint that is older than delta.logRetentionDuration (30
// days) at the last midnight of UTC: commits, checkpoints, checksums. That checkpoint, its commit
// and all after it stay, so every version from it on can be read; at each moment in between,
// versions are either readable or told to be gone. Sidecars go when no checkpoint names them and
// they are a day old. Nothing is done where delta.enableExpiredLogCleanup is false, for tables with
// checkpointProtection, and while that checkpoint cannot be read. Returns the number of files
// removed. Errors: kIo and what reading the log reports; what is removed by then stays removed.
Result<int64_t> clean_log(const Table& table, const Snapshot& snapshot, int64_t now_ms);

}  // namespace strandline::delta
