// Floating-point numbers as Spark writes them: 1.0, 1.0E10, NaN, -Infinity.
#pragma once

#include <string>

#include "duck/engine.h"

namespace strandline::duck {

// The fewest digits that tell the number from others of its type, one after the point at least;
// with an exponent below 0.001 and from 10000000 on.
std::string double_text(double value);
std::string double_text(float value);

// The same in SQL: sl_double_text(DOUBLE) and sl_float_text(FLOAT).
Status register_double_text(duckdb_connection connection);

}  // namespace strandline::duck
