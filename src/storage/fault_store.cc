#include <mutex>

#include "base/error.h"
#include "storage/store.h"

namespace strandline::storage {

namespace {

class WrappingFaultStore : public FaultStore {
 public:
  explicit WrappingFaultStore(std::shared_ptr<Store> inner) : inner_(std::move(inner)) {}

  void arm(int fail_at, FaultMode mode) override {
    const std::lock_guard lock(mutex_);
    fail_at_ = fail_at;
    mode_ = mode;
    calls_ = 0;
    stopped_ = false;
  }

  int mutating_calls() const override {
    const std::lock_guard lock(mutex_);
    return calls_;
  }

  Result<std::string> read(const std::string& path) override {
    SL_TRY(check_running());
    return inner_->read(path);
  }
  Result<std::string> read_range(const std::string& path, int64_t offset, int64_t length) override {
    SL_TRY(check_running());
    return inner_->read_range(path, offset, length);
  }
  Result<std::vector<FileInfo>> list(const std::string& directory) override {
    SL_TRY(check_running());
    return inner_->list(directory);
  }
  Result<FileInfo> stat(const std::string& path) override {
    SL_TRY(check_running());
    return inner_->stat(path);
  }

  Status put_if_absent(const std::string& path, const std::string& bytes) override {
    return mutate(path, [&] { return inner_->put_if_absent(path, bytes); });
  }
  Status put(const std::string& path, const std::string& bytes) override {
    return mutate(path, [&] { return inner_->put(path, bytes); });
  }
  Status rename(const std::string& from, const std::string& to) override {
    return mutate(to, [&] { return inner_->rename(from, to); });
  }
  Status remove(const std::string& path) override {
    return mutate(path, [&] { return inner_->remove(path); });
  }
  Status remove_tree(const std::string& path) override {
    return mutate(path, [&] { return inner_->remove_tree(path); });
  }
  Result<bool> remove_if_empty(const std::string& directory) override {
    bool removed = false;
    SL_TRY(mutate(directory, [&]() -> Status {
      SL_ASSIGN(removed, inner_->remove_if_empty(directory));
      return {};
    }));
    return removed;
  }
  Status make_directories(const std::string& path) override {
    return mutate(path, [&] { return inner_->make_directories(path); });
  }
  Status before_external_write(const std::string& path) override {
    return mutate(path, [&] { return inner_->before_external_write(path); });
  }
  Status after_external_write(const std::string& path) override {
    return mutate(path, [&] { return inner_->after_external_write(path); });
  }

 private:
  static Error stopped() { return cancelled("FAULT_STOPPED", "the store is stopped by a test"); }

  Status check_running() {
    const std::lock_guard lock(mutex_);
    if (stopped_) return stopped();
    return {};
  }

  Status mutate(const std::string& path, const std::function<Status()>& call) {
    bool fails = false;
    FaultMode mode = FaultMode::kError;
    {
      const std::lock_guard lock(mutex_);
      if (stopped_) return stopped();
      ++calls_;
      fails = calls_ == fail_at_;
      mode = mode_;
      if (fails && mode == FaultMode::kStop) {
        stopped_ = true;
        return stopped();
      }
    }
    const Error injected = io_error("FAULT_INJECTED", "injected failure at {}", path);
    if (fails && mode == FaultMode::kError) return injected;
    Status done = call();
    if (fails && done.ok()) return injected;
    return done;
  }

  std::shared_ptr<Store> inner_;
  mutable std::mutex mutex_;
  int fail_at_ = 0;
  FaultMode mode_ = FaultMode::kError;
  int calls_ = 0;
  bool stopped_ = false;
};

}  // namespace

std::shared_ptr<FaultStore> FaultStore::wrap(std::shared_ptr<Store> inner) {
  return std::make_shared<WrappingFaultStore>(std::move(inner));
}

}  // namespace strandline::storage
