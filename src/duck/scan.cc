// scan_table: the files of a snapshot as one relation.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <tuple>

#include "base/error.h"
#include "delta/features.h"
#include "delta/find_damage.h"
#include "delta/row_id_columns.h"
#include "delta/text_length.h"
#include "duck/delta_io.h"
#include "duck/engine.h"
#include "duck/file_layout.h"
#include "duck/file_sets.h"
#include "duck/names.h"
#include "duck/scan_filters.h"

namespace strandline::duck {
namespace {

// Up to here each partition is a branch of its own, whose constant values let the engine leave it
// out; beyond, planning the branches costs more than it saves and values are looked up by file.
constexpr size_t kMaxPartitionBranches = 32;

// A file of a feed of which only a part is read is a branch of its own from so many rows on, up to
// so many of them: the condition on its rows is then one on a single column, which the engine knows
// before it decodes the others.
constexpr int64_t kLargeFile = 200'000;
constexpr size_t kMaxFileBranches = 64;

constexpr const char* kFeedVersionColumn = "_commit_version";
constexpr const char* kFeedTimeColumn = "_commit_timestamp";

class FileScan final : public Scan {
 public:
  explicit FileScan(std::shared_ptr<FileSets> registry) : registry_(std::move(registry)) {}
  FileScan(const FileScan&) = delete;
  FileScan& operator=(const FileScan&) = delete;
  ~FileScan() override {
    for (const int64_t set : sets_) registry_->remove(set);
  }

  const std::string& sql() const override { return sql_; }
  int64_t add(FileSet files) {
    sets_.push_back(registry_->add(std::make_shared<const FileSet>(std::move(files))));
    return sets_.back();
  }
  void set_sql(std::string sql) { sql_ = std::move(sql); }

 private:
  std::shared_ptr<FileSets> registry_;
  std::vector<int64_t> sets_;
  std::string sql_;
};

using PartitionValues = std::vector<std::optional<std::string>>;  // one for each partition column

// Files with the same values of the selected partition columns that are read in one way.
struct Group {
  PartitionValues values;
  size_t layout = 0;
  bool by_row = false;        // of a feed: rows differ in what happened to them
  bool alone = false;         // one file, known by its number
  std::vector<size_t> files;  // positions in SelectedFile's vector
};

struct SelectedFile {
  size_t snapshot_index;
  const delta::AddFile* add;
};

// What is read of files of one layout.
struct ReadPlan {
  std::string parquet_schema;            // the map's entries
  std::vector<std::string> expressions;  // of the columns; empty for partition columns
  // Internal names of the materialised columns, listed; a file has at most one of each.
  std::string row_id;
  std::string row_version;
  std::string change_type;  // internal name, in files of a recorded change feed
  size_t count = 0;

  // The internal name of a new stored column.
  std::string add(const std::string& key, const std::string& type) {
    std::string name = fmt::format("c{}", count++);
    if (!parquet_schema.empty()) parquet_schema += ", ";
    parquet_schema += fmt::format("{}: {{'name': {}, 'type': {}, 'default_value': NULL}}", key,
                                  quote_literal(name), quote_literal(type));
    return name;
  }
};

// Builds the SELECT of a scan. Holds the plan's parts that all branches share.
class ScanBuilder {
 public:
  ScanBuilder(Connection& connection, const delta::Table& table, const delta::Snapshot& snapshot,
              const ScanOptions& options)
      : connection_(connection),
        table_(table),
        snapshot_(snapshot),
        options_(options),
        mode_(column_mode(snapshot)) {}

  Status build(FileScan& scan);

 private:
  Status select_columns();
  Status select_files();
  Status load_deletions();
  Status plan_layouts();
  Result<ReadPlan> plan_columns(const FileLayout& layout) const;
  Result<std::vector<Group>> make_groups() const;
  Result<std::string> branch(FileScan& scan, const Group& group,
                             const std::vector<std::string>& partition_values);
  Result<std::string> branch_by_lookup(FileScan& scan, const std::vector<Group>& groups);
  const FeedFile* feed_file(size_t i) const {
    return options_.feed ? &options_.feed->files.at(files_[i].snapshot_index) : nullptr;
  }
  int64_t physical_rows(size_t i) const;
  std::string empty_relation() const;
  bool is_partition_column(const std::string& name) const;
  bool reads_change_types() const { return options_.feed && options_.feed->is_recorded; }
  Result<FileSet> file_set(const std::vector<size_t>& files) const;
  std::string output(const std::string& expression, const std::string& name) const {
    return expression + " AS " + quote_name(name);
  }

  Connection& connection_;
  const delta::Table& table_;
  const delta::Snapshot& snapshot_;
  const ScanOptions& options_;
  const ColumnMode mode_;

  std::vector<const Field*> columns_;            // selected, in output order
  std::vector<const Field*> partition_columns_;  // selected ones among them
  std::vector<SelectedFile> files_;
  std::map<size_t, std::shared_ptr<const DeletedRows>> deletions_;  // by position in files_
  std::vector<int64_t> groups_;  // by position in files_, for lookups
  std::vector<ReadPlan> plans_;  // by layout
  std::vector<size_t> layouts_;  // by position in files_; empty when there is one
};

bool ScanBuilder::is_partition_column(const std::string& name) const {
  const auto& names = snapshot_.metadata.partition_columns;
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& other) { return same_name(name, other); });
}

Status ScanBuilder::select_columns() {
  const auto refuse_hidden = [&](bool wanted, const char* hidden) -> Status {
    if (wanted && snapshot_.schema.find(hidden)) {
      return invalid_argument("RESERVED_COLUMN_NAME",
                              "table {} has a column {}; this name is reserved: rename the column",
                              snapshot_.table_path, hidden);
    }
    return {};
  };
  SL_TRY(refuse_hidden(options_.with_positions, kFileColumn));
  SL_TRY(refuse_hidden(options_.with_positions, kRowColumn));
  SL_TRY(refuse_hidden(options_.with_row_ids, kRowIdColumn));
  SL_TRY(refuse_hidden(options_.with_row_ids, kRowVersionColumn));
  for (const char* name : {kChangeTypeColumn, kFeedVersionColumn, kFeedTimeColumn}) {
    SL_TRY(refuse_hidden(options_.feed != nullptr, name));
  }

  if (options_.columns.empty()) {
    for (const Field& field : snapshot_.schema.fields) columns_.push_back(&field);
  }
  for (const std::string& name : options_.columns) {
    const Field* field = snapshot_.schema.get(name);
    if (field == nullptr) {
      return invalid_argument("UNRESOLVED_COLUMN", "table {} has no column {}",
                              snapshot_.table_path, name);
    }
    columns_.push_back(field);
  }
  for (const Field* field : columns_) {
    if (is_partition_column(field->name)) partition_columns_.push_back(field);
  }
  return {};
}

Status ScanBuilder::select_files() {
  const auto add = [&](size_t index) -> Status {
    if (index >= snapshot_.files.size()) {
      return internal_error("SCAN_FILE_INDEX", "file {} of {} in version {} of {}", index,
                            snapshot_.files.size(), snapshot_.version, snapshot_.table_path);
    }
    files_.push_back({index, &snapshot_.files[index]});
    return {};
  };
  if (!options_.files) {
    for (size_t i = 0; i < snapshot_.files.size(); ++i) SL_TRY(add(i));
    return {};
  }
  for (const size_t index : *options_.files) SL_TRY(add(index));
  return {};
}

Status ScanBuilder::load_deletions() {
  if (!options_.apply_deletion_vectors) return {};
  // Only the selected files' vectors are read: a snapshot of just these.
  delta::Snapshot deleted;
  deleted.table_path = snapshot_.table_path;
  deleted.version = snapshot_.version;
  std::vector<size_t> positions;
  for (size_t i = 0; i < files_.size(); ++i) {
    if (!files_[i].add->deletion_vector) continue;
    deleted.files.push_back(*files_[i].add);
    positions.push_back(i);
  }
  if (positions.empty()) return {};
  SL_ASSIGN(auto vectors, table_.load_deletion_vectors(deleted));
  for (auto& [index, rows] : vectors) {
    deletions_[positions[index]] = std::make_shared<const DeletedRows>(rows);
  }
  return {};
}

Status ScanBuilder::plan_layouts() {
  std::vector<const Field*> stored;
  for (const Field* field : columns_) {
    if (!is_partition_column(field->name) && field->type.id != TypeId::kVoid) {
      stored.push_back(field);
    }
  }
  if (files_.empty() || !may_differ(snapshot_, stored)) {
    SL_ASSIGN(const FileLayout layout, usual_layout(stored, mode_));
    SL_ASSIGN(ReadPlan plan, plan_columns(layout));
    plans_.push_back(std::move(plan));
    return {};
  }
  std::vector<std::string> paths;
  for (const SelectedFile& file : files_) {
    SL_ASSIGN(std::string path,
              delta::resolve_data_path(snapshot_.table_path, std::string(file.add->path)));
    paths.push_back(std::move(path));
  }
  SL_ASSIGN(FileLayouts found, inspect_files(connection_, stored, mode_, paths));
  for (const FileLayout& layout : found.layouts) {
    SL_ASSIGN(ReadPlan plan, plan_columns(layout));
    plans_.push_back(std::move(plan));
  }
  if (plans_.size() > 1) layouts_ = std::move(found.by_path);
  return {};
}

Result<ReadPlan> ScanBuilder::plan_columns(const FileLayout& layout) const {
  ReadPlan plan;
  // The materialised row id columns and change types have no field id; with them, names must do.
  const bool by_id = mode_ == ColumnMode::kById && !options_.with_row_ids && !reads_change_types();
  size_t next_stored = 0;
  for (const Field* field : columns_) {
    if (is_partition_column(field->name)) {
      plan.expressions.emplace_back();
      continue;
    }
    if (field->type.id == TypeId::kVoid) {
      plan.expressions.emplace_back("NULL");
      continue;
    }
    const FileColumn& column = layout[next_stored++];
    std::string key = quote_literal(file_name(column.field, mode_));
    if (by_id) {
      SL_ASSIGN(const int64_t id, field_id(*field));
      key = fmt::format("{}", id);
    }
    const std::string name = plan.add(key, engine_type(column.in_file));
    std::string value = to_logical(name, column.field.type, mode_, column.rebuild);
    // The engine would cast a filter's constants to the narrower type of old files, where
    // 06:00 becomes midnight and 1.5 becomes 2.
    value = delta::has_field_metadata(Schema{{*field}}, "delta.typeChanges")
                ? out_of_reach(value)
                : unfiltered(value, column.field.type);
    plan.expressions.push_back(std::move(value));
  }
  if (options_.with_row_ids) {
    const auto materialised = delta::row_id_columns(snapshot_);
    if (materialised.empty()) {
      return unsupported("DELTA_ROW_TRACKING_NOT_ENABLED",
                         "table {} does not track rows: set 'delta.enableRowTracking' to 'true'",
                         snapshot_.table_path);
    }
    const auto list = [&plan](const std::vector<std::string>& names) {
      std::string listed;
      for (const std::string& name : names)
        listed += (listed.empty() ? "" : ", ") + plan.add(quote_literal(name), "BIGINT");
      return listed;
    };
    plan.row_id = list(materialised.ids);
    plan.row_version = list(materialised.versions);
  }
  if (reads_change_types()) {
    plan.change_type = plan.add(quote_literal(kChangeTypeColumn), "VARCHAR");
  }
  // The reader wants at least one column; a name that no file has costs nothing.
  if (plan.count == 0) plan.add(by_id ? "-1" : "''", "BOOLEAN");
  return plan;
}

Result<std::vector<Group>> ScanBuilder::make_groups() const {
  std::vector<Group> groups;
  std::map<std::tuple<PartitionValues, size_t, bool>, size_t> known;
  size_t alone = 0;
  for (size_t i = 0; i < files_.size(); ++i) {
    Group group;
    for (const Field* field : partition_columns_) {
      const auto& given = files_[i].add->partition_values;
      const auto found = given.find(file_name(*field, mode_));
      if (found == given.end()) {
        return corrupt("DELTA_PARTITION_VALUE_MISSING",
                       "version {} of table {} has a file without a value of the partition column "
                       "{}: {}",
                       snapshot_.version, snapshot_.table_path, field->name, files_[i].add->path);
      }
      group.values.push_back(found->second);
    }
    group.layout = layouts_.empty() ? 0 : layouts_[i];
    group.files = {i};
    if (const FeedFile* const feed = feed_file(i); feed != nullptr && feed->rows != nullptr) {
      group.by_row = true;
      group.alone = alone < kMaxFileBranches && physical_rows(i) >= kLargeFile;
    }
    if (group.alone) {
      ++alone;
      groups.push_back(std::move(group));
      continue;
    }
    const auto [at, is_new] =
        known.emplace(std::tuple(group.values, group.layout, group.by_row), groups.size());
    if (is_new) {
      groups.push_back(std::move(group));
    } else {
      groups[at->second].files.push_back(i);
    }
  }
  return groups;
}

// Without statistics, a guess from the size.
int64_t ScanBuilder::physical_rows(size_t i) const {
  const delta::AddFile& add = *files_[i].add;
  return delta::num_records(add).value_or(add.size_bytes / 64 + 1);
}

Result<FileSet> ScanBuilder::file_set(const std::vector<size_t>& files) const {
  FileSet set;
  set.feed = options_.feed;
  for (const size_t i : files) {
    const delta::AddFile& add = *files_[i].add;
    if (options_.with_row_ids && (!add.base_row_id || !add.default_row_commit_version)) {
      return corrupt("DELTA_ROW_ID_MISSING",
                     "table {} tracks rows, but its file {} has no baseRowId or "
                     "defaultRowCommitVersion",
                     snapshot_.table_path, add.path);
    }
    const auto deleted = deletions_.find(i);
    ScanFile file;
    file.snapshot_index = static_cast<int32_t>(files_[i].snapshot_index);
    file.group = groups_.empty() ? 0 : groups_[i];
    if (deleted != deletions_.end()) file.deleted = deleted->second;
    file.base_row_id = add.base_row_id.value_or(0);
    file.row_commit_version = add.default_row_commit_version.value_or(0);
    if (const FeedFile* const feed = feed_file(i)) {
      file.change = feed->change;
      file.changed = feed->rows;
    }
    set.files.push_back(std::move(file));
  }
  return set;
}

// A CHAR has its blanks where files have it without, as Spark's are.
std::string filled_up(const std::string& value, const Field& field) {
  if (!delta::is_char(field)) return value;
  const auto sized = delta::text_length(field);
  return fmt::format("rpad({0}, CAST(greatest(length({0}), {1}) AS INTEGER), ' ')", value,
                     (*sized)->length);
}

// SELECT over the files of a group; partition_values are expressions for partition_columns_.
Result<std::string> ScanBuilder::branch(FileScan& scan, const Group& group,
                                        const std::vector<std::string>& partition_values) {
  const ReadPlan& plan = plans_[group.layout];
  std::string paths;
  int64_t row_count = 0;
  bool has_deletions = false;
  for (const size_t i : group.files) {
    SL_ASSIGN(const std::string path,
              delta::resolve_data_path(snapshot_.table_path, std::string(files_[i].add->path)));
    if (!paths.empty()) paths += ", ";
    paths += path_literal(path);
    // It only steers the order of joins.
    const FeedFile* const feed = feed_file(i);
    row_count += feed != nullptr && feed->rows != nullptr ? static_cast<int64_t>(feed->rows->size())
                                                          : physical_rows(i);
    has_deletions = has_deletions || group.by_row || deletions_.contains(i);
  }
  const char* const file = group.alone ? "CAST(0 AS UBIGINT)" : "file_index";
  SL_ASSIGN(FileSet set_files, file_set(group.files));
  const int64_t set = scan.add(std::move(set_files));

  std::string outputs;
  const auto put = [&](const std::string& expression, const std::string& name) {
    if (!outputs.empty()) outputs += ", ";
    outputs += expression + " AS " + quote_name(name);
  };
  size_t next_partition = 0;
  for (size_t c = 0; c < columns_.size(); ++c) {
    const bool stored = !plan.expressions[c].empty();
    put(filled_up(stored ? plan.expressions[c] : partition_values[next_partition++], *columns_[c]),
        columns_[c]->name);
  }
  if (options_.with_positions) {
    put(fmt::format("sl_file({}, {})", set, file), kFileColumn);
    put("file_row_number", kRowColumn);
  }
  if (options_.with_row_ids) {
    put(fmt::format("coalesce({}, sl_row_id({}, {}, file_row_number))", plan.row_id, set, file),
        kRowIdColumn);
    put(fmt::format("coalesce({}, sl_row_version({}, {}))", plan.row_version, set, file),
        kRowVersionColumn);
  }
  if (options_.feed) {
    const std::string change =
        group.by_row ? fmt::format("sl_row_change({}, {}, file_row_number)", set, file)
                     : fmt::format("sl_file_change({}, {})", set, file);
    put(reads_change_types()
            ? plan.change_type
            : fmt::format("CASE sl_change_kind({}, {}) WHEN {} THEN 'insert' WHEN {} THEN 'delete' "
                          "WHEN {} THEN 'update_preimage' ELSE 'update_postimage' END",
                          set, change, static_cast<int>(FeedChangeKind::kInsert),
                          static_cast<int>(FeedChangeKind::kDelete),
                          static_cast<int>(FeedChangeKind::kUpdateBefore)),
        kChangeTypeColumn);
    put(fmt::format("sl_change_version({}, {})", set, change), kFeedVersionColumn);
    put(fmt::format("make_timestamptz(sl_change_time({}, {}))", set, change), kFeedTimeColumn);
  }
  return fmt::format(
      "SELECT {} FROM read_parquet([{}], schema = MAP {{{}}}, hive_partitioning = false, "
      "can_have_nan = true, explicit_cardinality = {}){}",
      outputs, paths, plan.parquet_schema, std::max<int64_t>(row_count, 1),
      has_deletions ? fmt::format(" WHERE sl_live({}, {}, file_row_number)", set, file) : "");
}

// One SELECT over the files of groups that differ in partition values alone; these come out of
// constant lists by the file's group.
Result<std::string> ScanBuilder::branch_by_lookup(FileScan& scan,
                                                  const std::vector<Group>& groups) {
  Group all;
  all.layout = groups.front().layout;
  all.by_row = groups.front().by_row;
  groups_.resize(files_.size());
  for (size_t g = 0; g < groups.size(); ++g) {
    for (const size_t i : groups[g].files) {
      groups_[i] = static_cast<int64_t>(g) + 1;
      all.files.push_back(i);
    }
  }
  std::sort(all.files.begin(), all.files.end());
  SL_ASSIGN(FileSet lookup_files, file_set(all.files));
  const int64_t lookup = scan.add(std::move(lookup_files));
  std::vector<std::string> values;
  for (size_t p = 0; p < partition_columns_.size(); ++p) {
    std::string list;
    for (const Group& group : groups) {
      if (!list.empty()) list += ", ";
      list += partition_literal(group.values[p], partition_columns_[p]->type);
    }
    values.push_back(fmt::format("([{}])[sl_group({}, file_index)]", list, lookup));
  }
  return branch(scan, all, values);
}

std::string ScanBuilder::empty_relation() const {
  std::string outputs;
  const auto put = [&](const std::string& type, const std::string& name) {
    if (!outputs.empty()) outputs += ", ";
    outputs += fmt::format("CAST(NULL AS {}) AS {}", type, quote_name(name));
  };
  for (const Field* field : columns_) put(engine_type(field->type), field->name);
  if (options_.with_positions) {
    put("INTEGER", kFileColumn);
    put("BIGINT", kRowColumn);
  }
  if (options_.with_row_ids) {
    put("BIGINT", kRowIdColumn);
    put("BIGINT", kRowVersionColumn);
  }
  if (options_.feed) {
    put("VARCHAR", kChangeTypeColumn);
    put("BIGINT", kFeedVersionColumn);
    put("TIMESTAMP WITH TIME ZONE", kFeedTimeColumn);
  }
  return "SELECT " + outputs + " WHERE false";
}

Status ScanBuilder::build(FileScan& scan) {
  SL_TRY(select_columns());
  SL_TRY(select_files());
  // The engine reads whatever is there, other rows than the log tells of too.
  if (const auto damage = delta::find_damage(table_.store().get(), snapshot_,
                                             options_.files ? &*options_.files : nullptr)) {
    return *damage;
  }
  SL_TRY(plan_layouts());
  if (files_.empty()) {
    scan.set_sql("(" + empty_relation() + ")");
    return {};
  }
  SL_TRY(load_deletions());
  SL_ASSIGN(const std::vector<Group> groups, make_groups());
  std::string sql;
  const auto add = [&sql](const std::string& one) {
    if (!sql.empty()) sql += " UNION ALL ";
    sql += one;
  };
  const auto shares = [](const Group& group) { return !group.alone; };
  const bool looks_up = std::count_if(groups.begin(), groups.end(), shares) >
                        static_cast<long>(kMaxPartitionBranches);
  if (looks_up) {
    std::map<std::pair<size_t, bool>, std::vector<Group>> alike;
    for (const Group& group : groups) {
      if (shares(group)) alike[{group.layout, group.by_row}].push_back(group);
    }
    for (const auto& [way, some] : alike) {
      SL_ASSIGN(const std::string one, branch_by_lookup(scan, some));
      add(one);
    }
  }
  for (const Group& group : groups) {
    if (looks_up && shares(group)) continue;
    std::vector<std::string> values;
    for (size_t p = 0; p < partition_columns_.size(); ++p) {
      values.push_back(partition_literal(group.values[p], partition_columns_[p]->type));
    }
    SL_ASSIGN(const std::string one, branch(scan, group, values));
    add(one);
  }
  scan.set_sql("(" + sql + ")");
  return {};
}

}  // namespace

Result<std::unique_ptr<Scan>> scan_table(Connection& connection, const delta::Table& table,
                                         std::shared_ptr<const delta::Snapshot> snapshot,
                                         const ScanOptions& options) {
  auto scan = std::make_unique<FileScan>(file_sets(connection));
  SL_TRY(ScanBuilder(connection, table, *snapshot, options).build(*scan));
  return std::unique_ptr<Scan>(std::move(scan));
}

}  // namespace strandline::duck
