// The SQL function by which row ids leave a scan:
//   sl_take_row_id(set, file_index, row, id, version)  BOOLEAN  notes a row; false
// id and version are the file's own, null where the row has the file's default.
#pragma once

#include <duckdb.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "duck/registry.h"
#include "duck/row_ids.h"

namespace strandline::duck {

// Takes the ids of some files from many threads.
class RowIdCollector {
 public:
  // What rows have where their file does not say.
  struct Defaults {
    int64_t base_row_id = 0;
    int64_t row_commit_version = 0;
  };
  // Of each file: all rows, or some of them.
  enum class Rows { kAll, kSome };
  // files: one for each.
  RowIdCollector(std::vector<Defaults> files, Rows rows, size_t max_runs);

  size_t file_count() const { return defaults_.size(); }
  const Defaults& defaults(size_t file) const { return defaults_[file]; }
  // Some rows of one file.
  void take(size_t file, const std::vector<IdRun>& runs) const;
  void give_up(size_t file) const;
  // Once all are there. Null for a file that was given up, as one too many is.
  std::shared_ptr<const RowIds> finish(size_t file) const;

 private:
  struct File {
    std::mutex mutex;
    std::atomic<bool> is_given_up = false;
    std::vector<std::vector<IdRun>> pieces;  // in any order, each of rows that follow each other
    size_t run_count = 0;
    VersionRange versions;
  };
  const std::vector<Defaults> defaults_;
  const Rows rows_;
  const size_t max_runs_;
  mutable std::atomic<size_t> run_count_ = 0;
  std::unique_ptr<File[]> files_;
};

using RowIdCollectors = Registry<RowIdCollector>;

Status register_row_id_function(duckdb_connection connection,
                                const std::shared_ptr<RowIdCollectors>& collectors);

}  // namespace strandline::duck
