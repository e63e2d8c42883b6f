// Which files can hold rows that a condition asks for, told by partition values and per-file
// statistics alone (delta-protocol.md sections 5 and 6).
//
// A filter is built over the schema of one snapshot and judges any file of a table with that
// metadata: those of the snapshot and those that others add. It never leaves out a file that may
// hold a matching row: what a condition says beyond its reach, a missing or unreadable cell of the
// statistics and types without order all count as "may be anything".
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/data_type.h"
#include "delta/snapshot.h"

namespace strandline::delta {

// A constant. Numbers are their digits, booleans "true" or "false"; dates and timestamps are SQL or
// ISO 8601 text, UTC where they name no zone. A string beside a column of another type is read as
// that type where its text is exact ('2026-01-31', '42'), and otherwise says nothing.
struct FilterLiteral {
  TypeId type = TypeId::kVoid;  // kVoid: NULL
  std::string text = {};
};

enum class CompareOp { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual };

// What a condition can be for one row.
enum class Truth { kTrue, kFalse, kNull };

// Immutable; copies share their parts. Columns are paths of logical names in any case ({"s", "a"}
// is field a of struct s); an unknown column gives a filter that leaves nothing out.
class FileFilter {
 public:
  // Says nothing.
  FileFilter();

  static FileFilter constant(Truth value);
  static FileFilter compare(const Snapshot& table, const std::vector<std::string>& column,
                            CompareOp op, const FilterLiteral& value);
  // <=>
  static FileFilter null_safe_equal(const Snapshot& table, const std::vector<std::string>& column,
                                    const FilterLiteral& value);
  // IN (values); a NULL among them counts as in SQL.
  static FileFilter in(const Snapshot& table, const std::vector<std::string>& column,
                       const std::vector<FilterLiteral>& values);
  // Some value lies inside one of the ranges, both ends included, and need not be every value of
  // them. Nulls match if with_null.
  static FileFilter in_ranges(const Snapshot& table, const std::vector<std::string>& column,
                              const std::vector<std::pair<FilterLiteral, FilterLiteral>>& ranges,
                              bool with_null);
  static FileFilter is_null(const Snapshot& table, const std::vector<std::string>& column);
  // LIKE 'prefix%'
  static FileFilter starts_with(const Snapshot& table, const std::vector<std::string>& column,
                                const std::string& prefix);
  static FileFilter all_of(std::vector<FileFilter> parts);
  static FileFilter any_of(std::vector<FileFilter> parts);
  static FileFilter negation(FileFilter part);
  // part IS TRUE, IS FALSE, IS UNKNOWN: never null itself.
  static FileFilter is(FileFilter part, Truth value);

  struct Node;

 private:
  friend class FileJudge;
  explicit FileFilter(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  std::shared_ptr<const Node> node_;
};

// Judges one file after the other. Not thread-safe; cheap to make.
class FileJudge {
 public:
  enum class Verdict { kMayMatch, kExcludedByPartition, kExcludedByStatistics };

  explicit FileJudge(const FileFilter& filter);
  FileJudge(FileJudge&&) noexcept;
  FileJudge& operator=(FileJudge&&) noexcept;
  ~FileJudge();

  // Statistics are read only where partition values do not decide, and only the columns asked for.
  Verdict judge(const AddFile& file);
  bool may_match(const AddFile& file) { return judge(file) == Verdict::kMayMatch; }
  // The filter looks at no column and leaves nothing out.
  bool keeps_all() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The files of a snapshot that a filter keeps.
struct FileSelection {
  std::vector<size_t> files;  // indexes in snapshot.files, ascending
  size_t total = 0;           // files of the snapshot
  size_t skipped_by_partition = 0;
  size_t skipped_by_statistics = 0;

  size_t skipped() const { return skipped_by_partition + skipped_by_statistics; }
  // "read 2 of 7 (partition values skipped 1, statistics skipped 4)"
  std::string to_string() const;
};
FileSelection select_files(const Snapshot& snapshot, const FileFilter& filter);

}  // namespace strandline::delta
