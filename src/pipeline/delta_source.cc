#include "pipeline/delta_source.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <regex>
#include <tuple>

#include "base/clock.h"
#include "base/error.h"
#include "delta/log_files.h"

namespace strandline::pipeline {
namespace {

constexpr const char* kStartAnew =
    "run a full refresh of the flow's target that goes without what only the old table had "
    "(--allow-missing-sources; SET strandline.allowMissingSources = true before REFRESH … FULL)";

constexpr int64_t kDefaultMaxFiles = 1000;

// Which files excludeRegex leaves out.
class Exclusion {
 public:
  explicit Exclusion(const StreamOptions& options) {
    if (options.exclude_regex) regex_.emplace(*options.exclude_regex);
  }
  bool matches(const std::string& path) const { return regex_ && std::regex_search(path, *regex_); }

 private:
  std::optional<std::regex> regex_;
};

// The added files of one commit as the stream sees them, excluded ones among them.
Result<std::vector<delta::AddFile>> commit_files(const delta::Table& table, delta::Version version,
                                                 const StreamOptions& options,
                                                 const Exclusion& exclusion,
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
      removes = removes || (remove->data_change && !exclusion.matches(remove->path));
    }
  }
  if (!removes || options.skip_change_commits || options.ignore_changes) {
    if (removes && options.skip_change_commits) files.clear();
    return files;
  }
  if (!files.empty()) {
    return invalid_data(
        "DELTA_SOURCE_TABLE_IGNORE_CHANGES",
        "version {} of '{}' changes rows, and a stream reads only what is added: pass over "
        "such commits with STREAM {} WITH (skipChangeCommits=true), read all changes with "
        "readChangeFeed=true, or stream from a table that is only appended to",
        version, shown, shown);
  }
  if (options.ignore_deletes) return files;
  return invalid_data(
      "DELTA_SOURCE_IGNORE_DELETE",
      "version {} of '{}' deletes rows, and a stream reads only what is added: pass over such "
      "commits with STREAM {} WITH (skipChangeCommits=true) or ignoreDeletes=true, or read all "
      "changes with readChangeFeed=true",
      version, shown, shown);
}

std::vector<delta::AddFile> initial_files(const delta::Snapshot& snapshot) {
  auto files = snapshot.files;
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) {
    return std::tie(a.modification_time_ms, a.path) < std::tie(b.modification_time_ms, b.path);
  });
  return files;
}

// Calls visit for each file from `from` on that is not excluded; visit returns false to stop before
// that file. Gives the place after the last visited file.
Result<DeltaOffset> walk(const delta::Table& table, const StreamOptions& options, DeltaOffset from,
                         delta::Version end, const std::string& shown,
                         const std::function<bool(delta::Version, const delta::AddFile&)>& visit,
                         const std::optional<DeltaOffset>& until = {}) {
  DeltaOffset at = std::move(from);
  const Exclusion exclusion(options);
  const auto goes_on = [&](const delta::AddFile& file) {
    return exclusion.matches(file.path) || visit(at.version, file);
  };
  if (at.initial) {
    SL_ASSIGN(const auto snapshot, table.snapshot(at.version));
    const auto files = initial_files(*snapshot);
    for (; at.index < static_cast<int64_t>(files.size()); ++at.index) {
      if (until && *until == at) return at;
      if (!goes_on(files[static_cast<size_t>(at.index)])) return at;
    }
    at.version += 1;
    at.index = 0;
    at.initial = false;
  }
  for (; at.version <= end; ++at.version, at.index = 0) {
    if (until && *until == at) return at;
    SL_ASSIGN(const auto files, commit_files(table, at.version, options, exclusion, shown));
    for (; at.index < static_cast<int64_t>(files.size()); ++at.index) {
      if (until && *until == at) return at;
      if (!goes_on(files[static_cast<size_t>(at.index)])) return at;
    }
  }
  return at;
}

// The file's place if it is gone.
Result<std::optional<std::string>> gone_file(const delta::Table& table,
                                             const delta::AddFile& file) {
  SL_ASSIGN(std::string path, delta::resolve_data_path(table.path(), std::string(file.path)));
  const auto found = table.store()->stat(path);
  if (found.ok()) return std::optional<std::string>();
  if (found.error().kind != ErrorKind::kNotFound) return found.error();
  return std::optional(std::move(path));
}

}  // namespace

Error passed_over(const std::string& shown, delta::Version first, delta::Version last,
                  const std::string& why) {
  const std::string versions = first == last ? fmt::format("version {}", first)
                                             : fmt::format("versions {} to {}", first, last);
  return invalid_data(kStreamDataLoss, "the stream of '{}' passes over {}: {}", shown, versions,
                      why);
}

Error with_way_on(Error error, const std::string& shown, bool is_feed) {
  for (const char* advice :
       {": start after version", "; begin a new stream", ": restore the file"}) {
    const size_t at = error.message.rfind(advice);
    if (at == std::string::npos) continue;
    error.message.resize(at);
    error.message += fmt::format(": go on without it by STREAM {} WITH ({}failOnDataLoss=false)",
                                 shown, is_feed ? "readChangeFeed=true, " : "");
    break;
  }
  return error;
}

Result<delta::Version> oldest_commit(const delta::Table& table, const delta::Snapshot& newest) {
  SL_ASSIGN(const auto log, delta::list_log(table.store().get(), table.path()));
  delta::Version oldest = newest.version;
  while (log.commits.contains(oldest - 1)) --oldest;
  return oldest;
}

Status check_same_table(const delta::Snapshot& newest, const DeltaOffset& progress,
                        const std::string& shown) {
  if (progress.table_id == newest.metadata.id) return {};
  return invalid_data(
      "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
      "'{}' was dropped and made anew since this stream last read it (table id {}, before {}): {}",
      shown, newest.metadata.id, progress.table_id, kStartAnew);
}

Result<DeltaOffset> with_last_commit(const delta::Table& table, delta::Version newest,
                                     DeltaOffset place) {
  const delta::Version last = place.initial || place.index > 0 ? place.version : place.version - 1;
  place.last.reset();
  if (last < 0 || last > newest) return place;
  SL_ASSIGN(place.last, delta::mark_commit(table, last));
  return place;
}

Result<DeltaOffset> go_on_from(const delta::Table& table, const delta::Snapshot& newest,
                               const StreamOptions& options, const DeltaOffset& progress,
                               const std::string& shown, std::vector<Error>* lost) {
  if (!progress.last) return progress;
  SL_ASSIGN(const auto found, delta::find_marked(table, *progress.last, newest.version));
  if (found == delta::MarkedCommit::kThere) return progress;
  const delta::Version read = progress.last->version;
  const std::string what =
      found == delta::MarkedCommit::kGone
          ? fmt::format(
                "it is at version {} and was put back to before version {}, which this "
                "stream has read",
                newest.version, read)
          : fmt::format(
                "it was put back and written since: its version {} is another commit than "
                "the one that this stream has read",
                read);
  if (options.fail_on_data_loss) {
    return invalid_data(
        "SOURCE_BEHIND",
        "'{}' lacks what was read of it: {}. Put it back as it was, or the flow's target and the "
        "pipeline's progress as they were when the table was; or run a full refresh of the flow's "
        "target; or go on with what comes next by failOnDataLoss=false",
        shown, what);
  }
  lost->push_back(
      invalid_data(kStreamDataLoss, "the stream of '{}' goes on though {}", shown, what));
  if (found == delta::MarkedCommit::kOther) return progress;
  return DeltaOffset{progress.table_id, newest.version + 1, 0, false};
}

Result<DeltaRange> plan_delta(const delta::Table& table, const delta::Snapshot& newest,
                              const StreamOptions& options,
                              const std::optional<DeltaOffset>& progress, bool unlimited,
                              const std::string& shown) {
  const std::string& id = newest.metadata.id;
  DeltaRange range;
  if (progress) {
    SL_TRY(check_same_table(newest, *progress, shown));
    SL_ASSIGN(range.from, go_on_from(table, newest, options, *progress, shown, &range.lost));
  } else if (options.starting_latest) {
    range.from = DeltaOffset{id, newest.version + 1, 0, false};
  } else if (options.starting_version) {
    if (*options.starting_version > newest.version + 1) {
      return invalid_argument(
          "DELTA_VERSION_NOT_FOUND",
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
  if (!options.fail_on_data_loss && !range.from.initial) {
    SL_ASSIGN(const auto oldest, oldest_commit(table, newest));
    if (range.from.version < oldest) {
      range.lost.push_back(
          passed_over(shown, range.from.version, oldest - 1, "the log no longer has that"));
      range.from = DeltaOffset{id, oldest, 0, false};
    }
  }
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  const int64_t max_files = options.max_files.value_or(options.max_bytes ? kAny : kDefaultMaxFiles);
  const int64_t max_bytes = options.max_bytes.value_or(kAny);
  int64_t files = 0;
  while (true) {
    int64_t bytes = 0;
    std::optional<Error> failed;
    std::optional<std::string> gap;
    const auto take = [&](delta::Version version, const delta::AddFile& file) {
      if (!unlimited && files > 0 && (files >= max_files || bytes + file.size_bytes > max_bytes)) {
        return false;
      }
      // Without a file of the snapshot that it begins with the table is damaged. A part that is not
      // limited has to be all there is.
      const bool may_miss = !options.fail_on_data_loss && (files == 0 || !unlimited) &&
                            !(range.from.initial && version == range.from.version);
      if (may_miss) {
        auto gone = gone_file(table, file);
        if (!gone.ok()) {
          failed = gone.error();
        } else {
          gap = *std::move(gone);
        }
        if (failed || gap) return false;
      }
      ++files;
      bytes += file.size_bytes;
      return true;
    };
    SL_ASSIGN(range.to, walk(table, options, range.from, newest.version, shown, take));
    SL_ASSIGN(range.to, with_last_commit(table, newest.version, range.to));
    if (failed) return *failed;
    range.has_data = files > 0;
    if (!gap || range.has_data) return range;
    range.lost.push_back(passed_over(shown, range.to.version, range.to.version,
                                     fmt::format("its file {} is gone", *gap)));
    range.from = range.to;
    ++range.from.index;
  }
}

Result<StreamLoss> find_delta_loss(const delta::Table& table, const delta::Snapshot& newest,
                                   const StreamOptions& options, const std::string& shown) {
  StreamLoss loss;
  if (!options.fail_on_data_loss) return loss;
  StreamOptions asked = options;
  auto range = plan_delta(table, newest, asked, {}, true, shown);
  if (!range.ok() && range.error().kind == ErrorKind::kNotFound) {
    loss.first = range.error();
    SL_ASSIGN(const auto oldest, oldest_commit(table, newest));
    loss.later = DeltaOffset{newest.metadata.id, oldest, 0, false};
    asked.starting_version = oldest;
    asked.starting_timestamp_ms.reset();
    range = plan_delta(table, newest, asked, {}, true, shown);
  }
  if (!range.ok()) return loss;
  std::vector<delta::Version> versions;
  const auto part = delta_range(table, newest, asked, range->from, range->to, shown, &versions);
  if (!part.ok()) return loss;
  for (size_t i = 0; i < versions.size(); ++i) {
    SL_ASSIGN(const auto gone, gone_file(table, (*part)->files[i]));
    if (!gone) continue;
    if (!loss.first) {
      loss.first =
          not_found("DELTA_FILE_NOT_FOUND", "version {} of '{}' needs the file {}, which is gone",
                    versions[i], shown, *gone);
    }
    if (range->from.initial && versions[i] == range->from.version) {
      loss.later.reset();
      return loss;
    }
    loss.later = DeltaOffset{newest.metadata.id, versions[i] + 1, 0, false};
  }
  return loss;
}

Result<std::shared_ptr<const delta::Snapshot>> delta_range(
    const delta::Table& table, const delta::Snapshot& newest, const StreamOptions& options,
    const DeltaOffset& from, const DeltaOffset& to, const std::string& shown,
    std::vector<delta::Version>* versions) {
  auto part = std::make_shared<delta::Snapshot>(newest);
  if (from.table_id != newest.metadata.id) {
    return invalid_data("DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
                        "'{}' was dropped and made anew since this batch was planned: {}", shown,
                        kStartAnew);
  }
  part->files.clear();
  SL_ASSIGN(const auto reached, walk(
                                    table, options, from, to.version, shown,
                                    [&](delta::Version version, const delta::AddFile& file) {
                                      part->files.push_back(file);
                                      if (versions != nullptr) versions->push_back(version);
                                      return true;
                                    },
                                    to));
  (void)reached;
  return std::shared_ptr<const delta::Snapshot>(std::move(part));
}

}  // namespace strandline::pipeline
