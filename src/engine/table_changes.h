// The change data feed of tables named in SQL and on the command line.
#pragma once

#include <strandline/strandline.h>

#include <atomic>
#include <functional>
#include <string>

#include "cdf/plan.h"
#include "duck/render.h"
#include "engine/context.h"

namespace strandline::engine {

// The table of a name as text, with backquotes where needed: "s.t", "`s`.`dotted.name`",
// "delta.`/path`". Errors: TABLE_OR_VIEW_NOT_FOUND, DELTA_TABLE_ONLY_OPERATION for views,
// DELTA_MISSING_DELTA_TABLE for paths, INVALID_NAME.
Result<delta::Table> feed_table(const Context& context, const std::string& name);
Result<delta::Table> feed_table(const Context& context, const sql::TableName& name,
                                const catalog::Defaults& defaults);
// The table at a path. Errors: DELTA_MISSING_DELTA_TABLE.
Result<delta::Table> feed_table_at(const Context& context, const std::string& path);

// The setting under which ends after the newest commit are no errors.
bool tolerates_out_of_range(const Context& context);

// Prints the rows of some queries as one document.
using ShowRows = std::function<Status(const duck::NextQuery& next)>;

// See Session::changes. Stops, without an error, when `stop` is set.
Status show_changes(const Context& context, const ChangesOptions& options, const ShowRows& show,
                    const std::atomic<bool>& stop);

}  // namespace strandline::engine
