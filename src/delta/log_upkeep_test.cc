// Checkpoints, their removal with the log's expired part, and faults in the midst of both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/clock.h"
#include "base/json.h"
#include "delta/checkpoint.h"
#include "delta/log_cleanup.h"
#include "delta/test_support.h"

namespace strandline::delta {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kDayMs = 86'400'000;

// The live files of each version, as the commits below make them.
std::vector<std::string> expected_files(Version version) {
  std::vector<std::string> files;
  for (Version v = std::max<Version>(1, version - 1); v <= version; ++v)
    files.push_back("f" + std::to_string(v));
  return files;
}

class LogUpkeepTest : public ::testing::Test {
 protected:
  void create(std::map<std::string, std::string> properties) {
    store_ = storage::make_memory_store();
    table_ = open_table(store_);
    Transaction transaction =
        Transaction::create(table_, {two_columns(), {}, {}, std::move(properties), {}}).value();
    ASSERT_TRUE(transaction.commit_or_error().ok());
  }

  // Adds a file and removes the one before the last.
  static Result<Version> commit(const Table& table) {
    SL_ASSIGN(const auto snapshot, table.snapshot());
    SL_ASSIGN(Transaction transaction, Transaction::begin(table, snapshot));
    const Version version = snapshot->version + 1;
    transaction.add_file(data_file("f" + std::to_string(version)));
    if (snapshot->files.size() == 2) {
      const auto oldest = std::min_element(
          snapshot->files.begin(), snapshot->files.end(), [](const AddFile& a, const AddFile& b) {
            return std::stoi(a.path.substr(1)) < std::stoi(b.path.substr(1));
          });
      transaction.remove_file(*oldest);
    }
    return transaction.commit_or_error();
  }
  void commit_up_to(Version version) {
    while (table_.latest_version().value() < version) ASSERT_TRUE(commit(table_).ok());
  }

  // Makes commits ones of long ago, in files of today.
  void backdate_up_to(Version last) {
    for (Version version = 0; version <= last; ++version) {
      const std::string path = commit_path("/t", version);
      std::string text = store_->read(path).value();
      const std::string key = "\"inCommitTimestamp\":";
      ASSERT_NE(text.find(key), std::string::npos);
      const size_t at = text.find(key) + key.size();
      text.replace(at, text.find_first_of(",}", at) - at, std::to_string(1000 + version));
      ASSERT_TRUE(store_->put(path, text).ok());
    }
  }

  static std::vector<std::string> files(const Table& table, Version version) {
    const auto snapshot = table.snapshot(version);
    if (!snapshot.ok()) return {snapshot.error().code + ": " + snapshot.error().message};
    std::vector<std::string> paths;
    for (const AddFile& file : (*snapshot)->files) paths.push_back(file.path);
    std::sort(paths.begin(), paths.end(), [](const std::string& a, const std::string& b) {
      return std::make_pair(a.size(), a) < std::make_pair(b.size(), b);
    });
    return paths;
  }

  // Every version is as it was, or told to be gone; the newest is there.
  void expect_coherent(const Table& table, const std::string& when) {
    const Version latest = table.latest_version().value();
    bool gone = true;
    for (Version version = 0; version <= latest; ++version) {
      const auto snapshot = table.snapshot(version);
      if (gone && !snapshot.ok()) {
        EXPECT_EQ(snapshot.error().kind, ErrorKind::kNotFound)
            << when << ": " << snapshot.error().message;
        EXPECT_THAT(snapshot.error().message, HasSubstr("are kept"));
        continue;
      }
      gone = false;
      EXPECT_EQ(files(table, version), expected_files(version)) << when << ", version " << version;
    }
    EXPECT_FALSE(gone) << when;
  }

  std::vector<std::string> log_names(const std::string& below = "") {
    std::vector<std::string> names;
    const auto listed = store_->list("/t/_delta_log" + below);
    if (!listed.ok()) return {listed.error().message};
    for (const auto& file : *listed) names.push_back(file.path.substr(file.path.rfind('/') + 1));
    return names;
  }

  std::shared_ptr<storage::Store> store_ = storage::make_memory_store();
  Table table_ = open_table(store_);
};

TEST_F(LogUpkeepTest, VersionTwoCheckpoints) {
  create({{"delta.checkpointPolicy", "v2"}, {"delta.checkpointInterval", "3"}});
  commit_up_to(4);
  const auto log = list_log(store_.get(), "/t");
  ASSERT_EQ(log->checkpoints.size(), 1u);
  EXPECT_EQ(log->checkpoints[0].version, 3);
  const std::string path = log->checkpoints[0].paths[0];
  EXPECT_TRUE(path.ends_with(".json"));
  const std::string text = store_->read(path).value();
  EXPECT_THAT(text, HasSubstr(R"({"checkpointMetadata":{"version":3}})"));
  EXPECT_THAT(text, HasSubstr(R"({"sidecar":{"path":")"));
  EXPECT_EQ(text.find("\"add\""), std::string::npos);
  EXPECT_EQ(log_names("/_sidecars").size(), 1u);
  const auto hint = Json::parse(store_->read("/t/_delta_log/_last_checkpoint").value());
  EXPECT_EQ(hint->get("version")->as_int(), 3);
  EXPECT_EQ(hint->get("numOfAddFiles")->as_int(), 2);

  const auto before = table_.tombstones(**table_.snapshot(3)).value();
  for (Version version = 0; version <= 3; ++version)
    ASSERT_TRUE(store_->remove(commit_path("/t", version)).ok());
  EXPECT_EQ(files(table_, 3), expected_files(3));
  EXPECT_EQ(files(table_, 4), expected_files(4));
  const auto after = table_.tombstones(**table_.snapshot(3)).value();
  ASSERT_EQ(after.size(), before.size());
  EXPECT_EQ(after[0].path, before[0].path);

  // A missing sidecar is no empty table.
  ASSERT_TRUE(store_->remove_tree("/t/_delta_log/_sidecars").ok());
  const auto broken = table_.snapshot();
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().kind, ErrorKind::kCorrupt);
  EXPECT_EQ(broken.error().code, "DELTA_SIDECAR_MISSING");
  EXPECT_THAT(broken.error().message, HasSubstr(path));
}

TEST_F(LogUpkeepTest, ExpiredCommitsGoWithTheirCheckpoints) {
  create({{"delta.checkpointInterval", "3"}, {"delta.enableExpiredLogCleanup", "false"}});
  commit_up_to(10);
  ASSERT_TRUE(store_->put("/t/_delta_log/00000000000000000002.crc", "{}").ok());
  const size_t all = log_names().size();
  const auto snapshot = table_.snapshot().value();
  EXPECT_EQ(clean_log(table_, *snapshot, now_ms() + 60 * kDayMs).value(), 0) << "switched off";

  auto cleaning = std::make_shared<Snapshot>(*snapshot);
  cleaning->metadata.configuration.erase("delta.enableExpiredLogCleanup");
  EXPECT_EQ(clean_log(table_, *cleaning, now_ms() + 29 * kDayMs).value(), 0) << "all too young";
  auto guarded = std::make_shared<Snapshot>(*cleaning);
  guarded->protocol.writer_features.insert("checkpointProtection");
  guarded->metadata.configuration[kProtectedBeforeProperty] = "10";
  EXPECT_EQ(clean_log(table_, *guarded, now_ms() + 60 * kDayMs).value(), 0);

  // Commits 0 to 8, checkpoints 3 and 6, a checksum.
  EXPECT_EQ(clean_log(table_, *cleaning, now_ms() + 32 * kDayMs).value(), 12);
  EXPECT_EQ(log_names().size(), all - 12);
  EXPECT_TRUE(store_->stat(commit_path("/t", 9)).ok());
  expect_coherent(table_, "after cleaning");
  EXPECT_EQ(files(table_, 9), expected_files(9));
  const auto gone = table_.snapshot(8);
  ASSERT_FALSE(gone.ok());
  EXPECT_THAT(gone.error().message, HasSubstr("versions 9 to 10 are kept"));
  EXPECT_EQ(clean_log(table_, *cleaning, now_ms() + 60 * kDayMs).value(), 0) << "nothing left";
}

TEST_F(LogUpkeepTest, InCommitTimestampsDecideTheAge) {
  create({{"delta.checkpointInterval", "2"}, {"delta.enableExpiredLogCleanup", "false"}});
  commit_up_to(6);
  backdate_up_to(4);
  auto cleaning = std::make_shared<Snapshot>(*table_.snapshot().value());
  cleaning->metadata.configuration.erase("delta.enableExpiredLogCleanup");
  EXPECT_EQ(clean_log(table_, *cleaning, now_ms()).value(), 5);  // 0 to 3 and checkpoint 2
  EXPECT_TRUE(store_->stat(commit_path("/t", 4)).ok());
  expect_coherent(table_, "after cleaning");
}

TEST_F(LogUpkeepTest, CommitsOfTheDayOutliveAnyRetention) {
  create({{"delta.checkpointInterval", "2"}, {"delta.logRetentionDuration", "interval 0 days"}});
  commit_up_to(2);
  backdate_up_to(2);
  commit_up_to(6);
  EXPECT_FALSE(store_->stat(commit_path("/t", 1)).ok());
  for (Version version = 2; version <= 6; ++version)
    EXPECT_TRUE(store_->stat(commit_path("/t", version)).ok()) << version;
}

// A name that cleaning up freed is no version to commit: it would lie below the checkpoint.
TEST_F(LogUpkeepTest, WriterWhoseVersionWasCleanedUp) {
  create({{"delta.checkpointInterval", "2"}, {"delta.enableExpiredLogCleanup", "false"}});
  commit_up_to(1);
  Transaction slow = Transaction::begin(table_, table_.snapshot().value()).value();
  slow.add_file(data_file("slow"));
  slow.set_blind_append();
  commit_up_to(5);
  for (Version version = 0; version <= 3; ++version)
    ASSERT_TRUE(store_->remove(commit_path("/t", version)).ok());
  const auto late = slow.commit_or_error();
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code, "DELTA_CONCURRENT_WRITE");
  EXPECT_FALSE(store_->stat(commit_path("/t", 2)).ok());

  // A checkpoint alone tells the newest version too.
  commit_up_to(6);
  Transaction next = Transaction::begin(table_, table_.snapshot().value()).value();
  next.add_file(data_file("next"));
  ASSERT_TRUE(store_->remove(commit_path("/t", 6)).ok());
  EXPECT_EQ(next.commit_or_error().value(), 7);
}

// A change of a table that was dropped must not enter the one that has its place.
TEST_F(LogUpkeepTest, WriterWhoseTableWasMadeAnew) {
  for (const Version newest : {0, 1, 2, 3}) {
    create({});
    commit_up_to(1);
    Transaction slow = Transaction::begin(table_, table_.snapshot().value()).value();
    slow.add_file(data_file("slow"));
    slow.set_blind_append();
    ASSERT_TRUE(store_->remove_tree("/t/_delta_log").ok());
    // So that no file of the new log has the time of one of the old.
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    Transaction anew = Transaction::create(table_, {two_columns(), {}, {}, {}, {}}).value();
    ASSERT_TRUE(anew.commit_or_error().ok());
    commit_up_to(newest);
    const auto late = slow.commit_or_error();
    ASSERT_FALSE(late.ok()) << newest;
    EXPECT_EQ(late.error().code, "DELTA_CONCURRENT_WRITE");
    EXPECT_EQ(table_.latest_version().value(), newest);
    expect_coherent(table_, "made anew");
  }
}

TEST_F(LogUpkeepTest, DamagedCheckpointsKeepTheLog) {
  create({{"delta.checkpointInterval", "4"}, {"delta.enableExpiredLogCleanup", "false"}});
  commit_up_to(5);
  ASSERT_TRUE(store_->put(classic_checkpoint_path("/t", 4), "{\"add\":{\"path\":").ok());
  auto cleaning = std::make_shared<Snapshot>(*table_.snapshot().value());
  cleaning->metadata.configuration.erase("delta.enableExpiredLogCleanup");
  const auto cleaned = clean_log(table_, *cleaning, now_ms() + 60 * kDayMs);
  ASSERT_FALSE(cleaned.ok());
  EXPECT_EQ(cleaned.error().kind, ErrorKind::kCorrupt);
  for (Version version = 0; version <= 5; ++version)
    EXPECT_EQ(files(table_, version), expected_files(version));
}

TEST_F(LogUpkeepTest, SidecarsGoWhenNothingNamesThem) {
  create({{"delta.checkpointPolicy", "v2"},
          {"delta.checkpointInterval", "2"},
          {"delta.enableExpiredLogCleanup", "false"}});
  commit_up_to(6);
  EXPECT_EQ(log_names("/_sidecars").size(), 3u);
  auto cleaning = std::make_shared<Snapshot>(*table_.snapshot().value());
  cleaning->metadata.configuration.erase("delta.enableExpiredLogCleanup");
  cleaning->metadata.configuration["delta.logRetentionDuration"] = "interval 1 hour";
  // Commits go, but sidecars of today are too young.
  backdate_up_to(6);
  EXPECT_EQ(clean_log(table_, *cleaning, now_ms()).value(), 8);
  EXPECT_EQ(log_names("/_sidecars").size(), 3u);
  ASSERT_TRUE(commit(table_).ok());
  ASSERT_TRUE(commit(table_).ok());
  EXPECT_EQ(log_names("/_sidecars").size(), 4u);
  // Commits 6, 7, checkpoint 6 and three sidecars.
  EXPECT_EQ(clean_log(table_, *cleaning, now_ms() + 2 * kDayMs).value(), 6);
  EXPECT_EQ(log_names("/_sidecars").size(), 1u);
  expect_coherent(table_, "after cleaning");
}

// Each mutating call of a commit that writes a checkpoint and cleans up fails in turn.
class LogFaultTest
    : public LogUpkeepTest,
      public ::testing::WithParamInterface<std::tuple<std::string, storage::FaultMode>> {};

TEST_P(LogFaultTest, TheTableStaysReadable) {
  const auto& [policy, mode] = GetParam();
  for (int fail_at = 1; fail_at <= 1000; ++fail_at) {
    create({{"delta.checkpointPolicy", policy},
            {"delta.checkpointInterval", "2"},
            {"delta.enableExpiredLogCleanup", "false"}});
    commit_up_to(6);
    {
      const std::string path = commit_path("/t", 0);
      std::string text = store_->read(path).value();
      const std::string from = R"("delta.enableExpiredLogCleanup":"false")";
      text.replace(text.find(from), from.size(),
                   R"("delta.logRetentionDuration":"interval 0 days")");
      ASSERT_TRUE(store_->put(path, text).ok());
      // Checkpoints know the old properties.
      const auto log = list_log(store_.get(), "/t");
      for (const Checkpoint& checkpoint : log->checkpoints) {
        std::string old = store_->read(checkpoint.paths[0]).value();
        old.replace(old.find(from), from.size(),
                    R"("delta.logRetentionDuration":"interval 0 days")");
        ASSERT_TRUE(store_->put(checkpoint.paths[0], old).ok());
      }
    }
    backdate_up_to(6);
    commit_up_to(7);
    const auto faulty = storage::FaultStore::wrap(store_);
    const Table table = open_table(faulty);
    faulty->arm(fail_at, mode);
    const auto committed = commit(table);
    const std::string when = "call " + std::to_string(fail_at);
    const Version latest = table_.latest_version().value();
    if (committed.ok()) {
      EXPECT_EQ(latest, 8) << when;
    } else {
      EXPECT_TRUE(latest == 7 || latest == 8) << when;
    }
    expect_coherent(table_, when);
    const bool all_done = faulty->mutating_calls() < fail_at;
    ASSERT_TRUE(commit(table_).ok()) << when;
    ASSERT_TRUE(commit(table_).ok()) << when;
    expect_coherent(table_, when + " and two commits more");
    if (all_done) {
      EXPECT_GT(fail_at, 5) << "too few calls to have been a checkpoint and a cleanup";
      EXPECT_FALSE(store_->stat(commit_path("/t", 5)).ok()) << "nothing was cleaned up";
      return;
    }
  }
  FAIL() << "the commit never came to its end";
}

INSTANTIATE_TEST_SUITE_P(All, LogFaultTest,
                         ::testing::Combine(::testing::Values("classic", "v2"),
                                            ::testing::Values(storage::FaultMode::kError,
                                                              storage::FaultMode::kErrorAfter,
                                                              storage::FaultMode::kStop)));

TEST_F(LogUpkeepTest, SnapshotsAdvance) {
  create({{"delta.checkpointInterval", "100"}});
  commit_up_to(3);
  const auto old = table_.snapshot(1).value();
  for (const std::optional<Version> wanted :
       {std::optional<Version>(), std::optional<Version>(2)}) {
    const auto advanced = table_.snapshot_after(old, wanted).value();
    const auto anew = table_.snapshot(wanted).value();
    EXPECT_EQ(advanced->version, anew->version);
    EXPECT_EQ(advanced->timestamp_ms, anew->timestamp_ms);
    EXPECT_EQ(advanced->commit_modified_ms, anew->commit_modified_ms);
    ASSERT_EQ(advanced->files.size(), anew->files.size());
    for (size_t i = 0; i < anew->files.size(); ++i)
      EXPECT_EQ(print_action(advanced->files[i]), print_action(anew->files[i]));
    EXPECT_EQ(advanced->row_id_high_water_mark(), anew->row_id_high_water_mark());
  }
  const auto newest = table_.snapshot().value();
  EXPECT_EQ(table_.snapshot_after(newest).value(), newest) << "nothing is new";
  EXPECT_EQ(table_.snapshot_after(newest, 1).value()->version, 1) << "an older one";
  EXPECT_EQ(table_.snapshot_after(newest, 9).error().kind, ErrorKind::kNotFound);
}

}  // namespace
}  // namespace strandline::delta
