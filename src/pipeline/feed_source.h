// A table's change data feed as a source of a flow: cdf/stream.h in the terms of a checkpoint.
#pragma once

#include <strandline/result.h>

#include <memory>
#include <optional>
#include <string>

#include "cdf/plan.h"
#include "delta/snapshot.h"
#include "duck/connection.h"
#include "duck/delta_io.h"
#include "pipeline/delta_source.h"

namespace strandline::pipeline {

// The columns of a table's feed. Errors: kInvalidArgument DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS
// when the table has one of them itself.
Result<Schema> feed_schema(const Schema& table, const std::string& shown);

// Next part of the feed up to and with version newest.version. Quiet versions are passed over, so
// that a part without data is all there is. With failOnDataLoss=false a part ends before a commit
// of which a file is gone, the next begins after it; and so after columns that newest's cannot
// read. tolerate: a start after the newest commit waits for it.
// Errors: as cdf::next_batch.
Result<DeltaRange> plan_feed(const delta::Table& table,
                             const std::shared_ptr<const delta::Snapshot>& newest,
                             const StreamOptions& options,
                             const std::optional<DeltaOffset>& progress, bool unlimited,
                             bool tolerate, const std::string& shown);

// Before a full refresh; that a stream has other faults it says when it runs.
Result<StreamLoss> find_feed_loss(const delta::Table& table,
                                  const std::shared_ptr<const delta::Snapshot>& newest,
                                  const StreamOptions& options, bool tolerate);

// The changes of a part that plan_feed gave, with newest's columns. Errors: as cdf::repeat_batch.
Result<cdf::ChangePlan> feed_range(const delta::Table& table,
                                   const std::shared_ptr<const delta::Snapshot>& newest,
                                   const StreamOptions& options, const DeltaOffset& from,
                                   const DeltaOffset& to);

}  // namespace strandline::pipeline
