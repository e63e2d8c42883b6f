// Reading tables of other databases: read_jdbc(...) in SQL, spark.read.format("jdbc") in Python.
#pragma once

#include <strandline/result.h>

#include <map>
#include <string>

namespace strandline {

// Keeps a secret under a name for the life of the process. SQL names it: password =>
// secret('name'). A name that nobody kept is that of an environment variable.
void keep_secret(const std::string& name, const std::string& value);

// The text with every secret that was kept or asked for replaced by ***.
std::string without_secrets(std::string text);

// Checks options of read_jdbc (url, dbtable, query, user, password, ...; names fold) without
// connecting. Errors: kInvalidArgument, kUnsupported naming the option or the URL's database.
Status check_jdbc(const std::map<std::string, std::string>& options);

}  // namespace strandline
