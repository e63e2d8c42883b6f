#include "pipeline/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace strandline::pipeline {

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
  return std::unique_ptr<FileLock>(new FileLock(descriptor));
}

FileLock::~FileLock() { ::close(descriptor_); }

}  // namespace strandline::pipeline
