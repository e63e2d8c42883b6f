// The hidden columns that hold row ids in data files (delta-protocol.md section 9).
#pragma once

#include <string>
#include <vector>

#include "delta/snapshot.h"

namespace strandline::delta {

inline constexpr const char* kRowIdColumnProperty = "delta.rowTracking.materializedRowIdColumnName";
inline constexpr const char* kRowVersionColumnProperty =
    "delta.rowTracking.materializedRowCommitVersionColumnName";

// Names of the columns of stable row ids and of row commit versions, none twice. A file has those
// of the definition under which it was added, or none.
struct RowIdColumns {
  std::vector<std::string> ids;
  std::vector<std::string> versions;

  bool empty() const { return ids.empty() || versions.empty(); }
};

// By which the files of a snapshot are read: its own, if it tracks rows, then those that
// add_row_id_columns gave it.
RowIdColumns row_id_columns(const Snapshot& snapshot);

// For a definition by which files of many versions are read: row_id_columns(*reader) tells those of
// `other` too. Of snapshots in memory; the names are kept among the domains, which such a
// definition has no use for, and it is never committed.
void add_row_id_columns(const Snapshot& other, Snapshot* reader);

// Whoever makes a table anew keeps the names that it has: files of older versions have them.
void keep_row_id_columns(const Metadata& now, std::map<std::string, std::string>* properties);

}  // namespace strandline::delta
