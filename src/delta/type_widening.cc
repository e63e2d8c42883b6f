#include "delta/type_widening.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/type_widening.h"

namespace strandline::delta {

namespace {

constexpr const char* kTypeChanges = "delta.typeChanges";

std::string step(const std::string& place, const char* part) {
  return place.empty() ? part : place + "." + part;
}

// Walks the parts of a field's type that are no fields themselves.
void record(Field* owner, const DataType& before, DataType* after, const std::string& place);

void record_part(Field* owner, const DataType& before, std::shared_ptr<const DataType>* after,
                 const std::string& place) {
  DataType changed = **after;
  record(owner, before, &changed, place);
  *after = std::make_shared<const DataType>(std::move(changed));
}

void record(Field* owner, const DataType& before, DataType* after, const std::string& place) {
  if (before.id == TypeId::kStruct && after->id == TypeId::kStruct) {
    std::vector<Field> fields = *after->fields;
    for (Field& field : fields) {
      const auto old =
          std::find_if(before.fields->begin(), before.fields->end(),
                       [&](const Field& other) { return same_name(other.name, field.name); });
      if (old != before.fields->end()) record_type_changes(*old, &field);
    }
    *after = DataType::structure(std::move(fields));
  } else if (before.id == TypeId::kArray && after->id == TypeId::kArray) {
    record_part(owner, *before.element, &after->element, step(place, "element"));
  } else if (before.id == TypeId::kMap && after->id == TypeId::kMap) {
    record_part(owner, *before.key, &after->key, step(place, "key"));
    record_part(owner, *before.element, &after->element, step(place, "value"));
  } else if (can_widen(before, *after)) {
    record_type_change(owner, before, *after, place);
  }
}

}  // namespace

std::string type_name(const DataType& type) {
  switch (type.id) {
    case TypeId::kString:
      return "string";
    case TypeId::kLong:
      return "long";
    case TypeId::kInteger:
      return "integer";
    case TypeId::kShort:
      return "short";
    case TypeId::kByte:
      return "byte";
    case TypeId::kFloat:
      return "float";
    case TypeId::kDouble:
      return "double";
    case TypeId::kDecimal:
      return fmt::format("decimal({},{})", type.precision, type.scale);
    case TypeId::kBoolean:
      return "boolean";
    case TypeId::kBinary:
      return "binary";
    case TypeId::kDate:
      return "date";
    case TypeId::kTimestamp:
      return "timestamp";
    case TypeId::kTimestampNtz:
      return "timestamp_ntz";
    case TypeId::kVariant:
      return "variant";
    case TypeId::kInterval:
      return "interval";
    case TypeId::kStruct:
      return "struct";
    case TypeId::kArray:
      return "array";
    case TypeId::kMap:
      return "map";
    case TypeId::kVoid:
      return "void";
  }
  return "void";
}

void record_type_change(Field* field, const DataType& from, const DataType& to,
                        const std::string& place) {
  JsonWriter changes;
  changes.begin_array();
  if (const auto known = field->metadata.find(kTypeChanges); known != field->metadata.end()) {
    const auto json = Json::parse(known->second);
    if (json.ok()) {
      for (const Json& change : json->items()) changes.raw(change.dump());
    }
  }
  changes.begin_object();
  changes.key("toType");
  changes.value(type_name(to));
  changes.key("fromType");
  changes.value(type_name(from));
  if (!place.empty()) {
    changes.key("fieldPath");
    changes.value(place);
  }
  changes.end_object();
  changes.end_array();
  field->metadata[kTypeChanges] = changes.take();
}

void record_type_changes(const Field& before, Field* after) {
  DataType type = after->type;
  record(after, before.type, &type, "");
  after->type = std::move(type);
}

}  // namespace strandline::delta
