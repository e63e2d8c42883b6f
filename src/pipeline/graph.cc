#include "pipeline/graph.h"

#include <strandline/suggest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/error.h"
#include "pipeline/declared_columns.h"
#include "pipeline/expectations.h"
#include "pipeline/stream_check.h"
#include "pipeline/stream_options.h"
#include "pipeline/table_properties.h"
#include "sql/duckdb_printer.h"
#include "sql/parser.h"

namespace strandline::pipeline {
namespace {

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

std::string key_of(const catalog::QualifiedName& name) {
  return fold_name(name.catalog) + "." + fold_name(name.schema) + "." + fold_name(name.name);
}

// " (did you mean 'users'?)" or nothing.
std::string suggestion(const std::string& name, const std::vector<std::string>& known) {
  const auto near = nearest_name(name, known);
  return near ? fmt::format(" (did you mean '{}'?)", *near) : "";
}

Error at(const SourcePlace& place, Error error) {
  if (!error.place) error.place = place;
  return error;
}

bool mentions(const std::string& text, const std::string& word) {
  return lower(text).find(word) != std::string::npos;
}

// "_metadata" not followed by ".".
bool mentions_whole_metadata(const std::string& text) {
  const std::string folded = lower(text);
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
    check_views();
    check_flows();
    check_targets();
    order_flows();
    for (auto& flow : out_.graph.flows) describe(flow);
    out_.graph.doubtful.assign(doubtful_.begin(), doubtful_.end());
    sort_errors();
    return std::move(out_);
  }

 private:
  Graph& graph() { return out_.graph; }
  void fail(const SourcePlace& place, Error error) {
    out_.errors.push_back(at(place, std::move(error)));
  }

  // --- statements
  // ---------------------------------------------------------------------------------

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
      auto script = sql::parse_script(
          *text, file.display, [&](const std::string& key) -> std::optional<std::string> {
            const auto it = values.find(key);
            return it == values.end() ? std::nullopt : std::optional(it->second);
          });
      for (auto& error : script.errors) fail({file.display, 0, 0}, std::move(error));
      for (const auto& name : script.doubtful_names) doubtful_.insert(fold_name(name));
      for (auto& statement : script.statements) statements_.push_back(std::move(statement));
    }
  }

  void parse_declared() {
    for (const auto& name : declared_.doubtful_names) doubtful_.insert(fold_name(name));
    for (const auto& declared : declared_.statements) {
      auto script = sql::parse_script(declared.sql, declared.key);
      for (auto& error : script.errors) fail({declared.key, 0, 0}, std::move(error));
      for (const auto& name : script.doubtful_names) doubtful_.insert(fold_name(name));
      for (auto& statement : script.statements) {
        if (!declared.function.empty()) functions_[statements_.size()] = declared.function;
        statements_.push_back(std::move(statement));
      }
    }
  }

  std::optional<catalog::QualifiedName> qualify(const sql::TableName& name) {
    sql::TableName plain = name;
    if (plain.parts.size() == 2 && lower(plain.parts[0]) == "live")
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

  // --- flows
  // --------------------------------------------------------------------------------------

  void add_flow(const sql::Statement& statement) {
    Flow flow;
    flow.place = statement.place;
    flow.definition = statement.text;
    const auto function = functions_.find(static_cast<size_t>(&statement - statements_.data()));
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
      if (is_doubtful(name)) return {};
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

  bool is_doubtful(const sql::TableName& name) const {
    return doubtful_.count(fold_name(sql::to_string(name))) > 0 ||
           (!name.parts.empty() && doubtful_.count(fold_name(name.parts.back())) > 0);
  }

  // --- checks
  // -------------------------------------------------------------------------------------

  // Datasets of this pipeline a query names.
  std::vector<size_t> datasets_read(const sql::Query& query) {
    std::vector<size_t> out;
    for (const auto& use : sql::table_uses(query)) {
      if (!use.function.empty()) continue;
      if (const auto index = graph().find(warehouse_, use.name)) out.push_back(*index);
    }
    return out;
  }

  bool is_streaming_view(const sql::TableUse& use) {
    if (!use.function.empty()) return false;
    const auto index = graph().find(warehouse_, use.name);
    return index && graph().datasets[*index].streaming;
  }

  // Views in dependency order: a view over a streaming view streams too.
  void check_views() {
    enum class Mark { kNew, kOpen, kDone };
    std::vector<Mark> marks(graph().datasets.size(), Mark::kNew);
    std::function<void(size_t)> visit = [&](size_t index) {
      auto& dataset = graph().datasets[index];
      if (!dataset.is_view() || marks[index] == Mark::kDone) return;
      if (marks[index] == Mark::kOpen) {
        fail(dataset.place, invalid_argument("CYCLE", "view '{}' reads itself", dataset.shown));
        marks[index] = Mark::kDone;
        return;
      }
      marks[index] = Mark::kOpen;
      if (dataset.query) {
        for (const size_t read : datasets_read(*dataset.query)) visit(read);
        dataset.streaming = check_query(*dataset.query, dataset.place);
      }
      marks[index] = Mark::kDone;
    };
    for (size_t i = 0; i < marks.size(); ++i) visit(i);
  }

  // Whether the query streams; notes what it may not do.
  bool check_query(const sql::Query& query, const SourcePlace& place) {
    std::vector<Error> errors;
    const bool streaming = check_streaming(
        query, [&](const sql::TableUse& use) { return is_streaming_view(use); }, &errors);
    for (auto& error : errors) fail(place, std::move(error));
    for (const auto& call : sql::nondeterministic_calls(query)) {
      fail(call.place,
           unsupported("NONDETERMINISTIC_FUNCTION",
                       "{}() gives another value at each run, so a repeated batch would differ: "
                       "compute it where the source is written",
                       call.text));
    }
    for (const auto& use : sql::table_uses(query)) check_use(use);
    return streaming;
  }

  void check_use(const sql::TableUse& use) {
    if (!use.function.empty()) {
      if (use.function != "read_files" && use.function != "read_jdbc") {
        fail(use.place,
             unsupported("UNSUPPORTED_TABLE_FUNCTION",
                         "{}() is not supported in a pipeline: use a table, read_files or "
                         "read_jdbc",
                         use.function));
      }
      return;
    }
    const auto index = graph().find(warehouse_, use.name);
    if (!index) {
      if (!use.name.is_path && is_doubtful(use.name)) doubtful_use_ = true;
      return;
    }
    const auto& dataset = graph().datasets[*index];
    if (use.stream && dataset.kind == DatasetKind::kMaterializedView && !reads_change_feed(use)) {
      fail(use.place, invalid_argument(
                          "SOURCE_NOT_STREAMING",
                          "'{0}' is a materialized view, whose rows change: read what changes "
                          "with STREAM {0} WITH (readChangeFeed=true), or the view without STREAM",
                          dataset.shown));
    }
  }

  // Clauses of AUTO CDC; what else they may not do is check_declaration's to say.
  void check_clause(const sql::ExprPtr& expr, const char* clause, const SourcePlace& place) {
    if (expr) check_row_expression(*expr, clause, place, &out_.errors);
  }

  void check_expectation(const sql::ExprPtr& expr, const SourcePlace& place) {
    if (!expr) return;
    check_row_expression(*expr, "EXPECT", place, &out_.errors);
    for (const auto& call : sql::nondeterministic_calls(*expr)) {
      fail(call.place.line > 0 ? call.place : place,
           unsupported("NONDETERMINISTIC_FUNCTION",
                       "{}() gives another value at each run, so a repeated batch would differ: "
                       "compute it where the source is written",
                       call.text));
    }
  }

  void check_flows() {
    std::set<std::string> warned;
    for (auto& flow : graph().flows) {
      auto& target = graph().datasets[flow.target];
      if (flow.kind == FlowKind::kAutoCdc) {
        target.auto_cdc = true;
        for (auto& error : cdc::check_declaration(*flow.declaration))
          fail(flow.place, std::move(error));
        const auto& clauses = flow.declaration->clauses;
        check_clause(clauses.sequence_by, "SEQUENCE BY", clauses.sequence_place);
        check_clause(clauses.system_sequence_by, "SYSTEM SEQUENCE BY",
                     clauses.system_sequence_place);
        check_clause(clauses.delete_when, "APPLY AS DELETE WHEN", clauses.delete_place);
        check_clause(clauses.truncate_when, "APPLY AS TRUNCATE WHEN", clauses.truncate_place);
      }
    }
    for (auto& flow : graph().flows) {
      if (!flow.query) continue;
      const bool streaming = check_query(*flow.query, flow.place);
      for (const auto& use : sql::table_uses(*flow.query)) check_stream_use(use);
      if (flow.kind == FlowKind::kMaterialize) {
        if (streaming) {
          fail(flow.place,
               invalid_argument("MATERIALIZED_VIEW_STREAMS",
                                "a materialized view reads whole tables: leave STREAM out, "
                                "or declare '{}' as a streaming table",
                                graph().datasets[flow.target].shown));
        }
      } else if (takes_snapshots(flow)) {
        check_snapshot(flow, streaming);
      } else if (!streaming && !flow.once) {
        // read_files without STREAM is refused where it stands, with the word to add.
        const auto uses = sql::table_uses(*flow.query);
        const bool of_files = std::any_of(uses.begin(), uses.end(), [](const sql::TableUse& use) {
          return use.function == "read_files" || use.function == "read_jdbc";
        });
        if (!doubtful_use_ && !of_files) {
          fail(flow.place, invalid_argument("SOURCE_NOT_STREAMING",
                                            "the source of flow '{}' is not a stream: read it with "
                                            "STREAM, as in FROM STREAM(table) or FROM STREAM "
                                            "read_files('…')",
                                            flow.name));
        }
      }
      doubtful_use_ = false;
    }
    for (const auto& dataset : graph().datasets) {
      if (dataset.is_view() && dataset.query) {
        for (const auto& use : sql::table_uses(*dataset.query)) check_stream_use(use);
      }
    }
  }

  static bool takes_snapshots(const Flow& flow) {
    return flow.declaration && flow.declaration->clauses.from_snapshot;
  }

  // A snapshot is read whole, and so is what says its version.
  void check_snapshot(const Flow& flow, bool streaming) {
    const auto refuse = [&](const char* what) {
      fail(flow.place,
           invalid_argument("SNAPSHOT_OF_STREAM",
                            "{} of flow '{}' is a stream, which gives each row once: leave STREAM "
                            "out, so that the table or the files are read whole",
                            what, flow.name));
    };
    if (streaming) refuse("the snapshot");
    const auto& version = flow.declaration->clauses.snapshot_version;
    if (version && check_query(*version, flow.place)) refuse("the version query");
  }

  void check_stream_use(const sql::TableUse& use) {
    if (!use.stream || !use.function.empty()) return;
    const auto index = graph().find(warehouse_, use.name);
    if (!index || !graph().datasets[*index].auto_cdc) return;
    if (reads_change_feed(use)) return;
    for (const auto& option : use.stream_options) {
      const std::string key = lower(option.key);
      if ((key == "skipchangecommits" || key == "ignorechanges") && lower(option.value) == "true") {
        return;
      }
    }
    const auto& dataset = graph().datasets[*index];
    Error warning = invalid_argument(
        "STREAM_OF_AUTO_CDC_TARGET",
        "'{}' is written by AUTO CDC, so its rows change and this stream fails at the first "
        "change: "
        "read its change feed (readChangeFeed), or pass over such commits with STREAM {} WITH "
        "(skipChangeCommits=true)",
        dataset.shown, dataset.shown);
    warning.place = use.place;
    const auto same = [&](const Error& other) {
      return other.place && other.place->file == use.place.file &&
             other.place->line == use.place.line && other.place->column == use.place.column;
    };
    if (std::none_of(out_.warnings.begin(), out_.warnings.end(), same)) {
      out_.warnings.push_back(std::move(warning));
    }
  }

  // Columns whose values a replayed batch could not give again.
  void check_computed(const sql::ColumnDefinition& column, const Dataset& dataset,
                      const Flow* cdc) {
    if (column.identity && (cdc != nullptr || dataset.kind == DatasetKind::kMaterializedView)) {
      fail(column.name.place,
           unsupported("IDENTITY_COLUMN",
                       "IDENTITY column '{}' is not supported in {}: rows there are made again; "
                       "use it in a streaming table of INSERT flows",
                       column.name.text,
                       cdc != nullptr ? "a target of AUTO CDC" : "a materialized view"));
    }
    if (cdc == nullptr || column.default_value == nullptr) return;
    const auto calls = sql::nondeterministic_calls(*column.default_value);
    if (calls.empty()) return;
    fail(column.name.place,
         unsupported("COLUMN_DEFAULT",
                     "the DEFAULT of column '{}' uses {}(), which gives another value when an "
                     "event is read again: use a constant",
                     column.name.text, calls[0].text));
  }

  void check_targets() {
    for (size_t i = 0; i < graph().datasets.size(); ++i) {
      const auto& dataset = graph().datasets[i];
      const auto& options = dataset.options;
      for (const auto& expectation : options.expectations) {
        check_expectation(expectation.condition, expectation.name.place);
      }
      if (dataset.is_view()) continue;
      if (options.using_format && lower(options.using_format->text) != "delta") {
        fail(options.using_format->place,
             unsupported("TABLE_FORMAT", "USING {} is not supported: tables are Delta tables",
                         options.using_format->text));
      }
      if (options.location) {
        fail(dataset.place, unsupported("TABLE_LOCATION",
                                        "LOCATION is not supported for '{}': tables "
                                        "live in the warehouse",
                                        dataset.shown));
      }
      const Flow* cdc = nullptr;
      const Flow* append = nullptr;
      const Flow* snapshots = nullptr;
      const Flow* other = nullptr;  // beside it
      for (const auto& flow : graph().flows) {
        if (flow.target != i) continue;
        (flow.kind == FlowKind::kAutoCdc ? cdc : append) = &flow;
        (takes_snapshots(flow) && snapshots == nullptr ? snapshots : other) = &flow;
      }
      for (const auto& column : options.columns) {
        check_computed(column, dataset, cdc);
      }
      if (snapshots != nullptr && other != nullptr) {
        fail(other->place,
             invalid_argument("MULTIPLE_QUERIES_FOR_TABLE",
                              "'{}' follows the snapshots of flow '{}', and flow '{}' writes it "
                              "too: a snapshot flow is the only one into its target",
                              dataset.shown, snapshots->name, other->name));
      } else if (cdc != nullptr && append != nullptr) {
        fail(append->place,
             invalid_argument("MIXED_FLOWS",
                              "'{}' is written by the AUTO CDC flow '{}' and by the INSERT "
                              "flow '{}': a target takes one kind of flow",
                              dataset.shown, cdc->name, append->name));
      }
      if (cdc != nullptr) {
        for (const auto& property : options.properties) {
          check_pipeline_property(property, dataset);
          if (lower(property.key) != "delta.appendonly" || lower(property.value) != "true")
            continue;
          fail(property.place.line > 0 ? property.place : dataset.place,
               invalid_argument("APPEND_ONLY_TARGET",
                                "'delta.appendOnly' = 'true' does not go with the AUTO CDC flow "
                                "'{}', which changes and deletes rows of '{}': leave the property "
                                "out",
                                cdc->name, dataset.shown));
        }
      }
      if (cdc == nullptr && append == nullptr && doubtful_.empty()) {
        Error warning = invalid_argument("NO_FLOW", "no flow writes into '{}'", dataset.shown);
        warning.place = dataset.place;
        out_.warnings.push_back(std::move(warning));
      }
    }
  }

  // A misspelt property would have no effect, in silence.
  void check_pipeline_property(const sql::Option& property, const Dataset& dataset) {
    constexpr const char* kOfSnapshots[] = {kVersionProperty, kOutOfOrderProperty,
                                            kDeleteRatioProperty};
    // The first is ours too; the others are settings of the service that runs such pipelines.
    constexpr const char* kOfTables[] = {
        "pipelines.reset.allowed", "pipelines.autoOptimize.managed",
        "pipelines.autoOptimize.zOrderCols", "pipelines.trigger.interval", "pipelines.channel"};
    const std::string& key = property.key;
    if (!lower(key).starts_with("pipelines.")) return;
    std::vector<std::string> known(std::begin(kTombstoneProperties),
                                   std::end(kTombstoneProperties));
    known.insert(known.end(), std::begin(kOfTables), std::end(kOfTables));
    known.insert(known.end(), std::begin(kOfSnapshots), std::end(kOfSnapshots));
    if (std::find(known.begin(), known.end(), key) != known.end()) return;
    // Case does not count in these.
    for (const char* name : kOfSnapshots) {
      if (same_name(key, name)) return;
    }
    fail(property.place.line > 0 ? property.place : dataset.place,
         invalid_argument("INVALID_TABLE_PROPERTY",
                          "property '{}' of '{}' is none that targets of AUTO CDC have{}", key,
                          dataset.shown, suggestion(key, known)));
  }

  // Tables of this pipeline a query reads, through views; notes the views' text in passing.
  void tables_read(const sql::Query& query, std::set<size_t>* tables, std::set<size_t>* views) {
    for (const size_t index : datasets_read(query)) {
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
      if (takes_snapshots(flows[i]) && flows[i].declaration->clauses.snapshot_version)
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
  std::map<size_t, std::string> functions_;  // by place in statements_
  std::set<std::string> doubtful_;
  bool doubtful_use_ = false;
  std::map<std::string, size_t> by_key_;
  std::map<const sql::Statement*, size_t> dataset_of_;
  std::map<std::string, SourcePlace> flow_names_;
};

const char* flow_label(const Flow& flow) {
  switch (flow.kind) {
    case FlowKind::kAutoCdc:
      if (flow.declaration && flow.declaration->clauses.from_snapshot)
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

std::string fingerprint(const std::string& text) {
  uint64_t hash = 1469598103934665603ull;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 1099511628211ull;
  }
  return fmt::format("{:016x}", hash);
}

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
  if (plain.parts.size() == 2 && lower(plain.parts[0]) == "live")
    plain.parts.erase(plain.parts.begin());
  const auto qualified = warehouse.qualify(plain, defaults);
  if (!qualified.ok()) return {};
  for (size_t i = 0; i < datasets.size(); ++i) {
    if (datasets[i].name == *qualified) return i;
  }
  return {};
}

BuiltGraph build_graph(const PipelineSpec& spec, storage::Store& store,
                       const catalog::Warehouse& warehouse, const ProgramDeclarations& declared) {
  return Builder(spec, store, warehouse, declared).build();
}

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
