// Which types a stored column can take on without its files being written anew.
#pragma once

#include <optional>

#include "base/data_type.h"

namespace strandline {

// Stored values of `from` may be read as `to` (Delta's type widening): wider integers, FLOAT to
// DOUBLE, integers up to INT to DOUBLE, integers to decimals with room for 10 digits (BIGINT: 20)
// before the point, decimals with no fewer digits on either side of it, DATE to TIMESTAMP_NTZ.
// Plain types only; a type does not widen to itself.
bool can_widen(const DataType& from, const DataType& to);

// The least type that `current` can become by widening, and by new struct fields, so that it holds
// the values of `other` too. Without `widening` only struct fields are added.
std::optional<DataType> widened_type(const DataType& current, const DataType& other, bool widening);

}  // namespace strandline
