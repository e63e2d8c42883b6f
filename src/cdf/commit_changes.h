// The change files of one commit.
#pragma once

#include <vector>

#include "cdf/plan.h"

namespace strandline::cdf {

// What a commit says about files, as far as a feed needs it.
struct CommitFiles {
  delta::Version version = 0;
  int64_t timestamp_ms = 0;
  std::vector<delta::AddFile> adds;        // that change data, without statistics
  std::vector<delta::RemoveFile> removes;  // that change data
  std::vector<delta::CdcFile> recorded;
  bool is_empty_merge = false;  // a MERGE that says it changed no row, whatever it rewrote
};

// Moves the file actions out of a commit's actions.
CommitFiles take_files(delta::Version version, int64_t timestamp_ms,
                       std::vector<delta::Action>* actions);

// Recorded files where there are some and the mode allows; else what the adds and removes tell.
// Errors: see plan_changes.
Result<CommitChanges> changes_of(CommitFiles commit, FeedMode mode,
                                 const delta::Snapshot& definition);

}  // namespace strandline::cdf
