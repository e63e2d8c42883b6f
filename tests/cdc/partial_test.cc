// Partial updates and bitemporal tables on small, telling inputs. Broad coverage is the property
// test's.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cdc/program_fixture.h"

namespace strandline::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class PartialTest : public ProgramFixture {};

const char* const kColumns =
    "id BIGINT, a STRING, b STRING, op STRING, c ARRAY<STRING>, seq BIGINT";
const std::string kClauses =
    "KEYS (id) APPLY AS DELETE WHEN op = 'D' APPLY AS TRUNCATE WHEN op = 'T' SEQUENCE BY seq "
    "COLUMNS (id, a, b) ";
const std::string kNoNulls = kClauses + "IGNORE NULL UPDATES ";
const std::string kNamed = kClauses + "COLUMNS TO UPDATE c ";
const std::string kHistory =
    "KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS (id, a, b) STORED AS SCD TYPE "
    "2 IGNORE NULL UPDATES ";

TEST_F(PartialTest, ANullIsNotGiven) {
  deliver({kColumns, kNoNulls}, "(1, 'a1', 'b1', 'U', NULL, 1), (1, 'a5', NULL, 'U', NULL, 5)");
  EXPECT_THAT(table(), ElementsAre("1|a5|b1"));
  // Late, yet the newest that gives b.
  deliver({kColumns, kNoNulls}, "(1, 'a3', 'b3', 'U', NULL, 3)");
  EXPECT_THAT(table(), ElementsAre("1|a5|b3"));
  // Only what still gives something is kept.
  EXPECT_THAT(state(), UnorderedElementsAre("1|3|3|-|-|b3", "1|5|3|-|a5|-"));
}

TEST_F(PartialTest, ADeleteResets) {
  deliver({kColumns, kNoNulls}, "(1, 'a1', 'b1', 'U', NULL, 1), (1, 'a5', NULL, 'U', NULL, 5)");
  deliver({kColumns, kNoNulls}, "(1, NULL, NULL, 'D', NULL, 3)");
  EXPECT_THAT(table(), ElementsAre("1|a5|-"));
  const BatchOutcome late = deliver({kColumns, kNoNulls}, "(1, NULL, 'b2', 'U', NULL, 2)");
  EXPECT_TRUE(late.changed_nothing());
  deliver({kColumns, kNoNulls}, "(1, NULL, 'b3', 'U', NULL, 3)");
  EXPECT_THAT(table(), ElementsAre("1|a5|b3"));
}

TEST_F(PartialTest, ALateTruncateDerivesRowsAnew) {
  deliver({kColumns, kNoNulls},
          "(1, 'a1', 'b1', 'U', NULL, 1), (1, 'a5', NULL, 'U', NULL, 5), (2, 'x', 'y', 'U', NULL, "
          "2), (3, 'x', 'y', 'U', NULL, 9)");
  const BatchOutcome outcome = deliver({kColumns, kNoNulls}, "(NULL, NULL, NULL, 'T', NULL, 4)");
  EXPECT_THAT(table(), UnorderedElementsAre("1|a5|-", "3|x|y"));
  EXPECT_EQ(outcome.metrics.num_upserted_rows, 1);
  EXPECT_EQ(outcome.metrics.num_deleted_rows, 1);
}

TEST_F(PartialTest, NamedColumnsAreGivenNullsIncluded) {
  deliver({kColumns, kNamed}, "(1, 'a1', 'b1', 'U', NULL, 1), (1, 'zz', NULL, 'U', ['B'], 2)");
  EXPECT_THAT(table(), ElementsAre("1|a1|-"));
  // None: the event exists all the same.
  deliver({kColumns, kNamed}, "(2, 'a1', 'b1', 'U', [], 1)");
  EXPECT_THAT(table(), UnorderedElementsAre("1|a1|-", "2|-|-"));
  // Keys, repeats, nulls and columns that are left out do not count.
  deliver({kColumns, kNamed}, "(2, 'a2', 'b2', 'U', ['id', 'b', 'b', NULL, 'seq', 'op'], 2)");
  EXPECT_THAT(table(), UnorderedElementsAre("1|a1|-", "2|-|b2"));
  const Error error = deliver_badly({kColumns, kNamed}, "(2, 'a2', 'b2', 'U', ['b', 'b.x'], 3)");
  EXPECT_EQ(error.code, "AUTOCDC_COLUMNS_NOT_FOUND_IN_SCHEMA");
  EXPECT_THAT(error.message, HasSubstr("'b.x'"));
}

TEST_F(PartialTest, StructsAreGivenLeafByLeaf) {
  const Flow flow{"id BIGINT, s STRUCT<x: INT, y: STRUCT<z: STRING>>, seq BIGINT",
                  "KEYS (id) IGNORE NULL UPDATES SEQUENCE BY seq COLUMNS * EXCEPT (seq)"};
  deliver(flow, "(1, {'x': 1, 'y': {'z': 'one'}}, 1), (1, {'x': NULL, 'y': {'z': 'two'}}, 2)");
  EXPECT_THAT(table(), ElementsAre("1|{'x': 1, 'y': {'z': two}}"));
  deliver(flow, "(1, {'x': 7, 'y': {'z': NULL}}, 5), (2, {'x': NULL, 'y': {'z': NULL}}, 1)");
  EXPECT_THAT(table(), UnorderedElementsAre("1|{'x': 7, 'y': {'z': two}}", "2|-"));
}

TEST_F(PartialTest, AHistoryIsFilledBeforeVersionsAreCompared) {
  deliver({kColumns, kHistory},
          "(1, 'a1', 'b1', 'U', NULL, 1), (1, NULL, 'b5', 'U', NULL, 5), (1, NULL, NULL, 'U', "
          "NULL, 7)");
  EXPECT_THAT(table(), UnorderedElementsAre("1|a1|b1|1|5", "1|a1|b5|5|-"));
  deliver({kColumns, kHistory}, "(1, 'a3', NULL, 'U', NULL, 3)");
  EXPECT_THAT(table(), UnorderedElementsAre("1|a1|b1|1|3", "1|a3|b1|3|5", "1|a3|b5|5|-"));
  deliver({kColumns, kHistory}, "(1, NULL, NULL, 'D', NULL, 4)");
  EXPECT_THAT(table(), UnorderedElementsAre("1|a1|b1|1|3", "1|a3|b1|3|4", "1|-|b5|5|-"));
}

// A flow of partial updates joins one of whole rows, whose state knows nothing of leaves.
TEST_F(PartialTest, PartialUpdatesComeToAStateOfWholeRows) {
  for (const char* stored : {"", "STORED AS SCD TYPE 2 "}) {
    lake_ = std::make_unique<ToyLake>(*connection_);
    const std::string clauses =
        "KEYS (id) SEQUENCE BY seq COLUMNS (id, a, b) " + std::string(stored);
    deliver({kColumns, clauses}, "(1, 'a1', 'b1', 'U', NULL, 1), (2, 'x', 'y', 'U', NULL, 1)");
    deliver({kColumns, clauses + "IGNORE NULL UPDATES"}, "(1, NULL, 'b2', 'U', NULL, 2)");
    const std::vector<std::string> rows = table();
    EXPECT_THAT(rows, testing::Contains(testing::StartsWith("1|a1|b2")));
    EXPECT_THAT(rows, testing::Contains(testing::StartsWith("2|x|y")));
    // A whole row sets what it leaves out to null.
    deliver({kColumns, clauses}, "(1, 'a3', NULL, 'U', NULL, 3)");
    EXPECT_THAT(table(), testing::Contains(testing::StartsWith("1|a3|-")));
  }
}

TEST_F(PartialTest, ConflictsAreCounted) {
  const BatchOutcome outcome =
      deliver({kColumns, kNoNulls},
              "(1, 'x', NULL, 'U', NULL, 1), (1, NULL, 'y', 'U', NULL, 1), (2, 'x', NULL, 'U', "
              "NULL, 1), (2, 'y', 'z', 'U', NULL, 1)");
  EXPECT_THAT(table(), UnorderedElementsAre("1|x|y", "2|y|z"));
  EXPECT_EQ(outcome.metrics.num_sequence_conflicts, 1);
}

// --- bitemporal ----------------------------------------------------------------------------------

const char* const kFacts = "id BIGINT, v STRING, op STRING, bt BIGINT, st BIGINT";
const std::string kBeliefs =
    "KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY bt COLUMNS (id, v) STORED AS BITEMPORAL "
    "SYSTEM SEQUENCE BY st ";

TEST_F(PartialTest, ALateFactChangesWhatIsBelievedFromThenOn) {
  deliver({kFacts, kBeliefs}, "(1, 'a', 'U', 10, 100), (1, 'b', 'U', 20, 200)");
  const auto before = table();
  EXPECT_THAT(before,
              UnorderedElementsAre("1|a|10|-|100|200", "1|a|10|20|200|-", "1|b|20|-|200|-"));
  const BatchOutcome outcome = deliver({kFacts, kBeliefs}, "(1, 'c', 'U', 15, 300)");
  EXPECT_THAT(table(),
              UnorderedElementsAre("1|a|10|-|100|200", "1|a|10|20|200|300", "1|b|20|-|200|-",
                                   "1|a|10|15|300|-", "1|c|15|20|300|-"));
  EXPECT_EQ(outcome.target_dead, 1);  // only the belief that ends
  // Late on the axis of the system: what was believed since is rewritten.
  deliver({kFacts, kBeliefs}, "(1, NULL, 'D', 18, 250)");
  EXPECT_THAT(table(),
              UnorderedElementsAre("1|a|10|-|100|200", "1|a|10|20|200|250", "1|a|10|18|250|300",
                                   "1|b|20|-|200|-", "1|a|10|15|300|-", "1|c|15|18|300|-"));
}

TEST_F(PartialTest, ALaterSystemTimeCorrectsABusinessTime) {
  deliver({kFacts, kBeliefs}, "(1, 'wrong', 'U', 10, 1), (1, 'right', 'U', 10, 2)");
  EXPECT_THAT(table(), UnorderedElementsAre("1|wrong|10|-|1|2", "1|right|10|-|2|-"));
  deliver({kFacts, kBeliefs}, "(1, NULL, 'D', 10, 3)");
  EXPECT_THAT(table(), UnorderedElementsAre("1|wrong|10|-|1|2", "1|right|10|-|2|3"));
  EXPECT_TRUE(deliver({kFacts, kBeliefs}, "(1, NULL, 'D', 10, 3)").changed_nothing());
}

TEST_F(PartialTest, ANullSystemSequenceFailsTheBatchWhole) {
  const Error error = deliver_badly({kFacts, kBeliefs}, "(1, 'a', 'U', 10, NULL)");
  EXPECT_EQ(error.code, "AUTOCDC_MICROBATCH_VALIDATION.NULL_SEQUENCE");
  EXPECT_THAT(error.message, HasSubstr("SYSTEM SEQUENCE BY is null"));
  EXPECT_THAT(table(), IsEmpty());
}

// --- hand edits ----------------------------------------------------------------------------------

const char* const kSmall = "id BIGINT, v STRING, op STRING, seq BIGINT";
const std::string kRows =
    "KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS (id, v) ";
const std::string kVersions = kRows + "STORED AS SCD TYPE 2 ";

class HandEditTest : public PartialTest {
 protected:
  void SetUp() override {
    PartialTest::SetUp();
    lake_->tells_edits = true;
  }
  void insert(const std::string& row) { ASSERT_TRUE(lake_->insert_by_hand({row}).ok()); }
  void remove(const std::string& condition) { ASSERT_TRUE(lake_->delete_by_hand(condition).ok()); }
};

TEST_F(HandEditTest, ARowOfType1CountsAtTheGreatestSequenceKnown) {
  const std::string first = "(1, 'a', 'U', 5), (2, 'b', 'U', 5), (3, 'c', 'U', 5)";
  deliver({kSmall, kRows}, first);
  remove("id IN (1, 2)");
  insert("1, 'mine'");
  insert("9, 'new'");
  // What was known changes nothing when it comes again, nor does another event of that sequence.
  deliver({kSmall, kRows}, first + ", (1, 'z', 'U', 5), (2, 'z', 'U', 4)");
  EXPECT_THAT(table(), UnorderedElementsAre("1|mine", "3|c", "9|new"));
  EXPECT_THAT(state(), UnorderedElementsAre("3|5|1", "1|5|4", "2|5|5", "9|-|4"));
  deliver({kSmall, kRows}, "(1, 'later', 'U', 6), (2, 'back', 'U', 6), (9, 'x', 'U', 0)");
  EXPECT_THAT(table(), UnorderedElementsAre("1|later", "2|back", "3|c", "9|x"));
}

TEST_F(HandEditTest, ARowDeletedAtATruncatesSequenceStaysAway) {
  const Flow flow{kSmall,
                  "KEYS (id) APPLY AS TRUNCATE WHEN op = 'T' SEQUENCE BY seq COLUMNS (id, v)"};
  deliver(flow, "(1, 'a', 'U', 5), (NULL, NULL, 'T', 5), (2, 'b', 'U', 5), (3, 'c', 'U', 7)");
  remove("id = 1");
  deliver(flow, "(1, 'a', 'U', 5), (2, 'b', 'U', 5)");
  EXPECT_THAT(table(), UnorderedElementsAre("2|b", "3|c"));
  EXPECT_TRUE(deliver(flow, "(1, 'a', 'U', 5), (NULL, NULL, 'T', 5)").changed_nothing());
  // A later truncate ends that, too.
  deliver(flow, "(NULL, NULL, 'T', 6), (1, 'z', 'U', 6)");
  EXPECT_THAT(table(), UnorderedElementsAre("1|z", "3|c"));
}

TEST_F(HandEditTest, ARowOfTheDocumentsIsClosedByALaterEvent) {
  deliver({kSmall, kVersions}, "(1, 'a', 'U', 1)");
  insert("123, 'John Doe', 5, NULL");
  deliver({kSmall, kVersions}, "(123, 'Jane', 'U', 8), (123, 'early', 'U', 3)");
  EXPECT_THAT(table(),
              UnorderedElementsAre("1|a|1|-", "123|early|3|5", "123|John Doe|5|8", "123|Jane|8|-"));
}

TEST_F(HandEditTest, VersionsAreWhatTheTableSays) {
  const std::string first = "(1, 'a', 'U', 1), (1, 'b', 'U', 5), (1, 'c', 'U', 9)";
  deliver({kSmall, kVersions}, first);
  remove("v = 'b'");  // a gap
  deliver({kSmall, kVersions}, first);
  EXPECT_THAT(table(), UnorderedElementsAre("1|a|1|5", "1|c|9|-"));
  insert("1, 'x', 3, 7");  // cuts the row before it
  deliver({kSmall, kVersions}, first);
  EXPECT_THAT(table(), UnorderedElementsAre("1|a|1|3", "1|x|3|7", "1|c|9|-"));
  EXPECT_TRUE(deliver({kSmall, kVersions}, first).changed_nothing());
  deliver({kSmall, kVersions}, "(1, 'late', 'U', 6)");
  EXPECT_THAT(table(), UnorderedElementsAre("1|a|1|3", "1|x|3|6", "1|late|6|7", "1|c|9|-"));
}

TEST_F(HandEditTest, AVersionWithoutABeginningIsBelowEverySequence) {
  deliver({kSmall, kVersions}, "(1, 'a', 'U', 1)");
  insert("9, 'old', NULL, NULL");
  deliver({kSmall, kVersions}, "(9, 'new', 'U', -7)");
  EXPECT_THAT(table(), UnorderedElementsAre("1|a|1|-", "9|old|-|-7", "9|new|-7|-"));
  EXPECT_TRUE(deliver({kSmall, kVersions}, "(9, 'new', 'U', -7)").changed_nothing());
}

TEST_F(HandEditTest, PartialUpdatesFillFromAVersionWithoutABeginning) {
  const Flow flow{kColumns,
                  "KEYS (id) IGNORE NULL UPDATES SEQUENCE BY seq COLUMNS (id, a, b) "
                  "STORED AS SCD TYPE 2"};
  deliver(flow, "(1, 'a1', 'b1', 'U', NULL, 1)");
  insert("9, 'a', 'b', NULL, NULL");
  deliver(flow, "(9, NULL, 'b7', 'U', NULL, 7)");
  EXPECT_THAT(table(), UnorderedElementsAre("1|a1|b1|1|-", "9|a|b|-|7", "9|a|b7|7|-"));
  deliver(flow, "(9, 'a3', NULL, 'U', NULL, 3)");
  EXPECT_THAT(table(),
              UnorderedElementsAre("1|a1|b1|1|-", "9|a|b|-|3", "9|a3|b|3|7", "9|a3|b7|7|-"));
}

TEST_F(HandEditTest, AChangedRowHoldsFromItsStartOnly) {
  const std::string first = "(1, 'a', 'U', 1), (1, 'a', 'U', 3)";
  deliver({kSmall, kVersions}, first);
  ASSERT_TRUE(lake_->update_by_hand("v = 'H'", "id = 1").ok());
  deliver({kSmall, kVersions}, "(1, 'x', 'U', 2)");
  // What was known at 3 gives nothing any more.
  EXPECT_THAT(table(), UnorderedElementsAre("1|H|1|2", "1|x|2|-"));
  EXPECT_THAT(state(), UnorderedElementsAre("1|1|4|H", "1|3|8|a"));
  EXPECT_TRUE(deliver({kSmall, kVersions}, first + ", (1, 'x', 'U', 2)").changed_nothing());
}

TEST_F(HandEditTest, ANewEventAtASupersededSequenceCountsIfItWouldHaveWon) {
  const std::string first =
      "(1, 'a', 'U', 1), (1, 'b', 'U', 3), (2, 'a', 'U', 1), (2, NULL, 'D', 5)";
  deliver({kSmall, kVersions}, first);
  remove("v = 'b'");
  ASSERT_TRUE(lake_->update_by_hand("v = 'H', \"__END_AT\" = NULL", "\"__START_AT\" = 1").ok());
  deliver({kSmall, kVersions}, "");
  EXPECT_THAT(table(), UnorderedElementsAre("1|H|1|-", "2|H|1|-"));
  EXPECT_THAT(state(), UnorderedElementsAre("1|1|4|H", "1|3|8|b", "2|1|4|H", "2|5|7|-"));
  // Known, or losers against what is known.
  EXPECT_TRUE(deliver({kSmall, kVersions}, first + ", (1, 'a', 'U', 3), (1, NULL, 'D', 3)")
                  .changed_nothing());
  const std::string news = "(1, 'c', 'U', 3), (2, 'y', 'U', 5)";
  deliver({kSmall, kVersions}, news);
  const auto rows = UnorderedElementsAre("1|H|1|3", "1|c|3|-", "2|H|1|5", "2|y|5|-");
  EXPECT_THAT(table(), rows);
  EXPECT_TRUE(deliver({kSmall, kVersions}, first + ", " + news).changed_nothing());
  // Once more: what came meanwhile is superseded, too.
  remove("v IN ('c', 'y')");
  ASSERT_TRUE(lake_->update_by_hand("\"__END_AT\" = NULL", "v = 'H'").ok());
  deliver({kSmall, kVersions}, first + ", " + news);
  EXPECT_THAT(table(), UnorderedElementsAre("1|H|1|-", "2|H|1|-"));
  deliver({kSmall, kVersions}, "(1, 'd', 'U', 3), (2, 'x', 'U', 5)");
  EXPECT_THAT(table(), UnorderedElementsAre("1|H|1|3", "1|d|3|-", "2|H|1|-"));
}

TEST_F(HandEditTest, OfANewPartialUpdateCountsWhatWouldHaveWon) {
  const Flow flow{kColumns, kHistory};
  const std::string first =
      "(1, 'a1', 'b1', 'U', NULL, 1), (1, 'a3', NULL, 'U', NULL, 3), (2, 'a1', 'b1', 'U', NULL, "
      "1), "
      "(2, 'a3', NULL, 'U', NULL, 3)";
  deliver(flow, first);
  remove("\"__START_AT\" = 3");
  ASSERT_TRUE(lake_->update_by_hand("a = 'H', \"__END_AT\" = NULL", "\"__START_AT\" = 1").ok());
  deliver(flow, first);
  EXPECT_THAT(table(), UnorderedElementsAre("1|H|b1|1|-", "2|H|b1|1|-"));
  const std::string news = "(1, 'a2', 'b3', 'U', NULL, 3), (2, 'a4', NULL, 'U', NULL, 3)";
  deliver(flow, news);
  EXPECT_THAT(table(),
              UnorderedElementsAre("1|H|b1|1|3", "1|H|b3|3|-", "2|H|b1|1|3", "2|a4|b1|3|-"));
  EXPECT_TRUE(deliver(flow, first + ", " + news).changed_nothing());
}

TEST_F(HandEditTest, OtherRowsOfTheKeyFollowTheirEvents) {
  const Flow flow{kColumns, kHistory};
  deliver(flow,
          "(1, 'a5', 'b5', 'U', NULL, 5), (1, NULL, NULL, 'D', NULL, 5), "
          "(1, 'a4', NULL, 'U', NULL, 4)");
  EXPECT_THAT(table(), UnorderedElementsAre("1|a4|-|4|5", "1|a5|b5|5|-"));
  ASSERT_TRUE(lake_->update_by_hand("\"__END_AT\" = 9", "\"__START_AT\" = 5").ok());
  deliver(flow, "(1, 'a1', 'b1', 'U', NULL, 1)");
  EXPECT_THAT(table(), UnorderedElementsAre("1|a1|b1|1|4", "1|a4|b1|4|5", "1|a5|b5|5|9"));
}

TEST_F(HandEditTest, NewsAtASequenceOutsideAChangedRowCounts) {
  deliver({kSmall, kVersions}, "(4, 'x', 'U', 6), (4, NULL, 'D', 5), (4, NULL, 'D', 6)");
  remove("id = 4");
  deliver({kSmall, kVersions}, "");
  EXPECT_THAT(table(), IsEmpty());
  deliver({kSmall, kVersions}, "(4, 'y', 'U', 5), (4, 'y', 'U', 4)");
  EXPECT_THAT(table(), ElementsAre("4|y|4|6"));
}

TEST_F(HandEditTest, ADeleteAfterARowThatEndsEarlierIsStillKnown) {
  const std::string first = "(1, 'a', 'U', 1), (1, NULL, 'D', 5)";
  deliver({kSmall, kVersions}, first);
  ASSERT_TRUE(lake_->update_by_hand("\"__END_AT\" = 3", "id = 1").ok());
  deliver({kSmall, kVersions}, "(1, 'late', 'U', 4)");
  EXPECT_THAT(table(), UnorderedElementsAre("1|a|1|3", "1|late|4|5"));
  // And one inside a row that ends later is not.
  ASSERT_TRUE(lake_->update_by_hand("\"__END_AT\" = NULL", "v = 'late'").ok());
  deliver({kSmall, kVersions}, first);
  EXPECT_THAT(table(), UnorderedElementsAre("1|a|1|3", "1|late|4|-"));
}

TEST_F(HandEditTest, RowsThatAreNoHistoryAreRefused) {
  deliver({kSmall, kVersions}, "(1, 'a', 'U', 1)");
  insert("1, 'x', 1, NULL");
  EXPECT_EQ(deliver_badly({kSmall, kVersions}, "(1, 'b', 'U', 2)").code,
            "AUTOCDC_INVALID_STATE.INVALID_TARGET_ROWS");
  remove("v = 'x'");
  insert("1, 'y', 9, 7");
  EXPECT_EQ(deliver_badly({kSmall, kVersions}, "(1, 'b', 'U', 2)").code,
            "AUTOCDC_INVALID_STATE.INVALID_TARGET_ROWS");
}

TEST_F(HandEditTest, PartialUpdatesFillFromARowChangedByHand) {
  deliver({kColumns, kNoNulls}, "(1, 'a1', 'b1', 'U', NULL, 1), (1, 'a5', NULL, 'U', NULL, 5)");
  remove("id = 1");
  insert("1, 'mine', 'mine too'");
  deliver({kColumns, kNoNulls}, "(1, NULL, 'b6', 'U', NULL, 6), (1, 'late', NULL, 'U', NULL, 4)");
  EXPECT_THAT(table(), ElementsAre("1|mine|b6"));
}

}  // namespace
}  // namespace strandline::test
