// What a range of versions changed: which files hold its change rows, and how to read them
// (change-data-feed.md). Looks at the log alone; no data file is opened.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "delta/snapshot.h"

namespace strandline::cdf {

// The columns that a feed adds to the table's.
inline constexpr const char* kChangeTypeColumn = "_change_type";
inline constexpr const char* kCommitVersionColumn = "_commit_version";
inline constexpr const char* kCommitTimestampColumn = "_commit_timestamp";

// An instant, microseconds since the epoch, UTC.
struct Timestamp {
  int64_t us = 0;
};
// One end of a range, inclusive. A timestamp as start is the first commit at or after it, as end
// the last at or before it.
using Bound = std::variant<delta::Version, Timestamp>;

enum class FeedMode {
  kLegacy,     // recorded by the writer: delta.enableChangeDataFeed
  kAutomatic,  // computed from row ids: delta.enableRowTracking
};

struct RangeRequest {
  Bound start = delta::Version{0};
  std::optional<Bound> end;  // none: the newest version
  // A start after the newest commit gives nothing and an end after it the newest version, instead
  // of errors.
  bool tolerate_out_of_range = false;
  std::optional<FeedMode> mode;  // none: legacy where it serves the whole range, else automatic
  // For streams. If set, the columns to read, fixed when the stream started; and the range ends
  // before a version from which on another feed serves the table.
  std::shared_ptr<const delta::Snapshot> stream_definition = nullptr;
};

enum class ChangeKind { kInsert, kDelete, kRecorded };

// A file and what its rows are. kRecorded files say so themselves, in kChangeTypeColumn.
struct FileChange {
  ChangeKind kind = ChangeKind::kInsert;
  delta::AddFile file;  // without statistics; of removed files, what the removal says
  // If set, only the rows that this vector deletes and file.deletion_vector does not: the
  // difference between two states of one file.
  decltype(delta::AddFile::deletion_vector) only_deleted_by;
};

struct CommitChanges {
  delta::Version version = 0;
  int64_t timestamp_ms = 0;  // in-commit timestamp, else file time made strictly increasing
  std::vector<FileChange> files;

  // Automatic feed: rows may have been copied or updated, so that inserts and deletes must be
  // matched by row id.
  bool needs_matching(FeedMode mode) const;
};

struct ChangePlan {
  FeedMode mode = FeedMode::kLegacy;
  delta::Version first = 0;
  delta::Version last = -1;  // less than first: an empty range
  // The columns of the result and how files name them; files are not listed.
  std::shared_ptr<const delta::Snapshot> definition;
  std::vector<CommitChanges> commits;  // ascending, only those that changed rows
};

// Errors, all naming the table: kInvalidArgument DELTA_VERSION_INVALID,
// DELTA_CDC_START_VERSION_AFTER_LATEST, DELTA_CDC_END_VERSION_AFTER_LATEST,
// DELTA_TIMESTAMP_GREATER_THAN_COMMIT, DELTA_INVALID_CDC_RANGE, DELTA_MISSING_CHANGE_DATA (with the
// first version that no feed covers), DELTA_CHANGELOG_REQUIRES_ROW_TRACKING and
// DELTA_CHANGELOG_ROW_TRACKING_DISABLED_IN_RANGE (automatic mode asked for),
// DELTA_CHANGELOG_SCHEMA_CHANGE_IN_RANGE and DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE
// (with the ranges to read instead; a commit that deletes rows with columns that its own cannot
// read is in none), DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS; kNotFound DELTA_VERSION_NOT_FOUND,
// DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION; kUnsupported features and
// DELTA_CHANGE_DATA_INCOMPLETE_REMOVE; kCorrupt DELTA_ROW_ID_MISSING,
// DELTA_CHANGE_DATA_FILE_UNCHANGED; those of Table.
// With a stream's definition, schema changes are kInvalidData DELTA_SCHEMA_CHANGED_WITH_VERSION (a
// new column: start the stream again) or DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE. A RESTORE that
// takes columns back is none.
Result<ChangePlan> plan_changes(const delta::Table& table, const RangeRequest& request);

// The version a range from this start begins with; nullopt: after the newest one, which is
// tolerated. Errors: of the start, as above.
Result<std::optional<delta::Version>> resolve_start(const delta::Table& table, const Bound& start,
                                                    bool tolerate_out_of_range);

// Protocol, metadata and schema of a snapshot, without its files.
std::shared_ptr<delta::Snapshot> without_files(const delta::Snapshot& snapshot);

// After reading failed: the first file of the plan that is gone, with its version.
// Code DELTA_CHANGE_DATA_FILE_NOT_FOUND.
std::optional<Error> find_missing_file(storage::Store* store, const ChangePlan& plan);

}  // namespace strandline::cdf
