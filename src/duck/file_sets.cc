#include "duck/file_sets.h"

#include <mutex>
#include <utility>

#include "base/error.h"
#include "duck/engine.h"

namespace strandline::duck {
namespace {

using ScalarFunction = Handle<duckdb_scalar_function, duckdb_destroy_scalar_function>;

// The input of one call: constant set number, file index and, for some functions, row position.
class FileArguments {
 public:
  FileArguments(duckdb_function_info info, duckdb_data_chunk input)
      : info_(info),
        count_(duckdb_data_chunk_get_size(input)),
        sets_(column<int64_t>(input, 0)),
        files_(column<uint64_t>(input, 1)),
        rows_(duckdb_data_chunk_get_column_count(input) > 2 ? column<int64_t>(input, 2) : nullptr) {
  }

  // Calls visit(i, file, row) for each row of the chunk; stops with an error when a set is gone.
  template <typename Visit>
  void for_each(const Visit& visit) const {
    const auto& registry =
        *static_cast<std::shared_ptr<FileSets>*>(duckdb_scalar_function_get_extra_info(info_));
    std::shared_ptr<const FileSet> set;
    int64_t set_number = 0;
    for (idx_t i = 0; i < count_; ++i) {
      if (sets_[i] != set_number) {
        set_number = sets_[i];
        set = registry->find(set_number);
      }
      if (set == nullptr || files_[i] >= set->size()) {
        duckdb_scalar_function_set_error(info_, "a query outlived the table scan it reads from");
        return;
      }
      visit(i, (*set)[files_[i]], rows_ == nullptr ? 0 : rows_[i]);
    }
  }

 private:
  template <typename T>
  static const T* column(duckdb_data_chunk input, idx_t index) {
    return static_cast<const T*>(
        duckdb_vector_get_data(duckdb_data_chunk_get_vector(input, index)));
  }

  duckdb_function_info info_;
  idx_t count_;
  const int64_t* sets_;
  const uint64_t* files_;
  const int64_t* rows_;
};

void live(duckdb_function_info info, duckdb_data_chunk input, duckdb_vector output) {
  auto* result = static_cast<bool*>(duckdb_vector_get_data(output));
  FileArguments(info, input).for_each([&](idx_t i, const ScanFile& file, int64_t row) {
    result[i] = file.deleted == nullptr || !file.deleted->contains(static_cast<uint64_t>(row));
  });
}

void file(duckdb_function_info info, duckdb_data_chunk input, duckdb_vector output) {
  auto* result = static_cast<int32_t*>(duckdb_vector_get_data(output));
  FileArguments(info, input).for_each([&](idx_t i, const ScanFile& scanned, int64_t) {
    result[i] = scanned.snapshot_index;
  });
}

void group(duckdb_function_info info, duckdb_data_chunk input, duckdb_vector output) {
  auto* result = static_cast<int64_t*>(duckdb_vector_get_data(output));
  FileArguments(info, input).for_each([&](idx_t i, const ScanFile& scanned, int64_t) {
    result[i] = scanned.group;
  });
}

void row_id(duckdb_function_info info, duckdb_data_chunk input, duckdb_vector output) {
  auto* result = static_cast<int64_t*>(duckdb_vector_get_data(output));
  FileArguments(info, input).for_each([&](idx_t i, const ScanFile& scanned, int64_t row) {
    result[i] = scanned.base_row_id + row;
  });
}

void row_version(duckdb_function_info info, duckdb_data_chunk input, duckdb_vector output) {
  auto* result = static_cast<int64_t*>(duckdb_vector_get_data(output));
  FileArguments(info, input).for_each([&](idx_t i, const ScanFile& scanned, int64_t) {
    result[i] = scanned.row_commit_version;
  });
}

Status register_function(duckdb_connection connection, const std::shared_ptr<FileSets>& sets,
                         const char* name, bool takes_row, duckdb_type returns,
                         duckdb_scalar_function_t function) {
  const ScalarFunction made(duckdb_create_scalar_function());
  const LogicalType bigint(duckdb_create_logical_type(DUCKDB_TYPE_BIGINT));
  const LogicalType ubigint(duckdb_create_logical_type(DUCKDB_TYPE_UBIGINT));
  const LogicalType return_type(duckdb_create_logical_type(returns));
  duckdb_scalar_function_set_name(made.get(), name);
  duckdb_scalar_function_add_parameter(made.get(), bigint.get());
  duckdb_scalar_function_add_parameter(made.get(), ubigint.get());
  if (takes_row) duckdb_scalar_function_add_parameter(made.get(), bigint.get());
  duckdb_scalar_function_set_return_type(made.get(), return_type.get());
  duckdb_scalar_function_set_extra_info(
      made.get(), new std::shared_ptr<FileSets>(sets),
      [](void* owned) { delete static_cast<std::shared_ptr<FileSets>*>(owned); });
  duckdb_scalar_function_set_function(made.get(), function);
  if (duckdb_register_scalar_function(connection, made.get()) != DuckDBSuccess) {
    return internal_error("ENGINE_ERROR", "the engine does not take the function {}", name);
  }
  return {};
}

}  // namespace

int64_t FileSets::add(FileSet files) {
  auto shared = std::make_shared<const FileSet>(std::move(files));
  const std::unique_lock lock(mutex_);
  sets_.emplace(++last_, std::move(shared));
  return last_;
}

void FileSets::remove(int64_t set) {
  const std::unique_lock lock(mutex_);
  sets_.erase(set);
}

std::shared_ptr<const FileSet> FileSets::find(int64_t set) const {
  const std::shared_lock lock(mutex_);
  const auto found = sets_.find(set);
  return found == sets_.end() ? nullptr : found->second;
}

Status register_file_functions(duckdb_connection connection,
                               const std::shared_ptr<FileSets>& sets) {
  SL_TRY(register_function(connection, sets, "sl_live", true, DUCKDB_TYPE_BOOLEAN, live));
  SL_TRY(register_function(connection, sets, "sl_file", false, DUCKDB_TYPE_INTEGER, file));
  SL_TRY(register_function(connection, sets, "sl_group", false, DUCKDB_TYPE_BIGINT, group));
  SL_TRY(register_function(connection, sets, "sl_row_id", true, DUCKDB_TYPE_BIGINT, row_id));
  return register_function(connection, sets, "sl_row_version", false, DUCKDB_TYPE_BIGINT,
                           row_version);
}

}  // namespace strandline::duck
