#include "base/type_widening.h"

#include <algorithm>
#include <memory>

namespace strandline {

namespace {

constexpr int kMaxPrecision = 38;

// Bytes of an integer type; 0 for others.
int integer_size(TypeId id) {
  switch (id) {
    case TypeId::kByte:
      return 1;
    case TypeId::kShort:
      return 2;
    case TypeId::kInteger:
      return 4;
    case TypeId::kLong:
      return 8;
    default:
      return 0;
  }
}

// Digits before the point that a decimal needs to take over a stored integer type.
int stored_digits(TypeId id) { return id == TypeId::kLong ? 20 : 10; }

// `common` is what least_common_type gives for `current` and another type.
std::optional<DataType> reach(const DataType& current, DataType common, bool widening) {
  const auto part = [&](const DataType& before, std::shared_ptr<const DataType>* after) {
    std::optional<DataType> reached = reach(before, **after, widening);
    if (reached) *after = std::make_shared<const DataType>(*std::move(reached));
    return reached.has_value();
  };
  if (current.id == TypeId::kVoid) return common;
  switch (common.id) {
    case TypeId::kStruct: {
      std::vector<Field> fields = *common.fields;
      for (Field& field : fields) {
        const std::string folded = fold_name(field.name);
        const auto known =
            std::find_if(current.fields->begin(), current.fields->end(),
                         [&](const Field& other) { return fold_name(other.name) == folded; });
        if (known == current.fields->end()) continue;
        std::optional<DataType> reached = reach(known->type, std::move(field.type), widening);
        if (!reached) return std::nullopt;
        field.type = *std::move(reached);
      }
      return DataType::structure(std::move(fields));
    }
    case TypeId::kArray:
      if (!part(*current.element, &common.element)) return std::nullopt;
      return common;
    case TypeId::kMap:
      if (!part(*current.key, &common.key) || !part(*current.element, &common.element)) {
        return std::nullopt;
      }
      return common;
    default:
      break;
  }
  if (same_type(current, common)) return common;
  if (!widening) return std::nullopt;
  if (common.id == TypeId::kDecimal && integer_size(current.id) > 0) {
    const int whole = std::max(common.precision - common.scale, stored_digits(current.id));
    if (whole + common.scale > kMaxPrecision) return std::nullopt;
    common = DataType::decimal(whole + common.scale, common.scale);
  }
  if (!can_widen(current, common)) return std::nullopt;
  return common;
}

}  // namespace

bool can_widen(const DataType& from, const DataType& to) {
  const int size = integer_size(from.id);
  if (to.id == TypeId::kDecimal) {
    const bool is_decimal = from.id == TypeId::kDecimal;
    if (!is_decimal && size == 0) return false;
    const int scale = is_decimal ? from.scale : 0;
    const int whole = is_decimal ? from.precision - from.scale : stored_digits(from.id);
    const bool grows = !is_decimal || to.precision > from.precision || to.scale > scale;
    return grows && to.scale >= scale && to.precision - to.scale >= whole;
  }
  if (size > 0 && integer_size(to.id) > size) return true;
  if (to.id == TypeId::kDouble) {
    return from.id == TypeId::kFloat || (size > 0 && from.id != TypeId::kLong);
  }
  return from.id == TypeId::kDate && to.id == TypeId::kTimestampNtz;
}

std::optional<DataType> widened_type(const DataType& current, const DataType& other,
                                     bool widening) {
  std::optional<DataType> common = least_common_type(current, other);
  if (!common) return std::nullopt;
  return reach(current, *std::move(common), widening);
}

}  // namespace strandline
