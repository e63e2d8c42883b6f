// Types of columns for the printer of queries.
#pragma once

#include "duck/connection.h"
#include "sql/duckdb_printer.h"

namespace strandline::duck {

// The columns of a query, with VOID for NULL, which the engine says is an INTEGER. Nothing is run.
Result<std::vector<ResultColumn>> describe_with_voids(Connection& connection,
                                                      const std::string& query);

// Asks the connection, which must live as long. Nothing is run.
sql::DescribeQuery describer(Connection& connection);

}  // namespace strandline::duck
