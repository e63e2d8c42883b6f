#include "engine/create_table.h"

#include "base/error.h"
#include "delta/column_mapping.h"
#include "delta/column_rules.h"
#include "delta/definition.h"
#include "delta/log_cleanup.h"
#include "delta/properties.h"
#include "delta/row_id_columns.h"
#include "duck/delta_io.h"
#include "duck/table_change.h"
#include "engine/assignment.h"
#include "engine/names.h"
#include "engine/relations.h"
#include "engine/write_rows.h"
#include "pipeline/declared_columns.h"

namespace strandline::engine {
namespace {

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
    SL_TRY(add(pipeline::declared_field(column), column.name.place));
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

// Whether the rules of the new columns make sense.
Status check_rules(const Context& context, const sql::CreateTable& statement,
                   const delta::NewTable& definition) {
  const auto errors =
      pipeline::check_declared_rules(*context.connection, statement.options, definition.schema);
  if (!errors.empty()) return errors.front();
  for (const auto& column : statement.options.columns) {
    for (const auto& partition : definition.partition_columns) {
      if (!column.identity || !same_name(partition, column.name.text)) continue;
      return at(unsupported("DELTA_IDENTITY_COLUMNS_PARTITION_NOT_SUPPORTED",
                            "the identity column {} cannot be a partition column", partition),
                column.name.place);
    }
  }
  return {};
}

// CREATE TABLE ... LIKE: everything of the source but its rows and what is the table's own.
Status copy_definition(const FoundTable& source, delta::NewTable* definition) {
  const auto& snapshot = *source.snapshot;
  definition->schema = snapshot.schema;
  for (auto& field : definition->schema.fields)
    field.metadata.erase(delta::kIdentityPrefix + std::string("highWaterMark"));
  definition->partition_columns = snapshot.metadata.partition_columns;
  definition->clustering_columns = clustering_of(snapshot);
  definition->description = snapshot.metadata.description;
  for (const auto& [key, value] : snapshot.metadata.configuration) {
    if (belongs_to_one_table(key)) continue;
    definition->properties[key] = value;
  }
  return {};
}

// A table handle for CREATE TABLE, and what to register once it exists.
struct Place {
  delta::Table table;
  std::string name;
  std::optional<catalog::QualifiedName> external;  // LOCATION, not registered yet
};

Result<Place> place_of(const Context& context, catalog::Warehouse& warehouse,
                       const sql::CreateTable& statement) {
  SL_ASSIGN(const auto full, context.absolute_name(statement.name));
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
  warehouse.remove_dropped(qualified.catalog, qualified.schema);
  SL_ASSIGN(auto table, warehouse.table(qualified));
  if (!statement.options.location) {
    return Place{std::move(table), qualified.to_string(), {}};
  }
  SL_ASSIGN(const auto path, context.absolute_path(*statement.options.location));
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
  delta::keep_row_id_columns(old.metadata, &defined.metadata.configuration);
  if (const auto border = delta::protected_before(old); border > 0) {
    defined.metadata.configuration[delta::kProtectedBeforeProperty] = std::to_string(border);
  }
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

namespace {

// The folders of a table that was not made; what holds anything stays.
void remove_empty_folders(storage::Store& store, const std::string& folder) {
  if (const auto children = store.list(folder); children.ok()) {
    for (const auto& child : *children) {
      if (child.is_directory && !child.is_link) remove_empty_folders(store, child.path);
    }
  }
  (void)store.remove_if_empty(folder);
}

Status try_create_table(const Context& context, const sql::CreateTable& statement) {
  SL_ASSIGN(auto* warehouse, context.needs_warehouse());
  SL_TRY(refuse_unknown_table_options(statement.options));
  SL_ASSIGN(const auto place, place_of(context, *warehouse, statement));
  const auto& table = place.table;
  SL_ASSIGN(const bool exists, table.exists());
  if (exists && !statement.or_replace) {
    const bool adopts = place.external && statement.query == nullptr && !statement.like &&
                        statement.options.columns.empty();
    if (adopts) return warehouse->register_location(*place.external, table.path());
    if (statement.if_not_exists) return {};
    if (place.external) {
      return at(already_exists("TABLE_OR_VIEW_ALREADY_EXISTS",
                               "LOCATION '{}' holds a table already: leave out the columns and AS "
                               "to take it as it is, or name another folder",
                               table.path()),
                statement.name.place);
    }
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
  if (statement.like) {
    SL_ASSIGN(const auto source, find_table(context, *statement.like));
    SL_TRY(copy_definition(source, &definition));
  } else {
    SL_ASSIGN(definition.schema, new_schema(statement, given));
  }
  if (!statement.options.partitioned_by.empty()) {
    SL_ASSIGN(definition.partition_columns,
              known_columns(statement.options.partitioned_by, definition.schema, "PARTITIONED BY"));
  }
  for (const auto& column : statement.options.cluster_by) {
    // For its error, with the nearest name.
    SL_TRY(known_columns({{column.parts[0], column.place}}, definition.schema, "CLUSTER BY"));
    definition.clustering_columns.push_back(column.parts);
  }
  for (const auto& option : statement.options.properties) {
    if (option.key.starts_with(delta::kConstraintPrefix)) {
      return at(invalid_argument("DELTA_ADD_CONSTRAINTS",
                                 "the property {} is a CHECK constraint: write CONSTRAINT {} CHECK "
                                 "(...) among the columns",
                                 option.key,
                                 option.key.substr(std::string(delta::kConstraintPrefix).size())),
                option.place);
    }
    definition.properties[option.key] = option.value;
  }
  for (auto& [key, value] : pipeline::declared_constraints(statement.options)) {
    definition.properties[key] = value;
  }
  if (statement.options.comment) definition.description = statement.options.comment;
  SL_TRY(check_rules(context, statement, definition));

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
    if (!written.ok()) {
      if (!exists) remove_empty_folders(*context.store, table.path());
      return relations.explain(std::move(written).error());
    }
    applied = std::move(written).value();
    set_output_metrics(*transaction, applied);
  }
  transaction->set_operation(operation,
                             {{"partitionBy", json_array(definition.partition_columns)}});
  SL_TRY(duck::commit_change(*transaction, table, applied));
  if (place.external) return warehouse->register_location(*place.external, table.path());
  return {};
}

}  // namespace

Status create_table(const Context& context, const sql::CreateTable& statement) {
  constexpr int kAttempts = 20;
  for (int attempt = 1;; ++attempt) {
    auto made = try_create_table(context, statement);
    // Whoever replaces the table does so whatever others made of it meanwhile.
    const bool again = !made.ok() && statement.or_replace && attempt < kAttempts &&
                       made.error().kind == ErrorKind::kConflict;
    if (!again) return made;
  }
}

}  // namespace strandline::engine
