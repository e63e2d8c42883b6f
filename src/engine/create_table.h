// CREATE [OR REPLACE] TABLE [AS query]: one Delta commit or none.
#pragma once

#include "engine/context.h"

namespace strandline::engine {

Status create_table(const Context& context, const sql::CreateTable& statement);

}  // namespace strandline::engine
