#include "pipeline/view_sources.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "cdf/readable.h"
#include "duck/change_scan.h"

namespace strandline::pipeline {

using duck::quote_name;

Result<ViewSources> ViewSources::find(const std::vector<Source>& sources,
                                      const FlowCheckpoint& checkpoint, const BatchPlan& plan,
                                      std::string* why) {
  ViewSources found;
  for (const auto& source : sources) {
    const auto before = checkpoint.pinned().find(source.key);
    const auto now = plan.pinned.find(source.key);
    const auto id_before = checkpoint.pinned_ids().find(source.key);
    const auto id_now = plan.pinned_ids.find(source.key);
    if (before == checkpoint.pinned().end() || now == plan.pinned.end() ||
        id_before == checkpoint.pinned_ids().end() || id_now == plan.pinned_ids.end()) {
      *why = fmt::format("it has not read {} before", source.shown);
      return found;
    }
    if (id_before->second != id_now->second || now->second < before->second) {
      *why = fmt::format("{} was made anew", source.shown);
      return found;
    }
    const auto commit = checkpoint.pinned_commits().find(source.key);
    if (commit != checkpoint.pinned_commits().end()) {
      SL_ASSIGN(const auto marked,
                delta::find_marked(*source.table, {before->second, commit->second}, now->second));
      if (marked != delta::MarkedCommit::kThere) {
        *why = fmt::format("{} was put back to an earlier version", source.shown);
        return found;
      }
    }
    One one;
    one.source = &source;
    SL_ASSIGN(one.now, source.table->snapshot(now->second));
    one.before = one.now;
    if (now->second > before->second) {
      cdf::RangeRequest request;
      request.start = before->second + 1;
      request.end = now->second;
      auto changes = cdf::plan_changes(*source.table, request);
      const auto old = source.table->snapshot(before->second);
      const auto& failure = changes.ok() ? old.ok() ? nullptr : &old.error() : &changes.error();
      if (failure != nullptr) {
        if (failure->kind == ErrorKind::kIo) return *failure;
        *why = fmt::format("what changed in {} is not known ({})", source.shown, failure->code);
        return found;
      }
      if (cdf::why_unreadable(**old, *one.now) || cdf::why_unreadable(*one.now, **old)) {
        *why = fmt::format("the columns of {} changed", source.shown);
        return found;
      }
      if (auto missing = cdf::find_missing_file(source.table->store().get(), *changes)) {
        *why = fmt::format("files of the changes of {} are gone", source.shown);
        return found;
      }
      one.before = *old;
      one.changes = *std::move(changes);
    }
    found.sources_.push_back(std::move(one));
  }
  return found;
}

bool ViewSources::have_row_ids() const {
  return std::all_of(sources_.begin(), sources_.end(), [](const One& one) {
    return one.before->row_tracking_enabled() && one.now->row_tracking_enabled() &&
           (one.changes.commits.empty() || one.changes.mode == cdf::FeedMode::kAutomatic);
  });
}

std::string ViewSources::row_id_column(size_t source) {
  return fmt::format("__strandline_row_{}", source);
}

Result<std::string> ViewSources::relation(duck::Connection& connection, size_t source, Rows rows,
                                          bool with_row_ids,
                                          std::vector<std::unique_ptr<duck::Scan>>* scans) {
  One& one = sources_[source];
  const delta::Table& table = *one.source->table;
  std::unique_ptr<duck::Scan> scan;
  std::string rows_sql, condition;
  if (rows == Rows::kBefore || rows == Rows::kNow) {
    duck::ScanOptions options;
    options.with_row_ids = with_row_ids;
    SL_ASSIGN(scan, duck::scan_table(connection, table, rows == Rows::kNow ? one.now : one.before,
                                     options));
    rows_sql = scan->sql();
  } else {
    // What changed is found once.
    if (one.changed_rows.empty()) {
      SL_ASSIGN(scan, duck::scan_changes(connection, table, one.changes, with_row_ids));
      one.changed_rows = scan->sql();
    }
    rows_sql = one.changed_rows;
    if (rows == Rows::kCame) {
      condition =
          fmt::format(" WHERE {} IN ('insert', 'update_postimage')", cdf::kChangeTypeColumn);
    } else if (rows == Rows::kWent) {
      condition = fmt::format(" WHERE {} IN ('delete', 'update_preimage')", cdf::kChangeTypeColumn);
    }
  }
  std::string columns;
  for (const auto& field : one.now->schema.fields)
    columns += (columns.empty() ? "" : ", ") + quote_name(field.name);
  if (with_row_ids) columns += fmt::format(", {} AS {}", duck::kRowIdColumn, row_id_column(source));
  if (scan != nullptr) scans->push_back(std::move(scan));
  return fmt::format("(SELECT {} FROM {}{})", columns, rows_sql, condition);
}

}  // namespace strandline::pipeline
