// AUTO CDC programs on small, telling inputs. Broad coverage is the property test's.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cdc/program_fixture.h"

namespace strandline::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class ProgramTest : public ProgramFixture {};

// --- the documents' example
// ------------------------------------------------------------------------

const char* const kUsers =
    "userId BIGINT, name STRING, city STRING, operation STRING, sequenceNum BIGINT";
const std::string kUserEvents =
    "(124, 'Raul', 'Oaxaca', 'INSERT', 1), (123, 'Isabel', 'Monterrey', 'INSERT', 1), "
    "(125, 'Mercedes', 'Tijuana', 'INSERT', 2), (126, 'Lily', 'Cancun', 'INSERT', 2), "
    "(123, NULL, NULL, 'DELETE', 6), (125, 'Mercedes', 'Guadalajara', 'UPDATE', 6), "
    "(125, 'Mercedes', 'Mexicali', 'UPDATE', 5), (123, 'Isabel', 'Chihuahua', 'UPDATE', 5)";
const std::string kUserClauses =
    "KEYS (userId) APPLY AS DELETE WHEN operation = 'DELETE' SEQUENCE BY sequenceNum COLUMNS * "
    "EXCEPT (operation, sequenceNum) ";

TEST_F(ProgramTest, DocumentsType1) {
  const BatchOutcome outcome = deliver({kUsers, kUserClauses}, kUserEvents);
  EXPECT_THAT(table(), UnorderedElementsAre("124|Raul|Oaxaca", "125|Mercedes|Guadalajara",
                                            "126|Lily|Cancun"));
  EXPECT_EQ(outcome.metrics.num_input_rows, 8);
  EXPECT_EQ(outcome.metrics.num_upserted_rows, 3);
  EXPECT_EQ(outcome.metrics.num_deleted_rows, 0);
  EXPECT_EQ(outcome.metrics.num_late_rows, 0);
  EXPECT_THAT(state(), UnorderedElementsAre("124|1|1", "125|6|1", "126|2|1", "123|6|0"));
}

TEST_F(ProgramTest, DocumentsType1WithTruncate) {
  const Flow flow{kUsers,
                  "KEYS (userId) APPLY AS DELETE WHEN operation = 'DELETE' APPLY AS TRUNCATE WHEN "
                  "operation = 'TRUNCATE' SEQUENCE BY sequenceNum COLUMNS * EXCEPT (operation, "
                  "sequenceNum)"};
  deliver(flow, kUserEvents + ", (NULL, NULL, NULL, 'TRUNCATE', 3)");
  EXPECT_THAT(table(), ElementsAre("125|Mercedes|Guadalajara"));
  EXPECT_THAT(state(), UnorderedElementsAre("125|6|1", "123|6|0", "-|3|2"));
}

TEST_F(ProgramTest, DocumentsType2) {
  deliver({kUsers, kUserClauses + "STORED AS SCD TYPE 2"}, kUserEvents);
  EXPECT_THAT(table(), UnorderedElementsAre("123|Isabel|Monterrey|1|5", "123|Isabel|Chihuahua|5|6",
                                            "124|Raul|Oaxaca|1|-", "125|Mercedes|Tijuana|2|5",
                                            "125|Mercedes|Mexicali|5|6",
                                            "125|Mercedes|Guadalajara|6|-", "126|Lily|Cancun|2|-"));
  EXPECT_THAT(state(), IsEmpty());  // the target tells it all
}

TEST_F(ProgramTest, DocumentsType2WithoutCityHistory) {
  deliver({kUsers, kUserClauses + "STORED AS SCD TYPE 2 TRACK HISTORY ON * EXCEPT (city)"},
          kUserEvents);
  EXPECT_THAT(table(), UnorderedElementsAre("123|Isabel|Chihuahua|1|6", "124|Raul|Oaxaca|1|-",
                                            "125|Mercedes|Guadalajara|2|-", "126|Lily|Cancun|2|-"));
  EXPECT_EQ(state().size(), 5u);  // both runs of several events, in full
}

// --- validation
// ------------------------------------------------------------------------------------

const char* const kSmall = "id BIGINT, v STRING, op STRING, seq BIGINT";
const std::string kType1 =
    "KEYS (id) APPLY AS DELETE WHEN op = 'D' APPLY AS TRUNCATE WHEN op = 'T' SEQUENCE BY seq "
    "COLUMNS (id, v) ";
const std::string kType2 =
    "KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS (id, v) STORED AS SCD TYPE 2 ";

TEST_F(ProgramTest, NullSequenceFailsTheBatchWhole) {
  for (const std::string& clauses : {kType1, kType2}) {
    const Error error = deliver_badly({kSmall, clauses},
                                      "(1, 'a', 'U', 1), (7, 'b', 'U', NULL), (NULL, 'c', 'U', 1)");
    EXPECT_EQ(error.kind, ErrorKind::kInvalidData);
    EXPECT_EQ(error.code, "AUTOCDC_MICROBATCH_VALIDATION.NULL_SEQUENCE");
    EXPECT_THAT(error.message, HasSubstr("null in 1 of the batch's events"));
    EXPECT_THAT(error.message, HasSubstr("id = 7"));
    EXPECT_THAT(error.message, HasSubstr("Leave such rows out with WHERE in the source query"));
  }
}

TEST_F(ProgramTest, NullKeyFailsTheBatchExceptOnATruncate) {
  const Error error =
      deliver_badly({kSmall, kType1}, "(NULL, 'a', 'U', 1), (NULL, 'b', 'D', 2), (1, 'c', 'U', 3)");
  EXPECT_EQ(error.code, "AUTOCDC_MICROBATCH_VALIDATION.NULL_KEY");
  EXPECT_THAT(error.message, HasSubstr("null in 2 of the batch's events"));
  EXPECT_THAT(error.message, HasSubstr("EXPECT (... IS NOT NULL) ON VIOLATION DROP ROW"));
  deliver({kSmall, kType1}, "(NULL, NULL, 'T', 1), (1, 'c', 'U', 3)");
  EXPECT_THAT(table(), ElementsAre("1|c"));
}

TEST_F(ProgramTest, ANullConditionMeansUpsert) {
  deliver({kSmall, kType1}, "(1, 'a', NULL, 1)");
  EXPECT_THAT(table(), ElementsAre("1|a"));
}

TEST_F(ProgramTest, ADeleteThatIsATruncateTooTruncates) {
  deliver({kSmall, kType1}, "(1, 'a', 'U', 1), (2, 'b', 'U', 1)");
  deliver(
      {kSmall,
       "KEYS (id) APPLY AS DELETE WHEN op = 'T' APPLY AS TRUNCATE WHEN op = 'T' SEQUENCE BY seq "
       "COLUMNS (id, v)"},
      "(1, NULL, 'T', 5)");
  EXPECT_THAT(table(), IsEmpty());
}

TEST_F(ProgramTest, DeclaredNotNullColumnsAreChecked) {
  lake_->declared = *sql::parse_schema_ddl("id BIGINT, v STRING NOT NULL", "test");
  const Error error = deliver_badly({kSmall, kType1}, "(1, 'a', 'U', 1), (2, NULL, 'U', 1)");
  EXPECT_EQ(error.code, "DELTA_NOT_NULL_CONSTRAINT_VIOLATED");
  EXPECT_THAT(error.message, HasSubstr("id = 2"));
  deliver({kSmall, kType1}, "(2, NULL, 'D', 1)");
}

// --- deletes, truncates, late events
// ---------------------------------------------------------------

TEST_F(ProgramTest, ALateUpsertBelowADeleteStaysAwayInType1) {
  deliver({kSmall, kType1}, "(1, 'a', 'U', 17)");
  deliver({kSmall, kType1}, "(1, NULL, 'D', 20)");
  const BatchOutcome late = deliver({kSmall, kType1}, "(1, 'b', 'U', 18)");
  EXPECT_THAT(table(), IsEmpty());
  EXPECT_EQ(late.metrics.num_late_rows, 1);
  EXPECT_TRUE(late.changed_nothing());
}

TEST_F(ProgramTest, ALateUpsertBelowADeleteBecomesAVersionInType2) {
  deliver({kSmall, kType2}, "(1, 'a', 'U', 17)");
  deliver({kSmall, kType2}, "(1, NULL, 'D', 20)");
  deliver({kSmall, kType2}, "(1, 'b', 'U', 18)");
  EXPECT_THAT(table(), UnorderedElementsAre("1|a|17|18", "1|b|18|20"));
}

TEST_F(ProgramTest, EveryDeleteIsRemembered) {
  deliver({kSmall, kType2},
          "(1, 'a', 'U', 1), (1, NULL, 'D', 3), (1, NULL, 'D', 9), (2, NULL, 'D', 9)");
  EXPECT_THAT(state(), UnorderedElementsAre("1|9|0|-", "2|9|0|-"));
  deliver({kSmall, kType2}, "(1, 'b', 'U', 5), (2, 'c', 'U', 5)");
  EXPECT_THAT(table(), UnorderedElementsAre("1|a|1|3", "1|b|5|9", "2|c|5|9"));
  EXPECT_THAT(state(), IsEmpty());
}

TEST_F(ProgramTest, ATruncateEndsWhatLiesBelowForEver) {
  deliver({kSmall, kType1},
          "(1, 'a', 'U', 5), (2, 'b', 'U', 10), (3, 'c', 'U', 11), (4, NULL, 'D', 4)");
  const BatchOutcome outcome = deliver({kSmall, kType1}, "(NULL, NULL, 'T', 10)");
  // An upsert at its sequence stands.
  EXPECT_THAT(table(), UnorderedElementsAre("2|b", "3|c"));
  EXPECT_EQ(outcome.metrics.num_deleted_rows, 1);
  EXPECT_THAT(state(), UnorderedElementsAre("2|10|1", "3|11|1", "-|10|2"));
  const BatchOutcome late =
      deliver({kSmall, kType1}, "(9, 'x', 'U', 9), (9, NULL, 'T', 7), (8, 'y', 'U', 10)");
  EXPECT_THAT(table(), UnorderedElementsAre("2|b", "3|c", "8|y"));
  EXPECT_EQ(late.metrics.num_late_rows, 2);
}

TEST_F(ProgramTest, ATruncateKeepsARowThatALaterEventGivesAgain) {
  deliver({kSmall, kType1}, "(1, 'a', 'U', 5), (2, 'b', 'U', 5)");
  const auto before = lake_->target_rows();
  const BatchOutcome outcome = deliver({kSmall, kType1}, "(NULL, NULL, 'T', 6), (1, 'a', 'U', 7)");
  EXPECT_THAT(table(), ElementsAre("1|a"));
  EXPECT_EQ(outcome.target_new, 0);
  EXPECT_EQ(outcome.target_dead, 1);
  EXPECT_EQ(lake_->target_rows()->rows[0].back(), before->rows[0].back());
}

// --- versions
// --------------------------------------------------------------------------------------

TEST_F(ProgramTest, ALateEventCutsARun) {
  deliver({kSmall, kType2}, "(1, 'a', 'U', 10), (1, 'b', 'U', 20)");
  deliver({kSmall, kType2}, "(1, 'a', 'U', 5), (1, 'a', 'U', 15)");
  EXPECT_THAT(table(), UnorderedElementsAre("1|a|5|20", "1|b|20|-"));
  deliver({kSmall, kType2}, "(1, NULL, 'D', 12)");
  EXPECT_THAT(table(), UnorderedElementsAre("1|a|5|12", "1|a|15|20", "1|b|20|-"));
}

TEST_F(ProgramTest, EqualValuesOnBothSidesOfAGapStayTwo) {
  deliver({kSmall, kType2}, "(1, 'a', 'U', 1), (1, NULL, 'D', 2), (1, 'a', 'U', 3)");
  EXPECT_THAT(table(), UnorderedElementsAre("1|a|1|2", "1|a|3|-"));
}

TEST_F(ProgramTest, AnUpsertAtADeletesSequenceLeavesNoGap) {
  deliver({kSmall, kType2}, "(1, 'a', 'U', 1), (1, NULL, 'D', 2)");
  EXPECT_THAT(table(), ElementsAre("1|a|1|2"));
  deliver({kSmall, kType2}, "(1, 'a', 'U', 2)");
  EXPECT_THAT(table(), ElementsAre("1|a|1|-"));
}

TEST_F(ProgramTest, ValuesComeFromTheRunsLastEvent) {
  const Flow flow{"id BIGINT, a STRING, b STRING, seq BIGINT",
                  "KEYS (id) SEQUENCE BY seq COLUMNS * EXCEPT (seq) STORED AS SCD TYPE 2 TRACK "
                  "HISTORY ON (a)"};
  deliver(flow, "(1, 'x', 'old', 1)");
  const auto before = lake_->target_rows();
  BatchOutcome outcome = deliver(flow, "(1, 'x', 'new', 5)");
  EXPECT_THAT(table(), ElementsAre("1|x|new|1|-"));
  EXPECT_EQ(outcome.metrics.num_upserted_rows, 1);
  EXPECT_EQ(outcome.metrics.num_deleted_rows, 0);
  EXPECT_EQ(lake_->target_rows()->rows[0].back(), before->rows[0].back());  // row id
  outcome = deliver(flow, "(1, 'x', 'late', 3)");
  EXPECT_THAT(table(), ElementsAre("1|x|new|1|-"));
  EXPECT_EQ(outcome.target_new, 0);
  EXPECT_EQ(outcome.state_new, 1);
}

TEST_F(ProgramTest, AKeptSequenceMakesEveryEventAVersion) {
  deliver({kSmall, "KEYS (id) SEQUENCE BY seq COLUMNS (id, seq) STORED AS SCD TYPE 2"},
          "(1, 'a', 'U', 1), (1, 'a', 'U', 2)");
  EXPECT_THAT(table(), UnorderedElementsAre("1|1|1|2", "1|2|2|-"));
}

// --- sequences and ties
// ----------------------------------------------------------------------------

TEST_F(ProgramTest, AStructSequenceComparesItsPartsNullsLowest) {
  const Flow flow{"id BIGINT, v STRING, a INT, b STRING",
                  "KEYS (id) SEQUENCE BY STRUCT(a, b) COLUMNS (id, v) STORED AS SCD TYPE 2",
                  "STRUCT<a: INT, b: STRING>"};
  deliver(flow, "(1, 'third', 1, 'x'), (1, 'first', NULL, 'z'), (1, 'second', 1, NULL)");
  EXPECT_THAT(table(), UnorderedElementsAre("1|first|{'a': NULL, 'b': z}|{'a': 1, 'b': NULL}",
                                            "1|second|{'a': 1, 'b': NULL}|{'a': 1, 'b': x}",
                                            "1|third|{'a': 1, 'b': x}|-"));
}

TEST_F(ProgramTest, TheGreatestOfDifferingUpsertsCounts) {
  const BatchOutcome outcome = deliver(
      {kSmall, kType1}, "(1, 'b', 'U', 1), (1, 'c', 'U', 1), (1, NULL, 'U', 1), (2, 'a', 'U', 1)");
  EXPECT_THAT(table(), UnorderedElementsAre("1|c", "2|a"));
  EXPECT_EQ(outcome.metrics.num_sequence_conflicts, 1);
  EXPECT_EQ(outcome.metrics.conflict_example, "id = 1, sequence = 1");
  const BatchOutcome across = deliver({kSmall, kType1}, "(1, 'a', 'U', 1), (2, 'b', 'U', 1)");
  EXPECT_THAT(table(), UnorderedElementsAre("1|c", "2|b"));
  EXPECT_EQ(across.metrics.num_sequence_conflicts, 2);
}

// The example can be pasted into a query.
TEST_F(ProgramTest, AConflictsExampleIsInSqlLiterals) {
  const Flow flow{"id STRING, day DATE, v STRING, at TIMESTAMP",
                  "KEYS (id, day) SEQUENCE BY at COLUMNS (id, day, v)", "TIMESTAMP"};
  const BatchOutcome outcome =
      deliver(flow,
              "('it''s \\ me', DATE '2024-02-29', 'a', TIMESTAMPTZ '2024-01-02 03:04:05Z'), "
              "('it''s \\ me', DATE '2024-02-29', 'b', TIMESTAMPTZ '2024-01-02 03:04:05Z')");
  EXPECT_EQ(outcome.metrics.conflict_example,
            "id = 'it\\'s \\\\ me', day = DATE '2024-02-29', sequence = TIMESTAMP '2024-01-02 "
            "03:04:05+00'");
}

TEST_F(ProgramTest, ColumnsOfATieCompareInTheOrderOfTheirNames) {
  const Flow flow{"id BIGINT, Zeta INT, alpha INT, seq BIGINT",
                  "KEYS (id) SEQUENCE BY seq COLUMNS * EXCEPT (seq)"};
  deliver(flow, "(1, 9, 1, 1), (1, 0, 2, 1)");
  EXPECT_THAT(table(), ElementsAre("1|0|2"));
}

TEST_F(ProgramTest, NanAndZeroAreOneKeyAndOneSequence) {
  const Flow flow{"k DOUBLE, v STRING, s DOUBLE", "KEYS (k) SEQUENCE BY s COLUMNS (k, v)",
                  "DOUBLE"};
  deliver(flow, "('-0.0', 'a', 'nan'), ('nan', 'b', '1'), ('nan', 'c', 'inf')");
  deliver(flow, "('0.0', 'z', 'inf'), ('nan', 'd', 'nan')");
  EXPECT_THAT(table(), UnorderedElementsAre("0.0|a", "nan|d"));
}

// --- what is not there before
// ----------------------------------------------------------------------

TEST_F(ProgramTest, AnEmptyFirstBatchMakesAnEmptyTable) {
  EXPECT_TRUE(deliver({kSmall, kType1}, "").changed_nothing());
  EXPECT_THAT(table(), IsEmpty());
  deliver({kSmall, kType1}, "(1, 'a', 'U', 1)");
  EXPECT_TRUE(deliver({kSmall, kType1}, "").changed_nothing());
  EXPECT_THAT(table(), ElementsAre("1|a"));
}

// --- the sequence in the row
// -----------------------------------------------------------------------

const std::string kKeepsSequence =
    "KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS (id, v, seq)";

TEST_F(ProgramTest, AKeptSequenceNeedsNoState) {
  deliver({kSmall, kKeepsSequence}, "(1, 'a', 'U', 5), (2, 'b', 'U', 5), (2, NULL, 'D', 6)");
  EXPECT_THAT(state(), ElementsAre("2|6|0"));
  deliver({kSmall, kKeepsSequence}, "(1, 'late', 'U', 4), (2, 'c', 'U', 7)");
  EXPECT_THAT(table(), UnorderedElementsAre("1|a|5", "2|c|7"));
  EXPECT_THAT(state(), IsEmpty());
}

TEST_F(ProgramTest, FlowsWithOtherSequencesMeetInOneTarget) {
  const Flow plain{kSmall, kKeepsSequence};
  const Flow doubled{kSmall, "KEYS (id) SEQUENCE BY seq * 2 COLUMNS (id, v, seq)"};
  deliver(plain, "(1, 'a', 'U', 5)");
  deliver(doubled, "(1, 'b', 'U', 4)");  // at 8
  EXPECT_THAT(table(), ElementsAre("1|b|4"));
  EXPECT_THAT(state(), ElementsAre("1|8|1"));
  deliver(plain, "(1, 'c', 'U', 7)");
  EXPECT_THAT(table(), ElementsAre("1|b|4"));
  deliver(plain, "(1, 'd', 'U', 9)");
  EXPECT_THAT(table(), ElementsAre("1|d|9"));
  EXPECT_THAT(state(), IsEmpty());
}

// --- columns
// ---------------------------------------------------------------------------------------

TEST_F(ProgramTest, AWholeRowFlowMakesOtherColumnsNull) {
  const Flow names{"id BIGINT, name STRING, seq BIGINT",
                   "KEYS (id) SEQUENCE BY seq COLUMNS (id, name)"};
  const Flow cities{"id BIGINT, city STRING, seq BIGINT",
                    "KEYS (id) SEQUENCE BY seq COLUMNS (id, city)"};
  deliver(names, "(1, 'Ann', 1), (2, 'Bob', 1)");
  deliver(cities, "(1, 'Oslo', 2)");
  EXPECT_THAT(table(), UnorderedElementsAre("1|-|Oslo", "2|Bob|-"));
}

TEST_F(ProgramTest, AColumnNoFlowGivesIsTheUsers) {
  lake_->declared = *sql::parse_schema_ddl("id BIGINT, note STRING, v STRING", "test");
  deliver({kSmall, kType1}, "(1, 'a', 'U', 1), (2, 'b', 'U', 1)");
  ASSERT_TRUE(lake_->delete_by_hand("id = 1").ok());
  ASSERT_TRUE(lake_->insert_by_hand({"1, 'mine', 'a'"}).ok());
  deliver({kSmall, kType1}, "(1, 'c', 'U', 2), (2, 'd', 'U', 2), (3, 'e', 'U', 2)");
  EXPECT_THAT(table(), UnorderedElementsAre("1|mine|c", "2|-|d", "3|-|e"));
}

TEST_F(ProgramTest, AUsersColumnStaysWithItsVersion) {
  lake_->declared = *sql::parse_schema_ddl(
      "id BIGINT, note STRING, v STRING, __START_AT BIGINT, __END_AT BIGINT", "test");
  deliver({kSmall, kType2}, "(1, 'a', 'U', 1)");
  ASSERT_TRUE(lake_->delete_by_hand("id = 1").ok());
  ASSERT_TRUE(lake_->insert_by_hand({"1, 'mine', 'a', 1, NULL"}).ok());
  deliver({kSmall, kType2}, "(1, 'b', 'U', 5)");
  EXPECT_THAT(table(), UnorderedElementsAre("1|mine|a|1|5", "1|-|b|5|-"));
}

TEST_F(ProgramTest, NarrowerValuesAreCastUpAndStructsMatchByName) {
  const std::string clauses = "KEYS (id) SEQUENCE BY seq COLUMNS (id, n, s) STORED AS SCD TYPE 2";
  deliver({"id BIGINT, n BIGINT, s STRUCT<a: INT, b: STRING>, seq BIGINT", clauses},
          "(1, 5000000000, {'a': 1, 'b': 'x'}, 1)");
  deliver({"id BIGINT, n INT, s STRUCT<B: STRING, a: SMALLINT>, seq BIGINT", clauses},
          "(1, 7, {'B': 'y', 'a': 2}, 2)");
  EXPECT_THAT(table(), UnorderedElementsAre("1|5000000000|{'a': 1, 'b': x}|1|2",
                                            "1|7|{'a': 2, 'b': y}|2|-"));
  deliver({"id BIGINT, n INT, s STRUCT<b: STRING, c: BOOLEAN, a: INT>, seq BIGINT", clauses},
          "(1, 7, {'b': 'y', 'c': true, 'a': 2}, 3)");
  EXPECT_THAT(table(), UnorderedElementsAre("1|5000000000|{'a': 1, 'b': x, 'c': NULL}|1|2",
                                            "1|7|{'a': 2, 'b': y, 'c': NULL}|2|3",
                                            "1|7|{'a': 2, 'b': y, 'c': true}|3|-"));
}

TEST_F(ProgramTest, ANewColumnIsNullInOldRows) {
  deliver({"id BIGINT, v STRING, seq BIGINT",
           "KEYS (id) SEQUENCE BY seq COLUMNS * EXCEPT (seq) STORED AS SCD TYPE 2"},
          "(1, 'a', 1)");
  const Flow wider{"id BIGINT, v STRING, w STRING, seq BIGINT",
                   "KEYS (id) SEQUENCE BY seq COLUMNS * EXCEPT (seq) STORED AS SCD TYPE 2"};
  deliver(wider, "(1, 'a', NULL, 2)");
  EXPECT_THAT(table(), ElementsAre("1|a|-|1|-"));  // null compares as null
  deliver(wider, "(1, 'a', 'b', 3)");
  EXPECT_THAT(table(), UnorderedElementsAre("1|a|-|1|3", "1|a|b|3|-"));
}

TEST_F(ProgramTest, ConditionsMayReadColumnsThatAreLeftOutOrNamedLikeTheProgramsOwn) {
  const Flow flow{
      "c1 BIGINT, c0 STRING, rowid STRING, kind STRING, seq BIGINT",
      "KEYS (c1) APPLY AS DELETE WHEN kind = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (kind, seq)"};
  deliver(flow, "(1, 'a', 'r', 'U', 1), (2, 'b', 's', 'U', 1)");
  deliver(flow, "(1, 'z', NULL, 'D', 2), (2, 'c', 't', NULL, 2)");
  EXPECT_THAT(table(), ElementsAre("2|c|t"));
}

// --- many rows
// -------------------------------------------------------------------------------------

// More rows than one vector, one row group or one thread takes: the order that streaming windows
// need must hold. The oracle is the same meaning in ordinary window functions.
TEST_F(ProgramTest, ManyRowsEqualPlainWindows) {
  const std::string events =
      "SELECT (hash(i) % 60000)::BIGINT AS id, 'v' || (hash(i + 7) % 3) AS v, "
      "CASE WHEN hash(i + 13) % 8 = 0 THEN 'D' ELSE 'U' END AS op, (i * 7919) % 400009 AS seq "
      "FROM range(400000) AS r(i)";
  for (const bool is_type_2 : {false, true}) {
    lake_ = std::make_unique<ToyLake>(*connection_);
    const Flow flow{kSmall, is_type_2 ? kType2 : kType1};
    for (const char* part :
         {"seq % 5 = 3", "seq % 5 <> 3 AND id % 4 > 0", "seq % 5 <> 3 AND id % 4 = 0"}) {
      const Result<BatchOutcome> outcome =
          try_deliver_query(flow, fmt::format("SELECT * FROM ({}) WHERE {}", events, part));
      ASSERT_TRUE(outcome.ok()) << outcome.error().message;
    }
    const std::string expected =
        is_type_2 ? fmt::format(R"(
SELECT id, max(v), min(seq), arg_max_null(next_seq, seq)
FROM (SELECT *, count(CASE WHEN NOT continues THEN 1 END) OVER (PARTITION BY id ORDER BY seq) AS run
      FROM (SELECT *, op = 'U' AND coalesce(lag(op) OVER w = 'U' AND lag(v) OVER w = v, false) AS continues,
                   lead(seq) OVER w AS next_seq
            FROM ({}) WINDOW w AS (PARTITION BY id ORDER BY seq)))
WHERE op = 'U' GROUP BY id, run)",
                                events)
                  : fmt::format(
                        "SELECT id, arg_max(v, seq) FROM ({}) GROUP BY id HAVING arg_max(op, "
                        "seq) = 'U'",
                        events);
    const std::string got =
        fmt::format("SELECT id, v{} FROM {}", is_type_2 ? ", __START_AT, __END_AT" : "",
                    ToyLake::target_table());
    for (const auto& [from, without] : {std::pair(got, expected), std::pair(expected, got)}) {
      const Result<int64_t> count = connection_->query_int(
          fmt::format("SELECT count(*) FROM ({} EXCEPT ALL {})", from, without));
      ASSERT_TRUE(count.ok()) << count.error().message;
      EXPECT_EQ(*count, 0) << (is_type_2 ? "type 2" : "type 1");
    }
  }
}

// --- edited targets
// --------------------------------------------------------------------------------

TEST_F(ProgramTest, WhichStructIsGreatestDoesNotDependOnTheOrderOfItsFields) {
  const std::string clauses = "KEYS (id) SEQUENCE BY seq COLUMNS (id, s)";
  // The table's struct has y first, as it came.
  deliver({"id BIGINT, s STRUCT<y: INT>, seq BIGINT", clauses}, "(9, {'y': 0}, 1)");
  deliver({"id BIGINT, s STRUCT<x: INT, y: INT>, seq BIGINT", clauses},
          "(1, {'x': 1, 'y': 2}, 5), (1, {'x': 2, 'y': 1}, 5)");
  EXPECT_THAT(table(), UnorderedElementsAre("9|{'y': 0, 'x': NULL}", "1|{'y': 1, 'x': 2}"));
}

TEST_F(ProgramTest, AHandMadeRowWithoutStateIsBelowEverySequence) {
  deliver({kSmall, kType1}, "(1, 'a', 'U', 5)");
  ASSERT_TRUE(lake_->insert_by_hand({"2, 'mine'"}).ok());
  deliver({kSmall, kType1}, "(2, 'b', 'U', -100)");
  EXPECT_THAT(table(), UnorderedElementsAre("1|a", "2|b"));
}

TEST_F(ProgramTest, ARowDeletedByHandIsADeleteAtItsSequence) {
  deliver({kSmall, kType1}, "(1, 'a', 'U', 5), (2, 'b', 'U', 5)");
  ASSERT_TRUE(lake_->delete_by_hand("true").ok());
  deliver({kSmall, kType1}, "(1, 'z', 'U', 4), (2, 'c', 'U', 6)");
  EXPECT_THAT(table(), ElementsAre("2|c"));
}

TEST_F(ProgramTest, AnAdoptedTablesRowsAreHandMade) {
  ToyLake& lake = *lake_;
  deliver({kSmall, kType1}, "");
  ASSERT_TRUE(lake.insert_by_hand({"1, 'old'", "2, 'old'"}).ok());
  deliver({kSmall, kType1}, "(1, 'a', 'U', 1), (2, NULL, 'D', 1)");
  EXPECT_THAT(table(), ElementsAre("1|a"));
}

TEST_F(ProgramTest, AnUpsertCountsBeforeADeleteOfItsSequenceInType1) {
  deliver({kSmall, kType1}, "(1, NULL, 'D', 5), (1, 'a', 'U', 5)");
  EXPECT_THAT(table(), ElementsAre("1|a"));
  // The same in other batches, whichever comes first.
  deliver({kSmall, kType1}, "(1, NULL, 'D', 5), (2, NULL, 'D', 5)");
  EXPECT_THAT(table(), ElementsAre("1|a"));
  deliver({kSmall, kType1}, "(2, 'b', 'U', 5)");
  EXPECT_THAT(table(), ElementsAre("1|a", "2|b"));
}

TEST_F(ProgramTest, TwoRowsOfOneKeyAreRefusedInType1) {
  deliver({kSmall, kType1}, "(1, 'a', 'U', 5)");
  ASSERT_TRUE(lake_->insert_by_hand({"1, 'b'"}).ok());
  const Error error = deliver_badly({kSmall, kType1}, "(1, 'c', 'U', 6)");
  EXPECT_EQ(error.code, "AUTOCDC_INVALID_STATE.INVALID_TARGET_ROWS");
  EXPECT_THAT(error.message, HasSubstr("id = 1"));
}

TEST_F(ProgramTest, AVersionMadeByHandIsClosedByALaterEvent) {
  const Flow flow{"id BIGINT, name STRING, seq BIGINT",
                  "KEYS (id) SEQUENCE BY seq COLUMNS (id, name) STORED AS SCD TYPE 2"};
  deliver(flow, "(1, 'Ann', 1)");
  ASSERT_TRUE(lake_->insert_by_hand({"123, 'John Doe', 5, NULL", "9, 'old', NULL, 3"}).ok());
  deliver(flow, "(123, 'Jane Doe', 8), (9, 'new', 7)");
  EXPECT_THAT(table(), UnorderedElementsAre("1|Ann|1|-", "123|John Doe|5|8", "123|Jane Doe|8|-",
                                            "9|old|-|3", "9|new|7|-"));
}

TEST_F(ProgramTest, ImpossibleVersionsAreRefused) {
  const Flow flow{"id BIGINT, name STRING, seq BIGINT",
                  "KEYS (id) SEQUENCE BY seq COLUMNS (id, name) STORED AS SCD TYPE 2"};
  deliver(flow, "(1, 'a', 1)");
  ASSERT_TRUE(lake_->insert_by_hand({"1, 'b', 1, NULL"}).ok());
  EXPECT_EQ(deliver_badly(flow, "(1, 'c', 5)").code, "AUTOCDC_INVALID_STATE.INVALID_TARGET_ROWS");
  ASSERT_TRUE(lake_->delete_by_hand("name = 'b'").ok());
  ASSERT_TRUE(lake_->insert_by_hand({"1, 'b', 7, 7"}).ok());
  EXPECT_EQ(deliver_badly(flow, "(1, 'c', 5)").code, "AUTOCDC_INVALID_STATE.INVALID_TARGET_ROWS");
}

}  // namespace
}  // namespace strandline::test
