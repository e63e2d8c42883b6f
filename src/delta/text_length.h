// CHAR(n) and VARCHAR(n): STRING columns whose metadata holds the type, as Spark keeps it. Their
// lengths are counted in characters and checked at every write (duck/row_rules.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/data_type.h"

namespace strandline::delta {

struct TextLength {
  bool is_char = false;  // filled up with blanks
  int64_t length = 0;
};

// What a column says of its texts' length. Errors: kUnsupported
// UNSUPPORTED_CHAR_OR_VARCHAR_AS_STRING for what cannot be checked, as lengths inside a struct.
Result<std::optional<TextLength>> text_length(const Field& field);

// Whether it is a CHAR column whose length can be checked.
bool is_char(const Field& field);

// Declares a column by "varchar(5)" or "char(5)"; "" takes the length away.
void set_text_type(Field* field, const std::string& sized_type);

// The type as declared, in SQL: "VARCHAR(5)" for such a column.
std::string declared_type(const Field& field);

}  // namespace strandline::delta
