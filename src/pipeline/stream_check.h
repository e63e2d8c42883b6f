// What a query over a stream may do: each batch is computed alone, so everything that needs rows of
// other batches is refused by name (sql.md, streaming reads).
#pragma once

#include <strandline/result.h>

#include <functional>
#include <vector>

#include "sql/query.h"

namespace strandline::pipeline {

// Whether a table use gives a stream although STREAM is not written: a view over a stream.
using IsStreamingView = std::function<bool(const sql::TableUse&)>;

// Whether the query gives a stream. What it may not do with the stream is added to errors.
bool check_streaming(const sql::Query& query, const IsStreamingView& is_streaming_view,
                     std::vector<Error>* errors);

}  // namespace strandline::pipeline
