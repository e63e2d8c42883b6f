// Paths to fields inside a schema.
#pragma once

#include <string>
#include <vector>

#include "base/data_type.h"

namespace strandline::delta {

// Names of a column and of what lies inside it; "element" leads into an array, "key" and "value"
// into a map. Names compare without case.
using FieldPath = std::vector<std::string>;

// address.`zip code`, quoted where needed, for messages and properties.
std::string to_string(const FieldPath& path);

// The paths of a comma-separated property: "a, `b.c`, d.e".
std::vector<FieldPath> parse_column_list(const std::string& text);

// The field at a path, or null; array elements, keys and values are no fields.
const Field* find_field(const Schema& schema, const FieldPath& path);

}  // namespace strandline::delta
