// CSV: the engine gives texts, which become exact values or errors.
#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "pipeline/file_formats.h"

namespace strandline::pipeline {
namespace {

using duck::quote_literal;
using duck::quote_name;

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

// An empty field is null, and so is one in quotes if nullValue is empty, as it is by default.
std::string csv_options(const FileOptions& options) {
  std::string out = fmt::format(
      "header={}, delim={}, quote={}, escape={}, nullstr='', allow_quoted_nulls={}, "
      "auto_detect=false",
      options.header, quote_literal(options.separator), quote_literal(options.quote),
      quote_literal(options.quote.empty() ? "" : options.escape), options.null_value.empty());
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
      // In quotes or not.
      select += options.null_value.empty() ? fmt::format("c{} AS r{}", place, i)
                                           : fmt::format("nullif(c{}, {}) AS r{}", place,
                                                         quote_literal(options.null_value), i);
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

// Text after `mark` in `text` up to the end of the line.
std::optional<std::string> after(const std::string& text, const std::string& mark) {
  const size_t begin = text.find(mark);
  if (begin == std::string::npos) return {};
  const size_t from = begin + mark.size();
  return text.substr(from, text.find('\n', from) - from);
}

}  // namespace

Result<std::string> csv_relation(const FilesToRead& read, const Schema& schema, RowPlaces places) {
  const FileOptions& options = read.options;
  const bool rescues = options.rescued_column.has_value();
  SL_ASSIGN(const auto raw, csv_raw(read.connection, read.store, options, schema, read.files,
                                    places.path || rescues, places.index));
  if (raw.empty()) return std::string();
  if (!rescues) {
    return fmt::format("(SELECT {}{} FROM {})", exact_columns(schema, TextKind::kText),
                       places.names(), raw);
  }
  std::string select;
  std::string entries;
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    const auto& field = schema.fields[i];
    const std::string column = fmt::format("r{}", i);
    const std::string bad = bad_value(column, field.type, TextKind::kText);
    select += fmt::format("CASE WHEN NOT {} THEN {} END AS {}, ", bad,
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
  return fmt::format("(SELECT {}{} FROM {})", select, places.names(), raw);
}

Result<Schema> csv_columns(const FilesToRead& read, bool* no_rows) {
  const FileOptions& options = read.options;
  Schema schema;
  for (const auto& file : read.files) {
    SL_ASSIGN(const auto names, csv_names(read.connection, read.store, options, file));
    for (const auto& name : names) {
      if (!schema.find(name)) {
        schema.fields.push_back(Field{name, DataType::primitive(TypeId::kString), true, {}});
      }
    }
  }
  if (!options.infer_types || schema.fields.empty()) return schema;
  FileOptions plain = options;
  plain.rescued_column.reset();
  SL_ASSIGN(const auto raw,
            csv_raw(read.connection, read.store, plain, schema, read.files, false, false));
  if (raw.empty()) return schema;
  const TypeId candidates[] = {TypeId::kInteger, TypeId::kLong, TypeId::kDouble,
                               TypeId::kBoolean, TypeId::kDate, TypeId::kTimestamp};
  std::string select = "count(*) = 0";
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    const std::string column = fmt::format("r{}", i);
    select += fmt::format(", count({}) = 0", column);
    for (const TypeId id : candidates) {
      select += fmt::format(", COALESCE(bool_or({}), false)",
                            bad_value(column, DataType::primitive(id), TextKind::kText));
    }
  }
  SL_ASSIGN(const auto rows, read.connection.query(fmt::format("SELECT {} FROM {}", select, raw)));
  if (no_rows != nullptr) *no_rows = rows.rows[0][0] == "true";
  size_t cell = 1;
  for (auto& field : schema.fields) {
    bool decided = rows.rows[0][cell++] == "true";
    if (decided) field.type = DataType::primitive(TypeId::kVoid);
    for (const TypeId id : candidates) {
      if (rows.rows[0][cell++] == "false" && !decided) {
        field.type = DataType::primitive(id);
        decided = true;
      }
    }
  }
  return schema;
}

std::optional<Error> explain_csv(const FilesToRead& read, const Schema& schema,
                                 const Error& error) {
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
  for (const auto& file : read.files) {
    FileOptions plain = read.options;
    plain.rescued_column.reset();
    const auto raw = csv_raw(read.connection, read.store, plain, schema, {file}, false, true);
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
    const auto rows = read.connection.query(
        fmt::format("SELECT __strandline_n, why, left(CASE why{} END, 100) FROM "
                    "(SELECT *, CASE{} END AS why FROM {}) WHERE why IS "
                    "NOT NULL ORDER BY __strandline_n LIMIT 1",
                    values, checks, *raw));
    if (!rows.ok() || rows->rows.empty()) continue;
    const int64_t line = std::stoll(rows->rows[0][0].value_or("0")) + (read.options.header ? 1 : 0);
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

}  // namespace strandline::pipeline
