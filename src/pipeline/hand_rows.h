// Rows of a target that hands changed between batches (auto-cdc.md section 8).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "delta/snapshot.h"
#include "duck/connection.h"
#include "duck/delta_io.h"
#include "pipeline/target.h"

namespace strandline::pipeline {

// Tag of a commit that took rows away which stood there more than once. What the rows say stayed:
// by itself it is no change by hand.
inline constexpr const char* kRepairTag = "strandline.repair";
bool is_repair(const delta::CommitInfo& info);

// The rows that hands changed in these versions up to `target`, as cdc::BatchRelations::edits.
// shown: the target as messages name it. Scans that the relation reads are added to `scans`.
// Errors: AUTOCDC_INVALID_STATE.HAND_EDITS_LOST (kInvalidData) where VACUUM or a cleaned log have
// taken something of it.
Result<std::string> rows_by_hand(duck::Connection& connection, const delta::Table& table,
                                 const std::shared_ptr<const delta::Snapshot>& target,
                                 const std::vector<Target::Versions>& edits,
                                 const std::string& shown,
                                 std::vector<std::unique_ptr<duck::Scan>>* scans);

}  // namespace strandline::pipeline
