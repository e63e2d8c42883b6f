// One update of a pipeline at a time.
#pragma once

#include <strandline/result.h>

#include <memory>
#include <string>

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

}  // namespace strandline::pipeline
