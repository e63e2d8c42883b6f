// Table properties that the Delta layer knows.
#pragma once

#include <strandline/result.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace strandline::delta {

// Checks keys and values of "delta." properties and writes flags in lower case; others are free.
// Errors: kInvalidArgument "DELTA_UNKNOWN_CONFIGURATION" or "DELTA_INVALID_PROPERTY_VALUE",
// kUnsupported naming the feature of a property that we cannot honour.
Status check_properties(std::map<std::string, std::string>* properties);

// Milliseconds of "interval 7 days", "1 week 2 hours"; nullopt when it is none.
std::optional<int64_t> parse_interval_ms(std::string_view text);

// A whole number, or fallback when the property is absent or none.
int64_t integer_property(const std::map<std::string, std::string>& properties,
                         const std::string& key, int64_t fallback);

}  // namespace strandline::delta
