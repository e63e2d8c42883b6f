#include "pipeline/graph.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/ids.h"
#include "pipeline/declared_columns.h"
#include "pipeline/expectations.h"
#include "pipeline/graph_checks.h"
#include "sql/duckdb_printer.h"
#include "sql/parser.h"
#include "sql/table_changes.h"

namespace strandline::pipeline {
namespace {

std::string key_of(const catalog::QualifiedName& name) {
  return fold_name(name.catalog) + "." + fold_name(name.schema) + "." + fold_name(name.name);
}

bool mentions(const std::string& text, const std::string& word) {
  return fold_name(text).find(word) != std::string::npos;
}

// "_metadata" not followed by ".".
bool mentions_whole_metadata(const std::string& text) {
  const std::string folded = fold_name(text);
  for (size_t i = folded.find("_metadata"); i != std::string::npos;
       i = folded.find("_metadata", i + 1)) {
    size_t after = i + 9;
    while (after < folded.size() && (folded[after] == '`' || folded[after] == ' ')) ++after;
    if (after >= folded.size() || folded[after] != '.') return true;
  }
  return false;
}

const char* refused_name(const sql::Statement& statement) {
  const auto& body = statement.body;
  if (std::holds_alternative<sql::SelectStatement>(body)) return "SELECT";
  if (std::holds_alternative<sql::Explain>(body)) return "EXPLAIN";
  if (std::holds_alternative<sql::CreateSchema>(body)) return "CREATE SCHEMA";
  if (std::holds_alternative<sql::CreateTable>(body)) return "CREATE TABLE";
  if (std::holds_alternative<sql::Insert>(body)) return "INSERT outside CREATE FLOW";
  if (std::holds_alternative<sql::Update>(body)) return "UPDATE";
  if (std::holds_alternative<sql::Delete>(body)) return "DELETE";
  if (std::holds_alternative<sql::Drop>(body)) return "DROP";
  if (std::holds_alternative<sql::Truncate>(body)) return "TRUNCATE TABLE";
  if (std::holds_alternative<sql::Describe>(body)) return "DESCRIBE";
  if (std::holds_alternative<sql::Show>(body)) return "SHOW";
  if (std::holds_alternative<sql::Use>(body)) return "USE";
  if (const auto* optimize = std::get_if<sql::Optimize>(&body))
    return optimize->purge ? "REORG TABLE" : "OPTIMIZE";
  if (std::holds_alternative<sql::Vacuum>(body)) return "VACUUM";
  if (std::holds_alternative<sql::Restore>(body)) return "RESTORE";
  if (std::holds_alternative<sql::RefreshTable>(body)) return "REFRESH";
  return "this statement";
}

class Builder {
 public:
  Builder(const PipelineSpec& spec, storage::Store& store, const catalog::Warehouse& warehouse,
          const ProgramDeclarations& declared)
      : spec_(spec), store_(store), warehouse_(warehouse), declared_(declared) {
    out_.graph.defaults = spec.defaults;
  }

  BuiltGraph build() {
    parse_files();
    parse_declared();
    for (const auto& statement : statements_) declare(statement);
    for (const auto& statement : statements_) add_flow(statement);
    check_graph(warehouse_, &out_);
    order_flows();
    for (auto& flow : out_.graph.flows) describe(flow);
    sort_errors();
    return std::move(out_);
  }

 private:
  Graph& graph() { return out_.graph; }
  void fail(const SourcePlace& place, Error error) {
    if (!error.place) error.place = place;
    out_.errors.push_back(std::move(error));
  }

  // By place; errors without one last, those of one place as they came.
  void sort_errors() {
    std::vector<size_t> order(out_.errors.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      const auto& x = out_.errors[a].place;
      const auto& y = out_.errors[b].place;
      if (!x || !y) return std::pair(!x, a) < std::pair(!y, b);
      return std::tie(x->file, x->line, x->column, a) < std::tie(y->file, y->line, y->column, b);
    });
    std::vector<Error> sorted;
    sorted.reserve(order.size());
    for (const size_t i : order) sorted.push_back(std::move(out_.errors[i]));
    out_.errors = std::move(sorted);
  }

  void add_doubtful(const std::vector<std::string>& names) {
    for (const auto& name : names) graph().doubtful.push_back(fold_name(name));
  }

  static auto values_of(const std::map<std::string, std::string>& values) {
    return [&values](const std::string& key) -> std::optional<std::string> {
      const auto it = values.find(key);
      return it == values.end() ? std::nullopt : std::optional(it->second);
    };
  }

  void parse_files() {
    for (const auto& file : spec_.files) {
      if (file.is_python()) continue;
      auto text = file.text ? Result<std::string>(*file.text) : store_.read(file.path);
      if (!text.ok()) {
        fail({file.display, 0, 0}, text.error());
        continue;
      }
      // SET of a file holds for the whole file: a first pass collects the values.
      auto values = spec_.configuration;
      const auto any = [&](const std::string& key) -> std::optional<std::string> {
        const auto it = values.find(key);
        return it == values.end() ? "" : it->second;
      };
      for (const auto& statement : sql::parse_script(*text, file.display, any).statements) {
        const auto* set = std::get_if<sql::SetOption>(&statement.body);
        if (set != nullptr && set->value) values[set->key] = *set->value;
      }
      graph().settings.insert(values.begin(), values.end());
      auto script = sql::parse_script(*text, file.display, values_of(values));
      for (auto& error : script.errors) fail({file.display, 0, 0}, std::move(error));
      add_doubtful(script.doubtful_names);
      for (auto& statement : script.statements) statements_.push_back(std::move(statement));
    }
  }

  void parse_declared() {
    declared_from_ = statements_.size();
    add_doubtful(declared_.doubtful_names);
    for (const auto& declared : declared_.statements) {
      auto script = sql::parse_script(declared.sql, declared.key, values_of(spec_.configuration));
      for (auto& error : script.errors) fail({declared.key, 0, 0}, std::move(error));
      add_doubtful(script.doubtful_names);
      for (auto& statement : script.statements) {
        if (!declared.function.empty()) functions_[statements_.size()] = declared.function;
        statements_.push_back(std::move(statement));
      }
    }
  }

  std::optional<catalog::QualifiedName> qualify(const sql::TableName& name) {
    sql::TableName plain = name;
    if (plain.parts.size() == 2 && fold_name(plain.parts[0]) == "live")
      plain.parts.erase(plain.parts.begin());
    if (plain.is_path) {
      fail(name.place, unsupported("PATH_TARGET",
                                   "a path cannot be a dataset of a pipeline: give it a "
                                   "name, as in CREATE STREAMING TABLE users"));
      return {};
    }
    auto qualified = warehouse_.qualify(plain, spec_.defaults);
    if (!qualified.ok()) {
      fail(name.place, qualified.error());
      return {};
    }
    return *qualified;
  }

  void add_dataset(const sql::Statement& statement, const sql::TableName& name, Dataset dataset) {
    auto qualified = qualify(name);
    if (!qualified) return;
    dataset.name = *qualified;
    dataset.shown = sql::to_string(name);
    dataset.text = statement.text;
    dataset.place = name.place.line > 0 ? name.place : statement.place;
    const auto [it, fresh] = by_key_.emplace(key_of(dataset.name), graph().datasets.size());
    if (!fresh) {
      const auto& first = graph().datasets[it->second];
      fail(dataset.place,
           invalid_argument("DUPLICATE_DATASET",
                            "'{}' is defined twice: first at {}:{}; keep one of them",
                            dataset.shown, first.place.file, first.place.line));
      return;
    }
    dataset_of_[&statement] = graph().datasets.size();
    graph().datasets.push_back(std::move(dataset));
  }

  void declare(const sql::Statement& statement) {
    Dataset dataset;
    if (const auto* table = std::get_if<sql::CreateStreamingTable>(&statement.body)) {
      dataset.kind = DatasetKind::kStreamingTable;
      dataset.options = table->options;
      add_dataset(statement, table->name, std::move(dataset));
    } else if (const auto* view = std::get_if<sql::CreateMaterializedView>(&statement.body)) {
      dataset.kind = DatasetKind::kMaterializedView;
      dataset.options = view->options;
      add_dataset(statement, view->name, std::move(dataset));
    } else if (const auto* plain = std::get_if<sql::CreateView>(&statement.body)) {
      dataset.kind = plain->temporary ? DatasetKind::kTemporaryView : DatasetKind::kView;
      dataset.query = plain->query;
      dataset.columns = plain->columns;
      dataset.options.expectations = plain->expectations;
      add_dataset(statement, plain->name, std::move(dataset));
    } else if (const auto* not_yet = std::get_if<sql::NotYet>(&statement.body)) {
      fail(statement.place,
           unsupported("UNSUPPORTED_STATEMENT", "{} is not supported yet", not_yet->construct));
    } else if (!std::holds_alternative<sql::CreateAutoCdcFlow>(statement.body) &&
               !std::holds_alternative<sql::CreateInsertFlow>(statement.body) &&
               !std::holds_alternative<sql::SetOption>(statement.body)) {
      fail(statement.place,
           invalid_argument(
               "PIPELINE_STATEMENT",
               "{} is not a statement of a pipeline: run it with 'strandline sql', or keep "
               "it in the explorations/ folder",
               refused_name(statement)));
    }
  }

  void add_flow(const sql::Statement& statement) {
    Flow flow;
    flow.place = statement.place;
    flow.definition = statement.text;
    const auto at_statement = static_cast<size_t>(&statement - statements_.data());
    const auto function = functions_.find(at_statement);
    if (function != functions_.end()) flow.snapshot_function = function->second;
    if (const auto* table = std::get_if<sql::CreateStreamingTable>(&statement.body)) {
      if (dataset_of_.count(&statement) == 0) return;
      flow.target = dataset_of_.at(&statement);
      flow.name = default_name(graph().datasets[flow.target]);
      if (table->auto_cdc) {
        set_auto_cdc(&flow, *table->auto_cdc);
      } else if (table->query) {
        flow.kind = FlowKind::kAppend;
        flow.query = table->query;
      } else {
        return;
      }
      take_flow(std::move(flow), false);
    } else if (const auto* view = std::get_if<sql::CreateMaterializedView>(&statement.body)) {
      if (dataset_of_.count(&statement) == 0) return;
      flow.target = dataset_of_.at(&statement);
      flow.name = default_name(graph().datasets[flow.target]);
      flow.kind = FlowKind::kMaterialize;
      // A schema that a program gives is one of columns by name.
      flow.labels = !view->options.columns.empty() && at_statement < declared_from_;
      flow.query = view->query;
      take_flow(std::move(flow), false);
    } else if (const auto* cdc = std::get_if<sql::CreateAutoCdcFlow>(&statement.body)) {
      const auto target = find_target(cdc->target);
      if (target) {
        flow.target = *target;
        flow.name = cdc->flow_name ? cdc->flow_name->text : default_name(graph().datasets[*target]);
        if (cdc->flow_name) flow.place = cdc->flow_name->place;
        set_auto_cdc(&flow, cdc->clauses);
        take_flow(std::move(flow), cdc->flow_name.has_value());
      } else {
        // Its own mistakes are reported even so.
        cdc::Declaration declaration{cdc->flow_name ? cdc->flow_name->text : "",
                                     sql::to_string(cdc->target), cdc->clauses, statement.place};
        for (auto& error : cdc::check_declaration(declaration))
          fail(statement.place, std::move(error));
      }
    } else if (const auto* insert = std::get_if<sql::CreateInsertFlow>(&statement.body)) {
      const auto target = find_target(insert->target);
      if (!target) return;
      flow.target = *target;
      flow.name = insert->flow_name.text;
      flow.place = insert->flow_name.place;
      flow.kind = FlowKind::kAppend;
      flow.once = insert->once;
      flow.by_name = insert->by_name;
      flow.query = insert->query;
      take_flow(std::move(flow), true);
    }
  }

  void set_auto_cdc(Flow* flow, const sql::AutoCdcClauses& clauses) {
    flow->kind = FlowKind::kAutoCdc;
    flow->once = clauses.once;
    flow->query = clauses.source;
    flow->declaration =
        cdc::Declaration{flow->name, graph().datasets[flow->target].shown, clauses, flow->place};
  }

  std::string default_name(const Dataset& dataset) const {
    const bool plain =
        spec_.of_one_table || (same_name(dataset.name.catalog, spec_.defaults.catalog) &&
                               same_name(dataset.name.schema, spec_.defaults.schema));
    return plain ? dataset.name.name
                 : fmt::format("{}.{}.{}", dataset.name.catalog, dataset.name.schema,
                               dataset.name.name);
  }

  void take_flow(Flow flow, bool named) {
    const auto [it, fresh] = flow_names_.emplace(fold_name(flow.name), flow.place);
    if (!fresh) {
      fail(flow.place,
           invalid_argument("DUPLICATE_FLOW_NAME",
                            "two flows are called '{}': the other is at {}:{}; {}", flow.name,
                            it->second.file, it->second.line,
                            named ? "rename one of them"
                                  : "name this one with CREATE FLOW … AS AUTO CDC INTO …"));
      return;
    }
    graph().flows.push_back(std::move(flow));
  }

  std::optional<size_t> find_target(const sql::TableName& name) {
    const auto qualified = qualify(name);
    if (!qualified) return {};
    const auto it = by_key_.find(key_of(*qualified));
    if (it == by_key_.end()) {
      if (graph().is_doubtful(name)) return {};
      std::vector<std::string> known;
      for (const auto& dataset : graph().datasets) {
        if (!dataset.is_view()) known.push_back(dataset.shown);
      }
      const std::string shown = sql::to_string(name);
      fail(name.place,
           not_found("UNKNOWN_TARGET",
                     "there is no streaming table '{}' in this pipeline{}: declare it with "
                     "CREATE OR REFRESH STREAMING TABLE {}",
                     shown, suggestion(shown, known), shown));
      return {};
    }
    const auto& dataset = graph().datasets[it->second];
    if (dataset.kind != DatasetKind::kStreamingTable) {
      fail(name.place, invalid_argument("TARGET_NOT_STREAMING_TABLE",
                                        "'{}' is a {}: a flow writes into a streaming table",
                                        dataset.shown, to_string(dataset.kind)));
      return {};
    }
    return it->second;
  }

  // Tables of this pipeline a query reads, through views; notes the views' text in passing.
  void tables_read(const sql::Query& query, std::set<size_t>* tables, std::set<size_t>* views) {
    for (const size_t index : graph().datasets_read(warehouse_, query)) {
      const auto& dataset = graph().datasets[index];
      if (!dataset.is_view()) {
        tables->insert(index);
      } else if (views->insert(index).second && dataset.query) {
        tables_read(*dataset.query, tables, views);
      }
    }
  }

  void order_flows() {
    auto& flows = graph().flows;
    std::vector<std::set<size_t>> reads(flows.size());
    for (size_t i = 0; i < flows.size(); ++i) {
      std::set<size_t> views;
      if (flows[i].query) tables_read(*flows[i].query, &reads[i], &views);
      if (flows[i].takes_snapshots() && flows[i].declaration->clauses.snapshot_version)
        tables_read(*flows[i].declaration->clauses.snapshot_version, &reads[i], &views);
      for (const size_t view : views) flows[i].definition += "\n" + graph().datasets[view].text;
      flows[i].definition +=
          expectations_text(graph().datasets[flows[i].target].options.expectations);
      flows[i].upstream.assign(reads[i].begin(), reads[i].end());
    }
    std::vector<size_t> order;
    std::vector<bool> placed(flows.size(), false);
    while (order.size() < flows.size()) {
      const size_t before = order.size();
      for (size_t i = 0; i < flows.size(); ++i) {
        if (placed[i]) continue;
        // Ready when every flow into a table it reads is placed.
        bool ready = true;
        for (size_t j = 0; j < flows.size(); ++j) {
          if (!placed[j] && reads[i].count(flows[j].target) > 0) ready = false;
        }
        if (!ready) continue;
        placed[i] = true;
        order.push_back(i);
      }
      if (order.size() == before) break;
    }
    if (order.size() < flows.size()) {
      std::string names;
      const Flow* first = nullptr;
      for (size_t i = 0; i < flows.size(); ++i) {
        if (placed[i]) continue;
        if (first == nullptr) first = &flows[i];
        names += (names.empty() ? "'" : ", '") + flows[i].name + "'";
        order.push_back(i);
      }
      fail(first->place, invalid_argument("CYCLE",
                                          "these flows wait for each other: {}; a flow cannot "
                                          "read a table that depends on its own target",
                                          names));
    }
    std::vector<Flow> sorted;
    sorted.reserve(flows.size());
    for (const size_t i : order) sorted.push_back(std::move(flows[i]));
    flows = std::move(sorted);
  }

  static void describe(Flow& flow) {
    flow.mentions_metadata = mentions(flow.definition, "_metadata");
    flow.mentions_row_index = flow.mentions_metadata && (mentions(flow.definition, "row_index") ||
                                                         mentions_whole_metadata(flow.definition));
    flow.definition = fingerprint(flow.definition);
  }

  const PipelineSpec& spec_;
  storage::Store& store_;
  const catalog::Warehouse& warehouse_;
  const ProgramDeclarations& declared_;
  BuiltGraph out_;
  std::vector<sql::Statement> statements_;
  size_t declared_from_ = 0;                 // in statements_: those of the program from here on
  std::map<size_t, std::string> functions_;  // by place in statements_
  std::map<std::string, size_t> by_key_;
  std::map<const sql::Statement*, size_t> dataset_of_;
  std::map<std::string, SourcePlace> flow_names_;
};

}  // namespace

const char* to_string(DatasetKind kind) {
  switch (kind) {
    case DatasetKind::kStreamingTable:
      return "streaming table";
    case DatasetKind::kMaterializedView:
      return "materialized view";
    case DatasetKind::kTemporaryView:
      return "temporary view";
    case DatasetKind::kView:
      return "view";
  }
  return "";
}

std::optional<Schema> Dataset::declared_schema() const {
  if (options.columns.empty()) return {};
  Schema schema;
  for (const auto& column : options.columns) schema.fields.push_back(declared_field(column));
  return schema;
}

std::optional<size_t> Graph::find(const catalog::Warehouse& warehouse,
                                  const sql::TableName& name) const {
  if (name.is_path || name.parts.empty()) return {};
  sql::TableName plain = name;
  if (plain.parts.size() == 2 && fold_name(plain.parts[0]) == "live")
    plain.parts.erase(plain.parts.begin());
  const auto qualified = warehouse.qualify(plain, defaults);
  if (!qualified.ok()) return {};
  for (size_t i = 0; i < datasets.size(); ++i) {
    if (datasets[i].name == *qualified) return i;
  }
  return {};
}

std::vector<size_t> Graph::datasets_read(const catalog::Warehouse& warehouse,
                                         const sql::Query& query) const {
  std::vector<size_t> read;
  for (const auto& use : sql::table_uses(query)) {
    const auto changes = sql::table_changes_of(use);
    const bool of_changes = changes.ok() && *changes;
    if (!use.function.empty() && !of_changes) continue;
    const auto& name = of_changes ? (*changes)->table : use.name;
    if (const auto index = find(warehouse, name)) read.push_back(*index);
  }
  return read;
}

bool Graph::is_doubtful(const sql::TableName& name) const {
  const auto among = [&](const std::string& text) {
    return std::find(doubtful.begin(), doubtful.end(), fold_name(text)) != doubtful.end();
  };
  return among(sql::to_string(name)) || (!name.parts.empty() && among(name.parts.back()));
}

BuiltGraph build_graph(const PipelineSpec& spec, storage::Store& store,
                       const catalog::Warehouse& warehouse, const ProgramDeclarations& declared) {
  return Builder(spec, store, warehouse, declared).build();
}

}  // namespace strandline::pipeline
