#include <strandline/strandline.h>

#include "pipeline/pipeline.h"

namespace strandline {

UpdateReport run_update(const RunOptions& options, const ProgressListener& listener,
                        const std::atomic<bool>* cancel) {
  return pipeline::run_update(options, pipeline::Dependencies{}, listener, cancel);
}

PlanReport print_programs(const PlanOptions& options) {
  return pipeline::print_programs(options, pipeline::Dependencies{});
}

}  // namespace strandline
