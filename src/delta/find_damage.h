// Why the engine could not read a table: its data files against its log.
#pragma once

#include <optional>

#include "delta/snapshot.h"

namespace strandline::delta {

// The first live data file that is missing (kNotFound DELTA_FILE_NOT_FOUND), has another size than
// the log says or is no whole Parquet file (kCorrupt DELTA_DATA_FILE_DAMAGED); nullopt when all
// look whole. Looks at every file: for after a failure.
std::optional<Error> find_damage(storage::Store* store, const Snapshot& snapshot);

}  // namespace strandline::delta
