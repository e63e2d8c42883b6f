// Constants, partition values and bounds of statistics on one scale each, for file filters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/data_type.h"

namespace strandline::delta {

// A decimal number of any length, exactly.
class DecimalNumber {
 public:
  // "-12.50", "1.2E+3"; nullopt for anything else and for exponents beyond all sense.
  static std::optional<DecimalNumber> parse(std::string_view text);

  bool operator<(const DecimalNumber& other) const;
  bool operator==(const DecimalNumber& other) const = default;

 private:
  bool negative_ = false;
  std::string whole_;     // without leading zeros
  std::string fraction_;  // without trailing zeros
};

// The scale on which a column and a constant meet.
enum class Scale { kInteger, kDouble, kDecimal, kString, kDays, kMicros };

// Values of one scale compare by <; of two they do not.
using ScaleValue = std::variant<int64_t, double, DecimalNumber, std::string>;

// Where a comparison of a column of that type with a constant takes place; nullopt when it is not
// one of order (other types, texts that would need a lossy cast).
std::optional<Scale> common_scale(const DataType& column, TypeId literal, std::string_view text);

// A range of values; a missing end is open to everything, NaN included at the upper end.
struct Interval {
  std::optional<ScaleValue> low;
  std::optional<ScaleValue> high;
  bool low_open = false;
  bool high_open = false;
};

// What a constant may stand for: one value, or two neighbours where engines round it to a float or
// leave it a double.
struct LiteralValue {
  ScaleValue low;
  ScaleValue high;
};
std::optional<LiteralValue> literal_value(const DataType& column, Scale scale,
                                          std::string_view text);

// A partition value (section 5), exactly.
std::optional<ScaleValue> partition_value(const DataType& column, Scale scale,
                                          std::string_view text);

// A cell of the statistics: text of a number or boolean as JSON writes it, or a string's
// characters.
struct BoundText {
  std::string_view text;
  bool is_string = false;
};
enum class BoundSide { kMin, kMax };
// A bound at or outside the true one. widened_from_float: the column was a float once, so that the
// text may be a float's.
std::optional<ScaleValue> bound_value(const DataType& column, Scale scale, BoundSide side,
                                      const BoundText& bound, bool widened_from_float);

}  // namespace strandline::delta
