// The primary key that a target of AUTO CDC carries as a property (auto-cdc.md section 12).
#pragma once

#include <string>
#include <vector>

#include "delta/snapshot.h"

namespace strandline::cdf {

// A JSON array of texts, each a column's name or coalesce(column, column).
inline constexpr const char* kPrimaryKeyProperty = "strandline.primaryKey";

// The columns behind one part of the key: the first that is not null counts.
using KeyPart = std::vector<std::string>;

// The table's primary key, in the schema's spelling; empty when it has none, or one that names a
// column that is not there any more.
std::vector<KeyPart> primary_key(const delta::Snapshot& definition);

}  // namespace strandline::cdf
