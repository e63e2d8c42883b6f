// What the engine says of a statement, in the words and under the public names that Spark's users
// know.
#pragma once

#include <string>

#include "base/error.h"
#include "sql/ast.h"

namespace strandline::duck {

// An error of the code ENGINE_ERROR by the table of messages, at the place of the name it speaks of
// where the statement has that, at the one expression that can have failed so, else at its own
// place, else at the statement's. The text that the engine was asked with is never shown. Other
// errors only get a place.
Error in_users_words(Error error, const sql::Statement& statement);
// The same of a query without a statement around it, which may be null, and the place that stands
// for the whole.
Error in_users_words(Error error, const sql::QueryPtr& query, const SourcePlace& place);

// The engine's name of a type as SQL spells it here: VARCHAR is STRING.
std::string spark_type(const std::string& engine_type);

}  // namespace strandline::duck
