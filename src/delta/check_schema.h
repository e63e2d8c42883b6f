// What the columns of a table may be.
#pragma once

#include <string>
#include <vector>

#include "base/data_type.h"

namespace strandline::delta {

// Column names of a new or altered table, nested ones too, and their types. Errors:
// DELTA_INVALID_TABLE_DEFINITION (an empty name), DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES (unless
// mapped: column mapping is on), DELTA_DUPLICATE_COLUMNS_FOUND, DELTA_UNSUPPORTED_DATA_TYPE.
Status check_columns(const std::vector<Field>& fields, bool mapped);

}  // namespace strandline::delta
