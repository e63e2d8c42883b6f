#include "delta/stats_text.h"

#include <array>

namespace strandline::delta {

namespace {

constexpr char kHole = '\0';  // no JSON text holds it

bool is_number_part(char c) {
  return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}
bool starts_number(char c) { return (c >= '0' && c <= '9') || c == '-'; }

// Cuts a text into the words around its values, and the values: numbers, and the characters of
// strings that are no member's name. It need not understand the text, since putting the values back
// always gives the same text.
void split(std::string_view text, std::string* frame, std::string* values) {
  const auto hole = [&](std::string_view value) {
    *frame += kHole;
    *values += value;
    *values += kHole;
  };
  for (size_t i = 0; i < text.size();) {
    if (text[i] == '"') {
      size_t end = i + 1;
      while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
      if (end >= text.size()) {
        *frame += text.substr(i);
        return;
      }
      const bool is_name = end + 1 < text.size() && text[end + 1] == ':';
      if (is_name) {
        *frame += text.substr(i, end + 1 - i);
      } else {
        *frame += '"';
        hole(text.substr(i + 1, end - i - 1));
        *frame += '"';
      }
      i = end + 1;
    } else if (starts_number(text[i])) {
      size_t end = i;
      while (end < text.size() && is_number_part(text[end])) ++end;
      hole(text.substr(i, end - i));
      i = end;
    } else {
      *frame += text[i++];
    }
  }
}

// The frame as one that others share already. Tables have few frames, so the latest ones do.
Shared<std::string> shared_frame(const std::string& frame) {
  thread_local std::array<Shared<std::string>, 8> latest;
  thread_local size_t next = 0;
  for (const Shared<std::string>& known : latest) {
    if (known && *known == frame) return known;
  }
  Shared<std::string>& slot = latest[next];
  next = (next + 1) % latest.size();
  slot = frame;
  return slot;
}

}  // namespace

StatsText::StatsText(std::string_view text) {
  thread_local std::string frame;
  thread_local std::string values;
  frame.clear();
  values.clear();
  if (text.find(kHole) == std::string_view::npos) {
    split(text, &frame, &values);
    packed_ = Packed{shared_frame(frame), std::string(values)};
  } else {
    // Not JSON: kept as it is, without a frame.
    packed_ = Packed{{}, std::string(text)};
  }
}

std::string StatsText::operator*() const {
  if (!packed_->frame) return packed_->values;
  const std::string& frame = *packed_->frame;
  std::string_view values = packed_->values;
  std::string text;
  text.reserve(frame.size() + values.size());
  for (const char c : frame) {
    if (c != kHole) {
      text += c;
      continue;
    }
    const size_t end = values.find(kHole);
    text += values.substr(0, end);
    values.remove_prefix(end + 1);
  }
  return text;
}

}  // namespace strandline::delta
