// A change of a Delta table's rows, from queries to a commit: new rows in, dead rows out.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "delta/snapshot.h"
#include "delta/transaction.h"
#include "duck/connection.h"

namespace strandline::duck {

// What happened to each row, as queries of the table's columns; empty for none. An updated row is
// in both updated_ queries, in any order.
struct RowChange {
  std::string deleted;
  std::string updated_before;
  std::string updated_after;
  std::string inserted;
};

struct TableChange {
  std::string new_rows;   // query of the table's columns; empty for none
  std::string dead_rows;  // query of (kFileColumn, kRowColumn) of the base; empty for none
  bool replace = false;   // every old file leaves instead
  // new_rows also gives kRowIdColumn and kRowVersionColumn, either may be null. They are left out
  // where the table does not track rows.
  bool with_row_ids = false;
  // These files of the base leave whole; dead_rows speaks of others.
  std::vector<size_t> dead_files = {};
  // For tables with the legacy change feed: without it a change that the log alone cannot tell is
  // refused there.
  std::optional<RowChange> rows = std::nullopt;
  // How many rows new_rows gives, and dead_rows, if that is known from elsewhere.
  std::optional<int64_t> new_count = std::nullopt;
  std::optional<int64_t> dead_count = std::nullopt;
  // The temporary table that both new_rows and rows->inserted read all rows that are inserted from,
  // if there is one: identity values go into it first, so that the feed has the table's.
  std::string staged_inserts = {};
};

// What apply_change did. Files stay known after an error, to be removed.
struct AppliedChange {
  std::vector<delta::AddFile> written;
  std::vector<delta::CdcFile> change_files;  // of the legacy change feed
  int64_t removed_files = 0;                 // that left whole
  int64_t removed_bytes = 0;
  int64_t copied_rows = 0;  // moved to new files unchanged
  // New rows with an empty value in a partition column, which is null in the table.
  int64_t empty_partition_rows = 0;
  // Deletion vectors: an updated one is also an added and a removed one.
  int64_t vectors_added = 0;
  int64_t vectors_updated = 0;
  int64_t vectors_removed = 0;

  int64_t written_bytes() const;
  int64_t written_rows() const;
};

// Writes the files of a change and adds everything to the transaction: new rows as the rules of the
// table make them (row_rules.h) - a generated or identity column that they leave null gets its
// value, and a row that breaks a rule fails the change; deletion vectors for the dead rows, or the
// touched files anew where the table has none. base is what dead_rows speaks of, null for a new
// table; its rows are read by the transaction's schema. With the legacy change feed on, files of it
// are written where adds and removes do not tell what happened.
// Errors: kUnsupported for a change of such a table without `rows`; kInternal INTERNAL_INVARIANT
// where the rows written or the positions of dead rows are not what was counted, or a position is
// listed twice, dead already or not in its file.
Status apply_change(Connection& connection, delta::Transaction& transaction,
                    const delta::Table& table, const std::shared_ptr<const delta::Snapshot>& base,
                    const TableChange& change, AppliedChange* applied);

// Commits. Written files of a commit that surely did not happen are removed.
// Errors: kConflict by the rule that was broken (DELTA_CONCURRENT_APPEND, DELTA_METADATA_CHANGED,
// ...), kIo COMMIT_UNKNOWN (look before doing it again).
Status commit_change(delta::Transaction& transaction, const delta::Table& table,
                     const AppliedChange& applied);

// Removes data files of a commit that is known not to be there.
void remove_files(const delta::Table& table, const AppliedChange& applied);

}  // namespace strandline::duck
