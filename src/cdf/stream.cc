#include "cdf/stream.h"

#include <algorithm>
#include <regex>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "delta/log_files.h"

namespace strandline::cdf {
namespace {

using delta::Version;

constexpr int64_t kDefaultMaxFiles = 1000;
// Commits that one batch looks at: so many versions without changes pass by at a time.
constexpr Version kWindow = 1000;

Result<std::optional<std::regex>> exclusion(const StreamOptions& options) {
  if (!options.exclude_regex) return std::optional<std::regex>();
  try {
    return std::optional<std::regex>(std::regex(*options.exclude_regex));
  } catch (const std::regex_error& error) {
    return invalid_argument("DELTA_INVALID_EXCLUDE_REGEX",
                            "excludeRegex '{}' is no regular expression: {}",
                            *options.exclude_regex, error.what());
  }
}

// What one batch may still take.
class Budget {
 public:
  explicit Budget(const StreamOptions& options)
      : unlimited_(options.unlimited),
        files_(options.max_files || options.max_bytes ? options.max_files
                                                      : std::optional(kDefaultMaxFiles)),
        bytes_(options.max_bytes) {}

  // False: wait for the next batch. Whatever comes first is taken.
  bool take(int64_t files, int64_t bytes) {
    if (files == 0 || unlimited_) return true;
    const bool fits =
        (!files_ || used_files_ + files <= *files_) && (!bytes_ || used_bytes_ + bytes <= *bytes_);
    if (!fits && used_files_ > 0) return false;
    used_files_ += files;
    used_bytes_ += bytes;
    return true;
  }

 private:
  const bool unlimited_;
  const std::optional<int64_t> files_;
  const std::optional<int64_t> bytes_;
  int64_t used_files_ = 0;
  int64_t used_bytes_ = 0;
};

// From it on all commits up to the newest are kept.
Version oldest_commit(const delta::LogFiles& log) {
  Version oldest = log.latest();
  while (log.commits.contains(oldest - 1)) --oldest;
  return oldest;
}

class BatchPlanner {
 public:
  BatchPlanner(const delta::Table& table, std::shared_ptr<const delta::Snapshot> definition,
               const StreamOptions& options, const StreamOffset& from)
      : table_(table), definition_(std::move(definition)), options_(options) {
    batch_.from = from;
    batch_.to = from;
    batch_.plan.definition = definition_;
  }

  // until: repeat a batch that ended there.
  Result<StreamBatch> plan(std::optional<Version> last, const StreamOffset* until) {
    SL_ASSIGN(exclude_, exclusion(options_));
    SL_ASSIGN(const auto log, delta::list_log(table_.store().get(), table_.path()));
    Version end = log.latest();
    if (last) end = std::min(end, *last);
    if (until != nullptr) end = std::min(end, until->version);
    SL_TRY(check_table(log.latest()));
    // A version that does not exist yet.
    if (batch_.from.version > end) return std::move(batch_);
    if (batch_.from.is_starting_version) {
      SL_TRY(take_snapshot(until));
    } else {
      SL_TRY(take_commits(log, end, until));
    }
    return std::move(batch_);
  }

 private:
  Status check_table(Version end) const {
    SL_ASSIGN(const auto snapshot, table_.snapshot(end));
    if (snapshot->metadata.id == batch_.from.table_id) return {};
    return invalid_data("DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
                        "{} was dropped and made anew since this stream last read it (table id {}, "
                        "before {}): begin a new stream, without its checkpoint",
                        table_.path(), snapshot->metadata.id, batch_.from.table_id);
  }

  bool is_excluded(const std::string& path) const {
    return exclude_ && std::regex_search(path, *exclude_);
  }

  Status take_snapshot(const StreamOffset* until) {
    SL_ASSIGN(const auto snapshot, table_.snapshot(batch_.from.version));
    std::vector<const delta::AddFile*> files;
    for (const delta::AddFile& file : snapshot->files) files.push_back(&file);
    std::sort(files.begin(), files.end(), [](const auto* a, const auto* b) {
      return std::tie(a->modification_time_ms, a->path) <
             std::tie(b->modification_time_ms, b->path);
    });
    CommitChanges changes;
    changes.version = snapshot->version;
    changes.timestamp_ms = snapshot->timestamp_ms;
    Budget budget(options_);
    auto at = static_cast<size_t>(batch_.from.index + 1);
    for (; at < files.size(); ++at) {
      if (until != nullptr && until->is_starting_version &&
          static_cast<int64_t>(at) > until->index) {
        break;
      }
      if (is_excluded(files[at]->path)) continue;
      if (until == nullptr && !budget.take(1, files[at]->size_bytes)) break;
      FileChange change;
      change.kind = ChangeKind::kInsert;
      change.file = *files[at];
      changes.files.push_back(std::move(change));
    }
    if (at < files.size()) {
      batch_.to.index = static_cast<int64_t>(at) - 1;
    } else {
      batch_.to = {batch_.from.table_id, batch_.from.version + 1, -1, false};
    }
    batch_.plan.first = batch_.plan.last = changes.version;
    if (!changes.files.empty()) batch_.plan.commits.push_back(std::move(changes));
    return {};
  }

  Status take_commits(const delta::LogFiles& log, Version end, const StreamOffset* until) {
    Version first = batch_.from.version;
    const Version oldest = oldest_commit(log);
    if (first < oldest) {
      if (options_.fail_on_data_loss) {
        return invalid_data("DELTA_MISSING_FILES_UNEXPECTED_VERSION",
                            "the log of {} no longer has version {}, which this stream reads next: "
                            "the oldest kept is {}; begin a new stream, or go on from there with "
                            "failOnDataLoss=false",
                            table_.path(), first, oldest);
      }
      first = oldest;
      batch_.from.version = oldest;
    }
    // The end of a repeated batch is the version after its last.
    if (until != nullptr) end = std::min(end, until->version - 1);
    if (first > end) return {};
    RangeRequest request;
    request.start = first;
    request.end = options_.unlimited ? end : std::min(end, first + kWindow - 1);
    request.stream_definition = definition_;
    SL_ASSIGN(batch_.plan, plan_changes(table_, request));

    Budget budget(options_);
    std::vector<CommitChanges> taken;
    Version next = batch_.plan.last + 1;
    for (CommitChanges& commit : batch_.plan.commits) {
      // Every file counts, also those of the other state of a deletion vector.
      std::erase_if(commit.files,
                    [this](const FileChange& change) { return is_excluded(change.file.path); });
      int64_t bytes = 0;
      for (const FileChange& change : commit.files) bytes += change.file.size_bytes;
      if (until == nullptr && !budget.take(static_cast<int64_t>(commit.files.size()), bytes)) {
        next = commit.version;
        break;
      }
      if (!commit.files.empty()) taken.push_back(std::move(commit));
    }
    batch_.plan.commits = std::move(taken);
    batch_.plan.last = next - 1;
    batch_.to = {batch_.from.table_id, next, -1, false};
    return {};
  }

  const delta::Table& table_;
  const std::shared_ptr<const delta::Snapshot> definition_;
  const StreamOptions& options_;
  std::optional<std::regex> exclude_;
  StreamBatch batch_;
};

}  // namespace

std::string print_offset(const StreamOffset& offset) {
  JsonWriter json;
  json.begin_object();
  json.key("sourceVersion");
  json.value(1);
  json.key("reservoirId");
  json.value(offset.table_id);
  json.key("reservoirVersion");
  json.value(offset.version);
  json.key("index");
  json.value(offset.index);
  json.key("isStartingVersion");
  json.value(offset.is_starting_version);
  json.end_object();
  return json.take();
}

Result<StreamOffset> parse_offset(const std::string& text) {
  const auto bad = [&](const char* why) {
    return corrupt("DELTA_INVALID_SOURCE_OFFSET_FORMAT", "'{}' is no offset of a stream: {}", text,
                   why);
  };
  const auto json = Json::parse(text);
  if (!json.ok() || !json->is_object()) return bad("it is no JSON object");
  const auto integer = [&](const char* name) -> std::optional<int64_t> {
    const Json* const member = json->get(name);
    return member == nullptr ? std::nullopt : member->as_int();
  };
  const auto format = integer("sourceVersion");
  if (!format) return bad("it has no sourceVersion");
  if (*format != 1 && *format != 3) {
    return unsupported("DELTA_INVALID_SOURCE_VERSION",
                       "offsets of sourceVersion {} cannot be read; 1 and 3 can", *format);
  }
  const Json* const id = json->get("reservoirId");
  const Json* const starting = json->get("isStartingVersion");
  const auto version = integer("reservoirVersion");
  const auto index = integer("index");
  if (id == nullptr || !id->is_string()) return bad("it has no reservoirId");
  if (!version || *version < 0) return bad("it has no reservoirVersion");
  if (!index || *index < -1) return bad("it has no index");
  if (starting == nullptr || !starting->as_bool()) return bad("it has no isStartingVersion");
  return StreamOffset{id->text(), *version, *index, *starting->as_bool()};
}

Result<StreamOffset> first_offset(const delta::Table& table, const StreamOptions& options) {
  SL_TRY(exclusion(options));
  SL_ASSIGN(const auto newest, table.snapshot());
  const std::string& id = newest->metadata.id;
  const bool starts_now = !std::holds_alternative<Bound>(options.start);
  if (starts_now && !newest->property_is_true("delta.enableChangeDataFeed") &&
      !newest->row_tracking_enabled()) {
    return invalid_argument(
        "DELTA_MISSING_CHANGE_DATA",
        "Error getting change data for range [{0} , {0}] as change data was not recorded for "
        "version [{0}] of {1}: ALTER TABLE … SET TBLPROPERTIES ('delta.enableRowTracking' = "
        "'true') begins with it",
        newest->version, table.path());
  }
  if (std::holds_alternative<std::monostate>(options.start))
    return StreamOffset{id, newest->version, -1, true};
  if (std::holds_alternative<FromLatest>(options.start))
    return StreamOffset{id, newest->version + 1, -1, false};
  const auto& bound = std::get<Bound>(options.start);
  SL_ASSIGN(auto start, resolve_start(table, bound, options.tolerate_out_of_range));
  if (start && !options.fail_on_data_loss) {
    SL_ASSIGN(const auto log, delta::list_log(table.store().get(), table.path()));
    start = std::max(*start, oldest_commit(log));
  }
  if (!start) {
    // Waits: for that version, or for the next commit, which comes after any time that has passed.
    const auto* const version = std::get_if<Version>(&bound);
    return StreamOffset{id, version != nullptr ? *version : newest->version + 1, -1, false};
  }
  RangeRequest probe;
  probe.start = *start;
  probe.end = *start;
  SL_TRY(plan_changes(table, probe));
  return StreamOffset{id, *start, -1, false};
}

Result<StreamBatch> next_batch(const delta::Table& table,
                               const std::shared_ptr<const delta::Snapshot>& definition,
                               const StreamOptions& options, const StreamOffset& from,
                               std::optional<Version> last) {
  return BatchPlanner(table, definition, options, from).plan(last, nullptr);
}

Result<StreamBatch> repeat_batch(const delta::Table& table,
                                 const std::shared_ptr<const delta::Snapshot>& definition,
                                 const StreamOptions& options, const StreamOffset& from,
                                 const StreamOffset& to) {
  SL_ASSIGN(auto batch, BatchPlanner(table, definition, options, from).plan({}, &to));
  batch.to = to;
  return batch;
}

}  // namespace strandline::cdf
