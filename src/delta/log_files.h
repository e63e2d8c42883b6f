// The files of _delta_log (delta-protocol.md sections 1 and 10).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "delta/actions.h"
#include "storage/store.h"

namespace strandline::delta {

struct Checkpoint {
  Version version = 0;
  int64_t modified_ms = 0;
  std::vector<std::string> paths;  // one, or all parts in order
};

// What a listing found; everything with another name is ignored. `_last_checkpoint` is not read: it
// saves a listing only where the store can list from a name on, and the listing is never wrong.
struct LogFiles {
  std::map<Version, storage::FileInfo> commits;
  std::vector<Checkpoint> checkpoints;       // complete ones, by ascending version
  std::map<Version, std::string> checksums;  // paths of `version.crc`
  // Paths of everything else that belongs to a version, by the last version it covers: parts of
  // incomplete checkpoints, compacted commits.
  std::multimap<Version, std::string> others;

  bool empty() const { return commits.empty() && checkpoints.empty(); }
  Version latest() const;
  // The oldest version that can be read, as far as names tell.
  Version earliest() const;
};

std::string log_directory(const std::string& table_path);
std::string commit_path(const std::string& table_path, Version version);
std::string checksum_path(const std::string& table_path, Version version);
// Where V2 checkpoints keep their file actions.
std::string sidecar_directory(const std::string& table_path);
std::string classic_checkpoint_path(const std::string& table_path, Version version);
std::string v2_checkpoint_path(const std::string& table_path, Version version,
                               const std::string& uuid);  // with JSON

// Errors: kNotFound "DELTA_TABLE_NOT_FOUND" where there is no commit and no checkpoint; kCorrupt
// DELTA_LOG_MISSING where something else of a log is there, DELTA_LOG_CORRUPT where a commit's name
// is a folder's or has an impossible number; kIo.
Result<LogFiles> list_log(storage::Store* store, const std::string& table_path);

}  // namespace strandline::delta
