#include "duck/changed_rows.h"

#include <algorithm>
#include <array>
#include <bit>

namespace strandline::duck {

void sort_by_row(std::vector<ChangedRow>* rows) {
  const auto by_row = [](const ChangedRow& a, const ChangedRow& b) { return a.row() < b.row(); };
  if (std::is_sorted(rows->begin(), rows->end(), by_row)) return;
  // Radix sort, lowest digit first, over as few digits as will do.
  constexpr int kMaxDigitBits = 12;
  uint64_t all = 0;
  for (const ChangedRow& row : *rows) all |= row.row();
  const int bits = static_cast<int>(std::bit_width(all));
  const int digits = (bits + kMaxDigitBits - 1) / kMaxDigitBits;
  const int digit_bits = (bits + digits - 1) / digits;
  std::vector<ChangedRow> sorted(rows->size());
  for (int shift = 0; shift < bits; shift += digit_bits) {
    const auto digit = [&](const ChangedRow& row) {
      return static_cast<size_t>(row.row() >> shift) & ((size_t{1} << digit_bits) - 1);
    };
    std::array<size_t, size_t{1} << kMaxDigitBits> next{};
    for (const ChangedRow& row : *rows) ++next[digit(row)];
    size_t begin = 0;
    for (size_t& place : next) {
      const size_t count = place;
      place = begin;
      begin += count;
    }
    for (const ChangedRow& row : *rows) sorted[next[digit(row)]++] = row;
    rows->swap(sorted);
  }
}

std::vector<ChangedRows> without_repeats(std::vector<ChangedRow> rows) {
  std::vector<ChangedRows> lists(1);
  const auto repeats = [](const ChangedRow& a, const ChangedRow& b) { return a.row() == b.row(); };
  if (std::adjacent_find(rows.begin(), rows.end(), repeats) == rows.end()) {
    lists[0] = std::move(rows);
    return lists;
  }
  size_t list = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    list = i > 0 && rows[i].row() == rows[i - 1].row() ? list + 1 : 0;
    if (list == lists.size()) lists.emplace_back();
    lists[list].push_back(rows[i]);
  }
  return lists;
}

}  // namespace strandline::duck
