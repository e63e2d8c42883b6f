// Rows that are followed from commit to commit by what each commit wrote new: where files are
// written anew and all rows stay, nobody has to look at those that were only copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "duck/match_rows.h"
#include "duck/row_ids.h"
#include "duck/row_places.h"

namespace strandline::duck {

// Rows that share their fate, in the file where they can be read.
struct FollowedRun {
  PlacedRun rows;
  MatchedRows fate = MatchedRows::kOnlyAfter;
};

// Files have numbers of the caller's, below 2^32, and no deletion vectors.
class FollowedRows {
 public:
  struct After {
    size_t file = 0;
    NewRows rows;  // with ids
  };

  bool knows(size_t file) const { return row_counts_.contains(file); }
  // All rows of a file. False, and nothing known, where an id is there twice.
  bool know(size_t file, const RowIds& ids);
  // What a commit did that took away the files before, all of them known, and brought those after,
  // none of which was there; those are known then in their place. nullopt, and nothing done, where
  // rows were deleted or an id is there twice: that takes all ids.
  std::optional<std::vector<FollowedRun>> follow(const std::vector<size_t>& before,
                                                 const std::vector<After>& after);
  void forget();
  size_t run_count() const { return places_.run_count(); }

 private:
  RowPlaces places_;  // of all rows of the files, and of rows that are in none any more
  std::map<size_t, uint64_t> row_counts_;  // by file
  std::vector<PlacedRun> runs_;            // kept for its memory
};

}  // namespace strandline::duck
