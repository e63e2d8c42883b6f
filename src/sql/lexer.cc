#include "sql/lexer.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <map>

#include "base/error.h"
#include "base/utf8.h"
#include "sql/names.h"

namespace strandline::sql {

size_t utf8_length(char first) {
  const auto byte = static_cast<unsigned char>(first);
  if (byte >= 0xF0) return 4;
  if (byte >= 0xE0) return 3;
  if (byte >= 0xC0) return 2;
  return 1;
}

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_word_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool is_word_char(char c) { return is_word_start(c) || is_digit(c); }

// Bytes of the white space at `at`, Unicode's included (texts copied from web pages hold them); 0
// for none.
size_t space_length(std::string_view text, size_t at) {
  if (is_space(text[at])) return 1;
  if (static_cast<unsigned char>(text[at]) < 0x80) return 0;
  static constexpr std::array<std::string_view, 8> kSpaces = {
      "\xC2\xA0",  // no-break space
      "\xE1\x9A\x80", "\xE2\x80\xA8", "\xE2\x80\xA9", "\xE2\x80\xAF", "\xE2\x81\x9F",
      "\xE3\x80\x80",  // ideographic space
      "\xEF\xBB\xBF",  // byte order mark
  };
  for (const std::string_view space : kSpaces) {
    if (text.substr(at, space.size()) == space) return space.size();
  }
  // U+2000 to U+200B
  if (text.substr(at, 2) == "\xE2\x80" && at + 2 < text.size() &&
      static_cast<unsigned char>(text[at + 2]) <= 0x8B) {
    return 3;
  }
  return 0;
}

// Where each stretch of the substituted text came from.
class PlaceMap {
 public:
  PlaceMap(std::string_view original, std::string file)
      : original_(original), file_(std::move(file)) {}

  // Bytes from `to` on come from `from`; inside a substituted value every byte stands at its ${.
  void add(size_t to, size_t from, bool inside_value) {
    pieces_.push_back({to, from, inside_value});
  }

  // Offsets must not go down between calls.
  SourcePlace place_of(size_t offset) {
    while (piece_ + 1 < pieces_.size() && pieces_[piece_ + 1].to <= offset) ++piece_;
    size_t source = offset;
    if (!pieces_.empty()) {
      const Piece& piece = pieces_[piece_];
      source = piece.inside_value ? piece.from : piece.from + (offset - piece.to);
    }
    source = std::min(source, original_.size());
    if (source < at_) {  // a value's place lies before where we are
      at_ = 0;
      line_ = 1;
      column_ = 1;
    }
    while (at_ < source) {
      if (original_[at_] == '\n') {
        ++line_;
        column_ = 1;
        ++at_;
      } else {
        at_ = std::min(at_ + utf8_length(original_[at_]), original_.size());
        ++column_;
      }
    }
    return SourcePlace{file_, line_, column_};
  }

 private:
  struct Piece {
    size_t to, from;
    bool inside_value;
  };
  std::string_view original_;
  std::string file_;
  std::vector<Piece> pieces_;
  size_t piece_ = 0;
  size_t at_ = 0;
  int line_ = 1;
  int column_ = 1;
};

// Length of the comment that starts at `at`, 0 if none. Bracketed comments nest.
size_t comment_length(std::string_view text, size_t at, bool* closed) {
  *closed = true;
  if (text.substr(at, 2) == "--") {
    size_t end = at + 2;
    while (end < text.size() && text[end] != '\n') ++end;
    return end - at;
  }
  if (text.substr(at, 2) != "/*") return 0;
  int depth = 1;
  size_t end = at + 2;
  while (end < text.size() && depth > 0) {
    if (text.substr(end, 2) == "/*") {
      ++depth;
      end += 2;
    } else if (text.substr(end, 2) == "*/") {
      --depth;
      end += 2;
    } else {
      ++end;
    }
  }
  *closed = depth == 0;
  return end - at;
}

// Length of the part before the first byte that is not UTF-8.
size_t utf8_part(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    char32_t code_point = 0;
    const size_t length = decode_utf8(text.substr(at), &code_point);
    if (length == 0) break;
    at += length;
  }
  return at;
}

class Lexer {
 public:
  Lexer(std::string_view original, const std::string& file, const Substitution& substitution)
      : map_(original, file) {
    substitute(original, file, substitution);
  }

  Lexed run() {
    // Nothing of such a text is what it seems: none of it is read.
    if (const size_t length = utf8_part(text_); length < text_.size()) {
      fail(length, "the text is not UTF-8 from here on: save it as UTF-8");
      at_ = text_.size();
    }
    while (at_ < text_.size()) {
      if (const size_t space = space_length(text_, at_); space > 0) {
        at_ += space;
        continue;
      }
      bool closed = true;
      if (const size_t length = comment_length(text_, at_, &closed); length > 0) {
        if (!closed) fail(at_, "the comment that starts with /* is not closed: add */");
        at_ += length;
        continue;
      }
      next_token();
    }
    Token end;
    end.begin = end.end = text_.size();
    end.place = map_.place_of(text_.size());
    tokens_.push_back(std::move(end));
    return Lexed{std::move(text_), std::move(tokens_), std::move(errors_)};
  }

 private:
  void fail(size_t offset, const std::string& message) {
    Error error = invalid_argument("PARSE_SYNTAX_ERROR", "{}", message);
    error.place = map_.place_of(offset);
    errors_.push_back(std::move(error));
  }

  // The statement that has just ended, if it is SET key = value.
  void remember_set(std::string_view statement) {
    size_t at = 0;
    bool closed = true;
    while (at < statement.size()) {
      if (const size_t space = space_length(statement, at); space > 0) {
        at += space;
      } else if (const size_t comment = comment_length(statement, at, &closed); comment > 0) {
        at += comment;
      } else {
        break;
      }
    }
    if (upper_ascii(std::string(statement.substr(at, 3))) != "SET" || at + 3 >= statement.size() ||
        !is_space(statement[at + 3])) {
      return;
    }
    const size_t equals = statement.find('=', at);
    if (equals == std::string_view::npos) return;
    set_values_[trimmed(statement.substr(at + 3, equals - at - 3))] =
        trimmed(statement.substr(equals + 1));
  }

  static std::string trimmed(std::string_view text) {
    while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
    if (text.size() > 1 && text.front() == '`' && text.back() == '`')
      text = text.substr(1, text.size() - 2);
    return std::string(text);
  }

  // SET statements of the text come before the configuration.
  std::optional<std::string> value_of(const std::string& key, const Substitution& lookup) const {
    if (key == "$") return "$";
    if (const auto found = set_values_.find(key); found != set_values_.end()) return found->second;
    return lookup ? lookup(key) : std::nullopt;
  }

  void substitute(std::string_view original, const std::string& file, const Substitution& lookup) {
    map_.add(0, 0, false);
    size_t at = 0;
    char quote = 0;
    size_t statement_begin = 0;
    while (at < original.size()) {
      const char c = original[at];
      bool closed = true;
      const size_t comment = quote == 0 ? comment_length(original, at, &closed) : 0;
      if (comment > 0) {
        text_.append(original.substr(at, comment));
        at += comment;
        continue;
      }
      if (original.substr(at, 2) == "${") {
        const size_t close = original.find('}', at);
        const size_t line_end = original.find('\n', at);
        if (close != std::string_view::npos && close < line_end) {
          const std::string key(original.substr(at + 2, close - at - 2));
          std::optional<std::string> value = value_of(key, lookup);
          if (!value && !lookup) {
            text_.append(original.substr(at, 2));
            at += 2;
            continue;
          }
          if (!value) {
            Error error = invalid_argument("UNKNOWN_CONFIGURATION_KEY",
                                           "${{{}}} has no value: set '{}' in the pipeline's "
                                           "configuration or with SET {} = ...",
                                           key, key, key);
            PlaceMap map(original, file);
            error.place = map.place_of(at);
            errors_.push_back(std::move(error));
            value = "";
          }
          map_.add(text_.size(), at, true);
          text_ += *value;
          at = close + 1;
          map_.add(text_.size(), at, false);
          continue;
        }
      }
      if (quote == 0 && (c == '\'' || c == '"' || c == '`')) {
        quote = c;
      } else if (quote != 0 && c == '\\' && quote != '`' && at + 1 < original.size()) {
        text_ += c;
        text_ += original[at + 1];
        at += 2;
        continue;
      } else if (c == quote) {
        quote = 0;
      } else if (quote == 0 && c == ';') {
        remember_set(std::string_view(text_).substr(statement_begin));
        statement_begin = text_.size() + 1;
      }
      text_ += c;
      ++at;
    }
  }

  void push(TokenKind kind, size_t begin, std::string text) {
    Token token;
    token.kind = kind;
    token.text = std::move(text);
    token.begin = begin;
    token.end = at_;
    token.place = map_.place_of(begin);
    if (kind == TokenKind::kWord) token.upper = upper_ascii(token.text);
    tokens_.push_back(std::move(token));
  }

  char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void next_token() {
    const char c = peek();
    if (c == '\'' || c == '"') return string_token(false);
    if ((c == 'r' || c == 'R') && (peek(1) == '\'' || peek(1) == '"')) {
      ++at_;
      return string_token(true);
    }
    if ((c == 'x' || c == 'X') && (peek(1) == '\'' || peek(1) == '"')) return binary_token();
    if (c == '`') return quoted_name();
    if (is_digit(c) || (c == '.' && is_digit(peek(1)) && !after_name())) return number_or_word();
    if (is_word_start(c)) return word();
    symbol();
  }

  // In "a.1" the dot separates names; in ", .5" it begins a number.
  bool after_name() const {
    if (tokens_.empty() || tokens_.back().end != at_) return false;
    const Token& last = tokens_.back();
    return last.kind == TokenKind::kWord || last.kind == TokenKind::kQuotedName ||
           last.text == ")" || last.text == "]";
  }

  void word() {
    const size_t begin = at_;
    while (at_ < text_.size() && is_word_char(text_[at_]) && space_length(text_, at_) == 0) ++at_;
    push(TokenKind::kWord, begin, text_.substr(begin, at_ - begin));
  }

  void number_or_word() {
    const size_t begin = at_;
    while (is_digit(peek())) ++at_;
    if (peek() == '.' && !is_word_start(peek(1)) && peek(1) != '.' && peek(1) != '[') {
      ++at_;
      while (is_digit(peek())) ++at_;
    }
    if ((peek() == 'e' || peek() == 'E') &&
        (is_digit(peek(1)) || ((peek(1) == '+' || peek(1) == '-') && is_digit(peek(2))))) {
      at_ += 2;
      while (is_digit(peek())) ++at_;
    }
    std::string digits = text_.substr(begin, at_ - begin);
    const size_t suffix_begin = at_;
    while (at_ < text_.size() && is_word_char(text_[at_])) ++at_;
    const std::string suffix = upper_ascii(text_.substr(suffix_begin, at_ - suffix_begin));
    static constexpr std::array kSuffixes = {"", "L", "S", "Y", "D", "F", "BD"};
    if (std::find(kSuffixes.begin(), kSuffixes.end(), suffix) == kSuffixes.end()) {
      // Names may begin with digits.
      if (digits.find('.') == std::string::npos) {
        return push(TokenKind::kWord, begin, text_.substr(begin, at_ - begin));
      }
      fail(begin, fmt::format("'{}' is not a number", text_.substr(begin, at_ - begin)));
    }
    push(TokenKind::kNumber, begin, std::move(digits));
    tokens_.back().suffix = suffix;
  }

  void quoted_name() {
    const size_t begin = at_++;
    std::string name;
    while (at_ < text_.size()) {
      if (text_[at_] == '`') {
        if (peek(1) != '`') break;
        ++at_;
      }
      name += text_[at_++];
    }
    if (at_ >= text_.size()) {
      fail(begin, "the name that starts with ` is not closed: add `");
    } else {
      ++at_;
    }
    if (name.empty()) fail(begin, "a name in backquotes cannot be empty");
    push(TokenKind::kQuotedName, begin, std::move(name));
  }

  void binary_token() {
    const size_t begin = at_++;
    const char quote = text_[at_++];
    std::string digits;
    while (at_ < text_.size() && text_[at_] != quote) digits += text_[at_++];
    if (at_ >= text_.size()) {
      fail(begin,
           fmt::format("the literal that starts with X{} is not closed: add {}", quote, quote));
    } else {
      ++at_;
    }
    if (digits.size() % 2 == 1) digits.insert(digits.begin(), '0');
    const bool hex = std::all_of(digits.begin(), digits.end(), [](char c) {
      return std::isxdigit(static_cast<unsigned char>(c)) != 0;
    });
    if (!hex) fail(begin, "X'...' takes hexadecimal digits only");
    push(TokenKind::kBinary, begin, hex ? upper_ascii(digits) : "");
  }

  void string_token(bool raw) {
    const size_t begin = raw ? at_ - 1 : at_;
    const char quote = text_[at_++];
    std::string value;
    bool closed = false;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == quote) {
        if (!raw && peek(1) == quote) {  // a doubled quote stands for one
          value += quote;
          at_ += 2;
          continue;
        }
        ++at_;
        closed = true;
        break;
      }
      if (c == '\\' && !raw && at_ + 1 < text_.size()) {
        ++at_;
        escape(value);
        continue;
      }
      value += c;
      ++at_;
    }
    if (!closed)
      fail(begin,
           fmt::format("the string that starts with {} is not closed: add {}", quote, quote));
    push(TokenKind::kString, begin, std::move(value));
  }

  // The character after a backslash.
  void escape(std::string& value) {
    const char c = text_[at_];
    const auto code_point = [&](size_t digits) {
      uint32_t code = 0;
      for (size_t i = 1; i <= digits; ++i) {
        const char d = peek(i);
        if (std::isxdigit(static_cast<unsigned char>(d)) == 0) return false;
        code = code * 16 + static_cast<uint32_t>(is_digit(d) ? d - '0' : (d | 0x20) - 'a' + 10);
      }
      if (code > 0x10FFFF) return false;
      size_t used = digits + 1;
      // Two \u escapes may spell one character outside the basic plane.
      if (digits == 4 && code >= 0xD800 && code <= 0xDFFF) {
        uint32_t low = 0;
        if (code >= 0xDC00 || peek(5) != '\\' || peek(6) != 'u') return false;
        for (size_t i = 7; i <= 10; ++i) {
          const char d = peek(i);
          if (std::isxdigit(static_cast<unsigned char>(d)) == 0) return false;
          low = low * 16 + static_cast<uint32_t>(is_digit(d) ? d - '0' : (d | 0x20) - 'a' + 10);
        }
        if (low < 0xDC00 || low > 0xDFFF) return false;
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        used = 11;
      }
      if (code >= 0xD800 && code <= 0xDFFF) return false;
      append_utf8(&value, static_cast<char32_t>(code));
      at_ += used;
      return true;
    };
    if (c == 'u' && code_point(4)) return;
    if (c == 'U' && code_point(8)) return;
    if (c >= '0' && c <= '1' && peek(1) >= '0' && peek(1) <= '7' && peek(2) >= '0' &&
        peek(2) <= '7') {
      append_utf8(&value,
                  static_cast<char32_t>((c - '0') * 64 + (peek(1) - '0') * 8 + (peek(2) - '0')));
      at_ += 3;
      return;
    }
    switch (c) {
      case '0':
        value += '\0';
        break;
      case 'b':
        value += '\b';
        break;
      case 'n':
        value += '\n';
        break;
      case 'r':
        value += '\r';
        break;
      case 't':
        value += '\t';
        break;
      case 'Z':
        value += '\x1A';
        break;
      case '%':
        value += "\\%";
        break;  // kept for LIKE
      case '_':
        value += "\\_";
        break;
      default:
        value += c;
    }
    ++at_;
  }

  void symbol() {
    static constexpr std::array<std::string_view, 11> kSymbols = {
        "<=>", "<>", "!=", "==", "<=", ">=", "||", "|>", "::", "->", "=>"};
    const std::string_view rest = std::string_view(text_).substr(at_);
    for (const std::string_view symbol : kSymbols) {
      if (rest.substr(0, symbol.size()) == symbol) {
        const size_t begin = at_;
        at_ += symbol.size();
        return push(TokenKind::kSymbol, begin, std::string(symbol));
      }
    }
    const size_t begin = at_;
    ++at_;
    static constexpr std::string_view kSingles = "()[],.;:*+-/%&|^~=<>!?@{}";
    if (kSingles.find(text_[begin]) == std::string_view::npos) {
      fail(begin,
           fmt::format("unexpected character '{}'",
                       std::isprint(static_cast<unsigned char>(text_[begin])) != 0
                           ? std::string(1, text_[begin])
                           : fmt::format("\\x{:02X}", static_cast<unsigned char>(text_[begin]))));
      return;
    }
    push(TokenKind::kSymbol, begin, std::string(1, text_[begin]));
  }

  PlaceMap map_;
  std::map<std::string, std::string> set_values_;
  std::string text_;
  size_t at_ = 0;
  std::vector<Token> tokens_;
  std::vector<Error> errors_;
};

}  // namespace

Lexed lex(std::string_view text, const std::string& file, const Substitution& substitution) {
  return Lexer(text, file, substitution).run();
}

}  // namespace strandline::sql
