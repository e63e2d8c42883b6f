// Tokens of Spark SQL text with their places (sql.md, lexical rules).
#pragma once

#include <strandline/result.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace strandline::sql {

enum class TokenKind {
  kWord,        // unquoted name or keyword; upper holds it in capitals
  kQuotedName,  // `name`, quotes undone
  kString,      // '...' or "...", escapes undone
  kBinary,      // X'...', upper-case hex digits
  kNumber,      // digits and exponent; suffix holds L, S, Y, D, F, BD in capitals
  kSymbol,
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;
  std::string upper;   // kWord
  std::string suffix;  // kNumber
  size_t begin = 0;    // offsets into Lexed::text
  size_t end = 0;
  SourcePlace place;
};

// ${key} -> value; nullopt is an error there. Without one ${key} is text. ${$} is always a $.
using Substitution = std::function<std::optional<std::string>(const std::string& key)>;

struct Lexed {
  std::string text;           // after substitution
  std::vector<Token> tokens;  // the last is kEnd
  std::vector<Error> errors;  // unclosed strings and comments, unknown characters, unknown ${key}
};

Lexed lex(std::string_view text, const std::string& file, const Substitution& substitution = {});

// Number of bytes of the UTF-8 sequence that starts with this byte (1 for a stray byte).
size_t utf8_length(char first);

}  // namespace strandline::sql
