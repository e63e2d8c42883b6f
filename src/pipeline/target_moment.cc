// Whether a target, its state and its flows' progress are of one moment. Each can be put back from
// a copy without the others; a batch that built on such a mixture would lose events in silence. So
// each remembers what the others were: a flow's progress names the newest commits of both tables
// when its last batch ended, a batch's commits name the plan they come from and the state they go
// with, and numbers of batches stand in the tables' logs.
#include <algorithm>

#include "base/error.h"
#include "pipeline/target.h"

namespace strandline::pipeline {
namespace {

// Tags of commits. The plan: its time, which no other plan of the flow has.
constexpr const char* kPlanTag = "strandline.plan";
constexpr const char* kStateVersionTag = "strandline.stateVersion";
constexpr const char* kStateCommitTag = "strandline.stateCommit";

std::string versions(int64_t count) {
  return fmt::format("{} version{}", count, count == 1 ? "" : "s");
}

// The newest commit of this batch; none where the log was cleaned up since.
Result<std::optional<delta::CommitInfo>> find_commit(const delta::Table& table,
                                                     const delta::Snapshot& newest,
                                                     const std::string& app_id, int64_t batch) {
  for (delta::Version version = newest.version; version >= 0; --version) {
    const auto actions = table.commit(version);
    if (!actions.ok()) {
      if (actions.error().kind == ErrorKind::kNotFound) break;
      return actions.error();
    }
    std::optional<delta::CommitInfo> info;
    bool is_it = false;
    for (const auto& action : *actions) {
      if (const auto* txn = std::get_if<delta::Txn>(&action)) {
        is_it = is_it || (txn->app_id == app_id && txn->version == batch);
      } else if (const auto* found = std::get_if<delta::CommitInfo>(&action)) {
        info = *found;
      }
    }
    if (is_it) return info;
  }
  return std::optional<delta::CommitInfo>();
}

}  // namespace

struct Target::Logs {
  std::shared_ptr<const delta::Snapshot> target, state;
};

bool Target::has_state_table() const {
  return dataset_->auto_cdc &&
         std::none_of(
             context_->graph.flows.begin(), context_->graph.flows.end(), [&](const Flow& flow) {
               return &context_->graph.datasets[flow.target] == dataset_ && flow.takes_snapshots();
             });
}

Result<Target::Logs> Target::logs() const {
  Logs logs;
  SL_ASSIGN(const bool exists, table_.exists());
  if (!exists) return logs;
  SL_ASSIGN(logs.target, newest(table_, seen_));
  if (!has_state_table()) return logs;
  const delta::Table state = state_table();
  SL_ASSIGN(const bool has_state, state.exists());
  if (!has_state) return logs;
  SL_ASSIGN(logs.state, newest(state, seen_state_));
  return logs;
}

Result<TableMarks> Target::marks() const {
  TableMarks marks;
  const auto mark = [](const delta::Table& table,
                       const std::shared_ptr<const delta::Snapshot>& seen,
                       std::optional<delta::CommitMark>* out) -> Status {
    if (!seen) {
      SL_ASSIGN(const bool exists, table.exists());
      if (!exists) return {};
    }
    SL_ASSIGN(*out, delta::mark_newest(table, seen ? std::optional(seen->version) : std::nullopt));
    return {};
  };
  SL_TRY(mark(table_, seen_, &marks.target));
  if (has_state_table()) SL_TRY(mark(state_table(), seen_state_, &marks.state));
  return marks;
}

void Target::sign_commit(delta::Transaction* transaction, const BatchPlan& plan,
                         const std::optional<delta::CommitMark>& state) {
  transaction->set_tag(kPlanTag, std::to_string(plan.time_us));
  if (!state) return;
  transaction->set_tag(kStateVersionTag, std::to_string(state->version));
  transaction->set_tag(kStateCommitTag, state->fingerprint);
}

Status Target::check_moment(const std::vector<KnownFlow>& flows) const {
  SL_ASSIGN(const auto logs, this->logs());
  if (!logs.target) return {};
  // Another table than theirs has an error of its own.
  const auto is_of_other = [&](const KnownFlow& flow) {
    const std::string& id = flow.progress->target_id();
    return !id.empty() && id != logs.target->metadata.id;
  };
  if (std::any_of(flows.begin(), flows.end(), is_of_other)) return {};
  for (const auto& flow : flows) SL_TRY(check_batches(logs, flow));
  for (const auto& flow : flows) {
    SL_TRY(check_marks(logs, flow.name, *flow.progress));
    SL_TRY(check_commits(logs, flow));
  }
  const auto folders = table_.store()->list(checkpoint_.directory());
  if (!folders.ok()) {
    return folders.error().kind == ErrorKind::kNotFound ? Status() : Status(folders.error());
  }
  for (const auto& entry : *folders) {
    const std::string name = entry.path.substr(entry.path.rfind('/') + 1);
    const auto is_it = [&](const KnownFlow& flow) { return checkpoint_name(flow.name) == name; };
    if (!entry.is_directory || std::any_of(flows.begin(), flows.end(), is_it)) continue;
    SL_ASSIGN(const auto progress, FlowCheckpoint::open(table_.store(), entry.path));
    SL_TRY(check_marks(logs, name, progress));
  }
  return {};
}

// A batch is skipped where the log has its number: with the progress of another time, or none, that
// would be a batch of other rows.
Status Target::check_batches(const Logs& logs, const KnownFlow& flow) const {
  const FlowCheckpoint& progress = *flow.progress;
  const std::string app = app_id(flow.name);
  const int64_t in_target = logs.target->txn_version(app).value_or(-1);
  int64_t committed = in_target;
  int64_t generation = newest_generation(*logs.target);
  if (logs.state) {
    committed = std::max(committed, logs.state->txn_version(app).value_or(-1));
    generation = std::max(generation, newest_generation(*logs.state));
  }
  const int64_t known =
      progress.unfinished() ? progress.unfinished()->batch : progress.last_batch();
  std::string what;
  if (generation > checkpoint_.generation()) {
    what = fmt::format("'{}' was fully refreshed since the progress of flow '{}' in {} was written",
                       dataset_->shown, flow.name, progress.directory());
  } else if (committed > known) {
    what = fmt::format(
        "{}'{}' has batches of flow '{}' up to {}, and its progress in {} {}",
        in_target < committed ? "the state of " : "", dataset_->shown, flow.name, committed,
        progress.directory(),
        known < 0 ? std::string("is gone") : fmt::format("knows them up to {} only", known));
  } else {
    return {};
  }
  return invalid_data(
      "CHECKPOINT_BEHIND",
      "{}: put that folder back as it was when the table was (where the table was renamed: from "
      "the old name's), or run a full refresh of the table (--full-refresh {})",
      what, dataset_->shown);
}

Status Target::check_marks(const Logs& logs, const std::string& flow,
                           const FlowCheckpoint& progress) const {
  const TableMarks marks = progress.marks();
  const auto behind = [](const delta::Table& table,
                         const std::shared_ptr<const delta::Snapshot>& snapshot,
                         const std::optional<delta::CommitMark>& mark,
                         const std::string& shown) -> Result<std::string> {
    if (!mark || !snapshot) return std::string();
    SL_ASSIGN(const auto found, delta::find_marked(table, *mark, snapshot->version));
    switch (found) {
      case delta::MarkedCommit::kThere:
        break;
      case delta::MarkedCommit::kGone:
        return fmt::format("{} is at version {}, {} before version {}", shown, snapshot->version,
                           versions(mark->version - snapshot->version), mark->version);
      case delta::MarkedCommit::kOther:
        return fmt::format(
            "{} was put back and written since: its version {} is another commit "
            "than the one",
            shown, mark->version);
    }
    return std::string();
  };
  if (marks.state && has_state_table() && !logs.state) return state_missing();
  SL_ASSIGN(const auto target,
            behind(table_, logs.target, marks.target, fmt::format("'{}'", dataset_->shown)));
  SL_ASSIGN(const auto state, behind(state_table(), logs.state, marks.state,
                                     fmt::format("the state of '{}'", dataset_->shown)));
  if (target.empty() && state.empty()) return {};
  const std::string both = target.empty() || state.empty() ? "" : ", and " + state;
  const std::string from =
      has_state_table() ? fmt::format("the folder {} with its _strandline_state", table_.path())
                        : fmt::format("the folder {}", table_.path());
  return invalid_data(
      target.empty() ? "STATE_BEHIND" : "TARGET_BEHIND",
      "{} which flow '{}' knows from its batch {}{}; nothing was written: put {} and the progress "
      "in {} back as they were at one moment, or run a full refresh of the table (--full-refresh "
      "{})",
      target.empty() ? state : target, flow,
      progress.unfinished() ? progress.unfinished()->batch : progress.last_batch(), both, from,
      checkpoint_.directory(), dataset_->shown);
}

// A batch that was committed and not marked done ends with that: the commits must be its own, and
// the state the one that its target commit went with.
Status Target::check_commits(const Logs& logs, const KnownFlow& flow) const {
  if (!flow.progress->unfinished()) return {};
  const BatchPlan& plan = *flow.progress->unfinished();
  const std::string app = app_id(flow.name);
  const delta::Table state = state_table();
  for (const auto& [table, snapshot] :
       {std::pair(&table_, logs.target), std::pair(&state, logs.state)}) {
    if (!snapshot || snapshot->txn_version(app).value_or(-1) != plan.batch) continue;
    SL_ASSIGN(const auto commit, find_commit(*table, *snapshot, app, plan.batch));
    if (!commit) continue;
    const auto& tags = commit->tags;
    const auto tag = tags.find(kPlanTag);
    if (tag != tags.end() && tag->second != std::to_string(plan.time_us)) {
      return invalid_data(
          "CHECKPOINT_BEHIND",
          "batch {} of flow '{}' in '{}' is another one than its progress in {} has planned: put "
          "that folder back as it was when the table was, or run a full refresh of the table "
          "(--full-refresh {})",
          plan.batch, flow.name, dataset_->shown, flow.progress->directory(), dataset_->shown);
    }
    const auto version = tags.find(kStateVersionTag);
    const auto fingerprint = tags.find(kStateCommitTag);
    if (version == tags.end() || fingerprint == tags.end() || !logs.state) continue;
    const delta::CommitMark mark{std::strtoll(version->second.c_str(), nullptr, 10),
                                 fingerprint->second};
    SL_ASSIGN(const auto found, delta::find_marked(state, mark, logs.state->version));
    if (found == delta::MarkedCommit::kThere) continue;
    return invalid_data(
        "STATE_BEHIND",
        "the state of '{0}' is at version {1}, and batch {2} of flow '{3}' in '{0}' goes with its "
        "version {4}; nothing was written: put the folder {5} with its _strandline_state and the "
        "progress in {6} back as they were at one moment, or run a full refresh of the table "
        "(--full-refresh {0})",
        dataset_->shown, logs.state->version, plan.batch, flow.name, mark.version, table_.path(),
        checkpoint_.directory());
  }
  return {};
}

}  // namespace strandline::pipeline
