#include "base/secret_places.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

namespace strandline {
namespace {

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
bool is_quote(char c) { return c == '\'' || c == '"' || c == '`'; }
bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_in_name(char c) { return is_word(c) || c == '.' || c == '-' || c == '%'; }
bool is_in_scheme(char c) { return is_word(c) || c == '+' || c == '.' || c == '-' || c == ':'; }

char folded(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = folded(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// Names are compared without case, and without what words in them are joined by.
constexpr std::array<std::string_view, 3> kParts = {"password", "passwd", "passphrase"};
constexpr std::array<std::string_view, 7> kEnds = {
    "pwd", "secretkey", "secretaccesskey", "accountkey", "sastoken", "clientsecret", "accesstoken"};
// Calls whose first argument names the second.
constexpr std::array<std::string_view, 6> kSetters = {"",       "option",     "set",
                                                      "config", "create_map", "map"};

class Scan {
 public:
  explicit Scan(std::string_view text) : text_(text) {}

  std::vector<SecretPlace> run() {
    for (size_t i = 0; i < text_.size();) {
      if (text_.compare(i, 3, "://") == 0) {
        take_user_info(i);
        i += 3;
      } else if (is_in_name(text_[i])) {
        size_t end = i;
        while (end < text_.size() && is_in_name(text_[end])) ++end;
        if (is_secret_name(percent_decoded(text_.substr(i, end - i)))) take_value(i, end);
        take_user_of_jdbc(i, end);
        i = end;
      } else {
        ++i;
      }
    }
    return in_order();
  }

 private:
  char at(size_t i) const { return i < text_.size() ? text_[i] : '\0'; }

  void add(size_t begin, size_t end) {
    if (end > begin) found_.push_back({begin, end});
  }

  size_t after_spaces(size_t i) const {
    while (i < text_.size() && is_space(text_[i])) ++i;
    return i;
  }

  size_t line_end(size_t i) const { return std::min(text_.find('\n', i), text_.size()); }

  // Where what began with these bytes (a quote, and what escapes it in a text within a text) ends,
  // the quote not included: neither doubled nor escaped once more. A quote that never closes ends
  // with its line.
  size_t quoted_end(size_t begin, std::string_view quote) const {
    for (size_t i = begin; i < text_.size();) {
      if (text_.compare(i, quote.size(), quote) == 0) {
        if (quote.size() > 1 || at(i + 1) != quote[0]) return i;
        i += 2;
      } else {
        i += text_[i] == '\\' ? 2 : 1;
      }
    }
    return line_end(begin);
  }

  // The end of an address that goes on at i and began at `begin`: of the literal around it, else
  // what a blank or a quote ends.
  size_t address_end(size_t begin, size_t i) const {
    if (begin > 0 && is_quote(text_[begin - 1])) {
      size_t slashes = begin - 1;
      while (slashes > 0 && text_[slashes - 1] == '\\') --slashes;
      return quoted_end(i, text_.substr(slashes, begin - slashes));
    }
    while (i < text_.size() && !is_space(text_[i]) && !is_quote(text_[i])) ++i;
    return i;
  }

  // scheme://user:password@host; the password may hold characters that ought to be encoded.
  void take_user_info(size_t colon) {
    size_t begin = colon;
    while (begin > 0 && is_in_scheme(text_[begin - 1])) --begin;
    const size_t start = colon + 3;
    const std::string_view rest = text_.substr(start, address_end(begin, start) - start);
    const size_t query = std::min(rest.find_first_of("?#"), rest.size());
    size_t host = rest.substr(0, query).rfind('@');
    if (host == std::string_view::npos && rest.substr(0, query).find('/') == std::string_view::npos)
      host = rest.rfind('@');
    if (host == std::string_view::npos) return;
    for (size_t i = 0; i < host; ++i) {
      const bool encoded = rest[i] == '%' && rest[i + 1] == '3' && folded(rest[i + 2]) == 'a';
      if (rest[i] != ':' && !encoded) continue;
      add(start + i + (encoded ? 3 : 1), start + host);
      return;
    }
  }

  // jdbc:oracle:thin:user/password@host, jdbc:mysql:user:password@host
  void take_user_of_jdbc(size_t begin, size_t end) {
    if (at(end) != ':' || end - begin != 4) return;
    for (size_t i = 0; i < 4; ++i) {
      if (folded(text_[begin + i]) != "jdbc"[i]) return;
    }
    std::string_view user = text_.substr(end, address_end(begin, end) - end);
    user = user.substr(0, user.find('@'));
    if (at(end + user.size()) != '@' || user.find("//") != std::string_view::npos) return;
    size_t mark = user.find('/');
    if (mark == std::string_view::npos) {
      mark = 0;
      for (int colons = 1; colons < 3 && mark != std::string_view::npos; ++colons)
        mark = user.find(':', mark + 1);
    }
    if (mark != std::string_view::npos) add(end + mark + 1, end + user.size());
  }

  // The quote, and what escapes it, that begins at i; empty where there is none.
  std::string_view quote_at(size_t i) const {
    size_t end = i;
    while (at(end) == '\\') ++end;
    return is_quote(at(end)) ? text_.substr(i, end + 1 - i) : std::string_view();
  }

  // Whether a name in quotes, which begin at `quote`, is what option("password", ...) and its kin
  // say.
  bool is_first_argument(size_t quote) const {
    size_t i = quote;
    while (i > 0 && (is_space(text_[i - 1]) || text_[i - 1] == '\\')) --i;
    if (i == 0 || text_[i - 1] != '(') return false;
    const size_t end = --i;
    while (i > 0 && is_word(text_[i - 1])) --i;
    std::string called(text_.substr(i, end - i));
    std::transform(called.begin(), called.end(), called.begin(), folded);
    return std::find(kSetters.begin(), kSetters.end(), called) != kSetters.end();
  }

  // Whether a name is a key of YAML: nothing but marks stands before it in its line or in braces.
  bool is_yaml_key(size_t begin) const {
    while (begin > 0 &&
           (text_[begin - 1] == ' ' || text_[begin - 1] == '\t' || text_[begin - 1] == '-')) {
      --begin;
    }
    if (begin == 0 || text_[begin - 1] == '\n' || text_[begin - 1] == '{') return true;
    const std::string_view before = text_.substr(0, begin);
    const size_t line = before.rfind('\n') + 1;  // 0 where there is none
    return before.back() == ',' && before.find('{', line) != std::string_view::npos;
  }

  void take_value(size_t begin, size_t end) {
    const char before = begin > 0 ? text_[begin - 1] : '\0';
    size_t i = end;
    const std::string_view closing = quote_at(i);
    const bool in_quotes = is_quote(before) && !closing.empty() && closing.back() == before;
    if (in_quotes) i += closing.size();
    const size_t name_end = i;
    i = after_spaces(i);
    const char sign = at(i);
    if (sign == '=' || sign == ':') {
      ++i;
      if (at(i) == '>' || at(i) == '=') ++i;
    } else if (sign == ',') {
      if (!in_quotes || !is_first_argument(begin - 1)) return;
      ++i;
    } else if (i == name_end) {
      return;
    }
    const size_t after_sign = i;
    i = after_spaces(i);
    if (const auto inside = quoted_value(i)) {
      add(inside->begin, inside->end);
    } else if (sign == '=' && (before == '?' || before == '&' || before == ';')) {
      add(after_sign, parameter_end(after_sign, before == ';'));
    } else if (sign == '=' || (sign == ':' && (in_quotes || is_yaml_key(begin)))) {
      take_bare(i);
    }
  }

  std::optional<SecretPlace> quoted_value(size_t i) const {
    // r'...', f"..."
    for (int prefix = 0; prefix < 2 && std::string_view("rbfu").find(folded(at(i))) < 4; ++prefix)
      ++i;
    const std::string_view quote = quote_at(i);
    if (quote.empty()) return std::nullopt;
    i += quote.size();
    return SecretPlace{i, quoted_end(i, quote)};
  }

  size_t parameter_end(size_t i, bool of_semicolons) const {
    while (i < text_.size()) {
      const char c = text_[i];
      if (c == '\\' || (is_quote(c) && at(i + 1) == c)) {
        i += 2;
        continue;
      }
      if (is_space(c) || is_quote(c) || c == '&' || (of_semicolons && c == ';')) break;
      ++i;
    }
    return std::min(i, text_.size());
  }

  // Without quotes: what no call computes and no template fills in.
  void take_bare(size_t begin) {
    size_t end = begin;
    while (end < text_.size() && !is_space(text_[end]) && !is_quote(text_[end]) &&
           std::string_view(",;()[]{}").find(text_[end]) == std::string_view::npos) {
      ++end;
    }
    const char next = at(end);
    if (next == '(' || next == '[' || next == '{') return;
    add(begin, end);
  }

  std::vector<SecretPlace> in_order() {
    std::sort(found_.begin(), found_.end(), [](const SecretPlace& a, const SecretPlace& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
    });
    std::vector<SecretPlace> apart;
    for (const auto& place : found_) {
      if (!apart.empty() && place.begin < apart.back().end)
        apart.back().end = std::max(apart.back().end, place.end);
      else
        apart.push_back(place);
    }
    return apart;
  }

  std::string_view text_;
  std::vector<SecretPlace> found_;
};

}  // namespace

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 &&
        hex_digit(text[i + 2]) >= 0) {
      out += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

bool is_secret_name(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) plain += folded(c);
  }
  return std::any_of(kParts.begin(), kParts.end(),
                     [&](auto part) { return plain.find(part) != std::string::npos; }) ||
         std::any_of(kEnds.begin(), kEnds.end(), [&](auto end) { return plain.ends_with(end); });
}

std::vector<SecretPlace> secret_places(std::string_view text) { return Scan(text).run(); }

}  // namespace strandline
