#include "duck/decimal_quotient.h"

#include <algorithm>

#include "base/error.h"

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

std::string plus_one(std::string digits) {
  for (size_t i = digits.size(); i-- > 0;) {
    if (digits[i] != '9') {
      ++digits[i];
      return digits;
    }
    digits[i] = '0';
  }
  digits.insert(digits.begin(), '1');
  return digits;
}

void quotient_function(duckdb_function_info info, duckdb_data_chunk input, duckdb_vector output) {
  const idx_t count = duckdb_data_chunk_get_size(input);
  const auto vector = [&](idx_t index) { return duckdb_data_chunk_get_vector(input, index); };
  const auto is_null = [](duckdb_vector values, idx_t row) {
    uint64_t* validity = duckdb_vector_get_validity(values);
    return validity != nullptr && !duckdb_validity_row_is_valid(validity, row);
  };
  const auto text = [](duckdb_vector values, idx_t row) {
    auto* strings = static_cast<duckdb_string_t*>(duckdb_vector_get_data(values));
    return std::string_view(duckdb_string_t_data(&strings[row]),
                            duckdb_string_t_length(strings[row]));
  };
  const auto* scales = static_cast<int32_t*>(duckdb_vector_get_data(vector(2)));
  for (idx_t row = 0; row < count; ++row) {
    if (is_null(vector(0), row) || is_null(vector(1), row) || is_null(vector(2), row)) {
      duckdb_vector_ensure_validity_writable(output);
      duckdb_validity_set_row_invalid(duckdb_vector_get_validity(output), row);
      continue;
    }
    const auto quotient = decimal_quotient(text(vector(0), row), text(vector(1), row), scales[row]);
    if (!quotient) {
      duckdb_scalar_function_set_error(info, "[DIVIDE_BY_ZERO] division by zero");
      return;
    }
    duckdb_vector_assign_string_element_len(output, row, quotient->data(), quotient->size());
  }
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
  const auto after_point = static_cast<size_t>(scale);
  if (whole.size() <= after_point) whole.insert(0, after_point + 1 - whole.size(), '0');
  if (scale > 0) whole.insert(whole.size() - after_point, 1, '.');
  if (dividend->negative != divisor->negative) whole.insert(whole.begin(), '-');
  return whole;
}

Status register_decimal_quotient(duckdb_connection connection) {
  const char* name = "sl_decimal_quotient";
  const Handle<duckdb_scalar_function, duckdb_destroy_scalar_function> made(
      duckdb_create_scalar_function());
  duckdb_scalar_function_set_name(made.get(), name);
  const LogicalType text(duckdb_create_logical_type(DUCKDB_TYPE_VARCHAR));
  const LogicalType integer(duckdb_create_logical_type(DUCKDB_TYPE_INTEGER));
  duckdb_scalar_function_add_parameter(made.get(), text.get());
  duckdb_scalar_function_add_parameter(made.get(), text.get());
  duckdb_scalar_function_add_parameter(made.get(), integer.get());
  duckdb_scalar_function_set_return_type(made.get(), text.get());
  duckdb_scalar_function_set_function(made.get(), quotient_function);
  if (duckdb_register_scalar_function(connection, made.get()) != DuckDBSuccess) {
    return internal_error("ENGINE_ERROR", "the engine does not take the function {}", name);
  }
  return {};
}

}  // namespace strandline::duck
