#include "pipeline/published_views.h"

#include <fmt/format.h>

#include "sql/duckdb_printer.h"
#include "sql/names.h"

namespace strandline::pipeline {
namespace {

// The view's query for other sessions: without the rows that its expectations drop.
std::string kept_rows(const Dataset& view) {
  std::string conditions;
  for (const auto& expectation : view.options.expectations) {
    if (expectation.on_violation != sql::OnViolation::kDropRow) continue;
    conditions += fmt::format("{}coalesce({}, false)", conditions.empty() ? "" : " AND ",
                              sql::print_spark(*expectation.condition));
  }
  std::string text = sql::print_spark(*view.query);
  if (conditions.empty()) return text;
  std::string names;
  for (const auto& column : view.columns) {
    names += (names.empty() ? "" : ", ") + sql::spark_name(column.text);
  }
  if (!names.empty()) names = "(" + names + ")";
  return fmt::format("SELECT * FROM ({}) AS rows_of_view{} WHERE {}", text, names, conditions);
}

}  // namespace

Status publish_views(const Context& context) {
  for (const auto& dataset : context.graph.datasets) {
    if (dataset.kind != DatasetKind::kView || dataset.streaming || !dataset.query) continue;
    bool published = true;
    for (const auto& use : sql::table_uses(*dataset.query)) {
      const auto index =
          use.function.empty() ? context.graph.find(*context.warehouse, use.name) : std::nullopt;
      if ((!use.function.empty() && use.function != "table_changes") ||
          (index && context.graph.datasets[*index].kind == DatasetKind::kTemporaryView)) {
        published = false;
      }
    }
    if (!published) continue;
    catalog::View view;
    view.sql = kept_rows(dataset);
    for (const auto& column : dataset.columns) view.columns.push_back(column.text);
    view.catalog = context.spec.defaults.catalog;
    view.schema = context.spec.defaults.schema;
    SL_ASSIGN(const auto old, context.warehouse->view(dataset.name));
    if (old && old->sql == view.sql && old->columns == view.columns &&
        old->catalog == view.catalog && old->schema == view.schema) {
      continue;
    }
    SL_TRY(context.warehouse->create_schema(dataset.name.catalog, dataset.name.schema, true));
    SL_TRY(context.warehouse->create_view(dataset.name, view, true));
  }
  return {};
}

}  // namespace strandline::pipeline
