#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "storage/store.h"
#include "storage/temporary_name.h"

namespace strandline::storage {

namespace {

bool is_write(const std::string& doing) {
  return doing == "create" || doing == "write" || doing == "remove" || doing == "sync";
}

Error os_error(int error_number, const std::string& doing, const std::string& path) {
  const std::string why = std::generic_category().message(error_number);
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      return not_found("FILE_NOT_FOUND", "cannot {} {}: {}", doing, path, why);
    case EEXIST:
      return already_exists("FILE_ALREADY_EXISTS", "cannot {} {}: {}", doing, path, why);
    case ENOSPC:
    case EDQUOT:
      return io_error("DISK_FULL", "cannot {} {}: {}; free some space and run again", doing, path,
                      why);
    case EFBIG:
      return io_error("FILE_TOO_LARGE",
                      "cannot {} {}: {}; raise the limit of file sizes (ulimit -f) and run again",
                      doing, path, why);
    case EACCES:
    case EPERM:
    case EROFS:
      return io_error(is_write(doing) ? "WAREHOUSE_NOT_WRITABLE" : "PERMISSION_DENIED",
                      "cannot {} {}: {}; check the rights of the folder", doing, path, why);
    default:
      return io_error("IO_ERROR", "cannot {} {}: {}", doing, path, why);
  }
}

// An open file descriptor, closed with the object.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }

 private:
  int fd_;
};

std::string parent_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos || slash == 0 ? "/" : path.substr(0, slash);
}

Status sync_path(const std::string& path, int flags) {
  const Descriptor file(open(path.c_str(), flags | O_CLOEXEC));
  if (!file.ok()) return os_error(errno, "open", path);
  if (fsync(file.get()) != 0) return os_error(errno, "sync", path);
  return {};
}

Status sync_directory(const std::string& path) { return sync_path(path, O_RDONLY | O_DIRECTORY); }

Status write_all(int fd, const std::string& path, const std::string& bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = write(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0) {
      if (errno == EINTR) continue;
      return os_error(errno, "write", path);
    }
    done += static_cast<size_t>(n);
  }
  return {};
}

FileInfo info_of(std::string path, const struct stat& status) {
  FileInfo info;
  info.path = std::move(path);
  info.is_directory = S_ISDIR(status.st_mode);
  info.size_bytes = info.is_directory ? 0 : status.st_size;
  info.modified_ms =
      static_cast<int64_t>(status.st_mtim.tv_sec) * 1000 + status.st_mtim.tv_nsec / 1'000'000;
  return info;
}

class LocalStore : public Store {
 public:
  Result<std::string> read(const std::string& path) override {
    const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.ok()) return os_error(errno, "open", path);
    struct stat status{};
    if (fstat(file.get(), &status) != 0) return os_error(errno, "read", path);
    if (S_ISDIR(status.st_mode))
      return io_error("IO_ERROR", "cannot read {}: it is a directory", path);
    std::string bytes(static_cast<size_t>(status.st_size), '\0');
    size_t done = 0;
    // One byte more than expected notices a file that grew.
    for (;;) {
      if (done == bytes.size())
        bytes.resize(bytes.size() + std::max<size_t>(4096, bytes.size() / 8));
      const ssize_t n = ::read(file.get(), bytes.data() + done, bytes.size() - done);
      if (n < 0) {
        if (errno == EINTR) continue;
        return os_error(errno, "read", path);
      }
      if (n == 0) break;
      done += static_cast<size_t>(n);
    }
    bytes.resize(done);
    return bytes;
  }

  Result<std::string> read_range(const std::string& path, int64_t offset, int64_t length) override {
    const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.ok()) return os_error(errno, "open", path);
    struct stat status{};
    if (fstat(file.get(), &status) != 0) return os_error(errno, "read", path);
    if (offset < 0 || length < 0 || offset > status.st_size || length > status.st_size - offset) {
      return corrupt("FILE_TOO_SHORT", "{} has {} bytes, but bytes {} to {} are needed", path,
                     status.st_size, offset, offset + length);
    }
    std::string bytes(static_cast<size_t>(length), '\0');
    size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t n = pread(file.get(), bytes.data() + done, bytes.size() - done,
                              offset + static_cast<int64_t>(done));
      if (n < 0) {
        if (errno == EINTR) continue;
        return os_error(errno, "read", path);
      }
      if (n == 0) return corrupt("FILE_TOO_SHORT", "{} became shorter while being read", path);
      done += static_cast<size_t>(n);
    }
    return bytes;
  }

  Result<std::vector<FileInfo>> list(const std::string& directory) override {
    DIR* const dir = opendir(directory.c_str());
    if (dir == nullptr) return os_error(errno, "list", directory);
    const std::string prefix = directory.ends_with('/') ? directory : directory + "/";
    std::vector<FileInfo> found;
    int error = 0;
    for (;;) {
      errno = 0;
      const dirent* const entry = readdir(dir);
      if (entry == nullptr) {
        error = errno;
        break;
      }
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      struct stat status{};
      const auto look = [&](int flags) {
        return fstatat(dirfd(dir), entry->d_name, &status, flags) == 0;
      };
      bool is_link = false;
      bool seen = look(AT_SYMLINK_NOFOLLOW);
      if (seen && S_ISLNK(status.st_mode)) {
        is_link = true;
        seen = look(0);
      }
      if (!seen) {
        // Gone since it was listed, or a dangling link.
        if (errno == ENOENT) continue;
        error = errno;
        break;
      }
      // Opening a pipe or a device would wait for ever.
      if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) continue;
      found.push_back(info_of(prefix + name, status));
      found.back().is_link = is_link;
    }
    closedir(dir);
    if (error != 0) return os_error(error, "list", directory);
    std::sort(found.begin(), found.end(),
              [](const FileInfo& a, const FileInfo& b) { return a.path < b.path; });
    return found;
  }

  Result<FileInfo> stat(const std::string& path) override {
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) return os_error(errno, "look at", path);
    if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
      return io_error("IO_ERROR", "cannot read {}: it is neither a file nor a directory", path);
    }
    return info_of(path, status);
  }

  Status put_if_absent(const std::string& path, const std::string& bytes) override {
    std::string temporary;
    SL_TRY(write_temporary(path, bytes, &temporary));
    // link() refuses an existing name, which rename() would replace.
    const int linked = link(temporary.c_str(), path.c_str());
    const int error = errno;
    unlink(temporary.c_str());
    if (linked != 0) return os_error(error, "create", path);
    return sync_directory(parent_of(path));
  }

  Status put(const std::string& path, const std::string& bytes) override {
    std::string temporary;
    SL_TRY(write_temporary(path, bytes, &temporary));
    Status moved = rename(temporary, path);
    if (!moved.ok()) unlink(temporary.c_str());
    return moved;
  }

  Status rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) return os_error(errno, "write", to);
    if (parent_of(from) != parent_of(to)) SL_TRY(sync_directory(parent_of(from)));
    return sync_directory(parent_of(to));
  }

  Status remove(const std::string& path) override {
    if (unlink(path.c_str()) != 0 && errno != ENOENT && errno != ENOTDIR)
      return os_error(errno, "remove", path);
    return {};
  }

  Status remove_tree(const std::string& path) override {
    std::error_code error;
    // What another process removes at the same time is gone, as it should be.
    constexpr int kAttempts = 100;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      std::filesystem::remove_all(path, error);
      if (error != std::errc::no_such_file_or_directory) break;
    }
    if (error) return os_error(error.value(), "remove", path);
    return {};
  }

  Result<bool> remove_if_empty(const std::string& directory) override {
    if (rmdir(directory.c_str()) == 0) return true;
    if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOENT) return false;
    return os_error(errno, "remove", directory);
  }

  Status make_directories(const std::string& path) override {
    // Each new name is made durable in its parent.
    std::vector<std::string> missing;
    std::string at = path;
    while (at.size() > 1 && at.ends_with('/')) at.pop_back();
    struct stat status{};
    while (at != "/" && ::stat(at.c_str(), &status) != 0) {
      if (errno != ENOENT) return os_error(errno, "create", path);
      missing.push_back(at);
      at = parent_of(at);
    }
    if (at != "/" && !S_ISDIR(status.st_mode)) {
      return already_exists("FILE_ALREADY_EXISTS", "cannot create {}: {} is a file", path, at);
    }
    for (auto it = missing.rbegin(); it != missing.rend(); ++it) {
      if (mkdir(it->c_str(), 0777) != 0 && errno != EEXIST) return os_error(errno, "create", *it);
      SL_TRY(sync_directory(parent_of(*it)));
    }
    return {};
  }

  Status before_external_write(const std::string&) override { return {}; }

  Status after_external_write(const std::string& path) override {
    SL_TRY(sync_path(path, O_RDONLY));
    return sync_directory(parent_of(path));
  }

 private:
  // A complete, durable file under a hidden name beside path.
  static Status write_temporary(const std::string& path, const std::string& bytes,
                                std::string* temporary) {
    *temporary = temporary_path(path);
    const Descriptor file(open(temporary->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!file.ok()) return os_error(errno, "create", path);
    Status written = write_all(file.get(), path, bytes);
    if (written.ok() && fsync(file.get()) != 0) written = os_error(errno, "sync", path);
    if (!written.ok()) unlink(temporary->c_str());
    return written;
  }
};

}  // namespace

std::shared_ptr<Store> make_local_store() { return std::make_shared<LocalStore>(); }

}  // namespace strandline::storage
