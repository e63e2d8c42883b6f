// CREATE SCHEMA, CREATE VIEW, DROP and USE: names of the warehouse without rows of their own.
#pragma once

#include <string>

#include "engine/context.h"

namespace strandline::engine {

Status create_schema(const Context& context, const sql::CreateSchema& statement);
// text is the whole statement, from which the view's query is kept as written.
Status create_view(Context& context, const sql::CreateView& statement, const std::string& text);
Status drop(Context& context, const sql::Drop& statement);
Status use(Context& context, const sql::Use& statement);

}  // namespace strandline::engine
