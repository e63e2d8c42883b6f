// Where else a row can be read: a row that is copied from file to file is the same in all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "duck/match_rows.h"

namespace strandline::duck {

struct RowPlace {
  size_t file = 0;
  uint64_t row = 0;
  uint64_t count = 0;  // of rows that are next to each other there too
};

// Files have numbers of the caller's. Costs a few bytes for each stretch of copied rows.
class RowOrigins {
 public:
  // What one commit copied, by file after and row; number: of a file of these copies.
  void add(const std::vector<CopiedRun>& copies, const std::function<size_t(size_t file)>& number);
  // The first known place of at most so many rows of a file, from this one on. Cheap where rows are
  // asked for in their order.
  RowPlace find(size_t file, uint64_t row, uint64_t count);
  // Forgets where rows of other files are from.
  void keep(const std::function<bool(size_t file)>& is_kept);

 private:
  struct Origin {
    uint64_t row = 0;
    uint64_t count = 0;
    size_t file = 0;
    uint64_t origin_row = 0;

    uint64_t end() const { return row + count; }
  };
  struct File {
    std::vector<Origin> origins;  // ascending by row
    size_t last = 0;              // where the row before was found
  };

  std::vector<File> files_;  // by number
};

}  // namespace strandline::duck
