#include "base/json.h"

#include <charconv>

#include "base/error.h"
#include "base/utf8.h"

namespace strandline {

namespace {

constexpr int kMaxDepth = 500;

}  // namespace

// Recursive descent over RFC 8259.
class JsonParser {
 public:
  explicit JsonParser(std::string_view text) : rest_(text) {}

  // nullptr, or what is wrong.
  const char* parse_document(Json* out) {
    if (const char* problem = parse_value(out, 0)) return problem;
    skip_space();
    return rest_.empty() ? nullptr : "text after the value";
  }

 private:
  void skip_space() {
    const size_t start = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(start == std::string_view::npos ? rest_.size() : start);
  }

  // Takes c after white space.
  bool take(char c) {
    skip_space();
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool take_word(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  const char* parse_value(Json* out, int depth) {
    if (depth > kMaxDepth) return "nested too deeply";
    skip_space();
    if (rest_.empty()) return "cut short";
    switch (rest_[0]) {
      case '{':
        return parse_object(out, depth);
      case '[':
        return parse_array(out, depth);
      case '"':
        out->kind_ = Json::Kind::kString;
        return parse_string(&out->text_);
      case 'n':
        return take_word("null") ? nullptr : "unknown word";
      case 't':
      case 'f':
        out->kind_ = Json::Kind::kBool;
        out->bool_ = rest_[0] == 't';
        return take_word(out->bool_ ? "true" : "false") ? nullptr : "unknown word";
      default:
        out->kind_ = Json::Kind::kNumber;
        return parse_number(&out->text_);
    }
  }

  const char* parse_object(Json* out, int depth) {
    out->kind_ = Json::Kind::kObject;
    rest_.remove_prefix(1);
    if (take('}')) return nullptr;
    do {
      skip_space();
      if (rest_.empty() || rest_[0] != '"') return "a member without a name";
      if (const char* problem = parse_string(&out->names_.emplace_back())) return problem;
      if (!take(':')) return "no colon after a name";
      if (const char* problem = parse_value(&out->items_.emplace_back(), depth + 1)) return problem;
    } while (take(','));
    return take('}') ? nullptr : "an object is not closed";
  }

  const char* parse_array(Json* out, int depth) {
    out->kind_ = Json::Kind::kArray;
    rest_.remove_prefix(1);
    if (take(']')) return nullptr;
    do {
      if (const char* problem = parse_value(&out->items_.emplace_back(), depth + 1)) return problem;
    } while (take(','));
    return take(']') ? nullptr : "an array is not closed";
  }

  const char* parse_number(std::string* out) {
    size_t i = 0;
    const auto at = [&](size_t index) { return index < rest_.size() ? rest_[index] : '\0'; };
    const auto digits = [&] {
      const size_t start = i;
      while (at(i) >= '0' && at(i) <= '9') ++i;
      return i > start;
    };
    if (at(i) == '-') ++i;
    const size_t whole = i;
    if (!digits()) return "not a value";
    if (at(whole) == '0' && i - whole > 1) return "a number starts with 0";
    if (at(i) == '.') {
      ++i;
      if (!digits()) return "a number has no digit after its point";
    }
    if (at(i) == 'e' || at(i) == 'E') {
      ++i;
      if (at(i) == '+' || at(i) == '-') ++i;
      if (!digits()) return "a number has no digit in its exponent";
    }
    *out = rest_.substr(0, i);
    rest_.remove_prefix(i);
    return nullptr;
  }

  const char* parse_string(std::string* out) {
    rest_.remove_prefix(1);
    for (;;) {
      const size_t plain = rest_.find_first_of("\"\\");
      if (plain == std::string_view::npos) return "a string is not closed";
      const std::string_view part = rest_.substr(0, plain);
      for (const char c : part) {
        if (static_cast<unsigned char>(c) < 0x20) return "a control character in a string";
      }
      if (!is_utf8(part)) return "not UTF-8";
      out->append(part);
      const bool closes = rest_[plain] == '"';
      rest_.remove_prefix(plain + 1);
      if (closes) return nullptr;
      if (const char* problem = parse_escape(out)) return problem;
    }
  }

  // After the backslash.
  const char* parse_escape(std::string* out) {
    if (rest_.empty()) return "a string is not closed";
    const char c = rest_[0];
    rest_.remove_prefix(1);
    switch (c) {
      case '"':
      case '\\':
      case '/':
        *out += c;
        return nullptr;
      case 'b':
        *out += '\b';
        return nullptr;
      case 'f':
        *out += '\f';
        return nullptr;
      case 'n':
        *out += '\n';
        return nullptr;
      case 'r':
        *out += '\r';
        return nullptr;
      case 't':
        *out += '\t';
        return nullptr;
      case 'u':
        break;
      default:
        return "an unknown escape";
    }
    char32_t code = 0;
    if (!take_hex(&code)) return "a \\u escape without four hexadecimal digits";
    if (code >= 0xD800 && code < 0xDC00) {
      char32_t low = 0;
      if (!take_word("\\u") || !take_hex(&low) || low < 0xDC00 || low > 0xDFFF) {
        return "half a surrogate pair";
      }
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xDC00 && code < 0xE000) {
      return "half a surrogate pair";
    }
    append_utf8(out, code);
    return nullptr;
  }

  bool take_hex(char32_t* code) {
    if (rest_.size() < 4) return false;
    uint32_t value = 0;
    const char* const start = rest_.data();  // NOLINT(bugprone-suspicious-stringview-data-usage)
    const auto [stop, error] = std::from_chars(start, start + 4, value, 16);
    if (error != std::errc() || stop != start + 4) return false;
    rest_.remove_prefix(4);
    *code = value;
    return true;
  }

  std::string_view rest_;
};

Result<Json> Json::parse(std::string_view text) {
  Json value;
  if (const char* problem = JsonParser(text).parse_document(&value)) {
    const std::string start(text.substr(0, 60));
    return invalid_data("JSON_PARSE", "not a JSON value ({}): {}{}", problem, start,
                        text.size() > start.size() ? "..." : "");
  }
  return value;
}

std::optional<bool> Json::as_bool() const {
  return kind_ == Kind::kBool ? std::optional(bool_) : std::nullopt;
}

std::optional<int64_t> Json::as_int() const {
  if (kind_ != Kind::kNumber) return std::nullopt;
  int64_t number = 0;
  const char* const end = text_.data() + text_.size();
  const auto [stop, error] = std::from_chars(text_.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

std::optional<double> Json::as_double() const {
  if (kind_ != Kind::kNumber) return std::nullopt;
  double number = 0;
  const auto [stop, error] = std::from_chars(text_.data(), text_.data() + text_.size(), number);
  if (error != std::errc()) return std::nullopt;
  return number;
}

const std::string* Json::as_string() const { return kind_ == Kind::kString ? &text_ : nullptr; }

const Json* Json::get(std::string_view name) const {
  for (size_t i = 0; i < names_.size(); ++i) {
    if (names_[i] == name) return &items_[i];
  }
  return nullptr;
}

void Json::dump_to(std::string* out) const {
  switch (kind_) {
    case Kind::kNull:
      *out += "null";
      return;
    case Kind::kBool:
      *out += bool_ ? "true" : "false";
      return;
    case Kind::kNumber:
      *out += text_;
      return;
    case Kind::kString:
      append_json_string(out, text_);
      return;
    case Kind::kArray:
    case Kind::kObject:
      break;
  }
  *out += is_object() ? '{' : '[';
  for (size_t i = 0; i < items_.size(); ++i) {
    if (i > 0) *out += ',';
    if (is_object()) {
      append_json_string(out, names_[i]);
      *out += ':';
    }
    items_[i].dump_to(out);
  }
  *out += is_object() ? '}' : ']';
}

std::string Json::dump() const {
  std::string out;
  dump_to(&out);
  return out;
}

void append_json_string(std::string* out, std::string_view text) {
  static const char* const kHex = "0123456789abcdef";
  *out += '"';
  size_t plain = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    out->append(text.substr(plain, i - plain));
    plain = i + 1;
    switch (c) {
      case '"':
        *out += "\\\"";
        break;
      case '\\':
        *out += "\\\\";
        break;
      case '\n':
        *out += "\\n";
        break;
      case '\r':
        *out += "\\r";
        break;
      case '\t':
        *out += "\\t";
        break;
      default:
        *out += "\\u00";
        *out += kHex[c >> 4];
        *out += kHex[c & 0x0F];
    }
  }
  out->append(text.substr(plain));
  *out += '"';
}

std::string json_string(std::string_view text) {
  std::string out;
  append_json_string(&out, text);
  return out;
}

void JsonWriter::separate() {
  if (needs_comma_) text_ += ',';
  needs_comma_ = true;
}

void JsonWriter::open(char bracket) {
  separate();
  text_ += bracket;
  needs_comma_ = false;
}

void JsonWriter::close(char bracket) {
  text_ += bracket;
  needs_comma_ = true;
}

void JsonWriter::key(std::string_view name) {
  separate();
  append_json_string(&text_, name);
  text_ += ':';
  needs_comma_ = false;
}

void JsonWriter::value(std::string_view text) {
  separate();
  append_json_string(&text_, text);
}

void JsonWriter::value(int64_t number) {
  separate();
  text_ += std::to_string(number);
}

void JsonWriter::value(bool flag) {
  separate();
  text_ += flag ? "true" : "false";
}

void JsonWriter::null() {
  separate();
  text_ += "null";
}

void JsonWriter::raw(std::string_view json) {
  separate();
  text_ += json;
}

}  // namespace strandline
