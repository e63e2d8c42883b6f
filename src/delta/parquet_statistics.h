// What the footer of a Parquet file says of the values of its columns.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace strandline::delta {

// min and max bound the values that are there; none: there is no value.
struct LongStatistics {
  int64_t value_count = 0;  // nulls too
  int64_t null_count = 0;
  std::optional<int64_t> min, max;

  void add(const LongStatistics& more);
};

struct RowGroup {
  int64_t row_count = 0;
  std::optional<LongStatistics> values;  // none: it does not tell, or has no such column
};

// Of a column of 64-bit integers at the top of the schema, in the bytes of a whole footer. nullopt:
// the footer is damaged.
std::optional<std::vector<RowGroup>> row_groups(std::string_view footer, std::string_view column);
// Of all row groups; nullopt: there is none, or one does not tell.
std::optional<LongStatistics> long_statistics(std::string_view footer, std::string_view column);

}  // namespace strandline::delta
