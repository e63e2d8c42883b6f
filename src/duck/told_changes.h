// Rows of a change feed whose change is known, as files and rows of them that a scan reads.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cdf/plan.h"
#include "delta/row_set.h"
#include "delta/snapshot.h"
#include "duck/changed_rows.h"
#include "duck/delta_io.h"

namespace strandline::duck {

// Files of one kind, as a snapshot that scan_table reads.
struct FeedPart {
  std::shared_ptr<delta::Snapshot> snapshot;
  std::shared_ptr<Feed> feed = std::make_shared<Feed>();

  explicit FeedPart(const delta::Snapshot& definition)
      : snapshot(std::make_shared<delta::Snapshot>(definition)) {}
  bool empty() const { return feed->files.empty(); }
  void add(delta::AddFile file, FeedFile of_feed) {
    snapshot->files.push_back(std::move(file));
    feed->files.push_back(std::move(of_feed));
  }
  // Single rows of a file, whatever is deleted.
  void add_rows(delta::AddFile file, const delta::RowSet& rows, size_t change);
  // Of what a commit did. Each commit's are asked for together.
  size_t number(const cdf::CommitChanges& commit, FeedChangeKind kind);
};

// Deletion vectors of the commits of a feed.
class CommitVectors {
 public:
  using RowSetPointer = std::shared_ptr<const delta::RowSet>;

  explicit CommitVectors(const delta::Table& table) : table_(table) {}
  // Errors: of the table, with version and file.
  Result<RowSetPointer> of(const cdf::CommitChanges& commit, const delta::AddFile& file,
                           const delta::DeletionVectorDescriptor& vector);
  // Rows of a change of single rows: what one vector deletes and another one does not.
  Result<RowSetPointer> only(const cdf::CommitChanges& commit, const cdf::FileChange& change);

 private:
  const delta::Table& table_;
  std::map<std::string, RowSetPointer> vectors_;  // of the commit before and this one
};

class ToldChanges {
 public:
  ToldChanges(const delta::Table& table, std::shared_ptr<const delta::Snapshot> definition)
      : table_path_(table.path()), definition_(std::move(definition)), part_(*definition_) {}

  // Of a file's rows and their ids, whatever is deleted.
  std::string name_of(const delta::AddFile& file) const;
  size_t file_number(const delta::AddFile& file);
  std::string name_of(size_t file) const { return name_of(files_[file].file); }

  // Of what a commit did.
  size_t number(const cdf::CommitChanges& commit, FeedChangeKind kind);
  // All live rows of a file.
  void add_file(const delta::AddFile& file, size_t change);
  // All rows of a file, by its number, whatever is deleted.
  void add_file(size_t file, size_t change) { add_file(files_[file].file, change); }
  // Single rows of a file, by its number, whatever is deleted. Costs eight bytes a row.
  void add_rows(size_t file, uint64_t first, uint64_t count, size_t change);
  void add_rows(size_t file, const delta::RowSet& rows, size_t change);
  // Whether so many more are not too many to be kept one by one.
  bool has_room_for(size_t rows) const;

  bool has_updates() const { return has_updates_; }
  // All that was told since the last time. Files keep their numbers.
  FeedPart finish();

 private:
  // Without a deletion vector, and the rows of it that the feed has.
  struct FileRows {
    delta::AddFile file;
    std::vector<ChangedRow> rows;
  };

  const std::string table_path_;
  const std::shared_ptr<const delta::Snapshot> definition_;
  FeedPart part_;
  std::vector<FileRows> files_;
  std::map<std::string, size_t> file_numbers_;  // by name_of
  size_t row_count_ = 0;                        // of files_
  bool has_updates_ = false;
};

}  // namespace strandline::duck
