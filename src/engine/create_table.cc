#include "engine/create_table.h"

#include "base/error.h"
#include "base/json.h"
#include "delta/column_mapping.h"
#include "delta/definition.h"
#include "delta/properties.h"
#include "duck/delta_io.h"
#include "duck/table_change.h"
#include "engine/assignment.h"
#include "engine/names.h"
#include "engine/relations.h"
#include "engine/write_rows.h"

namespace strandline::engine {
namespace {

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
Status redefine(delta::Transaction& transaction, delta::NewTable definition) {
  const auto& old = transaction.snapshot();
  definition.last_column_id =
      delta::integer_property(old.metadata.configuration, delta::kMaxColumnIdProperty, 0);
  SL_ASSIGN(auto defined, delta::define_table(definition));
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
  if (const auto clustering = old.domains.find(delta::kClusteringDomain);
      clustering != old.domains.end()) {
    delta::DomainMetadata gone = clustering->second;
    gone.removed = true;
    transaction.set_domain(std::move(gone));
  }
  for (auto& domain : defined.domains) transaction.set_domain(std::move(domain));
  return {};
}

}  // namespace

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
    SL_ASSIGN(given, given_columns(*context.connection, query));
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

  duck::AppliedChange applied;
  if (statement.query != nullptr) {
    operation += " AS SELECT";
    SL_ASSIGN(const auto rows,
              assign_all(query, given, definition.schema, place.name, AssignOptions{}));
    auto written = apply_change(context, table, *transaction, nullptr,
                                duck::TableChange{rows, "", false, false});
    if (!written.ok()) return relations.explain(std::move(written).error());
    applied = std::move(written).value();
    set_output_metrics(*transaction, applied);
  }
  transaction->set_operation(operation,
                             {{"partitionBy", json_array(definition.partition_columns)}});
  SL_TRY(duck::commit_change(*transaction, table, applied));
  if (place.external) return warehouse->register_location(*place.external, table.path());
  return {};
}

}  // namespace strandline::engine
