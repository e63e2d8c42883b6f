// New and dead rows of a statement, as actions of one transaction.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "duck/table_change.h"
#include "engine/context.h"

namespace strandline::engine {

// Applies a change to the transaction and sets its metrics; gives the files that were written.
// After an error no file of it is left.
Result<std::vector<delta::AddFile>> apply_change(const Context& context, const delta::Table& table,
                                                 delta::Transaction& transaction,
                                                 const std::shared_ptr<const delta::Snapshot>& base,
                                                 const duck::TableChange& change);

// ["a","b"], as operation parameters of the log spell lists.
std::string json_array(const std::vector<std::string>& texts);

// A temporary table of the engine for the rows a statement touches; gone at the end of the scope.
class TouchedRows {
 public:
  explicit TouchedRows(duck::Connection& connection) : connection_(connection) {}
  ~TouchedRows();
  TouchedRows(const TouchedRows&) = delete;
  TouchedRows& operator=(const TouchedRows&) = delete;

  // Keeps the rows of a query that gives their positions among its columns; returns their number.
  Result<int64_t> keep(const std::string& query);
  static std::string name();  // of the temporary table
  static std::string positions();

 private:
  duck::Connection& connection_;
};

}  // namespace strandline::engine
