// Protocol and metadata of new tables.
#include <algorithm>
#include <set>

#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/json.h"
#include "delta/features.h"
#include "delta/properties.h"
#include "delta/transaction.h"

namespace strandline::delta {

namespace {

constexpr const char* kBadDefinition = "DELTA_INVALID_TABLE_DEFINITION";

// Parquet readers of other engines refuse these in column names.
constexpr const char* kRefusedCharacters = " ,;{}()\n\t=";

Status check_fields(const std::vector<Field>& fields, const std::string& parent);

Status check_type(const DataType& type, const std::string& where) {
  switch (type.id) {
    case TypeId::kStruct:
      return check_fields(*type.fields, where);
    case TypeId::kArray:
      return check_type(*type.element, where + ".element");
    case TypeId::kMap:
      SL_TRY(check_type(*type.key, where + ".key"));
      return check_type(*type.element, where + ".value");
    case TypeId::kVoid:
    case TypeId::kVariant:
    case TypeId::kInterval:
      return unsupported(
          "DELTA_UNSUPPORTED_DATA_TYPE",
          "column {} has type {}, which cannot be stored; cast it to another type or leave it out",
          where, to_sql(type));
    default:
      return {};
  }
}

Status check_fields(const std::vector<Field>& fields, const std::string& parent) {
  std::map<std::string, std::string> seen;
  for (const Field& field : fields) {
    const std::string path = parent.empty() ? field.name : parent + "." + field.name;
    if (field.name.empty()) {
      return invalid_argument(kBadDefinition, "a column of {} has an empty name",
                              parent.empty() ? "the table" : parent);
    }
    if (field.name.find_first_of(kRefusedCharacters) != std::string::npos) {
      return invalid_argument(
          "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES",
          "column '{}' has one of the characters ' ,;{{}}()=', tab or newline in its name; give "
          "it another name with AS",
          path);
    }
    const auto [other, is_new] = seen.emplace(fold_name(field.name), field.name);
    if (!is_new) {
      return invalid_argument("DELTA_DUPLICATE_COLUMNS_FOUND",
                              "columns '{}' and '{}'{} differ only in case", other->second,
                              field.name, parent.empty() ? "" : " of " + parent);
    }
    SL_TRY(check_type(field.type, path));
  }
  return {};
}

// The schema's spelling of column names, each a plain column of the table.
Result<std::vector<std::string>> resolve_columns(const Schema& schema,
                                                 const std::vector<std::string>& names,
                                                 const char* use) {
  std::vector<std::string> resolved;
  for (const std::string& name : names) {
    const Field* const field = schema.get(name);
    if (field == nullptr) {
      return invalid_argument(kBadDefinition, "{} column '{}' is not a column of the table", use,
                              name);
    }
    if (field->type.is_nested()) {
      return invalid_argument(kBadDefinition,
                              "{} column '{}' has type {}; only plain types can be used", use, name,
                              to_sql(field->type));
    }
    if (std::find(resolved.begin(), resolved.end(), field->name) != resolved.end()) {
      return invalid_argument(kBadDefinition, "{} column '{}' is named twice", use, name);
    }
    resolved.push_back(field->name);
  }
  return resolved;
}

void set_default(std::map<std::string, std::string>* properties, const char* key) {
  properties->emplace(key, "true");
}

// Materialised row tracking columns: names that no user column has or will get.
void name_row_tracking_columns(std::map<std::string, std::string>* properties) {
  properties->emplace("delta.rowTracking.materializedRowIdColumnName", "_row-id-col-" + new_uuid());
  properties->emplace("delta.rowTracking.materializedRowCommitVersionColumnName",
                      "_row-commit-version-col-" + new_uuid());
}

}  // namespace

Result<TableDefinition> define_table(const NewTable& table) {
  if (table.schema.fields.empty())
    return invalid_argument(kBadDefinition, "a table needs at least one column");
  SL_TRY(check_fields(table.schema.fields, ""));

  std::map<std::string, std::string> properties = table.properties;
  SL_TRY(check_properties(&properties));
  set_default(&properties, "delta.enableDeletionVectors");
  set_default(&properties, "delta.enableRowTracking");
  set_default(&properties, "delta.enableInCommitTimestamps");

  std::set<std::string> features;
  for (auto property = properties.begin(); property != properties.end();) {
    constexpr std::string_view kPrefix = "delta.feature.";
    if (!property->first.starts_with(kPrefix)) {
      ++property;
      continue;
    }
    features.insert(property->first.substr(kPrefix.size()));
    property = properties.erase(property);
  }
  if (properties["delta.enableRowTracking"] == "true") name_row_tracking_columns(&properties);

  TableDefinition definition;
  Metadata& metadata = definition.metadata;
  metadata.id = new_uuid();
  metadata.description = table.description;
  metadata.schema_string = print_schema(table.schema);
  metadata.configuration = std::move(properties);
  metadata.created_time_ms = now_ms();
  SL_ASSIGN(metadata.partition_columns,
            resolve_columns(table.schema, table.partition_columns, "partition"));
  if (metadata.partition_columns.size() == table.schema.fields.size()) {
    return invalid_argument(kBadDefinition, "every column is a partition column; leave one out");
  }

  SL_ASSIGN(const std::vector<std::string> clustering,
            resolve_columns(table.schema, table.clustering_columns, "clustering"));
  if (!clustering.empty()) {
    if (!metadata.partition_columns.empty()) {
      return invalid_argument(kBadDefinition,
                              "a table has either partition columns or clustering columns");
    }
    JsonWriter configuration;
    configuration.begin_object();
    configuration.key("clusteringColumns");
    configuration.begin_array();
    for (const std::string& column : clustering) {
      configuration.begin_array();
      configuration.value(column);
      configuration.end_array();
    }
    configuration.end_array();
    configuration.end_object();
    definition.domains.push_back({"delta.clustering", configuration.take(), false});
    features.insert({"clustering", "domainMetadata"});
  }

  features.merge(required_features(metadata, table.schema));
  if (features.count("rowTracking") > 0) features.insert("domainMetadata");
  definition.protocol = with_features(Protocol{1, 2, {}, {}}, features);
  SL_TRY(check_writable(definition.protocol, metadata, table.schema, "of this definition"));
  return definition;
}

}  // namespace strandline::delta
