#include "pipeline/file_reader.h"

#include <algorithm>

#include "base/error.h"
#include "pipeline/file_formats.h"

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

}  // namespace

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

Error at_line(Error error, const std::string& file, int64_t line) {
  error.place = SourcePlace{file, static_cast<int>(line), 0};
  return error;
}

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
  const FilesToRead read{connection, store, options, files};
  const RowPlaces places{path, index};
  std::string out;
  switch (options.format) {
    case FileFormat::kJson: {
      SL_ASSIGN(out, json_relation(read, schema, places));
      break;
    }
    case FileFormat::kCsv: {
      SL_ASSIGN(out, csv_relation(read, schema, places));
      break;
    }
    case FileFormat::kParquet: {
      SL_ASSIGN(out, parquet_relation(read, schema, places));
      break;
    }
  }
  if (out.empty()) return empty_relation(columns, relation.with_metadata);
  if (!path) return out;
  return with_metadata(out, columns, files, index);
}

Result<Schema> infer_schema(duck::Connection& connection, storage::Store& store,
                            const FileOptions& options, const std::vector<ConsumedFile>& files,
                            const Schema* known, const WithoutValues& without_values) {
  const FilesToRead read{connection, store, options, files};
  Schema found;
  bool no_rows = false;
  if (!files.empty()) {
    switch (options.format) {
      case FileFormat::kJson: {
        SL_ASSIGN(found, json_columns(read));
        break;
      }
      case FileFormat::kCsv: {
        SL_ASSIGN(found, csv_columns(read, &no_rows));
        break;
      }
      case FileFormat::kParquet: {
        SL_ASSIGN(found, parquet_columns(read));
        break;
      }
    }
  }
  Schema schema = known != nullptr ? *known : Schema{};
  for (const auto& field : found.fields) {
    if (options.schema_hints.find(field.name)) continue;
    const auto index = schema.find(field.name);
    if (!index) {
      const Field* before = field.type.id == TypeId::kVoid && without_values.before != nullptr
                                ? without_values.before->get(field.name)
                                : nullptr;
      if (before == nullptr && no_rows && without_values.wait) return Schema{};
      schema.fields.push_back(
          Field{field.name, before != nullptr ? before->type : settle(field.type), true, {}});
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
  const FilesToRead read{connection, store, options, files};
  switch (options.format) {
    case FileFormat::kJson:
      return explain_json(read, schema);
    case FileFormat::kCsv:
      return explain_csv(read, schema, error);
    case FileFormat::kParquet:
      return {};
  }
  return {};
}

}  // namespace strandline::pipeline
