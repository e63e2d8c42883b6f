// Types of columns for the printer of queries.
#pragma once

#include "duck/connection.h"
#include "sql/duckdb_printer.h"

namespace strandline::duck {

// The columns of a query, with VOID for NULL, which the engine says is an INTEGER. Nothing is run.
Result<std::vector<ResultColumn>> describe_with_voids(Connection& connection,
                                                      const std::string& query);

// Asks the connection, which must live as long. Nothing is run. CHAR columns of described_type()
// are told by sql::kCharLengthKey.
sql::DescribeQuery describer(Connection& connection);

// The engine's type of a column in a relation without rows that is only described: a CHAR column
// has a type of its own there.
std::string described_type(const Field& field);

}  // namespace strandline::duck
