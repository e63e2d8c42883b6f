// Checkpoint files through DuckDB (delta-protocol.md section 10).
#include <algorithm>
#include <cctype>
#include <limits>
#include <map>

#include "base/error.h"
#include "base/json.h"
#include "delta/action_json.h"
#include "duck/delta_io.h"
#include "duck/engine.h"
#include "duck/names.h"

namespace strandline::duck {
namespace {

using delta::Action;

// The columns of one chunk, counted in the order of the query.
class Columns {
 public:
  explicit Columns(duckdb_data_chunk chunk) : rows_(duckdb_data_chunk_get_size(chunk)) {
    const idx_t count = duckdb_data_chunk_get_column_count(chunk);
    for (idx_t i = 0; i < count; ++i) {
      const duckdb_vector vector = duckdb_data_chunk_get_vector(chunk, i);
      columns_.push_back(
          {vector, duckdb_vector_get_data(vector), duckdb_vector_get_validity(vector)});
    }
  }

  struct Column {
    duckdb_vector vector;
    void* data;
    uint64_t* validity;
  };
  idx_t rows() const { return rows_; }
  const Column& at(idx_t column) const { return columns_[column]; }

 private:
  idx_t rows_;
  std::vector<Column> columns_;
};

// Cells of one row.
class Row {
 public:
  Row(const Columns& columns, idx_t row) : columns_(columns), row_(row) {}

  std::optional<std::string_view> view(idx_t column) const {
    const Columns::Column& c = columns_.at(column);
    if (!is_valid(c.validity, row_)) return std::nullopt;
    auto* const text = static_cast<duckdb_string_t*>(c.data) + row_;
    return std::string_view(duckdb_string_t_data(text), duckdb_string_t_length(*text));
  }
  std::optional<std::string> text(idx_t column) const {
    const auto found = view(column);
    return found ? std::optional<std::string>(*found) : std::nullopt;
  }
  std::string text_or_empty(idx_t column) const { return text(column).value_or(""); }
  std::optional<int64_t> integer(idx_t column) const {
    const Columns::Column& c = columns_.at(column);
    if (!is_valid(c.validity, row_)) return std::nullopt;
    return static_cast<const int64_t*>(c.data)[row_];
  }
  std::optional<bool> boolean(idx_t column) const {
    const Columns::Column& c = columns_.at(column);
    if (!is_valid(c.validity, row_)) return std::nullopt;
    return static_cast<const bool*>(c.data)[row_];
  }
  std::optional<std::vector<std::string>> texts(idx_t column) const {
    if (!is_valid(columns_.at(column).validity, row_)) return std::nullopt;
    std::vector<std::string> result;
    const duckdb_vector child = duckdb_list_vector_get_child(columns_.at(column).vector);
    const duckdb_list_entry entry = list_entry_at(columns_.at(column).vector, row_);
    for (idx_t i = entry.offset; i < entry.offset + entry.length; ++i) {
      result.push_back(text_at(child, i).value_or(""));
    }
    return result;
  }
  delta::PartitionValues::Map text_map(idx_t column) const {
    delta::PartitionValues::Map result;
    if (!is_valid(columns_.at(column).validity, row_)) return result;
    const duckdb_vector entries = duckdb_list_vector_get_child(columns_.at(column).vector);
    const duckdb_vector keys = duckdb_struct_vector_get_child(entries, 0);
    const duckdb_vector values = duckdb_struct_vector_get_child(entries, 1);
    const duckdb_list_entry entry = list_entry_at(columns_.at(column).vector, row_);
    for (idx_t i = entry.offset; i < entry.offset + entry.length; ++i) {
      result[text_at(keys, i).value_or("")] = text_at(values, i);
    }
    return result;
  }
  // The same without null values.
  std::map<std::string, std::string> plain_map(idx_t column) const {
    std::map<std::string, std::string> result;
    for (auto& [key, value] : text_map(column)) {
      if (value) result[key] = std::move(*value);
    }
    return result;
  }

 private:
  const Columns& columns_;
  const idx_t row_;
};

// Partition values of the rows read so far: files of one partition share theirs.
class PartitionCache {
 public:
  delta::PartitionValues of(const Row& row, idx_t column) {
    delta::PartitionValues::Map values = row.text_map(column);
    // Delta says the empty string for null (delta-protocol.md section 5).
    for (auto& [name, value] : values) {
      if (value && value->empty()) value.reset();
    }
    if (values == latest_.get()) return latest_;
    return latest_ = known_.try_emplace(values, values).first->second;
  }

 private:
  delta::PartitionValues latest_;
  std::map<delta::PartitionValues::Map, delta::PartitionValues> known_;
};

// A member an action column may have: dotted path below the column, and the type to read it as.
struct Member {
  const char* path;
  const char* type;
};

constexpr const char* kText = "VARCHAR";
constexpr const char* kInt = "BIGINT";
constexpr const char* kBool = "BOOLEAN";
constexpr const char* kTextMap = "MAP(VARCHAR, VARCHAR)";
constexpr const char* kTextList = "VARCHAR[]";

const std::vector<Member> kAdd = {{"path", kText},
                                  {"partitionValues", kTextMap},
                                  {"size", kInt},
                                  {"modificationTime", kInt},
                                  {"dataChange", kBool},
                                  {"stats", kText},
                                  {"tags", kTextMap},
                                  {"baseRowId", kInt},
                                  {"defaultRowCommitVersion", kInt},
                                  {"clusteringProvider", kText},
                                  {"deletionVector.storageType", kText},
                                  {"deletionVector.pathOrInlineDv", kText},
                                  {"deletionVector.offset", kInt},
                                  {"deletionVector.sizeInBytes", kInt},
                                  {"deletionVector.cardinality", kInt}};
constexpr idx_t kAddStats = 5;
constexpr idx_t kAddVector = 10;

const std::vector<Member> kRemove = {{"path", kText},
                                     {"partitionValues", kTextMap},
                                     {"size", kInt},
                                     {"deletionTimestamp", kInt},
                                     {"dataChange", kBool},
                                     {"extendedFileMetadata", kBool},
                                     {"baseRowId", kInt},
                                     {"defaultRowCommitVersion", kInt},
                                     {"deletionVector.storageType", kText},
                                     {"deletionVector.pathOrInlineDv", kText},
                                     {"deletionVector.offset", kInt},
                                     {"deletionVector.sizeInBytes", kInt},
                                     {"deletionVector.cardinality", kInt}};
constexpr idx_t kRemoveVector = 8;

const std::vector<Member> kMetadata = {{"id", kText},
                                       {"name", kText},
                                       {"description", kText},
                                       {"format.provider", kText},
                                       {"schemaString", kText},
                                       {"partitionColumns", kTextList},
                                       {"configuration", kTextMap},
                                       {"createdTime", kInt}};
const std::vector<Member> kProtocol = {{"minReaderVersion", kInt},
                                       {"minWriterVersion", kInt},
                                       {"readerFeatures", kTextList},
                                       {"writerFeatures", kTextList}};
const std::vector<Member> kTxn = {{"appId", kText}, {"version", kInt}, {"lastUpdated", kInt}};
const std::vector<Member> kDomain = {
    {"domain", kText}, {"configuration", kText}, {"removed", kBool}};
const std::vector<Member> kSidecar = {{"path", kText}};

delta::Shared<delta::DeletionVectorDescriptor> vector_of(const Row& row, idx_t first) {
  const auto storage = row.view(first);
  if (!storage || storage->empty()) return {};
  return delta::DeletionVectorDescriptor{(*storage)[0], row.text_or_empty(first + 1),
                                         row.integer(first + 2), row.integer(first + 3).value_or(0),
                                         row.integer(first + 4).value_or(0)};
}

delta::AddFile add_of(const Row& row, PartitionCache* partitions) {
  delta::AddFile add;
  add.path = row.text_or_empty(0);
  add.partition_values = partitions->of(row, 1);
  add.size_bytes = row.integer(2).value_or(0);
  add.modification_time_ms = row.integer(3).value_or(0);
  add.data_change = row.boolean(4).value_or(false);
  if (const auto stats = row.view(kAddStats)) add.stats = delta::StatsText(*stats);
  add.tags = row.plain_map(6);
  add.base_row_id = row.integer(7);
  add.default_row_commit_version = row.integer(8);
  add.clustering_provider = row.text(9);
  add.deletion_vector = vector_of(row, kAddVector);
  return add;
}

delta::RemoveFile remove_of(const Row& row, PartitionCache* partitions) {
  delta::RemoveFile remove;
  remove.path = row.text_or_empty(0);
  remove.partition_values = partitions->of(row, 1);
  remove.size_bytes = row.integer(2);
  remove.deletion_timestamp_ms = row.integer(3);
  remove.data_change = row.boolean(4).value_or(false);
  remove.extended_file_metadata = row.boolean(5).value_or(false);
  remove.base_row_id = row.integer(6);
  remove.default_row_commit_version = row.integer(7);
  remove.deletion_vector = vector_of(row, kRemoveVector);
  return remove;
}

Result<delta::Metadata> metadata_of(const Row& row) {
  const std::string provider = row.text(3).value_or("parquet");
  if (provider != "parquet") {
    return unsupported("UNSUPPORTED_DATA_FORMAT", "data files of format '{}' cannot be read",
                       provider);
  }
  delta::Metadata metadata;
  metadata.id = row.text_or_empty(0);
  metadata.name = row.text(1);
  metadata.description = row.text(2);
  metadata.schema_string = row.text_or_empty(4);
  metadata.partition_columns = row.texts(5).value_or(std::vector<std::string>{});
  metadata.configuration = row.plain_map(6);
  metadata.created_time_ms = row.integer(7);
  return metadata;
}

Result<delta::Protocol> protocol_of(const Row& row) {
  const int64_t reader = row.integer(0).value_or(0);
  const int64_t writer = row.integer(1).value_or(0);
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  if (reader < 0 || reader > kMost || writer < 0 || writer > kMost) {
    return corrupt("DELTA_CHECKPOINT_UNREADABLE", "protocol versions {} and {} are none", reader,
                   writer);
  }
  delta::Protocol protocol;
  protocol.min_reader_version = static_cast<int>(reader);
  protocol.min_writer_version = static_cast<int>(writer);
  for (auto& name : row.texts(2).value_or(std::vector<std::string>{})) {
    protocol.reader_features.insert(std::move(name));
  }
  for (auto& name : row.texts(3).value_or(std::vector<std::string>{})) {
    protocol.writer_features.insert(std::move(name));
  }
  return protocol;
}

// The member of a struct type, exact name.
const DataType* member_type(const DataType& type, const std::string& name) {
  if (type.id != TypeId::kStruct) return nullptr;
  for (const Field& field : *type.fields) {
    if (field.name == name) return &field.type;
  }
  return nullptr;
}

// stats_parsed's values in the forms of the JSON statistics: ISO timestamps, no NaN.
std::string stats_value(const std::string& value, const DataType& type) {
  switch (type.id) {
    case TypeId::kTimestamp:
      return fmt::format("strftime({}, '%Y-%m-%dT%H:%M:%S.%gZ')", value);
    case TypeId::kTimestampNtz:
      return fmt::format("strftime({}, '%Y-%m-%dT%H:%M:%S.%g')", value);
    case TypeId::kFloat:
    case TypeId::kDouble:
      return fmt::format("CASE WHEN isfinite({0}) THEN {0} END", value);
    case TypeId::kBinary:
      return "NULL";
    case TypeId::kStruct: {
      std::string members;
      for (const Field& field : *type.fields) {
        if (!members.empty()) members += ", ";
        const std::string member =
            fmt::format("struct_extract({}, {})", value, quote_literal(field.name));
        members += quote_name(field.name) + " := " + stats_value(member, field.type);
      }
      return fmt::format("CASE WHEN {} IS NOT NULL THEN struct_pack({}) END", value, members);
    }
    default:
      return value;
  }
}

class CheckpointReader {
 public:
  CheckpointReader(Connection& connection, const std::string& path)
      : connection_(connection),
        path_(path),
        source_(fmt::format("read_parquet({}, hive_partitioning = false, can_have_nan = true)",
                            path_literal(path))) {}

  Status read(delta::CheckpointVisitor* visitor) {
    auto columns = connection_.describe("SELECT * FROM " + source_);
    if (!columns.ok()) return unreadable(std::move(columns).error());
    for (ResultColumn& column : *columns) {
      types_.emplace(std::move(column.name), std::move(column.type));
    }
    auto rows = connection_.query_int("SELECT count(*) FROM " + source_);
    if (!rows.ok()) return unreadable(std::move(rows).error());
    visitor->expect(static_cast<size_t>(*rows));
    const auto on_protocol = [&](const Row& row) -> Status {
      SL_ASSIGN(delta::Protocol protocol, protocol_of(row));
      return visitor->take(std::move(protocol));
    };
    const auto on_metadata = [&](const Row& row) -> Status {
      SL_ASSIGN(delta::Metadata metadata, metadata_of(row));
      return visitor->take(std::move(metadata));
    };
    const auto on_txn = [&](const Row& row) {
      return visitor->take(
          delta::Txn{row.text_or_empty(0), row.integer(1).value_or(0), row.integer(2)});
    };
    const auto on_domain = [&](const Row& row) {
      return visitor->take(delta::DomainMetadata{row.text_or_empty(0), row.text_or_empty(1),
                                                 row.boolean(2).value_or(false)});
    };
    SL_TRY(each("protocol", kProtocol, on_protocol));
    SL_TRY(each("metaData", kMetadata, on_metadata));
    SL_TRY(each("txn", kTxn, on_txn));
    SL_TRY(each("domainMetadata", kDomain, on_domain));
    if (visitor->wants_adds()) {
      SL_TRY(each("add", kAdd,
                  [&](const Row& row) { return visitor->take(add_of(row, &partitions_)); }));
    }
    if (visitor->wants_removes()) {
      SL_TRY(each("remove", kRemove,
                  [&](const Row& row) { return visitor->take(remove_of(row, &partitions_)); }));
    }
    return each("sidecar", kSidecar,
                [&](const Row& row) { return visitor->take_sidecar(row.text_or_empty(0)); });
  }

 private:
  // A file whose bytes DuckDB cannot read as Parquet, or as these columns, is corrupt. What the
  // system refuses, memory and the user's interrupt say nothing of the bytes.
  Error unreadable(Error error) const {
    if (!is_damage(error)) return error.with_context("checkpoint " + path_);
    // Without the engine's class of the error and the query that it was asked.
    std::string why = error.message.substr(0, error.message.find("\n"));
    if (const size_t end = why.find(" Error: "); end != std::string::npos) why.erase(0, end + 8);
    std::replace_if(
        why.begin(), why.end(), [](unsigned char c) { return std::iscntrl(c) != 0; }, '?');
    return corrupt("DELTA_CHECKPOINT_UNREADABLE", "checkpoint {} cannot be read: {}", path_, why);
  }

  static bool is_damage(const Error& error) {
    switch (error.kind) {
      case ErrorKind::kInvalidData:
      case ErrorKind::kInvalidArgument:
      // Of Parquet's own encodings (thrift, RLE) the engine throws errors without a class.
      case ErrorKind::kInternal:
        return true;
      case ErrorKind::kIo: {
        // Of a schema that cannot be, too, the engine says "IO Error"; what the system refused it
        // says of a file that it names, as it does of an offset that leads behind the file's end.
        const auto says = [&](const char* text) {
          return error.message.find(text) != std::string::npos;
        };
        if (error.code == "OUT_OF_MEMORY" || says("No files found")) return false;
        return !says("file \"") || says("Could not read enough bytes");
      }
      default:
        return false;
    }
  }

  // SQL of a member, NULL where the file has none.
  std::string expression(const std::string& column, const Member& member) const {
    const DataType* type = &types_.at(column);
    std::string value = quote_name(column);
    std::string_view rest = member.path;
    while (!rest.empty()) {
      const std::string name(rest.substr(0, rest.find('.')));
      rest = name.size() == rest.size() ? std::string_view() : rest.substr(name.size() + 1);
      type = member_type(*type, name);
      if (type == nullptr) return fmt::format("CAST(NULL AS {})", member.type);
      value = fmt::format("struct_extract({}, {})", value, quote_literal(name));
    }
    return fmt::format("CAST({} AS {})", value, member.type);
  }

  Status each(const std::string& column, const std::vector<Member>& members,
              const std::function<Status(const Row&)>& take) const {
    const auto type = types_.find(column);
    if (type == types_.end()) return {};
    std::string outputs;
    for (idx_t i = 0; i < members.size(); ++i) {
      std::string value = expression(column, members[i]);
      const DataType* parsed = member_type(type->second, "stats_parsed");
      if (column == "add" && i == kAddStats && parsed != nullptr) {
        const std::string stats = stats_value("struct_extract(\"add\", 'stats_parsed')", *parsed);
        value = fmt::format("coalesce({}, CAST(to_json({}) AS VARCHAR))", value, stats);
      }
      outputs += (outputs.empty() ? "" : ", ") + value;
    }
    // A struct that is null in the file shows as a struct of nulls to some writers' readers: the
    // first member, which no action lacks, decides.
    const std::string sql = fmt::format("SELECT {} FROM {} WHERE {} IS NOT NULL", outputs, source_,
                                        expression(column, members[0]));
    const auto on_columns = [](const std::vector<StreamColumn>&) -> Status { return {}; };
    const auto on_chunk = [&](duckdb_data_chunk chunk) -> Status {
      const Columns columns(chunk);
      for (idx_t row = 0; row < columns.rows(); ++row) SL_TRY(take(Row(columns, row)));
      return {};
    };
    Status done = stream(connection_, sql, on_columns, on_chunk);
    if (done.ok()) return done;
    const std::string& code = done.error().code;
    if (code != "ENGINE_ERROR" && code != "OUT_OF_MEMORY") return done;
    return unreadable(std::move(done).error());
  }

  Connection& connection_;
  const std::string& path_;
  const std::string source_;
  std::map<std::string, DataType> types_;
  PartitionCache partitions_;
};

// The structure of a checkpoint's rows, for from_json over the log's own JSON lines.
constexpr const char* kVectorStructure =
    R"j({"storageType":"VARCHAR","pathOrInlineDv":"VARCHAR","offset":"INTEGER",)j"
    R"j("sizeInBytes":"INTEGER","cardinality":"BIGINT"})j";
const std::string kFileStructure =
    std::string(R"j("add":{"path":"VARCHAR","partitionValues":"MAP(VARCHAR, VARCHAR)",)j") +
    R"j("size":"BIGINT","modificationTime":"BIGINT","dataChange":"BOOLEAN","stats":"VARCHAR",)j"
    R"j("tags":"MAP(VARCHAR, VARCHAR)","deletionVector":)j" +
    kVectorStructure +
    R"j(,"baseRowId":"BIGINT","defaultRowCommitVersion":"BIGINT",)j"
    R"j("clusteringProvider":"VARCHAR"},)j"
    R"j("remove":{"path":"VARCHAR","deletionTimestamp":"BIGINT","dataChange":"BOOLEAN",)j"
    R"j("extendedFileMetadata":"BOOLEAN","partitionValues":"MAP(VARCHAR, VARCHAR)",)j"
    R"j("size":"BIGINT","deletionVector":)j" +
    kVectorStructure + R"j(,"baseRowId":"BIGINT","defaultRowCommitVersion":"BIGINT"})j";
constexpr const char* kOtherStructure =
    R"j("txn":{"appId":"VARCHAR","version":"BIGINT","lastUpdated":"BIGINT"},)j"
    R"j("metaData":{"id":"VARCHAR","name":"VARCHAR","description":"VARCHAR",)j"
    R"j("format":{"provider":"VARCHAR","options":"MAP(VARCHAR, VARCHAR)"},)j"
    R"j("schemaString":"VARCHAR","partitionColumns":["VARCHAR"],)j"
    R"j("configuration":"MAP(VARCHAR, VARCHAR)","createdTime":"BIGINT"},)j"
    R"j("protocol":{"minReaderVersion":"INTEGER","minWriterVersion":"INTEGER",)j"
    R"j("readerFeatures":["VARCHAR"],"writerFeatures":["VARCHAR"]},)j"
    R"j("domainMetadata":{"domain":"VARCHAR","configuration":"VARCHAR","removed":"BOOLEAN"})j";

// The structure of JSON text for columns of these types.
std::string structure_of(const std::vector<Field>& fields) {
  std::string members;
  for (const Field& field : fields) {
    members += members.empty() ? "{" : ",";
    members += json_string(field.name) + ":";
    members += field.type.id == TypeId::kStruct ? structure_of(*field.type.fields)
                                                : json_string(engine_type(field.type));
  }
  return members + "}";
}

// The query of a checkpoint's columns over checkpoint_lines.
std::string checkpoint_query(const delta::CheckpointContent& content) {
  std::string structure = "{" + kFileStructure;
  if (!content.only_files) structure += std::string(",") + kOtherStructure;
  structure += "}";
  const std::string rows = fmt::format("SELECT unnest(from_json(line, {})) FROM checkpoint_lines",
                                       quote_literal(structure));
  std::string members;
  const auto member = [&](const std::string& name, const std::string& value) {
    members += fmt::format("{}{} := {}", members.empty() ? "" : ", ", quote_name(name), value);
  };
  for (const char* name :
       {"path", "partitionValues", "size", "modificationTime", "dataChange", "stats", "tags",
        "deletionVector", "baseRowId", "defaultRowCommitVersion", "clusteringProvider"}) {
    if (std::string_view(name) == "stats" && !content.json_stats) continue;
    member(name, fmt::format("add.{}", quote_name(name)));
  }
  if (content.parsed_stats) {
    member("stats_parsed",
           fmt::format("CASE WHEN json_valid(add.stats) THEN from_json(add.stats, {}) END",
                       quote_literal(structure_of(content.parsed_stats->fields))));
  }
  if (content.parsed_partition_values && !content.parsed_partition_values->fields.empty()) {
    std::string values;
    for (const Field& field : content.parsed_partition_values->fields) {
      const std::string text =
          fmt::format("map_extract_value(add.\"partitionValues\", {})", quote_literal(field.name));
      // A binary's characters are its bytes.
      const std::string value =
          field.type.id == TypeId::kBinary
              ? fmt::format("encode({})", text)
              : fmt::format("TRY_CAST({} AS {})", text, engine_type(field.type));
      values +=
          fmt::format("{}{} := {}", values.empty() ? "" : ", ", quote_name(field.name), value);
    }
    member("partitionValues_parsed", fmt::format("struct_pack({})", values));
  }
  return fmt::format(
      "SELECT * REPLACE (CASE WHEN add.path IS NOT NULL THEN struct_pack({}) END AS add) FROM ({})",
      members, rows);
}

void destroy_appender(duckdb_appender* appender) { duckdb_appender_destroy(appender); }
using Appender = Handle<duckdb_appender, destroy_appender>;

Status append_lines(Connection& connection, const char* table,
                    const delta::CheckpointContent& content) {
  Appender appender;
  if (duckdb_appender_create(raw(connection), nullptr, table, appender.out()) != DuckDBSuccess) {
    return internal_error("ENGINE_ERROR", "the engine does not take rows for table {}", table);
  }
  const auto check = [&](duckdb_state state) -> Status {
    if (state == DuckDBSuccess) return {};
    const Handle<duckdb_error_data, duckdb_destroy_error_data> data(
        duckdb_appender_error_data(appender.get()));
    return engine_error(duckdb_error_data_error_type(data.get()),
                        duckdb_error_data_message(data.get()));
  };
  const auto append = [&](const Action& action) -> Status {
    const std::string line = delta::print_action(action);
    SL_TRY(check(duckdb_append_varchar_length(appender.get(), line.data(), line.size())));
    return check(duckdb_appender_end_row(appender.get()));
  };
  SL_TRY(content.each(append));
  return check(duckdb_appender_flush(appender.get()));
}

class DuckParquetPort final : public delta::ParquetPort {
 public:
  explicit DuckParquetPort(std::shared_ptr<Database> database) : database_(std::move(database)) {}

  Status read_checkpoint(const std::string& path, delta::CheckpointVisitor* visitor) override {
    SL_ASSIGN(const auto connection, database_->connect());
    return CheckpointReader(*connection, path).read(visitor);
  }

  Status write_checkpoint(const std::string& path,
                          const delta::CheckpointContent& content) override {
    SL_ASSIGN(const auto connection, database_->connect());
    // Temporary tables belong to the connection, so the name is this call's own.
    SL_TRY(connection->execute("CREATE TEMP TABLE checkpoint_lines(line VARCHAR)"));
    SL_TRY(append_lines(*connection, "checkpoint_lines", content));
    SL_TRY(
        connection->execute(fmt::format("COPY ({}) TO {} (FORMAT parquet, COMPRESSION snappy, "
                                        "WRITE_BLOOM_FILTER false)",
                                        checkpoint_query(content), quote_literal(path))));
    return {};
  }

 private:
  std::shared_ptr<Database> database_;
};

}  // namespace

std::shared_ptr<delta::ParquetPort> make_parquet_port(std::shared_ptr<Database> database) {
  return std::make_shared<DuckParquetPort>(std::move(database));
}

}  // namespace strandline::duck
