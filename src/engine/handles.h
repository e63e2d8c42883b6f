// What a session hands to C++ programs: results and tables.
#pragma once

#include <strandline/rows.h>
#include <strandline/table.h>

#include <functional>
#include <memory>
#include <string>

#include "duck/row_reader.h"
#include "engine/context.h"

namespace strandline::engine {

// sources: what the query reads from, kept as long as the result; may be null. explain: what is
// said of an error that comes while rows are read.
std::unique_ptr<RowStream> make_row_stream(std::unique_ptr<duck::RowReader> reader,
                                           std::shared_ptr<void> sources,
                                           std::function<Error(Error)> explain);

std::unique_ptr<Table> make_table(FoundTable found);

}  // namespace strandline::engine
