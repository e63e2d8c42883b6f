// Values of PostgreSQL that the extension would make others of are refused by PostgreSQL itself.
#pragma once

#include <strandline/result.h>

#include <optional>
#include <string>
#include <vector>

#include "duck/connection.h"

namespace strandline::duck {

// The query, in PostgreSQL's SQL, whose rows are those of the relation (what follows FROM) and
// which fails at a value that its column's type here does not hold, or that the extension cannot
// read; nullopt: the relation itself will do. engine_errors.cc reads what it fails with. database:
// the name it is attached by; columns: the relation's, as the engine describes them. Asks
// PostgreSQL for types of columns, and reads no row.
Result<std::optional<std::string>> checked_by_postgres(Connection& connection,
                                                       const std::string& database,
                                                       const std::string& relation,
                                                       const std::vector<ResultColumn>& columns);

}  // namespace strandline::duck
