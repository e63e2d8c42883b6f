// Rules of a table for the rows that enter it, evaluated (delta-protocol.md section 3): NOT NULL,
// invariants, CHECK constraints, generated and identity columns, lengths of CHAR and VARCHAR.
// apply_change() puts every new row through them, whoever writes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "delta/column_rules.h"
#include "delta/snapshot.h"
#include "delta/transaction.h"
#include "duck/connection.h"
#include "sql/expr.h"

namespace strandline::duck {

// SQL text of a rule as an expression of the table's columns, and as DuckDB text over them.
struct RuleText {
  sql::ExprPtr expr;
  std::string duckdb;
};
// what: the rule's name, for messages; now_us stands for current_timestamp() and its kin, in
// microseconds UTC. The types of the schema's columns decide what operators on them mean; without a
// schema the rule reads none. Errors: kUnsupported DELTA_UNSUPPORTED_EXPRESSION naming the rule,
// where its text has no counterpart here.
Result<RuleText> rule_text(const std::string& sql, const std::string& what,
                           std::optional<int64_t> now_us = {});
Result<RuleText> rule_text(Connection& connection, const Schema& schema, const std::string& sql,
                           const std::string& what);
// A relation of the schema's columns without rows, as DuckDB text in parentheses, to be described.
std::string no_rows(const Schema& schema);

// DuckDB text of "a = 1, b = NULL" for the columns that an expression reads; of all columns of the
// schema when it reads none.
std::string shown_row(const sql::Expr& expr, const Schema& schema);

// The value of a column that a writer leaves out, as DuckDB text of the column's type: its DEFAULT,
// or null. Errors: as rule_text.
Result<std::string> default_value(const Field& column, std::optional<int64_t> now_us = {});

class RowRules {
 public:
  // Rules of the table as the transaction leaves it. Errors: kCorrupt DELTA_INVALID_COLUMN_RULE, as
  // rule_text.
  static Result<RowRules> of(Connection& connection, const delta::Snapshot& definition);
  RowRules(RowRules&& other) noexcept;
  RowRules& operator=(RowRules&&) = delete;
  ~RowRules();

  bool has_identity() const { return !identities_.empty(); }

  // The query of the rows (empty for none) as they go into files: a generated column that is null
  // is computed, an identity column that is null gets its next value; then every rule is checked.
  // Running the result fails with kInvalidData DELTA_VIOLATE_CONSTRAINT_WITH_VALUES or
  // DELTA_NOT_NULL_CONSTRAINT_VIOLATED at the first row that breaks one.
  Result<std::string> apply(const std::string& rows);

  // Gives the rows of a temporary table their identity values, so that it can be read more than
  // once. Errors: as running what apply() gives.
  Status fill_identity(const std::string& temporary_table);

  // An error of rows that need more values than an identity column has left:
  // DELTA_IDENTITY_COLUMN_EXHAUSTED. Other errors stay as they are.
  Error explain(Error error) const;

  // After the rows were written: the values given to identity columns are used up.
  Status keep_identity(delta::Transaction* transaction) const;

 private:
  struct Generated {
    std::string column;
    std::string value;  // DuckDB text of the column's type
  };
  struct Check {
    std::string broken;   // DuckDB text, true where a row breaks the rule
    std::string message;  // DuckDB text
  };
  struct Identity {
    std::string column;
    delta::IdentityRule rule;
    int64_t first = 0;     // value of the next row
    std::string sequence;  // 0, 1, 2, ...: of steps from the first value

    std::string next_value() const;  // DuckDB text
    // The value so many steps on; nothing beyond BIGINT.
    std::optional<int64_t> value_at(int64_t steps) const;
  };
  // Steps of the last value given out; nothing if none was.
  Result<std::optional<int64_t>> last_step(const Identity& identity) const;

  explicit RowRules(Connection& connection) : connection_(&connection) {}
  Status add(const delta::ColumnRule& rule, const Schema& schema);
  Status add_length(const Field& field);
  Status add_condition(const std::string& title, const std::string& sql, const Schema& schema);

  Connection* connection_;
  std::vector<Generated> generated_;
  std::vector<Generated> lengths_;  // of CHAR and VARCHAR columns: the values as they are kept
  // Text and bytes that the table is partitioned by: rules see an empty value as the null it
  // becomes.
  std::vector<Field> partitions_;
  std::vector<Check> checks_;
  std::vector<Identity> identities_;
};

}  // namespace strandline::duck
