// ALTER TABLE ... DROP FEATURE: what uses a feature goes, step by step, each a commit after which
// the table is whole; then the feature leaves the protocol. Run again after an error, it goes on.
#pragma once

#include "delta/alter.h"
#include "duck/connection.h"

namespace strandline::engine {

// Errors: of delta/drop_feature.h and Alteration::drop_feature; kInvalidArgument
// DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD where TRUNCATE HISTORY must wait.
Status drop_feature(duck::Connection& connection, const delta::Table& table,
                    const delta::FeatureDrop& drop);

}  // namespace strandline::engine
