// Reading the state of a table out of its log (delta-protocol.md 4, 10, 11).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "delta/log_files.h"
#include "delta/snapshot.h"

namespace strandline::delta {

// Error codes of a log with missing commits and of a checkpoint with a missing part: a listing that
// was not one moment shows them too.
inline constexpr const char* kGap = "DELTA_VERSIONS_NOT_CONTIGUOUS";
inline constexpr const char* kMissingSidecar = "DELTA_SIDECAR_MISSING";

// A commit's actions, in file order. Errors: kNotFound, kIo, kCorrupt.
Result<std::vector<Action>> read_commit(storage::Store* store, const std::string& table_path,
                                        Version version);

// The first version whose commit carries its own timestamp; nullopt when none does.
std::optional<Version> first_in_commit_version(const Snapshot& snapshot);
// Modification times of the commits, made strictly increasing.
std::map<Version, int64_t> file_timestamps(const LogFiles& log);
// Errors: kCorrupt naming path, where the commit has none.
Result<int64_t> in_commit_timestamp(const std::vector<Action>& actions, const std::string& path);

// Reads the newest complete checkpoint up to the wanted version and the commits after it. A damaged
// checkpoint is passed over where older files lead to the version.
class LogReader {
 public:
  // All outlive the reader.
  LogReader(storage::Store* store, ParquetPort* parquet, const std::string& table_path)
      : store_(store), parquet_(parquet), table_path_(table_path) {}

  Result<std::shared_ptr<const Snapshot>> snapshot(const LogFiles& log,
                                                   std::optional<Version> wanted);
  // Removed files that the log of that version still names, by path.
  Result<std::vector<RemoveFile>> tombstones(const LogFiles& log, Version version);
  // The snapshot at `wanted` or the newest version, from an older one and the commits after it;
  // nullptr where that does not work and the log is to be read anew.
  Result<std::shared_ptr<const Snapshot>> advance(const std::shared_ptr<const Snapshot>& from,
                                                  std::optional<Version> wanted);

 private:
  class Replay;
  struct State {
    std::shared_ptr<Snapshot> snapshot;
    std::vector<RemoveFile> tombstones;
  };

  Result<State> read(const LogFiles& log, Version version, bool for_tombstones);
  Result<State> read_from(const LogFiles& log, const Checkpoint* checkpoint, Version version,
                          bool for_tombstones);
  Status read_checkpoint(const Checkpoint& checkpoint, Replay* replay);
  Status read_checkpoint_file(const std::string& path, Replay* replay);
  // How many files _last_checkpoint says that the checkpoint of a version lists. The file is a
  // hint: it may be absent, damaged or of another version.
  std::optional<int64_t> promised_files(Version version) const;
  Status finish(Replay* replay, Snapshot* snapshot) const;
  Result<int64_t> timestamp_of(const LogFiles& log, const Snapshot& snapshot,
                               std::optional<int64_t> own, const Checkpoint* checkpoint);
  Error no_version(const LogFiles& log, Version version) const;
  Status commits_are_complete(const LogFiles& log, Version first, Version last) const;

  storage::Store* store_;
  ParquetPort* parquet_;
  const std::string& table_path_;
  // The last read_from failed in the checkpoint itself, not in the commits after it.
  bool checkpoint_failed_ = false;
};

}  // namespace strandline::delta
