#include "duck/match_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <string>

#include "duck/sort_stretches.h"

namespace strandline::duck {
namespace {

// Rows of a file as (id, version), packed into runs.
IdentifiedRows rows_of(size_t file, const std::vector<std::pair<int64_t, int64_t>>& rows) {
  auto ids = std::make_shared<RowIds>();
  for (const auto& [id, version] : rows) {
    const auto row = static_cast<uint32_t>(ids->row_count++);
    if (!ids->runs.empty()) {
      IdRun& last = ids->runs.back();
      if (last.id + last.count == id && last.version == version) {
        ++last.count;
        continue;
      }
    }
    ids->runs.push_back({id, version, row, 1});
  }
  // As a reader gives them, or to be sorted by the one who matches.
  if (ids->runs.size() % 2 == 0) {
    ids->by_id.resize(ids->runs.size());
    std::iota(ids->by_id.begin(), ids->by_id.end(), 0U);
    sort_stretches(&ids->by_id,
                   [&](uint32_t a, uint32_t b) { return ids->runs[a].id < ids->runs[b].id; });
  }
  return {file, ids, nullptr, nullptr};
}

std::shared_ptr<const delta::RowSet> set_of(const std::vector<uint64_t>& rows) {
  delta::RowSet set;
  for (const uint64_t row : rows) set.add(row);
  return std::make_shared<const delta::RowSet>(std::move(set));
}

// "file.row" of each visited row, by fate.
std::map<std::pair<size_t, uint64_t>, MatchedRows> matched(
    const std::vector<IdentifiedRows>& before, const std::vector<IdentifiedRows>& after) {
  std::map<std::pair<size_t, uint64_t>, MatchedRows> fates;
  EXPECT_TRUE(match_rows(before, after, [&](const MatchedRun& run) {
    for (uint64_t row = run.row; row < run.row + run.count; ++row)
      EXPECT_TRUE(fates.emplace(std::pair(run.file, row), run.fate).second);
  }));
  return fates;
}

TEST(MatchRowsTest, TellsEveryRowItsFate) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 300; ++round) {
    // Two files a side, ids in stretches; each row has its own fate.
    std::map<int64_t, int64_t> versions[2];
    for (int64_t id = 0; id < 60; ++id) {
      const auto fate = random() % 6;
      if (fate != 0) versions[0][id] = 1 + static_cast<int64_t>(random() % 2);
      if (fate != 1)
        versions[1][id] = fate == 2 ? 9 : versions[0].contains(id) ? versions[0][id] : 9;
    }
    std::vector<IdentifiedRows> sides[2];
    std::map<std::pair<size_t, uint64_t>, int64_t> live[2];  // place -> id
    for (size_t side = 0; side < 2; ++side) {
      std::vector<std::pair<int64_t, int64_t>> ids(versions[side].begin(), versions[side].end());
      if (random() % 3 == 0) std::shuffle(ids.begin(), ids.end(), random);
      const size_t cut = ids.empty() ? 0 : random() % ids.size();
      const std::vector<std::pair<int64_t, int64_t>> parts[2] = {
          {ids.begin() + static_cast<long>(cut), ids.end()},
          {ids.begin(), ids.begin() + static_cast<long>(cut)}};
      for (size_t part = 0; part < 2; ++part) {
        IdentifiedRows rows = rows_of(side * 2 + part, parts[part]);
        std::vector<uint64_t> dead, only;
        for (uint64_t row = 0; row < parts[part].size(); ++row) {
          if (random() % 4 == 0) dead.push_back(row);
          if (random() % 2 == 0) only.push_back(row);
        }
        if (random() % 2 == 0) rows.dead = set_of(dead);
        if (random() % 3 == 0) rows.only = set_of(only);
        for (uint64_t row = 0; row < parts[part].size(); ++row) {
          if (rows.dead && rows.dead->contains(row)) continue;
          if (rows.only && !rows.only->contains(row)) continue;
          live[side][{side * 2 + part, row}] = parts[part][row].first;
        }
        sides[side].push_back(std::move(rows));
      }
    }
    std::map<std::pair<size_t, uint64_t>, MatchedRows> expected;
    for (size_t side = 0; side < 2; ++side) {
      std::map<int64_t, bool> others;
      for (const auto& [place, id] : live[1 - side]) others[id] = true;
      for (const auto& [place, id] : live[side]) {
        if (!others.contains(id)) {
          expected[place] = side == 0 ? MatchedRows::kOnlyBefore : MatchedRows::kOnlyAfter;
        } else if (versions[0][id] != versions[1][id]) {
          expected[place] = side == 0 ? MatchedRows::kChangedBefore : MatchedRows::kChangedAfter;
        }
      }
    }
    ASSERT_EQ(matched(sides[0], sides[1]), expected) << "round " << round;
  }
}

TEST(SortStretchesTest, SortsAndKeepsTheOrderOfEqualItems) {
  std::mt19937_64 random(3);
  for (const size_t stretches : {1U, 2U, 3U, 7U, 40U, 900U}) {
    std::vector<std::pair<int, int>> items;
    for (size_t i = 0; i < stretches; ++i) {
      int value = 0;
      for (size_t n = random() % 60; n > 0; --n)
        items.emplace_back(value += static_cast<int>(random() % 3), static_cast<int>(items.size()));
    }
    const auto less = [](const auto& a, const auto& b) { return a.first < b.first; };
    auto expected = items;
    std::stable_sort(expected.begin(), expected.end(), less);
    sort_stretches(&items, less);
    EXPECT_EQ(items, expected) << stretches;
  }
}

TEST(MatchRowsTest, AnIdThatIsThereTwiceIsNotMatched) {
  const auto visit = [](const MatchedRun&) { FAIL(); };
  EXPECT_FALSE(match_rows({rows_of(0, {{1, 1}, {2, 1}}), rows_of(1, {{2, 1}})},
                          {rows_of(2, {{3, 1}})}, visit));
  EXPECT_FALSE(match_rows({rows_of(0, {{1, 1}})}, {rows_of(2, {{3, 1}, {3, 2}})}, visit));
}

}  // namespace
}  // namespace strandline::duck
