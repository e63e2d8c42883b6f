// The change data feed of a table as a relation (change-data-feed.md).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cdf/plan.h"
#include "duck/delta_io.h"

namespace strandline::duck {

// The rows of a plan: the definition's columns, then _change_type, _commit_version and
// _commit_timestamp. Automatic feed: rows that a commit only copied are dropped, and a delete and
// an insert of one row id in one commit are the images of an update. Where the table has a primary
// key (cdf/primary_key.h), an update that changes it is a delete and an insert in either feed.
// Which rows a commit changed is found at once, from row ids; of their columns only what a query
// selects is read. with_row_ids: kRowIdColumn too, of a plan of the automatic feed.
// Errors: as scan_table.
Result<std::unique_ptr<Scan>> scan_changes(Connection& connection, const delta::Table& table,
                                           const cdf::ChangePlan& plan, bool with_row_ids = false);

// The same for pieces of one plan (cdf/stretches.h) in their order: what is known of the rows of
// one piece serves the next.
class ChangeScans {
 public:
  explicit ChangeScans(delta::Table table);
  ChangeScans(ChangeScans&&) noexcept;
  ChangeScans& operator=(ChangeScans&&) noexcept;
  ~ChangeScans();

  // Errors: as scan_table; after one, what is known of rows is too little to go on.
  Result<std::unique_ptr<Scan>> next(Connection& connection, const cdf::ChangePlan& piece,
                                     bool with_row_ids = false);

 private:
  struct Known;
  delta::Table table_;
  std::unique_ptr<Known> known_;
};

// Conditions on the change columns alone, as the engine spells them; empty: none.
struct ChangeCondition {
  std::string of_commits;  // on _commit_version and _commit_timestamp
  std::string of_types;    // on _change_type too
};

// Leaves out the commits none of whose rows can meet the condition, and of the others the files
// whose rows cannot. Errors: of the engine; the plan is then as it was.
Status prune_changes(Connection& connection, const ChangeCondition& condition,
                     cdf::ChangePlan* plan);

}  // namespace strandline::duck
