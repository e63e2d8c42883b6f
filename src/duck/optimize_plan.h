// Which files an OPTIMIZE writes anew, and which together.
#pragma once

#include <string>
#include <vector>

#include "duck/optimize.h"

namespace strandline::duck {

// Files that are written together: merged into one, or sorted into files of the target size.
struct RewriteJob {
  std::vector<size_t> files;  // indexes in snapshot.files
  bool sorted = false;
  int64_t rows_per_file = 0;  // sorted ones
};

struct RewritePlan {
  std::vector<RewriteJob> jobs;
  int64_t partitions = 0;
  int64_t considered_files = 0;
};

// What rows are sorted by: paths of the files' names, as the table's log spells them.
using ColumnPaths = std::vector<std::vector<std::string>>;

// Tags of a file in a cube: which one, and what it is sorted by.
inline constexpr const char* kCubeIdTag = "STRANDLINE_CUBE_ID";
inline constexpr const char* kCubeColumnsTag = "STRANDLINE_CUBE_COLUMNS";
std::string print_paths(const ColumnPaths& paths);

// delta.targetFileSize in bytes ("128mb", "1g", "1000000"); 128 MiB when absent or malformed.
int64_t target_file_size_bytes(const delta::Snapshot& snapshot);

// selected: the files that may be touched. sort: empty for plain compaction.
RewritePlan plan_rewrite(const delta::Snapshot& snapshot, const std::vector<size_t>& selected,
                         const ColumnPaths& sort, const OptimizeOptions& options);

}  // namespace strandline::duck
