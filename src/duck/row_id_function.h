// The SQL function by which row ids leave a scan:
//   sl_take_row_id(set, file, row, id, version)  BOOLEAN  notes a row; always false
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
  RowIdCollector(size_t file_count, size_t max_runs);

  // Some rows of one file.
  void take(size_t file, std::vector<IdRun> runs) const;
  void give_up(size_t file) const;
  // Once all are there. Null for a file that was given up, as one too many is.
  std::shared_ptr<const RowIds> finish(size_t file) const;

 private:
  struct File {
    std::mutex mutex;
    std::atomic<bool> is_given_up = false;
    std::vector<std::vector<IdRun>> pieces;
    size_t run_count = 0;
  };
  const size_t max_runs_;
  mutable std::atomic<size_t> run_count_ = 0;
  std::unique_ptr<File[]> files_;
};

using RowIdCollectors = Registry<RowIdCollector>;

Status register_row_id_function(duckdb_connection connection,
                                const std::shared_ptr<RowIdCollectors>& collectors);

}  // namespace strandline::duck
