// Store: the only way to the disk for everything but Parquet bytes, which DuckDB reads and writes.
//
// Paths are absolute and use '/'. Implementations: LocalStore (POSIX), MemoryStore (tests),
// FaultStore (fails or stops at the n-th mutating call, wraps another store). Thread-safe.
#pragma once

#include <strandline/result.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace strandline::storage {

struct FileInfo {
  std::string path;  // absolute
  int64_t size_bytes = 0;
  int64_t modified_ms = 0;  // since the epoch, UTC
  bool is_directory = false;
  bool is_link = false;  // a symbolic link; the other members tell of what it leads to
};

class Store {
 public:
  virtual ~Store() = default;

  // The whole file. Errors: kNotFound, kIo.
  virtual Result<std::string> read(const std::string& path) = 0;
  // length bytes at offset; fewer is kCorrupt. Errors: kNotFound, kIo, kCorrupt.
  virtual Result<std::string> read_range(const std::string& path, int64_t offset,
                                         int64_t length) = 0;
  // Direct children of a directory, sorted by name: regular files and directories, pipes and
  // devices are left out. A missing directory is kNotFound.
  virtual Result<std::vector<FileInfo>> list(const std::string& directory) = 0;
  virtual Result<FileInfo> stat(const std::string& path) = 0;
  // Creates the file with these bytes unless the name exists (kAlreadyExists). Durable and never
  // visible in part (delta-protocol.md 1.2: hidden temporary, fsync, link, fsync directory).
  virtual Status put_if_absent(const std::string& path, const std::string& bytes) = 0;
  // Replaces the file as one step, durably.
  virtual Status put(const std::string& path, const std::string& bytes) = 0;
  // Moves a file over whatever `to` is, or a directory to a name that is free, as one step,
  // durably.
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  // Missing is fine.
  virtual Status remove(const std::string& path) = 0;
  // Removes a directory and all below it; missing is fine.
  virtual Status remove_tree(const std::string& path) = 0;
  // Removes a directory that holds nothing; false for one that holds something or is not there.
  virtual Result<bool> remove_if_empty(const std::string& directory) = 0;
  virtual Status make_directories(const std::string& path) = 0;
  // Called before and after DuckDB writes a file at path (fault injection, fsync of the result).
  virtual Status before_external_write(const std::string& path) = 0;
  virtual Status after_external_write(const std::string& path) = 0;
};

std::shared_ptr<Store> make_local_store();
std::shared_ptr<Store> make_memory_store();

// What the n-th mutating call does.
enum class FaultMode {
  kError,       // returns kIo and has no effect
  kErrorAfter,  // has its effect, then returns kIo ("unknown outcome")
  kStop,        // this and every later call, reads too, returns kCancelled: as if the process died
};

class FaultStore : public Store {
 public:
  // fail_at counts mutating calls from 1; 0 never fails.
  static std::shared_ptr<FaultStore> wrap(std::shared_ptr<Store> inner);
  virtual void arm(int fail_at, FaultMode mode) = 0;
  virtual int mutating_calls() const = 0;
};

}  // namespace strandline::storage
