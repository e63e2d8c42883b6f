// Tables of other databases by JDBC URL, read with DuckDB's extensions for PostgreSQL, MySQL and
// SQLite. Options are those of Spark's JDBC source.
#pragma once

#include <strandline/result.h>

#include <map>
#include <string>

#include "duck/connection.h"
#include "sql/query.h"

namespace strandline::duck {

enum class JdbcSystem { kPostgres, kMysql, kSqlite };

// What to read, checked.
struct JdbcRead {
  JdbcSystem system = JdbcSystem::kPostgres;
  std::string shown;     // the URL without its parameters, for messages
  std::string host;      // kSqlite: empty
  int port = 0;          // 0: the system's own
  std::string database;  // kSqlite: the file
  std::string user;
  std::string password;
  std::string settings;  // for the connection: "sslmode=require", in the extension's spelling
  std::string relation;  // what follows FROM, in that system's SQL; kSqlite: a table's name
};

// Option names fold; the password is the password. Errors: JDBC_OPTION, JDBC_URL (kInvalidArgument
// or kUnsupported), which name the option and what is accepted.
Result<JdbcRead> jdbc_read(const std::map<std::string, std::string>& options);

// Of read_jdbc(url => '...', dbtable => '...', user => '...', password => secret('name')).
// directory: where relative paths of SQLite files begin. Errors: as above with the place, kNotFound
// SECRET_NOT_FOUND; a password that stands in the text is refused.
Result<JdbcRead> jdbc_read(const sql::TableUse& use, const std::string& directory);

// Connects and gives a parenthesised SELECT of the rows as they are when it runs. Columns of types
// that Delta lacks come as the next wider one or as text; numeric without a precision as
// DECIMAL(38,18). Errors: kNotFound JDBC_EXTENSION_MISSING; kIo JDBC_CONNECTION_FAILED;
// kInvalidArgument JDBC_QUERY_FAILED. No error text holds the password.
Result<std::string> jdbc_relation(Connection& connection, const JdbcRead& read);

}  // namespace strandline::duck
