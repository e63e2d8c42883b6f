// Values as the engine writes them.
#pragma once

#include <optional>
#include <string>

#include "duck/engine.h"

namespace strandline::duck {

// The text of a value of this type, a decimal always with a digit before its point (the engine
// writes .5 for a DECIMAL(p, p)); nullopt when there is none.
std::optional<std::string> text_of(duckdb_value value, duckdb_logical_type type);

}  // namespace strandline::duck
