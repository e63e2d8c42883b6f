#include "delta/find_damage.h"

#include "base/error.h"
#include "delta/parquet_footer.h"

namespace strandline::delta {

namespace {

class Search {
 public:
  Search(storage::Store* store, const Snapshot& snapshot)
      : store_(store), snapshot_(snapshot), needs_ids_(snapshot.column_mapping_mode() == "id") {}

  Status look_at(const AddFile& file) const {
    SL_ASSIGN(const std::string path, resolve_data_path(snapshot_.table_path, file.path));
    const auto found = store_->stat(path);
    if (!found.ok()) {
      if (found.error().kind != ErrorKind::kNotFound) return found.error();
      return not_found("DELTA_FILE_NOT_FOUND",
                       "version {} of table {} needs the file {}, which is not there: restore the "
                       "file, or go back to a version without it",
                       snapshot_.version, snapshot_.table_path, path);
    }
    if (found->is_directory) return damaged(path, "is a folder");
    // Of a file that a change feed needs once more the log may not know the size.
    if (file.size_bytes > 0 && found->size_bytes != file.size_bytes) {
      return damaged(path, fmt::format("has {} bytes, not the {} that the log says",
                                       found->size_bytes, file.size_bytes));
    }
    const auto footer = read_parquet_footer(store_, path, found->size_bytes);
    if (!footer.ok()) {
      if (footer.error().kind != ErrorKind::kCorrupt) return footer.error();
      return damaged(path, footer.error().message);
    }
    if (!*footer) return {};  // encrypted: the engine says what it makes of it
    const std::optional<int64_t> count = num_records(file);
    if (count && *count != (*footer)->row_count) {
      return damaged(path, fmt::format("has {} rows, not the {} that the log says",
                                       (*footer)->row_count, *count));
    }
    if (needs_ids_ && !(*footer)->has_field_ids) {
      return corrupt("DELTA_FIELD_IDS_MISSING",
                     "version {} of table {} finds its columns by field id "
                     "('delta.columnMapping.mode' = 'id'), but the file {} has none: write the "
                     "file anew with them, or go back to a version without it",
                     snapshot_.version, snapshot_.table_path, path);
    }
    return {};
  }

 private:
  Error damaged(const std::string& path, const std::string& what) const {
    return corrupt("DELTA_DATA_FILE_DAMAGED",
                   "version {} of table {} needs the file {}, but it {}: restore the file, or go "
                   "back to a version without it",
                   snapshot_.version, snapshot_.table_path, path, what);
  }

  storage::Store* store_;
  const Snapshot& snapshot_;
  const bool needs_ids_;
};

}  // namespace

std::optional<Error> find_damage(storage::Store* store, const Snapshot& snapshot,
                                 const std::vector<size_t>* files) {
  const Search search(store, snapshot);
  const auto look = [&](const AddFile& file) -> std::optional<Error> {
    const Status seen = search.look_at(file);
    return seen.ok() ? std::nullopt : std::optional(seen.error());
  };
  if (files == nullptr) {
    for (const AddFile& file : snapshot.files) {
      if (auto error = look(file)) return error;
    }
    return std::nullopt;
  }
  for (const size_t index : *files) {
    if (auto error = look(snapshot.files.at(index))) return error;
  }
  return std::nullopt;
}

}  // namespace strandline::delta
