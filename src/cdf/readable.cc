#include "cdf/readable.h"

#include <fmt/format.h>

#include <algorithm>

namespace strandline::cdf {
namespace {

class Comparison {
 public:
  Comparison(const delta::Snapshot& data, const delta::Snapshot& reader)
      : data_is_mapped_(data.column_mapping_mode() != "none"),
        reader_is_mapped_(reader.column_mapping_mode() != "none") {}

  std::optional<Unreadable> fields(const std::vector<Field>& data, const std::vector<Field>& reader,
                                   const std::string& place) {
    for (const Field& field : data) {
      const std::string name = place + field.name;
      const Field* const now = find(reader, field.name);
      if (now == nullptr)
        return Unreadable{fmt::format("column {} was renamed or dropped", name), true};
      // A dropped column that came back under its old name has another place in the files.
      if (stored_name(field, data_is_mapped_) != stored_name(*now, reader_is_mapped_))
        return Unreadable{
            fmt::format("column {} is another one than before of the same name", name)};
      if (field.nullable && !now->nullable)
        return Unreadable{fmt::format("column {} became NOT NULL", name)};
      if (auto why = type(field.type, now->type, name)) return why;
    }
    for (const Field& field : reader) {
      if (!field.nullable && find(data, field.name) == nullptr)
        return Unreadable{fmt::format("the NOT NULL column {} was added", place + field.name)};
    }
    return std::nullopt;
  }

 private:
  static const Field* find(const std::vector<Field>& fields, const std::string& name) {
    const auto found = std::find_if(fields.begin(), fields.end(), [&](const Field& field) {
      return same_name(field.name, name);
    });
    return found == fields.end() ? nullptr : &*found;
  }

  static std::string stored_name(const Field& field, bool is_mapped) {
    return is_mapped ? delta::Snapshot::physical_name(field) : field.name;
  }

  std::optional<Unreadable> type(const DataType& data, const DataType& reader,
                                 const std::string& name) {
    if (data.id != reader.id) return retyped(data, reader, name);
    switch (data.id) {
      case TypeId::kStruct:
        return fields(*data.fields, *reader.fields, name + ".");
      case TypeId::kArray:
        if (data.contains_null && !reader.contains_null)
          return Unreadable{fmt::format("the elements of {} became NOT NULL", name)};
        return type(*data.element, *reader.element, name + ".element");
      case TypeId::kMap:
        if (data.contains_null && !reader.contains_null)
          return Unreadable{fmt::format("the values of {} became NOT NULL", name)};
        if (auto why = type(*data.key, *reader.key, name + ".key")) return why;
        return type(*data.element, *reader.element, name + ".value");
      default:
        if (same_type(data, reader)) return std::nullopt;
        return retyped(data, reader, name);
    }
  }

  static Unreadable retyped(const DataType& data, const DataType& reader, const std::string& name) {
    return Unreadable{fmt::format("the type of column {} changed from {} to {}", name, to_sql(data),
                                  to_sql(reader))};
  }

  const bool data_is_mapped_;
  const bool reader_is_mapped_;
};

}  // namespace

std::optional<Unreadable> why_unreadable(const delta::Snapshot& data,
                                         const delta::Snapshot& reader) {
  if (data.metadata.partition_columns.size() != reader.metadata.partition_columns.size() ||
      !std::equal(data.metadata.partition_columns.begin(), data.metadata.partition_columns.end(),
                  reader.metadata.partition_columns.begin(), same_name)) {
    return Unreadable{"the partition columns changed"};
  }
  return Comparison(data, reader).fields(data.schema.fields, reader.schema.fields, "");
}

}  // namespace strandline::cdf
