// One update of a pipeline at a time.
#pragma once

#include <strandline/result.h>

#include <memory>
#include <string>

#include "catalog/warehouse.h"

namespace strandline::pipeline {

// Holds an advisory lock on a file until it is destroyed or the process ends, however it ends.
class FileLock {
 public:
  // Creates the file if needed; its folder must exist. Does not wait.
  // Errors: kBusy "PIPELINE_BUSY" when another process or thread holds it, kIo.
  static Result<std::unique_ptr<FileLock>> acquire(const std::string& path,
                                                   const std::string& pipeline);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  explicit FileLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

// The lock of a pipeline of this warehouse, whose folder is made if it is not there.
// Errors: PIPELINE_BUSY, WAREHOUSE_NOT_WRITABLE.
Result<std::unique_ptr<FileLock>> lock_pipeline(catalog::Warehouse& warehouse,
                                                const std::string& pipeline);

}  // namespace strandline::pipeline
