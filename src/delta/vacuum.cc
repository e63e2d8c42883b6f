#include "delta/vacuum.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <unordered_set>

#include "base/clock.h"
#include "base/error.h"
#include "delta/data_path.h"
#include "delta/deletion_vector.h"
#include "delta/log_files.h"
#include "delta/properties.h"
#include "delta/transaction.h"
#include "storage/temporary_name.h"

namespace strandline::delta {

namespace {

constexpr int64_t kHourMs = 3'600'000;
constexpr int64_t kDefaultRetentionMs = 7 * 24 * kHourMs;
// Nobody writes longer at a file that is not whole yet, however short the retention is.
constexpr int64_t kLeastAgeOfTemporaryMs = 24 * kHourMs;

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Files that some kept version needs.
class Needed {
 public:
  explicit Needed(const std::string& table_path) : table_path_(table_path) {}

  // A file to read or one that was removed.
  template <typename FileAction>
  Status add(const FileAction& file) {
    SL_TRY(add_path(resolve_data_path(table_path_, file.path)));
    if (!file.deletion_vector) return {};
    return add_path(deletion_vector_path(table_path_, *file.deletion_vector));
  }

  // path is absolute and lies below the table.
  bool contains(const std::string& path) const {
    return paths_.count(path) > 0 || (!names_.empty() && names_.count(name_of(path)) > 0);
  }

 private:
  Status add_path(Result<std::string> path) {
    if (!path.ok()) {
      // On another file system: nothing here can be it.
      if (path.error().kind == ErrorKind::kUnsupported) return {};
      return std::move(path).error().with_context("nothing was deleted");
    }
    if (path->empty()) return {};
    std::string plain = std::filesystem::path(*path).lexically_normal().string();
    // An absolute path may lead back here by another road, through a link: its name is kept.
    if (!plain.starts_with(table_path_ + "/")) names_.insert(name_of(plain));
    paths_.insert(std::move(plain));
    return {};
  }

  const std::string& table_path_;
  std::unordered_set<std::string> paths_;
  std::unordered_set<std::string> names_;
};

// Removals that the log itself tells of.
Status add_removals_since(const Table& table, const Snapshot& snapshot, int64_t since_ms,
                          Needed* needed) {
  for (Version version = snapshot.version; version >= 0; --version) {
    const auto actions = table.commit(version);
    if (!actions.ok()) {
      if (actions.error().kind == ErrorKind::kNotFound) return {};
      return actions.error();
    }
    bool older = false;
    for (const Action& action : *actions) {
      if (const auto* const info = std::get_if<CommitInfo>(&action)) {
        older = info->timestamp_ms < since_ms;
      } else if (const auto* const remove = std::get_if<RemoveFile>(&action)) {
        SL_TRY(needed->add(*remove));
      }
    }
    if (older) return {};
  }
  return {};
}

Result<Needed> find_needed(const Table& table, const Snapshot& snapshot, int64_t retention_ms,
                           int64_t cutoff_ms) {
  Needed needed(table.path());
  for (const AddFile& file : snapshot.files) SL_TRY(needed.add(file));
  // Without a retention no removed file is needed, not even one that a commit with a timestamp
  // ahead of this clock removed: in-commit timestamps grow by a millisecond a commit at least.
  if (retention_ms == 0) return needed;
  SL_ASSIGN(const std::vector<RemoveFile> removed, table.tombstones(snapshot));
  for (const RemoveFile& file : removed) {
    if (file.deletion_timestamp_ms.value_or(0) < cutoff_ms) continue;
    SL_TRY(needed.add(file));
  }
  // The snapshot may have forgotten removals that are older than the table's own retention.
  if (retention_ms > deleted_file_retention_ms(snapshot))
    SL_TRY(add_removals_since(table, snapshot, cutoff_ms, &needed));
  return needed;
}

bool is_temporary(const storage::FileInfo& file) {
  return !file.is_directory && storage::is_temporary_name(name_of(file.path));
}

struct Listed {
  std::vector<storage::FileInfo> files;
  std::vector<storage::FileInfo> directories;  // a parent before what lies in it
};

class Lister {
 public:
  Lister(const Table& table, const Snapshot& snapshot) : table_(table) {
    for (const std::string& name : snapshot.metadata.partition_columns) {
      partition_columns_.insert(name);
      const Field* const field = snapshot.schema.get(name);
      if (field != nullptr) partition_columns_.insert(Snapshot::physical_name(*field));
    }
  }

  Result<Listed> list() {
    SL_TRY(list(table_.path(), true));
    SL_TRY(list_temporaries(log_directory(table_.path())));
    SL_TRY(list_temporaries(sidecar_directory(table_.path())));
    return std::move(listed_);
  }

 private:
  bool is_hidden(const std::string& name, bool at_root) const {
    if (at_root && name == "metadata") return true;  // of Iceberg, beside the data
    if (!name.starts_with('_') && !name.starts_with('.')) return false;
    if (at_root && name == "_change_data") return false;
    const size_t equals = name.find('=');
    if (equals == std::string::npos) return true;
    const auto column = percent_decode(name.substr(0, equals));
    return !column.ok() || partition_columns_.count(*column) == 0;
  }

  // What writers that were killed left in a folder of the log, which may not be there.
  Status list_temporaries(const std::string& directory) {
    auto entries = table_.store()->list(directory);
    if (!entries.ok()) {
      if (entries.error().kind == ErrorKind::kNotFound) return {};
      return entries.error();
    }
    for (storage::FileInfo& entry : *entries) {
      if (!entry.is_link && is_temporary(entry)) listed_.files.push_back(std::move(entry));
    }
    return {};
  }

  Status list(const std::string& directory, bool at_root) {
    auto entries = table_.store()->list(directory);
    if (!entries.ok()) {
      // Another VACUUM was faster.
      if (!at_root && entries.error().kind == ErrorKind::kNotFound) return {};
      return entries.error();
    }
    const bool other_table =
        !at_root && std::any_of(entries->begin(), entries->end(), [](const auto& entry) {
          return entry.is_directory && name_of(entry.path) == "_delta_log";
        });
    if (other_table) {
      listed_.directories.pop_back();
      return {};
    }
    for (storage::FileInfo& entry : *entries) {
      if (entry.is_link || (is_hidden(name_of(entry.path), at_root) && !is_temporary(entry)))
        continue;
      if (!entry.is_directory) {
        listed_.files.push_back(std::move(entry));
        continue;
      }
      const std::string path = entry.path;
      listed_.directories.push_back(std::move(entry));
      SL_TRY(list(path, false));
    }
    return {};
  }

  const Table& table_;
  std::unordered_set<std::string> partition_columns_;
  Listed listed_;
};

// Logs one side of a VACUUM. Another writer's change of the metadata is no reason against it.
Status log(const Table& table, const std::string& operation,
           const std::map<std::string, std::string>& parameters,
           const std::map<std::string, int64_t>& metrics) {
  constexpr int kAttempts = 5;
  for (int attempt = 1;; ++attempt) {
    SL_ASSIGN(auto snapshot, table.snapshot());
    SL_ASSIGN(Transaction transaction, Transaction::begin(table, std::move(snapshot)));
    transaction.set_logged_always();
    transaction.set_blind_append();
    transaction.set_operation(operation, parameters);
    for (const auto& [name, value] : metrics) transaction.set_metric(name, value);
    const auto version = transaction.commit_or_error();
    if (version.ok()) return {};
    if (version.error().kind != ErrorKind::kConflict || attempt == kAttempts)
      return version.error();
  }
}

class Vacuum {
 public:
  Vacuum(const Table& table, const VacuumOptions& options) : table_(table), options_(options) {}

  Result<VacuumReport> run() {
    SL_ASSIGN(const auto snapshot, table_.snapshot());
    // Whoever may not write the table cannot know which of its files are needed.
    SL_TRY(Transaction::begin(table_, snapshot));
    own_retention_ms_ = deleted_file_retention_ms(*snapshot);
    const int64_t retention_ms = options_.retention_ms.value_or(own_retention_ms_);
    if (options_.check_retention && retention_ms < own_retention_ms_) return too_short();
    const int64_t now_ms = options_.now_ms.value_or(strandline::now_ms());
    const int64_t cutoff_ms = now_ms - retention_ms;
    const int64_t temporary_cutoff_ms = std::min(cutoff_ms, now_ms - kLeastAgeOfTemporaryMs);

    // The newest snapshot is read after the listing, so that what is committed meanwhile is known.
    SL_ASSIGN(const Listed listed, Lister(table_, *snapshot).list());
    SL_ASSIGN(const auto newest, table_.snapshot());
    SL_ASSIGN(const Needed needed, find_needed(table_, *newest, retention_ms, cutoff_ms));
    std::vector<storage::FileInfo> due;
    int64_t due_bytes = 0;
    for (const storage::FileInfo& file : listed.files) {
      if (file.modified_ms > (is_temporary(file) ? temporary_cutoff_ms : cutoff_ms)) continue;
      if (needed.contains(file.path)) continue;
      due.push_back(file);
      due_bytes += file.size_bytes;
    }
    const std::vector<std::string> directories = due_directories(listed, due, cutoff_ms);
    if (options_.dry_run) {
      for (const auto& file : due) count(file);
      for (const auto& directory : directories) count_directory(directory);
      return finish();
    }

    std::map<std::string, std::string> parameters = {
        {"retentionCheckEnabled", options_.check_retention ? "true" : "false"},
        {"defaultRetentionMillis", std::to_string(own_retention_ms_)}};
    if (options_.retention_ms)
      parameters["specifiedRetentionMillis"] = std::to_string(*options_.retention_ms);
    SL_TRY(log(table_, "VACUUM START", parameters,
               {{"numFilesToDelete", static_cast<int64_t>(due.size())},
                {"sizeOfDataToDelete", due_bytes}}));
    const Status removed = remove(due, directories);
    const Status logged =
        log(table_, "VACUUM END", {{"status", removed.ok() ? "COMPLETED" : "FAILED"}},
            {{"numDeletedFiles", report_.num_files},
             {"numVacuumedDirectories", report_.num_directories}});
    if (!removed.ok()) return removed.error();
    if (!logged.ok()) {
      return logged.error().with_context(
          fmt::format("{} files of {} were deleted, but the end of the VACUUM is not in its log",
                      report_.num_files, table_.path()));
    }
    return finish();
  }

 private:
  Error too_short() const {
    return invalid_argument(
        "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT",
        "VACUUM of {} with a retention of {} hours could delete files that readers and writers of "
        "today need: its retention is {} hours. Leave out RETAIN, set "
        "'delta.deletedFileRetentionDuration', or, when nobody else uses the table, SET "
        "spark.databricks.delta.retentionDurationCheck.enabled = false",
        table_.path(), static_cast<double>(*options_.retention_ms) / kHourMs,
        own_retention_ms_ / kHourMs);
  }

  // Old directories in which nothing is left once the files are gone, the innermost first.
  static std::vector<std::string> due_directories(const Listed& listed,
                                                  const std::vector<storage::FileInfo>& due,
                                                  int64_t cutoff_ms) {
    std::unordered_set<std::string> gone;
    for (const auto& file : due) gone.insert(file.path);
    std::unordered_set<std::string> kept;  // directories in which something stays
    const auto keep_parents = [&](const std::string& path) {
      for (size_t slash = path.rfind('/'); slash != std::string::npos && slash > 0;
           slash = path.rfind('/', slash - 1)) {
        if (!kept.insert(path.substr(0, slash)).second) return;
      }
    };
    for (const auto& file : listed.files) {
      if (gone.count(file.path) == 0) keep_parents(file.path);
    }
    std::vector<std::string> directories;
    for (auto it = listed.directories.rbegin(); it != listed.directories.rend(); ++it) {
      // A writer makes a directory before the file in it: a young one may be about to be used.
      if (it->modified_ms > cutoff_ms) {
        kept.insert(it->path);
        keep_parents(it->path);
      } else if (kept.count(it->path) == 0) {
        directories.push_back(it->path);
      }
    }
    return directories;
  }

  Status remove(const std::vector<storage::FileInfo>& files,
                const std::vector<std::string>& directories) {
    for (const auto& file : files) {
      SL_TRY(table_.store()->remove(file.path));
      count(file);
    }
    for (const std::string& directory : directories) {
      SL_ASSIGN(const bool removed, table_.store()->remove_if_empty(directory));
      if (removed) count_directory(directory);
    }
    return {};
  }

  void count(const storage::FileInfo& file) {
    report_.paths.push_back(file.path);
    report_.size_bytes += file.size_bytes;
    ++report_.num_files;
  }
  void count_directory(const std::string& path) {
    report_.paths.push_back(path);
    ++report_.num_directories;
  }

  VacuumReport finish() {
    std::sort(report_.paths.begin(), report_.paths.end());
    return std::move(report_);
  }

  const Table& table_;
  const VacuumOptions& options_;
  int64_t own_retention_ms_ = kDefaultRetentionMs;
  VacuumReport report_;
};

}  // namespace

int64_t deleted_file_retention_ms(const Snapshot& snapshot) {
  const auto property = snapshot.property("delta.deletedFileRetentionDuration");
  const auto parsed = property ? parse_interval_ms(*property) : std::nullopt;
  return parsed.value_or(kDefaultRetentionMs);
}

Result<VacuumReport> vacuum(const Table& table, const VacuumOptions& options) {
  return Vacuum(table, options).run();
}

}  // namespace strandline::delta
