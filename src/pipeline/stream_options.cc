#include "pipeline/stream_options.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <regex>

#include "base/error.h"

namespace strandline::pipeline {
namespace {

constexpr const char* kToleranceSetting =
    "spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled";

// "+02:00", "-0700" or "Z" from `at` on, as minutes; nullopt for anything else. Nothing is UTC.
std::optional<int> parse_offset_minutes(const std::string& text, size_t at) {
  while (at < text.size() && text[at] == ' ') ++at;
  const std::string offset = text.substr(at);
  if (offset.empty() || offset == "Z" || offset == "z") return 0;
  int hours = 0, minutes = 0, end = 0;
  const char* const digits = offset.c_str() + 1;
  const bool read = (std::sscanf(digits, "%2d:%2d%n", &hours, &minutes, &end) == 2 && end == 5) ||
                    (std::sscanf(digits, "%2d%2d%n", &hours, &minutes, &end) == 2 && end == 4);
  if (!read || offset.size() != static_cast<size_t>(end) + 1 || hours > 18 || minutes > 59) {
    return {};
  }
  if (offset[0] != '+' && offset[0] != '-') return {};
  return (hours * 60 + minutes) * (offset[0] == '-' ? -1 : 1);
}

// "yyyy-MM-dd[ HH:mm:ss[.SSS]][ offset]", UTC without an offset, 'T' for the blank accepted.
std::optional<int64_t> parse_timestamp_ms(const std::string& text) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, end = 0;
  int64_t ms = 0;
  int offset_minutes = 0;
  if (std::sscanf(text.c_str(), "%4d-%2d-%2d%n", &year, &month, &day, &end) != 3) return {};
  auto at = static_cast<size_t>(end);
  if (at < text.size()) {
    if (text[at] != ' ' && text[at] != 'T' && text[at] != 't') return {};
    if (std::sscanf(text.c_str() + at + 1, "%2d:%2d:%2d%n", &hour, &minute, &second, &end) != 3)
      return {};
    at += 1 + static_cast<size_t>(end);
    if (at < text.size() && text[at] == '.') {
      int64_t unit = 100;
      for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, unit /= 10) {
        ms += (text[at] - '0') * unit;
      }
    }
    const auto offset = parse_offset_minutes(text, at);
    if (!offset) return {};
    offset_minutes = *offset;
  }
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok() || hour > 23 || minute > 59 || second > 59) return {};
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return (((days * 24 + hour) * 60 + minute - offset_minutes) * 60 + second) * 1000 + ms;
}

// "1000", "10k", "1gb", as Spark writes sizes.
std::optional<int64_t> parse_bytes(const std::string& text) {
  static const std::map<std::string, int> shifts = {
      {"", 0},   {"b", 0},   {"k", 10}, {"kb", 10}, {"m", 20}, {"mb", 20},
      {"g", 30}, {"gb", 30}, {"t", 40}, {"tb", 40}, {"p", 50}, {"pb", 50},
  };
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto unit = shifts.find(text.substr(digits));
  if (digits == 0 || digits > 18 || unit == shifts.end()) return {};
  const int64_t number = std::stoll(text.substr(0, digits));
  if (number > (std::numeric_limits<int64_t>::max() >> unit->second)) return {};
  return number << unit->second;
}

// Reads the options of one table use.
class OptionReader {
 public:
  OptionReader(const sql::TableUse& use, std::vector<Error>* errors) : use_(use), errors_(errors) {}

  std::optional<StreamOptions> read() {
    const size_t before = errors_->size();
    for (const auto& option : use_.stream_options) take(option);
    if (options_.starting_timestamp_ms && (options_.starting_version || options_.starting_latest)) {
      add(use_.place,
          invalid_argument("DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET",
                           "startingVersion and startingTimestamp are both set: keep one of them"));
    }
    if (errors_->size() > before) return {};
    return std::move(options_);
  }

 private:
  void add(const SourcePlace& place, Error error) {
    error.place = place;
    errors_->push_back(std::move(error));
  }
  void fail(const sql::Option& option, Error error) {
    add(option.place.line > 0 ? option.place : use_.place, std::move(error));
  }

  bool flag(const sql::Option& option) {
    const std::string value = fold_name(option.value);
    if (value != "true" && value != "false") {
      fail(option, invalid_argument("STREAM_OPTION", "option '{}' is true or false, not '{}'",
                                    option.key, option.value));
    }
    return value == "true";
  }

  // At least 1.
  int64_t number(const sql::Option& option, bool of_bytes, const char* what) {
    const std::string value = fold_name(option.value);
    const bool plain = value.find_first_not_of("0123456789") == std::string::npos;
    const auto number = of_bytes || plain ? parse_bytes(value) : std::nullopt;
    if (number && *number > 0) return *number;
    fail(option, invalid_argument("STREAM_OPTION", "option '{}' is {}, not '{}'", option.key, what,
                                  option.value));
    return 1;
  }

  void starting_version(const sql::Option& option) {
    const std::string value = fold_name(option.value);
    if (value == "latest") {
      options_.starting_latest = true;
      return;
    }
    if (value.empty() || value.size() > 18 ||
        value.find_first_not_of("0123456789") != std::string::npos) {
      return fail(option, invalid_argument("DELTA_VERSION_INVALID",
                                           "option '{}' is a version number or 'latest', not '{}'",
                                           option.key, option.value));
    }
    options_.starting_version = std::stoll(value);
  }

  void starting_timestamp(const sql::Option& option) {
    options_.starting_timestamp_ms = parse_timestamp_ms(option.value);
    if (options_.starting_timestamp_ms) return;
    fail(option, invalid_argument("DELTA_TIMESTAMP_INVALID",
                                  "The provided timestamp ({}) cannot be converted to a valid "
                                  "timestamp: option '{}' is a time like '2026-01-31 10:00:00' "
                                  "(UTC)",
                                  option.value, option.key));
  }

  void exclude_regex(const sql::Option& option) {
    try {
      (void)std::regex(option.value);
    } catch (const std::regex_error& error) {
      return fail(option, invalid_argument("DELTA_INVALID_EXCLUDE_REGEX",
                                           "excludeRegex '{}' is no regular expression: {}",
                                           option.value, error.what()));
    }
    options_.exclude_regex = option.value;
  }

  void take(const sql::Option& option) {
    const std::string key = fold_name(option.key);
    if (key == "readchangefeed" || key == "readchangedata") {
      options_.read_change_feed = flag(option);
    } else if (key == "skipchangecommits") {
      options_.skip_change_commits = flag(option);
    } else if (key == "ignoredeletes") {
      options_.ignore_deletes = flag(option);
    } else if (key == "ignorechanges") {
      options_.ignore_changes = flag(option);
    } else if (key == "startingversion") {
      starting_version(option);
    } else if (key == "startingtimestamp") {
      starting_timestamp(option);
    } else if (key == "maxfilespertrigger") {
      options_.max_files = number(option, false, "a whole number from 1 on");
    } else if (key == "maxbytespertrigger") {
      options_.max_bytes = number(option, true, "a size such as 100000 or 10g");
    } else if (key == "excluderegex") {
      exclude_regex(option);
    } else if (key == "failondataloss") {
      options_.fail_on_data_loss = flag(option);
    } else if (key == "endingversion" || key == "endingtimestamp") {
      fail(option, invalid_argument("STREAM_OPTION",
                                    "a stream has no end: leave '{}' out, or read the range with "
                                    "table_changes",
                                    option.key));
    } else {
      fail(option, unsupported("STREAM_OPTION", "stream option '{}' is not supported", option.key));
    }
  }

  const sql::TableUse& use_;
  std::vector<Error>* errors_;
  StreamOptions options_;
};

}  // namespace

bool reads_change_feed(const sql::TableUse& use) {
  return use.stream && std::any_of(use.stream_options.begin(), use.stream_options.end(),
                                   [](const sql::Option& option) {
                                     const std::string key = fold_name(option.key);
                                     return (key == "readchangefeed" || key == "readchangedata") &&
                                            fold_name(option.value) == "true";
                                   });
}

std::optional<StreamOptions> read_stream_options(const sql::TableUse& use,
                                                 std::vector<Error>* errors) {
  return OptionReader(use, errors).read();
}

bool tolerates_out_of_range(const std::map<std::string, std::string>& settings) {
  const auto found = settings.find(kToleranceSetting);
  return found != settings.end() && fold_name(found->second) == "true";
}

}  // namespace strandline::pipeline
