#include "engine/drop_feature.h"

#include "base/clock.h"
#include "base/error.h"
#include "delta/checkpoint.h"
#include "delta/definition.h"
#include "delta/drop_feature.h"
#include "duck/optimize.h"
#include "duck/rewrite_table.h"
#include "engine/names.h"

namespace strandline::engine {
namespace {

// As many as Delta makes: readers try older checkpoints when one cannot be read.
constexpr int kBarrierCheckpoints = 3;

class FeatureDropper {
 public:
  FeatureDropper(duck::Connection& connection, const delta::Table& table,
                 const delta::FeatureDrop& drop)
      : connection_(connection), table_(table), drop_(drop) {}

  Status run() {
    SL_ASSIGN(const auto snapshot, table_.snapshot());
    SL_TRY(delta::check_droppable(*snapshot, drop_));
    SL_ASSIGN(const bool changed, clean());
    if (delta::needs_history_protection(name())) {
      SL_TRY(delta::write_barrier(table_, drop_.truncate_history ? 1 : kBarrierCheckpoints));
      if (changed && drop_.truncate_history) {
        return invalid_argument(
            "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD",
            "table {0} does not use the feature {1} any more, but its history does: run DROP "
            "FEATURE {1} TRUNCATE HISTORY again in 24 hours, or DROP FEATURE {1}, which keeps the "
            "history",
            table_.path(), name());
      }
    } else if (drop_.truncate_history) {
      SL_TRY(delta::write_barrier(table_, 1));
    }
    if (drop_.truncate_history) SL_TRY(delta::truncate_history(table_, name(), now_ms()));
    SL_TRY(alter(
        "DROP FEATURE",
        {{"featureName", name()}, {"truncateHistory", drop_.truncate_history ? "true" : "false"}},
        [&](delta::Alteration* alteration) { return alteration->drop_feature(drop_); }));
    // So that readers that lack the feature need not read the commit that drops it. The feature is
    // dropped without it, too.
    if (delta::needs_history_protection(name())) {
      SL_ASSIGN(const auto newest, table_.snapshot());
      (void)delta::write_checkpoint(table_, *newest);
    }
    return {};
  }

 private:
  const std::string& name() const { return drop_.feature; }

  Status alter(const std::string& operation, const std::map<std::string, std::string>& parameters,
               const std::function<Status(delta::Alteration*)>& change) {
    const auto done = delta::commit_alteration(
        table_, {operation, parameters},
        [&](const delta::Snapshot&, delta::Alteration* alteration) { return change(alteration); });
    return done.ok() ? Status() : Status(done.error());
  }

  // Takes the feature's traces from the newest version; tells whether there were any.
  Result<bool> clean() {
    SL_ASSIGN(const auto before, table_.snapshot());
    SL_TRY(alter("UNSET TBLPROPERTIES", {},
                 [&](delta::Alteration* alteration) { return alteration->stop_using(name()); }));
    SL_ASSIGN(const auto snapshot, table_.snapshot());
    if (name() == "rowTracking") {
      SL_TRY(delta::withdraw_row_ids(table_));
    } else if (name() == "domainMetadata") {
      SL_TRY(delta::remove_domains(table_));
    } else if (delta::has_file_traces(*snapshot, name())) {
      SL_TRY(rewrite());
    }
    SL_ASSIGN(const delta::Version after, table_.latest_version());
    return after != before->version;
  }

  Status rewrite() {
    if (name() == "deletionVectors") {
      duck::OptimizeOptions options;
      options.purge = true;
      options.parameters = {{"predicate", "[]"}, {"zOrderBy", "[]"}};
      const auto done = duck::optimize(connection_, table_, options);
      return done.ok() ? Status() : Status(done.error());
    }
    const bool mapping = name() == "columnMapping";
    return duck::rewrite_table(connection_, table_, mapping ? "REMOVE COLUMN MAPPING" : "REORG",
                               [&](const delta::Snapshot& snapshot) -> Result<duck::Redefinition> {
                                 duck::Redefinition next;
                                 if (!mapping) {
                                   SL_ASSIGN(next.metadata, delta::without_type_changes(snapshot));
                                   return next;
                                 }
                                 SL_ASSIGN(next.metadata, delta::without_column_mapping(snapshot));
                                 if (const auto columns = clustering_of(snapshot); !columns.empty())
                                   next.domains.push_back(delta::clustering_domain(columns));
                                 return next;
                               });
  }

  duck::Connection& connection_;
  const delta::Table& table_;
  const delta::FeatureDrop& drop_;
};

}  // namespace

Status drop_feature(duck::Connection& connection, const delta::Table& table,
                    const delta::FeatureDrop& drop) {
  return FeatureDropper(connection, table, drop).run();
}

}  // namespace strandline::engine
