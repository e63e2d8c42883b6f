// Runs pipelines: from the folder a user names to committed Delta tables. The public entry point
// (include/strandline) forwards to it.
#pragma once

#include <strandline/program.h>
#include <strandline/strandline.h>

#include <atomic>
#include <memory>

#include "duck/connection.h"
#include "storage/store.h"

namespace strandline::pipeline {

// What an update works with; anything left null is made.
struct Dependencies {
  std::shared_ptr<storage::Store> store;     // default: the local file system
  std::shared_ptr<duck::Database> database;  // default: one with options.engine
};

// As strandline::run_update.
UpdateReport run_update(const RunOptions& options, const Dependencies& dependencies,
                        const ProgressListener& listener = {},
                        const std::atomic<bool>* cancel = nullptr);

// As strandline::print_programs.
PlanReport print_programs(const PlanOptions& options, const Dependencies& dependencies);

}  // namespace strandline::pipeline
