#include "delta/column_mapping.h"

#include <algorithm>
#include <functional>

#include "base/ids.h"
#include "base/json.h"
#include "base/type_widening.h"
#include "delta/properties.h"
#include "delta/type_widening.h"

namespace strandline::delta {

namespace {

constexpr const char* kId = "delta.columnMapping.id";
constexpr const char* kPhysicalName = "delta.columnMapping.physicalName";
// Ids of array elements and map entries, which only Iceberg compatibility gives.
constexpr const char* kNestedIds = "delta.columnMapping.nested.ids";

void for_each_field(std::vector<Field>* fields, const std::function<void(Field*)>& visit);

// Types share their parts: what changes is copied.
void for_each_field(DataType* type, const std::function<void(Field*)>& visit) {
  const auto part = [&](std::shared_ptr<const DataType>* shared) {
    if (!(*shared)->is_nested()) return;
    DataType changed = **shared;
    for_each_field(&changed, visit);
    *shared = std::make_shared<const DataType>(std::move(changed));
  };
  switch (type->id) {
    case TypeId::kStruct: {
      std::vector<Field> fields = *type->fields;
      for_each_field(&fields, visit);
      *type = DataType::structure(std::move(fields));
      return;
    }
    case TypeId::kMap:
      part(&type->key);
      part(&type->element);
      return;
    case TypeId::kArray:
      part(&type->element);
      return;
    default:
      return;
  }
}

void for_each_field(std::vector<Field>* fields, const std::function<void(Field*)>& visit) {
  for (Field& field : *fields) {
    visit(&field);
    for_each_field(&field.type, visit);
  }
}

int64_t id_of(const Field& field) { return integer_property(field.metadata, kId, 0); }

void strip(Field* field) {
  field->metadata.erase(kId);
  field->metadata.erase(kPhysicalName);
  field->metadata.erase(kNestedIds);
}

// Replaces what the next version of a field knows of ids and physical names by what the table
// knows; parts that the table does not know lose theirs.
void inherit(const std::vector<Field>& current, std::vector<Field>* next);

void inherit(const DataType& current, DataType* next) {
  if (current.id != next->id) {
    for_each_field(next, strip);
    return;
  }
  const auto part = [](const DataType& before, std::shared_ptr<const DataType>* shared) {
    if (!(*shared)->is_nested()) return;
    DataType changed = **shared;
    inherit(before, &changed);
    *shared = std::make_shared<const DataType>(std::move(changed));
  };
  switch (next->id) {
    case TypeId::kStruct: {
      std::vector<Field> fields = *next->fields;
      inherit(*current.fields, &fields);
      *next = DataType::structure(std::move(fields));
      return;
    }
    case TypeId::kMap:
      part(*current.key, &next->key);
      part(*current.element, &next->element);
      return;
    case TypeId::kArray:
      part(*current.element, &next->element);
      return;
    default:
      return;
  }
}

// Old files hold values that can be read as the new type.
bool continues(const DataType& current, const DataType& next) {
  if (current.is_nested() || next.is_nested()) return current.id == next.id;
  return same_type(current, next) || can_widen(current, next) || current.id == TypeId::kVoid;
}

void inherit(const std::vector<Field>& current, std::vector<Field>* next) {
  for (Field& field : *next) {
    const auto before = std::find_if(current.begin(), current.end(), [&](const Field& other) {
      return same_name(other.name, field.name);
    });
    strip(&field);
    if (before == current.end() || !continues(before->type, field.type)) {
      for_each_field(&field.type, strip);
      continue;
    }
    for (const char* key : {kId, kPhysicalName, kNestedIds}) {
      const auto known = before->metadata.find(key);
      if (known != before->metadata.end()) field.metadata[key] = known->second;
    }
    inherit(before->type, &field.type);
  }
}

void record_changes(const std::vector<Field>& current, std::vector<Field>* next) {
  for (Field& field : *next) {
    const auto before = std::find_if(current.begin(), current.end(), [&](const Field& other) {
      return same_name(other.name, field.name);
    });
    if (before != current.end()) record_type_changes(*before, &field);
  }
}

}  // namespace

std::string mapping_mode(const Metadata& metadata) {
  const auto mode = metadata.configuration.find(kMappingModeProperty);
  return mode == metadata.configuration.end() ? "none" : mode->second;
}

void assign_mapping(Schema* schema, Metadata* metadata, PhysicalNames names) {
  int64_t last = integer_property(metadata->configuration, kMaxColumnIdProperty, 0);
  for_each_field(&schema->fields, [&](Field* field) { last = std::max(last, id_of(*field)); });
  for_each_field(&schema->fields, [&](Field* field) {
    if (field->metadata.count(kId) == 0) field->metadata[kId] = std::to_string(++last);
    if (field->metadata.count(kPhysicalName) == 0) {
      field->metadata[kPhysicalName] =
          json_string(names == PhysicalNames::kCurrent ? field->name : "col-" + new_uuid());
    }
  });
  metadata->configuration[kMaxColumnIdProperty] = std::to_string(last);
}

bool physical_names_are_current(const Schema& schema) {
  bool current = true;
  std::vector<Field> fields = schema.fields;
  for_each_field(&fields, [&](Field* field) {
    current = current && Snapshot::physical_name(*field) == field->name;
  });
  return current;
}

void strip_mapping(Schema* schema) { for_each_field(&schema->fields, strip); }

Schema next_schema(const Schema& current, Schema next, bool record_widening, Metadata* metadata) {
  inherit(current.fields, &next.fields);
  if (record_widening) record_changes(current.fields, &next.fields);
  if (mapping_mode(*metadata) != "none") {
    assign_mapping(&next, metadata, PhysicalNames::kFresh);
  }
  return next;
}

}  // namespace strandline::delta
