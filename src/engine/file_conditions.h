// Conditions of SQL as filters of a table's files.
#pragma once

#include <functional>
#include <optional>

#include "delta/file_filter.h"
#include "sql/table_conditions.h"

namespace strandline::engine {

// The value of an expression that reads no column, if it has one before the query runs.
using Constant = std::function<std::optional<delta::FilterLiteral>(const sql::Expr&)>;

// Files that may hold rows for which all conditions are true. What the filter cannot say (functions
// of columns, comparisons of two columns, subqueries) leaves no file out.
delta::FileFilter file_filter(const delta::Snapshot& snapshot, const sql::Conditions& conditions,
                              const Constant& constant);

}  // namespace strandline::engine
