#include "duck/key_ranges.h"

#include <fmt/format.h>

#include "base/utf8.h"

namespace strandline::duck {
namespace {

// Ranges a column's values are gathered into; strings may come to a few more.
constexpr int kRanges = 512;
constexpr size_t kMostTextRanges = 4096;

// Where values of the type lie on a line, for telling ranges apart; empty for types without.
std::string position(const std::string& value, TypeId type) {
  switch (type) {
    case TypeId::kByte:
    case TypeId::kShort:
    case TypeId::kInteger:
    case TypeId::kLong:
    case TypeId::kDecimal:
      return fmt::format("CAST({} AS DOUBLE)", value);
    case TypeId::kDate:
    case TypeId::kTimestamp:
    case TypeId::kTimestampNtz:
      return fmt::format("epoch({})", value);
    default:
      return {};
  }
}

size_t common_prefix(const std::string& a, const std::string& b) {
  size_t characters = 0;
  for (size_t at = 0; at < a.size() && at < b.size();) {
    char32_t code_point = 0;
    const size_t length = decode_utf8(std::string_view(a).substr(at), &code_point);
    if (length == 0 || a.compare(at, length, b, at, length) != 0) break;
    at += length;
    ++characters;
  }
  return characters;
}

// The group a value belongs to, so that groups are ranges side by side; empty for one range.
std::string group_of(const std::string& value, TypeId type, const std::string& min,
                     const std::string& max) {
  if (type == TypeId::kString)
    return fmt::format("left({}, {})", value, common_prefix(min, max) + 2);
  // Infinite days are not on the line.
  const auto is_finite = [](const std::string& text) {
    return text.find_first_of("0123456789") != std::string::npos;
  };
  if (position(value, type).empty() || !is_finite(min) || !is_finite(max)) return {};
  const auto constant = [&](const std::string& text) {
    const std::string literal = quote_literal(text);
    return type == TypeId::kDecimal ? fmt::format("CAST({} AS DOUBLE)", literal)
                                    : position(fmt::format("CAST({} AS {})", literal,
                                                           engine_type(DataType::primitive(type))),
                                               type);
  };
  return fmt::format("CAST(floor(({0} - {1}) / nullif({2} - {1}, 0) * {3}) AS INTEGER)",
                     position(value, type), constant(min), constant(max), kRanges);
}

}  // namespace

delta::FileFilter KeyRanges::filter(const delta::Snapshot& table) const {
  if (count == 0) return delta::FileFilter::constant(delta::Truth::kFalse);
  std::vector<delta::FileFilter> parts;
  for (const Column& column : columns) {
    parts.push_back(delta::FileFilter::in_ranges(table, {column.table_column}, column.ranges,
                                                 column.with_null));
  }
  return delta::FileFilter::all_of(std::move(parts));
}

Result<KeyRanges> key_ranges(Connection& connection, const std::vector<KeyColumn>& columns,
                             const std::string& keys) {
  std::string ends = "SELECT count(*)";
  for (const KeyColumn& column : columns)
    ends += fmt::format(", min({0}), max({0}), bool_or({0} IS NULL)", column.value);
  SL_ASSIGN(const Rows found, connection.query(fmt::format("{} FROM {} AS k", ends, keys)));
  const auto& row = found.rows.front();
  KeyRanges result;
  result.count = std::stoll(row[0].value_or("0"));
  for (size_t i = 0; i < columns.size() && result.count > 0; ++i) {
    const KeyColumn& given = columns[i];
    const TypeId type = found.columns[3 * i + 1].type.id;
    const Cell& min = row[3 * i + 1];
    const Cell& max = row[3 * i + 2];
    KeyRanges::Column& column = result.columns.emplace_back();
    column.table_column = given.table_column;
    column.with_null = given.nulls_match && row[3 * i + 3] == "true";
    if (!min || !max) continue;
    column.ranges.push_back({{type, *min}, {type, *max}});
    const std::string group =
        *min == *max ? std::string() : group_of(given.value, type, *min, *max);
    if (group.empty()) continue;
    SL_ASSIGN(const Rows groups,
              connection.query(fmt::format("SELECT min({0}), max({0}) FROM {1} AS k WHERE {0} IS "
                                           "NOT NULL GROUP BY {2} LIMIT {3}",
                                           given.value, keys, group, kMostTextRanges + 1)));
    if (groups.rows.size() > kMostTextRanges) continue;
    column.ranges.clear();
    for (const auto& range : groups.rows)
      column.ranges.push_back({{type, *range[0]}, {type, *range[1]}});
  }
  return result;
}

}  // namespace strandline::duck
