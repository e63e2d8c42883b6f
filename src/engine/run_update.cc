#include <strandline/strandline.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "pipeline/pipeline.h"

namespace strandline {

bool UpdateReport::has_news() const {
  return std::any_of(flows.begin(), flows.end(), [](const FlowReport& flow) {
    const auto batches = flow.metrics.find("num_batches");
    return batches != flow.metrics.end() && batches->second > 0;
  });
}

UpdateReport run_update(const RunOptions& options, const ProgressListener& listener,
                        const std::atomic<bool>* cancel) {
  return pipeline::run_update(options, pipeline::Dependencies{}, listener, cancel);
}

PlanReport print_programs(const PlanOptions& options) {
  return pipeline::print_programs(options, pipeline::Dependencies{});
}

UpdateReport run_continuously(const ContinuousOptions& options,
                              const std::function<void(const UpdateReport&)>& on_update,
                              const std::atomic<bool>& stop) {
  using Clock = std::chrono::steady_clock;
  pipeline::Dependencies dependencies;
  dependencies.stop = &stop;
  duck::DatabaseOptions engine;
  engine.memory_limit_bytes = options.run.engine.memory_limit_bytes;
  engine.threads = options.run.engine.threads;
  auto database = duck::Database::open(engine);
  UpdateReport report;
  if (!database.ok()) {
    report.status = UpdateStatus::kFailed;
    report.errors.push_back(database.error());
    return report;
  }
  dependencies.database = *std::move(database);
  RunOptions run = options.run;
  do {
    const auto next = Clock::now() + std::chrono::milliseconds(options.interval_ms);
    report = pipeline::run_update(run, dependencies);
    if (on_update) on_update(report);
    if (report.status != UpdateStatus::kCompleted) break;
    if (run.refresh == RefreshKind::kFullAll || run.refresh == RefreshKind::kFullSelected) {
      run.refresh = RefreshKind::kUpdate;
      run.tables.clear();
    }
    dependencies.logs_idle_updates = false;
    while (!stop && Clock::now() < next) {
      std::this_thread::sleep_for(
          std::min<Clock::duration>(std::chrono::milliseconds(50), next - Clock::now()));
    }
  } while (!stop);
  return report;
}

}  // namespace strandline
