// AUTO CDC FROM SNAPSHOT as a program (auto-cdc.md section 10): one full outer join tells a
// snapshot from the target's current rows, and only rows that differ go on.
#pragma once

#include <cstddef>
#include <string>

#include "cdc/plan.h"
#include "cdc/program.h"

namespace strandline::cdc {

struct SnapshotFacts {
  std::string version;   // expression of Plan::sequence_type
  bool is_first = true;  // no snapshot was taken before
  // The source is read once, into a table: where it is read in several places and may then not give
  // the same rows.
  bool copies_source = true;
  // Expectations look at the upserts: see SnapshotProgram::upserts.
  bool has_expectations = false;
  double max_delete_ratio = 1;  // of the target's current rows
  // The target may have current rows of one key: others wrote to it.
  bool doubts_target = true;
};

// Of the upserts' query: names a row of the differences.
inline constexpr const char* kUpsertRow = "__strandline_upsert";

struct SnapshotProgram {
  Program program;  // without keys and state
  // After so many steps the differences are known. With expectations: `upserts` gives the new and
  // changed rows under the target's names and kUpsertRow, and `keep`, with a query of kUpsertRow in
  // the place of {rows}, leaves the others as they were.
  size_t compared = 0;
  std::string upserts;
  std::string keep;
};

// Relations: BatchRelations::source and target. DuckDB dialect.
// Errors of its checks, whose messages speak of the snapshot as "it":
// APPLY_CHANGES_FROM_SNAPSHOT_ERROR.{FIRST_SNAPSHOT_EMPTY, DUPLICATE_KEY_VIOLATION,
// DELETE_RATIO_EXCEEDED}, AUTOCDC_MICROBATCH_VALIDATION.NULL_KEY,
// AUTOCDC_INVALID_STATE.INVALID_TARGET_ROWS.
Result<SnapshotProgram> make_snapshot_program(const Plan& plan, const BatchRelations& relations,
                                              const SnapshotFacts& facts);

}  // namespace strandline::cdc
