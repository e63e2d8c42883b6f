// Which rows a batch of an AUTO CDC flow changes: images for the target's recorded change feed.
#pragma once

#include <string>
#include <vector>

#include "base/data_type.h"
#include "cdf/primary_key.h"
#include "duck/table_change.h"

namespace strandline::pipeline {

// Rows of an AUTO CDC target that a batch replaces: a row whose primary key was there before is
// updated, in the feed and by its row id (auto-cdc.md section 12).
// old_rows: relation of the target's rows with positions, columns as `before` has them; dead_rows:
// query of the positions that go; new_rows: query of the columns of `after` that come.
duck::RowChange replaced_rows(const Schema& before, const Schema& after,
                              const std::vector<cdf::KeyPart>& key, const std::string& old_rows,
                              const std::string& dead_rows, const std::string& new_rows);

}  // namespace strandline::pipeline
