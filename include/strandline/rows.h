// Typed results of a query: row by row for C++, or as Arrow batches.
#pragma once

#include <strandline/arrow.h>
#include <strandline/result.h>

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace strandline {

// One value of a row. Null; BOOLEAN; TINYINT, SMALLINT, INT, BIGINT as int64_t; FLOAT, DOUBLE;
// STRING, and BINARY byte by byte. Any other type (DECIMAL, DATE, TIMESTAMP, nested ones) is its
// text: exact, timestamps in UTC.
using Value = std::variant<std::monostate, bool, int64_t, double, std::string>;

struct Column {
  std::string name;
  std::string type;  // as SQL spells it: "DECIMAL(10,2)", "ARRAY<INT>"
};

// A result that is computed while it is read, from the first next() on. Lives on its own: it may
// outlive its session, whose other statements can run meanwhile. Not thread-safe, but for cancel().
class RowStream {
 public:
  virtual ~RowStream() = default;

  virtual const std::vector<Column>& columns() const = 0;
  // The next row, one value for each column; nullopt after the last. Errors: of the query
  // (kInvalidData, kIo, kCancelled, ...).
  virtual Result<std::optional<std::vector<Value>>> next() = 0;
  // Hands what was not read yet over as Arrow arrays, at most 2048 rows each: STRING is utf8,
  // DECIMAL decimal128, TIMESTAMP microseconds in UTC, BINARY binary, nested types list, struct
  // and map. The consumer calls out->release, before or after this object is gone. next() must not
  // be called any more. Errors of the query come as an errno value with get_last_error. Errors:
  // kInvalidArgument STREAM_HANDED_OVER on a second call.
  virtual Status to_arrow(ArrowArrayStream* out) = 0;
  // The last error of the Arrow stream, whole: the stream itself tells an errno value and a text.
  virtual std::optional<Error> failure() const = 0;
  // Stops the query; the reader gets kCancelled. From any thread.
  virtual void cancel() = 0;
};

}  // namespace strandline
