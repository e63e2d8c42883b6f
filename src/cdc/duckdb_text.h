// Pieces of DuckDB text that say what auto-cdc.md sections 6 and 7 say of values: equality, order,
// casts. Private to this folder.
#pragma once

#include <string>

#include "base/data_type.h"

namespace strandline::cdc {

std::string quote_name(const std::string& name);
std::string quote_literal(const std::string& text);
std::string duckdb_type(const DataType& type);
std::string typed_null(const DataType& type);

// The value as type `to`, which holds every value of `from`; struct members go by name.
std::string cast_up(const std::string& expr, const DataType& from, const DataType& to);

// Keys and sequences: -0.0 becomes 0.0, at any depth.
std::string normal_zero(const std::string& expr, const DataType& type);

// A value that DuckDB compares by = as section 6 wants: maps become sorted entries.
std::string comparable(const std::string& expr, const DataType& type);
// Null-safe equality; a boolean that is never null.
std::string equal(const std::string& a, const std::string& b, const DataType& type);
std::string not_equal(const std::string& a, const std::string& b, const DataType& type);

// A value that DuckDB orders by < as section 7 wants where both sides are not null: null parts of
// structs and lists lowest, maps by sorted entries. Null exactly when the value is null.
std::string order_value(const std::string& expr, const DataType& type);
// a > b with null lowest; a boolean that is never null.
std::string greater(const std::string& a, const std::string& b, const DataType& type);

// Whether equal values can look different (-0.0 and 0.0, order of map entries).
bool has_look_alikes(const DataType& type);
// Text that tells look-alikes apart.
std::string spelling(const std::string& expr);

}  // namespace strandline::cdc
