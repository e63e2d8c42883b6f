// What auto-cdc.md sections 6 and 7 say of values - equality, order, casts - as text of a dialect.
// Private to this folder.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/data_type.h"
#include "cdc/dialect.h"

namespace strandline::cdc {

class ValueText {
 public:
  explicit ValueText(const Dialect& dialect) : dialect_(dialect) {}

  std::string quote_name(const std::string& name) const { return dialect_.quote_name(name); }
  std::string quote_literal(const std::string& text) const { return dialect_.quote_literal(text); }
  std::string type_text(const DataType& type) const { return dialect_.type(type); }
  std::string text_type() const { return type_text(DataType::primitive(TypeId::kString)); }
  std::string typed_null(const DataType& type) const;
  std::string as_text(const std::string& expr) const;
  // The value as a user would write it in SQL: 'x', DATE '2024-01-01'; null for null.
  std::string as_literal(const std::string& expr, const DataType& type) const;

  // A member of a struct; null of a null struct.
  std::string member(const std::string& expr, const Field& field) const;
  // A struct of the members, or null unless `condition`.
  std::string struct_when(const std::string& condition, const Dialect::Members& members) const;

  // A box tells "null" from "nothing": null unless `condition`, else a struct around the value.
  std::string boxed_when(const std::string& condition, const std::string& value) const;
  std::string unboxed(const std::string& box) const;
  // Window function: the last value so far that is not null.
  std::string last_not_null(const std::string& expr, const std::string& window) const {
    return dialect_.last_not_null(expr, window);
  }

  // ARRAY<STRING> of the texts that are not null; null for none.
  std::string list_of_texts(const std::vector<std::string>& texts) const;
  std::string list_has(const std::string& list, const std::string& text) const;
  // The same without regard to case.
  std::string list_has_name(const std::string& list, const std::string& name) const;
  // Rows (x) of a list column of `from`.
  std::string list_rows(const std::string& list, const std::string& from) const;

  // Aggregates: the value of the row where `by` is greatest or least; its nulls do not count.
  std::string value_of_greatest(const std::string& value, const std::string& by) const {
    return dialect_.value_of_greatest(value, by);
  }
  std::string value_of_least(const std::string& value, const std::string& by) const {
    return dialect_.value_of_least(value, by);
  }

  // The value as type `to`, which holds every value of `from`; struct members go by name.
  std::string cast_up(const std::string& expr, const DataType& from, const DataType& to) const;

  // Keys and sequences: -0.0 becomes 0.0, at any depth.
  std::string normal_zero(const std::string& expr, const DataType& type) const;

  // A value that the engine compares by = as section 6 wants: maps become sorted entries.
  std::string comparable(const std::string& expr, const DataType& type) const;
  // Null-safe equality; a boolean that is never null.
  std::string equal(const std::string& a, const std::string& b, const DataType& type) const;
  std::string not_equal(const std::string& a, const std::string& b, const DataType& type) const;

  // A value that the engine orders by < as section 7 wants where both sides are not null: null
  // parts of structs and lists lowest, maps by sorted entries. Null exactly when the value is null.
  std::string order_value(const std::string& expr, const DataType& type) const;
  // The same for values of columns, where fields of structs count in the order of their lower-cased
  // names: a target has them in the order in which they came.
  std::string rank_value(const std::string& expr, const DataType& type) const;
  // a > b by rank_value with null lowest; a boolean that is never null.
  std::string greater(const std::string& a, const std::string& b, const DataType& type) const;

  // Whether equal values can look different (-0.0 and 0.0, order of map entries).
  static bool has_look_alikes(const DataType& type);
  // Aggregate: the greatest value by rank_value, of look-alikes the one with the greatest spelling;
  // null if all are.
  std::string greatest(const std::string& expr, const DataType& type) const;
  // Equal, and spelled the same; a boolean that is never null.
  std::string identical(const std::string& a, const std::string& b, const DataType& type) const;
  // Text that tells look-alikes apart.
  std::string spelling(const std::string& expr) const { return as_text(expr); }

 protected:
  const Dialect& dialect_;

 private:
  std::string struct_of(const std::string& expr, const Dialect::Members& members) const;
  std::string cast_nested(const std::string& expr, const DataType& from, const DataType& to,
                          int depth) const;
  std::string normal_nested(const std::string& expr, const DataType& type, int depth) const;
  std::string comparable_nested(const std::string& expr, const DataType& type, int depth) const;
  enum class Fields { kAsTheyStand, kByName };
  std::string order_nested(const std::string& expr, const DataType& type, Fields fields,
                           int depth) const;
  Dialect::Parts order_parts(const std::string& expr, const DataType& type, Fields fields,
                             int depth) const;
};

}  // namespace strandline::cdc
