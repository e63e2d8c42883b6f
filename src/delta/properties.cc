#include "delta/properties.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/data_type.h"
#include "base/error.h"

namespace strandline::delta {

namespace {

enum class Value { kFlag, kCount, kInterval, kText, kChoice, kNoFlag };

struct Property {
  const char* key;
  Value value;
  int64_t least = 0;         // kCount
  const char* choices = "";  // kChoice, separated by '|', compared without case
  const char* feature = "";  // kNoFlag: what "true" would need
};

constexpr Property kProperties[] = {
    {"delta.appendOnly", Value::kFlag},
    {"delta.autoOptimize.autoCompact", Value::kText},
    {"delta.autoOptimize.optimizeWrite", Value::kText},
    {"delta.checkpoint.writeStatsAsJson", Value::kFlag},
    {"delta.checkpoint.writeStatsAsStruct", Value::kFlag},
    {"delta.checkpointInterval", Value::kCount, 1},
    {"delta.checkpointPolicy", Value::kChoice, 0, "classic|v2"},
    {"delta.columnMapping.mode", Value::kChoice, 0, "none|name|id"},
    {"delta.dataSkippingNumIndexedCols", Value::kCount, -1},
    {"delta.dataSkippingStatsColumns", Value::kText},
    {"delta.dataSkippingStringPrefixLength", Value::kCount, 1},
    {"delta.deletedFileRetentionDuration", Value::kInterval},
    {"delta.dropFeatureTruncateHistory.retentionDuration", Value::kInterval},
    {"delta.enableChangeDataFeed", Value::kFlag},
    {"delta.enableDeletionVectors", Value::kFlag},
    {"delta.enableExpiredLogCleanup", Value::kFlag},
    {"delta.enableInCommitTimestamps", Value::kFlag},
    {"delta.enableRowTracking", Value::kFlag},
    {"delta.enableTypeWidening", Value::kFlag},
    {"delta.enableIcebergCompatV1", Value::kNoFlag, 0, "", "icebergCompatV1"},
    {"delta.enableIcebergCompatV2", Value::kNoFlag, 0, "", "icebergCompatV2"},
    {"delta.enableIcebergCompatV3", Value::kNoFlag, 0, "", "icebergCompatV3"},
    {"delta.enableVariantShredding", Value::kNoFlag, 0, "", "variantShredding"},
    {"delta.compatibility.symlinkFormatManifest.enabled", Value::kNoFlag, 0, "",
     "symlink manifests"},
    {"delta.isolationLevel", Value::kChoice, 0, "Serializable|WriteSerializable"},
    {"delta.logRetentionDuration", Value::kInterval},
    {"delta.parquet.compression.codec", Value::kChoice, 0,
     "uncompressed|none|snappy|gzip|zstd|lz4_raw"},
    {"delta.randomizeFilePrefixes", Value::kNoFlag, 0, "", "randomised file prefixes"},
    {"delta.rowTrackingSuspended", Value::kFlag},
    {"delta.sampleRetentionDuration", Value::kInterval},
    {"delta.setTransactionRetentionDuration", Value::kInterval},
    {"delta.targetFileSize", Value::kText},
    {"delta.tuneFileSizesForRewrites", Value::kFlag},
};

constexpr std::string_view kFeaturePrefix = "delta.feature.";
constexpr std::string_view kConstraintPrefix = "delta.constraints.";

bool parse_integer(std::string_view text, int64_t* value) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && stop == text.data() + text.size();
}

// The choice as it is spelled in the list, or nullopt.
std::optional<std::string> choose(std::string_view choices, const std::string& value) {
  while (!choices.empty()) {
    const size_t end = std::min(choices.find('|'), choices.size());
    std::string choice(choices.substr(0, end));
    if (fold_name(choice) == fold_name(value)) return choice;
    choices.remove_prefix(std::min(end + 1, choices.size()));
  }
  return std::nullopt;
}

Error bad_value(const std::string& key, const std::string& value, const std::string& wanted) {
  return invalid_argument("DELTA_INVALID_PROPERTY_VALUE",
                          "table property '{}' is '{}', but must be {}", key, value, wanted);
}

Error no_feature(const std::string& key, const std::string& value, const std::string& feature) {
  return unsupported(
      "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
      "table property '{}' = '{}' needs {}, which Strandline cannot write yet; leave it out", key,
      value, feature);
}

Status check(const Property& property, std::string* value) {
  const std::string folded = fold_name(*value);
  switch (property.value) {
    case Value::kText:
      return {};
    case Value::kFlag:
    case Value::kNoFlag:
      if (folded != "true" && folded != "false")
        return bad_value(property.key, *value, "true or false");
      *value = folded;
      if (property.value == Value::kNoFlag && folded == "true") {
        return no_feature(property.key, *value, property.feature);
      }
      return {};
    case Value::kCount: {
      int64_t number = 0;
      if (!parse_integer(*value, &number) || number < property.least) {
        return bad_value(property.key, *value,
                         fmt::format("a whole number from {} on", property.least));
      }
      return {};
    }
    case Value::kInterval:
      if (!parse_interval_ms(*value))
        return bad_value(property.key, *value, "an interval such as 'interval 7 days'");
      return {};
    case Value::kChoice: {
      std::optional<std::string> choice = choose(property.choices, *value);
      if (!choice) {
        std::string wanted = property.choices;
        std::replace(wanted.begin(), wanted.end(), '|', ' ');
        return bad_value(property.key, *value, "one of: " + wanted);
      }
      *value = *std::move(choice);
      return {};
    }
  }
  return {};
}

}  // namespace

Status check_properties(std::map<std::string, std::string>* properties) {
  for (auto& [key, value] : *properties) {
    if (!key.starts_with("delta.")) continue;
    if (key.starts_with(kFeaturePrefix)) {
      if (value != "supported" && value != "enabled") return bad_value(key, value, "supported");
      continue;
    }
    // SQL text, which the caller has checked.
    if (key.starts_with(kConstraintPrefix)) continue;
    if (key == "delta.universalFormat.enabledFormats")
      return no_feature(key, value, "icebergCompatV2");
    if (key == "delta.minReaderVersion" || key == "delta.minWriterVersion") {
      return invalid_argument(
          "DELTA_INVALID_PROPERTY_VALUE",
          "table property '{}' cannot be set: the protocol follows from the other "
          "properties, and 'delta.feature.NAME' = 'supported' adds a feature",
          key);
    }
    const auto known =
        std::find_if(std::begin(kProperties), std::end(kProperties),
                     [&name = key](const Property& property) { return name == property.key; });
    if (known == std::end(kProperties)) {
      return invalid_argument(
          "DELTA_UNKNOWN_CONFIGURATION",
          "Strandline does not know the table property '{}'; check its spelling, or choose a "
          "name without 'delta.' for a property of your own",
          key);
    }
    SL_TRY(check(*known, &value));
  }
  return {};
}

std::optional<int64_t> parse_interval_ms(std::string_view text) {
  struct Unit {
    const char* name;
    int64_t ms;
  };
  constexpr Unit kUnits[] = {{"week", 604'800'000}, {"day", 86'400'000}, {"hour", 3'600'000},
                             {"minute", 60'000},    {"second", 1000},    {"millisecond", 1}};
  const std::string folded = fold_name(std::string(text));
  std::string_view rest = folded;
  const auto word = [&]() -> std::string_view {
    const size_t start = std::min(rest.find_first_not_of(" \t"), rest.size());
    const size_t end = std::min(rest.find_first_of(" \t", start), rest.size());
    const std::string_view found = rest.substr(start, end - start);
    rest.remove_prefix(end);
    return found;
  };
  int64_t total = 0;
  bool any = false;
  for (std::string_view number = word(); !number.empty(); number = word()) {
    if (number == "interval" && !any) continue;
    int64_t count = 0;
    if (!parse_integer(number, &count) || count < 0) return std::nullopt;
    std::string_view name = word();
    if (name.ends_with('s')) name.remove_suffix(1);
    const auto unit = std::find_if(std::begin(kUnits), std::end(kUnits),
                                   [&](const Unit& u) { return name == u.name; });
    if (unit == std::end(kUnits)) return std::nullopt;
    if (count > (std::numeric_limits<int64_t>::max() - total) / unit->ms) return std::nullopt;
    total += count * unit->ms;
    any = true;
  }
  return any ? std::optional(total) : std::nullopt;
}

int64_t integer_property(const std::map<std::string, std::string>& properties,
                         const std::string& key, int64_t fallback) {
  const auto found = properties.find(key);
  int64_t value = 0;
  return found != properties.end() && parse_integer(found->second, &value) ? value : fallback;
}

}  // namespace strandline::delta
