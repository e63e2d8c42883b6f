// Empty values in partition columns (delta-protocol.md section 5): readers take them for null.
#pragma once

#include <vector>

#include "delta/snapshot.h"

namespace strandline::delta {

// The partition columns of which a value can be empty, and so null in the table: text and bytes. A
// CHAR is filled up with blanks before.
std::vector<Field> columns_without_empty(const Metadata& metadata, const Schema& schema);

}  // namespace strandline::delta
