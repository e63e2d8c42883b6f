#include "delta/filter_value.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace strandline::delta {
namespace {

constexpr int64_t kMicrosOfMilli = 1'000;
constexpr int64_t kMicrosOfSecond = 1'000'000;
constexpr int64_t kMicrosOfDay = 86'400 * kMicrosOfSecond;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

template <typename Number>
std::optional<Number> parse_whole(std::string_view text) {
  Number value{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// A finite number; the words for others ("NaN", "inf") are not read.
template <typename Number>
std::optional<double> parse_float(std::string_view text) {
  if (text.empty() || text.find_first_not_of("+-.0123456789eE") != std::string_view::npos)
    return std::nullopt;
  const auto value = parse_whole<Number>(text);
  if (!value || !std::isfinite(*value)) return std::nullopt;
  return static_cast<double>(*value);
}

bool is_integer(TypeId type) {
  return type == TypeId::kByte || type == TypeId::kShort || type == TypeId::kInteger ||
         type == TypeId::kLong;
}
bool is_float(TypeId type) { return type == TypeId::kFloat || type == TypeId::kDouble; }
bool is_timestamp(TypeId type) {
  return type == TypeId::kTimestamp || type == TypeId::kTimestampNtz;
}

// Days since 1970-01-01 in the proleptic Gregorian calendar.
int64_t days_of(int64_t year, int64_t month, int64_t day) {
  const int64_t y = month <= 2 ? year - 1 : year;
  const int64_t era = (y >= 0 ? y : y - 399) / 400;
  const int64_t year_of_era = y - era * 400;
  const int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  const int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146'097 + day_of_era - 719'468;
}

// Reads fixed-width fields off the front of a text.
class Fields {
 public:
  explicit Fields(std::string_view text) : rest_(text) {}

  bool done() const { return rest_.empty(); }
  bool at(char c) const { return !rest_.empty() && rest_.front() == c; }
  bool take(char c) {
    if (!at(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool number(size_t width, int64_t least, int64_t most, int64_t* value) {
    if (rest_.size() < width) return false;
    int64_t number = 0;
    for (size_t i = 0; i < width; ++i) {
      if (!is_digit(rest_[i])) return false;
      number = number * 10 + (rest_[i] - '0');
    }
    rest_.remove_prefix(width);
    *value = number;
    return number >= least && number <= most;
  }
  std::string_view digits() {
    size_t count = 0;
    while (count < rest_.size() && is_digit(rest_[count])) ++count;
    const auto found = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return found;
  }

 private:
  std::string_view rest_;
};

bool take_date(Fields& fields, int64_t* days) {
  static constexpr int64_t kLengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  int64_t year = 0;
  int64_t month = 0;
  int64_t day = 0;
  if (!fields.number(4, 0, 9999, &year) || !fields.take('-') || !fields.number(2, 1, 12, &month) ||
      !fields.take('-') || !fields.number(2, 1, 31, &day)) {
    return false;
  }
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  const int64_t length = month == 2 && leap ? 29 : kLengths[month - 1];
  *days = days_of(year, month, day);
  return day <= length;
}

struct Instant {
  int64_t micros = 0;
  bool has_zone = false;
  bool cut = false;  // the text says more than microseconds
};

// "2026-01-31", "2026-01-31 12:00:00[.123456]" or with T, a zone of Z, +hh, +hhmm or +hh:mm.
std::optional<Instant> parse_instant(std::string_view text) {
  Fields fields(text);
  int64_t days = 0;
  if (!take_date(fields, &days)) return std::nullopt;
  Instant instant;
  instant.micros = days * kMicrosOfDay;
  if (fields.done()) return instant;
  int64_t hour = 0;
  int64_t minute = 0;
  int64_t second = 0;
  if (!(fields.take('T') || fields.take(' ')) || !fields.number(2, 0, 23, &hour) ||
      !fields.take(':') || !fields.number(2, 0, 59, &minute) || !fields.take(':') ||
      !fields.number(2, 0, 59, &second)) {
    return std::nullopt;
  }
  instant.micros += (hour * 3600 + minute * 60 + second) * kMicrosOfSecond;
  if (fields.take('.')) {
    const auto digits = fields.digits();
    if (digits.empty()) return std::nullopt;
    int64_t unit = kMicrosOfSecond / 10;
    for (const char c : digits) {
      instant.micros += (c - '0') * unit;
      if (unit == 0 && c != '0') instant.cut = true;
      unit /= 10;
    }
  }
  if (fields.done()) return instant;
  instant.has_zone = true;
  if (fields.take('Z')) return fields.done() ? std::optional(instant) : std::nullopt;
  const bool west = fields.at('-');
  int64_t hours = 0;
  int64_t minutes = 0;
  if (!(fields.take('+') || fields.take('-')) || !fields.number(2, 0, 18, &hours))
    return std::nullopt;
  if (!fields.done()) {
    (void)fields.take(':');
    if (!fields.number(2, 0, 59, &minutes) || !fields.done()) return std::nullopt;
  }
  const int64_t offset = (hours * 3600 + minutes * 60) * kMicrosOfSecond;
  instant.micros += west ? offset : -offset;
  return instant;
}

std::optional<int64_t> parse_date(std::string_view text) {
  Fields fields(text);
  int64_t days = 0;
  if (!take_date(fields, &days) || !fields.done()) return std::nullopt;
  return days;
}

// A value of the column's type, written in full, on the scale.
std::optional<ScaleValue> exact_value(const DataType& column, Scale scale, std::string_view text) {
  switch (scale) {
    case Scale::kInteger:
      if (column.id == TypeId::kBoolean) {
        if (text == "true") return ScaleValue(int64_t{1});
        if (text == "false") return ScaleValue(int64_t{0});
        return std::nullopt;
      }
      if (const auto value = parse_whole<int64_t>(text)) return ScaleValue(*value);
      return std::nullopt;
    case Scale::kDouble: {
      const auto value =
          column.id == TypeId::kFloat ? parse_float<float>(text) : parse_float<double>(text);
      if (!value) return std::nullopt;
      return ScaleValue(*value);
    }
    case Scale::kDecimal:
      if (auto value = DecimalNumber::parse(text)) return ScaleValue(*std::move(value));
      return std::nullopt;
    case Scale::kString:
      return ScaleValue(std::string(text));
    case Scale::kDays:
      if (const auto days = parse_date(text)) return ScaleValue(*days);
      return std::nullopt;
    case Scale::kMicros: {
      const auto instant = parse_instant(text);
      if (!instant || instant->cut) return std::nullopt;
      return ScaleValue(instant->micros);
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<DecimalNumber> DecimalNumber::parse(std::string_view text) {
  DecimalNumber number;
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    number.negative_ = text.front() == '-';
    text.remove_prefix(1);
  }
  constexpr int64_t kMostExponent = 400;
  int64_t exponent = 0;
  const size_t mark = text.find_first_of("eE");
  if (mark != std::string_view::npos) {
    std::string_view digits = text.substr(mark + 1);
    if (!digits.empty() && digits.front() == '+') digits.remove_prefix(1);
    const auto value = parse_whole<int64_t>(digits);
    if (!value || *value > kMostExponent || *value < -kMostExponent) return std::nullopt;
    exponent = *value;
    text = text.substr(0, mark);
  }
  const size_t point = text.find('.');
  std::string digits(text.substr(0, point));
  int64_t whole_digits = static_cast<int64_t>(digits.size()) + exponent;
  if (point != std::string_view::npos) digits += text.substr(point + 1);
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), is_digit)) return std::nullopt;
  if (whole_digits < 0) {
    digits.insert(0, static_cast<size_t>(-whole_digits), '0');
    whole_digits = 0;
  }
  if (whole_digits > static_cast<int64_t>(digits.size()))
    digits.append(static_cast<size_t>(whole_digits) - digits.size(), '0');
  number.whole_ = digits.substr(0, static_cast<size_t>(whole_digits));
  number.fraction_ = digits.substr(static_cast<size_t>(whole_digits));
  number.whole_.erase(0, std::min(number.whole_.find_first_not_of('0'), number.whole_.size()));
  number.fraction_.erase(number.fraction_.find_last_not_of('0') + 1);
  if (number.whole_.empty() && number.fraction_.empty()) number.negative_ = false;
  return number;
}

bool DecimalNumber::operator<(const DecimalNumber& other) const {
  if (negative_ != other.negative_) return negative_;
  const DecimalNumber& small = negative_ ? other : *this;
  const DecimalNumber& large = negative_ ? *this : other;
  if (small.whole_.size() != large.whole_.size()) return small.whole_.size() < large.whole_.size();
  if (small.whole_ != large.whole_) return small.whole_ < large.whole_;
  return small.fraction_ < large.fraction_;
}

std::optional<Scale> common_scale(const DataType& column, TypeId literal, std::string_view text) {
  if (is_integer(column.id)) {
    if (is_integer(literal) || literal == TypeId::kString) {
      if (parse_whole<int64_t>(text)) return Scale::kInteger;
      if (literal == TypeId::kString) return std::nullopt;
      return Scale::kDecimal;
    }
    if (literal == TypeId::kDecimal) return Scale::kDecimal;
    if (is_float(literal)) return Scale::kDouble;
    return std::nullopt;
  }
  switch (column.id) {
    case TypeId::kDecimal:
      if (is_integer(literal) || literal == TypeId::kDecimal) return Scale::kDecimal;
      if (is_float(literal)) return Scale::kDouble;
      return std::nullopt;
    case TypeId::kFloat:
    case TypeId::kDouble:
      if (is_integer(literal) || literal == TypeId::kDecimal || is_float(literal))
        return Scale::kDouble;
      return std::nullopt;
    case TypeId::kString:
      if (literal == TypeId::kString) return Scale::kString;
      return std::nullopt;
    case TypeId::kBoolean:
      if (literal == TypeId::kBoolean) return Scale::kInteger;
      return std::nullopt;
    case TypeId::kDate:
      if (literal == TypeId::kDate || literal == TypeId::kString) return Scale::kDays;
      if (is_timestamp(literal)) return Scale::kMicros;
      return std::nullopt;
    case TypeId::kTimestamp:
    case TypeId::kTimestampNtz:
      if (literal == TypeId::kString && column.id == TypeId::kTimestampNtz) {
        // What a zone in the text of a wall clock reading means is the engine's affair.
        const auto instant = parse_instant(text);
        if (!instant || instant->has_zone) return std::nullopt;
      }
      if (is_timestamp(literal) || literal == TypeId::kDate || literal == TypeId::kString)
        return Scale::kMicros;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

std::optional<LiteralValue> literal_value(const DataType& column, Scale scale,
                                          std::string_view text) {
  if (scale == Scale::kDouble) {
    const auto value = parse_float<double>(text);
    if (!value) return std::nullopt;
    if (column.id != TypeId::kFloat) return LiteralValue{*value, *value};
    const double rounded = static_cast<double>(static_cast<float>(*value));
    if (!std::isfinite(rounded)) return std::nullopt;
    return LiteralValue{std::min(*value, rounded), std::max(*value, rounded)};
  }
  auto value = exact_value(column, scale, text);
  if (!value) return std::nullopt;
  return LiteralValue{*value, *value};
}

std::optional<ScaleValue> partition_value(const DataType& column, Scale scale,
                                          std::string_view text) {
  if (column.id == TypeId::kDate && scale == Scale::kMicros) {
    const auto days = parse_date(text);
    if (!days) return std::nullopt;
    return ScaleValue(*days * kMicrosOfDay);
  }
  return exact_value(column, scale, text);
}

std::optional<ScaleValue> bound_value(const DataType& column, Scale scale, BoundSide side,
                                      const BoundText& bound, bool widened_from_float) {
  const bool is_text = scale == Scale::kString || scale == Scale::kDays || scale == Scale::kMicros;
  if (bound.is_string != is_text) return std::nullopt;
  if (scale == Scale::kMicros) {
    const auto instant = parse_instant(bound.text);
    if (!instant) return std::nullopt;
    if (column.id == TypeId::kDate) return ScaleValue(instant->micros);
    // Bounds are cut to milliseconds: downwards, or towards zero by some writers.
    if (side == BoundSide::kMax) return ScaleValue(instant->micros + kMicrosOfMilli);
    return ScaleValue(instant->micros < 0 ? instant->micros - kMicrosOfMilli : instant->micros);
  }
  if (scale == Scale::kString && side == BoundSide::kMax && bound.text.ends_with("\xEF\xBF\xBD")) {
    // Early writers closed a cut text with U+FFFD, which longer characters are above.
    std::string text(bound.text.substr(0, bound.text.size() - 3));
    return ScaleValue(text + "\xF4\x8F\xBF\xBF");
  }
  auto value = exact_value(column, scale, bound.text);
  if (value && scale == Scale::kDouble && widened_from_float) {
    const auto as_float = parse_float<float>(bound.text);
    if (!as_float) return std::nullopt;
    const double as_double = std::get<double>(*value);
    return ScaleValue(side == BoundSide::kMin ? std::min(as_double, *as_float)
                                              : std::max(as_double, *as_float));
  }
  return value;
}

}  // namespace strandline::delta
