// Connection: DuckDB through its C API, errors as values. The only door to the engine.
#pragma once

#include <strandline/result.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/data_type.h"

namespace strandline::duck {

struct DatabaseOptions {
  int64_t memory_limit_bytes = 0;  // of the whole process, aimed at; 0 = engine default
  int threads = 0;                 // 0 = all cores
  std::string temp_directory;      // spill; empty = a new one in TMPDIR, removed in the end
};

// One column of one row as text, for messages, small look-ups and tests.
using Cell = std::optional<std::string>;

struct ResultColumn {
  std::string name;
  DataType type;
  std::string engine_type;  // DuckDB's spelling, also for types that have no Delta counterpart
  // False: no Delta type holds these values without loss (HUGEINT, TIME, TIMESTAMP_NS, ...); type
  // is then VOID as a stand-in and the column cannot be written to a table without a cast.
  bool has_delta_type = true;
};

// A fully read, small result.
struct Rows {
  std::vector<ResultColumn> columns;
  std::vector<std::vector<Cell>> rows;  // DuckDB's VARCHAR cast of each value
};

class Connection;

// One in-memory DuckDB with time zone UTC, shared by its connections. Thread-safe.
class Database {
 public:
  static Result<std::shared_ptr<Database>> open(const DatabaseOptions& options);
  virtual ~Database() = default;
  virtual Result<std::unique_ptr<Connection>> connect() = 0;
};

// Not thread-safe, but interrupt() may be called from any thread.
// Errors of every call: kInvalidArgument (parser, binder, catalog), kInvalidData (conversion, out
// of range, error('...')), kIo, kCancelled (interrupted), kInternal; code is "ENGINE_ERROR" unless
// the text starts with "[NAME] ", which error('[NAME] ...') uses to pass a public name through.
class Connection {
 public:
  virtual ~Connection() = default;

  // Runs one or more statements; returns the number of changed rows of the last.
  virtual Result<int64_t> execute(const std::string& sql) = 0;
  virtual Result<Rows> query(const std::string& sql) = 0;
  // First cell of the first row, as integer; null or no row is 0.
  virtual Result<int64_t> query_int(const std::string& sql) = 0;
  // Names and types a query gives, without running it. An untyped NULL shows as INTEGER.
  virtual Result<std::vector<ResultColumn>> describe(const std::string& query_sql) = 0;
  virtual void interrupt() = 0;
  // 0..1, or negative when unknown.
  virtual double progress() = 0;
};

// Tells every text of this process that goes to the engine, before it does, for tests that look at
// what is asked of it; an empty observer ends that. Called from any thread, not by two at once.
void observe_statements(std::function<void(const std::string& sql)> observer);

// 'it''s' and "odd ""name""".
std::string quote_literal(const std::string& text);
std::string quote_name(const std::string& name);
// DuckDB spelling of a type ("BIGINT", "TIMESTAMP WITH TIME ZONE", "STRUCT(a INTEGER)"), and back.
std::string engine_type(const DataType& type);

}  // namespace strandline::duck
