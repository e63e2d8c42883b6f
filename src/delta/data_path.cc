#include "delta/data_path.h"

#include <vector>

#include "base/error.h"
#include "delta/snapshot.h"
#include "strandline/paths.h"

namespace strandline::delta {

namespace {

constexpr const char* kBadPath = "DELTA_PATH_INVALID";

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// "/a" of "file:/a", "file:///a".
std::string_view without_file_scheme(std::string_view path) {
  path.remove_prefix(5);
  if (path.starts_with("//")) path.remove_prefix(2);
  return path;
}

}  // namespace

Result<std::string> percent_decode(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const int upper = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int lower = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (upper < 0 || lower < 0) {
      return corrupt(kBadPath, "path {} has a % without two hexadecimal digits", text);
    }
    decoded += static_cast<char>(upper * 16 + lower);
    i += 2;
  }
  // To the operating system the name would end there.
  if (decoded.find('\0') != std::string::npos)
    return corrupt(kBadPath, "path {} has a byte 0", text);
  return decoded;
}

std::string percent_encode(std::string_view text) {
  static const char* const kHex = "0123456789ABCDEF";
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    if (is_letter(c) || is_digit(c) || c == '-' || c == '.' || c == '_' || c == '~' || c == '/' ||
        c == '=') {
      encoded += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded += '%';
      encoded += kHex[byte >> 4];
      encoded += kHex[byte & 0x0F];
    }
  }
  return encoded;
}

std::string canonical_path(const std::string& table_path, std::string_view log_path) {
  if (path_scheme(std::string(log_path)) == "file") log_path = without_file_scheme(log_path);
  std::string decoded;
  if (log_path.find('%') == std::string_view::npos) {
    decoded = log_path;
  } else {
    auto result = percent_decode(log_path);
    decoded = result.ok() ? std::move(result).value() : std::string(log_path);
  }
  if (decoded.size() > table_path.size() + 1 && decoded[table_path.size()] == '/' &&
      decoded.starts_with(table_path)) {
    decoded.erase(0, table_path.size() + 1);
  }
  return decoded;
}

Result<std::string> resolve_data_path(const std::string& table_path, const std::string& log_path) {
  const std::string scheme = path_scheme(log_path);
  if (!scheme.empty() && scheme != "file") {
    return unsupported(
        "DELTA_UNSUPPORTED_PATH_SCHEME",
        "file {} of table {} lies on {}:, which Strandline cannot read; copy the table to a "
        "local folder",
        log_path, table_path, scheme);
  }
  if (scheme == "file") {
    const std::string_view local = without_file_scheme(log_path);
    if (!local.starts_with('/')) {
      return corrupt(kBadPath, "file {} of table {} names another host", log_path, table_path);
    }
    return percent_decode(local);
  }
  auto result = percent_decode(log_path);
  if (!result.ok()) return std::move(result).error();
  const std::string& decoded = result.value();
  if (decoded.starts_with('/')) return decoded;

  int depth = 0;
  for (size_t start = 0; start <= decoded.size();) {
    const size_t end = std::min(decoded.find('/', start), decoded.size());
    const std::string_view part = std::string_view(decoded).substr(start, end - start);
    if (part == "..") {
      --depth;
    } else if (!part.empty() && part != ".") {
      ++depth;
    }
    if (depth < 0)
      return corrupt(kBadPath, "file {} lies outside of table {}", log_path, table_path);
    start = end + 1;
  }
  if (depth == 0) return corrupt(kBadPath, "table {} has a file with an empty path", table_path);
  return table_path + "/" + decoded;
}

}  // namespace strandline::delta
