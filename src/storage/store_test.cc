#include "storage/store.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "base/ids.h"
#include "storage/temporary_name.h"

namespace strandline::storage {
namespace {

// Every store behaves the same; the parameter chooses it.
class Stores : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    root_ = (std::filesystem::temp_directory_path() / ("store_test_" + new_uuid())).string();
    store_ = GetParam() ? make_local_store() : make_memory_store();
    ASSERT_TRUE(store_->make_directories(root_ + "/a/b").ok());
  }
  void TearDown() override { EXPECT_TRUE(store_->remove_tree(root_).ok()); }

  std::vector<std::string> names(const std::string& directory) {
    std::vector<std::string> result;
    const auto listed = store_->list(directory);
    for (const FileInfo& file : *listed) {
      result.push_back(file.path.substr(directory.size() + 1) + (file.is_directory ? "/" : ""));
    }
    return result;
  }

  std::string root_;
  std::shared_ptr<Store> store_;
};

INSTANTIATE_TEST_SUITE_P(All, Stores, ::testing::Bool(),
                         [](const auto& store) { return store.param ? "Local" : "Memory"; });

TEST_P(Stores, OnlyEmptyDirectoriesAreRemoved) {
  EXPECT_FALSE(store_->remove_if_empty(root_ + "/a").value());
  EXPECT_TRUE(store_->remove_if_empty(root_ + "/a/b").value());
  ASSERT_TRUE(store_->put(root_ + "/a/x", "x").ok());
  EXPECT_FALSE(store_->remove_if_empty(root_ + "/a").value());
  EXPECT_EQ(names(root_ + "/a"), (std::vector<std::string>{"x"}));
  EXPECT_FALSE(store_->remove_if_empty(root_ + "/nothing").value());
}

TEST_P(Stores, PutReadListRemove) {
  ASSERT_TRUE(store_->put(root_ + "/a/y", "hello").ok());
  ASSERT_TRUE(store_->put(root_ + "/a/x", std::string("\0\n", 2)).ok());
  ASSERT_TRUE(store_->put(root_ + "/a/y", "world!").ok());
  EXPECT_EQ(store_->read(root_ + "/a/y").value(), "world!");
  EXPECT_EQ(store_->read_range(root_ + "/a/y", 2, 3).value(), "rld");
  EXPECT_EQ(store_->read_range(root_ + "/a/y", 2, 5).error().kind, ErrorKind::kCorrupt);
  EXPECT_EQ(names(root_ + "/a"), (std::vector<std::string>{"b/", "x", "y"}));
  EXPECT_EQ(store_->stat(root_ + "/a/y")->size_bytes, 6);
  EXPECT_GT(store_->stat(root_ + "/a/y")->modified_ms, 1'600'000'000'000);
  EXPECT_TRUE(store_->stat(root_ + "/a")->is_directory);
  ASSERT_TRUE(store_->rename(root_ + "/a/y", root_ + "/a/x").ok());
  EXPECT_EQ(store_->read(root_ + "/a/x").value(), "world!");
  ASSERT_TRUE(store_->remove(root_ + "/a/x").ok());
  ASSERT_TRUE(store_->remove(root_ + "/a/x").ok());
  EXPECT_EQ(names(root_ + "/a"), (std::vector<std::string>{"b/"}));
  ASSERT_TRUE(store_->remove_tree(root_ + "/a").ok());
  EXPECT_EQ(store_->list(root_ + "/a").error().kind, ErrorKind::kNotFound);
}

TEST_P(Stores, MissingFilesAreNotFound) {
  EXPECT_EQ(store_->read(root_ + "/none").error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(store_->read_range(root_ + "/none", 0, 1).error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(store_->stat(root_ + "/none").error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(store_->list(root_ + "/none").error().kind, ErrorKind::kNotFound);
}

TEST_P(Stores, PutIfAbsentHasOneWinnerAmongThreads) {
  for (int round = 0; round < 20; ++round) {
    const std::string path = root_ + "/race" + std::to_string(round);
    std::atomic<int> wins = 0;
    std::atomic<int> losses = 0;
    std::vector<std::thread> threads;
    threads.reserve(4);
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        const Status put =
            store_->put_if_absent(path, std::string(1000, static_cast<char>('a' + i)));
        if (put.ok()) ++wins;
        if (!put.ok() && put.error().kind == ErrorKind::kAlreadyExists) ++losses;
      });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wins, 1);
    EXPECT_EQ(losses, 3);
    const std::string bytes = store_->read(path).value();
    EXPECT_EQ(bytes, std::string(1000, bytes[0]));
  }
  for (const std::string& name : names(root_)) EXPECT_FALSE(name.starts_with('.')) << name;
}

TEST(LocalStore, PutIfAbsentHasOneWinnerAmongProcesses) {
  const std::string root =
      (std::filesystem::temp_directory_path() / ("store_test_" + new_uuid())).string();
  const auto store = make_local_store();
  ASSERT_TRUE(store->make_directories(root).ok());
  constexpr int kFiles = 50;
  const auto take = [&] {
    int wins = 0;
    for (int i = 0; i < kFiles; ++i) {
      if (store->put_if_absent(root + "/" + std::to_string(i), "x").ok()) ++wins;
    }
    return wins;
  };
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(take());
  const int wins = take();
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(wins + WEXITSTATUS(status), kFiles);
  EXPECT_TRUE(store->remove_tree(root).ok());
}

TEST(FaultStore, FailsAtTheChosenCall) {
  const auto inner = make_memory_store();
  const auto store = FaultStore::wrap(inner);
  store->arm(2, FaultMode::kError);
  EXPECT_TRUE(store->put("/a", "1").ok());
  EXPECT_EQ(store->put("/b", "1").error().kind, ErrorKind::kIo);
  EXPECT_FALSE(inner->read("/b").ok());
  EXPECT_TRUE(store->put("/b", "1").ok());
  EXPECT_EQ(store->mutating_calls(), 3);

  store->arm(1, FaultMode::kErrorAfter);
  EXPECT_EQ(store->put_if_absent("/c", "1").error().kind, ErrorKind::kIo);
  EXPECT_TRUE(inner->read("/c").ok());
  EXPECT_TRUE(store->read("/c").ok());

  store->arm(1, FaultMode::kStop);
  EXPECT_TRUE(store->read("/c").ok());
  EXPECT_EQ(store->remove("/c").error().kind, ErrorKind::kCancelled);
  EXPECT_EQ(store->read("/c").error().kind, ErrorKind::kCancelled);
  EXPECT_TRUE(inner->read("/c").ok());

  store->arm(0, FaultMode::kError);
  EXPECT_TRUE(store->remove("/c").ok());
}

TEST(TemporaryNames, AreKnown) {
  for (const std::string path : {"/a/b.json", "/a/.x", "/x"}) {
    const std::string temporary = temporary_path(path);
    const size_t slash = path.rfind('/');
    EXPECT_EQ(temporary.substr(0, slash + 1), path.substr(0, slash + 1));
    EXPECT_TRUE(is_temporary_name(temporary.substr(slash + 1))) << temporary;
    EXPECT_NE(temporary, temporary_path(path));
  }
  EXPECT_FALSE(is_temporary_name(".tmp"));
  EXPECT_FALSE(is_temporary_name(""));
}

}  // namespace
}  // namespace strandline::storage
