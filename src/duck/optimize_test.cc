#include "duck/optimize.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <random>
#include <set>
#include <utility>

#include "delta/drop_feature.h"
#include "delta/transaction.h"
#include "duck/curve.h"
#include "duck/delta_io.h"
#include "duck/optimize_plan.h"
#include "duck/rewrite_table.h"
#include "duck/table_change.h"
#include "storage/passing_store.h"

namespace strandline::duck {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Hilbert, VisitsEveryPointAndNeighboursTouch) {
  for (const auto& [columns, bits] : {std::pair{2, 4}, std::pair{3, 3}, std::pair{4, 2}}) {
    const size_t points = size_t{1} << (columns * bits);
    std::vector<std::vector<uint32_t>> by_place(points);
    for (size_t number = 0; number < points; ++number) {
      std::vector<uint32_t> point;
      for (int c = 0; c < columns; ++c)
        point.push_back(static_cast<uint32_t>(number >> (c * bits)) & ((1u << bits) - 1));
      const uint64_t place = hilbert_place(point, bits);
      ASSERT_LT(place, points);
      ASSERT_TRUE(by_place[place].empty());
      by_place[place] = point;
    }
    for (size_t place = 1; place < points; ++place) {
      int steps = 0;
      for (size_t c = 0; c < by_place[place].size(); ++c) {
        steps += std::abs(static_cast<int>(by_place[place][c]) -
                          static_cast<int>(by_place[place - 1][c]));
      }
      ASSERT_EQ(steps, 1) << "at place " << place;
    }
  }
}

class OptimizeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto database = Database::open({.memory_limit_bytes = 0, .threads = 2, .temp_directory = ""});
    ASSERT_TRUE(database.ok());
    database_ = *database;
    connection_ = std::move(database_->connect()).value();
    directory_ = std::filesystem::path(::testing::TempDir()) /
                 fmt::format("optimize_{}_{}", ::getpid(),
                             ::testing::UnitTest::GetInstance()->current_test_info()->name());
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  delta::Table table(std::shared_ptr<storage::Store> store = storage::make_local_store()) const {
    return delta::Table(std::move(store), make_parquet_port(database_), directory_.string());
  }
  std::shared_ptr<const delta::Snapshot> latest() const {
    auto snapshot = table().snapshot();
    EXPECT_TRUE(snapshot.ok()) << snapshot.error().message;
    return *snapshot;
  }
  void create(delta::NewTable definition) {
    std::filesystem::remove_all(directory_);
    if (definition.schema.fields.empty()) {
      definition.schema.fields = {Field{"id", DataType::primitive(TypeId::kLong), true, {}},
                                  Field{"part", DataType::primitive(TypeId::kString), true, {}},
                                  Field{"v", DataType::primitive(TypeId::kString), true, {}}};
    }
    auto transaction = delta::Transaction::create(table(), definition);
    ASSERT_TRUE(transaction.ok()) << transaction.error().message;
    ASSERT_TRUE(transaction->commit_or_error().ok());
  }
  void change(const TableChange& what) {
    const auto base = latest();
    auto transaction = delta::Transaction::begin(table(), base);
    ASSERT_TRUE(transaction.ok());
    AppliedChange written;
    const auto applied = apply_change(*connection_, *transaction, table(), base, what, &written);
    ASSERT_TRUE(applied.ok()) << applied.error().message;
    const auto committed = commit_change(*transaction, table(), written);
    ASSERT_TRUE(committed.ok()) << committed.error().message;
  }
  void append(const std::string& query) { change({query, "", false, false}); }
  // Rows for which the condition is true leave, and come back changed if update.
  void touch(const std::string& condition, bool update) {
    ScanOptions options;
    options.with_positions = true;
    options.with_row_ids = latest()->row_tracking_enabled();
    auto scan = scan_table(*connection_, table(), latest(), options);
    ASSERT_TRUE(scan.ok());
    const std::string from = " FROM " + (*scan)->sql() + " AS t WHERE " + condition;
    TableChange what;
    what.dead_rows = fmt::format("SELECT {}, {}{}", kFileColumn, kRowColumn, from);
    if (update) {
      what.with_row_ids = true;
      what.new_rows = std::string("SELECT id, part, v || '+' AS v, ") +
                      (options.with_row_ids ? "" : "NULL::BIGINT AS ") + kRowIdColumn +
                      ", NULL::BIGINT AS " + kRowVersionColumn + from;
    }
    change(what);
  }

  // Everything a reader sees of each row, ids and versions included, sorted.
  std::vector<std::string> rows(const std::string& select = "*") const {
    const auto snapshot = latest();
    ScanOptions options;
    options.with_row_ids = snapshot->row_tracking_enabled();
    auto scan = scan_table(*connection_, table(), snapshot, options);
    EXPECT_TRUE(scan.ok()) << scan.error().message;
    auto result =
        connection_->query("SELECT " + select + " FROM " + (*scan)->sql() + " AS t ORDER BY ALL");
    EXPECT_TRUE(result.ok()) << result.error().message;
    std::vector<std::string> lines;
    for (const auto& row : result->rows) {
      std::string line;
      for (const Cell& cell : row) line += (line.empty() ? "" : "|") + cell.value_or("NULL");
      lines.push_back(line);
    }
    return lines;
  }
  OptimizeReport run(const OptimizeOptions& options = {}) {
    const auto report = optimize(*connection_, table(), options);
    EXPECT_TRUE(report.ok()) << report.error().message;
    return report.ok() ? *report : OptimizeReport();
  }
  std::string error_of(const OptimizeOptions& options) {
    const auto report = optimize(*connection_, table(), options);
    EXPECT_FALSE(report.ok());
    return report.ok() ? "" : report.error().code;
  }

  std::shared_ptr<Database> database_;
  std::unique_ptr<Connection> connection_;
  std::filesystem::path directory_;
};

TEST_F(OptimizeTest, MergesSmallFilesAndDropsDeletedRows) {
  create({});
  for (int i = 0; i < 5; ++i)
    append(fmt::format("SELECT i AS id, 'p' AS part, 'v' || i AS v FROM range({}, {}) r(i)", i * 10,
                       i * 10 + 10));
  touch("id % 10 = 3", false);
  touch("id = 7", true);
  const auto before = rows();
  ASSERT_EQ(latest()->files.size(), 6u);
  const OptimizeReport report = run();
  EXPECT_EQ(rows(), before);
  const auto after = latest();
  ASSERT_EQ(after->files.size(), 1u);
  const delta::AddFile& file = after->files[0];
  EXPECT_FALSE(file.deletion_vector);
  EXPECT_EQ(delta::num_records(file), 45);
  EXPECT_THAT(*file.stats, HasSubstr(R"("minValues":{"id":0,)"));
  EXPECT_EQ(report.removed.count, 6);
  EXPECT_EQ(report.added.count, 1);
  EXPECT_EQ(report.deletion_vectors_removed, 5);
  EXPECT_EQ(report.deleted_rows_removed, 6);
  const auto actions = table().commit(latest()->version);
  ASSERT_TRUE(actions.ok());
  for (const auto& action : *actions) {
    if (const auto* const info = std::get_if<delta::CommitInfo>(&action)) {
      EXPECT_EQ(info->operation, "OPTIMIZE");
      EXPECT_EQ(info->isolation_level, "SnapshotIsolation");
      EXPECT_EQ(info->tags.at("delta.rowTracking.preserved"), "true");
      EXPECT_EQ(info->operation_metrics.at("numRemovedFiles"), "6");
    } else if (const auto* const add = std::get_if<delta::AddFile>(&action)) {
      EXPECT_FALSE(add->data_change);
    } else if (const auto* const remove = std::get_if<delta::RemoveFile>(&action)) {
      EXPECT_FALSE(remove->data_change);
    }
  }
  // Nothing is left to do.
  const auto version = latest()->version;
  EXPECT_EQ(run().commits, 0);
  EXPECT_EQ(latest()->version, version);
}

TEST_F(OptimizeTest, TargetSizeBoundsTheFiles) {
  delta::NewTable definition;
  definition.properties["delta.targetFileSize"] = "20kb";
  create(definition);
  for (int i = 0; i < 12; ++i)
    append(fmt::format("SELECT i AS id, 'p' AS part, md5(i::VARCHAR) AS v FROM range({}, {}) r(i)",
                       i * 100, i * 100 + 100));
  const auto before = rows();
  run();
  EXPECT_EQ(rows(), before);
  EXPECT_GT(latest()->files.size(), 1u);
  EXPECT_LT(latest()->files.size(), 6u);
  for (const auto& file : latest()->files) EXPECT_LE(file.size_bytes, 20 << 10);
  EXPECT_EQ(run().commits, 0);
}

TEST_F(OptimizeTest, NeverChangesWhatIsRead) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    delta::NewTable definition;
    const bool partitioned = seed % 2 == 0;
    if (partitioned) definition.partition_columns = {"part"};
    if (seed % 4 == 1)
      definition.clustering_columns = {delta::FieldPath{"v"}, delta::FieldPath{"id"}};
    if (seed % 3 == 0) definition.properties["delta.enableDeletionVectors"] = "false";
    if (seed % 5 == 0) definition.properties["delta.enableRowTracking"] = "false";
    definition.properties["delta.targetFileSize"] = seed % 2 == 0 ? "4k" : "100mb";
    create(definition);
    for (int step = 0; step < 9; ++step) {
      const auto what = random() % 5;
      const auto from = random() % 1000;
      if (step < 2 || what == 0) {
        append(
            fmt::format("SELECT i AS id, CASE i % 4 WHEN 1 THEN 'a b/%' WHEN 2 THEN 'ü' WHEN 3 "
                        "THEN 'c' END AS part, md5((i * {})::VARCHAR) AS v FROM range({}, {}) "
                        "r(i)",
                        seed, from, from + random() % 80 + 1));
      } else if (what < 3) {
        touch(fmt::format("id % 7 = {}", random() % 7), what == 1);
      } else {
        OptimizeOptions options;
        if (partitioned && random() % 2 == 0) options.where = "part = 'c' OR part IS NULL";
        options.purge = random() % 3 == 0;
        if (definition.clustering_columns.empty() && !options.purge && random() % 2 == 0)
          options.zorder_by = {"V", "id"};
        const auto before = rows();
        run(options);
        ASSERT_EQ(rows(), before);
        const auto again = run(options);
        ASSERT_EQ(again.commits, 0);
      }
    }
  }
}

TEST_F(OptimizeTest, ClusteredFilesAreBoxes) {
  delta::NewTable definition;
  definition.schema.fields = {Field{"x", DataType::primitive(TypeId::kLong), true, {}},
                              Field{"y", DataType::primitive(TypeId::kLong), true, {}}};
  definition.clustering_columns = {delta::FieldPath{"x"}, delta::FieldPath{"y"}};
  definition.properties["delta.targetFileSize"] = "8k";
  create(definition);
  for (int i = 0; i < 4; ++i)
    append(fmt::format(
        "SELECT (hash(i) % 1000)::BIGINT AS x, (hash(i + 100000) % 1000)::BIGINT AS y FROM "
        "(SELECT i::BIGINT AS i FROM range({}, {}) r(i))",
        i * 4000, i * 4000 + 4000));
  const auto before = rows();
  run();
  EXPECT_EQ(rows(), before);
  const auto snapshot = latest();
  ASSERT_GT(snapshot->files.size(), 8u);
  std::set<std::string> cubes;
  for (const auto& file : snapshot->files) {
    EXPECT_EQ(file.clustering_provider, "strandline");
    cubes.insert(file.tags.at(kCubeIdTag));
  }
  EXPECT_EQ(cubes.size(), 1u);
  // A small box of both columns lies in few files.
  ScanOptions options;
  options.with_positions = true;
  auto scan = scan_table(*connection_, table(), snapshot, options);
  ASSERT_TRUE(scan.ok());
  const auto touched = connection_->query_int(fmt::format(
      "SELECT count(*) FROM (SELECT min(x) a, max(x) b, min(y) c, max(y) d FROM {} AS t GROUP BY "
      "{}) WHERE a <= 520 AND b >= 500 AND c <= 520 AND d >= 500",
      (*scan)->sql(), kFileColumn));
  ASSERT_TRUE(touched.ok());
  EXPECT_LE(*touched * 3, static_cast<int64_t>(snapshot->files.size()));
  EXPECT_EQ(run().commits, 0);

  // A little new data is a cube of its own; twice as much takes the first along.
  append("SELECT i AS x, i AS y FROM range(10) r(i)");
  EXPECT_EQ(run().removed.count, 1);
  for (int i = 0; i < 8; ++i)
    append(fmt::format(
        "SELECT (hash(i) % 1000)::BIGINT AS x, (hash(i + 100000) % 1000)::BIGINT AS y FROM "
        "(SELECT i::BIGINT AS i FROM range({}, {}) r(i))",
        i * 4000, i * 4000 + 4000));
  EXPECT_GT(run().removed.count, 9);
  OptimizeOptions full;
  full.full = true;
  EXPECT_GT(run(full).removed.count, 9);
}

TEST_F(OptimizeTest, AnyPlainTypeCanBeSortedBy) {
  delta::NewTable definition;
  definition.schema.fields = {Field{"i", DataType::primitive(TypeId::kInteger), true, {}},
                              Field{"b", DataType::primitive(TypeId::kBoolean), true, {}},
                              Field{"d", DataType::primitive(TypeId::kDate), true, {}},
                              Field{"f", DataType::primitive(TypeId::kDouble), true, {}},
                              Field{"s", DataType::primitive(TypeId::kString), true, {}},
                              Field{"m", DataType::decimal(10, 2), true, {}}};
  create(definition);
  append(
      "SELECT i::INTEGER AS i, i % 2 = 0 AS b, DATE '2026-01-01' + i::INTEGER AS d, i / 3 AS f, "
      "CASE "
      "WHEN i % 5 > 0 THEN 's' || i END AS s, (i * 1.5)::DECIMAL(10,2) AS m FROM range(500) r(i)");
  const auto before = rows();
  OptimizeOptions options;
  options.zorder_by = {"i", "b", "d", "f", "s", "m"};
  EXPECT_EQ(run(options).commits, 1);
  EXPECT_EQ(rows(), before);
}

TEST_F(OptimizeTest, WhatCannotBeIsRefusedByName) {
  delta::NewTable definition;
  definition.partition_columns = {"part"};
  create(definition);
  append("SELECT 1::BIGINT AS id, 'a' AS part, 'v' AS v");
  OptimizeOptions options;
  options.zorder_by = {"nope"};
  EXPECT_EQ(error_of(options), "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST");
  options.zorder_by = {"PART"};
  EXPECT_EQ(error_of(options), "DELTA_ZORDERING_ON_PARTITION_COLUMN");
  options.zorder_by = {};
  options.where = "id = 1";
  EXPECT_EQ(error_of(options), "DELTA_NON_PARTITION_COLUMN_REFERENCE");
  options.where.reset();
  options.full = true;
  EXPECT_EQ(error_of(options), "DELTA_OPTIMIZE_FULL_NOT_SUPPORTED");
  delta::NewTable clustered;
  clustered.clustering_columns = {delta::FieldPath{"id"}};
  create(clustered);
  options.full = false;
  options.zorder_by = {"v"};
  EXPECT_EQ(error_of(options), "DELTA_CLUSTERING_WITH_ZORDER_BY");
}

// Lets something happen just before a commit file is made.
class RacingStore : public storage::PassingStore {
 public:
  explicit RacingStore(std::function<void()> before_commit)
      : PassingStore(storage::make_local_store()), before_commit_(std::move(before_commit)) {}
  Status put_if_absent(const std::string& path, const std::string& bytes) override {
    if (path.find("_delta_log") != std::string::npos && before_commit_) {
      const auto happens = std::exchange(before_commit_, nullptr);
      happens();
    }
    return inner_->put_if_absent(path, bytes);
  }

 private:
  std::function<void()> before_commit_;
};

TEST_F(OptimizeTest, AppendsMeanwhileGoOnAndChangesAreTakenIn) {
  create({});
  for (int i = 0; i < 3; ++i)
    append(fmt::format("SELECT i AS id, 'p' AS part, 'v' AS v FROM range({}, {}) r(i)", i * 10,
                       i * 10 + 10));
  auto connection = std::move(database_->connect()).value();
  const auto race = [&](const std::function<void()>& other) {
    const auto report =
        optimize(*connection, table(std::make_shared<RacingStore>(other)), OptimizeOptions());
    EXPECT_TRUE(report.ok()) << report.error().message;
    return report.ok() ? *report : OptimizeReport();
  };
  EXPECT_EQ(race([&] { append("SELECT 100::BIGINT AS id, 'p' AS part, 'v' AS v"); }).commits, 2);
  EXPECT_EQ(rows("count(*), sum(id)"), std::vector<std::string>{"31|535"});
  ASSERT_EQ(latest()->files.size(), 1u);

  // Rows deleted under way: the first try is lost, the second one knows.
  for (int i = 0; i < 3; ++i) append("SELECT 7::BIGINT AS id, 'p' AS part, 'w' AS v");
  EXPECT_EQ(race([&] { touch("id % 2 = 0", false); }).commits, 1);
  EXPECT_EQ(rows("count(*), count(*) FILTER (id % 2 = 0)"), std::vector<std::string>{"18|0"});
  ASSERT_EQ(latest()->files.size(), 1u);
}

// Small files of many commits stay few, and no row is written again and again.
TEST_F(OptimizeTest, AnotherDefinitionKeepsRowsAndTheirIds) {
  delta::NewTable definition;
  definition.partition_columns = {"part"};
  definition.properties = {{"delta.columnMapping.mode", "name"}};
  create(definition);
  append("SELECT i AS id, 'p' || (i % 2) AS part, 'v' AS v FROM range(10) r(i)");
  touch("id < 3", true);
  touch("id = 9", false);
  const auto before = rows();
  const auto done =
      rewrite_table(*connection_, table(), "REMOVE COLUMN MAPPING",
                    [](const delta::Snapshot& snapshot) -> Result<Redefinition> {
                      Redefinition next;
                      SL_ASSIGN(next.metadata, delta::without_column_mapping(snapshot));
                      return next;
                    });
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_EQ(rows(), before);
  EXPECT_EQ(latest()->column_mapping_mode(), "none");
  for (const auto& file : latest()->files) EXPECT_EQ(file.partition_values.count("part"), 1u);
  const auto commit = table().commit(latest()->version);
  ASSERT_TRUE(commit.ok());
  for (const auto& action : *commit) {
    const auto* add = std::get_if<delta::AddFile>(&action);
    const auto* gone = std::get_if<delta::RemoveFile>(&action);
    EXPECT_FALSE((add != nullptr && add->data_change) || (gone != nullptr && gone->data_change));
  }
}

TEST_F(OptimizeTest, AutomaticCompactionBoundsFilesAndWork) {
  delta::Snapshot snapshot;
  snapshot.metadata.configuration["delta.targetFileSize"] = "1mb";
  OptimizeOptions options;
  options.automatic = true;
  int64_t rewritten = 0;
  int64_t written = 0;
  for (int commit = 0; commit < 3000; ++commit) {
    delta::AddFile file;
    file.path = fmt::format("f{}", commit);
    file.size_bytes = 1000;
    file.stats = R"({"numRecords":10})";
    file.modification_time_ms = commit;
    written += file.size_bytes;
    snapshot.files.push_back(file);
    std::vector<size_t> all(snapshot.files.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    const RewritePlan plan = plan_rewrite(snapshot, all, {}, options);
    for (const RewriteJob& job : plan.jobs) {
      delta::AddFile merged = file;
      merged.path += "m";
      merged.size_bytes = 0;
      std::set<size_t> gone(job.files.begin(), job.files.end());
      std::vector<delta::AddFile> left;
      for (size_t i = 0; i < snapshot.files.size(); ++i) {
        if (gone.count(i) == 0) {
          left.push_back(snapshot.files[i]);
        } else {
          merged.size_bytes += snapshot.files[i].size_bytes;
        }
      }
      rewritten += merged.size_bytes;
      left.push_back(merged);
      snapshot.files = std::move(left);
      ASSERT_EQ(plan.jobs.size(), 1u);
    }
    ASSERT_LT(snapshot.files.size(), 70u) << "after commit " << commit;
  }
  EXPECT_LT(rewritten, written * 8);
}

TEST_F(OptimizeTest, EveryFailureLeavesTheTable) {
  for (const auto mode :
       {storage::FaultMode::kError, storage::FaultMode::kErrorAfter, storage::FaultMode::kStop}) {
    for (int at = 1;; ++at) {
      delta::NewTable definition;
      definition.partition_columns = {"part"};
      create(definition);
      for (int i = 0; i < 2; ++i)
        append("SELECT i AS id, 'p' || (i % 2) AS part, 'v' AS v FROM range(6) r(i)");
      const auto before = rows();
      const auto files = latest()->files.size();
      auto faulty = storage::FaultStore::wrap(storage::make_local_store());
      faulty->arm(at, mode);
      const auto report = optimize(*connection_, table(faulty), {});
      EXPECT_EQ(rows(), before);
      if (!report.ok() && mode == storage::FaultMode::kError) {
        EXPECT_EQ(latest()->files.size(), files);
      }
      run();
      EXPECT_EQ(rows(), before);
      EXPECT_EQ(latest()->files.size(), 2u);
      if (faulty->mutating_calls() < at) break;
      ASSERT_LT(at, 60);
    }
  }
}

}  // namespace
}  // namespace strandline::duck
