// AUTO CDC from a table's change data feed (auto-cdc.md section 11).
#pragma once

#include <strandline/result.h>

#include <string>
#include <vector>

#include "base/data_type.h"
#include "cdc/plan.h"

namespace strandline::pipeline {

// The declaration as it is meant over a feed: rows of type delete, and the update_preimage rows
// that feed_events leaves, are deletes, whatever APPLY AS DELETE WHEN says besides.
Result<cdc::Declaration> over_feed(cdc::Declaration declaration);

// What is wrong with a declaration over a feed, with places: the query gives the columns
// _change_type and _commit_version no more; SEQUENCE BY, or in a BITEMPORAL target SYSTEM SEQUENCE
// BY, does not begin with _commit_version or _commit_timestamp. query: the columns of the source.
std::vector<Error> check_over_feed(const cdc::Declaration& declaration, const Schema& query);

// Moves the columns of a feed to those that * does not mean.
void hide_feed_columns(Schema* schema, Schema* hidden);

// The rows of a feed that are events: an update_preimage whose key is given again in the same
// commit, by an insert or an update_postimage, is none. Neither is such a delete where SEQUENCE BY
// is more than the commit: the row's own columns could order it after its successor. Of a
// BITEMPORAL target with a business time of the row's it is none if its key is given again at that
// time. keys: columns of the query. Errors: those of printing SEQUENCE BY.
Result<std::string> feed_events(const std::string& query, const std::vector<std::string>& keys,
                                const cdc::Declaration& declaration);

}  // namespace strandline::pipeline
