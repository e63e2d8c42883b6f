// Which DuckDB does the work.
#pragma once

namespace strandline {

// Of the DuckDB library that runs, asked of it: "v1.5.5".
const char* engine_version();

}  // namespace strandline
