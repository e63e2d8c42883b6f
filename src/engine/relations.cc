#include "engine/relations.h"

#include <algorithm>
#include <charconv>

#include "base/clock.h"
#include "base/error.h"
#include "delta/find_damage.h"
#include "duck/describer.h"
#include "duck/jdbc.h"
#include "engine/names.h"
#include "pipeline/glob.h"
#include "sql/parser.h"
#include "sql/query.h"

namespace strandline::engine {

namespace {

// A relation of the scan's columns that has no rows; "" where a type has no name to the engine.
std::string stand_in(const Schema& schema, const duck::ScanOptions& options) {
  if (!options.columns.empty() || options.feed) return "";
  std::string items;
  const auto add = [&](const std::string& name, const std::string& type) {
    items += fmt::format("{}CAST(NULL AS {}) AS {}", items.empty() ? "" : ", ", type,
                         duck::quote_name(name));
  };
  for (const auto& field : schema.fields) {
    if (field.type.id == TypeId::kVoid) return "";
    add(field.name, duck::described_type(field));
  }
  if (options.with_positions) {
    add(duck::kFileColumn, "INTEGER");
    add(duck::kRowColumn, "BIGINT");
  }
  if (options.with_row_ids) {
    add(duck::kRowIdColumn, "BIGINT");
    add(duck::kRowVersionColumn, "BIGINT");
  }
  return items.empty() ? "" : "(SELECT " + items + " WHERE false)";
}

}  // namespace

Relations::Relations(const Context& context) : context_(context), store_(context.store) {
  print_options_.now_us = now_micros();
  print_options_.mark_conditions = true;
  print_options_.describe = [this](const std::string& query) { return describe(query); };
}

std::optional<std::vector<Field>> Relations::describe(const std::string& query) const {
  std::string text = query;
  for (const auto& [scan, stand_in] : stand_ins_) {
    for (size_t at = text.find(scan); at != std::string::npos;
         at = text.find(scan, at + stand_in.size())) {
      text.replace(at, scan.size(), stand_in);
    }
  }
  return duck::describer(*context_.connection)(text);
}

void Relations::add_conditions(std::map<const sql::TableUse*, sql::Conditions> conditions) {
  conditions_.merge(std::move(conditions));
}

sql::Conditions Relations::conditions_of(const sql::TableUse& use) const {
  const auto found = conditions_.find(&use);
  return found == conditions_.end() ? sql::Conditions() : found->second;
}

std::optional<delta::FilterLiteral> Relations::constant(const sql::Expr& expr) const {
  if (!sql::columns_read(expr).empty() || !sql::nondeterministic_calls(expr).empty())
    return std::nullopt;
  // Without a way to resolve tables, subqueries are an error.
  const auto text = sql::print_duckdb(expr, print_options_);
  if (!text.ok()) return std::nullopt;
  const auto value = context_.connection->query("SELECT " + *text);
  // What fails here fails again, with its own error, when the query runs.
  if (!value.ok() || value->rows.size() != 1 || value->columns.size() != 1 ||
      !value->columns[0].has_delta_type) {
    return std::nullopt;
  }
  if (!value->rows[0][0]) return delta::FilterLiteral{};
  return delta::FilterLiteral{value->columns[0].type.id, *value->rows[0][0]};
}

delta::FileFilter Relations::filter(const delta::Snapshot& snapshot, const std::string& alias,
                                    const sql::ExprPtr& condition,
                                    const std::vector<std::string>& others) const {
  if (!condition) return {};
  return file_filter(snapshot, sql::conditions_on(*condition, {alias}, others),
                     [this](const sql::Expr& expr) { return constant(expr); });
}

Result<std::string> Relations::print(const sql::Query& query) {
  // Spark hides _metadata from *: the relation has it only when the text asks for it.
  mentions_metadata_ = sql::print_spark(query).find("_metadata") != std::string::npos;
  conditions_ = sql::table_conditions(query);
  return sql::print_duckdb(
      query, [this](const sql::TableUse& use) { return resolve(use, context_.defaults); },
      print_options_);
}

Result<std::string> Relations::print(const sql::Expr& expr,
                                     const std::vector<sql::TableName>& tables,
                                     const std::string& from) {
  mentions_metadata_ = sql::print_spark(expr).find("_metadata") != std::string::npos;
  conditions_ = sql::table_conditions(expr);
  auto options = print_options_;
  options.tables = tables;
  options.from = from;
  return sql::print_duckdb(
      expr, [this](const sql::TableUse& use) { return resolve(use, context_.defaults); }, options);
}

Result<std::string> Relations::scan(const delta::Table& table,
                                    const std::shared_ptr<const delta::Snapshot>& snapshot,
                                    const duck::ScanOptions& options) {
  SL_ASSIGN(auto scan, duck::scan_table(*context_.connection, table, snapshot, options));
  scans_.push_back(std::move(scan));
  scanned_.push_back(snapshot);
  if (auto empty = stand_in(snapshot->schema, options); !empty.empty())
    stand_ins_.emplace_back(scans_.back()->sql(), std::move(empty));
  return scans_.back()->sql();
}

Result<std::shared_ptr<const delta::Snapshot>> snapshot_at(
    const Context& context, const delta::Table& table,
    const std::optional<std::string>& version_as_of,
    const std::optional<std::string>& timestamp_as_of, const sql::ExprPtr& timestamp_expr) {
  if (version_as_of) {
    const std::string& text = *version_as_of;
    delta::Version number = -1;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failed != std::errc() || end != text.data() + text.size() || number < 0) {
      return invalid_argument("INVALID_TIME_TRAVEL_SPEC",
                              "VERSION AS OF {} is not a version: write a number from 0 on", text);
    }
    return table.snapshot(number);
  }
  if (!timestamp_as_of) return table.snapshot();
  std::string time = duck::quote_literal(*timestamp_as_of);
  const auto no_time = [&](const char* what) {
    return invalid_argument("INVALID_TIME_TRAVEL_TIMESTAMP_EXPR",
                            "TIMESTAMP AS OF {} {}: write one such as '2026-01-31 12:00:00' (UTC)",
                            timestamp_expr ? *timestamp_as_of : time, what);
  };
  if (timestamp_expr) {
    if (!sql::columns_read(*timestamp_expr).empty()) return no_time("reads a column");
    sql::PrintOptions options;
    options.now_us = now_micros();
    SL_ASSIGN(time, sql::print_duckdb(*timestamp_expr, options));
  }
  const auto found = context.connection->query(
      fmt::format("SELECT epoch_ms(CAST({} AS TIMESTAMP WITH TIME ZONE))", time));
  if (!found.ok()) return no_time("is not a time");
  if (!found->rows[0][0]) return no_time("is null");
  const auto ms = context.connection->query_int("SELECT " + *found->rows[0][0]);
  if (!ms.ok()) return ms.error();
  SL_ASSIGN(const auto version, table.version_at(*ms));
  SL_ASSIGN(const auto newest, table.snapshot());
  if (*ms > newest->timestamp_ms) {
    return invalid_argument("DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
                            "TIMESTAMP AS OF {} is after the last commit of {}, which is of "
                            "{}: name a time until then, or leave it out for the newest rows",
                            format_utc_ms(*ms), table.path(), format_utc_ms(newest->timestamp_ms));
  }
  return table.snapshot(version);
}

Result<std::string> Relations::scan_at(const delta::Table& table, const sql::TableUse& use) {
  auto snapshot =
      snapshot_at(context_, table, use.version_as_of, use.timestamp_as_of, use.timestamp_expr);
  if (!snapshot.ok()) return at(std::move(snapshot).error(), use.place);
  TableRead read{table.path(), (*snapshot)->version, {}};
  const auto filter = file_filter(**snapshot, conditions_of(use),
                                  [this](const sql::Expr& expr) { return constant(expr); });
  read.selection = delta::select_files(**snapshot, filter);
  duck::ScanOptions options;
  options.files = read.selection.files;
  table_reads_.push_back(std::move(read));
  return scan(table, *snapshot, options);
}

Result<std::string> Relations::print_view(const catalog::View& view, const std::string& name,
                                          const sql::Conditions& conditions) {
  if (std::find(open_views_.begin(), open_views_.end(), name) != open_views_.end()) {
    return invalid_argument("RECURSIVE_VIEW", "the view {} reads itself", name);
  }
  auto query = sql::parse_query(view.sql, "");
  if (!query.ok()) return std::move(query).error().with_context("view " + name);
  open_views_.push_back(name);
  view_queries_.push_back(*query);
  add_conditions(sql::table_conditions(
      **query,
      view.columns.empty() ? conditions : sql::rename_columns(conditions, view.columns, **query)));
  const catalog::Defaults defaults{view.catalog, view.schema};
  auto options = print_options_;
  options.mark_conditions = false;  // checked when the view was made
  auto text = sql::print_duckdb(
      **query, [&](const sql::TableUse& use) { return resolve(use, defaults); }, options);
  open_views_.pop_back();
  if (!text.ok()) {
    auto error = std::move(text).error().with_context("view " + name);
    error.place.reset();  // a place in the view's text, not in the statement's
    return error;
  }
  if (view.columns.empty()) return "(" + *text + ")";
  std::string columns;
  for (const auto& column : view.columns) {
    columns += (columns.empty() ? "" : ", ") + duck::quote_name(column);
  }
  return fmt::format("(SELECT * FROM ({}) AS view_rows({}))", *text, columns);
}

Result<std::string> Relations::resolve(const sql::TableUse& use,
                                       const catalog::Defaults& defaults) {
  if (use.stream) {
    return at(unsupported("STREAM_OUTSIDE_PIPELINE",
                          "STREAM reads belong in a pipeline: leave STREAM out here, or put the "
                          "statement into a pipeline and use strandline run"),
              use.place);
  }
  if (!use.function.empty()) return resolve_function(use, defaults);
  const bool travels = use.version_as_of || use.timestamp_as_of;

  if (!use.name.is_path && use.name.parts.size() == 1) {
    const auto stream = context_.streams.find(fold_name(use.name.parts[0]));
    if (stream != context_.streams.end()) {
      if (travels) {
        return at(invalid_argument("TIME_TRAVEL_ON_VIEW", "{} is a stream: it has no versions",
                                   use.name.parts[0]),
                  use.place);
      }
      return duck::quote_name(stream->second);
    }
    const auto found = context_.temporary_views.find(fold_name(use.name.parts[0]));
    if (found != context_.temporary_views.end()) {
      if (travels) {
        return at(invalid_argument("TIME_TRAVEL_ON_VIEW", "{} is a view: it has no versions",
                                   use.name.parts[0]),
                  use.place);
      }
      auto text = print_view(found->second, use.name.parts[0], conditions_of(use));
      if (!text.ok()) return at(std::move(text).error(), use.place);
      return text;
    }
  }
  if (use.name.is_path) {
    SL_ASSIGN(auto table, context_.table_at_path(use.name));
    SL_ASSIGN(const bool exists, table.exists());
    if (!exists) return table_missing_at(*context_.store, table.path(), use.place);
    return scan_at(table, use);
  }
  auto warehouse = context_.needs_warehouse();
  if (!warehouse.ok()) return at(std::move(warehouse).error(), use.place);
  SL_ASSIGN(const auto qualified, (*warehouse)->qualify(use.name, defaults));
  SL_ASSIGN(const auto view, (*warehouse)->view(qualified));
  if (view) {
    if (travels) {
      return at(invalid_argument("TIME_TRAVEL_ON_VIEW", "{} is a view: it has no versions",
                                 qualified.to_string()),
                use.place);
    }
    auto text = print_view(*view, qualified.to_string(), conditions_of(use));
    if (!text.ok()) return at(std::move(text).error(), use.place);
    return text;
  }
  SL_ASSIGN(auto table, (*warehouse)->table(qualified));
  SL_ASSIGN(const bool exists, table.exists());
  if (!exists) return table_missing(**warehouse, qualified, use.place);
  return scan_at(table, use);
}

Result<std::string> Relations::resolve_function(const sql::TableUse& use,
                                                const catalog::Defaults& defaults) {
  if (use.function == "read_files") return read_files(use);
  if (use.function == "read_csv" || use.function == "read_json" || use.function == "read_parquet") {
    sql::TableUse files = use;
    files.function = "read_files";
    SL_ASSIGN(auto format, sql::parse_expression("'" + use.function.substr(5) + "'", ""));
    files.named_arguments.emplace_back("format", std::move(format));
    return read_files(files);
  }
  if (use.function == "read_jdbc") {
    SL_ASSIGN(const auto read, duck::jdbc_read(use, context_.directory));
    auto text = duck::jdbc_relation(*context_.connection, read);
    if (!text.ok()) return at(std::move(text).error(), use.place);
    return text;
  }
  if (use.function == "event_log") return event_log(use);
  if (use.function == "range") return number_range(use);
  SL_ASSIGN(const auto changes, sql::table_changes_of(use));
  if (changes) return table_changes(use, *changes, defaults);
  return at(unsupported("UNRESOLVABLE_TABLE_VALUED_FUNCTION",
                        "the table function {} is not supported here: read_files, read_csv, "
                        "read_json, read_parquet, read_jdbc, table_changes, table_changes_by_path, "
                        "event_log and range are",
                        use.function),
            use.place);
}

// A batch read of files: all that are there now, with the options of a streaming read.
Result<std::string> Relations::read_files(const sql::TableUse& use) {
  std::vector<Error> errors;
  const auto options = pipeline::read_file_options(use, context_.directory, &errors);
  if (!errors.empty()) return errors.front();
  if (!options)
    return internal_error("INTERNAL_ERROR", "read_files gave neither options nor errors");
  auto& store = *context_.store;
  SL_ASSIGN(const auto found, pipeline::list_files(store, options->location));
  std::vector<pipeline::ConsumedFile> files;
  for (const auto& file : found) {
    const auto name = file.path.substr(file.path.rfind('/') + 1);
    if (options->name_pattern && !pipeline::glob_match(*options->name_pattern, name)) continue;
    files.push_back({file.path, file.size_bytes, file.modified_ms});
  }
  Schema schema;
  if (options->schema) {
    schema = *options->schema;
  } else {
    SL_ASSIGN(schema,
              pipeline::infer_schema(*context_.connection, store, *options, files, nullptr));
  }
  pipeline::FileRelationOptions relation;
  relation.with_metadata = mentions_metadata_;
  relation.with_row_index = mentions_metadata_;
  auto text =
      pipeline::file_relation(*context_.connection, store, *options, schema, files, relation);
  if (!text.ok()) return at(std::move(text).error(), use.place);
  file_reads_.push_back({*options, std::move(schema), std::move(files)});
  return text;
}

Error Relations::explain(Error error, duck::Connection& connection) const {
  for (const auto& read : file_reads_) {
    auto better = pipeline::explain_failure(connection, *store_, read.options, read.schema,
                                            read.files, error);
    if (better) return *std::move(better);
  }
  // A damaged file may ask for more memory than there is.
  if (error.code != "ENGINE_ERROR" && error.code != "OUT_OF_MEMORY") return error;
  for (const auto& plan : change_plans_) {
    auto better = cdf::find_missing_file(store_.get(), plan);
    if (better) return *std::move(better);
  }
  for (const auto& snapshot : scanned_) {
    auto better = delta::find_damage(store_.get(), *snapshot);
    if (!better) better = find_bad_partition(*snapshot, connection);
    if (better) return *std::move(better);
  }
  return error;
}

std::optional<Error> Relations::find_bad_partition(const delta::Snapshot& snapshot,
                                                   duck::Connection& connection) {
  const bool mapped = snapshot.column_mapping_mode() != "none";
  for (const auto& name : snapshot.metadata.partition_columns) {
    const auto* field = snapshot.schema.get(name);
    if (field == nullptr || field->type.id == TypeId::kBinary) continue;
    const auto stored = mapped ? delta::Snapshot::physical_name(*field) : field->name;
    std::set<std::string> tried;
    for (const auto& file : snapshot.files) {
      const auto value = file.partition_values.find(stored);
      if (value == file.partition_values.end() || !value->second) continue;
      if (!tried.insert(*value->second).second) continue;
      const auto fits = connection.query_int(fmt::format("SELECT count(TRY_CAST({} AS {}))",
                                                         duck::quote_literal(*value->second),
                                                         duck::engine_type(field->type)));
      if (!fits.ok() || *fits == 1) continue;
      return corrupt("DELTA_PARTITION_VALUE_INVALID",
                     "version {} of table {} has a file whose partition value {} = '{}' is no {}: "
                     "{}",
                     snapshot.version, snapshot.table_path, field->name, *value->second,
                     to_sql(field->type), file.path);
    }
  }
  return std::nullopt;
}

Result<std::string> Relations::number_range(const sql::TableUse& use) {
  if (use.arguments.empty() || use.arguments.size() > 3 || !use.named_arguments.empty()) {
    return at(
        invalid_argument("WRONG_NUM_ARGS", "range takes (end), (start, end) or (start, end, step)"),
        use.place);
  }
  std::string arguments;
  for (const auto& argument : use.arguments) {
    SL_ASSIGN(const auto text, sql::print_duckdb(*argument));
    arguments += (arguments.empty() ? "" : ", ") + text;
  }
  return fmt::format("(SELECT range AS id FROM range({}))", arguments);
}

// event_log('pipeline'): the log of a pipeline of this warehouse.
Result<std::string> Relations::event_log(const sql::TableUse& use) {
  SL_ASSIGN(auto* warehouse, context_.needs_warehouse());
  const auto name = use.arguments.size() == 1 ? sql::literal_text(*use.arguments[0]) : std::nullopt;
  if (!name || !use.named_arguments.empty()) {
    return at(invalid_argument("WRONG_NUM_ARGS",
                               "event_log takes a pipeline's name, as in event_log('p')"),
              use.place);
  }
  const auto path = warehouse->pipeline_directory(*name) + "/event_log";
  SL_ASSIGN(auto table, warehouse->table(sql::TableName{{path}, true, {}}, context_.defaults));
  SL_ASSIGN(const bool exists, table.exists());
  if (!exists) {
    return at(not_found("PIPELINE_NOT_FOUND", "no pipeline called {} has run in the warehouse {}",
                        *name, warehouse->root()),
              use.place);
  }
  return scan_at(table, use);
}

}  // namespace strandline::engine
