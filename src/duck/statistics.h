// Per-file statistics of the log (delta-protocol.md section 6) out of what COPY returns.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "delta/snapshot.h"
#include "duck/names.h"

namespace strandline::duck {

// COPY's column_statistics: quoted path ("a"."b") -> {min, max, null_count, has_nan, ...} as text.
using ColumnStatistics = std::map<std::string, std::map<std::string, std::string>>;

// The JSON text of AddFile::stats. Unknown cells are left out: bounds that JSON cannot carry (NaN,
// infinities, years beyond 9999), null counts of lists and maps, columns beyond the indexed ones.
std::string statistics_json(const delta::Snapshot& definition, int64_t row_count,
                            const ColumnStatistics& columns);

// Bounds of at most prefix_length code points that are not above, not below the text. An upper
// bound that cannot be found is nullopt.
std::string lower_bound(const std::string& text, size_t prefix_length);
std::optional<std::string> upper_bound(const std::string& text, size_t prefix_length);

}  // namespace strandline::duck
