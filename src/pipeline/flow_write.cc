// The batches of INSERT flows and of materialized views.
#include "base/error.h"
#include "delta/column_rules.h"
#include "duck/row_rules.h"
#include "duck/table_change.h"
#include "pipeline/flow_execution.h"
#include "pipeline/flow_run.h"
#include "pipeline/view_refresh.h"

namespace strandline::pipeline {
namespace {

using duck::quote_name;

// Of an identity column, in its metadata.
const std::string kHighWaterMark = std::string(delta::kIdentityPrefix) + "highWaterMark";

}  // namespace

Result<std::unique_ptr<ViewChange>> FlowRun::refresh_view(
    const BatchPlan& plan, const std::shared_ptr<const delta::Snapshot>& view,
    const std::string& select, const std::string& rows,
    std::vector<std::unique_ptr<duck::Scan>>* scans) {
  auto& connection = *context_.connection;
  const ViewShape shape = shape_of(*flow_.query, sources_);
  const ViewRefresh refresh{flow_, sources_, *checkpoint_,   plan,          *target_,
                            view,  select,   facts_->labels, facts_->schema};
  std::string why;
  SL_ASSIGN(auto change, follow_sources(connection, refresh, shape, scans, &why));
  if (change != nullptr) {
    refresh_plan_ = shape.kind == ViewShape::Kind::kRows
                        ? "INCREMENTAL: from the rows that changed in its sources"
                        : "INCREMENTAL: only the groups that changed";
    return change;
  }
  refresh_plan_ = "FULL: " + why;
  return ViewChange::make(connection, target_->table(), view, {rows, view_key(shape, refresh), ""});
}

Status FlowRun::execute_write(const BatchPlan& plan) {
  auto& connection = *context_.connection;
  SL_ASSIGN(const auto target, target_before(plan));
  if (!target) return {};
  const bool replace = flow_.kind == FlowKind::kMaterialize || !target_->is_current(*target);
  const auto declared = declared_schema(facts_->schema);
  Schema schema = declared ? *declared : target->schema;
  // What the table knows of its columns and the declaration does not: values given so far.
  for (auto& field : schema.fields) {
    if (const auto* known = target->schema.get(field.name)) {
      const auto mark = known->metadata.find(kHighWaterMark);
      if (mark != known->metadata.end()) field.metadata.insert(*mark);
    }
  }
  if (replace && !declared) schema = facts_->schema;

  // Each target column from the query's column: by name, or by place.
  const Schema& given = facts_->schema;
  if (!flow_.by_name && given.fields.size() != schema.fields.size()) {
    return placed(
        invalid_argument("COLUMN_COUNT", "flow '{}' gives {} columns, '{}' has {}", flow_.name,
                         given.fields.size(), target_->dataset().shown, schema.fields.size()),
        flow_.place);
  }
  for (const auto& field : given.fields) {
    if (!flow_.by_name || schema.find(field.name)) continue;
    if (declared) {
      return placed(invalid_argument("COLUMN_NOT_IN_TARGET",
                                     "column '{}' of flow '{}' is not among the declared "
                                     "columns of '{}'",
                                     field.name, flow_.name, target_->dataset().shown),
                    flow_.place);
    }
    schema.fields.push_back(field);
  }
  std::string select;
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    const auto& field = schema.fields[i];
    const auto index = flow_.by_name ? given.find(field.name) : std::optional(i);
    if (!select.empty()) select += ", ";
    if (!index) {
      SL_ASSIGN(const auto value, duck::default_value(field, plan.time_us));
      select += fmt::format("{} AS {}", value, quote_name(field.name));
      continue;
    }
    const auto& from = given.fields[*index];
    const auto common = least_common_type(from.type, field.type);
    if (!common || !same_type(*common, field.type)) {
      return placed(invalid_data("CANNOT_MERGE_INCOMPATIBLE_DATA_TYPE",
                                 "column '{}' of flow '{}' is {}, '{}' has {}: cast it in the "
                                 "flow's query, or run a full "
                                 "refresh of that table",
                                 from.name, flow_.name, to_sql(from.type), target_->dataset().shown,
                                 to_sql(field.type)),
                    flow_.place);
    }
    if (same_type(from.type, field.type)) {
      select += fmt::format("q.{} AS {}", quote_name(from.name), quote_name(field.name));
    } else {
      select += fmt::format("CAST(q.{} AS {}) AS {}", quote_name(from.name),
                            duck::engine_type(field.type), quote_name(field.name));
    }
  }
  Execution execution;
  SL_ASSIGN(const auto query, print_batch(plan, &execution));
  SL_ASSIGN(const auto rows, expected_rows(schema,
                                           fmt::format("SELECT {} FROM ({}) AS {}", select, query,
                                                       row_alias(facts_->labels)),
                                           plan, &execution));
  stage("write");
  SL_ASSIGN(auto transaction, delta::Transaction::begin(target_->table(), target));
  if (!target_->is_current(*target)) {
    delta::Metadata metadata = target->metadata;
    target_->declare_kind(&metadata.configuration);
    if (metadata.configuration != target->metadata.configuration)
      transaction.set_metadata(std::move(metadata));
  }
  if (!same_schema(schema, target->schema)) transaction.set_schema(schema);
  duck::AppliedChange applied;
  duck::TableChange change{rows, "", replace, false};
  std::unique_ptr<ViewChange> view;
  if (flow_.kind == FlowKind::kMaterialize) {
    refresh_plan_ = checkpoint_->last_batch() < 0 && target->files.empty()
                        ? "FULL: it is new"
                        : "FULL: it has no rows that a difference could be told from";
    if (target_->is_current(*target) && can_compare(*target, schema)) {
      SL_ASSIGN(view, refresh_view(plan, target, select, rows, &execution.scans));
      change = view->change();
    }
  }
  SL_TRY(duck::apply_change(connection, transaction, target_->table(), target, change, &applied));
  auto unchanged = check_files_unchanged(plan);
  if (!unchanged.ok()) {
    duck::remove_files(target_->table(), applied);
    return unchanged;
  }
  tell_empty_partitions(*target,
                        view ? view->empty_partition_rows() : applied.empty_partition_rows);
  if (!transaction.has_changes()) {
    const int64_t rows_seen = view ? view->result_rows() : 0;
    add_metric("num_input_rows", static_cast<double>(rows_seen + count_expectations(execution)));
    return {};
  }
  if (!replace) transaction.set_blind_append();
  transaction.set_txn(target_->app_id(flow_.name), plan.batch);
  transaction.set_operation(flow_.kind == FlowKind::kMaterialize ? "REFRESH" : "STREAMING UPDATE",
                            {{"flow", flow_.name}, {"batch", std::to_string(plan.batch)}});
  Target::sign_commit(&transaction, plan);
  const int64_t output = applied.written_rows() - applied.copied_rows;
  const int64_t input = view ? view->result_rows() : output;
  transaction.set_metric("num_output_rows", output);
  stage("commit");
  SL_TRY(duck::commit_change(transaction, target_->table(), applied));
  committed_ = true;
  add_metric("num_output_rows", static_cast<double>(output));
  add_metric("num_input_rows", static_cast<double>(input + count_expectations(execution)));
  add_metric("num_output_bytes", static_cast<double>(applied.written_bytes()));
  return {};
}

}  // namespace strandline::pipeline
