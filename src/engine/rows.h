// Statements that change rows of a table. Each is one Delta commit or none.
#pragma once

#include "engine/context.h"

namespace strandline::engine {

Status insert(const Context& context, const sql::Insert& statement);
Status delete_rows(const Context& context, const sql::Delete& statement);
Status update_rows(const Context& context, const sql::Update& statement);
Status truncate(const Context& context, const sql::Truncate& statement);

}  // namespace strandline::engine
