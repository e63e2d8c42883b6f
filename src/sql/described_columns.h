// What a describer (duckdb_printer.h) may say of a column beside its name and type.
#pragma once

namespace strandline::sql {

// In a field's metadata: it passes a CHAR column on, of that length in characters.
inline constexpr const char* kCharLengthKey = "char_length";

}  // namespace strandline::sql
