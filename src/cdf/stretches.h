// Plans of many changes in pieces that are read one after the other.
#pragma once

#include <cstdint>
#include <vector>

#include "cdf/plan.h"

namespace strandline::cdf {

// The plan's commits in order, as plans each of which has about so many rows to look at; one commit
// may have more. At least one plan, so that its columns are known. What files say of their size
// gives the rows: a guess.
std::vector<ChangePlan> split_plan(ChangePlan plan, int64_t max_rows);

}  // namespace strandline::cdf
