// A Delta table read as an append-only stream (sql.md; cdf-semantics.md section 7).
#pragma once

#include <strandline/result.h>

#include <memory>
#include <optional>
#include <string>

#include "delta/snapshot.h"
#include "pipeline/checkpoint.h"
#include "pipeline/stream_options.h"

namespace strandline::pipeline {

struct DeltaRange {
  DeltaOffset from, to;
  bool has_data = false;
};

// Error DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE unless the progress is of this table.
Status check_same_table(const delta::Snapshot& newest, const DeltaOffset& progress,
                        const std::string& shown);

// Next part of the stream up to and with version `end`. shown names the table in errors.
// Errors: DELTA_SOURCE_TABLE_IGNORE_CHANGES and DELTA_SOURCE_IGNORE_DELETE (kInvalidData) at the
// first commit that changes or deletes rows, DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE,
// DELTA_MISSING_FILES_UNEXPECTED_VERSION when the log no longer reaches back.
Result<DeltaRange> plan_delta(const delta::Table& table, const delta::Snapshot& newest,
                              const StreamOptions& options,
                              const std::optional<DeltaOffset>& progress, bool unlimited,
                              const std::string& shown);

// A snapshot whose files are exactly those of the range, with newest's schema. versions: if given,
// of each file the one that it is read at.
Result<std::shared_ptr<const delta::Snapshot>> delta_range(
    const delta::Table& table, const delta::Snapshot& newest, const StreamOptions& options,
    const DeltaOffset& from, const DeltaOffset& to, const std::string& shown,
    std::vector<delta::Version>* versions = nullptr);

}  // namespace strandline::pipeline
