// New and dead rows of a statement, as actions of one transaction.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "duck/table_change.h"
#include "engine/context.h"

namespace strandline::engine {

// Applies a change to the transaction. After an error no file of it is left.
Result<duck::AppliedChange> apply_change(const Context& context, const delta::Table& table,
                                         delta::Transaction& transaction,
                                         const std::shared_ptr<const delta::Snapshot>& base,
                                         const duck::TableChange& change);

// Metrics of the log under Delta's names: of what writes new rows alone, of what touches old rows,
// and of MERGE, which has names of its own for the same figures.
void set_output_metrics(delta::Transaction& transaction, const duck::AppliedChange& applied);
void set_change_metrics(delta::Transaction& transaction, const duck::AppliedChange& applied);
void set_merge_metrics(delta::Transaction& transaction, const duck::AppliedChange& applied);

// ["a","b"], as operation parameters of the log spell lists.
std::string json_array(const std::vector<std::string>& texts);

// A temporary table of the engine; gone at the end of the scope.
class TempTable {
 public:
  TempTable(duck::Connection& connection, const std::string& name)
      : connection_(connection), name_(duck::quote_name("__strandline_" + name)) {}
  ~TempTable();
  TempTable(const TempTable&) = delete;
  TempTable& operator=(const TempTable&) = delete;

  // Keeps the rows of a query; keep() returns their number.
  Status fill(const std::string& query);
  Result<int64_t> keep(const std::string& query);
  const std::string& name() const { return name_; }

 private:
  duck::Connection& connection_;
  const std::string name_;
};

}  // namespace strandline::engine
