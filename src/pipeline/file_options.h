// Options of read_files: what may be written, what it means (sql.md).
#pragma once

#include <strandline/result.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/data_type.h"
#include "sql/query.h"

namespace strandline::pipeline {

enum class FileFormat { kJson, kCsv, kParquet };
const char* to_string(FileFormat format);

struct FileOptions {
  std::string path;      // as written
  std::string location;  // absolute, may hold pattern characters
  FileFormat format = FileFormat::kJson;
  std::optional<Schema> schema;  // declared
  Schema schema_hints;
  // Column that receives bad records and fields that do not fit, as JSON text; null elsewhere.
  std::optional<std::string> rescued_column;
  std::optional<std::string> name_pattern;  // of the file name alone
  bool recursive = true;
  bool allow_overwrites = false;
  int64_t max_files = 1000;       // of one batch
  int64_t max_bytes = 8ll << 30;  // of one batch; its first file may be larger
  // CSV
  bool header = false;
  bool infer_types = false;
  std::string separator = ",";
  std::string quote = "\"";
  std::string escape = "\"";
  std::string null_value;
  std::string comment;
  // JSON: values span lines. CSV: quoted line ends are always read.
  bool multi_line = false;
  SourcePlace place;
};

// From a use of read_files. root: folder for relative paths.
// Errors: all mistakes, with places; unknown options and formats by name.
std::optional<FileOptions> read_file_options(const sql::TableUse& use, const std::string& root,
                                             std::vector<Error>* errors);

}  // namespace strandline::pipeline
