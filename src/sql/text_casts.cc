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

std::string whole_date_of(const std::string& value) {
  return computed_once(value, [](const std::string& text) {
    return fmt::format(
        "CASE WHEN length({0}) < 8 THEN regexp_replace(regexp_replace({0}, '^([0-9]{{4}})$', "
        "'\\1-01'), '^([0-9]{{4}}-[0-9]{{1,2}})$', '\\1-01') ELSE {0} END",
        text);
  });
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

std::string earlier_instant(const std::string& instant, const std::string& zone) {
  // The engine takes the later of two. That is an hour, or what the clocks went back, after the
  // other: found by the zone's time a day before, when clocks had not gone back yet.
  return computed_once(std::vector{instant, zone}, [](const std::vector<std::string>& values) {
    const auto local = fmt::format("timezone({}, {})", values[1], values[0]);
    const auto back = fmt::format("((timezone({}, {} - INTERVAL 1 DAY) + INTERVAL 1 DAY) - {})",
                                  values[1], values[0], local);
    // No clock was set before, and a day before the first of all instants is none.
    return fmt::format(
        "CASE WHEN {0} > TIMESTAMPTZ '1800-01-01 00:00:00+00' AND isfinite({0}) AND {1} > INTERVAL "
        "0 SECOND AND timezone({2}, {0} - {1}) = {3} THEN {0} - {1} ELSE {0} END",
        values[0], back, values[1], local);
  });
}

std::string duckdb_instant_of_text(const std::string& text, bool try_cast) {
  const char* word = try_cast ? "TRY_CAST" : "CAST";
  // A zone's name at the end. Offsets, UTC and Z have no time twice.
  constexpr const char* kZone = "[0-9]\\s*([A-Za-z][A-Za-z0-9_+/-]*[A-Za-z])\\s*$";
  // Of a constant it can be seen.
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const size_t last = text.size() - std::min<size_t>(text.size(), 2);
  if (text.starts_with('\'') && is_plain_value(text) && text[last] != ' ' &&
      !(is_letter(text[last]) && last > 0 && is_letter(text[last - 1]))) {
    return fmt::format("{}({} AS TIMESTAMPTZ)", word, text);
  }
  return computed_once(text, [&](const std::string& value) {
    const auto instant = fmt::format("{}({} AS TIMESTAMPTZ)", word, value);
    return fmt::format(
        "CASE WHEN regexp_matches({0}, '{1}') THEN {2} ELSE {3} END", value, kZone,
        earlier_instant(instant, fmt::format("regexp_extract({}, '{}', 1)", value, kZone)),
        instant);
  });
}

std::string duckdb_try_cast_of_text(const std::string& text, const DataType& to) {
  const std::string target = duckdb_type(to);
  if (is_integer(to.id)) {  // digits with a sign only
    return computed_once(trimmed(text), [&](const std::string& once) {
      return fmt::format(
          "CASE WHEN regexp_full_match({0}, '[+-]?[0-9]+') THEN TRY_CAST({0} AS {1}) END", once,
          target);
    });
  }
  switch (to.id) {
    case TypeId::kDate:
      return computed_once(text, [](const std::string& once) {
        return fmt::format("CASE WHEN regexp_full_match({}, '{}') THEN TRY_CAST({} AS DATE) END",
                           once, kDatePattern, whole_date_of(once));
      });
    case TypeId::kTimestamp:
      return duckdb_instant_of_text(whole_date_of(text), true);
    case TypeId::kTimestampNtz:  // a zone in the text counts: it is read as an instant first
      return fmt::format("CAST({} AS TIMESTAMP)",
                         duckdb_instant_of_text(whole_date_of(text), true));
    case TypeId::kBinary:
      return fmt::format("encode({})", text);
    case TypeId::kString:
      return text;
    case TypeId::kDecimal:  // the engine reads 9.5E-12 as 1 where there are few digits
      return fmt::format("TRY_CAST(sl_decimal_of_text({}, {}) AS {})", trimmed(text), to.scale,
                         target);
    default:
      return fmt::format("TRY_CAST({} AS {})", trimmed(text), target);
  }
}

std::string duckdb_cast_of_text(const std::string& text, const DataType& to) {
  if (to.id == TypeId::kString || to.id == TypeId::kBinary)
    return duckdb_try_cast_of_text(text, to);
  return computed_once(text, [&](const std::string& once) {
    return fmt::format(
        "CASE WHEN {0} IS NOT NULL THEN coalesce({1}, error('[CAST_INVALID_INPUT] the text ''' || "
        "{0} || ''' is no {2}: use try_cast for null instead')) END",
        once, duckdb_try_cast_of_text(once, to), to_sql(to));
  });
}

namespace {

std::string exact_cast(const std::string& value, const DataType& from, const DataType& to,
                       bool try_cast, int depth);

// Every element of a list by the text that stands for it.
std::string each(const std::string& list, const std::string& item, const std::string& text) {
  return fmt::format("list_transform({}, lambda {}: {})", list, item, text);
}

std::string exact_cast_of_parts(const std::string& value, const DataType& from, const DataType& to,
                                bool try_cast, int depth) {
  const auto item = fmt::format("sl_cast_{}", depth);
  const auto part = [&](const std::string& text, const DataType& part_from,
                        const DataType& part_to) {
    const std::string exact = exact_cast(text, part_from, part_to, try_cast, depth + 1);
    return exact.empty() ? fmt::format("{}({} AS {})", try_cast ? "TRY_CAST" : "CAST", text,
                                       duckdb_type(part_to))
                         : exact;
  };
  if (from.id == TypeId::kArray) return each(value, item, part(item, *from.element, *to.element));
  return fmt::format(
      "map_from_entries({})",
      each(fmt::format("map_entries({})", value), item,
           fmt::format("{{'key': {}, 'value': {}}}", part(item + ".key", *from.key, *to.key),
                       part(item + ".value", *from.element, *to.element))));
}

std::string exact_cast(const std::string& value, const DataType& from, const DataType& to,
                       bool try_cast, int depth) {
  const auto is_inexact = [](const DataType& a, const DataType& b) {
    return !exact_cast("x", a, b, false, 0).empty();
  };
  if (from.id == TypeId::kArray && to.id == TypeId::kArray) {
    return is_inexact(*from.element, *to.element)
               ? exact_cast_of_parts(value, from, to, try_cast, depth)
               : "";
  }
  if (from.id == TypeId::kMap && to.id == TypeId::kMap) {
    return is_inexact(*from.key, *to.key) || is_inexact(*from.element, *to.element)
               ? exact_cast_of_parts(value, from, to, try_cast, depth)
               : "";
  }
  const std::string target = duckdb_type(to);
  if (is_floating(from.id) && to.id == TypeId::kDecimal) {
    return fmt::format("CAST(sl_decimal_of_double(CAST({} AS DOUBLE), {}, {}, {}) AS {})", value,
                       to.precision, to.scale, !try_cast, target);
  }
  // The engine divides the digits as a number, which must be exact for the quotient to be nearest.
  constexpr int kDoubleDigits = 15;
  constexpr int kFloatDigits = 7;
  if (from.id == TypeId::kDecimal && is_floating(to.id) &&
      from.precision > (to.id == TypeId::kDouble ? kDoubleDigits : kFloatDigits)) {
    return fmt::format("CAST(CAST({} AS VARCHAR) AS {})", value, target);
  }
  return "";
}

}  // namespace

std::string duckdb_exact_cast(const std::string& value, const DataType& from, const DataType& to,
                              bool try_cast) {
  return exact_cast(value, from, to, try_cast, 0);
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
