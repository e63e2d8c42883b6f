#include "duck/table_change.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/invariant.h"
#include "duck/counted_write.h"
#include "duck/delta_io.h"
#include "duck/row_rules.h"

namespace strandline::duck {
namespace {

using DeadRows = std::map<size_t, delta::RowSet>;

// Carries one apply_change call.
class Change {
 public:
  Change(Connection& connection, delta::Transaction& transaction, const delta::Table& table,
         std::shared_ptr<const delta::Snapshot> base, const TableChange& change,
         AppliedChange* applied)
      : connection_(connection),
        transaction_(transaction),
        definition_(transaction.snapshot()),
        table_(table),
        base_(std::move(base)),
        change_(change),
        applied_(applied),
        with_row_ids_(change.with_row_ids && definition_.row_tracking_enabled()) {}

  Status apply();

 private:
  Status find_dead();
  Status check_dead(int64_t listed) const;
  Result<DeadRows> deleted_before() const;
  Status check_written(int64_t copied) const;
  std::string where(const char* stage) const {
    return fmt::format("{} of {}", stage, table_.path());
  }
  Status write_change_feed(RowRules* rules);
  Result<std::string> rows_left(std::unique_ptr<Scan>* scan) const;
  void remove(const delta::AddFile& file);
  // Rows of a file of the base that were live; nullopt without statistics.
  static std::optional<int64_t> live_rows(const delta::AddFile& file);

  Connection& connection_;
  delta::Transaction& transaction_;
  const delta::Snapshot& definition_;
  const delta::Table& table_;
  const std::shared_ptr<const delta::Snapshot> base_;
  const TableChange& change_;
  AppliedChange* const applied_;
  const bool with_row_ids_;
  DeadRows dead_;
};

std::optional<int64_t> Change::live_rows(const delta::AddFile& file) {
  auto rows = delta::num_records(file);
  if (rows && file.deletion_vector) *rows -= file.deletion_vector->cardinality;
  return rows;
}

void Change::remove(const delta::AddFile& file) {
  transaction_.remove_file(file);
  ++applied_->removed_files;
  applied_->removed_bytes += file.size_bytes;
  if (file.deletion_vector) ++applied_->vectors_removed;
}

Status Change::find_dead() {
  if (!base_ || change_.replace || change_.dead_rows.empty()) return {};
  int64_t listed = 0;
  SL_ASSIGN(dead_, collect_rows(connection_, change_.dead_rows, &listed));
  return check_dead(listed);
}

// A row dies once, and only one that lives.
Status Change::check_dead(int64_t listed) const {
  int64_t dead = 0;
  for (const auto& [index, positions] : dead_) {
    dead += static_cast<int64_t>(positions.cardinality());
    if (index >= base_->files.size()) {
      return invariant_error(where("write"), static_cast<int64_t>(base_->files.size()), "files",
                             static_cast<int64_t>(index), "is the number of one with dead rows");
    }
    const auto rows = delta::num_records(base_->files[index]);
    const auto last = static_cast<int64_t>(positions.max().value_or(0));
    if (rows && last >= *rows) {
      return invariant_error(where("write"), *rows, "rows are in " + base_->files[index].path, last,
                             "is the position of a dead one");
    }
  }
  SL_ASSIGN(const auto gone, deleted_before());
  for (const auto& [index, deleted] : gone) {
    const delta::RowSet& positions = dead_.at(index);
    if (positions.minus(deleted).cardinality() != positions.cardinality()) {
      return invariant_error(where("write"), static_cast<int64_t>(positions.cardinality()),
                             "rows are to die in " + base_->files[index].path,
                             static_cast<int64_t>(positions.minus(deleted).cardinality()),
                             "of them live");
    }
  }
  if (dead != listed) {
    return invariant_error(where("write"), listed, "dead rows are listed", dead,
                           "are different ones");
  }
  if (change_.dead_count && dead != *change_.dead_count) {
    return invariant_error(where("write"), *change_.dead_count, "dead rows are counted", dead,
                           "are listed");
  }
  return {};
}

// By number of a file with dead rows: what its deletion vector has.
Result<DeadRows> Change::deleted_before() const {
  delta::Snapshot touched;
  touched.table_path = base_->table_path;
  touched.version = base_->version;
  std::vector<size_t> numbers;
  for (const auto& [index, positions] : dead_) {
    if (!base_->files[index].deletion_vector) continue;
    touched.files.push_back(base_->files[index]);
    numbers.push_back(index);
  }
  SL_ASSIGN(auto vectors, table_.load_deletion_vectors(touched));
  DeadRows rows;
  for (auto& [place, deleted] : vectors) rows.emplace(numbers[place], std::move(deleted));
  return rows;
}

// New rows are written once.
Status Change::check_written(int64_t copied) const {
  const int64_t written = applied_->written_rows() - copied;
  if (change_.new_count && written != *change_.new_count) {
    return invariant_error(where("write"), *change_.new_count, "new rows are counted", written,
                           "were written");
  }
  return {};
}

// Adds and removes of whole files and growing deletion vectors tell what happened; files written
// anew, and rows that are new for old ones, do not.
Status Change::write_change_feed(RowRules* rules) {
  if (!definition_.property_is_true("delta.enableChangeDataFeed")) return {};
  const bool only_whole_files = dead_.empty();
  const bool all_die = std::all_of(dead_.begin(), dead_.end(), [&](const auto& dead) {
    return live_rows(base_->files[dead.first]) == static_cast<int64_t>(dead.second.cardinality());
  });
  const bool only_deletes =
      change_.new_rows.empty() && (definition_.deletion_vectors_enabled() || all_die);
  transaction_.set_change_feed_complete();
  if (only_whole_files || only_deletes) return {};
  if (!change_.rows) {
    return unsupported(
        "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
        "table {} has 'delta.enableChangeDataFeed' = 'true': Strandline cannot write the change "
        "data files of this update yet; set the property to 'false' (with row tracking the changes "
        "can be read without it)",
        table_.path());
  }
  if (rules->has_identity() && !change_.rows->inserted.empty() && change_.staged_inserts.empty()) {
    // The rows would get other values in the feed than in the table.
    return unsupported(
        "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
        "table {} has an identity column and 'delta.enableChangeDataFeed' = 'true': Strandline "
        "cannot insert and update rows there in one statement; use INSERT and UPDATE",
        table_.path());
  }
  SL_ASSIGN(const auto updated_after, rules->apply(change_.rows->updated_after));
  SL_ASSIGN(const auto inserted, rules->apply(change_.rows->inserted));
  std::string images;
  const auto add = [&images](const std::string& query, const char* type) {
    if (query.empty()) return;
    images +=
        fmt::format("{}SELECT *, '{}' AS {} FROM ({})", images.empty() ? "" : " UNION ALL BY NAME ",
                    type, kChangeTypeColumn, query);
  };
  add(change_.rows->deleted, "delete");
  add(change_.rows->updated_before, "update_preimage");
  add(updated_after, "update_postimage");
  add(inserted, "insert");
  if (images.empty()) return internal_error("INTERNAL_ERROR", "a change without changed rows");
  WriteOptions options;
  options.change_data = true;
  SL_ASSIGN(const auto files, write_files(connection_, table_, definition_, images, options));
  for (const auto& file : files) {
    applied_->change_files.push_back({file.path, file.partition_values, file.size_bytes});
    transaction_.add_change_file(applied_->change_files.back());
  }
  return {};
}

// The rows of the touched files that stay, with their ids.
Result<std::string> Change::rows_left(std::unique_ptr<Scan>* scan) const {
  ScanOptions options;
  options.with_positions = true;
  options.with_row_ids = with_row_ids_;
  options.files.emplace();
  for (const auto& [index, positions] : dead_) options.files->push_back(index);
  auto seen = base_;
  if (base_->metadata.schema_string != definition_.metadata.schema_string) {
    auto evolved = std::make_shared<delta::Snapshot>(*base_);
    evolved->metadata = definition_.metadata;
    evolved->schema = definition_.schema;
    seen = std::move(evolved);
  }
  SL_ASSIGN(*scan, scan_table(connection_, table_, seen, options));
  return fmt::format(
      "SELECT * EXCLUDE ({0}, {1}) FROM {2} AS s WHERE NOT EXISTS (SELECT 1 FROM ({3}) AS d "
      "WHERE d.{0} = s.{0} AND d.{1} = s.{1})",
      kFileColumn, kRowColumn, (*scan)->sql(), change_.dead_rows);
}

Status Change::apply() {
  SL_TRY(find_dead());
  SL_ASSIGN(auto rules, RowRules::of(connection_, definition_));
  if (!change_.staged_inserts.empty()) SL_TRY(rules.fill_identity(change_.staged_inserts));
  SL_TRY(write_change_feed(&rules));
  WriteOptions options;
  options.with_row_ids = with_row_ids_;
  std::string rows = change_.new_rows;
  if (!rows.empty() && change_.with_row_ids && !with_row_ids_) {
    rows =
        fmt::format("SELECT * EXCLUDE ({}, {}) FROM ({})", kRowIdColumn, kRowVersionColumn, rows);
  }
  SL_ASSIGN(rows, rules.apply(rows));
  if (base_ && change_.replace) {
    for (const auto& file : base_->files) remove(file);
  }
  for (const size_t index : change_.dead_files) remove(base_->files[index]);
  std::unique_ptr<Scan> scan;  // alive until the files are written
  const bool by_vector = definition_.deletion_vectors_enabled();
  bool any_left = false;
  bool copies_are_counted = true;
  for (const auto& [index, positions] : dead_) {
    const auto& file = base_->files[index];
    const auto dead = static_cast<int64_t>(positions.cardinality());
    const auto live = live_rows(file);
    if (!by_vector) {
      // Without deletion vectors the touched files are written anew.
      remove(file);
      if (live != dead) any_left = true;
      if (!live) copies_are_counted = false;
      applied_->copied_rows += live.value_or(dead) - dead;
    } else if (live == dead) {
      ++applied_->removed_files;
      applied_->removed_bytes += file.size_bytes;
      if (file.deletion_vector) ++applied_->vectors_removed;
    } else {
      ++applied_->vectors_added;
      if (file.deletion_vector) {
        ++applied_->vectors_updated;
        ++applied_->vectors_removed;
      }
    }
  }
  if (any_left) {
    SL_ASSIGN(const auto left, rows_left(&scan));
    rows = rows.empty() ? left : fmt::format("SELECT * FROM ({}) UNION ALL BY NAME {}", rows, left);
  }
  if (!rows.empty()) {
    auto written = write_new_files(connection_, table_, definition_, rows, options,
                                   &applied_->empty_partition_rows);
    if (!written.ok()) return rules.explain(std::move(written).error());
    applied_->written = std::move(written).value();
    for (const auto& file : applied_->written) transaction_.add_file(file);
  }
  if (applied_->copied_rows == 0 || copies_are_counted) {
    SL_TRY(check_written(applied_->copied_rows));
  }
  SL_TRY(rules.keep_identity(&transaction_));
  if (!by_vector) return {};
  for (const auto& [index, positions] : dead_) {
    SL_TRY(transaction_.delete_rows(base_->files[index], positions));
  }
  return {};
}

}  // namespace

int64_t AppliedChange::written_bytes() const {
  int64_t bytes = 0;
  for (const auto& file : written) bytes += file.size_bytes;
  return bytes;
}

int64_t AppliedChange::written_rows() const {
  int64_t rows = 0;
  for (const auto& file : written) rows += delta::num_records(file).value_or(0);
  return rows;
}

Status apply_change(Connection& connection, delta::Transaction& transaction,
                    const delta::Table& table, const std::shared_ptr<const delta::Snapshot>& base,
                    const TableChange& change, AppliedChange* applied) {
  return Change(connection, transaction, table, base, change, applied).apply();
}

Status commit_change(delta::Transaction& transaction, const delta::Table& table,
                     const AppliedChange& applied) {
  auto outcome = transaction.commit();
  if (!outcome.ok()) {
    remove_files(table, applied);
    return outcome.error();
  }
  if (const auto* conflicted = std::get_if<delta::Conflicted>(&*outcome)) {
    remove_files(table, applied);
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

void remove_files(const delta::Table& table, const AppliedChange& applied) {
  const auto remove = [&](const std::string& log_path) {
    // What cannot be removed is an orphan nobody sees.
    if (auto path = delta::resolve_data_path(table.path(), log_path); path.ok()) {
      (void)table.store()->remove(*path).ok();
    }
  };
  for (const auto& file : applied.written) remove(file.path);
  for (const auto& file : applied.change_files) remove(file.path);
}

}  // namespace strandline::duck
