// A plan printed for an engine: named stages of SQL that read as a story (validate, normalise, load
// touched history, merge timelines, fold runs, diff, write). Spec: auto-cdc.md sections 1, 4,
// 7, 12.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cdc/plan.h"

namespace strandline::cdc {

// Of BatchRelations::edits.
inline constexpr const char* kEditSign = "__strandline_change";

// Relations a program reads: SQL for a FROM clause. Target and state are read as they stand before
// the batch: with the columns of PlanColumn::existing and ::existing_state.
struct BatchRelations {
  std::string source;  // events as the source gives them
  // Target and state rows with __strandline_file INTEGER and __strandline_row BIGINT; the target
  // also with __strandline_row_id and __strandline_row_commit_version. Empty when there is no table
  // yet.
  std::string target;
  std::string state;
  // Rows changed by hand since the batch before (TargetFacts::edited), empty for none: the target's
  // columns and kEditSign, 1 for a row that is there now and was not, -1 for one that was.
  std::string edits;
  // The batch's planned time, for current_timestamp() in expressions; microseconds UTC.
  std::optional<int64_t> now_us;
};

// Steps run in order. A program's tables are temporary; a step that reads one reads it as the steps
// before have left it.
//   kMake    the table becomes the rows of the query `sql`; when only_if gives 0 it has the query's
//            columns and no row
//   kChange  the table's rows change: in DuckDB by the statement `sql`, in Spark to the rows of the
//            query `sql`
//   kCheck   the query `sql` gives (count BIGINT, example STRING); count > 0 fails the batch with
//            code and message ("{count}", "{example}" filled in). With the code
//            INTERNAL_INVARIANT it counts what goes in and out of stages: no data make it fail
struct Step {
  enum class Kind { kMake, kChange, kCheck } kind = Kind::kMake;
  std::string stage;
  std::string table;  // an identifier that needs no quotes
  std::string sql;
  std::string code;
  std::string message;
  // Query of one BIGINT: when it gives 0 the step is left out, but for a table that is made.
  std::string only_if;
};

struct Program {
  // Those of stage "stage" come first and read the source alone.
  std::vector<Step> steps;
  // After these first steps: the keys of the batch's events, one column for each of Plan::keys in
  // its order. Target and state need only show rows with such keys, unless the flow truncates.
  // Empty: they must show all.
  std::string keys;
  // After the steps. New target rows: the target's columns, __strandline_row_id (null = fresh) and
  // __strandline_row_commit_version (null = this commit).
  std::string target_new;
  std::string target_dead;  // (__strandline_file, __strandline_row)
  std::string state_new;    // the state schema's columns
  std::string state_dead;
  // After the steps: (count BIGINT, example STRING) of the source's rows with an empty value that
  // is null in the target (PlanColumn::empty_is_null). Empty: the target has no such column.
  std::string emptied;
  // One row of BIGINTs: num_upserted_rows, num_deleted_rows, num_input_rows, num_late_rows,
  // num_sequence_conflicts; then conflict_example STRING and num_dead_rows BIGINT. target_new has
  // num_upserted_rows rows, target_dead num_dead_rows, each another one.
  std::string metrics;
};

struct ProgramOptions {
  // Bits kept of the hash that finds equal neighbours before they are compared in full. Fewer bits
  // only cost time; tests use 0 and 1 to prove that no hash decides.
  int hash_bits = 64;
};

// DuckDB dialect. Temporary tables are the connection's own, so one connection runs one program at
// a time. Errors: kUnsupported by name.
Result<Program> make_duckdb_program(const Plan& plan, const BatchRelations& relations,
                                    const ProgramOptions& options = {});

// Spark SQL, for Spark 4.1 and later in its default, ANSI mode with the session time zone UTC. Rows
// of a table are numbered as it is made, so a table must be kept, not computed anew when it is
// read. current_timestamp() and kin are Spark's own, not BatchRelations::now_us.
// Errors: kUnsupported by name.
Result<Program> make_spark_program(const Plan& plan, const BatchRelations& relations,
                                   const ProgramOptions& options = {});

}  // namespace strandline::cdc
