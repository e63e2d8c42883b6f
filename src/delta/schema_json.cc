// Schemas as Spark JSON (delta-protocol.md section 12).
#include <charconv>

#include "base/error.h"
#include "base/json.h"
#include "delta/snapshot.h"

namespace strandline::delta {

namespace {

constexpr const char* kBadSchema = "DELTA_SCHEMA_INVALID";

struct PrimitiveName {
  const char* name;
  TypeId id;
};

constexpr PrimitiveName kPrimitives[] = {
    {"string", TypeId::kString},       {"long", TypeId::kLong},
    {"integer", TypeId::kInteger},     {"short", TypeId::kShort},
    {"byte", TypeId::kByte},           {"float", TypeId::kFloat},
    {"double", TypeId::kDouble},       {"boolean", TypeId::kBoolean},
    {"binary", TypeId::kBinary},       {"date", TypeId::kDate},
    {"timestamp", TypeId::kTimestamp}, {"timestamp_ntz", TypeId::kTimestampNtz},
    {"void", TypeId::kVoid},           {"variant", TypeId::kVariant},
};

Result<DataType> parse_type(const Json& json, const std::string& where);

Result<DataType> parse_type_name(const std::string& name, const std::string& where) {
  for (const PrimitiveName& primitive : kPrimitives) {
    if (name == primitive.name) return DataType::primitive(primitive.id);
  }
  if (name == "null") return DataType::primitive(TypeId::kVoid);
  if (name == "decimal") return DataType::decimal(10, 0);
  if (name.starts_with("interval")) return DataType::primitive(TypeId::kInterval);
  if (name.starts_with("decimal(") && name.ends_with(")")) {
    const char* at = name.data() + 8;
    const char* const end = name.data() + name.size() - 1;
    int precision = 0;
    int scale = 0;
    const auto first = std::from_chars(at, end, precision);
    at = first.ptr;
    while (at != end && (*at == ',' || *at == ' ')) ++at;
    const auto second = std::from_chars(at, end, scale);
    if (first.ec == std::errc() && second.ec == std::errc() && second.ptr == end &&
        precision >= 1 && precision <= 38 && scale >= 0 && scale <= precision) {
      return DataType::decimal(precision, scale);
    }
    return corrupt(kBadSchema, "column {} has the impossible type {}", where, name);
  }
  return unsupported("DELTA_UNSUPPORTED_DATA_TYPE",
                     "column {} has type {}, which Strandline does not know", where, name);
}

Result<std::vector<Field>> parse_fields(const Json& json, const std::string& where) {
  const Json* const fields = json.get("fields");
  if (fields == nullptr || !fields->is_array()) {
    return corrupt(kBadSchema, "{} is a struct without fields",
                   where.empty() ? "the schema" : where);
  }
  std::vector<Field> result;
  result.reserve(fields->items().size());
  for (const Json& item : fields->items()) {
    const Json* const name = item.get("name");
    const Json* const type = item.get("type");
    if (name == nullptr || !name->is_string() || type == nullptr) {
      return corrupt(kBadSchema, "a field of {} has no name or type",
                     where.empty() ? "the schema" : where);
    }
    Field field;
    field.name = name->text();
    const std::string path = where.empty() ? field.name : where + "." + field.name;
    SL_ASSIGN(field.type, parse_type(*type, path));
    if (const Json* const nullable = item.get("nullable"))
      field.nullable = nullable->as_bool().value_or(true);
    if (const Json* const metadata = item.get("metadata");
        metadata != nullptr && metadata->is_object()) {
      for (size_t i = 0; i < metadata->names().size(); ++i) {
        field.metadata[metadata->names()[i]] = metadata->items()[i].dump();
      }
    }
    result.push_back(std::move(field));
  }
  return result;
}

Result<DataType> parse_type(const Json& json, const std::string& where) {
  if (json.is_string()) return parse_type_name(json.text(), where);
  const Json* const name = json.get("type");
  if (name == nullptr || !name->is_string())
    return corrupt(kBadSchema, "column {} has no type", where);
  const auto flag = [&](const char* key) {
    const Json* const value = json.get(key);
    return value == nullptr || value->as_bool().value_or(true);
  };
  if (name->text() == "struct") {
    SL_ASSIGN(std::vector<Field> fields, parse_fields(json, where));
    return DataType::structure(std::move(fields));
  }
  if (name->text() == "array") {
    const Json* const element = json.get("elementType");
    if (element == nullptr) return corrupt(kBadSchema, "array {} has no elementType", where);
    SL_ASSIGN(DataType type, parse_type(*element, where + ".element"));
    return DataType::array(std::move(type), flag("containsNull"));
  }
  if (name->text() == "map") {
    const Json* const key = json.get("keyType");
    const Json* const value = json.get("valueType");
    if (key == nullptr || value == nullptr) {
      return corrupt(kBadSchema, "map {} has no keyType or valueType", where);
    }
    SL_ASSIGN(DataType key_type, parse_type(*key, where + ".key"));
    SL_ASSIGN(DataType value_type, parse_type(*value, where + ".value"));
    return DataType::map(std::move(key_type), std::move(value_type), flag("valueContainsNull"));
  }
  return unsupported("DELTA_UNSUPPORTED_DATA_TYPE",
                     "column {} has type {}, which Strandline does not know", where, name->text());
}

void print_type(const DataType& type, JsonWriter* out);

void print_fields(const std::vector<Field>& fields, JsonWriter* out) {
  out->begin_object();
  out->key("type");
  out->value("struct");
  out->key("fields");
  out->begin_array();
  for (const Field& field : fields) {
    out->begin_object();
    out->key("name");
    out->value(field.name);
    out->key("type");
    print_type(field.type, out);
    out->key("nullable");
    out->value(field.nullable);
    out->key("metadata");
    out->begin_object();
    for (const auto& [key, value] : field.metadata) {
      out->key(key);
      out->raw(value);
    }
    out->end_object();
    out->end_object();
  }
  out->end_array();
  out->end_object();
}

void print_type(const DataType& type, JsonWriter* out) {
  switch (type.id) {
    case TypeId::kStruct:
      print_fields(*type.fields, out);
      return;
    case TypeId::kArray:
      out->begin_object();
      out->key("type");
      out->value("array");
      out->key("elementType");
      print_type(*type.element, out);
      out->key("containsNull");
      out->value(type.contains_null);
      out->end_object();
      return;
    case TypeId::kMap:
      out->begin_object();
      out->key("type");
      out->value("map");
      out->key("keyType");
      print_type(*type.key, out);
      out->key("valueType");
      print_type(*type.element, out);
      out->key("valueContainsNull");
      out->value(type.contains_null);
      out->end_object();
      return;
    case TypeId::kDecimal:
      out->value(fmt::format("decimal({},{})", type.precision, type.scale));
      return;
    case TypeId::kInterval:
      out->value("interval");
      return;
    default:
      break;
  }
  for (const PrimitiveName& primitive : kPrimitives) {
    if (primitive.id == type.id) out->value(primitive.name);
  }
}

}  // namespace

Result<Schema> parse_schema(const std::string& schema_string) {
  auto json = Json::parse(schema_string);
  if (!json.ok()) return corrupt(kBadSchema, "the table's schema is {}", json.error().message);
  Schema schema;
  SL_ASSIGN(schema.fields, parse_fields(*json, ""));
  return schema;
}

std::string print_schema(const Schema& schema) {
  JsonWriter out;
  print_fields(schema.fields, &out);
  return out.take();
}

}  // namespace strandline::delta
