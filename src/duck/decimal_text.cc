#include "duck/decimal_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include "base/error.h"
#include "duck/double_text.h"
#include "duck/registry.h"

namespace strandline::duck {
namespace {

__extension__ using Wide = unsigned __int128;
constexpr size_t kWideDigits = 38;  // of any number of so many digits a Wide holds it

// A number without its sign: its digits without leading zeros, and how many are after the point.
struct Digits {
  std::string text;
  int scale = 0;
  bool negative = false;
};

std::optional<Digits> read(std::string_view text) {
  Digits digits;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    digits.negative = text[0] == '-';
    text.remove_prefix(1);
  }
  bool after_point = false;
  bool any = false;
  for (const char c : text) {
    if (c == '.' && !after_point) {
      after_point = true;
      continue;
    }
    if (c < '0' || c > '9') return std::nullopt;
    any = true;
    if (after_point) ++digits.scale;
    if (c != '0' || !digits.text.empty()) digits.text += c;
  }
  if (!any) return std::nullopt;
  return digits;
}

Wide to_wide(std::string_view digits) {
  Wide value = 0;
  for (const char c : digits) value = value * 10 + static_cast<unsigned>(c - '0');
  return value;
}

std::string to_text(Wide value) {
  std::string text;
  for (; value > 0; value /= 10) text += static_cast<char>('0' + static_cast<int>(value % 10));
  std::reverse(text.begin(), text.end());
  return text;
}

// Of digits without leading zeros.
bool less(const std::string& a, const std::string& b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

// a - b, where b is not greater.
std::string minus(std::string a, const std::string& b) {
  int borrow = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    char& digit = a[a.size() - 1 - i];
    int value = digit - '0' - borrow - (i < b.size() ? b[b.size() - 1 - i] - '0' : 0);
    borrow = value < 0 ? 1 : 0;
    digit = static_cast<char>('0' + value + 10 * borrow);
  }
  a.erase(0, std::min(a.find_first_not_of('0'), a.size()));
  return a;
}

std::string plus(std::string a, std::string b) {
  if (a.size() < b.size()) std::swap(a, b);
  int carry = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    char& digit = a[a.size() - 1 - i];
    const int value = digit - '0' + carry + (i < b.size() ? b[b.size() - 1 - i] - '0' : 0);
    carry = value / 10;
    digit = static_cast<char>('0' + value % 10);
  }
  if (carry > 0) a.insert(a.begin(), '1');
  return a;
}

std::string times(const std::string& a, const std::string& b) {
  std::vector<int> sums(a.size() + b.size(), 0);  // least digit first
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < b.size(); ++j)
      sums[i + j] += (a[a.size() - 1 - i] - '0') * (b[b.size() - 1 - j] - '0');
  }
  std::string digits(sums.size(), '0');
  int carry = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    const int value = sums[i] + carry;
    digits[digits.size() - 1 - i] = static_cast<char>('0' + value % 10);
    carry = value / 10;
  }
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  return digits;
}

// The whole quotient, and whether the rest is at least half of the divisor.
std::pair<std::string, bool> divide(const std::string& dividend, const std::string& divisor) {
  if (dividend.size() <= kWideDigits && divisor.size() <= kWideDigits) {
    const Wide by = to_wide(divisor);
    const Wide value = to_wide(dividend);
    const Wide rest = value % by;
    return {to_text(value / by), rest >= by - rest};
  }
  std::string quotient;
  std::string rest;
  for (const char c : dividend) {
    if (c != '0' || !rest.empty()) rest += c;
    char digit = '0';
    for (; !less(rest, divisor); ++digit) rest = minus(rest, divisor);
    if (digit != '0' || !quotient.empty()) quotient += digit;
  }
  return {quotient, !less(rest, minus(divisor, rest))};
}

std::string rest_of(const std::string& dividend, const std::string& divisor) {
  std::string rest;
  for (const char c : dividend) {
    if (c != '0' || !rest.empty()) rest += c;
    while (!less(rest, divisor)) rest = minus(rest, divisor);
  }
  return rest;
}

std::string plus_one(std::string digits) { return plus(std::move(digits), "1"); }

// Both with as many digits after the point.
void align(Digits* a, Digits* b) {
  Digits* const shorter = a->scale < b->scale ? a : b;
  const int scale = std::max(a->scale, b->scale);
  if (!shorter->text.empty())
    shorter->text.append(static_cast<size_t>(scale - shorter->scale), '0');
  a->scale = scale;
  b->scale = scale;
}

// The number with `scale` digits after the point, half away from zero.
std::string written(Digits value, int scale) {
  std::string& digits = value.text;
  if (value.scale > scale) {
    const auto gone = static_cast<size_t>(value.scale - scale);
    const bool up = digits.size() >= gone && digits[digits.size() - gone] >= '5';
    digits.erase(digits.size() - std::min(gone, digits.size()));
    if (up) digits = plus_one(std::move(digits));
  } else if (!digits.empty()) {
    digits.append(static_cast<size_t>(scale - value.scale), '0');
  }
  const bool negative = value.negative && !digits.empty();
  const auto after_point = static_cast<size_t>(scale);
  if (digits.size() <= after_point) digits.insert(0, after_point + 1 - digits.size(), '0');
  if (scale > 0) digits.insert(digits.size() - after_point, 1, '.');
  if (negative) digits.insert(digits.begin(), '-');
  return digits;
}

constexpr size_t kMostDigits = 38;

bool fits_decimal(const std::string& text, size_t precision = kMostDigits) {
  const size_t first = text.find_first_not_of("-0.");
  if (first == std::string::npos) return true;
  const size_t point = text.find('.');
  return text.size() - first - (point != std::string::npos && point > first ? 1 : 0) <= precision;
}

bool is_null(duckdb_vector values, idx_t row) {
  uint64_t* validity = duckdb_vector_get_validity(values);
  return validity != nullptr && !duckdb_validity_row_is_valid(validity, row);
}

void set_null(duckdb_vector output, idx_t row) {
  duckdb_vector_ensure_validity_writable(output);
  duckdb_validity_set_row_invalid(duckdb_vector_get_validity(output), row);
}

std::string_view text_of(duckdb_vector values, idx_t row) {
  auto* strings = static_cast<duckdb_string_t*>(duckdb_vector_get_data(values));
  return {duckdb_string_t_data(&strings[row]), duckdb_string_t_length(strings[row])};
}

void of_text_function(duckdb_function_info, duckdb_data_chunk input, duckdb_vector output) {
  const idx_t count = duckdb_data_chunk_get_size(input);
  const duckdb_vector texts = duckdb_data_chunk_get_vector(input, 0);
  const duckdb_vector scales = duckdb_data_chunk_get_vector(input, 1);
  for (idx_t row = 0; row < count; ++row) {
    std::optional<std::string> digits;
    if (!is_null(texts, row) && !is_null(scales, row))
      digits = decimal_of_text(text_of(texts, row), input_column<int32_t>(input, 1)[row]);
    if (!digits) {
      set_null(output, row);
    } else {
      duckdb_vector_assign_string_element_len(output, row, digits->data(), digits->size());
    }
  }
}

void of_double_function(duckdb_function_info info, duckdb_data_chunk input, duckdb_vector output) {
  const idx_t count = duckdb_data_chunk_get_size(input);
  const auto* values = input_column<double>(input, 0);
  const auto* precisions = input_column<int32_t>(input, 1);
  const auto* scales = input_column<int32_t>(input, 2);
  const auto* strict = input_column<bool>(input, 3);
  for (idx_t row = 0; row < count; ++row) {
    bool null = false;
    for (idx_t i = 0; i < 4; ++i)
      null = null || is_null(duckdb_data_chunk_get_vector(input, i), row);
    const auto digits = null ? std::nullopt : decimal_of_double(values[row], scales[row]);
    if (!digits) {
      set_null(output, row);
    } else if (fits_decimal(*digits, static_cast<size_t>(precisions[row]))) {
      duckdb_vector_assign_string_element_len(output, row, digits->data(), digits->size());
    } else if (!strict[row]) {
      set_null(output, row);
    } else {
      const auto message = fmt::format(
          "[NUMERIC_VALUE_OUT_OF_RANGE] {} does not fit DECIMAL({},{}): use try_cast for null "
          "instead",
          double_text(values[row]), precisions[row], scales[row]);
      duckdb_scalar_function_set_error(info, message.c_str());
      return;
    }
  }
}

using Operation = std::optional<std::string> (*)(std::string_view, std::string_view, int);

template <Operation kOperation>
void decimal_function(duckdb_function_info info, duckdb_data_chunk input, duckdb_vector output) {
  const idx_t count = duckdb_data_chunk_get_size(input);
  const auto vector = [&](idx_t index) { return duckdb_data_chunk_get_vector(input, index); };
  const auto* scales = static_cast<int32_t*>(duckdb_vector_get_data(vector(2)));
  for (idx_t row = 0; row < count; ++row) {
    if (is_null(vector(0), row) || is_null(vector(1), row) || is_null(vector(2), row)) {
      set_null(output, row);
      continue;
    }
    const auto a = text_of(vector(0), row);
    const auto b = text_of(vector(1), row);
    const auto result = kOperation(a, b, scales[row]);
    if (!result) {
      duckdb_scalar_function_set_error(info, "[DIVIDE_BY_ZERO] division by zero");
      return;
    }
    if (!fits_decimal(*result)) {
      const auto message = fmt::format(
          "[NUMERIC_VALUE_OUT_OF_RANGE] {}, computed of {} and {}, has more than 38 digits: cast "
          "to decimals of fewer digits after the point",
          *result, a, b);
      duckdb_scalar_function_set_error(info, message.c_str());
      return;
    }
    duckdb_vector_assign_string_element_len(output, row, result->data(), result->size());
  }
}

Status register_function(duckdb_connection connection, const char* name,
                         duckdb_scalar_function_t function) {
  return register_scalar(connection, name,
                         {DUCKDB_TYPE_VARCHAR, DUCKDB_TYPE_VARCHAR, DUCKDB_TYPE_INTEGER},
                         DUCKDB_TYPE_VARCHAR, function);
}

}  // namespace

std::optional<std::string> decimal_quotient(std::string_view a, std::string_view b, int scale) {
  auto dividend = read(a);
  auto divisor = read(b);
  if (!dividend || !divisor || divisor->text.empty() || scale < 0) return std::nullopt;
  const int shift = scale + divisor->scale - dividend->scale;
  std::string& moved = shift >= 0 ? dividend->text : divisor->text;
  if (!moved.empty()) moved.append(static_cast<size_t>(shift >= 0 ? shift : -shift), '0');
  auto [whole, round_up] = divide(dividend->text, divisor->text);
  if (round_up) whole = plus_one(std::move(whole));
  return written({std::move(whole), scale, dividend->negative != divisor->negative}, scale);
}

std::optional<std::string> decimal_product(std::string_view a, std::string_view b, int scale) {
  const auto left = read(a);
  const auto right = read(b);
  if (!left || !right || scale < 0) return std::nullopt;
  return written({times(left->text, right->text), left->scale + right->scale,
                  left->negative != right->negative},
                 scale);
}

std::optional<std::string> decimal_sum(std::string_view a, std::string_view b, int scale) {
  const auto left = read(a);
  const auto right = read(b);
  if (!left || !right || scale < 0) return std::nullopt;
  Digits sum = *left;
  Digits other = *right;
  align(&sum, &other);
  if (sum.negative == other.negative) {
    sum.text = plus(sum.text, other.text);
  } else if (less(sum.text, other.text)) {
    sum.text = minus(other.text, sum.text);
    sum.negative = other.negative;
  } else {
    sum.text = minus(sum.text, other.text);
  }
  return written(std::move(sum), scale);
}

std::optional<std::string> decimal_difference(std::string_view a, std::string_view b, int scale) {
  const bool negative = b.starts_with('-');
  const std::string other = negative ? std::string(b.substr(1)) : "-" + std::string(b);
  return decimal_sum(a, other, scale);
}

std::optional<std::string> decimal_remainder(std::string_view a, std::string_view b, int scale) {
  const auto left = read(a);
  const auto right = read(b);
  if (!left || !right || right->text.empty() || scale < 0) return std::nullopt;
  Digits rest = *left;
  Digits divisor = *right;
  align(&rest, &divisor);
  rest.text = rest_of(rest.text, divisor.text);
  return written(std::move(rest), scale);
}

std::optional<std::string> decimal_of_text(std::string_view text, int scale) {
  const size_t mark = std::min(text.find_first_of("eE"), text.size());
  auto number = read(text.substr(0, mark));
  if (!number || scale < 0) return std::nullopt;
  if (mark < text.size()) {
    std::string_view written_exponent = text.substr(mark + 1);
    if (written_exponent.starts_with('+') && !written_exponent.starts_with("+-"))
      written_exponent.remove_prefix(1);
    int exponent = 0;
    const char* end = written_exponent.data() + written_exponent.size();
    const auto parsed = std::from_chars(written_exponent.data(), end, exponent);
    if (parsed.ptr != end || parsed.ec == std::errc::invalid_argument) return std::nullopt;
    // Beyond this a number is too great for any decimal, or zero in all of them.
    constexpr int kMostExponent = 100000;
    if (parsed.ec == std::errc::result_out_of_range || std::abs(exponent) > kMostExponent) {
      if (!number->text.empty() && !written_exponent.starts_with('-')) return std::nullopt;
      exponent = 0;
      number->text.clear();
    }
    number->scale -= exponent;
  }
  return written(*std::move(number), scale);
}

std::optional<std::string> decimal_of_double(double value, int scale) {
  if (!std::isfinite(value)) return std::nullopt;
  std::array<char, 32> buffer{};
  const char* end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                  std::chars_format::scientific)
                        .ptr;
  return decimal_of_text({buffer.data(), static_cast<size_t>(end - buffer.data())}, scale);
}

Status register_decimal_functions(duckdb_connection connection) {
  SL_TRY(register_scalar(connection, "sl_decimal_of_text",
                         {DUCKDB_TYPE_VARCHAR, DUCKDB_TYPE_INTEGER}, DUCKDB_TYPE_VARCHAR,
                         of_text_function));
  SL_TRY(register_scalar(
      connection, "sl_decimal_of_double",
      {DUCKDB_TYPE_DOUBLE, DUCKDB_TYPE_INTEGER, DUCKDB_TYPE_INTEGER, DUCKDB_TYPE_BOOLEAN},
      DUCKDB_TYPE_VARCHAR, of_double_function));
  SL_TRY(register_function(connection, "sl_decimal_quotient", decimal_function<decimal_quotient>));
  SL_TRY(register_function(connection, "sl_decimal_product", decimal_function<decimal_product>));
  SL_TRY(register_function(connection, "sl_decimal_sum", decimal_function<decimal_sum>));
  SL_TRY(
      register_function(connection, "sl_decimal_difference", decimal_function<decimal_difference>));
  return register_function(connection, "sl_decimal_remainder", decimal_function<decimal_remainder>);
}

}  // namespace strandline::duck
