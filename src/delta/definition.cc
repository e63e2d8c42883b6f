#include "delta/definition.h"

#include "base/ids.h"
#include "base/json.h"

namespace strandline::delta {

void name_row_tracking_columns(std::map<std::string, std::string>* properties) {
  properties->emplace("delta.rowTracking.materializedRowIdColumnName", "_row-id-col-" + new_uuid());
  properties->emplace("delta.rowTracking.materializedRowCommitVersionColumnName",
                      "_row-commit-version-col-" + new_uuid());
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
