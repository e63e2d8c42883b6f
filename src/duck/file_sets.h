// What the files of a running scan know, for the SQL functions that its query calls.
//
// A scan registers its files as a set and names the set by number in its SQL; the position of a
// file in the set is read_parquet's file_index. The functions, all without effect on the data:
//   sl_live(set, file_index, row)      BOOLEAN  the row is not deleted; change feed: is among those
//                                               that the feed has of the file
//   sl_file(set, file_index)           INTEGER  the file's index in snapshot.files
//   sl_group(set, file_index)          BIGINT   the file's partition, from 1
//   sl_row_id(set, file_index, row)    BIGINT   baseRowId + row
//   sl_row_version(set, file_index)    BIGINT   defaultRowCommitVersion
//   sl_file_change(set, file_index)    BIGINT   change feed: the number of what happened to all
//   rows sl_row_change(set, file_index, row) BIGINT  the same of single rows, those that are live
//   sl_change_kind(set, change)        BIGINT   of such a number: FeedChangeKind
//   sl_change_version(set, change)     BIGINT   and the version that did it
//   sl_change_time(set, change)        BIGINT   and its time, microseconds
#pragma once

#include <duckdb.h>
#include <strandline/result.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "delta/row_set.h"
#include "duck/changed_rows.h"
#include "duck/delta_io.h"
#include "duck/registry.h"

namespace strandline::duck {

// A row set for one question, asked for every row of a file: plain bits, in blocks of 65,536 rows
// that exist where rows are deleted. Four times as fast as a look-up in the compressed set.
class DeletedRows {
 public:
  explicit DeletedRows(const delta::RowSet& rows);

  bool contains(uint64_t row) const {
    const uint64_t block = row / kBlockRows;
    if (block >= blocks_.size() || blocks_[block] == nullptr) return false;
    return (((*blocks_[block])[row % kBlockRows / 64] >> (row % 64)) & 1) != 0;
  }

 private:
  static constexpr uint64_t kBlockRows = 65'536;
  using Block = std::array<uint64_t, kBlockRows / 64>;
  std::vector<std::unique_ptr<Block>> blocks_;
};

struct ScanFile {
  int32_t snapshot_index = 0;
  int64_t group = 0;                           // from 1
  std::shared_ptr<const DeletedRows> deleted;  // null: nothing
  int64_t base_row_id = 0;
  int64_t row_commit_version = 0;
  size_t change = 0;                           // change feed: of all rows
  std::shared_ptr<const ChangedRows> changed;  // null: all rows
};

struct FileSet {
  std::vector<ScanFile> files;
  std::shared_ptr<const Feed> feed;
};

using FileSets = Registry<FileSet>;

// Makes the functions known to the connection's database.
Status register_file_functions(duckdb_connection connection, const std::shared_ptr<FileSets>& sets);

}  // namespace strandline::duck
