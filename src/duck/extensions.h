// DuckDB's extensions, from files that are there already; nothing is fetched.
#pragma once

#include <strandline/result.h>

#include <string>

#include "duck/connection.h"

namespace strandline::duck {

// Of the engine's library, asked of it: "v1.5.5". An extension fits one version alone.
const char* library_version();

// A folder to look for <name>.duckdb_extension in, beside those of STRANDLINE_EXTENSIONS (a list
// with ':'). For the life of the process.
void add_extension_folder(const std::string& folder);

// Loads an extension into the connection's database: from those folders, else from where DuckDB
// keeps its own. purpose: "reading PostgreSQL". Errors: kNotFound JDBC_EXTENSION_MISSING.
Status load_extension(Connection& connection, const std::string& name, const std::string& purpose);

}  // namespace strandline::duck
