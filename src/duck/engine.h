// DuckDB's C API for the other files of this folder: handles, streaming results, vectors.
// Nothing outside duck includes this file (it brings duckdb.h).
#pragma once

#include <duckdb.h>

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "duck/connection.h"

namespace strandline::duck {

template <typename T>
class Registry;        // registry.h
struct FileSet;        // file_sets.h
class KeyFilterBits;   // key_filter.cc
class CurveRanges;     // curve.h
class RowIdCollector;  // row_id_function.h
class ZeroSigns;       // zero_signs.h

// Owns a C handle; destroy sets it to null.
template <typename T, void (*destroy)(T*)>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T raw) : raw_(raw) {}
  Handle(Handle&& other) noexcept : raw_(std::exchange(other.raw_, T{})) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~Handle() {
    if (raw_ != T{}) destroy(&raw_);
  }
  T get() const { return raw_; }
  T* out() { return &raw_; }

 private:
  T raw_{};
};

using LogicalType = Handle<duckdb_logical_type, duckdb_destroy_logical_type>;
using Value = Handle<duckdb_value, duckdb_destroy_value>;
using Chunk = Handle<duckdb_data_chunk, duckdb_destroy_data_chunk>;
using Prepared = Handle<duckdb_prepared_statement, duckdb_destroy_prepare>;
using Pending = Handle<duckdb_pending_result, duckdb_destroy_pending>;

// Owns a result.
class ResultHandle {
 public:
  ResultHandle() = default;
  ResultHandle(const ResultHandle&) = delete;
  ResultHandle& operator=(const ResultHandle&) = delete;
  ~ResultHandle() { duckdb_destroy_result(&raw_); }
  duckdb_result* out() { return &raw_; }
  duckdb_result& raw() { return raw_; }

 private:
  duckdb_result raw_{};
};

// A C string of the API, freed.
std::string take_string(char* text);

// Error of a failed call: kind by DuckDB's category, code from "[NAME] " if the text has one.
// type DUCKDB_ERROR_INVALID means unknown: the category is read from the text.
Error engine_error(duckdb_error_type type, const char* message);
Error engine_error(duckdb_result* result);

// The C connection behind a Connection.
// Tells the observer of statements, if there is one, what goes to the engine next.
void tell_observer(const std::string& sql);

duckdb_connection raw(Connection& connection);

// Makes a function of one value for each row known to the connection's database. Errors: kInternal.
Status register_scalar(duckdb_connection connection, const char* name,
                       std::initializer_list<duckdb_type> parameters, duckdb_type returned,
                       duckdb_scalar_function_t function);

// The registries of the connection's database.
std::shared_ptr<Registry<FileSet>> file_sets(Connection& connection);
std::shared_ptr<Registry<KeyFilterBits>> key_filters(Connection& connection);
std::shared_ptr<Registry<CurveRanges>> curves(Connection& connection);
std::shared_ptr<Registry<RowIdCollector>> row_id_collectors(Connection& connection);
std::shared_ptr<Registry<ZeroSigns>> zero_signs(Connection& connection);

// Runs one statement and hands over its chunks as they are made; nothing is kept. on_columns is
// called once, before the first chunk; the columns are there until stream returns, and so long the
// connection is busy.
struct StreamColumn {
  std::string name;
  LogicalType type;
};
Status stream(Connection& connection, const std::string& sql,
              const std::function<Status(const std::vector<StreamColumn>&)>& on_columns,
              const std::function<Status(duckdb_data_chunk)>& on_chunk);

// DuckDB's spelling of a type, as DESCRIBE prints it.
std::string spell_type(duckdb_logical_type type);
// The Delta type a value of this type fits without loss; nullopt when there is none.
std::optional<DataType> delta_type(duckdb_logical_type type);

// One value of a vector as a DuckDB value (for nested and rare types); row is the physical index.
Value vector_value(duckdb_vector vector, duckdb_logical_type type, idx_t row);
inline bool is_valid(const uint64_t* validity, idx_t row) {
  return validity == nullptr || ((validity[row / 64] >> (row % 64)) & 1) != 0;
}

// The characters of a VARCHAR or BLOB cell, unless null.
std::optional<std::string> text_at(duckdb_vector vector, idx_t row);
// Where the children of a list or map cell lie in the child vector.
inline duckdb_list_entry list_entry_at(duckdb_vector vector, idx_t row) {
  return static_cast<duckdb_list_entry*>(duckdb_vector_get_data(vector))[row];
}

}  // namespace strandline::duck
