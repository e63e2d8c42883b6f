#include "pipeline/rebase_change.h"

#include <map>

#include "base/error.h"

namespace strandline::pipeline {
namespace {

using fmt::arg;

// A row of positions (a, b) in the same data file, or none.
std::string pairs(const std::vector<std::pair<size_t, size_t>>& files) {
  std::string rows;
  for (const auto& [a, b] : files) {
    rows +=
        fmt::format("{}(CAST({} AS INTEGER), CAST({} AS INTEGER))", rows.empty() ? "" : ", ", a, b);
  }
  if (rows.empty()) return "(SELECT 0 AS a, 0 AS b WHERE false)";
  return fmt::format("(SELECT * FROM (VALUES {}) AS pairs(a, b))", rows);
}

std::string vector_of(const delta::AddFile& file) {
  return file.deletion_vector ? file.deletion_vector->unique_id() : "";
}

}  // namespace

Result<RowsChange> rebase_change(duck::Connection& connection, const delta::Table& table,
                                 const std::shared_ptr<const delta::Snapshot>& base,
                                 const std::shared_ptr<const delta::Snapshot>& now,
                                 const Schema& schema, const RowsChange& change,
                                 std::vector<std::unique_ptr<duck::Scan>>* scans) {
  std::map<std::string, size_t> base_files;
  for (size_t i = 0; base && i < base->files.size(); ++i) base_files[base->files[i].path] = i;
  // Data files with the same rows in both; with others; in one of them alone.
  std::vector<std::pair<size_t, size_t>> same, differing;
  std::vector<size_t> of_base, of_now;
  for (size_t i = 0; i < now->files.size(); ++i) {
    const auto found = base_files.find(now->files[i].path);
    if (found == base_files.end()) {
      of_now.push_back(i);
      continue;
    }
    const size_t before = found->second;
    base_files.erase(found);
    if (vector_of(base->files[before]) == vector_of(now->files[i])) {
      same.emplace_back(before, i);
    } else {
      differing.emplace_back(before, i);
      of_base.push_back(before);
      of_now.push_back(i);
    }
  }
  for (const auto& [path, index] : base_files) of_base.push_back(index);

  const auto scan = [&](const std::shared_ptr<const delta::Snapshot>& snapshot,
                        const std::vector<size_t>& files) -> Result<std::string> {
    duck::ScanOptions options;
    options.with_positions = true;
    options.files = files;
    SL_ASSIGN(auto rows, duck::scan_table(connection, table, snapshot, options));
    std::string sql = rows->sql();
    scans->push_back(std::move(rows));
    return sql;
  };
  const std::string none =
      fmt::format("SELECT CAST(0 AS INTEGER) AS {}, CAST(0 AS BIGINT) AS {} WHERE false",
                  duck::kFileColumn, duck::kRowColumn);
  const std::string dead = change.dead_rows.empty() ? none : change.dead_rows;
  const std::string is_row =
      fmt::format("d.{0} = r.{0} AND d.{1} = r.{1}", duck::kFileColumn, duck::kRowColumn);
  std::string left = none;  // rows of the files of base that stay after the change
  std::string columns;
  for (const auto& field : schema.fields) {
    const std::string name = duck::quote_name(field.name);
    const bool known = base && base->schema.find(field.name);
    columns += fmt::format("{}CAST({} AS {}) AS {}", columns.empty() ? "" : ", ",
                           known ? "r." + name : "NULL", duck::engine_type(field.type), name);
  }
  RowsChange result{change.new_rows, ""};
  if (!of_base.empty()) {
    SL_ASSIGN(const auto rows, scan(base, of_base));
    left =
        fmt::format("SELECT r.* FROM {} AS r WHERE NOT EXISTS (SELECT 1 FROM ({}) AS d WHERE {})",
                    rows, dead, is_row);
  }
  std::string standing = none;
  if (!of_now.empty()) {
    SL_ASSIGN(standing, scan(now, of_now));
    standing = "SELECT * FROM " + standing;
  }
  const auto find = [&](const char* which, const char* base_row, const char* now_row) {
    return fmt::format(
        "(SELECT 1 FROM ({which}) AS o JOIN {pairs} AS p ON p.a = {base_row}.{file} AND p.b = "
        "{now_row}.{file} WHERE o.{file} = {same_side} AND o.{row} = r.{row})",
        arg("which", which), arg("pairs", pairs(differing)), arg("base_row", base_row),
        arg("now_row", now_row), arg("file", duck::kFileColumn), arg("row", duck::kRowColumn),
        arg("same_side", std::string(base_row) == "o" ? "p.a" : "p.b"));
  };
  if (!of_base.empty()) {
    const std::string back = fmt::format("SELECT {} FROM ({}) AS r WHERE NOT EXISTS {}", columns,
                                         left, find(standing.c_str(), "r", "o"));
    result.new_rows =
        change.new_rows.empty()
            ? back
            : fmt::format("SELECT * FROM ({}) UNION ALL BY NAME ({})", change.new_rows, back);
  }
  result.dead_rows = fmt::format(
      "SELECT p.b AS {file}, d.{row} FROM ({dead}) AS d JOIN {same} AS p ON p.a = d.{file} UNION "
      "ALL "
      "SELECT r.{file}, r.{row} FROM ({standing}) AS r WHERE NOT EXISTS {left}",
      arg("file", duck::kFileColumn), arg("row", duck::kRowColumn), arg("dead", dead),
      arg("same", pairs(same)), arg("standing", standing),
      arg("left", find(left.c_str(), "o", "r")));
  return result;
}

}  // namespace strandline::pipeline
