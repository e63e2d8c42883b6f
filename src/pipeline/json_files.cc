// JSON: what sl_json_fields finds in a record becomes exact values or errors.
#include <algorithm>
#include <functional>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "pipeline/file_formats.h"
#include "pipeline/file_reader.h"

namespace strandline::pipeline {
namespace {

using duck::quote_literal;
using duck::quote_name;

std::string json_format(const FileOptions& options) {
  return options.multi_line ? "auto" : "newline_delimited";
}

// The most bytes that a JSON value may take. The engine's reader holds buffers of twice what it is
// told, several for each thread, so that it is told what the files need.
constexpr int64_t kMostObjectBytes = int64_t{1} << 27;
constexpr int64_t kLeastObjectBytes = int64_t{1} << 16;
// Less is not worth telling: threads take the buffers in turns.
constexpr int64_t kUsualObjectBytes = int64_t{1} << 21;
constexpr int64_t kChunkBytes = int64_t{1} << 22;

// Gives the text of a file piece by piece.
Status read_pieces(storage::Store& store, const ConsumedFile& file,
                   const std::function<void(std::string_view)>& take) {
  for (int64_t at = 0; at < file.size_bytes; at += kChunkBytes) {
    const auto text = store.read_range(file.path, at, std::min(kChunkBytes, file.size_bytes - at));
    // What became of a file that shrank is told once it was read.
    if (!text.ok() && text.error().code == "FILE_TOO_SHORT") return {};
    if (!text.ok()) return text.error();
    take(*text);
  }
  return {};
}

// Bytes of the longest line of a text that comes in pieces, with its end.
class LongestLine {
 public:
  void take(std::string_view text) {
    while (!text.empty()) {
      const size_t end = text.find('\n');
      line_ += static_cast<int64_t>(end == std::string_view::npos ? text.size() : end + 1);
      longest_ = std::max(longest_, line_);
      if (end == std::string_view::npos) return;
      line_ = 0;
      text.remove_prefix(end + 1);
    }
  }
  int64_t bytes() const { return longest_; }

 private:
  int64_t line_ = 0;
  int64_t longest_ = 0;
};

// What sl_json_fields shall find in a record.
std::string json_shape(const DataType& type) {
  switch (type.id) {
    case TypeId::kLong:
    case TypeId::kInteger:
    case TypeId::kShort:
    case TypeId::kByte:
    case TypeId::kDecimal:
      return "\"number\"";
    case TypeId::kStruct: {
      std::string out = "{";
      for (const auto& field : *type.fields) {
        if (out.size() > 1) out += ",";
        out += json_string(field.name) + ":" + json_shape(field.type);
      }
      return out + "}";
    }
    case TypeId::kArray:
      return "[" + json_shape(*type.element) + "]";
    case TypeId::kMap:
      return "[\"map\"," + json_shape(*type.element) + "]";
    default:
      return "\"text\"";
  }
}

std::string json_fields(const std::string& record, const Schema& schema, const char* mode) {
  return fmt::format("sl_json_fields({}, {}, '{}')", record,
                     quote_literal(json_shape(DataType::structure(schema.fields))), mode);
}

// Files that begin with a byte order mark, which the engine's reader does not take, apart from the
// others. Files of which values span lines are looked through: the engine takes a cut array.
struct JsonFiles {
  std::vector<ConsumedFile> plain;
  std::vector<ConsumedFile> marked;
  int64_t largest_bytes = kLeastObjectBytes;  // of a value in `plain`, at least
};

// The values of a text that comes in pieces, told apart by brackets alone.
class TopValues {
 public:
  void take(std::string_view text) {
    for (const char c : text) {
      ++value_;
      ++element_;
      if (quoted_) {
        if (escaped_) {
          escaped_ = false;
        } else if (c == '\\') {
          escaped_ = true;
        } else if (c == '"') {
          quoted_ = false;
        }
      } else if (c == '"') {
        quoted_ = true;
      } else if (c == '{' || c == '[') {
        if (depth_++ == 0) {
          ++count_;
          in_array_ = c == '[';
        }
      } else if (c == '}' || c == ']') {
        if (--depth_ == 0) {
          largest_value_ = std::max(largest_value_, value_);
          end_element();
          value_ = 0;
        }
      } else if (c == ',' && depth_ == 1 && in_array_) {
        end_element();
      }
    }
  }
  bool is_cut() const { return quoted_ || depth_ > 0; }
  // Of the values the engine takes one by one, with what stands before each: those of an array that
  // is all there is, else whole ones.
  int64_t largest_bytes() const {
    const bool one_array = count_ == 1 && in_array_;
    return one_array ? largest_element_ : std::max(largest_value_, value_);
  }

 private:
  void end_element() {
    largest_element_ = std::max(largest_element_, element_);
    element_ = 0;
  }

  int64_t depth_ = 0;
  int64_t count_ = 0;
  bool quoted_ = false;
  bool escaped_ = false;
  bool in_array_ = false;
  int64_t value_ = 0;
  int64_t element_ = 0;
  int64_t largest_value_ = 0;
  int64_t largest_element_ = 0;
};

Result<JsonFiles> look_at_json(storage::Store& store, const FileOptions& options,
                               const std::vector<ConsumedFile>& files) {
  JsonFiles out;
  for (const auto& file : files) {
    if (is_compressed(file.path)) {
      out.plain.push_back(file);
      out.largest_bytes = kMostObjectBytes;
      continue;
    }
    SL_ASSIGN(const auto begin,
              store.read_range(file.path, 0, std::min<int64_t>(file.size_bytes, 3)));
    const bool marked = begin.starts_with("\xef\xbb\xbf");
    if (options.multi_line && marked) {
      return invalid_data("MALFORMED_RECORD",
                          "file '{}': begins with a byte order mark, which multiLine => true does "
                          "not take: save it without",
                          file.path);
    }
    int64_t largest = file.size_bytes;
    if (options.multi_line) {
      TopValues values;
      SL_TRY(read_pieces(store, file, [&](std::string_view text) { values.take(text); }));
      if (values.is_cut()) {
        return invalid_data("MALFORMED_RECORD",
                            "file '{}': ends inside a value: write the file anew and whole",
                            file.path);
      }
      largest = values.largest_bytes();
    } else if (!marked && largest > kUsualObjectBytes) {
      LongestLine lines;
      SL_TRY(read_pieces(store, file, [&](std::string_view text) { lines.take(text); }));
      largest = lines.bytes();
    }
    if (marked) {
      out.marked.push_back(file);
      continue;
    }
    out.plain.push_back(file);
    // A buffer for a file that is smaller than usual would be larger than the file.
    largest = std::max(largest, std::min(kUsualObjectBytes, file.size_bytes));
    out.largest_bytes = std::max(out.largest_bytes, std::min(largest + 1, kMostObjectBytes));
  }
  return out;
}

// Lines of text files as p (path), n (number from 1), l; blank ones left out.
std::string lines_of(const std::vector<ConsumedFile>& files) {
  std::string paths;
  for (const auto& file : files) paths += (paths.empty() ? "" : ", ") + quote_literal(file.path);
  return fmt::format("sl_text_lines([{}])", paths);
}

// Valid JSON of every record as j, with its file's path as p.
std::string json_records(const FileOptions& options, const JsonFiles& files) {
  std::string out;
  if (!files.plain.empty() || files.marked.empty()) {
    out = fmt::format(
        "SELECT CAST(json AS VARCHAR) AS j, p FROM read_json_objects({}, format='{}', "
        "maximum_object_size={}, filename='p')",
        path_list(files.plain), json_format(options), files.largest_bytes);
  }
  if (!files.marked.empty()) {
    if (!out.empty()) out += " UNION ALL ";
    out += fmt::format("SELECT CASE WHEN json_valid(l) THEN l END AS j, p FROM {}",
                       lines_of(files.marked));
  }
  return "(" + out + ")";
}

std::string json_raw(const FileOptions& options, const Schema& schema, const JsonFiles& files,
                     bool with_path, bool with_index) {
  std::string select;
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    const auto& type = schema.fields[i].type;
    const std::string text = fmt::format("f[{}]", i + 3);
    select += fmt::format(
        "{}{} AS r{}", i > 0 ? ", " : "",
        type.is_nested() ? fmt::format("CAST(CAST({} AS JSON) AS {})", text, carrier_type(type))
                         : text,
        i);
  }
  if (with_path) select += ", p AS __strandline_path";
  if (with_index) select += ", row_number() OVER () AS __strandline_n";
  return fmt::format("(SELECT {} FROM (SELECT {} AS f{} FROM {}))", select,
                     json_fields("j", schema, "strict"), with_path ? ", p" : "",
                     json_records(options, files));
}

// Lines with j0, j1, … (JSON of each column), r0, r1, …, problem (what is wrong with the record)
// and extras (members without a column).
std::string json_lines(const Schema& schema, const std::vector<ConsumedFile>& files) {
  std::string raw = "p, n, l, f[1] AS problem, f[2] AS extras";
  const size_t count = schema.fields.size();
  for (size_t i = 0; i < count; ++i) {
    const auto& type = schema.fields[i].type;
    const std::string text = fmt::format("f[{}]", i + 3);
    raw += fmt::format(", f[{}] AS j{}, {} AS r{}", count + i + 3, i,
                       type.is_nested() ? fmt::format("TRY(CAST(CAST({} AS JSON) AS {}))", text,
                                                      carrier_type(type))
                                        : text,
                       i);
  }
  return fmt::format("(SELECT {} FROM (SELECT p, n, l, {} AS f FROM {}))", raw,
                     json_fields("CASE WHEN json_valid(l) THEN l END", schema, "raw"),
                     lines_of(files));
}

std::string bad_line_value(size_t i, const DataType& type) {
  return fmt::format("(j{0} IS NOT NULL AND (r{0} IS NULL OR {1}))", i,
                     bad_value(fmt::format("r{}", i), type, TextKind::kJson));
}

std::string json_rescued(const FileOptions& options, const Schema& schema,
                         const std::vector<ConsumedFile>& files, bool with_path, bool with_index) {
  std::string select;
  std::string entries;
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    const auto& field = schema.fields[i];
    const std::string bad = bad_line_value(i, field.type);
    select += fmt::format("CASE WHEN problem IS NULL AND NOT {} THEN {} END AS {}, ", bad,
                          good_value(fmt::format("r{}", i), field.type, TextKind::kJson),
                          quote_name(field.name));
    entries += fmt::format("CASE WHEN {} THEN {} || j{} END, ", bad,
                           quote_literal(json_string(field.name) + ":"), i);
  }
  // Put together as text: the engine's JSON functions would print numbers anew.
  const std::string rescued = fmt::format(
      "CASE WHEN problem IS NOT NULL THEN CAST(json_object('_corrupt_record', l, '_file_path', "
      "'file://' || p) AS VARCHAR) "
      "WHEN found <> '' THEN '{{' || found || ',\"_file_path\":' || to_json('file://' || p) || "
      "'}}' END");
  select += fmt::format("{} AS {}", rescued, quote_name(*options.rescued_column));
  if (with_path) select += ", p AS __strandline_path";
  if (with_index) select += ", n AS __strandline_n";
  return fmt::format("(SELECT {} FROM (SELECT *, concat_ws(',', {}extras) AS found FROM {}))",
                     select, entries, json_lines(schema, files));
}

DataType type_of_structure(const Json& json) {
  if (json.is_string()) {
    const std::string& name = json.text();
    if (name == "BIGINT" || name == "UBIGINT") return DataType::primitive(TypeId::kLong);
    if (name == "HUGEINT") return DataType::decimal(38, 0);
    if (name == "DOUBLE") return DataType::primitive(TypeId::kDouble);
    if (name == "BOOLEAN") return DataType::primitive(TypeId::kBoolean);
    if (name == "NULL") return DataType::primitive(TypeId::kVoid);
    return DataType::primitive(TypeId::kString);
  }
  if (json.is_array()) {
    if (json.items().size() != 1) return DataType::primitive(TypeId::kString);
    return DataType::array(type_of_structure(json.items()[0]));
  }
  if (json.is_object() && !json.names().empty()) {
    std::vector<Field> fields;
    fields.reserve(json.names().size());
    for (size_t i = 0; i < json.names().size(); ++i) {
      fields.push_back(Field{json.names()[i], type_of_structure(json.items()[i]), true, {}});
    }
    return DataType::structure(std::move(fields));
  }
  return DataType::primitive(TypeId::kString);
}

}  // namespace

Result<std::string> json_relation(const FilesToRead& read, const Schema& schema, RowPlaces places) {
  if (read.options.rescued_column) {
    for (const auto& file : read.files) {
      if (!is_compressed(file.path)) continue;
      return unsupported("UNSUPPORTED_OPTION",
                         "file '{}': rescuedDataColumn keeps bad lines as they are written, which "
                         "is not supported for compressed JSON: unpack the file, or leave the "
                         "option out",
                         file.path);
    }
    return json_rescued(read.options, schema, read.files, places.path, places.index);
  }
  SL_ASSIGN(const auto known, look_at_json(read.store, read.options, read.files));
  return fmt::format("(SELECT {}{} FROM {})", exact_columns(schema, TextKind::kJson),
                     places.names(),
                     json_raw(read.options, schema, known, places.path, places.index));
}

Result<Schema> json_columns(const FilesToRead& read) {
  SL_ASSIGN(const auto known, look_at_json(read.store, read.options, read.files));
  SL_ASSIGN(const auto rows, read.connection.query(
                                 fmt::format("SELECT json_group_structure(CAST(j AS JSON)) FROM {}",
                                             json_records(read.options, known))));
  Schema schema;
  if (rows.rows.empty() || !rows.rows[0][0]) return schema;
  SL_ASSIGN(const auto structure, Json::parse(*rows.rows[0][0]));
  for (size_t i = 0; i < structure.names().size(); ++i) {
    schema.fields.push_back(
        Field{structure.names()[i], type_of_structure(structure.items()[i]), true, {}});
  }
  return schema;
}

std::optional<Error> explain_json(const FilesToRead& read, const Schema& schema) {
  if (read.options.multi_line) {
    for (const auto& file : read.files) {
      const auto sql = file_relation(read.connection, read.store, read.options, schema, {file});
      if (!sql.ok()) return sql.error();
      const auto rows =
          read.connection.query(fmt::format("SELECT max(hash(t)) FROM {} AS t", *sql));
      if (rows.ok() || rows.error().kind != ErrorKind::kInvalidData) continue;
      return invalid_data(rows.error().code, "file '{}': {}", file.path, rows.error().message);
    }
    return {};
  }
  std::string checks;
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    checks += fmt::format(" WHEN {} THEN {}", bad_line_value(i, schema.fields[i].type), i);
  }
  for (const auto& file : read.files) {
    if (is_compressed(file.path)) continue;
    const auto rows = read.connection.query(
        fmt::format("SELECT n, problem, why, left(l, 200) FROM (SELECT n, problem, "
                    "l, CASE WHEN problem IS NOT NULL THEN -1{} END AS why FROM "
                    "{}) WHERE why IS NOT NULL ORDER BY n LIMIT 1",
                    checks, json_lines(schema, {file})));
    if (!rows.ok() || rows->rows.empty()) continue;
    const auto& row = rows->rows[0];
    const int64_t line = std::stoll(row[0].value_or("0"));
    const int64_t why = std::stoll(row[2].value_or("-1"));
    if (why < 0) {
      return at_line(invalid_data("MALFORMED_RECORD",
                                  "file '{}', line {}: {}: {} — correct the line, or keep bad "
                                  "records with rescuedDataColumn => '_rescued_data'",
                                  file.path, line, row[1].value_or(""), row[3].value_or("")),
                     file.path, line);
    }
    const auto& field = schema.fields[static_cast<size_t>(why)];
    const auto value = read.connection.query(
        fmt::format("SELECT left(CAST(j{} AS VARCHAR), 100) FROM {} WHERE n = {}", why,
                    json_lines(schema, {file}), line));
    return at_line(
        invalid_data(
            "VALUE_OUT_OF_TYPE",
            "file '{}', line {}: the value {} of '{}' does not fit {} — declare a type that holds "
            "it (schema, schemaHints), or keep bad records with rescuedDataColumn => "
            "'_rescued_data'",
            file.path, line,
            value.ok() && !value->rows.empty() ? value->rows[0][0].value_or("null") : "",
            field.name, to_sql(field.type)),
        file.path, line);
  }
  return {};
}

}  // namespace strandline::pipeline
