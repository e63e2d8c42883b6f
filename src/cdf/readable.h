// Whether data of one version of a table can be read with the columns of another.
#pragma once

#include <optional>
#include <string>

#include "delta/snapshot.h"

namespace strandline::cdf {

struct Unreadable {
  std::string why;                 // for people: "column a was renamed or dropped"
  bool column_is_missing = false;  // the reader knows nothing of a column of the data
};

// What keeps rows written under `data` from being read under `reader`: a column that was renamed,
// dropped, has another type or may hold nulls that the reader excludes. nullopt when nothing does:
// the same columns, added nullable ones, nullability that was relaxed. Only protocol, metadata and
// schema of the snapshots are looked at.
std::optional<Unreadable> why_unreadable(const delta::Snapshot& data,
                                         const delta::Snapshot& reader);

}  // namespace strandline::cdf
