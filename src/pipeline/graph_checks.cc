#include "pipeline/graph_checks.h"

#include <strandline/suggest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include "base/error.h"
#include "pipeline/stream_check.h"
#include "pipeline/stream_options.h"
#include "pipeline/table_properties.h"
#include "sql/duckdb_printer.h"

namespace strandline::pipeline {
namespace {

class Checker {
 public:
  Checker(const catalog::Warehouse& warehouse, BuiltGraph* built)
      : warehouse_(warehouse), built_(*built), graph_(built->graph) {}

  void check() {
    check_views();
    check_flows();
    check_targets();
  }

 private:
  void fail(const SourcePlace& place, Error error) {
    if (!error.place) error.place = place;
    built_.errors.push_back(std::move(error));
  }

  bool is_streaming_view(const sql::TableUse& use) {
    if (!use.function.empty()) return false;
    const auto index = graph_.find(warehouse_, use.name);
    return index && graph_.datasets[*index].streaming;
  }

  // Views in dependency order: a view over a streaming view streams too.
  void check_views() {
    enum class Mark { kNew, kOpen, kDone };
    std::vector<Mark> marks(graph_.datasets.size(), Mark::kNew);
    std::function<void(size_t)> visit = [&](size_t index) {
      auto& dataset = graph_.datasets[index];
      if (!dataset.is_view() || marks[index] == Mark::kDone) return;
      if (marks[index] == Mark::kOpen) {
        fail(dataset.place, invalid_argument("CYCLE", "view '{}' reads itself", dataset.shown));
        marks[index] = Mark::kDone;
        return;
      }
      marks[index] = Mark::kOpen;
      if (dataset.query) {
        for (const size_t read : graph_.datasets_read(warehouse_, *dataset.query)) visit(read);
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
      constexpr std::array kKnown = {"read_files", "read_jdbc", "table_changes",
                                     "table_changes_by_path", "range"};
      if (std::find(kKnown.begin(), kKnown.end(), use.function) == kKnown.end()) {
        fail(use.place,
             unsupported("UNSUPPORTED_TABLE_FUNCTION",
                         "{}() is not supported in a pipeline: use a table, table_changes, "
                         "read_files or read_jdbc",
                         use.function));
      }
      return;
    }
    const auto index = graph_.find(warehouse_, use.name);
    if (!index) {
      if (!use.name.is_path && graph_.is_doubtful(use.name)) doubtful_use_ = true;
      return;
    }
    const auto& dataset = graph_.datasets[*index];
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
    if (expr) check_row_expression(*expr, clause, place, &built_.errors);
  }

  void check_expectation(const sql::ExprPtr& expr, const SourcePlace& place) {
    if (!expr) return;
    check_row_expression(*expr, "EXPECT", place, &built_.errors);
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
    for (auto& flow : graph_.flows) {
      auto& target = graph_.datasets[flow.target];
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
    for (auto& flow : graph_.flows) {
      if (!flow.query) continue;
      const bool streaming = check_query(*flow.query, flow.place);
      for (const auto& use : sql::table_uses(*flow.query)) check_stream_use(use);
      if (flow.kind == FlowKind::kMaterialize) {
        if (streaming) {
          fail(flow.place,
               invalid_argument("MATERIALIZED_VIEW_STREAMS",
                                "a materialized view reads whole tables: leave STREAM out, "
                                "or declare '{}' as a streaming table",
                                graph_.datasets[flow.target].shown));
        }
      } else if (flow.takes_snapshots()) {
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
    for (const auto& dataset : graph_.datasets) {
      if (dataset.is_view() && dataset.query) {
        for (const auto& use : sql::table_uses(*dataset.query)) check_stream_use(use);
      }
    }
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
    const auto index = graph_.find(warehouse_, use.name);
    if (!index || !graph_.datasets[*index].auto_cdc) return;
    if (reads_change_feed(use)) return;
    for (const auto& option : use.stream_options) {
      const std::string key = fold_name(option.key);
      if ((key == "skipchangecommits" || key == "ignorechanges") &&
          fold_name(option.value) == "true") {
        return;
      }
    }
    const auto& dataset = graph_.datasets[*index];
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
    if (std::none_of(built_.warnings.begin(), built_.warnings.end(), same)) {
      built_.warnings.push_back(std::move(warning));
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
    for (size_t i = 0; i < graph_.datasets.size(); ++i) {
      const auto& dataset = graph_.datasets[i];
      const auto& options = dataset.options;
      for (const auto& expectation : options.expectations) {
        check_expectation(expectation.condition, expectation.name.place);
      }
      if (dataset.is_view()) continue;
      if (options.using_format && fold_name(options.using_format->text) != "delta") {
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
      for (const auto& flow : graph_.flows) {
        if (flow.target != i) continue;
        (flow.kind == FlowKind::kAutoCdc ? cdc : append) = &flow;
        (flow.takes_snapshots() && snapshots == nullptr ? snapshots : other) = &flow;
      }
      for (const auto& column : options.columns) {
        check_computed(column, dataset, cdc);
        if (column.sized_type.empty()) continue;
        fail(column.name.place,
             unsupported("UNSUPPORTED_CONSTRUCT",
                         "column '{}' of '{}' is {}, and a pipeline keeps no lengths: use STRING, "
                         "and EXPECT (length({}) <= n) where the length matters",
                         column.name.text, dataset.shown, column.sized_type, column.name.text));
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
      for (const auto& property : options.properties) check_pipeline_property(property, dataset);
      if (cdc != nullptr) {
        for (const auto& property : options.properties) {
          if (fold_name(property.key) != "delta.appendonly" || fold_name(property.value) != "true")
            continue;
          fail(property.place.line > 0 ? property.place : dataset.place,
               invalid_argument("APPEND_ONLY_TARGET",
                                "'delta.appendOnly' = 'true' does not go with the AUTO CDC flow "
                                "'{}', which changes and deletes rows of '{}': leave the property "
                                "out",
                                cdc->name, dataset.shown));
        }
      }
      if (cdc == nullptr && append == nullptr && graph_.doubtful.empty()) {
        Error warning = invalid_argument("NO_FLOW", "no flow writes into '{}'", dataset.shown);
        warning.place = dataset.place;
        built_.warnings.push_back(std::move(warning));
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
    if (!fold_name(key).starts_with("pipelines.")) return;
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
                          "property '{}' of '{}' is none that pipelines know{}", key, dataset.shown,
                          suggestion(key, known)));
  }

  const catalog::Warehouse& warehouse_;
  BuiltGraph& built_;
  Graph& graph_;
  bool doubtful_use_ = false;  // the query at hand reads what a broken statement would declare
};

}  // namespace

void check_graph(const catalog::Warehouse& warehouse, BuiltGraph* built) {
  Checker(warehouse, built).check();
}

std::string suggestion(const std::string& name, const std::vector<std::string>& known) {
  const auto near = nearest_name(name, known);
  return near ? fmt::format(" (did you mean '{}'?)", *near) : "";
}

}  // namespace strandline::pipeline
