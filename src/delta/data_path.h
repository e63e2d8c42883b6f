// Paths of the log: percent-encoded URIs (delta-protocol.md section 5).
#pragma once

#include <strandline/result.h>

#include <string>
#include <string_view>

namespace strandline::delta {

// Decodes %XX once. Errors: kCorrupt for a % without two hexadecimal digits.
Result<std::string> percent_decode(std::string_view text);
// Encodes everything but unreserved characters, '/' and '='.
std::string percent_encode(std::string_view text);

// One spelling for each file of a table: decoded, without "file:", relative below table_path. Where
// the path cannot be decoded, as it is.
std::string canonical_path(const std::string& table_path, std::string_view log_path);

}  // namespace strandline::delta
