// Random identifiers, and fingerprints of texts.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace strandline {

// Bytes in the order of the text, so the first is the highest.
using Uuid = std::array<uint8_t, 16>;

// A random (version 4) UUID from the operating system; forked processes never share one.
Uuid random_uuid();
// Lower-case text with hyphens.
std::string to_string(const Uuid& uuid);
// Accepts 36 characters with hyphens, either case.
std::optional<Uuid> parse_uuid(std::string_view text);
// Text of a new random UUID.
std::string new_uuid();

// Of a text, to tell whether it is another one: 16 hexadecimal digits (FNV-1a). Nothing is safe
// from one who means to find two texts with the same.
std::string fingerprint(std::string_view text);

}  // namespace strandline
