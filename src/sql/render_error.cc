#include <fmt/format.h>

#include <algorithm>

#include "base/secret_places.h"
#include "base/secrets.h"
#include "base/utf8.h"
#include "sql/lexer.h"
#include "sql/parser.h"

namespace strandline::sql {

namespace {

// Columns a character takes on a terminal: 2 for East Asian wide letters and emoji, 0 for marks
// that sit on another character.
int width_of(char32_t c) {
  if ((c >= 0x0300 && c <= 0x036F) || (c >= 0x200B && c <= 0x200F) || (c >= 0xFE00 && c <= 0xFE0F))
    return 0;
  const bool wide = (c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0xA4CF) ||
                    (c >= 0xAC00 && c <= 0xD7A3) || (c >= 0xF900 && c <= 0xFAFF) ||
                    (c >= 0xFE30 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF60) ||
                    (c >= 0xFFE0 && c <= 0xFFE6) || (c >= 0x1F300 && c <= 0x1FAFF) ||
                    (c >= 0x20000 && c <= 0x3FFFD);
  return wide ? 2 : 1;
}

int characters(std::string_view text) {
  int count = 0;
  for (size_t at = 0; at < text.size(); ++count) {
    char32_t code_point = 0;
    at += std::max<size_t>(decode_utf8(text.substr(at), &code_point), 1);
  }
  return count;
}

}  // namespace

std::string render_error(const Error& error, std::string_view source_text) {
  const std::string message = without_secrets(error.message);
  std::string head = error.code.empty() ? message : fmt::format("[{}] {}", error.code, message);
  if (!error.place) return head;
  const SourcePlace& place = *error.place;
  if (place.line <= 0) return place.file.empty() ? head : fmt::format("{}: {}", place.file, head);
  std::string result = place.file.empty() ? fmt::format("line {}", place.line)
                                          : fmt::format("{}:{}", place.file, place.line);
  // A record of a data file has a line alone, and the message quotes it.
  if (place.column <= 0) return fmt::format("{}: {}", result, head);
  result += fmt::format("{}{}: {}", place.file.empty() ? ", column " : ":", place.column, head);

  size_t begin = 0;
  for (int line = 1; line < place.line; ++line) {
    const size_t end = source_text.find('\n', begin);
    if (end == std::string_view::npos) return result;
    begin = end + 1;
  }
  std::string_view line = source_text.substr(begin, source_text.find('\n', begin) - begin);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);

  // Of the whole text: a literal may have begun in a line above.
  const auto secrets = secret_places(source_text);
  auto secret = std::find_if(secrets.begin(), secrets.end(),
                             [&](const SecretPlace& one) { return one.end > begin; });
  // Tabs print as one blank, so that the caret stands under its character everywhere.
  std::string shown;
  std::string indent;
  int column = 1;
  size_t at = 0;
  while (at < line.size()) {
    if (secret != secrets.end() && begin + at >= secret->end) ++secret;
    if (secret != secrets.end() && begin + at >= secret->begin) {
      const size_t end = std::min(secret->end - begin, line.size());
      const int columns = characters(line.substr(at, end - at));
      if (column + columns <= place.column) indent += "   ";
      shown += "***";
      column += columns;
      at = end;
      continue;
    }
    char32_t code_point = 0;
    size_t length = decode_utf8(line.substr(at), &code_point);
    if (length == 0) {
      length = 1;
      code_point = '?';
      shown += '?';
    } else if (code_point == '\t') {
      shown += ' ';
    } else {
      shown += line.substr(at, length);
    }
    if (column < place.column) indent.append(static_cast<size_t>(width_of(code_point)), ' ');
    ++column;
    at += length;
  }
  const std::string number = std::to_string(place.line);
  return fmt::format("{}\n {} | {}\n {} | {}^", result, number, without_values(std::move(shown)),
                     std::string(number.size(), ' '), indent);
}

}  // namespace strandline::sql
