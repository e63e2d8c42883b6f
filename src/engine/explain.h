// EXPLAIN of queries and of statements that change rows.
#pragma once

#include <string>

#include "engine/context.h"

namespace strandline::engine {

// A query of one column, plan: for each Delta table that is read its version and which files are
// read and left out, then the engine's plan. A statement that changes rows is not run, nor is the
// source of MERGE: the columns whose keys leave out further files when it runs are named.
Result<std::string> explain(const Context& context, const sql::Explain& statement);

}  // namespace strandline::engine
