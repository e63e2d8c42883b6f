#include "pipeline/sources.h"

#include <algorithm>

#include "base/error.h"
#include "duck/connection.h"
#include "duck/describer.h"
#include "sql/duckdb_printer.h"
#include "sql/parser.h"

namespace strandline::pipeline {
namespace {

std::string place_key(const SourcePlace& place) {
  return fmt::format("{}:{}:{}", place.file, place.line, place.column);
}

bool is_live(const std::string& part) {
  return part.size() == 4 && fold_name(part) == fold_name("live");
}

}  // namespace

class SourceAnalyzer {
 public:
  SourceAnalyzer(const Graph& graph, const PipelineSpec& spec, const catalog::Warehouse& warehouse,
                 std::vector<Error>* errors)
      : graph_(graph), spec_(spec), warehouse_(warehouse), errors_(errors) {}

  FlowSources analyze(const Flow& flow) {
    const bool of_snapshot = flow.takes_snapshots();
    reads_once_ = flow.once || of_snapshot;
    reads_other_databases_ = flow.kind == FlowKind::kMaterialize ||
                             (flow.kind == FlowKind::kAppend && flow.once) || of_snapshot;
    if (flow.query) query(*flow.query, graph_.defaults, true);
    if (flow.kind != FlowKind::kMaterialize) check_streams();
    return std::move(out_);
  }

 private:
  void fail(const SourcePlace& place, Error error) {
    if (!error.place) error.place = place;
    errors_->push_back(std::move(error));
  }

  void query(const sql::Query& query, const catalog::Defaults& defaults, bool in_pipeline) {
    for (const auto& use : sql::table_uses(query)) this->use(use, defaults, in_pipeline);
  }

  void use(const sql::TableUse& use, const catalog::Defaults& defaults, bool in_pipeline) {
    const std::string at = place_key(use.place);
    if (out_.source_at_.count(at) > 0 || out_.view_at_.count(at) > 0) return;
    if (use.function == "read_files") return files(use, at);
    if (use.function == "read_jdbc") return jdbc(use, at);
    Source source;
    sql::TableUse named = use;
    if (!use.function.empty()) {
      auto changes = sql::table_changes_of(use);
      if (!changes.ok()) return fail(use.place, changes.error());
      if (!*changes) return;  // refused with the graph, or where a view is printed
      if (use.stream) {
        return fail(use.place,
                    invalid_argument("SOURCE_NOT_STREAMING",
                                     "{} is no stream: read the changes as they come with "
                                     "STREAM t WITH (readChangeFeed=true)",
                                     use.function));
      }
      source.changes = *std::move(changes);
      named.name = source.changes->table;
    }
    if (in_pipeline) {
      if (const auto index = graph_.find(warehouse_, named.name))
        return dataset(named, *index, std::move(source), at);
    }
    external(named, defaults, std::move(source), at);
  }

  // table_changes of a view.
  void refuse_view(const sql::TableUse& use, const std::string& shown) {
    fail(use.place,
         invalid_argument("DELTA_TABLE_ONLY_OPERATION", "'{}' is a view: {} needs a Delta table",
                          shown, use.function));
  }

  void add(Source source, const std::string& at) {
    out_.source_at_[at] = out_.sources_.size();
    out_.sources_.push_back(std::move(source));
  }

  std::string fresh_key(const std::string& base) {
    const int count = ++keys_[base];
    return count == 1 ? base : fmt::format("{}#{}", base, count);
  }

  void files(const sql::TableUse& use, const std::string& at) {
    auto options = read_file_options(use, spec_.root, errors_);
    if (!options) return;
    // A ONCE flow reads what is there, so that STREAM makes no difference; so does a snapshot.
    Source source;
    source.kind = SourceKind::kFiles;
    source.whole = !use.stream && !reads_once_;
    source.key = fresh_key(source.whole ? std::string(kWholeKey) + "files" : "files");
    source.shown = fmt::format("read_files('{}')", options->path);
    source.files = std::move(*options);
    source.place = use.place;
    add(std::move(source), at);
  }

  // A flow that goes on needs a stream; files read whole are something to join it with.
  void check_streams() {
    const bool streams =
        std::any_of(out_.sources_.begin(), out_.sources_.end(), [](const Source& source) {
          return source.kind == SourceKind::kStream ||
                 (source.kind == SourceKind::kFiles && !source.whole);
        });
    if (streams) return;
    for (const auto& source : out_.sources_) {
      if (!source.whole) continue;
      fail(source.place,
           unsupported("READ_FILES_BATCH",
                       "read_files('{0}') without STREAM reads all files each time, which is for "
                       "materialized views, joins with a stream, ONCE flows and snapshots: write "
                       "STREAM read_files('{0}', …), or load the files into a table",
                       source.files.path));
    }
  }

  void jdbc(const sql::TableUse& use, const std::string& at) {
    if (use.stream) {
      return fail(use.place, invalid_argument("SOURCE_NOT_STREAMING",
                                              "read_jdbc is no stream: leave STREAM out"));
    }
    // A batch that runs again must have the same rows as before; another database gives what it has
    // then.
    if (!reads_other_databases_) {
      return fail(
          use.place,
          unsupported("JDBC_IN_STREAM",
                      "read_jdbc is for materialized views, INSERT INTO ONCE flows and AUTO CDC "
                      "FROM SNAPSHOT: make a materialized view of it, and read that"));
    }
    auto read = duck::jdbc_read(use, spec_.root);
    if (!read.ok()) return fail(use.place, read.error());
    Source source;
    source.kind = SourceKind::kJdbc;
    source.key = fresh_key("jdbc");
    source.shown = fmt::format("read_jdbc('{}')", read->shown);
    source.jdbc = *std::move(read);
    source.place = use.place;
    add(std::move(source), at);
  }

  void dataset(const sql::TableUse& use, size_t index, Source source, const std::string& at) {
    const auto& dataset = graph_.datasets[index];
    if (dataset.is_view() && source.changes) return refuse_view(use, dataset.shown);
    if (dataset.is_view()) {
      if (use.stream && !dataset.streaming) {
        fail(use.place,
             invalid_argument("SOURCE_NOT_STREAMING",
                              "view '{}' is not a stream: read its table with STREAM inside the "
                              "view",
                              dataset.shown));
      }
      if (!dataset.query) return;
      FlowSources::ViewUse view{dataset.query, {}, {}};
      if (!dataset.options.expectations.empty()) view.expecting = index;
      for (const auto& column : dataset.columns) view.columns.push_back(column.text);
      out_.view_at_[at] = std::move(view);
      if (!open_views_.insert(index).second) return;  // a cycle, reported with the graph
      query(*dataset.query, graph_.defaults, true);
      open_views_.erase(index);
      return;
    }
    auto table = warehouse_.table(dataset.name);
    if (!table.ok()) return fail(use.place, table.error());
    source.dataset = index;
    source.shown = dataset.shown;
    this->table(use, std::move(source), *table, fold_name(dataset.name.to_string()), at);
  }

  void external(const sql::TableUse& use, const catalog::Defaults& defaults, Source source,
                const std::string& at) {
    source.shown = sql::to_string(use.name);
    if (use.name.is_path) {
      sql::TableName name = use.name;
      // A table that is declared on its own reads the same path wherever REFRESH is typed.
      if (spec_.of_one_table && !name.parts.empty() && name.parts[0].rfind('/', 0) != 0)
        name.parts[0] = spec_.root + "/" + name.parts[0];
      auto table = warehouse_.table(name, defaults);
      if (!table.ok()) return fail(use.place, table.error());
      const auto exists = table->exists();
      if (!exists.ok()) return fail(use.place, exists.error());
      if (!*exists) return missing(use, source.shown);
      return this->table(use, std::move(source), *table, table->path(), at);
    }
    if (use.name.parts.size() == 2 && is_live(use.name.parts[0])) return missing(use, source.shown);
    const auto name = warehouse_.qualify(use.name, defaults);
    if (!name.ok()) return fail(use.place, name.error());
    const auto view = warehouse_.view(*name);
    if (view.ok() && *view) {
      if (source.changes) return refuse_view(use, source.shown);
      if (use.stream) {
        return fail(use.place,
                    invalid_argument("SOURCE_NOT_STREAMING",
                                     "'{}' is a view, not a table: stream from the table it reads",
                                     source.shown));
      }
      auto parsed = sql::parse_query((*view)->sql, "view " + name->to_string());
      if (!parsed.ok()) return fail(use.place, parsed.error());
      FlowSources::ViewUse expanded{*parsed, (*view)->columns, {}};
      out_.view_at_[at] = expanded;
      out_.view_texts_[fold_name(name->to_string())] = fmt::format(
          "{} in {}.{}: {}", name->to_string(), (*view)->catalog, (*view)->schema, (*view)->sql);
      for (const auto& column : (*view)->columns)
        out_.view_texts_[fold_name(name->to_string())] += ", " + column;
      const catalog::Defaults inside{(*view)->catalog.empty() ? name->catalog : (*view)->catalog,
                                     (*view)->schema.empty() ? name->schema : (*view)->schema};
      query(*expanded.query, inside, false);
      return;
    }
    const auto exists = warehouse_.table_exists(*name);
    if (!exists.ok()) return fail(use.place, exists.error());
    if (!*exists) return missing(use, name->to_string());
    auto table = warehouse_.table(*name);
    if (!table.ok()) return fail(use.place, table.error());
    this->table(use, std::move(source), *table, fold_name(name->to_string()), at);
  }

  void missing(const sql::TableUse& use, const std::string& shown) {
    for (const auto& doubtful : graph_.doubtful) {
      if (doubtful == fold_name(shown) ||
          (!use.name.parts.empty() && doubtful == fold_name(use.name.parts.back()))) {
        return;
      }
    }
    fail(use.place,
         not_found("TABLE_OR_VIEW_NOT_FOUND", "there is no table or view '{}'{} in warehouse '{}'",
                   shown, spec_.of_one_table ? "" : ", neither in this pipeline nor",
                   warehouse_.root()));
  }

  // name: what the checkpoint calls the table. Names of the warehouse outlive its being moved.
  void table(const sql::TableUse& use, Source source, const delta::Table& table,
             const std::string& name, const std::string& at) {
    source.table = table;
    source.place = use.place;
    source.tolerates_out_of_range = tolerates_out_of_range(graph_.settings);
    if (source.changes) {
      source.kind = SourceKind::kChanges;
      source.key = fresh_key("changes:" + name);
    } else if (use.stream) {
      auto options = read_stream_options(use, errors_);
      if (!options) return;
      if (use.version_as_of || use.timestamp_as_of) {
        return fail(use.place, invalid_argument("STREAM_OPTION",
                                                "a stream has no VERSION or TIMESTAMP AS OF: "
                                                "use WITH (startingVersion=…)"));
      }
      source.kind = SourceKind::kStream;
      source.stream = *options;
      source.key = fresh_key("delta:" + name);
    } else {
      if (use.timestamp_as_of) {
        return fail(use.place, unsupported("TIMESTAMP_AS_OF",
                                           "TIMESTAMP AS OF is not supported in a pipeline: "
                                           "use VERSION AS OF"));
      }
      if (use.version_as_of) source.version = std::strtoll(use.version_as_of->c_str(), nullptr, 10);
      source.kind = SourceKind::kTable;
      source.key = fresh_key("table:" + name);
    }
    add(std::move(source), at);
  }

  const Graph& graph_;
  const PipelineSpec& spec_;
  const catalog::Warehouse& warehouse_;
  std::vector<Error>* errors_;
  FlowSources out_;
  std::map<std::string, int> keys_;
  std::set<size_t> open_views_;
  bool reads_other_databases_ = false;
  bool reads_once_ = false;
};

FlowSources FlowSources::analyze(const Graph& graph, const Flow& flow, const PipelineSpec& spec,
                                 const catalog::Warehouse& warehouse, std::vector<Error>* errors) {
  return SourceAnalyzer(graph, spec, warehouse, errors).analyze(flow);
}

bool FlowSources::reads_feed() const {
  return std::any_of(sources_.begin(), sources_.end(),
                     [](const Source& source) { return source.is_feed(); });
}

std::string FlowSources::texts_of_views() const {
  std::string texts;
  for (const auto& [name, text] : view_texts_) texts += text + "\n";
  return texts;
}

std::optional<size_t> FlowSources::source_of(const sql::TableUse& use) const {
  const auto found = source_at_.find(place_key(use.place));
  return found == source_at_.end() ? std::nullopt : std::optional(found->second);
}

const sql::Query* FlowSources::view_of(const sql::TableUse& use) const {
  const auto found = view_at_.find(place_key(use.place));
  return found == view_at_.end() ? nullptr : found->second.query.get();
}

std::set<size_t> FlowSources::expecting_views() const {
  std::set<size_t> views;
  for (const auto& [at, view] : view_at_) {
    if (view.expecting) views.insert(*view.expecting);
  }
  return views;
}

Result<std::string> FlowSources::print(const sql::Query& query, int64_t now_us,
                                       const RelationOf& relation_of, const CheckView& check_view,
                                       duck::Connection& connection) const {
  sql::PrintOptions options;
  options.now_us = now_us;
  options.describe = duck::describer(connection);
  const sql::Resolve resolve = [&](const sql::TableUse& use) -> Result<std::string> {
    if (use.name.parts.size() == 1 && use.name.parts[0].rfind("__strandline_", 0) == 0)
      return duck::quote_name(use.name.parts[0]);
    const std::string at = place_key(use.place);
    if (const auto source = source_at_.find(at); source != source_at_.end()) {
      return relation_of(source->second);
    }
    const auto view = view_at_.find(at);
    if (view == view_at_.end() && !use.function.empty()) {
      return unsupported("UNSUPPORTED_TABLE_FUNCTION",
                         "{}() is not supported in a pipeline, nor in a view that it reads: use a "
                         "table, table_changes, read_files or read_jdbc",
                         use.function);
    }
    if (view == view_at_.end()) {
      return not_found("TABLE_OR_VIEW_NOT_FOUND", "there is no table or view '{}'",
                       sql::to_string(use.name));
    }
    SL_ASSIGN(std::string text,
              print(*view->second.query, now_us, relation_of, check_view, connection));
    if (!view->second.columns.empty()) {
      const auto given = connection.describe("SELECT * FROM (" + text + ")");
      if (given.ok() && given->size() != view->second.columns.size()) {
        Error error =
            invalid_argument("CREATE_VIEW_COLUMN_ARITY_MISMATCH",
                             "the view '{}' names {} columns, but its query gives {}",
                             sql::to_string(use.name), view->second.columns.size(), given->size());
        error.place = use.place;
        return error;
      }
      std::string names;
      for (const auto& column : view->second.columns) {
        names += (names.empty() ? "" : ", ") + duck::quote_name(column);
      }
      text = fmt::format("SELECT * FROM ({}) AS v({})", text, names);
    }
    text = "(" + text + ")";
    return view->second.expecting ? check_view(*view->second.expecting, text) : text;
  };
  return sql::print_duckdb(query, resolve, options);
}

OutputColumns FlowSources::output_columns(const sql::Query& query,
                                          const std::function<OutputColumns(size_t)>& columns_of,
                                          std::vector<Error>* errors) const {
  const ColumnsOf of_use = [&](const sql::TableUse& use) -> OutputColumns {
    const std::string at = place_key(use.place);
    if (const auto source = source_at_.find(at); source != source_at_.end()) {
      return columns_of(source->second);
    }
    const auto view = view_at_.find(at);
    if (view == view_at_.end()) return {};
    auto columns = output_columns(*view->second.query, columns_of, errors);
    if (view->second.columns.empty()) return columns;
    std::vector<OutputColumn> renamed;
    for (const auto& column : view->second.columns) renamed.push_back({column, use.place});
    return renamed;
  };
  return pipeline::output_columns(query, of_use, errors);
}

std::string empty_relation(const Schema& schema) {
  std::string out = "(SELECT ";
  for (const auto& field : schema.fields) {
    if (&field != &schema.fields.front()) out += ", ";
    out += fmt::format("CAST(NULL AS {}) AS {}", duck::engine_type(field.type),
                       duck::quote_name(field.name));
  }
  if (schema.fields.empty()) out += "NULL AS empty";
  return out + " WHERE false)";
}

}  // namespace strandline::pipeline
