#include "duck/arrow_values.h"

#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "base/data_type.h"
#include "base/error.h"

namespace strandline::duck {
namespace {

// Rows of an array, counted from the start of its buffers.
struct Rows {
  int64_t first;
  int64_t count;
};

bool is_valid_at(const ArrowArray& array, int64_t row) {
  const auto* bits = static_cast<const uint8_t*>(array.buffers[0]);
  return bits == nullptr || ((bits[row / 8] >> (row % 8)) & 1) != 0;
}

template <typename Offset>
Rows items_of(const ArrowArray& array, const Rows& rows) {
  const auto* offsets = static_cast<const Offset*>(array.buffers[1]);
  const int64_t first = offsets[rows.first];
  return {first, offsets[rows.first + rows.count] - first};
}

Rows all_of(const ArrowArray& array) { return {array.offset, array.length}; }

// The rows of a child lie behind the child's own offset.
Rows in_child(const ArrowArray& child, const Rows& rows) {
  return {rows.first + child.offset, rows.count};
}

Status check_rows(const ArrowSchema& schema, const ArrowArray& array, const Rows& rows,
                  std::string_view column) {
  if (rows.count == 0) return {};
  if (array.dictionary != nullptr) {
    return check_rows(*schema.dictionary, *array.dictionary, all_of(*array.dictionary), column);
  }
  const std::string_view format = schema.format;
  if (format.rfind("tsn:", 0) == 0) {
    const auto* values = static_cast<const int64_t*>(array.buffers[1]);
    for (int64_t row = rows.first; row < rows.first + rows.count; ++row) {
      if (values[row] % 1000 == 0 || !is_valid_at(array, row)) continue;
      return invalid_argument("VALUE_OUT_OF_TYPE",
                              "column '{}' has a time of {} nanoseconds since 1970, and TIMESTAMP "
                              "holds microseconds: round the column before",
                              column, values[row]);
    }
    return {};
  }
  for (int64_t c = 0; c < array.n_children; ++c) {
    const ArrowArray& child = *array.children[c];
    Rows inner = all_of(child);
    if (format == "+s") {
      inner = in_child(child, rows);
    } else if (format == "+l" || format == "+m") {
      inner = in_child(child, items_of<int32_t>(array, rows));
    } else if (format == "+L") {
      inner = in_child(child, items_of<int64_t>(array, rows));
    }
    SL_TRY(check_rows(*schema.children[c], child, inner, column));
  }
  return {};
}

Status check_type(const ArrowSchema& schema, std::string_view column) {
  const std::string format = schema.format == nullptr ? "" : schema.format;
  if (format == "e") {
    return unsupported("UNSUPPORTED_TYPE",
                       "column '{}' has floats of 16 bits, which no type of SQL is: cast it to "
                       "floats of 32 bits before",
                       column);
  }
  if (format.rfind("d:", 0) == 0) {  // d:precision,scale[,bits]
    const size_t comma = format.find(',');
    const int precision = std::atoi(format.c_str() + 2);
    const int scale = comma == std::string::npos ? 0 : std::atoi(format.c_str() + comma + 1);
    const bool wide = format.size() > 4 && format.compare(format.size() - 4, 4, ",256") == 0;
    if (wide || precision > 38 || scale < 0) {
      return unsupported(
          "UNSUPPORTED_TYPE",
          "column '{}' has decimals of {} digits and scale {}{}; DECIMAL has at most "
          "38 digits and no negative scale: cast it to decimal128 of such before",
          column, precision, scale, wide ? " in 256 bits" : "");
    }
  }
  if (schema.dictionary != nullptr) SL_TRY(check_type(*schema.dictionary, column));
  for (int64_t c = 0; c < schema.n_children; ++c) SL_TRY(check_type(*schema.children[c], column));
  return {};
}

}  // namespace

Status check_columns(const ArrowSchema& schema) {
  std::map<std::string, std::string> seen;
  for (int64_t c = 0; c < schema.n_children; ++c) {
    const char* const given = schema.children[c]->name;
    const std::string name = given == nullptr ? "" : given;
    const auto [first, fresh] = seen.emplace(fold_name(name), name);
    if (!fresh) {
      return invalid_argument("COLUMN_ALREADY_EXISTS",
                              "the rows have the columns '{}' and '{}', which are one name because "
                              "case does not count: give them other names",
                              first->second, name);
    }
    SL_TRY(check_type(*schema.children[c], name));
  }
  return {};
}

Status check_times(const ArrowSchema& schema, const ArrowArray& array) {
  for (int64_t c = 0; c < array.n_children; ++c) {
    const ArrowArray& child = *array.children[c];
    const char* const name = schema.children[c]->name;
    SL_TRY(check_rows(*schema.children[c], child, in_child(child, {array.offset, array.length}),
                      name == nullptr ? "" : name));
  }
  return {};
}

}  // namespace strandline::duck
