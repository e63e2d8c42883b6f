// Values that a form needs several times: a list of one element names them, so that they stand in
// the text once. Their cost does not grow with nesting, and what differs at every call is called
// once.
#include <fmt/format.h>

#include <algorithm>

#include "sql/duckdb_core.h"

namespace strandline::sql {

namespace {

// Passes over a text in quotes, which are doubled inside.
bool take_quoted(std::string_view* text, char quote) {
  if (!text->starts_with(quote)) return false;
  size_t end = 1;
  for (;; end += 2) {
    end = text->find(quote, end);
    if (end == std::string_view::npos) return false;
    if (end + 1 >= text->size() || (*text)[end + 1] != quote) break;
  }
  text->remove_prefix(end + 1);
  return true;
}

bool take_word(std::string_view* text) {
  const auto is_part = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (static_cast<unsigned char>(c) & 0x80) != 0;
  };
  const auto end = std::find_if_not(text->begin(), text->end(), is_part);
  const auto size = static_cast<size_t>(end - text->begin());
  text->remove_prefix(size);
  return size > 0;
}

// a.b."c d", 12.5, -3
bool is_name_or_number(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  for (;;) {
    if (!take_quoted(&text, '"') && !take_word(&text)) return false;
    if (text.empty()) return true;
    if (!text.starts_with('.')) return false;
    text.remove_prefix(1);
    if (text.empty()) return true;
  }
}

bool is_text_constant(std::string_view text) { return take_quoted(&text, '\'') && text.empty(); }

// Inside `before ... after`; nothing where the text is not of that form.
std::optional<std::string_view> between(std::string_view text, std::string_view before,
                                        std::string_view after) {
  if (text.size() < before.size() + after.size() || !text.starts_with(before) ||
      !text.ends_with(after)) {
    return std::nullopt;
  }
  return text.substr(before.size(), text.size() - before.size() - after.size());
}

bool is_plain(std::string_view text) {
  if (is_name_or_number(text) || is_text_constant(text)) return true;
  if (const auto hex = between(text, "unhex(", ")")) return is_text_constant(*hex);
  if (const auto cast = between(text, "CAST(", ")")) {  // of a constant
    const size_t as = cast->rfind(" AS ");
    if (as == std::string_view::npos) return false;
    const auto value = cast->substr(0, as);
    const bool number = !value.empty() && (value[0] == '-' || (value[0] >= '0' && value[0] <= '9'));
    return is_text_constant(value) || value == "NULL" || (number && is_name_or_number(value));
  }
  if (const auto field = between(text, "struct_extract(", ")")) {
    const size_t comma = field->rfind(", '");
    return comma != std::string_view::npos && is_text_constant(field->substr(comma + 2)) &&
           is_plain(field->substr(0, comma));
  }
  return false;
}

// Names differ with the depth of forms in forms, so that an inner one can read what an outer binds.
thread_local int depth = 0;

class Parameter {
 public:
  Parameter() : text_(fmt::format("sl_once_{}", depth)) { ++depth; }
  ~Parameter() { --depth; }
  Parameter(const Parameter&) = delete;
  Parameter& operator=(const Parameter&) = delete;
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

bool is_constant(const std::string& value) {
  return value[0] == '\'' || value[0] == '-' || value == "NULL" || value.starts_with("CAST(") ||
         value.starts_with("unhex(") || (value[0] >= '0' && value[0] <= '9');
}

}  // namespace

bool is_plain_value(const std::string& text) { return is_plain(text); }

std::string computed_once(const std::string& value,
                          const std::function<std::string(const std::string&)>& form) {
  if (is_plain_value(value)) return form(value);
  const Parameter name;
  return fmt::format("list_transform([{}], lambda {}: {})[1]", value, name.text(),
                     form(name.text()));
}

std::string computed_once(const std::vector<std::string>& values,
                          const std::function<std::string(const std::vector<std::string>&)>& form) {
  if (std::all_of(values.begin(), values.end(), is_plain_value)) return form(values);
  // Columns, too, go into the struct: then the form reads its parameter alone.
  const Parameter name;
  std::string members;
  std::vector<std::string> names;
  for (size_t i = 0; i < values.size(); ++i) {
    const bool constant = is_plain_value(values[i]) && is_constant(values[i]);
    names.push_back(constant ? values[i] : fmt::format("struct_extract({}, 'v{}')", name.text(), i));
    if (!constant) members += fmt::format("{}v{}: {}", members.empty() ? "" : ", ", i, values[i]);
  }
  return fmt::format("list_transform([{{{}}}], lambda {}: {})[1]", members, name.text(),
                     form(names));
}

std::string DuckdbPrinter::with_columns(
    const std::vector<ExprPtr>& values,
    const std::function<std::string(const std::vector<ExprPtr>&)>& form) {
  std::vector<std::string> texts;
  for (const ExprPtr& value : values) texts.push_back(expr(value));
  if (error_) return "";
  if (std::all_of(texts.begin(), texts.end(), is_plain_value)) return form(values);
  std::vector<ExprPtr> inner = values;
  std::vector<std::string> bound;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i]->as<Literal>() != nullptr) continue;
    inner[i] = make_expr(ColumnRef{{"sl_once"}}, values[i]->place);
    computed_.emplace(inner[i].get(),
                      Computed{"", type_of(*values[i]), char_length(values[i]), inner[i]});
    bound.push_back(texts[i]);
  }
  return computed_once(bound, [&](const std::vector<std::string>& names) {
    size_t next = 0;
    for (const ExprPtr& value : inner) {
      if (const auto found = computed_.find(value.get()); found != computed_.end())
        found->second.text = names[next++];
    }
    return form(inner);
  });
}

}  // namespace strandline::sql
