// Ends of a range of a change data feed, as people write them.
#pragma once

#include <strandline/result.h>

#include <string>

#include "cdf/plan.h"
#include "duck/connection.h"
#include "sql/duckdb_printer.h"
#include "sql/table_changes.h"

namespace strandline::duck {

// "2026-01-31[ 12:00:00[.123]][ +01:00]", UTC without an offset. Errors: DELTA_TIMESTAMP_INVALID.
Result<cdf::Timestamp> parse_timestamp(Connection& connection, const std::string& text);

// A version, or a timestamp. Errors: DELTA_VERSION_INVALID, those of parse_timestamp.
Result<cdf::Bound> parse_bound(Connection& connection, const std::string& text);

// The range that a query asks for; options say what now() is. Errors, all kInvalidArgument:
// DELTA_CDC_NON_CONSTANT_ARGUMENT, DELTA_CDC_READ_NULL_RANGE_BOUNDARY,
// DELTA_UNSUPPORTED_EXPRESSION, those of parse_bound and of the printer.
Result<cdf::RangeRequest> change_range(Connection& connection, const sql::TableChanges& changes,
                                       const sql::PrintOptions& options);

}  // namespace strandline::duck
