// The difference between a materialized view and what it shall hold, as a change of its rows.
// Rows that are there already stay, with their ids; rows that change keep their ids too where it is
// known which is which, so that the view's feed tells of updates.
#pragma once

#include <strandline/result.h>

#include <memory>
#include <string>
#include <vector>

#include "base/data_type.h"
#include "delta/snapshot.h"
#include "duck/connection.h"
#include "duck/delta_io.h"
#include "duck/table_change.h"

namespace strandline::pipeline {

// Whether a view's rows can be compared with those it has: the same columns, none of which the
// table computes itself.
bool can_compare(const delta::Snapshot& view, const Schema& columns);

// What a view shall hold.
struct ViewRows {
  std::string rows;  // query of the view's columns, in any order
  // Columns that tell apart the rows of the result, or nearly; empty where there are none.
  std::vector<std::string> key = {};
  // If set, `rows` are only those of some keys, and other rows of the view are left alone: a
  // relation of these keys, its columns in the order of `key`.
  std::string of_keys = {};
};

// Columns of what a row change is told by, beside the view's.
inline constexpr const char* kRowSign = "__strandline_sign";  // BIGINT: 1 comes, -1 goes
inline constexpr const char* kRowPair = "__strandline_pair";  // what goes and comes of one row

// Rows are computed once, into temporary tables that live as long as this.
class ViewChange {
 public:
  // Errors: of the engine.
  static Result<std::unique_ptr<ViewChange>> make(
      duck::Connection& connection, const delta::Table& table,
      const std::shared_ptr<const delta::Snapshot>& view, const ViewRows& rows);
  // changes: query of the view's columns, kRowSign and kRowPair (null: stands alone); rows may come
  // and go several times. Null when the view lacks a row that goes: it is not what it was.
  // Errors: of the engine.
  static Result<std::unique_ptr<ViewChange>> of_changes(
      duck::Connection& connection, const delta::Table& table,
      const std::shared_ptr<const delta::Snapshot>& view, const std::string& changes);
  ~ViewChange();
  ViewChange(const ViewChange&) = delete;
  ViewChange& operator=(const ViewChange&) = delete;

  const duck::TableChange& change() const { return change_; }
  int64_t result_rows() const { return result_rows_; }  // that were computed
  // Of these, rows with an empty value in a column that partitions the view, where it is null.
  int64_t empty_partition_rows() const { return empty_partition_rows_; }

 private:
  ViewChange(duck::Connection& connection, std::shared_ptr<const delta::Snapshot> view);

  Status scan_view(const delta::Table& table);
  Status run(const std::string& table, const std::string& query);
  std::string numbered(const std::string& relation) const;
  std::string equal() const;
  Status finish();
  std::string without_empty(const std::string& relation) const;

  duck::Connection& connection_;
  const std::shared_ptr<const delta::Snapshot> view_;
  const std::string prefix_;  // of the names of the temporary tables
  std::string columns_;
  std::unique_ptr<duck::Scan> scan_;
  std::string view_rows_;
  duck::TableChange change_;
  int64_t result_rows_ = 0;
  int64_t empty_partition_rows_ = 0;
  std::string any_empty_;       // condition: a value that becomes null
  std::string empty_to_nulls_;  // select items that make it null
};

}  // namespace strandline::pipeline
