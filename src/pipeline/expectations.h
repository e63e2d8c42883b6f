// Expectations: CONSTRAINT name EXPECT (condition) of a table or view, for the rows of a batch
// (auto-cdc.md sections 6 and 12). A row meets an expectation when the condition is true; false and
// null violate it. Every expectation of a dataset sees every row, whatever the others say of it, so
// their order means nothing.
#pragma once

#include <strandline/result.h>
#include <strandline/strandline.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/data_type.h"
#include "duck/connection.h"
#include "sql/ast.h"

namespace strandline::pipeline {

// The columns of a described query, as conditions see them.
Schema columns_of(const std::vector<duck::ResultColumn>& columns);

// What is wrong with the conditions over rows of these columns, each with its place:
// UNRESOLVED_COLUMN.WITH_SUGGESTION, NOT_A_CONDITION, and the printer's and engine's own errors.
// shown: the dataset as messages name it.
std::vector<Error> check_expectations(duck::Connection& connection,
                                      const std::vector<sql::Expectation>& expectations,
                                      const std::string& shown, const Schema& columns);

struct RowsToCheck {
  std::string query;  // gives the rows; read once
  // What the conditions see. Columns of `missing` are null: the target has them, the rows do not.
  Schema columns;
  Schema missing;
  std::string exempt;  // DuckDB condition over the query: such rows are not checked; empty: none
  int64_t now_us = 0;  // current_timestamp() in conditions, microseconds UTC
};

// The rows of one query after its expectations, in a temporary table as long as this lives.
class CheckedRows {
 public:
  // dataset: full name, for the counts; shown: as messages name it. Errors: kInvalidData
  // EXPECTATION_VIOLATION when a row violates one that says FAIL UPDATE; as check_expectations().
  static Result<std::unique_ptr<CheckedRows>> make(
      duck::Connection& connection, const std::vector<sql::Expectation>& expectations,
      const std::string& dataset, const std::string& shown, const RowsToCheck& rows);
  ~CheckedRows();
  CheckedRows(const CheckedRows&) = delete;
  CheckedRows& operator=(const CheckedRows&) = delete;

  // Parenthesised SELECT of the rows that stay, with the columns of the query.
  const std::string& sql() const { return sql_; }
  // One for each expectation, in the order of the declaration.
  const std::vector<ExpectationReport>& counts() const { return counts_; }
  int64_t dropped_rows() const { return dropped_rows_; }

 private:
  CheckedRows(duck::Connection& connection, std::string table)
      : connection_(connection), table_(std::move(table)) {}

  duck::Connection& connection_;
  std::string table_;
  std::string sql_;
  std::vector<ExpectationReport> counts_;
  int64_t dropped_rows_ = 0;
};

// The expectations at zero, as a report begins.
std::vector<ExpectationReport> uncounted(const std::vector<sql::Expectation>& expectations,
                                         const std::string& dataset);
// Adds counts to those of the same name and dataset; the ones that are not there yet are appended.
void add_counts(std::vector<ExpectationReport>* to, const std::vector<ExpectationReport>& more);

// The text of expectations as part of a flow's definition; empty for none.
std::string expectations_text(const std::vector<sql::Expectation>& expectations);

}  // namespace strandline::pipeline
