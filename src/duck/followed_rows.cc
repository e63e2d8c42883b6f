#include "duck/followed_rows.h"

namespace strandline::duck {
namespace {

void add_runs(size_t file, const RowIds& ids, std::vector<PlacedRun>* runs) {
  for (const auto& piece : ids.pieces) {
    for (const IdRun& run : piece)
      runs->push_back({run.id, run.row, run.count, static_cast<uint32_t>(file)});
  }
}

}  // namespace

bool FollowedRows::know(size_t file, const RowIds& ids) {
  runs_.clear();
  add_runs(file, ids, &runs_);
  if (!sort_by_id(&runs_)) return false;
  // No row is in two files at a time: what is known of its id is of a file that is gone, and what
  // became of its other rows may have been missed too.
  bool is_known = false;
  places_.find(runs_, [&](const PlacedRun&, const PlacedRun* known) {
    is_known = is_known || known != nullptr;
  });
  if (is_known) forget();
  places_.put(runs_);
  row_counts_[file] = ids.row_count;
  return true;
}

std::optional<std::vector<FollowedRun>> FollowedRows::follow(const std::vector<size_t>& before,
                                                             const std::vector<After>& after) {
  uint64_t count_before = 0;
  for (const size_t file : before) count_before += row_counts_.at(file);
  uint64_t count_after = 0;
  runs_.clear();
  for (const After& one : after) {
    count_after += one.rows.file_row_count;
    add_runs(one.file, *one.rows.ids, &runs_);
  }
  if (!sort_by_id(&runs_)) return std::nullopt;
  std::vector<FollowedRun> found;
  uint64_t inserted = 0;
  places_.find(runs_, [&](const PlacedRun& given, const PlacedRun* known) {
    if (known == nullptr) {
      inserted += given.count;
      found.push_back({given, MatchedRows::kOnlyAfter});
    } else {
      found.push_back({*known, MatchedRows::kChangedBefore});
      found.push_back({given, MatchedRows::kChangedAfter});
    }
  });
  // The rows after are all that were inserted, updated or copied; where updated and copied ones are
  // as many as there were, none is gone.
  if (count_after != count_before + inserted) return std::nullopt;
  places_.put(runs_);
  for (const size_t file : before) row_counts_.erase(file);
  for (const After& one : after) row_counts_[one.file] = one.rows.file_row_count;
  return found;
}

void FollowedRows::forget() {
  places_.clear();
  row_counts_.clear();
}

}  // namespace strandline::duck
