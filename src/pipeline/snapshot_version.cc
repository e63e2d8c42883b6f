#include "pipeline/snapshot_version.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace strandline::pipeline {
namespace {

constexpr const char* kAccepted = "BIGINT, TIMESTAMP, DATE, STRING or DECIMAL";

std::string invalid_type() { return std::string(kSnapshotError) + "INVALID_SNAPSHOT_VERSION_TYPE"; }

// Decimal of Python has no scale of its own.
DataType program_decimal() { return DataType::decimal(38, 18); }

// Whether no digit but zeros is beyond the type's scale, where the engine would round: versions
// that differ would be one.
bool fits_scale(const std::string& value, const DataType& type) {
  if (type.id != TypeId::kDecimal && type.id != TypeId::kTimestamp) return true;
  const size_t scale =
      type.id == TypeId::kTimestamp ? 6 : static_cast<size_t>(program_decimal().scale);
  const size_t point = value.find('.');
  if (point == std::string::npos) return true;
  // A zone may follow a time.
  const size_t end = std::min(value.find_first_not_of("0123456789", point + 1), value.size());
  const size_t last = value.find_last_not_of('0', end - 1);
  return last - point <= scale;
}

}  // namespace

std::string to_engine(const SnapshotVersion& version) {
  return fmt::format("CAST({} AS {})", duck::quote_literal(version.value),
                     duck::engine_type(version.type));
}

Result<DataType> version_type(const DataType& column, const std::string& name) {
  switch (column.id) {
    case TypeId::kByte:
    case TypeId::kShort:
    case TypeId::kInteger:
    case TypeId::kLong:
      return DataType::primitive(TypeId::kLong);
    case TypeId::kTimestamp:
    case TypeId::kDate:
    case TypeId::kString:
    case TypeId::kDecimal:
      return column;
    case TypeId::kMap:
    case TypeId::kVariant:
    case TypeId::kInterval:
      return invalid_argument(std::string(kSnapshotError) + "SNAPSHOT_VERSION_NOT_SORTABLE",
                              "the version of a snapshot is {}, which has no order: give {}", name,
                              kAccepted);
    default:
      return invalid_argument(invalid_type(), "the version of a snapshot is {}: give {}", name,
                              kAccepted);
  }
}

Result<SnapshotVersion> read_version(duck::Connection& connection, const std::string& type,
                                     const std::string& value) {
  static const std::map<std::string, DataType> types = {
      {"BIGINT", DataType::primitive(TypeId::kLong)},
      {"TIMESTAMP", DataType::primitive(TypeId::kTimestamp)},
      {"DATE", DataType::primitive(TypeId::kDate)},
      {"STRING", DataType::primitive(TypeId::kString)},
      {"DECIMAL", program_decimal()}};
  const auto found = types.find(type);
  if (found == types.end()) {
    return invalid_data(invalid_type(),
                        "the version of the snapshot is {}, of type {}: give an int, datetime, "
                        "date, str or Decimal",
                        value, type);
  }
  SnapshotVersion version{found->second, value};
  if (version.type.id == TypeId::kString) return version;
  const auto holds = connection.query_int(
      fmt::format("SELECT CAST(TRY_CAST({} AS {}) IS NOT NULL AS INTEGER)",
                  duck::quote_literal(value), duck::engine_type(version.type)));
  if (!holds.ok()) return holds.error();
  if (*holds == 0 || !fits_scale(value, version.type)) {
    return invalid_data(invalid_type(), "the version of the snapshot is {}, which {} does not hold",
                        value, to_sql(version.type));
  }
  return version;
}

Result<SnapshotVersion> version_of_time(duck::Connection& connection, int64_t now_us,
                                        const std::optional<SnapshotVersion>& latest) {
  std::string time = fmt::format("make_timestamp({})", now_us);
  if (latest && latest->type.id == TypeId::kTimestamp) {
    time = fmt::format("greatest({}, CAST({} AS TIMESTAMP) + INTERVAL 1 MICROSECOND)", time,
                       duck::quote_literal(latest->value));
  }
  SL_ASSIGN(const auto rows, connection.query(fmt::format("SELECT CAST({} AS VARCHAR)", time)));
  return SnapshotVersion{DataType::primitive(TypeId::kTimestamp), *rows.rows.at(0).at(0)};
}

Result<bool> is_above(duck::Connection& connection, const SnapshotVersion& a,
                      const SnapshotVersion& b) {
  SL_ASSIGN(const auto above, connection.query_int(fmt::format("SELECT CAST({} > {} AS INTEGER)",
                                                               to_engine(a), to_engine(b))));
  return above != 0;
}

}  // namespace strandline::pipeline
