// A target and a state that live in DuckDB tables and play Delta: rows have a file, a position and
// a row id, a batch removes positions and appends rows. For tests of programs without files.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cdc/plan.h"
#include "cdc/program.h"
#include "duck/connection.h"
#include "duck/program_runner.h"

namespace strandline::test {

// What one batch did, for checks of the program's promises.
struct BatchOutcome {
  duck::BatchMetrics metrics;
  int64_t target_new = 0, target_dead = 0, state_new = 0, state_dead = 0;

  bool changed_nothing() const { return target_new + target_dead + state_new + state_dead == 0; }
};

class ToyLake {
 public:
  explicit ToyLake(duck::Connection& connection) : connection_(connection) {}
  ~ToyLake();
  ToyLake(const ToyLake&) = delete;
  ToyLake& operator=(const ToyLake&) = delete;

  // The facts make_plan wants of the target as it stands.
  cdc::TargetFacts facts() const;
  // Plans and runs one batch of `source` (SQL for FROM) and applies what it gives.
  Result<BatchOutcome> run_batch(const cdc::Declaration& declaration,
                                 const cdc::SourceFacts& source_facts, const std::string& source,
                                 const cdc::ProgramOptions& options = {});
  // Hand edits: SQL values for the target's columns; a condition.
  Status insert_by_hand(const std::vector<std::string>& rows);
  Status delete_by_hand(const std::string& condition);
  Status update_by_hand(const std::string& assignment, const std::string& condition);

  // Columns and __toy_row_id of all rows as text, in position order (a sort would turn -0.0 into
  // 0.0).
  Result<duck::Rows> target_rows() const;
  Result<duck::Rows> state_rows() const;
  const Schema& target_schema() const { return *target_schema_; }
  // The target's name in DuckDB, for queries of a test's own.
  static const char* target_table();
  std::optional<Schema> declared;
  // Of the other flows into the table.
  std::vector<sql::AutoCdcClauses> clauses_elsewhere;
  // A column of the table that no flow gives, and the value of new rows there.
  std::optional<Field> note;
  sql::ExprPtr note_default;
  // Changes the next programs before they run, as a fault of the engine would what they make.
  std::function<void(cdc::Program*)> tamper;
  // Whether changes by hand are told to the next batch, as a log would.
  bool tells_edits = false;

 private:
  Status reshape(const char* name, const std::optional<Schema>& before, const Schema& after);
  Result<int64_t> append(const char* name, const Schema& schema, const std::string& query,
                         bool with_row_id);
  Result<int64_t> remove(const char* name, const std::string& query);
  static std::string relation(const char* name, const Schema& schema);

  duck::Connection& connection_;
  std::optional<Schema> target_schema_, state_schema_;
  std::optional<std::string> state_spec_;
  Status remember_before();
  bool edited_ = false;
  bool has_rows_ = false;
  int64_t last_position_ = 0;  // of either table; never used again
};

}  // namespace strandline::test
