// The form in which the expected rows of conformance tables are written down.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/json.h"
#include "duck/connection.h"

namespace strandline {

// JSON text in which equal values look equal: numbers by value.
inline std::string canonical(const Json& value) {
  switch (value.kind()) {
    case Json::Kind::kNumber: {
      const std::string& text = value.text();
      if (text.find_first_of(".eE") == std::string::npos) return text;
      return fmt::format("{}", std::strtod(text.c_str(), nullptr));
    }
    case Json::Kind::kArray: {
      std::string text = "[";
      for (const Json& item : value.items()) text += canonical(item) + ",";
      return text + "]";
    }
    case Json::Kind::kObject: {
      std::string text = "{";
      for (size_t i = 0; i < value.items().size(); ++i) {
        text += json_string(value.names()[i]) + ":" + canonical(value.items()[i]) + ",";
      }
      return text + "}";
    }
    default:
      return value.dump();
  }
}

inline std::string canonical_line(const std::string& line) {
  const auto json = Json::parse(line);
  EXPECT_TRUE(json.ok()) << line;
  return json.ok() ? canonical(*json) : line;
}

// A column in the form of the expected files.
inline std::string expected_form(const Field& field) {
  const std::string value = duck::quote_name(field.name);
  switch (field.type.id) {
    case TypeId::kTimestamp:
      return "strftime(" + value + ", '%Y-%m-%dT%H:%M:%S.%fZ')";
    case TypeId::kTimestampNtz:
      return "strftime(" + value + ", '%Y-%m-%dT%H:%M:%S.%f')";
    case TypeId::kDecimal:
      return value + "::VARCHAR";
    case TypeId::kBinary:
      return "base64(" + value + ")";
    case TypeId::kFloat:
      return value + "::DOUBLE";
    default:
      return value;
  }
}

}  // namespace strandline
