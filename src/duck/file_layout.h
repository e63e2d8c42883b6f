// How the columns of a table lie in its files, where column mapping lets files differ: names inside
// structs that only their ids tell, and structs that share no member with the table's any more.
#pragma once

#include <string>
#include <vector>

#include "delta/snapshot.h"
#include "duck/connection.h"
#include "duck/names.h"

namespace strandline::duck {

// A column as some files have it.
struct FileColumn {
  Field field;       // the table's, with the files' names as physical names
  DataType in_file;  // what to read; may hold a member that the table lacks
  // The value must be taken apart and built anew, whatever its names are.
  bool rebuild = false;
};
using FileLayout = std::vector<FileColumn>;

// The columns as the schema says. Errors: kUnsupported naming the column for types that are not
// read.
Result<FileLayout> usual_layout(const std::vector<const Field*>& columns, ColumnMode mode);

// Files of this table may lie in another way.
bool may_differ(const delta::Snapshot& snapshot, const std::vector<const Field*>& columns);

// Layouts of files, and for each path which one it has. Reads the footer of every file.
struct FileLayouts {
  std::vector<FileLayout> layouts;
  std::vector<size_t> by_path;
};
Result<FileLayouts> inspect_files(Connection& connection, const std::vector<const Field*>& columns,
                                  ColumnMode mode, const std::vector<std::string>& paths);

}  // namespace strandline::duck
