#include "pipeline/compaction.h"

#include "duck/optimize.h"

namespace strandline::pipeline {
namespace {

// Whether a table whose newest version is this one is looked at after so many commits.
bool is_time(delta::Version version, int64_t commits) {
  return version / kCompactionInterval != (version - commits) / kCompactionInterval;
}

Status compact(const Context& context, const delta::Table& table) {
  duck::OptimizeOptions options;
  options.automatic = true;
  const auto done = duck::optimize(*context.connection, table, options);
  if (done.ok() || done.error().kind == ErrorKind::kConflict) return {};
  return done.error();
}

}  // namespace

Status compact_if_needed(const Context& context, const Target& target, int64_t batches) {
  const delta::Table& table = target.table();
  const delta::Table state = target.state_table();
  SL_ASSIGN(const auto version, table.latest_version());
  SL_ASSIGN(const bool has_state, state.exists());
  delta::Version state_version = 0;
  if (has_state) {
    SL_ASSIGN(state_version, state.latest_version());
  }
  const bool state_is_due = has_state && is_time(state_version, batches);
  if (!is_time(version, batches) && !state_is_due) return {};
  SL_ASSIGN(const auto snapshot, table.snapshot(version));
  const auto is_off = [&](const char* key) {
    return fold_name(snapshot->property(key).value_or("")) == "false";
  };
  if (is_off("delta.autoOptimize.autoCompact")) return {};
  if (is_time(version, batches)) SL_TRY(compact(context, table));
  if (!state_is_due || is_off(duck::kStateAutoCompactProperty)) return {};
  return compact(context, state);
}

}  // namespace strandline::pipeline
