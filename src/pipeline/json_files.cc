// JSON: what sl_json_fields finds in a record becomes exact values or errors.
#include <algorithm>

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

// The most bytes that one JSON value of the files may take; the engine holds a buffer of twice
// that.
int64_t largest_object_bytes(const std::vector<ConsumedFile>& files) {
  constexpr int64_t kLeast = int64_t{1} << 16;
  constexpr int64_t kMost = int64_t{1} << 27;
  int64_t largest = kLeast;
  for (const auto& file : files) {
    largest = std::max(largest, is_compressed(file.path) ? kMost : file.size_bytes + 1);
  }
  return std::min(largest, kMost);
}

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
};

bool is_cut(const std::string& text) {
  int64_t depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return quoted || depth > 0;
}

Result<JsonFiles> look_at_json(storage::Store& store, const FileOptions& options,
                               const std::vector<ConsumedFile>& files) {
  JsonFiles out;
  for (const auto& file : files) {
    if (is_compressed(file.path)) {
      out.plain.push_back(file);
      continue;
    }
    const int64_t wanted = options.multi_line ? file.size_bytes : 3;
    SL_ASSIGN(const auto text,
              store.read_range(file.path, 0, std::min<int64_t>(file.size_bytes, wanted)));
    const bool marked = text.starts_with("\xef\xbb\xbf");
    if (options.multi_line && marked) {
      return invalid_data("MALFORMED_RECORD",
                          "file '{}': begins with a byte order mark, which multiLine => true does "
                          "not take: save it without",
                          file.path);
    }
    if (options.multi_line && is_cut(text)) {
      return invalid_data("MALFORMED_RECORD",
                          "file '{}': ends inside a value: write the file anew and whole",
                          file.path);
    }
    (marked ? out.marked : out.plain).push_back(file);
  }
  return out;
}

// Lines of text files with their number from 1, blank ones left out.
std::string lines_of(const std::vector<ConsumedFile>& files) {
  return fmt::format(
      "(SELECT p, n, rtrim(s[n], chr(13)) AS l FROM (SELECT p, s, unnest(range(1, len(s) + 1)) AS "
      "n FROM "
      "(SELECT filename AS p, string_split(ltrim(content, chr(65279)), chr(10)) AS s FROM "
      "read_text({}))) "
      "WHERE trim(s[n], ' ' || chr(9) || chr(13)) <> '')",
      path_list(files));
}

// Valid JSON of every record as j, with its file's path as p.
std::string json_records(const FileOptions& options, const JsonFiles& files) {
  std::string out;
  if (!files.plain.empty() || files.marked.empty()) {
    out = fmt::format(
        "SELECT CAST(json AS VARCHAR) AS j, p FROM read_json_objects({}, format='{}', "
        "maximum_object_size={}, filename='p')",
        path_list(files.plain), json_format(options), largest_object_bytes(files.plain));
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
  if (read.options.rescued_column)
    return json_rescued(read.options, schema, read.files, places.path, places.index);
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
