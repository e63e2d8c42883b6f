#include "cdf/plan.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "cdf/commit_changes.h"
#include "cdf/readable.h"
#include "delta/commit_times.h"
#include "delta/features.h"
#include "delta/log_files.h"
#include "delta/row_id_columns.h"

namespace strandline::cdf {
namespace {

using delta::Action;
using delta::Snapshot;
using delta::Version;

constexpr const char* kSetting =
    "SET spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled = true";

std::string format_us(int64_t us) { return format_utc_ms(us / 1000); }

// Rounded down: an instant between two milliseconds comes after the first.
int64_t floor_ms(int64_t us) { return us / 1000 - (us % 1000 < 0 ? 1 : 0); }

// Protocol, metadata and schema from a version on; files are left out.
struct State {
  Version from = 0;
  std::shared_ptr<const Snapshot> definition;
};

bool records_changes(const Snapshot& state) {
  return state.property_is_true("delta.enableChangeDataFeed");
}

class Planner {
 public:
  Planner(const delta::Table& table, const RangeRequest& request)
      : table_(table), request_(request) {}

  Result<std::optional<Version>> start() {
    SL_TRY(open());
    return resolve_start();
  }

  Result<ChangePlan> plan() {
    SL_TRY(open());
    plan_.definition = without_files(*latest_);
    SL_ASSIGN(const bool has_versions, resolve_range());
    if (!has_versions) {
      plan_.first = 0;
      plan_.last = -1;
      SL_TRY(check_columns(*plan_.definition));
      return std::move(plan_);
    }
    SL_TRY(read_commits());
    SL_TRY(choose_mode());
    SL_TRY(add_state_before());
    SL_TRY(choose_schema());
    know_row_id_columns();
    SL_TRY(list_changes());
    return std::move(plan_);
  }

 private:
  Status open() {
    SL_ASSIGN(latest_, table_.snapshot());
    SL_TRY(delta::check_feed_readable(latest_->protocol, table_.path()));
    SL_ASSIGN(log_, delta::list_log(table_.store().get(), table_.path()));
    times_.emplace(table_, *latest_, log_);
    return {};
  }

  // False: an empty range.
  Result<bool> resolve_range();
  Result<std::optional<Version>> resolve_start();
  Result<Version> resolve_end(const Bound& end);
  Version earliest() const;
  Error too_late(const char* what, int64_t us) const;

  Status read_commits();
  Status choose_mode();
  Status add_state_before();
  Status choose_schema();
  void know_row_id_columns();
  bool removes_older_rows(Version version) const;
  Status check_stream_schema();
  bool is_restore(Version version) const;
  bool restored_without(const State& state) const;
  Status check_columns(const Snapshot& definition) const;
  Status list_changes();

  const delta::Table& table_;
  const RangeRequest& request_;
  std::shared_ptr<const Snapshot> latest_;
  delta::LogFiles log_;
  std::optional<delta::CommitTimes> times_;
  ChangePlan plan_;
  // The start's, then one for each change in the range; before them that of the version before, if
  // the first commit has rows of it.
  std::vector<State> states_;
  bool start_has_metadata_ = false;
  std::vector<CommitFiles> commits_;
  // First versions of the range that a feed does not cover.
  std::optional<Version> without_legacy_;
  std::optional<Version> without_tracking_;
};

// The oldest commit from which all up to the latest are kept.
Version Planner::earliest() const {
  Version version = latest_->version;
  while (log_.commits.count(version - 1) > 0) --version;
  return version;
}

Error Planner::too_late(const char* what, int64_t us) const {
  return invalid_argument("DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
                          "the {} timestamp {} is after the last commit of {}, version {} of {} "
                          "(timestampGreaterThanLatestCommit): name a time until then, or {}",
                          what, format_us(us), table_.path(), latest_->version,
                          format_utc_ms(latest_->timestamp_ms), kSetting);
}

// nullopt: after the newest commit, which is tolerated.
Result<std::optional<Version>> Planner::resolve_start() {
  const Version latest = latest_->version;
  if (const auto* const version = std::get_if<Version>(&request_.start)) {
    if (*version < 0) {
      return invalid_argument("DELTA_VERSION_INVALID",
                              "the start version {} is none: versions count from 0", *version);
    }
    if (*version > latest) {
      if (request_.tolerate_out_of_range) return std::optional<Version>();
      return invalid_argument(
          "DELTA_CDC_START_VERSION_AFTER_LATEST",
          "Start version {} for change data feed exceeds the latest table version {} of {} "
          "(timestampGreaterThanLatestCommit): start earlier, or {}",
          *version, latest, table_.path(), kSetting);
    }
    return std::optional<Version>(*version);
  }
  const int64_t us = std::get<Timestamp>(request_.start).us;
  if (us > latest_->timestamp_ms * 1000) {
    if (request_.tolerate_out_of_range) return std::optional<Version>();
    return too_late("start", us);
  }
  const auto before = table_.version_at(floor_ms(us));
  if (!before.ok()) {
    if (before.error().code != "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION")
      return before.error();
    return std::optional<Version>(earliest());
  }
  SL_ASSIGN(const int64_t time_ms, times_->of(*before));
  return std::optional<Version>(time_ms * 1000 >= us ? *before : *before + 1);
}

Result<Version> Planner::resolve_end(const Bound& end) {
  const Version latest = latest_->version;
  if (const auto* const version = std::get_if<Version>(&end)) {
    if (*version < 0) {
      return invalid_argument("DELTA_VERSION_INVALID",
                              "the end version {} is none: versions count from 0", *version);
    }
    if (*version <= latest) return *version;
    if (request_.tolerate_out_of_range) return latest;
    return invalid_argument(
        "DELTA_CDC_END_VERSION_AFTER_LATEST",
        "End version {} for change data feed exceeds the latest table version {} of "
        "{} (timestampGreaterThanLatestCommit): end earlier, leave the end "
        "out for all there is, or {}",
        *version, latest, table_.path(), kSetting);
  }
  const int64_t us = std::get<Timestamp>(end).us;
  if (us > latest_->timestamp_ms * 1000) {
    if (request_.tolerate_out_of_range) return latest;
    return too_late("end", us);
  }
  return table_.version_at(floor_ms(us));
}

Result<bool> Planner::resolve_range() {
  const auto* const start_time = std::get_if<Timestamp>(&request_.start);
  const auto* const end_time = request_.end ? std::get_if<Timestamp>(&*request_.end) : nullptr;
  if (start_time != nullptr && end_time != nullptr && end_time->us < start_time->us) {
    return invalid_argument(
        "DELTA_INVALID_CDC_RANGE",
        "CDC range from start {} to end {} was invalid. End cannot be before start.",
        format_us(start_time->us), format_us(end_time->us));
  }
  const auto backwards = [](Version start, Version end) {
    return invalid_argument(
        "DELTA_INVALID_CDC_RANGE",
        "CDC range from start {} to end {} was invalid. End cannot be before start.", start, end);
  };
  const auto* const start_version = std::get_if<Version>(&request_.start);
  const auto* const end_version = request_.end ? std::get_if<Version>(&*request_.end) : nullptr;
  if (start_version != nullptr && end_version != nullptr && *end_version < *start_version &&
      *end_version >= 0) {
    return backwards(*start_version, *end_version);
  }
  SL_ASSIGN(const std::optional<Version> start, resolve_start());
  if (!start) return false;
  plan_.first = *start;
  plan_.last = latest_->version;
  if (request_.end) {
    SL_ASSIGN(plan_.last, resolve_end(*request_.end));
  }
  if (plan_.last < plan_.first) {
    // Two times without a commit between them.
    if (start_time != nullptr && end_time != nullptr) return false;
    return backwards(plan_.first, plan_.last);
  }
  if (const Version oldest = earliest(); plan_.first < oldest) {
    return not_found("DELTA_VERSION_NOT_FOUND",
                     "the change data of {} cannot start at version {}: its log is kept from "
                     "version {} on; start there",
                     table_.path(), plan_.first, oldest);
  }
  return true;
}

Status Planner::read_commits() {
  auto start = latest_;
  if (plan_.first != latest_->version) {
    SL_ASSIGN(start, table_.snapshot(plan_.first));
  }
  states_.push_back({plan_.first, without_files(*start)});
  for (Version version = plan_.first; version <= plan_.last; ++version) {
    SL_ASSIGN(std::vector<Action> actions, table_.commit(version));
    if (version > plan_.first) {
      std::shared_ptr<Snapshot> next;
      for (Action& action : actions) {
        auto* const protocol = std::get_if<delta::Protocol>(&action);
        auto* const metadata = std::get_if<delta::Metadata>(&action);
        if (protocol == nullptr && metadata == nullptr) continue;
        if (!next) next = without_files(*states_.back().definition);
        next->version = version;
        if (protocol != nullptr) next->protocol = std::move(*protocol);
        if (metadata != nullptr) next->metadata = std::move(*metadata);
      }
      if (next) {
        SL_TRY(delta::check_feed_readable(next->protocol, table_.path()));
        SL_ASSIGN(next->schema, delta::parse_schema(next->metadata.schema_string));
        states_.push_back({version, std::move(next)});
      }
    } else {
      start_has_metadata_ = std::any_of(actions.begin(), actions.end(), [](const Action& action) {
        return std::holds_alternative<delta::Metadata>(action);
      });
    }
    const Snapshot& state = *states_.back().definition;
    const bool legacy = records_changes(state);
    const bool tracking = state.row_tracking_enabled();
    const bool ends_legacy = !legacy && !without_legacy_;
    const bool ends_tracking = !tracking && !without_tracking_;
    if (request_.stream_definition && (legacy || tracking) && (without_legacy_ || ends_legacy) &&
        (without_tracking_ || ends_tracking)) {
      if (states_.back().from == version) states_.pop_back();
      plan_.last = version - 1;
      break;
    }
    if (!legacy && !without_legacy_) without_legacy_ = version;
    if (!tracking && !without_tracking_) without_tracking_ = version;
    if (!legacy && !tracking && !request_.mode) {
      return invalid_argument(
          "DELTA_MISSING_CHANGE_DATA",
          "Error getting change data for range [{} , {}] as change data was not recorded for "
          "version [{}] of {}. From then on rows of new tables are tracked; ALTER TABLE … SET "
          "TBLPROPERTIES ('delta.enableRowTracking' = 'true') does it for this one",
          plan_.first, plan_.last, version, table_.path());
    }
    SL_ASSIGN(const int64_t time_ms, times_->of(version, actions));
    commits_.push_back(take_files(version, time_ms, &actions));
  }
  return {};
}

Status Planner::choose_mode() {
  if (request_.mode ? *request_.mode == FeedMode::kLegacy : !without_legacy_) {
    plan_.mode = FeedMode::kLegacy;
    if (!without_legacy_) return {};
    return invalid_argument("DELTA_MISSING_CHANGE_DATA",
                            "Error getting change data for range [{} , {}] as change data was not "
                            "recorded for version [{}] of {}",
                            plan_.first, plan_.last, *without_legacy_, table_.path());
  }
  plan_.mode = FeedMode::kAutomatic;
  if (!without_tracking_) return {};
  if (!request_.mode) {
    // Both feeds were on at times, neither throughout: the range has to end where one ends.
    const Version split = std::max(*without_legacy_, *without_tracking_);
    return invalid_argument(
        "DELTA_MISSING_CHANGE_DATA",
        "Error getting change data for range [{} , {}] as change data was not recorded in one way "
        "for version [{}] of {}: the feed changed between recorded and automatic; read [{} , {}] "
        "and [{} , {}]",
        plan_.first, plan_.last, split, table_.path(), plan_.first, split - 1, split, plan_.last);
  }
  if (!states_.back().definition->row_tracking_enabled()) {
    return invalid_argument("DELTA_CHANGELOG_REQUIRES_ROW_TRACKING",
                            "the automatic change data feed of {} needs row tracking, which is off "
                            "at version {}: ALTER TABLE … SET TBLPROPERTIES "
                            "('delta.enableRowTracking' = 'true')",
                            table_.path(), plan_.last);
  }
  return invalid_argument("DELTA_CHANGELOG_ROW_TRACKING_DISABLED_IN_RANGE",
                          "row tracking of {} was off at version {} of the range [{} , {}]: read a "
                          "range after it",
                          table_.path(), *without_tracking_, plan_.first, plan_.last);
}

Status Planner::check_columns(const Snapshot& definition) const {
  for (const char* name : {kChangeTypeColumn, kCommitVersionColumn, kCommitTimestampColumn}) {
    if (!definition.schema.find(name)) continue;
    return invalid_argument("DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS",
                            "table {} has a column {} of its own, so that its change data feed "
                            "cannot be read: rename the column",
                            table_.path(), name);
  }
  return {};
}

// Whether the changes of a commit hold rows as the version before had them: those of files that it
// removes.
bool Planner::removes_older_rows(Version version) const {
  const CommitFiles& commit = commits_[static_cast<size_t>(version - plan_.first)];
  if (commit.removes.empty()) return false;
  if (plan_.mode == FeedMode::kAutomatic) return true;
  return commit.recorded.empty() && !commit.is_empty_merge;
}

// One commit may replace both the rows and the columns: the rows it deletes have the columns
// before.
Status Planner::add_state_before() {
  if (!start_has_metadata_ || plan_.first == 0 || commits_.empty() ||
      !removes_older_rows(plan_.first)) {
    return {};
  }
  SL_ASSIGN(const auto before, table_.snapshot(plan_.first - 1));
  states_.insert(states_.begin(), {before->version, without_files(*before)});
  return {};
}

// The newest schema reads an unmapped table's recorded feed, where it can; a mapped table's and
// the automatic feed are read by the end's.
Status Planner::choose_schema() {
  if (request_.stream_definition) return check_stream_schema();
  const auto is_mapped = [](const Snapshot& state) {
    return state.column_mapping_mode() != "none";
  };
  const bool by_newest =
      plan_.mode == FeedMode::kLegacy && !is_mapped(*latest_) &&
      std::none_of(states_.begin(), states_.end(), [&](const State& state) {
        return is_mapped(*state.definition) || why_unreadable(*state.definition, *latest_);
      });
  if (!by_newest) plan_.definition = states_.back().definition;
  SL_TRY(check_columns(*plan_.definition));
  for (size_t i = states_.size() - 1; i-- > 0;) {
    const auto why = why_unreadable(*states_[i].definition, *plan_.definition);
    if (!why) continue;
    const Version split = states_[i + 1].from;
    // Columns that RESTORE takes back are left out of the rows that go with them.
    const bool splits_commit =
        removes_older_rows(split) && !(why->column_is_missing && is_restore(split));
    if (!splits_commit && split == plan_.first) continue;
    std::string advice;
    const auto read = [&](Version first, Version last) {
      if (first > last) return;
      advice += fmt::format("{} [{} , {}]", advice.empty() ? ". Read" : " and", first, last);
    };
    read(plan_.first, split - 1);
    read(splits_commit ? split + 1 : split, plan_.last);
    if (splits_commit) {
      advice = fmt::format(
          ", which also deletes rows as they were: no range with version {} can be read{}", split,
          advice);
    }
    return invalid_argument(plan_.mode == FeedMode::kAutomatic
                                ? "DELTA_CHANGELOG_SCHEMA_CHANGE_IN_RANGE"
                                : "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE",
                            "the change data of {} for range [{} , {}] spans a schema change: {} "
                            "at version {}{}",
                            table_.path(), plan_.first, plan_.last, why->why, split, advice);
  }
  return {};
}

// A stream keeps the columns it began with: older data may lack some, newer may not.
Status Planner::check_stream_schema() {
  plan_.definition = request_.stream_definition;
  const Snapshot& columns = *plan_.definition;
  SL_TRY(check_columns(columns));
  for (const State& state : states_) {
    auto why = why_unreadable(*state.definition, columns);
    const auto lost = why_unreadable(columns, *state.definition);
    // What came and was taken back by RESTORE is gone with its rows: no stream need read it.
    const bool is_newer = state.from > columns.version;
    if (why && why->column_is_missing && !is_newer && restored_without(state)) continue;
    if (why && why->column_is_missing && !lost && is_newer) {
      return invalid_data("DELTA_SCHEMA_CHANGED_WITH_VERSION",
                          "Detected schema change in version {} of {}: columns were added that the "
                          "stream does not read yet; start the stream again",
                          state.from, table_.path());
    }
    if (!why && is_newer && lost && lost->column_is_missing && !is_restore(state.from)) why = lost;
    if (!why) continue;
    return invalid_data("DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE",
                        "the stream of {} cannot go on over version {}: between it and the "
                        "stream's columns {}; begin a new stream after it, without its checkpoint",
                        table_.path(), std::max(state.from, plan_.first), why->why);
  }
  return {};
}

// A file keeps the hidden columns of the definition under which it was added, whatever they are
// called later: of each file the names that it has are looked up among all that are known.
void Planner::know_row_id_columns() {
  if (plan_.mode != FeedMode::kAutomatic) return;
  auto definition = without_files(*plan_.definition);
  for (auto state = states_.rbegin(); state != states_.rend(); ++state)
    delta::add_row_id_columns(*state->definition, definition.get());
  // Files from before the range may go later in it.
  const bool removes = std::any_of(commits_.begin(), commits_.end(),
                                   [](const CommitFiles& one) { return !one.removes.empty(); });
  if (start_has_metadata_ && removes && plan_.first > 0 && states_.front().from == plan_.first) {
    const auto before = table_.snapshot(plan_.first - 1);
    if (before.ok()) delta::add_row_id_columns(**before, definition.get());
  }
  plan_.definition = std::move(definition);
}

bool Planner::is_restore(Version version) const {
  const auto actions = table_.commit(version);
  if (!actions.ok()) return false;
  return std::any_of(actions->begin(), actions->end(), [](const Action& action) {
    const auto* const info = std::get_if<delta::CommitInfo>(&action);
    return info != nullptr && info->operation == "RESTORE";
  });
}

// Whether a RESTORE between a state and the stream's columns led back to before the columns that
// these lack.
bool Planner::restored_without(const State& state) const {
  for (Version version = state.from + 1; version <= plan_.definition->version; ++version) {
    const auto actions = table_.commit(version);
    if (!actions.ok()) return false;
    for (const Action& action : *actions) {
      const auto* const metadata = std::get_if<delta::Metadata>(&action);
      if (metadata == nullptr) continue;
      const auto after = without_files(*state.definition);
      after->metadata = *metadata;
      auto schema = delta::parse_schema(metadata->schema_string);
      if (!schema.ok()) return false;
      after->schema = *std::move(schema);
      const auto lost = why_unreadable(*state.definition, *after);
      if (lost && lost->column_is_missing) return is_restore(version);
    }
  }
  return false;
}

Status Planner::list_changes() {
  for (CommitFiles& commit : commits_) {
    SL_ASSIGN(CommitChanges changes, changes_of(std::move(commit), plan_.mode, *plan_.definition));
    if (!changes.files.empty()) plan_.commits.push_back(std::move(changes));
  }
  return {};
}

}  // namespace

std::shared_ptr<Snapshot> without_files(const Snapshot& snapshot) {
  auto definition = std::make_shared<Snapshot>();
  definition->table_path = snapshot.table_path;
  definition->version = snapshot.version;
  definition->protocol = snapshot.protocol;
  definition->metadata = snapshot.metadata;
  definition->schema = snapshot.schema;
  return definition;
}

bool CommitChanges::needs_matching(FeedMode mode) const {
  if (mode != FeedMode::kAutomatic) return false;
  const auto has = [this](ChangeKind kind) {
    return std::any_of(files.begin(), files.end(),
                       [kind](const FileChange& change) { return change.kind == kind; });
  };
  return has(ChangeKind::kInsert) && has(ChangeKind::kDelete);
}

Result<std::optional<Version>> resolve_start(const delta::Table& table, const Bound& start,
                                             bool tolerate_out_of_range) {
  RangeRequest request;
  request.start = start;
  request.tolerate_out_of_range = tolerate_out_of_range;
  return Planner(table, request).start();
}

Result<ChangePlan> plan_changes(const delta::Table& table, const RangeRequest& request) {
  return Planner(table, request).plan();
}

std::optional<Error> find_missing_file(storage::Store* store, const ChangePlan& plan) {
  struct Missing {
    Version version = 0;
    std::string path;
  };
  std::optional<Missing> first;
  Version last = 0;
  for (const CommitChanges& commit : plan.commits) {
    for (const FileChange& change : commit.files) {
      auto path =
          delta::resolve_data_path(plan.definition->table_path, std::string(change.file.path));
      if (!path.ok()) return path.error();
      const auto found = store->stat(*path);
      if (found.ok() || found.error().kind != ErrorKind::kNotFound) continue;
      if (!first) first = Missing{commit.version, std::move(path).value()};
      last = commit.version;
      break;
    }
  }
  if (!first) return std::nullopt;
  return not_found("DELTA_CHANGE_DATA_FILE_NOT_FOUND",
                   "the change data of version {} of {} needs the file {}, which is gone, as after "
                   "VACUUM: start after version {}",
                   first->version, plan.definition->table_path, first->path, last);
}

}  // namespace strandline::cdf
