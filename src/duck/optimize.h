// OPTIMIZE: the same rows in fewer, fuller, better sorted files.
//
// - Small files of a partition are merged up to the target size (delta.targetFileSize, 128 MiB).
// - Files of which a twentieth of the rows or more is deleted are written without those rows.
// - A clustered table's rows, or those of a ZORDER BY, lie in cubes: sets of files that were sorted
//   together, each file a range of a Hilbert curve over the columns (of one column: of the values).
//   New files become a cube, together with all cubes that are no larger than what is sorted
//   anyway: each row is sorted again a logarithmic number of times.
// Row ids and commit versions of moved rows are kept (delta-protocol.md section 9), nothing a
// reader sees changes, and a second run finds nothing to do.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "delta/snapshot.h"
#include "duck/connection.h"

namespace strandline::duck {

// The property of a target that turns off compaction of its AUTO CDC state ("false").
inline constexpr const char* kStateAutoCompactProperty = "strandline.cdc.stateAutoCompact";

struct OptimizeOptions {
  // SQL condition over the partition columns; files of other partitions are left alone.
  std::optional<std::string> where;
  std::vector<std::string> zorder_by;  // columns, in any case
  bool full = false;                   // sorts all files of a clustered table again
  bool purge = false;                  // REORG: only writes files anew that have deleted rows
  // After a batch: merges only when at least 16 small files lie in a partition, takes a larger
  // file only when the smaller ones outweigh it, and rewrites files whose rows are half deleted.
  bool automatic = false;
  std::map<std::string, std::string> parameters;  // logged with the commit
};

struct FileSizes {
  int64_t count = 0;
  int64_t total_bytes = 0;
  int64_t min_bytes = 0;
  int64_t max_bytes = 0;
  void add(int64_t bytes);
};

struct OptimizeReport {
  FileSizes added;
  FileSizes removed;
  int64_t partitions = 0;  // optimized
  int64_t batches = 0;     // sets of files that were written together
  int64_t considered_files = 0;
  int64_t skipped_files = 0;
  int64_t deletion_vectors_removed = 0;
  int64_t deleted_rows_removed = 0;
  int64_t commits = 0;
};

// Commits as long as something is left to do; appends of others never conflict, and after a change
// of others to the same files it plans anew. Errors: kInvalidArgument
// (DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST, DELTA_ZORDERING_ON_PARTITION_COLUMN,
// DELTA_CLUSTERING_WITH_ZORDER_BY, DELTA_CLUSTERING_WITH_PARTITION_PREDICATE,
// DELTA_OPTIMIZE_FULL_NOT_SUPPORTED, DELTA_NON_PARTITION_COLUMN_REFERENCE), kConflict, those of
// write_files.
Result<OptimizeReport> optimize(Connection& connection, const delta::Table& table,
                                const OptimizeOptions& options = {});

}  // namespace strandline::duck
