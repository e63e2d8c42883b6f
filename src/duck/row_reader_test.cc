#include "duck/row_reader.h"

#include <gmock/gmock.h>

#include "base/error.h"

namespace strandline::duck {
namespace {

using ::testing::ElementsAre;

class ChainTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto database = Database::open({});
    ASSERT_TRUE(database.ok()) << database.error().message;
    database_ = *database;
  }

  // Results of these queries; "!" is an error.
  Result<std::unique_ptr<RowReader>> chain(std::vector<std::string> queries) {
    const auto next = [this, queries,
                       at = size_t{0}]() mutable -> Result<std::unique_ptr<RowReader>> {
      ++opened_;
      if (at == queries.size()) return std::unique_ptr<RowReader>();
      const std::string& query = queries[at++];
      if (query == "!") return invalid_data("NO_MORE", "that was all");
      SL_ASSIGN(auto connection, database_->connect());
      return RowReader::open(std::move(connection), query);
    };
    return RowReader::chain(next);
  }

  static std::vector<std::string> rows(RowReader& reader) {
    std::vector<std::string> texts;
    for (;;) {
      const auto row = reader.next_row();
      if (!row.ok()) {
        const bool is_cancelled = row.error().kind == ErrorKind::kCancelled;
        texts.push_back(is_cancelled ? "cancelled" : row.error().code);
      }
      if (!row.ok() || !*row) return texts;
      texts.push_back(std::get<std::string>((**row)[0]));
    }
  }

  std::shared_ptr<Database> database_;
  int opened_ = 0;
};

TEST_F(ChainTest, RowsFollowEachOther) {
  auto reader = chain({"SELECT 'a' AS v", "SELECT 'b' AS v WHERE false", "SELECT 'c' AS v"});
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(opened_, 1);
  EXPECT_EQ((*reader)->columns().at(0).name, "v");
  EXPECT_THAT(rows(**reader), ElementsAre("a", "c"));
  EXPECT_EQ(opened_, 4);
  EXPECT_THAT(rows(**reader), ElementsAre());
  EXPECT_EQ(opened_, 4);
}

TEST_F(ChainTest, ArraysFollowEachOther) {
  auto reader = chain({"SELECT i AS v FROM range(3) t(i)", "SELECT 7 AS v WHERE false",
                       "SELECT i AS v FROM range(5) t(i)"});
  ASSERT_TRUE(reader.ok());
  ASSERT_TRUE((*reader)->next_row().ok());
  std::vector<int64_t> lengths;
  for (;;) {
    ArrowArray array;
    ASSERT_TRUE((*reader)->next_array(&array).ok());
    if (array.release == nullptr) break;
    lengths.push_back(array.length);
    array.release(&array);
  }
  EXPECT_THAT(lengths, ElementsAre(2, 5));
}

TEST_F(ChainTest, ErrorsAndInterruptsEndIt) {
  EXPECT_FALSE(chain({}).ok());
  EXPECT_FALSE(chain({"!"}).ok());
  auto reader = chain({"SELECT 'a' AS v", "!", "SELECT 'b' AS v"});
  ASSERT_TRUE(reader.ok());
  EXPECT_THAT(rows(**reader), ElementsAre("a", "NO_MORE"));
  reader = chain({"SELECT 'a' AS v", "SELECT 'b' AS v"});
  ASSERT_TRUE(reader.ok());
  ASSERT_TRUE((*reader)->next_row().ok());
  (*reader)->interrupt();
  EXPECT_THAT(rows(**reader), ElementsAre("cancelled"));
}

}  // namespace
}  // namespace strandline::duck
