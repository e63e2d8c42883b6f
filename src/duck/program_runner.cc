#include "duck/program_runner.h"

#include <charconv>

#include "base/error.h"
#include "base/invariant.h"

namespace strandline::duck {

namespace {

std::string fill_in(std::string text, const std::string& mark, const std::string& value) {
  for (size_t at = text.find(mark); at != std::string::npos;
       at = text.find(mark, at + value.size())) {
    text.replace(at, mark.size(), value);
  }
  return text;
}

int64_t to_int(const Cell& cell) {
  int64_t value = 0;
  if (cell) std::from_chars(cell->data(), cell->data() + cell->size(), value);
  return value;
}

Status run_check(Connection& connection, const cdc::Step& step) {
  SL_ASSIGN(const Rows found, connection.query(step.sql));
  if (found.rows.empty() || found.rows.front().size() < 2 || to_int(found.rows.front()[0]) == 0)
    return {};
  const std::vector<Cell>& row = found.rows.front();
  std::string message = fill_in(step.message, "{count}", *row[0]);
  message = fill_in(std::move(message), "{example}", row[1].value_or("NULL"));
  const auto kind =
      step.code == kInternalInvariant ? ErrorKind::kInternal : ErrorKind::kInvalidData;
  return Error{kind, step.code, std::move(message), {}};
}

Status run_step(Connection& connection, const cdc::Step& step) {
  bool wanted = true;
  if (!step.only_if.empty()) {
    SL_ASSIGN(const int64_t count, connection.query_int(step.only_if));
    wanted = count != 0;
  }
  if (step.kind == cdc::Step::Kind::kMake) {
    SL_TRY(connection.execute(
        fmt::format("CREATE OR REPLACE TEMP TABLE {} AS {}", step.table,
                    wanted ? step.sql : fmt::format("SELECT * FROM ({}) LIMIT 0", step.sql))));
    return {};
  }
  if (!wanted) return {};
  if (step.kind == cdc::Step::Kind::kCheck) return run_check(connection, step);
  SL_TRY(connection.execute(step.sql));
  return {};
}

}  // namespace

Status run_steps(Connection& connection, const cdc::Program& program, const OnStage& on_stage,
                 size_t first, size_t last) {
  std::string stage;
  for (size_t i = first; i < last; ++i) {
    const cdc::Step& step = program.steps[i];
    if (step.stage != stage) {
      stage = step.stage;
      if (on_stage) on_stage(stage);
    }
    SL_TRY(run_step(connection, step));
  }
  return {};
}

Result<size_t> stage_events(Connection& connection, const cdc::Program& program,
                            const OnStage& on_stage) {
  size_t count = 0;
  while (count < program.steps.size() && program.steps[count].stage == "stage") ++count;
  SL_TRY(run_steps(connection, program, on_stage, 0, count));
  return count;
}

Result<BatchMetrics> run_program(Connection& connection, const cdc::Program& program,
                                 const OnStage& on_stage, size_t first) {
  SL_TRY(run_steps(connection, program, on_stage, first, program.steps.size()));
  SL_ASSIGN(const Rows found, connection.query(program.metrics));
  if (found.rows.size() != 1 || found.rows.front().size() != 7) {
    return internal_error("AUTOCDC_METRICS", "the batch's metrics are {} rows instead of one",
                          found.rows.size());
  }
  const std::vector<Cell>& row = found.rows.front();
  BatchMetrics metrics;
  metrics.num_upserted_rows = to_int(row[0]);
  metrics.num_deleted_rows = to_int(row[1]);
  metrics.num_input_rows = to_int(row[2]);
  metrics.num_late_rows = to_int(row[3]);
  metrics.num_sequence_conflicts = to_int(row[4]);
  metrics.conflict_example = row[5].value_or("");
  metrics.num_dead_rows = to_int(row[6]);
  if (program.emptied.empty()) return metrics;
  SL_ASSIGN(const Rows emptied, connection.query(program.emptied));
  metrics.num_emptied_rows = to_int(emptied.rows.at(0).at(0));
  metrics.emptied_example = emptied.rows.at(0).at(1).value_or("");
  return metrics;
}

Status clean_up(Connection& connection, const cdc::Program& program) {
  Status first;
  for (const cdc::Step& step : program.steps) {
    if (step.kind != cdc::Step::Kind::kMake) continue;
    const Result<int64_t> done =
        connection.execute(fmt::format("DROP TABLE IF EXISTS {}", step.table));
    if (!done.ok() && first.ok()) first = done.error();
  }
  return first;
}

}  // namespace strandline::duck
