#include "duck/row_places.h"

#include <algorithm>

#include "duck/sort_stretches.h"

namespace strandline::duck {
namespace {

// A block that has more runs is split.
constexpr size_t kMaxBlockRuns = 4096;

int64_t end_id(const PlacedRun& run) { return run.id + run.count; }

// The part of a run with these ids.
PlacedRun part(const PlacedRun& run, int64_t begin, int64_t end) {
  return {begin, run.row + static_cast<uint32_t>(begin - run.id),
          static_cast<uint32_t>(end - begin), run.file};
}

bool ends_before(const PlacedRun& run, int64_t id) { return end_id(run) <= id; }

void add(const PlacedRun& run, std::vector<PlacedRun>* runs) {
  if (run.count == 0) return;
  if (!runs->empty()) {
    PlacedRun& last = runs->back();
    if (last.file == run.file && end_id(last) == run.id && last.row + last.count == run.row &&
        last.count <= UINT32_MAX - run.count) {
      last.count += run.count;
      return;
    }
  }
  runs->push_back(run);
}

}  // namespace

bool sort_by_id(std::vector<PlacedRun>* runs) {
  sort_stretches(runs, [](const PlacedRun& a, const PlacedRun& b) { return a.id < b.id; });
  const auto overlap = [](const PlacedRun& a, const PlacedRun& b) { return end_id(a) > b.id; };
  return std::adjacent_find(runs->begin(), runs->end(), overlap) == runs->end();
}

void RowPlaces::clear() {
  blocks_ = {{INT64_MIN, {}}};
  run_count_ = 0;
}

void RowPlaces::put(const std::vector<PlacedRun>& runs) {
  std::vector<PlacedRun> of_block;
  for (size_t at = 0; at < runs.size();) {
    // The block of the next run, and all that goes into it; a run may go on in the next block.
    auto block = std::prev(blocks_.upper_bound(runs[at].id));
    PlacedRun rest = runs[at];
    while (true) {
      const auto next = std::next(block);
      const int64_t end = next == blocks_.end() ? INT64_MAX : next->first;
      of_block.clear();
      while (rest.id < end) {
        const int64_t stop = std::min(end, end_id(rest));
        of_block.push_back(part(rest, rest.id, stop));
        if (stop < end_id(rest)) {
          rest = part(rest, stop, end_id(rest));
          break;
        }
        if (++at == runs.size()) break;
        rest = runs[at];
      }
      merge(block, of_block);
      if (at == runs.size() || rest.id == runs[at].id) break;
      block = next;
    }
  }
}

// runs: all of ids of the block.
void RowPlaces::merge(Blocks::iterator block, const std::vector<PlacedRun>& runs) {
  Block& known = block->second;
  merged_.clear();
  size_t at = 0;
  int64_t from = INT64_MIN;  // ids before it are done
  const auto add_known_until = [&](int64_t id) {
    for (; at < known.size() && known[at].id < id; ++at) {
      const int64_t begin = std::max(known[at].id, from);
      const int64_t end = std::min(end_id(known[at]), id);
      if (begin < end) add(part(known[at], begin, end), &merged_);
      if (end < end_id(known[at])) break;
    }
  };
  for (const PlacedRun& run : runs) {
    add_known_until(run.id);
    add(run, &merged_);
    from = end_id(run);
  }
  add_known_until(INT64_MAX);
  run_count_ = run_count_ - known.size() + merged_.size();
  if (merged_.size() <= kMaxBlockRuns) {
    known.swap(merged_);
    return;
  }
  // Half full, so that most changes to come find room.
  constexpr size_t kPieceRuns = kMaxBlockRuns / 2;
  const auto piece = [this](size_t begin) {
    const auto at_run = [this](size_t i) {
      return merged_.begin() + static_cast<long>(std::min(i, merged_.size()));
    };
    return Block(at_run(begin), at_run(begin + kPieceRuns));
  };
  known = piece(0);
  auto hint = std::next(block);
  for (size_t begin = kPieceRuns; begin < merged_.size(); begin += kPieceRuns)
    blocks_.emplace_hint(hint, merged_[begin].id, piece(begin));
}

void RowPlaces::find(
    const std::vector<PlacedRun>& runs,
    const std::function<void(const PlacedRun& given, const PlacedRun* known)>& visit) const {
  auto block = blocks_.begin();
  auto at = block->second.begin();
  for (const PlacedRun& run : runs) {
    for (int64_t id = run.id; id < end_id(run);) {
      auto next = std::next(block);
      if (next != blocks_.end() && next->first <= id) {
        block = std::prev(blocks_.upper_bound(id));
        next = std::next(block);
        at = block->second.begin();
      }
      // Mostly the next one or one near it.
      constexpr int kNear = 8;
      for (int i = 0; i < kNear && at != block->second.end() && ends_before(*at, id); ++i) ++at;
      if (at != block->second.end() && ends_before(*at, id))
        at = std::lower_bound(at, block->second.end(), id, ends_before);
      int64_t end = end_id(run);
      if (next != blocks_.end()) end = std::min(end, next->first);
      if (at == block->second.end() || at->id >= end) {
        visit(part(run, id, end), nullptr);
      } else if (at->id > id) {
        end = at->id;
        visit(part(run, id, end), nullptr);
      } else {
        end = std::min(end, end_id(*at));
        const PlacedRun known = part(*at, id, end);
        visit(part(run, id, end), &known);
      }
      id = end;
    }
  }
}

}  // namespace strandline::duck
