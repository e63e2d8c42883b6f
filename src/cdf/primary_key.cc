#include "cdf/primary_key.h"

#include <string_view>

#include "base/json.h"

namespace strandline::cdf {
namespace {

constexpr std::string_view kCoalesce = "coalesce(";

// "coalesce(a, b)" -> a, b; anything else -> the text itself.
KeyPart columns_of(const std::string& text) {
  if (!text.starts_with(kCoalesce) || !text.ends_with(')')) return {text};
  const size_t comma = text.find(", ", kCoalesce.size());
  if (comma == std::string::npos) return {text};
  return {text.substr(kCoalesce.size(), comma - kCoalesce.size()),
          text.substr(comma + 2, text.size() - comma - 3)};
}

}  // namespace

std::vector<KeyPart> primary_key(const delta::Snapshot& definition) {
  const auto property = definition.property(kPrimaryKeyProperty);
  if (!property) return {};
  const auto json = Json::parse(*property);
  if (!json.ok()) return {};
  std::vector<KeyPart> key;
  for (const Json& item : json->items()) {
    if (!item.is_string()) return {};
    const Field* const column = definition.schema.get(item.text());
    KeyPart part = column != nullptr ? KeyPart{column->name} : columns_of(item.text());
    for (std::string& name : part) {
      const Field* const field = definition.schema.get(name);
      if (field == nullptr) return {};
      name = field->name;
    }
    key.push_back(std::move(part));
  }
  return key;
}

}  // namespace strandline::cdf
