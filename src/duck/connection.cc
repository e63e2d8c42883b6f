#include "duck/connection.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <mutex>

#include "base/error.h"
#include "base/ids.h"
#include "base/secrets.h"
#include "duck/boolean_only.h"
#include "duck/curve_function.h"
#include "duck/decimal_text.h"
#include "duck/double_text.h"
#include "duck/engine.h"
#include "duck/file_sets.h"
#include "duck/json_fields.h"
#include "duck/key_filter_bits.h"
#include "duck/round_shortest.h"
#include "duck/row_id_function.h"
#include "duck/text_lines.h"
#include "duck/value_text.h"
#include "duck/zero_signs.h"

namespace strandline::duck {
namespace {

class EngineDatabase;

class EngineConnection final : public Connection {
 public:
  EngineConnection(std::shared_ptr<EngineDatabase> database, duckdb_connection raw_connection)
      : database_(std::move(database)), raw_(raw_connection) {}
  ~EngineConnection() override { duckdb_disconnect(&raw_); }

  Result<int64_t> execute(const std::string& sql) override;
  Result<Rows> query(const std::string& sql) override;
  Result<int64_t> query_int(const std::string& sql) override;
  Result<std::vector<ResultColumn>> describe(const std::string& query_sql) override;
  void interrupt() override { duckdb_interrupt(raw_); }
  double progress() override { return duckdb_query_progress(raw_).percentage / 100.0; }

  duckdb_connection raw_connection() const { return raw_; }
  const EngineDatabase& database() const { return *database_; }

 private:
  std::shared_ptr<EngineDatabase> database_;
  duckdb_connection raw_;
};

class EngineDatabase final : public Database, public std::enable_shared_from_this<EngineDatabase> {
 public:
  // spill_folder: removed with the database; empty for one that stays.
  EngineDatabase(duckdb_database raw_database, std::string spill_folder)
      : raw_(raw_database), spill_folder_(std::move(spill_folder)) {}
  ~EngineDatabase() override {
    duckdb_close(&raw_);
    std::error_code ignored;
    if (!spill_folder_.empty()) std::filesystem::remove_all(spill_folder_, ignored);
  }

  Result<std::unique_ptr<Connection>> connect() override {
    duckdb_connection connection = nullptr;
    if (duckdb_connect(raw_, &connection) != DuckDBSuccess) {
      return internal_error("ENGINE_ERROR", "the engine gives no further connection");
    }
    auto made = std::make_unique<EngineConnection>(shared_from_this(), connection);
    // The progress bar stays off: what measures for it is a tenth of the work of short statements.
    SL_TRY(made->execute("SET TimeZone = 'UTC'"));
    return std::unique_ptr<Connection>(std::move(made));
  }

  const std::shared_ptr<FileSets>& file_sets() const { return file_sets_; }
  const std::shared_ptr<KeyFilters>& key_filters() const { return key_filters_; }
  const std::shared_ptr<Curves>& curves() const { return curves_; }
  const std::shared_ptr<RowIdCollectors>& row_id_collectors() const { return row_id_collectors_; }
  const std::shared_ptr<ZeroSignsOfColumns>& zero_signs() const { return zero_signs_; }

 private:
  duckdb_database raw_;
  const std::string spill_folder_;
  std::shared_ptr<FileSets> file_sets_ = std::make_shared<FileSets>();
  std::shared_ptr<KeyFilters> key_filters_ = std::make_shared<KeyFilters>();
  std::shared_ptr<Curves> curves_ = std::make_shared<Curves>();
  std::shared_ptr<RowIdCollectors> row_id_collectors_ = std::make_shared<RowIdCollectors>();
  std::shared_ptr<ZeroSignsOfColumns> zero_signs_ = std::make_shared<ZeroSignsOfColumns>();
};

// The engine's own limit for a process that shall stay below target_bytes: its peak lies up to
// 0.4 GB above its limit, and Strandline's own structures come on top. Small limits leave a part.
int64_t engine_memory_limit(int64_t target_bytes) {
  constexpr int64_t kHeadRoomBytes = 700ll * 1000 * 1000;
  return std::max(target_bytes / 100 * 65, target_bytes - kHeadRoomBytes);
}

// A name in the system's folder for such files (TMPDIR); the engine makes the folder when it needs
// one. Empty where the system has none.
std::string new_spill_folder() {
  std::error_code failed;
  const auto folder = std::filesystem::temp_directory_path(failed);
  return failed ? "" : (folder / ("strandline-" + new_uuid())).string();
}

struct ErrorName {
  const char* prefix;
  duckdb_error_type type;
};
// How DuckDB starts its messages; needed where the C API gives the text alone.
constexpr std::array<ErrorName, 20> kErrorNames = {{
    {"Out of Range Error", DUCKDB_ERROR_OUT_OF_RANGE},
    {"Conversion Error", DUCKDB_ERROR_CONVERSION},
    {"Invalid type Error", DUCKDB_ERROR_INVALID_TYPE},
    {"Mismatch Type Error", DUCKDB_ERROR_MISMATCH_TYPE},
    {"Not implemented Error", DUCKDB_ERROR_NOT_IMPLEMENTED},
    {"Catalog Error", DUCKDB_ERROR_CATALOG},
    {"Parser Error", DUCKDB_ERROR_PARSER},
    {"Planner Error", DUCKDB_ERROR_PLANNER},
    {"Constraint Error", DUCKDB_ERROR_CONSTRAINT},
    {"Syntax Error", DUCKDB_ERROR_SYNTAX},
    {"Settings Error", DUCKDB_ERROR_SETTINGS},
    {"Binder Error", DUCKDB_ERROR_BINDER},
    {"Expression Error", DUCKDB_ERROR_EXPRESSION},
    {"IO Error", DUCKDB_ERROR_IO},
    {"INTERRUPT Error", DUCKDB_ERROR_INTERRUPT},
    {"Invalid Input Error", DUCKDB_ERROR_INVALID_INPUT},
    {"Out of Memory Error", DUCKDB_ERROR_OUT_OF_MEMORY},
    {"Permission Error", DUCKDB_ERROR_PERMISSION},
    {"Parameter Not Resolved Error", DUCKDB_ERROR_PARAMETER_NOT_RESOLVED},
    {"Missing Extension Error", DUCKDB_ERROR_MISSING_EXTENSION},
}};

duckdb_error_type type_by_prefix(const std::string& message) {
  for (const ErrorName& name : kErrorNames) {
    if (message.starts_with(name.prefix)) return name.type;
  }
  return DUCKDB_ERROR_INVALID;
}

ErrorKind kind_of(duckdb_error_type type) {
  switch (type) {
    case DUCKDB_ERROR_PARSER:
    case DUCKDB_ERROR_BINDER:
    case DUCKDB_ERROR_CATALOG:
    case DUCKDB_ERROR_PLANNER:
    case DUCKDB_ERROR_SYNTAX:
    case DUCKDB_ERROR_SETTINGS:
    case DUCKDB_ERROR_EXPRESSION:
    case DUCKDB_ERROR_NOT_IMPLEMENTED:
    case DUCKDB_ERROR_UNKNOWN_TYPE:
    case DUCKDB_ERROR_MISMATCH_TYPE:
    case DUCKDB_ERROR_INVALID_TYPE:
    case DUCKDB_ERROR_MISSING_EXTENSION:
    case DUCKDB_ERROR_AUTOLOAD:
    case DUCKDB_ERROR_DEPENDENCY:
    case DUCKDB_ERROR_PARAMETER_NOT_RESOLVED:
    case DUCKDB_ERROR_PARAMETER_NOT_ALLOWED:
      return ErrorKind::kInvalidArgument;
    case DUCKDB_ERROR_CONVERSION:
    case DUCKDB_ERROR_OUT_OF_RANGE:
    case DUCKDB_ERROR_DECIMAL:
    case DUCKDB_ERROR_DIVIDE_BY_ZERO:
    case DUCKDB_ERROR_OBJECT_SIZE:
    case DUCKDB_ERROR_CONSTRAINT:
    case DUCKDB_ERROR_INVALID_INPUT:
      return ErrorKind::kInvalidData;
    case DUCKDB_ERROR_IO:
    case DUCKDB_ERROR_NETWORK:
    case DUCKDB_ERROR_HTTP:
    case DUCKDB_ERROR_PERMISSION:
    case DUCKDB_ERROR_OUT_OF_MEMORY:
      return ErrorKind::kIo;
    case DUCKDB_ERROR_INTERRUPT:
      return ErrorKind::kCancelled;
    default:
      return ErrorKind::kInternal;
  }
}

// "[SOME.NAME] text" -> name, with text left in message; empty when there is none.
std::string take_public_name(std::string& message) {
  const size_t colon = message.find("Error: ");
  const size_t open = colon == std::string::npos ? 0 : colon + 7;
  if (open >= message.size() || message[open] != '[') return {};
  const size_t close = message.find("] ", open);
  if (close == std::string::npos || close == open + 1) return {};
  const std::string name = message.substr(open + 1, close - open - 1);
  const bool is_name = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  });
  if (!is_name) return {};
  message.erase(0, close + 2);
  return name;
}

Status check_limit(bool ok, const char* what) {
  if (!ok) return internal_error("ENGINE_ERROR", "the engine does not take the setting {}", what);
  return {};
}

// Text of a value of a primitive type without the detour over a DuckDB value; nullopt otherwise.
std::optional<std::string> plain_text(duckdb_vector vector, duckdb_type type, idx_t row) {
  void* data = duckdb_vector_get_data(vector);
  switch (type) {
    case DUCKDB_TYPE_TINYINT:
      return std::to_string(static_cast<int8_t*>(data)[row]);
    case DUCKDB_TYPE_SMALLINT:
      return std::to_string(static_cast<int16_t*>(data)[row]);
    case DUCKDB_TYPE_INTEGER:
      return std::to_string(static_cast<int32_t*>(data)[row]);
    case DUCKDB_TYPE_BIGINT:
      return std::to_string(static_cast<int64_t*>(data)[row]);
    case DUCKDB_TYPE_UBIGINT:
      return std::to_string(static_cast<uint64_t*>(data)[row]);
    case DUCKDB_TYPE_VARCHAR: {
      auto* text = static_cast<duckdb_string_t*>(data) + row;
      return std::string(duckdb_string_t_data(text), duckdb_string_t_length(*text));
    }
    default:
      return std::nullopt;
  }
}

Result<Cell> cell_of(duckdb_vector vector, duckdb_logical_type type, idx_t row) {
  if (!is_valid(duckdb_vector_get_validity(vector), row)) return Cell{};
  if (auto text = plain_text(vector, duckdb_get_type_id(type), row)) return Cell{std::move(*text)};
  const Value value = vector_value(vector, type, row);
  auto text = text_of(value.get(), type);
  if (!text) {
    return unsupported("UNSUPPORTED_TYPE",
                       "values of the engine type {} cannot be shown: cast the column to VARCHAR",
                       spell_type(type));
  }
  return Cell{std::move(*text)};
}

ResultColumn result_column(std::string name, duckdb_logical_type type) {
  auto known = delta_type(type);
  return ResultColumn{std::move(name), known.value_or(DataType::primitive(TypeId::kVoid)),
                      spell_type(type), known.has_value()};
}

Result<int64_t> EngineConnection::execute(const std::string& sql) {
  tell_observer(sql);
  ResultHandle result;
  if (duckdb_query(raw_, sql.c_str(), result.out()) != DuckDBSuccess) {
    return engine_error(result.out());
  }
  return static_cast<int64_t>(duckdb_rows_changed(result.out()));
}

Result<Rows> EngineConnection::query(const std::string& sql) {
  tell_observer(sql);
  ResultHandle result;
  if (duckdb_query(raw_, sql.c_str(), result.out()) != DuckDBSuccess) {
    return engine_error(result.out());
  }
  Rows rows;
  std::vector<LogicalType> types;
  const idx_t columns = duckdb_column_count(result.out());
  for (idx_t c = 0; c < columns; ++c) {
    types.emplace_back(duckdb_column_logical_type(result.out(), c));
    rows.columns.push_back(result_column(duckdb_column_name(result.out(), c), types.back().get()));
  }
  while (true) {
    const Chunk chunk(duckdb_fetch_chunk(result.raw()));
    if (chunk.get() == nullptr) break;
    const idx_t count = duckdb_data_chunk_get_size(chunk.get());
    for (idx_t r = 0; r < count; ++r) {
      std::vector<Cell> cells;
      cells.reserve(columns);
      for (idx_t c = 0; c < columns; ++c) {
        SL_ASSIGN(Cell cell,
                  cell_of(duckdb_data_chunk_get_vector(chunk.get(), c), types[c].get(), r));
        cells.push_back(std::move(cell));
      }
      rows.rows.push_back(std::move(cells));
    }
  }
  return rows;
}

Result<int64_t> EngineConnection::query_int(const std::string& sql) {
  SL_ASSIGN(const Rows rows, query(sql));
  if (rows.rows.empty() || rows.rows[0].empty() || !rows.rows[0][0]) return int64_t{0};
  const std::string& text = *rows.rows[0][0];
  try {
    size_t used = 0;
    const int64_t number = std::stoll(text, &used);
    if (used == text.size()) return number;
  } catch (const std::exception&) {
    // Falls through to the error below: not an integer, or beyond BIGINT.
  }
  return internal_error("ENGINE_ERROR", "expected an integer, the query gave '{}'", text);
}

Result<std::vector<ResultColumn>> EngineConnection::describe(const std::string& query_sql) {
  tell_observer(query_sql);
  Prepared prepared;
  if (duckdb_prepare(raw_, query_sql.c_str(), prepared.out()) != DuckDBSuccess) {
    return engine_error(DUCKDB_ERROR_INVALID, duckdb_prepare_error(prepared.get()));
  }
  std::vector<ResultColumn> columns;
  const idx_t count = duckdb_prepared_statement_column_count(prepared.get());
  for (idx_t c = 0; c < count; ++c) {
    const LogicalType type(duckdb_prepared_statement_column_logical_type(prepared.get(), c));
    const char* name = duckdb_prepared_statement_column_name(prepared.get(), c);
    columns.push_back(result_column(name, type.get()));
    duckdb_free(const_cast<char*>(name));
  }
  return columns;
}

// Rewrites that give wrong rows in some version (docs/engine-faults.md): row_number() filters by a
// nullable order, UNION ALL of two arms over one join, and EXISTS by <> on what an outer join left
// null. A version without them has no such name.
Status switch_off_faulty_optimizers(Connection& connection) {
  SL_ASSIGN(const Rows rows,
            connection.query("SELECT string_agg(name, ',') FROM duckdb_optimizers() WHERE name IN "
                             "('common_subplan', 'deliminator', 'top_n_window_elimination')"));
  if (!rows.rows[0][0]) return {};
  SL_TRY(connection.execute("SET GLOBAL disabled_optimizers = " + quote_literal(*rows.rows[0][0])));
  return {};
}

// Only binds: see kBooleanOnly.
Status register_boolean_only(duckdb_connection connection) {
  return register_scalar(connection, kBooleanOnly, {DUCKDB_TYPE_BOOLEAN}, DUCKDB_TYPE_BOOLEAN,
                         [](duckdb_function_info info, duckdb_data_chunk, duckdb_vector) {
                           duckdb_scalar_function_set_error(info,
                                                            "a check of types is not to be run");
                         });
}

}  // namespace

Status register_scalar(duckdb_connection connection, const char* name,
                       std::initializer_list<duckdb_type> parameters, duckdb_type returned,
                       duckdb_scalar_function_t function) {
  const Handle<duckdb_scalar_function, duckdb_destroy_scalar_function> made(
      duckdb_create_scalar_function());
  duckdb_scalar_function_set_name(made.get(), name);
  for (const duckdb_type parameter : parameters) {
    const LogicalType type(duckdb_create_logical_type(parameter));
    duckdb_scalar_function_add_parameter(made.get(), type.get());
  }
  const LogicalType type(duckdb_create_logical_type(returned));
  duckdb_scalar_function_set_return_type(made.get(), type.get());
  duckdb_scalar_function_set_function(made.get(), function);
  if (duckdb_register_scalar_function(connection, made.get()) != DuckDBSuccess) {
    return internal_error("ENGINE_ERROR", "the engine does not take the function {}", name);
  }
  return {};
}

Result<std::shared_ptr<Database>> Database::open(const DatabaseOptions& options) {
  duckdb_config config = nullptr;
  if (duckdb_create_config(&config) != DuckDBSuccess) {
    return internal_error("ENGINE_ERROR", "the engine cannot be configured");
  }
  const Handle<duckdb_config, duckdb_destroy_config> owned(config);
  const auto set = [&](const char* name, const std::string& value) {
    return check_limit(duckdb_set_config(config, name, value.c_str()) == DuckDBSuccess, name);
  };
  // Nothing is fetched behind the user's back: all that is needed is linked in.
  SL_TRY(set("autoinstall_known_extensions", "false"));
  SL_TRY(set("autoload_known_extensions", "false"));
  // Windows in the order of what turns out to be a constant; from DuckDB 2.0 on that is an error.
  SL_TRY(set("order_by_non_integer_literal", "true"));
  // Passwords of other databases stay in memory.
  SL_TRY(set("allow_persistent_secrets", "false"));
  if (options.memory_limit_bytes > 0) {
    SL_TRY(
        set("memory_limit", std::to_string(engine_memory_limit(options.memory_limit_bytes)) + "B"));
  }
  if (options.threads > 0) SL_TRY(set("threads", std::to_string(options.threads)));
  // The engine's own choice is a folder beside whatever is current, and stays there.
  const std::string spill_folder = options.temp_directory.empty() ? new_spill_folder() : "";
  SL_TRY(set("temp_directory", spill_folder.empty() ? options.temp_directory : spill_folder));

  duckdb_database raw_database = nullptr;
  char* message = nullptr;
  if (duckdb_open_ext(":memory:", &raw_database, config, &message) != DuckDBSuccess) {
    return engine_error(DUCKDB_ERROR_INVALID, take_string(message).c_str());
  }
  auto database = std::make_shared<EngineDatabase>(raw_database, spill_folder);
  SL_ASSIGN(const auto connection, database->connect());
  SL_TRY(switch_off_faulty_optimizers(*connection));
  SL_TRY(register_file_functions(raw(*connection), database->file_sets()));
  SL_TRY(register_key_filter_function(raw(*connection), database->key_filters()));
  SL_TRY(register_curve_function(raw(*connection), database->curves()));
  SL_TRY(register_row_id_function(raw(*connection), database->row_id_collectors()));
  SL_TRY(register_zero_signs_functions(raw(*connection), database->zero_signs()));
  SL_TRY(register_json_fields_function(raw(*connection)));
  SL_TRY(register_text_lines_function(raw(*connection)));
  SL_TRY(register_json_decimals_function(raw(*connection)));
  SL_TRY(register_boolean_only(raw(*connection)));
  SL_TRY(register_decimal_functions(raw(*connection)));
  SL_TRY(register_double_text(raw(*connection)));
  SL_TRY(register_round_shortest(raw(*connection)));
  return std::shared_ptr<Database>(std::move(database));
}

namespace {

struct StatementObserver {
  std::atomic<bool> is_set = false;
  std::mutex mutex;
  std::function<void(const std::string&)> tell;
};
StatementObserver& statement_observer() {
  static StatementObserver observer;
  return observer;
}

}  // namespace

void observe_statements(std::function<void(const std::string& sql)> observer) {
  StatementObserver& known = statement_observer();
  const std::lock_guard lock(known.mutex);
  known.is_set = observer != nullptr;
  known.tell = std::move(observer);
}

void tell_observer(const std::string& sql) {
  StatementObserver& known = statement_observer();
  if (!known.is_set) return;
  const std::lock_guard lock(known.mutex);
  if (known.tell) known.tell(sql);
}

std::string take_string(char* text) {
  if (text == nullptr) return {};
  std::string copy(text);
  duckdb_free(text);
  return copy;
}

std::optional<std::string> text_of(duckdb_value value, duckdb_logical_type type) {
  char* raw_text = value == nullptr ? nullptr : duckdb_get_varchar(value);
  if (raw_text == nullptr) return std::nullopt;
  std::string text = take_string(raw_text);
  if (duckdb_get_type_id(type) == DUCKDB_TYPE_DECIMAL) {
    const size_t first = text.starts_with('-') ? 1 : 0;
    if (text.substr(first).starts_with('.')) text.insert(first, "0");
  }
  return text;
}

namespace {

// Some errors come as an object of JSON, with what else the engine knows of itself.
std::string without_json(std::string text) {
  constexpr std::string_view kMessage = R"("exception_message":")";
  const size_t begin = text.find(kMessage);
  if (!text.starts_with(R"({"exception_type")") || begin == std::string::npos) return text;
  std::string out;
  for (size_t i = begin + kMessage.size(); i < text.size() && text[i] != '"'; ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    out += text[i];
  }
  return out;
}

}  // namespace

Error engine_error(duckdb_error_type type, const char* message) {
  std::string text = without_json(message == nullptr ? "unknown error of the engine" : message);
  if (type == DUCKDB_ERROR_INVALID) type = type_by_prefix(text);
  // The C++ library's own error has no class in the engine.
  if (type == DUCKDB_ERROR_INVALID && text.find("std::bad_alloc") != std::string::npos)
    type = DUCKDB_ERROR_OUT_OF_MEMORY;
  std::string code = take_public_name(text);
  if (code.empty()) code = "ENGINE_ERROR";
  const auto says = [&text](const char* what) { return text.find(what) != std::string::npos; };
  if (kind_of(type) == ErrorKind::kIo && says("No space left on device")) {
    code = "DISK_FULL";
    text += "\nFree some space and run again; nothing half-written is visible.";
  } else if (kind_of(type) == ErrorKind::kIo && says("File too large")) {
    code = "FILE_TOO_LARGE";
    text +=
        "\nRaise the limit of file sizes (ulimit -f) and run again; nothing half-written is "
        "visible.";
  } else if (kind_of(type) == ErrorKind::kIo &&
             (says("Permission denied") || says("Read-only file system"))) {
    code = "PERMISSION_DENIED";
    text += "\nCheck the rights of that file and its folder.";
  }
  if (type == DUCKDB_ERROR_OUT_OF_MEMORY) {
    code = "OUT_OF_MEMORY";
    // Without the engine's class and its advice, which names settings of its own.
    constexpr std::string_view kClass = "Out of Memory Error: ";
    if (text.starts_with(kClass)) text.erase(0, kClass.size());
    text.erase(std::min(text.find("\n\nPossible solutions"), text.size()));
    text +=
        "\nGive the program more memory (--memory-limit), fewer threads (--threads), or disk for "
        "spilling.";
  }
  return Error{kind_of(type), std::move(code), without_secrets(std::move(text)), {}};
}

Error engine_error(duckdb_result* result) {
  return engine_error(duckdb_result_error_type(result), duckdb_result_error(result));
}

duckdb_connection raw(Connection& connection) {
  return static_cast<EngineConnection&>(connection).raw_connection();
}

std::shared_ptr<FileSets> file_sets(Connection& connection) {
  return static_cast<EngineConnection&>(connection).database().file_sets();
}

std::shared_ptr<KeyFilters> key_filters(Connection& connection) {
  return static_cast<EngineConnection&>(connection).database().key_filters();
}

std::shared_ptr<RowIdCollectors> row_id_collectors(Connection& connection) {
  return static_cast<EngineConnection&>(connection).database().row_id_collectors();
}

std::shared_ptr<ZeroSignsOfColumns> zero_signs(Connection& connection) {
  return static_cast<EngineConnection&>(connection).database().zero_signs();
}

std::shared_ptr<Curves> curves(Connection& connection) {
  return static_cast<EngineConnection&>(connection).database().curves();
}

Status stream(Connection& connection, const std::string& sql,
              const std::function<Status(const std::vector<StreamColumn>&)>& on_columns,
              const std::function<Status(duckdb_data_chunk)>& on_chunk) {
  tell_observer(sql);
  Prepared prepared;
  if (duckdb_prepare(raw(connection), sql.c_str(), prepared.out()) != DuckDBSuccess) {
    return engine_error(DUCKDB_ERROR_INVALID, duckdb_prepare_error(prepared.get()));
  }
  Pending pending;
  if (duckdb_pending_prepared_streaming(prepared.get(), pending.out()) != DuckDBSuccess) {
    return engine_error(DUCKDB_ERROR_INVALID, duckdb_pending_error(pending.get()));
  }
  ResultHandle result;
  if (duckdb_execute_pending(pending.get(), result.out()) != DuckDBSuccess) {
    return engine_error(result.out());
  }
  std::vector<StreamColumn> columns;
  const idx_t count = duckdb_column_count(result.out());
  for (idx_t c = 0; c < count; ++c) {
    columns.push_back({duckdb_column_name(result.out(), c),
                       LogicalType(duckdb_column_logical_type(result.out(), c))});
  }
  SL_TRY(on_columns(columns));
  while (true) {
    const Chunk chunk(duckdb_fetch_chunk(result.raw()));
    if (chunk.get() == nullptr) break;
    SL_TRY(on_chunk(chunk.get()));
  }
  const char* message = duckdb_result_error(result.out());
  if (message != nullptr && *message != '\0') return engine_error(result.out());
  return {};
}

std::string quote_literal(const std::string& text) {
  std::string quoted = "'";
  bool has_zero = false;
  for (const char c : text) {
    if (c == '\0') {  // would end the whole statement
      quoted += "' || chr(0) || '";
      has_zero = true;
      continue;
    }
    if (c == '\'') quoted += '\'';
    quoted += c;
  }
  quoted += "'";
  return has_zero ? "(" + quoted + ")" : quoted;
}

std::string quote_name(const std::string& name) {
  std::string quoted = "\"";
  for (const char c : name) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace strandline::duck
