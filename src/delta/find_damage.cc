#include "delta/find_damage.h"

#include "base/error.h"

namespace strandline::delta {

namespace {

constexpr const char* kDamaged = "DELTA_DATA_FILE_DAMAGED";
constexpr std::string_view kMagic = "PAR1";  // both ends of a Parquet file
constexpr int64_t kLeastSize = 12;           // magic, length of the footer, magic

// What is wrong with a file that is there; empty when it looks whole.
std::string what_is_wrong(storage::Store* store, const storage::FileInfo& found,
                          const AddFile& file) {
  if (found.is_directory) return "is a folder";
  if (found.size_bytes < kLeastSize) {
    return fmt::format("has {} bytes, too few for a Parquet file", found.size_bytes);
  }
  const auto magic = static_cast<int64_t>(kMagic.size());
  const auto first = store->read_range(found.path, 0, magic);
  const auto last = store->read_range(found.path, found.size_bytes - magic, magic);
  const bool is_whole = first.ok() && last.ok() && *first == kMagic && *last == kMagic;
  if (is_whole) return "";
  if (found.size_bytes != file.size_bytes) {
    return fmt::format("has {} bytes, not the {} that the log says", found.size_bytes,
                       file.size_bytes);
  }
  return "is no whole Parquet file";
}

}  // namespace

std::optional<Error> find_damage(storage::Store* store, const Snapshot& snapshot) {
  for (const AddFile& file : snapshot.files) {
    const auto path = resolve_data_path(snapshot.table_path, file.path);
    if (!path.ok()) return path.error();
    const auto found = store->stat(*path);
    if (!found.ok()) {
      if (found.error().kind != ErrorKind::kNotFound) return found.error();
      return not_found("DELTA_FILE_NOT_FOUND",
                       "version {} of table {} needs the file {}, which is not there: restore the "
                       "file, or go back to a version without it",
                       snapshot.version, snapshot.table_path, *path);
    }
    const std::string wrong = what_is_wrong(store, *found, file);
    if (wrong.empty()) continue;
    return corrupt(kDamaged,
                   "version {} of table {} needs the file {}, but it {}: restore the file, or go "
                   "back to a version without it",
                   snapshot.version, snapshot.table_path, *path, wrong);
  }
  return std::nullopt;
}

}  // namespace strandline::delta
