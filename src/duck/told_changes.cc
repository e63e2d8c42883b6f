#include "duck/told_changes.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "delta/data_path.h"

namespace strandline::duck {

namespace {

void append(const delta::RowSet& rows, size_t change, std::vector<ChangedRow>* changed) {
  const size_t needed = changed->size() + rows.cardinality();
  if (needed > changed->capacity()) changed->reserve(std::max(needed, 2 * changed->capacity()));
  rows.for_each([changed, change](uint64_t row) {
    if (row <= ChangedRow::kMaxRow) changed->emplace_back(row, change);
  });
}

}  // namespace

void FeedPart::add_rows(delta::AddFile file, const delta::RowSet& rows, size_t change) {
  if (rows.empty()) return;
  ChangedRows changed;
  append(rows, change, &changed);
  file.deletion_vector.reset();
  add(std::move(file), {change, std::make_shared<const ChangedRows>(std::move(changed))});
}

size_t FeedPart::number(const cdf::CommitChanges& commit, FeedChangeKind kind) {
  // Those of one commit stand at the end, if they are there.
  auto& changes = feed->changes;
  for (size_t i = changes.size(); i-- > 0 && changes[i].version == commit.version;) {
    if (changes[i].kind == kind) return i;
  }
  changes.push_back({kind, commit.version, commit.timestamp_ms * 1000});
  return changes.size() - 1;
}

Result<CommitVectors::RowSetPointer> CommitVectors::of(
    const cdf::CommitChanges& commit, const delta::AddFile& file,
    const delta::DeletionVectorDescriptor& vector) {
  // The vector after one commit is that before the next.
  constexpr size_t kMaxVectors = 64;
  const auto known = vectors_.find(vector.unique_id());
  if (known != vectors_.end()) return known->second;
  auto rows = table_.deletion_vector(vector);
  if (!rows.ok()) {
    return rows.error().with_context(fmt::format("table {}, version {}, deletion vector of {}",
                                                 table_.path(), commit.version, file.path));
  }
  if (vectors_.size() >= kMaxVectors) vectors_.clear();
  auto shared = std::make_shared<const delta::RowSet>(std::move(rows).value());
  vectors_.emplace(vector.unique_id(), shared);
  return shared;
}

Result<CommitVectors::RowSetPointer> CommitVectors::only(const cdf::CommitChanges& commit,
                                                         const cdf::FileChange& change) {
  SL_ASSIGN(const auto gone, of(commit, change.file, *change.only_deleted_by));
  if (!change.file.deletion_vector) return gone;
  SL_ASSIGN(const auto dead, of(commit, change.file, *change.file.deletion_vector));
  return std::make_shared<const delta::RowSet>(gone->minus(*dead));
}

std::string ToldChanges::name_of(const delta::AddFile& file) const {
  return fmt::format("{} {} {}", file.base_row_id.value_or(-1),
                     file.default_row_commit_version.value_or(-1),
                     delta::canonical_path(table_path_, file.path));
}

size_t ToldChanges::file_number(const delta::AddFile& file) {
  const auto [at, is_new] = file_numbers_.emplace(name_of(file), files_.size());
  if (is_new) {
    files_.push_back({file, {}});
    files_.back().file.deletion_vector.reset();
  }
  return at->second;
}

size_t ToldChanges::number(const cdf::CommitChanges& commit, FeedChangeKind kind) {
  has_updates_ = has_updates_ || kind == FeedChangeKind::kUpdateAfter;
  return part_.number(commit, kind);
}

void ToldChanges::add_file(const delta::AddFile& file, size_t change) {
  part_.add(file, {change, nullptr});
}

void ToldChanges::add_rows(size_t file, uint64_t first, uint64_t count, size_t change) {
  std::vector<ChangedRow>& changed = files_[file].rows;
  for (uint64_t row = first; row < first + count; ++row) changed.emplace_back(row, change);
  row_count_ += count;
}

void ToldChanges::add_rows(size_t file, const delta::RowSet& rows, size_t change) {
  // Apart, they need no sorting.
  if (!has_room_for(rows.cardinality())) return part_.add_rows(files_[file].file, rows, change);
  append(rows, change, &files_[file].rows);
  row_count_ += rows.cardinality();
}

bool ToldChanges::has_room_for(size_t rows) const {
  constexpr size_t kMaxRows = 16'000'000;  // 128 MB
  return rows <= kMaxRows && row_count_ <= kMaxRows - rows;
}

FeedPart ToldChanges::finish() {
  for (FileRows& file : files_) {
    sort_by_row(&file.rows);
    for (std::vector<ChangedRow>& rows : without_repeats(std::move(file.rows))) {
      if (rows.empty()) continue;
      FeedFile part;
      part.rows = std::make_shared<const ChangedRows>(std::move(rows));
      part_.add(file.file, std::move(part));
    }
    file.rows = {};
  }
  row_count_ = 0;
  has_updates_ = false;
  return std::exchange(part_, FeedPart(*definition_));
}

}  // namespace strandline::duck
