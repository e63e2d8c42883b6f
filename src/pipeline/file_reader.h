// Change files as relations of the engine: exact values or an error, never a cut one (sql.md).
#pragma once

#include <strandline/result.h>

#include <optional>
#include <string>
#include <vector>

#include "base/data_type.h"
#include "duck/connection.h"
#include "pipeline/checkpoint.h"
#include "pipeline/file_options.h"
#include "storage/store.h"

namespace strandline::pipeline {

// Columns a relation over files has, the rescued column included.
Schema file_columns(const FileOptions& options, const Schema& schema);
// Type of the hidden column _metadata.
DataType metadata_type();

struct FileRelationOptions {
  bool with_metadata = false;   // adds _metadata
  bool with_row_index = false;  // fills _metadata.row_index, which costs the engine its parallelism
};

// Parenthesised SELECT over the files (none: an empty relation). A value that its type cannot hold
// fails the query with code VALUE_OUT_OF_TYPE.
// Errors: kInvalidData for a CSV header that does not fit, kIo, kNotFound naming the file.
Result<std::string> file_relation(duck::Connection& connection, storage::Store& store,
                                  const FileOptions& options, const Schema& schema,
                                  const std::vector<ConsumedFile>& files,
                                  const FileRelationOptions& relation = {});

// What becomes of a new column of which the files have no value, and so tell no type.
struct WithoutValues {
  const Schema* before = nullptr;  // its type, where it has the column; else it is STRING
  bool wait = false;  // no columns at all, rather than STRING, while CSV files have headers alone
};

// Columns of files without a declared schema: those of `known` first, in their order, then new
// ones. Errors: kInvalidData "SCHEMA_CONFLICT" naming the column when known and new types do not
// fit.
Result<Schema> infer_schema(duck::Connection& connection, storage::Store& store,
                            const FileOptions& options, const std::vector<ConsumedFile>& files,
                            const Schema* known, const WithoutValues& without_values = {});

// After a statement over these files failed: the record that did it, with file and line, if it is
// one of them.
std::optional<Error> explain_failure(duck::Connection& connection, storage::Store& store,
                                     const FileOptions& options, const Schema& schema,
                                     const std::vector<ConsumedFile>& files, const Error& error);

}  // namespace strandline::pipeline
