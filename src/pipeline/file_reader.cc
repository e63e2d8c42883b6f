#include "pipeline/file_reader.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "pipeline/exact_cast.h"

namespace strandline::pipeline {
namespace {

using duck::quote_literal;
using duck::quote_name;

// The engine takes every path for a pattern.
std::string escape_glob(const std::string& path) {
  std::string out;
  for (const char c : path) {
    switch (c) {
      case '[':
        out += "[[]";
        break;
      case '*':
        out += "[*]";
        break;
      case '?':
        out += "[?]";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string path_list(const std::vector<ConsumedFile>& files) {
  std::string out = "[";
  for (const auto& file : files) {
    if (out.size() > 1) out += ", ";
    out += quote_literal(escape_glob(file.path));
  }
  return out + "]";
}

bool is_compressed(const std::string& path) {
  return path.ends_with(".gz") || path.ends_with(".zst");
}

std::string value_error(const std::string& column, const DataType& type, const std::string& value) {
  return fmt::format(
      "error({} || coalesce(CAST({} AS VARCHAR), 'null') || {})",
      quote_literal(fmt::format("[VALUE_OUT_OF_TYPE] column '{}': the value ", column)), value,
      quote_literal(fmt::format(" does not fit {}", to_sql(type))));
}

// One select list over raw columns r0, r1, … that hold values as TextKind says.
std::string exact_columns(const Schema& schema, TextKind kind) {
  std::string out;
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    const auto& field = schema.fields[i];
    const std::string raw = fmt::format("r{}", i);
    const std::string bad = bad_value(raw, field.type, kind);
    const std::string good = good_value(raw, field.type, kind);
    if (!out.empty()) out += ", ";
    if (bad == "false") {
      out += fmt::format("{} AS {}", good, quote_name(field.name));
    } else {
      out += fmt::format("CASE WHEN {} THEN {} ELSE {} END AS {}", bad,
                         value_error(field.name, field.type, raw), good, quote_name(field.name));
    }
  }
  return out;
}

std::string empty_relation(const Schema& columns, bool with_metadata) {
  std::string out = "(SELECT ";
  for (const auto& field : columns.fields) {
    out += fmt::format("CAST(NULL AS {}) AS {}, ", duck::engine_type(field.type),
                       quote_name(field.name));
  }
  if (with_metadata) {
    out += fmt::format("CAST(NULL AS {}) AS _metadata, ", duck::engine_type(metadata_type()));
  }
  out.resize(out.size() - 2);
  return out + " WHERE false)";
}

// Wraps a relation with columns `names`, __strandline_path and (row index wanted)
// __strandline_n into one with _metadata.
std::string with_metadata(const std::string& relation, const Schema& columns,
                          const std::vector<ConsumedFile>& files, bool with_row_index) {
  std::string names;
  for (const auto& field : columns.fields) names += "f." + quote_name(field.name) + ", ";
  std::string values;
  for (const auto& file : files) {
    if (!values.empty()) values += ", ";
    values +=
        fmt::format("({}, {}, {})", quote_literal(file.path), file.size_bytes, file.modified_ms);
  }
  const std::string index = with_row_index ? "CAST(f.__strandline_n - min(f.__strandline_n) OVER "
                                             "(PARTITION BY f.__strandline_path) AS BIGINT)"
                                           : "CAST(NULL AS BIGINT)";
  return fmt::format(
      "(SELECT {} struct_pack(file_path := 'file://' || f.__strandline_path, file_name := "
      "parse_filename(f.__strandline_path), file_size := CAST(m.size AS BIGINT), "
      "file_modification_time := make_timestamptz(CAST(m.ms AS BIGINT) * 1000), row_index := {}) "
      "AS _metadata "
      "FROM {} AS f LEFT JOIN (VALUES {}) AS m(path, size, ms) ON m.path = f.__strandline_path)",
      names, index, relation, values);
}

// --- CSV headers
// ----------------------------------------------------------------------------------

// First record of a CSV file as fields; quoted fields may hold separators and line ends.
std::vector<std::string> split_header(std::string_view text, const FileOptions& options) {
  if (text.rfind("\xef\xbb\xbf", 0) == 0) text.remove_prefix(3);
  std::vector<std::string> fields;
  std::string field;
  const char quote = options.quote.empty() ? '\0' : options.quote[0];
  const char escape = options.escape.empty() ? quote : options.escape[0];
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (quoted) {
      if (text[i] == escape && i + 1 < text.size() && text[i + 1] == quote) {
        field += quote;
        ++i;
      } else if (text[i] == quote) {
        quoted = false;
      } else {
        field += text[i];
      }
    } else if (quote != '\0' && text[i] == quote && field.empty()) {
      quoted = true;
    } else if (text.substr(i, options.separator.size()) == options.separator) {
      fields.push_back(std::move(field));
      field.clear();
      i += options.separator.size() - 1;
    } else if (text[i] == '\n' || text[i] == '\r') {
      break;
    } else {
      field += text[i];
    }
  }
  fields.push_back(std::move(field));
  return fields;
}

Result<std::string> first_line(duck::Connection& connection, storage::Store& store,
                               const ConsumedFile& file) {
  if (is_compressed(file.path)) {
    SL_ASSIGN(const auto rows,
              connection.query(fmt::format(
                  "SELECT l FROM read_csv({}, columns={{'l': 'VARCHAR'}}, delim=chr(1), quote='', "
                  "escape='', header=false, auto_detect=false, strict_mode=false) LIMIT 1",
                  path_list({file}))));
    return rows.rows.empty() ? std::string() : rows.rows[0][0].value_or("");
  }
  SL_ASSIGN(auto text, store.read_range(file.path, 0, std::min<int64_t>(file.size_bytes, 65536)));
  return text;
}

// Names of a CSV file's columns: its header, or _c0, _c1, … by the number of its first record's
// fields.
Result<std::vector<std::string>> csv_names(duck::Connection& connection, storage::Store& store,
                                           const FileOptions& options, const ConsumedFile& file) {
  SL_ASSIGN(const auto line, first_line(connection, store, file));
  if (line.empty()) return std::vector<std::string>{};
  auto names = split_header(line, options);
  if (!options.header) {
    for (size_t i = 0; i < names.size(); ++i) names[i] = fmt::format("_c{}", i);
    return names;
  }
  std::set<std::string> seen;
  for (const auto& name : names) {
    if (!seen.insert(fold_name(name)).second) {
      return invalid_data("CSV_HEADER", "file '{}': the header names column '{}' twice", file.path,
                          name);
    }
  }
  return names;
}

std::string csv_options(const FileOptions& options) {
  std::string out = fmt::format(
      "header={}, delim={}, quote={}, escape={}, nullstr={}, allow_quoted_nulls=false, "
      "auto_detect=false",
      options.header, quote_literal(options.separator), quote_literal(options.quote),
      quote_literal(options.quote.empty() ? "" : options.escape),
      quote_literal(options.null_value));
  if (!options.comment.empty()) out += ", comment=" + quote_literal(options.comment);
  return out;
}

// Columns a rescued CSV read has room for beyond the header.
constexpr size_t kSpareColumns = 16;

// Raw text columns r0, … of the schema over files that share one list of column names.
std::string csv_group(const FileOptions& options, const Schema& schema,
                      const std::vector<std::string>& names, const std::vector<ConsumedFile>& files,
                      bool with_path, bool with_index) {
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < names.size(); ++i) places[fold_name(names[i])] = i;
  std::string select;
  std::set<size_t> used;
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    if (i > 0) select += ", ";
    // Without a header the schema's columns are the file's, by place.
    size_t place = i;
    bool known = i < names.size();
    if (options.header) {
      const auto it = places.find(fold_name(schema.fields[i].name));
      known = it != places.end();
      if (known) place = it->second;
    }
    if (known) {
      select += fmt::format("c{} AS r{}", place, i);
      used.insert(place);
    } else {
      select += fmt::format("CAST(NULL AS VARCHAR) AS r{}", i);
    }
  }
  std::string columns;
  const size_t spare = options.rescued_column ? kSpareColumns : 0;
  for (size_t i = 0; i < names.size() + spare; ++i) {
    if (i > 0) columns += ", ";
    columns += fmt::format("'c{}': 'VARCHAR'", i);
  }
  if (options.rescued_column) {
    std::string entries;
    for (size_t i = 0; i < names.size() + spare; ++i) {
      if (used.count(i) > 0) continue;
      const std::string name = i < names.size() ? names[i] : fmt::format("_c{}", i);
      entries += fmt::format(
          "{}CASE WHEN c{} IS NOT NULL THEN struct_pack(k := {}, v := to_json(c{})) END",
          entries.empty() ? "" : ", ", i, quote_literal(name), i);
    }
    select += fmt::format(", [{}] AS extra", entries);
  }
  if (with_path) select += ", __strandline_path";
  if (with_index) select += ", row_number() OVER () AS __strandline_n";
  return fmt::format("(SELECT {} FROM read_csv({}, columns={{{}}}, {}{}{}))", select,
                     path_list(files), columns, csv_options(options),
                     with_path ? ", filename='__strandline_path'" : "",
                     options.rescued_column ? ", null_padding=true" : "");
}

Result<std::string> csv_raw(duck::Connection& connection, storage::Store& store,
                            const FileOptions& options, const Schema& schema,
                            const std::vector<ConsumedFile>& files, bool with_path,
                            bool with_index) {
  std::vector<std::pair<std::vector<std::string>, std::vector<ConsumedFile>>> groups;
  for (const auto& file : files) {
    SL_ASSIGN(auto names, csv_names(connection, store, options, file));
    if (names.empty()) continue;
    if (options.header) {
      const bool any = std::any_of(names.begin(), names.end(),
                                   [&](const auto& name) { return schema.find(name).has_value(); });
      if (!any) {
        return invalid_data(
            "CSV_HEADER",
            "file '{}': none of the columns is in the header '{}': does the file have one "
            "(header => true), and is sep right?",
            file.path, fmt::join(names, options.separator));
      }
    } else if (!options.rescued_column && names.size() != schema.fields.size()) {
      return invalid_data("CSV_COLUMNS", "file '{}', line 1: {} columns, the schema has {}",
                          file.path, names.size(), schema.fields.size());
    }
    auto it = std::find_if(groups.begin(), groups.end(),
                           [&](const auto& group) { return group.first == names; });
    if (it == groups.end())
      it = groups.emplace(groups.end(), std::move(names), std::vector<ConsumedFile>{});
    it->second.push_back(file);
  }
  if (groups.empty()) return std::string();
  std::string out;
  for (const auto& [names, members] : groups) {
    if (!out.empty()) out += " UNION ALL ";
    out += "SELECT * FROM " + csv_group(options, schema, names, members, with_path, with_index);
  }
  return "(" + out + ")";
}

// --- JSON
// -----------------------------------------------------------------------------------------

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
    const bool compressed = file.path.ends_with(".gz") || file.path.ends_with(".zst");
    largest = std::max(largest, compressed ? kMost : file.size_bytes + 1);
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

// --- Parquet
// --------------------------------------------------------------------------------------

// The engine renames columns that differ only in case (A, a becomes A, a_1). wanted: the columns to
// be read; null: all of them.
Status check_parquet_names(duck::Connection& connection, const std::vector<ConsumedFile>& files,
                           const std::vector<duck::ResultColumn>& found, const Schema* wanted) {
  const auto renamed = [&](const duck::ResultColumn& column) {
    const size_t mark = column.name.rfind('_');
    if (mark == std::string::npos || mark + 1 == column.name.size() ||
        column.name.find_first_not_of("0123456789", mark + 1) != std::string::npos) {
      return false;
    }
    return std::any_of(found.begin(), found.end(), [&](const auto& other) {
      return same_name(other.name, column.name.substr(0, mark));
    });
  };
  if (std::none_of(found.begin(), found.end(), renamed)) return {};
  for (const auto& file : files) {
    SL_ASSIGN(
        const auto nodes,
        connection.query(fmt::format(
            "SELECT name, coalesce(num_children, 0) FROM parquet_schema({})", path_list({file}))));
    // Depth first, the root before all: its children are the columns.
    std::map<std::string, std::string> seen;
    std::vector<int64_t> open;  // children still to come, of each node around
    for (const auto& row : nodes.rows) {
      const std::string name = row[0].value_or("");
      if (open.size() == 1) {
        const auto [first, fresh] = seen.emplace(fold_name(name), name);
        if (!fresh && (wanted == nullptr || wanted->find(name))) {
          return invalid_data("COLUMN_ALREADY_EXISTS",
                              "Parquet file '{}' has the columns '{}' and '{}', which are one name "
                              "because case does not count: write the file anew with other names, "
                              "or declare a schema without them",
                              file.path, first->second, name);
        }
      }
      if (!open.empty()) --open.back();
      open.push_back(std::stoll(row[1].value_or("0")));
      while (!open.empty() && open.back() == 0) open.pop_back();
    }
  }
  return {};
}

// A file without a byte is no Parquet file; it holds no rows, as for Spark.
Result<std::vector<ConsumedFile>> without_empty(storage::Store& store,
                                                const std::vector<ConsumedFile>& files) {
  std::vector<ConsumedFile> out;
  for (const auto& file : files) {
    if (file.size_bytes == 0) {
      SL_ASSIGN(const auto info, store.stat(file.path));
      if (info.size_bytes == 0) continue;
    }
    out.push_back(file);
  }
  return out;
}

Result<std::string> parquet_typed(duck::Connection& connection, const Schema& schema,
                                  const std::vector<ConsumedFile>& files, bool with_path,
                                  bool with_index) {
  const std::string read =
      fmt::format("read_parquet({}, union_by_name=true, hive_partitioning=false{}{})",
                  path_list(files), with_path ? ", filename='__strandline_path'" : "",
                  with_index ? ", file_row_number=true" : "");
  SL_ASSIGN(const auto found, connection.describe("SELECT * FROM " + read));
  SL_TRY(check_parquet_names(connection, files, found, &schema));
  std::string select;
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    const auto& field = schema.fields[i];
    const auto it = std::find_if(found.begin(), found.end(), [&](const auto& column) {
      return same_name(column.name, field.name);
    });
    if (i > 0) select += ", ";
    if (it == found.end()) {
      select += fmt::format("CAST(NULL AS {}) AS {}", duck::engine_type(field.type),
                            quote_name(field.name));
      continue;
    }
    const std::string raw = quote_name(it->name);
    // Types without a counterpart of ours (unsigned, nanoseconds, UUID) convert by the engine's
    // name.
    const bool foreign =
        it->type.id == TypeId::kVoid || it->engine_type != duck::engine_type(it->type);
    std::string bad;
    std::string good;
    if (foreign) {
      const std::string target = duck::engine_type(field.type);
      bad = fmt::format(
          "({0} IS NOT NULL AND (TRY_CAST({0} AS {1}) IS NULL OR "
          "TRY_CAST(TRY_CAST({0} AS {1}) AS {2}) IS DISTINCT FROM {0}))",
          raw, target, it->engine_type);
      good = fmt::format("TRY_CAST({} AS {})", raw, target);
    } else {
      bad = bad_typed_value(raw, it->type, field.type);
      good = good_typed_value(raw, it->type, field.type);
    }
    if (bad == "false") {
      select += fmt::format("{} AS {}", good, quote_name(field.name));
    } else {
      select += fmt::format("CASE WHEN {} THEN {} ELSE {} END AS {}", bad,
                            value_error(field.name, field.type, raw), good, quote_name(field.name));
    }
  }
  if (with_path) select += ", __strandline_path";
  if (with_index) select += ", file_row_number AS __strandline_n";
  return fmt::format("(SELECT {} FROM {})", select, read);
}

// --- inference
// ------------------------------------------------------------------------------------

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

// Types of which only nulls were seen become STRING, as Spark does.
DataType settle(const DataType& type) {
  if (type.id == TypeId::kVoid) return DataType::primitive(TypeId::kString);
  if (type.id == TypeId::kArray) return DataType::array(settle(*type.element));
  if (type.id == TypeId::kStruct) {
    std::vector<Field> fields = *type.fields;
    for (auto& field : fields) field.type = settle(field.type);
    return DataType::structure(std::move(fields));
  }
  return type;
}

// known stays what it is when the new type's values fit it; nested structs gain fields.
std::optional<DataType> evolve(const DataType& known, const DataType& found, FileFormat format) {
  if (same_type(known, found) || found.id == TypeId::kVoid) return known;
  if (known.id == TypeId::kString && format != FileFormat::kParquet) return known;
  if (known.id == TypeId::kStruct && found.id == TypeId::kStruct) {
    std::vector<Field> fields = *known.fields;
    for (const auto& field : *found.fields) {
      auto it = std::find_if(fields.begin(), fields.end(),
                             [&](const auto& other) { return other.name == field.name; });
      if (it == fields.end()) {
        fields.push_back(field);
        fields.back().type = settle(field.type);
        continue;
      }
      auto type = evolve(it->type, field.type, format);
      if (!type) return {};
      it->type = *type;
    }
    return DataType::structure(std::move(fields));
  }
  if (known.id == TypeId::kArray && found.id == TypeId::kArray) {
    auto element = evolve(*known.element, *found.element, format);
    if (!element) return {};
    return DataType::array(*element);
  }
  const auto common = least_common_type(known, found);
  if (common && same_type(*common, known)) return known;
  return {};
}

Result<Schema> find_json(duck::Connection& connection, storage::Store& store,
                         const FileOptions& options, const std::vector<ConsumedFile>& files) {
  SL_ASSIGN(const auto known, look_at_json(store, options, files));
  SL_ASSIGN(const auto rows,
            connection.query(fmt::format("SELECT json_group_structure(CAST(j AS JSON)) FROM {}",
                                         json_records(options, known))));
  Schema schema;
  if (rows.rows.empty() || !rows.rows[0][0]) return schema;
  SL_ASSIGN(const auto structure, Json::parse(*rows.rows[0][0]));
  for (size_t i = 0; i < structure.names().size(); ++i) {
    schema.fields.push_back(
        Field{structure.names()[i], type_of_structure(structure.items()[i]), true, {}});
  }
  return schema;
}

Result<Schema> find_csv(duck::Connection& connection, storage::Store& store,
                        const FileOptions& options, const std::vector<ConsumedFile>& files) {
  Schema schema;
  for (const auto& file : files) {
    SL_ASSIGN(const auto names, csv_names(connection, store, options, file));
    for (const auto& name : names) {
      if (!schema.find(name)) {
        schema.fields.push_back(Field{name, DataType::primitive(TypeId::kString), true, {}});
      }
    }
  }
  if (!options.infer_types || schema.fields.empty()) return schema;
  FileOptions plain = options;
  plain.rescued_column.reset();
  SL_ASSIGN(const auto raw, csv_raw(connection, store, plain, schema, files, false, false));
  if (raw.empty()) return schema;
  const TypeId candidates[] = {TypeId::kInteger, TypeId::kLong, TypeId::kDouble,
                               TypeId::kBoolean, TypeId::kDate, TypeId::kTimestamp};
  std::string select;
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    const std::string column = fmt::format("r{}", i);
    for (const TypeId id : candidates) {
      select +=
          fmt::format("{}COALESCE(bool_or({}), false) OR count({}) = 0", select.empty() ? "" : ", ",
                      bad_value(column, DataType::primitive(id), TextKind::kText), column);
    }
  }
  SL_ASSIGN(const auto rows, connection.query(fmt::format("SELECT {} FROM {}", select, raw)));
  size_t cell = 0;
  for (auto& field : schema.fields) {
    bool decided = false;
    for (const TypeId id : candidates) {
      if (rows.rows[0][cell++] == "false" && !decided) {
        field.type = DataType::primitive(id);
        decided = true;
      }
    }
  }
  return schema;
}

Result<Schema> find_parquet(duck::Connection& connection, const std::vector<ConsumedFile>& files) {
  SL_ASSIGN(const auto columns,
            connection.describe(fmt::format("SELECT * FROM read_parquet({}, union_by_name=true, "
                                            "hive_partitioning=false)",
                                            path_list(files))));
  SL_TRY(check_parquet_names(connection, files, columns, nullptr));
  Schema schema;
  for (const auto& column : columns) {
    DataType type = column.type;
    const std::string& engine = column.engine_type;
    if (engine == "UTINYINT")
      type = DataType::primitive(TypeId::kShort);
    else if (engine == "USMALLINT")
      type = DataType::primitive(TypeId::kInteger);
    else if (engine == "UINTEGER")
      type = DataType::primitive(TypeId::kLong);
    else if (engine == "UBIGINT")
      type = DataType::decimal(20, 0);
    else if (engine == "TIMESTAMP_NS" || engine == "TIMESTAMP_MS" || engine == "TIMESTAMP_S")
      type = DataType::primitive(TypeId::kTimestampNtz);
    else if (engine == "UUID" || engine == "JSON" || engine.rfind("ENUM", 0) == 0)
      type = DataType::primitive(TypeId::kString);
    else if (type.id == TypeId::kVoid) {
      return unsupported("READ_FILES_TYPE",
                         "column '{}' of the Parquet files has type {}, which has no "
                         "counterpart in Delta: declare a schema without it",
                         column.name, engine);
    }
    schema.fields.push_back(Field{column.name, type, true, {}});
  }
  return schema;
}

Error at_line(Error error, const std::string& file, int64_t line) {
  error.place = SourcePlace{file, static_cast<int>(line), 0};
  return error;
}

// Text after `mark` in `text` up to the end of the line.
std::optional<std::string> after(const std::string& text, const std::string& mark) {
  const size_t begin = text.find(mark);
  if (begin == std::string::npos) return {};
  const size_t from = begin + mark.size();
  return text.substr(from, text.find('\n', from) - from);
}

std::optional<Error> explain_json(duck::Connection& connection, storage::Store& store,
                                  const FileOptions& options, const Schema& schema,
                                  const std::vector<ConsumedFile>& files) {
  if (options.multi_line) {
    for (const auto& file : files) {
      const auto sql = file_relation(connection, store, options, schema, {file});
      if (!sql.ok()) return sql.error();
      const auto rows = connection.query(fmt::format("SELECT max(hash(t)) FROM {} AS t", *sql));
      if (rows.ok() || rows.error().kind != ErrorKind::kInvalidData) continue;
      return invalid_data(rows.error().code, "file '{}': {}", file.path, rows.error().message);
    }
    return {};
  }
  std::string checks;
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    checks += fmt::format(" WHEN {} THEN {}", bad_line_value(i, schema.fields[i].type), i);
  }
  for (const auto& file : files) {
    const auto rows = connection.query(
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
    const auto value =
        connection.query(fmt::format("SELECT left(CAST(j{} AS VARCHAR), 100) FROM {} WHERE n = {}",
                                     why, json_lines(schema, {file}), line));
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

std::optional<Error> explain_csv(duck::Connection& connection, storage::Store& store,
                                 const FileOptions& options, const Schema& schema,
                                 const std::vector<ConsumedFile>& files, const Error& error) {
  if (const auto line = after(error.message, "CSV Error on Line: ")) {
    const auto file = after(error.message, "  file = ");
    const auto record = after(error.message, "Original Line: ");
    std::string what = "malformed line";
    for (const char* reason : {"Expected Number of Columns: ", "Value with unterminated quote"}) {
      if (const auto text = after(error.message, reason)) what = reason + *text;
    }
    const int64_t number = std::strtoll(line->c_str(), nullptr, 10);
    return at_line(
        invalid_data(
            "MALFORMED_RECORD",
            "file '{}', line {}: {}: {} — correct the line, look at sep, quote and escape, "
            "or keep bad records with rescuedDataColumn => '_rescued_data'",
            file.value_or(""), number, what, record.value_or("")),
        file.value_or(""), number);
  }
  for (const auto& file : files) {
    FileOptions plain = options;
    plain.rescued_column.reset();
    const auto raw = csv_raw(connection, store, plain, schema, {file}, false, true);
    if (!raw.ok() || raw->empty()) continue;
    std::string checks;
    for (size_t i = 0; i < schema.fields.size(); ++i) {
      checks +=
          fmt::format(" WHEN {} THEN {}",
                      bad_value(fmt::format("r{}", i), schema.fields[i].type, TextKind::kText), i);
    }
    std::string values;
    for (size_t i = 0; i < schema.fields.size(); ++i)
      values += fmt::format(" WHEN {} THEN r{}", i, i);
    const auto rows =
        connection.query(fmt::format("SELECT __strandline_n, why, left(CASE why{} END, 100) FROM "
                                     "(SELECT *, CASE{} END AS why FROM {}) WHERE why IS "
                                     "NOT NULL ORDER BY __strandline_n LIMIT 1",
                                     values, checks, *raw));
    if (!rows.ok() || rows->rows.empty()) continue;
    const int64_t line = std::stoll(rows->rows[0][0].value_or("0")) + (options.header ? 1 : 0);
    const auto& field =
        schema.fields[static_cast<size_t>(std::stoll(rows->rows[0][1].value_or("0")))];
    return at_line(invalid_data("VALUE_OUT_OF_TYPE",
                                "file '{}', line {}: the value '{}' of '{}' does not fit {} — "
                                "declare a type that holds "
                                "it, or keep bad records with rescuedDataColumn => '_rescued_data'",
                                file.path, line, rows->rows[0][2].value_or(""), field.name,
                                to_sql(field.type)),
                   file.path, line);
  }
  return {};
}

}  // namespace

Schema file_columns(const FileOptions& options, const Schema& schema) {
  Schema out = schema;
  if (options.rescued_column) {
    out.fields.push_back(
        Field{*options.rescued_column, DataType::primitive(TypeId::kString), true, {}});
  }
  return out;
}

DataType metadata_type() {
  const auto field = [](const char* name, TypeId id) {
    return Field{name, DataType::primitive(id), true, {}};
  };
  return DataType::structure(
      {field("file_path", TypeId::kString), field("file_name", TypeId::kString),
       field("file_size", TypeId::kLong), field("file_modification_time", TypeId::kTimestamp),
       field("row_index", TypeId::kLong)});
}

Result<std::string> file_relation(duck::Connection& connection, storage::Store& store,
                                  const FileOptions& options, const Schema& schema,
                                  const std::vector<ConsumedFile>& files,
                                  const FileRelationOptions& relation) {
  const Schema columns = file_columns(options, schema);
  if (files.empty()) return empty_relation(columns, relation.with_metadata);
  const bool path = relation.with_metadata;
  const bool index = relation.with_metadata && relation.with_row_index;
  std::string tail;
  if (path) tail += ", __strandline_path";
  if (index) tail += ", __strandline_n";
  std::string out;
  switch (options.format) {
    case FileFormat::kJson:
      if (options.rescued_column) {
        out = json_rescued(options, schema, files, path, index);
      } else {
        SL_ASSIGN(const auto known, look_at_json(store, options, files));
        out = fmt::format("(SELECT {}{} FROM {})", exact_columns(schema, TextKind::kJson), tail,
                          json_raw(options, schema, known, path, index));
      }
      break;
    case FileFormat::kCsv: {
      const bool rescue_path = options.rescued_column.has_value();
      SL_ASSIGN(const auto raw,
                csv_raw(connection, store, options, schema, files, path || rescue_path, index));
      if (raw.empty()) return empty_relation(columns, relation.with_metadata);
      if (!options.rescued_column) {
        out =
            fmt::format("(SELECT {}{} FROM {})", exact_columns(schema, TextKind::kText), tail, raw);
        break;
      }
      std::string select;
      std::string entries;
      for (size_t i = 0; i < schema.fields.size(); ++i) {
        const auto& field = schema.fields[i];
        const std::string column = fmt::format("r{}", i);
        const std::string bad = bad_value(column, field.type, TextKind::kText);
        select +=
            fmt::format("CASE WHEN NOT {} THEN {} END AS {}, ", bad,
                        good_value(column, field.type, TextKind::kText), quote_name(field.name));
        entries += fmt::format("{}CASE WHEN {} THEN struct_pack(k := {}, v := to_json({})) END",
                               i > 0 ? ", " : "", bad, quote_literal(field.name), column);
      }
      const std::string found =
          fmt::format("list_filter(list_concat([{}], extra), lambda x: x IS NOT NULL)", entries);
      select += fmt::format(
          "CASE WHEN len({0}) > 0 THEN CAST(to_json(map_from_entries(list_append({0}, "
          "struct_pack(k := "
          "'_file_path', v := to_json('file://' || __strandline_path))))) AS VARCHAR) END AS {1}",
          found, quote_name(*options.rescued_column));
      out = fmt::format("(SELECT {}{} FROM {})", select, tail, raw);
      break;
    }
    case FileFormat::kParquet: {
      SL_ASSIGN(const auto filled, without_empty(store, files));
      if (filled.empty()) return empty_relation(columns, relation.with_metadata);
      SL_ASSIGN(out, parquet_typed(connection, schema, filled, path, index));
      break;
    }
  }
  if (!path) return out;
  return with_metadata(out, columns, files, index);
}

Result<Schema> infer_schema(duck::Connection& connection, storage::Store& store,
                            const FileOptions& options, const std::vector<ConsumedFile>& files,
                            const Schema* known) {
  Schema found;
  if (!files.empty()) {
    switch (options.format) {
      case FileFormat::kJson: {
        SL_ASSIGN(found, find_json(connection, store, options, files));
        break;
      }
      case FileFormat::kCsv: {
        SL_ASSIGN(found, find_csv(connection, store, options, files));
        break;
      }
      case FileFormat::kParquet: {
        SL_ASSIGN(const auto filled, without_empty(store, files));
        if (filled.empty()) break;
        SL_ASSIGN(found, find_parquet(connection, filled));
        break;
      }
    }
  }
  Schema schema = known != nullptr ? *known : Schema{};
  for (const auto& field : found.fields) {
    if (options.schema_hints.find(field.name)) continue;
    const auto index = schema.find(field.name);
    if (!index) {
      schema.fields.push_back(Field{field.name, settle(field.type), true, {}});
      continue;
    }
    auto& old = schema.fields[*index];
    if (options.format == FileFormat::kJson && old.name != field.name) {
      return invalid_data("COLUMN_ALREADY_EXISTS",
                          "read_files('{}'): fields '{}' and '{}' differ only in case: declare a "
                          "schema with one of "
                          "them",
                          options.path, old.name, field.name);
    }
    const auto type = evolve(old.type, field.type, options.format);
    if (!type) {
      return invalid_data(
          "SCHEMA_CONFLICT",
          "read_files('{}'): column '{}' was {}, new files have {}: name a type that holds "
          "both with schemaHints => '{} …'",
          options.path, field.name, to_sql(old.type), to_sql(settle(field.type)), field.name);
    }
    old.type = *type;
  }
  for (const auto& hint : options.schema_hints.fields) {
    if (const auto index = schema.find(hint.name)) {
      schema.fields[*index].type = hint.type;
    } else {
      schema.fields.push_back(hint);
    }
  }
  return schema;
}

std::optional<Error> explain_failure(duck::Connection& connection, storage::Store& store,
                                     const FileOptions& options, const Schema& schema,
                                     const std::vector<ConsumedFile>& files, const Error& error) {
  switch (options.format) {
    case FileFormat::kJson:
      return explain_json(connection, store, options, schema, files);
    case FileFormat::kCsv:
      return explain_csv(connection, store, options, schema, files, error);
    case FileFormat::kParquet:
      return {};
  }
  return {};
}

}  // namespace strandline::pipeline
