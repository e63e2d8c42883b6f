#include "delta/transaction.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/json.h"
#include "base/secrets.h"
#include "delta/action_json.h"
#include "delta/check_schema.h"
#include "delta/checkpoint.h"
#include "delta/column_mapping.h"
#include "delta/conflict.h"
#include "delta/data_path.h"
#include "delta/deletion_vector.h"
#include "delta/features.h"
#include "delta/log_cleanup.h"
#include "delta/log_files.h"
#include "delta/parquet_footer.h"

namespace strandline::delta {

namespace {

constexpr const char* kIllegalActions = "DELTA_ILLEGAL_ACTIONS";
constexpr const char* kRowTrackingDomain = "delta.rowTracking";

RemoveFile remove_of(const AddFile& file, bool data_change) {
  RemoveFile remove;
  remove.path = file.path;
  remove.data_change = data_change;
  remove.extended_file_metadata = true;
  remove.partition_values = file.partition_values;
  remove.size_bytes = file.size_bytes;
  remove.deletion_vector = file.deletion_vector;
  remove.base_row_id = file.base_row_id;
  remove.default_row_commit_version = file.default_row_commit_version;
  return remove;
}

std::string vector_id(const Shared<DeletionVectorDescriptor>& vector) {
  return vector ? vector->unique_id() : std::string();
}

// The statistics of a file whose rows a deletion vector thins out: bounds are no longer tight.
std::string with_wide_bounds(const std::string& stats) {
  auto json = Json::parse(stats);
  if (!json.ok() || !json->is_object()) return stats;
  JsonWriter out;
  out.begin_object();
  for (size_t i = 0; i < json->names().size(); ++i) {
    if (json->names()[i] == "tightBounds") continue;
    out.key(json->names()[i]);
    out.raw(json->items()[i].dump());
  }
  out.key("tightBounds");
  out.value(false);
  out.end_object();
  return out.take();
}

// What winning commits moved on.
struct Rebase {
  int64_t previous_timestamp_ms = 0;
  int64_t row_id_mark = -1;
};

int64_t row_id_mark_of(const std::string& configuration, int64_t fallback) {
  const auto json = Json::parse(configuration);
  const Json* const mark = json.ok() ? json->get("rowIdHighWaterMark") : nullptr;
  return mark == nullptr ? fallback : mark->as_int().value_or(fallback);
}

void rebase_on(const std::vector<Action>& winner, Rebase* rebase) {
  for (const Action& action : winner) {
    if (const auto* const info = std::get_if<CommitInfo>(&action)) {
      rebase->previous_timestamp_ms =
          std::max(rebase->previous_timestamp_ms, info->in_commit_timestamp_ms.value_or(0));
    } else if (const auto* const domain = std::get_if<DomainMetadata>(&action)) {
      if (domain->domain == kRowTrackingDomain) {
        rebase->row_id_mark = std::max(rebase->row_id_mark,
                                       row_id_mark_of(domain->configuration, rebase->row_id_mark));
      }
    }
  }
}

}  // namespace

struct Transaction::Impl {
  // Rows to delete from one live file.
  struct PendingDelete {
    AddFile file;
    RowSet rows;
  };

  Impl(Table its_table, std::shared_ptr<const Snapshot> its_snapshot)
      : table(std::move(its_table)), read(its_snapshot), view(std::move(its_snapshot)) {
    info.operation = "WRITE";
    info.engine_info = "Strandline/" STRANDLINE_VERSION;
    info.txn_id = new_uuid();
  }

  Table table;
  std::shared_ptr<const Snapshot> read;  // what the transaction started from
  std::shared_ptr<const Snapshot> view;  // the same with our metadata and protocol
  bool creates = false;
  bool finished = false;
  std::optional<Error> broken;  // a setter's argument that no commit can hold

  std::vector<AddFile> adds;
  std::vector<RemoveFile> removes;
  std::map<std::string, PendingDelete> deletes;  // by path as in the log
  std::vector<CdcFile> change_files;
  bool change_feed_complete = false;
  std::optional<Metadata> metadata;
  std::optional<Protocol> protocol;
  std::map<std::string, Txn> txns;
  std::map<std::string, DomainMetadata> domains;
  CommitInfo info;
  bool row_ids_preserved = true;
  bool logged_always = false;
  bool whole_file_changes = false;
  bool reads_whole_table = true;
  std::vector<size_t> read_files;            // indexes in read->files, when not the whole table
  std::optional<FileFilter> read_predicate;  // what files added meanwhile are held against
  std::string vector_path;                   // the deletion vector file, once written

  struct ByPath {
    bool operator()(const AddFile& a, const std::string& b) const { return a.path < b; }
    bool operator()(const std::string& a, const AddFile& b) const { return a < b.path; }
  };

  // The live file of that path, or nullptr.
  const AddFile* find_live(const std::string& path) const {
    const auto file = std::lower_bound(read->files.begin(), read->files.end(), path, ByPath());
    return file != read->files.end() && file->path == path ? &*file : nullptr;
  }

  void change_view(const std::function<void(Snapshot*)>& change) {
    auto changed = std::make_shared<Snapshot>(*view);
    change(changed.get());
    view = std::move(changed);
  }

  bool has_changes() const {
    return creates || logged_always || !adds.empty() || !removes.empty() || !deletes.empty() ||
           metadata || protocol || !txns.empty() || !domains.empty();
  }
  bool reads_nothing() const { return !reads_whole_table && read_files.empty() && !read_predicate; }
  bool enables_in_commit_timestamps() const {
    return !creates && view->in_commit_timestamps_enabled() &&
           !read->in_commit_timestamps_enabled();
  }
  bool assigns_row_ids() const {
    return supports(view->protocol, "rowTracking") &&
           !view->property_is_true("delta.rowTrackingSuspended");
  }

  Status prepare();
  Status prepare_protocol();
  Status prepare_deletes();
  Status check_rules() const;
  Status check_actions() const;
  Isolation isolation() const;
  Footprint footprint() const;
  std::string text_of(Version version, const Rebase& rebase, Isolation level) const;
  std::optional<Conflict> take_over(const std::vector<Action>& winner, Version version);
  Result<std::optional<Conflicted>> lost_place(Version version) const;
  Result<CommitOutcome> write();
  void write_due_checkpoint(Committed* committed) const;
};

// Properties and types may need features: the protocol follows the metadata.
Status Transaction::Impl::prepare_protocol() {
  if (metadata || !domains.empty()) {
    std::set<std::string> features = required_features(view->metadata, view->schema);
    if (!domains.empty()) features.insert("domainMetadata");
    const Protocol needed = with_features(view->protocol, features);
    if (needed.min_writer_version != view->protocol.min_writer_version ||
        needed.min_reader_version != view->protocol.min_reader_version ||
        needed.writer_features != view->protocol.writer_features) {
      protocol = needed;
      change_view([&](Snapshot* snapshot) { snapshot->protocol = needed; });
    }
  }
  if (!metadata && !protocol) return {};
  SL_TRY(check_writable(view->protocol, table.path()));
  if (!creates && view->row_tracking_enabled() && !read->row_tracking_enabled()) {
    for (const AddFile& file : read->files) {
      const bool goes = std::any_of(removes.begin(), removes.end(), [&](const RemoveFile& remove) {
        return remove.path == file.path;
      });
      if (file.base_row_id || goes) continue;
      return internal_error(
          kIllegalActions, "commit to table {}: row tracking is enabled, but file {} has no row id",
          table.path(), file.path);
    }
  }
  return {};
}

Status Transaction::Impl::prepare_deletes() {
  DeletionVectorReader reader(table.store().get(), table.path());
  std::vector<const RowSet*> sets;
  std::vector<const AddFile*> files;
  for (auto& [path, pending] : deletes) {
    AddFile& file = pending.file;
    uint64_t before = 0;
    if (file.deletion_vector) {
      SL_ASSIGN(const RowSet deleted, reader.read(*file.deletion_vector));
      before = deleted.cardinality();
      pending.rows.union_with(deleted);
    }
    const uint64_t after = pending.rows.cardinality();
    if (after == before) continue;
    SL_ASSIGN(const std::optional<int64_t> count,
              count_rows(table.store().get(), table.path(), file));
    if (!count) {
      return unsupported(
          "DELTA_ADDING_DELETION_VECTORS_WITHOUT_STATS",
          "file {} of table {} has no row count, neither in the log nor to be read from the file, "
          "so no rows can be deleted from it: set 'delta.enableDeletionVectors' to 'false'",
          path, table.path());
    }
    // Readers of a deletion vector need the count.
    if (!num_records(file))
      file.stats = with_row_count(file.stats ? std::string(*file.stats) : "", *count);
    if (pending.rows.max().value_or(0) >= static_cast<uint64_t>(*count)) {
      return internal_error(kIllegalActions, "row {} is to be deleted from file {} of {} rows",
                            *pending.rows.max(), path, *count);
    }
    removes.push_back(remove_of(file, true));
    if (after == static_cast<uint64_t>(*count)) continue;
    sets.push_back(&pending.rows);
    files.push_back(&file);
  }
  if (sets.empty()) return {};

  DeletionVectorFile vectors = build_deletion_vector_file(table.path(), sets);
  for (size_t i = 0; i < files.size(); ++i) {
    AddFile file = *files[i];
    file.deletion_vector = vectors.descriptors[i];
    file.data_change = true;
    if (file.stats) file.stats = with_wide_bounds(*file.stats);
    adds.push_back(std::move(file));
  }
  vector_path = vectors.path;
  return table.store()->put_if_absent(vectors.path, vectors.bytes);
}

// Rules of the table's properties.
Status Transaction::Impl::check_rules() const {
  const auto changes = [](const auto& file) { return file.data_change; };
  const bool removes_data = std::any_of(removes.begin(), removes.end(), changes);
  const bool adds_data = std::any_of(adds.begin(), adds.end(), changes);
  if (removes_data && view->property_is_true("delta.appendOnly")) {
    return invalid_argument(
        "DELTA_CANNOT_MODIFY_APPEND_ONLY",
        "table {} has 'delta.appendOnly' = 'true': rows can only be added, not changed or "
        "deleted; set the property to 'false' first",
        table.path());
  }
  if (removes_data && adds_data && !change_feed_complete && !whole_file_changes &&
      view->property_is_true("delta.enableChangeDataFeed")) {
    return unsupported(
        "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
        "table {} has 'delta.enableChangeDataFeed' = 'true': Strandline cannot write the change "
        "data files of this update yet; set the property to 'false' (with row tracking the changes "
        "can be read without it)",
        table.path());
  }
  return {};
}

// Rules 1.6 and 1.7, and what row tracking needs.
Status Transaction::Impl::check_actions() const {
  const auto illegal = [&](const std::string& what) {
    return internal_error(kIllegalActions, "commit to table {}: {}", table.path(), what);
  };
  const auto marks = domains.find(kRowTrackingDomain);
  if (marks != domains.end() && !(marks->second.removed && !assigns_row_ids()))
    return illegal("the row tracking domain is set by hand");
  for (const size_t index : read_files) {
    if (index >= read->files.size())
      return illegal(fmt::format("file {} of the snapshot was read", index));
  }
  std::map<std::string, std::string> removed;  // canonical path -> deletion vector
  std::optional<bool> data_change;
  const auto check_data_change = [&](bool flag) {
    if (!data_change) data_change = flag;
    return *data_change == flag;
  };
  for (const RemoveFile& file : removes) {
    if (!check_data_change(file.data_change))
      return illegal("some file actions change data and some do not");
    const AddFile* const live = find_live(file.path);
    if (live == nullptr || vector_id(live->deletion_vector) != vector_id(file.deletion_vector)) {
      return illegal("file " + file.path + " is removed, but was not live");
    }
    if (!removed.emplace(canonical_path(table.path(), file.path), vector_id(file.deletion_vector))
             .second) {
      return illegal("file " + file.path + " is removed twice");
    }
  }
  std::set<std::string> added;
  const bool with_row_ids = assigns_row_ids();
  for (const AddFile& file : adds) {
    if (!check_data_change(file.data_change))
      return illegal("some file actions change data and some do not");
    const std::string path = canonical_path(table.path(), file.path);
    if (!added.insert(path).second) return illegal("file " + file.path + " is added twice");
    const std::string vector = vector_id(file.deletion_vector);
    const auto gone = removed.find(path);
    if (gone != removed.end() && gone->second == vector) {
      return illegal("file " + file.path + " is added and removed with one deletion vector");
    }
    const AddFile* const live = find_live(file.path);
    if (live != nullptr && gone == removed.end() && vector_id(live->deletion_vector) != vector) {
      return illegal("file " + file.path + " gets another deletion vector without being removed");
    }
    if (with_row_ids && !file.base_row_id && !num_records(file)) {
      return illegal("file " + file.path + " has no row count, which row tracking needs");
    }
    for (const std::string& column : view->metadata.partition_columns) {
      const Field* const field = view->schema.get(column);
      const std::string key = field == nullptr || view->column_mapping_mode() == "none"
                                  ? column
                                  : Snapshot::physical_name(*field);
      if (file.partition_values.count(key) == 0) {
        return illegal("file " + file.path + " has no value for partition column " + column);
      }
    }
  }
  return {};
}

Status Transaction::Impl::prepare() {
  if (broken) return *broken;
  SL_TRY(prepare_protocol());
  SL_TRY(prepare_deletes());
  SL_TRY(check_rules());
  return check_actions();
}

Isolation Transaction::Impl::isolation() const {
  const auto changes = [](const auto& file) { return file.data_change; };
  const bool has_files = logged_always || !adds.empty() || !removes.empty();
  const bool only_rearranges = has_files && !metadata && !protocol && txns.empty() &&
                               domains.empty() && std::none_of(adds.begin(), adds.end(), changes) &&
                               std::none_of(removes.begin(), removes.end(), changes);
  if (only_rearranges) return Isolation::kSnapshot;
  return view->property("delta.isolationLevel") == "WriteSerializable"
             ? Isolation::kWriteSerializable
             : Isolation::kSerializable;
}

Footprint Transaction::Impl::footprint() const {
  Footprint ours;
  ours.isolation = isolation();
  ours.reads_whole_table = reads_whole_table;
  ours.reads_files = !reads_nothing();
  ours.read_predicate = read_predicate.value_or(FileFilter());
  for (const size_t index : read_files) {
    ours.read_paths.insert(canonical_path(table.path(), read->files[index].path));
  }
  for (const RemoveFile& file : removes)
    ours.removed_paths.insert(canonical_path(table.path(), file.path));
  for (const auto& [app_id, txn] : txns) ours.app_ids.insert(app_id);
  for (const auto& [name, domain] : domains) ours.domains.insert(name);
  ours.changes_metadata = metadata.has_value();
  ours.changes_protocol = protocol.has_value();
  return ours;
}

std::string Transaction::Impl::text_of(Version version, const Rebase& rebase,
                                       Isolation level) const {
  std::vector<Action> actions;

  CommitInfo commit_info = info;
  commit_info.timestamp_ms = now_ms();
  if (view->in_commit_timestamps_enabled()) {
    commit_info.timestamp_ms = std::max(commit_info.timestamp_ms, rebase.previous_timestamp_ms + 1);
    commit_info.in_commit_timestamp_ms = commit_info.timestamp_ms;
  }
  if (!creates) commit_info.read_version = read->version;
  commit_info.isolation_level = to_string(level);
  commit_info.is_blind_append = reads_nothing() && removes.empty();
  if (view->row_tracking_enabled()) {
    commit_info.tags["delta.rowTracking.preserved"] = row_ids_preserved ? "true" : "false";
  }
  actions.emplace_back(commit_info);

  if (protocol) actions.emplace_back(*protocol);
  if (metadata) {
    Metadata written = *metadata;
    if (enables_in_commit_timestamps()) {
      written.configuration["delta.inCommitTimestampEnablementVersion"] = std::to_string(version);
      written.configuration["delta.inCommitTimestampEnablementTimestamp"] =
          std::to_string(commit_info.timestamp_ms);
    }
    actions.emplace_back(std::move(written));
  }
  for (const auto& [app_id, txn] : txns) actions.emplace_back(txn);
  for (const auto& [name, domain] : domains) actions.emplace_back(domain);
  for (const RemoveFile& file : removes) {
    // The time of the commit, so that what VACUUM keeps follows from the versions' times.
    std::get<RemoveFile>(actions.emplace_back(file)).deletion_timestamp_ms =
        commit_info.timestamp_ms;
  }

  int64_t mark = rebase.row_id_mark;
  const bool with_row_ids = assigns_row_ids();
  for (const AddFile& file : adds) {
    AddFile& added = std::get<AddFile>(actions.emplace_back(file));
    if (!with_row_ids) continue;
    if (!added.base_row_id) {
      added.base_row_id = mark + 1;
      mark += num_records(file).value_or(0);
    }
    if (!added.default_row_commit_version) added.default_row_commit_version = version;
  }
  for (const CdcFile& file : change_files) actions.emplace_back(file);
  if (mark != rebase.row_id_mark) {
    actions.emplace_back(DomainMetadata{
        kRowTrackingDomain, fmt::format(R"({{"rowIdHighWaterMark":{}}})", mark), false});
  }

  std::string text;
  for (const Action& action : actions) {
    text += print_action(action);
    text += '\n';
  }
  return text;
}

// Goes on with the metadata and protocol of a winner that changed them without harm.
std::optional<Conflict> Transaction::Impl::take_over(const std::vector<Action>& winner,
                                                     Version version) {
  const bool tracked_rows = view->row_tracking_enabled();
  bool changed = false;
  for (const Action& action : winner) {
    if (const auto* const new_protocol = std::get_if<Protocol>(&action)) {
      change_view([&](Snapshot* snapshot) { snapshot->protocol = *new_protocol; });
      changed = true;
    } else if (const auto* const new_metadata = std::get_if<Metadata>(&action)) {
      auto schema = parse_schema(new_metadata->schema_string);
      if (!schema.ok()) return Conflict{schema.error().message, "DELTA_METADATA_CHANGED"};
      change_view([&](Snapshot* snapshot) {
        snapshot->metadata = *new_metadata;
        snapshot->schema = std::move(schema).value();
      });
      changed = true;
    }
  }
  if (!changed) return std::nullopt;
  Status allowed = check_writable(view->protocol, table.path());
  if (allowed.ok()) allowed = check_rules();
  if (allowed.ok()) allowed = check_actions();
  if (!allowed.ok()) {
    return Conflict{
        fmt::format("version {}, committed meanwhile: {}", version, allowed.error().message),
        "DELTA_METADATA_CHANGED"};
  }
  // Rows that ours moved were not tracked when it began.
  if (!tracked_rows && view->row_tracking_enabled() && !removes.empty()) row_ids_preserved = false;
  return std::nullopt;
}

// Why a version is not the next one of the table that was read, although its name may be free: the
// table was made anew, or commits that this change has to be checked against are cleaned up.
Result<std::optional<Conflicted>> Transaction::Impl::lost_place(Version version) const {
  if (creates) return std::optional<Conflicted>();
  storage::Store& store = *table.store();
  const auto is_there = [&](Version at) -> Result<std::optional<int64_t>> {
    const auto file = store.stat(commit_path(table.path(), at));
    if (file.ok()) return std::optional(file->modified_ms);
    if (file.error().kind == ErrorKind::kNotFound) return std::optional<int64_t>();
    return file.error();
  };
  SL_ASSIGN(const auto base_ms, is_there(read->version));
  bool is_next = base_ms == read->commit_modified_ms;
  if (is_next && version - 1 != read->version) {
    SL_ASSIGN(const auto before_ms, is_there(version - 1));
    is_next = before_ms.has_value();
  }
  if (!is_next && !base_ms) {
    // Where a checkpoint alone has the version.
    SL_ASSIGN(const LogFiles log, list_log(&store, table.path()));
    is_next = log.latest() == version - 1;
  }
  if (is_next) return std::optional<Conflicted>();
  return std::optional(Conflicted{
      fmt::format("the log of {} is no longer the one that was read up to version {}: the table "
                  "was made anew, or later versions were committed and are cleaned up already",
                  table.path(), read->version),
      "DELTA_CONCURRENT_WRITE"});
}

Result<CommitOutcome> Transaction::Impl::write() {
  storage::Store& store = *table.store();
  if (creates) {
    SL_ASSIGN(const bool exists, table.exists());
    if (exists) {
      return CommitOutcome(
          Conflicted{"there is already a table at " + table.path(), "DELTA_TABLE_ALREADY_EXISTS"});
    }
    SL_TRY(store.make_directories(log_directory(table.path())));
  }

  Footprint ours = footprint();
  Rebase rebase{read->timestamp_ms, read->row_id_high_water_mark()};
  Version version = read->version + 1;
  for (;;) {
    const std::string path = commit_path(table.path(), version);
    SL_ASSIGN(auto lost, lost_place(version));
    if (lost) return CommitOutcome(*std::move(lost));
    const Status put = store.put_if_absent(path, text_of(version, rebase, ours.isolation));
    if (put.ok()) return CommitOutcome(Committed{version});

    // Lost the race, or an error that may have come too late: what lies there decides.
    auto winner = table.commit(version);
    if (!winner.ok()) {
      if (winner.error().kind == ErrorKind::kNotFound) {
        return put.error().with_context(
            fmt::format("version {} of table {} was not committed", version, table.path()));
      }
      if (put.error().kind == ErrorKind::kAlreadyExists) return winner.error();
      return CommitOutcome(
          Unknown{fmt::format("version {} of table {} may or may not be committed: {}; then: {}",
                              version, table.path(), put.error().message, winner.error().message)});
    }
    for (const Action& action : *winner) {
      const auto* const theirs = std::get_if<CommitInfo>(&action);
      if (theirs != nullptr && theirs->txn_id == info.txn_id)
        return CommitOutcome(Committed{version});
    }
    if (creates) {
      return CommitOutcome(
          Conflicted{"another writer created the table at " + table.path() + " meanwhile",
                     "DELTA_TABLE_ALREADY_EXISTS"});
    }
    // All winners, oldest first, before the next try.
    while (winner.ok()) {
      ours.table = view.get();
      std::optional<Conflict> conflict = find_conflict(ours, *winner, table.path(), version);
      if (!conflict) conflict = take_over(*winner, version);
      if (conflict) {
        return CommitOutcome(Conflicted{std::move(conflict->what), std::move(conflict->code)});
      }
      rebase_on(*winner, &rebase);
      winner = table.commit(++version);
    }
    if (winner.error().kind != ErrorKind::kNotFound) return winner.error();
  }
}

void Transaction::Impl::write_due_checkpoint(Committed* committed) const {
  if (!checkpoint_is_due(*view, committed->version)) return;
  const auto write = [&]() -> Status {
    SL_ASSIGN(const auto snapshot, creates ? table.snapshot(committed->version)
                                           : table.snapshot_after(read, committed->version));
    SL_TRY(write_checkpoint(table, *snapshot));
    SL_TRY(clean_log(table, *snapshot, now_ms()));
    return {};
  };
  if (const Status written = write(); !written.ok())
    committed->checkpoint_problem = written.error().message;
}

Transaction::Transaction(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Transaction::Transaction(Transaction&&) noexcept = default;
Transaction& Transaction::operator=(Transaction&&) noexcept = default;
Transaction::~Transaction() = default;

Result<Transaction> Transaction::begin(Table table, std::shared_ptr<const Snapshot> snapshot) {
  SL_TRY(check_writable(snapshot->protocol, table.path()));
  return Transaction(std::make_unique<Impl>(std::move(table), std::move(snapshot)));
}

Result<Transaction> Transaction::create(Table table, const NewTable& definition) {
  SL_ASSIGN(TableDefinition made, define_table(definition));
  SL_TRY(check_writable(made.protocol, table.path()));
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->table_path = table.path();
  snapshot->protocol = made.protocol;
  snapshot->metadata = made.metadata;
  snapshot->schema = made.schema;
  auto impl = std::make_unique<Impl>(std::move(table), std::move(snapshot));
  impl->creates = true;
  impl->reads_whole_table = false;
  impl->protocol = std::move(made.protocol);
  impl->metadata = std::move(made.metadata);
  for (DomainMetadata& domain : made.domains) {
    std::string name = domain.domain;
    impl->domains.emplace(std::move(name), std::move(domain));
  }
  impl->info.operation = "CREATE TABLE";
  return Transaction(std::move(impl));
}

const Snapshot& Transaction::snapshot() const { return *impl_->view; }

void Transaction::add_file(AddFile file) { impl_->adds.push_back(std::move(file)); }

void Transaction::remove_file(const AddFile& file, bool data_change) {
  impl_->removes.push_back(remove_of(file, data_change));
}

Status Transaction::delete_rows(const AddFile& file, const RowSet& positions) {
  if (positions.empty()) return {};
  const Snapshot& snapshot = *impl_->view;
  const std::string& path = impl_->table.path();
  if (!snapshot.deletion_vectors_enabled()) {
    return unsupported(
        "DELTA_DELETION_VECTORS_DISABLED",
        "table {} does not use deletion vectors, so rows of its files cannot be deleted; set "
        "'delta.enableDeletionVectors' to 'true'",
        path);
  }
  const AddFile* const live = impl_->find_live(file.path);
  if (live == nullptr || vector_id(live->deletion_vector) != vector_id(file.deletion_vector)) {
    return internal_error(
        kIllegalActions,
        "rows are to be deleted from file {}, which is not live in version {} of {}", file.path,
        snapshot.version, path);
  }
  auto [pending, is_new] =
      impl_->deletes.try_emplace(file.path, Impl::PendingDelete{*live, RowSet()});
  pending->second.rows.union_with(positions);
  return {};
}

void Transaction::add_change_file(CdcFile file) { impl_->change_files.push_back(std::move(file)); }

void Transaction::set_change_feed_complete() { impl_->change_feed_complete = true; }

void Transaction::set_metadata(Metadata metadata) {
  auto schema = parse_schema(metadata.schema_string);
  if (!schema.ok()) {
    impl_->broken = schema.error();
    return;
  }
  impl_->metadata = metadata;
  impl_->change_view([&](Snapshot* snapshot) {
    snapshot->metadata = std::move(metadata);
    snapshot->schema = std::move(schema).value();
  });
}

void Transaction::set_schema(const Schema& schema) {
  const Snapshot& view = *impl_->view;
  Metadata metadata = view.metadata;
  const bool widens =
      supports(view.protocol, "typeWidening") || supports(view.protocol, "typeWidening-preview");
  if (auto checked = check_columns(schema.fields, mapping_mode(metadata) != "none");
      !checked.ok()) {
    impl_->broken = std::move(checked).error();
    return;
  }
  metadata.schema_string = print_schema(next_schema(view.schema, schema, widens, &metadata));
  set_metadata(std::move(metadata));
}

void Transaction::set_protocol(Protocol protocol) {
  impl_->protocol = protocol;
  impl_->change_view([&](Snapshot* snapshot) { snapshot->protocol = std::move(protocol); });
}

void Transaction::set_txn(const std::string& app_id, int64_t version) {
  impl_->txns[app_id] = Txn{app_id, version, now_ms()};
}

void Transaction::set_domain(DomainMetadata domain) {
  std::string name = domain.domain;
  impl_->domains[std::move(name)] = std::move(domain);
}

void Transaction::set_operation(std::string operation,
                                const std::map<std::string, std::string>& parameters) {
  impl_->info.operation = std::move(operation);
  impl_->info.operation_parameters.clear();
  for (const auto& [name, value] : parameters)
    impl_->info.operation_parameters[name] = json_string(without_secrets(value));
}

void Transaction::set_metric(const std::string& name, int64_t value) {
  impl_->info.operation_metrics[name] = std::to_string(value);
}

void Transaction::set_tag(const std::string& name, const std::string& value) {
  impl_->info.tags[name] = value;
}

void Transaction::set_row_ids_preserved(bool preserved) { impl_->row_ids_preserved = preserved; }

void Transaction::set_blind_append() { set_read_files({}); }

void Transaction::set_read_files(std::vector<size_t> file_indexes) {
  impl_->reads_whole_table = false;
  impl_->read_files = std::move(file_indexes);
  impl_->read_predicate.reset();
}

void Transaction::set_read_predicate(FileFilter filter, std::vector<size_t> file_indexes) {
  set_read_files(std::move(file_indexes));
  impl_->read_predicate = std::move(filter);
}

void Transaction::set_logged_always() { impl_->logged_always = true; }

void Transaction::set_whole_file_changes() { impl_->whole_file_changes = true; }

bool Transaction::has_changes() const { return impl_->has_changes(); }

Result<CommitOutcome> Transaction::commit() {
  Impl& impl = *impl_;
  if (impl.finished) {
    return internal_error(kIllegalActions, "a transaction on table {} is committed twice",
                          impl.table.path());
  }
  impl.finished = true;
  const bool had_changes = impl.has_changes();
  Status prepared = impl.prepare();
  const bool only_empty_deletes = had_changes && !impl.creates && !impl.logged_always &&
                                  impl.adds.empty() && impl.removes.empty() && !impl.metadata &&
                                  !impl.protocol && impl.txns.empty() && impl.domains.empty();
  if (prepared.ok() && (!had_changes || only_empty_deletes))
    return CommitOutcome(Committed{impl.read->version});

  Result<CommitOutcome> outcome =
      prepared.ok() ? impl.write() : Result<CommitOutcome>(std::move(prepared).error());
  if (outcome.ok()) {
    if (auto* const committed = std::get_if<Committed>(&*outcome))
      impl.write_due_checkpoint(committed);
  }
  // Nothing refers to the deletion vector file unless the commit is, or may be, there.
  if (!impl.vector_path.empty() &&
      (!outcome.ok() || std::holds_alternative<Conflicted>(*outcome))) {
    (void)impl.table.store()->remove(impl.vector_path);
  }
  return outcome;
}

Result<Version> Transaction::commit_or_error() {
  SL_ASSIGN(CommitOutcome outcome, commit());
  if (auto* const conflicted = std::get_if<Conflicted>(&outcome)) {
    return Error{ErrorKind::kConflict, conflicted->code, conflicted->what, {}};
  }
  if (auto* const unknown = std::get_if<Unknown>(&outcome)) {
    return io_error("DELTA_COMMIT_OUTCOME_UNKNOWN", "{}", unknown->what);
  }
  return std::get<Committed>(outcome).version;
}

}  // namespace strandline::delta
