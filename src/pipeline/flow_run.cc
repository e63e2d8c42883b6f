#include "pipeline/flow_run.h"

#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "pipeline/compaction.h"
#include "pipeline/feed_flow.h"
#include "pipeline/feed_source.h"
#include "pipeline/view_shape.h"
#include "sql/clock_calls.h"

namespace strandline::pipeline {
namespace {

// A stream that passed over this many versions without a row notes its place.
constexpr int64_t kQuietVersions = 32;

}  // namespace

FlowRun::FlowRun(Context& context, Flow flow) : context_(context), flow_(std::move(flow)) {
  report_.name = flow_.name;
  report_.target = context.graph.datasets[flow_.target].name.to_string();
  report_.status = "SKIPPED";
  for (const char* key :
       {"num_upserted_rows", "num_deleted_rows", "num_input_rows", "num_late_rows",
        "num_sequence_conflicts", "num_skipped_snapshots", "num_output_bytes", "num_batches",
        "num_files_read", "num_files_skipped", "duration_seconds"}) {
    report_.metrics[key] = 0;
  }
  if (flow_.kind != FlowKind::kAutoCdc) report_.metrics["num_output_rows"] = 0;
  report_.expectations =
      uncounted(context.graph.datasets[flow_.target].options.expectations, report_.target);
}

FlowRun::~FlowRun() = default;

void FlowRun::stage(const std::string& name) const {
  if (context_.on_stage) context_.on_stage(name);
}

void FlowRun::add_metric(const char* name, double value) { report_.metrics[name] += value; }

void FlowRun::analyze(std::vector<Error>* errors) {
  sources_ =
      FlowSources::analyze(context_.graph, flow_, context_.spec, *context_.warehouse, errors);
  // A view of the warehouse is redefined without this flow's being touched.
  if (const auto texts = sources_.texts_of_views(); !texts.empty())
    flow_.definition += "+" + fingerprint(texts);
  if (flow_.declaration) {
    declaration_ = flow_.declaration;
    if (sources_.reads_feed()) {
      auto declared = over_feed(*flow_.declaration);
      if (declared.ok()) {
        declaration_ = *std::move(declared);
      } else {
        errors->push_back(declared.error());
      }
    }
  }
  if (takes_snapshots() && flow_.declaration->clauses.snapshot_version) {
    Flow version = flow_;
    version.query = flow_.declaration->clauses.snapshot_version;
    version.kind = FlowKind::kMaterialize;
    version.declaration.reset();
    version.once = true;  // so that files are read without STREAM
    version_run_ = std::make_unique<FlowRun>(context_, std::move(version));
    version_run_->analyze(errors);
  }
  for (const size_t index : sources_.expecting_views()) {
    const auto& view = context_.graph.datasets[index];
    add_counts(&report_.expectations, uncounted(view.options.expectations, view.name.to_string()));
  }
}

Status FlowRun::start() {
  SL_ASSIGN(auto target, Target::open(context_, flow_.target));
  SL_ASSIGN(checkpoint_,
            FlowCheckpoint::open(context_.store, target.checkpoint().flow_directory(flow_.name)));
  if (target_) target.look_on_from(*target_);
  target_.emplace(std::move(target));
  return {};
}

Result<const FlowCheckpoint*> FlowRun::read_progress() {
  SL_TRY(start());
  return &*checkpoint_;
}

// What is wrong with the target or its state as they stand is said before anything is written.
Status FlowRun::check_standing() const {
  SL_ASSIGN(const auto target, target_->snapshot(*checkpoint_));
  if (!target || flow_.kind != FlowKind::kAutoCdc || takes_snapshots() ||
      checkpoint_->unfinished()) {
    return {};
  }
  SL_ASSIGN(const auto state, target_->state(*target, *checkpoint_));
  (void)state;
  return {};
}

Status FlowRun::mark_done() {
  SL_ASSIGN(const auto marks, target_->marks());
  return checkpoint_->mark_done(marks);
}

Status FlowRun::prepare_to_run() {
  stage("plan");
  SL_TRY(find_source_schemas(false, nullptr));
  SL_ASSIGN(facts_, find_facts(nullptr));
  return {};
}

Status FlowRun::recover() {
  SL_TRY(start());
  SL_TRY(check_standing());
  if (!checkpoint_->unfinished()) return {};
  if (!takes_snapshots()) SL_TRY(prepare_to_run());
  return finish_unfinished();
}

Status FlowRun::run() {
  const auto begin = std::chrono::steady_clock::now();
  const auto work = [&]() -> Status {
    SL_TRY(start());
    SL_TRY(check_standing());
    if (flow_.once && checkpoint_->last_batch() >= 0 && !checkpoint_->unfinished()) {
      SL_ASSIGN(const auto snapshot, target_->snapshot(*checkpoint_));
      (void)snapshot;
      return {};
    }
    if (takes_snapshots()) return take_snapshots();
    SL_TRY(prepare_to_run());
    SL_TRY(finish_unfinished());
    if (flow_.once && checkpoint_->last_batch() >= 0) return {};
    if (facts_) {
      SL_ASSIGN(const auto snapshot, ensure_target());
      (void)snapshot;
    } else {
      // Nothing was ever seen of a source: there is nothing to make a table of yet.
      SL_ASSIGN(const auto snapshot, target_->snapshot(*checkpoint_));
      (void)snapshot;
      return {};
    }
    // A declaration that no longer fits is said at once, not when the next file comes.
    SL_TRY(check_fit());
    while (!context_.stopping()) {
      SL_TRY(context_.check_cancelled());
      BatchPlan plan;
      bool has_data = false;
      SL_ASSIGN(const bool more, plan_next(&plan, &has_data));
      if (!more) return {};
      SL_ASSIGN(plan.marks, target_->marks());
      SL_TRY(checkpoint_->write_plan(plan));
      SL_TRY(run_batch(has_data));
      compact(kCompactionInterval);
      if (flow_.once || flow_.kind == FlowKind::kMaterialize) return {};
    }
    return {};
  };
  auto status = work();
  if (status.ok()) compact(1);
  add_metric("duration_seconds",
             std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  return status;
}

// Housekeeping between batches: whatever goes wrong is a warning, the rows are committed.
void FlowRun::compact(int64_t least_batches) {
  const auto batches = static_cast<int64_t>(report_.metrics["num_batches"]);
  if (flow_.kind != FlowKind::kAutoCdc || batches - compacted_batches_ < least_batches) return;
  const Status done = compact_if_needed(context_, *target_, batches - compacted_batches_);
  compacted_batches_ = batches;
  if (done.ok() || done.error().kind == ErrorKind::kCancelled) return;
  warnings_.push_back(placed(done.error().with_context(fmt::format(
                                 "small files of '{}' were not merged, its rows are as reported",
                                 target_->dataset().shown)),
                             flow_.place));
}

bool FlowRun::has_other_files(const Source& source, const std::vector<ConsumedFile>& files) const {
  const auto before = checkpoint_->consumed_files(source.key);
  return before.size() != files.size() ||
         std::any_of(files.begin(), files.end(), [&](const ConsumedFile& file) {
           const ConsumedFile* known = checkpoint_->consumed(source.key, file.path);
           return known == nullptr || known->size_bytes != file.size_bytes ||
                  known->modified_ms != file.modified_ms;
         });
}

// Next batch, if there is one. has_data false: nothing to compute, only progress to note.
Result<bool> FlowRun::plan_next(BatchPlan* plan, bool* has_data) {
  SL_ASSIGN(const auto target, target_->snapshot(*checkpoint_));
  plan->batch = checkpoint_->last_batch() + 1;
  plan->time_us = now_micros();
  plan->definition = flow_.definition;
  plan->target_id = target->metadata.id;
  const bool must_clear = !target_->is_current(*target) &&
                          (!target->files.empty() || !target_->is_of_declared_kind(*target));
  bool note = flow_.once;
  *has_data = must_clear;
  const auto& sources = sources_.sources();
  for (size_t i = 0; i < sources.size(); ++i) {
    const auto& source = sources[i];
    SourcePlan part;
    part.key = source.key;
    if (source.kind == SourceKind::kFiles && source.whole) {
      part.files = backlog_[i];
      part.schema = schemas_[i];
      *has_data = *has_data ||
                  (flow_.kind == FlowKind::kMaterialize && has_other_files(source, part.files));
    } else if (source.kind == SourceKind::kFiles) {
      const auto& files = backlog_[i];
      size_t& next = backlog_next_[i];
      int64_t bytes = 0;
      while (next < files.size()) {
        const auto& file = files[next];
        const bool full = static_cast<int64_t>(part.files.size()) >= source.files.max_files ||
                          bytes + file.size_bytes > source.files.max_bytes;
        if (!flow_.once && !part.files.empty() && full) break;
        bytes += file.size_bytes;
        part.files.push_back(file);
        ++next;
      }
      part.schema = schemas_[i];
      *has_data = *has_data || !part.files.empty();
    } else if (source.kind == SourceKind::kStream) {
      if (newest_[i] == nullptr) continue;
      const auto progress = checkpoint_->offset(source.key);
      auto range = source.is_feed()
                       ? plan_feed(*source.table, newest_[i], source.stream, progress, flow_.once,
                                   source.tolerates_out_of_range, source.shown)
                       : plan_delta(*source.table, *newest_[i], source.stream, progress, flow_.once,
                                    source.shown);
      if (!range.ok()) {
        return placed(with_way_on(range.error(), source.shown, source.is_feed()), source.place);
      }
      warn(range->lost);
      *has_data = *has_data || range->has_data;
      // A start is kept, except one that is still waited for.
      const bool starts =
          !progress &&
          (source.stream.starting_latest ||
           (range->to.version <= newest_[i]->version + 1 && !(range->to == range->from)));
      const auto done = progress ? progress->version : range->from.version;
      note = note || starts || !range->lost.empty() || range->to.version - done > kQuietVersions;
      part.from = range->from;
      part.to = range->to;
    } else if (source.kind == SourceKind::kJdbc) {
      // Whether anything changed there is known when it was read.
      *has_data = *has_data || flow_.kind == FlowKind::kMaterialize;
    } else {
      if (newest_[i] == nullptr) {
        return placed(
            not_found("TABLE_OR_VIEW_NOT_FOUND", "table '{}' is not there yet", source.shown),
            source.place);
      }
      plan->pinned[source.key] = newest_[i]->version;
      plan->pinned_ids[source.key] = newest_[i]->metadata.id;
      SL_ASSIGN(const auto mark, delta::mark_commit(*source.table, newest_[i]->version));
      if (!mark.fingerprint.empty()) plan->pinned_commits[source.key] = mark.fingerprint;
    }
    plan->sources.push_back(std::move(part));
  }
  if (flow_.kind == FlowKind::kMaterialize) {
    const bool same = checkpoint_->last_batch() >= 0 && checkpoint_->pinned() == plan->pinned &&
                      checkpoint_->pinned_ids() == plan->pinned_ids &&
                      (checkpoint_->pinned_commits().empty() ||
                       checkpoint_->pinned_commits() == plan->pinned_commits) &&
                      checkpoint_->definition() == plan->definition && target_->is_current(*target);
    *has_data = *has_data || !same || !why_it_changes_by_itself(*flow_.query, sources_).empty() ||
                expects_by_the_clock();
  }
  *has_data = *has_data || loads_once();
  if (flow_.kind == FlowKind::kAutoCdc) {
    SL_ASSIGN(const auto state, target_->state(*target, *checkpoint_));
    if (state) plan->state_version = state->version;
    // Rows changed by hand are taken in without events, too.
    if (!*has_data && report_.metrics["num_batches"] == 0 && target_->is_current(*target)) {
      SL_ASSIGN(const auto edits, target_->hand_edits(*target, state.get()));
      *has_data = !edits.empty();
    }
  }
  return *has_data || note;
}

// Whether what a view or one that it reads expects of its rows differs from one time to another.
bool FlowRun::expects_by_the_clock() const {
  const auto asks = [](const Dataset& dataset) {
    const auto& expectations = dataset.options.expectations;
    return std::any_of(expectations.begin(), expectations.end(), [](const auto& expectation) {
      return expectation.condition && !sql::clock_calls(*expectation.condition).empty();
    });
  };
  const auto views = sources_.expecting_views();
  return asks(context_.graph.datasets[flow_.target]) ||
         std::any_of(views.begin(), views.end(),
                     [&](size_t view) { return asks(context_.graph.datasets[view]); });
}

// A ONCE flow whose first batch has rows whatever its streams and files bring: of tables read
// whole, or of the query's own text (VALUES).
bool FlowRun::loads_once() const {
  if (!flow_.once) return false;
  const auto& sources = sources_.sources();
  return flow_.kind == FlowKind::kAppend || sources.empty() ||
         std::any_of(sources.begin(), sources.end(), [](const Source& source) {
           return source.kind == SourceKind::kTable || source.kind == SourceKind::kChanges;
         });
}

Result<bool> FlowRun::is_state_committed(int64_t batch) const {
  if (flow_.kind != FlowKind::kAutoCdc) return false;
  return is_in_log(target_->state_table(), batch);
}

Result<bool> FlowRun::is_committed(int64_t batch) const {
  SL_ASSIGN(const bool in_target, is_in_log(target_->table(), batch));
  if (in_target) return true;
  return is_state_committed(batch);
}

Result<bool> FlowRun::is_in_log(const delta::Table& table, int64_t batch) const {
  SL_ASSIGN(const bool exists, table.exists());
  if (!exists) return false;
  SL_ASSIGN(const auto snapshot, table.snapshot());
  return snapshot->txn_version(target_->app_id(flow_.name)).value_or(-1) >= batch;
}

// A batch that was planned and not marked done runs again from its plan.
Status FlowRun::finish_unfinished() {
  if (!checkpoint_->unfinished()) return {};
  const BatchPlan plan = *checkpoint_->unfinished();
  SL_ASSIGN(const auto target, target_->snapshot(*checkpoint_));
  const std::string app = target_->app_id(flow_.name);
  const bool in_target = target && target->txn_version(app).value_or(-1) >= plan.batch;
  if (takes_snapshots()) {
    // A snapshot is one commit: it is there, or nothing of it is and the next try takes another.
    return in_target ? mark_done() : checkpoint_->drop_plan();
  }
  bool in_state = false;
  if (!in_target) {
    SL_ASSIGN(in_state, is_state_committed(plan.batch));
    const bool gone = !target || (!plan.target_id.empty() && target->metadata.id != plan.target_id);
    if (gone && in_state) {
      return invalid_data(
          "AUTOCDC_INVALID_STATE.TARGET_REPLACED",
          "'{}' was dropped or made anew during batch {} of flow '{}': run a full refresh of that "
          "table",
          target_->dataset().shown, plan.batch, flow_.name);
    }
    if (plan.definition != flow_.definition || !facts_ || gone) {
      if (in_state) {
        return invalid_data(
            "UNFINISHED_BATCH",
            "batch {} of flow '{}' was interrupted half-way and the flow's text has changed since: "
            "run it once with the earlier text, or run a full refresh of '{}'",
            plan.batch, flow_.name, target_->dataset().shown);
      }
      // Nothing of it was committed: plan anew with the new text.
      return checkpoint_->drop_plan();
    }
  }
  bool has_data = in_state || flow_.kind == FlowKind::kMaterialize || loads_once() ||
                  !plan.pinned.empty() ||
                  (target && !target_->is_current(*target) &&
                   (!target->files.empty() || !target_->is_of_declared_kind(*target)));
  for (const auto& source : plan.sources) {
    has_data = has_data || !source.files.empty() ||
               (source.from && source.to && !(*source.from == *source.to));
  }
  SL_TRY(run_batch(has_data && !in_target));
  // What the batch consumed is no longer new.
  return find_source_schemas(false, nullptr);
}

Status FlowRun::run_batch(bool has_data) {
  const BatchPlan plan = *checkpoint_->unfinished();
  if (has_data) {
    committed_ = false;
    auto status = execute(plan);
    if (!status.ok()) {
      const Error error = explain(plan, status.error());
      // A batch of which nothing was committed is planned anew, so that corrected input is seen.
      if (!committed_ && error.kind != ErrorKind::kCancelled) {
        const auto there = is_committed(plan.batch);
        if (there.ok() && !*there) (void)checkpoint_->drop_plan().ok();
      }
      return error;
    }
    add_metric("num_batches", 1);
  }
  return mark_done();
}

}  // namespace strandline::pipeline
