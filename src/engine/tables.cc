#include "engine/tables.h"

#include <strandline/suggest.h>

#include <filesystem>

#include "base/error.h"
#include "base/json.h"
#include "duck/delta_io.h"
#include "duck/table_change.h"
#include "engine/assignment.h"
#include "engine/relations.h"
#include "pipeline/context.h"
#include "sql/duckdb_printer.h"
#include "sql/lexer.h"
#include "sql/parser.h"
#include "sql/query.h"

namespace strandline::engine {
namespace {

Error at(Error error, const SourcePlace& place) {
  if (!error.place && place.line > 0) error.place = place;
  return error;
}

// DML on a table that a pipeline owns would be undone or misread by its next update.
Status refuse_pipeline_table(const FoundTable& found, const char* verb) {
  if (!belongs_to_pipeline(*found.snapshot)) return {};
  return unsupported("DML_ON_PIPELINE_TABLE",
                     "{} on {} is not supported: the table is written by the pipeline {}. Change "
                     "its source and run the pipeline",
                     verb, found.name,
                     found.snapshot->property(pipeline::kPipelineNameProperty)
                         .value_or(*found.snapshot->property(pipeline::kPipelineIdProperty)));
}

// Applies a change to the transaction and sets its metrics; gives the files that were written.
Result<std::vector<delta::AddFile>> apply_change(const Context& context, const delta::Table& table,
                                                 delta::Transaction& transaction,
                                                 const std::shared_ptr<const delta::Snapshot>& base,
                                                 const duck::TableChange& change) {
  std::vector<delta::AddFile> written;
  auto applied =
      duck::apply_change(*context.connection, transaction, table, base, change, &written);
  if (!applied.ok()) {
    duck::remove_files(table, written);
    return std::move(applied).error();
  }
  int64_t bytes = 0;
  int64_t rows = 0;
  for (const auto& file : written) {
    bytes += file.size_bytes;
    rows += delta::num_records(file).value_or(0);
  }
  transaction.set_metric("numFiles", static_cast<int64_t>(written.size()));
  transaction.set_metric("numOutputRows", rows);
  transaction.set_metric("numOutputBytes", bytes);
  return written;
}

// A temporary table of the engine for the rows a statement touches; gone at the end of the scope.
class TouchedRows {
 public:
  explicit TouchedRows(duck::Connection& connection) : connection_(connection) {}
  ~TouchedRows() { (void)connection_.execute("DROP TABLE IF EXISTS " + name()); }
  TouchedRows(const TouchedRows&) = delete;
  TouchedRows& operator=(const TouchedRows&) = delete;

  // Keeps the rows of a query that gives their positions among its columns; returns their number.
  Result<int64_t> keep(const std::string& query) {
    SL_TRY(
        connection_.execute(fmt::format("CREATE OR REPLACE TEMP TABLE {} AS {}", name(), query)));
    return connection_.query_int("SELECT count(*) FROM " + name());
  }
  static std::string name() { return duck::quote_name("__strandline_touched"); }
  static std::string positions() {
    return fmt::format("SELECT {}, {} FROM {}", duck::kFileColumn, duck::kRowColumn, name());
  }

 private:
  duck::Connection& connection_;
};

std::string json_array(const std::vector<std::string>& texts) {
  JsonWriter json;
  json.begin_array();
  for (const auto& text : texts) json.value(text);
  json.end_array();
  return json.take();
}

Result<Field> new_field(const sql::ColumnDefinition& column) {
  if (column.default_value != nullptr) {
    return at(unsupported("UNSUPPORTED_FEATURE.TABLE_COLUMN_DEFAULT",
                          "DEFAULT of column {} is not supported: leave it out", column.name.text),
              column.name.place);
  }
  if (column.generated_as != nullptr) {
    return at(unsupported("UNSUPPORTED_FEATURE.TABLE_GENERATED_COLUMN",
                          "GENERATED ALWAYS of column {} is not supported: compute it in a view",
                          column.name.text),
              column.name.place);
  }
  Field field{column.name.text, column.type, column.nullable, {}};
  if (column.comment) field.metadata["comment"] = json_string(*column.comment);
  return field;
}

Result<std::vector<std::string>> known_columns(const std::vector<sql::Name>& names,
                                               const Schema& schema, const char* clause) {
  std::vector<std::string> out;
  for (const auto& name : names) {
    const auto* field = schema.get(name.text);
    if (field == nullptr) {
      std::vector<std::string> known;
      known.reserve(schema.fields.size());
      for (const auto& each : schema.fields) known.push_back(each.name);
      const auto near = nearest_name(name.text, known);
      return at(invalid_argument("UNRESOLVED_COLUMN.WITH_SUGGESTION",
                                 "{} names {}, which is no column of the table{}", clause,
                                 name.text, near ? ": did you mean " + *near + "?" : ""),
                name.place);
    }
    out.push_back(field->name);
  }
  return out;
}

Status refuse_unknown_table_options(const sql::TableOptions& options) {
  if (options.using_format && !same_name(options.using_format->text, "delta")) {
    return at(unsupported("UNSUPPORTED_DATA_SOURCE",
                          "USING {} is not supported: use DELTA, or leave it out",
                          options.using_format->text),
              options.using_format->place);
  }
  if (!options.expectations.empty()) {
    return at(invalid_argument("UNSUPPORTED_CONSTRAINT",
                               "EXPECT belongs to streaming tables and views of a pipeline"),
              options.expectations[0].name.place);
  }
  if (!options.checks.empty()) {
    return at(unsupported("UNSUPPORTED_FEATURE.CHECK_CONSTRAINT",
                          "CONSTRAINT {} CHECK is not supported: leave it out",
                          options.checks[0].first.text),
              options.checks[0].first.place);
  }
  return {};
}

// Columns of CREATE TABLE: declared, or those of its query.
Result<Schema> new_schema(const sql::CreateTable& statement,
                          const std::vector<duck::ResultColumn>& given) {
  Schema schema;
  const auto add = [&schema](Field field, const SourcePlace& place) -> Status {
    if (schema.find(field.name)) {
      return at(
          invalid_argument("COLUMN_ALREADY_EXISTS",
                           "two columns are called {}: name one of them differently", field.name),
          place);
    }
    schema.fields.push_back(std::move(field));
    return {};
  };
  for (const auto& column : statement.options.columns) {
    SL_ASSIGN(auto field, new_field(column));
    SL_TRY(add(std::move(field), column.name.place));
  }
  if (!schema.fields.empty() || statement.query == nullptr) {
    if (schema.fields.empty()) {
      return at(
          invalid_argument("DELTA_EMPTY_SCHEMA", "{} has no columns: declare some or add AS SELECT",
                           sql::to_string(statement.name)),
          statement.name.place);
    }
    return schema;
  }
  for (const auto& column : given) {
    SL_ASSIGN(auto type, storable_type(column));
    SL_TRY(add(Field{column.name, std::move(type), true, {}}, statement.name.place));
  }
  return schema;
}

// A table handle for CREATE TABLE, and what to register once it exists.
struct Place {
  delta::Table table;
  std::string name;
  std::optional<catalog::QualifiedName> external;  // LOCATION, not registered yet
};

Result<Place> place_of(const Context& context, catalog::Warehouse& warehouse,
                       const sql::CreateTable& statement) {
  const auto full = context.absolute_name(statement.name);
  if (full.is_path) {
    SL_ASSIGN(auto table, warehouse.table(full, context.defaults));
    return Place{std::move(table), sql::to_string(full), {}};
  }
  SL_ASSIGN(const auto qualified, warehouse.qualify(full, context.defaults));
  SL_ASSIGN(const bool known_schema, warehouse.schema_exists(qualified.catalog, qualified.schema));
  if (!known_schema) {
    return at(
        not_found("SCHEMA_NOT_FOUND", "there is no schema {}.{}: CREATE SCHEMA {}.{} makes it",
                  qualified.catalog, qualified.schema, qualified.catalog, qualified.schema),
        statement.name.place);
  }
  SL_ASSIGN(const auto view, warehouse.view(qualified));
  if (view) {
    return at(already_exists("TABLE_OR_VIEW_ALREADY_EXISTS", "{} is a view: choose another name",
                             qualified.to_string()),
              statement.name.place);
  }
  SL_ASSIGN(auto table, warehouse.table(qualified));
  if (!statement.options.location) {
    return Place{std::move(table), qualified.to_string(), {}};
  }
  const auto path = context.absolute_path(*statement.options.location);
  if (path == table.path()) return Place{std::move(table), qualified.to_string(), {}};
  SL_ASSIGN(const bool taken, table.exists());
  if (taken) {
    return at(already_exists("TABLE_OR_VIEW_ALREADY_EXISTS", "{} exists at {}: drop it first",
                             qualified.to_string(), table.path()),
              statement.name.place);
  }
  SL_ASSIGN(auto elsewhere, warehouse.table(sql::TableName{{path}, true, {}}, context.defaults));
  return Place{std::move(elsewhere), qualified.to_string(), qualified};
}

// Turns an existing table into the definition of a new one; its history stays.
Status redefine(delta::Transaction& transaction, const delta::NewTable& definition) {
  SL_ASSIGN(auto defined, delta::define_table(definition));
  const auto& old = transaction.snapshot();
  auto& protocol = defined.protocol;
  // A protocol never loses what older versions of the table need.
  protocol.min_reader_version =
      std::max(protocol.min_reader_version, old.protocol.min_reader_version);
  protocol.min_writer_version =
      std::max(protocol.min_writer_version, old.protocol.min_writer_version);
  protocol.reader_features.insert(old.protocol.reader_features.begin(),
                                  old.protocol.reader_features.end());
  protocol.writer_features.insert(old.protocol.writer_features.begin(),
                                  old.protocol.writer_features.end());
  const auto files = old.files;
  for (const auto& file : files) transaction.remove_file(file);
  transaction.set_protocol(std::move(protocol));
  transaction.set_metadata(std::move(defined.metadata));
  for (auto& domain : defined.domains) transaction.set_domain(std::move(domain));
  return {};
}

// The query of CREATE VIEW ... AS query: what follows the first AS after which the text is one
// query.
std::string view_query_text(const std::string& text) {
  const auto lexed = sql::lex(text, "");
  for (const auto& token : lexed.tokens) {
    if (token.kind != sql::TokenKind::kWord || token.upper != "AS") continue;
    auto rest = text.substr(token.end);
    const size_t first = rest.find_first_not_of(" \t\r\n");
    if (first == std::string::npos) continue;
    rest.erase(0, first);
    if (sql::parse_query(rest, "").ok()) return rest;
  }
  return "";
}

// Whether a query may read the table; views count as reading everything.
bool may_read(const Context& context, const sql::Query& query, const delta::Table& table) {
  for (const auto& use : sql::table_uses(query)) {
    if (!use.function.empty()) continue;
    if (use.name.is_path) {
      if (context.absolute_path(use.name.parts[0]) == table.path()) return true;
      continue;
    }
    if (use.name.parts.size() == 1 &&
        context.temporary_views.contains(fold_name(use.name.parts[0]))) {
      return true;
    }
    const auto name = context.warehouse->qualify(use.name, context.defaults);
    if (!name.ok()) return true;
    const auto named = context.warehouse->table(*name);
    const auto exists = context.warehouse->table_exists(*name);
    if (!named.ok() || !exists.ok() || !*exists || named->path() == table.path()) return true;
  }
  return false;
}

Result<std::vector<duck::ResultColumn>> columns_of(const Context& context,
                                                   const std::string& query) {
  return context.connection->describe(query);
}

}  // namespace

Status create_schema(const Context& context, const sql::CreateSchema& statement) {
  SL_ASSIGN(auto* warehouse, context.needs_warehouse());
  if (statement.comment) {
    return at(unsupported("UNSUPPORTED_CONSTRUCT", "COMMENT of a schema is not kept: leave it out"),
              statement.name.place);
  }
  const auto& parts = statement.name.parts;
  if (statement.name.is_path || parts.empty() || parts.size() > 2) {
    return at(invalid_argument("INVALID_NAME", "{} is not a schema: write schema or catalog.schema",
                               sql::to_string(statement.name)),
              statement.name.place);
  }
  auto made = warehouse->create_schema(parts.size() == 2 ? parts[0] : context.defaults.catalog,
                                       parts.back(), statement.if_not_exists);
  if (!made.ok()) return at(std::move(made).error(), statement.name.place);
  return {};
}

Status create_table(const Context& context, const sql::CreateTable& statement) {
  SL_ASSIGN(auto* warehouse, context.needs_warehouse());
  SL_TRY(refuse_unknown_table_options(statement.options));
  SL_ASSIGN(const auto place, place_of(context, *warehouse, statement));
  const auto& table = place.table;
  SL_ASSIGN(const bool exists, table.exists());
  if (exists && !statement.or_replace) {
    const bool adopts =
        place.external && statement.query == nullptr && statement.options.columns.empty();
    if (adopts) return warehouse->register_location(*place.external, table.path());
    if (statement.if_not_exists) return {};
    return at(already_exists("TABLE_OR_VIEW_ALREADY_EXISTS",
                             "{} exists: use CREATE TABLE IF NOT EXISTS or CREATE OR REPLACE TABLE",
                             place.name),
              statement.name.place);
  }

  Relations relations(context);
  std::string query;
  std::vector<duck::ResultColumn> given;
  if (statement.query != nullptr) {
    SL_ASSIGN(query, relations.print(*statement.query));
    SL_ASSIGN(given, columns_of(context, query));
  }
  delta::NewTable definition;
  SL_ASSIGN(definition.schema, new_schema(statement, given));
  SL_ASSIGN(definition.partition_columns,
            known_columns(statement.options.partitioned_by, definition.schema, "PARTITIONED BY"));
  SL_ASSIGN(definition.clustering_columns,
            known_columns(statement.options.cluster_by, definition.schema, "CLUSTER BY"));
  for (const auto& option : statement.options.properties) {
    if (!definition.properties.emplace(option.key, option.value).second) {
      return at(invalid_argument("DUPLICATE_KEY", "the property {} is set twice", option.key),
                option.place);
    }
  }
  definition.description = statement.options.comment;

  SL_TRY(warehouse->prepare());
  std::string operation = "CREATE TABLE";
  auto transaction = [&]() -> Result<delta::Transaction> {
    if (!exists) return delta::Transaction::create(table, definition);
    SL_ASSIGN(auto snapshot, table.snapshot());
    SL_TRY(
        refuse_pipeline_table(FoundTable{table, snapshot, place.name}, "CREATE OR REPLACE TABLE"));
    SL_ASSIGN(auto replacing, delta::Transaction::begin(table, snapshot));
    SL_TRY(redefine(replacing, definition));
    return replacing;
  }();
  if (!transaction.ok()) return at(std::move(transaction).error(), statement.name.place);
  if (statement.or_replace) operation = "CREATE OR REPLACE TABLE";

  std::vector<delta::AddFile> written;
  if (statement.query != nullptr) {
    operation += " AS SELECT";
    SL_ASSIGN(const auto rows,
              assign_all(query, given, definition.schema, place.name, AssignOptions{}));
    auto files = apply_change(context, table, *transaction, nullptr,
                              duck::TableChange{rows, "", false, false});
    if (!files.ok()) return relations.explain(std::move(files).error());
    written = std::move(files).value();
  }
  transaction->set_operation(operation,
                             {{"partitionBy", json_array(definition.partition_columns)}});
  SL_TRY(duck::commit_change(*transaction, table, written));
  if (place.external) return warehouse->register_location(*place.external, table.path());
  return {};
}

Status create_view(Context& context, const sql::CreateView& statement, const std::string& text) {
  if (!statement.expectations.empty()) {
    return at(invalid_argument("UNSUPPORTED_CONSTRAINT", "EXPECT belongs to views of a pipeline"),
              statement.expectations[0].name.place);
  }
  if (!statement.properties.empty()) {
    return at(unsupported("UNSUPPORTED_CONSTRUCT",
                          "TBLPROPERTIES of a view are not kept: leave them out"),
              statement.properties[0].place);
  }
  catalog::View view;
  view.comment = statement.comment;
  view.sql = view_query_text(text);
  view.catalog = context.defaults.catalog;
  view.schema = context.defaults.schema;
  for (const auto& column : statement.columns) view.columns.push_back(column.text);
  if (view.sql.empty()) {
    return internal_error("INTERNAL_ERROR", "the query of view {} was not found in its statement",
                          sql::to_string(statement.name));
  }
  // A view whose query cannot run is refused now, not at its first reader.
  Relations relations(context);
  SL_ASSIGN(const auto query, relations.print(*statement.query));
  SL_ASSIGN(const auto columns, columns_of(context, query));
  if (!view.columns.empty() && view.columns.size() != columns.size()) {
    return at(invalid_argument("CREATE_VIEW_COLUMN_ARITY_MISMATCH",
                               "the view names {} columns, but its query gives {}",
                               view.columns.size(), columns.size()),
              statement.name.place);
  }
  if (statement.temporary) {
    if (statement.name.is_path || statement.name.parts.size() != 1) {
      return at(invalid_argument("INVALID_TEMP_OBJ_QUALIFIER",
                                 "a temporary view has a plain name: {} has several parts",
                                 sql::to_string(statement.name)),
                statement.name.place);
    }
    const auto key = fold_name(statement.name.parts[0]);
    if (context.temporary_views.contains(key)) {
      if (statement.if_not_exists) return {};
      if (!statement.or_replace) {
        return at(
            already_exists("TEMP_TABLE_OR_VIEW_ALREADY_EXISTS",
                           "the temporary view {} exists: use CREATE OR REPLACE TEMPORARY VIEW",
                           statement.name.parts[0]),
            statement.name.place);
      }
    }
    context.temporary_views[key] = std::move(view);
    return {};
  }
  SL_ASSIGN(auto* warehouse, context.needs_warehouse());
  SL_ASSIGN(const auto name, warehouse->qualify(statement.name, context.defaults));
  auto made = warehouse->create_view(name, view, statement.or_replace);
  if (!made.ok()) {
    if (statement.if_not_exists && made.error().kind == ErrorKind::kAlreadyExists) return {};
    return at(std::move(made).error(), statement.name.place);
  }
  return {};
}

Status drop(Context& context, const sql::Drop& statement) {
  SL_ASSIGN(auto* warehouse, context.needs_warehouse());
  const auto finish = [&statement](Status status) -> Status {
    if (status.ok()) return {};
    if (statement.if_exists && status.error().kind == ErrorKind::kNotFound) return {};
    return at(std::move(status).error(), statement.name.place);
  };
  const auto& parts = statement.name.parts;
  if (statement.what == sql::Drop::What::kSchema) {
    if (statement.name.is_path || parts.empty() || parts.size() > 2) {
      return at(
          invalid_argument("INVALID_NAME", "{} is not a schema", sql::to_string(statement.name)),
          statement.name.place);
    }
    return finish(warehouse->drop_schema(parts.size() == 2 ? parts[0] : context.defaults.catalog,
                                         parts.back(), statement.cascade));
  }
  if (statement.what == sql::Drop::What::kView && parts.size() == 1 && !statement.name.is_path &&
      context.temporary_views.erase(fold_name(parts[0])) > 0) {
    return {};
  }
  SL_ASSIGN(const auto name, warehouse->qualify(statement.name, context.defaults));
  SL_ASSIGN(const auto view, warehouse->view(name));
  if (statement.what == sql::Drop::What::kView) {
    if (!view) {
      SL_ASSIGN(const bool is_table, warehouse->table_exists(name));
      if (is_table) {
        return at(invalid_argument("EXPECT_VIEW_NOT_TABLE", "{} is a table: use DROP TABLE",
                                   name.to_string()),
                  statement.name.place);
      }
    }
    return finish(warehouse->drop_view(name));
  }
  if (view) {
    return at(
        invalid_argument("EXPECT_TABLE_NOT_VIEW", "{} is a view: use DROP VIEW", name.to_string()),
        statement.name.place);
  }
  SL_ASSIGN(const bool is_table, warehouse->table_exists(name));
  SL_ASSIGN(const bool is_external, warehouse->is_external(name));
  if (!is_table && !is_external)
    return finish(table_missing(*warehouse, name, statement.name.place));
  return finish(warehouse->drop_table(name));
}

Status insert(const Context& context, const sql::Insert& statement) {
  if (statement.mode == sql::InsertMode::kReplaceWhere) {
    return at(unsupported("UNSUPPORTED_STATEMENT",
                          "INSERT INTO ... REPLACE WHERE is not supported: use DELETE and INSERT"),
              statement.table.place);
  }
  const bool overwrite = statement.mode == sql::InsertMode::kOverwrite;
  SL_ASSIGN(const auto found, find_table(context, statement.table));
  SL_TRY(refuse_pipeline_table(found, overwrite ? "INSERT OVERWRITE" : "INSERT"));
  Relations relations(context);
  SL_ASSIGN(const auto query, relations.print(*statement.query));
  SL_ASSIGN(const auto given, columns_of(context, query));
  AssignOptions options;
  options.by_name = statement.by_name;
  for (const auto& column : statement.columns) options.columns.push_back(column.text);
  auto rows = assign_all(query, given, found.snapshot->schema, found.name, options);
  if (!rows.ok()) return at(std::move(rows).error(), statement.table.place);

  SL_ASSIGN(auto transaction, delta::Transaction::begin(found.table, found.snapshot));
  const auto written = apply_change(context, found.table, transaction, found.snapshot,
                                    duck::TableChange{*rows, "", overwrite, false});
  if (!written.ok()) return relations.explain(written.error());
  transaction.set_operation("WRITE",
                            {{"mode", overwrite ? "Overwrite" : "Append"}, {"partitionBy", "[]"}});
  if (!overwrite) {
    if (written->empty()) return {};
    if (!may_read(context, *statement.query, found.table)) transaction.set_blind_append();
  }
  return duck::commit_change(transaction, found.table, *written);
}

Status delete_rows(const Context& context, const sql::Delete& statement) {
  if (statement.where == nullptr) return truncate(context, sql::Truncate{statement.table});
  SL_ASSIGN(const auto found, find_table(context, statement.table));
  SL_TRY(refuse_pipeline_table(found, "DELETE"));
  Relations relations(context);
  duck::ScanOptions options;
  options.with_positions = true;
  SL_ASSIGN(const auto scan, relations.scan(found.table, found.snapshot, options));
  SL_ASSIGN(const auto condition, relations.print(*statement.where));
  const auto alias = statement.alias ? statement.alias->text : statement.table.parts.back();
  TouchedRows touched(*context.connection);
  SL_ASSIGN(const auto rows,
            touched.keep(fmt::format("SELECT {}, {} FROM {} AS {} WHERE {}", duck::kFileColumn,
                                     duck::kRowColumn, scan, duck::quote_name(alias), condition)));
  if (rows == 0) return {};
  SL_ASSIGN(auto transaction, delta::Transaction::begin(found.table, found.snapshot));
  SL_ASSIGN(const auto written,
            apply_change(context, found.table, transaction, found.snapshot,
                         duck::TableChange{"", TouchedRows::positions(), false, true}));
  transaction.set_metric("numDeletedRows", rows);
  transaction.set_operation("DELETE",
                            {{"predicate", json_array({sql::print_spark(*statement.where)})}});
  return duck::commit_change(transaction, found.table, written);
}

Status update_rows(const Context& context, const sql::Update& statement) {
  SL_ASSIGN(const auto found, find_table(context, statement.table));
  SL_TRY(refuse_pipeline_table(found, "UPDATE"));
  const auto& schema = found.snapshot->schema;
  const bool keeps_ids = found.snapshot->row_tracking_enabled();
  Relations relations(context);
  duck::ScanOptions options;
  options.with_positions = true;
  options.with_row_ids = keeps_ids;
  SL_ASSIGN(const auto scan, relations.scan(found.table, found.snapshot, options));
  const auto alias = statement.alias ? statement.alias->text : statement.table.parts.back();
  std::string condition = "true";
  if (statement.where != nullptr) {
    SL_ASSIGN(condition, relations.print(*statement.where));
  }
  // Old rows with the assigned values beside them, computed once.
  std::map<size_t, size_t> assigned;  // column of the schema -> assignment
  std::string values;
  for (size_t i = 0; i < statement.assignments.size(); ++i) {
    const auto& [name, expression] = statement.assignments[i];
    SL_ASSIGN(const auto target, known_columns({name}, schema, "SET"));
    if (!assigned.emplace(*schema.find(target[0]), i).second) {
      return at(invalid_argument("DUPLICATE_ASSIGNMENTS", "column {} is assigned twice", target[0]),
                name.place);
    }
    SL_ASSIGN(const auto text, relations.print(*expression));
    values +=
        fmt::format(", {} AS {}", text, duck::quote_name(fmt::format("__strandline_set_{}", i)));
  }
  SL_ASSIGN(const auto types,
            context.connection->describe(fmt::format("SELECT 1 AS one{} FROM {} AS {} LIMIT 0",
                                                     values, scan, duck::quote_name(alias))));
  TouchedRows touched(*context.connection);
  SL_ASSIGN(const auto rows,
            touched.keep(fmt::format("SELECT {0}.*{1} FROM {2} AS {0} WHERE {3}",
                                     duck::quote_name(alias), values, scan, condition)));
  if (rows == 0) return {};
  std::string items;
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    const auto& field = schema.fields[i];
    std::string value = duck::quote_name(field.name);
    if (const auto found_at = assigned.find(i); found_at != assigned.end()) {
      const auto source = duck::quote_name(fmt::format("__strandline_set_{}", found_at->second));
      auto text = assign(source, types[found_at->second + 1].type, field, found.name);
      if (!text.ok()) {
        return at(std::move(text).error(), statement.assignments[found_at->second].first.place);
      }
      value = *text;
    }
    items +=
        fmt::format("{}{} AS {}", items.empty() ? "" : ", ", value, duck::quote_name(field.name));
  }
  if (keeps_ids) {
    // A changed row keeps its id and gets this commit's version.
    items += fmt::format(", {}, CAST(NULL AS BIGINT) AS {}", duck::kRowIdColumn,
                         duck::kRowVersionColumn);
  }
  SL_ASSIGN(auto transaction, delta::Transaction::begin(found.table, found.snapshot));
  SL_ASSIGN(
      const auto written,
      apply_change(context, found.table, transaction, found.snapshot,
                   duck::TableChange{fmt::format("SELECT {} FROM {}", items, TouchedRows::name()),
                                     TouchedRows::positions(), false, keeps_ids}));
  transaction.set_metric("numUpdatedRows", rows);
  transaction.set_operation("UPDATE");
  return duck::commit_change(transaction, found.table, written);
}

Status truncate(const Context& context, const sql::Truncate& statement) {
  SL_ASSIGN(const auto found, find_table(context, statement.table));
  SL_TRY(refuse_pipeline_table(found, "TRUNCATE TABLE"));
  if (found.snapshot->files.empty()) return {};
  SL_ASSIGN(auto transaction, delta::Transaction::begin(found.table, found.snapshot));
  for (const auto& file : found.snapshot->files) transaction.remove_file(file);
  transaction.set_metric("numRemovedFiles", static_cast<int64_t>(found.snapshot->files.size()));
  transaction.set_operation("TRUNCATE");
  return duck::commit_change(transaction, found.table, {});
}

Status use(Context& context, const sql::Use& statement) {
  SL_ASSIGN(auto* warehouse, context.needs_warehouse());
  const auto& parts = statement.name.parts;
  if (statement.name.is_path || parts.empty() || parts.size() > 2) {
    return at(invalid_argument("INVALID_NAME",
                               "{} is not a schema: write USE schema or USE catalog.schema",
                               sql::to_string(statement.name)),
              statement.name.place);
  }
  const auto catalog = parts.size() == 2 ? parts[0] : context.defaults.catalog;
  SL_ASSIGN(const bool exists, warehouse->schema_exists(catalog, parts.back()));
  if (!exists) {
    std::string hint;
    if (const auto known = warehouse->schemas(catalog); known.ok()) {
      if (const auto near = nearest_name(parts.back(), *known))
        hint = ": did you mean " + *near + "?";
    }
    return at(
        not_found("SCHEMA_NOT_FOUND", "there is no schema {}.{}{}", catalog, parts.back(), hint),
        statement.name.place);
  }
  context.defaults.catalog = catalog;
  context.defaults.schema = parts.back();
  return {};
}

}  // namespace strandline::engine
