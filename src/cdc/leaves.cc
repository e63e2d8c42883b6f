#include "cdc/leaves.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace strandline::cdc {

namespace {

// A name as a step of a path; dots of its own are written otherwise.
std::string step(const std::string& name) {
  std::string text;
  for (const char c : fold_name(name)) {
    if (c == '~') {
      text += "~0";
    } else if (c == '.') {
      text += "~1";
    } else {
      text += c;
    }
  }
  return text;
}

void add_leaves(const ValueText& text, const std::string& path, const std::string& expr,
                const DataType& type, std::vector<Leaf>* leaves) {
  if (type.id != TypeId::kStruct) {
    leaves->push_back(Leaf{path, expr, type, false});
    return;
  }
  leaves->push_back(Leaf{path, fmt::format("CASE WHEN {} IS NOT NULL THEN true END", expr),
                         DataType::primitive(TypeId::kBoolean), true});
  for (const Field& field : *type.fields) {
    add_leaves(text, path + "." + step(field.name), text.member(expr, field), field.type, leaves);
  }
}

}  // namespace

std::vector<Leaf> leaves_of(const ValueText& text, const std::string& name, const std::string& expr,
                            const DataType& type) {
  std::vector<Leaf> leaves;
  add_leaves(text, step(name), expr, type, &leaves);
  return leaves;
}

std::string from_leaves(const ValueText& text, const DataType& type,
                        const std::function<std::string()>& next) {
  const std::string first = next();
  if (type.id != TypeId::kStruct) return first;
  std::vector<std::pair<std::string, std::string>> members;
  for (const Field& field : *type.fields) {
    members.emplace_back(field.name, from_leaves(text, field.type, next));
  }
  return text.struct_when(first, members);
}

std::string has_content(const ValueText& text, const std::string& expr, const DataType& type) {
  if (type.id != TypeId::kStruct) return expr + " IS NOT NULL";
  std::vector<std::string> parts;
  for (const Field& field : *type.fields) {
    parts.push_back(has_content(text, text.member(expr, field), field.type));
  }
  if (parts.empty()) return "false";
  return fmt::format("({})", fmt::join(parts, " OR "));
}

std::string without_empty_structs(const ValueText& text, const std::string& expr,
                                  const DataType& type) {
  if (type.id != TypeId::kStruct) return expr;
  std::vector<std::pair<std::string, std::string>> members;
  for (const Field& field : *type.fields) {
    members.emplace_back(field.name,
                         without_empty_structs(text, text.member(expr, field), field.type));
  }
  return text.struct_when(has_content(text, expr, type), members);
}

}  // namespace strandline::cdc
