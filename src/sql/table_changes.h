// What a query says with table_changes and table_changes_by_path.
#pragma once

#include <strandline/result.h>

#include <optional>
#include <string>

#include "sql/query.h"

namespace strandline::sql {

// A range of a table's change data feed, both ends inclusive.
struct TableChanges {
  TableName table;  // of table_changes_by_path: is_path
  ExprPtr start;
  ExprPtr end;  // null: the newest version
};

// nullopt: the use is of something else. Errors, at the use: WRONG_NUM_ARGS,
// DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS, DELTA_UNSUPPORTED_EXPRESSION, INVALID_NAME
// (kInvalidArgument).
Result<std::optional<TableChanges>> table_changes_of(const TableUse& use);

// The name in "s.t", "`s`.`dotted.name`", "delta.`/path`". Errors: INVALID_NAME.
Result<TableName> parse_table_name(const std::string& text);

}  // namespace strandline::sql
