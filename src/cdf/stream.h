// The change data feed as a stream: offsets, and which commits the next batch takes
// (change-data-feed.md, streaming). Nothing is read but the log.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "cdf/plan.h"

namespace strandline::cdf {

// How far a stream has come: everything before it is done.
struct StreamOffset {
  std::string table_id;
  delta::Version version = 0;
  int64_t index = -1;                // in a starting snapshot: the last file done; else -1
  bool is_starting_version = false;  // inside the snapshot that the stream began with

  bool operator==(const StreamOffset&) const = default;
};

// {"sourceVersion":1,"reservoirId":…,"reservoirVersion":…,"index":…,"isStartingVersion":…}
std::string print_offset(const StreamOffset& offset);
// Errors: kCorrupt DELTA_INVALID_SOURCE_OFFSET_FORMAT; kUnsupported DELTA_INVALID_SOURCE_VERSION.
Result<StreamOffset> parse_offset(const std::string& text);

struct FromLatest {};
struct StreamOptions {
  // monostate: the newest snapshot as inserts, then what comes. FromLatest: only what comes.
  std::variant<std::monostate, FromLatest, Bound> start;
  bool tolerate_out_of_range = false;  // a start after the newest commit waits for it
  // Of one batch; the first commit is taken whatever its size. Without either: 1000 files.
  std::optional<int64_t> max_files;
  std::optional<int64_t> max_bytes;
  std::optional<std::string> exclude_regex;  // files whose path it finds itself in are left out
  bool fail_on_data_loss = true;             // else goes on from the oldest version there is
  bool unlimited = false;                    // one batch takes all there is, whatever the limits
};

// Where a stream without a checkpoint begins. Errors: of the start (plan.h), kInvalidArgument
// DELTA_MISSING_CHANGE_DATA where no feed covers it, DELTA_INVALID_EXCLUDE_REGEX.
Result<StreamOffset> first_offset(const delta::Table& table, const StreamOptions& options);

struct StreamBatch {
  StreamOffset from;  // later than asked for where versions are lost that may be
  StreamOffset to;    // equal to from: nothing has come
  ChangePlan plan;    // may be without changes though the offset moved
};

// The next batch after `from`: files of the starting snapshot one by one, later commits whole. The
// limits hold; no commit after `last`, if given, is taken. definition: the columns that the stream
// reads, of the snapshot it started with; it is fixed until the stream starts again.
// Errors: as plan_changes; kInvalidData DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE,
// DELTA_MISSING_FILES_UNEXPECTED_VERSION.
Result<StreamBatch> next_batch(const delta::Table& table,
                               const std::shared_ptr<const delta::Snapshot>& definition,
                               const StreamOptions& options, const StreamOffset& from,
                               std::optional<delta::Version> last = {});

// The same batch again, as after a crash: exactly the changes between two offsets that next_batch
// gave. Errors: as next_batch.
Result<StreamBatch> repeat_batch(const delta::Table& table,
                                 const std::shared_ptr<const delta::Snapshot>& definition,
                                 const StreamOptions& options, const StreamOffset& from,
                                 const StreamOffset& to);

}  // namespace strandline::cdf
