#include "duck/arrow_values.h"

#include <cstdint>
#include <string_view>

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

}  // namespace

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
