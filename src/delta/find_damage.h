// Data files against what the log says of them.
#pragma once

#include <optional>
#include <vector>

#include "delta/snapshot.h"

namespace strandline::delta {

// The first live data file that is missing (kNotFound DELTA_FILE_NOT_FOUND); that is no whole
// Parquet file, has another size or another number of rows than the log says (kCorrupt
// DELTA_DATA_FILE_DAMAGED); or that lacks the field ids by which a table's columns are found
// (kCorrupt DELTA_FIELD_IDS_MISSING). nullopt when all look whole. Looks at the files of the
// snapshot at these indexes, or at all: some ten microseconds each.
std::optional<Error> find_damage(storage::Store* store, const Snapshot& snapshot,
                                 const std::vector<size_t>* files = nullptr);

}  // namespace strandline::delta
