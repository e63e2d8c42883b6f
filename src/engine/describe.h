// DESCRIBE: gives a query whose rows are the answer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "delta/column_rules.h"
#include "duck/connection.h"
#include "engine/context.h"

namespace strandline::engine {

Result<std::string> describe(const Context& context, const sql::Describe& statement);

// A view of the session or the warehouse, if the name is one.
Result<std::optional<catalog::View>> find_view(const Context& context, const sql::TableName& name);
Result<std::vector<duck::ResultColumn>> view_columns(const Context& context,
                                                     const sql::TableName& name);

std::optional<std::string> comment_of(const Field& field);
// DEFAULT ... or GENERATED ... as a column definition says it; empty for columns without.
std::string value_clause(const delta::ColumnRule& rule);

}  // namespace strandline::engine
