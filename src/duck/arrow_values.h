// Values of Arrow arrays that the engine would change while it takes them in.
#pragma once

#include <strandline/result.h>
#include <strandline/rows.h>

namespace strandline::duck {

// Times of nanoseconds must be whole microseconds, which is what Delta's types hold. schema, array:
// a struct of columns. Errors: kInvalidArgument VALUE_OUT_OF_TYPE, which names the column.
Status check_times(const ArrowSchema& schema, const ArrowArray& array);

}  // namespace strandline::duck
