// Whole tables: the Delta layer's commits and checkpoints with data files of this folder.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "delta/transaction.h"
#include "duck/delta_io.h"
#include "duck/table_change.h"

namespace strandline::duck {
namespace {

class TableTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto database = Database::open({});
    ASSERT_TRUE(database.ok());
    port_ = make_parquet_port(*database);
    connection_ = std::move((*database)->connect()).value();
    directory_ =
        std::filesystem::path(::testing::TempDir()) / ("table_" + std::to_string(getpid()));
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  delta::Table table() const {
    return delta::Table(storage::make_local_store(), port_, directory_.string());
  }
  std::shared_ptr<const delta::Snapshot> latest() const {
    auto snapshot = table().snapshot();
    EXPECT_TRUE(snapshot.ok()) << snapshot.error().message;
    return snapshot.ok() ? *snapshot : nullptr;
  }

  void append(delta::Transaction transaction, const std::string& query,
              const WriteOptions& options = {}) {
    auto files = write_files(*connection_, table(), transaction.snapshot(), query, options);
    ASSERT_TRUE(files.ok()) << files.error().message;
    for (delta::AddFile& file : *files) transaction.add_file(std::move(file));
    transaction.set_operation("WRITE");
    auto version = transaction.commit_or_error();
    ASSERT_TRUE(version.ok()) << version.error().message;
  }
  delta::Transaction begin() const {
    return std::move(delta::Transaction::begin(table(), latest())).value();
  }

  // One line for each row: "1|a|...".
  std::vector<std::string> rows(const ScanOptions& options, const std::string& select) {
    auto scan = scan_table(*connection_, table(), latest(), options);
    EXPECT_TRUE(scan.ok()) << scan.error().message;
    auto result = connection_->query("SELECT " + select + " FROM " + (*scan)->sql() + " AS t");
    EXPECT_TRUE(result.ok()) << result.error().message;
    std::vector<std::string> lines;
    for (const auto& row : result->rows) {
      std::string line;
      for (const Cell& cell : row) line += (line.empty() ? "" : "|") + cell.value_or("NULL");
      lines.push_back(line);
    }
    return lines;
  }

  std::shared_ptr<delta::ParquetPort> port_;
  std::unique_ptr<Connection> connection_;
  std::filesystem::path directory_;
};

TEST_F(TableTest, AChangeThatDoesNotBalanceFailsBeforeItsCommit) {
  delta::NewTable definition;
  definition.schema.fields = {Field{"id", DataType::primitive(TypeId::kLong), true, {}}};
  auto created = delta::Transaction::create(table(), definition);
  ASSERT_TRUE(created.ok()) << created.error().message;
  append(std::move(created).value(), "SELECT i AS id FROM range(10) r(i)");
  const auto apply = [&](const TableChange& change) {
    delta::Transaction transaction = begin();
    AppliedChange applied;
    const Status done =
        apply_change(*connection_, transaction, table(), latest(), change, &applied);
    if (!done.ok()) return done.error().code + " " + done.error().message;
    EXPECT_TRUE(commit_change(transaction, table(), applied).ok());
    return std::string();
  };
  const auto change = [](const char* new_rows, int64_t new_count, const char* dead_rows,
                         int64_t dead_count) {
    TableChange made{new_rows, dead_rows};
    made.new_count = new_count;
    made.dead_count = dead_count;
    return made;
  };
  const char* const two = "SELECT 20 + i AS id FROM range(2) r(i)";
  const char* const third = "SELECT 0::INTEGER, 3::BIGINT";
  const auto broken = [](const char* numbers) {
    return ::testing::AllOf(::testing::StartsWith("INTERNAL_INVARIANT stage write of "),
                            ::testing::HasSubstr(numbers));
  };
  EXPECT_THAT(apply(change(two, 3, third, 1)),
              broken("3 new rows are counted, but 2 were written"));
  EXPECT_THAT(apply(change(two, 2, third, 2)), broken("2 dead rows are counted, but 1 are listed"));
  EXPECT_THAT(apply(change(two, 2, "SELECT 0::INTEGER, 3::BIGINT FROM range(2)", 2)),
              broken("2 dead rows are listed, but 1 are different ones"));
  EXPECT_THAT(apply(change(two, 2, "SELECT 0::INTEGER, 10::BIGINT", 1)),
              broken("10 is the position"));
  EXPECT_THAT(apply(change(two, 2, "SELECT 1::INTEGER, 0::BIGINT", 1)), broken("1 files"));
  EXPECT_EQ(latest()->version, 0);
  EXPECT_EQ(apply(change("", 0, third, 1)), "");
  EXPECT_THAT(apply(change(two, 2, third, 1)), broken("1 rows are to die in "));
  EXPECT_EQ(rows({}, "count(*), sum(id)"), std::vector<std::string>{"9|42"});
}

TEST_F(TableTest, AppendUpdateDeleteOverCheckpoints) {
  delta::NewTable definition;
  definition.schema.fields = {Field{"id", DataType::primitive(TypeId::kLong), false, {}},
                              Field{"name", DataType::primitive(TypeId::kString), true, {}}};
  auto created = delta::Transaction::create(table(), definition);
  ASSERT_TRUE(created.ok()) << created.error().message;
  append(std::move(created).value(), "SELECT i AS id, 'n' || i AS name FROM range(100) r(i)");

  // Twelve updates of row 5, which keep its row id, then deletes: more than one checkpoint.
  ScanOptions with_all;
  with_all.with_positions = true;
  with_all.with_row_ids = true;
  for (int round = 1; round <= 12; ++round) {
    const auto snapshot = latest();
    auto scan = scan_table(*connection_, table(), snapshot, with_all);
    ASSERT_TRUE(scan.ok()) << scan.error().message;
    const std::string from = " FROM " + (*scan)->sql() + " AS t WHERE id = 5";
    auto dead = collect_rows(*connection_, "SELECT __strandline_file, __strandline_row" + from);
    ASSERT_TRUE(dead.ok()) << dead.error().message;
    ASSERT_EQ(dead->size(), 1u);
    delta::Transaction transaction = begin();
    for (const auto& [file, positions] : *dead) {
      ASSERT_TRUE(transaction.delete_rows(snapshot->files[file], positions).ok());
    }
    WriteOptions options;
    options.with_row_ids = true;
    append(std::move(transaction),
           "SELECT id, 'round " + std::to_string(round) +
               "' AS name, __strandline_row_id, NULL::BIGINT AS __strandline_row_commit_version" +
               from,
           options);
  }
  EXPECT_TRUE(
      std::filesystem::exists(directory_ / "_delta_log/00000000000000000010.checkpoint.parquet"));
  ScanOptions ids;
  ids.with_row_ids = true;
  EXPECT_THAT(rows(ids,
                   "name, __strandline_row_id, __strandline_row_commit_version, "
                   "(SELECT count(*) FROM range(1))"),
              ::testing::Contains("round 12|5|12|1"));
  EXPECT_EQ(rows({}, "count(*), count(DISTINCT id), sum(id)"),
            std::vector<std::string>{"100|100|4950"});

  // Everything is still there when the log before the checkpoint is not.
  for (int version = 0; version < 10; ++version) {
    std::filesystem::remove(directory_ / fmt::format("_delta_log/{:020}.json", version));
  }
  EXPECT_EQ(latest()->version, 12);
  EXPECT_EQ(rows({}, "count(*), count(DISTINCT id), sum(id)"),
            std::vector<std::string>{"100|100|4950"});
}

}  // namespace
}  // namespace strandline::duck
