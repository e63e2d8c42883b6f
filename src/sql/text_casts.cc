// STRING to other types, as DuckDB text: Spark takes other texts for numbers and dates than the
// engine does.
#include <fmt/format.h>

#include <algorithm>

#include "sql/duckdb_core.h"
#include "sql/names.h"

namespace strandline::sql {

namespace {

// A year, a month and a day, of which the last may be left out; after a day, whatever follows a T
// or a blank.
constexpr const char* kDatePattern =
    R"((?s)[\x00-\x20\x7F]*[+-]?[0-9]{4,7}(-[0-9]{1,2}(-[0-9]{1,2}([ T].*)?)?)?[\x00-\x20\x7F]*)";

bool is_blank(char c) { return (c >= '\0' && c <= ' ') || c == '\x7f'; }

// With the month and day that are left out.
std::string whole_date_of(const std::string& text) {
  return fmt::format(
      "CASE WHEN length({0}) < 8 THEN regexp_replace(regexp_replace({0}, '^([0-9]{{4}})$', "
      "'\\1-01'), '^([0-9]{{4}}-[0-9]{{1,2}})$', '\\1-01') ELSE {0} END",
      text);
}

}  // namespace

std::string whole_date(const std::string& text) {
  const auto digits = [&](size_t begin, size_t count) {
    return text.size() >= begin + count &&
           std::all_of(text.begin() + static_cast<long>(begin),
                       text.begin() + static_cast<long>(begin + count),
                       [](char c) { return c >= '0' && c <= '9'; });
  };
  constexpr size_t kYear = 4;
  if (!digits(0, kYear)) return text;
  if (text.size() == kYear) return text + "-01-01";
  const size_t rest = text.size() - kYear - 1;
  const bool month = text[kYear] == '-' && (rest == 1 || rest == 2) && digits(kYear + 1, rest);
  return month ? text + "-01" : text;
}

bool is_date_text(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  const auto take = [&](size_t least, size_t most) {
    const size_t count = std::min(text.find_first_not_of("0123456789"), text.size());
    text.remove_prefix(count);
    return count >= least && count <= most;
  };
  const auto dash = [&] {
    const bool found = !text.empty() && text.front() == '-';
    if (found) text.remove_prefix(1);
    return found;
  };
  if (!text.empty() && (text.front() == '+' || text.front() == '-')) text.remove_prefix(1);
  if (!take(4, 7)) return false;
  for (int part = 0; part < 2; ++part) {
    if (text.empty()) return true;
    if (!dash() || !take(1, 2)) return false;
  }
  return text.empty() || text.front() == 'T' || text.front() == ' ';
}

std::string trimmed(const std::string& text) {
  std::string blanks = " \\x7F";
  for (int c = 1; c < ' '; ++c) blanks += fmt::format("\\x{:02X}", c);
  return fmt::format("trim({}, E'{}')", text, blanks);
}

std::string duckdb_try_cast_of_text(const std::string& text, const DataType& to) {
  const std::string target = duckdb_type(to);
  if (is_integer(to.id)) {  // digits with a sign only
    return fmt::format(
        "CASE WHEN regexp_full_match({0}, '[+-]?[0-9]+') THEN TRY_CAST({0} AS {1}) END",
        trimmed(text), target);
  }
  switch (to.id) {
    case TypeId::kDate:
      return fmt::format("CASE WHEN regexp_full_match({}, '{}') THEN TRY_CAST({} AS DATE) END",
                         text, kDatePattern, whole_date_of(text));
    case TypeId::kTimestamp:
      return fmt::format("TRY_CAST({} AS TIMESTAMPTZ)", whole_date_of(text));
    case TypeId::kTimestampNtz:  // a zone in the text counts: it is read as an instant first
      return fmt::format("CAST(TRY_CAST({} AS TIMESTAMPTZ) AS TIMESTAMP)", whole_date_of(text));
    case TypeId::kBinary:
      return fmt::format("encode({})", text);
    case TypeId::kString:
      return text;
    default:
      return fmt::format("TRY_CAST({} AS {})", trimmed(text), target);
  }
}

std::string duckdb_cast_of_text(const std::string& text, const DataType& to) {
  if (to.id == TypeId::kString || to.id == TypeId::kBinary)
    return duckdb_try_cast_of_text(text, to);
  return fmt::format(
      "CASE WHEN {0} IS NOT NULL THEN coalesce({1}, error('[CAST_INVALID_INPUT] the text ''' || "
      "{0} || ''' is no {2}: use try_cast for null instead')) END",
      text, duckdb_try_cast_of_text(text, to), to_sql(to));
}

// DuckDB leaves out the digit before the point of a DECIMAL(p, p).
std::string decimal_text(const std::string& text) {
  return fmt::format(R"(regexp_replace({}, '^(-?)[.]', '\10.'))", text);
}

namespace {

std::string text_of(const std::string& value, const DataType& type, int depth);

// A part of an array, map or struct, which may be null.
std::string text_of_part(const std::string& value, const DataType& type, int depth) {
  if (type.id == TypeId::kVoid) return "'null'";
  const std::string text = text_of(value, type, depth);
  return text.empty() ? "" : fmt::format("coalesce({}, 'null')", text);
}

// As Spark prints them: [1, 2], {a -> 1, b -> null}, {1, x}.
std::string text_of_nested(const std::string& value, const DataType& type, int depth) {
  const auto item = fmt::format("sl_text_{}", depth);
  const auto list = [&](char open, const std::string& items, const std::string& text, char close) {
    // Of an empty list the engine makes a null.
    return fmt::format(
        "CASE WHEN {} IS NOT NULL THEN '{}' || coalesce(array_to_string(list_transform({}, lambda "
        "{}: {}), ', '), '') || '{}' END",
        value, open, items, item, text, close);
  };
  if (type.id == TypeId::kArray) {
    const auto part = text_of_part(item, *type.element, depth + 1);
    return part.empty() ? "" : list('[', value, part, ']');
  }
  if (type.id == TypeId::kMap) {
    const auto key = text_of_part(item + ".key", *type.key, depth + 1);
    const auto part = text_of_part(item + ".value", *type.element, depth + 1);
    if (key.empty() || part.empty()) return "";
    return list('{', fmt::format("map_entries({})", value),
                fmt::format("{} || ' -> ' || {}", key, part), '}');
  }
  std::string parts;
  for (size_t i = 0; i < type.fields->size(); ++i) {
    const auto part = text_of_part(fmt::format("struct_extract_at({}, {})", value, i + 1),
                                   (*type.fields)[i].type, depth);
    if (part.empty()) return "";
    parts += (i == 0 ? "" : " || ', ' || ") + part;
  }
  return fmt::format("CASE WHEN {} IS NOT NULL THEN '{{' || {} || '}}' END", value, parts);
}

std::string text_of(const std::string& value, const DataType& type, int depth) {
  switch (type.id) {
    case TypeId::kString:
      return value;
    case TypeId::kByte:
    case TypeId::kShort:
    case TypeId::kInteger:
    case TypeId::kLong:
    case TypeId::kBoolean:
    case TypeId::kDate:
    case TypeId::kTimestampNtz:
      return fmt::format("CAST({} AS VARCHAR)", value);
    case TypeId::kDecimal:
      return decimal_text(fmt::format("CAST({} AS VARCHAR)", value));
    case TypeId::kDouble:
      return fmt::format("sl_double_text({})", value);
    case TypeId::kFloat:
      return fmt::format("sl_float_text({})", value);
    case TypeId::kTimestamp:
      return fmt::format("CAST(CAST({} AS TIMESTAMP) AS VARCHAR)", value);
    case TypeId::kBinary:
      return fmt::format("decode({})", value);
    case TypeId::kArray:
    case TypeId::kMap:
    case TypeId::kStruct:
      return text_of_nested(value, type, depth);
    default:
      return "";
  }
}

}  // namespace

std::string duckdb_text_of(const std::string& value, const DataType& type) {
  return text_of(value, type, 0);
}

}  // namespace strandline::sql
