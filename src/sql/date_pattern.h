// Spark's date and time patterns ("yyyy-MM-dd HH:mm:ss") as DuckDB's strftime formats.
#pragma once

#include <strandline/result.h>

#include <string>
#include <string_view>

namespace strandline::sql {

enum class PatternUse { kFormat, kParse };

// Errors: kUnsupported naming the letters that have no counterpart.
Result<std::string> strftime_pattern(std::string_view pattern, PatternUse use);

}  // namespace strandline::sql
