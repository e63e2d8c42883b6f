// Records of type widening: a column's type grows (can_widen), its files stay (protocol feature
// typeWidening).
#pragma once

#include <string>

#include "base/data_type.h"

namespace strandline::delta {

// Appends a change to the field's record "delta.typeChanges". place is "" for the field's own type,
// else the way to a part of it that is no field: "element", "key", "value", "value.element".
void record_type_change(Field* field, const DataType& from, const DataType& to,
                        const std::string& place);

// Records every change between an old and a new version of a field, at the fields they belong to.
void record_type_changes(const Field& before, Field* after);

// Delta's JSON name of a plain type: "integer", "decimal(10,2)".
std::string type_name(const DataType& type);

}  // namespace strandline::delta
