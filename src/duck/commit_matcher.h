// What commits of the automatic feed did to rows, told by row ids: rows that a commit merely copied
// are nothing, and a row that it took away and brought back otherwise is updated.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "duck/followed_rows.h"
#include "duck/match_rows.h"
#include "duck/row_ids.h"
#include "duck/row_origins.h"
#include "duck/told_changes.h"

namespace strandline::duck {

class CommitMatcher {
 public:
  // All outlive it.
  CommitMatcher(const delta::Table& table, CommitVectors* vectors, ToldChanges* told)
      : table_(table), vectors_(*vectors), told_(*told) {}

  // Tells what these commits of the plan, ascending, did; gives those that the engine has to match,
  // for an id that is there twice or for their size. Looks at as little as will do: statistics, ids
  // of new rows, all ids. Of later commits, in a plan that goes on, it looks at less if called for
  // them in their order. Errors: as scan_table.
  Result<std::vector<const cdf::CommitChanges*>> match(
      Connection& connection, const cdf::ChangePlan& plan,
      const std::vector<const cdf::CommitChanges*>& commits);

 private:
  Result<bool> tell_updates(const cdf::CommitChanges& commit);
  bool has_updated_rows_alone(const delta::AddFile& file, delta::Version version,
                              int64_t least_new_id) const;
  bool may_follow(const cdf::CommitChanges& commit);
  std::optional<int64_t> row_count(const delta::AddFile& file);
  Status read_new(size_t first, size_t* end);
  Status read_ids(size_t first, size_t* end);
  Status read_ids(const std::vector<const delta::AddFile*>& files);
  Error explain(Error error) const;
  Result<bool> follow(const cdf::CommitChanges& commit);
  void forget_ids_before(const cdf::CommitChanges& commit);
  Result<bool> match_all_ids(const cdf::CommitChanges& commit);

  const delta::Table& table_;
  CommitVectors& vectors_;
  ToldChanges& told_;

  // Of the call at hand.
  Connection* connection_ = nullptr;
  const cdf::ChangePlan* plan_ = nullptr;
  std::vector<const cdf::CommitChanges*> commits_;  // that statistics do not tell

  RowMatcher matcher_;
  std::vector<MatchedRun> matched_runs_;  // of one commit; kept for its memory
  RowOrigins origins_;                    // by the numbers that told_ gives files
  FollowedRows followed_;                 // by these, too
  // By name_of; null: too many runs.
  std::map<std::string, std::shared_ptr<const RowIds>> ids_;
  std::map<std::string, NewRows> new_rows_;
  std::map<std::string, std::optional<int64_t>> row_counts_;  // none: not known
};

}  // namespace strandline::duck
