// Which rows a batch changes: images for the recorded change feed of AUTO CDC targets, and the
// difference between a materialized view and its rows computed anew.
#pragma once

#include <strandline/result.h>

#include <memory>
#include <string>
#include <vector>

#include "base/data_type.h"
#include "cdf/primary_key.h"
#include "delta/snapshot.h"
#include "duck/connection.h"
#include "duck/delta_io.h"
#include "duck/table_change.h"

namespace strandline::pipeline {

// Rows of an AUTO CDC target that a batch replaces: a row whose primary key was there before is
// updated, in the feed and by its row id (auto-cdc.md section 12).
// old_rows: relation of the target's rows with positions, columns as `before` has them; dead_rows:
// query of the positions that go; new_rows: query of the columns of `after` that come.
duck::RowChange replaced_rows(const Schema& before, const Schema& after,
                              const std::vector<cdf::KeyPart>& key, const std::string& old_rows,
                              const std::string& dead_rows, const std::string& new_rows);

// Whether a view's rows can be compared with those it has: the same columns, none of which the
// table computes itself.
bool can_compare(const delta::Snapshot& view, const Schema& columns);

// Rows that are there already stay, with their ids. Rows are computed once, into a temporary table
// that lives as long as this.
class ViewChange {
 public:
  // rows: query of the view's columns, in any order. Errors: of the engine.
  static Result<std::unique_ptr<ViewChange>> make(
      duck::Connection& connection, const delta::Table& table,
      const std::shared_ptr<const delta::Snapshot>& view, const std::string& rows);
  ~ViewChange();
  ViewChange(const ViewChange&) = delete;
  ViewChange& operator=(const ViewChange&) = delete;

  const duck::TableChange& change() const { return change_; }
  int64_t result_rows() const { return result_rows_; }  // all that the view now has

 private:
  ViewChange(duck::Connection& connection, std::string table)
      : connection_(connection), table_(std::move(table)) {}

  duck::Connection& connection_;
  const std::string table_;
  std::unique_ptr<duck::Scan> scan_;
  duck::TableChange change_;
  int64_t result_rows_ = 0;
};

}  // namespace strandline::pipeline
