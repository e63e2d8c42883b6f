#include "delta/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_set>

#include "base/error.h"
#include "base/json.h"
#include "delta/action_json.h"
#include "delta/checksum.h"
#include "delta/data_path.h"
#include "delta/features.h"
#include "delta/properties.h"

namespace strandline::delta {

namespace {

const CommitInfo* find_commit_info(const std::vector<Action>& actions) {
  for (const Action& action : actions) {
    if (const auto* const info = std::get_if<CommitInfo>(&action)) return info;
  }
  return nullptr;
}

// The columns that a table's metadata speaks of: each once, and the partition columns among them.
Status check_metadata(const Snapshot& snapshot) {
  std::set<std::string> names;
  for (const Field& field : snapshot.schema.fields) {
    if (names.insert(fold_name(field.name)).second) continue;
    return corrupt("DELTA_DUPLICATE_COLUMNS_FOUND",
                   "table {} has the column {} twice at version {}", snapshot.table_path,
                   field.name, snapshot.version);
  }
  for (const std::string& name : snapshot.metadata.partition_columns) {
    if (names.contains(fold_name(name))) continue;
    return corrupt("DELTA_PARTITION_COLUMN_NOT_FOUND",
                   "table {} is partitioned by {} at version {}, which is no column of it",
                   snapshot.table_path, name, snapshot.version);
  }
  return {};
}

}  // namespace

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

std::optional<Version> first_in_commit_version(const Snapshot& snapshot) {
  if (!snapshot.in_commit_timestamps_enabled()) return std::nullopt;
  return integer_property(snapshot.metadata.configuration,
                          "delta.inCommitTimestampEnablementVersion", 0);
}

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

Result<int64_t> in_commit_timestamp(const std::vector<Action>& actions, const std::string& path) {
  const CommitInfo* const info = find_commit_info(actions);
  if (info == nullptr || !info->in_commit_timestamp_ms) {
    return corrupt("DELTA_MISSING_COMMIT_TIMESTAMP",
                   "{} has no inCommitTimestamp, which its table requires", path);
  }
  return *info->in_commit_timestamp_ms;
}

// Builds a snapshot, or the list of tombstones, from actions that arrive newest first: the first
// word about a thing is the last.
class LogReader::Replay : public CheckpointVisitor {
 public:
  // Where tombstones are wanted, files are not kept.
  Replay(Snapshot* snapshot, std::vector<RemoveFile>* tombstones)
      : snapshot_(snapshot), tombstones_(tombstones) {}

  // Takes all of a commit's list.
  Status take_commit(std::vector<Action>* actions) {
    SL_TRY(check_once<Metadata>(*actions, "metaData"));
    SL_TRY(check_once<Protocol>(*actions, "protocol"));
    for (auto action = actions->rbegin(); action != actions->rend(); ++action)
      SL_TRY(std::visit(*this, std::move(*action)));
    return {};
  }

  // From here on actions are those of one checkpoint: none of them replaces another, so their keys
  // need not be remembered.
  void begin_checkpoint(const std::string& path) {
    source_ = path;
    in_checkpoint_ = true;
    sorted_from_ = snapshot_->files.size();
  }
  // The files of an older snapshot of the table.
  void take_older(const Snapshot& older) {
    sorted_from_ = snapshot_->files.size();
    older_is_sorted_ = true;
    snapshot_->files.reserve(sorted_from_ + older.files.size());
    for (const AddFile& file : older.files) {
      if (!was_seen(file)) snapshot_->files.push_back(file);
    }
    if (!has_protocol_) snapshot_->protocol = older.protocol;
    if (!has_metadata_) snapshot_->metadata = older.metadata;
    has_protocol_ = has_metadata_ = true;
    snapshot_->txns.insert(older.txns.begin(), older.txns.end());
    snapshot_->domains.insert(older.domains.begin(), older.domains.end());
  }
  void set_source(const std::string& path) { source_ = path; }

  bool wants_adds() const override { return tombstones_ == nullptr; }
  bool wants_removes() const override { return tombstones_ != nullptr; }
  void expect(size_t rows) override {
    if (wants_adds()) snapshot_->files.reserve(snapshot_->files.size() + rows);
  }
  Status take(Action action) override { return std::visit(*this, std::move(action)); }
  Status take_sidecar(std::string path) override {
    sidecars_.push_back(std::move(path));
    return {};
  }

  const std::vector<std::string>& sidecars() const { return sidecars_; }
  bool has_protocol() const { return has_protocol_; }
  bool has_metadata() const { return has_metadata_; }
  int64_t checkpoint_files() const { return checkpoint_files_; }
  bool checkpoint_has_protocol() const { return checkpoint_has_protocol_; }
  bool checkpoint_has_metadata() const { return checkpoint_has_metadata_; }

  Status operator()(AddFile&& file) {
    if (in_checkpoint_) ++checkpoint_files_;
    SL_TRY(check(file.path, file.size_bytes, file.deletion_vector));
    if (is_new(file) && wants_adds()) snapshot_->files.push_back(std::move(file));
    return {};
  }
  Status operator()(RemoveFile&& file) {
    SL_TRY(check(file.path, file.size_bytes.value_or(0), file.deletion_vector));
    if (is_new(file) && wants_removes()) tombstones_->push_back(std::move(file));
    return {};
  }
  Status operator()(Protocol&& protocol) {
    checkpoint_has_protocol_ |= in_checkpoint_;
    if (!has_protocol_) snapshot_->protocol = std::move(protocol);
    has_protocol_ = true;
    return {};
  }
  Status operator()(Metadata&& metadata) {
    checkpoint_has_metadata_ |= in_checkpoint_;
    if (!has_metadata_) snapshot_->metadata = std::move(metadata);
    has_metadata_ = true;
    return {};
  }
  Status operator()(Txn&& txn) {
    std::string app_id = txn.app_id;
    snapshot_->txns.emplace(std::move(app_id), std::move(txn));
    return {};
  }
  Status operator()(DomainMetadata&& domain) {
    std::string name = domain.domain;
    snapshot_->domains.emplace(std::move(name), std::move(domain));
    return {};
  }
  Status operator()(CommitInfo&&) { return {}; }
  Status operator()(CdcFile&&) { return {}; }

  // Sorts. A file that is live twice would show its rows twice.
  Status finish() {
    std::erase_if(snapshot_->domains, [](const auto& domain) { return domain.second.removed; });
    const auto by_path = [](const auto& a, const auto& b) { return a.path < b.path; };
    std::vector<AddFile>& files = snapshot_->files;
    if (older_is_sorted_) {
      const auto middle = files.begin() + static_cast<std::ptrdiff_t>(sorted_from_);
      std::sort(files.begin(), middle, by_path);
      std::inplace_merge(files.begin(), middle, files.end(), by_path);
    } else {
      std::sort(files.begin(), files.end(), by_path);
    }
    if (tombstones_ != nullptr) std::sort(tombstones_->begin(), tombstones_->end(), by_path);
    const auto twice =
        std::adjacent_find(files.begin(), files.end(),
                           [](const AddFile& a, const AddFile& b) { return a.path == b.path; });
    if (twice != files.end()) {
      return corrupt("DELTA_LOG_CORRUPT",
                     "table {} lists file {} twice at version {}, so its rows would count twice",
                     snapshot_->table_path, twice->path, snapshot_->version);
    }
    return {};
  }

 private:
  Status check(const std::string& path, int64_t size_bytes,
               const Shared<DeletionVectorDescriptor>& vector) const {
    const auto bad = [&](const char* what, int64_t value) {
      return corrupt("DELTA_LOG_CORRUPT", "{}: file {} has {} {}", source_, path, what, value);
    };
    if (path.empty()) return corrupt("DELTA_LOG_CORRUPT", "{} has a file without a path", source_);
    // No file is larger than a pebibyte, and sums of sizes stay whole numbers.
    if (size_bytes < 0 || size_bytes > (int64_t{1} << 50)) return bad("size", size_bytes);
    if (!vector) return {};
    if (vector->size_bytes < 0) return bad("a deletion vector of size", vector->size_bytes);
    if (vector->cardinality < 0)
      return bad("a deletion vector of cardinality", vector->cardinality);
    if (vector->offset.value_or(0) < 0) return bad("a deletion vector at offset", *vector->offset);
    return {};
  }

  // A commit says it at most once: which of two would count is anybody's guess.
  template <typename Kind>
  Status check_once(const std::vector<Action>& actions, const char* name) const {
    const auto count = std::count_if(actions.begin(), actions.end(), [](const Action& action) {
      return std::holds_alternative<Kind>(action);
    });
    if (count < 2) return {};
    return corrupt("DELTA_LOG_CORRUPT", "{} has {} {} actions: one is allowed", source_, count,
                   name);
  }

  template <typename File>
  const std::string& key_of(const File& file) {
    key_ = canonical_path(snapshot_->table_path, file.path);
    if (file.deletion_vector) {
      key_ += '\n';
      key_ += file.deletion_vector->unique_id();
    }
    return key_;
  }
  template <typename File>
  bool was_seen(const File& file) {
    return !seen_.empty() && seen_.count(key_of(file)) > 0;
  }
  template <typename File>
  bool is_new(const File& file) {
    return in_checkpoint_ ? !was_seen(file) : seen_.insert(key_of(file)).second;
  }

  Snapshot* snapshot_;
  std::vector<RemoveFile>* tombstones_;
  std::string source_;
  std::unordered_set<std::string> seen_;  // keys of the commits' files
  std::string key_;
  std::vector<std::string> sidecars_;
  size_t sorted_from_ = 0;
  int64_t checkpoint_files_ = 0;
  bool older_is_sorted_ = false;
  bool in_checkpoint_ = false;
  bool has_protocol_ = false;
  bool has_metadata_ = false;
  bool checkpoint_has_protocol_ = false;
  bool checkpoint_has_metadata_ = false;
};

Result<std::shared_ptr<const Snapshot>> LogReader::snapshot(const LogFiles& log,
                                                            std::optional<Version> wanted) {
  SL_ASSIGN(State state, read(log, wanted.value_or(log.latest()), false));
  return std::shared_ptr<const Snapshot>(std::move(state.snapshot));
}

Result<std::vector<RemoveFile>> LogReader::tombstones(const LogFiles& log, Version version) {
  SL_ASSIGN(State state, read(log, version, true));
  return std::move(state.tombstones);
}

Result<LogReader::State> LogReader::read(const LogFiles& log, Version version,
                                         bool for_tombstones) {
  if (version < 0 || version > log.latest()) return no_version(log, version);

  // Newest checkpoint first; a damaged one is passed over where older files lead to the version.
  // One that contradicts the version's checksum is damaged too if older files agree with it; else
  // the checksum is wrong, which only its writer knows, and the log counts. Other readers ignore it
  // too.
  std::optional<Error> damaged;
  std::optional<State> doubtful;
  const auto has_doubts = [&](const Result<State>& state) {
    return !for_tombstones && log.checksums.count(version) > 0 && state.ok() &&
           contradicts_checksum(store_, *state->snapshot);
  };
  for (auto checkpoint = log.checkpoints.rbegin(); checkpoint != log.checkpoints.rend();
       ++checkpoint) {
    if (checkpoint->version > version) continue;
    if ((damaged || doubtful) && !commits_are_complete(log, checkpoint->version + 1, version).ok())
      continue;
    auto state = read_from(log, &*checkpoint, version, for_tombstones);
    if (has_doubts(state)) {
      if (!doubtful) doubtful = std::move(state).value();
      continue;
    }
    if (state.ok()) return state;
    if (state.error().kind != ErrorKind::kCorrupt || !checkpoint_failed_) {
      if (doubtful) return *std::move(doubtful);
      return state;
    }
    if (!damaged) damaged = std::move(state).error();
  }
  if ((damaged || doubtful) && !commits_are_complete(log, 0, version).ok()) {
    if (doubtful) return *std::move(doubtful);
    return *damaged;
  }
  // Older than every checkpoint, and the commits that led there are cleaned up.
  if (log.commits.count(0) == 0 && !log.checkpoints.empty() && !damaged && !doubtful)
    return no_version(log, version);
  auto state = read_from(log, nullptr, version, for_tombstones);
  if (doubtful && (!state.ok() || has_doubts(state))) return *std::move(doubtful);
  return state;
}

Error LogReader::no_version(const LogFiles& log, Version version) const {
  return not_found("DELTA_VERSION_NOT_FOUND",
                   "table {} has no version {} to read; versions {} to {} are kept", table_path_,
                   version, log.earliest(), log.latest());
}

Status LogReader::commits_are_complete(const LogFiles& log, Version first, Version last) const {
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

Result<LogReader::State> LogReader::read_from(const LogFiles& log, const Checkpoint* checkpoint,
                                              Version version, bool for_tombstones) {
  checkpoint_failed_ = false;
  const Version first = checkpoint == nullptr ? 0 : checkpoint->version + 1;
  SL_TRY(commits_are_complete(log, first, version));

  State state;
  state.snapshot = std::make_shared<Snapshot>();
  Snapshot* const snapshot = state.snapshot.get();
  snapshot->table_path = table_path_;
  snapshot->version = version;
  Replay replay(snapshot, for_tombstones ? &state.tombstones : nullptr);
  std::optional<int64_t> own_timestamp;
  for (Version at = version; at >= first; --at) {
    SL_ASSIGN(std::vector<Action> actions, read_commit(store_, table_path_, at));
    if (at == version) {
      if (const CommitInfo* const info = find_commit_info(actions)) {
        own_timestamp = info->in_commit_timestamp_ms;
      }
    }
    replay.set_source(commit_path(table_path_, at));
    SL_TRY(replay.take_commit(&actions));
  }
  if (checkpoint != nullptr) {
    if (Status read = read_checkpoint(*checkpoint, &replay); !read.ok()) {
      checkpoint_failed_ = true;
      return std::move(read).error();
    }
    // Rule 10.4: an error, and no damage that other files could make up for.
    if (!replay.checkpoint_has_protocol() || !replay.checkpoint_has_metadata()) {
      return corrupt("DELTA_STATE_RECOVER_ERROR", "checkpoint {} has no {} action",
                     checkpoint->paths[0],
                     replay.checkpoint_has_protocol() ? "metaData" : "protocol");
    }
    const std::optional<int64_t> promised = promised_files(checkpoint->version);
    if (!for_tombstones && promised && *promised != replay.checkpoint_files()) {
      checkpoint_failed_ = true;
      return corrupt("DELTA_CHECKPOINT_INCOMPLETE",
                     "checkpoint {} lists {} files, but _last_checkpoint says {}: remove the "
                     "checkpoint if the commits before it are kept, else restore it",
                     checkpoint->paths[0], replay.checkpoint_files(), *promised);
    }
  }
  if (Status finished = finish(&replay, snapshot); !finished.ok()) {
    checkpoint_failed_ = checkpoint != nullptr;
    return std::move(finished).error();
  }
  if (for_tombstones) return state;

  const auto commit = log.commits.find(version);
  if (commit != log.commits.end()) snapshot->commit_modified_ms = commit->second.modified_ms;
  SL_ASSIGN(snapshot->timestamp_ms, timestamp_of(log, *snapshot, own_timestamp, checkpoint));
  return state;
}

Status LogReader::finish(Replay* replay, Snapshot* snapshot) const {
  if (!replay->has_protocol() || !replay->has_metadata()) {
    return corrupt("DELTA_STATE_RECOVER_ERROR", "table {} has no {} action up to version {}",
                   table_path_, replay->has_protocol() ? "metaData" : "protocol",
                   snapshot->version);
  }
  SL_TRY(replay->finish());
  SL_TRY(check_readable(snapshot->protocol, table_path_));
  auto schema = parse_schema(snapshot->metadata.schema_string);
  if (!schema.ok()) return schema.error().with_context("table " + table_path_);
  snapshot->schema = std::move(schema).value();
  return check_metadata(*snapshot);
}

Result<int64_t> LogReader::timestamp_of(const LogFiles& log, const Snapshot& snapshot,
                                        std::optional<int64_t> own, const Checkpoint* checkpoint) {
  const auto commit = log.commits.find(snapshot.version);
  // The commit of a checkpoint's version may be cleaned up: its file's time is what is left.
  if (commit == log.commits.end()) return checkpoint->modified_ms;
  const std::optional<Version> first = first_in_commit_version(snapshot);
  if (!first || snapshot.version < *first) return file_timestamps(log).at(snapshot.version);
  if (own) return *own;
  SL_ASSIGN(const std::vector<Action> actions, read_commit(store_, table_path_, snapshot.version));
  return in_commit_timestamp(actions, commit->second.path);
}

std::optional<int64_t> LogReader::promised_files(Version version) const {
  const auto text = store_->read(log_directory(table_path_) + "/_last_checkpoint");
  if (!text.ok()) return std::nullopt;
  const auto hint = Json::parse(*text);
  if (!hint.ok()) return std::nullopt;
  const Json* const of = hint->get("version");
  const Json* const files = hint->get("numOfAddFiles");
  if (of == nullptr || files == nullptr || of->as_int() != version) return std::nullopt;
  return files->as_int();
}

Status LogReader::read_checkpoint(const Checkpoint& checkpoint, Replay* replay) {
  replay->begin_checkpoint(checkpoint.paths[0]);
  for (const std::string& path : checkpoint.paths) SL_TRY(read_checkpoint_file(path, replay));
  const std::vector<std::string> sidecars = replay->sidecars();
  for (const std::string& sidecar : sidecars) {
    SL_ASSIGN(const std::string path, resolve_data_path(sidecar_directory(table_path_), sidecar));
    Status read = read_checkpoint_file(path, replay);
    if (!read.ok() && read.error().kind == ErrorKind::kNotFound) {
      return corrupt(kMissingSidecar,
                     "checkpoint {} needs its sidecar {}, which is missing; restore it",
                     checkpoint.paths[0], path);
    }
    SL_TRY(std::move(read));
  }
  return {};
}

Status LogReader::read_checkpoint_file(const std::string& path, Replay* replay) {
  replay->set_source(path);
  if (!path.ends_with(".json")) {
    Status read = parquet_->read_checkpoint(path, replay);
    if (read.ok() || read.error().kind != ErrorKind::kIo) return read;
    // The engine has one kind of error for whatever it cannot open.
    const auto file = store_->stat(path);
    if (!file.ok() && file.error().kind == ErrorKind::kNotFound) return file.error();
    return read;
  }
  SL_ASSIGN(std::string text, store_->read(path));
  std::vector<std::string> sidecars;
  SL_ASSIGN(std::vector<Action> actions, parse_actions(std::move(text), path, &sidecars));
  for (Action& action : actions) SL_TRY(replay->take(std::move(action)));
  for (std::string& sidecar : sidecars) SL_TRY(replay->take_sidecar(std::move(sidecar)));
  return {};
}

Result<std::shared_ptr<const Snapshot>> LogReader::advance(
    const std::shared_ptr<const Snapshot>& from, std::optional<Version> wanted) {
  const std::shared_ptr<const Snapshot> impossible;
  if (from->commit_modified_ms == 0 || from->table_path != table_path_) return impossible;
  if (wanted && *wanted < from->version) return impossible;
  // Another file under the version's name: the table was made anew.
  const auto own = store_->stat(commit_path(table_path_, from->version));
  if (!own.ok() || own->modified_ms != from->commit_modified_ms) return impossible;

  std::vector<std::vector<Action>> commits;
  std::optional<int64_t> in_commit_ms;
  int64_t file_ms = from->timestamp_ms;
  int64_t modified_ms = from->commit_modified_ms;
  while (!wanted || from->version + static_cast<Version>(commits.size()) < *wanted) {
    const Version next = from->version + static_cast<Version>(commits.size()) + 1;
    auto actions = read_commit(store_, table_path_, next);
    if (!actions.ok() && actions.error().kind == ErrorKind::kNotFound) {
      if (wanted) return impossible;
      break;
    }
    if (!actions.ok()) return std::move(actions).error();
    SL_ASSIGN(const storage::FileInfo file, store_->stat(commit_path(table_path_, next)));
    const CommitInfo* const info = find_commit_info(*actions);
    in_commit_ms = info == nullptr ? std::nullopt : info->in_commit_timestamp_ms;
    file_ms = std::max(file.modified_ms, file_ms + 1);
    modified_ms = file.modified_ms;
    commits.push_back(std::move(actions).value());
  }
  if (commits.empty()) return from;

  auto snapshot = std::make_shared<Snapshot>();
  snapshot->table_path = table_path_;
  snapshot->version = from->version + static_cast<Version>(commits.size());
  snapshot->commit_modified_ms = modified_ms;
  Replay replay(snapshot.get(), nullptr);
  for (auto commit = commits.rbegin(); commit != commits.rend(); ++commit) {
    replay.set_source(commit_path(table_path_, snapshot->version - (commit - commits.rbegin())));
    SL_TRY(replay.take_commit(&*commit));
  }
  replay.take_older(*from);
  SL_TRY(finish(&replay, snapshot.get()));
  const std::optional<Version> first = first_in_commit_version(*snapshot);
  if (first && snapshot->version >= *first) {
    if (!in_commit_ms) {
      return in_commit_timestamp({}, commit_path(table_path_, snapshot->version)).error();
    }
    snapshot->timestamp_ms = *in_commit_ms;
  } else {
    snapshot->timestamp_ms = file_ms;
  }
  return std::shared_ptr<const Snapshot>(std::move(snapshot));
}

}  // namespace strandline::delta
