// A Delta table read as an append-only stream (sql.md; cdf-semantics.md section 7).
#pragma once

#include <strandline/result.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "delta/snapshot.h"
#include "pipeline/checkpoint.h"
#include "pipeline/stream_options.h"

namespace strandline::pipeline {

struct DeltaRange {
  DeltaOffset from, to;
  bool has_data = false;
  // What failOnDataLoss=false passed over on the way to `from`.
  std::vector<Error> lost;
};

// What a stream that begins anew with the options it has can no longer read.
struct StreamLoss {
  std::optional<Error> first;  // none: all is there
  std::optional<DeltaOffset>
      later;  // from which on all is there; none: not even the table is whole
};

// Warnings of rows that a stream goes on without.
inline constexpr const char* kStreamDataLoss = "STREAM_DATA_LOSS";
Error passed_over(const std::string& shown, delta::Version first, delta::Version last,
                  const std::string& why);
// The error of a stream that its options can lead past, with that way.
Error with_way_on(Error error, const std::string& shown, bool is_feed);

// The oldest version from which on the log has every commit. Errors: kIo.
Result<delta::Version> oldest_commit(const delta::Table& table, const delta::Snapshot& newest);

// Error DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE unless the progress is of this table.
Status check_same_table(const delta::Snapshot& newest, const DeltaOffset& progress,
                        const std::string& shown);

// Where a stream goes on that has come so far: the progress itself if the table has what it read.
// Else the table was put back to an earlier version (or lost the newest commits of its log): error
// SOURCE_BEHIND (kInvalidData); with failOnDataLoss=false the place after what is there, and a
// warning in lost.
Result<DeltaOffset> go_on_from(const delta::Table& table, const delta::Snapshot& newest,
                               const StreamOptions& options, const DeltaOffset& progress,
                               const std::string& shown, std::vector<Error>* lost);
// The place with the last commit before it, for go_on_from().
Result<DeltaOffset> with_last_commit(const delta::Table& table, delta::Version newest,
                                     DeltaOffset place);

// Next part of the stream up to and with version `end`. shown names the table in errors. With
// failOnDataLoss=false a part ends before a file that is gone, and the next begins after it.
// Errors: DELTA_SOURCE_TABLE_IGNORE_CHANGES and DELTA_SOURCE_IGNORE_DELETE (kInvalidData) at the
// first commit that changes or deletes rows, DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE,
// DELTA_MISSING_FILES_UNEXPECTED_VERSION when the log no longer reaches back.
Result<DeltaRange> plan_delta(const delta::Table& table, const delta::Snapshot& newest,
                              const StreamOptions& options,
                              const std::optional<DeltaOffset>& progress, bool unlimited,
                              const std::string& shown);

// Before a full refresh; that a stream has other faults it says when it runs.
Result<StreamLoss> find_delta_loss(const delta::Table& table, const delta::Snapshot& newest,
                                   const StreamOptions& options, const std::string& shown);

// A snapshot whose files are exactly those of the range, with newest's schema. versions: if given,
// of each file the one that it is read at.
Result<std::shared_ptr<const delta::Snapshot>> delta_range(
    const delta::Table& table, const delta::Snapshot& newest, const StreamOptions& options,
    const DeltaOffset& from, const DeltaOffset& to, const std::string& shown,
    std::vector<delta::Version>* versions = nullptr);

}  // namespace strandline::pipeline
