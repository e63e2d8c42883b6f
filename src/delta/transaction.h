// Transaction: collects actions against a snapshot and commits them (delta-protocol.md 1, 2, 9,
// 11).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "delta/field_path.h"
#include "delta/file_filter.h"
#include "delta/snapshot.h"

namespace strandline::delta {

// What a new table is made of. Defaults are modern Delta (architecture.md decision 7): deletion
// vectors, row tracking, in-commit timestamps; properties set to "false" turn each off.
struct NewTable {
  Schema schema;
  std::vector<std::string> partition_columns;
  std::vector<FieldPath> clustering_columns;
  std::map<std::string, std::string> properties;
  std::optional<std::string> description;
  // Of a table that this one replaces: the largest column id it has given (column mapping).
  int64_t last_column_id = 0;
  // Only the program writes it: columns may have names that are reserved for that.
  bool is_internal = false;
};

// Protocol and metadata of a new table: lowest protocol that the properties need (section 3).
// Errors: kInvalidArgument (unknown delta.* property or value), kUnsupported by feature name.
struct TableDefinition {
  Protocol protocol;
  Metadata metadata;
  Schema schema;  // of the metadata: with ids and physical names under column mapping
  std::vector<DomainMetadata> domains;
};
Result<TableDefinition> define_table(const NewTable& table);

struct Committed {
  Version version = -1;
  // Why a due checkpoint could not be written or the expired log not be removed; the commit stands.
  std::string checkpoint_problem = {};
};
// Another writer won by the rules of section 2; nothing was written.
struct Conflicted {
  std::string what;
  std::string code = {};  // the documents' error name: DELTA_CONCURRENT_APPEND, ...
};
// May or may not be there: do not clean up.
struct Unknown {
  std::string what;
};
using CommitOutcome = std::variant<Committed, Conflicted, Unknown>;

class Transaction {
 public:
  // On an existing table. Errors: kUnsupported naming writer features we cannot write.
  static Result<Transaction> begin(Table table, std::shared_ptr<const Snapshot> snapshot);
  // Version 0. Committing over an existing table is Conflicted.
  static Result<Transaction> create(Table table, const NewTable& definition);

  Transaction(Transaction&&) noexcept;
  Transaction& operator=(Transaction&&) noexcept;
  ~Transaction();

  const Snapshot& snapshot() const;  // what is read and built on; metadata changes included

  // New data, whose rows keep the rules of the columns (column_rules.h): duck/table_change.h sees
  // to it. Row ids and commit versions are assigned at commit when row tracking is supported.
  void add_file(AddFile file);
  void remove_file(const AddFile& file, bool data_change = true);
  // Adds positions to a live file's deletion vector (7.7); all rows gone is a plain remove.
  // All vectors of the commit go to one DV file, written at commit. Needs deletion vectors enabled.
  Status delete_rows(const AddFile& file, const RowSet& positions);
  // A file of the legacy change feed. A commit that has one must tell all its changes that way.
  void add_change_file(CdcFile file);
  // What changed can be told: by files of the change feed, or from adds and removes alone. Without
  // it a commit that both adds and removes rows is refused where 'delta.enableChangeDataFeed' is
  // 'true'.
  void set_change_feed_complete();
  void set_metadata(Metadata metadata);
  // Replaces the schema, keeping everything else of the metadata. Columns found by name go on with
  // their ids and physical names, new ones get theirs; widened types are recorded.
  void set_schema(const Schema& schema);
  void set_protocol(Protocol protocol);
  void set_txn(const std::string& app_id, int64_t version);
  void set_domain(DomainMetadata domain);

  // Parameters are plain text, logged as JSON strings.
  void set_operation(std::string operation,
                     const std::map<std::string, std::string>& parameters = {});
  void set_metric(const std::string& name, int64_t value);
  void set_tag(const std::string& name, const std::string& value);
  // Row ids of moved rows were kept ("delta.rowTracking.preserved"); default true.
  void set_row_ids_preserved(bool preserved);
  // What was read decides conflicts (2.5, 2.6): default whole table; a blind append read nothing.
  void set_blind_append();
  // Only files of the snapshot at these indexes were read; any file that others add may still
  // conflict.
  void set_read_files(std::vector<size_t> file_indexes);
  // Only rows that the filter asks for were read, from the files of the snapshot at these indexes,
  // which must be all that the filter keeps. A file that others add conflicts if the filter keeps
  // it too. Not for conditions that are not deterministic: those read the whole table.
  void set_read_predicate(FileFilter filter, std::vector<size_t> file_indexes);

  // Commits also when there is nothing but the operation and its metrics to log, as VACUUM does.
  void set_logged_always();
  // The file actions are whole files' changes: no change data files are needed to tell them, also
  // where the table has a change data feed (RESTORE).
  void set_whole_file_changes();

  bool has_changes() const;
  // Once per transaction. Without changes nothing is written and the version read is returned.
  // Retries lost races while the rules allow. Writes a checkpoint each delta.checkpointInterval
  // commits; failing to do so does not fail the commit. Errors are for what can never commit:
  // kUnsupported, kIo before the log was touched, kInternal for illegal action sets (1.6).
  Result<CommitOutcome> commit();
  // commit() with Conflicted as kConflict and Unknown as kIo errors.
  Result<Version> commit_or_error();

 private:
  struct Impl;
  explicit Transaction(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace strandline::delta
