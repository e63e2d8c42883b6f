// collect_rows: (file, row) pairs of a query as row sets.
#include <algorithm>

#include "base/error.h"
#include "duck/delta_io.h"
#include "duck/engine.h"

namespace strandline::duck {
namespace {

Status check_columns(const std::vector<StreamColumn>& columns) {
  if (columns.size() == 2 && duckdb_get_type_id(columns[0].type.get()) == DUCKDB_TYPE_INTEGER &&
      duckdb_get_type_id(columns[1].type.get()) == DUCKDB_TYPE_BIGINT) {
    return {};
  }
  return internal_error("COLLECT_ROWS_COLUMNS",
                        "a query of row positions must give (INTEGER file, BIGINT row)");
}

}  // namespace

Result<std::map<size_t, delta::RowSet>> collect_rows(Connection& connection, const std::string& sql,
                                                     int64_t* listed) {
  std::map<size_t, delta::RowSet> sets;
  int64_t total = 0;
  const auto on_chunk = [&](duckdb_data_chunk chunk) -> Status {
    const duckdb_vector file_vector = duckdb_data_chunk_get_vector(chunk, 0);
    const duckdb_vector row_vector = duckdb_data_chunk_get_vector(chunk, 1);
    const auto* files = static_cast<const int32_t*>(duckdb_vector_get_data(file_vector));
    const auto* rows = static_cast<const uint64_t*>(duckdb_vector_get_data(row_vector));
    const idx_t count = duckdb_data_chunk_get_size(chunk);
    const uint64_t* file_validity = duckdb_vector_get_validity(file_vector);
    const uint64_t* row_validity = duckdb_vector_get_validity(row_vector);
    for (idx_t i = 0; i < count; ++i) {
      if (!is_valid(file_validity, i) || !is_valid(row_validity, i) || files[i] < 0 ||
          static_cast<int64_t>(rows[i]) < 0) {
        return internal_error("COLLECT_ROWS_NULL", "a row position is null or negative");
      }
    }
    total += static_cast<int64_t>(count);
    // Rows of one file mostly come together: add whole runs.
    for (idx_t begin = 0; begin < count;) {
      idx_t end = begin + 1;
      while (end < count && files[end] == files[begin]) ++end;
      sets[static_cast<size_t>(files[begin])].add_many(rows + begin, end - begin);
      begin = end;
    }
    return {};
  };
  SL_TRY(stream(connection, sql, check_columns, on_chunk));
  if (listed != nullptr) *listed = total;
  return sets;
}

}  // namespace strandline::duck
