// Statements that change tables, views and schemas. Each is one Delta commit or none.
#pragma once

#include <cstdint>

#include "engine/context.h"

namespace strandline::engine {

Status create_schema(const Context& context, const sql::CreateSchema& statement);
Status create_table(const Context& context, const sql::CreateTable& statement);
// text is the whole statement, from which the view's query is kept as written.
Status create_view(Context& context, const sql::CreateView& statement, const std::string& text);
Status drop(Context& context, const sql::Drop& statement);
Status insert(const Context& context, const sql::Insert& statement);
Status delete_rows(const Context& context, const sql::Delete& statement);
Status update_rows(const Context& context, const sql::Update& statement);
Status truncate(const Context& context, const sql::Truncate& statement);
Status use(Context& context, const sql::Use& statement);

}  // namespace strandline::engine
