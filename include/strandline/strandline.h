// Strandline's public C++ interface: run pipelines, run SQL over a warehouse.
#pragma once

#include <strandline/arrow.h>
#include <strandline/result.h>
#include <strandline/rows.h>
#include <strandline/table.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace strandline {

const char* version();  // "0.1.0"

struct EngineOptions {
  int64_t memory_limit_bytes = 0;  // of the process; 0 = engine default
  int threads = 0;                 // 0 = all cores
};

enum class RefreshKind {
  kUpdate,        // every flow takes what is new
  kSelected,      // only flows into `tables` (--refresh)
  kFullSelected,  // reset `tables`, update the rest (--full-refresh)
  kFullAll,       // reset everything (--full-refresh-all)
};

struct RunOptions {
  std::string pipeline;                  // directory or spec file
  std::optional<std::string> warehouse;  // overrides the spec's storage
  RefreshKind refresh = RefreshKind::kUpdate;
  std::vector<std::string> tables;
  bool allow_missing_sources = false;
  bool dry_run = false;  // validate everything, touch nothing
  EngineOptions engine;
};

enum class UpdateStatus { kCompleted, kFailed, kInvalid, kCanceled };
const char* to_string(UpdateStatus status);  // "COMPLETED", "FAILED", "INVALID", "CANCELED"

// Every key of auto-cdc.md section 12 is present for every flow.
using Metrics = std::map<std::string, double>;

// What an expectation (CONSTRAINT name EXPECT …) said of the rows that a flow brought in this
// update.
struct ExpectationReport {
  std::string name;
  std::string dataset;  // the table or view that declares it
  int64_t passed_records = 0;
  int64_t failed_records = 0;   // false or null, kept or dropped
  int64_t dropped_records = 0;  // of the failed ones, by ON VIOLATION DROP ROW
};

struct FlowReport {
  std::string name;
  std::string target;
  std::string status;  // COMPLETED, FAILED, SKIPPED, CANCELED, EXCLUDED (not selected)
  Metrics metrics;
  std::vector<ExpectationReport> expectations;  // of the target and of the views read
  int64_t dropped_records = 0;                  // rows, whichever expectations dropped them
};

struct UpdateReport {
  std::string update_id;
  UpdateStatus status = UpdateStatus::kCompleted;
  std::vector<FlowReport> flows;
  std::vector<Error> errors;
  std::vector<Error> warnings;
  std::string graph;  // text picture of the pipeline: sources -> flows -> targets

  // Whether some flow ran a batch.
  bool has_news() const;
};

// Told what happens while an update runs; called from the running thread.
struct Progress {
  enum class Kind {
    kUpdateStarted,
    kFlowStarted,
    kStage,
    kRows,
    kFlowDone,
    kUpdateDone
  } kind = Kind::kStage;
  std::string flow;
  std::string stage;
  int64_t rows = 0;            // so far in this flow
  double elapsed_seconds = 0;  // of this flow
  double fraction = -1;        // of the running statement, negative when unknown
};
using ProgressListener = std::function<void(const Progress&)>;

// Runs one update of a pipeline. Failures are in the report. cancel may be set from a signal
// handler.
UpdateReport run_update(const RunOptions& options, const ProgressListener& listener = {},
                        const std::atomic<bool>* cancel = nullptr);

struct ContinuousOptions {
  RunOptions run;              // what it refreshes fully, the first update does
  int64_t interval_ms = 5000;  // from the start of one update to the start of the next
};

// Runs update after update, each over all that is there when it starts, until stop is set or an
// update does not complete; gives the report of the last one. stop may be set from a signal
// handler: the batch in hand is finished first. on_update is told of every update, also of those
// that found nothing; after the first one these leave no trace in the event log.
UpdateReport run_continuously(const ContinuousOptions& options,
                              const std::function<void(const UpdateReport&)>& on_update,
                              const std::atomic<bool>& stop);

// Where a pipeline lies and keeps its tables.
struct PipelineLocation {
  std::string name;
  std::string directory;  // absolute
  std::string warehouse;  // absolute: the spec's storage, else warehouse/ beside the spec
  std::string catalog;    // where names with fewer parts lie, as in the spec
  std::string schema;
};

// The pipeline of a directory or spec file. Errors: kNotFound, kInvalidArgument (broken spec).
Result<PipelineLocation> locate_pipeline(const std::string& path);

enum class OutputFormat { kTable, kCsv, kJson, kNdjson, kMarkdown };

struct SessionOptions {
  std::string warehouse;  // empty: queries without tables only, names are WAREHOUSE_NOT_GIVEN
  std::string catalog;    // of names without one; empty = main
  std::string schema;     // of names without one; empty = default
  EngineOptions engine;
  std::string directory;  // relative paths in SQL resolve against it; empty = current
  // Tables tell how many rows each INSERT, UPDATE, DELETE and MERGE changed.
  bool show_changed_rows = false;
  // CREATE and REFRESH of a STREAMING TABLE or MATERIALIZED VIEW run an update, as run_update does:
  // told while one runs, and of its report once it is done, whether or not it went well.
  ProgressListener on_progress = {};
  std::function<void(const UpdateReport&)> on_update = {};
};

// A range of a table's change data feed; both ends are inclusive.
struct ChangesOptions {
  std::string table;              // as in SQL: "s.t", "`s`.`odd.name`", "delta.`/path`"
  std::string from;               // a version, or a timestamp such as "2026-01-31 12:00:00" (UTC)
  std::optional<std::string> to;  // none: the newest version
  bool follow = false;            // then goes on with each new commit until cancel(); needs no `to`
  int poll_ms = 1000;             // how often it looks for one
};

enum class WriteMode { kAppend, kOverwrite };

// What a text of statements gave.
struct Answer {
  std::unique_ptr<RowStream> rows;  // of the last statement; null when it gives none
  // The text is one statement that only reads: query() gives its rows again.
  bool repeatable = false;
};

// SQL over a warehouse. Not thread-safe; cancel() may be called from any thread or signal handler.
class Session {
 public:
  static Result<std::unique_ptr<Session>> open(const SessionOptions& options);
  virtual ~Session() = default;

  // Runs every statement of text in order, stops at the first failure; results go to out.
  // file names the text in errors.
  virtual Status run(const std::string& text, const std::string& file, OutputFormat format,
                     std::ostream& out) = 0;
  // Prints what changed: the table's columns, _change_type (insert, update_preimage,
  // update_postimage, delete), _commit_version and _commit_timestamp, in order of versions.
  // Following is for formats that are no one document: table, ndjson and markdown.
  // Errors: those of table_changes in SQL, by their public names.
  virtual Status changes(const ChangesOptions& options, OutputFormat format, std::ostream& out) = 0;
  // Every statement of sql in order, results dropped; stops at the first failure.
  virtual Status execute(const std::string& sql) = 0;
  // One statement that gives rows (SELECT, SHOW, DESCRIBE, OPTIMIZE, ...). Errors:
  // kInvalidArgument NOT_ONE_STATEMENT, NOT_A_QUERY for one without rows; those of the statement.
  virtual Result<std::unique_ptr<RowStream>> query(const std::string& sql) = 0;
  // Every statement of sql in order, stops at the first failure. Errors: those of the statements.
  virtual Result<Answer> answer(const std::string& sql) = 0;

  // A table by its name as in SQL. Errors: kNotFound TABLE_OR_VIEW_NOT_FOUND, ...
  virtual Result<std::unique_ptr<Table>> table(const std::string& name) = 0;

  // Reads the whole stream, which it releases, and makes it a relation of this session under a
  // plain name, in place of an earlier one: a source for SELECT, INSERT and MERGE.
  // Errors: kInvalidArgument INVALID_NAME, ARROW_STREAM_FAILED with the stream's own text.
  virtual Status register_stream(const std::string& name, ArrowArrayStream* stream) = 0;
  // Writes the stream's rows, which it releases, into a table in one commit, columns by name.
  // Errors: as INSERT and register_stream.
  virtual Status write(const std::string& table, ArrowArrayStream* stream,
                       WriteMode mode = WriteMode::kAppend) = 0;

  // Stops the running statement. A RowStream is stopped by its own cancel().
  virtual void cancel() = 0;
};

// A small working pipeline in a new directory. Errors: kAlreadyExists, kIo.
Status init_pipeline(const std::string& directory);

// Error text for people: code, message, place, and the source line with a caret. The line comes
// from source_text, else from the file the place names.
std::string render_error(const Error& error, const std::string& source_text = {});

}  // namespace strandline
