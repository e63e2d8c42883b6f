#include "delta/text_length.h"

#include <charconv>

#include "base/error.h"
#include "base/json.h"

namespace strandline::delta {

namespace {

constexpr const char* kTextType = "__CHAR_VARCHAR_TYPE_STRING";

std::string text_type(const Field& field) {
  const auto found = field.metadata.find(kTextType);
  if (found == field.metadata.end()) return "";
  const auto json = Json::parse(found->second);
  return json.ok() && json->is_string() ? json->text() : found->second;
}

}  // namespace

Result<std::optional<TextLength>> text_length(const Field& field) {
  const std::string type = text_type(field);
  if (type.empty()) return std::optional<TextLength>();
  TextLength result;
  result.is_char = type.starts_with("char(");
  const size_t open = type.find('(');
  const char* const end = type.data() + type.size();
  const auto parsed = open == std::string::npos
                          ? std::from_chars_result{nullptr, std::errc::invalid_argument}
                          : std::from_chars(type.data() + open + 1, end, result.length);
  const bool plain = field.type.id == TypeId::kString &&
                     (result.is_char || type.starts_with("varchar(")) && parsed.ec == std::errc() &&
                     parsed.ptr + 1 == end && *parsed.ptr == ')';
  if (plain) return std::optional(result);
  return unsupported("UNSUPPORTED_CHAR_OR_VARCHAR_AS_STRING",
                     "column {} holds {}, whose lengths cannot be checked: write the table with "
                     "the engine that made it",
                     field.name, type);
}

bool is_char(const Field& field) {
  const auto length = text_length(field);
  return length.ok() && *length && (*length)->is_char;
}

void set_text_type(Field* field, const std::string& sized_type) {
  field->metadata.erase(kTextType);
  if (!sized_type.empty()) field->metadata[kTextType] = json_string(sized_type);
}

std::string declared_type(const Field& field) {
  const auto length = text_length(field);
  if (!length.ok() || !*length) return to_sql(field.type);
  return fmt::format("{}({})", (*length)->is_char ? "CHAR" : "VARCHAR", (*length)->length);
}

}  // namespace strandline::delta
