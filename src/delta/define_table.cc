// Protocol and metadata of new tables.
#include <algorithm>
#include <set>

#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "delta/check_schema.h"
#include "delta/column_mapping.h"
#include "delta/definition.h"
#include "delta/features.h"
#include "delta/properties.h"
#include "delta/transaction.h"

namespace strandline::delta {

namespace {

constexpr const char* kBadDefinition = "DELTA_INVALID_TABLE_DEFINITION";

// The schema's spelling of column names, each a plain column of the table.
Result<std::vector<std::string>> partition_columns(const Schema& schema,
                                                   const std::vector<std::string>& names) {
  std::vector<std::string> resolved;
  for (const std::string& name : names) {
    const Field* const field = schema.get(name);
    if (field == nullptr) {
      return invalid_argument(kBadDefinition, "partition column '{}' is not a column of the table",
                              name);
    }
    if (field->type.is_nested() || field->type.id == TypeId::kVoid) {
      return invalid_argument(kBadDefinition,
                              "partition column '{}' has type {}; only plain types can be used",
                              name, to_sql(field->type));
    }
    if (std::find(resolved.begin(), resolved.end(), field->name) != resolved.end()) {
      return invalid_argument(kBadDefinition, "partition column '{}' is named twice", name);
    }
    resolved.push_back(field->name);
  }
  return resolved;
}

void set_default(std::map<std::string, std::string>* properties, const char* key) {
  properties->emplace(key, "true");
}

}  // namespace

Result<TableDefinition> define_table(const NewTable& table) {
  if (table.schema.fields.empty())
    return invalid_argument(kBadDefinition, "a table needs at least one column");

  std::map<std::string, std::string> properties = table.properties;
  SL_TRY(check_properties(&properties));
  set_default(&properties, "delta.enableDeletionVectors");
  set_default(&properties, "delta.enableRowTracking");
  set_default(&properties, "delta.enableInCommitTimestamps");
  std::set<std::string> features = take_feature_properties(&properties);
  if (properties["delta.enableRowTracking"] == "true") name_row_tracking_columns(&properties);

  TableDefinition definition;
  Schema& schema = definition.schema;
  schema = table.schema;
  strip_mapping(&schema);
  Metadata& metadata = definition.metadata;
  metadata.id = new_uuid();
  metadata.description = table.description;
  metadata.configuration = std::move(properties);
  metadata.created_time_ms = now_ms();
  const bool mapped = mapping_mode(metadata) != "none";
  SL_TRY(check_columns(schema.fields, mapped));
  SL_TRY(check_reserved_names(schema, table.is_internal ? schema : Schema(), metadata));
  if (mapped) {
    if (table.last_column_id > 0) {
      metadata.configuration[kMaxColumnIdProperty] = std::to_string(table.last_column_id);
    }
    assign_mapping(&schema, &metadata, PhysicalNames::kFresh);
  }
  metadata.schema_string = print_schema(schema);
  SL_ASSIGN(metadata.partition_columns, partition_columns(schema, table.partition_columns));
  const auto is_stored = [&](const Field& field) {
    return field.type.id != TypeId::kVoid &&
           std::find(metadata.partition_columns.begin(), metadata.partition_columns.end(),
                     field.name) == metadata.partition_columns.end();
  };
  if (std::none_of(schema.fields.begin(), schema.fields.end(), is_stored)) {
    return invalid_argument(kBadDefinition, "{}; add one with data of its own",
                            metadata.partition_columns.empty()
                                ? "every column is VOID"
                                : "every column is a partition column");
  }

  SL_ASSIGN(const std::vector<FieldPath> clustering,
            resolve_clustering(schema, mapped, table.clustering_columns));
  if (!clustering.empty()) {
    if (!metadata.partition_columns.empty()) {
      return invalid_argument(kBadDefinition,
                              "a table has either partition columns or clustering columns");
    }
    definition.domains.push_back(clustering_domain(clustering));
    features.insert({"clustering", "domainMetadata"});
  }

  features.merge(required_features(metadata, schema));
  if (features.count("rowTracking") > 0) features.insert("domainMetadata");
  definition.protocol = with_features(Protocol{1, 2, {}, {}}, features);
  SL_TRY(check_writable(definition.protocol, "of this definition"));
  return definition;
}

}  // namespace strandline::delta
