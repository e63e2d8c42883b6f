#include "delta/definition.h"

#include <algorithm>

#include "base/error.h"
#include "base/ids.h"
#include "base/json.h"
#include "delta/row_id_columns.h"
#include "delta/snapshot.h"

namespace strandline::delta {

void name_row_tracking_columns(std::map<std::string, std::string>* properties) {
  properties->emplace(kRowIdColumnProperty, "_row-id-col-" + new_uuid());
  properties->emplace(kRowVersionColumnProperty, "_row-commit-version-col-" + new_uuid());
}

std::set<std::string> take_feature_properties(std::map<std::string, std::string>* properties) {
  constexpr std::string_view kPrefix = "delta.feature.";
  std::set<std::string> features;
  for (auto property = properties->begin(); property != properties->end();) {
    if (!property->first.starts_with(kPrefix)) {
      ++property;
      continue;
    }
    features.insert(property->first.substr(kPrefix.size()));
    property = properties->erase(property);
  }
  return features;
}

DomainMetadata clustering_domain(const std::vector<FieldPath>& columns) {
  JsonWriter configuration;
  configuration.begin_object();
  configuration.key("clusteringColumns");
  configuration.begin_array();
  for (const FieldPath& column : columns) {
    configuration.begin_array();
    for (const std::string& name : column) configuration.value(name);
    configuration.end_array();
  }
  configuration.end_array();
  configuration.end_object();
  return {kClusteringDomain, configuration.take(), false};
}

Result<std::vector<FieldPath>> resolve_clustering(const Schema& schema, bool mapped,
                                                  const std::vector<FieldPath>& columns) {
  std::vector<FieldPath> physical;
  for (const FieldPath& column : columns) {
    const Field* const field = find_field(schema, column);
    if (field == nullptr) {
      return invalid_argument("DELTA_COLUMN_NOT_FOUND", "there is no column {}", to_string(column));
    }
    if (field->type.is_nested() || field->type.id == TypeId::kVoid) {
      return invalid_argument("DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED",
                              "column {} has type {}; only plain types can be clustered by",
                              to_string(column), to_sql(field->type));
    }
    FieldPath path;
    for (size_t i = 1; i <= column.size(); ++i) {
      const Field* const part = find_field(
          schema, FieldPath(column.begin(), column.begin() + static_cast<std::ptrdiff_t>(i)));
      if (part == nullptr || (i < column.size() && part->type.id != TypeId::kStruct)) {
        return invalid_argument("DELTA_COLUMN_NOT_FOUND",
                                "{} does not lie in structs alone: it cannot be clustered by",
                                to_string(column));
      }
      path.push_back(mapped ? Snapshot::physical_name(*part) : part->name);
    }
    if (std::find(physical.begin(), physical.end(), path) != physical.end()) {
      return invalid_argument("DELTA_DUPLICATE_COLUMNS_FOUND",
                              "clustering column {} is named twice", to_string(column));
    }
    physical.push_back(std::move(path));
  }
  return physical;
}

std::vector<FieldPath> clustering_columns(const std::map<std::string, DomainMetadata>& domains) {
  std::vector<FieldPath> columns;
  const auto domain = domains.find(kClusteringDomain);
  if (domain == domains.end() || domain->second.removed) return columns;
  const auto json = Json::parse(domain->second.configuration);
  const Json* const list = json.ok() ? json->get("clusteringColumns") : nullptr;
  if (list == nullptr) return columns;
  for (const Json& column : list->items()) {
    FieldPath path;
    for (const Json& name : column.items()) path.push_back(name.text());
    if (!path.empty()) columns.push_back(std::move(path));
  }
  return columns;
}

}  // namespace strandline::delta
