// What a flow reads, and with which columns: the files that are new, the schemas of its sources,
// the columns of its query and the types of its clauses.
#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "duck/change_range.h"
#include "duck/engine_errors.h"
#include "pipeline/feed_flow.h"
#include "pipeline/feed_source.h"
#include "pipeline/file_reader.h"
#include "pipeline/flow_run.h"
#include "pipeline/glob.h"
#include "pipeline/stream_check.h"
#include "sql/duckdb_printer.h"

namespace strandline::pipeline {
namespace {

// Columns of a described query; types without counterpart in Delta are errors.
Result<Schema> described(const std::vector<duck::ResultColumn>& columns) {
  Schema schema;
  for (const auto& column : columns) {
    DataType type = column.type;
    if (type.id == TypeId::kVoid) {
      if (column.engine_type == "JSON" || column.engine_type == "UUID") {
        type = DataType::primitive(TypeId::kString);
      } else if (column.engine_type != "NULL" && column.engine_type != "\"NULL\"") {
        return unsupported(
            "UNSUPPORTED_TYPE",
            "column '{}' has type {}, which has no counterpart in Delta: cast it in the query",
            column.name, column.engine_type);
      }
    }
    if (schema.find(column.name)) {
      return invalid_argument("COLUMN_ALREADY_EXISTS",
                              "the query gives two columns '{}': rename one of them", column.name);
    }
    schema.fields.push_back(Field{column.name, std::move(type), true, {}});
  }
  return schema;
}

// A warning where a column list has names of the query's columns at other places: whoever wrote it
// may have meant columns by name.
std::optional<Error> reordered(const std::vector<std::string>& labels,
                               const std::vector<OutputColumn>& names, const Dataset& target) {
  for (size_t i = 0; i < labels.size() && i < names.size(); ++i) {
    if (same_name(labels[i], names[i].name)) continue;
    for (const auto& name : names) {
      if (!same_name(labels[i], name.name)) continue;
      return placed(
          invalid_argument("COLUMN_LIST_ORDER",
                           "the column list of '{}' names the query's columns in their order, so "
                           "that '{}' is the query's '{}' and not its '{}': list the columns as "
                           "the query gives them",
                           target.shown, labels[i], names[i].name, name.name),
          target.place);
    }
  }
  return {};
}

}  // namespace

// Files that were not consumed, oldest first.
Result<std::vector<ConsumedFile>> FlowRun::new_files(const Source& source,
                                                     const FlowCheckpoint* progress) const {
  const FileOptions& options = source.files;
  auto listed = list_files(*context_.store, options.location);
  if (!listed.ok()) {
    if (listed.error().kind != ErrorKind::kNotFound) return listed.error();
    return placed(not_found("PATH_NOT_FOUND", "read_files('{}'): there is no '{}'", options.path,
                            options.location),
                  source.place);
  }
  std::vector<ConsumedFile> files;
  for (const auto& info : *listed) {
    const std::string name = info.path.substr(info.path.rfind('/') + 1);
    if (options.name_pattern && !glob_match(*options.name_pattern, name)) continue;
    if (!options.recursive && !has_glob(options.location) &&
        info.path.substr(0, info.path.rfind('/')) != options.location &&
        info.path != options.location) {
      continue;
    }
    const ConsumedFile* before =
        progress == nullptr ? nullptr : progress->consumed(source.key, info.path);
    if (before != nullptr) {
      const bool changed = before->size_bytes != info.size_bytes;
      if (options.allow_overwrites ? !changed && before->modified_ms == info.modified_ms : !changed)
        continue;
      if (!options.allow_overwrites) {
        return placed(invalid_data("SOURCE_FILE_CHANGED",
                                   "file '{}' changed after it was read ({} bytes then, {} now): "
                                   "write changes into new "
                                   "files, or set allowOverwrites => true to read such files again",
                                   info.path, before->size_bytes, info.size_bytes),
                      source.place);
      }
    }
    files.push_back({info.path, info.size_bytes, info.modified_ms});
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) {
    return std::tie(a.modified_ms, a.path) < std::tie(b.modified_ms, b.path);
  });
  return files;
}

// Columns that another database has now.
Result<Schema> FlowRun::jdbc_schema(const Source& source) const {
  SL_ASSIGN(const auto relation, duck::jdbc_relation(*context_.connection, source.jdbc));
  SL_ASSIGN(const auto columns, context_.connection->describe("SELECT * FROM " + relation));
  return described(columns);
}

Result<cdf::ChangePlan> FlowRun::changes_of(const Source& source, delta::Version last,
                                            int64_t now_us) const {
  sql::PrintOptions options;
  options.now_us = now_us;
  SL_ASSIGN(auto request, duck::change_range(*context_.connection, *source.changes, options));
  request.tolerate_out_of_range = source.tolerates_out_of_range;
  const auto* const start = std::get_if<delta::Version>(&request.start);
  if (!request.end && (start == nullptr || *start <= last)) request.end = last;
  return cdf::plan_changes(*source.table, request);
}

std::optional<Schema> FlowRun::declared_schema(const Schema& query) const {
  auto declared = context_.graph.datasets[flow_.target].declared_schema();
  return declared && flow_.labels ? with_types_of(*std::move(declared), query) : declared;
}

// Columns of every source as far as they are known; planned: of tables that are not there yet.
Status FlowRun::find_source_schemas(bool fresh, const PlannedSchemas* planned) {
  const auto& sources = sources_.sources();
  schemas_.assign(sources.size(), std::nullopt);
  newest_.assign(sources.size(), nullptr);
  backlog_.clear();
  backlog_next_.clear();
  for (size_t i = 0; i < sources.size(); ++i) {
    const auto& source = sources[i];
    // Snapshots are read whole each time.
    const bool whole = takes_snapshots() || source.whole;
    const FlowCheckpoint* progress = fresh || !checkpoint_ || whole ? nullptr : &*checkpoint_;
    if (source.kind == SourceKind::kFiles) {
      // A declared schema needs no look at the files before the flow runs.
      if (source.files.schema && planned != nullptr) {
        schemas_[i] = *source.files.schema;
        continue;
      }
      if (const auto known = inferred_.find(i); known != inferred_.end()) {
        // Inferred while checking; files that came since wait for the next update.
        schemas_[i] = known->second.schema;
        for (const auto& file : known->second.files) {
          if (progress == nullptr || progress->consumed(source.key, file.path) == nullptr ||
              source.files.allow_overwrites) {
            backlog_[i].push_back(file);
          }
        }
        continue;
      }
      SL_ASSIGN(backlog_[i], new_files(source, progress));
      if (source.files.schema) {
        schemas_[i] = *source.files.schema;
        continue;
      }
      if (whole && backlog_[i].empty() && checkpoint_) {
        // No file is left of those that told the columns.
        if (const Schema* before = checkpoint_->schema(source.key)) schemas_[i] = *before;
        continue;
      }
      const Schema* known = progress == nullptr ? nullptr : progress->schema(source.key);
      // A target whose first columns are guesses could not take what they are found to be later.
      WithoutValues without_values;
      without_values.wait = sources.size() == 1 && (takes_snapshots() || !whole);
      if (whole && !fresh && checkpoint_) without_values.before = checkpoint_->schema(source.key);
      auto inferred = infer_schema(*context_.connection, *context_.store, source.files, backlog_[i],
                                   known, without_values);
      if (!inferred.ok()) {
        if (auto why = explain_failure(*context_.connection, *context_.store, source.files,
                                       Schema{}, backlog_[i], inferred.error())) {
          return *why;
        }
        return placed(inferred.error(), source.place);
      }
      if (!inferred->fields.empty()) {
        schemas_[i] = std::move(*inferred);
        inferred_[i] = {*schemas_[i], backlog_[i]};
      }
      continue;
    }
    if (source.kind == SourceKind::kJdbc) {
      auto schema = jdbc_schema(source);
      if (!schema.ok()) return placed(schema.error(), source.place);
      schemas_[i] = *std::move(schema);
      continue;
    }
    SL_ASSIGN(const bool exists, source.table->exists());
    if (exists) {
      auto snapshot = source.table->snapshot(source.version);
      if (!snapshot.ok()) return placed(snapshot.error(), source.place);
      newest_[i] = *snapshot;
      schemas_[i] = newest_[i]->schema;
      if (source.kind == SourceKind::kStream && progress != nullptr) {
        // Said before what may be wrong with other columns.
        const auto offset = progress->offset(source.key);
        const auto same = offset ? check_same_table(*newest_[i], *offset, source.shown) : Status();
        if (!same.ok()) return placed(same.error(), source.place);
      }
    }
    if (planned != nullptr && source.dataset) {
      // While checking, the table is as the flows before will leave it.
      const auto it = planned->find(*source.dataset);
      if (it != planned->end()) schemas_[i] = it->second;
    }
    if (source.kind == SourceKind::kChanges && exists &&
        (planned == nullptr || !source.dataset || source.changes->end)) {
      const auto changes = changes_of(source, newest_[i]->version, now_micros());
      if (changes.ok()) {
        schemas_[i] = changes->definition->schema;
      } else if (planned == nullptr) {
        return placed(changes.error(), source.place);
      }
      // While checking: flows before this one may bring what it asks for.
    }
    if ((source.is_feed() || source.kind == SourceKind::kChanges) && schemas_[i]) {
      auto schema = feed_schema(*schemas_[i], source.shown);
      if (!schema.ok()) return placed(schema.error(), source.place);
      schemas_[i] = *std::move(schema);
    }
  }
  return {};
}

// Columns of the flow's query, asked of empty sources; nullopt while a source's columns are
// unknown.
Result<std::optional<FlowRun::Facts>> FlowRun::find_facts(std::vector<Error>* errors) const {
  for (const auto& schema : schemas_) {
    if (!schema) return std::optional<Facts>();
  }
  const auto& sources = sources_.sources();
  std::vector<Error> found;
  const auto fail = [&](Error error) {
    error = duck::in_users_words(std::move(error), flow_.query, flow_.place);
    if (error.code == "ENGINE_ERROR") error.code = "QUERY_INVALID";
    found.push_back(std::move(error));
  };
  // All that was found, or the first of it.
  const auto failed = [&]() -> Result<std::optional<Facts>> {
    if (errors == nullptr) return found.front();
    for (auto& error : found) errors->push_back(std::move(error));
    return std::optional<Facts>();
  };
  // Names first: the engine renames what differs only in case and places errors in its own text.
  const auto names = sources_.output_columns(
      *flow_.query,
      [&](size_t i) -> OutputColumns {
        std::vector<OutputColumn> columns;
        const bool files = sources[i].kind == SourceKind::kFiles;
        const Schema schema = files ? file_columns(sources[i].files, *schemas_[i]) : *schemas_[i];
        for (const auto& field : schema.fields) columns.push_back({field.name, sources[i].place});
        return columns;
      },
      &found);
  const bool by_place = flow_.labels || (flow_.kind == FlowKind::kAppend && !flow_.by_name);
  if (names && !by_place) {
    if (auto error = repeated_column(*names)) fail(std::move(*error));
  }
  const auto relation_of = [&](size_t i) -> Result<std::string> {
    if (sources[i].kind != SourceKind::kFiles) return empty_relation(*schemas_[i]);
    FileRelationOptions options;
    options.with_metadata = flow_.mentions_metadata;
    return file_relation(*context_.connection, *context_.store, sources[i].files, *schemas_[i], {},
                         options);
  };
  const auto check_view = [&](size_t index, const std::string& text) -> Result<std::string> {
    const auto& view = context_.graph.datasets[index];
    // A mistake in the view's query is reported with the whole.
    const auto of_view = context_.connection->describe("SELECT * FROM " + text);
    if (!of_view.ok()) return text;
    for (auto& error : check_expectations(*context_.connection, view.options.expectations,
                                          view.shown, columns_of(*of_view))) {
      found.push_back(std::move(error));
    }
    return text;
  };
  auto printed =
      sources_.print(*flow_.query, now_micros(), relation_of, check_view, *context_.connection);
  if (!printed.ok()) fail(printed.error());
  if (!found.empty()) return failed();
  const std::string relation = "(" + *printed + ")";
  auto columns = context_.connection->describe("SELECT * FROM " + relation);
  if (!columns.ok()) {
    fail(columns.error());
    return failed();
  }
  Facts facts;
  if (flow_.labels) {
    const auto& target = context_.graph.datasets[flow_.target];
    auto labels = column_labels(target.options, columns->size(), target.shown);
    if (!labels.ok()) {
      fail(placed(labels.error(), target.place));
      return failed();
    }
    facts.labels = *std::move(labels);
    for (size_t i = 0; i < columns->size(); ++i) (*columns)[i].name = facts.labels[i];
    if (names) facts.warning = reordered(facts.labels, *names, target);
  }
  if (!names && !by_place) {
    // As a query of its own it keeps repeated names.
    SL_ASSIGN(const auto whole, context_.connection->describe(*printed));
    std::vector<OutputColumn> outputs;
    for (const auto& column : whole) outputs.push_back({column.name, {}});
    if (auto error = repeated_column(outputs)) {
      fail(std::move(*error));
      return failed();
    }
  }
  auto schema = described(*columns);
  if (!schema.ok()) {
    fail(schema.error());
    return failed();
  }
  facts.schema = std::move(*schema);
  if (const auto index = facts.schema.find("_metadata");
      index && same_type(facts.schema.fields[*index].type, metadata_type())) {
    facts.hidden.fields.push_back(facts.schema.fields[*index]);
    facts.schema.fields.erase(facts.schema.fields.begin() + static_cast<long>(*index));
  }
  if (flow_.kind != FlowKind::kAutoCdc) return std::optional<Facts>(std::move(facts));

  // Type of a clause's expression; nullopt when it has a mistake.
  if (sources_.reads_feed()) {
    for (auto& error : check_over_feed(*declaration_, facts.schema)) fail(std::move(error));
    if (!found.empty()) return failed();
    hide_feed_columns(&facts.schema, &facts.hidden);
  }
  const auto& clauses = declaration_->clauses;
  const auto type_of = [&](const sql::ExprPtr& expr,
                           const SourcePlace& place) -> std::optional<DataType> {
    std::vector<Error> beyond_row;  // reported with the graph
    check_row_expression(*expr, "", place, &beyond_row);
    if (!beyond_row.empty()) {
      facts.broken = true;
      return {};
    }
    sql::PrintOptions options;
    options.now_us = 0;
    const auto text = sql::print_duckdb(*expr, options);
    if (!text.ok()) {
      fail(placed(text.error(), place));
      return {};
    }
    const auto type =
        context_.connection->describe(fmt::format("SELECT {} AS c FROM {}", *text, relation));
    if (type.ok()) return (*type)[0].type;
    facts.broken = true;
    // The compiler says which column is missing, when that is the reason.
    const auto checked = cdc::make_plan(*declaration_, {facts.schema, {}, facts.hidden}, {});
    const auto reads = sql::columns_read(*expr);
    const bool said =
        std::any_of(checked.errors.begin(), checked.errors.end(), [&](const Error& error) {
          return error.code == "UNRESOLVED_COLUMN" &&
                 std::any_of(reads.begin(), reads.end(), [&](const sql::Name& name) {
                   return error.message.find("'" + name.text + "'") != std::string::npos;
                 });
        });
    if (!said) fail(placed(type.error(), place));
    return {};
  };
  if (version_type_) facts.sequence_type = *version_type_;
  if (clauses.sequence_by) {
    const auto type = type_of(clauses.sequence_by, clauses.sequence_place);
    // Any type that can be compared lets the other mistakes be found.
    facts.sequence_type = type ? *type : DataType::primitive(TypeId::kLong);
  }
  if (clauses.system_sequence_by) {
    const auto type = type_of(clauses.system_sequence_by, clauses.system_sequence_place);
    facts.system_sequence_type = type ? *type : DataType::primitive(TypeId::kLong);
  }
  const std::pair<sql::ExprPtr, SourcePlace> conditions[] = {
      {clauses.delete_when, clauses.delete_place}, {clauses.truncate_when, clauses.truncate_place}};
  for (const auto& [condition, place] : conditions) {
    if (!condition) continue;
    const auto type = type_of(condition, place);
    if (type && type->id != TypeId::kBoolean && type->id != TypeId::kVoid) {
      fail(placed(invalid_argument("NOT_A_CONDITION",
                                   "APPLY AS … WHEN needs a condition, this is {}: compare "
                                   "it with a value, as in operation = 'DELETE'",
                                   to_sql(*type)),
                  place));
    }
  }
  facts.broken = facts.broken || !found.empty();
  if (errors == nullptr && !found.empty()) return found.front();
  for (auto& error : found) errors->push_back(std::move(error));
  return std::optional<Facts>(std::move(facts));
}

}  // namespace strandline::pipeline
