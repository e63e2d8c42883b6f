#include "duck/double_text.h"

#include <charconv>
#include <cmath>

#include "base/error.h"

namespace strandline::duck {
namespace {

template <typename Number>
std::string text_of(Number value) {
  if (std::isnan(value)) return "NaN";
  const std::string sign = std::signbit(value) ? "-" : "";
  if (std::isinf(value)) return sign + "Infinity";
  if (value == 0) return sign + "0.0";
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), std::abs(value),
                                 std::chars_format::scientific);
  const std::string text(buffer, end.ptr);
  const size_t mark = text.find('e');
  int exponent = 0;
  const char* number = text.data() + mark + (text[mark + 1] == '+' ? 2 : 1);
  std::from_chars(number, text.data() + text.size(), exponent);
  std::string digits = text.substr(0, mark);
  if (digits.size() > 1) digits.erase(1, 1);
  const auto with_point = [&](size_t at) {
    std::string out = digits.substr(0, at) + "." + digits.substr(std::min(at, digits.size()));
    return out.back() == '.' ? out + "0" : out;
  };
  constexpr int kLeast = -3;
  constexpr int kMost = 7;
  if (exponent < kLeast || exponent >= kMost)
    return sign + with_point(1) + "E" + std::to_string(exponent);
  if (exponent < 0)
    return sign + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() < whole) digits.append(whole - digits.size(), '0');
  return sign + with_point(whole);
}

template <typename Number>
void text_function(duckdb_function_info, duckdb_data_chunk input, duckdb_vector output) {
  const idx_t count = duckdb_data_chunk_get_size(input);
  duckdb_vector numbers = duckdb_data_chunk_get_vector(input, 0);
  const auto* values = static_cast<Number*>(duckdb_vector_get_data(numbers));
  uint64_t* validity = duckdb_vector_get_validity(numbers);
  for (idx_t row = 0; row < count; ++row) {
    if (validity != nullptr && !duckdb_validity_row_is_valid(validity, row)) {
      duckdb_vector_ensure_validity_writable(output);
      duckdb_validity_set_row_invalid(duckdb_vector_get_validity(output), row);
      continue;
    }
    const std::string text = double_text(values[row]);
    duckdb_vector_assign_string_element_len(output, row, text.data(), text.size());
  }
}

}  // namespace

std::string double_text(double value) { return text_of(value); }
std::string double_text(float value) { return text_of(value); }

Status register_double_text(duckdb_connection connection) {
  SL_TRY(register_scalar(connection, "sl_double_text", {DUCKDB_TYPE_DOUBLE}, DUCKDB_TYPE_VARCHAR,
                         text_function<double>));
  return register_scalar(connection, "sl_float_text", {DUCKDB_TYPE_FLOAT}, DUCKDB_TYPE_VARCHAR,
                         text_function<float>);
}

}  // namespace strandline::duck
