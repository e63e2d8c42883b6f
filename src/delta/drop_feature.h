// DROP FEATURE: takes a table feature out of a table's protocol, once the newest version does not
// use it any more.
//
// Older versions may go on using it. Of a reader feature they must not be come upon by readers that
// lack it: either the commits before the drop lie behind checkpoints, which the feature
// checkpointProtection keeps until the log loses all before them at once, or the log has lost them
// already (TRUNCATE HISTORY).
#pragma once

#include <string>

#include "delta/alter.h"
#include "delta/snapshot.h"

namespace strandline::delta {

// Whether old versions must be kept from readers that lack the feature.
bool needs_history_protection(const std::string& feature);

// Errors: kInvalidArgument DELTA_FEATURE_DROP_FEATURE_IS_DELTA_PROPERTY,
// DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT, DELTA_FEATURE_DROP_DEPENDENT_FEATURE,
// DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED,
// DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION; where the user must
// end its use first, with how: DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE,
// DELTA_FEATURE_DROP_FEATURE_IN_USE; kUnsupported DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE,
// DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE.
Status check_droppable(const Snapshot& snapshot, const FeatureDrop& drop);

// The protocol that supports what this one does but for one feature, in its lowest versions.
Protocol without_feature(const Protocol& protocol, const std::string& feature);

// Whether a table of this definition, or a file of it, has a trace of the feature that files must
// be written anew for: ids and names of column mapping, records of wider types, deletion vectors.
bool has_file_traces(const Snapshot& snapshot, const std::string& feature);

// Definitions that the rewritten files go with. Errors: kInvalidArgument
// DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING, RESERVED_COLUMN_NAME.
Result<Metadata> without_column_mapping(const Snapshot& snapshot);
Result<Metadata> without_type_changes(const Snapshot& snapshot);

// Takes their row ids away from all files, in commits of their own that change no data. Row
// tracking must be suspended.
Status withdraw_row_ids(const Table& table);

// Marks the domains as removed that no feature of the table keeps.
Status remove_domains(const Table& table);

// So many commits of nothing, each with a checkpoint of the newest version.
Status write_barrier(const Table& table, int checkpoints);

// Shortens the log to what delta.dropFeatureTruncateHistory.retentionDuration (24 hours) keeps.
// Errors: kInvalidArgument DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST, or
// DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD, where what is left has traces
// of the feature.
Status truncate_history(const Table& table, const std::string& feature, int64_t now_ms);

}  // namespace strandline::delta
