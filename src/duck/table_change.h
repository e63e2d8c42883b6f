// A change of a Delta table's rows, from queries to a commit: new rows in, dead rows out.
#pragma once

#include <string>
#include <vector>

#include "delta/snapshot.h"
#include "delta/transaction.h"
#include "duck/connection.h"

namespace strandline::duck {

struct TableChange {
  std::string new_rows;   // query of the table's columns; empty for none
  std::string dead_rows;  // query of (kFileColumn, kRowColumn) of the base; empty for none
  bool replace = false;   // every old file leaves instead
  // new_rows also gives kRowIdColumn and kRowVersionColumn, either may be null. They are left out
  // where the table does not track rows.
  bool with_row_ids = false;
};

// Writes the files of a change and adds everything to the transaction: deletion vectors for the
// dead rows, or the touched files anew where the table has none. base is what dead_rows speaks of,
// null for a new table. Files written go to `written`, also when a later step fails.
Status apply_change(Connection& connection, delta::Transaction& transaction,
                    const delta::Table& table, const std::shared_ptr<const delta::Snapshot>& base,
                    const TableChange& change, std::vector<delta::AddFile>* written);

// Commits. Written files of a commit that surely did not happen are removed.
// Errors: kConflict by the rule that was broken (DELTA_CONCURRENT_APPEND, DELTA_METADATA_CHANGED,
// ...), kIo COMMIT_UNKNOWN (look before doing it again).
Status commit_change(delta::Transaction& transaction, const delta::Table& table,
                     const std::vector<delta::AddFile>& written);

// Removes data files of a commit that is known not to be there.
void remove_files(const delta::Table& table, const std::vector<delta::AddFile>& files);

}  // namespace strandline::duck
