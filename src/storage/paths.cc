#include "strandline/paths.h"

#include <cctype>

#include "base/error.h"

namespace strandline {

namespace {

bool is_in_scheme(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '+' || c == '-' || c == '.';
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string path_scheme(const std::string& path) {
  size_t i = 0;
  while (i < path.size() && is_in_scheme(path[i])) ++i;
  // One letter is a drive.
  const bool is_scheme = i > 1 && std::isalpha(static_cast<unsigned char>(path[0])) != 0 &&
                         path.compare(i, 2, ":/") == 0;
  if (!is_scheme) return "";
  std::string scheme = path.substr(0, i);
  for (char& c : scheme) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return scheme;
}

Result<std::string> local_path(const std::string& text) {
  const std::string scheme = path_scheme(text);
  if (scheme.empty()) return text;
  if (scheme != "file") {
    return unsupported("UNSUPPORTED_PATH_SCHEME",
                       "'{}' is an address of the scheme {}:, and only folders of this machine are "
                       "read and written: copy or mount what is there, and name the folder",
                       text, scheme);
  }
  const auto invalid = [&](const char* what) {
    return invalid_argument("INVALID_PATH", "'{}' {}: write file:///folder/name, or the path alone",
                            text, what);
  };
  size_t i = 5;
  if (text.compare(i, 2, "//") == 0) i += 2;
  if (text.compare(i, 10, "localhost/") == 0) i += 9;
  if (text[i] != '/') return invalid("names another host");
  std::string path;
  for (; i < text.size(); ++i) {
    if (text[i] != '%') {
      path += text[i];
      continue;
    }
    const int upper = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int lower = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (upper < 0 || lower < 0) return invalid("has a % without two hexadecimal digits");
    if (upper + lower == 0) return invalid("has a byte 0");
    path += static_cast<char>(upper * 16 + lower);
    i += 2;
  }
  return path;
}

}  // namespace strandline
