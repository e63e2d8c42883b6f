#include "pipeline/delta_source.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>

#include "base/clock.h"
#include "base/error.h"

namespace strandline::pipeline {
namespace {

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

// The added files of one commit as the stream sees them.
Result<std::vector<delta::AddFile>> commit_files(const delta::Table& table, delta::Version version,
                                                 const StreamOptions& options,
                                                 const std::string& shown) {
  auto actions = table.commit(version);
  if (!actions.ok()) {
    if (actions.error().kind != ErrorKind::kNotFound) return actions.error();
    return not_found(
        "DELTA_MISSING_FILES_UNEXPECTED_VERSION",
        "the log of '{}' no longer has version {}, which this stream reads next: run a full "
        "refresh of the flow's target",
        shown, version);
  }
  std::vector<delta::AddFile> files;
  bool removes = false;
  for (const auto& action : *actions) {
    if (const auto* add = std::get_if<delta::AddFile>(&action)) {
      if (add->data_change) files.push_back(*add);
    } else if (const auto* remove = std::get_if<delta::RemoveFile>(&action)) {
      removes = removes || remove->data_change;
    }
  }
  if (!removes || options.skip_change_commits) {
    if (removes) files.clear();
    return files;
  }
  if (!files.empty()) {
    return invalid_data(
        "DELTA_SOURCE_TABLE_IGNORE_CHANGES",
        "version {} of '{}' changes rows, and a stream reads only what is added: pass over "
        "such commits with STREAM {} WITH (skipChangeCommits=true), or stream from a table "
        "that is only appended to",
        version, shown, shown);
  }
  if (options.ignore_deletes) return files;
  return invalid_data(
      "DELTA_SOURCE_IGNORE_DELETE",
      "version {} of '{}' deletes rows, and a stream reads only what is added: pass over such "
      "commits with STREAM {} WITH (skipChangeCommits=true)",
      version, shown, shown);
}

// "yyyy-MM-dd[ HH:mm:ss[.SSS]]" in UTC, 'T' for the blank and a final 'Z' accepted.
std::optional<int64_t> parse_timestamp_ms(const std::string& text) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, end = 0;
  int64_t ms = 0;
  if (std::sscanf(text.c_str(), "%4d-%2d-%2d%n", &year, &month, &day, &end) != 3) return {};
  size_t at = static_cast<size_t>(end);
  if (at < text.size() && (text[at] == ' ' || text[at] == 'T' || text[at] == 't')) {
    if (std::sscanf(text.c_str() + at + 1, "%2d:%2d:%2d%n", &hour, &minute, &second, &end) != 3)
      return {};
    at += 1 + static_cast<size_t>(end);
    if (at < text.size() && text[at] == '.') {
      int64_t unit = 100;
      for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, unit /= 10) {
        ms += (text[at] - '0') * unit;
      }
    }
  }
  if (at < text.size() && (text[at] == 'Z' || text[at] == 'z')) ++at;
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (at != text.size() || !date.ok() || hour > 23 || minute > 59 || second > 59) return {};
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return (((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + ms;
}

std::vector<delta::AddFile> initial_files(const delta::Snapshot& snapshot) {
  auto files = snapshot.files;
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) {
    return std::tie(a.modification_time_ms, a.path) < std::tie(b.modification_time_ms, b.path);
  });
  return files;
}

// Calls visit for each file from `from` on; visit returns false to stop before that file. Gives the
// place after the last visited file.
Result<DeltaOffset> walk(const delta::Table& table, const StreamOptions& options, DeltaOffset from,
                         delta::Version end, const std::string& shown,
                         const std::function<bool(const delta::AddFile&)>& visit,
                         const std::optional<DeltaOffset>& until = {}) {
  DeltaOffset at = std::move(from);
  if (at.initial) {
    SL_ASSIGN(const auto snapshot, table.snapshot(at.version));
    const auto files = initial_files(*snapshot);
    for (; at.index < static_cast<int64_t>(files.size()); ++at.index) {
      if (until && *until == at) return at;
      if (!visit(files[static_cast<size_t>(at.index)])) return at;
    }
    at.version += 1;
    at.index = 0;
    at.initial = false;
  }
  for (; at.version <= end; ++at.version, at.index = 0) {
    if (until && *until == at) return at;
    SL_ASSIGN(const auto files, commit_files(table, at.version, options, shown));
    for (; at.index < static_cast<int64_t>(files.size()); ++at.index) {
      if (until && *until == at) return at;
      if (!visit(files[static_cast<size_t>(at.index)])) return at;
    }
  }
  return at;
}

}  // namespace

std::optional<StreamOptions> read_stream_options(const sql::TableUse& use,
                                                 std::vector<Error>* errors) {
  StreamOptions options;
  const size_t before = errors->size();
  for (const auto& option : use.stream_options) {
    const auto fail = [&](Error error) {
      error.place = option.place.line > 0 ? option.place : use.place;
      errors->push_back(std::move(error));
    };
    const std::string key = lower(option.key);
    const std::string value = lower(option.value);
    const auto flag = [&] {
      if (value != "true" && value != "false") {
        fail(invalid_argument("STREAM_OPTION", "option '{}' is true or false, not '{}'", option.key,
                              option.value));
      }
      return value == "true";
    };
    const auto number = [&]() -> int64_t {
      if (value.empty() || value.size() > 18 ||
          value.find_first_not_of("0123456789") != std::string::npos) {
        fail(invalid_argument("STREAM_OPTION", "option '{}' is a whole number, not '{}'",
                              option.key, option.value));
        return 0;
      }
      return std::stoll(value);
    };
    if (key == "skipchangecommits") {
      options.skip_change_commits = flag();
    } else if (key == "ignoredeletes") {
      options.ignore_deletes = flag();
    } else if (key == "startingversion") {
      if (value == "latest") {
        options.starting_latest = true;
      } else {
        options.starting_version = number();
      }
    } else if (key == "startingtimestamp") {
      options.starting_timestamp_ms = parse_timestamp_ms(option.value);
      if (!options.starting_timestamp_ms) {
        fail(invalid_argument("DELTA_TIMESTAMP_INVALID",
                              "option '{}' is a time like '2026-01-31 10:00:00' (UTC), not '{}'",
                              option.key, option.value));
      }
    } else if (key == "maxfilespertrigger") {
      options.max_files = std::max<int64_t>(1, number());
    } else if (key == "maxbytespertrigger") {
      options.max_bytes = std::max<int64_t>(1, number());
    } else if (key == "readchangefeed" || key == "readchangedata") {
      if (flag()) {
        fail(unsupported("STREAM_OPTION",
                         "{} is not supported yet: stream from an append-only table, or pass "
                         "over changes with skipChangeCommits=true",
                         option.key));
      }
    } else {
      fail(unsupported("STREAM_OPTION", "stream option '{}' is not supported", option.key));
    }
  }
  if (options.starting_timestamp_ms && (options.starting_version || options.starting_latest)) {
    Error error =
        invalid_argument("DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET",
                         "startingVersion and startingTimestamp are both set: keep one of them");
    error.place = use.place;
    errors->push_back(std::move(error));
  }
  if (errors->size() > before) return {};
  return options;
}

Result<DeltaRange> plan_delta(const delta::Table& table, const delta::Snapshot& newest,
                              const StreamOptions& options,
                              const std::optional<DeltaOffset>& progress, bool unlimited,
                              const std::string& shown) {
  const std::string& id = newest.metadata.id;
  DeltaRange range;
  if (progress) {
    if (progress->table_id != id) {
      return invalid_data(
          "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
          "'{}' was dropped and made anew since this stream last read it (table id {}, before "
          "{}): run a full refresh of the flow's target",
          shown, id, progress->table_id);
    }
    range.from = *progress;
  } else if (options.starting_latest) {
    range.from = DeltaOffset{id, newest.version + 1, 0, false};
  } else if (options.starting_version) {
    if (*options.starting_version > newest.version + 1) {
      return invalid_argument(
          "STREAM_STARTING_VERSION",
          "startingVersion {} of '{}' does not exist yet: the newest version is {}",
          *options.starting_version, shown, newest.version);
    }
    range.from = DeltaOffset{id, *options.starting_version, 0, false};
  } else if (options.starting_timestamp_ms) {
    // The first commit at or after that time.
    auto before = table.version_at(*options.starting_timestamp_ms - 1);
    if (!before.ok() && before.error().kind != ErrorKind::kNotFound) return before.error();
    const delta::Version start = before.ok() ? *before + 1 : 0;
    if (start > newest.version) {
      return invalid_argument("DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
                              "startingTimestamp is after the last commit of '{}', which is of {}",
                              shown, format_utc_ms(newest.timestamp_ms));
    }
    range.from = DeltaOffset{id, start, 0, false};
  } else {
    range.from = DeltaOffset{id, newest.version, 0, true};
  }
  int64_t files = 0;
  int64_t bytes = 0;
  SL_ASSIGN(
      range.to,
      walk(table, options, range.from, newest.version, shown, [&](const delta::AddFile& file) {
        if (!unlimited && files > 0 &&
            (files >= options.max_files || bytes + file.size_bytes > options.max_bytes)) {
          return false;
        }
        ++files;
        bytes += file.size_bytes;
        return true;
      }));
  range.has_data = files > 0;
  return range;
}

Result<std::shared_ptr<const delta::Snapshot>> delta_range(
    const delta::Table& table, const delta::Snapshot& newest, const StreamOptions& options,
    const DeltaOffset& from, const DeltaOffset& to, const std::string& shown) {
  auto part = std::make_shared<delta::Snapshot>(newest);
  if (from.table_id != newest.metadata.id) {
    return invalid_data(
        "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
        "'{}' was dropped and made anew since this batch was planned: run a full refresh of "
        "the flow's target",
        shown);
  }
  part->files.clear();
  SL_ASSIGN(const auto reached, walk(
                                    table, options, from, to.version, shown,
                                    [&](const delta::AddFile& file) {
                                      part->files.push_back(file);
                                      return true;
                                    },
                                    to));
  (void)reached;
  return std::shared_ptr<const delta::Snapshot>(std::move(part));
}

}  // namespace strandline::pipeline
