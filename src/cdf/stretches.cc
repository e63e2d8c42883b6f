#include "cdf/stretches.h"

#include <utility>

namespace strandline::cdf {
namespace {

int64_t row_guess(const FileChange& change) {
  constexpr int64_t kLeastRowBytes = 32;
  if (!change.only_deleted_by) return change.file.size_bytes / kLeastRowBytes + 1;
  // Vectors mostly grow.
  const int64_t gone = change.only_deleted_by->cardinality;
  const int64_t before = change.file.deletion_vector ? change.file.deletion_vector->cardinality : 0;
  return gone > before ? gone - before : gone;
}

}  // namespace

std::vector<ChangePlan> split_plan(ChangePlan plan, int64_t max_rows) {
  std::vector<CommitChanges> commits = std::move(plan.commits);
  plan.commits.clear();
  std::vector<ChangePlan> stretches = {plan};
  int64_t rows = 0;
  for (CommitChanges& commit : commits) {
    int64_t more = 0;
    for (const FileChange& change : commit.files) more += row_guess(change);
    ChangePlan* last = &stretches.back();
    if (!last->commits.empty() && rows + more > max_rows) {
      last->last = commit.version - 1;
      last = &stretches.emplace_back(plan);
      last->first = commit.version;
      rows = 0;
    }
    rows += more;
    last->commits.push_back(std::move(commit));
  }
  return stretches;
}

}  // namespace strandline::cdf
