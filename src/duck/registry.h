// Things that SQL functions look up by number: a query's text carries the number, its owner the
// thing.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "base/error.h"
#include "duck/engine.h"

namespace strandline::duck {

// Thread-safe; one for each kind of thing and Database.
template <typename T>
class Registry {
 public:
  // The thing's number, from 1; never given twice.
  int64_t add(std::shared_ptr<const T> thing) {
    const std::unique_lock lock(mutex_);
    things_.emplace(++last_, std::move(thing));
    return last_;
  }
  void remove(int64_t number) {
    const std::unique_lock lock(mutex_);
    things_.erase(number);
  }
  // Null when there is no such thing any more.
  std::shared_ptr<const T> find(int64_t number) const {
    const std::shared_lock lock(mutex_);
    const auto found = things_.find(number);
    return found == things_.end() ? nullptr : found->second;
  }

 private:
  mutable std::shared_mutex mutex_;
  std::map<int64_t, std::shared_ptr<const T>> things_;
  int64_t last_ = 0;
};

// Where an argument is null: the function is not called and gives null; or it is.
enum class Nulls { kSkipped, kGiven };

// Makes a SQL function known to the connection's database. It finds its registry by registry_of.
template <typename T>
Status register_typed_function(duckdb_connection connection,
                               const std::shared_ptr<Registry<T>>& registry, const char* name,
                               const std::vector<duckdb_logical_type>& parameters,
                               duckdb_logical_type returns, duckdb_scalar_function_t function,
                               Nulls nulls = Nulls::kSkipped) {
  const Handle<duckdb_scalar_function, duckdb_destroy_scalar_function> made(
      duckdb_create_scalar_function());
  duckdb_scalar_function_set_name(made.get(), name);
  for (const duckdb_logical_type parameter : parameters)
    duckdb_scalar_function_add_parameter(made.get(), parameter);
  duckdb_scalar_function_set_return_type(made.get(), returns);
  if (nulls == Nulls::kGiven) duckdb_scalar_function_set_special_handling(made.get());
  duckdb_scalar_function_set_extra_info(
      made.get(), new std::shared_ptr<Registry<T>>(registry),
      [](void* owned) { delete static_cast<std::shared_ptr<Registry<T>>*>(owned); });
  duckdb_scalar_function_set_function(made.get(), function);
  if (duckdb_register_scalar_function(connection, made.get()) != DuckDBSuccess) {
    return internal_error("ENGINE_ERROR", "the engine does not take the function {}", name);
  }
  return {};
}

// The same for plain types.
template <typename T>
Status register_function(duckdb_connection connection, const std::shared_ptr<Registry<T>>& registry,
                         const char* name, const std::vector<duckdb_type>& parameters,
                         duckdb_type returns, duckdb_scalar_function_t function,
                         Nulls nulls = Nulls::kSkipped) {
  std::vector<LogicalType> owned;
  std::vector<duckdb_logical_type> types;
  for (const duckdb_type parameter : parameters) {
    owned.emplace_back(duckdb_create_logical_type(parameter));
    types.push_back(owned.back().get());
  }
  const LogicalType return_type(duckdb_create_logical_type(returns));
  return register_typed_function(connection, registry, name, types, return_type.get(), function,
                                 nulls);
}

template <typename T>
const Registry<T>& registry_of(duckdb_function_info info) {
  return **static_cast<std::shared_ptr<Registry<T>>*>(duckdb_scalar_function_get_extra_info(info));
}

// The values of a column of a function's input.
template <typename T>
const T* input_column(duckdb_data_chunk input, idx_t column) {
  return static_cast<const T*>(duckdb_vector_get_data(duckdb_data_chunk_get_vector(input, column)));
}

}  // namespace strandline::duck
