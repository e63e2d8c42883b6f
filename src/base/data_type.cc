#include "base/data_type.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

namespace strandline {

DataType DataType::primitive(TypeId id) {
  DataType type;
  type.id = id;
  return type;
}

DataType DataType::decimal(int precision, int scale) {
  DataType type = primitive(TypeId::kDecimal);
  type.precision = precision;
  type.scale = scale;
  return type;
}

DataType DataType::structure(std::vector<Field> fields) {
  DataType type = primitive(TypeId::kStruct);
  type.fields = std::make_shared<const std::vector<Field>>(std::move(fields));
  return type;
}

DataType DataType::array(DataType element, bool contains_null) {
  DataType type = primitive(TypeId::kArray);
  type.element = std::make_shared<const DataType>(std::move(element));
  type.contains_null = contains_null;
  return type;
}

DataType DataType::map(DataType key, DataType value, bool value_contains_null) {
  DataType type = primitive(TypeId::kMap);
  type.key = std::make_shared<const DataType>(std::move(key));
  type.element = std::make_shared<const DataType>(std::move(value));
  type.contains_null = value_contains_null;
  return type;
}

bool same_type(const DataType& a, const DataType& b) {
  if (a.id != b.id) return false;
  switch (a.id) {
    case TypeId::kDecimal:
      return a.precision == b.precision && a.scale == b.scale;
    case TypeId::kArray:
      return same_type(*a.element, *b.element);
    case TypeId::kMap:
      return same_type(*a.key, *b.key) && same_type(*a.element, *b.element);
    case TypeId::kStruct:
      return std::equal(a.fields->begin(), a.fields->end(), b.fields->begin(), b.fields->end(),
                        [](const Field& x, const Field& y) {
                          return same_name(x.name, y.name) && same_type(x.type, y.type);
                        });
    default:
      return true;
  }
}

bool is_sortable(const DataType& type) {
  switch (type.id) {
    case TypeId::kMap:
    case TypeId::kVariant:
    case TypeId::kInterval:
      return false;
    case TypeId::kArray:
      return is_sortable(*type.element);
    case TypeId::kStruct:
      return std::all_of(type.fields->begin(), type.fields->end(),
                         [](const Field& field) { return is_sortable(field.type); });
    default:
      return true;
  }
}

namespace {

std::string quote_if_needed(const std::string& name) {
  const bool plain = !name.empty() && !(name[0] >= '0' && name[0] <= '9') &&
                     std::all_of(name.begin(), name.end(), [](char c) {
                       return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                              (c >= '0' && c <= '9') || c == '_';
                     });
  if (plain) return name;
  std::string quoted = "`";
  for (const char c : name) quoted += c == '`' ? std::string("``") : std::string(1, c);
  return quoted + "`";
}

}  // namespace

std::string to_sql(const DataType& type) {
  switch (type.id) {
    case TypeId::kString:
      return "STRING";
    case TypeId::kLong:
      return "BIGINT";
    case TypeId::kInteger:
      return "INT";
    case TypeId::kShort:
      return "SMALLINT";
    case TypeId::kByte:
      return "TINYINT";
    case TypeId::kFloat:
      return "FLOAT";
    case TypeId::kDouble:
      return "DOUBLE";
    case TypeId::kDecimal:
      return fmt::format("DECIMAL({},{})", type.precision, type.scale);
    case TypeId::kBoolean:
      return "BOOLEAN";
    case TypeId::kBinary:
      return "BINARY";
    case TypeId::kDate:
      return "DATE";
    case TypeId::kTimestamp:
      return "TIMESTAMP";
    case TypeId::kTimestampNtz:
      return "TIMESTAMP_NTZ";
    case TypeId::kVoid:
      return "VOID";
    case TypeId::kVariant:
      return "VARIANT";
    case TypeId::kInterval:
      return "INTERVAL";
    case TypeId::kArray:
      return "ARRAY<" + to_sql(*type.element) + ">";
    case TypeId::kMap:
      return "MAP<" + to_sql(*type.key) + ", " + to_sql(*type.element) + ">";
    case TypeId::kStruct: {
      std::string text = "STRUCT<";
      for (size_t i = 0; i < type.fields->size(); ++i) {
        const Field& field = (*type.fields)[i];
        if (i > 0) text += ", ";
        text += quote_if_needed(field.name) + ": " + to_sql(field.type);
      }
      return text + ">";
    }
  }
  return "VOID";
}

std::optional<size_t> Schema::find(const std::string& name) const {
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].name == name) return i;
  }
  const std::string folded = fold_name(name);
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fold_name(fields[i].name) == folded) return i;
  }
  return std::nullopt;
}

const Field* Schema::get(const std::string& name) const {
  const std::optional<size_t> index = find(name);
  return index ? &fields[*index] : nullptr;
}

namespace {

constexpr int kMaxPrecision = 38;

// Decimal digits that every value of an integer type fits in; 0 for other types.
int integer_digits(TypeId id) {
  switch (id) {
    case TypeId::kByte:
      return 3;
    case TypeId::kShort:
      return 5;
    case TypeId::kInteger:
      return 10;
    case TypeId::kLong:
      return 19;
    default:
      return 0;
  }
}

bool is_floating(TypeId id) { return id == TypeId::kFloat || id == TypeId::kDouble; }

std::optional<DataType> common_decimal(int whole_a, int scale_a, int whole_b, int scale_b) {
  const int scale = std::max(scale_a, scale_b);
  const int precision = std::max(whole_a, whole_b) + scale;
  if (precision > kMaxPrecision) return std::nullopt;
  return DataType::decimal(precision, scale);
}

std::optional<DataType> common_struct(const DataType& a, const DataType& b) {
  std::vector<Field> fields = *a.fields;
  std::unordered_set<std::string> matched;
  for (Field& field : fields) {
    const std::string folded = fold_name(field.name);
    const auto other = std::find_if(b.fields->begin(), b.fields->end(),
                                    [&](const Field& f) { return fold_name(f.name) == folded; });
    if (other == b.fields->end()) {
      field.nullable = true;
      continue;
    }
    matched.insert(folded);
    std::optional<DataType> type = least_common_type(field.type, other->type);
    if (!type) return std::nullopt;
    field.type = *std::move(type);
    field.nullable = field.nullable || other->nullable;
  }
  for (const Field& field : *b.fields) {
    if (matched.count(fold_name(field.name)) > 0) continue;
    fields.push_back(field);
    fields.back().nullable = true;
  }
  return DataType::structure(std::move(fields));
}

}  // namespace

std::optional<DataType> least_common_type(const DataType& a, const DataType& b) {
  if (a.id == TypeId::kVoid) return b;
  if (b.id == TypeId::kVoid) return a;

  if (a.id == TypeId::kStruct && b.id == TypeId::kStruct) return common_struct(a, b);
  if (a.id == TypeId::kArray && b.id == TypeId::kArray) {
    std::optional<DataType> element = least_common_type(*a.element, *b.element);
    if (!element) return std::nullopt;
    return DataType::array(*std::move(element), a.contains_null || b.contains_null);
  }
  if (a.id == TypeId::kMap && b.id == TypeId::kMap) {
    std::optional<DataType> key = least_common_type(*a.key, *b.key);
    std::optional<DataType> value = least_common_type(*a.element, *b.element);
    if (!key || !value) return std::nullopt;
    return DataType::map(*std::move(key), *std::move(value), a.contains_null || b.contains_null);
  }
  if (same_type(a, b)) return a;

  const int digits_a = integer_digits(a.id);
  const int digits_b = integer_digits(b.id);
  if (digits_a > 0 && digits_b > 0) return digits_a > digits_b ? a : b;

  const bool decimal_a = a.id == TypeId::kDecimal;
  const bool decimal_b = b.id == TypeId::kDecimal;
  if ((decimal_a || digits_a > 0) && (decimal_b || digits_b > 0)) {
    return common_decimal(decimal_a ? a.precision - a.scale : digits_a, a.scale,
                          decimal_b ? b.precision - b.scale : digits_b, b.scale);
  }

  // A double holds every INT exactly, but neither every BIGINT nor every decimal.
  const auto fits_double = [](const DataType& type, int digits) {
    return is_floating(type.id) || (digits > 0 && digits <= 10);
  };
  if ((is_floating(a.id) || is_floating(b.id)) && fits_double(a, digits_a) &&
      fits_double(b, digits_b)) {
    return DataType::primitive(TypeId::kDouble);
  }

  const auto is_pair = [&](TypeId x, TypeId y) {
    return (a.id == x && b.id == y) || (a.id == y && b.id == x);
  };
  if (is_pair(TypeId::kDate, TypeId::kTimestampNtz)) {
    return DataType::primitive(TypeId::kTimestampNtz);
  }
  return std::nullopt;
}

}  // namespace strandline
