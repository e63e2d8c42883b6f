#include "duck/table_change.h"

#include <map>
#include <memory>

#include "base/error.h"
#include "duck/delta_io.h"

namespace strandline::duck {

Status apply_change(Connection& connection, delta::Transaction& transaction,
                    const delta::Table& table, const std::shared_ptr<const delta::Snapshot>& base,
                    const TableChange& change, std::vector<delta::AddFile>* written) {
  const delta::Snapshot& definition = transaction.snapshot();
  WriteOptions options;
  options.with_row_ids = change.with_row_ids && definition.row_tracking_enabled();
  std::string rows = change.new_rows;
  if (!rows.empty() && change.with_row_ids && !options.with_row_ids) {
    rows =
        fmt::format("SELECT * EXCLUDE ({}, {}) FROM ({})", kRowIdColumn, kRowVersionColumn, rows);
  }
  std::map<size_t, delta::RowSet> dead;
  if (base && change.replace) {
    for (const auto& file : base->files) transaction.remove_file(file);
  } else if (base && !change.dead_rows.empty()) {
    SL_ASSIGN(dead, collect_rows(connection, change.dead_rows));
  }
  std::unique_ptr<Scan> scan;  // alive until the files are written
  if (!dead.empty() && !definition.deletion_vectors_enabled()) {
    // Without deletion vectors the touched files are written anew.
    ScanOptions scan_options;
    scan_options.with_positions = true;
    scan_options.with_row_ids = options.with_row_ids;
    scan_options.files.emplace();
    for (const auto& [index, positions] : dead) scan_options.files->push_back(index);
    SL_ASSIGN(scan, scan_table(connection, table, base, scan_options));
    const auto left = fmt::format(
        "SELECT * EXCLUDE ({0}, {1}) FROM {2} AS s WHERE NOT EXISTS (SELECT 1 FROM ({3}) AS d "
        "WHERE d.{0} = s.{0} AND d.{1} = s.{1})",
        kFileColumn, kRowColumn, scan->sql(), change.dead_rows);
    rows = rows.empty() ? left : fmt::format("SELECT * FROM ({}) UNION ALL BY NAME {}", rows, left);
    for (const auto& [index, positions] : dead) transaction.remove_file(base->files[index]);
    dead.clear();
  }
  if (!rows.empty()) {
    SL_ASSIGN(*written, write_files(connection, table, definition, rows, options));
    for (const auto& file : *written) transaction.add_file(file);
  }
  for (const auto& [index, positions] : dead) {
    SL_TRY(transaction.delete_rows(base->files[index], positions));
  }
  return {};
}

Status commit_change(delta::Transaction& transaction, const delta::Table& table,
                     const std::vector<delta::AddFile>& written) {
  auto outcome = transaction.commit();
  if (!outcome.ok()) {
    remove_files(table, written);
    return outcome.error();
  }
  if (const auto* conflicted = std::get_if<delta::Conflicted>(&*outcome)) {
    remove_files(table, written);
    return conflict(conflicted->code, "{}", conflicted->what);
  }
  if (const auto* unknown = std::get_if<delta::Unknown>(&*outcome)) {
    return io_error(
        "COMMIT_UNKNOWN",
        "it is not known whether the commit to '{}' succeeded ({}): look before doing it again",
        table.path(), unknown->what);
  }
  return {};
}

void remove_files(const delta::Table& table, const std::vector<delta::AddFile>& files) {
  for (const auto& file : files) {
    // What cannot be removed is an orphan nobody sees.
    if (auto path = delta::resolve_data_path(table.path(), file.path); path.ok()) {
      (void)table.store()->remove(*path).ok();
    }
  }
}

}  // namespace strandline::duck
