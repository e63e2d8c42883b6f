#include "pipeline/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace strandline::pipeline {
namespace {

// A lock on a file that was removed since, with its folder, keeps nobody else out.
bool is_still_there(int descriptor, const std::string& path) {
  struct stat ours = {};
  struct stat there = {};
  return ::fstat(descriptor, &ours) == 0 && ::stat(path.c_str(), &there) == 0 &&
         ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

}  // namespace

Result<std::unique_ptr<FileLock>> FileLock::acquire(const std::string& path,
                                                    const std::string& pipeline) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0) {
    return io_error("WAREHOUSE_NOT_WRITABLE",
                    "cannot write '{}': {}: check the rights and the space of the warehouse", path,
                    std::strerror(errno));
  }
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    const int reason = errno;
    ::close(descriptor);
    if (reason == EWOULDBLOCK) {
      return busy("PIPELINE_BUSY",
                  "another update of pipeline '{}' is running: wait until it is done", pipeline);
    }
    return io_error("LOCK_FAILED", "cannot lock '{}': {}", path, std::strerror(reason));
  }
  if (!is_still_there(descriptor, path)) {
    ::close(descriptor);
    return busy("PIPELINE_BUSY",
                "pipeline '{}' was dropped by another process in this moment: try again", pipeline);
  }
  return std::unique_ptr<FileLock>(new FileLock(descriptor));
}

FileLock::~FileLock() { ::close(descriptor_); }

Result<std::unique_ptr<FileLock>> lock_pipeline(catalog::Warehouse& warehouse,
                                                const std::string& pipeline) {
  const std::string folder = warehouse.pipeline_directory(pipeline);
  auto made = warehouse.prepare();
  if (made.ok()) made = warehouse.store()->make_directories(folder);
  if (!made.ok()) {
    if (made.error().kind != ErrorKind::kIo) return made.error();
    return io_error("WAREHOUSE_NOT_WRITABLE", "warehouse '{}' cannot be written: {}",
                    warehouse.root(), made.error().message);
  }
  return FileLock::acquire(folder + "/lock", pipeline);
}

}  // namespace strandline::pipeline
