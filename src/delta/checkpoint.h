// Writing checkpoints (delta-protocol.md 10.5, 10.6, 10.7).
#pragma once

#include "delta/snapshot.h"

namespace strandline::delta {

// True if a checkpoint follows the commit of that version (delta.checkpointInterval).
bool checkpoint_is_due(const Snapshot& snapshot, Version version);

// A checkpoint of the snapshot's version and `_last_checkpoint`: V2 (a JSON file and a sidecar with
// the file actions) where delta.checkpointPolicy is v2, else a classic one of one part, which every
// reader knows. Readers see a whole checkpoint or none. Errors: kIo, what reading the log and the
// Parquet engine report; files that nothing refers to are removed.
Status write_checkpoint(const Table& table, const Snapshot& snapshot);

// What goes into it: expired tombstones and transactions are left out.
std::vector<Txn> kept_txns(const Snapshot& snapshot, int64_t now_ms);
bool is_kept(const RemoveFile& tombstone, const Snapshot& snapshot, int64_t now_ms);

// Columns of stats_parsed for the table's schema, by physical name: numRecords, minValues,
// maxValues, nullCount, tightBounds.
Schema parsed_stats_schema(const Snapshot& snapshot);

}  // namespace strandline::delta
