// SHOW: gives a query whose rows are the answer.
#pragma once

#include <string>

#include "engine/context.h"

namespace strandline::engine {

Result<std::string> show(const Context& context, const sql::Show& statement);

}  // namespace strandline::engine
