// A pipeline's graph as text.
#include <fmt/format.h>

#include <algorithm>

#include "pipeline/graph.h"
#include "sql/duckdb_printer.h"

namespace strandline::pipeline {
namespace {

const char* flow_label(const Flow& flow) {
  switch (flow.kind) {
    case FlowKind::kAutoCdc:
      if (flow.takes_snapshots())
        return flow.once ? "AUTO CDC ONCE FROM SNAPSHOT" : "AUTO CDC FROM SNAPSHOT";
      return flow.once ? "AUTO CDC ONCE" : "AUTO CDC";
    case FlowKind::kAppend:
      return flow.once ? "INSERT ONCE" : "INSERT";
    case FlowKind::kMaterialize:
      return "recompute";
  }
  return "";
}

}  // namespace

std::string draw_graph(const PipelineSpec& spec, const Graph& graph) {
  std::string out =
      fmt::format("pipeline {}  ({}.{})\n", spec.name, spec.defaults.catalog, spec.defaults.schema);
  const auto sources = [](const sql::Query& query) {
    std::vector<std::string> names;
    for (const auto& use : sql::table_uses(query)) {
      std::string name = use.function.empty() ? sql::to_string(use.name) : use.function + "(…)";
      if (!use.function.empty() && !use.arguments.empty()) {
        if (const auto path = sql::literal_text(*use.arguments[0])) {
          name = fmt::format("{}('{}')", use.function, *path);
        }
      }
      if (use.stream) name.insert(0, "stream ");
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    return names;
  };
  for (const auto& dataset : graph.datasets) {
    if (!dataset.is_view()) continue;
    out += fmt::format("\n{}  [{}]\n", dataset.shown, to_string(dataset.kind));
    if (!dataset.query) continue;
    for (const auto& name : sources(*dataset.query)) out += fmt::format("  <- {}\n", name);
  }
  for (size_t i = 0; i < graph.datasets.size(); ++i) {
    const auto& dataset = graph.datasets[i];
    if (dataset.is_view()) continue;
    out += fmt::format("\n{}  [{}]\n", dataset.shown, to_string(dataset.kind));
    for (const auto& flow : graph.flows) {
      if (flow.target != i) continue;
      std::string label = flow_label(flow);
      if (flow.declaration && flow.declaration->clauses.stored_as) {
        switch (*flow.declaration->clauses.stored_as) {
          case sql::StoredAs::kScdType1:
            label += ", SCD TYPE 1";
            break;
          case sql::StoredAs::kScdType2:
            label += ", SCD TYPE 2";
            break;
          case sql::StoredAs::kBitemporal:
            label += ", BITEMPORAL";
            break;
        }
      } else if (flow.kind == FlowKind::kAutoCdc) {
        label += ", SCD TYPE 1";
      }
      out += fmt::format("  <- flow {}  [{}]\n", flow.name, label);
      if (!flow.snapshot_function.empty()) out += "       <- a function of the program\n";
      if (!flow.query) continue;
      for (const auto& name : sources(*flow.query)) out += fmt::format("       <- {}\n", name);
    }
  }
  return out;
}

}  // namespace strandline::pipeline
