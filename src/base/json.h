// JSON for everything small: a parsed value, and a writer. Log replay has its own, faster reader.
#pragma once

#include <strandline/result.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strandline {

// A JSON value. Numbers keep their text, so no digit is lost; members keep their order.
class Json {
 public:
  enum class Kind { kNull, kBool, kNumber, kString, kArray, kObject };

  Json() = default;

  // Exactly one value. Errors: kInvalidData "JSON_PARSE" saying what is wrong.
  static Result<Json> parse(std::string_view text);

  Kind kind() const { return kind_; }
  bool is_null() const { return kind_ == Kind::kNull; }
  bool is_object() const { return kind_ == Kind::kObject; }
  bool is_array() const { return kind_ == Kind::kArray; }
  bool is_string() const { return kind_ == Kind::kString; }

  // The value if it is of that kind (and fits), else nullopt or nullptr.
  std::optional<bool> as_bool() const;
  std::optional<int64_t> as_int() const;
  std::optional<double> as_double() const;
  const std::string* as_string() const;

  // Number text as written, or the string's characters.
  const std::string& text() const { return text_; }
  // Elements of an array; empty for other kinds.
  const std::vector<Json>& items() const { return items_; }
  // Names of an object's members, one for each of items().
  const std::vector<std::string>& names() const { return names_; }
  // The member with that name (the first, if repeated), or nullptr.
  const Json* get(std::string_view name) const;

  // Compact text.
  std::string dump() const;

 private:
  friend class JsonParser;

  void dump_to(std::string* out) const;

  Kind kind_ = Kind::kNull;
  bool bool_ = false;
  std::string text_;
  std::vector<Json> items_;
  std::vector<std::string> names_;
};

// Appends text as a JSON string with its quotes. Text is UTF-8.
void append_json_string(std::string* out, std::string_view text);
std::string json_string(std::string_view text);

// Prints one compact JSON value; commas come by themselves.
//   JsonWriter w; w.begin_object(); w.key("a"); w.value(1); w.end_object(); w.take();
class JsonWriter {
 public:
  void begin_object() { open('{'); }
  void end_object() { close('}'); }
  void begin_array() { open('['); }
  void end_array() { close(']'); }
  void key(std::string_view name);

  void value(std::string_view text);
  void value(const char* text) { value(std::string_view(text)); }
  void value(const std::string& text) { value(std::string_view(text)); }
  void value(int64_t number);
  void value(int number) { value(static_cast<int64_t>(number)); }
  void value(bool flag);
  void null();
  // A value that is JSON text already.
  void raw(std::string_view json);

  const std::string& text() const { return text_; }
  std::string take() { return std::move(text_); }

 private:
  void open(char bracket);
  void close(char bracket);
  void separate();

  std::string text_;
  bool needs_comma_ = false;
};

}  // namespace strandline
