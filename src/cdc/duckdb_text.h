// Pieces of DuckDB text that say what auto-cdc.md sections 6 and 7 say of values: equality, order,
// casts. Private to this folder.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/data_type.h"

namespace strandline::cdc {

std::string quote_name(const std::string& name);
std::string quote_literal(const std::string& text);
std::string duckdb_type(const DataType& type);
std::string typed_null(const DataType& type);

// A member of a struct; null of a null struct.
std::string member(const std::string& expr, const Field& field);
// struct_pack(...), or null unless `condition`.
std::string struct_when(const std::string& condition,
                        const std::vector<std::pair<std::string, std::string>>& members);

// A box tells "null" from "nothing": null unless `condition`, else a struct around the value.
std::string boxed_when(const std::string& condition, const std::string& value);
std::string unboxed(const std::string& box);
// Window function: the last value so far that is not null.
std::string last_not_null(const std::string& expr, const std::string& window);

// ARRAY<STRING> of the texts that are not null; null for none.
std::string list_of_texts(const std::vector<std::string>& texts);
std::string list_has(const std::string& list, const std::string& text);
// The same without regard to case.
std::string list_has_name(const std::string& list, const std::string& name);
// Rows (x VARCHAR) of a list column of `from`.
std::string list_rows(const std::string& list, const std::string& from);

// Aggregates: the value of the row where `by` is greatest or least; its nulls do not count.
std::string value_of_greatest(const std::string& value, const std::string& by);
std::string value_of_least(const std::string& value, const std::string& by);

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
// Aggregate: the greatest value, of look-alikes the one with the greatest spelling; null if all
// are.
std::string greatest(const std::string& expr, const DataType& type);
// Equal, and spelled the same; a boolean that is never null.
std::string identical(const std::string& a, const std::string& b, const DataType& type);
// Text that tells look-alikes apart.
std::string spelling(const std::string& expr);

}  // namespace strandline::cdc
