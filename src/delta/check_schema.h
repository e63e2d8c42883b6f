// What the columns of a table may be.
#pragma once

#include <string>
#include <vector>

#include "base/data_type.h"
#include "delta/actions.h"

namespace strandline::delta {

// Column names of a new or altered table, nested ones too, and their types. Errors:
// DELTA_INVALID_TABLE_DEFINITION (an empty name), DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES (unless
// mapped: column mapping is on), DELTA_DUPLICATE_COLUMNS_FOUND, DELTA_UNSUPPORTED_DATA_TYPE.
Status check_columns(const std::vector<Field>& fields, bool mapped);

// No column that is not in `before` has a name that begins as those of the program's own columns
// (RESERVED_COLUMN_NAME); with the change data feed on, none has a name of its columns:
// RESERVED_CDC_COLUMNS_ON_WRITE, or DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS where `before` has it.
Status check_reserved_names(const Schema& schema, const Schema& before, const Metadata& metadata);

}  // namespace strandline::delta
