// The leaves of columns: what partial updates give or leave out (auto-cdc.md section 5). Private to
// this folder.
//
// A struct column is one leaf for each field that is no struct, and for each struct on the way one
// that says whether it is there at all, so that a null struct and a struct of nulls stay two
// things. A column that is no struct is one leaf; so are arrays and maps.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/data_type.h"
#include "cdc/value_text.h"

namespace strandline::cdc {

struct Leaf {
  std::string path;   // folded names with dots between them; what the state calls it
  std::string value;  // of the column's expression; of a struct: true, or null where it is null
  DataType type;
  bool is_struct = false;
};

// Leaves of the value `expr` of a column, each struct before its fields.
std::vector<Leaf> leaves_of(const ValueText& text, const std::string& name, const std::string& expr,
                            const DataType& type);

// The column's value from those of its leaves, asked for in the order of leaves_of.
std::string from_leaves(const ValueText& text, const DataType& type,
                        const std::function<std::string()>& next);

// Whether any leaf below is not null; of a value that is no struct, whether it is.
std::string has_content(const ValueText& text, const std::string& expr, const DataType& type);
// The value, with structs that have no content as nulls.
std::string without_empty_structs(const ValueText& text, const std::string& expr,
                                  const DataType& type);

}  // namespace strandline::cdc
