#include <strandline/suggest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <thread>
#include <tuple>

#include "base/error.h"
#include "base/ids.h"
#include "duck/delta_io.h"
#include "pipeline/event_log.h"
#include "pipeline/flow_run.h"
#include "pipeline/identity.h"
#include "pipeline/lock.h"
#include "pipeline/pipeline.h"
#include "pipeline/program.h"
#include "pipeline/published_views.h"

namespace strandline::pipeline {
namespace {

// Interrupts the engine's running statement while the user's flag is set.
class CancelWatcher {
 public:
  CancelWatcher(duck::Connection& connection, const std::atomic<bool>* cancel) {
    if (cancel == nullptr) return;
    thread_ = std::thread([this, &connection, cancel] {
      while (!stop_) {
        if (*cancel) connection.interrupt();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    });
  }
  ~CancelWatcher() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  CancelWatcher(const CancelWatcher&) = delete;
  CancelWatcher& operator=(const CancelWatcher&) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// The flow's name in front, unless the message says it.
Error of_flow(Error error, const std::string& flow) {
  if (error.message.find(flow) != std::string::npos) return error;
  return error.with_context(fmt::format("flow '{}'", flow));
}

// At the clause of the flow that the data broke, else at its name, for what the user can mend.
Error at_flow(Error error, const Flow& flow) {
  const bool mendable = error.kind == ErrorKind::kInvalidArgument ||
                        error.kind == ErrorKind::kInvalidData ||
                        error.kind == ErrorKind::kNotFound || error.kind == ErrorKind::kUnsupported;
  if (error.place || !mendable) return error;
  error.place = flow.place;
  if (!flow.declaration) return error;
  const auto& clauses = flow.declaration->clauses;
  if (error.code == "AUTOCDC_MICROBATCH_VALIDATION.NULL_KEY") error.place = clauses.keys_place;
  if (error.code == "AUTOCDC_MICROBATCH_VALIDATION.NULL_SEQUENCE") {
    const bool system = error.message.find("SYSTEM SEQUENCE BY") != std::string::npos;
    error.place = system ? clauses.system_sequence_place : clauses.sequence_place;
  }
  return error;
}

class Update {
 public:
  Update(const RunOptions& options, const Dependencies& dependencies,
         const ProgressListener& listener, const std::atomic<bool>* cancel)
      : options_(options), dependencies_(dependencies), listener_(listener), cancel_(cancel) {
    report_.update_id = new_uuid();
  }

  UpdateReport run() {
    if (const auto stop = open(); !stop.ok()) {
      fail(stop.error());
      return finish();
    }
    if (report_.status == UpdateStatus::kInvalid) return finish();
    tell(Progress::Kind::kUpdateStarted, "", "");
    if (const auto stop = update(); !stop.ok()) fail(stop.error());
    return finish();
  }

  // The flows' programs instead of an update.
  PlanReport print(Dialect dialect) {
    PlanReport plans;
    const auto work = [&]() -> Status {
      SL_TRY(open());
      if (report_.status == UpdateStatus::kInvalid) return {};
      SL_ASSIGN(const auto identity, read_identity(context_));
      context_.pipeline_id = identity.id;
      if (!check_flows()) return {};
      for (auto& run : runs_) {
        if (run->flow().kind != FlowKind::kAutoCdc || check_failures_.count(run.get()) > 0 ||
            blocked_[run->flow().target]) {
          continue;
        }
        auto program = run->print_program(dialect);
        if (program.ok()) {
          plans.programs.push_back(std::move(*program));
        } else {
          fail(of_flow(program.error(), run->flow().name));
        }
      }
      return {};
    };
    if (const auto stop = work(); !stop.ok()) fail(stop.error());
    tell_program_places(&report_.errors);
    plans.errors = std::move(report_.errors);
    plans.invalid = report_.status == UpdateStatus::kInvalid;
    return plans;
  }

 private:
  // --- reporting --------------------------------------------------------------------------------

  void fail(Error error) {
    const bool stopped = error.kind == ErrorKind::kCancelled;
    if (report_.status == UpdateStatus::kCompleted || stopped) {
      report_.status = stopped ? UpdateStatus::kCanceled : UpdateStatus::kFailed;
    }
    report_.errors.push_back(std::move(error));
  }

  void invalid(std::vector<Error> errors) {
    report_.status = UpdateStatus::kInvalid;
    const auto place_of = [](const Error& error) {
      const SourcePlace place = error.place.value_or(SourcePlace{});
      return std::tuple(!error.place, place.file, place.line, place.column);
    };
    std::stable_sort(errors.begin(), errors.end(),
                     [&](const Error& a, const Error& b) { return place_of(a) < place_of(b); });
    for (auto& error : errors) {
      const auto same = [&](const Error& other) {
        // A name of several parts is seen by the parser and by the compiler.
        return other.place && error.place && place_of(other) == place_of(error) &&
               (other.message == error.message ||
                (other.code == error.code && error.code == "AUTOCDC_MULTIPART_COLUMN_IDENTIFIER"));
      };
      if (std::none_of(report_.errors.begin(), report_.errors.end(), same)) {
        report_.errors.push_back(std::move(error));
      }
    }
  }

  UpdateReport finish() {
    for (const auto& run : runs_) {
      report_.flows.push_back(run->report());
      for (const auto& warning : run->warnings()) report_.warnings.push_back(warning);
    }
    tell_program_places(&report_.errors);
    tell_program_places(&report_.warnings);
    if (listener_ && report_.status != UpdateStatus::kInvalid)
      tell(Progress::Kind::kUpdateDone, "", "");
    return std::move(report_);
  }

  void tell(Progress::Kind kind, const std::string& flow, const std::string& stage) {
    if (!listener_) return;
    Progress progress;
    progress.kind = kind;
    progress.flow = flow;
    progress.stage = stage;
    if (running_ != nullptr) {
      progress.rows = static_cast<int64_t>(running_->report().metrics.at("num_input_rows"));
      progress.elapsed_seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - flow_begin_).count();
    }
    listener_(progress);
  }

  // --- opening ----------------------------------------------------------------------------------

  // Everything that reads the pipeline's text. Its mistakes end in invalid().
  Status open() {
    context_.store = dependencies_.store ? dependencies_.store : storage::make_local_store();
    LoadedSpec loaded;
    if (dependencies_.table != nullptr) {
      loaded.spec = dependencies_.table->spec;
    } else {
      loaded = load_spec(*context_.store, options_.pipeline, options_.warehouse);
    }
    context_.spec = std::move(loaded.spec);
    if (context_.spec.files.empty() && !loaded.errors.empty()) {
      invalid(std::move(loaded.errors));
      return {};
    }
    std::shared_ptr<duck::Database> database = dependencies_.database;
    if (!database) {
      duck::DatabaseOptions engine;
      engine.memory_limit_bytes = options_.engine.memory_limit_bytes;
      engine.threads = options_.engine.threads;
      SL_ASSIGN(database, duck::Database::open(engine));
    }
    database_ = database;
    context_.parquet = duck::make_parquet_port(database);
    SL_ASSIGN(context_.warehouse,
              catalog::Warehouse::open(context_.store, context_.parquet, context_.spec.warehouse));
    ProgramDeclarations declared;
    SL_TRY(run_python(&declared));
    auto built = build_graph(context_.spec, *context_.store, *context_.warehouse, declared);
    context_.graph = std::move(built.graph);
    report_.warnings = std::move(built.warnings);
    report_.graph = draw_graph(context_.spec, context_.graph);
    std::vector<Error> errors = std::move(loaded.errors);
    for (auto& error : declared.errors) errors.push_back(std::move(error));
    for (auto& error : built.errors) errors.push_back(std::move(error));
    std::vector<FlowRun*> known;  // whose sources are all found
    for (const auto& flow : context_.graph.flows) {
      const size_t before = errors.size();
      runs_.push_back(std::make_unique<FlowRun>(context_, flow));
      runs_.back()->analyze(&errors);
      if (errors.size() == before) known.push_back(runs_.back().get());
    }
    find_selection(&errors);
    blocked_.assign(context_.graph.datasets.size(), false);
    failed_.assign(context_.graph.datasets.size(), false);
    SL_ASSIGN(connection_, database->connect());
    context_.connection = connection_.get();
    if (!errors.empty()) {
      // Flows that no mistake elsewhere can touch say what is wrong with their columns, too.
      PlannedSchemas planned;
      for (auto* run : known) {
        if (run->stands_alone()) (void)run->check(true, &planned, &errors).ok();
      }
      check_expectations(planned, &errors);
      invalid(std::move(errors));
      return {};
    }
    context_.cancelled = [this] { return cancel_ != nullptr && *cancel_; };
    context_.stopping = [this] { return dependencies_.stop != nullptr && *dependencies_.stop; };
    context_.on_stage = [this](const std::string& stage) {
      if (running_ != nullptr) tell(Progress::Kind::kStage, running_->flow().name, stage);
    };
    return {};
  }

  // What the pipeline's .py files declare.
  Status run_python(ProgramDeclarations* declared) {
    std::vector<PipelineFile> files;
    for (const auto& file : context_.spec.files) {
      if (file.is_python()) files.push_back(file);
    }
    if (files.empty()) return {};
    SL_ASSIGN(program_, Program::start(cancel_));
    context_.program = program_.get();
    SL_ASSIGN(*declared, program_->declare(context_.spec, files));
    for (const auto& statement : declared->statements)
      program_places_[statement.key] = statement.place;
    return {};
  }

  // A place in the SQL of a program's statement is told as the place in the program.
  void tell_program_places(std::vector<Error>* errors) const {
    for (auto& error : *errors) {
      if (!error.place) continue;
      const auto found = program_places_.find(error.place->file);
      if (found != program_places_.end()) error.place = found->second;
    }
  }

  // Tables named on the command line -> selected_, refreshed_.
  void find_selection(std::vector<Error>* errors) {
    const auto& datasets = context_.graph.datasets;
    selected_.assign(datasets.size(), options_.refresh != RefreshKind::kSelected);
    refreshed_.assign(datasets.size(), options_.refresh == RefreshKind::kFullAll);
    if (options_.refresh != RefreshKind::kSelected &&
        options_.refresh != RefreshKind::kFullSelected)
      return;
    for (const auto& text : options_.tables) {
      sql::TableName name;
      std::string part;
      bool quoted = false;
      for (size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (c == '`' && quoted && i + 1 < text.size() && text[i + 1] == '`') {
          part += text[++i];  // a doubled quote is one of the name's
        } else if (c == '`') {
          quoted = !quoted;
        } else if (c == '.' && !quoted) {
          name.parts.push_back(part);
          part.clear();
        } else {
          part += c;
        }
      }
      name.parts.push_back(part);
      const auto index = context_.graph.find(*context_.warehouse, name);
      if (!index || datasets[*index].is_view()) {
        std::vector<std::string> known;
        known.reserve(datasets.size());
        for (const auto& dataset : datasets) {
          if (!dataset.is_view()) known.push_back(dataset.name.name);
        }
        const auto near = nearest_name(name.parts.back(), known);
        errors->push_back(not_found("UNKNOWN_TABLE", "'{}' is not a table of pipeline '{}'{}", text,
                                    context_.spec.name,
                                    near ? ": did you mean " + *near + "?" : ""));
      } else if (options_.refresh == RefreshKind::kSelected) {
        selected_[*index] = true;
      } else {
        refreshed_[*index] = true;
      }
    }
  }

  // --- the update -------------------------------------------------------------------------------

  Status update() {
    std::optional<CancelWatcher> watcher;
    watcher.emplace(*connection_, cancel_);
    if (!options_.dry_run) {
      SL_TRY(take_pipeline());
      SL_TRY(publish_views(context_));
    } else {
      SL_ASSIGN(const auto identity, read_identity(context_));
      context_.pipeline_id = identity.id;
    }
    SL_TRY(check_resets());
    if (!check_flows()) return {};
    if (dependencies_.table != nullptr) {
      const bool unfinished = std::any_of(runs_.begin(), runs_.end(), [&](const auto& run) {
        return !refreshed_[run->flow().target] && run->has_unfinished();
      });
      SL_TRY(dependencies_.table->on_checked(unfinished));
    }
    if (options_.dry_run) {
      for (auto& run : runs_) run->report().status = "EXCLUDED";
      return {};
    }
    EventLog log(context_, report_.update_id);
    log.add("create_update", "INFO", fmt::format("Update {} started.", report_.update_id),
            request_details(options_));
    log.add("update_progress", "INFO", fmt::format("Update {} is RUNNING.", report_.update_id),
            R"({"state":"RUNNING"})");
    for (const auto& run : runs_) {
      log.add("flow_definition", "INFO", fmt::format("Flow '{}' defined.", run->flow().name),
              flow_definition_details(context_.graph, run->flow()), &run->report());
    }
    if (const auto started = begin_refreshes(); started.ok()) {
      check_moments();
      recover();
      for (auto& run : runs_) run_flow(*run, log);
    } else {
      fail(started.error());
    }
    if (dependencies_.table != nullptr && dependencies_.table->on_ran) {
      dependencies_.table->on_ran(std::any_of(
          runs_.begin(), runs_.end(), [](const auto& run) { return run->has_unfinished(); }));
    }
    const std::string state = to_string(report_.status);
    log.add("update_progress", report_.status == UpdateStatus::kCompleted ? "INFO" : "ERROR",
            fmt::format("Update {} is {}.", report_.update_id, state),
            fmt::format(R"({{"state":"{}"}})", state), nullptr,
            report_.errors.empty() ? nullptr : &report_.errors.front());
    // A stopped update is logged too.
    watcher.reset();
    if (!dependencies_.logs_idle_updates && report_.status == UpdateStatus::kCompleted &&
        !has_batches()) {
      return {};
    }
    if (auto written = log.write(); !written.ok()) {
      report_.warnings.push_back(written.error().with_context(
          "the event log was not written, the tables are as reported"));
    }
    return {};
  }

  bool has_batches() const {
    return std::any_of(runs_.begin(), runs_.end(),
                       [](const auto& run) { return run->report().metrics.at("num_batches") > 0; });
  }

  // Nobody else runs it from here on.
  Status take_pipeline() {
    if (dependencies_.table != nullptr) {
      lock_ = dependencies_.table->lock;
    } else {
      SL_ASSIGN(lock_, lock_pipeline(*context_.warehouse, context_.spec.name));
    }
    SL_ASSIGN(const auto identity, read_identity(context_));
    SL_ASSIGN(context_.pipeline_id, keep_identity(context_, identity, options_.pipeline));
    return {};
  }

  // pipelines.reset.allowed = false
  Status check_resets() {
    for (size_t i = 0; i < refreshed_.size(); ++i) {
      if (!refreshed_[i]) continue;
      const auto& dataset = context_.graph.datasets[i];
      if (dataset.is_view()) {
        refreshed_[i] = false;
        continue;
      }
      bool allowed = true;
      for (const auto& option : dataset.options.properties) {
        if (option.key == "pipelines.reset.allowed" &&
            fold_name(option.value) == fold_name("false"))
          allowed = false;
      }
      if (allowed) continue;
      Error error = invalid_argument(
          "RESET_NOT_ALLOWED",
          "'{}' has pipelines.reset.allowed = false, so it is not fully refreshed: change "
          "that property first",
          dataset.shown);
      error.place = dataset.place;
      if (options_.refresh == RefreshKind::kFullSelected) return error;
      refreshed_[i] = false;
      report_.warnings.push_back(std::move(error));
    }
    return {};
  }

  // Column by column checks of everything that will run; false when the pipeline is invalid.
  bool check_flows() {
    PlannedSchemas planned;
    std::vector<Error> errors;
    for (auto& run : runs_) {
      const size_t target = run->flow().target;
      if (!selected_[target]) continue;
      auto checked = run->check(refreshed_[target], &planned, &errors);
      if (checked.ok() && options_.dry_run && !refreshed_[target]) checked = run->check_fit();
      if (!checked.ok()) check_failures_[run.get()] = checked.error();
    }
    check_expectations(planned, &errors);
    for (auto later = runs_.begin(); later != runs_.end(); ++later) {
      const auto earlier = std::find_if(runs_.begin(), later, [&](const auto& run) {
        return run->flow().target == (*later)->flow().target;
      });
      if (earlier == later) continue;
      if (auto error = (*later)->disagreement(**earlier)) errors.push_back(std::move(*error));
    }
    if (!errors.empty()) {
      invalid(std::move(errors));
      return false;
    }
    for (auto& run : runs_) {
      std::vector<const FlowRun*> others;
      for (const auto& other : runs_) {
        if (other != run && other->flow().target == run->flow().target)
          others.push_back(other.get());
      }
      run->set_other_flows(others);
    }
    if (options_.dry_run) {
      check_moments();
      for (auto& [run, error] : recover_failures_) fail(explained(error, *run));
      // What a table of another moment does not fit says nothing.
      for (auto& [run, error] : check_failures_) {
        if (!blocked_[run->flow().target]) fail(error);
      }
    }
    return true;
  }

  // Expectations of a table see the columns that any of its flows gives: all must be known.
  void check_expectations(const PlannedSchemas& planned, std::vector<Error>* errors) {
    for (const auto& [target, columns] : planned) {
      const auto into = [&, index = target](const auto& run) {
        return run->flow().target == index;
      };
      if (std::any_of(runs_.begin(), runs_.end(),
                      [&](const auto& run) { return into(run) && !run->is_checked(); })) {
        continue;
      }
      for (auto& run : runs_) {
        if (into(run)) run->check_target_expectations(columns, errors);
      }
    }
  }

  Status begin_refreshes() {
    for (size_t i = 0; i < refreshed_.size(); ++i) {
      if (!refreshed_[i]) continue;
      for (auto& run : runs_) {
        if (run->flow().target == i)
          SL_TRY(run->check_sources_complete(options_.allow_missing_sources));
      }
    }
    // Readers before what they read: an update that is stopped in between leaves no stream in the
    // middle of a table that is about to be replaced.
    std::vector<bool> left = refreshed_;
    const auto begin = [&](size_t i) -> Status {
      if (!left[i]) return {};
      left[i] = false;
      SL_ASSIGN(auto target, Target::open(context_, i));
      return target.begin_refresh();
    };
    for (size_t i = runs_.size(); i-- > 0;) SL_TRY(begin(runs_[i]->flow().target));
    for (size_t i = 0; i < left.size(); ++i) SL_TRY(begin(i));
    for (auto& run : runs_) SL_TRY(run->begin_after_missing());
    return {};
  }

  // Whether the log and the state of a flow's target are of the moment that the progress of all
  // its flows is of.
  Status check_moment(const FlowRun& first) {
    std::vector<KnownFlow> flows;
    for (auto& run : runs_) {
      if (run->flow().target != first.flow().target) continue;
      SL_ASSIGN(const auto* progress, run->read_progress());
      flows.push_back({run->flow().name, progress});
    }
    return first.check_moment(flows);
  }

  // Targets that cannot go on are left alone before anything is written: the first of the flows
  // into each says why.
  void check_moments() {
    std::vector<bool> seen(context_.graph.datasets.size(), false);
    for (auto& run : runs_) {
      const size_t target = run->flow().target;
      if (!selected_[target] || refreshed_[target] || seen[target]) continue;
      seen[target] = true;
      const auto status = check_moment(*run);
      if (status.ok()) continue;
      recover_failures_[run.get()] = status.error();
      blocked_[target] = true;
    }
  }

  // Batches that an earlier update left half done come first: nothing else may touch their targets.
  void recover() {
    for (auto& run : runs_) {
      const size_t target = run->flow().target;
      if (!selected_[target] || refreshed_[target] || blocked_[target] || !run->has_unfinished())
        continue;
      begin_flow(*run);
      const auto status = run->recover();
      running_ = nullptr;
      if (status.ok()) continue;
      recover_failures_[run.get()] = status.error();
      if (run->has_unfinished()) blocked_[target] = true;
    }
  }

  // A target whose state is ahead of it because of a flow that is gone is left alone.
  Status check_removed_flows(size_t target) {
    if (!context_.graph.datasets[target].auto_cdc) return {};
    std::vector<std::string> names;
    for (const auto& flow : context_.graph.flows) {
      if (flow.target == target) names.push_back(flow.name);
    }
    SL_ASSIGN(const auto opened, Target::open(context_, target));
    return opened.check_removed_flows(names);
  }

  // The way out in the user's own terms: a table that is declared on its own has no command line.
  void name_full_refresh(Error* error, const Dataset& dataset) const {
    const std::string option = "--full-refresh " + dataset.shown;
    const size_t at = error->message.find(option);
    if (!context_.spec.of_one_table || at == std::string::npos) return;
    error->message.replace(at, option.size(),
                           "REFRESH STREAMING TABLE " + dataset.name.to_string() + " FULL");
  }

  // With the flow, its place and the way out in the user's terms.
  Error explained(const Error& why, const FlowRun& run) const {
    Error error = of_flow(at_flow(why, run.flow()), run.flow().name);
    name_full_refresh(&error, context_.graph.datasets[run.flow().target]);
    return error;
  }

  void begin_flow(FlowRun& run) {
    running_ = &run;
    flow_begin_ = std::chrono::steady_clock::now();
  }

  void run_flow(FlowRun& run, EventLog& log) {
    FlowReport& report = run.report();
    const size_t target = run.flow().target;
    if (!selected_[target]) {
      report.status = "EXCLUDED";
      return;
    }
    if (context_.stopping()) {
      report.status = "EXCLUDED";
      return;
    }
    if (context_.cancelled()) {
      report.status = "CANCELED";
      if (report_.status == UpdateStatus::kCompleted) {
        fail(cancelled("CANCELED", "the update was stopped; run it again to go on"));
      }
      failed_[target] = true;
      return;
    }
    const auto recovered = recover_failures_.find(&run);
    bool skipped = blocked_[target] && recovered == recover_failures_.end();
    for (const size_t upstream : run.flow().upstream) skipped = skipped || failed_[upstream];
    if (skipped) {
      report.status = "SKIPPED";
      failed_[target] = true;
      log.add("flow_progress", "WARN", fmt::format("Flow '{}' is SKIPPED.", report.name),
              flow_progress_details(report), &report);
      return;
    }
    begin_flow(run);
    tell(Progress::Kind::kFlowStarted, report.name, "");
    log.add("flow_progress", "INFO", fmt::format("Flow '{}' is RUNNING.", report.name),
            flow_progress_details("RUNNING"), &report);
    auto status = check_removed_flows(target);
    if (status.ok()) {
      status = recovered != recover_failures_.end() ? Status(recovered->second) : run.run();
    }
    for (const auto& warning : run.warnings()) {
      if (warning.code != kStreamDataLoss) continue;
      log.add("flow_progress", "WARN", warning.message, flow_progress_details("RUNNING"), &report,
              &warning);
    }
    if (const std::string& how = run.refresh_plan(); !how.empty()) {
      log.add("planning_information", "INFO",
              fmt::format("Flow '{}' has been planned to be executed as {}.", report.name, how),
              planning_details(how), &report);
    }
    if (status.ok()) {
      report.status = "COMPLETED";
      log.add("flow_progress", "INFO", fmt::format("Flow '{}' has COMPLETED.", report.name),
              flow_progress_details(report), &report);
    } else {
      const bool stopped = status.error().kind == ErrorKind::kCancelled;
      report.status = stopped ? "CANCELED" : "FAILED";
      failed_[target] = true;
      if (run.has_unfinished()) blocked_[target] = true;
      Error error = stopped ? cancelled("CANCELED", "the update was stopped; run it again to go on")
                            : explained(status.error(), run);
      log.add("flow_progress", "ERROR",
              fmt::format("Flow '{}' has {}.", report.name, report.status),
              flow_progress_details(report), &report, &error);
      fail(std::move(error));
    }
    tell(Progress::Kind::kFlowDone, report.name, report.status);
    running_ = nullptr;
  }

  const RunOptions& options_;
  const Dependencies& dependencies_;
  const ProgressListener& listener_;
  const std::atomic<bool>* cancel_;
  UpdateReport report_;
  Context context_;
  std::shared_ptr<duck::Database> database_;
  std::unique_ptr<duck::Connection> connection_;
  std::shared_ptr<FileLock> lock_;
  std::unique_ptr<Program> program_;  // null: the pipeline has no .py files
  std::map<std::string, SourcePlace> program_places_;
  std::vector<std::unique_ptr<FlowRun>> runs_;
  std::vector<bool> selected_, refreshed_, failed_, blocked_;
  std::map<const FlowRun*, Error> check_failures_, recover_failures_;
  FlowRun* running_ = nullptr;
  std::chrono::steady_clock::time_point flow_begin_;
};

}  // namespace

UpdateReport run_update(const RunOptions& options, const Dependencies& dependencies,
                        const ProgressListener& listener, const std::atomic<bool>* cancel) {
  return Update(options, dependencies, listener, cancel).run();
}

PlanReport print_programs(const PlanOptions& options, const Dependencies& dependencies) {
  RunOptions run;
  run.pipeline = options.pipeline;
  run.warehouse = options.warehouse;
  run.dry_run = true;
  run.engine = options.engine;
  return Update(run, dependencies, {}, nullptr).print(options.dialect);
}

}  // namespace strandline::pipeline
