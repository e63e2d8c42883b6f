#include "engine/maintenance.h"

#include <cmath>

#include "base/error.h"
#include "delta/restore.h"
#include "delta/vacuum.h"
#include "duck/optimize.h"
#include "engine/conditions.h"
#include "engine/listing.h"
#include "engine/names.h"
#include "engine/relations.h"
#include "engine/write_rows.h"
#include "pipeline/sources.h"
#include "sql/query.h"

namespace strandline::engine {
namespace {

bool setting_is(const Context& context, const char* key, const char* value) {
  const auto found = context.settings.find(key);
  return found != context.settings.end() && same_name(found->second, value);
}

}  // namespace

Result<std::string> vacuum(const Context& context, const sql::Vacuum& statement) {
  SL_ASSIGN(const auto found, find_table(context, statement.table));
  delta::VacuumOptions options;
  if (statement.retain_hours) {
    constexpr double kHourMs = 3'600'000;
    constexpr double kMostHours = 1e9;
    options.retention_ms = std::llround(std::min(*statement.retain_hours, kMostHours) * kHourMs);
  }
  options.check_retention =
      !setting_is(context, "spark.databricks.delta.retentionDurationCheck.enabled", "false");
  options.dry_run = statement.dry_run;
  auto report = delta::vacuum(found.table, options);
  if (!report.ok()) return at(std::move(report).error(), statement.table.place);
  Listing listing({{"path", "VARCHAR"}});
  if (!statement.dry_run) {
    listing.add({Listing::text(found.table.path())});
  } else {
    for (const auto& path : report->paths) listing.add({Listing::text(path)});
  }
  return listing.query();
}

Result<std::string> optimize(const Context& context, const sql::Optimize& statement) {
  SL_ASSIGN(const auto found, find_table(context, statement.table));
  duck::OptimizeOptions options;
  options.full = statement.full;
  options.purge = statement.purge;
  Relations relations(context);
  std::string predicate = "[]";
  if (statement.where != nullptr) {
    SL_TRY(refuse_chance(statement.where, "OPTIMIZE"));
    const auto rows = pipeline::empty_relation(found.snapshot->schema) + " AS " +
                      duck::quote_name(statement.table.parts.back());
    SL_ASSIGN(options.where, relations.print(*statement.where, {statement.table}, rows));
    SL_TRY(check_condition(*context.connection, *options.where, rows, statement.where->place));
    predicate = json_array({sql::print_spark(*statement.where)});
  }
  std::vector<std::string> zorder_by;
  for (const auto& column : statement.zorder_by) zorder_by.push_back(column.text);
  options.parameters = {{"predicate", predicate}, {"zOrderBy", json_array(zorder_by)}};
  options.zorder_by = std::move(zorder_by);
  auto done = duck::optimize(*context.connection, found.table, options);
  if (!done.ok()) return at(std::move(done).error(), statement.table.place);
  const auto sizes = [](const duck::FileSizes& files) {
    const double average = files.count == 0 ? 0.0
                                            : static_cast<double>(files.total_bytes) /
                                                  static_cast<double>(files.count);
    return fmt::format(
        "{{'min': {}::BIGINT, 'max': {}::BIGINT, 'avg': {:.1f}::DOUBLE, 'totalFiles': {}::BIGINT, "
        "'totalSize': {}::BIGINT}}",
        files.min_bytes, files.max_bytes, average, files.count, files.total_bytes);
  };
  return fmt::format(
      "SELECT {} AS path, {{'numFilesAdded': {}::BIGINT, 'numFilesRemoved': {}::BIGINT, "
      "'filesAdded': {}, 'filesRemoved': {}, 'partitionsOptimized': {}::BIGINT, 'numBatches': "
      "{}::BIGINT, 'totalConsideredFiles': {}::BIGINT, 'totalFilesSkipped': {}::BIGINT, "
      "'deletionVectorStats': {{'numDeletionVectorsRemoved': {}::BIGINT, "
      "'numDeletionVectorRowsRemoved': {}::BIGINT}}}} AS metrics",
      duck::quote_literal(found.table.path()), done->added.count, done->removed.count,
      sizes(done->added), sizes(done->removed), done->partitions, done->batches,
      done->considered_files, done->skipped_files, done->deletion_vectors_removed,
      done->deleted_rows_removed);
}

Result<std::string> restore(const Context& context, const sql::Restore& statement) {
  SL_ASSIGN(const auto found, find_table(context, statement.table));
  const auto restored = [&]() -> Result<delta::RestoreReport> {
    SL_TRY(refuse_pipeline_table(found, "RESTORE"));
    SL_ASSIGN(const auto wanted, snapshot_at(context, found.table, statement.version_as_of,
                                             statement.timestamp_as_of, statement.timestamp_expr));
    delta::RestoreOptions options;
    options.ignore_missing_files =
        setting_is(context, "spark.sql.files.ignoreMissingFiles", "true");
    options.parameters["version"] = std::to_string(wanted->version);
    if (statement.timestamp_as_of) options.parameters["timestamp"] = *statement.timestamp_as_of;
    return delta::restore(found.table, *wanted, options);
  }();
  if (!restored.ok()) return at(restored.error(), statement.table.place);
  Listing listing({{"table_size_after_restore", "BIGINT"},
                   {"num_of_files_after_restore", "BIGINT"},
                   {"num_removed_files", "BIGINT"},
                   {"num_restored_files", "BIGINT"},
                   {"removed_files_size", "BIGINT"},
                   {"restored_files_size", "BIGINT"}});
  listing.add(
      {Listing::number(restored->table_size_bytes), Listing::number(restored->num_files),
       Listing::number(restored->num_removed_files), Listing::number(restored->num_restored_files),
       Listing::number(restored->removed_bytes), Listing::number(restored->restored_bytes)});
  return listing.query();
}

}  // namespace strandline::engine
