// A target table as an update finds and makes it: whose it is, which full refresh it lives in,
// whether its state fits (auto-cdc.md sections 2, 4, 6, 9).
#pragma once

#include <strandline/result.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "delta/snapshot.h"
#include "delta/transaction.h"
#include "pipeline/checkpoint.h"
#include "pipeline/context.h"

namespace strandline::pipeline {

// What an update knows of a flow of the target.
struct KnownFlow {
  std::string name;
  const FlowCheckpoint* progress;
};

class Target {
 public:
  // Errors: kCorrupt, kIo.
  static Result<Target> open(const Context& context, size_t dataset);

  const Dataset& dataset() const { return *dataset_; }
  const delta::Table& table() const { return table_; }
  TargetCheckpoint& checkpoint() { return checkpoint_; }
  const TargetCheckpoint& checkpoint() const { return checkpoint_; }
  // The state table's handle, whether or not there is one.
  delta::Table state_table() const;

  // Begins the next full refresh; durable when it returns. Errors: those of reading the table, kIo.
  Status begin_refresh();

  // Target, state and the flows' progress are of one moment (target_moment.cc), whatever others
  // wrote since. flows: all of the pipeline that write the target; the progress of those that are
  // gone counts, too. Errors (kInvalidData): CHECKPOINT_BEHIND, TARGET_BEHIND, STATE_BEHIND.
  // AUTOCDC_INVALID_STATE.STATE_MISSING for a state that is gone.
  Status check_moment(const std::vector<KnownFlow>& flows) const;
  // Goes on from what an earlier look at the same table has read.
  void look_on_from(const Target& earlier);
  // The newest commits of the target and, of a target with a state table, of that. Errors: kIo.
  Result<TableMarks> marks() const;
  // What a batch's commit remembers of the moment it belongs to, for check_moment(): its plan and,
  // of the target's, the newest commit of the state.
  static void sign_commit(delta::Transaction* transaction, const BatchPlan& plan,
                          const std::optional<delta::CommitMark>& state = {});

  // Name under which a flow's batches are known in the tables' logs.
  std::string app_id(const std::string& flow) const;

  // The newest snapshot, or null while there is no table.
  // Errors: TARGET_NOT_OWNED (not for AUTO CDC, which can take such a table over) and
  // TARGET_OF_OTHER_PIPELINE (kInvalidArgument) for a table that is not this pipeline's;
  // TARGET_OF_OTHER_KIND (kInvalidArgument) for one whose rows another kind of flows gave;
  // AUTOCDC_INVALID_STATE.TARGET_REPLACED (kInvalidData) when it is not the table the flow's
  // progress belongs to or was restored.
  Result<std::shared_ptr<const delta::Snapshot>> snapshot(const FlowCheckpoint& progress) const;

  // Versions (first, last) that changed rows by hand, oldest first: of the target up to this
  // snapshot, after what the state already has of them. Commits that change no data are nothing.
  // (0, version) for a table that was taken over: all its rows.
  // Errors: kCorrupt, kIo.
  using Versions = std::pair<delta::Version, delta::Version>;
  Result<std::vector<Versions>> hand_edits(const delta::Snapshot& target,
                                           const delta::Snapshot* state) const;

  // Errors: UNFINISHED_BATCH when a flow that is not among these left a batch half committed: state
  // and target do not fit until it has run again.
  Status check_removed_flows(const std::vector<std::string>& flows) const;

  // False from a full refresh until its first commit: rows are there to be read, not to build on.
  bool is_current(const delta::Snapshot& snapshot) const;
  // Whether a batch of the current full refresh is in it.
  bool has_batches(const delta::Snapshot& snapshot) const;

  // Whether the table is what the pipeline declares it to be: filled by AUTO CDC flows, by INSERT
  // flows, or a materialized view (section 2). Only a full refresh makes another kind of it.
  bool is_of_declared_kind(const delta::Snapshot& snapshot) const;
  // Of a table's properties, those of another kind go and the declared kind's come: for the first
  // commit of a full refresh. AUTO CDC adds what its plan says.
  void declare_kind(std::map<std::string, std::string>* properties) const;

  // Whether create() with that schema would be refused: names, properties, partition columns.
  Status check_definition(const Schema& schema) const;

  // Creates the table; adopts what another try of ours left.
  // properties: in addition to the statement's own.
  Result<std::shared_ptr<const delta::Snapshot>> create(
      const Schema& schema, const std::map<std::string, std::string>& properties) const;

  // Whether a table stands there that no pipeline owns; AUTO CDC may take it over.
  static bool is_unowned(const delta::Snapshot& snapshot);
  // Makes it this pipeline's, with these properties too. Its rows are hand edits of the first
  // batch.
  Result<std::shared_ptr<const delta::Snapshot>> adopt(
      std::shared_ptr<const delta::Snapshot> snapshot,
      const std::map<std::string, std::string>& properties) const;

  // Brings the table's properties and comment to what the statement says, in a commit of its own
  // when something differs. What is left as it is (delta.* properties but kTypeWidening,
  // clustering, partitioning) is a warning of warn_of_fixed().
  Result<std::shared_ptr<const delta::Snapshot>> update_properties(
      std::shared_ptr<const delta::Snapshot> snapshot, std::vector<Error>* warnings) const;
  void warn_of_fixed(const delta::Snapshot& snapshot, std::vector<Error>* warnings) const;
  // Whether the statement declares kTypeWidening.
  bool widens_types() const;

  // The state at its newest version, or null for none. Errors: STATE_MISSING, TARGET_REPLACED.
  Result<std::shared_ptr<const delta::Snapshot>> state(const delta::Snapshot& target,
                                                       const FlowCheckpoint& progress) const;
  // Whether a state snapshot belongs to the current full refresh.
  bool is_current_state(const delta::Snapshot& state) const;

 private:
  delta::NewTable definition(const Schema& schema) const;
  Target(const Context& context, size_t dataset, delta::Table table, TargetCheckpoint checkpoint);
  Status check_owner(const delta::Snapshot& snapshot, const FlowCheckpoint& progress) const;
  // `floor`: versions up to it are of no interest.
  Result<std::vector<Versions>> edits_since(const delta::Snapshot& snapshot,
                                            delta::Version floor) const;
  std::string generation_prefix() const;
  // The newest full refresh that a table's log or a state's properties know of, -1 for none.
  int64_t newest_generation(const delta::Snapshot& snapshot) const;
  // The newest snapshot; the one in cache when nothing was committed since.
  Error state_missing() const;
  struct Logs;  // the newest snapshots of target and state; null for none
  Result<Logs> logs() const;
  bool has_state_table() const;
  Status check_marks(const Logs& logs, const std::string& flow,
                     const FlowCheckpoint& progress) const;
  Status check_batches(const Logs& logs, const KnownFlow& flow) const;
  Status check_commits(const Logs& logs, const KnownFlow& flow) const;
  static Result<std::shared_ptr<const delta::Snapshot>> newest(
      const delta::Table& table, std::shared_ptr<const delta::Snapshot>& cache);

  const Context* context_;
  const Dataset* dataset_;
  delta::Table table_;
  TargetCheckpoint checkpoint_;
  mutable std::shared_ptr<const delta::Snapshot> seen_, seen_state_;
  mutable delta::Version checked_version_ = -1;  // not restored up to here
};

// Seconds after which deletes may be forgotten, if the property of a table is one that says so
// (auto-cdc.md section 4). Errors: INVALID_TABLE_PROPERTY (kInvalidArgument).
Result<std::optional<int64_t>> tombstone_seconds(const std::string& property,
                                                 const std::string& value,
                                                 const std::string& shown);
// The same of a table with its properties.
Result<std::optional<int64_t>> tombstone_seconds(const delta::Snapshot& target,
                                                 const std::string& shown);

}  // namespace strandline::pipeline
