// Delta data files through DuckDB: scans as relations, row sets out of queries, files with
// statistics.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "delta/snapshot.h"
#include "delta/transaction.h"
#include "duck/changed_rows.h"
#include "duck/connection.h"

namespace strandline::duck {

// Hidden columns a scan can add. The names cannot clash: user columns of the same name are refused.
inline constexpr const char* kFileColumn = "__strandline_file";  // INTEGER: index in snapshot.files
inline constexpr const char* kRowColumn = "__strandline_row";    // BIGINT: physical position
inline constexpr const char* kRowIdColumn = "__strandline_row_id";  // BIGINT: stable row id
inline constexpr const char* kRowVersionColumn = "__strandline_row_commit_version";

// What happened to a row, in files of the legacy change feed.
inline constexpr const char* kChangeTypeColumn = "_change_type";

// What happened to rows of a change feed (change_scan.h).
enum class FeedChangeKind { kInsert, kDelete, kUpdateBefore, kUpdateAfter };
struct FeedChange {
  FeedChangeKind kind = FeedChangeKind::kInsert;  // not of a recorded feed
  delta::Version version = 0;
  int64_t timestamp_us = 0;
};

// One appearance of a file in a change feed.
struct FeedFile {
  size_t change = 0;  // of all its live rows, index in Feed::changes; unless
  // If set, of these rows each its own, and nothing of the others.
  std::shared_ptr<const ChangedRows> rows;
};

struct Feed {
  bool is_recorded = false;  // the files say kChangeTypeColumn themselves
  std::vector<FeedChange> changes;
  std::vector<FeedFile> files;  // one for each of snapshot.files
};

struct ScanOptions {
  std::vector<std::string> columns;  // logical names; empty = all
  bool with_positions = false;       // kFileColumn, kRowColumn
  bool with_row_ids = false;         // kRowIdColumn, kRowVersionColumn (table must track rows)
  std::optional<std::vector<size_t>> files;  // indexes in snapshot.files; nullopt = all
  bool apply_deletion_vectors = true;
  // Adds the columns kChangeTypeColumn, "_commit_version" and "_commit_timestamp".
  std::shared_ptr<const Feed> feed;
};

// Keeps deletion vectors registered while it lives; must outlive the queries that use sql().
class Scan {
 public:
  virtual ~Scan() = default;
  // A parenthesised SELECT for a FROM clause, logical column names and types, deleted rows gone.
  virtual const std::string& sql() const = 0;
};

Result<std::unique_ptr<Scan>> scan_table(Connection& connection, const delta::Table& table,
                                         std::shared_ptr<const delta::Snapshot> snapshot,
                                         const ScanOptions& options = {});

// Query of (kFileColumn INTEGER, kRowColumn BIGINT) -> row set per file index. listed: becomes the
// number of the query's rows.
Result<std::map<size_t, delta::RowSet>> collect_rows(Connection& connection, const std::string& sql,
                                                     int64_t* listed = nullptr);

struct WriteOptions {
  // The query also gives kRowIdColumn and kRowVersionColumn (either may be null), written as the
  // table's materialised columns.
  bool with_row_ids = false;
  int64_t target_file_size_bytes = 128ll << 20;
  // SQL over the logical columns to sort by, for pruning; may be empty.
  std::string order_by;
  // With order_by: each file takes the next so many rows of its partition in that order; 0 leaves
  // it to the target size, and files may overlap.
  int64_t rows_per_file = 0;
  // Files of the legacy change feed: under _change_data, and the query also gives
  // kChangeTypeColumn.
  bool change_data = false;
};

// Writes the rows of query (columns = table's logical columns, any order, matched by name) as
// Parquet files with statistics (section 6), partitioned as the table is. No rows: no files. Files
// are new names under the table directory; on error they are removed.
Result<std::vector<delta::AddFile>> write_files(Connection& connection, const delta::Table& table,
                                                const delta::Snapshot& definition,
                                                const std::string& query,
                                                const WriteOptions& options = {});

// The Delta layer's Parquet port over DuckDB.
std::shared_ptr<delta::ParquetPort> make_parquet_port(std::shared_ptr<Database> database);

}  // namespace strandline::duck
