#include "duck/changed_rows.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <utility>

namespace strandline::duck {
namespace {

using ::testing::ElementsAre;

std::vector<std::pair<uint64_t, uint64_t>> pairs(const std::vector<ChangedRow>& rows) {
  std::vector<std::pair<uint64_t, uint64_t>> made;
  made.reserve(rows.size());
  for (const ChangedRow& row : rows) made.emplace_back(row.row(), row.change());
  return made;
}

TEST(ChangedRowsTest, SortsByRowAndKeepsTheOrderOfEqualOnes) {
  std::mt19937_64 random(7);
  for (const uint64_t spread : {uint64_t{3}, uint64_t{5000}, ChangedRow::kMaxRow}) {
    std::vector<ChangedRow> rows;
    for (uint64_t i = 0; i < 4000; ++i) rows.emplace_back(random() % spread, i);
    auto expected = rows;
    std::stable_sort(expected.begin(), expected.end(),
                     [](const auto& a, const auto& b) { return a.row() < b.row(); });
    sort_by_row(&rows);
    EXPECT_EQ(pairs(rows), pairs(expected)) << spread;
  }
}

TEST(ChangedRowsTest, StretchesThatAscendAreMerged) {
  std::mt19937_64 random(3);
  // Rows far apart, too, and stretches that are too many.
  for (const uint64_t gap : {1, 40, 9'000}) {
    for (const uint64_t stretches : {2, 20, 700}) {
      std::vector<ChangedRow> rows;
      for (uint64_t stretch = 0; stretch < stretches; ++stretch) {
        uint64_t row = random() % 10'000;
        for (uint64_t i = 0; i < 100 + random() % 500; ++i) {
          rows.emplace_back(row, stretch);
          row += random() % (gap + 1);
        }
      }
      auto expected = rows;
      std::stable_sort(expected.begin(), expected.end(),
                       [](const auto& a, const auto& b) { return a.row() < b.row(); });
      sort_by_row(&rows);
      EXPECT_TRUE(pairs(rows) == pairs(expected)) << gap << " " << stretches;
    }
  }
}

TEST(ChangedRowsTest, RepeatedRowsGoIntoFurtherLists) {
  const auto lists = without_repeats({{1, 0}, {1, 5}, {2, 3}, {4, 1}, {4, 2}, {4, 7}});
  ASSERT_EQ(lists.size(), 3U);
  EXPECT_THAT(pairs(lists[0]), ElementsAre(std::pair(1, 0), std::pair(2, 3), std::pair(4, 1)));
  EXPECT_THAT(pairs(lists[1]), ElementsAre(std::pair(1, 5), std::pair(4, 2)));
  EXPECT_THAT(pairs(lists[2]), ElementsAre(std::pair(4, 7)));
  EXPECT_EQ(without_repeats({{1, 0}, {9, 0}}).size(), 1U);
}

}  // namespace
}  // namespace strandline::duck
