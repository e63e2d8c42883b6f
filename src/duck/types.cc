// DuckDB's types against Delta's, and single values out of vectors.
#include <fmt/format.h>

#include "duck/engine.h"

namespace strandline::duck {
namespace {

const char* simple_spelling(duckdb_type type) {
  switch (type) {
    case DUCKDB_TYPE_BOOLEAN:
      return "BOOLEAN";
    case DUCKDB_TYPE_TINYINT:
      return "TINYINT";
    case DUCKDB_TYPE_SMALLINT:
      return "SMALLINT";
    case DUCKDB_TYPE_INTEGER:
      return "INTEGER";
    case DUCKDB_TYPE_BIGINT:
      return "BIGINT";
    case DUCKDB_TYPE_UTINYINT:
      return "UTINYINT";
    case DUCKDB_TYPE_USMALLINT:
      return "USMALLINT";
    case DUCKDB_TYPE_UINTEGER:
      return "UINTEGER";
    case DUCKDB_TYPE_UBIGINT:
      return "UBIGINT";
    case DUCKDB_TYPE_FLOAT:
      return "FLOAT";
    case DUCKDB_TYPE_DOUBLE:
      return "DOUBLE";
    case DUCKDB_TYPE_TIMESTAMP:
      return "TIMESTAMP";
    case DUCKDB_TYPE_DATE:
      return "DATE";
    case DUCKDB_TYPE_TIME:
      return "TIME";
    case DUCKDB_TYPE_INTERVAL:
      return "INTERVAL";
    case DUCKDB_TYPE_HUGEINT:
      return "HUGEINT";
    case DUCKDB_TYPE_UHUGEINT:
      return "UHUGEINT";
    case DUCKDB_TYPE_VARCHAR:
      return "VARCHAR";
    case DUCKDB_TYPE_BLOB:
      return "BLOB";
    case DUCKDB_TYPE_TIMESTAMP_S:
      return "TIMESTAMP_S";
    case DUCKDB_TYPE_TIMESTAMP_MS:
      return "TIMESTAMP_MS";
    case DUCKDB_TYPE_TIMESTAMP_NS:
      return "TIMESTAMP_NS";
    case DUCKDB_TYPE_UUID:
      return "UUID";
    case DUCKDB_TYPE_BIT:
      return "BIT";
    case DUCKDB_TYPE_TIME_TZ:
      return "TIME WITH TIME ZONE";
    case DUCKDB_TYPE_TIMESTAMP_TZ:
      return "TIMESTAMP WITH TIME ZONE";
    case DUCKDB_TYPE_BIGNUM:
      return "BIGNUM";
    case DUCKDB_TYPE_SQLNULL:
      return "\"NULL\"";
    case DUCKDB_TYPE_TIME_NS:
      return "TIME_NS";
    case DUCKDB_TYPE_GEOMETRY:
      return "GEOMETRY";
    case DUCKDB_TYPE_VARIANT:
      return "VARIANT";
    case DUCKDB_TYPE_ENUM:
      return "ENUM";
    case DUCKDB_TYPE_UNION:
      return "UNION";
    default:
      return "UNKNOWN";
  }
}

template <typename T>
T element(duckdb_vector vector, idx_t row) {
  return static_cast<T*>(duckdb_vector_get_data(vector))[row];
}

// Owned children of a nested value as the array the C API takes.
class Children {
 public:
  void add(Value value) {
    raw_.push_back(value.get());
    owned_.push_back(std::move(value));
  }
  // Never null: the C API takes an empty list only with an address.
  duckdb_value* data() { return raw_.empty() ? &none_ : raw_.data(); }
  idx_t size() const { return raw_.size(); }

 private:
  std::vector<Value> owned_;
  std::vector<duckdb_value> raw_;
  duckdb_value none_ = nullptr;
};

Children child_values(duckdb_vector child, duckdb_logical_type type, idx_t first, idx_t count) {
  Children values;
  for (idx_t i = 0; i < count; ++i) values.add(vector_value(child, type, first + i));
  return values;
}

Value struct_value(duckdb_vector vector, duckdb_logical_type type, idx_t row) {
  Children values;
  const idx_t count = duckdb_struct_type_child_count(type);
  for (idx_t i = 0; i < count; ++i) {
    const LogicalType child_type(duckdb_struct_type_child_type(type, i));
    values.add(vector_value(duckdb_struct_vector_get_child(vector, i), child_type.get(), row));
  }
  return Value(duckdb_create_struct_value(type, values.data()));
}

Value map_value(duckdb_vector vector, duckdb_logical_type type, idx_t row) {
  const LogicalType key_type(duckdb_map_type_key_type(type));
  const LogicalType value_type(duckdb_map_type_value_type(type));
  const duckdb_list_entry entry = list_entry_at(vector, row);
  const duckdb_vector entries = duckdb_list_vector_get_child(vector);
  Children keys = child_values(duckdb_struct_vector_get_child(entries, 0), key_type.get(),
                               entry.offset, entry.length);
  Children values = child_values(duckdb_struct_vector_get_child(entries, 1), value_type.get(),
                                 entry.offset, entry.length);
  return Value(duckdb_create_map_value(type, keys.data(), values.data(), keys.size()));
}

duckdb_hugeint widen(int64_t value) {
  return duckdb_hugeint{static_cast<uint64_t>(value), value < 0 ? -1 : 0};
}

duckdb_hugeint decimal_digits(duckdb_vector vector, duckdb_logical_type type, idx_t row) {
  switch (duckdb_decimal_internal_type(type)) {
    case DUCKDB_TYPE_SMALLINT:
      return widen(element<int16_t>(vector, row));
    case DUCKDB_TYPE_INTEGER:
      return widen(element<int32_t>(vector, row));
    case DUCKDB_TYPE_BIGINT:
      return widen(element<int64_t>(vector, row));
    default:
      return element<duckdb_hugeint>(vector, row);
  }
}

uint64_t enum_index(duckdb_vector vector, duckdb_logical_type type, idx_t row) {
  switch (duckdb_enum_internal_type(type)) {
    case DUCKDB_TYPE_UTINYINT:
      return element<uint8_t>(vector, row);
    case DUCKDB_TYPE_USMALLINT:
      return element<uint16_t>(vector, row);
    default:
      return element<uint32_t>(vector, row);
  }
}

// DuckDB keeps a UUID with its top bit flipped, so that signed order is text order.
Value uuid_value(duckdb_hugeint stored) {
  const auto upper = static_cast<uint64_t>(stored.upper) ^ (uint64_t{1} << 63);
  return Value(duckdb_create_uuid(duckdb_uhugeint{stored.lower, upper}));
}

}  // namespace

std::string engine_type(const DataType& type) {
  switch (type.id) {
    case TypeId::kString:
      return "VARCHAR";
    case TypeId::kLong:
      return "BIGINT";
    case TypeId::kInteger:
      return "INTEGER";
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
      return "BLOB";
    case TypeId::kDate:
      return "DATE";
    case TypeId::kTimestamp:
      return "TIMESTAMP WITH TIME ZONE";
    case TypeId::kTimestampNtz:
      return "TIMESTAMP";
    case TypeId::kVoid:
      return "\"NULL\"";
    case TypeId::kVariant:
      return "VARIANT";
    case TypeId::kInterval:
      return "INTERVAL";
    case TypeId::kArray:
      return engine_type(*type.element) + "[]";
    case TypeId::kMap:
      return fmt::format("MAP({}, {})", engine_type(*type.key), engine_type(*type.element));
    case TypeId::kStruct: {
      std::string members;
      for (const Field& field : *type.fields) {
        if (!members.empty()) members += ", ";
        members += quote_name(field.name) + " " + engine_type(field.type);
      }
      return "STRUCT(" + members + ")";
    }
  }
  return "\"NULL\"";
}

std::string spell_type(duckdb_logical_type type) {
  const duckdb_type id = duckdb_get_type_id(type);
  switch (id) {
    case DUCKDB_TYPE_DECIMAL:
      return fmt::format("DECIMAL({},{})", duckdb_decimal_width(type), duckdb_decimal_scale(type));
    case DUCKDB_TYPE_ENUM:
      // One value may say what the type stands for (describer.cc).
      if (duckdb_enum_dictionary_size(type) != 1) return simple_spelling(id);
      return fmt::format("ENUM({})",
                         quote_literal(take_string(duckdb_enum_dictionary_value(type, 0))));
    case DUCKDB_TYPE_LIST:
      return spell_type(LogicalType(duckdb_list_type_child_type(type)).get()) + "[]";
    case DUCKDB_TYPE_ARRAY:
      return fmt::format("{}[{}]",
                         spell_type(LogicalType(duckdb_array_type_child_type(type)).get()),
                         duckdb_array_type_array_size(type));
    case DUCKDB_TYPE_MAP:
      return fmt::format("MAP({}, {})",
                         spell_type(LogicalType(duckdb_map_type_key_type(type)).get()),
                         spell_type(LogicalType(duckdb_map_type_value_type(type)).get()));
    case DUCKDB_TYPE_STRUCT: {
      std::string members;
      for (idx_t i = 0; i < duckdb_struct_type_child_count(type); ++i) {
        if (!members.empty()) members += ", ";
        members += quote_name(take_string(duckdb_struct_type_child_name(type, i))) + " " +
                   spell_type(LogicalType(duckdb_struct_type_child_type(type, i)).get());
      }
      return "STRUCT(" + members + ")";
    }
    default: {
      const std::string alias = take_string(duckdb_logical_type_get_alias(type));
      return alias.empty() ? simple_spelling(id) : alias;
    }
  }
}

std::optional<DataType> delta_type(duckdb_logical_type type) {
  switch (duckdb_get_type_id(type)) {
    case DUCKDB_TYPE_BOOLEAN:
      return DataType::primitive(TypeId::kBoolean);
    case DUCKDB_TYPE_TINYINT:
      return DataType::primitive(TypeId::kByte);
    case DUCKDB_TYPE_UTINYINT:
    case DUCKDB_TYPE_SMALLINT:
      return DataType::primitive(TypeId::kShort);
    case DUCKDB_TYPE_USMALLINT:
    case DUCKDB_TYPE_INTEGER:
      return DataType::primitive(TypeId::kInteger);
    case DUCKDB_TYPE_UINTEGER:
    case DUCKDB_TYPE_BIGINT:
      return DataType::primitive(TypeId::kLong);
    case DUCKDB_TYPE_UBIGINT:
      return DataType::decimal(20, 0);
    case DUCKDB_TYPE_FLOAT:
      return DataType::primitive(TypeId::kFloat);
    case DUCKDB_TYPE_DOUBLE:
      return DataType::primitive(TypeId::kDouble);
    case DUCKDB_TYPE_DECIMAL:
      return DataType::decimal(duckdb_decimal_width(type), duckdb_decimal_scale(type));
    case DUCKDB_TYPE_DATE:
      return DataType::primitive(TypeId::kDate);
    case DUCKDB_TYPE_TIMESTAMP_TZ:
      return DataType::primitive(TypeId::kTimestamp);
    case DUCKDB_TYPE_TIMESTAMP:
    case DUCKDB_TYPE_TIMESTAMP_S:
    case DUCKDB_TYPE_TIMESTAMP_MS:
      return DataType::primitive(TypeId::kTimestampNtz);
    case DUCKDB_TYPE_ENUM:
    case DUCKDB_TYPE_UUID:
    case DUCKDB_TYPE_VARCHAR:
      return DataType::primitive(TypeId::kString);
    case DUCKDB_TYPE_BLOB:
      return DataType::primitive(TypeId::kBinary);
    case DUCKDB_TYPE_SQLNULL:
      return DataType::primitive(TypeId::kVoid);
    case DUCKDB_TYPE_INTERVAL:
      return DataType::primitive(TypeId::kInterval);
    case DUCKDB_TYPE_VARIANT:
      return DataType::primitive(TypeId::kVariant);
    case DUCKDB_TYPE_LIST:
    case DUCKDB_TYPE_ARRAY: {
      const bool is_list = duckdb_get_type_id(type) == DUCKDB_TYPE_LIST;
      const LogicalType child(is_list ? duckdb_list_type_child_type(type)
                                      : duckdb_array_type_child_type(type));
      auto element_type = delta_type(child.get());
      if (!element_type) return std::nullopt;
      return DataType::array(std::move(*element_type));
    }
    case DUCKDB_TYPE_MAP: {
      auto key = delta_type(LogicalType(duckdb_map_type_key_type(type)).get());
      auto value = delta_type(LogicalType(duckdb_map_type_value_type(type)).get());
      if (!key || !value) return std::nullopt;
      return DataType::map(std::move(*key), std::move(*value));
    }
    case DUCKDB_TYPE_STRUCT: {
      std::vector<Field> fields;
      for (idx_t i = 0; i < duckdb_struct_type_child_count(type); ++i) {
        auto member = delta_type(LogicalType(duckdb_struct_type_child_type(type, i)).get());
        if (!member) return std::nullopt;
        fields.push_back(Field{
            take_string(duckdb_struct_type_child_name(type, i)), std::move(*member), true, {}});
      }
      return DataType::structure(std::move(fields));
    }
    default:
      return std::nullopt;
  }
}

std::optional<std::string> text_at(duckdb_vector vector, idx_t row) {
  if (!is_valid(duckdb_vector_get_validity(vector), row)) return std::nullopt;
  auto* texts = static_cast<duckdb_string_t*>(duckdb_vector_get_data(vector));
  return std::string(duckdb_string_t_data(texts + row), duckdb_string_t_length(texts[row]));
}

Value vector_value(duckdb_vector vector, duckdb_logical_type type, idx_t row) {
  if (!is_valid(duckdb_vector_get_validity(vector), row)) return Value(duckdb_create_null_value());
  switch (duckdb_get_type_id(type)) {
    case DUCKDB_TYPE_BOOLEAN:
      return Value(duckdb_create_bool(element<bool>(vector, row)));
    case DUCKDB_TYPE_TINYINT:
      return Value(duckdb_create_int8(element<int8_t>(vector, row)));
    case DUCKDB_TYPE_SMALLINT:
      return Value(duckdb_create_int16(element<int16_t>(vector, row)));
    case DUCKDB_TYPE_INTEGER:
      return Value(duckdb_create_int32(element<int32_t>(vector, row)));
    case DUCKDB_TYPE_BIGINT:
      return Value(duckdb_create_int64(element<int64_t>(vector, row)));
    case DUCKDB_TYPE_UTINYINT:
      return Value(duckdb_create_uint8(element<uint8_t>(vector, row)));
    case DUCKDB_TYPE_USMALLINT:
      return Value(duckdb_create_uint16(element<uint16_t>(vector, row)));
    case DUCKDB_TYPE_UINTEGER:
      return Value(duckdb_create_uint32(element<uint32_t>(vector, row)));
    case DUCKDB_TYPE_UBIGINT:
      return Value(duckdb_create_uint64(element<uint64_t>(vector, row)));
    case DUCKDB_TYPE_HUGEINT:
      return Value(duckdb_create_hugeint(element<duckdb_hugeint>(vector, row)));
    case DUCKDB_TYPE_UHUGEINT:
      return Value(duckdb_create_uhugeint(element<duckdb_uhugeint>(vector, row)));
    case DUCKDB_TYPE_FLOAT:
      return Value(duckdb_create_float(element<float>(vector, row)));
    case DUCKDB_TYPE_DOUBLE:
      return Value(duckdb_create_double(element<double>(vector, row)));
    case DUCKDB_TYPE_DATE:
      return Value(duckdb_create_date(element<duckdb_date>(vector, row)));
    case DUCKDB_TYPE_TIME:
      return Value(duckdb_create_time(element<duckdb_time>(vector, row)));
    case DUCKDB_TYPE_TIME_NS:
      return Value(duckdb_create_time_ns(element<duckdb_time_ns>(vector, row)));
    case DUCKDB_TYPE_TIME_TZ:
      return Value(duckdb_create_time_tz_value(element<duckdb_time_tz>(vector, row)));
    case DUCKDB_TYPE_TIMESTAMP:
      return Value(duckdb_create_timestamp(element<duckdb_timestamp>(vector, row)));
    case DUCKDB_TYPE_TIMESTAMP_TZ:
      return Value(duckdb_create_timestamp_tz(element<duckdb_timestamp>(vector, row)));
    case DUCKDB_TYPE_TIMESTAMP_S:
      return Value(duckdb_create_timestamp_s(element<duckdb_timestamp_s>(vector, row)));
    case DUCKDB_TYPE_TIMESTAMP_MS:
      return Value(duckdb_create_timestamp_ms(element<duckdb_timestamp_ms>(vector, row)));
    case DUCKDB_TYPE_TIMESTAMP_NS:
      return Value(duckdb_create_timestamp_ns(element<duckdb_timestamp_ns>(vector, row)));
    case DUCKDB_TYPE_INTERVAL:
      return Value(duckdb_create_interval(element<duckdb_interval>(vector, row)));
    case DUCKDB_TYPE_UUID:
      return uuid_value(element<duckdb_hugeint>(vector, row));
    case DUCKDB_TYPE_ENUM:
      return Value(duckdb_create_enum_value(type, enum_index(vector, type, row)));
    case DUCKDB_TYPE_DECIMAL:
      return Value(duckdb_create_decimal(duckdb_decimal{duckdb_decimal_width(type),
                                                        duckdb_decimal_scale(type),
                                                        decimal_digits(vector, type, row)}));
    case DUCKDB_TYPE_VARCHAR: {
      auto text = element<duckdb_string_t>(vector, row);
      return Value(
          duckdb_create_varchar_length(duckdb_string_t_data(&text), duckdb_string_t_length(text)));
    }
    case DUCKDB_TYPE_BLOB: {
      auto bytes = element<duckdb_string_t>(vector, row);
      return Value(
          duckdb_create_blob(reinterpret_cast<const uint8_t*>(duckdb_string_t_data(&bytes)),
                             duckdb_string_t_length(bytes)));
    }
    case DUCKDB_TYPE_LIST: {
      const LogicalType child_type(duckdb_list_type_child_type(type));
      const duckdb_list_entry entry = list_entry_at(vector, row);
      Children values = child_values(duckdb_list_vector_get_child(vector), child_type.get(),
                                     entry.offset, entry.length);
      return Value(duckdb_create_list_value(child_type.get(), values.data(), values.size()));
    }
    case DUCKDB_TYPE_ARRAY: {
      const LogicalType child_type(duckdb_array_type_child_type(type));
      const idx_t size = duckdb_array_type_array_size(type);
      Children values =
          child_values(duckdb_array_vector_get_child(vector), child_type.get(), row * size, size);
      return Value(duckdb_create_array_value(child_type.get(), values.data(), values.size()));
    }
    case DUCKDB_TYPE_MAP:
      return map_value(vector, type, row);
    case DUCKDB_TYPE_STRUCT:
      return struct_value(vector, type, row);
    default:
      return Value();
  }
}

}  // namespace strandline::duck
