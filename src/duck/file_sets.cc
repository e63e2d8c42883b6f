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
      if (set == nullptr || files_[begin] >= set->files.size()) {
        duckdb_scalar_function_set_error(info_, "a query outlived the table scan it reads from");
        return;
      }
      visit(set->files[files_[begin]], begin, end);
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

// Calls visit(i, changed row) for each row of [begin, end) that is among them.
template <typename Visit>
void for_each_changed(const ChangedRows& changed, const int64_t* rows, idx_t begin, idx_t end,
                      const Visit& visit) {
  const auto find = [&](ChangedRows::const_iterator from, uint64_t row) {
    return std::lower_bound(from, changed.end(), row, [](const ChangedRow& one, uint64_t wanted) {
      return one.row() < wanted;
    });
  };
  const auto first = static_cast<uint64_t>(rows[begin]);
  auto at = find(changed.begin(), first);
  if (static_cast<uint64_t>(rows[end - 1]) - first == end - 1 - begin) {
    // Readers go on row by row.
    for (; at != changed.end() && at->row() - first < end - begin; ++at)
      visit(begin + (at->row() - first), *at);
    return;
  }
  for (idx_t i = begin; i < end; ++i) {
    const auto row = static_cast<uint64_t>(rows[i]);
    if (i > begin && rows[i] < rows[i - 1]) at = find(changed.begin(), row);
    // Mostly it is the next one: what reads this has left out the other rows.
    if (at != changed.end() && at->row() < row) ++at;
    if (at != changed.end() && at->row() < row) at = find(at, row);
    if (at != changed.end() && at->row() == row) visit(i, *at);
  }
}

void live(duckdb_function_info info, duckdb_data_chunk input, duckdb_vector output) {
  auto* result = static_cast<bool*>(duckdb_vector_get_data(output));
  const FileArguments arguments(info, input);
  const int64_t* rows = arguments.rows();
  arguments.for_each_run([&](const ScanFile& file, idx_t begin, idx_t end) {
    std::fill(result + begin, result + end, file.changed == nullptr);
    if (file.changed != nullptr) {
      for_each_changed(*file.changed, rows, begin, end,
                       [&](idx_t i, const ChangedRow&) { result[i] = true; });
    }
    const DeletedRows* deleted = file.deleted.get();
    if (deleted == nullptr) return;
    for (idx_t i = begin; i < end; ++i) {
      result[i] = result[i] && !deleted->contains(static_cast<uint64_t>(rows[i]));
    }
  });
}

void row_change(duckdb_function_info info, duckdb_data_chunk input, duckdb_vector output) {
  auto* result = static_cast<int64_t*>(duckdb_vector_get_data(output));
  const FileArguments arguments(info, input);
  const int64_t* rows = arguments.rows();
  arguments.for_each_run([&](const ScanFile& file, idx_t begin, idx_t end) {
    std::fill(result + begin, result + end, static_cast<int64_t>(file.change));
    if (file.changed == nullptr) return;
    for_each_changed(*file.changed, rows, begin, end, [&](idx_t i, const ChangedRow& one) {
      result[i] = static_cast<int64_t>(one.change());
    });
  });
}

// A function of a change's number.
template <auto value_of>
void by_change(duckdb_function_info info, duckdb_data_chunk input, duckdb_vector output) {
  auto* result = static_cast<int64_t*>(duckdb_vector_get_data(output));
  const auto* sets = input_column<int64_t>(input, 0);
  const auto* changes = input_column<int64_t>(input, 1);
  const idx_t count = duckdb_data_chunk_get_size(input);
  std::shared_ptr<const FileSet> set;
  int64_t set_number = 0;
  for (idx_t i = 0; i < count; ++i) {
    if (sets[i] != set_number) {
      set_number = sets[i];
      set = registry_of<FileSet>(info).find(set_number);
    }
    const auto change = static_cast<size_t>(changes[i]);
    if (set == nullptr || set->feed == nullptr || change >= set->feed->changes.size()) {
      duckdb_scalar_function_set_error(info, "a query outlived the change feed it reads from");
      return;
    }
    result[i] = static_cast<int64_t>(set->feed->changes[change].*value_of);
  }
}

// A function whose value depends on the file alone.
template <typename T, auto value_of>
void by_file(duckdb_function_info info, duckdb_data_chunk input, duckdb_vector output) {
  auto* result = static_cast<T*>(duckdb_vector_get_data(output));
  FileArguments(info, input).for_each_run([&](const ScanFile& file, idx_t begin, idx_t end) {
    std::fill(result + begin, result + end, static_cast<T>(file.*value_of));
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
  SL_TRY(register_function(connection, sets, "sl_file_change", by_index, DUCKDB_TYPE_BIGINT,
                           by_file<int64_t, &ScanFile::change>));
  SL_TRY(
      register_function(connection, sets, "sl_row_change", by_row, DUCKDB_TYPE_BIGINT, row_change));
  const std::vector<duckdb_type> by_number = {DUCKDB_TYPE_BIGINT, DUCKDB_TYPE_BIGINT};
  SL_TRY(register_function(connection, sets, "sl_change_kind", by_number, DUCKDB_TYPE_BIGINT,
                           by_change<&FeedChange::kind>));
  SL_TRY(register_function(connection, sets, "sl_change_version", by_number, DUCKDB_TYPE_BIGINT,
                           by_change<&FeedChange::version>));
  return register_function(connection, sets, "sl_change_time", by_number, DUCKDB_TYPE_BIGINT,
                           by_change<&FeedChange::timestamp_us>);
}

}  // namespace strandline::duck
