#include "duck/match_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "duck/sort_stretches.h"

namespace strandline::duck {
namespace {

// Rows of a file as (id, version), packed into runs, pieces of so many rows.
constexpr uint32_t kPieceRows = 37;
IdentifiedRows rows_of(size_t file, const std::vector<std::pair<int64_t, int64_t>>& rows) {
  auto ids = std::make_shared<RowIds>();
  for (const auto& [id, version] : rows) {
    const auto row = static_cast<uint32_t>(ids->row_count++);
    ids->versions.add(version);
    const bool is_cut = row % kPieceRows == 0;
    if (!is_cut) {
      IdRun& last = ids->pieces.back().back();
      if (last.id + last.count == id && last.version == version) {
        ++last.count;
        continue;
      }
    } else {
      ids->pieces.emplace_back();
    }
    ids->pieces.back().push_back({id, version, row, 1});
    ++ids->run_count;
  }
  return {file, ids, nullptr, nullptr};
}

std::shared_ptr<const delta::RowSet> set_of(const std::vector<uint64_t>& rows) {
  delta::RowSet set;
  for (const uint64_t row : rows) set.add(row);
  return std::make_shared<const delta::RowSet>(std::move(set));
}

// (id, version) of the rows of each file.
std::map<size_t, std::vector<std::pair<int64_t, int64_t>>> identities(
    const std::vector<IdentifiedRows>& side) {
  std::map<size_t, std::vector<std::pair<int64_t, int64_t>>> files;
  for (const IdentifiedRows& rows : side) {
    for (const auto& piece : rows.ids->pieces) {
      for (const IdRun& run : piece) {
        for (uint32_t i = 0; i < run.count; ++i)
          files[rows.file].emplace_back(run.id + i, run.version);
      }
    }
  }
  return files;
}

// "file.row" of each visited row, by fate.
std::map<std::pair<size_t, uint64_t>, MatchedRows> matched(
    const std::vector<IdentifiedRows>& before, const std::vector<IdentifiedRows>& after) {
  std::map<std::pair<size_t, uint64_t>, MatchedRows> fates;
  static RowMatcher matcher;  // what it keeps is of no matter
  const auto visit = [&](const MatchedRun& run) {
    for (uint64_t row = run.row; row < run.row + run.count; ++row)
      EXPECT_TRUE(fates.emplace(std::pair(run.file, row), run.fate).second);
  };
  EXPECT_TRUE(matcher.match(before, after, visit));
  // Copies are the same rows on both sides, and none that were visited.
  std::pair<size_t, uint64_t> next;
  const auto old_rows = identities(before), new_rows = identities(after);
  for (const CopiedRun& run : matcher.copies()) {
    EXPECT_LE(next, std::pair(run.after_file, run.after_row));
    next = {run.after_file, run.after_row + run.count};
    for (uint64_t i = 0; i < run.count; ++i) {
      EXPECT_EQ(old_rows.at(run.before_file).at(run.before_row + i),
                new_rows.at(run.after_file).at(run.after_row + i));
      EXPECT_FALSE(fates.contains({run.before_file, run.before_row + i}));
      EXPECT_FALSE(fates.contains({run.after_file, run.after_row + i}));
    }
  }
  return fates;
}

TEST(MatchRowsTest, TellsEveryRowItsFate) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 300; ++round) {
    // Two files a side, ids in stretches; each row has its own fate.
    std::map<int64_t, int64_t> versions[2];
    const int64_t id_count = round % 50 == 0 ? 5000 : 60;
    // In some rounds all that is there after is new, as with deletion vectors.
    const bool copies = round % 4 != 0;
    for (int64_t id = 0; id < id_count; ++id) {
      const auto fate = random() % 6;
      if (fate != 0) versions[0][id] = 1 + static_cast<int64_t>(random() % 3);
      if (fate == 1) continue;
      const bool is_copy = copies && fate > 2 && versions[0].contains(id);
      versions[1][id] = is_copy  ? versions[0][id]
                        : copies ? 1 + static_cast<int64_t>(random() % 5)
                                 : 9;
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

// As copies on write leave them: what a commit wrote stands first, then all else in its old order,
// less what the commit updated or deleted.
TEST(MatchRowsTest, FollowsFilesThatAreWrittenAnewTimeAndAgain) {
  std::mt19937_64 random(29);
  using Rows = std::vector<std::pair<int64_t, int64_t>>;  // (id, version)
  Rows before;
  for (int64_t id = 0; id < 4000; ++id) before.emplace_back(id, 1);
  int64_t next_id = 4000;
  for (int64_t version = 2; version < 90; ++version) {
    Rows after, left;
    std::map<std::pair<size_t, uint64_t>, MatchedRows> expected;
    for (uint64_t row = 0; row < before.size(); ++row) {
      const int64_t id = before[row].first;
      const auto fate = random() % 100;
      if (fate == 0) {
        expected[{0, row}] = MatchedRows::kOnlyBefore;
      } else if (fate < 3 || (version % 20 == 0 && fate < 60)) {
        expected[{0, row}] = MatchedRows::kChangedBefore;
        expected[{1, after.size()}] = MatchedRows::kChangedAfter;
        after.emplace_back(id, version);
      } else {
        left.push_back(before[row]);
      }
    }
    for (int n = 0; n < 40; ++n) {
      expected[{1, after.size()}] = MatchedRows::kOnlyAfter;
      after.emplace_back(next_id++, version);
    }
    // Some writers mix up the tasks that they divide a table into.
    if (version % 3 == 0) std::rotate(left.begin(), left.begin() + 1000, left.end());
    after.insert(after.end(), left.begin(), left.end());
    ASSERT_EQ(matched({rows_of(0, before)}, {rows_of(1, after)}), expected)
        << "version " << version;
    before = std::move(after);
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
  RowMatcher matcher;
  EXPECT_FALSE(matcher.match({rows_of(0, {{1, 1}, {2, 1}}), rows_of(1, {{2, 1}})},
                             {rows_of(2, {{3, 1}})}, visit));
  EXPECT_FALSE(matcher.match({rows_of(0, {{1, 1}})}, {rows_of(2, {{3, 1}, {3, 2}})}, visit));
  EXPECT_FALSE(matcher.match({rows_of(0, {{1, 1}})}, {rows_of(2, {{1, 1}, {1, 1}})}, visit));
  EXPECT_FALSE(matcher.match({rows_of(0, {{1, 1}})}, {rows_of(2, {{1, 2}, {1, 2}})}, visit));
  EXPECT_FALSE(matcher.match({rows_of(0, {{1, 1}, {1, 1}})}, {rows_of(2, {{1, 2}})}, visit));
}

}  // namespace
}  // namespace strandline::duck
