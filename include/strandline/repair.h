// Rows that a table of AUTO CDC has more than once: written twice by another program, or by a
// fault.
#pragma once

#include <strandline/strandline.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace strandline {

struct RepairOptions {
  std::string table;   // as in SQL: "t", "s.t", "delta.`/path`"
  bool apply = false;  // else the report says what would be done
};

// Rows are equal where all their columns are.
struct RepairReport {
  std::string table;
  std::vector<std::string> key;  // the table's primary key, as it is printed in examples
  int64_t version = 0;           // that was read
  int64_t repeated_rows = 0;     // rows that stand there more than once, each counted once
  int64_t extra_rows = 0;        // what goes, or has gone, so that each stands there once
  int64_t extra_state_rows = 0;  // the same of what AUTO CDC remembers of the table
  std::optional<int64_t>
      committed_version;  // none: nothing was there to do, or it was not to apply
  // Keys of which rows differ: no repair tells which of them is right.
  int64_t conflicting_keys = 0;
  std::string way_out;                   // of those; empty without any
  std::vector<std::string> repeated;     // a few repeated rows: "k = 1, v = a (3 times)"
  std::vector<std::string> conflicting;  // all rows of a few such keys, in order
};

// Takes equal rows away until each stands in the table once, in one commit, whose change feed has
// the deletes. For AUTO CDC that is no change by hand: what the rows say stays.
// Errors: TABLE_OR_VIEW_NOT_FOUND, ...; kUnsupported REPAIR_NOT_OF_AUTO_CDC for tables whose rows
// may be equal; kInvalidArgument DELTA_CANNOT_MODIFY_APPEND_ONLY; kConflict when others wrote
// meanwhile.
Result<RepairReport> repair_table(const SessionOptions& session, const RepairOptions& options);

}  // namespace strandline
