#include "delta/features.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "delta/feature_table.h"

namespace strandline::delta {

namespace {

constexpr int kMaxReaderVersion = 3;
constexpr int kMaxWriterVersion = 7;

using Write = Feature::Write;
constexpr auto kNo = Feature::Support::kNo;

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
  for (const Feature& feature : feature_table()) {
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
    if (feature == nullptr || feature->read == kNo) refused.insert(name);
  }
  for (const std::string& name : protocol.writer_features) {
    const Feature* const feature = find_feature(name);
    if (feature != nullptr && feature->read == kNo) refused.insert(name);
  }
  if (refused.empty()) return {};
  return unsupported(
      "DELTA_UNSUPPORTED_FEATURES_FOR_READ",
      "table {} cannot be read: it has the table features {}, which Strandline does not "
      "support; drop them with the engine that wrote the table, or read it there",
      table_path, join(refused));
}

Status check_feed_readable(const Protocol& protocol, const std::string& table_path) {
  SL_TRY(check_readable(protocol, table_path));
  std::set<std::string> refused;
  for (const std::string& name : supported_features(protocol)) {
    const Feature* const feature = find_feature(name);
    if (feature == nullptr || feature->feed == kNo) refused.insert(name);
  }
  if (refused.empty()) return {};
  return unsupported(
      "DELTA_UNSUPPORTED_FEATURES_FOR_READ",
      "the change feed of table {} cannot be read: it has the table features {}, which Strandline "
      "does not support there; read the feed with the engine that wrote the table",
      table_path, join(refused));
}

Status check_writable(const Protocol& protocol, const std::string& table_path) {
  SL_TRY(check_readable(protocol, table_path));
  std::set<std::string> refused;
  for (const std::string& name : supported_features(protocol)) {
    const Feature* const feature = find_feature(name);
    if (feature == nullptr || feature->write == Write::kNo) refused.insert(name);
  }
  if (!refused.empty()) {
    return unsupported(
        "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
        "table {} cannot be written: it has the table features {}, which Strandline does not "
        "support; drop them with the engine that wrote the table, or write it there",
        table_path, join(refused));
  }
  return {};
}

std::set<std::string> required_features(const Metadata& metadata, const Schema& schema) {
  std::set<std::string> names;
  for (const Feature& feature : feature_table()) {
    if (is_used(feature, metadata, schema)) names.insert(feature.name);
  }
  if (names.count("rowTracking") > 0) names.insert("domainMetadata");
  return names;
}

Protocol with_features(const Protocol& protocol, const std::set<std::string>& features) {
  std::set<std::string> all = supported_features(protocol);
  bool is_more = false;
  for (const std::string& name : features) {
    // The preview of a feature does what the feature does.
    if (all.count(name) > 0 || all.count(name + "-preview") > 0) continue;
    all.insert(name);
    is_more = true;
  }
  if (!is_more) return protocol;
  Protocol result;
  result.min_writer_version = kMaxWriterVersion;
  result.min_reader_version = protocol.min_reader_version;
  result.writer_features = all;
  const auto needs_reader = [](const std::string& name) {
    const Feature* const feature = find_feature(name);
    return feature != nullptr && feature->kind == Feature::Kind::kReaderWriter;
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
