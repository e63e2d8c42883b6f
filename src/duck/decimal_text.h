// Decimals by their digits, where the engine's own results have too few of them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "duck/engine.h"

namespace strandline::duck {

// a / b with so many digits after the point, the last one rounded half away from zero; digits are
// plain ("-12.50", ".5"). Nothing where b is zero or a text is no number.
std::optional<std::string> decimal_quotient(std::string_view a, std::string_view b, int scale);
// a * b, a + b, a - b the same way.
std::optional<std::string> decimal_product(std::string_view a, std::string_view b, int scale);
std::optional<std::string> decimal_sum(std::string_view a, std::string_view b, int scale);
std::optional<std::string> decimal_difference(std::string_view a, std::string_view b, int scale);
// What is left of a, with its sign, when it is divided by b to a whole number.
std::optional<std::string> decimal_remainder(std::string_view a, std::string_view b, int scale);

// A number as it is written, with an exponent or without, with so many digits after the point, the
// last one rounded half away from zero. Nothing where the text is no number.
std::optional<std::string> decimal_of_text(std::string_view text, int scale);
// The same of the shortest decimal text that reads as the number: 1.005 becomes 1.01. Nothing for
// infinities and NaN.
std::optional<std::string> decimal_of_double(double value, int scale);

// The same in SQL: sl_decimal_quotient(a VARCHAR, b VARCHAR, scale INTEGER) VARCHAR and so on; more
// than 38 digits are an error. sl_decimal_of_text(text VARCHAR, scale INTEGER) VARCHAR gives null
// for what is no number; sl_decimal_of_double(value DOUBLE, precision INTEGER, scale INTEGER,
// strict BOOLEAN) VARCHAR for NaN and infinities, and for what needs more digits than precision,
// which is NUMERIC_VALUE_OUT_OF_RANGE where strict.
Status register_decimal_functions(duckdb_connection connection);

}  // namespace strandline::duck
