// Wall clock time and its text.
#pragma once

#include <cstdint>
#include <string>

namespace strandline {

// Since the epoch, UTC.
int64_t now_ms();
int64_t now_micros();

// ISO 8601 in UTC: "2026-08-01T09:00:00.123Z"; years outside 0..9999 get a sign.
std::string format_utc_ms(int64_t ms);

}  // namespace strandline
