// A change of a table's rows that was computed against one version, for another one.
#pragma once

#include <strandline/result.h>

#include <memory>
#include <string>
#include <vector>

#include "base/data_type.h"
#include "delta/snapshot.h"
#include "duck/connection.h"
#include "duck/delta_io.h"

namespace strandline::pipeline {

struct RowsChange {
  std::string new_rows;   // query of the table's columns; empty for none
  std::string dead_rows;  // query of (duck::kFileColumn, duck::kRowColumn); empty for none
};

// After `change` a table as it stood at `base` has certain rows: what makes those of the table as
// it stands at `now`. Whatever was committed between the two is undone. `base` may be null: nothing
// stood there. schema: columns of the new rows, which those of `base` are read as. The result is
// good while `scans` are.
// Errors: kIo, kCorrupt.
Result<RowsChange> rebase_change(duck::Connection& connection, const delta::Table& table,
                                 const std::shared_ptr<const delta::Snapshot>& base,
                                 const std::shared_ptr<const delta::Snapshot>& now,
                                 const Schema& schema, const RowsChange& change,
                                 std::vector<std::unique_ptr<duck::Scan>>* scans);

}  // namespace strandline::pipeline
