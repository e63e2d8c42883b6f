// Writing checkpoints (delta-protocol.md 10.5, 10.6).
#pragma once

#include "delta/snapshot.h"

namespace strandline::delta {

// True if a checkpoint follows the commit of that version (delta.checkpointInterval).
bool checkpoint_is_due(const Snapshot& snapshot, Version version);

// A classic checkpoint of the snapshot's version and `_last_checkpoint`. Readers see a whole file
// or none. Errors: kIo and what the Parquet engine reports; the temporary file is removed.
Status write_checkpoint(const Table& table, const Snapshot& snapshot);

// The actions of that checkpoint: expired tombstones and transactions left out.
std::vector<Action> checkpoint_actions(const Snapshot& snapshot, int64_t now_ms);

}  // namespace strandline::delta
