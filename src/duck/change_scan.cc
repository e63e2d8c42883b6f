#include "duck/change_scan.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cdf/primary_key.h"
#include "duck/commit_matcher.h"
#include "duck/told_changes.h"

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

// What goes from piece to piece of a plan.
struct KnownRows {
  KnownRows(delta::Table of, std::shared_ptr<const delta::Snapshot> definition)
      : table(std::move(of)), told(table, std::move(definition)) {}
  KnownRows(const KnownRows&) = delete;
  KnownRows& operator=(const KnownRows&) = delete;

  const delta::Table table;
  CommitVectors vectors{table};
  ToldChanges told;
  CommitMatcher matcher{table, &vectors, &told};
};

class ChangeScanBuilder {
 public:
  ChangeScanBuilder(Connection& connection, KnownRows* known, const cdf::ChangePlan& plan,
                    bool with_row_ids)
      : connection_(connection),
        known_(*known),
        plan_(plan),
        with_row_ids_(with_row_ids),
        key_(cdf::primary_key(*plan.definition)) {}

  Result<std::unique_ptr<Scan>> build();

 private:
  Status add_single(FeedPart* part, const cdf::CommitChanges& commit,
                    const cdf::FileChange& change);
  Status tell(const cdf::CommitChanges& commit, const cdf::FileChange& change);
  Result<std::string> scan(const FeedPart& part, bool with_row_ids);
  std::string columns(const std::string& qualifier, const std::string& change_type) const;
  std::string key_struct() const;
  std::string with_key(const std::string& relation) const;
  std::string matched(const std::string& relation) const;
  std::string recorded(const std::string& relation) const;

  Connection& connection_;
  KnownRows& known_;
  const cdf::ChangePlan& plan_;
  const bool with_row_ids_;
  const std::vector<cdf::KeyPart> key_;
  std::unique_ptr<ChangeScan> result_ = std::make_unique<ChangeScan>();
};

FeedChangeKind plain_kind(const cdf::FileChange& change) {
  return change.kind == ChangeKind::kInsert ? FeedChangeKind::kInsert : FeedChangeKind::kDelete;
}

// A change whose rows all say or mean the same, as a file of its own.
Status ChangeScanBuilder::add_single(FeedPart* part, const cdf::CommitChanges& commit,
                                     const cdf::FileChange& change) {
  const size_t what = part->number(commit, plain_kind(change));
  if (!change.only_deleted_by) {
    part->add(change.file, {what, nullptr});
    return {};
  }
  SL_ASSIGN(const auto rows, known_.vectors.only(commit, change));
  part->add_rows(change.file, *rows, what);
  return {};
}

// A change that stands for itself.
Status ChangeScanBuilder::tell(const cdf::CommitChanges& commit, const cdf::FileChange& change) {
  const size_t what = known_.told.number(commit, plain_kind(change));
  if (!change.only_deleted_by) {
    known_.told.add_file(change.file, what);
    return {};
  }
  SL_ASSIGN(const auto rows, known_.vectors.only(commit, change));
  known_.told.add_rows(known_.told.file_number(change.file), *rows, what);
  return {};
}

Result<std::string> ChangeScanBuilder::scan(const FeedPart& part, bool with_row_ids) {
  ScanOptions options;
  options.with_row_ids = with_row_ids;
  options.feed = part.feed;
  auto scan = scan_table(connection_, known_.table, part.snapshot, options);
  if (!scan.ok()) {
    if (auto missing = cdf::find_missing_file(known_.table.store().get(), plan_)) return *missing;
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
  FeedPart pairing(*plan_.definition);  // inserts and deletes that the engine matches
  FeedPart recordings(*plan_.definition);
  recordings.feed->is_recorded = true;
  std::vector<const cdf::CommitChanges*> mixed;
  for (const cdf::CommitChanges& commit : plan_.commits) {
    if (commit.needs_matching(plan_.mode)) {
      mixed.push_back(&commit);
      continue;
    }
    for (const cdf::FileChange& change : commit.files) {
      SL_TRY(change.kind == ChangeKind::kRecorded ? add_single(&recordings, commit, change)
                                                  : tell(commit, change));
    }
  }
  SL_ASSIGN(const auto unmatched, known_.matcher.match(connection_, plan_, mixed));
  for (const cdf::CommitChanges* commit : unmatched) {
    for (const cdf::FileChange& change : commit->files)
      SL_TRY(add_single(&pairing, *commit, change));
  }
  const bool looks_at_keys = known_.told.has_updates() && !key_.empty();
  const FeedPart known = known_.told.finish();
  std::string sql;
  const auto put = [&sql](const std::string& select) {
    sql += (sql.empty() ? "" : " UNION ALL ") + select;
  };
  if (!known.empty() || (pairing.empty() && recordings.empty())) {
    SL_ASSIGN(const std::string relation, scan(known, looks_at_keys || with_row_ids_));
    const std::string type = fmt::format("p.{}", cdf::kChangeTypeColumn);
    put(looks_at_keys ? with_key(relation)
                      : fmt::format("SELECT {} FROM {} AS p", columns("p", type), relation));
  }
  if (!pairing.empty()) {
    SL_ASSIGN(const std::string relation, scan(pairing, true));
    put(matched(relation));
  }
  if (!recordings.empty()) {
    SL_ASSIGN(const std::string relation, scan(recordings, false));
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

struct ChangeScans::Known : KnownRows {
  using KnownRows::KnownRows;
};

ChangeScans::ChangeScans(delta::Table table) : table_(std::move(table)) {}
ChangeScans::ChangeScans(ChangeScans&&) noexcept = default;
ChangeScans& ChangeScans::operator=(ChangeScans&&) noexcept = default;
ChangeScans::~ChangeScans() = default;

Result<std::unique_ptr<Scan>> ChangeScans::next(Connection& connection,
                                                const cdf::ChangePlan& piece, bool with_row_ids) {
  if (known_ == nullptr) known_ = std::make_unique<Known>(table_, piece.definition);
  return ChangeScanBuilder(connection, known_.get(), piece, with_row_ids).build();
}

Result<std::unique_ptr<Scan>> scan_changes(Connection& connection, const delta::Table& table,
                                           const cdf::ChangePlan& plan, bool with_row_ids) {
  return ChangeScans(table).next(connection, plan, with_row_ids);
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
