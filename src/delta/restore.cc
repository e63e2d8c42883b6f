#include "delta/restore.h"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <unordered_map>

#include "base/error.h"
#include "delta/column_rules.h"
#include "delta/data_path.h"
#include "delta/deletion_vector.h"
#include "delta/features.h"
#include "delta/log_cleanup.h"
#include "delta/properties.h"
#include "delta/row_id_columns.h"
#include "delta/transaction.h"

namespace strandline::delta {

namespace {

constexpr const char* kClusteringDomain = "delta.clustering";
constexpr const char* kMaxColumnId = "delta.columnMapping.maxColumnId";

using FilesByKey = std::unordered_map<std::string, const AddFile*>;

std::string key_of(const std::string& table_path, const AddFile& file) {
  return canonical_path(table_path, file.path) + '\n' +
         (file.deletion_vector ? file.deletion_vector->unique_id() : "");
}

FilesByKey by_key(const Snapshot& snapshot) {
  FilesByKey files;
  for (const AddFile& file : snapshot.files)
    files.emplace(key_of(snapshot.table_path, file), &file);
  return files;
}

// Files of `from` that are not in `known`, in the snapshot's order.
std::vector<const AddFile*> missing_from(const FilesByKey& known, const Snapshot& from) {
  std::vector<const AddFile*> files;
  for (const AddFile& file : from.files) {
    if (known.count(key_of(from.table_path, file)) == 0) files.push_back(&file);
  }
  return files;
}

int64_t total_bytes(const std::vector<const AddFile*>& files) {
  int64_t bytes = 0;
  for (const AddFile* const file : files) bytes += file->size_bytes;
  return bytes;
}

// Identity columns never give a value twice: the mark that is further on stays.
std::string with_identity_marks(const Snapshot& now, const Snapshot& wanted) {
  const std::string mark_key = std::string(kIdentityPrefix) + "highWaterMark";
  Schema schema = wanted.schema;
  bool changed = false;
  for (Field& field : schema.fields) {
    const Field* const present = now.schema.get(field.name);
    if (present == nullptr || !present->metadata.contains(mark_key)) continue;
    const auto step = field.metadata.find(std::string(kIdentityPrefix) + "step");
    if (step == field.metadata.end()) continue;
    const std::string& mark = present->metadata.at(mark_key);
    const auto before = field.metadata.find(mark_key);
    const auto number = [](const std::string& text) {
      return std::strtoll(text.c_str(), nullptr, 10);
    };
    const bool grows = number(step->second) > 0;
    if (before != field.metadata.end() &&
        (grows ? number(before->second) >= number(mark) : number(before->second) <= number(mark))) {
      continue;
    }
    field.metadata[mark_key] = mark;
    changed = true;
  }
  return changed ? print_schema(schema) : wanted.metadata.schema_string;
}

bool tracks_rows(const Snapshot& snapshot) { return supports(snapshot.protocol, "rowTracking"); }

Metadata restored_metadata(const Snapshot& now, const Snapshot& wanted) {
  Metadata metadata = wanted.metadata;
  metadata.schema_string = with_identity_marks(now, wanted);
  metadata.id = now.metadata.id;
  metadata.created_time_ms = now.metadata.created_time_ms;
  auto& properties = metadata.configuration;
  const auto& present = now.metadata.configuration;
  const auto stay = [&](std::initializer_list<const char*> keys) {
    for (const char* key : keys) {
      const auto kept = present.find(key);
      if (kept == present.end()) {
        properties.erase(key);
      } else {
        properties[key] = kept->second;
      }
    }
  };
  // Times of versions never go back from commits to files; protected checkpoints stay so.
  stay({"delta.enableInCommitTimestamps", "delta.inCommitTimestampEnablementVersion",
        "delta.inCommitTimestampEnablementTimestamp", kProtectedBeforeProperty});
  // Files that stay have lost their row ids where the feature was dropped.
  if (!tracks_rows(now)) {
    stay({"delta.enableRowTracking", "delta.rowTrackingSuspended", kRowIdColumnProperty,
          kRowVersionColumnProperty});
  }
  // The files that come back have the names of then; where there were none, those of now stay.
  for (const char* key : {kRowIdColumnProperty, kRowVersionColumnProperty}) {
    if (const auto kept = present.find(key); kept != present.end()) properties.insert(*kept);
  }
  const int64_t largest = std::max(integer_property(present, kMaxColumnId, 0),
                                   integer_property(properties, kMaxColumnId, 0));
  if (largest > 0) properties[kMaxColumnId] = std::to_string(largest);
  return metadata;
}

// The features of now and those that the files that come back need.
Protocol restored_protocol(const Snapshot& now, const Snapshot& wanted) {
  std::set<std::string> features = supported_features(wanted.protocol);
  if (!tracks_rows(now)) features.erase("rowTracking");
  return with_features(now.protocol, features);
}

bool same_metadata(const Metadata& a, const Metadata& b) {
  return a.name == b.name && a.description == b.description && a.schema_string == b.schema_string &&
         a.partition_columns == b.partition_columns && a.configuration == b.configuration;
}

void restore_clustering(const Snapshot& now, const Snapshot& wanted, Transaction* transaction) {
  const auto present = now.domains.find(kClusteringDomain);
  const auto before = wanted.domains.find(kClusteringDomain);
  if (before == wanted.domains.end()) {
    if (present == now.domains.end()) return;
    DomainMetadata gone = present->second;
    gone.removed = true;
    transaction->set_domain(std::move(gone));
  } else if (present == now.domains.end() ||
             present->second.configuration != before->second.configuration) {
    transaction->set_domain(before->second);
  }
}

// Files that come back and are not there any more, VACUUM may have taken them.
Result<std::vector<const AddFile*>> find_gone(const Table& table,
                                              const std::vector<const AddFile*>& files) {
  std::map<std::string, bool> seen;  // a file of deletion vectors serves many data files
  const auto is_there = [&](const std::string& path) -> Result<bool> {
    const auto [known, is_new] = seen.emplace(path, true);
    if (!is_new || path.empty()) return known->second;
    const auto info = table.store()->stat(path);
    if (!info.ok() && info.error().kind != ErrorKind::kNotFound) return info.error();
    known->second = info.ok();
    return known->second;
  };
  std::vector<const AddFile*> gone;
  for (const AddFile* const file : files) {
    SL_ASSIGN(const std::string path, resolve_data_path(table.path(), file->path));
    SL_ASSIGN(bool there, is_there(path));
    if (there && file->deletion_vector) {
      SL_ASSIGN(const std::string vector,
                deletion_vector_path(table.path(), *file->deletion_vector));
      SL_ASSIGN(there, is_there(vector));
    }
    if (!there) gone.push_back(file);
  }
  return gone;
}

Error files_gone(const Table& table, Version version, const std::vector<const AddFile*>& gone) {
  constexpr size_t kMostNames = 10;
  std::string names;
  for (size_t i = 0; i < std::min(gone.size(), kMostNames); ++i)
    names += (names.empty() ? "" : ", ") + gone[i]->path;
  return not_found("RESTORE_MISSING_FILES",
                   "version {} of table {} cannot be restored: {} of its files are gone, or their "
                   "deletion vectors, deleted by VACUUM or by hand: {}{}. Restore a newer version, "
                   "or SET spark.sql.files.ignoreMissingFiles = true to go without them",
                   version, table.path(), gone.size(), names,
                   gone.size() > kMostNames ? ", …" : "");
}

}  // namespace

Result<RestoreReport> restore(const Table& table, const Snapshot& wanted,
                              const RestoreOptions& options) {
  SL_ASSIGN(const auto now, table.snapshot());
  SL_ASSIGN(Transaction transaction, Transaction::begin(table, now));
  const std::vector<const AddFile*> removed = missing_from(by_key(wanted), *now);
  std::vector<const AddFile*> restored = missing_from(by_key(*now), wanted);
  if (!removed.empty() && now->property_is_true("delta.appendOnly")) {
    return invalid_argument("DELTA_CANNOT_MODIFY_APPEND_ONLY",
                            "table {} has 'delta.appendOnly' = 'true', so RESTORE cannot take rows "
                            "away; set the property to 'false' first",
                            table.path());
  }
  SL_ASSIGN(const std::vector<const AddFile*> gone, find_gone(table, restored));
  if (!gone.empty() && !options.ignore_missing_files)
    return files_gone(table, wanted.version, gone);
  std::erase_if(restored, [&](const AddFile* file) {
    return std::find(gone.begin(), gone.end(), file) != gone.end();
  });

  Metadata metadata = restored_metadata(*now, wanted);
  if (!same_metadata(metadata, now->metadata)) transaction.set_metadata(std::move(metadata));
  if (Protocol protocol = restored_protocol(*now, wanted);
      supported_features(protocol) != supported_features(now->protocol)) {
    transaction.set_protocol(std::move(protocol));
  }
  restore_clustering(*now, wanted, &transaction);
  for (const AddFile* const file : removed) transaction.remove_file(*file);
  for (const AddFile* const file : restored) {
    AddFile again = *file;
    again.data_change = true;
    if (!tracks_rows(*now)) {
      again.base_row_id.reset();
      again.default_row_commit_version.reset();
    }
    transaction.add_file(std::move(again));
  }
  transaction.set_whole_file_changes();

  RestoreReport report;
  for (const AddFile& file : wanted.files) report.table_size_bytes += file.size_bytes;
  report.table_size_bytes -= total_bytes(gone);
  report.num_files = static_cast<int64_t>(wanted.files.size() - gone.size());
  report.num_removed_files = static_cast<int64_t>(removed.size());
  report.num_restored_files = static_cast<int64_t>(restored.size());
  report.removed_bytes = total_bytes(removed);
  report.restored_bytes = total_bytes(restored);
  transaction.set_operation("RESTORE", options.parameters);
  transaction.set_metric("tableSizeAfterRestore", report.table_size_bytes);
  transaction.set_metric("numOfFilesAfterRestore", report.num_files);
  transaction.set_metric("numRemovedFiles", report.num_removed_files);
  transaction.set_metric("numRestoredFiles", report.num_restored_files);
  transaction.set_metric("removedFilesSize", report.removed_bytes);
  transaction.set_metric("restoredFilesSize", report.restored_bytes);
  SL_ASSIGN(report.version, transaction.commit_or_error());
  return report;
}

}  // namespace strandline::delta
