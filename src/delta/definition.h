// Parts of a table's definition that creating and altering share.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "delta/alter.h"

namespace strandline::delta {

// Materialised row tracking columns: names that no user column has or will get. Names that are
// there already stay.
void name_row_tracking_columns(std::map<std::string, std::string>* properties);

// Removes "delta.feature.NAME" and gives the names.
std::set<std::string> take_feature_properties(std::map<std::string, std::string>* properties);

// The metadata domain that says by what a table is clustered; paths of physical names.
inline constexpr const char* kClusteringDomain = "delta.clustering";
DomainMetadata clustering_domain(const std::vector<FieldPath>& columns);

// Physical names of the columns of a CLUSTER BY. Errors: DELTA_COLUMN_NOT_FOUND,
// DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED, DELTA_DUPLICATE_COLUMNS_FOUND.
Result<std::vector<FieldPath>> resolve_clustering(const Schema& schema, bool mapped,
                                                  const std::vector<FieldPath>& columns);

}  // namespace strandline::delta
