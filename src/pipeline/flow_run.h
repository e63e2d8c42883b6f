// One flow in one update: what it reads, what is new there, and its batches (auto-cdc.md section
// 9).
#pragma once

#include <strandline/program.h>
#include <strandline/result.h>
#include <strandline/strandline.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cdc/plan.h"
#include "cdc/program.h"
#include "cdf/plan.h"
#include "duck/program_runner.h"
#include "pipeline/checkpoint.h"
#include "pipeline/context.h"
#include "pipeline/declared_columns.h"
#include "pipeline/expectations.h"
#include "pipeline/sources.h"
#include "pipeline/target.h"
#include "pipeline/view_change.h"

namespace strandline::pipeline {

// Columns of datasets, existing or planned, while a pipeline is checked; by dataset.
using PlannedSchemas = std::map<size_t, Schema>;

class FlowRun {
 public:
  FlowRun(Context& context, Flow flow);
  ~FlowRun();

  const Flow& flow() const { return flow_; }
  const FlowReport& report() const { return report_; }
  FlowReport& report() { return report_; }
  const std::vector<Error>& warnings() const { return warnings_; }
  // Of a materialized view that was refreshed: "INCREMENTAL: …" or "FULL: …", and why.
  const std::string& refresh_plan() const { return refresh_plan_; }

  // Resolves what the flow reads. Mistakes go to errors.
  void analyze(std::vector<Error>* errors);

  // Columns of the sources and of the query, and what is wrong with the declaration given them:
  // mistakes go to errors and make the pipeline invalid. planned gains the target's columns.
  // fresh: the target is about to be refreshed. An error fails the flow when it would run.
  Status check(bool fresh, PlannedSchemas* planned, std::vector<Error>* errors);

  // After check() of every flow into the target: what is wrong with the expectations of the target,
  // whose columns are these.
  void check_target_expectations(const Schema& columns, std::vector<Error>* errors);
  // check() found all there is to know.
  bool is_checked() const { return checked_; }

  // Whether all sources are tables of others or files with a declared schema, so that check() needs
  // no other flow of the pipeline.
  bool stands_alone() const;

  // After check(): whether the flow fits what its target's state remembers (auto-cdc.md section 6,
  // AUTOCDC_INVALID_STATE and CANNOT_MERGE_INCOMPATIBLE_DATA_TYPE), with new input or without.
  Status check_fit();

  // After check(): the next batch of an AUTO CDC flow as a program. Errors: kUnsupported
  // UNSUPPORTED_IN_DIALECT; kNotFound SOURCE_SCHEMA_UNKNOWN; those of check_fit().
  Result<FlowProgram> print_program(Dialect dialect);

  // After check(): the error when this flow and an earlier one into the same target disagree in
  // keys, sequence type or storage type (section 2).
  std::optional<Error> disagreement(const FlowRun& earlier) const;

  // After check(): the columns that an AUTO CDC flow selects, as far as they are known.
  std::vector<std::string> selected() const;
  // The other flows into the same target, before anything runs: the columns they select are theirs
  // even if they bring nothing for a long time.
  void set_other_flows(const std::vector<const FlowRun*>& others);

  // Files and versions consumed before, or needed from a stream's start on, that the sources no
  // longer have: what a full refresh cannot read again. Error MISSING_SOURCE; allow_missing: only
  // when nothing can be read without them.
  Status check_sources_complete(bool allow_missing);
  // After that and once the full refresh has begun: streams of which something is missing begin
  // after it.
  Status begin_after_missing();

  // The progress of the flow as it is on disk now. Errors: kCorrupt, kIo.
  Result<const FlowCheckpoint*> read_progress();
  // After that: Target::check_moment().
  Status check_moment(const std::vector<KnownFlow>& flows) const {
    return target_->check_moment(flows);
  }

  // Runs a batch that an earlier update planned and did not finish; does nothing without one.
  Status recover();
  // A batch of this flow is planned and may be half committed: nothing else may touch its target.
  bool has_unfinished() const { return checkpoint_ && checkpoint_->unfinished().has_value(); }

  // Every batch there is. On failure everything committed before stays, the report says so.
  Status run();

 private:
  struct Facts {
    Schema schema;                  // columns of the flow's query
    Schema hidden;                  // _metadata
    DataType sequence_type;         // kAutoCdc
    DataType system_sequence_type;  // kAutoCdc, bitemporal
    bool broken = false;            // a clause has a mistake that is reported already
    // The query's columns as a column list names them, in order; empty: by their own names.
    std::vector<std::string> labels;
    std::optional<Error> warning;
  };
  struct Execution;   // relations of one batch and what keeps them alive
  struct BatchState;  // the state of an AUTO CDC target as a batch finds it

  // flow_columns.cc
  Result<std::vector<ConsumedFile>> new_files(const Source& source,
                                              const FlowCheckpoint* progress) const;
  Result<Schema> jdbc_schema(const Source& source) const;
  // What a source of kind kChanges asks for; `last`: the newest version to read.
  Result<cdf::ChangePlan> changes_of(const Source& source, delta::Version last,
                                     int64_t now_us) const;
  Status find_source_schemas(bool fresh, const PlannedSchemas* planned);
  Result<std::optional<Facts>> find_facts(std::vector<Error>* errors) const;
  // The columns that the statement declares of the target, if any, given the query's.
  std::optional<Schema> declared_schema(const Schema& query) const;
  // flow_check.cc
  bool sees(const Field& field) const;
  Status check_stream_start(const Source& source, bool allow_missing);
  // flow_program.cc
  Status check_program(Dialect dialect, const cdc::Plan& plan) const;
  Result<FlowProgram> print_snapshot_program(Dialect dialect);
  // flow_run.cc
  Status start();
  Status check_standing() const;
  Status mark_done();
  Status prepare_to_run();
  bool loads_once() const;
  bool expects_by_the_clock() const;
  // Whether the files of a source that is read whole are no longer those of the last batch.
  bool has_other_files(const Source& source, const std::vector<ConsumedFile>& files) const;
  Result<bool> plan_next(BatchPlan* plan, bool* has_data);
  Status run_batch(bool has_data);
  // Merges small files after at least so many batches since the last time.
  void compact(int64_t least_batches);
  Status finish_unfinished();
  // Whether a commit of the batch is in the state's log, in either log, in that table's log.
  Result<bool> is_state_committed(int64_t batch) const;
  Result<bool> is_committed(int64_t batch) const;
  Result<bool> is_in_log(const delta::Table& table, int64_t batch) const;
  void stage(const std::string& name) const;
  void add_metric(const char* name, double value);
  // snapshot_flow.cc
  bool takes_snapshots() const { return flow_.takes_snapshots(); }
  Status read_snapshot_options(std::vector<Error>* errors);
  std::optional<std::string> target_property(const char* key) const;
  Result<std::optional<DataType>> find_version_type(const PlannedSchemas* planned);
  Result<std::string> print_empty() const;
  Result<std::optional<SnapshotVersion>> evaluate_version();
  Result<bool> find_snapshot(std::optional<SnapshotVersion>* version);
  Status take_program_query(const ProgramSnapshot& snapshot);
  Result<bool> comes_next(const SnapshotVersion& version);
  Status plan_reads(BatchPlan* plan) const;
  Result<bool> take_snapshot();
  Status take_snapshots();
  Status execute_snapshot(const BatchPlan& plan);
  Status write_snapshot(const BatchPlan& plan);
  std::string unknown_columns() const;
  bool reads_same_rows_again() const;
  // flow_batch.cc
  Status execute(const BatchPlan& plan);
  // The target as the batch finds it; null if the batch is in it.
  Result<std::shared_ptr<const delta::Snapshot>> target_before(const BatchPlan& plan);
  // Of a plan of AUTO CDC; each once an update.
  void warn(const std::vector<Error>& warnings);
  // Counts rows whose empty value in a partition column is null in the target, and warns of them;
  // example: the key of one, if there is one.
  void tell_empty_partitions(const delta::Snapshot& target, int64_t rows,
                             const std::string& example = "");
  // The rows of a program that has run, as a change of the target that is yet to be committed.
  // old_rows: the relation that the program read the target by, empty for none. `applied` tells
  // what to remove if nothing comes of it.
  Result<delta::Transaction> change_target(const std::shared_ptr<const delta::Snapshot>& target,
                                           const cdc::Plan& plan, const cdc::Program& program,
                                           const duck::BatchMetrics& metrics,
                                           const std::string& old_rows,
                                           duck::AppliedChange* applied);
  Result<std::string> print_batch(const BatchPlan& plan, Execution* execution) const;
  // The query after the target's expectations; the query itself when there are none.
  Result<std::string> expected_events(const cdc::Plan& cdc_plan, const std::string& query,
                                      const BatchPlan& plan, Execution* execution) const;
  Result<std::string> expected_rows(const Schema& schema, const std::string& query,
                                    const BatchPlan& plan, Execution* execution) const;
  // Once a batch has succeeded; gives the rows that the target's expectations dropped.
  int64_t count_expectations(const Execution& execution);
  Status check_files_unchanged(const BatchPlan& plan) const;
  Error explain(const BatchPlan& plan, Error error) const;
  std::optional<Error> find_lost_file(const Source& source, size_t index,
                                      const BatchPlan& plan) const;
  Result<std::shared_ptr<const delta::Snapshot>> ensure_target();
  Result<cdc::Plan> make_plan(const cdc::TargetFacts& target) const;
  // Of the target and state as a batch finds them; state may be null.
  Result<cdc::TargetFacts> target_facts(const delta::Snapshot& target,
                                        const delta::Snapshot* state) const;
  // flow_auto_cdc.cc
  // Whether a program is to take in what hands changed in these versions. Of a BITEMPORAL table
  // rows cannot be changed by hand: that is an error, but for rows written twice of which one was
  // taken away again.
  Result<bool> takes_edits(const std::shared_ptr<const delta::Snapshot>& target,
                           const std::vector<Target::Versions>& edits) const;
  Status execute_auto_cdc(const BatchPlan& plan);
  Result<BatchState> state_before(const BatchPlan& plan, const delta::Snapshot& target) const;
  // What the program made of the state, and what it may forget, in a commit of its own.
  // target_changes: the batch changes the target, too.
  Status commit_state(const cdc::Plan& cdc_plan, const cdc::Program& program, const BatchPlan& plan,
                      const delta::Snapshot& target, const BatchState& state, bool target_changes);
  // flow_write.cc
  Status execute_write(const BatchPlan& plan);
  // What a view's rows become; select: its columns from the query's, which is `q`; rows: all rows
  // that it shall have.
  Result<std::unique_ptr<ViewChange>> refresh_view(
      const BatchPlan& plan, const std::shared_ptr<const delta::Snapshot>& view,
      const std::string& select, const std::string& rows,
      std::vector<std::unique_ptr<duck::Scan>>* scans);

  // Of a flow that takes snapshots.
  struct SnapshotOptions {
    bool by_time = false;             // ingestion time: versions are the updates' times
    bool fails_out_of_order = false;  // else such a snapshot is passed over
    double max_delete_ratio = 1;
  };

  Context& context_;
  Flow flow_;  // of snapshots that a program gives, with the query of the last one
  FlowReport report_;
  std::vector<Error> warnings_;
  FlowSources sources_;
  std::optional<cdc::Declaration> declaration_;  // kAutoCdc: what it says of these sources
  std::vector<std::optional<Schema>> schemas_;   // of sources_
  std::vector<std::shared_ptr<const delta::Snapshot>> newest_;  // of tables among sources_
  std::map<size_t, std::vector<ConsumedFile>> backlog_;  // of files among sources_, what is new
  std::map<size_t, size_t> backlog_next_;
  struct Inferred {
    Schema schema;
    std::vector<ConsumedFile> files;
  };
  std::map<size_t, Inferred> inferred_;  // of files among sources_, once an update
  std::optional<Facts> facts_;
  std::optional<cdc::StateSpec> declared_;  // what check() found the declaration to mean
  std::vector<std::string> selected_elsewhere_;
  std::vector<sql::AutoCdcClauses> clauses_elsewhere_;
  std::optional<Target> target_;
  std::optional<FlowCheckpoint> checkpoint_;
  bool checked_ = false;
  Schema given_;           // of a flow that is not AUTO CDC: columns of its query, from check()
  Schema target_columns_;  // of the target, whichever flow gives them; empty while not known
  std::string refresh_plan_;
  bool committed_ = false;  // something of the running batch is in a table
  bool conflict_warned_ = false;
  std::vector<SourcePlan> later_starts_;  // found by check_sources_complete()
  int64_t compacted_batches_ = 0;         // of this run, up to the last compaction
  SnapshotOptions snapshot_options_;
  std::optional<DataType> version_type_;  // of the snapshots' versions, once known
  std::unique_ptr<FlowRun> version_run_;  // WITH VERSION: reads that query
};

}  // namespace strandline::pipeline
