#include "duck/key_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace strandline::duck {
namespace {

class KeyFilterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto database = Database::open({});
    ASSERT_TRUE(database.ok());
    connection_ = std::move((*database)->connect()).value();
  }
  std::unique_ptr<KeyFilter> filter(const std::string& sql) {
    auto made = build_key_filter(*connection_, sql);
    EXPECT_TRUE(made.ok()) << made.error().message;
    return std::move(made).value();
  }
  int64_t count(const std::string& sql) {
    auto result = connection_->query_int("SELECT count(*) FROM " + sql);
    EXPECT_TRUE(result.ok()) << result.error().message;
    return result.ok() ? *result : -1;
  }
  std::unique_ptr<Connection> connection_;
};

TEST_F(KeyFilterTest, KeepsEveryKeyAndFewOthers) {
  for (const int keys : {0, 10, 100'000}) {
    const auto made = filter("SELECT i * 3 FROM range(" + std::to_string(keys) + ") r(i)");
    const std::string range = "range(1000000) r(i) WHERE ";
    const std::string is_key = "i % 3 = 0 AND i < " + std::to_string(3 * keys);
    EXPECT_EQ(count(range + is_key + " AND NOT " + made->condition("i")), 0) << keys;
    EXPECT_LT(count(range + made->condition("i") + " AND NOT (" + is_key + ")"), 5000) << keys;
  }
}

TEST_F(KeyFilterTest, TextsAndNulls) {
  const auto made = filter("SELECT * FROM (VALUES ('a'), ('long enough not to be inlined'))");
  EXPECT_EQ(count("(VALUES ('a'), ('b'), ('long enough not to be inlined'), (NULL)) t(k) WHERE " +
                  made->condition("k")),
            2);
  const auto with_null = filter("SELECT * FROM (VALUES ('a'), (NULL))");
  EXPECT_EQ(count("(VALUES ('a'), ('b'), (NULL)) t(k) WHERE " + with_null->condition("k")), 2);
}

// What the filter is for: the engine runs it inside the scan, before other columns.
TEST_F(KeyFilterTest, IsPushedIntoParquetScans) {
  const std::string path = std::filesystem::path(::testing::TempDir()) /
                           ("strandline_key_filter_" + std::to_string(::getpid()) + ".parquet");
  ASSERT_TRUE(connection_
                  ->execute("COPY (SELECT i AS k, 'v' || i AS v FROM range(10000) r(i)) TO " +
                            quote_literal(path) + " (FORMAT parquet)")
                  .ok());
  const auto made = filter("SELECT 5::BIGINT");
  auto plan = connection_->query("EXPLAIN SELECT v FROM (SELECT k AS key, v FROM read_parquet(" +
                                 quote_literal(path) + ")) WHERE " + made->condition("key"));
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_THAT(*plan->rows[0][1], ::testing::HasSubstr("sl_key_filter"));
  EXPECT_THAT(*plan->rows[0][1], ::testing::Not(::testing::HasSubstr("FILTER  ")));
  std::filesystem::remove(path);
}

TEST_F(KeyFilterTest, OutlivedFiltersAreErrors) {
  const std::string condition = filter("SELECT 1")->condition("i");
  EXPECT_FALSE(connection_->query("SELECT * FROM range(3) r(i) WHERE " + condition).ok());
}

}  // namespace
}  // namespace strandline::duck
