// Commits of alterations.
#include <algorithm>

#include "base/error.h"
#include "delta/alter.h"
#include "delta/features.h"
#include "delta/parquet_footer.h"

namespace strandline::delta {

namespace {

// Lost races before an alteration gives up.
constexpr int kAttempts = 20;

bool lost_race(const Result<Version>& result) {
  return !result.ok() && result.error().kind == ErrorKind::kConflict;
}

// One try; nullopt when row ids had to be assigned first.
Result<std::optional<Version>> try_alteration(
    const Table& table, const AlterOperation& operation,
    const std::function<Status(const Snapshot&, Alteration*)>& change) {
  SL_ASSIGN(const auto snapshot, table.snapshot());
  Alteration alteration(*snapshot);
  SL_TRY(change(*snapshot, &alteration));
  if (!alteration.changed()) return std::optional<Version>(snapshot->version);
  if (alteration.needs_row_ids()) {
    SL_TRY(assign_row_ids(table));
    return std::optional<Version>();
  }
  SL_ASSIGN(Transaction transaction, Transaction::begin(table, snapshot));
  alteration.apply_to(&transaction);
  if (!alteration.depends_on_rows()) transaction.set_blind_append();
  transaction.set_operation(operation.name, operation.parameters);
  SL_ASSIGN(const Version version, transaction.commit_or_error());
  return std::optional<Version>(version);
}

// Re-adds the files that have no row id. Gives the version read when there are none.
Result<Version> try_assign_row_ids(const Table& table) {
  SL_ASSIGN(const auto snapshot, table.snapshot());
  SL_ASSIGN(Transaction transaction, Transaction::begin(table, snapshot));
  if (!supports(snapshot->protocol, "rowTracking")) {
    // From this commit on every writer gives new files their row ids.
    transaction.set_protocol(with_features(snapshot->protocol, {"rowTracking", "domainMetadata"}));
    transaction.set_blind_append();
    transaction.set_operation("UPGRADE PROTOCOL");
    SL_TRY(transaction.commit_or_error());
    return try_assign_row_ids(table);
  }
  std::vector<size_t> touched;
  for (size_t i = 0; i < snapshot->files.size(); ++i) {
    AddFile file = snapshot->files[i];
    if (file.base_row_id) continue;
    SL_ASSIGN(const auto count, count_rows(table.store().get(), table.path(), file));
    if (!count) {
      return unsupported("DELTA_ROW_TRACKING_BACKFILL_WITHOUT_STATS",
                         "table {} cannot track rows: the row count of its file {} is unknown; "
                         "rewrite the table first",
                         table.path(), file.path);
    }
    if (!num_records(file))
      file.stats = with_row_count(file.stats ? std::string(*file.stats) : "", *count);
    file.data_change = false;
    transaction.add_file(std::move(file));
    touched.push_back(i);
  }
  if (touched.empty()) return snapshot->version;
  transaction.set_read_files(std::move(touched));
  transaction.set_operation("ROW TRACKING BACKFILL");
  return transaction.commit_or_error();
}

}  // namespace

Result<Version> assign_row_ids(const Table& table) {
  Result<Version> result = Version{-1};
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    result = try_assign_row_ids(table);
    if (!lost_race(result)) break;
  }
  return result;
}

Result<Version> commit_alteration(
    const Table& table, const AlterOperation& operation,
    const std::function<Status(const Snapshot&, Alteration*)>& change) {
  for (int attempt = 1;; ++attempt) {
    auto result = try_alteration(table, operation, change);
    if (result.ok() && *result) return **result;
    if (!result.ok() && (result.error().kind != ErrorKind::kConflict || attempt >= kAttempts)) {
      return std::move(result).error();
    }
    if (attempt >= kAttempts) {
      return conflict("DELTA_CONCURRENT_APPEND",
                      "table {} gets files without row ids again and again from another writer",
                      table.path());
    }
  }
}

}  // namespace strandline::delta
