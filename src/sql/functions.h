// The table of functions: Spark's name and number of arguments, and the DuckDB text that means the
// same.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/data_type.h"

namespace strandline::sql {

enum class FunctionKind { kScalar, kAggregate, kWindow, kGenerator };

// The form is DuckDB text with
//   $1 .. $9   the argument as it stands
//   $s1        as Spark's text of it (casts what is not a string)
//   $t1        as a date or time (casts strings to TIMESTAMP)
//   $D1        as a DATE
//   $b1        as bytes (strings by UTF-8)
//   $n1        as a number (casts strings to DOUBLE)
//   $?1        as a condition, which must be a BOOLEAN
//   $*         all arguments, comma between
//   $d         DISTINCT, where the call has it
//   @          where FILTER and OVER go (aggregates and window functions)
// A form of "!" is built by the printer, for calls whose arguments decide more than their places.
struct Function {
  std::string_view name;  // lower case
  int min_args = 0;
  int max_args = 0;  // -1: any number
  FunctionKind kind = FunctionKind::kScalar;
  std::string_view form;
  TypeId result = TypeId::kVoid;  // kVoid: depends on the arguments
  std::string_view note;          // where DuckDB's answer may differ, or what is refused
};

const std::vector<Function>& functions();
// The row for a call, or nullptr. `known` tells whether any row has the name.
const Function* find_function(std::string_view name, size_t args, bool* known);
// A name near this one, or "".
std::string nearest_function(std::string_view name);
// Spark functions that are refused on purpose: the reason and the way out, or "".
std::string_view refused_function(std::string_view name);

}  // namespace strandline::sql
