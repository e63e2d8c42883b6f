#include "delta/feature_table.h"

#include <algorithm>
#include <functional>

#include "delta/features.h"

namespace strandline::delta {

namespace {

constexpr auto kW = Feature::Kind::kWriter;
constexpr auto kRw = Feature::Kind::kReaderWriter;
constexpr auto kNo = Feature::Support::kNo;
constexpr auto kYes = Feature::Support::kYes;
constexpr auto kNever = Feature::Write::kNo;
constexpr auto kWrite = Feature::Write::kYes;
using Use = Feature::Use;

// clang-format off
constexpr Feature kFeatures[] = {
    // name, kind, read, write, feed, use, what, type, legacy writer, legacy reader, note
    {"appendOnly", kW, kYes, kWrite, kYes, Use::kFlag, "delta.appendOnly", TypeId::kVoid, 2},
    {"invariants", kW, kYes, kWrite, kYes, Use::kColumn, "delta.invariants", TypeId::kVoid, 2},
    {"checkConstraints", kW, kYes, kWrite, kYes, Use::kPropertyPrefix, "delta.constraints.", TypeId::kVoid, 3},
    {"changeDataFeed", kW, kYes, kWrite, kYes, Use::kFlag, "delta.enableChangeDataFeed", TypeId::kVoid, 4},
    {"generatedColumns", kW, kYes, kWrite, kYes, Use::kColumn, "delta.generationExpression", TypeId::kVoid, 4},
    {"columnMapping", kRw, kYes, kWrite, kYes, Use::kSet, "delta.columnMapping.mode", TypeId::kVoid, 5, 2},
    {"identityColumns", kW, kYes, kWrite, kYes, Use::kColumn, "delta.identity.", TypeId::kVoid, 6},
    {"allowColumnDefaults", kW, kYes, kWrite, kYes, Use::kColumn, "CURRENT_DEFAULT"},
    {"deletionVectors", kRw, kYes, kWrite, kYes, Use::kFlag, "delta.enableDeletionVectors"},
    {"rowTracking", kW, kYes, kWrite, kYes, Use::kFlag, "delta.enableRowTracking"},
    {"domainMetadata", kW, kYes, kWrite, kYes},
    {"timestampNtz", kRw, kYes, kWrite, kYes, Use::kType, "", TypeId::kTimestampNtz},
    {"v2Checkpoint", kRw, kYes, kWrite, kYes, Use::kValue, "delta.checkpointPolicy=v2"},
    {"inCommitTimestamp", kW, kYes, kWrite, kYes, Use::kFlag, "delta.enableInCommitTimestamps"},
    {"vacuumProtocolCheck", kRw, kYes, kWrite, kYes},
    {"clustering", kW, kYes, kWrite, kYes, Use::kDomain, "delta.clustering"},
    {"typeWidening", kRw, kYes, kWrite, kYes, Use::kFlag, "delta.enableTypeWidening"},
    {"typeWidening-preview", kRw, kYes, kWrite, kYes, Use::kListed, "", TypeId::kVoid, 0, 0, "as typeWidening"},
    {"variantType", kRw, kNo, kNever, kNo, Use::kType, "", TypeId::kVariant},
    {"variantType-preview", kRw, kNo, kNever, kNo},
    {"variantShredding", kRw, kNo, kNever, kNo, Use::kFlag, "delta.enableVariantShredding"},
    {"variantShredding-preview", kRw, kNo, kNever, kNo},
    {"catalogManaged", kRw, kNo, kNever, kNo, Use::kListed, "", TypeId::kVoid, 0, 0,
     "commits belong to a catalog"},
    {"catalogOwned-preview", kRw, kNo, kNever, kNo, Use::kListed, "", TypeId::kVoid, 0, 0,
     "commits belong to a catalog"},
    {"coordinatedCommits-preview", kW, kNo, kNever, kNo, Use::kListed, "", TypeId::kVoid, 0, 0,
     "commits that only the coordinator knows are missing from the log"},
    {"redirectReaderWriter-preview", kRw, kNo, kNever, kNo},
    {"geospatial", kRw, kNo, kNever, kNo},
    {"icebergCompatV1", kW, kYes, kNever, kYes, Use::kFlag, "delta.enableIcebergCompatV1"},
    {"icebergCompatV2", kW, kYes, kNever, kYes, Use::kFlag, "delta.enableIcebergCompatV2"},
    {"icebergCompatV3", kW, kYes, kNever, kYes, Use::kFlag, "delta.enableIcebergCompatV3"},
    {"icebergWriterCompatV1", kW, kYes, kNever, kYes},
    {"icebergWriterCompatV3", kW, kYes, kNever, kYes},
    {"checkpointProtection", kW, kYes, kWrite, kYes},
    {"materializePartitionColumns", kW, kYes, kNever, kYes},
    {"collations", kW, kYes, kNever, kYes},
    {"collations-preview", kW, kYes, kNever, kYes},
    {"redirectWriterOnly-preview", kW, kYes, kNever, kYes},
};
// clang-format on

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

}  // namespace

std::span<const Feature> feature_table() { return kFeatures; }

const Feature* find_feature(const std::string& name) {
  for (const Feature& feature : kFeatures) {
    if (name == feature.name) return &feature;
  }
  return nullptr;
}

bool has_field_metadata(const Schema& schema, const std::string& prefix) {
  return any_field(DataType::structure(schema.fields), [&](const Field& field) {
    const auto at = field.metadata.lower_bound(prefix);
    return at != field.metadata.end() && at->first.starts_with(prefix);
  });
}

bool is_used(const Feature& feature, const Metadata& metadata, const Schema& schema) {
  const std::string what = feature.what;
  const auto property = [&](const std::string& key) -> std::string {
    const auto found = metadata.configuration.find(key);
    return found == metadata.configuration.end() ? "" : fold_name(found->second);
  };
  switch (feature.use) {
    case Use::kListed:
    case Use::kDomain:
      return false;
    case Use::kFlag:
      return property(what) == "true";
    case Use::kValue: {
      const size_t split = what.find('=');
      return property(what.substr(0, split)) == what.substr(split + 1);
    }
    case Use::kSet:
      return !property(what).empty() && property(what) != "none";
    case Use::kPropertyPrefix: {
      const auto at = metadata.configuration.lower_bound(what);
      return at != metadata.configuration.end() && at->first.starts_with(what);
    }
    case Use::kColumn:
      return has_field_metadata(schema, what);
    case Use::kType:
      return std::any_of(schema.fields.begin(), schema.fields.end(),
                         [&](const Field& field) { return any_type(field.type, feature.type); });
  }
  return false;
}

}  // namespace strandline::delta
