// Parquet: typed values, cast up or refused.
#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "base/error.h"
#include "delta/parquet_footer.h"
#include "duck/scan_filters.h"
#include "pipeline/file_formats.h"

namespace strandline::pipeline {
namespace {

using duck::quote_literal;
using duck::quote_name;

// A field of a file, depth first; `column` is the one at the top that it belongs to.
struct Node {
  std::string column;
  bool top;
  std::string refusal;  // why values would be read wrongly; empty: they are not
  bool is_int96;        // an instant, as old writers have them
};

// The engine reads these without a word about what it loses.
constexpr std::string_view kRefusal = R"(CASE
  WHEN precision > 38 THEN 'decimals of ' || precision || ' digits'
  WHEN contains(logical_type, 'isAdjustedToUTC=1') AND contains(logical_type, 'NANOS=NanoSeconds')
    THEN 'times of nanoseconds with a zone' END)";

Result<std::vector<Node>> nodes_of(duck::Connection& connection, const ConsumedFile& file) {
  SL_ASSIGN(const auto nodes,
            connection.query(
                fmt::format("SELECT name, coalesce(num_children, 0), {}, coalesce(type = 'INT96', "
                            "false) FROM parquet_schema({})",
                            kRefusal, path_list({file}))));
  std::vector<Node> out;
  std::string column;
  // The root is before all: its children are the columns.
  std::vector<int64_t> open;  // children still to come, of each node around
  for (const auto& row : nodes.rows) {
    const bool top = open.size() == 1;
    if (top) column = row[0].value_or("");
    if (!open.empty()) {
      out.push_back(Node{column, top, row[2].value_or(""), row[3] == "true"});
      --open.back();
    }
    open.push_back(std::stoll(row[1].value_or("0")));
    while (!open.empty() && open.back() == 0) open.pop_back();
  }
  return out;
}

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
    SL_ASSIGN(const auto nodes, nodes_of(connection, file));
    std::map<std::string, std::string> seen;
    for (const auto& node : nodes) {
      if (!node.top) continue;
      const auto [first, fresh] = seen.emplace(fold_name(node.column), node.column);
      if (!fresh && (wanted == nullptr || wanted->find(node.column))) {
        return invalid_data("COLUMN_ALREADY_EXISTS",
                            "Parquet file '{}' has the columns '{}' and '{}', which are one name "
                            "because case does not count: write the file anew with other names, "
                            "or declare a schema without them",
                            file.path, first->second, node.column);
      }
    }
  }
  return {};
}

// Values that the engine would cut or round while it reads them, as TIMESTAMP and DOUBLE.
Status check_parquet_values(duck::Connection& connection, const std::vector<ConsumedFile>& files,
                            const std::vector<duck::ResultColumn>& found, const Schema* wanted) {
  const auto suspect = [&](const duck::ResultColumn& column) {
    return column.engine_type.find("TIMESTAMP WITH TIME ZONE") != std::string::npos ||
           column.engine_type.find("DOUBLE") != std::string::npos;
  };
  if (std::none_of(found.begin(), found.end(), suspect)) return {};
  SL_ASSIGN(const auto count,
            connection.query(fmt::format("SELECT count({}) FROM parquet_schema({})", kRefusal,
                                         path_list(files))));
  if (count.rows[0][0] == "0") return {};
  for (const auto& file : files) {
    SL_ASSIGN(const auto nodes, nodes_of(connection, file));
    for (const auto& node : nodes) {
      if (node.refusal.empty() || (wanted != nullptr && !wanted->find(node.column))) continue;
      return unsupported(
          "READ_FILES_TYPE",
          "column '{}' of Parquet file '{}' has {}, more than Delta's types hold: "
          "write the file with {}, or declare a schema without the column",
          node.column, file.path, node.refusal,
          node.refusal.rfind("times", 0) == 0 ? "microseconds" : "38 digits at most");
    }
  }
  return {};
}

// Folded names of the columns that hold INT96, which tells instants; the engine reads them as times
// without a zone.
Result<std::set<std::string>> columns_of_int96(duck::Connection& connection,
                                               const std::vector<ConsumedFile>& files,
                                               const std::vector<duck::ResultColumn>& found) {
  std::set<std::string> out;
  const auto suspect = [](const duck::ResultColumn& column) {
    return column.engine_type.find("TIMESTAMP") != std::string::npos;
  };
  if (std::none_of(found.begin(), found.end(), suspect)) return out;
  SL_ASSIGN(const auto count,
            connection.query_int(fmt::format(
                "SELECT count(*) FROM parquet_schema({}) WHERE type = 'INT96'", path_list(files))));
  if (count == 0) return out;
  for (const auto& file : files) {
    SL_ASSIGN(const auto nodes, nodes_of(connection, file));
    for (const auto& node : nodes) {
      if (node.is_int96) out.insert(fold_name(node.column));
    }
  }
  return out;
}

// The type with instants in place of times without a zone.
DataType with_instants(const DataType& type) {
  switch (type.id) {
    case TypeId::kTimestampNtz:
      return DataType::primitive(TypeId::kTimestamp);
    case TypeId::kStruct: {
      std::vector<Field> fields = *type.fields;
      for (Field& field : fields) field.type = with_instants(field.type);
      return DataType::structure(std::move(fields));
    }
    case TypeId::kArray:
      return DataType::array(with_instants(*type.element), type.contains_null);
    case TypeId::kMap:
      return DataType::map(with_instants(*type.key), with_instants(*type.element),
                           type.contains_null);
    default:
      return type;
  }
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

// The columns of the files, by their footers. One that has none is named.
Result<std::vector<duck::ResultColumn>> describe_files(const FilesToRead& read,
                                                       const std::vector<ConsumedFile>& files,
                                                       const std::string& relation) {
  auto found = read.connection.describe("SELECT * FROM " + relation);
  if (found.ok() || found.error().code != "ENGINE_ERROR") return found;
  for (const auto& file : files) {
    SL_ASSIGN(const auto info, read.store.stat(file.path));
    const auto footer = delta::read_parquet_footer(&read.store, file.path, info.size_bytes);
    if (!footer.ok() && footer.error().code == "PARQUET_FOOTER_DAMAGED")
      return invalid_data("FAILED_READ_FILE.CANNOT_READ_FILE_FOOTER",
                          "file '{}' {}: put a whole one in its place, or take it away", file.path,
                          footer.error().message);
  }
  return found;
}

}  // namespace

Result<std::string> parquet_relation(const FilesToRead& read, const Schema& schema,
                                     RowPlaces places) {
  SL_ASSIGN(const auto files, without_empty(read.store, read.files));
  if (files.empty()) return std::string();
  const std::string relation = fmt::format(
      "read_parquet({}, union_by_name=true, hive_partitioning=false, can_have_nan=true{}{})",
      path_list(files), places.path ? ", filename='__strandline_path'" : "",
      places.index ? ", file_row_number=true" : "");
  SL_ASSIGN(const auto found, describe_files(read, files, relation));
  SL_TRY(check_parquet_names(read.connection, files, found, &schema));
  SL_TRY(check_parquet_values(read.connection, files, found, &schema));
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
      good = duck::unfiltered(good_typed_value(raw, it->type, field.type), field.type);
    }
    if (bad == "false") {
      select += fmt::format("{} AS {}", good, quote_name(field.name));
    } else {
      select += fmt::format("CASE WHEN {} THEN {} ELSE {} END AS {}", bad,
                            value_error(field.name, field.type, raw), good, quote_name(field.name));
    }
  }
  if (places.path) select += ", __strandline_path";
  if (places.index) select += ", file_row_number AS __strandline_n";
  return fmt::format("(SELECT {} FROM {})", select, relation);
}

Result<Schema> parquet_columns(const FilesToRead& read) {
  SL_ASSIGN(const auto files, without_empty(read.store, read.files));
  if (files.empty()) return Schema();
  SL_ASSIGN(const auto columns,
            describe_files(read, files,
                           fmt::format("read_parquet({}, union_by_name=true, "
                                       "hive_partitioning=false, can_have_nan=true)",
                                       path_list(files))));
  SL_TRY(check_parquet_names(read.connection, files, columns, nullptr));
  SL_TRY(check_parquet_values(read.connection, files, columns, nullptr));
  SL_ASSIGN(const auto instants, columns_of_int96(read.connection, files, columns));
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
    if (instants.contains(fold_name(column.name))) type = with_instants(type);
    schema.fields.push_back(Field{column.name, type, true, {}});
  }
  return schema;
}

}  // namespace strandline::pipeline
