// Stable row ids of the rows of data files (delta-protocol.md, row tracking), as runs: what a file
// copied from others is mostly long stretches of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "delta/snapshot.h"
#include "duck/connection.h"

namespace strandline::duck {

// Rows next to each other whose ids are too, and that one version last changed.
struct IdRun {
  int64_t id = 0;  // of the first
  int64_t version = 0;
  uint32_t row = 0;
  uint32_t count = 0;
};

// What there is of versions; of no rows, the newest is less than the oldest.
struct VersionRange {
  int64_t oldest = INT64_MAX;
  int64_t newest = INT64_MIN;

  void add(int64_t version) {
    oldest = std::min(oldest, version);
    newest = std::max(newest, version);
  }
  void add(const VersionRange& other) {
    oldest = std::min(oldest, other.oldest);
    newest = std::max(newest, other.newest);
  }
};

// Rows of a file ascending by row: all of them, deleted ones too, or some.
struct RowIds {
  std::vector<std::vector<IdRun>> pieces;  // none is empty
  size_t run_count = 0;
  uint64_t row_count = 0;
  VersionRange versions;
};

// Of these files of a table that tracks rows; null for files by which all together have more runs
// than max_runs, or that have more rows than 32 bits count. Files whose ids follow from their place
// say so in the footer; of the others the ids are read, and nothing else. Errors: as scan_table.
Result<std::vector<std::shared_ptr<const RowIds>>> read_row_ids(
    Connection& connection, const delta::Table& table, const delta::Snapshot& definition,
    const std::vector<const delta::AddFile*>& files, size_t max_runs);

// Rows of a file that the commit which made it inserted or updated.
struct NewRows {
  std::shared_ptr<const RowIds> ids;  // null: not known
  uint64_t file_row_count = 0;        // of all rows of the file

  bool is_all() const { return ids != nullptr && ids->row_count == file_row_count; }
};

// Of files that got their default row commit version from the commit that made them: all rows with
// that version or a later one. Whoever copies a row keeps its version, so the others are copies.
// Decodes the ids of new rows alone, and where statistics rule them out, nothing. Errors and the
// limit: as read_row_ids.
Result<std::vector<NewRows>> read_new_rows(Connection& connection, const delta::Table& table,
                                           const delta::Snapshot& definition,
                                           const std::vector<const delta::AddFile*>& files,
                                           size_t max_runs);

}  // namespace strandline::duck
