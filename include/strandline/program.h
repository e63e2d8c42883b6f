// AUTO CDC flows of a pipeline printed as programs for an engine, to be read or to be run
// elsewhere.
#pragma once

#include <strandline/result.h>
#include <strandline/strandline.h>

#include <optional>
#include <string>
#include <vector>

namespace strandline {

// Engines a program can be printed for. kDuckDb is the text the embedded engine runs.
enum class Dialect { kDuckDb, kSpark };

struct PlanOptions {
  std::string pipeline;                  // directory or spec file
  std::optional<std::string> warehouse;  // overrides the spec's storage
  Dialect dialect = Dialect::kDuckDb;
  EngineOptions engine;
};

// Steps run in order. A program's tables are temporary; a step that reads one reads it as the steps
// before have left it.
struct ProgramStep {
  // kMake: the table becomes the rows of the query `sql`; when only_if gives 0 it has the query's
  // columns and no row. kChange: the table's rows change, in DuckDB by the statement `sql`, in
  // Spark to the rows of the query `sql`. kCheck: the query `sql` gives (count BIGINT, example
  // STRING); count > 0 fails the batch with code and message ("{count}", "{example}" filled in).
  enum class Kind { kMake, kChange, kCheck } kind = Kind::kMake;
  std::string
      stage;  // what it is part of: stage, validate, normalise, load, merge, fold, diff, ...
  std::string table;  // an identifier that needs no quotes
  std::string sql;
  std::string only_if;  // query of one BIGINT: when it gives 0 the step is left out; empty = always
  std::string code;
  std::string message;
};

// A relation that must be there under that name.
struct ProgramRelation {
  std::string name;
  std::string columns;  // as in CREATE TABLE, Spark SQL
  std::string what;     // one sentence
};

// The next batch of one flow into its target, given the tables as they stand.
struct FlowProgram {
  std::string flow;
  std::string target;
  std::string stored_as;     // SCD TYPE 1, SCD TYPE 2, BITEMPORAL
  std::string source_query;  // what the flow reads, Spark SQL
  std::vector<ProgramRelation> reads;
  std::vector<ProgramStep> steps;
  // Queries, after the steps. New rows of the target: its columns, __strandline_row_id (null =
  // fresh), __strandline_row_commit_version (null = this commit); of the state: its columns. Dead
  // rows: __strandline_file, __strandline_row.
  std::string target_new, target_dead, state_new, state_dead;
  // One row: num_upserted_rows, num_deleted_rows, num_input_rows, num_late_rows,
  // num_sequence_conflicts, conflict_example, num_dead_rows. target_new gives num_upserted_rows rows,
  // target_dead num_dead_rows.
  std::string metrics;
  std::string target_columns;  // after the batch, as in CREATE TABLE
  std::string state_columns;
};

struct PlanReport {
  std::vector<FlowProgram> programs;  // of AUTO CDC flows, in the order they would run
  std::vector<Error> errors;
  bool invalid = false;  // the pipeline itself is wrong
};

// Touches nothing. Errors: those of a dry run; kUnsupported "UNSUPPORTED_IN_DIALECT" for what a
// program in that dialect cannot say.
PlanReport print_programs(const PlanOptions& options);

}  // namespace strandline
