// Column mapping: columns keep an id and a name of their own in the files, so that they can be
// renamed and dropped without rewriting data (delta-protocol.md section 8).
#pragma once

#include <cstdint>
#include <string>

#include "delta/snapshot.h"

namespace strandline::delta {

inline constexpr const char* kMappingModeProperty = "delta.columnMapping.mode";
inline constexpr const char* kMaxColumnIdProperty = "delta.columnMapping.maxColumnId";

// "name", "id" or "none", as the property says.
std::string mapping_mode(const Metadata& metadata);

// Characters that a column name may hold only under column mapping, since Parquet readers of other
// engines refuse them.
inline constexpr const char* kMappedCharacters = " ,;{}()\n\t=";

// The names that files know the fields by: fresh ones, or those they have now (a table that already
// has files).
enum class PhysicalNames { kFresh, kCurrent };

// Gives every field without an id or a physical name both, nested ones too; the largest id given
// so far is kept in the configuration and only grows.
void assign_mapping(Schema* schema, Metadata* metadata, PhysicalNames names);

// Every field, nested ones too, has its own name as its physical name.
bool physical_names_are_current(const Schema& schema);

// Takes ids and physical names away from every field.
void strip_mapping(Schema* schema);

// The next schema of a table: fields found by name in the current one keep its id and physical
// name, the others get new ones; what they brought from another table is dropped. Updates the
// metadata's largest id. Without column mapping only foreign ids and names are dropped. Widened
// types are recorded where `record_widening` is set.
Schema next_schema(const Schema& current, Schema next, bool record_widening, Metadata* metadata);

}  // namespace strandline::delta
