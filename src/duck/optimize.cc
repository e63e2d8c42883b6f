#include "duck/optimize.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "base/error.h"
#include "base/ids.h"
#include "base/json.h"
#include "duck/curve.h"
#include "duck/delta_io.h"
#include "duck/names.h"
#include "duck/optimize_plan.h"
#include "duck/table_change.h"

namespace strandline::duck {
namespace {

constexpr int kConflictAttempts = 4;
// Merged files are smaller than their parts together, so merging once can leave files to merge.
constexpr int kMostRounds = 10;

bool is_partition_column(const delta::Snapshot& snapshot, const std::string& name) {
  const auto& names = snapshot.metadata.partition_columns;
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& other) { return same_name(name, other); });
}

ColumnPaths clustering_paths(const delta::Snapshot& snapshot) {
  ColumnPaths paths;
  const auto domain = snapshot.domains.find("delta.clustering");
  if (domain == snapshot.domains.end()) return paths;
  const auto json = Json::parse(domain->second.configuration);
  const Json* const columns = json.ok() ? json->get("clusteringColumns") : nullptr;
  if (columns == nullptr) return paths;
  for (const Json& column : columns->items()) {
    std::vector<std::string>& path = paths.emplace_back();
    for (const Json& part : column.items()) path.push_back(part.text());
  }
  return paths;
}

// A path of the log as SQL over the logical columns.
Result<std::string> path_sql(const delta::Snapshot& snapshot,
                             const std::vector<std::string>& path) {
  const ColumnMode mode = column_mode(snapshot);
  const std::vector<Field>* fields = &snapshot.schema.fields;
  std::string sql;
  for (const std::string& part : path) {
    const Field* found = nullptr;
    for (const Field& field : *fields) {
      if (file_name(field, mode) == part) found = &field;
    }
    if (found == nullptr) {
      return corrupt("DELTA_CLUSTERING_COLUMN_MISSING",
                     "table {} is clustered by {}, which is not among its columns",
                     snapshot.table_path, part);
    }
    sql = sql.empty() ? quote_name(found->name)
                      : fmt::format("struct_extract({}, {})", sql, quote_literal(found->name));
    static const std::vector<Field> kNone;
    fields = found->type.id == TypeId::kStruct ? &*found->type.fields : &kNone;
  }
  return sql;
}

class Optimizer {
 public:
  Optimizer(Connection& connection, const delta::Table& table, const OptimizeOptions& options)
      : connection_(connection), table_(table), options_(options) {}

  Result<OptimizeReport> run() {
    int conflicts = 0;
    for (int round = 0; round < kMostRounds;) {
      SL_ASSIGN(snapshot_, table_.snapshot());
      SL_ASSIGN(const ColumnPaths sort, sort_paths());
      SL_ASSIGN(const std::vector<size_t> selected, select_files());
      const RewritePlan plan = plan_rewrite(*snapshot_, selected, sort, options_);
      if (round == 0) {
        report_.considered_files = plan.considered_files;
        report_.partitions = plan.partitions;
      }
      if (plan.jobs.empty()) break;
      const Status done = rewrite(plan, sort);
      if (!done.ok()) {
        if (done.error().kind != ErrorKind::kConflict || ++conflicts == kConflictAttempts)
          return done.error();
        continue;
      }
      ++round;
      // Everything is sorted anew once, not for ever.
      if (options_.full) break;
    }
    if (report_.commits <= 1)
      report_.skipped_files = report_.considered_files - report_.removed.count;
    return report_;
  }

 private:
  // What rows are to be sorted by; empty for none.
  Result<ColumnPaths> sort_paths() const {
    const ColumnPaths clustering = clustering_paths(*snapshot_);
    const std::string& path = table_.path();
    if (!options_.zorder_by.empty() && !clustering.empty()) {
      return invalid_argument("DELTA_CLUSTERING_WITH_ZORDER_BY",
                              "table {} has clustering columns, which OPTIMIZE sorts by: leave out "
                              "ZORDER BY",
                              path);
    }
    if (options_.where && !clustering.empty() && !options_.purge) {
      return invalid_argument("DELTA_CLUSTERING_WITH_PARTITION_PREDICATE",
                              "table {} has clustering columns, so no partitions: leave out WHERE",
                              path);
    }
    if (options_.full && clustering.empty()) {
      return invalid_argument("DELTA_OPTIMIZE_FULL_NOT_SUPPORTED",
                              "table {} has no clustering columns: leave out FULL", path);
    }
    if (options_.purge || options_.automatic) return ColumnPaths();
    if (options_.zorder_by.empty()) return clustering;
    if (options_.zorder_by.size() > kMostCurveColumns) {
      return unsupported("UNSUPPORTED_CONSTRUCT", "ZORDER BY takes at most {} columns",
                         kMostCurveColumns);
    }
    ColumnPaths paths;
    for (const std::string& name : options_.zorder_by) {
      const Field* const field = snapshot_->schema.get(name);
      if (field == nullptr) {
        return invalid_argument("DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST",
                                "ZORDER BY names {}, which is no column of table {}", name, path);
      }
      if (is_partition_column(*snapshot_, name)) {
        return invalid_argument("DELTA_ZORDERING_ON_PARTITION_COLUMN",
                                "ZORDER BY names {}, by which table {} is partitioned: rows are "
                                "sorted inside each partition by the other columns",
                                field->name, path);
      }
      paths.push_back({file_name(*field, column_mode(*snapshot_))});
    }
    return paths;
  }

  // Files whose partition values meet the condition.
  Result<std::vector<size_t>> select_files() const {
    std::vector<size_t> all(snapshot_->files.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    if (!options_.where) return all;
    std::map<std::vector<std::optional<std::string>>, std::vector<size_t>> groups;
    std::vector<const Field*> columns;
    std::string known;
    for (const std::string& name : snapshot_->metadata.partition_columns) {
      known += (known.empty() ? "" : ", ") + name;
      if (const Field* const field = snapshot_->schema.get(name)) columns.push_back(field);
    }
    const ColumnMode mode = column_mode(*snapshot_);
    for (const size_t index : all) {
      const auto& given = snapshot_->files[index].partition_values;
      std::vector<std::optional<std::string>> values;
      for (const Field* const field : columns) {
        const auto value = given.find(file_name(*field, mode));
        values.push_back(value == given.end() ? std::nullopt : value->second);
      }
      groups[std::move(values)].push_back(index);
    }
    std::string rows;
    std::vector<const std::vector<size_t>*> by_number;
    for (const auto& [values, files] : groups) {
      rows += fmt::format("{}SELECT {} AS __strandline_group", rows.empty() ? "" : " UNION ALL ",
                          by_number.size());
      for (size_t c = 0; c < columns.size(); ++c) {
        rows += fmt::format(", {} AS {}", partition_literal(values[c], columns[c]->type),
                            quote_name(columns[c]->name));
      }
      by_number.push_back(&files);
    }
    if (rows.empty()) {
      rows = "SELECT 0 AS __strandline_group";
      for (const Field* const field : columns) {
        rows += fmt::format(", {} AS {}", partition_literal(std::nullopt, field->type),
                            quote_name(field->name));
      }
      rows += " WHERE false";
    }
    auto found = connection_.query(
        fmt::format("SELECT __strandline_group FROM ({}) AS t WHERE {}", rows, *options_.where));
    if (!found.ok()) {
      if (found.error().kind != ErrorKind::kInvalidArgument) return std::move(found).error();
      return invalid_argument("DELTA_NON_PARTITION_COLUMN_REFERENCE",
                              "WHERE of OPTIMIZE on table {} may only name its partition columns "
                              "({})",
                              table_.path(), known.empty() ? "it has none" : known);
    }
    std::vector<size_t> selected;
    for (const auto& row : found->rows) {
      const auto& files = *by_number[static_cast<size_t>(std::stoull(*row[0]))];
      selected.insert(selected.end(), files.begin(), files.end());
    }
    std::sort(selected.begin(), selected.end());
    return selected;
  }

  Status rewrite(const RewritePlan& plan, const ColumnPaths& sort) {
    AppliedChange applied;
    auto transaction = [&]() -> Result<delta::Transaction> {
      SL_ASSIGN(auto begun, delta::Transaction::begin(table_, snapshot_));
      for (const RewriteJob& job : plan.jobs) SL_TRY(write(job, sort, &applied.written));
      return begun;
    }();
    if (!transaction.ok()) {
      remove_files(table_, applied);
      return std::move(transaction).error();
    }
    OptimizeReport round = report_;
    std::vector<size_t> read;
    for (const RewriteJob& job : plan.jobs) {
      ++round.batches;
      for (const size_t index : job.files) {
        const delta::AddFile& file = snapshot_->files[index];
        read.push_back(index);
        transaction->remove_file(file, false);
        round.removed.add(file.size_bytes);
        if (!file.deletion_vector) continue;
        ++round.deletion_vectors_removed;
        round.deleted_rows_removed += file.deletion_vector->cardinality;
      }
    }
    for (const delta::AddFile& file : applied.written) {
      transaction->add_file(file);
      round.added.add(file.size_bytes);
    }
    transaction->set_read_files(std::move(read));
    auto parameters = options_.parameters;
    parameters["auto"] = options_.automatic ? "true" : "false";
    transaction->set_operation(options_.purge ? "REORG" : "OPTIMIZE", parameters);
    transaction->set_metric("numAddedFiles", round.added.count - report_.added.count);
    transaction->set_metric("numRemovedFiles", round.removed.count - report_.removed.count);
    transaction->set_metric("numAddedBytes", round.added.total_bytes - report_.added.total_bytes);
    transaction->set_metric("numRemovedBytes",
                            round.removed.total_bytes - report_.removed.total_bytes);
    transaction->set_metric("numDeletionVectorsRemoved",
                            round.deletion_vectors_removed - report_.deletion_vectors_removed);
    SL_TRY(commit_change(*transaction, table_, applied));
    report_ = round;
    ++report_.commits;
    return {};
  }

  // One job's files; they go to `written`, also when a later job fails.
  Status write(const RewriteJob& job, const ColumnPaths& sort,
               std::vector<delta::AddFile>* written) {
    const bool with_row_ids = snapshot_->row_tracking_enabled();
    ScanOptions scan_options;
    scan_options.files = job.files;
    scan_options.with_row_ids = with_row_ids;
    SL_ASSIGN(const auto scan, scan_table(connection_, table_, snapshot_, scan_options));
    WriteOptions write_options;
    write_options.with_row_ids = with_row_ids;
    // A job that merges is one file, whatever the engine guesses of its size on the way.
    write_options.target_file_size_bytes = std::numeric_limits<int64_t>::max();
    std::unique_ptr<Curve> curve;
    if (job.sorted) {
      std::vector<std::string> columns;
      for (const auto& path : sort) {
        SL_ASSIGN(std::string column, path_sql(*snapshot_, path));
        columns.push_back(std::move(column));
      }
      SL_ASSIGN(curve, build_curve(connection_, scan->sql(), columns));
      write_options.order_by = curve->order_by();
      write_options.rows_per_file = job.rows_per_file;
    }
    SL_ASSIGN(auto files, write_files(connection_, table_, *snapshot_,
                                      "SELECT * FROM " + scan->sql() + " AS t", write_options));
    const std::string cube = new_uuid();
    for (delta::AddFile& file : files) {
      file.data_change = false;
      if (job.sorted) {
        file.tags[kCubeIdTag] = cube;
        file.tags[kCubeColumnsTag] = print_paths(sort);
        if (options_.zorder_by.empty()) file.clustering_provider = "strandline";
      }
      written->push_back(std::move(file));
    }
    return {};
  }

  Connection& connection_;
  const delta::Table& table_;
  const OptimizeOptions& options_;
  std::shared_ptr<const delta::Snapshot> snapshot_;
  OptimizeReport report_;
};

}  // namespace

void FileSizes::add(int64_t bytes) {
  min_bytes = count == 0 ? bytes : std::min(min_bytes, bytes);
  max_bytes = std::max(max_bytes, bytes);
  total_bytes += bytes;
  ++count;
}

Result<OptimizeReport> optimize(Connection& connection, const delta::Table& table,
                                const OptimizeOptions& options) {
  return Optimizer(connection, table, options).run();
}

}  // namespace strandline::duck
