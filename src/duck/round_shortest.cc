#include "duck/round_shortest.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include "base/error.h"
#include "duck/registry.h"

namespace strandline::duck {
namespace {

void round_function(duckdb_function_info, duckdb_data_chunk input, duckdb_vector output) {
  const idx_t count = duckdb_data_chunk_get_size(input);
  const auto* values = input_column<double>(input, 0);
  const auto* scales = input_column<int32_t>(input, 1);
  const auto* to_even = input_column<bool>(input, 2);
  std::array<uint64_t*, 3> validity{};
  for (idx_t i = 0; i < validity.size(); ++i)
    validity[i] = duckdb_vector_get_validity(duckdb_data_chunk_get_vector(input, i));
  auto* result = static_cast<double*>(duckdb_vector_get_data(output));
  for (idx_t row = 0; row < count; ++row) {
    const bool null = std::any_of(validity.begin(), validity.end(), [row](uint64_t* valid) {
      return valid != nullptr && !duckdb_validity_row_is_valid(valid, row);
    });
    if (null) {
      duckdb_vector_ensure_validity_writable(output);
      duckdb_validity_set_row_invalid(duckdb_vector_get_validity(output), row);
      continue;
    }
    result[row] = round_shortest(values[row], scales[row],
                                 to_even[row] ? Halves::kToEven : Halves::kAwayFromZero);
  }
}

}  // namespace

double round_shortest(double value, int scale, Halves halves) {
  if (!std::isfinite(value)) return value;
  if (value == 0) return 0;
  std::array<char, 32> buffer{};
  const char* end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), std::abs(value),
                                  std::chars_format::scientific)
                        .ptr;
  const std::string_view text(buffer.data(), static_cast<size_t>(end - buffer.data()));
  const size_t mark = text.find('e');
  std::string digits(1, text[0]);
  if (mark > 2) digits += text.substr(2, mark - 2);
  int exponent = 0;  // of the first digit
  const size_t number = mark + (text[mark + 1] == '+' ? 2 : 1);
  std::from_chars(text.data() + number, end, exponent);

  const int64_t kept = int64_t{exponent} + 1 + scale;
  if (kept >= static_cast<int64_t>(digits.size())) return value;
  if (kept < 0) return 0;
  const auto first = static_cast<size_t>(kept);
  bool up = digits[first] >= '5';
  const bool half = digits[first] == '5' && first + 1 == digits.size();
  if (half && halves == Halves::kToEven) up = first > 0 && (digits[first - 1] - '0') % 2 == 1;
  digits.resize(first);
  // At most 17 digits.
  uint64_t whole = 0;
  for (const char c : digits) whole = whole * 10 + static_cast<uint64_t>(c - '0');
  if (up) ++whole;
  if (whole == 0) return 0;
  const std::string rounded = std::to_string(whole) + "e" + std::to_string(-int64_t{scale});
  double result = 0;
  const auto read = std::from_chars(rounded.data(), rounded.data() + rounded.size(), result);
  if (read.ec == std::errc::result_out_of_range) result = std::numeric_limits<double>::infinity();
  return std::copysign(result, value);
}

Status register_round_shortest(duckdb_connection connection) {
  return register_scalar(connection, "sl_round",
                         {DUCKDB_TYPE_DOUBLE, DUCKDB_TYPE_INTEGER, DUCKDB_TYPE_BOOLEAN},
                         DUCKDB_TYPE_DOUBLE, round_function);
}

}  // namespace strandline::duck
