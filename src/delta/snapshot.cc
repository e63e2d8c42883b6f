#include "delta/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <unordered_set>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "delta/action_json.h"
#include "delta/data_path.h"
#include "delta/deletion_vector.h"
#include "delta/features.h"
#include "delta/log_files.h"
#include "delta/properties.h"

namespace strandline::delta {

std::optional<std::string> Snapshot::property(const std::string& key) const {
  const auto found = metadata.configuration.find(key);
  if (found == metadata.configuration.end()) return std::nullopt;
  return found->second;
}

bool Snapshot::property_is_true(const std::string& key) const {
  const auto found = metadata.configuration.find(key);
  return found != metadata.configuration.end() && fold_name(found->second) == "true";
}

std::optional<int64_t> Snapshot::txn_version(const std::string& app_id) const {
  const auto found = txns.find(app_id);
  if (found == txns.end()) return std::nullopt;
  return found->second.version;
}

bool Snapshot::deletion_vectors_enabled() const {
  return property_is_true("delta.enableDeletionVectors") && supports(protocol, "deletionVectors");
}

bool Snapshot::row_tracking_enabled() const {
  return property_is_true("delta.enableRowTracking") &&
         !property_is_true("delta.rowTrackingSuspended") && supports(protocol, "rowTracking");
}

bool Snapshot::in_commit_timestamps_enabled() const {
  return property_is_true("delta.enableInCommitTimestamps") &&
         supports(protocol, "inCommitTimestamp");
}

std::optional<std::string> Snapshot::row_id_column() const {
  if (!row_tracking_enabled()) return std::nullopt;
  return property("delta.rowTracking.materializedRowIdColumnName");
}

std::optional<std::string> Snapshot::row_commit_version_column() const {
  if (!row_tracking_enabled()) return std::nullopt;
  return property("delta.rowTracking.materializedRowCommitVersionColumnName");
}

int64_t Snapshot::row_id_high_water_mark() const {
  const auto domain = domains.find("delta.rowTracking");
  if (domain == domains.end()) return -1;
  const auto json = Json::parse(domain->second.configuration);
  if (!json.ok()) return -1;
  const Json* const mark = json->get("rowIdHighWaterMark");
  return mark == nullptr ? -1 : mark->as_int().value_or(-1);
}

std::string Snapshot::column_mapping_mode() const {
  if (!supports(protocol, "columnMapping")) return "none";
  return property("delta.columnMapping.mode").value_or("none");
}

std::string Snapshot::physical_name(const Field& field) {
  const auto found = field.metadata.find("delta.columnMapping.physicalName");
  if (found == field.metadata.end()) return field.name;
  const auto json = Json::parse(found->second);
  return json.ok() && json->is_string() ? json->text() : field.name;
}

std::optional<int64_t> num_records(const AddFile& file) {
  if (!file.stats) return std::nullopt;
  // Nearly every writer puts the count first.
  constexpr std::string_view kStart = "{\"numRecords\":";
  const std::string_view text = *file.stats;
  if (text.starts_with(kStart)) {
    int64_t count = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + kStart.size(), end, count);
    if (error == std::errc() && stop != end && (*stop == ',' || *stop == '}')) return count;
  }
  const auto json = Json::parse(text);
  if (!json.ok()) return std::nullopt;
  const Json* const count = json->get("numRecords");
  return count == nullptr ? std::nullopt : count->as_int();
}

std::optional<int64_t> live_row_count(const Snapshot& snapshot) {
  int64_t total = 0;
  for (const AddFile& file : snapshot.files) {
    const std::optional<int64_t> count = num_records(file);
    if (!count) return std::nullopt;
    total += *count - (file.deletion_vector ? file.deletion_vector->cardinality : 0);
  }
  return total;
}

namespace {

constexpr const char* kGap = "DELTA_VERSIONS_NOT_CONTIGUOUS";

std::optional<int64_t> integer_property(const Snapshot& snapshot, const std::string& key) {
  if (!snapshot.property(key)) return std::nullopt;
  return delta::integer_property(snapshot.metadata.configuration, key, 0);
}

// The first version whose commit carries its own timestamp; nullopt when none does.
std::optional<Version> first_in_commit_version(const Snapshot& snapshot) {
  if (!snapshot.in_commit_timestamps_enabled()) return std::nullopt;
  return integer_property(snapshot, "delta.inCommitTimestampEnablementVersion").value_or(0);
}

// Modification times of the commits, made strictly increasing.
std::map<Version, int64_t> file_timestamps(const LogFiles& log) {
  std::map<Version, int64_t> times;
  std::optional<int64_t> previous;
  for (const auto& [version, file] : log.commits) {
    const int64_t time = previous ? std::max(file.modified_ms, *previous + 1) : file.modified_ms;
    times.emplace_hint(times.end(), version, time);
    previous = time;
  }
  return times;
}

const CommitInfo* find_commit_info(const std::vector<Action>& actions) {
  for (const Action& action : actions) {
    if (const auto* const info = std::get_if<CommitInfo>(&action)) return info;
  }
  return nullptr;
}

Result<std::vector<Action>> read_commit(storage::Store* store, const std::string& table_path,
                                        Version version) {
  const std::string path = commit_path(table_path, version);
  SL_ASSIGN(std::string text, store->read(path));
  // No writer leaves one behind; what it held is lost.
  if (text.empty()) {
    return corrupt("DELTA_COMMIT_EMPTY", "commit {} is empty: restore the file", path);
  }
  return parse_actions(std::move(text), path);
}

// The columns that a table's metadata speaks of: each once, and the partition columns among them.
Status check_metadata(const Metadata& metadata, const Schema& schema, const std::string& table_path,
                      Version version) {
  std::set<std::string> names;
  for (const Field& field : schema.fields) {
    if (names.insert(fold_name(field.name)).second) continue;
    return corrupt("DELTA_DUPLICATE_COLUMNS_FOUND",
                   "table {} has the column {} twice at version {}", table_path, field.name,
                   version);
  }
  for (const std::string& name : metadata.partition_columns) {
    if (names.contains(fold_name(name))) continue;
    return corrupt("DELTA_PARTITION_COLUMN_NOT_FOUND",
                   "table {} is partitioned by {} at version {}, which is no column of it",
                   table_path, name, version);
  }
  return {};
}

Result<int64_t> in_commit_timestamp(const std::vector<Action>& actions, const std::string& path) {
  const CommitInfo* const info = find_commit_info(actions);
  if (info == nullptr || !info->in_commit_timestamp_ms) {
    return corrupt("DELTA_MISSING_COMMIT_TIMESTAMP",
                   "{} has no inCommitTimestamp, which its table requires", path);
  }
  return *info->in_commit_timestamp_ms;
}

// Builds a snapshot from actions that arrive newest first; the first word about a thing is the
// last.
class Replay {
 public:
  explicit Replay(Snapshot* snapshot) : snapshot_(snapshot) {}

  void reserve(size_t actions) { seen_.reserve(seen_.size() + actions); }

  // Takes the file and metadata actions out of a commit's or checkpoint's list.
  void take(std::vector<Action>* actions) {
    for (auto action = actions->rbegin(); action != actions->rend(); ++action)
      std::visit(*this, *action);
  }

  bool has_protocol() const { return has_protocol_; }
  bool has_metadata() const { return has_metadata_; }

  void operator()(AddFile& file) {
    empty_is_null(&file.partition_values);
    if (is_new(file.path, file.deletion_vector)) snapshot_->files.push_back(std::move(file));
  }
  void operator()(RemoveFile& file) {
    empty_is_null(&file.partition_values);
    if (is_new(file.path, file.deletion_vector)) snapshot_->tombstones.push_back(std::move(file));
  }
  void operator()(Protocol& protocol) {
    if (!has_protocol_) snapshot_->protocol = std::move(protocol);
    has_protocol_ = true;
  }
  void operator()(Metadata& metadata) {
    if (!has_metadata_) snapshot_->metadata = std::move(metadata);
    has_metadata_ = true;
  }
  void operator()(Txn& txn) {
    std::string app_id = txn.app_id;
    snapshot_->txns.emplace(std::move(app_id), std::move(txn));
  }
  void operator()(DomainMetadata& domain) {
    std::string name = domain.domain;
    snapshot_->domains.emplace(std::move(name), std::move(domain));
  }
  void operator()(const CommitInfo&) {}
  void operator()(const CdcFile&) {}

  void finish() {
    std::erase_if(snapshot_->domains, [](const auto& domain) { return domain.second.removed; });
    const auto by_path = [](const auto& a, const auto& b) { return a.path < b.path; };
    std::sort(snapshot_->files.begin(), snapshot_->files.end(), by_path);
    std::sort(snapshot_->tombstones.begin(), snapshot_->tombstones.end(), by_path);
  }

 private:
  // Section 5; checkpoints may hold either form.
  static void empty_is_null(std::map<std::string, std::optional<std::string>>* values) {
    for (auto& [column, value] : *values) {
      if (value && value->empty()) value.reset();
    }
  }

  bool is_new(const std::string& path, const std::optional<DeletionVectorDescriptor>& vector) {
    std::string key = canonical_path(snapshot_->table_path, path);
    if (vector) {
      key += '\n';
      key += vector->unique_id();
    }
    return seen_.insert(std::move(key)).second;
  }

  Snapshot* snapshot_;
  std::unordered_set<std::string> seen_;
  bool has_protocol_ = false;
  bool has_metadata_ = false;
};

class SnapshotReader {
 public:
  SnapshotReader(storage::Store* store, ParquetPort* parquet, const std::string& table_path)
      : store_(store), parquet_(parquet), table_path_(table_path) {}

  Result<std::shared_ptr<const Snapshot>> read(const LogFiles& log, std::optional<Version> wanted) {
    const Version latest = log.latest();
    const Version version = wanted.value_or(latest);
    if (version < 0 || version > latest) return no_version(log, version);

    // Newest checkpoint first; a damaged one is passed over where older files lead to the version.
    std::optional<Error> damaged;
    for (auto checkpoint = log.checkpoints.rbegin(); checkpoint != log.checkpoints.rend();
         ++checkpoint) {
      if (checkpoint->version > version) continue;
      if (damaged && !commits_are_complete(log, checkpoint->version + 1, version).ok()) continue;
      auto snapshot = read_from(log, &*checkpoint, version);
      if (snapshot.ok() || snapshot.error().kind != ErrorKind::kCorrupt || !checkpoint_failed_)
        return snapshot;
      if (!damaged) damaged = std::move(snapshot).error();
    }
    if (damaged && !commits_are_complete(log, 0, version).ok()) return *damaged;
    // Older than every checkpoint, and the commits that led there are cleaned up.
    if (log.commits.count(0) == 0 && !log.checkpoints.empty() && !damaged)
      return no_version(log, version);
    return read_from(log, nullptr, version);
  }

 private:
  Error no_version(const LogFiles& log, Version version) const {
    return not_found("DELTA_VERSION_NOT_FOUND",
                     "table {} has no version {} to read; versions {} to {} are kept", table_path_,
                     version, log.earliest(), log.latest());
  }

  Status commits_are_complete(const LogFiles& log, Version first, Version last) const {
    auto commit = log.commits.lower_bound(first);
    for (Version version = first; version <= last; ++version, ++commit) {
      if (commit == log.commits.end() || commit->first != version) {
        const Version next =
            commit == log.commits.end() ? last + 1 : std::min(commit->first, last + 1);
        return corrupt(
            kGap,
            "table {} cannot be read at version {}: commit files of versions {} to {} are missing "
            "from its log and no checkpoint covers them; restore them",
            table_path_, last, version, next - 1);
      }
    }
    return {};
  }

  Result<std::shared_ptr<const Snapshot>> read_from(const LogFiles& log,
                                                    const Checkpoint* checkpoint, Version version) {
    checkpoint_failed_ = false;
    const Version first = checkpoint == nullptr ? 0 : checkpoint->version + 1;
    SL_TRY(commits_are_complete(log, first, version));

    auto snapshot = std::make_shared<Snapshot>();
    snapshot->table_path = table_path_;
    snapshot->version = version;
    Replay replay(snapshot.get());
    std::optional<int64_t> own_timestamp;
    for (Version at = version; at >= first; --at) {
      SL_ASSIGN(std::vector<Action> actions, read_commit(store_, table_path_, at));
      if (at == version) {
        if (const CommitInfo* const info = find_commit_info(actions)) {
          own_timestamp = info->in_commit_timestamp_ms;
        }
      }
      replay.take(&actions);
    }
    if (checkpoint != nullptr) {
      auto actions = read_checkpoint(*checkpoint);
      if (!actions.ok()) {
        checkpoint_failed_ = true;
        return std::move(actions).error();
      }
      SL_TRY(check_complete(*checkpoint, *actions));
      auto counted = check_file_count(*checkpoint, *actions);
      if (!counted.ok()) {
        checkpoint_failed_ = true;
        return std::move(counted).error();
      }
      replay.reserve(actions->size());
      snapshot->files.reserve(snapshot->files.size() + actions->size());
      replay.take(&*actions);
    }
    if (!replay.has_protocol() || !replay.has_metadata()) {
      return corrupt("DELTA_STATE_RECOVER_ERROR", "table {} has no {} action up to version {}",
                     table_path_, replay.has_protocol() ? "metaData" : "protocol", version);
    }
    replay.finish();

    SL_TRY(check_readable(snapshot->protocol, table_path_));
    auto schema = parse_schema(snapshot->metadata.schema_string);
    if (!schema.ok()) return schema.error().with_context("table " + table_path_);
    snapshot->schema = std::move(schema).value();
    SL_TRY(check_metadata(snapshot->metadata, snapshot->schema, table_path_, version));
    SL_ASSIGN(snapshot->timestamp_ms, timestamp_of(log, *snapshot, own_timestamp, checkpoint));
    return std::shared_ptr<const Snapshot>(std::move(snapshot));
  }

  Result<int64_t> timestamp_of(const LogFiles& log, const Snapshot& snapshot,
                               std::optional<int64_t> own, const Checkpoint* checkpoint) {
    const auto commit = log.commits.find(snapshot.version);
    // The commit of a checkpoint's version may be cleaned up: its file's time is what is left.
    if (commit == log.commits.end()) return checkpoint->modified_ms;
    const std::optional<Version> first = first_in_commit_version(snapshot);
    if (!first || snapshot.version < *first) return file_timestamps(log).at(snapshot.version);
    if (own) return *own;
    SL_ASSIGN(const std::vector<Action> actions,
              read_commit(store_, table_path_, snapshot.version));
    return in_commit_timestamp(actions, commit->second.path);
  }

  Status check_complete(const Checkpoint& checkpoint, const std::vector<Action>& actions) const {
    const auto has = [&](auto is) { return std::any_of(actions.begin(), actions.end(), is); };
    const bool protocol = has([](const Action& a) { return std::holds_alternative<Protocol>(a); });
    const bool metadata = has([](const Action& a) { return std::holds_alternative<Metadata>(a); });
    if (protocol && metadata) return {};
    return corrupt("DELTA_STATE_RECOVER_ERROR", "checkpoint {} has no {} action",
                   checkpoint.paths[0], protocol ? "metaData" : "protocol");
  }

  Status check_file_count(const Checkpoint& checkpoint, const std::vector<Action>& actions) const {
    const std::optional<int64_t> promised = promised_files(checkpoint.version);
    if (!promised) return {};
    const int64_t found = std::count_if(actions.begin(), actions.end(), [](const Action& action) {
      return std::holds_alternative<AddFile>(action);
    });
    if (found == *promised) return {};
    return corrupt("DELTA_CHECKPOINT_INCOMPLETE",
                   "checkpoint {} lists {} files, but _last_checkpoint says {}: remove the "
                   "checkpoint if the commits before it are kept, else restore it",
                   checkpoint.paths[0], found, *promised);
  }

  // How many files _last_checkpoint says that the checkpoint of a version lists. The file is a
  // hint: it may be absent, damaged or of another version.
  std::optional<int64_t> promised_files(Version version) const {
    const auto text = store_->read(log_directory(table_path_) + "/_last_checkpoint");
    if (!text.ok()) return std::nullopt;
    const auto hint = Json::parse(*text);
    if (!hint.ok()) return std::nullopt;
    const Json* const of = hint->get("version");
    const Json* const files = hint->get("numOfAddFiles");
    if (of == nullptr || files == nullptr || of->as_int() != version) return std::nullopt;
    return files->as_int();
  }

  Result<std::vector<Action>> read_checkpoint(const Checkpoint& checkpoint) {
    std::vector<Action> all;
    std::vector<std::string> sidecars;
    for (const std::string& path : checkpoint.paths) {
      if (path.ends_with(".json")) {
        SL_ASSIGN(std::string text, store_->read(path));
        SL_ASSIGN(std::vector<Action> actions, parse_actions(std::move(text), path, &sidecars));
        append(&all, std::move(actions));
      } else {
        SL_ASSIGN(std::vector<Action> actions, parquet_->read_checkpoint(path, &sidecars));
        append(&all, std::move(actions));
      }
    }
    for (const std::string& sidecar : sidecars) {
      SL_ASSIGN(const std::string path,
                resolve_data_path(log_directory(table_path_) + "/_sidecars", sidecar));
      std::vector<std::string> nested;
      SL_ASSIGN(std::vector<Action> actions, parquet_->read_checkpoint(path, &nested));
      append(&all, std::move(actions));
    }
    return all;
  }

  static void append(std::vector<Action>* all, std::vector<Action> more) {
    if (all->empty()) {
      *all = std::move(more);
    } else {
      all->insert(all->end(), std::make_move_iterator(more.begin()),
                  std::make_move_iterator(more.end()));
    }
  }

  storage::Store* store_;
  ParquetPort* parquet_;
  const std::string& table_path_;
  // The last read_from failed in the checkpoint itself, not in the commits after it.
  bool checkpoint_failed_ = false;
};

}  // namespace

Table::Table(std::shared_ptr<storage::Store> store, std::shared_ptr<ParquetPort> parquet,
             std::string path)
    : store_(std::move(store)), parquet_(std::move(parquet)), path_(std::move(path)) {
  while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
}

Result<bool> Table::exists() const {
  const auto log = list_log(store_.get(), path_);
  if (log.ok()) return true;
  if (log.error().kind == ErrorKind::kNotFound) return false;
  return log.error();
}

Result<std::shared_ptr<const Snapshot>> Table::snapshot(std::optional<Version> version) const {
  // A listing is not one moment: files come while it runs, so that a commit may be missing from it
  // and its successor not; and another engine may clean up what it named. A second look decides.
  constexpr int kLooks = 3;
  for (int look = 1;; ++look) {
    SL_ASSIGN(const LogFiles log, list_log(store_.get(), path_));
    auto snapshot = SnapshotReader(store_.get(), parquet_.get(), path_).read(log, version);
    const bool may_have_moved = !snapshot.ok() && (snapshot.error().code == kGap ||
                                                   snapshot.error().code == "FILE_NOT_FOUND");
    if (!may_have_moved || look == kLooks) return snapshot;
  }
}

Result<Version> Table::latest_version() const {
  SL_ASSIGN(const LogFiles log, list_log(store_.get(), path_));
  return log.latest();
}

Result<Version> Table::version_at(int64_t timestamp_ms) const {
  SL_ASSIGN(const std::shared_ptr<const Snapshot> latest, snapshot());
  SL_ASSIGN(const LogFiles log, list_log(store_.get(), path_));
  // The commits that lead to the latest version without a gap.
  std::vector<Version> versions;
  for (Version version = latest->version; log.commits.count(version) > 0; --version)
    versions.push_back(version);
  std::reverse(versions.begin(), versions.end());
  if (versions.empty()) versions.push_back(latest->version);

  const std::optional<Version> first_own = first_in_commit_version(*latest);
  const std::map<Version, int64_t> file_times = file_timestamps(log);
  const auto time_of = [&](Version version) -> Result<int64_t> {
    if (version == latest->version) return latest->timestamp_ms;
    if (!first_own || version < *first_own) return file_times.at(version);
    SL_ASSIGN(const std::vector<Action> actions, commit(version));
    return in_commit_timestamp(actions, commit_path(path_, version));
  };

  // File times and commit times may overlap where in-commit timestamps were enabled later; the
  // enablement timestamp says on which side the answer lies.
  size_t begin = 0;
  size_t end = versions.size();
  const std::optional<int64_t> enabled_at =
      integer_property(*latest, "delta.inCommitTimestampEnablementTimestamp");
  if (first_own && enabled_at) {
    const size_t border = static_cast<size_t>(
        std::lower_bound(versions.begin(), versions.end(), *first_own) - versions.begin());
    if (timestamp_ms >= *enabled_at) {
      begin = border;
    } else if (border > 0) {
      end = border;
    }
  }
  if (begin >= end) begin = 0;

  // The last version in [begin, end) at or before the timestamp.
  size_t low = begin;
  size_t high = end;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    SL_ASSIGN(const int64_t time, time_of(versions[middle]));
    if (time <= timestamp_ms) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == begin) {
    SL_ASSIGN(const int64_t earliest, time_of(versions[begin]));
    return not_found("DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
                     "table {} has no version as old as {}; its earliest kept version {} is of {}",
                     path_, format_utc_ms(timestamp_ms), versions[begin], format_utc_ms(earliest));
  }
  return versions[low - 1];
}

Result<std::vector<Action>> Table::commit(Version version) const {
  auto actions = read_commit(store_.get(), path_, version);
  if (actions.ok() || actions.error().kind != ErrorKind::kNotFound) return actions;
  SL_ASSIGN(const LogFiles log, list_log(store_.get(), path_));
  if (log.commits.empty()) return actions;
  return not_found("DELTA_VERSION_NOT_FOUND",
                   "table {} has no commit {}; commits {} to {} are kept", path_, version,
                   log.commits.begin()->first, log.commits.rbegin()->first);
}

Result<RowSet> Table::deletion_vector(const DeletionVectorDescriptor& descriptor) const {
  return DeletionVectorReader(store_.get(), path_).read(descriptor);
}

Result<std::map<size_t, RowSet>> Table::load_deletion_vectors(const Snapshot& snapshot) const {
  DeletionVectorReader reader(store_.get(), path_);
  std::map<size_t, RowSet> result;
  for (size_t i = 0; i < snapshot.files.size(); ++i) {
    const AddFile& file = snapshot.files[i];
    if (!file.deletion_vector) continue;
    auto rows = reader.read(*file.deletion_vector);
    if (!rows.ok()) {
      return rows.error().with_context(fmt::format("table {}, version {}, deletion vector of {}",
                                                   path_, snapshot.version, file.path));
    }
    result.emplace_hint(result.end(), i, std::move(rows).value());
  }
  return result;
}

}  // namespace strandline::delta
