// What to_json writes, as DuckDB text: the engine's own takes decimals through a DOUBLE and leaves
// out map entries that are null.
#include <fmt/format.h>

#include "base/json.h"
#include "sql/duckdb_core.h"

namespace strandline::sql {

namespace {

std::string json_of(const std::string& value, const DataType& type, int depth);

std::string quoted(const std::string& text) { return fmt::format("'\"' || {} || '\"'", text); }
std::string json_string_of(const std::string& text) {
  return fmt::format("CAST(to_json(CAST({} AS VARCHAR)) AS VARCHAR)", text);
}

// A null inside an array or map stays.
std::string part(const std::string& value, const DataType& type, int depth) {
  if (type.id == TypeId::kVoid) return "'null'";
  const std::string text = json_of(value, type, depth);
  return text.empty() ? "" : fmt::format("coalesce({}, 'null')", text);
}

std::string list(char open, const std::string& items, const std::string& item,
                 const std::string& text, char close) {
  // Of an empty list the engine makes a null.
  return fmt::format(
      "'{}' || coalesce(array_to_string(list_transform({}, lambda {}: {}), ','), '') || '{}'", open,
      items, item, text, close);
}

// Fields that are null are left out.
std::string object(const std::string& value, const DataType& type, int depth) {
  std::string fields;
  for (size_t i = 0; i < type.fields->size(); ++i) {
    const Field& field = (*type.fields)[i];
    if (field.type.id == TypeId::kVoid) continue;
    const std::string text =
        json_of(fmt::format("struct_extract_at({}, {})", value, i + 1), field.type, depth);
    if (text.empty()) return "";
    std::string name = json_string(field.name) + ":";
    std::string literal = "'";
    for (const char c : name) literal += c == '\'' ? "''" : std::string(1, c);
    fields += fmt::format(", {}' || {}", literal, text);
  }
  return fields.empty() ? "'{}'" : fmt::format("'{{' || concat_ws(','{}) || '}}'", fields);
}

std::string json_of(const std::string& value, const DataType& type, int depth) {
  const auto item = fmt::format("sl_json_{}", depth);
  std::string text;
  switch (type.id) {
    case TypeId::kString:
      return json_string_of(value);
    case TypeId::kByte:
    case TypeId::kShort:
    case TypeId::kInteger:
    case TypeId::kLong:
    case TypeId::kBoolean:
    case TypeId::kDecimal:
      return duckdb_text_of(value, type);
    case TypeId::kDouble:
    case TypeId::kFloat:
      return fmt::format("CASE WHEN isfinite({0}) THEN {1} WHEN {0} IS NOT NULL THEN {2} END",
                         value, duckdb_text_of(value, type), quoted(duckdb_text_of(value, type)));
    case TypeId::kDate:
      return quoted(duckdb_text_of(value, type));
    case TypeId::kArray: {
      const auto element = part(item, *type.element, depth + 1);
      if (element.empty()) return "";
      text = list('[', value, item, element, ']');
      break;
    }
    case TypeId::kMap: {
      const auto key = duckdb_text_of(item + ".key", *type.key);
      const auto entry = part(item + ".value", *type.element, depth + 1);
      if (key.empty() || entry.empty()) return "";
      text = list('{', fmt::format("map_entries({})", value), item,
                  fmt::format("{} || ':' || {}", json_string_of(key), entry), '}');
      break;
    }
    case TypeId::kStruct:
      text = object(value, type, depth);
      if (text.empty()) return "";
      break;
    default:
      return "";
  }
  return fmt::format("CASE WHEN {} IS NOT NULL THEN {} END", value, text);
}

}  // namespace

std::string json_text_of(const std::string& value, const DataType& type) {
  return json_of(value, type, 0);
}

}  // namespace strandline::sql
