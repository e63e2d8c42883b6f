// Conditions that the engine pushes into its Parquet reader, and which of them it must not
// (docs/engine-faults.md).
#pragma once

#include <string>

#include "base/data_type.h"

namespace strandline::duck {

// A column of a Parquet file, by its text, so that no condition and no join on it reaches the
// reader: of BINARY and floating types, whose bloom filters the reader asks for the bytes of
// another spelling (an escaped text, 0.0 for -0.0) and then passes over rows that match. The value
// is exactly the column's. The engine must not see that: coalesce(c, NULL) is the column to it.
std::string unfiltered(const std::string& column, const DataType& type);

}  // namespace strandline::duck
