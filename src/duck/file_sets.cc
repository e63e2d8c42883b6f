#include "duck/file_sets.h"

#include <algorithm>
namespace strandline::duck {
namespace {

// The input of one call: constant set number, file index and, for some functions, row position.
class FileArguments {
 public:
  FileArguments(duckdb_function_info info, duckdb_data_chunk input)
      : info_(info),
        count_(duckdb_data_chunk_get_size(input)),
        sets_(input_column<int64_t>(input, 0)),
        files_(input_column<uint64_t>(input, 1)),
        rows_(duckdb_data_chunk_get_column_count(input) > 2 ? input_column<int64_t>(input, 2)
                                                            : nullptr) {}

  // Calls visit(file, begin, end) for each run of rows of one file; stops with an error when the
  // set is gone. A chunk is mostly one run: readers go through a file chunk by chunk.
  template <typename Visit>
  void for_each_run(const Visit& visit) const {
    const FileSets& registry = registry_of<FileSet>(info_);
    std::shared_ptr<const FileSet> set;
    int64_t set_number = 0;
    for (idx_t begin = 0; begin < count_;) {
      idx_t end = begin + 1;
      while (end < count_ && files_[end] == files_[begin] && sets_[end] == sets_[begin]) ++end;
      if (sets_[begin] != set_number) {
        set_number = sets_[begin];
        set = registry.find(set_number);
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
    const delta::RowSet* only = file.only.get();
    if (deleted == nullptr && only == nullptr) {
      std::fill(result + begin, result + end, true);
      return;
    }
    for (idx_t i = begin; i < end; ++i) {
      const auto row = static_cast<uint64_t>(rows[i]);
      result[i] = (deleted == nullptr || !deleted->contains(row)) &&
                  (only == nullptr || only->contains(row));
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

Status register_file_functions(duckdb_connection connection,
                               const std::shared_ptr<FileSets>& sets) {
  const std::vector<duckdb_type> by_row = {DUCKDB_TYPE_BIGINT, DUCKDB_TYPE_UBIGINT,
                                           DUCKDB_TYPE_BIGINT};
  const std::vector<duckdb_type> by_index = {DUCKDB_TYPE_BIGINT, DUCKDB_TYPE_UBIGINT};
  SL_TRY(register_function(connection, sets, "sl_live", by_row, DUCKDB_TYPE_BOOLEAN, live));
  SL_TRY(register_function(connection, sets, "sl_row_id", by_row, DUCKDB_TYPE_BIGINT, row_id));
  SL_TRY(register_function(connection, sets, "sl_file", by_index, DUCKDB_TYPE_INTEGER,
                           by_file<int32_t, &ScanFile::snapshot_index>));
  SL_TRY(register_function(connection, sets, "sl_group", by_index, DUCKDB_TYPE_BIGINT,
                           by_file<int64_t, &ScanFile::group>));
  SL_TRY(register_function(connection, sets, "sl_row_version", by_index, DUCKDB_TYPE_BIGINT,
                           by_file<int64_t, &ScanFile::row_commit_version>));
  SL_TRY(register_function(connection, sets, "sl_is_insert", by_index, DUCKDB_TYPE_BOOLEAN,
                           by_file<bool, &ScanFile::is_insert>));
  SL_TRY(register_function(connection, sets, "sl_feed_version", by_index, DUCKDB_TYPE_BIGINT,
                           by_file<int64_t, &ScanFile::feed_version>));
  return register_function(connection, sets, "sl_feed_time", by_index, DUCKDB_TYPE_BIGINT,
                           by_file<int64_t, &ScanFile::feed_time_us>);
}

}  // namespace strandline::duck
