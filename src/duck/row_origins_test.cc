#include "duck/row_origins.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace strandline::duck {
namespace {

using Place = std::pair<size_t, uint64_t>;

size_t same(size_t file) { return file; }

Place place_of(RowOrigins* origins, size_t file, uint64_t row) {
  const RowPlace place = origins->find(file, row, 1);
  return {place.file, place.row};
}

TEST(RowOriginsTest, LeadsBackToTheFirstFile) {
  RowOrigins origins;
  // file 1 is file 0 without its row 3, behind two new rows.
  origins.add({{0, 0, 1, 2, 3}, {0, 4, 1, 5, 6}}, same);
  // file 2 is file 1 without its rows 0 and 6, behind one new row.
  origins.add({{1, 1, 2, 1, 5}, {1, 7, 2, 6, 4}}, same);
  EXPECT_EQ(place_of(&origins, 2, 0), Place(2, 0));
  EXPECT_EQ(place_of(&origins, 2, 1), Place(1, 1));
  EXPECT_EQ(place_of(&origins, 2, 2), Place(0, 0));
  EXPECT_EQ(place_of(&origins, 2, 5), Place(0, 4));
  EXPECT_EQ(place_of(&origins, 2, 6), Place(0, 6));
  EXPECT_EQ(place_of(&origins, 2, 9), Place(0, 9));
  EXPECT_EQ(place_of(&origins, 2, 10), Place(2, 10));
  EXPECT_EQ(place_of(&origins, 1, 0), Place(1, 0));
  const RowPlace three = origins.find(2, 2, 10);
  EXPECT_EQ(three.count, 3U);
  origins.keep([](size_t file) { return file == 1; });
  EXPECT_EQ(place_of(&origins, 2, 2), Place(2, 2));
  EXPECT_EQ(place_of(&origins, 1, 2), Place(0, 0));
}

TEST(RowOriginsTest, FindsRowsInAnyOrder) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 50; ++round) {
    RowOrigins origins;
    std::map<Place, Place> known;
    constexpr uint64_t kRows = 400;
    for (uint64_t row = 0; row < kRows; ++row) known[{0, row}] = {0, row};
    for (size_t file = 1; file < 8; ++file) {
      std::vector<CopiedRun> copies;
      for (uint64_t row = 0; row < kRows;) {
        const uint64_t count = std::min(kRows - row, 1 + random() % 9);
        if (random() % 3 == 0) {
          for (uint64_t i = row; i < row + count; ++i) known[{file, i}] = {file, i};
        } else {
          const size_t from_file = random() % file;
          const uint64_t from = random() % (kRows - count + 1);
          copies.push_back({from_file, from, file, row, count});
          for (uint64_t i = 0; i < count; ++i)
            known[{file, row + i}] = known[{from_file, from + i}];
        }
        row += count;
      }
      origins.add(copies, same);
    }
    for (int n = 0; n < 3000; ++n) {
      const size_t file = random() % 8;
      const uint64_t row = random() % kRows;
      const RowPlace place = origins.find(file, row, kRows - row);
      for (uint64_t i = 0; i < place.count; ++i)
        ASSERT_EQ((known[{file, row + i}]), Place(place.file, place.row + i));
    }
  }
}

}  // namespace
}  // namespace strandline::duck
