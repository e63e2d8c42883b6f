#include "engine/table_changes.h"

#include <chrono>
#include <thread>
#include <utility>

#include "base/error.h"
#include "cdf/stretches.h"
#include "delta/log_files.h"
#include "duck/change_range.h"
#include "duck/change_scan.h"
#include "engine/names.h"
#include "engine/relations.h"
#include "sql/query.h"

namespace strandline::engine {
namespace {

constexpr const char* kToleranceSetting =
    "spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled";

Result<delta::Table> existing(delta::Table table) {
  SL_ASSIGN(const bool exists, table.exists());
  if (exists) return table;
  return not_found("DELTA_MISSING_DELTA_TABLE", "there is no Delta table at {}", table.path());
}

// A table made anew has other commits, if only in the time of their files.
using NewestCommit = std::pair<delta::Version, int64_t>;  // its version and its file's time, ms

Result<NewestCommit> newest_commit(const delta::Table& table) {
  SL_ASSIGN(const auto log, delta::list_log(table.store().get(), table.path()));
  const delta::Version latest = log.latest();
  const auto found = log.commits.find(latest);
  return NewestCommit(latest, found == log.commits.end() ? 0 : found->second.modified_ms);
}

Status check_id(const delta::Table& table, const std::string& id_before, const std::string& id) {
  if (id == id_before) return {};
  return invalid_data("DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
                      "{} was dropped and made anew while its changes were followed (table id {}, "
                      "before {}): follow those of the new table from its version 0 on",
                      table.path(), id, id_before);
}

Status check_id(const delta::Table& table, const std::string& id_before) {
  SL_ASSIGN(const auto snapshot, table.snapshot());
  return check_id(table, id_before, snapshot->metadata.id);
}

// Until the version that the request starts with is there; a start in time is at once. `seen`: the
// newest commit before the last look. Errors: another table has taken the place of the one
// followed.
Status wait_for_start(const delta::Table& table, const std::string& table_id,
                      const cdf::RangeRequest& request, NewestCommit seen, int poll_ms,
                      const std::atomic<bool>& stop) {
  const auto* const next = std::get_if<delta::Version>(&request.start);
  while (next != nullptr && !stop) {
    SL_ASSIGN(const auto newest, newest_commit(table));
    if (newest.first >= *next) return {};
    if (newest != seen) SL_TRY(check_id(table, table_id));
    seen = newest;
    for (int waited = 0; waited < poll_ms && !stop; waited += 50) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
  return {};
}

Status show_plan(const Context& context, const delta::Table& table, cdf::ChangePlan plan,
                 const ShowRows& show, const std::atomic<bool>& stop) {
  SL_ASSIGN(auto queries, ChangeQueries::of(table, std::move(plan)));
  const auto next = [&]() -> Result<std::optional<std::string>> {
    if (stop) return cancelled("CANCELED", "stopped before all changes were read");
    return queries.next(*context.connection);
  };
  auto shown = show(next);
  if (shown.ok()) return {};
  auto missing = queries.find_missing();
  return missing ? *std::move(missing) : std::move(shown).error();
}

}  // namespace

Result<ChangeQueries> ChangeQueries::of(delta::Table table, cdf::ChangePlan plan) {
  constexpr int64_t kRowsAtATime = 1'000'000;
  ChangeQueries queries(std::move(table), cdf::split_plan(std::move(plan), kRowsAtATime));
  if (queries.pieces_.size() > 1) {
    if (auto missing = queries.find_missing()) return *std::move(missing);
  }
  return queries;
}

Result<std::optional<std::string>> ChangeQueries::next(duck::Connection& connection) {
  if (next_ == pieces_.size()) return std::optional<std::string>();
  const cdf::ChangePlan& piece = pieces_[next_++];
  SL_ASSIGN(scan_, scans_.next(connection, piece));
  const std::string order =
      piece.commits.size() > 1 ? fmt::format(" ORDER BY {}", cdf::kCommitVersionColumn) : "";
  return std::optional(fmt::format("SELECT * FROM {} AS changes{}", scan_->sql(), order));
}

std::optional<Error> ChangeQueries::find_missing() const {
  cdf::ChangePlan whole = pieces_.front();
  for (size_t i = 1; i < pieces_.size(); ++i) {
    const auto& commits = pieces_[i].commits;
    whole.commits.insert(whole.commits.end(), commits.begin(), commits.end());
  }
  return cdf::find_missing_file(table_.store().get(), whole);
}

Result<delta::Table> feed_table_at(const Context& context, const std::string& path) {
  sql::TableName name;
  name.parts = {path};
  name.is_path = true;
  SL_ASSIGN(auto table, context.table_at_path(name));
  return existing(std::move(table));
}

Result<delta::Table> feed_table(const Context& context, const std::string& text) {
  SL_ASSIGN(const auto name, sql::parse_table_name(text));
  return feed_table(context, name, context.defaults);
}

Result<delta::Table> feed_table(const Context& context, const sql::TableName& given,
                                const catalog::Defaults& defaults) {
  SL_ASSIGN(sql::TableName name, context.absolute_name(given));
  name.place = {};
  const auto refuse_view = [&](const std::string& view) {
    return invalid_argument("DELTA_TABLE_ONLY_OPERATION",
                            "{} is a view: table_changes needs a Delta table", view);
  };
  if (name.is_path) return feed_table_at(context, name.parts.at(0));
  if (name.parts.size() == 1 && context.temporary_views.contains(fold_name(name.parts[0])))
    return refuse_view(name.parts[0]);
  SL_ASSIGN(auto* warehouse, context.needs_warehouse());
  SL_ASSIGN(const auto qualified, warehouse->qualify(name, defaults));
  SL_ASSIGN(const auto view, warehouse->view(qualified));
  if (view) return refuse_view(qualified.to_string());
  SL_ASSIGN(auto table, warehouse->table(qualified));
  SL_ASSIGN(const bool exists, table.exists());
  if (!exists) return table_missing(*warehouse, qualified, {});
  return table;
}

bool tolerates_out_of_range(const Context& context) {
  const auto found = context.settings.find(kToleranceSetting);
  return found != context.settings.end() && same_name(found->second, "true");
}

Status show_changes(const Context& context, const ChangesOptions& options, const ShowRows& show,
                    const std::atomic<bool>& stop) {
  SL_ASSIGN(const auto table, feed_table(context, options.table));
  cdf::RangeRequest request;
  request.tolerate_out_of_range = tolerates_out_of_range(context);
  SL_ASSIGN(request.start, duck::parse_bound(*context.connection, options.from));
  if (options.to) {
    SL_ASSIGN(request.end, duck::parse_bound(*context.connection, *options.to));
  }
  // What follows may start with the next commit: so goes on what was stopped.
  if (const auto* const start = std::get_if<delta::Version>(&request.start);
      start != nullptr && options.follow) {
    SL_ASSIGN(const auto latest, table.latest_version());
    if (*start == latest + 1) request.tolerate_out_of_range = true;
  }
  std::string table_id;
  bool is_first = true;
  while (!stop) {
    SL_ASSIGN(const auto seen, newest_commit(table));
    auto plan = cdf::plan_changes(table, request);
    if (!is_first && !plan.ok()) SL_TRY(check_id(table, table_id));
    if (!plan.ok()) return std::move(plan).error();
    if (is_first) table_id = plan->definition->metadata.id;
    SL_TRY(check_id(table, table_id, plan->definition->metadata.id));
    const auto [first, last] = std::pair(plan->first, plan->last);
    // What follows is asked for only where there is something; the first answer may be empty.
    if (is_first || !plan->commits.empty()) {
      auto shown = show_plan(context, table, *std::move(plan), show, stop);
      if (!shown.ok()) {
        if (stop && shown.error().kind == ErrorKind::kCancelled && options.follow) return {};
        return shown;
      }
      is_first = false;
    }
    if (!options.follow) return {};
    if (first <= last) request.start = last + 1;
    SL_TRY(wait_for_start(table, table_id, request, seen, options.poll_ms, stop));
  }
  return {};
}

void Relations::prune_changes(const sql::Conditions& conditions, cdf::ChangePlan* plan) const {
  duck::ChangeCondition condition;
  for (const auto& part : conditions) {
    bool of_types = false;
    bool usable = sql::nondeterministic_calls(*part).empty();
    const auto columns = sql::columns_read(*part);
    for (const auto& column : columns) {
      if (same_name(column.text, cdf::kChangeTypeColumn)) {
        of_types = true;
      } else if (!same_name(column.text, cdf::kCommitVersionColumn) &&
                 !same_name(column.text, cdf::kCommitTimestampColumn)) {
        usable = false;
      }
    }
    if (!usable || columns.empty()) continue;
    const auto text = sql::print_duckdb(*part, print_options_);
    if (!text.ok()) continue;
    std::string& all = of_types ? condition.of_types : condition.of_commits;
    all += fmt::format("{}({})", all.empty() ? "" : " AND ", *text);
  }
  if (condition.of_commits.empty() && condition.of_types.empty()) return;
  // What fails here fails again, with its own error, when the query runs.
  (void)duck::prune_changes(*context_.connection, condition, plan);
}

Result<std::string> Relations::table_changes(const sql::TableUse& use,
                                             const sql::TableChanges& changes,
                                             const catalog::Defaults& defaults) {
  const auto made = [&]() -> Result<std::string> {
    SL_ASSIGN(const auto table, feed_table(context_, changes.table, defaults));
    SL_ASSIGN(auto request, duck::change_range(*context_.connection, changes, print_options_));
    request.tolerate_out_of_range = tolerates_out_of_range(context_);
    SL_ASSIGN(auto plan, cdf::plan_changes(table, request));
    prune_changes(conditions_of(use), &plan);
    SL_ASSIGN(auto scan, duck::scan_changes(*context_.connection, table, plan));
    scans_.push_back(std::move(scan));
    change_plans_.push_back(std::move(plan));
    return scans_.back()->sql();
  };
  auto text = made();
  if (!text.ok()) return at(std::move(text).error(), use.place);
  return text;
}

}  // namespace strandline::engine
