// Conditions that the engine pushes into its Parquet reader, and which of them it must not
// (docs/engine-faults.md).
#pragma once

#include <string>

#include "base/data_type.h"

namespace strandline::duck {

// The value of a column, by an expression through which the engine passes neither conditions nor
// what a join has found on to the reader. Of coalesce(c, NULL) it knows that it is the column.
std::string out_of_reach(const std::string& value);

// A column of a Parquet file, by its text, so that no condition and no join on it reaches the
// reader: of BINARY and floating types, whose Bloom filters the reader asks for the bytes of
// another spelling (an escaped text, 0.0 for -0.0) and then passes over rows that match. The value
// is exactly the column's.
std::string unfiltered(const std::string& column, const DataType& type);

}  // namespace strandline::duck
