// A flow's progress on disk (auto-cdc.md section 9): planned batches, finished batches, and what
// the flow has consumed so far.
//
//   <pipeline>/checkpoints/<catalog.schema.table>/generation.json   which full refresh we live in
//   <pipeline>/checkpoints/<catalog.schema.table>/<generation>/<flow>/
//       plan-<n>.json   written before batch n runs: files, offsets, pinned versions, batch time
//       done-<n>.json   written after it: what target and state were then
//       state-<n>.json  everything consumed up to batch n; plan and done files up to n are gone
//
// Progress is known by (target, flow). A full refresh moves the target to the next generation in
// one step: its flows begin anew, and old rows leave with the first commit of that generation.
#pragma once

#include <strandline/result.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/data_type.h"
#include "delta/commit_mark.h"
#include "pipeline/snapshot_version.h"
#include "storage/store.h"

namespace strandline::pipeline {

// One byte string as a file name of the checkpoint folder.
std::string checkpoint_name(const std::string& name);

struct ConsumedFile {
  std::string path;
  int64_t size_bytes = 0;
  int64_t modified_ms = 0;
};

// Place in a Delta table's log: everything before it has been consumed. With initial the place is
// inside the snapshot of that version, index counting its files in (modification time, path) order;
// else index counts the added files of that commit. cdf-semantics.md section 7.
struct DeltaOffset {
  std::string table_id;
  delta::Version version = 0;
  int64_t index = 0;
  bool initial = false;
  // The last commit that was read of; none: there was none, or it is not known (of earlier
  // programs).
  std::optional<delta::CommitMark> last = {};
};
// Whether they are one place, whatever is known of the last commit.
bool operator==(const DeltaOffset& a, const DeltaOffset& b);

// The newest commits of a target and of its state at some moment; none: no such table, or not known
// (of earlier programs).
struct TableMarks {
  std::optional<delta::CommitMark> target, state;
};

// Begins the key of a source whose every batch reads all files there are: those of the last batch
// are kept, not all that ever were.
inline constexpr const char* kWholeKey = "all:";

// What one batch takes from one source.
struct SourcePlan {
  std::string key;                      // names the source within its flow
  std::vector<ConsumedFile> files;      // read_files
  std::optional<DeltaOffset> from, to;  // a Delta stream: [from, to)
  // read_files: columns as inferred or declared, so that a later update evolves from them.
  std::optional<Schema> schema;
};

struct BatchPlan {
  int64_t batch = 0;
  int64_t time_us = 0;     // current_timestamp() of the batch
  std::string definition;  // Flow::definition
  std::string target_id;   // Delta table id; empty while there is no table
  // State version the batch builds on, -1 for none: a re-run reads this one when its own state
  // commit is already there.
  delta::Version state_version = -1;
  std::vector<SourcePlan> sources;
  std::map<std::string, delta::Version> pinned;       // joined tables: key of the source -> version
  std::map<std::string, std::string> pinned_ids;      // of the same: -> table id
  std::map<std::string, std::string> pinned_commits;  // of the same: -> fingerprint of the commit
  TableMarks marks;                                   // when it was planned
  // Of a flow that takes snapshots. What it reads is read whole each time, so that of its
  // sources only the columns are kept: a snapshot of which nothing was committed is taken again.
  bool is_snapshot = false;
  std::optional<SnapshotVersion> snapshot_version;  // none: there was no snapshot to take
};

// Which full refresh of a target is current.
class TargetCheckpoint {
 public:
  // directory: the target's folder. A missing file is generation 0.
  static Result<TargetCheckpoint> open(std::shared_ptr<storage::Store> store,
                                       std::string directory);
  int64_t generation() const { return generation_; }
  // Folder of the current generation, and of a flow's checkpoint in it.
  std::string directory() const;
  std::string flow_directory(const std::string& flow) const;
  // Begins the generation after this one and `used`; durable when it returns.
  Status begin_refresh(int64_t used);
  // Removes the folders of earlier generations; failures do not matter.
  void remove_old() const;

 private:
  std::shared_ptr<storage::Store> store_;
  std::string directory_;
  int64_t generation_ = 0;
};

class FlowCheckpoint {
 public:
  // Missing folder: nothing consumed yet. Errors: kCorrupt naming the file, kIo.
  static Result<FlowCheckpoint> open(std::shared_ptr<storage::Store> store, std::string directory);

  const std::string& directory() const { return directory_; }
  // Number of the last finished batch, -1 for none.
  int64_t last_batch() const { return last_batch_; }
  // A planned batch that was not marked done.
  const std::optional<BatchPlan>& unfinished() const { return unfinished_; }
  // Of the last finished batch: the target's table id, empty for none.
  const std::string& target_id() const { return target_id_; }

  // Whether a batch built on a state table.
  bool had_state() const { return had_state_; }
  // Of the last finished batch.
  const std::map<std::string, delta::Version>& pinned() const { return pinned_; }
  const std::map<std::string, std::string>& pinned_ids() const { return pinned_ids_; }
  // Checkpoints of earlier programs have none.
  const std::map<std::string, std::string>& pinned_commits() const { return pinned_commits_; }
  // What target and state were at least: at the end of the last finished batch, or when the
  // unfinished one was planned.
  TableMarks marks() const;
  const std::string& definition() const { return definition_; }

  std::optional<DeltaOffset> offset(const std::string& source) const;
  // The file as it was when it was consumed, or nullptr.
  const ConsumedFile* consumed(const std::string& source, const std::string& path) const;
  std::vector<const ConsumedFile*> consumed_files(const std::string& source) const;
  // Of the last snapshot that was taken.
  const std::optional<SnapshotVersion>& snapshot_version() const { return snapshot_version_; }
  // Columns of a read_files source at the last finished batch.
  const Schema* schema(const std::string& source) const;

  // Durable when they return. plan.batch must be last_batch() + 1.
  Status write_plan(const BatchPlan& plan);
  // marks: what target and state are now.
  Status mark_done(const TableMarks& marks);
  // Forgets the unfinished batch, of which nothing was committed.
  Status drop_plan();

 private:
  struct Progress {
    std::map<std::string, DeltaOffset> offsets;
    std::map<std::string, std::unordered_map<std::string, ConsumedFile>> files;
    std::map<std::string, Schema> schemas;
  };

  void apply(const BatchPlan& plan);
  Status read_marks();
  std::string file(const char* kind, int64_t batch) const;
  void compact();
  Status load_state(const std::string& text);
  std::string print_state() const;

  std::shared_ptr<storage::Store> store_;
  std::string directory_;
  bool exists_ = false;
  int64_t last_batch_ = -1;
  int64_t state_batch_ = -1;  // of the newest state file
  size_t state_files_ = 0;    // files listed in it
  std::string target_id_;
  std::string definition_;
  bool had_state_ = false;
  std::map<std::string, delta::Version> pinned_;
  std::map<std::string, std::string> pinned_ids_;
  std::map<std::string, std::string> pinned_commits_;
  TableMarks marks_;
  std::optional<SnapshotVersion> snapshot_version_;
  std::optional<BatchPlan> unfinished_;
  Progress progress_;
};

}  // namespace strandline::pipeline
