#include "duck/file_sets.h"

#include <algorithm>
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

  // Calls visit(file, begin, end) for each run of rows of one file; stops with an error when the
  // set is gone. A chunk is mostly one run: readers go through a file chunk by chunk.
  template <typename Visit>
  void for_each_run(const Visit& visit) const {
    const auto& registry =
        *static_cast<std::shared_ptr<FileSets>*>(duckdb_scalar_function_get_extra_info(info_));
    std::shared_ptr<const FileSet> set;
    int64_t set_number = 0;
    for (idx_t begin = 0; begin < count_;) {
      idx_t end = begin + 1;
      while (end < count_ && files_[end] == files_[begin] && sets_[end] == sets_[begin]) ++end;
      if (sets_[begin] != set_number) {
        set_number = sets_[begin];
        set = registry->find(set_number);
      }
      if (set == nullptr || files_[begin] >= set->size()) {
        duckdb_scalar_function_set_error(info_, "a query outlived the table scan it reads from");
        return;
      }
      visit((*set)[files_[begin]], begin, end);
      begin = end;
    }
  }

  const int64_t* rows() const { return rows_; }

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
  const FileArguments arguments(info, input);
  const int64_t* rows = arguments.rows();
  arguments.for_each_run([&](const ScanFile& file, idx_t begin, idx_t end) {
    const DeletedRows* deleted = file.deleted.get();
    if (deleted == nullptr) {
      std::fill(result + begin, result + end, true);
      return;
    }
    for (idx_t i = begin; i < end; ++i) {
      result[i] = !deleted->contains(static_cast<uint64_t>(rows[i]));
    }
  });
}

// A function whose value depends on the file alone.
template <typename T, auto value_of>
void by_file(duckdb_function_info info, duckdb_data_chunk input, duckdb_vector output) {
  auto* result = static_cast<T*>(duckdb_vector_get_data(output));
  FileArguments(info, input).for_each_run([&](const ScanFile& file, idx_t begin, idx_t end) {
    std::fill(result + begin, result + end, file.*value_of);
  });
}

void row_id(duckdb_function_info info, duckdb_data_chunk input, duckdb_vector output) {
  auto* result = static_cast<int64_t*>(duckdb_vector_get_data(output));
  const FileArguments arguments(info, input);
  const int64_t* rows = arguments.rows();
  arguments.for_each_run([&](const ScanFile& file, idx_t begin, idx_t end) {
    for (idx_t i = begin; i < end; ++i) result[i] = file.base_row_id + rows[i];
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

DeletedRows::DeletedRows(const delta::RowSet& rows) {
  // No file is so large; positions beyond would only cost memory.
  constexpr uint64_t kMaxRow = uint64_t{1} << 40;
  rows.for_each([this](uint64_t row) {
    if (row >= kMaxRow) return;
    const uint64_t block = row / kBlockRows;
    if (block >= blocks_.size()) blocks_.resize(block + 1);
    if (blocks_[block] == nullptr) blocks_[block] = std::make_unique<Block>();
    (*blocks_[block])[row % kBlockRows / 64] |= uint64_t{1} << (row % 64);
  });
}

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
  SL_TRY(register_function(connection, sets, "sl_file", false, DUCKDB_TYPE_INTEGER,
                           by_file<int32_t, &ScanFile::snapshot_index>));
  SL_TRY(register_function(connection, sets, "sl_group", false, DUCKDB_TYPE_BIGINT,
                           by_file<int64_t, &ScanFile::group>));
  SL_TRY(register_function(connection, sets, "sl_row_id", true, DUCKDB_TYPE_BIGINT, row_id));
  return register_function(connection, sets, "sl_row_version", false, DUCKDB_TYPE_BIGINT,
                           by_file<int64_t, &ScanFile::row_commit_version>);
}

}  // namespace strandline::duck
