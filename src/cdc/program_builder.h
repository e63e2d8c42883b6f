// What the programs of all storage types share: names, columns, reading source, target and state.
// Private to this folder.
//
// Inside a program columns are called c0, c1, ... by their place in Plan::columns, so that no name
// a user chose can meet one of the engine's (rowid, filename, ...) or of the program.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cdc/program.h"
#include "cdc/value_text.h"

namespace strandline::cdc {

// Ends the message of a batch that fails over rows without key or sequence: the ways out.
inline constexpr const char* kLeaveOut =
    "; nothing was written. Leave such rows out with WHERE in the source query, as in FROM "
    "(SELECT * FROM STREAM ... WHERE ... IS NOT NULL), or drop such upserts with an expectation of "
    "the target: CONSTRAINT name EXPECT (... IS NOT NULL) ON VIOLATION DROP ROW";

// The way out of a table that has rows of one primary key more than once, as the end of a message.
std::string repair_advice(const Plan& plan);

class ProgramBuilder : protected ValueText {
 public:
  ProgramBuilder(const Dialect& dialect, const Plan& plan, const BatchRelations& relations,
                 const ProgramOptions& options);
  virtual ~ProgramBuilder() = default;

  virtual Result<Program> build() = 0;

 protected:
  // --- names ---
  static std::string table(const char* name);             // a temporary table of this program
  static std::string column(size_t index);                // c0
  std::string keys(const std::string& alias = "") const;  // a.c0, a.c1
  std::string keys_equal(const std::string& a, const std::string& b) const;
  std::string keys_text(const std::string& alias) const;  // "id = 5, region = x" for messages

  // --- sequences ---
  std::string sequence_type() const { return type_text(plan_.sequence_type); }
  std::string order(const std::string& seq) const { return order_value(seq, plan_.sequence_type); }
  std::string less(const std::string& a, const std::string& b) const {
    return order(a) + " < " + order(b);
  }

  // --- values: columns some flow gives, without the keys, in the order of section 7 ---
  const std::vector<size_t>& values() const { return values_; }
  // Columns of the target that no flow ever gave and the table does not compute.
  const std::vector<size_t>& user_columns() const { return user_columns_; }
  // The value of such a column in a new row.
  std::string default_of(size_t i) const;
  // Its value in a row of `alias`, which holds the row as it was, or in a new one.
  std::string kept_or_default(size_t i, const std::string& alias, const std::string& is_new) const;
  // ORDER BY terms, greatest first; look-alikes last.
  std::string greatest_first(const std::string& alias) const;
  // a's values are greater than b's, look-alikes included.
  std::string values_greater(const std::string& a, const std::string& b) const;
  // Equal under section 6.
  std::string values_equal(const std::string& a, const std::string& b) const;
  // Equal and spelled the same: writing one over the other would change nothing.
  std::string values_identical(const std::string& a, const std::string& b) const;

  // --- relations ---
  // Events: c<i> of every owned column (null where this flow does not select it), seq, kind (a
  // StateKind).
  Result<std::string> read_events() const;
  // The same with what read_events leaves out: sys (bitemporal); in a flow of partial updates
  // upserts are kPartial, c<i> is null where it is not given, nulls lists the leaves that are given
  // as null; names is COLUMNS TO UPDATE, if the flow has it.
  Result<std::string> read_partial_events() const;
  // Whether rows may come from events that give a part of them.
  bool fills() const { return plan_.state_spec.partial; }
  bool is_bitemporal() const { return plan_.scd_type == ScdType::kBitemporal; }
  // Target rows: the given columns as c<i>, what `more` adds, then row_file, row_pos, row_id.
  std::string read_target(const std::vector<size_t>& columns, const std::string& more = "") const;
  // Rows changed by hand: the given columns as c<i>, what `more` adds, then change.
  std::string read_edits(const std::vector<size_t>& columns, const std::string& more) const;
  // A column of the target by its own name, for `more`.
  std::string target_column(const std::string& name) const;
  // State rows: keys (and values if asked) as c<i>, what `more` adds, seq, kind, row_file, row_pos.
  std::string read_state(bool with_values, const std::string& more = "") const;
  // A column of the state by its own name, for `more`; null where the state has none.
  std::string state_column(const char* name, const DataType& type) const;
  // SCD 1: the sequence that a target row tells of itself, null for none; for `more` of a target
  // that is there, of any.
  std::string shown_sequence() const;
  std::string row_sequence() const {
    return has_target() ? shown_sequence() : typed_null(plan_.sequence_type);
  }
  bool has_target() const { return !relations_.target.empty(); }
  bool has_state() const { return !relations_.state.empty(); }

  // --- steps ---
  void check(const char* stage, std::string sql, std::string code, std::string message,
             std::string only_if = "");
  // Two counts that are equal whatever the data: expressions over the aliases of a balance's
  // tables, and what each counts.
  struct Counts {
    std::string expected, of;
    std::string found, what;
  };
  // Fails the batch (kInternalInvariant) where counts differ. tables: by alias a query of one row
  // that looks at few, narrow columns.
  void balance(const char* stage, const std::vector<std::pair<std::string, std::string>>& tables,
               const std::vector<Counts>& counts);
  // The table of the query's rows; without a row where only_if says so.
  void make_table(const char* stage, const char* name, const std::string& query,
                  const std::string& only_if = "");
  // The same for a table whose rows are told apart by rowid.
  void make_numbered(const char* stage, const char* name, const std::string& query);
  // Adds rows; columns go by their place.
  void append(const char* stage, const char* name, const std::string& query,
              const std::string& only_if = "");
  // See Dialect::update and Dialect::remove.
  void update(const char* stage, const char* name, const std::string& column,
              const std::string& value, const std::string& from, const std::string& condition,
              const std::string& only_if);
  void remove(const char* stage, const char* name, const std::string& from,
              const std::string& condition, const std::string& only_if);
  // Program::keys, from the staged events.
  void give_keys(const std::string& events);
  // Null sequences and null keys of the events.
  void validate_events(const std::string& events);
  void check_not_null_columns();
  // The greatest truncate before this batch (mark_before) and now (mark_now), nulls for none, and
  // whether it moved: the table "mark".
  void find_mark();
  // Columns of the target in its order under their own names: owned ones from `alias`, the user's
  // as `user_value` says, the interval columns from `intervals`, in their order.
  std::string target_row(const std::string& alias,
                         const std::function<std::string(size_t)>& user_value,
                         const std::vector<std::string>& intervals = {}) const;

  // Prints the defaults of the user's columns; comes before all other steps.
  Status print_defaults();
  Result<std::string> print(const sql::Expr& expr) const;
  // SEQUENCE BY or SYSTEM SEQUENCE BY of an event.
  Result<std::string> sequence_of(const sql::Expr& expr, const DataType& type) const;
  // "x AS c0, " of every owned column, from the source.
  std::string source_values() const;
  static constexpr const char* kEmptied = "emptied";
  std::string empty_value(const DataType& type) const;
  // Whether a row of the source has a value that source_values() makes null, as a column kEmptied
  // to put after those; empty where no column can have one.
  std::string emptied_flag() const;
  // Program::emptied, from rows with that flag.
  void tell_emptied(const std::string& rows);
  // Rows with an empty value in a key that partitions the target, which could not be told from one
  // that has a null there; `rows` have c<i> and fit `condition`, `what` calls them. No check where
  // there is no such key.
  void check_empty_keys(const std::string& rows, const std::string& condition,
                        const std::string& what);
  Result<std::string> event_kind(StateKind upsert) const;

  const Plan& plan_;
  const BatchRelations& relations_;
  const ProgramOptions& options_;
  std::vector<size_t> keys_;
  std::vector<size_t> values_;
  std::vector<size_t> user_columns_;
  std::map<size_t, std::string> defaults_;
  std::set<std::string> numbered_;  // tables
  Program program_;
};

Result<Program> make_scd1_program(const Dialect& dialect, const Plan& plan,
                                  const BatchRelations& relations, const ProgramOptions& options);
// Any storage type where events are kept one by one: partial updates, bitemporal.
Result<Program> make_history_program(const Dialect& dialect, const Plan& plan,
                                     const BatchRelations& relations,
                                     const ProgramOptions& options);
Result<Program> make_scd2_program(const Dialect& dialect, const Plan& plan,
                                  const BatchRelations& relations, const ProgramOptions& options);

}  // namespace strandline::cdc
