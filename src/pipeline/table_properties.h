// Table properties of targets that pipelines act on.
#pragma once

namespace strandline::pipeline {

// Of targets of snapshots (auto-cdc.md section 10); the declaration alone gives them.
inline constexpr const char* kSnapshotPropertyPrefix = "pipelines.cdc.snapshot.";
inline constexpr const char* kVersionProperty = "pipelines.cdc.snapshot.version";
inline constexpr const char* kOutOfOrderProperty = "pipelines.cdc.snapshot.onOutOfOrder";
inline constexpr const char* kDeleteRatioProperty = "pipelines.cdc.snapshot.maxDeleteRatio";
// Seconds after which deletes may be forgotten (section 4); the second one is older.
inline constexpr const char* kTombstoneProperties[] = {
    "pipelines.cdc.tombstoneGCThresholdInSeconds",
    "pipelines.applyChanges.tombstoneGCThresholdInSeconds"};

// Lets columns take wider types; unlike other delta.* properties it may be declared later.
inline constexpr const char* kTypeWidening = "delta.enableTypeWidening";

}  // namespace strandline::pipeline
