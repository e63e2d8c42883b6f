#pragma once

#include <vector>

#include "sql/query.h"

namespace strandline::sql {

// Calls that ask for the time (current_timestamp(), current_date, …), which differs from one run of
// the query to the next, in text order.
std::vector<Name> clock_calls(const Query& query);
std::vector<Name> clock_calls(const Expr& expr);

}  // namespace strandline::sql
