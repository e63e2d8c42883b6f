#include "delta/field_path.h"

#include <algorithm>

namespace strandline::delta {

std::string to_string(const FieldPath& path) {
  std::string text;
  for (const std::string& name : path) {
    if (!text.empty()) text += '.';
    const bool plain = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
      return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    });
    if (plain) {
      text += name;
      continue;
    }
    text += '`';
    for (const char c : name) text += c == '`' ? "``" : std::string(1, c);
    text += '`';
  }
  return text;
}

std::vector<FieldPath> parse_column_list(const std::string& text) {
  std::vector<FieldPath> paths(1, FieldPath(1));
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    std::string& name = paths.back().back();
    if (c == '`') {
      if (quoted && i + 1 < text.size() && text[i + 1] == '`') {
        name += text[++i];
      } else {
        quoted = !quoted;
      }
    } else if (!quoted && c == '.') {
      paths.back().emplace_back();
    } else if (!quoted && c == ',') {
      paths.push_back(FieldPath(1));
    } else if (quoted || c != ' ') {
      name += c;
    }
  }
  return paths;
}

const Field* find_field(const Schema& schema, const FieldPath& path) {
  const std::vector<Field>* fields = &schema.fields;
  const DataType* type = nullptr;
  const Field* field = nullptr;
  for (const std::string& name : path) {
    if (type != nullptr) {
      const std::string folded = fold_name(name);
      if (type->id == TypeId::kArray && folded == "element") {
        type = type->element.get();
        field = nullptr;
        continue;
      }
      if (type->id == TypeId::kMap && (folded == "key" || folded == "value")) {
        type = folded == "key" ? type->key.get() : type->element.get();
        field = nullptr;
        continue;
      }
      if (type->id != TypeId::kStruct) return nullptr;
      fields = type->fields.get();
    }
    const auto index = Schema{*fields}.find(name);
    if (!index) return nullptr;
    field = &(*fields)[*index];
    type = &field->type;
  }
  return field;
}

}  // namespace strandline::delta
