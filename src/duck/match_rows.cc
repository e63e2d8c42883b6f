#include "duck/match_rows.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

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
    for (const IdRun& run : runs) add(run);
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

// As they lie in the files.
std::vector<Segment> side(const std::vector<IdentifiedRows>& files) {
  std::vector<Segment> segments;
  size_t most = 0;
  for (const IdentifiedRows& rows : files)
    most += rows.only != nullptr ? rows.only->cardinality() : rows.ids->runs.size();
  segments.reserve(most);
  for (const IdentifiedRows& rows : files) add_segments(rows, &segments);
  return segments;
}

bool has_smaller_id(const Segment& a, const Segment& b) { return a.run.id < b.run.id; }

// False when one is there twice.
bool sort_by_id(std::vector<Segment>* segments) {
  sort_stretches(segments, has_smaller_id);
  const auto overlap = [](const Segment& a, const Segment& b) { return a.end() > b.run.id; };
  return std::adjacent_find(segments->begin(), segments->end(), overlap) == segments->end();
}

// Finds rows that were copied. Whoever writes files anew mostly keeps the order of their rows, so
// one is looked for behind the one before it; that takes no sorting.
class CopiedRows {
 public:
  CopiedRows(const std::vector<Segment>& before, std::vector<CopiedRun>* runs)
      : before_(before), runs_(runs) {
    for (const Segment& segment : before_) newest_ = std::max(newest_, segment.run.version);
  }

  // Takes copied rows out of the other side; some may be missed.
  void take_from(std::vector<Segment>* after) {
    constexpr size_t kSearchesSaved = 16;  // more searches than so would be slower than sorting
    searches_left_ = 1024 + after->size() / kSearchesSaved;
    std::vector<Segment> left;
    for (const Segment& segment : *after) {
      // A later version is no copy.
      if (segment.run.version > newest_) {
        left.push_back(segment);
      } else {
        take(segment, &left);
      }
    }
    after->swap(left);
  }

  // What is not copied of this side; nullopt when a row was copied twice.
  std::optional<std::vector<Segment>> left_before() {
    const auto in_order = [](const Copied& a, const Copied& b) {
      return std::pair(a.segment, a.begin) < std::pair(b.segment, b.begin);
    };
    sort_stretches(&copied_, in_order);
    const auto overlap = [](const Copied& a, const Copied& b) {
      return a.segment == b.segment && a.end > b.begin;
    };
    if (std::adjacent_find(copied_.begin(), copied_.end(), overlap) != copied_.end())
      return std::nullopt;
    std::vector<Segment> left;
    auto at = copied_.begin();
    for (size_t i = 0; i < before_.size(); ++i) {
      const IdRun& run = before_[i].run;
      uint32_t next = 0;
      const auto keep_until = [&](uint32_t end) {
        if (next < end) left.push_back({part(run, run.row + next, run.row + end), before_[i].file});
      };
      for (; at != copied_.end() && at->segment == i; ++at) {
        keep_until(at->begin);
        next = at->end;
      }
      keep_until(run.count);
    }
    return left;
  }

 private:
  // Rows of a segment of before_, from its first.
  struct Copied {
    size_t segment = 0;
    uint32_t begin = 0;
    uint32_t end = 0;
  };
  using Place = std::vector<Segment>::const_iterator;

  void take(const Segment& segment, std::vector<Segment>* left) {
    int64_t id = segment.run.id;
    const auto part_until = [&](int64_t end) {
      const auto row = [&](int64_t of) {
        return uint64_t{segment.run.row} + static_cast<uint64_t>(of - segment.run.id);
      };
      return Segment{part(segment.run, row(id), row(end)), segment.file};
    };
    while (id < segment.end()) {
      if (!find(id)) {
        left->push_back(part_until(segment.end()));
        return;
      }
      const Segment& found = before_[at_];
      const int64_t end = std::min(segment.end(), found.end());
      if (found.run.version == segment.run.version) {
        add(static_cast<uint32_t>(id - found.run.id), static_cast<uint32_t>(end - found.run.id),
            part_until(end));
      } else {
        left->push_back(part_until(end));
      }
      id = end;
    }
  }

  // Rows of the segment at_, and their copies.
  void add(uint32_t begin, uint32_t end, const Segment& copy) {
    if (!copied_.empty() && copied_.back().segment == at_ && copied_.back().end == begin) {
      copied_.back().end = end;
    } else {
      copied_.push_back({at_, begin, end});
    }
    const Segment& from = before_[at_];
    const CopiedRun run{from.file, uint64_t{from.run.row} + begin, copy.file, copy.run.row,
                        copy.run.count};
    if (!runs_->empty()) {
      CopiedRun& last = runs_->back();
      if (last.before_file == run.before_file && last.after_file == run.after_file &&
          last.before_row + last.count == run.before_row &&
          last.after_row + last.count == run.after_row) {
        last.count += run.count;
        return;
      }
    }
    runs_->push_back(run);
  }

  // Moves at_ to the segment with this id; false, and it stays, where none is found.
  bool find(int64_t id) {
    constexpr size_t kNear = 16;
    const auto has = [id](const Segment& segment) {
      return segment.run.id <= id && id < segment.end();
    };
    const size_t stop = std::min(before_.size(), at_ + kNear);
    for (size_t i = at_; i < stop; ++i) {
      if (!has(before_[i])) continue;
      at_ = i;
      return true;
    }
    if (searches_left_ == 0) return false;
    --searches_left_;
    if (stretches_.empty()) list_stretches();
    for (const auto& [begin, end] : stretches_) {
      if (id < begin->run.id || id >= (end - 1)->end()) continue;
      const auto behind = std::upper_bound(
          begin, end, id, [](int64_t wanted, const Segment& one) { return wanted < one.run.id; });
      if (!has(*(behind - 1))) continue;
      at_ = static_cast<size_t>(behind - 1 - before_.begin());
      return true;
    }
    return false;
  }

  // Segments whose ids ascend; where they are too many, none is searched.
  void list_stretches() {
    constexpr size_t kMaxStretches = 64;
    for (auto begin = before_.begin(); begin != before_.end();) {
      auto end = begin + 1;
      while (end != before_.end() && has_smaller_id(*(end - 1), *end)) ++end;
      if (stretches_.size() == kMaxStretches) {
        searches_left_ = 0;
        stretches_.clear();
        return;
      }
      stretches_.emplace_back(begin, end);
      begin = end;
    }
  }

  const std::vector<Segment>& before_;
  std::vector<CopiedRun>* const runs_;
  int64_t newest_ = INT64_MIN;
  size_t at_ = 0;
  std::vector<Copied> copied_;
  std::vector<std::pair<Place, Place>> stretches_;
  size_t searches_left_ = 0;
};

}  // namespace

bool match_rows(const std::vector<IdentifiedRows>& before, const std::vector<IdentifiedRows>& after,
                const std::function<void(const MatchedRun&)>& visit,
                std::vector<CopiedRun>* copies) {
  copies->clear();
  auto new_side = side(after);
  auto old_side = side(before);
  {
    CopiedRows copied(old_side, copies);
    copied.take_from(&new_side);
    auto left = copied.left_before();
    if (!left) return false;
    old_side = *std::move(left);
  }
  if (!sort_by_id(&old_side) || !sort_by_id(&new_side)) return false;
  auto a = old_side.begin();
  auto b = new_side.begin();
  int64_t at = INT64_MIN;  // ids before it are done
  const auto tell = [&](const Segment& segment, int64_t from, int64_t to, MatchedRows fate) {
    if (from >= to) return;
    visit({segment.file, segment.run.row + static_cast<uint64_t>(from - segment.run.id),
           static_cast<uint64_t>(to - from), fate});
  };
  while (a != old_side.end() || b != new_side.end()) {
    const bool has_a = a != old_side.end();
    const bool has_b = b != new_side.end();
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
