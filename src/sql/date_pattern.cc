#include "sql/date_pattern.h"

#include <array>

#include "base/error.h"

namespace strandline::sql {

namespace {

struct Letters {
  std::string_view spark;
  std::string_view format;  // empty: not available
  std::string_view parse;
};

constexpr std::array kLetters = {
    Letters{"yyyy", "%Y", "%Y"},
    Letters{"y", "%Y", "%Y"},
    Letters{"uuuu", "%Y", "%Y"},
    Letters{"yy", "%y", "%y"},
    Letters{"MM", "%m", "%m"},
    Letters{"M", "%-m", "%-m"},
    Letters{"MMM", "%b", "%b"},
    Letters{"MMMM", "%B", "%B"},
    Letters{"LL", "%m", "%m"},
    Letters{"L", "%-m", "%-m"},
    Letters{"LLL", "%b", "%b"},
    Letters{"LLLL", "%B", "%B"},
    Letters{"dd", "%d", "%d"},
    Letters{"d", "%-d", "%-d"},
    Letters{"DDD", "%j", "%j"},
    Letters{"D", "%-j", "%-j"},
    Letters{"HH", "%H", "%H"},
    Letters{"H", "%-H", "%-H"},
    Letters{"hh", "%I", "%I"},
    Letters{"h", "%-I", "%-I"},
    Letters{"mm", "%M", "%M"},
    Letters{"m", "%-M", "%-M"},
    Letters{"ss", "%S", "%S"},
    Letters{"s", "%-S", "%-S"},
    Letters{"SSS", "%g", "%g"},
    Letters{"SSSSSS", "%f", "%f"},
    Letters{"SSSSSSSSS", "", "%n"},
    Letters{"a", "%p", "%p"},
    Letters{"E", "%a", "%a"},
    Letters{"EE", "%a", "%a"},
    Letters{"EEE", "%a", "%a"},
    Letters{"EEEE", "%A", "%A"},
    // The session's time zone is UTC.
    Letters{"XXX", "Z", "%z"},
    Letters{"XX", "Z", "%z"},
    Letters{"X", "Z", "%z"},
    Letters{"xxx", "+00:00", "%z"},
    Letters{"xx", "+0000", "%z"},
    Letters{"Z", "+0000", "%z"},
    Letters{"ZZZ", "+0000", "%z"},
    Letters{"VV", "UTC", ""},
    Letters{"z", "UTC", ""},
};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

}  // namespace

Result<std::string> strftime_pattern(std::string_view pattern, PatternUse use) {
  std::string result;
  const auto literal = [&](char c) {
    if (c == '%') result += '%';
    result += c;
  };
  size_t at = 0;
  while (at < pattern.size()) {
    const char c = pattern[at];
    if (c == '\'') {
      ++at;
      if (at < pattern.size() && pattern[at] == '\'') {
        literal('\'');
        ++at;
        continue;
      }
      while (at < pattern.size()) {
        if (pattern[at] == '\'') {
          if (at + 1 >= pattern.size() || pattern[at + 1] != '\'') break;
          ++at;
        }
        literal(pattern[at++]);
      }
      if (at >= pattern.size()) {
        return invalid_argument("INVALID_DATETIME_PATTERN",
                                "the pattern '{}' has a quote that is not closed", pattern);
      }
      ++at;
      continue;
    }
    if (c == '[' || c == ']' || c == '#' || c == '{' || c == '}') {
      return unsupported("UNSUPPORTED_DATETIME_PATTERN",
                         "'{}' in the pattern '{}' is not supported: write a fixed pattern", c,
                         pattern);
    }
    if (!is_letter(c)) {
      literal(c);
      ++at;
      continue;
    }
    size_t end = at;
    while (end < pattern.size() && pattern[end] == c) ++end;
    const std::string_view letters = pattern.substr(at, end - at);
    std::string_view translated;
    for (const Letters& candidate : kLetters) {
      if (candidate.spark == letters)
        translated = use == PatternUse::kFormat ? candidate.format : candidate.parse;
    }
    if (translated.empty()) {
      return unsupported("UNSUPPORTED_DATETIME_PATTERN",
                         "'{}' in the pattern '{}' is not supported", letters, pattern);
    }
    result += translated;
    at = end;
  }
  return result;
}

}  // namespace strandline::sql
