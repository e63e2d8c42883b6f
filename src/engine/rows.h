// Statements that change rows of a table. Each is one Delta commit or none.
#pragma once

#include <cstdint>

#include "engine/context.h"

namespace strandline::engine {

// How many rows a statement changed.
struct ChangedRows {
  int64_t inserted = 0;
  int64_t updated = 0;
  int64_t deleted = 0;
};

Result<ChangedRows> insert(const Context& context, const sql::Insert& statement);  // insert.cc
Result<ChangedRows> delete_rows(const Context& context, const sql::Delete& statement);
Result<ChangedRows> update_rows(const Context& context, const sql::Update& statement);
Result<ChangedRows> merge(const Context& context, const sql::Merge& statement);  // merge.cc
Status truncate(const Context& context, const sql::Truncate& statement);

// The errors that a statement has whatever rows there are; nothing is read or changed.
Status check_insert(const Context& context, const sql::Insert& statement);
Status check_update(const Context& context, const sql::Update& statement);
Status check_merge(const Context& context, const sql::Merge& statement);

}  // namespace strandline::engine
