// Rounding of floating-point numbers as they are written: the engine rounds their binary values.
#pragma once

#include "duck/engine.h"

namespace strandline::duck {

// What happens to a last digit that is exactly half way.
enum class Halves { kAwayFromZero, kToEven };

// The number with so many digits after the point (before it where scale is negative), taken from
// the shortest decimal text that reads as the number: 1.005 becomes 1.01. A zero has no sign;
// infinities and NaN stay.
double round_shortest(double value, int scale, Halves halves);

// The same in SQL: sl_round(value DOUBLE, scale INTEGER, to_even BOOLEAN) DOUBLE.
Status register_round_shortest(duckdb_connection connection);

}  // namespace strandline::duck
