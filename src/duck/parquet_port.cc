// Checkpoint files through DuckDB (delta-protocol.md section 10).
#include <algorithm>
#include <array>

#include "base/error.h"
#include "delta/action_json.h"
#include "duck/delta_io.h"
#include "duck/engine.h"
#include "duck/names.h"

namespace strandline::duck {
namespace {

using delta::Action;

// Cells of one row of a chunk. Columns are counted in the order of the query.
class Row {
 public:
  Row(duckdb_data_chunk chunk, idx_t row) : chunk_(chunk), row_(row) {}

  std::optional<std::string> text(idx_t column) const { return text_at(vector(column), row_); }
  std::string text_or_empty(idx_t column) const { return text(column).value_or(""); }
  std::optional<int64_t> integer(idx_t column) const {
    if (!valid(vector(column), row_)) return std::nullopt;
    return static_cast<const int64_t*>(duckdb_vector_get_data(vector(column)))[row_];
  }
  std::optional<bool> boolean(idx_t column) const {
    if (!valid(vector(column), row_)) return std::nullopt;
    return static_cast<const bool*>(duckdb_vector_get_data(vector(column)))[row_];
  }
  std::optional<std::vector<std::string>> texts(idx_t column) const {
    if (!valid(vector(column), row_)) return std::nullopt;
    std::vector<std::string> result;
    const duckdb_vector child = duckdb_list_vector_get_child(vector(column));
    const duckdb_list_entry entry = list_entry_at(vector(column), row_);
    for (idx_t i = entry.offset; i < entry.offset + entry.length; ++i) {
      result.push_back(text_at(child, i).value_or(""));
    }
    return result;
  }
  std::map<std::string, std::optional<std::string>> text_map(idx_t column) const {
    std::map<std::string, std::optional<std::string>> result;
    if (!valid(vector(column), row_)) return result;
    const duckdb_vector entries = duckdb_list_vector_get_child(vector(column));
    const duckdb_vector keys = duckdb_struct_vector_get_child(entries, 0);
    const duckdb_vector values = duckdb_struct_vector_get_child(entries, 1);
    const duckdb_list_entry entry = list_entry_at(vector(column), row_);
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
  duckdb_vector vector(idx_t column) const { return duckdb_data_chunk_get_vector(chunk_, column); }
  static bool valid(duckdb_vector column, idx_t row) {
    return is_valid(duckdb_vector_get_validity(column), row);
  }

  duckdb_data_chunk chunk_;
  idx_t row_;
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

std::optional<delta::DeletionVectorDescriptor> vector_of(const Row& row, idx_t first) {
  const auto storage = row.text(first);
  if (!storage || storage->empty()) return std::nullopt;
  return delta::DeletionVectorDescriptor{(*storage)[0], row.text_or_empty(first + 1),
                                         row.integer(first + 2), row.integer(first + 3).value_or(0),
                                         row.integer(first + 4).value_or(0)};
}

delta::AddFile add_of(const Row& row) {
  delta::AddFile add;
  add.path = row.text_or_empty(0);
  add.partition_values = row.text_map(1);
  add.size_bytes = row.integer(2).value_or(0);
  add.modification_time_ms = row.integer(3).value_or(0);
  add.data_change = row.boolean(4).value_or(false);
  add.stats = row.text(kAddStats);
  add.tags = row.plain_map(6);
  add.base_row_id = row.integer(7);
  add.default_row_commit_version = row.integer(8);
  add.clustering_provider = row.text(9);
  add.deletion_vector = vector_of(row, kAddVector);
  return add;
}

delta::RemoveFile remove_of(const Row& row) {
  delta::RemoveFile remove;
  remove.path = row.text_or_empty(0);
  remove.partition_values = row.text_map(1);
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

delta::Protocol protocol_of(const Row& row) {
  delta::Protocol protocol;
  protocol.min_reader_version = static_cast<int>(row.integer(0).value_or(0));
  protocol.min_writer_version = static_cast<int>(row.integer(1).value_or(0));
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
        source_(fmt::format("read_parquet({}, hive_partitioning = false)", path_literal(path))) {}

  Result<std::vector<Action>> read(std::vector<std::string>* sidecars) {
    auto columns = connection_.describe("SELECT * FROM " + source_);
    if (!columns.ok()) return unreadable(std::move(columns).error());
    for (ResultColumn& column : *columns) {
      types_.emplace(std::move(column.name), std::move(column.type));
    }
    SL_TRY(each("protocol", kProtocol, [&](const Row& row) -> Status {
      actions_.emplace_back(protocol_of(row));
      return {};
    }));
    SL_TRY(each("metaData", kMetadata, [&](const Row& row) -> Status {
      SL_ASSIGN(delta::Metadata metadata, metadata_of(row));
      actions_.emplace_back(std::move(metadata));
      return {};
    }));
    SL_TRY(each("txn", kTxn, [&](const Row& row) -> Status {
      actions_.emplace_back(
          delta::Txn{row.text_or_empty(0), row.integer(1).value_or(0), row.integer(2)});
      return {};
    }));
    SL_TRY(each("domainMetadata", kDomain, [&](const Row& row) -> Status {
      actions_.emplace_back(delta::DomainMetadata{row.text_or_empty(0), row.text_or_empty(1),
                                                  row.boolean(2).value_or(false)});
      return {};
    }));
    SL_TRY(each("add", kAdd, [&](const Row& row) -> Status {
      actions_.emplace_back(add_of(row));
      return {};
    }));
    SL_TRY(each("remove", kRemove, [&](const Row& row) -> Status {
      actions_.emplace_back(remove_of(row));
      return {};
    }));
    SL_TRY(each("sidecar", kSidecar, [&](const Row& row) -> Status {
      if (sidecars != nullptr) sidecars->push_back(row.text_or_empty(0));
      return {};
    }));
    return std::move(actions_);
  }

 private:
  // A file that DuckDB cannot read as Parquet, or as these columns, is corrupt.
  Error unreadable(Error error) const {
    if (error.kind == ErrorKind::kInvalidData || error.kind == ErrorKind::kInvalidArgument) {
      return corrupt("DELTA_CHECKPOINT_UNREADABLE", "checkpoint {}: {}", path_, error.message);
    }
    return error.with_context("checkpoint " + path_);
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
      const idx_t count = duckdb_data_chunk_get_size(chunk);
      for (idx_t row = 0; row < count; ++row) SL_TRY(take(Row(chunk, row)));
      return {};
    };
    Status done = stream(connection_, sql, on_columns, on_chunk);
    if (!done.ok() && done.error().code == "ENGINE_ERROR") {
      return unreadable(std::move(done).error());
    }
    return done;
  }

  Connection& connection_;
  const std::string& path_;
  const std::string source_;
  std::map<std::string, DataType> types_;
  std::vector<Action> actions_;
};

// The structure of a classic checkpoint's rows, for from_json over the log's own JSON lines.
constexpr const char* kVectorStructure =
    R"j({"storageType":"VARCHAR","pathOrInlineDv":"VARCHAR","offset":"INTEGER",)j"
    R"j("sizeInBytes":"INTEGER","cardinality":"BIGINT"})j";
std::string checkpoint_structure() {
  return std::string(R"j({"txn":{"appId":"VARCHAR","version":"BIGINT","lastUpdated":"BIGINT"},)j") +
         R"j("add":{"path":"VARCHAR","partitionValues":"MAP(VARCHAR, VARCHAR)","size":"BIGINT",)j"
         R"j("modificationTime":"BIGINT","dataChange":"BOOLEAN","stats":"VARCHAR",)j"
         R"j("tags":"MAP(VARCHAR, VARCHAR)","deletionVector":)j" +
         kVectorStructure +
         R"j(,"baseRowId":"BIGINT","defaultRowCommitVersion":"BIGINT",)j"
         R"j("clusteringProvider":"VARCHAR"},)j"
         R"j("remove":{"path":"VARCHAR","deletionTimestamp":"BIGINT","dataChange":"BOOLEAN",)j"
         R"j("extendedFileMetadata":"BOOLEAN","partitionValues":"MAP(VARCHAR, VARCHAR)",)j"
         R"j("size":"BIGINT","deletionVector":)j" +
         kVectorStructure +
         R"j(,"baseRowId":"BIGINT","defaultRowCommitVersion":"BIGINT"},)j"
         R"j("metaData":{"id":"VARCHAR","name":"VARCHAR","description":"VARCHAR",)j"
         R"j("format":{"provider":"VARCHAR","options":"MAP(VARCHAR, VARCHAR)"},)j"
         R"j("schemaString":"VARCHAR","partitionColumns":["VARCHAR"],)j"
         R"j("configuration":"MAP(VARCHAR, VARCHAR)","createdTime":"BIGINT"},)j"
         R"j("protocol":{"minReaderVersion":"INTEGER","minWriterVersion":"INTEGER",)j"
         R"j("readerFeatures":["VARCHAR"],"writerFeatures":["VARCHAR"]},)j"
         R"j("domainMetadata":{"domain":"VARCHAR","configuration":"VARCHAR","removed":"BOOLEAN"}})j";
}

void destroy_appender(duckdb_appender* appender) { duckdb_appender_destroy(appender); }
using Appender = Handle<duckdb_appender, destroy_appender>;

Status append_lines(Connection& connection, const char* table, const std::vector<Action>& actions) {
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
  for (const Action& action : actions) {
    const std::string line = delta::print_action(action);
    SL_TRY(check(duckdb_append_varchar_length(appender.get(), line.data(), line.size())));
    SL_TRY(check(duckdb_appender_end_row(appender.get())));
  }
  return check(duckdb_appender_flush(appender.get()));
}

class DuckParquetPort final : public delta::ParquetPort {
 public:
  explicit DuckParquetPort(std::shared_ptr<Database> database) : database_(std::move(database)) {}

  Result<std::vector<Action>> read_checkpoint(const std::string& path,
                                              std::vector<std::string>* sidecars) override {
    SL_ASSIGN(const auto connection, database_->connect());
    return CheckpointReader(*connection, path).read(sidecars);
  }

  Status write_checkpoint(const std::string& path, const std::vector<Action>& actions) override {
    SL_ASSIGN(const auto connection, database_->connect());
    // Temporary tables belong to the connection, so the name is this call's own.
    SL_TRY(connection->execute("CREATE TEMP TABLE checkpoint_lines(line VARCHAR)"));
    SL_TRY(append_lines(*connection, "checkpoint_lines", actions));
    SL_TRY(connection->execute(
        fmt::format("COPY (SELECT unnest(from_json(line, {})) FROM checkpoint_lines) TO {} "
                    "(FORMAT parquet, COMPRESSION snappy)",
                    quote_literal(checkpoint_structure()), quote_literal(path))));
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
