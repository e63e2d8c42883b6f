// Versions of snapshots (auto-cdc.md section 10): what __START_AT and __END_AT say of them.
#pragma once

#include <strandline/result.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/data_type.h"
#include "duck/connection.h"

namespace strandline::pipeline {

// Before the sub code of every error of a snapshot.
inline constexpr const char* kSnapshotError = "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.";

struct SnapshotVersion {
  DataType type;      // BIGINT, TIMESTAMP, DATE, STRING or DECIMAL
  std::string value;  // TIMESTAMP: UTC, without a zone
};

// The version as an expression of the engine, of its type.
std::string to_engine(const SnapshotVersion& version);

// The type that versions of a query's column have: narrower integers are BIGINT. name: the column's
// type where it is no type of a table. Errors: SNAPSHOT_VERSION_NOT_SORTABLE,
// INVALID_SNAPSHOT_VERSION_TYPE (kInvalidArgument).
Result<DataType> version_type(const DataType& column, const std::string& name);

// A version as a program gives it: docs/decisions/0008-python-pipelines.md.
// Errors: INVALID_SNAPSHOT_VERSION_TYPE (kInvalidData) for other types and values beyond theirs.
Result<SnapshotVersion> read_version(duck::Connection& connection, const std::string& type,
                                     const std::string& value);

// A TIMESTAMP version of the time now_us (microseconds since the epoch), or of the first one after
// `latest` if that is not below it: clocks go back, and a flow must not stand still until they are
// where they were. latest: the version of the last snapshot, where there was one.
Result<SnapshotVersion> version_of_time(duck::Connection& connection, int64_t now_us,
                                        const std::optional<SnapshotVersion>& latest);

// Whether a comes after b; both of one type.
Result<bool> is_above(duck::Connection& connection, const SnapshotVersion& a,
                      const SnapshotVersion& b);

}  // namespace strandline::pipeline
