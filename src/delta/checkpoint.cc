#include "delta/checkpoint.h"

#include <algorithm>

#include "base/clock.h"
#include "base/ids.h"
#include "base/json.h"
#include "delta/action_json.h"
#include "delta/features.h"
#include "delta/log_files.h"
#include "delta/properties.h"
#include "storage/temporary_name.h"

namespace strandline::delta {

namespace {

constexpr int64_t kDefaultInterval = 10;
constexpr int64_t kDefaultTombstoneRetentionMs = 7 * 86'400'000ll;

std::optional<int64_t> interval_property(const Snapshot& snapshot, const std::string& key) {
  const std::optional<std::string> text = snapshot.property(key);
  return text ? parse_interval_ms(*text) : std::nullopt;
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string stored_name(const Field& field, const Snapshot& snapshot) {
  return snapshot.column_mapping_mode() == "none" ? field.name : Snapshot::physical_name(field);
}

// Types whose bounds survive the way from JSON to a column. The engine reads JSON numbers of more
// than 15 digits through a double, and a bound that moved would hide rows.
bool has_bounds(const DataType& type) {
  switch (type.id) {
    case TypeId::kString:
    case TypeId::kLong:
    case TypeId::kInteger:
    case TypeId::kShort:
    case TypeId::kByte:
    case TypeId::kFloat:
    case TypeId::kDouble:
    case TypeId::kDate:
    case TypeId::kTimestamp:
    case TypeId::kTimestampNtz:
      return true;
    case TypeId::kDecimal:
      return type.precision <= 15;
    default:
      return false;
  }
}

// The fields of a bounds or null count column.
std::vector<Field> statistics_fields(const std::vector<Field>& fields, bool bounds,
                                     const Snapshot& snapshot) {
  std::vector<Field> result;
  const auto& partitions = snapshot.metadata.partition_columns;
  for (const Field& field : fields) {
    const bool is_column = &fields == &snapshot.schema.fields;
    if (is_column &&
        std::find(partitions.begin(), partitions.end(), field.name) != partitions.end())
      continue;
    DataType type;
    if (field.type.id == TypeId::kStruct) {
      std::vector<Field> inner = statistics_fields(*field.type.fields, bounds, snapshot);
      if (inner.empty()) continue;
      type = DataType::structure(std::move(inner));
    } else if (bounds) {
      if (!has_bounds(field.type)) continue;
      type = field.type;
    } else {
      if (field.type.id == TypeId::kVoid) continue;
      type = DataType::primitive(TypeId::kLong);
    }
    result.push_back({stored_name(field, snapshot), std::move(type), true, {}});
  }
  return result;
}

// Files and actions of one checkpoint that is being written.
class CheckpointWriter {
 public:
  CheckpointWriter(const Table& table, const Snapshot& snapshot, std::vector<RemoveFile> tombstones)
      : table_(table),
        store_(*table.store()),
        snapshot_(snapshot),
        tombstones_(std::move(tombstones)),
        now_ms_(now_ms()) {}

  Status write() {
    Status written = is_v2() ? write_v2() : write_classic();
    if (!written.ok()) {
      // Hidden, or referred to by nothing, so that a leftover harms nobody.
      for (const std::string& path : loose_) (void)store_.remove(path);
      return written;
    }
    return write_hint();
  }

 private:
  using Take = CheckpointContent::Take;

  bool is_v2() const {
    return snapshot_.property("delta.checkpointPolicy") == "v2" &&
           supports(snapshot_.protocol, "v2Checkpoint");
  }

  Status each_other(const Take& take) {
    const auto count = [&](const Action& action) -> Status {
      ++actions_;
      return take(action);
    };
    SL_TRY(count(snapshot_.protocol));
    SL_TRY(count(snapshot_.metadata));
    for (const Txn& txn : kept_txns(snapshot_, now_ms_)) SL_TRY(count(txn));
    for (const auto& [name, domain] : snapshot_.domains) SL_TRY(count(domain));
    return {};
  }

  Status each_file(const Take& take) {
    for (AddFile file : snapshot_.files) {
      file.data_change = false;
      ++actions_;
      SL_TRY(take(std::move(file)));
    }
    for (RemoveFile file : tombstones_) {
      if (!is_kept(file, snapshot_, now_ms_)) continue;
      file.data_change = false;
      ++actions_;
      SL_TRY(take(std::move(file)));
    }
    return {};
  }

  CheckpointContent content() const {
    CheckpointContent content;
    content.json_stats = snapshot_.property("delta.checkpoint.writeStatsAsJson") != "false";
    if (snapshot_.property_is_true("delta.checkpoint.writeStatsAsStruct")) {
      content.parsed_stats = parsed_stats_schema(snapshot_);
      if (!snapshot_.metadata.partition_columns.empty()) {
        Schema& partitions = content.parsed_partition_values.emplace();
        for (const std::string& name : snapshot_.metadata.partition_columns) {
          const Field* const field = snapshot_.schema.get(name);
          if (field == nullptr) continue;
          partitions.fields.push_back({stored_name(*field, snapshot_), field->type, true, {}});
        }
      }
    }
    return content;
  }

  // Makes a Parquet file in the log's own directory, where it is hidden until it is whole.
  Status write_parquet(const std::string& path, const CheckpointContent& content) {
    const std::string temporary = storage::temporary_path(path);
    loose_.push_back(temporary);
    SL_TRY(store_.before_external_write(temporary));
    SL_TRY(table_.parquet()->write_checkpoint(temporary, content));
    SL_TRY(store_.after_external_write(temporary));
    return store_.rename(temporary, path);
  }

  Status write_classic() {
    CheckpointContent all = content();
    all.each = [this](const Take& take) -> Status {
      SL_TRY(each_other(take));
      return each_file(take);
    };
    const std::string path = classic_checkpoint_path(table_.path(), snapshot_.version);
    SL_TRY(write_parquet(path, all));
    SL_ASSIGN(const storage::FileInfo file, store_.stat(path));
    bytes_ = file.size_bytes;
    return {};
  }

  Status write_v2() {
    JsonWriter head;
    head.begin_object();
    head.key("checkpointMetadata");
    head.begin_object();
    head.key("version");
    head.value(snapshot_.version);
    head.end_object();
    head.end_object();
    std::string text = head.take() + "\n";
    ++actions_;
    SL_TRY(each_other([&](const Action& action) -> Status {
      text += print_action(action) + "\n";
      return {};
    }));

    CheckpointContent files = content();
    files.only_files = true;
    files.each = [this](const Take& take) { return each_file(take); };
    SL_TRY(store_.make_directories(sidecar_directory(table_.path())));
    const std::string sidecar = sidecar_directory(table_.path()) + "/" + new_uuid() + ".parquet";
    loose_.push_back(sidecar);
    SL_TRY(write_parquet(sidecar, files));
    SL_ASSIGN(const storage::FileInfo sidecar_file, store_.stat(sidecar));
    JsonWriter line;
    line.begin_object();
    line.key("sidecar");
    line.begin_object();
    line.key("path");
    line.value(file_name(sidecar));
    line.key("sizeInBytes");
    line.value(sidecar_file.size_bytes);
    line.key("modificationTime");
    line.value(sidecar_file.modified_ms);
    line.end_object();
    line.end_object();
    text += line.take() + "\n";
    bytes_ = static_cast<int64_t>(text.size()) + sidecar_file.size_bytes;

    const std::string path = v2_checkpoint_path(table_.path(), snapshot_.version, new_uuid());
    if (Status put = store_.put_if_absent(path, text); !put.ok()) {
      // It may be there all the same, and then it needs its sidecar.
      const auto found = store_.stat(path);
      if (found.ok() || found.error().kind != ErrorKind::kNotFound) loose_.clear();
      return put;
    }
    return {};
  }

  Status write_hint() {
    JsonWriter hint;
    hint.begin_object();
    hint.key("version");
    hint.value(snapshot_.version);
    hint.key("size");
    hint.value(actions_);
    hint.key("sizeInBytes");
    hint.value(bytes_);
    hint.key("numOfAddFiles");
    hint.value(static_cast<int64_t>(snapshot_.files.size()));
    hint.end_object();
    return store_.put(log_directory(table_.path()) + "/_last_checkpoint", hint.take());
  }

  const Table& table_;
  storage::Store& store_;
  const Snapshot& snapshot_;
  const std::vector<RemoveFile> tombstones_;
  const int64_t now_ms_;
  std::vector<std::string> loose_;  // files to remove when the checkpoint fails
  int64_t actions_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace

bool checkpoint_is_due(const Snapshot& snapshot, Version version) {
  const int64_t interval = integer_property(snapshot.metadata.configuration,
                                            "delta.checkpointInterval", kDefaultInterval);
  return version > 0 && version % std::max<int64_t>(interval, 1) == 0;
}

std::vector<Txn> kept_txns(const Snapshot& snapshot, int64_t now_ms) {
  const std::optional<int64_t> retention_ms =
      interval_property(snapshot, "delta.setTransactionRetentionDuration");
  std::vector<Txn> kept;
  for (const auto& [app_id, txn] : snapshot.txns) {
    const bool expired =
        retention_ms && txn.last_updated_ms && *txn.last_updated_ms < now_ms - *retention_ms;
    if (!expired) kept.push_back(txn);
  }
  return kept;
}

bool is_kept(const RemoveFile& tombstone, const Snapshot& snapshot, int64_t now_ms) {
  const int64_t retention_ms = interval_property(snapshot, "delta.deletedFileRetentionDuration")
                                   .value_or(kDefaultTombstoneRetentionMs);
  return tombstone.deletion_timestamp_ms.value_or(0) >= now_ms - retention_ms;
}

Schema parsed_stats_schema(const Snapshot& snapshot) {
  Schema schema;
  const auto put = [&](const char* name, DataType type) {
    schema.fields.push_back({name, std::move(type), true, {}});
  };
  put("numRecords", DataType::primitive(TypeId::kLong));
  for (const char* name : {"minValues", "maxValues"}) {
    std::vector<Field> bounds = statistics_fields(snapshot.schema.fields, true, snapshot);
    if (!bounds.empty()) put(name, DataType::structure(std::move(bounds)));
  }
  std::vector<Field> counts = statistics_fields(snapshot.schema.fields, false, snapshot);
  if (!counts.empty()) put("nullCount", DataType::structure(std::move(counts)));
  put("tightBounds", DataType::primitive(TypeId::kBoolean));
  return schema;
}

Status write_checkpoint(const Table& table, const Snapshot& snapshot) {
  SL_ASSIGN(std::vector<RemoveFile> tombstones, table.tombstones(snapshot));
  return CheckpointWriter(table, snapshot, std::move(tombstones)).write();
}

}  // namespace strandline::delta
