// Table features: what Strandline reads and writes (delta-protocol.md section 3). A feature that is
// not in the table of feature_table.h, or not marked there, is refused by name.
#pragma once

#include <set>
#include <string>

#include "delta/snapshot.h"

namespace strandline::delta {

// Every feature that a table supports, listed or implied by its legacy protocol versions.
std::set<std::string> supported_features(const Protocol& protocol);
bool supports(const Protocol& protocol, const std::string& feature);

// Errors: kUnsupported, DELTA_UNSUPPORTED_FEATURES_FOR_READ naming each feature, or
// DELTA_INVALID_PROTOCOL_VERSION for protocol versions from the future.
Status check_readable(const Protocol& protocol, const std::string& table_path);

// Errors: as above, for the change feed of the table.
Status check_feed_readable(const Protocol& protocol, const std::string& table_path);

// Also refuses tables with a feature that we cannot write with.
// Errors: as above, DELTA_UNSUPPORTED_FEATURES_FOR_WRITE.
Status check_writable(const Protocol& protocol, const std::string& table_path);

// Features that the properties and column types of a table call for.
std::set<std::string> required_features(const Metadata& metadata, const Schema& schema);

// The lowest protocol that supports what `protocol` does and these features too; never takes one
// away. Features must be in the table. From a legacy protocol, what its versions imply is listed.
Protocol with_features(const Protocol& protocol, const std::set<std::string>& features);

// Some field, nested ones too, has a metadata key that starts with prefix.
bool has_field_metadata(const Schema& schema, const std::string& prefix);

}  // namespace strandline::delta
