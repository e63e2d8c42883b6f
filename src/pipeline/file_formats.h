// What each format of change files is read by. Private to file_reader.cc and the files of the
// formats.
#pragma once

#include <strandline/result.h>

#include <optional>
#include <string>
#include <vector>

#include "base/data_type.h"
#include "duck/connection.h"
#include "pipeline/checkpoint.h"
#include "pipeline/exact_cast.h"
#include "pipeline/file_options.h"
#include "storage/store.h"

namespace strandline::pipeline {

// What a relation has beside the columns: __strandline_path, the file's; __strandline_n, a number
// that grows with the rows of a file.
struct RowPlaces {
  bool path = false;
  bool index = false;
  std::string names() const {
    return std::string(path ? ", __strandline_path" : "") + (index ? ", __strandline_n" : "");
  }
};

// Where and what is read.
struct FilesToRead {
  duck::Connection& connection;
  storage::Store& store;
  const FileOptions& options;
  const std::vector<ConsumedFile>& files;
};

// Parenthesised SELECT of the columns that file_columns() names; empty: the files hold no record.
Result<std::string> csv_relation(const FilesToRead& read, const Schema& schema, RowPlaces places);
Result<std::string> json_relation(const FilesToRead& read, const Schema& schema, RowPlaces places);
Result<std::string> parquet_relation(const FilesToRead& read, const Schema& schema,
                                     RowPlaces places);

// Columns that the files have; kVoid where only nulls were seen. no_rows: types were looked for,
// and the files have headers alone.
Result<Schema> csv_columns(const FilesToRead& read, bool* no_rows);
Result<Schema> json_columns(const FilesToRead& read);
Result<Schema> parquet_columns(const FilesToRead& read);

// As explain_failure.
std::optional<Error> explain_csv(const FilesToRead& read, const Schema& schema, const Error& error);
std::optional<Error> explain_json(const FilesToRead& read, const Schema& schema);

// --- shared by them -----------------------------------------------------------------------------

// As the engine's readers take it.
std::string path_list(const std::vector<ConsumedFile>& files);
bool is_compressed(const std::string& path);
// SQL that fails with VALUE_OUT_OF_TYPE; value: an expression.
std::string value_error(const std::string& column, const DataType& type, const std::string& value);
// One select list over raw columns r0, r1, … that hold values as TextKind says.
std::string exact_columns(const Schema& schema, TextKind kind);
Error at_line(Error error, const std::string& file, int64_t line);

}  // namespace strandline::pipeline
