// Type widening: a column's type grows, its files stay (protocol feature typeWidening).
#pragma once

#include <string>

#include "base/data_type.h"

namespace strandline::delta {

// Values of `from` in old files may be read as `to`: wider integers, FLOAT to DOUBLE, integers up
// to INT to DOUBLE, integers to decimals that hold them all, decimals with no fewer digits on
// either side of the point, DATE to TIMESTAMP_NTZ. Plain types only; a type does not widen to
// itself.
bool can_widen(const DataType& from, const DataType& to);

// Appends a change to the field's record "delta.typeChanges". place is "" for the field's own type,
// else the way to a part of it that is no field: "element", "key", "value", "value.element".
void record_type_change(Field* field, const DataType& from, const DataType& to,
                        const std::string& place);

// Records every change between an old and a new version of a field, at the fields they belong to.
void record_type_changes(const Field& before, Field* after);

// Delta's JSON name of a plain type: "integer", "decimal(10,2)".
std::string type_name(const DataType& type);

}  // namespace strandline::delta
