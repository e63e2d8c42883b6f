#include "duck/match_rows.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "duck/sort_stretches.h"

namespace strandline::duck {
namespace {

struct Segment {
  IdRun run;
  size_t file = 0;
};

int64_t end_id(const IdRun& run) { return run.id + run.count; }
uint64_t end_row(const IdRun& run) { return uint64_t{run.row} + run.count; }

// A part of a run.
IdRun part(const IdRun& run, uint64_t begin, uint64_t end) {
  return {run.id + static_cast<int64_t>(begin - run.row), run.version, static_cast<uint32_t>(begin),
          static_cast<uint32_t>(end - begin)};
}

// Adds the runs of only some rows.
void add_runs(const IdentifiedRows& rows, std::vector<IdRun>* found) {
  std::vector<IdRun> runs;
  for (const auto& piece : rows.ids->pieces) runs.insert(runs.end(), piece.begin(), piece.end());
  const auto add = [&](const IdRun& run) {
    if (run.count > 0) found->push_back(run);
  };
  size_t at = 0;
  if (rows.only != nullptr) {
    // Of rows next to each other one run is made.
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

// One side's rows as they lie in its files. Nothing is copied of files that are there whole; for
// the runs of others there is memory of the caller's.
class Side {
 public:
  // Runs of one file, ascending by row.
  struct Piece {
    const std::vector<IdRun>* runs = nullptr;
    size_t file = 0;
    uint64_t base = 0;  // a row of the side is this and its row
  };

  Side(const std::vector<IdentifiedRows>& files, std::vector<std::vector<IdRun>>* memory) {
    uint64_t base = 0;
    if (memory->size() < files.size()) memory->resize(files.size());
    for (size_t i = 0; i < files.size(); ++i) {
      const IdentifiedRows& rows = files[i];
      if (rows.dead == nullptr && rows.only == nullptr) {
        for (const auto& piece : rows.ids->pieces) add({&piece, rows.file, base});
        versions_.add(rows.ids->versions);
      } else {
        std::vector<IdRun>& runs = (*memory)[i];
        runs.clear();
        add_runs(rows, &runs);
        add({&runs, rows.file, base});
        for (const IdRun& run : runs) versions_.add(run.version);
      }
      base += rows.ids->row_count;
    }
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  const std::vector<Piece>& pieces() const { return pieces_; }
  size_t run_count() const { return run_count_; }
  const VersionRange& versions() const { return versions_; }
  // Each id is greater than the one before it.
  bool ascends() const {
    int64_t next = INT64_MIN;
    for (const Piece& piece : pieces_) {
      for (const IdRun& run : *piece.runs) {
        if (run.id < next) return false;
        next = end_id(run);
      }
    }
    return true;
  }

 private:
  void add(const Piece& piece) {
    if (piece.runs->empty()) return;
    pieces_.push_back(piece);
    run_count_ += piece.runs->size();
  }

  std::vector<Piece> pieces_;
  size_t run_count_ = 0;
  VersionRange versions_;
};

// The runs of a side in order.
class SideCursor {
 public:
  explicit SideCursor(const Side& side)
      : piece_(side.pieces().begin()), end_(side.pieces().end()) {}

  bool is_done() const { return piece_ == end_; }
  const IdRun& run() const { return (*piece_->runs)[run_]; }
  size_t file() const { return piece_->file; }
  void next() {
    if (++run_ < piece_->runs->size()) return;
    run_ = 0;
    ++piece_;
  }

 private:
  std::vector<Side::Piece>::const_iterator piece_, end_;
  size_t run_ = 0;
};

class SegmentCursor {
 public:
  explicit SegmentCursor(const std::vector<Segment>& segments)
      : at_(segments.begin()), end_(segments.end()) {}

  bool is_done() const { return at_ == end_; }
  const IdRun& run() const { return at_->run; }
  size_t file() const { return at_->file; }
  void next() { ++at_; }

 private:
  std::vector<Segment>::const_iterator at_, end_;
};

// Both sides ascending by id.
template <typename Cursor>
void merge(Cursor before, Cursor after, const std::function<void(const MatchedRun&)>& visit) {
  int64_t at = INT64_MIN;  // ids before it are done
  const auto tell = [&](const Cursor& side, int64_t from, int64_t to, MatchedRows fate) {
    if (from >= to) return;
    visit({side.file(), side.run().row + static_cast<uint64_t>(from - side.run().id),
           static_cast<uint64_t>(to - from), fate});
  };
  while (!before.is_done() || !after.is_done()) {
    const bool has_a = !before.is_done();
    const bool has_b = !after.is_done();
    const int64_t begin_a = has_a ? std::max(before.run().id, at) : INT64_MAX;
    const int64_t begin_b = has_b ? std::max(after.run().id, at) : INT64_MAX;
    if (begin_a < begin_b) {
      const int64_t end = std::min(end_id(before.run()), begin_b);
      tell(before, begin_a, end, MatchedRows::kOnlyBefore);
      at = end;
    } else if (begin_b < begin_a) {
      const int64_t end = std::min(end_id(after.run()), begin_a);
      tell(after, begin_b, end, MatchedRows::kOnlyAfter);
      at = end;
    } else {
      const int64_t end = std::min(end_id(before.run()), end_id(after.run()));
      if (before.run().version != after.run().version) {
        tell(before, begin_a, end, MatchedRows::kChangedBefore);
        tell(after, begin_b, end, MatchedRows::kChangedAfter);
      }
      at = end;
    }
    if (has_a && end_id(before.run()) <= at) before.next();
    if (has_b && end_id(after.run()) <= at) after.next();
  }
}

// Rows of the side before: Piece::base and their rows.
struct RowSpan {
  uint64_t begin = 0;
  uint64_t end = 0;
};

}  // namespace

struct RowMatcher::Memory {
  std::vector<std::vector<IdRun>> runs_before;
  std::vector<std::vector<IdRun>> runs_after;
  std::vector<RowSpan> copied;
  std::vector<CopiedRun> copies;
  std::vector<Segment> before;  // what is left of it
  std::vector<Segment> after;
};

namespace {

// Finds rows that were copied. Whoever writes files anew mostly keeps the order of their rows, so
// one is looked for behind the one before it; that takes no sorting.
class CopiedRows {
 public:
  CopiedRows(const Side& before, std::vector<RowSpan>* copied, std::vector<CopiedRun>* runs)
      : before_(before), copied_(*copied), runs_(*runs) {
    copied_.clear();
    runs_.clear();
  }

  // Lists the other side's rows that are no copies, and some that are but were not found.
  void list_after(const Side& after, std::vector<Segment>* left) {
    left->clear();
    // Who looks at more stretches than so would be faster by sorting.
    constexpr size_t kLooksPerRun = 16;
    looks_left_ = kLooksPerRun * (before_.run_count() + after.run_count());
    const int64_t newest = before_.versions().newest;
    for (const Side::Piece& piece : after.pieces()) {
      for (const IdRun& run : *piece.runs) {
        // A later version is no copy.
        if (run.version > newest) {
          left->push_back({run, piece.file});
        } else {
          take(run, piece.file, left);
        }
      }
    }
  }

  // Then, what is not copied of this side; false when a row was copied twice.
  bool list_before(std::vector<Segment>* left) {
    left->clear();
    sort_stretches(&copied_, [](const RowSpan& a, const RowSpan& b) { return a.begin < b.begin; });
    const auto overlap = [](const RowSpan& a, const RowSpan& b) { return a.end > b.begin; };
    if (std::adjacent_find(copied_.begin(), copied_.end(), overlap) != copied_.end()) return false;
    auto at = copied_.begin();
    for (const Side::Piece& piece : before_.pieces()) {
      for (const IdRun& run : *piece.runs) {
        uint64_t next = piece.base + run.row;
        const uint64_t end = next + run.count;
        while (next < end) {
          while (at != copied_.end() && at->end <= next) ++at;
          const uint64_t stop = at == copied_.end() ? end : std::clamp(at->begin, next, end);
          if (next < stop)
            left->push_back({part(run, next - piece.base, stop - piece.base), piece.file});
          next = at == copied_.end() ? end : std::min(end, at->end);
        }
      }
    }
    return true;
  }

 private:
  // Runs of one piece whose ids ascend.
  struct Stretch {
    size_t piece = 0;
    size_t begin = 0;
    size_t end = 0;
    int64_t first_id = 0;
    int64_t end_id = 0;
  };

  void take(const IdRun& run, size_t file, std::vector<Segment>* left) {
    int64_t id = run.id;
    const auto part_until = [&](int64_t end) {
      const auto row = [&](int64_t of) {
        return uint64_t{run.row} + static_cast<uint64_t>(of - run.id);
      };
      return Segment{part(run, row(id), row(end)), file};
    };
    while (id < end_id(run)) {
      if (!find(id)) {
        left->push_back(part_until(end_id(run)));
        return;
      }
      const IdRun& found = (*before_.pieces()[piece_].runs)[run_];
      const int64_t end = std::min(end_id(run), end_id(found));
      if (found.version == run.version) {
        add(found.row + static_cast<uint64_t>(id - found.id), part_until(end));
      } else {
        left->push_back(part_until(end));
      }
      id = end;
    }
  }

  // Rows of the piece at hand, from this one on, and their copies.
  void add(uint64_t row, const Segment& copy) {
    const Side::Piece& from = before_.pieces()[piece_];
    const uint64_t begin = from.base + row;
    if (!copied_.empty() && copied_.back().end == begin) {
      copied_.back().end += copy.run.count;
    } else {
      copied_.push_back({begin, begin + copy.run.count});
    }
    if (!runs_.empty()) {
      CopiedRun& last = runs_.back();
      if (last.before_file == from.file && last.after_file == copy.file &&
          last.before_row + last.count == row && last.after_row + last.count == copy.run.row) {
        last.count += copy.run.count;
        return;
      }
    }
    runs_.push_back({from.file, row, copy.file, copy.run.row, copy.run.count});
  }

  static bool has(const IdRun& run, int64_t id) { return run.id <= id && id < end_id(run); }

  // Moves to the run with this id; false, and nothing moves, where none is found.
  bool find(int64_t id) {
    constexpr size_t kNear = 16;
    const std::vector<Side::Piece>& pieces = before_.pieces();
    size_t run = run_;
    size_t piece = piece_;
    for (size_t i = 0; i < kNear && piece < pieces.size(); ++i) {
      if (has((*pieces[piece].runs)[run], id)) {
        piece_ = piece;
        run_ = run;
        return true;
      }
      if (++run == pieces[piece].runs->size()) {
        run = 0;
        ++piece;
      }
    }
    if (looks_left_ == 0) return false;
    if (stretches_.empty()) list_stretches();
    looks_left_ -= std::min(looks_left_, stretches_.size());
    for (const Stretch& stretch : stretches_) {
      if (id < stretch.first_id || id >= stretch.end_id) continue;
      const std::vector<IdRun>& runs = *pieces[stretch.piece].runs;
      const auto behind =
          std::upper_bound(runs.begin() + static_cast<long>(stretch.begin),
                           runs.begin() + static_cast<long>(stretch.end), id,
                           [](int64_t wanted, const IdRun& one) { return wanted < one.id; });
      if (!has(*(behind - 1), id)) continue;
      piece_ = stretch.piece;
      run_ = static_cast<size_t>(behind - 1 - runs.begin());
      return true;
    }
    return false;
  }

  // Where they are too many, none is searched.
  void list_stretches() {
    constexpr size_t kLeastLength = 32;
    const size_t max_stretches = before_.pieces().size() + before_.run_count() / kLeastLength;
    for (size_t piece = 0; piece < before_.pieces().size(); ++piece) {
      const std::vector<IdRun>& runs = *before_.pieces()[piece].runs;
      for (size_t begin = 0; begin < runs.size();) {
        size_t end = begin + 1;
        while (end < runs.size() && runs[end - 1].id < runs[end].id) ++end;
        if (stretches_.size() == max_stretches) {
          looks_left_ = 0;
          stretches_.clear();
          return;
        }
        stretches_.push_back({piece, begin, end, runs[begin].id, end_id(runs[end - 1])});
        begin = end;
      }
    }
  }

  const Side& before_;
  std::vector<RowSpan>& copied_;
  std::vector<CopiedRun>& runs_;
  size_t piece_ = 0;  // where the row before was found
  size_t run_ = 0;
  std::vector<Stretch> stretches_;
  size_t looks_left_ = 0;
};

// False when an id is there twice.
bool sort_by_id(std::vector<Segment>* segments) {
  sort_stretches(segments, [](const Segment& a, const Segment& b) { return a.run.id < b.run.id; });
  const auto overlap = [](const Segment& a, const Segment& b) { return end_id(a.run) > b.run.id; };
  return std::adjacent_find(segments->begin(), segments->end(), overlap) == segments->end();
}

}  // namespace

RowMatcher::RowMatcher() : memory_(std::make_unique<Memory>()) {}
RowMatcher::~RowMatcher() = default;

const std::vector<CopiedRun>& RowMatcher::copies() const { return memory_->copies; }

bool RowMatcher::match(const std::vector<IdentifiedRows>& before,
                       const std::vector<IdentifiedRows>& after,
                       const std::function<void(const MatchedRun&)>& visit) {
  Memory& memory = *memory_;
  const Side old_side(before, &memory.runs_before);
  const Side new_side(after, &memory.runs_after);
  if (old_side.versions().newest < new_side.versions().oldest && old_side.ascends() &&
      new_side.ascends()) {
    // As mostly with deletion vectors: nothing was copied, and nothing is to be sorted.
    memory.copies.clear();
    merge(SideCursor(old_side), SideCursor(new_side), visit);
    return true;
  }
  CopiedRows copied(old_side, &memory.copied, &memory.copies);
  copied.list_after(new_side, &memory.after);
  if (!copied.list_before(&memory.before)) return false;
  if (!sort_by_id(&memory.before) || !sort_by_id(&memory.after)) return false;
  merge(SegmentCursor(memory.before), SegmentCursor(memory.after), visit);
  return true;
}

}  // namespace strandline::duck
