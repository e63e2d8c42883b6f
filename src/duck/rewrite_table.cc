#include "duck/rewrite_table.h"

#include "base/error.h"
#include "duck/delta_io.h"
#include "duck/optimize_plan.h"
#include "duck/table_change.h"

namespace strandline::duck {
namespace {

constexpr int kAttempts = 4;

Status try_rewrite(Connection& connection, const delta::Table& table, const std::string& operation,
                   const std::function<Result<Redefinition>(const delta::Snapshot&)>& redefine) {
  SL_ASSIGN(const auto snapshot, table.snapshot());
  SL_ASSIGN(Redefinition next, redefine(*snapshot));
  SL_ASSIGN(auto transaction, delta::Transaction::begin(table, snapshot));
  transaction.set_metadata(std::move(next.metadata));
  for (delta::DomainMetadata& domain : next.domains) transaction.set_domain(std::move(domain));

  const bool with_row_ids = snapshot->row_tracking_enabled();
  ScanOptions scan_options;
  scan_options.with_row_ids = with_row_ids;
  SL_ASSIGN(const auto scan, scan_table(connection, table, snapshot, scan_options));
  WriteOptions write_options;
  write_options.with_row_ids = with_row_ids;
  write_options.target_file_size_bytes = target_file_size_bytes(*snapshot);
  AppliedChange applied;
  SL_ASSIGN(applied.written, write_files(connection, table, transaction.snapshot(),
                                         "SELECT * FROM " + scan->sql() + " AS t", write_options));
  for (delta::AddFile& file : applied.written) {
    file.data_change = false;
    transaction.add_file(file);
  }
  for (const delta::AddFile& file : snapshot->files) transaction.remove_file(file, false);
  transaction.set_operation(operation);
  transaction.set_metric("numAddedFiles", static_cast<int64_t>(applied.written.size()));
  transaction.set_metric("numRemovedFiles", static_cast<int64_t>(snapshot->files.size()));
  return commit_change(transaction, table, applied);
}

}  // namespace

Status rewrite_table(Connection& connection, const delta::Table& table,
                     const std::string& operation,
                     const std::function<Result<Redefinition>(const delta::Snapshot&)>& redefine) {
  for (int attempt = 1;; ++attempt) {
    Status done = try_rewrite(connection, table, operation, redefine);
    if (done.ok() || done.error().kind != ErrorKind::kConflict || attempt == kAttempts) return done;
  }
}

}  // namespace strandline::duck
