// Runs a cdc::Program on a connection.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "cdc/program.h"
#include "duck/connection.h"

namespace strandline::duck {

struct BatchMetrics {
  int64_t num_upserted_rows = 0;
  int64_t num_deleted_rows = 0;
  int64_t num_input_rows = 0;
  int64_t num_late_rows = 0;
  int64_t num_sequence_conflicts = 0;
  std::string conflict_example;
  int64_t num_dead_rows = 0;  // what Program::target_dead gives
  int64_t num_emptied_rows = 0;  // Program::emptied
  std::string emptied_example;
};

using OnStage = std::function<void(const std::string& stage)>;

// The first steps, after which Program::keys can be queried. Returns their number.
Result<size_t> stage_events(Connection& connection, const cdc::Program& program,
                            const OnStage& on_stage = {});
// Some of the steps, from `first` to before `last`.
Status run_steps(Connection& connection, const cdc::Program& program, const OnStage& on_stage,
                 size_t first, size_t last);
// Steps and checks in order from `first` on, then the metrics; the outputs can be queried until
// cleanup. Errors: a failed check is kInvalidData with the check's code, one of code
// INTERNAL_INVARIANT kInternal.
Result<BatchMetrics> run_program(Connection& connection, const cdc::Program& program,
                                 const OnStage& on_stage = {}, size_t first = 0);
Status clean_up(Connection& connection, const cdc::Program& program);

}  // namespace strandline::duck
