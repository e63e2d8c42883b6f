// A check of types without running anything.
#pragma once

namespace strandline::duck {

// An SQL function of one BOOLEAN for Connection::describe: a query that gives it anything else does
// not bind.
inline constexpr const char* kBooleanOnly = "sl_boolean_only";

}  // namespace strandline::duck
