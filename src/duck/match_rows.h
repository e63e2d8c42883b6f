// What a commit did to rows, told by their ids: each side is the rows of some files.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "delta/row_set.h"
#include "duck/row_ids.h"

namespace strandline::duck {

// Rows of a file that take part: all but the dead ones, or only those.
struct IdentifiedRows {
  size_t file = 0;  // a number of the caller's
  std::shared_ptr<const RowIds> ids;
  std::shared_ptr<const delta::RowSet> dead;  // null: none
  std::shared_ptr<const delta::RowSet> only;  // null: all
};

enum class MatchedRows { kOnlyBefore, kOnlyAfter, kChangedBefore, kChangedAfter };

// Rows of one file next to each other that share their fate.
struct MatchedRun {
  size_t file = 0;
  uint64_t row = 0;  // the first
  uint64_t count = 0;
  MatchedRows fate = MatchedRows::kOnlyBefore;
};

// Rows next to each other in a file before that are next to each other in one after, the same ids
// in the same versions.
struct CopiedRun {
  size_t before_file = 0;
  uint64_t before_row = 0;
  size_t after_file = 0;
  uint64_t after_row = 0;
  uint64_t count = 0;
};

// Keeps its memory from one commit to the next.
class RowMatcher {
 public:
  RowMatcher();
  RowMatcher(const RowMatcher&) = delete;
  RowMatcher& operator=(const RowMatcher&) = delete;
  ~RowMatcher();

  // Calls visit for all rows that one side has alone, and for those that both have in different
  // versions; copied rows are passed over. False, and nothing visited, where an id is there twice
  // on one side, copies apart: such rows are no pairs.
  bool match(const std::vector<IdentifiedRows>& before, const std::vector<IdentifiedRows>& after,
             const std::function<void(const MatchedRun&)>& visit);

  // Of the last match: copies that were found by the order that they kept, by file after and row.
  const std::vector<CopiedRun>& copies() const;

 private:
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

}  // namespace strandline::duck
