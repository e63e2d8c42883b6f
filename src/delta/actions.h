// Delta actions as values (delta-protocol.md section 4).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "delta/stats_text.h"
#include "delta/shared.h"

namespace strandline::delta {

using Version = int64_t;

struct Protocol {
  int min_reader_version = 1;
  int min_writer_version = 2;
  std::set<std::string> reader_features;
  std::set<std::string> writer_features;
};

struct Metadata {
  std::string id;  // UUID
  std::optional<std::string> name;
  std::optional<std::string> description;
  std::string schema_string;  // Spark JSON, kept as written
  std::vector<std::string> partition_columns;
  std::map<std::string, std::string> configuration;
  std::optional<int64_t> created_time_ms;
};

// delta-protocol.md section 7.
struct DeletionVectorDescriptor {
  char storage_type = 'u';  // 'u', 'p' or 'i'
  std::string path_or_inline;
  std::optional<int64_t> offset;
  int64_t size_bytes = 0;
  int64_t cardinality = 0;

  // storageType + pathOrInlineDv + ("@" + offset): the second half of a file's key.
  std::string unique_id() const;
};

// By physical name; the empty string of the log is null, as for every type (section 5).
using PartitionValues = SharedMap<std::optional<std::string>>;

// File actions are kept small: see shared.h and stats_text.h.
struct AddFile {
  std::string path;  // percent-encoded as in the log
  PartitionValues partition_values;
  int64_t size_bytes = 0;
  int64_t modification_time_ms = 0;
  bool data_change = true;
  StatsText stats;  // JSON text
  SharedMap<std::string> tags;
  Shared<DeletionVectorDescriptor> deletion_vector;
  std::optional<int64_t> base_row_id;
  std::optional<int64_t> default_row_commit_version;
  Shared<std::string> clustering_provider;
};

struct RemoveFile {
  std::string path;
  std::optional<int64_t> deletion_timestamp_ms;
  bool data_change = true;
  bool extended_file_metadata = false;
  PartitionValues partition_values;
  std::optional<int64_t> size_bytes;
  Shared<DeletionVectorDescriptor> deletion_vector;
  std::optional<int64_t> base_row_id;
  std::optional<int64_t> default_row_commit_version;
};

// A file of the legacy change feed.
struct CdcFile {
  std::string path;
  PartitionValues partition_values;
  int64_t size_bytes = 0;
};

// Progress of an application, for exactly-once writes.
struct Txn {
  std::string app_id;
  int64_t version = 0;
  std::optional<int64_t> last_updated_ms;
};

struct DomainMetadata {
  std::string domain;
  std::string configuration;
  bool removed = false;
};

struct CommitInfo {
  int64_t timestamp_ms = 0;
  std::optional<int64_t> in_commit_timestamp_ms;
  std::string operation;                                    // "WRITE", "MERGE", ...
  std::map<std::string, std::string> operation_parameters;  // JSON text of each value
  std::map<std::string, std::string> operation_metrics;
  std::optional<Version> read_version;
  std::string isolation_level;
  std::optional<bool> is_blind_append;
  std::string engine_info;
  std::string txn_id;
  std::map<std::string, std::string> tags;
};

using Action =
    std::variant<CommitInfo, Protocol, Metadata, AddFile, RemoveFile, CdcFile, Txn, DomainMetadata>;

}  // namespace strandline::delta
