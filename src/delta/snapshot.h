// Snapshot: the state of a Delta table at one version (delta-protocol.md sections 1, 4, 10).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/data_type.h"
#include "delta/actions.h"
#include "delta/parquet_port.h"
#include "delta/row_set.h"
#include "storage/store.h"

namespace strandline::delta {

// Schema <-> Spark JSON (delta-protocol.md section 12). Unknown types are kUnsupported by name.
Result<Schema> parse_schema(const std::string& schema_string);
std::string print_schema(const Schema& schema);

// Immutable and shareable: give it on as a pointer, for a copy copies every path. Files are the
// live ones, sorted by path.
struct Snapshot {
  std::string table_path;  // absolute directory
  Version version = -1;
  int64_t timestamp_ms = 0;  // in-commit timestamp, else file time (section 11)
  Protocol protocol;
  Metadata metadata;
  Schema schema;                   // parsed metadata.schema_string
  int64_t commit_modified_ms = 0;  // of the version's commit file; 0 where it is gone
  // Removed files, which few need, are Table::tombstones.
  std::vector<AddFile> files;
  std::map<std::string, Txn> txns;                // by app id
  std::map<std::string, DomainMetadata> domains;  // live ones, by name

  // A table property, if set. Keys are compared exactly.
  std::optional<std::string> property(const std::string& key) const;
  bool property_is_true(const std::string& key) const;
  std::optional<int64_t> txn_version(const std::string& app_id) const;

  bool deletion_vectors_enabled() const;
  bool row_tracking_enabled() const;
  bool in_commit_timestamps_enabled() const;
  // Names of the hidden Parquet columns, present when row tracking is enabled.
  std::optional<std::string> row_id_column() const;
  std::optional<std::string> row_commit_version_column() const;
  int64_t row_id_high_water_mark() const;  // -1 when none

  // "name", "id" or "none" (section 8); physical name of a field under it.
  // A table in mode "none" may have physical names left over: look at the mode first.
  std::string column_mapping_mode() const;
  static std::string physical_name(const Field& field);
};

// The version and per-file live rows: numRecords minus deleted ones; nullopt without statistics.
std::optional<int64_t> num_records(const AddFile& file);  // physical, from stats
std::optional<int64_t> live_row_count(const Snapshot& snapshot);

// A table at a path. Cheap to make; nothing is cached between calls. Neither pointer is null.
class Table {
 public:
  Table(std::shared_ptr<storage::Store> store, std::shared_ptr<ParquetPort> parquet,
        std::string path);

  const std::string& path() const { return path_; }
  const std::shared_ptr<storage::Store>& store() const { return store_; }
  const std::shared_ptr<ParquetPort>& parquet() const { return parquet_; }

  // True if _delta_log holds a commit or checkpoint.
  Result<bool> exists() const;
  // Newest version, or the given one. Errors: kNotFound (no table, version out of range: the
  // message names the versions kept), kUnsupported naming the features we cannot read, kCorrupt.
  Result<std::shared_ptr<const Snapshot>> snapshot(std::optional<Version> version = {}) const;
  // The newest version, or the given one, from an older snapshot of the same table: only the
  // commits since are read, where they are still there. The older snapshot itself when nothing is
  // new.
  Result<std::shared_ptr<const Snapshot>> snapshot_after(
      const std::shared_ptr<const Snapshot>& older, std::optional<Version> version = {}) const;
  // Removed files that the log of that version still names, sorted by path: for VACUUM and
  // checkpoints. Reads the log again. Errors: as snapshot().
  Result<std::vector<RemoveFile>> tombstones(const Snapshot& snapshot) const;
  Result<Version> latest_version() const;
  // Newest version whose timestamp is at or before ms (section 11).
  Result<Version> version_at(int64_t timestamp_ms) const;
  // The actions of one commit, in file order; for streaming reads, history and conflict checks.
  Result<std::vector<Action>> commit(Version version) const;
  // Deleted positions of a file (section 7); several files of one DV file read it once per call of
  // load_deletion_vectors. Errors: kCorrupt (checksum, size, cardinality), kNotFound.
  Result<RowSet> deletion_vector(const DeletionVectorDescriptor& descriptor) const;
  // Index in snapshot.files -> deleted rows, only for files that have some.
  Result<std::map<size_t, RowSet>> load_deletion_vectors(const Snapshot& snapshot) const;

 private:
  std::shared_ptr<storage::Store> store_;
  std::shared_ptr<ParquetPort> parquet_;
  std::string path_;
};

// Absolute local path of a data file of the log: decodes once, joins relative paths, accepts
// file: URIs; other schemes are kUnsupported; escaping the table by ".." is kCorrupt.
Result<std::string> resolve_data_path(const std::string& table_path, const std::string& log_path);

}  // namespace strandline::delta
