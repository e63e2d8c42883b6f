// Division of decimals: the engine would divide them as floating-point numbers.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "duck/engine.h"

namespace strandline::duck {

// a / b with so many digits after the point, the last one rounded half away from zero; digits are
// plain ("-12.50", ".5"). Nothing where b is zero or a text is no number.
std::optional<std::string> decimal_quotient(std::string_view a, std::string_view b, int scale);

// The same in SQL: sl_decimal_quotient(a VARCHAR, b VARCHAR, scale INTEGER) VARCHAR.
Status register_decimal_quotient(duckdb_connection connection);

}  // namespace strandline::duck
