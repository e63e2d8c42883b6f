#include "delta/features.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/error.h"

namespace strandline::delta {

namespace {

constexpr int kMaxReaderVersion = 3;
constexpr int kMaxWriterVersion = 7;

enum class Kind { kWriter, kReaderWriter };
enum class Read { kNo, kYes };
// kUnused: only while no column or property of the table makes use of the feature.
enum class Write { kNo, kUnused, kYes };

struct TableState {
  const Metadata& metadata;
  const Schema& schema;
};

using Used = bool (*)(const TableState&);

bool has_property_prefix(const Metadata& metadata, const std::string& prefix) {
  const auto at = metadata.configuration.lower_bound(prefix);
  return at != metadata.configuration.end() && at->first.starts_with(prefix);
}

bool uses_invariants(const TableState& table) {
  return has_field_metadata(table.schema, "delta.invariants");
}
bool uses_constraints(const TableState& table) {
  return has_property_prefix(table.metadata, "delta.constraints.");
}
bool uses_generated(const TableState& table) {
  return has_field_metadata(table.schema, "delta.generationExpression");
}
bool uses_identity(const TableState& table) {
  return has_field_metadata(table.schema, "delta.identity.");
}
bool uses_mapping(const TableState& table) {
  const auto mode = table.metadata.configuration.find("delta.columnMapping.mode");
  return mode != table.metadata.configuration.end() && mode->second != "none";
}

struct Feature {
  const char* name;
  Kind kind;
  Read read;
  Write write;
  int legacy_writer = 0;  // implied by this minWriterVersion and higher ones below 7
  int legacy_reader = 0;  // implied by this minReaderVersion below 3
  Used used = nullptr;    // for Write::kUnused
};

constexpr Kind kW = Kind::kWriter;
constexpr Kind kRw = Kind::kReaderWriter;

// clang-format off
const Feature kFeatures[] = {
    {"appendOnly",                 kW,  Read::kYes, Write::kYes,    2},
    {"invariants",                 kW,  Read::kYes, Write::kUnused, 2, 0, uses_invariants},
    {"checkConstraints",           kW,  Read::kYes, Write::kUnused, 3, 0, uses_constraints},
    {"changeDataFeed",             kW,  Read::kYes, Write::kYes,    4},
    {"generatedColumns",           kW,  Read::kYes, Write::kUnused, 4, 0, uses_generated},
    {"columnMapping",              kRw, Read::kYes, Write::kUnused, 5, 2, uses_mapping},
    {"identityColumns",            kW,  Read::kYes, Write::kUnused, 6, 0, uses_identity},
    {"allowColumnDefaults",        kW,  Read::kYes, Write::kYes},  // every column is always written
    {"deletionVectors",            kRw, Read::kYes, Write::kYes},
    {"rowTracking",                kW,  Read::kYes, Write::kYes},
    {"domainMetadata",             kW,  Read::kYes, Write::kYes},
    {"timestampNtz",               kRw, Read::kYes, Write::kYes},
    {"v2Checkpoint",               kRw, Read::kYes, Write::kYes},  // we write the classic form
    {"inCommitTimestamp",          kW,  Read::kYes, Write::kYes},
    {"vacuumProtocolCheck",        kRw, Read::kYes, Write::kYes},
    {"clustering",                 kW,  Read::kYes, Write::kYes},
    {"typeWidening",               kRw, Read::kNo,  Write::kNo},
    {"typeWidening-preview",       kRw, Read::kNo,  Write::kNo},
    {"variantType",                kRw, Read::kNo,  Write::kNo},
    {"variantType-preview",        kRw, Read::kNo,  Write::kNo},
    {"variantShredding",           kRw, Read::kNo,  Write::kNo},
    {"variantShredding-preview",   kRw, Read::kNo,  Write::kNo},
    {"catalogManaged",             kRw, Read::kNo,  Write::kNo},
    {"catalogOwned-preview",       kRw, Read::kNo,  Write::kNo},
    // A writer feature, but commits that only the coordinator knows are missing from the log.
    {"coordinatedCommits-preview", kW,  Read::kNo,  Write::kNo},
    {"redirectReaderWriter-preview", kRw, Read::kNo, Write::kNo},
    {"geospatial",                 kRw, Read::kNo,  Write::kNo},
    {"icebergCompatV1",            kW,  Read::kYes, Write::kNo},
    {"icebergCompatV2",            kW,  Read::kYes, Write::kNo},
    {"icebergCompatV3",            kW,  Read::kYes, Write::kNo},
    {"icebergWriterCompatV1",      kW,  Read::kYes, Write::kNo},
    {"icebergWriterCompatV3",      kW,  Read::kYes, Write::kNo},
    {"checkpointProtection",       kW,  Read::kYes, Write::kNo},
    {"materializePartitionColumns", kW, Read::kYes, Write::kNo},
    {"collations",                 kW,  Read::kYes, Write::kNo},
    {"collations-preview",         kW,  Read::kYes, Write::kNo},
    {"redirectWriterOnly-preview", kW,  Read::kYes, Write::kNo},
};
// clang-format on

const Feature* find_feature(const std::string& name) {
  for (const Feature& feature : kFeatures) {
    if (name == feature.name) return &feature;
  }
  return nullptr;
}

std::string join(const std::set<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

Status check_versions(const Protocol& protocol, const std::string& table_path) {
  if (protocol.min_reader_version <= kMaxReaderVersion &&
      protocol.min_writer_version <= kMaxWriterVersion && protocol.min_reader_version >= 1 &&
      protocol.min_writer_version >= 1) {
    return {};
  }
  return unsupported(
      "DELTA_INVALID_PROTOCOL_VERSION",
      "table {} needs protocol reader version {} and writer version {}; Strandline knows "
      "versions up to {} and {}: use a newer Strandline",
      table_path, protocol.min_reader_version, protocol.min_writer_version, kMaxReaderVersion,
      kMaxWriterVersion);
}

bool any_field(const DataType& type, const std::function<bool(const Field&)>& test) {
  switch (type.id) {
    case TypeId::kArray:
      return any_field(*type.element, test);
    case TypeId::kMap:
      return any_field(*type.key, test) || any_field(*type.element, test);
    case TypeId::kStruct:
      return std::any_of(type.fields->begin(), type.fields->end(), [&](const Field& field) {
        return test(field) || any_field(field.type, test);
      });
    default:
      return false;
  }
}

bool any_type(const DataType& type, TypeId id) {
  if (type.id == id) return true;
  if (type.id == TypeId::kArray) return any_type(*type.element, id);
  if (type.id == TypeId::kMap) return any_type(*type.key, id) || any_type(*type.element, id);
  if (type.id != TypeId::kStruct) return false;
  return std::any_of(type.fields->begin(), type.fields->end(),
                     [&](const Field& field) { return any_type(field.type, id); });
}

bool has_type(const Schema& schema, TypeId id) {
  return std::any_of(schema.fields.begin(), schema.fields.end(),
                     [&](const Field& field) { return any_type(field.type, id); });
}

}  // namespace

bool has_field_metadata(const Schema& schema, const std::string& prefix) {
  return any_field(DataType::structure(schema.fields), [&](const Field& field) {
    const auto at = field.metadata.lower_bound(prefix);
    return at != field.metadata.end() && at->first.starts_with(prefix);
  });
}

namespace {

// The versions of a legacy protocol stand for the feature, on both sides where it has both.
bool is_implied(const Protocol& protocol, const Feature& feature) {
  const bool writer = feature.legacy_writer > 0 && protocol.min_writer_version < 7 &&
                      protocol.min_writer_version >= feature.legacy_writer;
  const bool reader =
      protocol.min_reader_version < 3 && protocol.min_reader_version >= feature.legacy_reader;
  return writer && (feature.legacy_reader == 0 || reader);
}

}  // namespace

std::set<std::string> supported_features(const Protocol& protocol) {
  std::set<std::string> names = protocol.writer_features;
  names.insert(protocol.reader_features.begin(), protocol.reader_features.end());
  for (const Feature& feature : kFeatures) {
    if (is_implied(protocol, feature)) names.insert(feature.name);
  }
  return names;
}

bool supports(const Protocol& protocol, const std::string& name) {
  if (protocol.writer_features.count(name) > 0 || protocol.reader_features.count(name) > 0)
    return true;
  const Feature* const feature = find_feature(name);
  return feature != nullptr && is_implied(protocol, *feature);
}

Status check_readable(const Protocol& protocol, const std::string& table_path) {
  SL_TRY(check_versions(protocol, table_path));
  std::set<std::string> refused;
  for (const std::string& name : protocol.reader_features) {
    const Feature* const feature = find_feature(name);
    if (feature == nullptr || feature->read == Read::kNo) refused.insert(name);
  }
  for (const std::string& name : protocol.writer_features) {
    const Feature* const feature = find_feature(name);
    if (feature != nullptr && feature->read == Read::kNo) refused.insert(name);
  }
  if (refused.empty()) return {};
  return unsupported(
      "DELTA_UNSUPPORTED_FEATURES_FOR_READ",
      "table {} cannot be read: it has the table features {}, which Strandline does not "
      "support; drop them with the engine that wrote the table, or read it there",
      table_path, join(refused));
}

Status check_writable(const Protocol& protocol, const Metadata& metadata, const Schema& schema,
                      const std::string& table_path) {
  SL_TRY(check_readable(protocol, table_path));
  const TableState state{metadata, schema};
  std::set<std::string> refused;
  std::set<std::string> used;
  for (const std::string& name : supported_features(protocol)) {
    const Feature* const feature = find_feature(name);
    if (feature == nullptr || feature->write == Write::kNo) {
      refused.insert(name);
    } else if (feature->write == Write::kUnused && feature->used(state)) {
      used.insert(name);
    }
  }
  if (!refused.empty()) {
    return unsupported(
        "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
        "table {} cannot be written: it has the table features {}, which Strandline does not "
        "support; drop them with the engine that wrote the table, or write it there",
        table_path, join(refused));
  }
  if (!used.empty()) {
    return unsupported(
        "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
        "table {} cannot be written: its columns or properties use {}, which Strandline "
        "cannot keep up yet; write it with another engine, or drop that use first",
        table_path, join(used));
  }
  return {};
}

std::set<std::string> required_features(const Metadata& metadata, const Schema& schema) {
  const auto is = [&](const char* key, const char* value) {
    const auto property = metadata.configuration.find(key);
    return property != metadata.configuration.end() && fold_name(property->second) == value;
  };
  std::set<std::string> names;
  if (is("delta.appendOnly", "true")) names.insert("appendOnly");
  if (is("delta.enableDeletionVectors", "true")) names.insert("deletionVectors");
  if (is("delta.enableRowTracking", "true")) names.insert({"rowTracking", "domainMetadata"});
  if (is("delta.enableInCommitTimestamps", "true")) names.insert("inCommitTimestamp");
  if (is("delta.enableChangeDataFeed", "true")) names.insert("changeDataFeed");
  if (is("delta.enableTypeWidening", "true")) names.insert("typeWidening");
  if (is("delta.checkpointPolicy", "v2")) names.insert("v2Checkpoint");
  const TableState state{metadata, schema};
  for (const Feature& feature : kFeatures) {
    if (feature.used != nullptr && feature.used(state)) names.insert(feature.name);
  }
  if (has_type(schema, TypeId::kTimestampNtz)) names.insert("timestampNtz");
  if (has_type(schema, TypeId::kVariant)) names.insert("variantType");
  return names;
}

Protocol with_features(const Protocol& protocol, const std::set<std::string>& features) {
  const std::set<std::string> have = supported_features(protocol);
  if (std::includes(have.begin(), have.end(), features.begin(), features.end())) return protocol;

  std::set<std::string> all = have;
  all.insert(features.begin(), features.end());
  Protocol result;
  result.min_writer_version = kMaxWriterVersion;
  result.min_reader_version = protocol.min_reader_version;
  result.writer_features = all;
  const auto needs_reader = [](const std::string& name) {
    const Feature* const feature = find_feature(name);
    return feature != nullptr && feature->kind == kRw;
  };
  for (const std::string& name : all) {
    const Feature* const feature = find_feature(name);
    const bool legacy_is_enough = feature != nullptr && feature->legacy_reader > 0 &&
                                  protocol.min_reader_version >= feature->legacy_reader;
    if (needs_reader(name) && !legacy_is_enough) result.min_reader_version = kMaxReaderVersion;
  }
  if (result.min_reader_version == kMaxReaderVersion) {
    result.reader_features = protocol.reader_features;
    std::copy_if(all.begin(), all.end(),
                 std::inserter(result.reader_features, result.reader_features.end()), needs_reader);
  }
  return result;
}

}  // namespace strandline::delta
