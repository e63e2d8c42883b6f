// ALTER TABLE and COMMENT ON: each is one Delta commit or none.
#pragma once

#include "engine/context.h"

namespace strandline::engine {

Status alter_table(const Context& context, const sql::AlterTable& statement);
Status comment_on(const Context& context, const sql::CommentOn& statement);

}  // namespace strandline::engine
