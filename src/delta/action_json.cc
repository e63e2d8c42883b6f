#include "delta/action_json.h"

#include <simdjson.h>

#include <limits>

#include "base/error.h"
#include "base/json.h"

namespace strandline::delta {

namespace {

namespace dom = simdjson::dom;

// Reads the fields of actions; the first wrong type is kept in problem, naming the field.
// What an unknown action holds is no concern of ours.
bool is_known_action(std::string_view name) {
  for (const char* known : {"add", "remove", "commitInfo", "metaData", "protocol", "txn",
                            "domainMetadata", "cdc", "sidecar"}) {
    if (name == known) return true;
  }
  return false;
}

class ActionReader {
 public:
  const std::string& problem() const { return problem_; }
  bool wrong_format() const { return wrong_format_; }
  const std::string& format() const { return format_; }

  void action(std::string_view name, const dom::element& value, std::vector<Action>* out,
              std::vector<std::string>* sidecars) {
    dom::object object;
    if (value.is_null()) return;
    if (value.get_object().get(object)) {
      if (is_known_action(name)) problem_ = fmt::format("{} is not an object", name);
      return;
    }
    if (name == "add") {
      out->emplace_back(add(object));
    } else if (name == "remove") {
      out->emplace_back(remove(object));
    } else if (name == "commitInfo") {
      out->emplace_back(commit_info(object));
    } else if (name == "metaData") {
      out->emplace_back(metadata(object));
    } else if (name == "protocol") {
      out->emplace_back(protocol(object));
    } else if (name == "txn") {
      out->emplace_back(txn(object));
    } else if (name == "domainMetadata") {
      out->emplace_back(domain(object));
    } else if (name == "cdc") {
      out->emplace_back(cdc(object));
    } else if (name == "sidecar" && sidecars != nullptr) {
      std::string path;
      for (const auto [key, field] : object) {
        if (key == "path") path = string("sidecar.path", field);
      }
      require(!path.empty(), "sidecar.path");
      sidecars->push_back(std::move(path));
    }
  }

 private:
  using Strings = std::map<std::string, std::string>;

  void fail(std::string_view field, const char* wanted) {
    if (problem_.empty()) problem_ = fmt::format("{} is not {}", field, wanted);
  }
  void require(bool present, std::string_view field) {
    if (!present && problem_.empty()) problem_ = fmt::format("{} is missing", field);
  }

  std::string string(std::string_view field, const dom::element& value) {
    std::string_view text;
    if (value.get_string().get(text)) fail(field, "a string");
    return std::string(text);
  }
  int64_t integer(std::string_view field, const dom::element& value) {
    int64_t number = 0;
    if (!value.get_int64().get(number)) return number;
    // Some writers print whole numbers with a fraction or an exponent.
    double real = 0;
    constexpr double kLimit = 9.2e18;  // what int64_t holds
    if (!value.get_double().get(real) && real >= -kLimit && real <= kLimit &&
        real == static_cast<double>(static_cast<int64_t>(real))) {
      return static_cast<int64_t>(real);
    }
    fail(field, "a whole number");
    return 0;
  }
  int small_integer(std::string_view field, const dom::element& value) {
    const int64_t number = integer(field, value);
    if (number >= 0 && number <= std::numeric_limits<int>::max()) return static_cast<int>(number);
    fail(field, "a version number");
    return 0;
  }
  bool boolean(std::string_view field, const dom::element& value) {
    bool flag = false;
    if (value.get_bool().get(flag)) fail(field, "true or false");
    return flag;
  }
  std::optional<std::string> optional_string(std::string_view field, const dom::element& value) {
    if (value.is_null()) return std::nullopt;
    return string(field, value);
  }
  std::optional<int64_t> optional_integer(std::string_view field, const dom::element& value) {
    if (value.is_null()) return std::nullopt;
    return integer(field, value);
  }
  // A string as its characters, anything else as JSON text.
  static std::string text_of(const dom::element& value) {
    std::string_view text;
    if (!value.get_string().get(text)) return std::string(text);
    return simdjson::minify(value);
  }
  Strings strings(std::string_view field, const dom::element& value) {
    Strings result;
    if (value.is_null()) return result;
    dom::object object;
    if (value.get_object().get(object)) {
      fail(field, "an object");
      return result;
    }
    for (const auto [key, item] : object) {
      if (!item.is_null()) result.emplace(key, text_of(item));
    }
    return result;
  }
  template <typename Container>
  Container list(std::string_view field, const dom::element& value) {
    Container result;
    if (value.is_null()) return result;
    dom::array array;
    if (value.get_array().get(array)) {
      fail(field, "an array");
      return result;
    }
    for (const dom::element item : array) result.insert(result.end(), string(field, item));
    return result;
  }
  PartitionValues partition_values(std::string_view field, const dom::element& value) {
    PartitionValues::Map result;
    if (value.is_null()) return result;
    dom::object object;
    if (value.get_object().get(object)) {
      fail(field, "an object");
      return result;
    }
    for (const auto [key, item] : object) {
      std::optional<std::string> text = optional_string(field, item);
      // The empty string is NULL for every type.
      if (text && text->empty()) text.reset();
      result.emplace(key, std::move(text));
    }
    return result;
  }

  std::optional<DeletionVectorDescriptor> deletion_vector(const dom::element& value) {
    if (value.is_null()) return std::nullopt;
    DeletionVectorDescriptor vector;
    dom::object object;
    if (value.get_object().get(object)) {
      fail("deletionVector", "an object");
      return vector;
    }
    vector.storage_type = '\0';
    for (const auto [key, field] : object) {
      if (key == "storageType") {
        const std::string type = string(key, field);
        vector.storage_type = type.size() == 1 ? type[0] : '?';
      } else if (key == "pathOrInlineDv") {
        vector.path_or_inline = string(key, field);
      } else if (key == "offset") {
        vector.offset = optional_integer(key, field);
      } else if (key == "sizeInBytes") {
        vector.size_bytes = integer(key, field);
      } else if (key == "cardinality") {
        vector.cardinality = integer(key, field);
      }
    }
    require(vector.storage_type != '\0', "deletionVector.storageType");
    return vector;
  }

  AddFile add(const dom::object& object) {
    AddFile file;
    bool has_size = false;
    bool has_partition_values = false;
    for (const auto [key, field] : object) {
      if (key == "path") {
        file.path = string("add.path", field);
      } else if (key == "partitionValues") {
        file.partition_values = partition_values("add.partitionValues", field);
        has_partition_values = true;
      } else if (key == "size") {
        file.size_bytes = integer("add.size", field);
        if (file.size_bytes < 0) fail("add.size", "a number of bytes");
        has_size = true;
      } else if (key == "modificationTime") {
        file.modification_time_ms = integer("add.modificationTime", field);
      } else if (key == "dataChange") {
        file.data_change = boolean("add.dataChange", field);
      } else if (key == "stats") {
        const std::string text = optional_string("add.stats", field).value_or("");
        if (!text.empty()) file.stats = text;
      } else if (key == "tags") {
        file.tags = strings("add.tags", field);
      } else if (key == "deletionVector") {
        file.deletion_vector = deletion_vector(field);
      } else if (key == "baseRowId") {
        file.base_row_id = optional_integer("add.baseRowId", field);
      } else if (key == "defaultRowCommitVersion") {
        file.default_row_commit_version = optional_integer("add.defaultRowCommitVersion", field);
      } else if (key == "clusteringProvider") {
        file.clustering_provider = optional_string("add.clusteringProvider", field);
      }
    }
    require(!file.path.empty(), "add.path");
    require(has_size, "add.size");
    require(has_partition_values, "add.partitionValues");
    return file;
  }

  RemoveFile remove(const dom::object& object) {
    RemoveFile file;
    for (const auto [key, field] : object) {
      if (key == "path") {
        file.path = string("remove.path", field);
      } else if (key == "deletionTimestamp") {
        file.deletion_timestamp_ms = optional_integer("remove.deletionTimestamp", field);
      } else if (key == "dataChange") {
        file.data_change = boolean("remove.dataChange", field);
      } else if (key == "extendedFileMetadata") {
        file.extended_file_metadata =
            !field.is_null() && boolean("remove.extendedFileMetadata", field);
      } else if (key == "partitionValues") {
        file.partition_values = partition_values("remove.partitionValues", field);
      } else if (key == "size") {
        file.size_bytes = optional_integer("remove.size", field);
      } else if (key == "deletionVector") {
        file.deletion_vector = deletion_vector(field);
      } else if (key == "baseRowId") {
        file.base_row_id = optional_integer("remove.baseRowId", field);
      } else if (key == "defaultRowCommitVersion") {
        file.default_row_commit_version = optional_integer("remove.defaultRowCommitVersion", field);
      }
    }
    require(!file.path.empty(), "remove.path");
    return file;
  }

  CdcFile cdc(const dom::object& object) {
    CdcFile file;
    for (const auto [key, field] : object) {
      if (key == "path") {
        file.path = string("cdc.path", field);
      } else if (key == "partitionValues") {
        file.partition_values = partition_values("cdc.partitionValues", field);
      } else if (key == "size") {
        file.size_bytes = integer("cdc.size", field);
      }
    }
    require(!file.path.empty(), "cdc.path");
    return file;
  }

  Txn txn(const dom::object& object) {
    Txn result;
    for (const auto [key, field] : object) {
      if (key == "appId") {
        result.app_id = string("txn.appId", field);
      } else if (key == "version") {
        result.version = integer("txn.version", field);
      } else if (key == "lastUpdated") {
        result.last_updated_ms = optional_integer("txn.lastUpdated", field);
      }
    }
    return result;
  }

  DomainMetadata domain(const dom::object& object) {
    DomainMetadata result;
    for (const auto [key, field] : object) {
      if (key == "domain") {
        result.domain = string("domainMetadata.domain", field);
      } else if (key == "configuration") {
        result.configuration = string("domainMetadata.configuration", field);
      } else if (key == "removed") {
        result.removed = boolean("domainMetadata.removed", field);
      }
    }
    require(!result.domain.empty(), "domainMetadata.domain");
    return result;
  }

  Protocol protocol(const dom::object& object) {
    Protocol result;
    for (const auto [key, field] : object) {
      if (key == "minReaderVersion") {
        result.min_reader_version = small_integer("protocol.minReaderVersion", field);
      } else if (key == "minWriterVersion") {
        result.min_writer_version = small_integer("protocol.minWriterVersion", field);
      } else if (key == "readerFeatures") {
        result.reader_features = list<std::set<std::string>>("protocol.readerFeatures", field);
      } else if (key == "writerFeatures") {
        result.writer_features = list<std::set<std::string>>("protocol.writerFeatures", field);
      }
    }
    return result;
  }

  Metadata metadata(const dom::object& object) {
    Metadata result;
    for (const auto [key, field] : object) {
      if (key == "id") {
        result.id = string("metaData.id", field);
      } else if (key == "name") {
        result.name = optional_string("metaData.name", field);
      } else if (key == "description") {
        result.description = optional_string("metaData.description", field);
      } else if (key == "schemaString") {
        result.schema_string = string("metaData.schemaString", field);
      } else if (key == "partitionColumns") {
        result.partition_columns =
            list<std::vector<std::string>>("metaData.partitionColumns", field);
      } else if (key == "configuration") {
        result.configuration = strings("metaData.configuration", field);
      } else if (key == "createdTime") {
        result.created_time_ms = optional_integer("metaData.createdTime", field);
      } else if (key == "format") {
        std::string_view provider;
        if (!field["provider"].get_string().get(provider) && provider != "parquet") {
          wrong_format_ = true;
          format_ = provider;
        }
      }
    }
    return result;
  }

  // Free JSON: nothing in it makes a commit unreadable.
  static CommitInfo commit_info(const dom::object& object) {
    CommitInfo info;
    const auto integer_of = [](const dom::element& value) -> std::optional<int64_t> {
      int64_t number = 0;
      if (value.get_int64().get(number)) return std::nullopt;
      return number;
    };
    const auto each = [](const dom::element& value, auto visit) {
      dom::object members;
      if (value.get_object().get(members)) return;
      for (const auto [key, member] : members) visit(std::string(key), member);
    };
    for (const auto [key, field] : object) {
      if (key == "timestamp") {
        info.timestamp_ms = integer_of(field).value_or(0);
      } else if (key == "inCommitTimestamp") {
        info.in_commit_timestamp_ms = integer_of(field);
      } else if (key == "operation") {
        info.operation = text_of(field);
      } else if (key == "operationParameters") {
        each(field, [&](const std::string& name, const dom::element& value) {
          info.operation_parameters[name] = simdjson::minify(value);
        });
      } else if (key == "operationMetrics") {
        each(field, [&](const std::string& name, const dom::element& value) {
          info.operation_metrics[name] = text_of(value);
        });
      } else if (key == "readVersion") {
        info.read_version = integer_of(field);
      } else if (key == "isolationLevel") {
        info.isolation_level = text_of(field);
      } else if (key == "isBlindAppend") {
        bool flag = false;
        if (!field.get_bool().get(flag)) info.is_blind_append = flag;
      } else if (key == "engineInfo") {
        info.engine_info = text_of(field);
      } else if (key == "txnId") {
        info.txn_id = text_of(field);
      } else if (key == "tags") {
        each(field, [&](const std::string& name, const dom::element& value) {
          info.tags[name] = text_of(value);
        });
      }
    }
    return info;
  }

  std::string problem_;
  bool wrong_format_ = false;
  std::string format_;
};

}  // namespace

Result<std::vector<Action>> parse_actions(std::string text, const std::string& file,
                                          std::vector<std::string>* sidecars) {
  const size_t size = text.size();
  // The parser reads some bytes beyond the line it parses.
  text.append(simdjson::SIMDJSON_PADDING, '\0');
  dom::parser parser;
  ActionReader reader;
  std::vector<Action> actions;
  int line = 0;
  for (size_t start = 0; start < size;) {
    ++line;
    const size_t end = std::min(text.find('\n', start), size);
    const std::string_view content = std::string_view(text).substr(start, end - start);
    if (content.find_first_not_of(" \t\r") != std::string_view::npos) {
      dom::object object;
      const auto error =
          parser.parse(text.data() + start, end - start, false).get_object().get(object);
      if (error) {
        return corrupt("DELTA_LOG_CORRUPT", "line {} of {} is not a JSON object ({})", line, file,
                       simdjson::error_message(error));
      }
      for (const auto [name, value] : object) reader.action(name, value, &actions, sidecars);
      if (!reader.problem().empty()) {
        return corrupt("DELTA_LOG_CORRUPT", "line {} of {}: {}", line, file, reader.problem());
      }
      if (reader.wrong_format()) {
        return unsupported(
            "DELTA_UNSUPPORTED_FORMAT",
            "the table keeps its data as {}; only parquet can be read (line {} of {})",
            reader.format(), line, file);
      }
    }
    start = end + 1;
  }
  return actions;
}

namespace {

void print_strings(const char* name, const std::map<std::string, std::string>& values,
                   JsonWriter* out) {
  out->key(name);
  out->begin_object();
  for (const auto& [key, value] : values) {
    out->key(key);
    out->value(value);
  }
  out->end_object();
}

template <typename Container>
void print_list(const char* name, const Container& values, JsonWriter* out) {
  out->key(name);
  out->begin_array();
  for (const std::string& value : values) out->value(value);
  out->end_array();
}

void print_partition_values(const PartitionValues& values, JsonWriter* out) {
  out->key("partitionValues");
  out->begin_object();
  for (const auto& [key, value] : values) {
    out->key(key);
    if (value) {
      out->value(*value);
    } else {
      out->null();
    }
  }
  out->end_object();
}

template <typename T>
void print_field(const char* name, const T& value, JsonWriter* out) {
  out->key(name);
  out->value(value);
}

template <typename T>
void print_field(const char* name, const std::optional<T>& value, JsonWriter* out) {
  if (value) print_field(name, *value, out);
}

template <typename T>
void print_field(const char* name, const Shared<T>& value, JsonWriter* out) {
  if (value) print_field(name, *value, out);
}

void print_field(const char* name, const StatsText& value, JsonWriter* out) {
  if (value) print_field(name, *value, out);
}

void print_deletion_vector(const Shared<DeletionVectorDescriptor>& vector, JsonWriter* out) {
  if (!vector) return;
  out->key("deletionVector");
  out->begin_object();
  print_field("storageType", std::string(1, vector->storage_type), out);
  print_field("pathOrInlineDv", vector->path_or_inline, out);
  print_field("offset", vector->offset, out);
  print_field("sizeInBytes", vector->size_bytes, out);
  print_field("cardinality", vector->cardinality, out);
  out->end_object();
}

// Opens {"name":{ of each action, prints its fields and leaves both objects open.
class Printer {
 public:
  explicit Printer(JsonWriter* out) : out_(out) {}

  void operator()(const AddFile& file) {
    open("add");
    print_field("path", file.path, out_);
    print_partition_values(file.partition_values, out_);
    print_field("size", file.size_bytes, out_);
    print_field("modificationTime", file.modification_time_ms, out_);
    print_field("dataChange", file.data_change, out_);
    print_field("stats", file.stats, out_);
    if (!file.tags.empty()) print_strings("tags", file.tags, out_);
    print_deletion_vector(file.deletion_vector, out_);
    print_field("baseRowId", file.base_row_id, out_);
    print_field("defaultRowCommitVersion", file.default_row_commit_version, out_);
    print_field("clusteringProvider", file.clustering_provider, out_);
  }

  void operator()(const RemoveFile& file) {
    open("remove");
    print_field("path", file.path, out_);
    print_field("deletionTimestamp", file.deletion_timestamp_ms, out_);
    print_field("dataChange", file.data_change, out_);
    print_field("extendedFileMetadata", file.extended_file_metadata, out_);
    if (file.extended_file_metadata) {
      print_partition_values(file.partition_values, out_);
      print_field("size", file.size_bytes, out_);
    }
    print_deletion_vector(file.deletion_vector, out_);
    print_field("baseRowId", file.base_row_id, out_);
    print_field("defaultRowCommitVersion", file.default_row_commit_version, out_);
  }

  void operator()(const CdcFile& file) {
    open("cdc");
    print_field("path", file.path, out_);
    print_partition_values(file.partition_values, out_);
    print_field("size", file.size_bytes, out_);
    print_field("dataChange", false, out_);
  }

  void operator()(const Txn& txn) {
    open("txn");
    print_field("appId", txn.app_id, out_);
    print_field("version", txn.version, out_);
    print_field("lastUpdated", txn.last_updated_ms, out_);
  }

  void operator()(const DomainMetadata& domain) {
    open("domainMetadata");
    print_field("domain", domain.domain, out_);
    print_field("configuration", domain.configuration, out_);
    print_field("removed", domain.removed, out_);
  }

  void operator()(const Protocol& protocol) {
    open("protocol");
    print_field("minReaderVersion", protocol.min_reader_version, out_);
    print_field("minWriterVersion", protocol.min_writer_version, out_);
    if (protocol.min_reader_version >= 3)
      print_list("readerFeatures", protocol.reader_features, out_);
    if (protocol.min_writer_version >= 7)
      print_list("writerFeatures", protocol.writer_features, out_);
  }

  void operator()(const Metadata& metadata) {
    open("metaData");
    print_field("id", metadata.id, out_);
    print_field("name", metadata.name, out_);
    print_field("description", metadata.description, out_);
    out_->key("format");
    out_->raw(R"({"provider":"parquet","options":{}})");
    print_field("schemaString", metadata.schema_string, out_);
    print_list("partitionColumns", metadata.partition_columns, out_);
    print_strings("configuration", metadata.configuration, out_);
    print_field("createdTime", metadata.created_time_ms, out_);
  }

  void operator()(const CommitInfo& info) {
    open("commitInfo");
    // First, so that a reader finds it without parsing the rest (section 11).
    print_field("inCommitTimestamp", info.in_commit_timestamp_ms, out_);
    print_field("timestamp", info.timestamp_ms, out_);
    print_field("operation", info.operation, out_);
    out_->key("operationParameters");
    out_->begin_object();
    for (const auto& [key, value] : info.operation_parameters) {
      out_->key(key);
      out_->raw(value);
    }
    out_->end_object();
    print_field("readVersion", info.read_version, out_);
    if (!info.isolation_level.empty()) print_field("isolationLevel", info.isolation_level, out_);
    print_field("isBlindAppend", info.is_blind_append, out_);
    print_strings("operationMetrics", info.operation_metrics, out_);
    if (!info.tags.empty()) print_strings("tags", info.tags, out_);
    print_field("engineInfo", info.engine_info, out_);
    print_field("txnId", info.txn_id, out_);
  }

 private:
  void open(const char* name) {
    out_->begin_object();
    out_->key(name);
    out_->begin_object();
  }

  JsonWriter* out_;
};

}  // namespace

std::string print_action(const Action& action) {
  JsonWriter out;
  std::visit(Printer(&out), action);
  out.end_object();
  out.end_object();
  return out.take();
}

std::string DeletionVectorDescriptor::unique_id() const {
  std::string id = storage_type + path_or_inline;
  if (offset) id += "@" + std::to_string(*offset);
  return id;
}

}  // namespace strandline::delta
