// Version checksums (delta-protocol.md 10.9): `version.crc` says what a snapshot should hold.
#pragma once

#include "delta/snapshot.h"

namespace strandline::delta {

// The snapshot holds other files, another protocol or other metadata than its version's checksum
// file says. A missing or malformed file says nothing, and so does each missing or malformed field.
bool contradicts_checksum(storage::Store* store, const Snapshot& snapshot);

}  // namespace strandline::delta
