#include "delta/vacuum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <thread>

#include "base/clock.h"
#include "base/ids.h"
#include "delta/data_path.h"
#include "delta/deletion_vector.h"
#include "delta/test_support.h"

namespace strandline::delta {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kHourMs = 3'600'000;
constexpr int64_t kWeekMs = 7 * 24 * kHourMs;

class VacuumTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("vacuum_test_" + new_uuid());
    directory_ = root_ / "t";
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(root_); }

  Table table(std::shared_ptr<storage::Store> store = storage::make_local_store()) const {
    return open_table(store, directory_.string());
  }
  std::shared_ptr<const Snapshot> latest() const { return std::move(table().snapshot()).value(); }

  void create(std::map<std::string, std::string> properties = {},
              std::vector<std::string> partition_columns = {}) {
    NewTable definition;
    definition.schema = two_columns();
    definition.schema.fields.push_back(Field{"_p", DataType::primitive(TypeId::kString), true, {}});
    definition.partition_columns = std::move(partition_columns);
    definition.properties = std::move(properties);
    auto transaction = Transaction::create(table(), definition);
    ASSERT_TRUE(transaction.ok()) << transaction.error().message;
    commit(*transaction);
  }
  void commit(Transaction& transaction) {
    const auto version = transaction.commit_or_error();
    ASSERT_TRUE(version.ok()) << version.error().message;
    // Every version has a millisecond of its own.
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  Transaction begin() const { return std::move(Transaction::begin(table(), latest())).value(); }

  void write(const std::string& path, int age_days = 0) {
    const fs::path file = directory_ / path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << path;
    make_old(path, age_days);
  }
  void make_old(const std::string& path, int age_days) {
    fs::last_write_time(directory_ / path,
                        fs::file_time_type::clock::now() - std::chrono::hours(24 * age_days));
  }
  // Live files, old on disk, in one commit. path is as on disk.
  void add_files(const std::vector<std::string>& paths,
                 const std::map<std::string, std::optional<std::string>>& values = {}) {
    auto transaction = begin();
    for (const std::string& path : paths) {
      write(path, 30);
      AddFile file = data_file(percent_encode(path));
      file.partition_values = values;
      transaction.add_file(std::move(file));
    }
    commit(transaction);
  }

  std::vector<std::string> run(VacuumOptions options = {}) {
    const auto report = vacuum(table(), options);
    EXPECT_TRUE(report.ok()) << report.error().message;
    std::vector<std::string> paths;
    if (!report.ok()) return paths;
    for (const auto& path : report->paths)
      paths.push_back(path.substr(directory_.string().size() + 1));
    return paths;
  }
  bool exists(const std::string& path) const { return fs::exists(directory_ / path); }

  fs::path root_;
  fs::path directory_;
};

TEST_F(VacuumTest, DeletesOldFilesThatNoVersionNeeds) {
  create();
  add_files({"live.parquet", "gone.parquet"});
  auto removal = begin();
  removal.remove_file(removal.snapshot().files[0]);  // gone.parquet
  commit(removal);
  write("orphan.parquet", 8);
  write("tmp_part-1.parquet", 8);
  write("young.parquet", 6);
  write("_SUCCESS", 30);
  write(".part.crc", 30);
  write("_strandline_state/part-1.parquet", 30);
  write("metadata/v1.json", 30);
  write("_change_data/cdc-old.parquet", 30);
  write("_change_data/cdc-new.parquet", 1);
  write("other/_delta_log/00000000000000000000.json", 30);
  write("other/part-1.parquet", 30);

  VacuumOptions dry;
  dry.dry_run = true;
  const std::vector<std::string> due = {"_change_data/cdc-old.parquet", "orphan.parquet",
                                        "tmp_part-1.parquet"};
  EXPECT_EQ(run(dry), due);
  EXPECT_TRUE(exists("orphan.parquet"));
  EXPECT_EQ(latest()->version, 2);

  EXPECT_EQ(run(), due);
  for (const std::string& path : due) EXPECT_FALSE(exists(path)) << path;
  for (const char* kept :
       {"live.parquet", "gone.parquet", "young.parquet", "_SUCCESS", ".part.crc",
        "_strandline_state/part-1.parquet", "metadata/v1.json", "_change_data/cdc-new.parquet",
        "other/part-1.parquet", "_delta_log/00000000000000000000.json"}) {
    EXPECT_TRUE(exists(kept)) << kept;
  }
  const auto start = table().commit(3);
  const auto end = table().commit(4);
  ASSERT_TRUE(start.ok() && end.ok());
  const auto& started = std::get<CommitInfo>(start->at(0));
  EXPECT_EQ(start->size(), 1u);
  EXPECT_EQ(started.operation, "VACUUM START");
  EXPECT_EQ(started.operation_metrics.at("numFilesToDelete"), "3");
  EXPECT_EQ(started.isolation_level, "SnapshotIsolation");
  const auto& ended = std::get<CommitInfo>(end->at(0));
  EXPECT_EQ(ended.operation, "VACUUM END");
  EXPECT_EQ(ended.operation_metrics.at("numDeletedFiles"), "3");
  EXPECT_EQ(ended.operation_parameters.at("status"), R"("COMPLETED")");

  // A week later the removed file goes too.
  VacuumOptions later;
  later.now_ms = now_ms() + kWeekMs;
  EXPECT_THAT(run(later), ::testing::Contains("gone.parquet"));
  EXPECT_TRUE(exists("live.parquet"));
}

TEST_F(VacuumTest, WhatKilledWritersLeftUnfinishedGoes) {
  create();
  add_files({"live.parquet"});
  const std::string uuid = "0b5f4c1e-9c1d-4c7e-8a53-1f2e3d4c5b6a";
  const std::vector<std::string> left = {
      ".deletion_vector_1.bin." + uuid + ".tmp",
      "_delta_log/.00000000000000000002.json." + uuid + ".tmp",
      "_delta_log/_sidecars/.1.parquet." + uuid + ".tmp",
  };
  for (const auto& path : left) write(path, 8);
  const std::vector<std::string> kept = {
      ".young.bin." + uuid + ".tmp",
      "_delta_log/.young.json." + uuid + ".tmp",
  };
  for (const auto& path : kept) write(path);
  const std::vector<std::string> of_others = {
      ".hidden.tmp",
      "." + uuid + ".tmp",
      ".x" + uuid + ".tmp",
      ".x." + uuid + ".crc",
      "_delta_log/.00000000000000000001.json.crc",
      "_delta_log/00000000000000000009.json." + uuid + ".tmp",
      "_delta_log/_sidecars/1.parquet",
      "_other/.x." + uuid + ".tmp",
  };
  for (const auto& path : of_others) write(path, 30);

  EXPECT_EQ(run(), left);
  for (const auto& path : left) EXPECT_FALSE(exists(path)) << path;
  for (const auto& path : kept) EXPECT_TRUE(exists(path)) << path;
  for (const auto& path : of_others) EXPECT_TRUE(exists(path)) << path;

  // Another writer may be at work while one VACUUM keeps nothing.
  VacuumOptions all;
  all.retention_ms = 0;
  all.check_retention = false;
  EXPECT_THAT(run(all), IsEmpty());
  all.now_ms = now_ms() + kWeekMs;
  EXPECT_EQ(run(all), kept);
}

TEST_F(VacuumTest, ShortRetentionIsRefused) {
  create({{"delta.deletedFileRetentionDuration", "interval 2 days"}});
  write("orphan.parquet", 1);
  VacuumOptions options;
  options.retention_ms = 47 * kHourMs;
  const auto refused = vacuum(table(), options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT");
  EXPECT_THAT(refused.error().message, HasSubstr("48 hours"));
  options.check_retention = false;
  EXPECT_THAT(run(options), IsEmpty());
  options.retention_ms = 0;
  EXPECT_THAT(run(options), ElementsAre("orphan.parquet"));
}

// In-commit timestamps grow by a millisecond a commit, so the newest may be ahead of the clock.
TEST_F(VacuumTest, NoRetentionTakesWhatALaterTimestampRemoved) {
  create();
  add_files({"a.parquet", "b.parquet"});
  auto removal = begin();
  removal.remove_file(removal.snapshot().files[0]);
  commit(removal);
  VacuumOptions options;
  options.check_retention = false;
  options.now_ms = now_ms() - kHourMs;
  options.retention_ms = 1;
  EXPECT_THAT(run(options), IsEmpty());
  options.retention_ms = 0;
  EXPECT_THAT(run(options), ElementsAre("a.parquet"));
  EXPECT_TRUE(exists("b.parquet"));
}

// A snapshot may have forgotten removals older than the table's retention; RETAIN asks for more.
TEST_F(VacuumTest, LongerRetentionThanTheTables) {
  create({{"delta.deletedFileRetentionDuration", "interval 1 hour"}});
  add_files({"a.parquet"});
  auto removal = begin();
  removal.remove_file(removal.snapshot().files[0]);
  commit(removal);
  VacuumOptions options;
  options.now_ms = now_ms() + 5 * kHourMs;
  options.retention_ms = 10 * kHourMs;
  EXPECT_THAT(run(options), IsEmpty());
  options.retention_ms = 2 * kHourMs;
  EXPECT_THAT(run(options), ElementsAre("a.parquet"));
}

TEST_F(VacuumTest, PartitionDirectoriesOfAnyName) {
  create({}, {"_p"});
  add_files({"_p=a%25b%2Fc/1.parquet"}, {{"_p", "a%b/c"}});
  add_files({"_p=z ä/1.parquet"}, {{"_p", "z ä"}});
  write("_p=a%25b%2Fc/orphan.parquet", 30);
  write("_p=empty/inner/orphan.parquet", 30);
  write("_q=1/orphan.parquet", 30);
  make_old("_p=empty/inner", 30);
  make_old("_p=empty", 30);
  fs::create_directories(directory_ / "_p=young");
  EXPECT_THAT(run(), ElementsAre("_p=a%25b%2Fc/orphan.parquet", "_p=empty", "_p=empty/inner",
                                 "_p=empty/inner/orphan.parquet"));
  EXPECT_TRUE(exists("_p=a%25b%2Fc/1.parquet"));
  EXPECT_TRUE(exists("_p=z ä/1.parquet"));
  EXPECT_FALSE(exists("_p=empty"));
  EXPECT_TRUE(exists("_p=young"));
  EXPECT_TRUE(exists("_q=1/orphan.parquet"));
}

TEST_F(VacuumTest, LinksAndPathsElsewhereAreLeft) {
  create();
  fs::create_directories(root_ / "outside");
  std::ofstream(root_ / "outside/a.parquet") << "a";
  std::ofstream(root_ / "outside/b.parquet") << "b";
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(24 * 30);
  for (const char* name : {"outside/a.parquet", "outside/b.parquet"})
    fs::last_write_time(root_ / name, old);
  fs::create_directory_symlink(root_ / "outside", directory_ / "linked");
  fs::create_symlink(root_ / "outside/b.parquet", directory_ / "b.parquet");
  // The table is known to its log by another road.
  fs::create_directory_symlink(directory_, root_ / "road");
  write("mine.parquet", 30);
  auto transaction = begin();
  transaction.add_file(data_file((root_ / "outside/a.parquet").string()));
  transaction.add_file(data_file("file:" + (root_ / "road/mine.parquet").string()));
  commit(transaction);
  EXPECT_THAT(run(), IsEmpty());
  EXPECT_TRUE(fs::exists(root_ / "outside/a.parquet"));
  EXPECT_TRUE(fs::exists(root_ / "outside/b.parquet"));
  EXPECT_TRUE(exists("mine.parquet"));
  EXPECT_TRUE(exists("linked"));
}

TEST_F(VacuumTest, UnknownWriterFeatureIsRefused) {
  create();
  auto transaction = begin();
  const std::string log = (directory_ / "_delta_log/00000000000000000001.json").string();
  std::ofstream(log)
      << R"({"protocol":{"minReaderVersion":1,"minWriterVersion":7,"writerFeatures":["fromTheFuture"]}})"
      << "\n";
  write("orphan.parquet", 30);
  const auto refused = vacuum(table(), {});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("fromTheFuture"));
  EXPECT_TRUE(exists("orphan.parquet"));
}

// All files that a version needs, absolute.
std::set<std::string> files_of(const Snapshot& snapshot) {
  std::set<std::string> files;
  for (const AddFile& file : snapshot.files) {
    files.insert(resolve_data_path(snapshot.table_path, file.path).value());
    if (file.deletion_vector)
      files.insert(deletion_vector_path(snapshot.table_path, *file.deletion_vector).value());
  }
  return files;
}

TEST_F(VacuumTest, VersionsWithinTheRetentionKeepTheirFiles) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    fs::remove_all(directory_);
    fs::create_directories(directory_);
    std::mt19937 random(seed);
    create();
    int names = 0;
    for (int step = 0; step < 25; ++step) {
      auto transaction = begin();
      const auto& files = transaction.snapshot().files;
      const auto what = random() % 3;
      if (files.empty() || what == 0) {
        const std::string path = fmt::format("d%20{}/f{}.parquet", names % 3, names);
        ++names;
        write(path);
        transaction.add_file(data_file(percent_encode(path)));
      } else if (what == 1) {
        transaction.remove_file(files[random() % files.size()]);
      } else {
        RowSet rows;
        rows.add(random() % 10);
        ASSERT_TRUE(transaction.delete_rows(files[random() % files.size()], rows).ok());
      }
      commit(transaction);
    }
    const Version last = latest()->version;
    std::vector<std::set<std::string>> files;
    std::vector<int64_t> times;
    for (Version version = 0; version <= last; ++version) {
      const auto snapshot = std::move(table().snapshot(version)).value();
      files.push_back(files_of(*snapshot));
      times.push_back(snapshot->timestamp_ms);
    }
    // Every version whose successor is younger than the retention.
    const auto first = random() % static_cast<size_t>(last);
    VacuumOptions options;
    options.check_retention = false;
    options.retention_ms = kHourMs;
    options.now_ms = times[first + 1] + kHourMs;
    const auto gone = run(options);
    std::set<std::string> needed;
    for (size_t version = first; version < files.size(); ++version)
      needed.insert(files[version].begin(), files[version].end());
    for (const std::string& file : needed) EXPECT_TRUE(fs::exists(file)) << file;
    // What only older versions had is gone.
    std::set<std::string> forgotten;
    for (size_t version = 0; version < first; ++version) {
      for (const std::string& file : files[version]) {
        if (needed.count(file) == 0) forgotten.insert(file);
      }
    }
    for (const std::string& file : forgotten) EXPECT_FALSE(fs::exists(file)) << file;
    EXPECT_EQ(gone.size(), forgotten.size());
  }
}

// Whatever fails, the live files stay, and the next run finishes.
TEST_F(VacuumTest, SurvivesEveryFailure) {
  for (const auto mode :
       {storage::FaultMode::kError, storage::FaultMode::kErrorAfter, storage::FaultMode::kStop}) {
    for (int at = 1;; ++at) {
      fs::remove_all(directory_);
      fs::create_directories(directory_);
      create();
      add_files({"live.parquet"});
      for (int i = 0; i < 3; ++i) write(fmt::format("d/orphan{}.parquet", i), 30);
      make_old("d", 30);
      auto faulty = storage::FaultStore::wrap(storage::make_local_store());
      faulty->arm(at, mode);
      const auto broken = vacuum(table(faulty), {});
      const bool reached = faulty->mutating_calls() >= at;
      EXPECT_EQ(latest()->files.size(), 1u);
      EXPECT_TRUE(exists("live.parquet"));
      const auto again = vacuum(table(), {});
      ASSERT_TRUE(again.ok()) << again.error().message;
      for (int i = 0; i < 3; ++i) EXPECT_FALSE(exists(fmt::format("d/orphan{}.parquet", i)));
      EXPECT_TRUE(exists("live.parquet"));
      if (!reached) {
        EXPECT_TRUE(broken.ok());
        break;
      }
      ASSERT_LT(at, 50);
    }
  }
}

}  // namespace
}  // namespace strandline::delta
