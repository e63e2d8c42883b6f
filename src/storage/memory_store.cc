#include <map>
#include <mutex>
#include <set>

#include "base/clock.h"
#include "base/error.h"
#include "storage/store.h"

namespace strandline::storage {

namespace {

class MemoryStore : public Store {
 public:
  Result<std::string> read(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    const auto file = files_.find(path);
    if (file == files_.end()) return missing(path);
    return file->second.bytes;
  }

  Result<std::string> read_range(const std::string& path, int64_t offset, int64_t length) override {
    const std::lock_guard lock(mutex_);
    const auto file = files_.find(path);
    if (file == files_.end()) return missing(path);
    const auto size = static_cast<int64_t>(file->second.bytes.size());
    if (offset < 0 || length < 0 || offset > size || length > size - offset) {
      return corrupt("FILE_TOO_SHORT", "{} has {} bytes, but bytes {} to {} are needed", path, size,
                     offset, offset + length);
    }
    return file->second.bytes.substr(static_cast<size_t>(offset), static_cast<size_t>(length));
  }

  Result<std::vector<FileInfo>> list(const std::string& directory) override {
    const std::lock_guard lock(mutex_);
    const std::string prefix = directory.ends_with('/') ? directory : directory + "/";
    if (!is_directory(prefix)) return missing(directory);
    std::map<std::string, FileInfo> found;
    const auto add_directory = [&](const std::string& below) {
      const std::string child = below.substr(0, below.find('/', prefix.size()));
      found.emplace(child, FileInfo{child, 0, 0, true});
    };
    for (auto it = directories_.lower_bound(prefix);
         it != directories_.end() && it->starts_with(prefix); ++it) {
      if (it->size() > prefix.size()) add_directory(*it);
    }
    for (auto it = files_.lower_bound(prefix); it != files_.end() && it->first.starts_with(prefix);
         ++it) {
      if (it->first.find('/', prefix.size()) != std::string::npos) {
        add_directory(it->first);
      } else {
        found.emplace(it->first, info(it->first, it->second));
      }
    }
    std::vector<FileInfo> result;
    result.reserve(found.size());
    for (auto& [path, file] : found) result.push_back(std::move(file));
    return result;
  }

  Result<FileInfo> stat(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    if (const auto file = files_.find(path); file != files_.end()) return info(path, file->second);
    if (is_directory(path + "/")) return FileInfo{path, 0, 0, true};
    return missing(path);
  }

  Status put_if_absent(const std::string& path, const std::string& bytes) override {
    const std::lock_guard lock(mutex_);
    if (files_.count(path) > 0) {
      return already_exists("FILE_ALREADY_EXISTS", "cannot create {}: it exists", path);
    }
    files_[path] = {bytes, now_ms()};
    return {};
  }

  Status put(const std::string& path, const std::string& bytes) override {
    const std::lock_guard lock(mutex_);
    files_[path] = {bytes, now_ms()};
    return {};
  }

  Status rename(const std::string& from, const std::string& to) override {
    const std::lock_guard lock(mutex_);
    const auto file = files_.find(from);
    if (file != files_.end()) {
      File moved = std::move(file->second);
      files_.erase(file);
      files_[to] = std::move(moved);
      return {};
    }
    // A directory: what lies below it.
    std::map<std::string, File> moved;
    const std::string prefix = from + "/";
    std::set<std::string> directories;
    for (auto below = directories_.lower_bound(prefix);
         below != directories_.end() && below->starts_with(prefix);) {
      directories.insert(to + below->substr(from.size()));
      below = directories_.erase(below);
    }
    const bool found = !directories.empty();
    directories_.merge(directories);
    for (auto below = files_.lower_bound(prefix);
         below != files_.end() && below->first.starts_with(prefix);) {
      moved[to + below->first.substr(from.size())] = std::move(below->second);
      below = files_.erase(below);
    }
    if (moved.empty() && !found) return missing(from);
    files_.merge(moved);
    return {};
  }

  Status remove(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    files_.erase(path);
    return {};
  }

  Status remove_tree(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    files_.erase(path);
    const std::string prefix = path + "/";
    std::erase_if(files_, [&](const auto& file) { return file.first.starts_with(prefix); });
    std::erase_if(directories_,
                  [&](const auto& directory) { return directory.starts_with(prefix); });
    return {};
  }

  Result<bool> remove_if_empty(const std::string& directory) override {
    const std::lock_guard lock(mutex_);
    const std::string prefix = directory + "/";
    const auto file = files_.lower_bound(prefix);
    if (file != files_.end() && file->first.starts_with(prefix)) return false;
    const auto below = directories_.upper_bound(prefix);
    if (below != directories_.end() && below->starts_with(prefix)) return false;
    return directories_.erase(prefix) > 0;
  }

  Status make_directories(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    directories_.insert(path + "/");
    return {};
  }

  Status before_external_write(const std::string&) override { return {}; }
  Status after_external_write(const std::string&) override { return {}; }

 private:
  struct File {
    std::string bytes;
    int64_t modified_ms = 0;
  };

  static Error missing(const std::string& path) {
    return not_found("FILE_NOT_FOUND", "cannot open {}: no such file or directory", path);
  }

  static FileInfo info(const std::string& path, const File& file) {
    return {path, static_cast<int64_t>(file.bytes.size()), file.modified_ms, false};
  }

  // prefix ends with '/'.
  bool is_directory(const std::string& prefix) const {
    const auto directory = directories_.lower_bound(prefix);
    if (directory != directories_.end() && directory->starts_with(prefix)) return true;
    const auto file = files_.lower_bound(prefix);
    return file != files_.end() && file->first.starts_with(prefix);
  }

  std::mutex mutex_;
  std::map<std::string, File> files_;
  std::set<std::string> directories_;  // each ends with '/'
};

}  // namespace

std::shared_ptr<Store> make_memory_store() { return std::make_shared<MemoryStore>(); }

}  // namespace strandline::storage
