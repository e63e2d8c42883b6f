// CREATE SCHEMA, CREATE VIEW, DROP and USE: names of the warehouse without rows of their own.
#pragma once

#include <string>

#include "engine/context.h"

namespace strandline::engine {

Status create_schema(const Context& context, const sql::CreateSchema& statement);
// text is the whole statement, from which the view's query is kept as written.
Status create_view(Context& context, const sql::CreateView& statement, const std::string& text);
// text is the whole statement, which says of DROP STREAMING TABLE and DROP MATERIALIZED VIEW what
// the table must be. Errors: NOT_A_STREAMING_TABLE, NOT_A_MATERIALIZED_VIEW, EXPECT_TABLE_NOT_VIEW,
// EXPECT_VIEW_NOT_TABLE, those of the warehouse.
Status drop(Context& context, const sql::Drop& statement, const std::string& text);
Status use(Context& context, const sql::Use& statement);

}  // namespace strandline::engine
