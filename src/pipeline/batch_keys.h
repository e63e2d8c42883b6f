// What a batch reads of the target and of its state: only what its keys need.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cdc/program.h"
#include "delta/file_filter.h"
#include "delta/transaction.h"
#include "duck/connection.h"
#include "duck/key_filter.h"
#include "duck/key_ranges.h"

namespace strandline::pipeline {

// The files of a table that a batch reads.
struct TouchedFiles {
  // nullopt: rows of any key may matter.
  std::optional<delta::FileFilter> filter;
  delta::FileSelection selection;

  void read_by(delta::Transaction* transaction) const {
    if (filter) transaction->set_read_predicate(*filter, selection.files);
  }
};

class BatchKeys {
 public:
  // Of the staged events, if the program reads target and state by their keys; else of all rows.
  static Result<BatchKeys> of(duck::Connection& connection, const cdc::Plan& plan,
                              const cdc::Program& program);

  // The files that may hold rows of the keys.
  TouchedFiles files(const delta::Snapshot& table) const;

  // The rows of a relation over these files, as for FROM, without most rows of other keys: the
  // engine leaves those out before it reads their other columns. The relation as it is where that
  // does not pay. The result must not outlive this object.
  Result<std::string> rows(duck::Connection& connection, const std::string& relation,
                           const delta::Snapshot& table, const TouchedFiles& files);

 private:
  BatchKeys() = default;

  std::optional<duck::KeyRanges> ranges_;
  std::optional<Field> column_;  // the key column that tells most keys apart, if values can hash
  std::string values_;           // query of its values
  std::unique_ptr<duck::KeyFilter> filter_;
};

}  // namespace strandline::pipeline
