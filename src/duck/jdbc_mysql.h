// Values of MySQL and MariaDB that the extension would make others of are sent as text, or as
// numbers, and checked here: those servers have no expression that fails with a text of one's own.
#pragma once

#include <strandline/result.h>

#include <optional>
#include <string>
#include <vector>

#include "duck/connection.h"

namespace strandline::duck {

struct MysqlRows {
  std::string query;  // in MySQL's SQL: all columns of the relation by their names
  // For each column, the expression here that gives its values or fails with VALUE_OUT_OF_TYPE;
  // nullopt: the column itself.
  std::vector<std::optional<std::string>> values;
};

// The rows of a relation (what follows FROM). database: the name it is attached by; columns: the
// relation's, as the engine describes them. Asks the server for types of columns.
Result<MysqlRows> checked_from_mysql(Connection& connection, const std::string& database,
                                     const std::string& relation,
                                     const std::vector<ResultColumn>& columns);

}  // namespace strandline::duck
