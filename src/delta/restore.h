// RESTORE: takes a table back to what an older version held, as one new commit.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "delta/snapshot.h"

namespace strandline::delta {

struct RestoreOptions {
  // Restores also when data files of that version are gone, without those.
  bool ignore_missing_files = false;
  std::map<std::string, std::string> parameters;  // logged with the commit
};

struct RestoreReport {
  Version version = -1;  // of the table afterwards
  int64_t table_size_bytes = 0;
  int64_t num_files = 0;
  int64_t num_removed_files = 0;
  int64_t num_restored_files = 0;
  int64_t removed_bytes = 0;
  int64_t restored_bytes = 0;
};

// Files (with their deletion vectors and row ids), schema, properties and clustering become those
// of `wanted`. What only grows stays: the protocol, the mark of row ids, the largest column id, the
// progress of applications, and in-commit timestamps with where they began. Names of the columns of
// row ids stay where that version has none. Nothing is committed where nothing differs.
// Errors: kNotFound RESTORE_MISSING_FILES naming version and files, kInvalidArgument
// DELTA_CANNOT_MODIFY_APPEND_ONLY, kUnsupported, kConflict.
Result<RestoreReport> restore(const Table& table, const Snapshot& wanted,
                              const RestoreOptions& options = {});

}  // namespace strandline::delta
