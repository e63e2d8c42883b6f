// OPTIMIZE, VACUUM and RESTORE: each gives a query whose rows are the answer.
#pragma once

#include <string>

#include "engine/context.h"

namespace strandline::engine {

// Deletes files that no kept version needs; the answer is the table's path, in a dry run the paths
// that would go. The setting spark.databricks.delta.retentionDurationCheck.enabled = false allows
// any retention.
Result<std::string> vacuum(const Context& context, const sql::Vacuum& statement);

// Merges small files, drops deleted rows, sorts (duck/optimize.h); the answer is the table's path
// and a struct of metrics. Tables of a pipeline can be optimized too: what they say stays.
Result<std::string> optimize(const Context& context, const sql::Optimize& statement);

// Takes a table back to an older version; the answer is a row of metrics. Tables of a pipeline and
// their states are refused. The setting spark.sql.files.ignoreMissingFiles = true goes on without
// files that are gone.
Result<std::string> restore(const Context& context, const sql::Restore& statement);

}  // namespace strandline::engine
