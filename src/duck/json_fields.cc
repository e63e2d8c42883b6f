#include "duck/json_fields.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/data_type.h"
#include "base/error.h"
#include "base/json.h"
#include "duck/engine.h"

namespace strandline::duck {
namespace {

// --- shapes

// Names met in objects of one shape. Numbers below the count of wanted fields are theirs.
class Names {
 public:
  size_t number_of(const std::string& name) {
    const auto known = exact_.find(name);
    if (known != exact_.end()) return known->second;
    const size_t number = folded_.emplace(fold_name(name), folded_.size()).first->second;
    exact_.emplace(name, number);
    return number;
  }
  // False if the number was met in this object before.
  bool meet(size_t number, uint64_t object) {
    if (last_met_.size() <= number) last_met_.resize(number + 1, 0);
    return std::exchange(last_met_[number], object) != object;
  }

 private:
  std::unordered_map<std::string, size_t> exact_;
  std::unordered_map<std::string, size_t> folded_;
  std::vector<uint64_t> last_met_;
};

struct Shape {
  enum class Kind { kText, kNumber, kStruct, kArray, kMap };
  Kind kind = Kind::kText;
  std::vector<std::string> fields;
  std::vector<Shape> children;  // of the fields, or the one of the elements
  Names names;

  bool is_nested() const { return kind != Kind::kText && kind != Kind::kNumber; }
};

Shape read_shape(const Json& json) {
  Shape shape;
  if (json.is_object()) {
    shape.kind = Shape::Kind::kStruct;
    shape.fields = json.names();
    for (const auto& name : shape.fields) shape.names.number_of(name);
  } else if (json.is_array()) {
    shape.kind = json.items().size() == 1 ? Shape::Kind::kArray : Shape::Kind::kMap;
    shape.children.push_back(read_shape(json.items().back()));
    return shape;
  } else {
    shape.kind = json.text() == "number" ? Shape::Kind::kNumber : Shape::Kind::kText;
  }
  for (const auto& item : json.items()) shape.children.push_back(read_shape(item));
  return shape;
}

// --- text of valid JSON

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

void append_code_point(std::string* out, uint32_t code) {
  const auto byte = [&](uint32_t value) { *out += static_cast<char>(value); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xc0 | code >> 6);
    byte(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    byte(0xe0 | code >> 12);
    byte(0x80 | (code >> 6 & 0x3f));
    byte(0x80 | (code & 0x3f));
  } else {
    byte(0xf0 | code >> 18);
    byte(0x80 | (code >> 12 & 0x3f));
    byte(0x80 | (code >> 6 & 0x3f));
    byte(0x80 | (code & 0x3f));
  }
}

uint32_t hex4(std::string_view text, size_t at) {
  uint32_t code = 0;
  if (at + 4 <= text.size()) std::from_chars(text.data() + at, text.data() + at + 4, code, 16);
  return code;
}

// Characters of a JSON string, given with its quotes.
void unescape(std::string_view quoted, std::string* out) {
  const std::string_view text = quoted.substr(1, quoted.size() - 2);
  out->clear();
  size_t from = 0;
  for (size_t i = text.find('\\'); i != std::string_view::npos; i = text.find('\\', from)) {
    out->append(text, from, i - from);
    from = i + 2;
    const char c = i + 1 < text.size() ? text[i + 1] : '\\';
    switch (c) {
      case 'b':
        *out += '\b';
        break;
      case 'f':
        *out += '\f';
        break;
      case 'n':
        *out += '\n';
        break;
      case 'r':
        *out += '\r';
        break;
      case 't':
        *out += '\t';
        break;
      case 'u': {
        uint32_t code = hex4(text, i + 2);
        from = i + 6;
        if (code >= 0xd800 && code < 0xdc00 && text.substr(from, 2) == "\\u") {
          code = 0x10000 + ((code - 0xd800) << 10) + (hex4(text, from + 2) - 0xdc00);
          from += 6;
        }
        append_code_point(out, code);
        break;
      }
      default:
        *out += c;
    }
    if (from >= text.size()) return;
  }
  out->append(text, from);
}

// -1.25e3 -> -1250. Exponents beyond any decimal's digits stay as written and fit no type.
std::string plain_number(std::string_view token) {
  const size_t e = token.find_first_of("eE");
  int exponent = 0;
  if (e == std::string_view::npos) return std::string(token);
  const size_t sign = token[e + 1] == '+' ? 2 : 1;
  const auto read =
      std::from_chars(token.data() + e + sign, token.data() + token.size(), exponent, 10);
  if (read.ec != std::errc() || exponent > 400 || exponent < -400) return std::string(token);
  std::string_view mantissa = token.substr(0, e);
  std::string out;
  if (mantissa.starts_with('-')) {
    out = "-";
    mantissa.remove_prefix(1);
  }
  const size_t dot = std::min(mantissa.find('.'), mantissa.size());
  std::string digits(mantissa.substr(0, dot));
  if (dot < mantissa.size()) digits += mantissa.substr(dot + 1);
  int point = static_cast<int>(dot) + exponent;  // digits before the point
  if (point <= 0) {
    digits.insert(0, static_cast<size_t>(1 - point), '0');
    point = 1;
  }
  const auto whole = static_cast<size_t>(point);
  if (digits.size() < whole) digits.append(whole - digits.size(), '0');
  const size_t first = std::min(digits.find_first_not_of('0'), whole - 1);
  out += digits.substr(first, whole - first);
  std::string fraction = digits.substr(whole);
  fraction.erase(fraction.find_last_not_of('0') + 1);
  return fraction.empty() ? out : out + "." + fraction;
}

// Walks over one valid JSON text.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) { skip_blanks(); }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void next() {
    ++at_;
    skip_blanks();
  }
  // True at a further member or element; trailing commas and the end are passed over.
  bool more(char close) {
    if (peek() == ',') next();
    if (peek() != close && peek() != '\0') return true;
    next();
    return false;
  }
  // The value's text; the cursor stands after it.
  std::string_view value() {
    const size_t begin = at_;
    size_t end = 0;
    if (peek() == '"') {
      end = string_end(at_);
    } else if (peek() == '{' || peek() == '[') {
      int depth = 0;
      for (end = at_; end < text_.size();) {
        const char c = text_[end];
        if (c == '"') {
          end = string_end(end);
          continue;
        }
        ++end;
        if (c == '{' || c == '[') ++depth;
        if ((c == '}' || c == ']') && --depth == 0) break;
      }
    } else {
      end = at_;
      while (end < text_.size() && !is_blank(text_[end]) && text_[end] != ',' &&
             text_[end] != '}' && text_[end] != ']') {
        ++end;
      }
    }
    at_ = end;
    skip_blanks();
    return text_.substr(begin, end - begin);
  }
  void name(std::string* out) {
    unescape(value(), out);
    if (peek() == ':') next();
  }

 private:
  size_t string_end(size_t open) const {
    for (size_t i = open + 1; i < text_.size(); ++i) {
      if (text_[i] == '\\') {
        ++i;
      } else if (text_[i] == '"') {
        return i + 1;
      }
    }
    return text_.size();
  }
  void skip_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }

  std::string_view text_;
  size_t at_ = 0;
};

// Without blanks outside strings.
std::string compact(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  bool quoted = false;
  for (size_t i = 0; i < json.size(); ++i) {
    if (quoted && json[i] == '\\') {
      out += json[i++];
    } else if (json[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && is_blank(json[i])) {
      continue;
    }
    if (i < json.size()) out += json[i];
  }
  return out;
}

// --- records

class Reader {
 public:
  // The first thing that is wrong with the record.
  const std::optional<std::string>& problem() const { return problem_; }
  void start() { problem_.reset(); }

  // Members of an object in their order: on_member(field number or the count of fields, name,
  // value).
  template <typename F>
  void members(std::string_view object, Shape* shape, const F& on_member) {
    const uint64_t number = ++objects_;
    Cursor cursor(object);
    cursor.next();
    std::string name;
    while (cursor.more('}')) {
      cursor.name(&name);
      const std::string_view value = cursor.value();
      const size_t field = shape->names.number_of(name);
      if (!shape->names.meet(field, number)) complain(name);
      on_member(std::min(field, shape->fields.size()), name, value);
    }
  }

  // Text of a value for its column; nullopt for null.
  std::optional<std::string> text(std::string_view json, Shape* shape) {
    if (json == "null") return {};
    if (json[0] == '"' && !shape->is_nested()) {
      std::string out;
      unescape(json, &out);
      return out;
    }
    if (shape->is_nested()) {
      std::string out;
      nested(json, shape, &out);
      return out;
    }
    if (json[0] == '{' || json[0] == '[') return compact(json);
    return shape->kind == Shape::Kind::kNumber ? plain_number(json) : std::string(json);
  }

  void set_problem(std::string text) {
    if (!problem_) problem_ = std::move(text);
  }

 private:
  void complain(const std::string& name) {
    set_problem("the name '" + name + "' stands twice in one object (case does not count)");
  }

  // Scalars become strings, names the shape's.
  void nested(std::string_view json, Shape* shape, std::string* out) {
    const char open = json[0];
    if (shape->kind == Shape::Kind::kStruct && open == '{') {
      *out += '{';
      std::vector<bool> found(shape->fields.size());
      const auto begin_member = [&](size_t field) {
        if (out->back() != '{') *out += ',';
        append_json_string(out, shape->fields[field]);
        *out += ':';
      };
      members(json, shape, [&](size_t field, const std::string&, std::string_view value) {
        if (field == found.size()) return;
        found[field] = true;
        begin_member(field);
        nested(value, &shape->children[field], out);
      });
      // The engine's cast to a struct wants every field.
      for (size_t field = 0; field < found.size(); ++field) {
        if (found[field]) continue;
        begin_member(field);
        *out += "null";
      }
      *out += '}';
    } else if (shape->kind == Shape::Kind::kMap && open == '{') {
      *out += '{';
      Cursor cursor(json);
      cursor.next();
      std::vector<std::string> keys;
      std::string key;
      while (cursor.more('}')) {
        cursor.name(&key);
        if (!keys.empty()) *out += ',';
        append_json_string(out, key);
        *out += ':';
        nested(cursor.value(), &shape->children[0], out);
        keys.push_back(key);
      }
      std::sort(keys.begin(), keys.end());
      const auto twice = std::adjacent_find(keys.begin(), keys.end());
      if (twice != keys.end()) set_problem("the map key '" + *twice + "' stands twice");
      *out += '}';
    } else if (shape->kind == Shape::Kind::kArray && open == '[') {
      *out += '[';
      Cursor cursor(json);
      cursor.next();
      bool first = true;
      while (cursor.more(']')) {
        if (!std::exchange(first, false)) *out += ',';
        nested(cursor.value(), &shape->children[0], out);
      }
      *out += ']';
    } else if (shape->is_nested()) {
      *out += json;  // of another shape, which the engine then says
    } else if (const auto plain = text(json, shape)) {
      append_json_string(out, *plain);
    } else {
      *out += "null";
    }
  }

  std::optional<std::string> problem_;
  uint64_t objects_ = 0;
};

// The function's list column as it grows.
class ListWriter {
 public:
  explicit ListWriter(duckdb_vector list)
      : list_(list), entries_(static_cast<duckdb_list_entry*>(duckdb_vector_get_data(list))) {}

  void reserve(idx_t count) {
    duckdb_list_vector_reserve(list_, count);
    child_ = duckdb_list_vector_get_child(list_);
    duckdb_vector_ensure_validity_writable(child_);
    validity_ = duckdb_vector_get_validity(child_);
  }
  void begin(idx_t row, idx_t length) {
    entries_[row] = {size_, length};
    size_ += length;
  }
  void set(idx_t row, idx_t i, const std::optional<std::string>& text) {
    const idx_t at = entries_[row].offset + i;
    if (!text) {
      duckdb_validity_set_row_invalid(validity_, at);
    } else {
      duckdb_vector_assign_string_element_len(child_, at, text->data(), text->size());
    }
  }
  void finish() { duckdb_list_vector_set_size(list_, size_); }

 private:
  duckdb_vector list_;
  duckdb_list_entry* entries_;
  duckdb_vector child_ = nullptr;
  uint64_t* validity_ = nullptr;
  idx_t size_ = 0;
};

void json_fields(duckdb_function_info info, duckdb_data_chunk input, duckdb_vector output) {
  const idx_t count = duckdb_data_chunk_get_size(input);
  if (count == 0) return;
  const duckdb_vector records = duckdb_data_chunk_get_vector(input, 0);
  const auto shape_json =
      Json::parse(text_at(duckdb_data_chunk_get_vector(input, 1), 0).value_or("{}"));
  if (!shape_json.ok()) {
    duckdb_scalar_function_set_error(info, shape_json.error().message.c_str());
    return;
  }
  const std::string mode = text_at(duckdb_data_chunk_get_vector(input, 2), 0).value_or("");
  const bool strict = mode == "strict";
  const bool raw = mode == "raw";
  Shape shape = read_shape(*shape_json);
  const size_t fields = shape.fields.size();
  const idx_t width = 2 + fields * (raw ? 2 : 1);
  ListWriter writer(output);
  writer.reserve(count * width);
  Reader reader;
  std::vector<std::optional<std::string>> values;
  for (idx_t row = 0; row < count; ++row) {
    values.assign(width, {});
    reader.start();
    const auto record = text_at(records, row);
    const size_t begin =
        record ? std::min(record->find_first_not_of(" \t\r\n"), record->size()) : 0;
    if (!record || begin == record->size() || (*record)[begin] != '{') {
      reader.set_problem("not a JSON object");
    } else {
      std::string extras;
      reader.members(*record, &shape,
                     [&](size_t field, const std::string& name, std::string_view value) {
                       if (field < fields) {
                         values[2 + field] = reader.text(value, &shape.children[field]);
                         if (raw && value != "null") values[2 + fields + field] = compact(value);
                       } else if (!strict) {
                         if (!extras.empty()) extras += ',';
                         append_json_string(&extras, name);
                         extras += ':';
                         extras += compact(value);
                       }
                     });
      if (!extras.empty()) values[1] = std::move(extras);
    }
    values[0] = reader.problem();
    if (strict && values[0]) {
      const std::string message =
          "[MALFORMED_RECORD] " + *values[0] + ": " + record.value_or("").substr(0, 200);
      duckdb_scalar_function_set_error(info, message.c_str());
      return;
    }
    writer.begin(row, width);
    for (idx_t i = 0; i < width; ++i) writer.set(row, i, values[i]);
  }
  writer.finish();
}

// --- decimals

void write_decimals(std::string_view json, const Shape& shape, std::string* out) {
  const bool array = shape.kind == Shape::Kind::kArray;
  const bool map = shape.kind == Shape::Kind::kMap;
  if (!shape.is_nested()) {
    const bool number = !json.empty() && (json[0] == '-' || (json[0] >= '0' && json[0] <= '9'));
    if (number) {
      append_json_string(out, json);
    } else {
      out->append(!json.empty() && json[0] == '"' ? json : "null");
    }
    return;
  }
  if (json.empty() || json[0] != (array ? '[' : '{')) {  // not of the shape, as the engine will see
    out->append(json);
    return;
  }
  Cursor cursor(json);
  *out += json[0];
  cursor.next();
  std::string name;
  for (bool first = true; cursor.more(array ? ']' : '}'); first = false) {
    if (!first) *out += ',';
    const Shape* part = shape.children.empty() ? nullptr : &shape.children[0];
    if (!array) {
      cursor.name(&name);
      append_json_string(out, name);
      *out += ':';
    }
    if (!array && !map) {
      const auto found = std::find(shape.fields.begin(), shape.fields.end(), name);
      part = found == shape.fields.end()
                 ? nullptr
                 : &shape.children[static_cast<size_t>(found - shape.fields.begin())];
    }
    const std::string_view value = cursor.value();
    if (part == nullptr) {
      out->append(value);
    } else {
      write_decimals(value, *part, out);
    }
  }
  *out += array ? ']' : '}';
}

void json_decimals(duckdb_function_info info, duckdb_data_chunk input, duckdb_vector output) {
  const idx_t count = duckdb_data_chunk_get_size(input);
  if (count == 0) return;
  const duckdb_vector texts = duckdb_data_chunk_get_vector(input, 0);
  const auto shape_json =
      Json::parse(text_at(duckdb_data_chunk_get_vector(input, 1), 0).value_or("{}"));
  if (!shape_json.ok()) {
    duckdb_scalar_function_set_error(info, shape_json.error().message.c_str());
    return;
  }
  const Shape shape = read_shape(*shape_json);
  for (idx_t row = 0; row < count; ++row) {
    const auto text = text_at(texts, row);
    if (!text) {
      duckdb_vector_ensure_validity_writable(output);
      duckdb_validity_set_row_invalid(duckdb_vector_get_validity(output), row);
      continue;
    }
    std::string exact;
    const size_t begin = std::min(text->find_first_not_of(" \t\r\n"), text->size());
    const size_t end = text->find_last_not_of(" \t\r\n") + 1;
    const std::string_view whole(*text);
    write_decimals(whole.substr(begin, end - std::min(begin, end)), shape, &exact);
    duckdb_vector_assign_string_element_len(output, row, exact.data(), exact.size());
  }
}

}  // namespace

Status register_json_decimals_function(duckdb_connection connection) {
  return register_scalar(connection, "sl_json_decimals", {DUCKDB_TYPE_VARCHAR, DUCKDB_TYPE_VARCHAR},
                         DUCKDB_TYPE_VARCHAR, json_decimals);
}

Status register_json_fields_function(duckdb_connection connection) {
  const char* name = "sl_json_fields";
  const Handle<duckdb_scalar_function, duckdb_destroy_scalar_function> made(
      duckdb_create_scalar_function());
  duckdb_scalar_function_set_name(made.get(), name);
  const LogicalType text(duckdb_create_logical_type(DUCKDB_TYPE_VARCHAR));
  const LogicalType texts(duckdb_create_list_type(text.get()));
  for (int i = 0; i < 3; ++i) duckdb_scalar_function_add_parameter(made.get(), text.get());
  duckdb_scalar_function_set_return_type(made.get(), texts.get());
  // Volatile: the engine shall not repeat it for every use of its elements.
  duckdb_scalar_function_set_volatile(made.get());
  duckdb_scalar_function_set_special_handling(made.get());
  duckdb_scalar_function_set_function(made.get(), json_fields);
  if (duckdb_register_scalar_function(connection, made.get()) != DuckDBSuccess) {
    return internal_error("ENGINE_ERROR", "the engine does not take the function {}", name);
  }
  return {};
}

}  // namespace strandline::duck
