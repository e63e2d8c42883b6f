// Keeps the number of files of AUTO CDC targets and their states bounded.
#pragma once

#include <cstdint>

#include "pipeline/context.h"
#include "pipeline/target.h"

namespace strandline::pipeline {

// Versions between two looks at a table: reading its files costs more than one batch adds to them.
inline constexpr int64_t kCompactionInterval = 16;

// Merges small files of an AUTO CDC target and of its state after that many batches were committed
// to it, when it is time and worth it (duck::OptimizeOptions::automatic). The target's properties
// decide: delta.autoOptimize.autoCompact = false turns both off, strandline.cdc.stateAutoCompact =
// false the state's. No batch of the target may be half done. A conflict with another writer is no
// error: there is a next time.
Status compact_if_needed(const Context& context, const Target& target, int64_t batches);

}  // namespace strandline::pipeline
