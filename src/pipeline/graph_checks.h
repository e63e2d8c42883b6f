// What the datasets and flows of a pipeline may not say, as far as that is seen without data
// (auto-cdc.md sections 2 and 6, sql.md).
#pragma once

#include <string>
#include <vector>

#include "pipeline/graph.h"

namespace strandline::pipeline {

// Adds mistakes and warnings to `built`, whose datasets and flows are all there; notes on the way
// which views stream and which tables AUTO CDC writes.
void check_graph(const catalog::Warehouse& warehouse, BuiltGraph* built);

// " (did you mean 'users'?)" or nothing.
std::string suggestion(const std::string& name, const std::vector<std::string>& known);

}  // namespace strandline::pipeline
