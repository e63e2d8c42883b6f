#include "duck/match_rows.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "duck/sort_stretches.h"

namespace strandline::duck {
namespace {

struct Segment {
  IdRun run;
  size_t file = 0;

  int64_t end() const { return run.id + run.count; }
};

uint64_t end_row(const IdRun& run) { return uint64_t{run.row} + run.count; }

// A part of a run.
IdRun part(const IdRun& run, uint64_t begin, uint64_t end) {
  return {run.id + static_cast<int64_t>(begin - run.row), run.version, static_cast<uint32_t>(begin),
          static_cast<uint32_t>(end - begin)};
}

void add_segments(const IdentifiedRows& rows, std::vector<Segment>* segments) {
  const std::vector<IdRun>& runs = rows.ids->runs;
  const auto add = [&](const IdRun& run) {
    if (run.count > 0) segments->push_back({run, rows.file});
  };
  size_t at = 0;
  if (rows.only != nullptr) {
    // Of rows next to each other one segment is made.
    IdRun open;
    rows.only->for_each([&](uint64_t row) {
      if (rows.dead != nullptr && rows.dead->contains(row)) return;
      if (open.count > 0 && row == end_row(open) && row < end_row(runs[at])) {
        ++open.count;
        return;
      }
      add(open);
      open = {};
      while (at < runs.size() && end_row(runs[at]) <= row) ++at;
      if (at < runs.size() && runs[at].row <= row) open = part(runs[at], row, row + 1);
    });
    add(open);
    return;
  }
  if (rows.dead == nullptr) {
    for (size_t i = 0; i < runs.size(); ++i)
      add(rows.ids->by_id.empty() ? runs[i] : runs[rows.ids->by_id[i]]);
    return;
  }
  uint64_t next = 0;  // the first row that is not looked at yet
  const auto add_until = [&](uint64_t end) {
    while (next < end && at < runs.size()) {
      const IdRun& run = runs[at];
      const uint64_t begin = std::max<uint64_t>(next, run.row);
      if (const uint64_t stop = std::min(end, end_row(run)); begin < stop)
        add(part(run, begin, stop));
      next = std::max(next, std::min(end, end_row(run)));
      if (end_row(run) <= end) ++at;
    }
  };
  rows.dead->for_each([&](uint64_t row) {
    add_until(row);
    next = row + 1;
  });
  add_until(runs.empty() ? 0 : end_row(runs.back()));
}

// By id; nullopt when one is there twice.
std::optional<std::vector<Segment>> side(const std::vector<IdentifiedRows>& files) {
  std::vector<Segment> segments;
  size_t most = 0;
  for (const IdentifiedRows& rows : files)
    most += rows.only != nullptr ? rows.only->cardinality() : rows.ids->runs.size();
  segments.reserve(most);
  for (const IdentifiedRows& rows : files) add_segments(rows, &segments);
  const auto by_id = [](const Segment& a, const Segment& b) { return a.run.id < b.run.id; };
  sort_stretches(&segments, by_id);
  const auto overlap = [](const Segment& a, const Segment& b) { return a.end() > b.run.id; };
  if (std::adjacent_find(segments.begin(), segments.end(), overlap) != segments.end())
    return std::nullopt;
  return segments;
}

}  // namespace

bool match_rows(const std::vector<IdentifiedRows>& before, const std::vector<IdentifiedRows>& after,
                const std::function<void(const MatchedRun&)>& visit) {
  const auto old_side = side(before);
  const auto new_side = side(after);
  if (!old_side || !new_side) return false;
  auto a = old_side->begin();
  auto b = new_side->begin();
  int64_t at = INT64_MIN;  // ids before it are done
  const auto tell = [&](const Segment& segment, int64_t from, int64_t to, MatchedRows fate) {
    if (from >= to) return;
    visit({segment.file, segment.run.row + static_cast<uint64_t>(from - segment.run.id),
           static_cast<uint64_t>(to - from), fate});
  };
  while (a != old_side->end() || b != new_side->end()) {
    const bool has_a = a != old_side->end();
    const bool has_b = b != new_side->end();
    const int64_t begin_a = has_a ? std::max(a->run.id, at) : INT64_MAX;
    const int64_t begin_b = has_b ? std::max(b->run.id, at) : INT64_MAX;
    if (begin_a < begin_b) {
      const int64_t end = std::min(a->end(), begin_b);
      tell(*a, begin_a, end, MatchedRows::kOnlyBefore);
      at = end;
    } else if (begin_b < begin_a) {
      const int64_t end = std::min(b->end(), begin_a);
      tell(*b, begin_b, end, MatchedRows::kOnlyAfter);
      at = end;
    } else {
      const int64_t end = std::min(a->end(), b->end());
      if (a->run.version != b->run.version) {
        tell(*a, begin_a, end, MatchedRows::kChangedBefore);
        tell(*b, begin_b, end, MatchedRows::kChangedAfter);
      }
      at = end;
    }
    if (has_a && a->end() <= at) ++a;
    if (has_b && b->end() <= at) ++b;
  }
  return true;
}

}  // namespace strandline::duck
