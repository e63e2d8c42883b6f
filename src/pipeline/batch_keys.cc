#include "pipeline/batch_keys.h"

#include <fmt/format.h>

#include "duck/delta_io.h"

namespace strandline::pipeline {
namespace {

// A filter is built for files of at least so many rows, and so many to each event of the batch:
// fewer are read in less time than that takes, or are mostly needed.
constexpr int64_t kLeastRows = 20'000;
constexpr int64_t kLeastRowsPerKey = 4;

// Equal values of one such type always have equal hashes.
bool has_hash(const DataType& type) {
  switch (type.id) {
    case TypeId::kByte:
    case TypeId::kShort:
    case TypeId::kInteger:
    case TypeId::kLong:
    case TypeId::kDecimal:
    case TypeId::kString:
    case TypeId::kBinary:
    case TypeId::kDate:
    case TypeId::kTimestamp:
    case TypeId::kTimestampNtz:
      return true;
    default:
      return false;
  }
}

std::string key_name(size_t index) { return fmt::format("key{}", index); }

bool has_rows(const delta::Snapshot& table, const delta::FileSelection& selection, int64_t least) {
  int64_t rows = 0;
  for (const size_t index : selection.files) {
    rows += delta::num_records(table.files[index]).value_or(least);
    if (rows >= least) return true;
  }
  return false;
}

}  // namespace

Result<BatchKeys> BatchKeys::of(duck::Connection& connection, const cdc::Plan& plan,
                                const cdc::Program& program) {
  BatchKeys keys;
  if (program.keys.empty()) return keys;
  std::vector<duck::KeyColumn> columns;
  std::string names, distinct;
  std::vector<size_t> candidates;
  for (size_t i = 0; i < plan.keys.size(); ++i) {
    columns.push_back({plan.keys[i].name, "k." + key_name(i), false});
    names += (i == 0 ? "" : ", ") + key_name(i);
    if (!has_hash(plan.keys[i].type)) continue;
    distinct +=
        fmt::format("{}approx_count_distinct({})", candidates.empty() ? "" : ", ", key_name(i));
    candidates.push_back(i);
  }
  const std::string relation = fmt::format("(SELECT * FROM ({}) AS keys({}))", program.keys, names);
  SL_ASSIGN(keys.ranges_, duck::key_ranges(connection, columns, relation));
  if (candidates.empty()) return keys;
  size_t best = 0;
  if (candidates.size() > 1) {
    SL_ASSIGN(const auto most,
              connection.query_int(fmt::format(
                  "SELECT list_position(v, list_max(v)) FROM (SELECT [{}] AS v FROM {})", distinct,
                  relation)));
    best = static_cast<size_t>(most) - 1;
  }
  const size_t chosen = candidates[best];
  keys.column_ = plan.keys[chosen];
  keys.values_ = fmt::format("SELECT {} FROM {}", key_name(chosen), relation);
  return keys;
}

TouchedFiles BatchKeys::files(const delta::Snapshot& table) const {
  TouchedFiles touched;
  if (ranges_) touched.filter = ranges_->filter(table);
  touched.selection = delta::select_files(table, touched.filter.value_or(delta::FileFilter()));
  return touched;
}

Result<std::string> BatchKeys::rows(duck::Connection& connection, const std::string& relation,
                                    const delta::Snapshot& table, const TouchedFiles& files) {
  if (!column_) return relation;
  // The hash of a narrower type is another.
  const Field* stored = table.schema.get(column_->name);
  if (stored == nullptr || !same_type(stored->type, column_->type)) return relation;
  if (!has_rows(table, files.selection, std::max(kLeastRows, kLeastRowsPerKey * ranges_->count)))
    return relation;
  if (!filter_) {
    SL_ASSIGN(filter_, duck::build_key_filter(connection, values_));
  }
  return fmt::format("(SELECT * FROM {} AS r WHERE {})", relation,
                     filter_->condition("r." + duck::quote_name(stored->name)));
}

}  // namespace strandline::pipeline
