#include "base/ids.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

namespace strandline {

Uuid random_uuid() {
  Uuid uuid;
  // getentropy fails only where the kernel has no random source at all.
  if (getentropy(uuid.data(), uuid.size()) != 0) std::abort();
  uuid[6] = static_cast<uint8_t>((uuid[6] & 0x0F) | 0x40);
  uuid[8] = static_cast<uint8_t>((uuid[8] & 0x3F) | 0x80);
  return uuid;
}

std::string to_string(const Uuid& uuid) {
  static const char* const kHex = "0123456789abcdef";
  std::string text;
  text.reserve(36);
  for (size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += kHex[uuid[i] >> 4];
    text += kHex[uuid[i] & 0x0F];
  }
  return text;
}

namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::optional<Uuid> parse_uuid(std::string_view text) {
  if (text.size() != 36) return std::nullopt;
  Uuid uuid;
  size_t at = 0;
  for (size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) {
      if (text[at++] != '-') return std::nullopt;
    }
    const int high = hex_digit(text[at++]);
    const int low = hex_digit(text[at++]);
    if (high < 0 || low < 0) return std::nullopt;
    uuid[i] = static_cast<uint8_t>(high * 16 + low);
  }
  return uuid;
}

std::string new_uuid() { return to_string(random_uuid()); }

std::string fingerprint(std::string_view text) {
  uint64_t hash = 1469598103934665603ull;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 1099511628211ull;
  }
  return fmt::format("{:016x}", hash);
}

}  // namespace strandline
