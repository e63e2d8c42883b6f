#include "duck/row_reader.h"

#include <array>
#include <atomic>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "duck/arrow_values.h"
#include "duck/engine.h"
#include "duck/value_text.h"

namespace strandline::duck {
namespace {

using ArrowOptions = Handle<duckdb_arrow_options, duckdb_destroy_arrow_options>;
using ErrorData = Handle<duckdb_error_data, duckdb_destroy_error_data>;

Status check(duckdb_error_data raw_error) {
  const ErrorData error(raw_error);
  if (error.get() == nullptr || !duckdb_error_data_has_error(error.get())) return {};
  return engine_error(duckdb_error_data_error_type(error.get()),
                      duckdb_error_data_message(error.get()));
}

template <typename T>
T plain(duckdb_vector vector, idx_t row) {
  return static_cast<const T*>(duckdb_vector_get_data(vector))[row];
}

Result<strandline::Value> value_at(duckdb_vector vector, duckdb_logical_type type, idx_t row) {
  if (!is_valid(duckdb_vector_get_validity(vector), row)) return strandline::Value();
  switch (duckdb_get_type_id(type)) {
    case DUCKDB_TYPE_BOOLEAN:
      return strandline::Value(plain<bool>(vector, row));
    case DUCKDB_TYPE_TINYINT:
      return strandline::Value(int64_t{plain<int8_t>(vector, row)});
    case DUCKDB_TYPE_SMALLINT:
      return strandline::Value(int64_t{plain<int16_t>(vector, row)});
    case DUCKDB_TYPE_INTEGER:
      return strandline::Value(int64_t{plain<int32_t>(vector, row)});
    case DUCKDB_TYPE_BIGINT:
      return strandline::Value(plain<int64_t>(vector, row));
    case DUCKDB_TYPE_FLOAT:
      return strandline::Value(double{plain<float>(vector, row)});
    case DUCKDB_TYPE_DOUBLE:
      return strandline::Value(plain<double>(vector, row));
    case DUCKDB_TYPE_VARCHAR:
    case DUCKDB_TYPE_BLOB:
      return strandline::Value(text_at(vector, row).value_or(""));
    default:
      break;
  }
  const Value value = vector_value(vector, type, row);
  auto text = text_of(value.get(), type);
  if (!text) {
    return unsupported("UNSUPPORTED_TYPE",
                       "values of the engine type {} cannot be shown: cast the column to STRING",
                       spell_type(type));
  }
  return strandline::Value(std::move(*text));
}

class StreamReader final : public RowReader {
 public:
  explicit StreamReader(std::unique_ptr<Connection> connection)
      : connection_(std::move(connection)) {}

  Status start(const std::string& sql) {
    duckdb_connection const raw_connection = raw(*connection_);
    tell_observer(sql);
    if (duckdb_prepare(raw_connection, sql.c_str(), prepared_.out()) != DuckDBSuccess)
      return engine_error(DUCKDB_ERROR_INVALID, duckdb_prepare_error(prepared_.get()));
    duckdb_connection_get_arrow_options(raw_connection, options_.out());
    for (idx_t c = 0; c < duckdb_prepared_statement_column_count(prepared_.get()); ++c) {
      types_.emplace_back(duckdb_prepared_statement_column_logical_type(prepared_.get(), c));
      const auto known = delta_type(types_.back().get());
      const char* const name = duckdb_prepared_statement_column_name(prepared_.get(), c);
      columns_.push_back({name, known.value_or(DataType::primitive(TypeId::kVoid)),
                          spell_type(types_.back().get()), known.has_value()});
      duckdb_free(const_cast<char*>(name));
    }
    return {};
  }

  const std::vector<ResultColumn>& columns() const override { return columns_; }

  Result<std::optional<std::vector<strandline::Value>>> next_row() override {
    while (chunk_.get() == nullptr || row_ == duckdb_data_chunk_get_size(chunk_.get())) {
      SL_ASSIGN(const bool more, fetch());
      if (!more) return std::optional<std::vector<strandline::Value>>();
    }
    std::vector<strandline::Value> row;
    row.reserve(types_.size());
    for (idx_t c = 0; c < types_.size(); ++c) {
      SL_ASSIGN(auto value,
                value_at(duckdb_data_chunk_get_vector(chunk_.get(), c), types_[c].get(), row_));
      row.push_back(std::move(value));
    }
    ++row_;
    return std::optional(std::move(row));
  }

  Status arrow_schema(ArrowSchema* out) override {
    std::vector<duckdb_logical_type> types;
    std::vector<const char*> names;
    for (size_t c = 0; c < columns_.size(); ++c) {
      types.push_back(types_[c].get());
      names.push_back(columns_[c].name.c_str());
    }
    return check(
        duckdb_to_arrow_schema(options_.get(), types.data(), names.data(), types.size(), out));
  }

  Status next_array(ArrowArray* out) override {
    *out = ArrowArray{};
    // Rows of this batch that were read one by one already are left out by their number.
    if (chunk_.get() == nullptr || row_ == duckdb_data_chunk_get_size(chunk_.get())) {
      SL_ASSIGN(const bool more, fetch());
      if (!more) return {};
    }
    if (row_ > 0) SL_TRY(drop_read_rows());
    SL_TRY(check(duckdb_data_chunk_to_arrow(options_.get(), chunk_.get(), out)));
    row_ = duckdb_data_chunk_get_size(chunk_.get());
    return {};
  }

  void interrupt() override {
    interrupted_ = true;
    connection_->interrupt();
  }

 private:
  // Runs the query up to its first batch.
  Status execute() {
    executed_ = true;
    if (duckdb_pending_prepared_streaming(prepared_.get(), pending_.out()) != DuckDBSuccess)
      return engine_error(DUCKDB_ERROR_INVALID, duckdb_pending_error(pending_.get()));
    // A query that begins forgets the interrupts before it.
    if (interrupted_) return cancelled("CANCELED", "stopped before the first row was read");
    if (duckdb_execute_pending(pending_.get(), result_.out()) != DuckDBSuccess)
      return engine_error(result_.out());
    return {};
  }

  // The next batch that has rows; false at the end.
  Result<bool> fetch() {
    if (ended_) return false;
    if (!executed_) {
      Status status = execute();
      ended_ = !status.ok();
      SL_TRY(std::move(status));
    }
    for (;;) {
      chunk_ = Chunk(duckdb_fetch_chunk(result_.raw()));
      row_ = 0;
      if (chunk_.get() == nullptr) break;
      if (duckdb_data_chunk_get_size(chunk_.get()) > 0) return true;
    }
    ended_ = true;
    const char* const message = duckdb_result_error(result_.out());
    if (message != nullptr && *message != '\0') return engine_error(result_.out());
    return false;
  }

  // Keeps only the rows of the present batch that were not read.
  Status drop_read_rows() {
    const idx_t count = duckdb_data_chunk_get_size(chunk_.get()) - row_;
    const Handle<duckdb_selection_vector, &StreamReader::destroy_selection> selection(
        duckdb_create_selection_vector(count));
    sel_t* const rows = duckdb_selection_vector_get_data_ptr(selection.get());
    for (idx_t i = 0; i < count; ++i) rows[i] = static_cast<sel_t>(row_ + i);
    for (idx_t c = 0; c < types_.size(); ++c) {
      duckdb_slice_vector(duckdb_data_chunk_get_vector(chunk_.get(), c), selection.get(), count);
    }
    duckdb_data_chunk_set_size(chunk_.get(), count);
    row_ = 0;
    return {};
  }
  static void destroy_selection(duckdb_selection_vector* selection) {
    duckdb_destroy_selection_vector(*selection);
  }

  std::unique_ptr<Connection> connection_;
  Prepared prepared_;
  Pending pending_;
  ResultHandle result_;
  ArrowOptions options_;
  std::vector<LogicalType> types_;
  std::vector<ResultColumn> columns_;
  Chunk chunk_;
  idx_t row_ = 0;  // next in chunk_
  std::atomic<bool> interrupted_ = false;
  bool executed_ = false;
  bool ended_ = false;
};

class ChainedReader final : public RowReader {
 public:
  explicit ChainedReader(Next next) : next_(std::move(next)) {}

  Status start() {
    SL_ASSIGN(const bool has_first, go_on());
    if (!has_first) return internal_error("INTERNAL_ERROR", "there is no result to read");
    columns_ = current_->columns();
    return {};
  }

  const std::vector<ResultColumn>& columns() const override { return columns_; }

  Result<std::optional<std::vector<strandline::Value>>> next_row() override {
    for (;;) {
      SL_ASSIGN(auto row, current_->next_row());
      if (row) return row;
      SL_ASSIGN(const bool has_more, go_on());
      if (!has_more) return row;
    }
  }

  Status arrow_schema(ArrowSchema* out) override { return current_->arrow_schema(out); }

  Status next_array(ArrowArray* out) override {
    for (;;) {
      SL_TRY(current_->next_array(out));
      if (out->release != nullptr) return {};
      SL_ASSIGN(const bool has_more, go_on());
      if (!has_more) return {};
    }
  }

  void interrupt() override {
    const std::lock_guard lock(mutex_);
    interrupted_ = true;
    current_->interrupt();
  }

 private:
  // False at the end, where the last result stays.
  Result<bool> go_on() {
    if (ended_) return false;
    SL_ASSIGN(auto reader, next_());
    const std::lock_guard lock(mutex_);
    // Whoever interrupted the one before meant all.
    if (interrupted_) return cancelled("CANCELED", "stopped before all rows were read");
    ended_ = reader == nullptr;
    if (!ended_) current_ = std::move(reader);
    return !ended_;
  }

  Next next_;
  std::mutex mutex_;  // of current_, which another thread may interrupt
  std::unique_ptr<RowReader> current_;
  std::vector<ResultColumn> columns_;
  bool interrupted_ = false;
  bool ended_ = false;
};

}  // namespace

Result<std::unique_ptr<RowReader>> RowReader::chain(Next next) {
  auto reader = std::make_unique<ChainedReader>(std::move(next));
  SL_TRY(reader->start());
  return std::unique_ptr<RowReader>(std::move(reader));
}

Result<std::unique_ptr<RowReader>> RowReader::open(std::unique_ptr<Connection> connection,
                                                   const std::string& sql) {
  auto reader = std::make_unique<StreamReader>(std::move(connection));
  SL_TRY(reader->start(sql));
  return std::unique_ptr<RowReader>(std::move(reader));
}

namespace {

// A stream of ours to read, released at the end of the scope.
class Input {
 public:
  explicit Input(ArrowArrayStream* stream) : stream_(stream) {}
  ~Input() {
    if (stream_ != nullptr && stream_->release != nullptr) stream_->release(stream_);
  }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  Status schema(ArrowSchema* out) const {
    if (stream_ == nullptr || stream_->release == nullptr) {
      return invalid_argument("ARROW_STREAM_FAILED", "the stream was released before it was read");
    }
    return checked(stream_->get_schema(stream_, out));
  }
  Status next(ArrowArray* out) const { return checked(stream_->get_next(stream_, out)); }

 private:
  Status checked(int code) const {
    if (code == 0) return {};
    const char* const text = stream_->get_last_error(stream_);
    return invalid_argument("ARROW_STREAM_FAILED", "the Arrow stream failed: {}",
                            text == nullptr ? fmt::format("error {}", code) : text);
  }

  ArrowArrayStream* stream_;
};

struct OwnedSchema : ArrowSchema {
  OwnedSchema() : ArrowSchema{} {}
  ~OwnedSchema() {
    if (release != nullptr) release(this);
  }
  OwnedSchema(const OwnedSchema&) = delete;
  OwnedSchema& operator=(const OwnedSchema&) = delete;
};

struct OwnedArray : ArrowArray {
  OwnedArray() : ArrowArray{} {}
  ~OwnedArray() {
    if (release != nullptr) release(this);
  }
  OwnedArray(const OwnedArray&) = delete;
  OwnedArray& operator=(const OwnedArray&) = delete;
};

// An array of a type, without values: the engine tells its own types for it.
class EmptyArray {
 public:
  static ArrowArray make(const ArrowSchema& schema) {
    auto owner = std::make_unique<EmptyArray>(schema);
    ArrowArray root = owner->array_;
    root.private_data = owner.release();
    root.release = [](ArrowArray* array) {
      delete static_cast<EmptyArray*>(array->private_data);
      array->release = nullptr;
    };
    return root;
  }

  explicit EmptyArray(const ArrowSchema& schema) {
    for (int64_t c = 0; c < schema.n_children; ++c) {
      children_.push_back(std::make_unique<EmptyArray>(*schema.children[c]));
      pointers_.push_back(&children_.back()->array_);
    }
    if (schema.dictionary != nullptr)
      dictionary_ = std::make_unique<EmptyArray>(*schema.dictionary);
    array_.n_buffers = static_cast<int64_t>(buffers_.size());
    array_.buffers = buffers_.data();
    array_.n_children = schema.n_children;
    array_.children = pointers_.empty() ? nullptr : pointers_.data();
    array_.dictionary = dictionary_ == nullptr ? nullptr : &dictionary_->array_;
    array_.release = [](ArrowArray* array) { array->release = nullptr; };
  }

 private:
  static constexpr std::array<int64_t, 2> kZeros = {0, 0};  // also as the first offset

  ArrowArray array_{};
  std::array<const void*, 3> buffers_ = {nullptr, kZeros.data(), kZeros.data()};
  std::vector<std::unique_ptr<EmptyArray>> children_;
  std::vector<ArrowArray*> pointers_;
  std::unique_ptr<EmptyArray> dictionary_;
};

struct Appender {
  Appender() = default;
  ~Appender() {
    if (raw != nullptr) duckdb_appender_destroy(&raw);
  }
  Appender(const Appender&) = delete;
  Appender& operator=(const Appender&) = delete;
  Status error() const {
    const ErrorData data(duckdb_appender_error_data(raw));
    return engine_error(duckdb_error_data_error_type(data.get()),
                        duckdb_error_data_message(data.get()));
  }

  duckdb_appender raw = nullptr;
};

using ConvertedSchema =
    Handle<duckdb_arrow_converted_schema, duckdb_destroy_arrow_converted_schema>;

// check_times() has seen that no value has more.
std::string in_microseconds(std::string type) {
  constexpr std::string_view kUnits[] = {"TIMESTAMP_NS", "TIMESTAMP_MS", "TIMESTAMP_S"};
  for (const auto unit : kUnits) {
    for (size_t at = type.find(unit); at != std::string::npos; at = type.find(unit, at))
      type.replace(at, unit.size(), "TIMESTAMP");
  }
  return type;
}

}  // namespace

Status load_arrow(Connection& connection, ArrowArrayStream* stream, const std::string& table) {
  const Input input(stream);
  OwnedSchema schema;
  SL_TRY(input.schema(&schema));
  if (schema.n_children == 0 || schema.format == nullptr ||
      std::string_view(schema.format) != "+s") {
    return invalid_argument("ARROW_STREAM_FAILED",
                            "the stream gives no columns: its type must be a struct of them");
  }
  SL_TRY(check_columns(schema));
  ConvertedSchema converted;
  SL_TRY(check(duckdb_schema_from_arrow(raw(connection), &schema, converted.out())));
  const auto to_chunk = [&](ArrowArray* array, Chunk* chunk) {
    return check(
        duckdb_data_chunk_from_arrow(raw(connection), array, converted.get(), chunk->out()));
  };
  std::string columns;
  {
    OwnedArray none;
    static_cast<ArrowArray&>(none) = EmptyArray::make(schema);
    Chunk chunk;
    SL_TRY(to_chunk(&none, &chunk));
    for (int64_t c = 0; c < schema.n_children; ++c) {
      const LogicalType type(duckdb_vector_get_column_type(
          duckdb_data_chunk_get_vector(chunk.get(), static_cast<idx_t>(c))));
      const char* const name = schema.children[c]->name;
      columns += fmt::format("{}{} {}", columns.empty() ? "" : ", ",
                             quote_name(name == nullptr ? "" : name),
                             in_microseconds(spell_type(type.get())));
    }
  }
  SL_TRY(connection.execute(
      fmt::format("CREATE OR REPLACE TABLE {} ({})", quote_name(table), columns)));
  Appender appender;
  if (duckdb_appender_create(raw(connection), nullptr, table.c_str(), &appender.raw) !=
      DuckDBSuccess) {
    return appender.error();
  }
  for (;;) {
    OwnedArray array;
    SL_TRY(input.next(&array));
    if (array.release == nullptr) break;
    if (array.length == 0) continue;
    SL_TRY(check_times(schema, array));
    Chunk chunk;
    SL_TRY(to_chunk(&array, &chunk));
    if (duckdb_append_data_chunk(appender.raw, chunk.get()) != DuckDBSuccess)
      return appender.error();
  }
  if (duckdb_appender_close(appender.raw) != DuckDBSuccess) return appender.error();
  return {};
}

}  // namespace strandline::duck
