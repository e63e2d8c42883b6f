// Rows of one file, each with the number of what happened to it in a change feed.
#pragma once

#include <cstdint>
#include <vector>

namespace strandline::duck {

// Eight bytes a row, for there may be many millions.
struct ChangedRow {
  static constexpr uint64_t kMaxRow = (uint64_t{1} << 40) - 1;  // no file is so large
  static constexpr uint64_t kMaxChange = (uint64_t{1} << 24) - 1;

  ChangedRow() = default;
  ChangedRow(uint64_t row, uint64_t change) : bits(row << 24 | change) {}
  uint64_t row() const { return bits >> 24; }
  uint64_t change() const { return bits & kMaxChange; }

  uint64_t bits = 0;
};

// Ascending, no row twice.
using ChangedRows = std::vector<ChangedRow>;

// Sorts by row, keeping the order of equal rows. Takes a few nanoseconds a row.
void sort_by_row(std::vector<ChangedRow>* rows);

// Sorted rows, some of them several times, as lists that have each row once: the first appearances
// first.
std::vector<ChangedRows> without_repeats(std::vector<ChangedRow> rows);

}  // namespace strandline::duck
