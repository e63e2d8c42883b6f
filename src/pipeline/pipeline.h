// Runs pipelines: from the folder a user names to committed Delta tables. The public entry point
// (include/strandline) forwards to it.
#pragma once

#include <strandline/program.h>
#include <strandline/strandline.h>

#include <atomic>
#include <functional>
#include <memory>

#include "duck/connection.h"
#include "pipeline/lock.h"
#include "pipeline/spec.h"
#include "storage/store.h"

namespace strandline::pipeline {

// A pipeline that lies in no folder but in the warehouse (table_pipeline.h).
struct TableUpdate {
  PipelineSpec spec;
  std::shared_ptr<FileLock> lock;  // of the pipeline
  // Called once, when everything is checked and before anything runs; its error ends the update.
  // has_unfinished: a batch that an earlier update planned has to run first.
  std::function<Status(bool has_unfinished)> on_checked;
  // Called after what ran; has_unfinished: a batch is planned that has to run first next time. May
  // be empty.
  std::function<void(bool has_unfinished)> on_ran = nullptr;
};

// What an update works with; anything left null is made.
struct Dependencies {
  std::shared_ptr<storage::Store> store;     // default: the local file system
  std::shared_ptr<duck::Database> database;  // default: one with options.engine
  const TableUpdate* table = nullptr;        // else the pipeline is that of options.pipeline
  // Once set, the batch in hand is the last one: the update completes with what is done.
  const std::atomic<bool>* stop = nullptr;
  // Whether an update that completes without a batch is in the event log.
  bool logs_idle_updates = true;
};

// As strandline::run_update.
UpdateReport run_update(const RunOptions& options, const Dependencies& dependencies,
                        const ProgressListener& listener = {},
                        const std::atomic<bool>* cancel = nullptr);

// As strandline::print_programs.
PlanReport print_programs(const PlanOptions& options, const Dependencies& dependencies);

}  // namespace strandline::pipeline
