#include "duck/change_scan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cdf/primary_key.h"
#include "delta/data_path.h"
#include "duck/match_rows.h"
#include "duck/row_ids.h"
#include "duck/row_origins.h"

namespace strandline::duck {
namespace {

using cdf::ChangeKind;

// The scans that a feed is made of.
class ChangeScan final : public Scan {
 public:
  const std::string& sql() const override { return sql_; }
  const std::string& keep(std::unique_ptr<Scan> scan) {
    scans_.push_back(std::move(scan));
    return scans_.back()->sql();
  }
  void set_sql(std::string sql) { sql_ = std::move(sql); }

 private:
  std::vector<std::unique_ptr<Scan>> scans_;
  std::string sql_;
};

// Runs of row ids that are kept at a time, and changed rows that are kept one by one: about 128 MB
// each. What needs more is matched by the engine, which has the disk for it.
constexpr size_t kMaxRuns = 5'000'000;
constexpr size_t kMaxChangedRows = 16'000'000;
// Files of so many rows are asked for their ids at a time.
constexpr int64_t kRowsAtATime = 4'000'000;

// Files of one kind, as a snapshot that scan_table reads.
struct Part {
  std::shared_ptr<delta::Snapshot> snapshot;
  std::shared_ptr<Feed> feed = std::make_shared<Feed>();

  bool empty() const { return feed->files.empty(); }
  void add(delta::AddFile file, FeedFile of_feed) {
    snapshot->files.push_back(std::move(file));
    feed->files.push_back(std::move(of_feed));
  }
};

// A data file and the rows of it that a feed has.
struct FileRows {
  delta::AddFile file;  // without a deletion vector
  std::vector<ChangedRow> rows;
};

// What happened to rows that were matched, by MatchedRows.
constexpr FeedChangeKind kKinds[] = {FeedChangeKind::kDelete, FeedChangeKind::kInsert,
                                     FeedChangeKind::kUpdateBefore, FeedChangeKind::kUpdateAfter};

class ChangeScanBuilder {
 public:
  ChangeScanBuilder(Connection& connection, const delta::Table& table, const cdf::ChangePlan& plan,
                    bool with_row_ids)
      : connection_(connection),
        table_(table),
        plan_(plan),
        with_row_ids_(with_row_ids),
        key_(cdf::primary_key(*plan.definition)) {}

  Result<std::unique_ptr<Scan>> build();

 private:
  using RowSetPointer = std::shared_ptr<const delta::RowSet>;

  Part make_part() const;
  Result<RowSetPointer> vector_of(const cdf::CommitChanges& commit, const delta::AddFile& file,
                                  const delta::DeletionVectorDescriptor& vector);
  Result<RowSetPointer> only(const cdf::CommitChanges& commit, const cdf::FileChange& change);
  size_t number(Part* part, const cdf::CommitChanges& commit, FeedChangeKind kind) const;
  std::string name_of(const delta::AddFile& file) const;
  size_t file_number(const delta::AddFile& file);
  Status add_single(Part* part, const cdf::CommitChanges& commit, const cdf::FileChange& change);
  Status add(const cdf::CommitChanges& commit, const cdf::FileChange& change);
  Status match_commits();
  Status read_ids(size_t first, size_t* end);
  Result<bool> match(const cdf::CommitChanges& commit);
  void add_rows(size_t file, uint64_t first, uint64_t count, size_t change);
  void add_changed_rows();
  Result<std::string> scan(const Part& part, bool with_row_ids);
  std::string columns(const std::string& qualifier, const std::string& change_type) const;
  std::string key_struct() const;
  std::string with_key(const std::string& relation) const;
  std::string matched(const std::string& relation) const;
  std::string recorded(const std::string& relation) const;

  Connection& connection_;
  const delta::Table& table_;
  const cdf::ChangePlan& plan_;
  const bool with_row_ids_;
  const std::vector<cdf::KeyPart> key_;
  std::unique_ptr<ChangeScan> result_ = std::make_unique<ChangeScan>();
  std::map<std::string, RowSetPointer> vectors_;  // of the commit before and this one

  Part told_ = make_part();     // rows whose change is known
  Part pairing_ = make_part();  // inserts and deletes that the engine matches
  Part recordings_ = make_part();
  std::vector<FileRows> files_;  // rows whose change is known one by one; go into told_
  std::map<std::string, size_t> file_numbers_;  // by name_of
  size_t changed_rows_ = 0;                     // of files_
  bool has_updates_ = false;                    // told_ has

  std::vector<const cdf::CommitChanges*> unmatched_;
  RowMatcher matcher_;
  std::vector<MatchedRun> matched_runs_;  // of one commit; kept for its memory
  RowOrigins origins_;                    // of rows of files_
  // By name_of; null: too many runs.
  std::map<std::string, std::shared_ptr<const RowIds>> ids_;
};

Part ChangeScanBuilder::make_part() const {
  Part part;
  part.snapshot = std::make_shared<delta::Snapshot>(*plan_.definition);
  return part;
}

Result<ChangeScanBuilder::RowSetPointer> ChangeScanBuilder::vector_of(
    const cdf::CommitChanges& commit, const delta::AddFile& file,
    const delta::DeletionVectorDescriptor& vector) {
  // The vector after one commit is that before the next.
  constexpr size_t kMaxVectors = 64;
  const auto known = vectors_.find(vector.unique_id());
  if (known != vectors_.end()) return known->second;
  auto rows = table_.deletion_vector(vector);
  if (!rows.ok()) {
    return rows.error().with_context(fmt::format("table {}, version {}, deletion vector of {}",
                                                 table_.path(), commit.version, file.path));
  }
  if (vectors_.size() >= kMaxVectors) vectors_.clear();
  auto shared = std::make_shared<const delta::RowSet>(std::move(rows).value());
  vectors_.emplace(vector.unique_id(), shared);
  return shared;
}

// Rows of a change of single rows: what one vector deletes and another one does not.
Result<ChangeScanBuilder::RowSetPointer> ChangeScanBuilder::only(const cdf::CommitChanges& commit,
                                                                 const cdf::FileChange& change) {
  SL_ASSIGN(const auto gone, vector_of(commit, change.file, *change.only_deleted_by));
  if (!change.file.deletion_vector) return gone;
  SL_ASSIGN(const auto dead, vector_of(commit, change.file, *change.file.deletion_vector));
  delta::RowSet rows = *gone;
  rows.subtract(*dead);
  return std::make_shared<const delta::RowSet>(std::move(rows));
}

// Of what a commit did, in this part.
size_t ChangeScanBuilder::number(Part* part, const cdf::CommitChanges& commit,
                                 FeedChangeKind kind) const {
  // Those of one commit stand at the end, if they are there.
  auto& changes = part->feed->changes;
  for (size_t i = changes.size(); i-- > 0 && changes[i].version == commit.version;) {
    if (changes[i].kind == kind) return i;
  }
  changes.push_back({kind, commit.version, commit.timestamp_ms * 1000});
  return changes.size() - 1;
}

// Of a file's rows and their ids, whatever is deleted.
std::string ChangeScanBuilder::name_of(const delta::AddFile& file) const {
  return fmt::format("{} {} {}", file.base_row_id.value_or(-1),
                     file.default_row_commit_version.value_or(-1),
                     delta::canonical_path(table_.path(), file.path));
}

size_t ChangeScanBuilder::file_number(const delta::AddFile& file) {
  const auto [at, is_new] = file_numbers_.emplace(name_of(file), files_.size());
  if (is_new) {
    files_.push_back({file, {}});
    files_.back().file.deletion_vector.reset();
  }
  return at->second;
}

FeedChangeKind plain_kind(const cdf::FileChange& change) {
  return change.kind == ChangeKind::kInsert ? FeedChangeKind::kInsert : FeedChangeKind::kDelete;
}

// A change whose rows all say or mean the same, as a file of its own.
Status ChangeScanBuilder::add_single(Part* part, const cdf::CommitChanges& commit,
                                     const cdf::FileChange& change) {
  FeedFile file;
  file.change = number(part, commit, plain_kind(change));
  delta::AddFile read = change.file;
  if (change.only_deleted_by) {
    SL_ASSIGN(const auto rows, only(commit, change));
    if (rows->empty()) return {};
    auto changed = std::make_shared<ChangedRows>();
    rows->for_each([&](uint64_t row) {
      if (row <= ChangedRow::kMaxRow) changed->emplace_back(row, file.change);
    });
    file.rows = std::move(changed);
    read.deletion_vector.reset();
  }
  part->add(std::move(read), std::move(file));
  return {};
}

// A change that stands for itself.
Status ChangeScanBuilder::add(const cdf::CommitChanges& commit, const cdf::FileChange& change) {
  if (!change.only_deleted_by || changed_rows_ > kMaxChangedRows)
    return add_single(&told_, commit, change);
  SL_ASSIGN(const auto rows, only(commit, change));
  if (rows->empty()) return {};
  const size_t what = number(&told_, commit, plain_kind(change));
  std::vector<ChangedRow>& changed = files_[file_number(change.file)].rows;
  const size_t before = changed.size();
  rows->for_each([&](uint64_t row) {
    if (row <= ChangedRow::kMaxRow) changed.emplace_back(row, what);
  });
  changed_rows_ += changed.size() - before;
  return {};
}

// Ids of the files that commits from this one on need, as many as are read at a time; end: the
// first commit that needs more.
Status ChangeScanBuilder::read_ids(size_t first, size_t* end) {
  std::vector<const delta::AddFile*> files;
  std::vector<std::string> names;
  int64_t rows = 0;
  for (*end = first; *end < unmatched_.size() && (*end == first || rows < kRowsAtATime); ++*end) {
    for (const cdf::FileChange& change : unmatched_[*end]->files) {
      const std::string name = name_of(change.file);
      if (!ids_.emplace(name, nullptr).second) continue;
      files.push_back(&change.file);
      names.push_back(name);
      rows += delta::num_records(change.file).value_or(change.file.size_bytes / 32 + 1);
    }
  }
  size_t kept = 0;
  for (const auto& [name, ids] : ids_) kept += ids ? ids->run_count : 0;
  auto ids = read_row_ids(connection_, table_, *plan_.definition, files,
                          kMaxRuns - std::min(kMaxRuns, kept));
  if (!ids.ok()) {
    if (auto missing = cdf::find_missing_file(table_.store().get(), plan_)) return *missing;
    return ids.error();
  }
  for (size_t i = 0; i < names.size(); ++i) ids_[names[i]] = std::move(ids->at(i));
  return {};
}

// Inserts and deletes of one commit that share row ids: copied rows are nothing, others updates.
Status ChangeScanBuilder::match_commits() {
  for (size_t first = 0; first < unmatched_.size();) {
    size_t end = first;
    SL_TRY(read_ids(first, &end));
    for (; first < end; ++first) {
      const cdf::CommitChanges& commit = *unmatched_[first];
      SL_ASSIGN(const bool done, match(commit));
      if (done) continue;
      for (const cdf::FileChange& change : commit.files)
        SL_TRY(add_single(&pairing_, commit, change));
    }
    // A file that a later commit needs is mostly needed by the next one too.
    std::set<std::string> needed;
    if (end < unmatched_.size()) {
      for (const cdf::FileChange& change : unmatched_[end]->files)
        needed.insert(name_of(change.file));
    }
    std::erase_if(ids_, [&](const auto& known) { return !needed.contains(known.first); });
    origins_.keep([&](size_t file) { return needed.contains(name_of(files_[file].file)); });
  }
  return {};
}

// False, and nothing done, where that needs the engine.
Result<bool> ChangeScanBuilder::match(const cdf::CommitChanges& commit) {
  // What became of the rows of one file: as many of them, and their change once it has a number.
  struct Tally {
    size_t file = 0;  // in files_
    uint64_t file_rows = 0;
    uint64_t count = 0;
    size_t change = 0;
    bool is_whole() const { return count == file_rows; }
  };
  constexpr size_t kFates = std::size(kKinds);
  std::vector<Tally> tallies;  // by the file's place in the commit, then by fate
  std::vector<IdentifiedRows> before, after;
  for (const cdf::FileChange& change : commit.files) {
    IdentifiedRows rows;
    rows.ids = ids_[name_of(change.file)];
    if (rows.ids == nullptr) return false;
    rows.file = tallies.size() / kFates;
    tallies.resize(tallies.size() + kFates, {file_number(change.file), rows.ids->row_count});
    if (change.only_deleted_by) {
      SL_ASSIGN(rows.only, only(commit, change));
    } else if (change.file.deletion_vector) {
      SL_ASSIGN(rows.dead, vector_of(commit, change.file, *change.file.deletion_vector));
    }
    (change.kind == ChangeKind::kInsert ? after : before).push_back(std::move(rows));
  }
  const auto tally_of = [&tallies](const MatchedRun& run) -> Tally& {
    return tallies[run.file * kFates + static_cast<size_t>(run.fate)];
  };
  std::vector<MatchedRun>& runs = matched_runs_;
  runs.clear();
  const auto visit = [&](const MatchedRun& run) {
    runs.push_back(run);
    tally_of(run).count += run.count;
  };
  if (!matcher_.match(before, after, visit)) return false;
  // Files all of whose rows share their fate need no list of them.
  size_t rows = changed_rows_;
  for (const Tally& tally : tallies) rows += tally.is_whole() ? 0 : tally.count;
  if (rows > kMaxChangedRows) return false;
  changed_rows_ = rows;
  for (size_t i = 0; i < tallies.size(); ++i) {
    Tally& tally = tallies[i];
    if (tally.count == 0) continue;
    const FeedChangeKind kind = kKinds[i % kFates];
    tally.change = number(&told_, commit, kind);
    has_updates_ = has_updates_ || kind == FeedChangeKind::kUpdateAfter;
    if (tally.is_whole()) told_.add(files_[tally.file].file, {tally.change, nullptr});
  }
  for (const MatchedRun& run : runs) {
    const Tally& tally = tally_of(run);
    if (tally.is_whole()) continue;
    if (run.fate == MatchedRows::kOnlyAfter || run.fate == MatchedRows::kChangedAfter) {
      add_rows(tally.file, run.row, run.count, tally.change);
      continue;
    }
    // Where it came from more rows of the feed lie together than in the files that it went through.
    for (uint64_t done = 0; done < run.count;) {
      const RowPlace place = origins_.find(tally.file, run.row + done, run.count - done);
      add_rows(place.file, place.row, place.count, tally.change);
      done += place.count;
    }
  }
  origins_.add(matcher_.copies(),
               [&tallies](size_t of_commit) { return tallies[of_commit * kFates].file; });
  return true;
}

// Rows of one of files_.
void ChangeScanBuilder::add_rows(size_t file, uint64_t first, uint64_t count, size_t change) {
  std::vector<ChangedRow>& changed = files_[file].rows;
  for (uint64_t row = first; row < first + count; ++row) changed.emplace_back(row, change);
}

void ChangeScanBuilder::add_changed_rows() {
  for (FileRows& file : files_) {
    sort_by_row(&file.rows);
    for (std::vector<ChangedRow>& rows : without_repeats(std::move(file.rows))) {
      if (rows.empty()) continue;
      FeedFile part;
      part.rows = std::make_shared<const ChangedRows>(std::move(rows));
      told_.add(file.file, std::move(part));
    }
  }
}

Result<std::string> ChangeScanBuilder::scan(const Part& part, bool with_row_ids) {
  ScanOptions options;
  options.with_row_ids = with_row_ids;
  options.feed = part.feed;
  auto scan = scan_table(connection_, table_, part.snapshot, options);
  if (!scan.ok()) {
    if (auto missing = cdf::find_missing_file(table_.store().get(), plan_)) return *missing;
    return scan.error();
  }
  return result_->keep(std::move(scan).value());
}

// The feed's columns of a relation, with an expression as the change type.
std::string ChangeScanBuilder::columns(const std::string& qualifier,
                                       const std::string& change_type) const {
  std::string text;
  for (const Field& field : plan_.definition->schema.fields) {
    const std::string name = quote_name(field.name);
    text += fmt::format("{}.{} AS {}, ", qualifier, name, name);
  }
  if (with_row_ids_) text += fmt::format("{0}.{1} AS {1}, ", qualifier, kRowIdColumn);
  return text + fmt::format("{0} AS {1}, {2}.{3} AS {3}, {2}.{4} AS {4}", change_type,
                            cdf::kChangeTypeColumn, qualifier, cdf::kCommitVersionColumn,
                            cdf::kCommitTimestampColumn);
}

// The primary key as one value that is never null.
std::string ChangeScanBuilder::key_struct() const {
  std::string parts;
  for (size_t i = 0; i < key_.size(); ++i) {
    std::string names;
    for (const std::string& name : key_[i]) {
      names += (names.empty() ? "" : ", ") + quote_name(name);
    }
    parts += fmt::format("{}k{} := coalesce({})", i == 0 ? "" : ", ", i, names);
  }
  return "struct_pack(" + parts + ")";
}

// Updates that change the primary key are a delete and an insert.
std::string ChangeScanBuilder::with_key(const std::string& relation) const {
  const auto key = [](const char* type) {
    return fmt::format("any_value(key) FILTER (WHERE {} = '{}')", cdf::kChangeTypeColumn, type);
  };
  const std::string change_type = fmt::format(
      "CASE WHEN moved.version IS NULL OR r.{0} NOT IN ('update_preimage', 'update_postimage') "
      "THEN r.{0} WHEN r.{0} = 'update_preimage' THEN 'delete' ELSE 'insert' END",
      cdf::kChangeTypeColumn);
  return fmt::format(
      "SELECT {} FROM {} AS r LEFT JOIN (SELECT {} AS version, {} AS row_id FROM (SELECT *, {} AS "
      "key FROM {} WHERE {} IN ('update_preimage', 'update_postimage')) GROUP BY ALL HAVING {} IS "
      "DISTINCT FROM {}) AS moved ON r.{} = moved.version AND r.{} = moved.row_id",
      columns("r", change_type), relation, cdf::kCommitVersionColumn, kRowIdColumn, key_struct(),
      relation, cdf::kChangeTypeColumn, key("update_preimage"), key("update_postimage"),
      cdf::kCommitVersionColumn, kRowIdColumn);
}

// Deletes and inserts with row ids -> changes. The ids are read first, and alone: what changed is
// mostly a small part of what was rewritten.
std::string ChangeScanBuilder::matched(const std::string& relation) const {
  const std::string both = "bool_or(is_insert) AND NOT bool_and(is_insert)";
  std::string is_update = both;
  std::string key;
  if (!key_.empty()) {
    key = ", " + key_struct() + " AS key";
    is_update +=
        " AND any_value(key) FILTER (WHERE is_insert) IS NOT DISTINCT FROM any_value(key) FILTER "
        "(WHERE NOT is_insert)";
  }
  const std::string ids = fmt::format(
      "SELECT {} AS version, {} AS row_id, {} AS row_version, {} = 'insert' AS is_insert{} FROM {}",
      cdf::kCommitVersionColumn, kRowIdColumn, kRowVersionColumn, cdf::kChangeTypeColumn, key,
      relation);
  const std::string change_type = fmt::format(
      "CASE WHEN NOT changed.is_update THEN candidate.{0} WHEN candidate.{0} = 'delete' THEN "
      "'update_preimage' ELSE 'update_postimage' END",
      cdf::kChangeTypeColumn);
  return fmt::format(
      "SELECT {} FROM {} AS candidate JOIN (SELECT version, row_id, {} AS is_update FROM ({}) "
      "GROUP "
      "BY version, row_id HAVING NOT (count(*) = 2 AND {} AND min(row_version) = "
      "max(row_version))) AS changed ON candidate.{} = changed.version AND candidate.{} = "
      "changed.row_id",
      columns("candidate", change_type), relation, is_update, ids, both, cdf::kCommitVersionColumn,
      kRowIdColumn);
}

// Update images without their counterpart under the same primary key are a delete and an insert.
std::string ChangeScanBuilder::recorded(const std::string& relation) const {
  if (key_.empty())
    return fmt::format("SELECT {} FROM {} AS r",
                       columns("r", fmt::format("r.{}", cdf::kChangeTypeColumn)), relation);
  const auto has = [](const char* type) {
    return fmt::format("bool_or({} = '{}')", cdf::kChangeTypeColumn, type);
  };
  const std::string change_type = fmt::format(
      "CASE WHEN lone.key IS NULL OR r.{0} NOT IN ('update_preimage', 'update_postimage') THEN "
      "r.{0} WHEN r.{0} = 'update_preimage' THEN 'delete' ELSE 'insert' END",
      cdf::kChangeTypeColumn);
  return fmt::format(
      "SELECT {0} FROM (SELECT *, {1} AS __strandline_key FROM {2}) AS r LEFT JOIN (SELECT {3} AS "
      "version, {1} AS key FROM {2} WHERE {4} IN ('update_preimage', 'update_postimage') GROUP BY "
      "1, 2 HAVING NOT ({5} AND {6})) AS lone ON r.{3} = lone.version AND r.__strandline_key IS "
      "NOT DISTINCT FROM lone.key",
      columns("r", change_type), key_struct(), relation, cdf::kCommitVersionColumn,
      cdf::kChangeTypeColumn, has("update_preimage"), has("update_postimage"));
}

Result<std::unique_ptr<Scan>> ChangeScanBuilder::build() {
  recordings_.feed->is_recorded = true;
  for (const cdf::CommitChanges& commit : plan_.commits) {
    if (commit.needs_matching(plan_.mode)) {
      unmatched_.push_back(&commit);
      continue;
    }
    for (const cdf::FileChange& change : commit.files) {
      SL_TRY(change.kind == ChangeKind::kRecorded ? add_single(&recordings_, commit, change)
                                                  : add(commit, change));
    }
  }
  SL_TRY(match_commits());
  add_changed_rows();
  std::string sql;
  const auto put = [&sql](const std::string& select) {
    sql += (sql.empty() ? "" : " UNION ALL ") + select;
  };
  if (!told_.empty() || (pairing_.empty() && recordings_.empty())) {
    const bool looks_at_keys = has_updates_ && !key_.empty();
    SL_ASSIGN(const std::string relation, scan(told_, looks_at_keys || with_row_ids_));
    const std::string type = fmt::format("p.{}", cdf::kChangeTypeColumn);
    put(looks_at_keys ? with_key(relation)
                      : fmt::format("SELECT {} FROM {} AS p", columns("p", type), relation));
  }
  if (!pairing_.empty()) {
    SL_ASSIGN(const std::string relation, scan(pairing_, true));
    put(matched(relation));
  }
  if (!recordings_.empty()) {
    SL_ASSIGN(const std::string relation, scan(recordings_, false));
    put(recorded(relation));
  }
  result_->set_sql("(" + sql + ")");
  return std::unique_ptr<Scan>(std::move(result_));
}

// The types that rows of a change may have in the end.
std::vector<std::string> possible_types(const cdf::FileChange& change, bool needs_matching) {
  switch (change.kind) {
    case ChangeKind::kInsert:
      if (needs_matching) return {"insert", "update_postimage"};
      return {"insert"};
    case ChangeKind::kDelete:
      if (needs_matching) return {"delete", "update_preimage"};
      return {"delete"};
    case ChangeKind::kRecorded:
      // Whatever its writer wrote: nothing is known.
      return {};
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Scan>> scan_changes(Connection& connection, const delta::Table& table,
                                           const cdf::ChangePlan& plan, bool with_row_ids) {
  return ChangeScanBuilder(connection, table, plan, with_row_ids).build();
}

Status prune_changes(Connection& connection, const ChangeCondition& condition,
                     cdf::ChangePlan* plan) {
  // Each commit with each type that its rows may have; null for whatever the file says, which no
  // condition on types rules out.
  std::string rows;
  for (const cdf::CommitChanges& commit : plan->commits) {
    std::set<std::string> types;
    for (const cdf::FileChange& change : commit.files) {
      const auto possible = possible_types(change, commit.needs_matching(plan->mode));
      for (const std::string& type : possible) types.insert(quote_literal(type));
      if (possible.empty()) types.insert("CAST(NULL AS VARCHAR)");
    }
    for (const std::string& type : types) {
      rows += fmt::format("{}({}, {}, make_timestamptz({}))", rows.empty() ? "" : ", ", type,
                          commit.version, commit.timestamp_ms * 1000);
    }
  }
  if (rows.empty()) return {};
  const auto given = [](const std::string& text) { return text.empty() ? "true" : text; };
  SL_ASSIGN(const Rows kept,
            connection.query(fmt::format(
                "SELECT {0}, {1} FROM (VALUES {3}) AS t({0}, {1}, {2}) WHERE ({4}) AND ({0} IS "
                "NULL OR ({5}))",
                cdf::kChangeTypeColumn, cdf::kCommitVersionColumn, cdf::kCommitTimestampColumn,
                rows, given(condition.of_commits), given(condition.of_types))));
  std::set<std::pair<std::string, std::string>> wanted;
  for (const auto& row : kept.rows) wanted.emplace(row[1].value_or(""), row[0].value_or(""));

  std::vector<cdf::CommitChanges> commits;
  for (cdf::CommitChanges& commit : plan->commits) {
    const bool needs_matching = commit.needs_matching(plan->mode);
    const std::string version = std::to_string(commit.version);
    const auto may_match = [&](const cdf::FileChange& change) {
      const auto possible = possible_types(change, needs_matching);
      if (possible.empty()) return wanted.contains({version, ""});
      return std::any_of(possible.begin(), possible.end(),
                         [&](const std::string& type) { return wanted.contains({version, type}); });
    };
    // Matching needs both sides.
    if (needs_matching) {
      if (std::none_of(commit.files.begin(), commit.files.end(), may_match)) continue;
    } else {
      std::erase_if(commit.files,
                    [&](const cdf::FileChange& change) { return !may_match(change); });
    }
    if (!commit.files.empty()) commits.push_back(std::move(commit));
  }
  plan->commits = std::move(commits);
  return {};
}

}  // namespace strandline::duck
