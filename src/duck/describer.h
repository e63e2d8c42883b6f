// Types of columns for the printer of queries.
#pragma once

#include "duck/connection.h"
#include "sql/duckdb_printer.h"

namespace strandline::duck {

// Asks the connection, which must live as long. Nothing is run.
sql::DescribeQuery describer(Connection& connection);

}  // namespace strandline::duck
