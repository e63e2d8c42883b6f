// The statistics of a file as the JSON text of the log, kept small.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "delta/shared.h"

namespace strandline::delta {

// Used as an optional<std::string>, except that reading makes the text anew: `*stats` is a value,
// so keep it in a std::string, not in a view. Files of a table have the same words around their
// values, which are kept once; copies share what they hold. Any text comes back as it was.
class StatsText {
 public:
  StatsText() = default;
  StatsText(std::nullopt_t) {}
  StatsText(std::string_view text);
  StatsText(const std::string& text) : StatsText(std::string_view(text)) {}
  StatsText(const char* text) : StatsText(std::string_view(text)) {}
  StatsText(const std::optional<std::string>& text) {
    if (text) *this = StatsText(*text);
  }

  bool has_value() const { return packed_.has_value(); }
  explicit operator bool() const { return has_value(); }
  // The text; undefined without one.
  std::string operator*() const;
  struct Text {
    const std::string* operator->() const { return &text; }
    std::string text;
  };
  Text operator->() const { return {**this}; }
  std::string value_or(std::string fallback) const { return has_value() ? **this : fallback; }
  void reset() { packed_.reset(); }

  friend bool operator==(const StatsText& a, const StatsText& b) {
    return a.has_value() == b.has_value() && (!a || *a == *b);
  }

 private:
  struct Packed {
    Shared<std::string>
        frame;           // the text with a zero byte for each value; none: values is the text
    std::string values;  // each followed by a zero byte
  };

  Shared<Packed> packed_;
};

}  // namespace strandline::delta
