#include "sql/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sql/ast.h"

namespace strandline::sql {

namespace {

constexpr std::array<std::string_view, 58> kClauseWords = {
    "SELECT",  "FROM",        "WHERE", "GROUP",  "HAVING",     "QUALIFY",   "WINDOW",  "ORDER",
    "LIMIT",   "OFFSET",      "UNION", "EXCEPT", "MINUS",      "INTERSECT", "JOIN",    "INNER",
    "CROSS",   "LEFT",        "RIGHT", "FULL",   "NATURAL",    "SEMI",      "ANTI",    "LATERAL",
    "ON",      "USING",       "AND",   "OR",     "NOT",        "AS",        "IN",      "IS",
    "BETWEEN", "LIKE",        "ILIKE", "RLIKE",  "REGEXP",     "CASE",      "WHEN",    "THEN",
    "ELSE",    "END",         "BY",    "INTO",   "DISTRIBUTE", "SORT",      "CLUSTER", "PIVOT",
    "UNPIVOT", "TABLESAMPLE", "DIV",   "SET",    "VALUES",     "ESCAPE",    "FETCH",   "WITH",
    "FILTER",  "OVER",
};

// Plain words that mean something of their own in some place.
constexpr std::array<std::string_view, 22> kSpecialWords = {
    "NULL",
    "TRUE",
    "FALSE",
    "EXISTS",
    "INTERVAL",
    "DISTINCT",
    "ALL",
    "STREAM",
    "TABLE",
    "CURRENT_DATE",
    "CURRENT_TIMESTAMP",
    "CURRENT_TIME",
    "CURRENT_USER",
    "LOCALTIMESTAMP",
    "DATE",
    "TIMESTAMP",
    "KEYS",
    "TIMESTAMP_NTZ",
    "STRUCT",
    "CAST",
    "TRY_CAST",
    "DELTA",
};

bool is_plain(const std::string& name) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
  const bool word = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
  if (!word) return false;
  const std::string upper = upper_ascii(name);
  return !is_clause_word(upper) &&
         std::find(kSpecialWords.begin(), kSpecialWords.end(), upper) == kSpecialWords.end();
}

std::string quoted(const std::string& text, char quote) {
  std::string result(1, quote);
  for (const char c : text) {
    result += c;
    if (c == quote) result += c;
  }
  return result + quote;
}

}  // namespace

std::string lower_ascii(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

std::string upper_ascii(std::string text) {
  for (char& c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

bool is_clause_word(std::string_view upper) {
  return std::find(kClauseWords.begin(), kClauseWords.end(), upper) != kClauseWords.end();
}

std::string spark_name(const std::string& name) {
  return is_plain(name) ? name : quoted(name, '`');
}

std::string spark_names(const std::vector<std::string>& parts) {
  std::string result;
  for (const std::string& part : parts) {
    if (!result.empty()) result += '.';
    result += spark_name(part);
  }
  return result;
}

std::string spark_string(const std::string& text) {
  std::string result = "'";
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\'' || c == '\\') {
      // A backslash before % or _ is read back as it stands.
      const bool like =
          c == '\\' && i + 1 < text.size() && (text[i + 1] == '%' || text[i + 1] == '_');
      if (!like) result += '\\';
      result += c;
    } else if (c == '\n') {
      result += "\\n";
    } else if (c == '\r') {
      result += "\\r";
    } else if (c == '\t') {
      result += "\\t";
    } else if (c == '\0') {
      result += "\\0";
    } else {
      result += c;
    }
  }
  return result + "'";
}

std::string duckdb_name(const std::string& name) { return quoted(name, '"'); }
std::string duckdb_string(const std::string& text) { return quoted(text, '\''); }

std::string to_string(const TableName& name) {
  if (name.is_path) return "delta." + quoted(name.parts.empty() ? "" : name.parts[0], '`');
  return spark_names(name.parts);
}

}  // namespace strandline::sql
