#include "base/clock.h"

#include <fmt/format.h>

#include <chrono>

namespace strandline {

int64_t now_micros() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

int64_t now_ms() { return now_micros() / 1000; }

std::string format_utc_ms(int64_t ms) {
  constexpr int64_t kDayMs = 86'400'000;
  int64_t days = ms / kDayMs;
  int64_t rest = ms % kDayMs;
  if (rest < 0) {
    rest += kDayMs;
    --days;
  }
  const std::chrono::year_month_day date{std::chrono::sys_days{std::chrono::days{days}}};
  const int year = static_cast<int>(date.year());
  const bool plain_year = year >= 0 && year <= 9999;
  return fmt::format("{}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
                     plain_year ? fmt::format("{:04}", year) : fmt::format("{:+06}", year),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     rest / 3'600'000, rest / 60'000 % 60, rest / 1000 % 60, rest % 1000);
}

}  // namespace strandline
