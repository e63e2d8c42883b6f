#include "duck/commit_matcher.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "delta/data_path.h"
#include "delta/parquet_footer.h"
#include "delta/parquet_statistics.h"
#include "delta/row_id_columns.h"

namespace strandline::duck {
namespace {

using cdf::ChangeKind;

// Runs of row ids that are kept at a time: about 120 MB. What needs more is matched by the engine,
// which has the disk for it.
constexpr size_t kMaxRuns = 5'000'000;
// Files of so many rows are asked for their ids at a time; and of so many, or so many files, for
// those of new rows.
constexpr int64_t kRowsAtATime = 4'000'000;
constexpr int64_t kRowsWithNewAtATime = 40'000'000;
constexpr size_t kFilesWithNewAtATime = 64;

// What happened to rows, by MatchedRows.
constexpr FeedChangeKind kKinds[] = {FeedChangeKind::kDelete, FeedChangeKind::kInsert,
                                     FeedChangeKind::kUpdateBefore, FeedChangeKind::kUpdateAfter};

}  // namespace

// Whether statistics say that all rows of a file that a version made have that version, and ids
// from before it: of rows that it updated.
bool CommitMatcher::has_updated_rows_alone(const delta::AddFile& file, delta::Version version,
                                           int64_t least_new_id) const {
  const auto path = delta::resolve_data_path(table_.path(), std::string(file.path));
  if (!path.ok()) return false;
  const auto found = table_.store()->stat(*path);
  if (!found.ok()) return false;
  const auto bytes =
      delta::read_parquet_footer_bytes(table_.store().get(), *path, found->size_bytes);
  if (!bytes.ok() || !*bytes) return false;
  const auto footer = delta::parse_parquet_footer(**bytes);
  if (!footer.ok()) return false;
  // Of the one of these columns that the file has; nullopt: it has none. False: it does not tell.
  const auto look_at = [&](const std::vector<std::string>& columns,
                           std::optional<delta::LongStatistics>* statistics) {
    for (const std::string& column : columns) {
      if (std::find(footer->names.begin(), footer->names.end(), column) == footer->names.end())
        continue;
      *statistics = delta::long_statistics(**bytes, column);
      return statistics->has_value();
    }
    return true;
  };
  const auto columns = delta::row_id_columns(*plan_->definition);
  std::optional<delta::LongStatistics> ids, versions;
  if (!look_at(columns.ids, &ids) || !look_at(columns.versions, &versions)) return false;
  const bool are_old = ids && ids->null_count == 0 && ids->max && *ids->max < least_new_id;
  return are_old && (!versions || !versions->min || *versions->min >= version);
}

// A commit that updated rows and did nothing else, as the log and the new files' statistics tell:
// as many rows as it took away came back, under ids from before it. False, and nothing done, where
// that is not so or cannot be told.
Result<bool> CommitMatcher::tell_updates(const cdf::CommitChanges& commit) {
  std::vector<const cdf::FileChange*> gone, back, added;
  int64_t least_new_id = INT64_MAX;
  for (const cdf::FileChange& change : commit.files) {
    if (change.kind == ChangeKind::kDelete) {
      gone.push_back(&change);
    } else if (change.only_deleted_by) {
      back.push_back(&change);
    } else {
      if (change.file.deletion_vector || !change.file.base_row_id ||
          change.file.default_row_commit_version != commit.version) {
        return false;
      }
      least_new_id = std::min(least_new_id, *change.file.base_row_id);
      added.push_back(&change);
    }
  }
  int64_t came = 0;
  for (const cdf::FileChange* change : added) {
    const auto count = row_count(change->file);
    if (!count || !has_updated_rows_alone(change->file, commit.version, least_new_id)) return false;
    came += *count;
  }
  // Vectors mostly grow.
  for (const cdf::FileChange* change : back) {
    SL_ASSIGN(const auto rows, vectors_.only(commit, *change));
    if (!rows->empty()) return false;
  }
  int64_t went = 0;
  size_t listed = 0;
  std::vector<CommitVectors::RowSetPointer> rows_gone;  // null: all
  for (const cdf::FileChange* change : gone) {
    rows_gone.emplace_back();
    if (change->only_deleted_by) {
      SL_ASSIGN(rows_gone.back(), vectors_.only(commit, *change));
      listed += rows_gone.back()->cardinality();
      went += static_cast<int64_t>(rows_gone.back()->cardinality());
      continue;
    }
    const auto count = row_count(change->file);
    if (!count) return false;
    const auto& vector = change->file.deletion_vector;
    went += *count - (vector ? vector->cardinality : 0);
  }
  if (came != went || !told_.has_room_for(listed)) return false;
  const size_t before = told_.number(commit, FeedChangeKind::kUpdateBefore);
  const size_t after = told_.number(commit, FeedChangeKind::kUpdateAfter);
  for (size_t i = 0; i < gone.size(); ++i) {
    if (rows_gone[i] == nullptr) {
      told_.add_file(gone[i]->file, before);
    } else {
      told_.add_rows(told_.file_number(gone[i]->file), *rows_gone[i], before);
    }
  }
  for (const cdf::FileChange* change : added) told_.add_file(change->file, after);
  return true;
}

// A read that failed because files are gone says which.
Error CommitMatcher::explain(Error error) const {
  if (auto missing = cdf::find_missing_file(table_.store().get(), *plan_)) return *missing;
  return error;
}

std::optional<int64_t> CommitMatcher::row_count(const delta::AddFile& file) {
  const auto [at, is_new] = row_counts_.emplace(told_.name_of(file), std::nullopt);
  if (is_new) {
    // Whoever reads the file says what is wrong with it.
    if (const auto count = delta::count_rows(table_.store().get(), table_.path(), file); count.ok())
      at->second = *count;
  }
  return at->second;
}

// Whether new rows may tell all: whole files are written anew by this commit, and so many rows are
// there again.
bool CommitMatcher::may_follow(const cdf::CommitChanges& commit) {
  int64_t more = 0;
  for (const cdf::FileChange& change : commit.files) {
    if (change.only_deleted_by || change.file.deletion_vector) return false;
    const bool is_insert = change.kind == ChangeKind::kInsert;
    if (is_insert && change.file.default_row_commit_version != commit.version) return false;
    const auto count = row_count(change.file);
    if (!count) return false;
    more += is_insert ? *count : -*count;
  }
  return more >= 0;
}

// Ids of the new rows of commits from this one on, and of the files that they begin with, as many
// as are read at a time; end: the first commit that needs more or other ones.
Status CommitMatcher::read_new(size_t first, size_t* end) {
  std::vector<const delta::AddFile*> added, before;
  std::vector<std::string> names;
  std::set<std::string> known;
  int64_t rows = 0;
  const auto has_room = [&] {
    return rows < kRowsWithNewAtATime && added.size() < kFilesWithNewAtATime;
  };
  new_rows_.clear();
  for (*end = first; *end < commits_.size(); ++*end) {
    const cdf::CommitChanges& commit = *commits_[*end];
    if (*end > first && !(has_room() && may_follow(commit))) break;
    for (const cdf::FileChange& change : commit.files) {
      const std::string name = told_.name_of(change.file);
      if (!known.insert(name).second) continue;
      if (change.kind == ChangeKind::kInsert) {
        added.push_back(&change.file);
        names.push_back(name);
        rows += row_count(change.file).value_or(0);
      } else if (!followed_.knows(told_.file_number(change.file))) {
        before.push_back(&change.file);
      }
    }
  }
  SL_TRY(read_ids(before));
  auto read = read_new_rows(*connection_, table_, *plan_->definition, added, kMaxRuns);
  if (!read.ok()) return explain(std::move(read).error());
  for (size_t i = 0; i < names.size(); ++i) {
    NewRows& of_file = new_rows_[names[i]] = std::move(read->at(i));
    if (of_file.is_all()) ids_.emplace(names[i], of_file.ids);
  }
  return {};
}

// Ids of all rows of the files that commits from this one on need, as many as are read at a time;
// end: the first commit that needs more or may do without.
Status CommitMatcher::read_ids(size_t first, size_t* end) {
  std::vector<const delta::AddFile*> files;
  std::set<std::string> wanted;
  int64_t rows = 0;
  for (*end = first; *end < commits_.size(); ++*end) {
    const cdf::CommitChanges& commit = *commits_[*end];
    if (*end > first && (rows >= kRowsAtATime || may_follow(commit))) break;
    for (const cdf::FileChange& change : commit.files) {
      const std::string name = told_.name_of(change.file);
      if (ids_.contains(name) || !wanted.insert(name).second) continue;
      files.push_back(&change.file);
      rows += row_count(change.file).value_or(change.file.size_bytes / 32 + 1);
    }
  }
  return read_ids(files);
}

// Of those that are not read yet.
Status CommitMatcher::read_ids(const std::vector<const delta::AddFile*>& files) {
  std::vector<const delta::AddFile*> unread;
  for (const delta::AddFile* file : files) {
    if (!ids_.contains(told_.name_of(*file))) unread.push_back(file);
  }
  size_t kept = 0;
  for (const auto& [name, ids] : ids_) kept += ids ? ids->run_count : 0;
  auto ids = read_row_ids(*connection_, table_, *plan_->definition, unread,
                          kMaxRuns - std::min(kMaxRuns, kept));
  if (!ids.ok()) return explain(std::move(ids).error());
  for (size_t i = 0; i < unread.size(); ++i)
    ids_[told_.name_of(*unread[i])] = std::move(ids->at(i));
  return {};
}

Result<std::vector<const cdf::CommitChanges*>> CommitMatcher::match(
    Connection& connection, const cdf::ChangePlan& plan,
    const std::vector<const cdf::CommitChanges*>& commits) {
  connection_ = &connection;
  plan_ = &plan;
  commits_.clear();
  for (const cdf::CommitChanges* commit : commits) {
    SL_ASSIGN(const bool is_told, tell_updates(*commit));
    if (!is_told) commits_.push_back(commit);
  }
  std::vector<const cdf::CommitChanges*> unmatched;
  for (size_t first = 0; first < commits_.size();) {
    size_t end = first;
    const bool follows = may_follow(*commits_[first]);
    SL_TRY(follows ? read_new(first, &end) : read_ids(first, &end));
    for (; first < end; ++first) {
      const cdf::CommitChanges& commit = *commits_[first];
      if (follows) {
        SL_ASSIGN(const bool done, follow(commit));
        if (done) {
          forget_ids_before(commit);
          continue;
        }
        std::vector<const delta::AddFile*> files;
        for (const cdf::FileChange& change : commit.files) files.push_back(&change.file);
        SL_TRY(read_ids(files));
      }
      SL_ASSIGN(const bool done, match_all_ids(commit));
      if (!done) unmatched.push_back(&commit);
      if (std::any_of(commit.files.begin(), commit.files.end(), [&](const auto& change) {
            return followed_.knows(told_.file_number(change.file));
          })) {
        followed_.forget();
      }
      if (follows) forget_ids_before(commit);
    }
    // A file that a later commit needs is mostly needed by the next one too; what comes after the
    // last one needs files that it wrote.
    std::set<std::string> needed;
    const bool is_last = end == commits_.size();
    for (const cdf::FileChange& change : commits_[is_last ? end - 1 : end]->files) {
      if (!is_last || change.kind == ChangeKind::kInsert) needed.insert(told_.name_of(change.file));
    }
    std::erase_if(ids_, [&](const auto& known) { return !needed.contains(known.first); });
    origins_.keep([&](size_t file) { return needed.contains(told_.name_of(file)); });
  }
  return unmatched;
}

void CommitMatcher::forget_ids_before(const cdf::CommitChanges& commit) {
  for (const cdf::FileChange& change : commit.files) {
    if (change.kind == ChangeKind::kDelete) ids_.erase(told_.name_of(change.file));
  }
}

// By the new rows alone. False, and nothing done, where that takes all ids.
Result<bool> CommitMatcher::follow(const cdf::CommitChanges& commit) {
  std::vector<size_t> before;
  std::vector<FollowedRows::After> after;
  for (const cdf::FileChange& change : commit.files) {
    const std::string name = told_.name_of(change.file);
    const size_t file = told_.file_number(change.file);
    if (change.kind == ChangeKind::kInsert) {
      after.push_back({file, new_rows_[name]});
      continue;
    }
    if (!followed_.knows(file)) {
      const auto ids = ids_.find(name);
      if (ids == ids_.end() || ids->second == nullptr) return false;
      if (!followed_.know(file, *ids->second)) return false;
    }
    before.push_back(file);
  }
  // One may have pushed out another.
  if (!std::all_of(before.begin(), before.end(),
                   [&](size_t file) { return followed_.knows(file); }))
    return false;
  const auto is_unknown = [](const auto& one) { return one.rows.ids == nullptr; };
  const auto is_all = [](const auto& one) { return one.rows.is_all(); };
  if (std::any_of(after.begin(), after.end(), is_unknown)) return false;
  // Where no row was copied, whole files tell more shortly what happened.
  if (std::all_of(after.begin(), after.end(), is_all)) return false;
  const auto runs = followed_.follow(before, after);
  if (!runs) return false;
  size_t rows = 0;
  for (const FollowedRun& run : *runs) rows += run.rows.count;
  if (!told_.has_room_for(rows) || followed_.run_count() > kMaxRuns) {
    followed_.forget();
    return false;
  }
  std::optional<size_t> changes[std::size(kKinds)];
  for (const FollowedRun& run : *runs) {
    auto& change = changes[static_cast<size_t>(run.fate)];
    if (!change) change = told_.number(commit, kKinds[static_cast<size_t>(run.fate)]);
    told_.add_rows(run.rows.file, run.rows.row, run.rows.count, *change);
  }
  return true;
}

// False, and nothing done, where that needs the engine.
Result<bool> CommitMatcher::match_all_ids(const cdf::CommitChanges& commit) {
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
    rows.ids = ids_[told_.name_of(change.file)];
    if (rows.ids == nullptr) return false;
    rows.file = tallies.size() / kFates;
    tallies.resize(tallies.size() + kFates, {told_.file_number(change.file), rows.ids->row_count});
    if (change.only_deleted_by) {
      SL_ASSIGN(rows.only, vectors_.only(commit, change));
    } else if (change.file.deletion_vector) {
      SL_ASSIGN(rows.dead, vectors_.of(commit, change.file, *change.file.deletion_vector));
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
  size_t rows = 0;
  for (const Tally& tally : tallies) rows += tally.is_whole() ? 0 : tally.count;
  if (!told_.has_room_for(rows)) return false;
  for (size_t i = 0; i < tallies.size(); ++i) {
    Tally& tally = tallies[i];
    if (tally.count == 0) continue;
    tally.change = told_.number(commit, kKinds[i % kFates]);
    if (tally.is_whole()) told_.add_file(tally.file, tally.change);
  }
  for (const MatchedRun& run : runs) {
    const Tally& tally = tally_of(run);
    if (tally.is_whole()) continue;
    if (run.fate == MatchedRows::kOnlyAfter || run.fate == MatchedRows::kChangedAfter) {
      told_.add_rows(tally.file, run.row, run.count, tally.change);
      continue;
    }
    // Where it came from more rows of the feed lie together than in the files that it went through.
    for (uint64_t done = 0; done < run.count;) {
      const RowPlace place = origins_.find(tally.file, run.row + done, run.count - done);
      told_.add_rows(place.file, place.row, place.count, tally.change);
      done += place.count;
    }
  }
  origins_.add(matcher_.copies(),
               [&tallies](size_t of_commit) { return tallies[of_commit * kFates].file; });
  return true;
}

}  // namespace strandline::duck
