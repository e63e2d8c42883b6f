// A query's result while it is computed: rows as values, or Arrow arrays.
#pragma once

#include <strandline/rows.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "duck/connection.h"

namespace strandline::duck {

class RowReader {
 public:
  virtual ~RowReader() = default;
  // Checks the query, which runs once rows are asked for. The connection serves this result alone.
  static Result<std::unique_ptr<RowReader>> open(std::unique_ptr<Connection> connection,
                                                 const std::string& sql);
  // The next of several results of the same columns; null: there is none any more.
  using Next = std::function<Result<std::unique_ptr<RowReader>>()>;
  // The rows of all of them, one after the other. The first is opened at once, and there is one;
  // each other one when the rows before it are read.
  static Result<std::unique_ptr<RowReader>> chain(Next next);

  virtual const std::vector<ResultColumn>& columns() const = 0;
  virtual Result<std::optional<std::vector<strandline::Value>>> next_row() = 0;
  virtual Status arrow_schema(ArrowSchema* out) = 0;
  // The rows left of the present batch, then batch after batch; release is null after the last.
  virtual Status next_array(ArrowArray* out) = 0;
  // From any thread.
  virtual void interrupt() = 0;
};

// Reads the whole stream into a table of the engine's database, which its connections share, and
// releases the stream. Errors: kInvalidArgument ARROW_STREAM_FAILED, those of the engine.
Status load_arrow(Connection& connection, ArrowArrayStream* stream, const std::string& table);

}  // namespace strandline::duck
