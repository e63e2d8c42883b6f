// What must hold between the stages of a batch whatever the data: rows in are rows out. Where it
// does not, Strandline or the engine in it is at fault, and nothing is committed.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace strandline {

inline constexpr const char* kInternalInvariant = "INTERNAL_INVARIANT";

// Ends the message.
inline constexpr const char* kReportInvariant =
    "; nothing was written. This is a fault of Strandline or of the engine in it, not of the data: "
    "please report it with this message and the output of strandline --version. Running again is "
    "safe";

// kInternal, of two counts that should be equal: "stage write of /lake/t: 5 rows counted, 7
// written". where: the stage and the table's path.
inline Error invariant_error(const std::string& where, int64_t expected, const std::string& of,
                             int64_t found, const std::string& what) {
  return internal_error(kInternalInvariant, "stage {}: {} {}, but {} {}{}", where, expected, of,
                        found, what, kReportInvariant);
}

}  // namespace strandline
