#include "engine/maintenance.h"

#include <cmath>

#include "base/error.h"
#include "delta/restore.h"
#include "delta/vacuum.h"
#include "engine/listing.h"
#include "engine/names.h"
#include "engine/relations.h"

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

Result<std::string> restore(const Context& context, const sql::Restore& statement) {
  SL_ASSIGN(const auto found, find_table(context, statement.table));
  const auto restored = [&]() -> Result<delta::RestoreReport> {
    SL_TRY(refuse_pipeline_table(found, "RESTORE"));
    SL_ASSIGN(const auto wanted, snapshot_at(context, found.table, statement.version_as_of,
                                             statement.timestamp_as_of));
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
