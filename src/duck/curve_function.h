// The SQL function behind a Curve: sl_curve(curve BIGINT, keys BLOB[]) UBIGINT.
#pragma once

#include <memory>

#include "duck/curve.h"
#include "duck/registry.h"

namespace strandline::duck {

using Curves = Registry<CurveRanges>;

Status register_curve_function(duckdb_connection connection, const std::shared_ptr<Curves>& curves);

}  // namespace strandline::duck
