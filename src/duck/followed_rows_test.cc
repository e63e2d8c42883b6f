#include "duck/followed_rows.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>

namespace strandline::duck {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Runs of id, version, row, count.
std::shared_ptr<const RowIds> ids(std::vector<IdRun> runs) {
  auto ids = std::make_shared<RowIds>();
  for (const IdRun& run : runs) ids->row_count += run.count;
  ids->run_count = runs.size();
  if (!runs.empty()) ids->pieces.push_back(std::move(runs));
  return ids;
}

// "fate id x count @ file.row", sorted.
std::vector<std::string> told(const std::optional<std::vector<FollowedRun>>& runs) {
  if (!runs) return {"all ids are needed"};
  constexpr const char* kNames[] = {"gone", "new", "old", "changed"};
  std::vector<std::string> texts;
  for (const FollowedRun& run : *runs) {
    texts.push_back(std::string(kNames[static_cast<size_t>(run.fate)]) + " " +
                    std::to_string(run.rows.id) + "x" + std::to_string(run.rows.count) + "@" +
                    std::to_string(run.rows.file) + "." + std::to_string(run.rows.row));
  }
  std::sort(texts.begin(), texts.end());
  return texts;
}

TEST(FollowedRowsTest, RowsAreReadWhereTheyWereChanged) {
  FollowedRows rows;
  ASSERT_TRUE(rows.know(0, *ids({{100, 1, 0, 10}})));
  // 103 and 104 are updated, 200 is new.
  EXPECT_THAT(told(rows.follow({0}, {{1, {ids({{103, 2, 0, 2}, {200, 2, 5, 1}}), 11}}})),
              ElementsAre("changed 103x2@1.0", "new 200x1@1.5", "old 103x2@0.3"));
  EXPECT_TRUE(rows.knows(1));
  EXPECT_FALSE(rows.knows(0));
  // In two files now.
  EXPECT_THAT(
      told(rows.follow({1}, {{2, {ids({{102, 3, 7, 2}}), 8}}, {3, {ids({{200, 3, 2, 1}}), 3}}})),
      ElementsAre("changed 102x1@2.7", "changed 103x1@2.8", "changed 200x1@3.2", "old 102x1@0.2",
                  "old 103x1@1.0", "old 200x1@1.5"));
  // Of one of them nothing is changed.
  EXPECT_THAT(told(rows.follow({3}, {{4, {ids({}), 3}}})), IsEmpty());
}

TEST(FollowedRowsTest, DeletedRowsAreNotToBeFollowed) {
  FollowedRows rows;
  ASSERT_TRUE(rows.know(0, *ids({{100, 1, 0, 10}})));
  const auto needs_all = ElementsAre("all ids are needed");
  EXPECT_THAT(told(rows.follow({0}, {{1, {ids({{103, 2, 0, 1}}), 9}}})), needs_all);
  // One is new for the one that is gone.
  EXPECT_THAT(told(rows.follow({0}, {{1, {ids({{200, 2, 0, 1}}), 10}}})), needs_all);
  EXPECT_THAT(told(rows.follow({0}, {{1, {ids({{103, 2, 0, 1}, {103, 2, 1, 1}}), 10}}})),
              needs_all);
  // Nothing was done by all that.
  EXPECT_THAT(told(rows.follow({0}, {{1, {ids({{103, 2, 0, 1}}), 10}}})),
              ElementsAre("changed 103x1@1.0", "old 103x1@0.3"));
}

TEST(FollowedRowsTest, RowsOfAFileThatIsGoneAreForgotten) {
  FollowedRows rows;
  ASSERT_TRUE(rows.know(0, *ids({{100, 1, 0, 10}})));
  ASSERT_TRUE(rows.know(1, *ids({{200, 1, 0, 5}})));
  EXPECT_FALSE(rows.know(2, *ids({{300, 1, 0, 5}, {302, 1, 5, 1}})));
  EXPECT_TRUE(rows.knows(0) && rows.knows(1));
  // The same row in another file: what happened in between is not known.
  ASSERT_TRUE(rows.know(3, *ids({{109, 1, 0, 1}})));
  EXPECT_FALSE(rows.knows(0) || rows.knows(1));
  EXPECT_TRUE(rows.knows(3));
  EXPECT_EQ(rows.run_count(), 1U);
}

}  // namespace
}  // namespace strandline::duck
