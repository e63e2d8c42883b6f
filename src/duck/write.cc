// write_files: the rows of a query as data files of a table.
#include <algorithm>
#include <atomic>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/utf8.h"
#include "delta/data_path.h"
#include "duck/counted_write.h"
#include "duck/engine.h"
#include "duck/names.h"
#include "duck/statistics.h"
#include "duck/zero_signs.h"

namespace strandline::duck {
namespace {

constexpr const char* kNullDirectory = "__HIVE_DEFAULT_PARTITION__";

// A file that COPY reports.
struct WrittenFile {
  std::string path;
  int64_t row_count = 0;
  int64_t size_bytes = 0;
  ColumnStatistics statistics;
};

// One partition of the staged rows: they lie at rowids first..last.
struct Partition {
  std::vector<std::optional<std::string>> values;  // log text, by partition column
  int64_t first = 0;
  int64_t last = 0;
};

// MAP(VARCHAR, MAP(VARCHAR, VARCHAR)) of one row.
ColumnStatistics statistics_at(duckdb_vector vector, idx_t row) {
  ColumnStatistics statistics;
  if (!is_valid(duckdb_vector_get_validity(vector), row)) return statistics;
  const duckdb_vector columns = duckdb_list_vector_get_child(vector);
  const duckdb_vector names = duckdb_struct_vector_get_child(columns, 0);
  const duckdb_vector maps = duckdb_struct_vector_get_child(columns, 1);
  const duckdb_vector cells = duckdb_list_vector_get_child(maps);
  const duckdb_vector cell_names = duckdb_struct_vector_get_child(cells, 0);
  const duckdb_vector cell_values = duckdb_struct_vector_get_child(cells, 1);
  const duckdb_list_entry entry = list_entry_at(vector, row);
  for (idx_t c = entry.offset; c < entry.offset + entry.length; ++c) {
    auto& column = statistics[text_at(names, c).value_or("")];
    const duckdb_list_entry inner = list_entry_at(maps, c);
    for (idx_t v = inner.offset; v < inner.offset + inner.length; ++v) {
      column[text_at(cell_names, v).value_or("")] = text_at(cell_values, v).value_or("");
    }
  }
  return statistics;
}

// What members of a value may not be: null where they are NOT NULL, anything else where they are
// VOID.
enum class MemberRule { kNotNull, kVoid };

// SQL that is true where a value breaks a rule inside it; empty when none can.
std::string inner_violation(const std::string& value, const DataType& type, MemberRule rule,
                            int depth) {
  const std::string variable = fmt::format("__strandline_n{}", depth);
  const auto any_element = [&](const std::string& list, const DataType& element, bool may_be_null) {
    std::string broken = inner_violation(variable, element, rule, depth + 1);
    if (!may_be_null && rule == MemberRule::kNotNull) {
      broken = variable + " IS NULL" + (broken.empty() ? "" : " OR " + broken);
    }
    if (broken.empty()) return broken;
    return fmt::format("coalesce(len(list_filter({}, lambda {}: {})) > 0, false)", list, variable,
                       broken);
  };
  switch (type.id) {
    case TypeId::kArray:
      return any_element(value, *type.element, type.contains_null);
    case TypeId::kMap:
      return any_element(fmt::format("map_values({})", value), *type.element, type.contains_null);
    case TypeId::kStruct: {
      std::string broken;
      for (const Field& field : *type.fields) {
        const std::string member =
            fmt::format("struct_extract({}, {})", value, quote_literal(field.name));
        std::string own = inner_violation(member, field.type, rule, depth);
        if (rule == MemberRule::kVoid && field.type.id == TypeId::kVoid) {
          own = member + " IS NOT NULL";
        } else if (rule == MemberRule::kNotNull && !field.nullable) {
          own = member + " IS NULL" + (own.empty() ? "" : " OR " + own);
        }
        if (own.empty()) continue;
        broken += (broken.empty() ? "" : " OR ") + own;
      }
      if (broken.empty()) return broken;
      return fmt::format("({} IS NOT NULL AND ({}))", value, broken);
    }
    default:
      return {};
  }
}

// The type with the given one's parts where it is VOID: a bare NULL of a query has some type, and
// must have no value.
DataType with_void_as(DataType type, const DataType& given) {
  if (type.id == TypeId::kVoid) return given;
  if (type.id != given.id) return type;
  const auto part = [](std::shared_ptr<const DataType>& inner, const DataType& other) {
    inner = std::make_shared<const DataType>(with_void_as(*inner, other));
  };
  switch (type.id) {
    case TypeId::kArray:
      part(type.element, *given.element);
      return type;
    case TypeId::kMap:
      part(type.key, *given.key);
      part(type.element, *given.element);
      return type;
    case TypeId::kStruct: {
      std::vector<Field> fields = *type.fields;
      for (Field& field : fields) {
        const auto other =
            std::find_if(given.fields->begin(), given.fields->end(),
                         [&](const Field& each) { return same_name(each.name, field.name); });
        if (other != given.fields->end()) field.type = with_void_as(field.type, other->type);
      }
      return DataType::structure(std::move(fields));
    }
    default:
      return type;
  }
}

// "s.a, s.b": the members that may not be null, of a column that is no such thing itself.
std::string strict_members(const std::string& name, const DataType& type) {
  std::string members;
  const auto add = [&](const std::string& found) {
    if (!found.empty()) members += (members.empty() ? "" : ", ") + found;
  };
  if (type.id == TypeId::kStruct) {
    for (const Field& field : *type.fields) {
      if (!field.nullable) add(name + "." + field.name);
      add(strict_members(name + "." + field.name, field.type));
    }
  } else if (type.id == TypeId::kArray) {
    if (!type.contains_null) add(name + ".element");
    add(strict_members(name + ".element", *type.element));
  } else if (type.id == TypeId::kMap) {
    if (!type.contains_null) add(name + ".value");
    add(strict_members(name + ".value", *type.element));
  }
  return members;
}

Error null_violation(const std::string& column, const std::string& table_path) {
  return invalid_data("NOT_NULL_CONSTRAINT_VIOLATION",
                      "column {} of table {} is NOT NULL, but a row to be written has no value",
                      column, table_path);
}

Error void_violation(const std::string& column, const std::string& table_path) {
  return invalid_data("DELTA_VOID_COLUMN_HAS_VALUE",
                      "column {} of table {} is VOID, or has a member that is, but a row to be "
                      "written has a value there: give the column a type first",
                      column, table_path);
}

std::string bytes_of_hex(const std::string& digits) {
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

Error no_text(const std::string& column, const std::string& table_path) {
  return invalid_data("DELTA_PARTITION_VALUE_IS_NO_TEXT",
                      "column {} partitions table {} and has a value that is no UTF-8 text, which "
                      "the log of a Delta table cannot hold: partition by another column, or by "
                      "hex({})",
                      column, table_path, column);
}

// An expression that fails where `broken` is true.
std::string guarded(const std::string& expression, const std::string& broken, const Error& error) {
  if (broken.empty()) return expression;
  return fmt::format("CASE WHEN {} THEN error({}) ELSE {} END", broken,
                     quote_literal("[" + error.code + "] " + error.message), expression);
}

// Void inside a list or map has no form in a Parquet file; a column or member is left out of it.
bool holds_void(const DataType& type) {
  switch (type.id) {
    case TypeId::kArray:
      return type.element->id == TypeId::kVoid || holds_void(*type.element);
    case TypeId::kMap:
      return type.element->id == TypeId::kVoid || holds_void(*type.key) ||
             holds_void(*type.element);
    case TypeId::kStruct:
      return std::any_of(type.fields->begin(), type.fields->end(),
                         [](const Field& field) { return holds_void(field.type); });
    default:
      return false;
  }
}

// The characters of a directory name that Hive's convention writes as %XX.
std::string escape_directory(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool special = byte < 0x20 || byte == 0x7F ||
                         std::string_view("\"#%'*/:=?\\{[]^").find(c) != std::string_view::npos;
    escaped += special ? fmt::format("%{:02X}", byte) : std::string(1, c);
  }
  return escaped;
}

// The directory of a partition. Where a file lies tells no reader anything: of a long value a part
// will do, as file systems take names of up to 255 bytes.
std::string directory_name(const std::string& column, const std::optional<std::string>& value) {
  constexpr size_t kLongest = 200;
  std::string name =
      escape_directory(column) + "=" + (value ? escape_directory(*value) : kNullDirectory);
  if (name.size() <= kLongest) return name;
  size_t end = kLongest;
  // Not inside of a character, nor of an escape.
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;
  if (const size_t escape = name.rfind('%', end); escape != std::string::npos && end - escape < 3)
    end = escape;
  return name.substr(0, end) + "~";
}

// A partition column's value as the log's text (delta-protocol.md section 5), of bytes their hex
// digits; empty is null.
std::string partition_text(const std::string& value, const DataType& type) {
  switch (type.id) {
    case TypeId::kTimestamp:
      return fmt::format("strftime({}, '%Y-%m-%dT%H:%M:%S.%fZ')", value);
    case TypeId::kTimestampNtz:
      return fmt::format("strftime({}, '%Y-%m-%d %H:%M:%S.%f')", value);
    case TypeId::kBinary:
      return fmt::format("hex({})", value);
    case TypeId::kFloat:
    case TypeId::kDouble:
      return fmt::format(
          "CASE WHEN isnan({0}) THEN 'NaN' WHEN isinf({0}) AND {0} > 0 THEN 'Infinity' "
          "WHEN isinf({0}) THEN '-Infinity' ELSE CAST({0} AS VARCHAR) END",
          value);
    case TypeId::kDecimal:  // with the zero before the point that DuckDB leaves out
      return fmt::format("regexp_replace(CAST({} AS VARCHAR), '^(-?)[.]', '\\10.')", value);
    default:
      return fmt::format("CAST({} AS VARCHAR)", value);
  }
}

// Compression of new files: the table's property, else snappy (docs/decisions: writing with zstd
// takes a quarter longer).
Result<std::string> codec(const delta::Snapshot& definition) {
  const std::string name =
      fold_name(definition.property("delta.parquet.compression.codec").value_or("snappy"));
  if (name == "none" || name == "uncompressed") return std::string("uncompressed");
  for (const char* known : {"snappy", "zstd", "gzip", "lz4_raw", "brotli"}) {
    if (name == known) return name;
  }
  if (name == "lz4") return std::string("lz4_raw");
  return unsupported("UNSUPPORTED_COMPRESSION",
                     "delta.parquet.compression.codec '{}' is not supported: use snappy, zstd, "
                     "gzip, lz4_raw or uncompressed",
                     name);
}

// Carries one write_files call.
class FileWriter {
 public:
  FileWriter(Connection& connection, const delta::Table& table, const delta::Snapshot& definition,
             const WriteOptions& options)
      : connection_(connection),
        table_(table),
        definition_(definition),
        options_(options),
        mode_(column_mode(definition)) {}
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  ~FileWriter() {
    for (const auto& [number, signs] : zeros_) zero_signs(connection_)->remove(number);
  }

  int64_t empty_partition_rows() const { return empty_partition_rows_; }

  Result<std::vector<delta::AddFile>> run(const std::string& query) {
    Status done = write(query);
    if (!staged_.empty()) {
      // A failure to drop must not hide the first error; the name is never used again.
      (void)connection_.execute("DROP TABLE IF EXISTS " + staged_);
    }
    if (!done.ok()) {
      remove_files();
      return std::move(done).error();
    }
    return std::move(files_);
  }

 private:
  Status write(const std::string& query);
  Status plan(const std::string& query);
  Result<std::string> input(const Field& field, const std::vector<ResultColumn>& given) const;
  Result<std::string> field_ids(const std::vector<Field>& fields) const;
  Result<std::string> inner_field_ids(const DataType& type) const;
  Status write_staged(const std::string& query);
  Result<std::vector<Partition>> stage(const std::string& query);
  // The rows as files, whose zeros keep their signs.
  Status copy(const std::string& select, const std::vector<std::optional<std::string>>& values);
  Status copy(const std::string& select, const std::vector<std::optional<std::string>>& values,
              const std::string& options);
  // A value of a column on its way into a file.
  std::string watched(const std::string& value, const DataType& type);
  Status finish(const WrittenFile& file, const std::string& directory,
                const std::vector<std::optional<std::string>>& values);
  Status check_nulls(const WrittenFile& file) const;
  void remove_files();
  void remove_files(const std::string& directory, const std::string& prefix);
  bool is_partition_column(const std::string& name) const {
    const auto& names = definition_.metadata.partition_columns;
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& other) { return same_name(name, other); });
  }

  Connection& connection_;
  const delta::Table& table_;
  const delta::Snapshot& definition_;
  const WriteOptions& options_;
  const ColumnMode mode_;

  std::vector<const Field*> partition_columns_;
  int64_t empty_partition_rows_ = 0;
  std::string logical_select_;  // typed logical columns, as a select list over q
  std::string file_select_;     // stored columns under their file names, over logical names
  std::string copy_options_;
  std::string staged_;
  // Absolute directories that may hold files of this call, and how their names start.
  std::vector<std::pair<std::string, std::string>> places_;
  std::vector<delta::AddFile> files_;
  // Of the FLOAT and DOUBLE columns, by number in the registry.
  std::vector<std::pair<int64_t, std::shared_ptr<const ZeroSigns>>> zeros_;
};

std::string FileWriter::watched(const std::string& value, const DataType& type) {
  if (type.id != TypeId::kFloat && type.id != TypeId::kDouble) return value;
  auto signs = std::make_shared<const ZeroSigns>();
  zeros_.emplace_back(zero_signs(connection_)->add(signs), signs);
  return fmt::format("sl_see_zeros_of_{}({}, {})", type.id == TypeId::kFloat ? "float" : "double",
                     zeros_.back().first, value);
}

// The query's column for a field, cast to the field's type.
Result<std::string> FileWriter::input(const Field& field,
                                      const std::vector<ResultColumn>& given) const {
  const auto column = std::find_if(given.begin(), given.end(), [&](const ResultColumn& other) {
    return same_name(other.name, field.name);
  });
  if (column == given.end()) {
    return invalid_argument("UNRESOLVED_COLUMN", "the rows to be written have no column {} of {}",
                            field.name, table_.path());
  }
  const std::string value = "q." + quote_name(column->name);
  if (column->engine_type == engine_type(field.type)) return value;
  if (!column->has_delta_type) {
    return unsupported("UNSUPPORTED_TYPE",
                       "column {} of the rows to be written has the type {}, which a Delta table "
                       "cannot hold: cast it, to {} for instance",
                       field.name, column->engine_type, to_sql(field.type));
  }
  const DataType type = with_void_as(field.type, column->type);
  const std::string wanted = engine_type(type);
  if (column->engine_type == wanted) return value;
  const auto common = least_common_type(column->type, type);
  if (!common || !same_type(*common, type)) {
    return invalid_argument("INCOMPATIBLE_COLUMN_TYPE",
                            "column {} of {} is {}, the rows to be written give {}: cast them",
                            field.name, table_.path(), to_sql(field.type), to_sql(column->type));
  }
  return fmt::format("CAST({} AS {})", value, wanted);
}

// Entries of the FIELD_IDS option for the fields inside a type; empty when there are none. Lists
// and maps have no ids of their own parts, but their structs' members do.
Result<std::string> FileWriter::inner_field_ids(const DataType& type) const {
  const auto part = [&](const char* name, const DataType& inner) -> Result<std::string> {
    SL_ASSIGN(const std::string entries, inner_field_ids(inner));
    if (entries.empty()) return std::string();
    return fmt::format("{}: {{{}}}", name, entries);
  };
  switch (type.id) {
    case TypeId::kStruct:
      return field_ids(*type.fields);
    case TypeId::kArray:
      return part("element", *type.element);
    case TypeId::kMap: {
      SL_ASSIGN(const std::string key, part("key", *type.key));
      SL_ASSIGN(const std::string value, part("value", *type.element));
      return key + (key.empty() || value.empty() ? "" : ", ") + value;
    }
    default:
      return std::string();
  }
}

Result<std::string> FileWriter::field_ids(const std::vector<Field>& fields) const {
  std::string entries;
  for (const Field& field : fields) {
    if (field.type.id == TypeId::kVoid) continue;
    SL_ASSIGN(const int64_t id, field_id(field));
    SL_ASSIGN(const std::string inner, inner_field_ids(field.type));
    if (!entries.empty()) entries += ", ";
    entries += quote_name(file_name(field, mode_)) + ": ";
    entries += inner.empty() ? std::to_string(id)
                             : fmt::format("{{__duckdb_field_id: {}, {}}}", id, inner);
  }
  return entries;
}

Status FileWriter::plan(const std::string& query) {
  SL_ASSIGN(const std::vector<ResultColumn> given, connection_.describe(query));
  for (const ResultColumn& column : given) {
    const bool is_hidden = (options_.with_row_ids &&
                            (column.name == kRowIdColumn || column.name == kRowVersionColumn)) ||
                           (options_.change_data && column.name == kChangeTypeColumn);
    if (!is_hidden && !definition_.schema.find(column.name)) {
      return invalid_argument("UNRESOLVED_COLUMN", "table {} has no column {}", table_.path(),
                              column.name);
    }
  }

  const auto add = [](std::string& list, const std::string& expression, const std::string& name) {
    if (!list.empty()) list += ", ";
    list += expression + " AS " + quote_name(name);
  };
  std::vector<Field> stored;
  std::vector<std::string> stored_values;
  std::vector<const Field*> void_columns;
  for (const Field& field : definition_.schema.fields) {
    if (holds_void(field.type)) {
      return unsupported("UNSUPPORTED_TYPE",
                         "column {} of {} is {}: rows can be written once VOID has become a type",
                         field.name, table_.path(), to_sql(field.type));
    }
    SL_ASSIGN(std::string value, input(field, given));
    add(logical_select_, value, field.name);
    if (field.type.id == TypeId::kVoid) {
      void_columns.push_back(&field);
      continue;
    }
    SL_TRY(file_type(field.name, field.type, mode_));
    if (is_partition_column(field.name)) {
      partition_columns_.push_back(&field);
      continue;
    }
    stored.push_back(field);
    const std::string own = quote_name(field.name);
    std::string broken = inner_violation(own, field.type, MemberRule::kNotNull, 0);
    if (!field.nullable && field.type.is_nested()) {
      broken = own + " IS NULL" + (broken.empty() ? "" : " OR " + broken);
    }
    const std::string inner = strict_members(field.name, field.type);
    const std::string strict = field.nullable  ? inner
                               : inner.empty() ? field.name
                                               : field.name + " or " + inner;
    std::string in_file = guarded(watched(to_file(own, field.type, mode_), field.type), broken,
                                  null_violation(strict, table_.path()));
    stored_values.push_back(guarded(in_file, inner_violation(own, field.type, MemberRule::kVoid, 0),
                                    void_violation(field.name, table_.path())));
  }
  if (stored.empty()) {
    return unsupported(
        "NO_DATA_COLUMN",
        "table {} has no column besides its partition columns: a data file needs one",
        table_.path());
  }
  // What is in no file is looked at along with the first column that is.
  for (const Field* column : void_columns) {
    stored_values[0] = guarded(stored_values[0], quote_name(column->name) + " IS NOT NULL",
                               void_violation(column->name, table_.path()));
  }
  for (size_t i = 0; i < stored.size(); ++i) {
    add(file_select_, stored_values[i], file_name(stored[i], mode_));
  }
  if (options_.with_row_ids) {
    const auto id_column = definition_.row_id_column();
    const auto version_column = definition_.row_commit_version_column();
    if (!id_column || !version_column) {
      return internal_error("ROW_IDS_NOT_TRACKED", "table {} does not track rows", table_.path());
    }
    for (const char* hidden : {kRowIdColumn, kRowVersionColumn}) {
      add(logical_select_, fmt::format("CAST(q.{} AS BIGINT)", hidden), hidden);
    }
    add(file_select_, kRowIdColumn, *id_column);
    add(file_select_, kRowVersionColumn, *version_column);
  }
  if (options_.change_data) {
    add(logical_select_, "q." + quote_name(kChangeTypeColumn), kChangeTypeColumn);
    add(file_select_, quote_name(kChangeTypeColumn), kChangeTypeColumn);
  }

  SL_ASSIGN(const std::string compression, codec(definition_));
  copy_options_ = fmt::format(
      "FORMAT parquet, RETURN_STATS, COMPRESSION {}, FILE_SIZE_BYTES {}, OVERWRITE_OR_IGNORE, "
      "WRITE_EMPTY_FILE false, WRITE_BLOOM_FILTER false",
      compression, options_.target_file_size_bytes);
  if (mode_ != ColumnMode::kByLogicalName) {
    SL_ASSIGN(const std::string ids, field_ids(stored));
    copy_options_ += ", FIELD_IDS {" + ids + "}";
  }
  return {};
}

Status FileWriter::write(const std::string& query) {
  SL_TRY(plan(query));
  if (!partition_columns_.empty() || options_.rows_per_file > 0) return write_staged(query);
  const std::string order = options_.order_by.empty() ? "" : " ORDER BY " + options_.order_by;
  return copy(fmt::format("SELECT {} FROM (SELECT {} FROM ({}) AS q{})", file_select_,
                          logical_select_, query, order),
              {});
}

// Rows go to a temporary table in the order of their partitions and of order_by, then each run of
// rows to its files: one scan, one open file, whatever the number of partitions.
Status FileWriter::write_staged(const std::string& query) {
  SL_ASSIGN(std::vector<Partition> partitions, stage(query));
  for (Partition& partition : partitions) {
    bool has_empty = false;
    for (size_t p = 0; p < partition.values.size(); ++p) {
      auto& value = partition.values[p];
      // The log cannot tell an empty text from null.
      if (value && value->empty()) {
        value.reset();
        has_empty = true;
      }
      if (!partition_columns_[p]->nullable && !value)
        return null_violation(partition_columns_[p]->name, table_.path());
    }
    if (has_empty) empty_partition_rows_ += partition.last - partition.first + 1;
  }
  for (const Partition& partition : partitions) {
    SL_TRY(copy(fmt::format("SELECT {} FROM {} WHERE rowid BETWEEN {} AND {}", file_select_,
                            staged_, partition.first, partition.last),
                partition.values));
  }
  return {};
}

Result<std::vector<Partition>> FileWriter::stage(const std::string& query) {
  static std::atomic<int64_t> next{0};
  staged_ = fmt::format("temp.main.__strandline_stage_{}", ++next);
  std::string order;
  std::string texts;
  for (const Field* field : partition_columns_) {
    const std::string name = quote_name(field->name);
    order += (order.empty() ? "" : ", ") + name + " NULLS FIRST";
    texts += partition_text(name, field->type) + ", ";
  }
  const std::string groups = order;
  if (!options_.order_by.empty()) order += (order.empty() ? "" : ", ") + options_.order_by;
  SL_TRY(connection_.execute(
      fmt::format("CREATE TEMP TABLE {} AS SELECT {} FROM ({}) AS q ORDER BY {}", staged_,
                  logical_select_, query, order)));
  std::string group_names;
  for (const Field* field : partition_columns_) {
    group_names += (group_names.empty() ? "" : ", ") + quote_name(field->name);
  }
  SL_ASSIGN(const Rows rows,
            connection_.query(fmt::format(
                "SELECT {}min(rowid), max(rowid) FROM {} {} HAVING count(*) > 0 ORDER BY "
                "min(rowid)",
                texts, staged_, group_names.empty() ? "" : "GROUP BY " + group_names)));
  std::vector<Partition> partitions;
  for (auto row : rows.rows) {
    for (size_t p = 0; p < partition_columns_.size(); ++p) {
      if (partition_columns_[p]->type.id != TypeId::kBinary || !row[p]) continue;
      row[p] = bytes_of_hex(*row[p]);
      if (!is_utf8(*row[p])) return no_text(partition_columns_[p]->name, table_.path());
    }
    const int64_t first = std::stoll(*row[row.size() - 2]);
    const int64_t last = std::stoll(*row[row.size() - 1]);
    const int64_t count = last - first + 1;
    const int64_t most = options_.rows_per_file > 0 ? options_.rows_per_file : count;
    const int64_t files = (count + most - 1) / most;
    const int64_t each = (count + files - 1) / files;
    for (int64_t at = first; at <= last; at += each) {
      partitions.push_back({{row.begin(), row.end() - 2}, at, std::min(last, at + each - 1)});
    }
  }
  return partitions;
}

Status FileWriter::copy(const std::string& select,
                        const std::vector<std::optional<std::string>>& values) {
  const size_t files_before = files_.size();
  for (const auto& [number, signs] : zeros_) signs->forget();
  SL_TRY(copy(select, values, copy_options_));
  if (std::none_of(zeros_.begin(), zeros_.end(),
                   [](const auto& column) { return column.second->has_both(); })) {
    return {};
  }
  // Rare enough for a second try: to write every file without dictionaries would cost space.
  remove_files(places_.back().first, places_.back().second);
  files_.resize(files_before);
  return copy(select, values, copy_options_ + ", DICTIONARY_SIZE_LIMIT 0");
}

Status FileWriter::copy(const std::string& select,
                        const std::vector<std::optional<std::string>>& values,
                        const std::string& options) {
  std::string directory = options_.change_data ? "_change_data/" : "";  // relative to the table
  for (size_t p = 0; p < values.size(); ++p) {
    directory += directory_name(file_name(*partition_columns_[p], mode_), values[p]) + "/";
  }
  const std::string absolute =
      table_.path() + (directory.empty() ? "" : "/" + directory.substr(0, directory.size() - 1));
  SL_TRY(table_.store()->make_directories(absolute));
  // A name of its own for each partition: two of them can share a directory, as null and the text
  // that names null's directory do.
  const std::string prefix = (options_.change_data ? "cdc-" : "part-") + new_uuid() + "-";
  places_.emplace_back(absolute, prefix);
  SL_TRY(table_.store()->before_external_write(absolute + "/" + prefix + "0.parquet"));

  std::vector<WrittenFile> written;
  const auto on_columns = [](const std::vector<StreamColumn>&) -> Status { return {}; };
  const auto on_chunk = [&](duckdb_data_chunk chunk) -> Status {
    const auto column = [&](idx_t c) { return duckdb_data_chunk_get_vector(chunk, c); };
    const auto* counts = static_cast<const uint64_t*>(duckdb_vector_get_data(column(1)));
    const auto* sizes = static_cast<const uint64_t*>(duckdb_vector_get_data(column(2)));
    for (idx_t row = 0; row < duckdb_data_chunk_get_size(chunk); ++row) {
      written.push_back({text_at(column(0), row).value_or(""), static_cast<int64_t>(counts[row]),
                         static_cast<int64_t>(sizes[row]), statistics_at(column(4), row)});
    }
    return {};
  };
  auto copied = stream(connection_,
                       fmt::format("COPY ({}) TO {} ({}, FILENAME_PATTERN {})", select,
                                   quote_literal(absolute), options, quote_literal(prefix + "{i}")),
                       on_columns, on_chunk);
  if (!copied.ok()) {
    Error error = std::move(copied).error();
    const bool is_ours = error.message.find(absolute + "/" + prefix) != std::string::npos ||
                         error.message.find(absolute + "/tmp_" + prefix) != std::string::npos;
    if (is_ours && error.code == "PERMISSION_DENIED") error.code = "WAREHOUSE_NOT_WRITABLE";
    return error;
  }
  for (const WrittenFile& file : written) SL_TRY(finish(file, directory, values));
  return {};
}

Status FileWriter::check_nulls(const WrittenFile& file) const {
  for (const Field& field : definition_.schema.fields) {
    if (field.nullable || field.type.is_nested()) continue;
    const auto column = file.statistics.find(quote_name(file_name(field, mode_)));
    if (column == file.statistics.end()) continue;
    const auto nulls = column->second.find("null_count");
    if (nulls != column->second.end() && nulls->second != "0") {
      return null_violation(field.name, table_.path());
    }
  }
  return {};
}

Status FileWriter::finish(const WrittenFile& file, const std::string& directory,
                          const std::vector<std::optional<std::string>>& values) {
  SL_TRY(check_nulls(file));
  SL_TRY(table_.store()->after_external_write(file.path));
  const std::string name = file.path.substr(file.path.rfind('/') + 1);
  delta::AddFile add;
  add.path = delta::percent_encode(directory + name);
  for (size_t p = 0; p < values.size(); ++p) {
    add.partition_values[file_name(*partition_columns_[p], mode_)] = values[p];
  }
  add.size_bytes = file.size_bytes;
  add.modification_time_ms = now_ms();
  add.stats = statistics_json(definition_, file.row_count, file.statistics);
  files_.push_back(std::move(add));
  return {};
}

// Whatever this call wrote, in part or whole. Best effort: what stays is an orphan that no reader
// sees, and the first error is the one to report.
void FileWriter::remove_files() {
  for (const auto& [directory, prefix] : places_) remove_files(directory, prefix);
}

void FileWriter::remove_files(const std::string& directory, const std::string& prefix) {
  const auto entries = table_.store()->list(directory);
  if (!entries.ok()) return;
  for (const storage::FileInfo& entry : *entries) {
    const std::string name = entry.path.substr(entry.path.rfind('/') + 1);
    if (name.starts_with(prefix) || name.starts_with("tmp_" + prefix)) {
      (void)table_.store()->remove(entry.path);
    }
  }
}

}  // namespace

Result<std::vector<delta::AddFile>> write_files(Connection& connection, const delta::Table& table,
                                                const delta::Snapshot& definition,
                                                const std::string& query,
                                                const WriteOptions& options) {
  return FileWriter(connection, table, definition, options).run(query);
}

Result<std::vector<delta::AddFile>> write_new_files(
    Connection& connection, const delta::Table& table, const delta::Snapshot& definition,
    const std::string& query, const WriteOptions& options, int64_t* empty_partition_rows) {
  FileWriter writer(connection, table, definition, options);
  SL_ASSIGN(auto files, writer.run(query));
  *empty_partition_rows += writer.empty_partition_rows();
  return files;
}

}  // namespace strandline::duck
