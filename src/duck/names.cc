#include "duck/names.h"

#include <charconv>

#include "base/error.h"
#include "duck/connection.h"

namespace strandline::duck {
namespace {

// Whether values differ between table and file: another member name, or a void member.
bool differs(const DataType& type, ColumnMode mode) {
  switch (type.id) {
    case TypeId::kArray:
      return differs(*type.element, mode);
    case TypeId::kMap:
      return differs(*type.key, mode) || differs(*type.element, mode);
    case TypeId::kStruct:
      for (const Field& field : *type.fields) {
        if (field.type.id == TypeId::kVoid || file_name(field, mode) != field.name ||
            differs(field.type, mode)) {
          return true;
        }
      }
      return false;
    default:
      return false;
  }
}

// Rebuilds a nested value member by member; to_table tells the direction.
std::string rebuild(const std::string& expression, const DataType& type, ColumnMode mode,
                    bool to_table, bool always, int depth) {
  if (type.id == TypeId::kVoid) return "NULL";
  if (!type.is_nested() || (!always && !differs(type, mode))) return expression;
  const std::string variable = fmt::format("__strandline_x{}", depth);
  switch (type.id) {
    case TypeId::kArray:
      return fmt::format("list_transform({}, lambda {}: {})", expression, variable,
                         rebuild(variable, *type.element, mode, to_table, always, depth + 1));
    case TypeId::kMap:
      return fmt::format(
          "CASE WHEN {0} IS NOT NULL THEN map_from_entries(list_transform(map_entries({0}), "
          "lambda {1}: struct_pack(\"key\" := {2}, \"value\" := {3}))) END",
          expression, variable,
          rebuild(variable + ".\"key\"", *type.key, mode, to_table, always, depth + 1),
          rebuild(variable + ".\"value\"", *type.element, mode, to_table, always, depth + 1));
    default: {
      std::string members;
      for (const Field& field : *type.fields) {
        if (!to_table && field.type.id == TypeId::kVoid) continue;  // in no file
        if (!members.empty()) members += ", ";
        const std::string& in_file = file_name(field, mode);
        const std::string member = fmt::format("struct_extract({}, {})", expression,
                                               quote_literal(to_table ? in_file : field.name));
        members += fmt::format("{} := {}", quote_name(to_table ? field.name : in_file),
                               rebuild(member, field.type, mode, to_table, always, depth + 1));
      }
      return fmt::format("CASE WHEN {} IS NOT NULL THEN struct_pack({}) END", expression, members);
    }
  }
}

}  // namespace

ColumnMode column_mode(const delta::Snapshot& snapshot) {
  const std::string mode = snapshot.column_mapping_mode();
  if (mode == "id") return ColumnMode::kById;
  return mode == "name" ? ColumnMode::kByPhysicalName : ColumnMode::kByLogicalName;
}

std::string file_name(const Field& field, ColumnMode mode) {
  return mode == ColumnMode::kByLogicalName ? field.name : delta::Snapshot::physical_name(field);
}

Result<int64_t> field_id(const Field& field) {
  const auto found = field.metadata.find("delta.columnMapping.id");
  int64_t id = 0;
  if (found != field.metadata.end()) {
    const std::string& text = found->second;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), id);
    if (failure == std::errc() && end == text.data() + text.size()) return id;
  }
  return corrupt("DELTA_COLUMN_MAPPING_ID", "column {} has no valid delta.columnMapping.id",
                 field.name);
}

Result<DataType> file_type(const std::string& column, const DataType& type, ColumnMode mode) {
  switch (type.id) {
    case TypeId::kVariant:
    case TypeId::kInterval:
      return unsupported("UNSUPPORTED_TYPE", "column {} has the type {}, which is not supported",
                         column, to_sql(type));
    case TypeId::kArray: {
      SL_ASSIGN(DataType element, file_type(column + ".element", *type.element, mode));
      return DataType::array(std::move(element), type.contains_null);
    }
    case TypeId::kMap: {
      SL_ASSIGN(DataType key, file_type(column + ".key", *type.key, mode));
      SL_ASSIGN(DataType value, file_type(column + ".value", *type.element, mode));
      return DataType::map(std::move(key), std::move(value), type.contains_null);
    }
    case TypeId::kStruct: {
      std::vector<Field> fields;
      for (const Field& field : *type.fields) {
        if (field.type.id == TypeId::kVoid) continue;
        SL_ASSIGN(DataType member, file_type(column + "." + field.name, field.type, mode));
        fields.push_back(
            Field{file_name(field, mode), std::move(member), field.nullable, field.metadata});
      }
      if (fields.empty()) {
        return unsupported("UNSUPPORTED_TYPE", "column {} is a STRUCT without any stored member",
                           column);
      }
      return DataType::structure(std::move(fields));
    }
    default:
      return type;
  }
}

std::string to_logical(const std::string& expression, const DataType& type, ColumnMode mode,
                       bool rebuild_all) {
  return rebuild(expression, type, mode, true, rebuild_all, 0);
}

std::string to_file(const std::string& expression, const DataType& type, ColumnMode mode) {
  return rebuild(expression, type, mode, false, false, 0);
}

std::string path_literal(const std::string& path) {
  std::string escaped;
  for (const char c : path) {
    if (c == '[' || c == '*' || c == '?') {
      escaped += '[';
      escaped += c;
      escaped += ']';
    } else {
      escaped += c;
    }
  }
  return quote_literal(escaped);
}

std::string partition_literal(const std::optional<std::string>& value, const DataType& type) {
  const std::string target = engine_type(type);
  if (!value || value->empty()) return fmt::format("CAST(NULL AS {})", target);
  if (type.id == TypeId::kBinary) return fmt::format("encode({})", quote_literal(*value));
  return fmt::format("CAST({} AS {})", quote_literal(*value), target);
}

}  // namespace strandline::duck
