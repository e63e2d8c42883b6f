#include "duck/changed_rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace strandline::duck {

namespace {

// Radix sort, lowest digit first, over as few digits as will do.
void sort_by_digits(std::vector<ChangedRow>* rows) {
  constexpr int kMaxDigitBits = 8;  // more places to write to than so are no longer at hand
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

// A part of the rows that ascends.
struct Stretch {
  size_t at = 0;  // what is before it is done
  size_t end = 0;
};

// Counts and places the rows of one block after the other, taken from all stretches: both sides of
// that stay at hand.
void merge_by_blocks(std::vector<ChangedRow>* rows, std::vector<Stretch> stretches) {
  constexpr uint64_t kBlockRows = 4096;
  std::vector<ChangedRow> sorted(rows->size());
  std::vector<size_t> begins(stretches.size());
  size_t done = 0;
  while (done < rows->size()) {
    uint64_t first = ChangedRow::kMaxRow;
    for (const Stretch& stretch : stretches) {
      if (stretch.at < stretch.end) first = std::min(first, (*rows)[stretch.at].row());
    }
    first -= first % kBlockRows;
    std::array<size_t, kBlockRows> next{};
    for (size_t i = 0; i < stretches.size(); ++i) {
      Stretch& stretch = stretches[i];
      begins[i] = stretch.at;
      for (; stretch.at < stretch.end; ++stretch.at) {
        const uint64_t row = (*rows)[stretch.at].row() - first;
        if (row >= kBlockRows) break;
        ++next[row];
      }
    }
    for (size_t& place : next) {
      const size_t count = place;
      place = done;
      done += count;
    }
    for (size_t i = 0; i < stretches.size(); ++i) {
      for (size_t from = begins[i]; from < stretches[i].at; ++from)
        sorted[next[(*rows)[from].row() - first]++] = (*rows)[from];
    }
  }
  rows->swap(sorted);
}

}  // namespace

void sort_by_row(std::vector<ChangedRow>* rows) {
  // Mostly one stretch for each commit.
  std::vector<Stretch> stretches;
  uint64_t greatest = 0;
  for (size_t i = 0; i < rows->size(); ++i) {
    if (i == 0 || (*rows)[i].row() < (*rows)[i - 1].row()) stretches.push_back({i, i});
    ++stretches.back().end;
    greatest = std::max(greatest, (*rows)[i].row());
  }
  if (stretches.size() < 2) return;
  constexpr size_t kLeastLength = 64;  // of stretches
  constexpr uint64_t kMaxGap = 128;    // between rows
  const size_t count = rows->size();
  if (count / stretches.size() < kLeastLength || greatest / count > kMaxGap ||
      stretches.size() > kMaxGap) {
    sort_by_digits(rows);
  } else {
    merge_by_blocks(rows, std::move(stretches));
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
