#include "sql/coercion.h"

#include <algorithm>

namespace strandline::sql {

namespace {

constexpr int kMostDigits = 38;
constexpr int kLeastScale = 6;

int integer_digits(TypeId type) {
  return type == TypeId::kByte      ? 3
         : type == TypeId::kShort   ? 5
         : type == TypeId::kInteger ? 10
                                    : 20;
}

int width(TypeId type) { return integer_digits(type); }

// Results of arithmetic: digits after the point go first, down to six.
DataType adjusted(int precision, int scale) {
  if (precision <= kMostDigits) return DataType::decimal(precision, scale);
  const int whole = precision - scale;
  return DataType::decimal(kMostDigits,
                           std::max(kMostDigits - whole, std::min(scale, kLeastScale)));
}

DecimalShape shape_of(const DataType& type) {
  return type.id == TypeId::kDecimal ? DecimalShape{type.precision, type.scale}
                                     : DecimalShape{integer_digits(type.id), 0};
}

// The decimal that holds both: digits before the point come first.
DataType wider_decimal(const DecimalShape& a, const DecimalShape& b) {
  const int scale = std::max(a.scale, b.scale);
  const int whole = std::max(a.precision - a.scale, b.precision - b.scale);
  const int over = std::max(whole + scale - kMostDigits, 0);
  return DataType::decimal(std::min(whole + scale, kMostDigits), std::max(scale - over, 0));
}

std::optional<DataType> common_number(const DataType& a, const DataType& b) {
  if (is_floating(a.id) || is_floating(b.id)) {
    return DataType::primitive(a.id == TypeId::kFloat && b.id == TypeId::kFloat ? TypeId::kFloat
                                                                                : TypeId::kDouble);
  }
  if (a.id == TypeId::kDecimal || b.id == TypeId::kDecimal)
    return wider_decimal(shape_of(a), shape_of(b));
  return width(a.id) >= width(b.id) ? a : b;
}

bool is_time(TypeId type) {
  return type == TypeId::kDate || type == TypeId::kTimestamp || type == TypeId::kTimestampNtz;
}

std::optional<DataType> beside_text(const DataType& other) {
  if (is_integer(other.id)) return DataType::primitive(TypeId::kLong);
  if (is_number(other.id)) return DataType::primitive(TypeId::kDouble);
  if (other.is_nested() || other.id == TypeId::kInterval || other.id == TypeId::kVariant)
    return std::nullopt;
  return other;
}

}  // namespace

bool is_integer(TypeId type) {
  return type == TypeId::kByte || type == TypeId::kShort || type == TypeId::kInteger ||
         type == TypeId::kLong;
}

bool is_floating(TypeId type) { return type == TypeId::kFloat || type == TypeId::kDouble; }

bool is_number(TypeId type) {
  return is_integer(type) || is_floating(type) || type == TypeId::kDecimal;
}

DecimalShape decimal_shape(const Expr& expr, const DataType& type) {
  if (type.id == TypeId::kDecimal) return {type.precision, type.scale};
  const auto* constant = expr.as<Literal>();
  if (constant != nullptr && is_integer(constant->type)) {
    const std::string digits = constant->text.substr(constant->text[0] == '-' ? 1 : 0);
    const size_t zeros = std::min(digits.find_first_not_of('0'), digits.size() - 1);
    return {static_cast<int>(digits.size() - zeros), 0};
  }
  return {integer_digits(type.id), 0};
}

std::optional<DataType> common_type(const DataType& a, const DataType& b, Texts texts) {
  if (a.id == TypeId::kVoid) return b;
  if (b.id == TypeId::kVoid) return a;
  if (is_number(a.id) && is_number(b.id)) return common_number(a, b);
  if (is_time(a.id) && is_time(b.id) && a.id != b.id) {
    const bool instant = a.id == TypeId::kTimestamp || b.id == TypeId::kTimestamp;
    return DataType::primitive(instant ? TypeId::kTimestamp : TypeId::kTimestampNtz);
  }
  if (a.id != b.id) {
    if (texts == Texts::kStayTexts) return std::nullopt;
    if (a.id == TypeId::kString) return beside_text(b);
    if (b.id == TypeId::kString) return beside_text(a);
    return std::nullopt;
  }
  if (a.id == TypeId::kArray) {
    auto element = common_type(*a.element, *b.element, texts);
    if (!element) return std::nullopt;
    return DataType::array(*std::move(element), a.contains_null || b.contains_null);
  }
  if (a.id == TypeId::kMap) {
    auto key = common_type(*a.key, *b.key, texts);
    auto value = common_type(*a.element, *b.element, texts);
    if (!key || !value) return std::nullopt;
    return DataType::map(*std::move(key), *std::move(value), a.contains_null || b.contains_null);
  }
  if (a.id == TypeId::kStruct) {
    if (a.fields->size() != b.fields->size()) return std::nullopt;
    std::vector<Field> fields = *a.fields;
    for (size_t i = 0; i < fields.size(); ++i) {
      auto type = common_type(fields[i].type, (*b.fields)[i].type, texts);
      if (!type) return std::nullopt;
      fields[i].type = *std::move(type);
    }
    return DataType::structure(std::move(fields));
  }
  return a;
}

DataType arithmetic_type(BinaryOp op, const Expr& left, const DataType& left_type,
                         const Expr& right, const DataType& right_type) {
  if (!is_number(left_type.id) || !is_number(right_type.id)) return DataType();
  const bool decimals = !is_floating(left_type.id) && !is_floating(right_type.id) &&
                        (left_type.id == TypeId::kDecimal || right_type.id == TypeId::kDecimal);
  if (!decimals) return *common_number(left_type, right_type);
  const DecimalShape a = decimal_shape(left, left_type);
  const DecimalShape b = decimal_shape(right, right_type);
  const int scale = std::max(a.scale, b.scale);
  const int whole_a = a.precision - a.scale;
  const int whole_b = b.precision - b.scale;
  switch (op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSubtract:
      return adjusted(std::max(whole_a, whole_b) + scale + 1, scale);
    case BinaryOp::kMultiply:
      return adjusted(a.precision + b.precision + 1, a.scale + b.scale);
    case BinaryOp::kModulo:
      return adjusted(std::min(whole_a, whole_b) + scale, scale);
    case BinaryOp::kDivide: {
      const int after = std::max(kLeastScale, a.scale + b.precision + 1);
      return adjusted(whole_a + b.scale + after, after);
    }
    default:
      return DataType();
  }
}

DataType sum_type(const DataType& type) {
  if (is_integer(type.id)) return DataType::primitive(TypeId::kLong);
  if (is_floating(type.id)) return DataType::primitive(TypeId::kDouble);
  if (type.id != TypeId::kDecimal) return DataType();
  constexpr int kMore = 10;
  return DataType::decimal(std::min(type.precision + kMore, kMostDigits), type.scale);
}

DataType average_type(const DataType& type) {
  if (is_integer(type.id) || is_floating(type.id)) return DataType::primitive(TypeId::kDouble);
  if (type.id != TypeId::kDecimal) return DataType();
  constexpr int kMore = 4;
  const int precision = std::min(type.precision + kMore, kMostDigits);
  return DataType::decimal(precision, std::min(type.scale + kMore, kMostDigits));
}

}  // namespace strandline::sql
