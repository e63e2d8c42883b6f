// Names between a table's schema and its Parquet files: paths, physical names, rebuilt values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "delta/snapshot.h"

namespace strandline::duck {

// How the columns of a table's files are found (delta-protocol.md section 8).
enum class ColumnMode { kByLogicalName, kByPhysicalName, kById };
ColumnMode column_mode(const delta::Snapshot& snapshot);

// Name of a field in the table's files and statistics.
std::string file_name(const Field& field, ColumnMode mode);
// delta.columnMapping.id of a field. Errors: kCorrupt.
Result<int64_t> field_id(const Field& field);

// The type as the files hold it: members under their file names, void members left out. Errors:
// kUnsupported naming the column for types that are not read or written.
Result<DataType> file_type(const std::string& column, const DataType& type, ColumnMode mode);
// A value of file_type as a value of the logical type, and the way back. Names that are the same
// are left alone unless `rebuild`.
std::string to_logical(const std::string& expression, const DataType& type, ColumnMode mode,
                       bool rebuild = false);
std::string to_file(const std::string& expression, const DataType& type, ColumnMode mode);

// A partition value's text in the log as a SQL expression of its type (delta-protocol.md section
// 5).
std::string partition_literal(const std::optional<std::string>& value, const DataType& type);

// A path as read_parquet takes it: glob characters escaped, quoted as a literal.
std::string path_literal(const std::string& path);

}  // namespace strandline::duck
