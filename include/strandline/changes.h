// A table's change data feed, batch by batch, with a memory of how far it was read.
#pragma once

#include <strandline/strandline.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace strandline {

struct ChangeReaderOptions {
  std::string table;  // as in SQL
  // A version, a timestamp such as "2026-01-31 12:00:00" (UTC), or "latest": only what comes. None:
  // the newest version's rows as inserts, then what comes. A checkpoint that is there wins.
  std::optional<std::string> from;
  std::string checkpoint;    // file that remembers; empty: none
  int64_t max_files = 1000;  // of one batch; the first commit is taken whatever its size
};

// Not thread-safe.
class ChangeReader {
 public:
  // Errors: of the table, the start and the checkpoint (kCorrupt
  // DELTA_INVALID_SOURCE_OFFSET_FORMAT; kInvalidData
  // DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE for another table's).
  static Result<std::unique_ptr<ChangeReader>> open(const SessionOptions& session,
                                                    const ChangeReaderOptions& options);
  virtual ~ChangeReader() = default;

  // The rows of the next batch, in order of versions: the table's columns, then _change_type,
  // _commit_version and _commit_timestamp. Null: nothing has come since. Errors: of the feed, by
  // its public names.
  virtual Result<std::unique_ptr<RowStream>> next() = 0;
  // Everything that next() gave is done: a reader with this checkpoint begins after it. What was
  // given and not committed is given again. Errors: kIo.
  virtual Status commit() = 0;
};

}  // namespace strandline
