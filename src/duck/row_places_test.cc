#include "duck/row_places.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>

namespace strandline::duck {
namespace {

using Place = std::pair<uint32_t, uint32_t>;  // file, row
using Model = std::map<int64_t, Place>;

// What is known of ids, as find tells it; also that it visits each id once, in order.
Model found(const RowPlaces& places, const std::vector<PlacedRun>& runs) {
  Model model;
  std::vector<int64_t> visited, wanted;
  for (const PlacedRun& run : runs) {
    for (uint32_t i = 0; i < run.count; ++i) wanted.push_back(run.id + i);
  }
  places.find(runs, [&](const PlacedRun& given, const PlacedRun* known) {
    for (uint32_t i = 0; i < given.count; ++i) {
      visited.push_back(given.id + i);
      if (known != nullptr) model[given.id + i] = {known->file, known->row + i};
    }
    EXPECT_TRUE(known == nullptr || (known->id == given.id && known->count == given.count));
  });
  EXPECT_EQ(visited, wanted);
  return model;
}

TEST(RowPlacesTest, SortsByIdAndSeesIdsThatAreThereTwice) {
  std::vector<PlacedRun> runs = {{5, 0, 2, 0}, {0, 2, 5, 0}};
  EXPECT_TRUE(sort_by_id(&runs));
  EXPECT_EQ(runs[0].id, 0);
  runs.push_back({6, 0, 1, 1});
  EXPECT_FALSE(sort_by_id(&runs));
}

TEST(RowPlacesTest, TheLastPlaceIsKnown) {
  RowPlaces places;
  const std::vector<PlacedRun> all = {{0, 0, 12, 9}};
  EXPECT_EQ(found(places, all), Model());
  places.put({{0, 0, 10, 0}});
  EXPECT_EQ(places.run_count(), 1U);
  places.put({{3, 7, 2, 1}, {9, 0, 2, 1}});
  const Model expected = {{0, {0, 0}}, {1, {0, 1}}, {2, {0, 2}}, {3, {1, 7}},
                          {4, {1, 8}}, {5, {0, 5}}, {6, {0, 6}}, {7, {0, 7}},
                          {8, {0, 8}}, {9, {1, 0}}, {10, {1, 1}}};
  EXPECT_EQ(found(places, all), expected);
  EXPECT_EQ(places.run_count(), 4U);
  // What goes on is one run again.
  places.put({{3, 3, 2, 0}});
  EXPECT_EQ(places.run_count(), 2U);
  places.clear();
  EXPECT_EQ(places.run_count(), 0U);
  EXPECT_EQ(found(places, all), Model());
}

TEST(RowPlacesTest, AgreesWithAMapOfIds) {
  std::mt19937_64 random(11);
  constexpr int64_t kIds = 20'000;
  RowPlaces places;
  Model model;
  for (uint32_t file = 0; file < 30; ++file) {
    // Runs of single rows mostly, so that there are several blocks of them.
    std::vector<PlacedRun> runs;
    const uint64_t longest = file % 7 == 0 ? 7'000 : 3;
    const uint64_t gap = file % 5 == 0 ? 4'000 : 1 + file % 4;
    int64_t id = static_cast<int64_t>(random() % 1'000);
    for (uint32_t row = 0; id < kIds;) {
      const auto count = static_cast<uint32_t>(1 + random() % longest);
      runs.push_back({id, row, count, file});
      id += count + static_cast<int64_t>(random() % (gap + 1));
      row += count + static_cast<uint32_t>(random() % 2);
    }
    Model expected;
    for (const PlacedRun& run : runs) {
      for (uint32_t i = 0; i < run.count; ++i) {
        const auto known = model.find(run.id + i);
        if (known != model.end()) expected.insert(*known);
      }
    }
    ASSERT_EQ(found(places, runs), expected) << file;
    places.put(runs);
    for (const PlacedRun& run : runs) {
      for (uint32_t i = 0; i < run.count; ++i) model[run.id + i] = {run.file, run.row + i};
    }
  }
  EXPECT_EQ(found(places, {{-5, 0, 2 * kIds, 0}}), model);
}

}  // namespace
}  // namespace strandline::duck
