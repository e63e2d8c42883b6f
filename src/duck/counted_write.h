// write_files() for new rows, which tells what became of their values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "duck/delta_io.h"

namespace strandline::duck {

// As write_files(); *empty_partition_rows grows by the rows with an empty value in a partition
// column, which is null in the table (delta/empty_partitions.h).
Result<std::vector<delta::AddFile>> write_new_files(
    Connection& connection, const delta::Table& table, const delta::Snapshot& definition,
    const std::string& query, const WriteOptions& options, int64_t* empty_partition_rows);

}  // namespace strandline::duck
