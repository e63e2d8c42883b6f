// Values of Arrow arrays that the engine would change while it takes them in.
#pragma once

#include <strandline/result.h>
#include <strandline/rows.h>

namespace strandline::duck {

// Columns have names of their own, whatever their case, and types that the engine reads as they
// are. Errors, which name the column: kInvalidArgument COLUMN_ALREADY_EXISTS; kUnsupported
// UNSUPPORTED_TYPE: floats of 16 bits, decimals of more than 38 digits or of a negative scale.
Status check_columns(const ArrowSchema& schema);

// Times of nanoseconds must be whole microseconds, which is what Delta's types hold. schema, array:
// a struct of columns. Errors: kInvalidArgument VALUE_OUT_OF_TYPE, which names the column.
Status check_times(const ArrowSchema& schema, const ArrowArray& array);

}  // namespace strandline::duck
