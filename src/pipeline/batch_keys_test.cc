#include "pipeline/batch_keys.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace strandline::pipeline {
namespace {

class BatchKeysTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto database = duck::Database::open({});
    ASSERT_TRUE(database.ok());
    connection_ = std::move((*database)->connect()).value();
    plan_.keys = {Field{"region", DataType::primitive(TypeId::kString), true, {}},
                  Field{"Id", DataType::primitive(TypeId::kLong), true, {}}};
    program_.keys = "SELECT 'r' || i % 2, i * 7 FROM range(100) AS t(i)";
    table_.schema.fields = plan_.keys;
  }
  // A file of so many rows with ids from `first` on; rows of the relation lie in the first one.
  void add_file(int64_t rows, int64_t first) {
    delta::AddFile file;
    file.stats = fmt::format(
        R"({{"numRecords":{},"minValues":{{"Id":{}}},"maxValues":{{"Id":{}}},"nullCount":{{"Id":0}}}})",
        rows, first, first + rows - 1);
    table_.files.push_back(file);
  }
  std::string rows() {
    auto keys = BatchKeys::of(*connection_, plan_, program_);
    EXPECT_TRUE(keys.ok()) << keys.error().message;
    keys_.emplace(std::move(*keys));
    auto rows = keys_->rows(*connection_, kRows, table_, keys_->files(table_));
    EXPECT_TRUE(rows.ok()) << rows.error().message;
    return rows.value();
  }
  int64_t count(const std::string& from) {
    return connection_->query_int("SELECT count(*) FROM " + from).value();
  }

  static constexpr const char* kRows =
      "(SELECT 'r' || i % 2 AS region, i AS \"Id\" FROM range(50000) AS t(i))";
  std::unique_ptr<duck::Connection> connection_;
  cdc::Plan plan_;
  cdc::Program program_;
  delta::Snapshot table_;
  std::optional<BatchKeys> keys_;
};

TEST_F(BatchKeysTest, LeavesOutRowsOfOtherKeysAndTheirFiles) {
  add_file(50'000, 0);
  add_file(50'000, 50'000);
  const std::string kept = rows();
  EXPECT_EQ(keys_->files(table_).selection.files, std::vector<size_t>{0});
  // By the column that tells keys apart, which is not the first.
  EXPECT_EQ(count(kept + " WHERE \"Id\" % 7 = 0 AND \"Id\" < 700"), 100);
  EXPECT_LT(count(kept), 1000);
}

TEST_F(BatchKeysTest, FewRowsAreReadAsTheyAre) {
  add_file(5'000, 0);
  add_file(50'000, 50'000);
  EXPECT_EQ(rows(), kRows);
}

TEST_F(BatchKeysTest, ManyKeysAreNoFilter) {
  add_file(50'000, 0);
  program_.keys = "SELECT 'r', i FROM range(20000) AS t(i)";
  EXPECT_EQ(rows(), kRows);
}

// A hash of another type's value says nothing.
TEST_F(BatchKeysTest, AnotherTypeInTheTableIsNoFilter) {
  add_file(50'000, 0);
  table_.schema.fields[1].type = DataType::primitive(TypeId::kInteger);
  EXPECT_EQ(rows(), kRows);
}

TEST_F(BatchKeysTest, TruncatesReadEverything) {
  add_file(50'000, 0);
  add_file(50'000, 50'000);
  program_.keys.clear();
  EXPECT_EQ(rows(), kRows);
  EXPECT_EQ(keys_->files(table_).selection.files.size(), 2);
}

}  // namespace
}  // namespace strandline::pipeline
