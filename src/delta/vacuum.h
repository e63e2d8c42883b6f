// VACUUM: deletes files that no kept version needs (delta-protocol.md section 13).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "delta/snapshot.h"

namespace strandline::delta {

struct VacuumOptions {
  // How long a removed file stays; none: the table's delta.deletedFileRetentionDuration (7 days).
  // 0: only the files of the newest version stay, whatever the timestamps of the others.
  std::optional<int64_t> retention_ms;
  // Refuses a retention below the table's.
  bool check_retention = true;
  bool dry_run = false;
  // From when ages count; none: now.
  std::optional<int64_t> now_ms;
};

struct VacuumReport {
  std::vector<std::string> paths;  // absolute, sorted: files and directories gone, or due in a dry
                                   // run
  int64_t num_files = 0;
  int64_t num_directories = 0;
  int64_t size_bytes = 0;  // of the files
};

// Deletes the files below the table's directory that are neither live nor named by an unexpired
// removal nor younger than the retention, then old directories that are empty. So go the hidden
// files that killed writers left unfinished (storage/temporary_name.h), in the log too, but not
// before they are a day old. Left alone: other names
// that begin with _ or . (but for partition directories and _change_data, whose files go by age),
// "metadata", other tables inside the directory, symbolic links, and all that lies elsewhere.
// Versions whose successor is younger than the retention stay readable. Logs VACUUM START before
// and VACUUM END after.
// Errors: kInvalidArgument DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT, kUnsupported naming writer
// features that are not known, kIo (what could not be deleted; VACUUM END says FAILED).
Result<VacuumReport> vacuum(const Table& table, const VacuumOptions& options);

// delta.deletedFileRetentionDuration of a table, in milliseconds.
int64_t deleted_file_retention_ms(const Snapshot& snapshot);

}  // namespace strandline::delta
