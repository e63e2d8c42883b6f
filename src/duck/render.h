// Results as text: table, CSV, JSON, JSON lines, Markdown.
//
// One text for each value, the same everywhere: integers and floats as numbers, decimals exact,
// dates and timestamps ISO 8601 (an instant in UTC with Z, TIMESTAMP_NTZ without), binary base64.
// JSON: numbers bare, the rest strings; NaN and infinities "NaN", "Infinity", "-Infinity"; structs
// and maps objects, lists arrays; null is null. In the other formats nested values are JSON text.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "duck/connection.h"

namespace strandline::duck {

enum class RenderFormat { kTable, kCsv, kJson, kNdjson, kMarkdown };

// "table", "csv", "json", "ndjson" or "markdown".
std::optional<RenderFormat> parse_render_format(std::string_view name);

struct RenderOptions {
  RenderFormat format = RenderFormat::kTable;
  // A table's columns are aligned over all its rows, so these are kept in memory; further rows are
  // counted, not shown, and a last line says so. The other formats stream.
  int64_t table_row_limit = 10'000;
};

// Takes a piece of output. An error stops the query and is returned.
using Sink = std::function<Status(std::string_view)>;

// Runs one query and hands its text over piece by piece. Returns the number of rows.
Result<int64_t> render(Connection& connection, const std::string& sql, const RenderOptions& options,
                       const Sink& sink);

// The next of several queries; nullopt: there is none any more. Called when the one before is done.
using NextQuery = std::function<Result<std::optional<std::string>>()>;
// The same of the rows of all of them, one after the other: one document. All have the columns of
// the first, and there is one.
Result<int64_t> render_all(Connection& connection, const NextQuery& next,
                           const RenderOptions& options, const Sink& sink);

// Columns that a terminal needs for UTF-8 text: wide East Asian characters and emoji take two,
// combining marks none.
size_t display_width(std::string_view text);

}  // namespace strandline::duck
