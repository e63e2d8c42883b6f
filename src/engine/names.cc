#include "engine/names.h"

#include <strandline/suggest.h>

#include "base/error.h"
#include "delta/alter.h"
#include "delta/log_cleanup.h"
#include "pipeline/context.h"
#include "sql/duckdb_printer.h"

namespace strandline::engine {

namespace {

// Tables that are declared on their own are each a pipeline of the table's name.
bool is_declared_alone(const FoundTable& found) {
  const auto pipeline = found.snapshot->property(pipeline::kPipelineNameProperty);
  return pipeline && *pipeline == fold_name(found.name);
}

}  // namespace

Error at(Error error, const SourcePlace& place) {
  if (!error.place && place.line > 0) error.place = place;
  return error;
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

Status refuse_pipeline_table(const FoundTable& found, const char* verb) {
  if (found.snapshot->property(pipeline::kStateTargetProperty)) {
    return unsupported("DML_ON_PIPELINE_TABLE",
                       "{} on {} is not supported: it is what an AUTO CDC target remembers", verb,
                       found.name);
  }
  if (!belongs_to_pipeline(*found.snapshot)) return {};
  if (is_declared_alone(found)) {
    return unsupported(
        "DML_ON_PIPELINE_TABLE",
        "{} on {} is not supported: its rows follow from its declaration. Change its "
        "sources and use REFRESH TABLE {}, or declare it anew with CREATE OR REFRESH",
        verb, found.name, found.name);
  }
  return unsupported("DML_ON_PIPELINE_TABLE",
                     "{} on {} is not supported: the table is written by the pipeline {}. Change "
                     "its source and run the pipeline",
                     verb, found.name,
                     found.snapshot->property(pipeline::kPipelineNameProperty)
                         .value_or(*found.snapshot->property(pipeline::kPipelineIdProperty)));
}

Status refuse_pipeline_definition(const FoundTable& found, const char* verb) {
  if (!belongs_to_pipeline(*found.snapshot)) return {};
  if (is_declared_alone(found)) {
    return unsupported("PIPELINE_TABLE_FIXED",
                       "{} of {} is not supported: its declaration defines it. Change that with "
                       "CREATE OR REFRESH",
                       verb, found.name);
  }
  return unsupported("PIPELINE_TABLE_FIXED",
                     "{} of {} is not supported: the pipeline {} defines the table. Change its "
                     "declaration there",
                     verb, found.name,
                     found.snapshot->property(pipeline::kPipelineNameProperty)
                         .value_or(*found.snapshot->property(pipeline::kPipelineIdProperty)));
}

std::vector<delta::FieldPath> clustering_of(const delta::Snapshot& snapshot) {
  const bool mapped = snapshot.column_mapping_mode() != "none";
  std::vector<delta::FieldPath> columns;
  for (const auto& physical : delta::clustering_columns(snapshot.domains)) {
    delta::FieldPath names;
    const std::vector<Field>* fields = &snapshot.schema.fields;
    for (const auto& part : physical) {
      std::string name = part;
      const std::vector<Field>* inner = nullptr;
      for (const auto& field : *fields) {
        if ((mapped ? delta::Snapshot::physical_name(field) : field.name) != part) continue;
        name = field.name;
        if (field.type.id == TypeId::kStruct) inner = field.type.fields.get();
      }
      names.push_back(std::move(name));
      if (inner == nullptr) break;
      fields = inner;
    }
    columns.push_back(std::move(names));
  }
  return columns;
}

Result<std::pair<std::string, std::string>> schema_named(const Context& context,
                                                         const sql::TableName& name) {
  const auto& parts = name.parts;
  if (name.is_path || parts.empty() || parts.size() > 2) {
    return at(invalid_argument("INVALID_NAME", "{} is not a schema: write schema or catalog.schema",
                               sql::to_string(name)),
              name.place);
  }
  return std::pair{parts.size() == 2 ? parts[0] : context.defaults.catalog, parts.back()};
}

Result<std::pair<std::string, std::string>> known_schema(const Context& context,
                                                         const sql::TableName& name) {
  SL_ASSIGN(auto* warehouse, context.needs_warehouse());
  SL_ASSIGN(auto schema, schema_named(context, name));
  SL_ASSIGN(const bool exists, warehouse->schema_exists(schema.first, schema.second));
  if (exists) return schema;
  std::string hint;
  if (const auto known = warehouse->schemas(schema.first); known.ok()) {
    if (const auto near = nearest_name(schema.second, *known)) {
      hint = ": did you mean " + *near + "?";
    }
  }
  return at(not_found("SCHEMA_NOT_FOUND", "there is no schema {}.{}{}", schema.first, schema.second,
                      hint),
            name.place);
}

bool belongs_to_one_table(const std::string& property) {
  return property.starts_with("delta.rowTracking.materialized") ||
         property.starts_with("delta.inCommitTimestampEnablement") ||
         property == "delta.columnMapping.maxColumnId" ||
         property == delta::kProtectedBeforeProperty || property == pipeline::kPipelineIdProperty ||
         property.starts_with("strandline.");
}

Status refuse_pipeline_rows(const FoundTable& found, const char* verb) {
  const auto stored_as = found.snapshot->property(pipeline::kScdTypeProperty);
  if (stored_as && *stored_as != "BITEMPORAL") return {};
  return refuse_pipeline_table(found, verb);
}

bool may_read(const Context& context, const sql::Query& query, const delta::Table& table) {
  for (const auto& use : sql::table_uses(query)) {
    // A feed names its table in an argument.
    if (use.function.starts_with("table_changes")) return true;
    if (!use.function.empty()) continue;
    if (use.name.parts.size() == 1 && context.streams.contains(fold_name(use.name.parts[0])))
      continue;
    if (use.name.is_path) {
      const auto path = context.absolute_path(use.name.parts[0]);
      if (path.ok() && *path == table.path()) return true;
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

}  // namespace strandline::engine
