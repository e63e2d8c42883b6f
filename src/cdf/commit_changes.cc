#include "cdf/commit_changes.h"

#include <map>
#include <utility>

#include "base/error.h"
#include "delta/data_path.h"

namespace strandline::cdf {
namespace {

bool says_zero(const delta::CommitInfo& info, const char* metric) {
  const auto found = info.operation_metrics.find(metric);
  return found != info.operation_metrics.end() &&
         (found->second == "0" || found->second == "\"0\"");
}

// The removed file as it was, for reading.
delta::AddFile as_it_was(delta::RemoveFile remove) {
  delta::AddFile file;
  file.path = std::move(remove.path);
  file.partition_values = std::move(remove.partition_values);
  file.size_bytes = remove.size_bytes.value_or(0);
  file.deletion_vector = std::move(remove.deletion_vector);
  file.base_row_id = remove.base_row_id;
  file.default_row_commit_version = remove.default_row_commit_version;
  return file;
}

Status check_remove(const delta::RemoveFile& remove, delta::Version version,
                    const delta::Snapshot& definition) {
  const bool is_partitioned = !definition.metadata.partition_columns.empty();
  const bool complete = is_partitioned
                            ? !remove.partition_values.empty()
                            : remove.extended_file_metadata || remove.size_bytes.has_value();
  if (complete) return {};
  return unsupported("DELTA_CHANGE_DATA_INCOMPLETE_REMOVE",
                     "the change data of version {} of {} cannot be read: the commit removes {} "
                     "without its partition values and size; read from version {} on",
                     version, definition.table_path, remove.path, version + 1);
}

Status check_row_ids(const delta::AddFile& file, const char* verb, delta::Version version,
                     const delta::Snapshot& definition) {
  if (file.base_row_id && file.default_row_commit_version) return {};
  return corrupt("DELTA_ROW_ID_MISSING",
                 "table {} tracks rows, but version {} {} the file {} without baseRowId or "
                 "defaultRowCommitVersion",
                 definition.table_path, version, verb, file.path);
}

}  // namespace

CommitFiles take_files(delta::Version version, int64_t timestamp_ms,
                       std::vector<delta::Action>* actions) {
  CommitFiles files;
  files.version = version;
  files.timestamp_ms = timestamp_ms;
  for (delta::Action& action : *actions) {
    if (auto* const add = std::get_if<delta::AddFile>(&action)) {
      if (!add->data_change) continue;
      add->stats = {};
      files.adds.push_back(std::move(*add));
    } else if (auto* const remove = std::get_if<delta::RemoveFile>(&action)) {
      if (remove->data_change) files.removes.push_back(std::move(*remove));
    } else if (auto* const recorded = std::get_if<delta::CdcFile>(&action)) {
      files.recorded.push_back(std::move(*recorded));
    } else if (const auto* const info = std::get_if<delta::CommitInfo>(&action)) {
      files.is_empty_merge =
          info->operation == "MERGE" && says_zero(*info, "numTargetRowsInserted") &&
          says_zero(*info, "numTargetRowsUpdated") && says_zero(*info, "numTargetRowsDeleted");
    }
  }
  return files;
}

Result<CommitChanges> changes_of(CommitFiles commit, FeedMode mode,
                                 const delta::Snapshot& definition) {
  CommitChanges changes;
  changes.version = commit.version;
  changes.timestamp_ms = commit.timestamp_ms;
  if (mode == FeedMode::kLegacy && !commit.recorded.empty()) {
    for (delta::CdcFile& recorded : commit.recorded) {
      FileChange change;
      change.kind = ChangeKind::kRecorded;
      change.file.path = std::move(recorded.path);
      change.file.partition_values = std::move(recorded.partition_values);
      change.file.size_bytes = recorded.size_bytes;
      changes.files.push_back(std::move(change));
    }
    return changes;
  }
  if (mode == FeedMode::kLegacy && commit.is_empty_merge) return changes;

  std::map<std::string, size_t> added;  // by the file's one spelling
  for (size_t i = 0; i < commit.adds.size(); ++i) {
    added.emplace(delta::canonical_path(definition.table_path, commit.adds[i].path), i);
  }
  std::vector<bool> paired(commit.adds.size());
  for (delta::RemoveFile& remove : commit.removes) {
    SL_TRY(check_remove(remove, commit.version, definition));
    const auto found = added.find(delta::canonical_path(definition.table_path, remove.path));
    FileChange gone;
    gone.kind = ChangeKind::kDelete;
    gone.file = as_it_was(std::move(remove));
    if (mode == FeedMode::kAutomatic) {
      SL_TRY(check_row_ids(gone.file, "removes", commit.version, definition));
    }
    if (found == added.end()) {
      changes.files.push_back(std::move(gone));
      continue;
    }
    // The same file with another deletion vector: what only one of the two deletes has changed,
    // all other rows are as they were.
    delta::AddFile& add = commit.adds[found->second];
    paired[found->second] = true;
    if (mode == FeedMode::kLegacy && !gone.file.deletion_vector && !add.deletion_vector) {
      return corrupt("DELTA_CHANGE_DATA_FILE_UNCHANGED",
                     "version {} of {} removes and adds the file {} with no deletion vector in "
                     "either: what changed cannot be told",
                     commit.version, definition.table_path, add.path);
    }
    if (gone.file.deletion_vector && add.deletion_vector &&
        gone.file.deletion_vector->unique_id() == add.deletion_vector->unique_id()) {
      continue;
    }
    if (mode == FeedMode::kAutomatic) {
      SL_TRY(check_row_ids(add, "adds", commit.version, definition));
    }
    if (gone.file.deletion_vector) {
      FileChange back;
      back.kind = ChangeKind::kInsert;
      back.file = add;
      back.only_deleted_by = gone.file.deletion_vector;
      changes.files.push_back(std::move(back));
    }
    if (add.deletion_vector) {
      gone.only_deleted_by = add.deletion_vector;
      changes.files.push_back(std::move(gone));
    }
  }
  for (size_t i = 0; i < commit.adds.size(); ++i) {
    if (paired[i]) continue;
    FileChange change;
    change.kind = ChangeKind::kInsert;
    change.file = std::move(commit.adds[i]);
    if (mode == FeedMode::kAutomatic) {
      SL_TRY(check_row_ids(change.file, "adds", commit.version, definition));
    }
    changes.files.push_back(std::move(change));
  }
  return changes;
}

}  // namespace strandline::cdf
