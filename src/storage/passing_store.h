// A store that passes every call on to another: the base of stores that change a few of them.
#pragma once

#include <utility>

#include "storage/store.h"

namespace strandline::storage {

class PassingStore : public Store {
 public:
  explicit PassingStore(std::shared_ptr<Store> inner) : inner_(std::move(inner)) {}

  Result<std::string> read(const std::string& path) override { return inner_->read(path); }
  Result<std::string> read_range(const std::string& path, int64_t offset, int64_t length) override {
    return inner_->read_range(path, offset, length);
  }
  Result<std::vector<FileInfo>> list(const std::string& directory) override {
    return inner_->list(directory);
  }
  Result<FileInfo> stat(const std::string& path) override { return inner_->stat(path); }
  Status put_if_absent(const std::string& path, const std::string& bytes) override {
    return inner_->put_if_absent(path, bytes);
  }
  Status put(const std::string& path, const std::string& bytes) override {
    return inner_->put(path, bytes);
  }
  Status rename(const std::string& from, const std::string& to) override {
    return inner_->rename(from, to);
  }
  Status remove(const std::string& path) override { return inner_->remove(path); }
  Status remove_tree(const std::string& path) override { return inner_->remove_tree(path); }
  Result<bool> remove_if_empty(const std::string& directory) override {
    return inner_->remove_if_empty(directory);
  }
  Status make_directories(const std::string& path) override {
    return inner_->make_directories(path);
  }
  Status before_external_write(const std::string& path) override {
    return inner_->before_external_write(path);
  }
  Status after_external_write(const std::string& path) override {
    return inner_->after_external_write(path);
  }

 protected:
  std::shared_ptr<Store> inner_;
};

}  // namespace strandline::storage
