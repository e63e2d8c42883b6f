#include "duck/change_range.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>

#include "base/error.h"

namespace strandline::duck {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

Error not_a_timestamp(const std::string& text) {
  return invalid_argument("DELTA_TIMESTAMP_INVALID",
                          "The provided timestamp ({}) cannot be converted to a valid timestamp. "
                          "Write one such as '2026-01-31' or '2026-01-31 12:00:00.123' (UTC)",
                          text);
}

// "… -0700" -> "…-07:00", the one form of an offset that the engine takes.
std::string with_plain_offset(const std::string& text) {
  const size_t sign = text.find_last_of("+-");
  if (sign == std::string::npos || sign < 11) return text;
  const std::string time = text.substr(0, text.find_last_not_of(' ', sign - 1) + 1);
  const std::string offset = text.substr(sign);
  if (offset.size() != 5 || !std::all_of(offset.begin() + 1, offset.end(), is_digit))
    return time + offset;
  return fmt::format("{}{}:{}", time, offset.substr(0, 3), offset.substr(3));
}

Result<cdf::Bound> bound(Connection& connection, const sql::Expr& argument, const char* which,
                         const sql::PrintOptions& options) {
  const auto text = sql::print_duckdb(argument, options);
  if (!sql::columns_read(argument).empty() || !sql::nondeterministic_calls(argument).empty() ||
      argument.as<sql::ScalarSubquery>() != nullptr) {
    return invalid_argument("DELTA_CDC_NON_CONSTANT_ARGUMENT",
                            "the {} of table_changes must be constant: write a version or a "
                            "timestamp",
                            which);
  }
  if (!text.ok()) return text.error();
  SL_ASSIGN(const auto value, connection.query("SELECT " + *text));
  if (value.rows.size() != 1 || value.columns.size() != 1) {
    return internal_error("INTERNAL_ERROR", "a constant gave {} rows", value.rows.size());
  }
  if (!value.rows[0][0]) {
    return invalid_argument("DELTA_CDC_READ_NULL_RANGE_BOUNDARY",
                            "the {} of table_changes is NULL: write a version or a timestamp",
                            which);
  }
  const std::string& cell = *value.rows[0][0];
  switch (value.columns[0].has_delta_type ? value.columns[0].type.id : TypeId::kVoid) {
    case TypeId::kByte:
    case TypeId::kShort:
    case TypeId::kInteger:
    case TypeId::kLong: {
      delta::Version version = 0;
      std::from_chars(cell.data(), cell.data() + cell.size(), version);
      return cdf::Bound(version);
    }
    case TypeId::kString:
    case TypeId::kDate:
    case TypeId::kTimestamp:
    case TypeId::kTimestampNtz: {
      SL_ASSIGN(const auto time, parse_timestamp(connection, cell));
      return cdf::Bound(time);
    }
    default:
      return invalid_argument("DELTA_UNSUPPORTED_EXPRESSION",
                              "the {} of table_changes has the unsupported expression type {}: "
                              "write a whole number for a version or a string for a timestamp",
                              which, value.columns[0].engine_type);
  }
}

}  // namespace

Result<cdf::Timestamp> parse_timestamp(Connection& connection, const std::string& text) {
  // The engine takes more, such as 'infinity' and 'epoch'.
  const bool has_date =
      text.size() >= 8 && std::all_of(text.begin(), text.begin() + 4, is_digit) && text[4] == '-';
  if (!has_date) return not_a_timestamp(text);
  const auto us =
      connection.query(fmt::format("SELECT epoch_us(CAST({} AS TIMESTAMP WITH TIME ZONE))",
                                   quote_literal(with_plain_offset(text))));
  if (!us.ok() || us->rows.size() != 1 || !us->rows[0][0]) return not_a_timestamp(text);
  const std::string& number = *us->rows[0][0];
  cdf::Timestamp time;
  const auto [end, failed] = std::from_chars(number.data(), number.data() + number.size(), time.us);
  if (failed != std::errc()) return not_a_timestamp(text);
  return time;
}

Result<cdf::Bound> parse_bound(Connection& connection, const std::string& text) {
  const bool is_negative = text.starts_with("-");
  const std::string_view digits = std::string_view(text).substr(is_negative ? 1 : 0);
  if (!digits.empty() && std::all_of(digits.begin(), digits.end(), is_digit)) {
    // Of a negative one the plan says what is wrong.
    delta::Version version = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), version);
    if (failed == std::errc()) return cdf::Bound(version);
    return invalid_argument("DELTA_VERSION_INVALID", "{} is no version", text);
  }
  SL_ASSIGN(const auto time, parse_timestamp(connection, text));
  return cdf::Bound(time);
}

Result<cdf::RangeRequest> change_range(Connection& connection, const sql::TableChanges& changes,
                                       const sql::PrintOptions& options) {
  cdf::RangeRequest request;
  SL_ASSIGN(request.start, bound(connection, *changes.start, "start", options));
  if (changes.end) {
    SL_ASSIGN(request.end, bound(connection, *changes.end, "end", options));
  }
  return request;
}

}  // namespace strandline::duck
