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

// An expression of an AUTO CDC clause: it looks at one event, so window functions, aggregates,
// generators and subqueries are added to errors. place: of the clause, where the expression has
// none.
void check_row_expression(const sql::Expr& expr, const char* clause, const SourcePlace& place,
                          std::vector<Error>* errors);

}  // namespace strandline::pipeline
