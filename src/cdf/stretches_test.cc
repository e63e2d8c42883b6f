#include "cdf/stretches.h"

#include <gmock/gmock.h>

#include "cdf/test_support.h"

namespace strandline::cdf {
namespace {

using ::testing::ElementsAre;

// "first-last: versions of commits" of each piece.
std::vector<std::string> pieces(const ChangePlan& plan, int64_t max_rows) {
  std::vector<std::string> out;
  for (const ChangePlan& piece : split_plan(plan, max_rows)) {
    std::string line = fmt::format("{}-{}:", piece.first, piece.last);
    for (const CommitChanges& commit : piece.commits) line += fmt::format(" {}", commit.version);
    EXPECT_EQ(piece.definition, plan.definition);
    EXPECT_EQ(piece.mode, plan.mode);
    out.push_back(std::move(line));
  }
  return out;
}

CommitChanges commit_of(Version version, int64_t size_bytes) {
  CommitChanges commit;
  commit.version = version;
  FileChange change;
  change.file.size_bytes = size_bytes;
  commit.files.push_back(std::move(change));
  return commit;
}

TEST(StretchesTest, CutsBetweenCommitsByTheirRows) {
  ChangePlan plan;
  plan.mode = FeedMode::kAutomatic;
  plan.definition = std::make_shared<delta::Snapshot>();
  plan.first = 2;
  plan.last = 9;
  EXPECT_THAT(pieces(plan, 100), ElementsAre("2-9:"));  // none changed rows
  // 32 bytes are a row or two.
  plan.commits = {commit_of(3, 32), commit_of(5, 3200), commit_of(6, 32), commit_of(8, 32)};
  EXPECT_THAT(pieces(plan, 1000), ElementsAre("2-9: 3 5 6 8"));
  EXPECT_THAT(pieces(plan, 103), ElementsAre("2-5: 3 5", "6-9: 6 8"));
  EXPECT_THAT(pieces(plan, 102), ElementsAre("2-4: 3", "5-5: 5", "6-9: 6 8"));
  EXPECT_THAT(pieces(plan, 1), ElementsAre("2-4: 3", "5-5: 5", "6-7: 6", "8-9: 8"));
}

TEST(StretchesTest, OfAChangedVectorTheNewRowsCount) {
  ChangePlan plan;
  plan.first = 1;
  plan.last = 2;
  for (const Version version : {1, 2}) {
    CommitChanges commit = commit_of(version, 1 << 30);
    FileChange& change = commit.files[0];
    delta::DeletionVectorDescriptor vector;
    vector.cardinality = 1000 + version * 10 - 10;
    change.file.deletion_vector = vector;
    vector.cardinality += 10;
    change.only_deleted_by = vector;
    plan.commits.push_back(std::move(commit));
  }
  EXPECT_THAT(pieces(plan, 20), ElementsAre("1-2: 1 2"));
  EXPECT_THAT(pieces(plan, 19), ElementsAre("1-1: 1", "2-2: 2"));
}

}  // namespace
}  // namespace strandline::cdf
