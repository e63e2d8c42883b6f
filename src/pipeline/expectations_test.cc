#include "pipeline/expectations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/test_pipeline.h"
#include "sql/parser.h"
#include "storage/store.h"

namespace strandline::pipeline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

// --- one query ----------------------------------------------------------------------------------

std::vector<sql::Expectation> declared(const std::string& constraints) {
  const auto script =
      sql::parse_script("CREATE STREAMING TABLE t (" + constraints + ");", "t.sql", {});
  EXPECT_THAT(script.errors, IsEmpty());
  return std::get<sql::CreateStreamingTable>(script.statements.at(0).body).options.expectations;
}

Field column(const char* name, TypeId type) {
  return Field{name, DataType::primitive(type), true, {}};
}

class ExpectationsTest : public testing::Test {
 protected:
  ExpectationsTest() {
    auto connection = shared_database()->connect();
    EXPECT_TRUE(connection.ok());
    connection_ = std::move(*connection);
    rows_.query =
        "SELECT * FROM (VALUES (1, 'a', 'U'), (2, NULL, 'U'), (NULL, 'c', 'U'), (NULL, NULL, 'D')) "
        "AS v(id, name, op)";
    rows_.columns.fields = {column("id", TypeId::kInteger), column("name", TypeId::kString)};
    rows_.exempt = "op = 'D'";
  }

  Result<std::unique_ptr<CheckedRows>> check(const std::string& constraints) {
    return CheckedRows::make(*connection_, declared(constraints), "main.default.t", "t", rows_);
  }
  std::vector<std::string> ops(const CheckedRows& checked) {
    const auto found =
        connection_->query("SELECT concat_ws('', id, name, op) FROM " + checked.sql());
    EXPECT_TRUE(found.ok());
    std::vector<std::string> texts;
    for (const auto& row : found->rows) texts.push_back(row[0].value_or("NULL"));
    return texts;
  }
  int64_t tables() {
    return *connection_->query_int("SELECT count(*) FROM duckdb_tables() WHERE temporary");
  }

  std::unique_ptr<duck::Connection> connection_;
  RowsToCheck rows_;
};

TEST_F(ExpectationsTest, EachSeesEveryRowAndDropsActTogether) {
  const int64_t before = tables();
  auto checked = check(
      "CONSTRAINT has_name EXPECT (name IS NOT NULL) ON VIOLATION DROP ROW, CONSTRAINT small "
      "EXPECT "
      "(id < 2), CONSTRAINT has_id EXPECT (id IS NOT NULL) ON VIOLATION DROP ROW");
  ASSERT_TRUE(checked.ok()) << checked.error().message;
  EXPECT_THAT(ops(**checked), UnorderedElementsAre("1aU", "D"));
  const auto& counts = (*checked)->counts();
  ASSERT_EQ(counts.size(), 3u);
  EXPECT_EQ(counts[0].name, "has_name");
  EXPECT_EQ(counts[0].dataset, "main.default.t");
  EXPECT_EQ(counts[0].passed_records, 2);
  EXPECT_EQ(counts[0].failed_records, 1);
  EXPECT_EQ(counts[0].dropped_records, 1);
  EXPECT_EQ(counts[1].passed_records, 1);
  EXPECT_EQ(counts[1].failed_records, 2) << "null is no truth";
  EXPECT_EQ(counts[1].dropped_records, 0);
  EXPECT_EQ(counts[2].failed_records, 1);
  EXPECT_EQ((*checked)->dropped_rows(), 2);
  EXPECT_EQ(tables(), before + 1);
  checked->reset();
  EXPECT_EQ(tables(), before);
}

TEST_F(ExpectationsTest, FailUpdateNamesExpectationCountAndExample) {
  const auto failed =
      check("CONSTRAINT has_name EXPECT (name IS NOT NULL) ON VIOLATION FAIL UPDATE");
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, "EXPECTATION_VIOLATION");
  EXPECT_EQ(failed.error().kind, ErrorKind::kInvalidData);
  EXPECT_THAT(failed.error().message, HasSubstr("1 rows for 't'"));
  EXPECT_THAT(failed.error().message, HasSubstr("'has_name'"));
  EXPECT_THAT(failed.error().message, HasSubstr("name = NULL"));
  EXPECT_EQ(failed.error().place->line, 1);

  const auto kept =
      check("CONSTRAINT has_op EXPECT (id + 1 > 0 OR name = 'c') ON VIOLATION FAIL UPDATE");
  EXPECT_TRUE(kept.ok()) << "deletes are not checked";
}

TEST_F(ExpectationsTest, ColumnsThatTheRowsLackAreNullEvenWhenTheQueryHasThem) {
  rows_.missing.fields = {column("op", TypeId::kString)};
  const auto checked = check("CONSTRAINT no_op EXPECT (op IS NULL) ON VIOLATION DROP ROW");
  ASSERT_TRUE(checked.ok()) << checked.error().message;
  EXPECT_THAT(ops(**checked), UnorderedElementsAre("1aU", "2U", "cU", "D"));
}

TEST_F(ExpectationsTest, CurrentTimeIsTheBatchs) {
  rows_.now_us = 1'000'000;
  const auto checked = check(
      "CONSTRAINT then EXPECT (current_timestamp() = TIMESTAMP '1970-01-01 00:00:01Z') ON "
      "VIOLATION "
      "FAIL UPDATE");
  EXPECT_TRUE(checked.ok()) << checked.error().message;
}

TEST_F(ExpectationsTest, MistakesHaveTheirPlace) {
  const auto errors = check_expectations(
      *connection_,
      declared("CONSTRAINT a EXPECT (op = 'U'), CONSTRAINT b EXPECT (nam = 'x'), "
               "CONSTRAINT c EXPECT (id + 1)"),
      "t", rows_.columns);
  ASSERT_EQ(errors.size(), 3u);
  EXPECT_EQ(errors[0].code, "UNRESOLVED_COLUMN.WITH_SUGGESTION");
  EXPECT_THAT(errors[0].message, HasSubstr("'op'"));
  EXPECT_EQ(errors[0].place->column, 48);
  EXPECT_THAT(errors[1].message, HasSubstr("did you mean 'name'"));
  EXPECT_EQ(errors[2].code, "NOT_A_CONDITION");
}

// --- pipelines ----------------------------------------------------------------------------------

// What an expectation of a flow counted, as "passed/failed/dropped".
std::string counted(const UpdateReport& report, const std::string& name, size_t flow = 0) {
  for (const auto& expectation : report.flows.at(flow).expectations) {
    if (expectation.name != name) continue;
    return std::to_string(expectation.passed_records) + "/" +
           std::to_string(expectation.failed_records) + "/" +
           std::to_string(expectation.dropped_records);
  }
  return "none";
}

std::string users(const std::string& constraints, const std::string& storage = "SCD TYPE 1") {
  return "CREATE OR REFRESH STREAMING TABLE users (" + constraints +
         ");\nCREATE FLOW f AS AUTO CDC INTO users FROM STREAM read_files('data', format => "
         "'json', "
         "schema => 'id INT, name STRING, op STRING, seq INT')\nKEYS (id) APPLY AS DELETE WHEN op "
         "= "
         "'D' SEQUENCE BY seq COLUMNS * EXCEPT (op) STORED AS " +
         storage + ";\n";
}

constexpr const char* kBad =
    "{\"id\":1,\"name\":\"a\",\"op\":\"U\",\"seq\":1}\n"
    "{\"name\":\"no key\",\"op\":\"U\",\"seq\":1}\n"
    "{\"id\":2,\"name\":\"no sequence\",\"op\":\"U\"}\n"
    "{\"id\":3,\"op\":\"U\",\"seq\":1}\n"
    "{\"id\":4,\"op\":\"D\",\"seq\":1}\n";

TEST(ExpectationsOfTargets, DropRowComesBeforeTheNullChecks) {
  for (const char* storage : {"SCD TYPE 1", "SCD TYPE 2"}) {
    TestPipeline p;
    p.write("users.sql",
            users("CONSTRAINT has_key EXPECT (id IS NOT NULL) ON VIOLATION DROP ROW, CONSTRAINT "
                  "has_seq EXPECT (seq IS NOT NULL) ON VIOLATION DROP ROW, CONSTRAINT named EXPECT "
                  "(name IS NOT NULL)",
                  storage));
    p.write("data/1.json", kBad);
    const auto report = p.run();
    ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
    EXPECT_THAT(p.rows("users", "id, name"), ElementsAre("1|a", "3|NULL"));
    EXPECT_EQ(counted(report, "has_key"), "3/1/1");
    EXPECT_EQ(counted(report, "has_seq"), "3/1/1");
    EXPECT_EQ(counted(report, "named"), "3/1/0");
    EXPECT_EQ(report.flows[0].dropped_records, 2);
    EXPECT_EQ(report.flows[0].metrics.at("num_input_rows"), 5);

    // Nothing new: nothing counted.
    const auto again = p.run();
    ASSERT_EQ(again.status, UpdateStatus::kCompleted) << errors_of(again);
    EXPECT_EQ(counted(again, "has_key"), "0/0/0");
  }
}

TEST(ExpectationsOfTargets, FailUpdateFailsTheBatchWhole) {
  TestPipeline p;
  p.write("users.sql", users("CONSTRAINT named EXPECT (name <> '') ON VIOLATION FAIL UPDATE"));
  p.write("data/1.json", "{\"id\":1,\"name\":\"a\",\"seq\":1}\n{\"id\":2,\"seq\":1}\n");
  const auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kFailed);
  EXPECT_EQ(report.errors.at(0).code, "EXPECTATION_VIOLATION");
  EXPECT_THAT(report.errors.at(0).message, HasSubstr("name = NULL"));
  EXPECT_EQ(counted(report, "named"), "0/0/0") << "nothing of the batch was consumed";
  EXPECT_THAT(p.rows("users"), IsEmpty());

  p.write("data/1.json",
          "{\"id\":1,\"name\":\"a\",\"seq\":1}\n{\"id\":2,\"op\":\"D\",\"seq\":1}\n");
  const auto again = p.run();
  ASSERT_EQ(again.status, UpdateStatus::kCompleted) << errors_of(again);
  EXPECT_EQ(counted(again, "named"), "1/0/0");
  EXPECT_THAT(p.rows("users", "id"), ElementsAre("1"));
}

TEST(ExpectationsOfTargets, AHalfCommittedBatchCountsOnceAndKeepsItsExpectations) {
  const std::string flow = users("CONSTRAINT ok EXPECT (name <> 'bad') ON VIOLATION DROP ROW");
  TestPipeline p;
  p.write("users.sql", flow);
  p.write("data/1.json", "{\"id\":1,\"name\":\"a\",\"seq\":1}\n");
  ASSERT_EQ(p.run().status, UpdateStatus::kCompleted);
  p.write("data/2.json",
          "{\"id\":2,\"name\":\"bad\",\"seq\":1}\n{\"id\":1,\"op\":\"D\",\"seq\":2}\n"
          "{\"id\":3,\"name\":\"c\",\"seq\":1}\n");
  const delta::Table state(storage::make_local_store(), duck::make_parquet_port(shared_database()),
                           p.path("warehouse/main/default/users/_strandline_state"));
  const auto target_before = p.snapshot("users")->version;
  const auto state_before = *state.latest_version();
  for (int at = 1; at < 100 && *state.latest_version() == state_before; ++at) {
    auto faulty = storage::FaultStore::wrap(storage::make_local_store());
    faulty->arm(at, storage::FaultMode::kStop);
    p.store = faulty;
    (void)p.run();
  }
  p.store = nullptr;
  ASSERT_EQ(*state.latest_version(), state_before + 1);
  ASSERT_EQ(p.snapshot("users")->version, target_before);

  p.write("users.sql", users("CONSTRAINT ok EXPECT (name <> 'c') ON VIOLATION DROP ROW"));
  auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kFailed);
  EXPECT_EQ(report.errors.at(0).code, "UNFINISHED_BATCH");
  p.write("users.sql", flow);
  report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_EQ(counted(report, "ok"), "1/1/1");
  EXPECT_EQ(report.flows[0].dropped_records, 1);
  EXPECT_THAT(p.rows("users", "id"), ElementsAre("3"));
}

TEST(ExpectationsOfTargets, ADroppedEventIsOutOfTheHistory) {
  TestPipeline p;
  p.write("users.sql",
          users("CONSTRAINT ok EXPECT (name <> 'bad') ON VIOLATION DROP ROW", "SCD TYPE 2"));
  p.write("data/1.json",
          "{\"id\":1,\"name\":\"a\",\"seq\":1}\n{\"id\":1,\"name\":\"bad\",\"seq\":2}\n"
          "{\"id\":1,\"name\":\"c\",\"seq\":3}\n");
  const auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_THAT(p.rows("users", "name, __START_AT, __END_AT"), ElementsAre("a|1|3", "c|3|NULL"));
}

TEST(ExpectationsOfTargets, ColumnsThatAnotherFlowGivesAreNull) {
  TestPipeline p;
  p.write("t.sql", R"sql(
CREATE STREAMING TABLE t (CONSTRAINT b_given EXPECT (b IS NOT NULL));
CREATE FLOW one AS AUTO CDC INTO t FROM STREAM read_files('data', format => 'json', schema => 'id INT, a STRING, s INT')
KEYS (id) SEQUENCE BY s IGNORE NULL UPDATES;
CREATE FLOW two AS AUTO CDC INTO t FROM STREAM read_files('more', format => 'json', schema => 'id INT, b STRING, s INT')
KEYS (id) SEQUENCE BY s IGNORE NULL UPDATES;
)sql");
  p.write("data/1.json", "{\"id\":1,\"a\":\"x\",\"s\":1}\n");
  p.write("more/1.json", "{\"id\":1,\"b\":\"y\",\"s\":2}\n");
  const auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_EQ(counted(report, "b_given", 0), "0/1/0");
  EXPECT_EQ(counted(report, "b_given", 1), "1/0/0");
}

TEST(ExpectationsOfTargets, InsertFlowsViewsAndMaterializedViews) {
  TestPipeline p;
  p.write("t.sql", R"sql(
CREATE TEMPORARY VIEW v (CONSTRAINT in_view EXPECT (n > 0) ON VIOLATION DROP ROW)
AS SELECT * FROM STREAM read_files('data', format => 'json', schema => 'id INT, n INT');
CREATE STREAMING TABLE t (id BIGINT, n INT, twice INT GENERATED ALWAYS AS (n * 2),
  CONSTRAINT small EXPECT (n < 100) ON VIOLATION DROP ROW, CONSTRAINT big_id EXPECT (id > 1));
CREATE FLOW f AS INSERT INTO t BY NAME SELECT * FROM v UNION ALL SELECT * FROM v;
CREATE MATERIALIZED VIEW m (CONSTRAINT even EXPECT (twice % 4 = 0) ON VIOLATION DROP ROW)
AS SELECT id, twice FROM t;
)sql");
  p.write("data/1.json",
          "{\"id\":1,\"n\":1}\n{\"id\":2,\"n\":2}\n{\"id\":3,\"n\":300}\n{\"id\":4,\"n\":-4}\n{"
          "\"id\":5}\n");
  const auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_THAT(p.rows("t"), ElementsAre("1|1|2", "1|1|2", "2|2|4", "2|2|4"));
  EXPECT_EQ(counted(report, "in_view", 0), "3/2/2") << "a view read twice is counted once";
  EXPECT_EQ(counted(report, "small", 0), "4/2/2");
  EXPECT_EQ(counted(report, "big_id", 0), "4/2/0");
  EXPECT_EQ(report.flows[0].dropped_records, 4);
  EXPECT_EQ(report.flows[0].metrics.at("num_input_rows"), 6);
  EXPECT_EQ(report.flows[0].metrics.at("num_output_rows"), 4);
  EXPECT_THAT(p.rows("m"), ElementsAre("2|4", "2|4"));
  EXPECT_EQ(counted(report, "even", 1), "2/2/2");
}

TEST(ExpectationsOfTargets, MistakesAreFoundBeforeAnythingRuns) {
  TestPipeline p;
  p.write("users.sql",
          users("CONSTRAINT a EXPECT (nme IS NOT NULL), CONSTRAINT b EXPECT (op = 'U'),"
                "CONSTRAINT c EXPECT (__START_AT > 1)",
                "SCD TYPE 2"));
  auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kInvalid) << errors_of(report);
  ASSERT_EQ(report.errors.size(), 3u) << errors_of(report);
  for (const auto& error : report.errors) {
    EXPECT_EQ(error.code, "UNRESOLVED_COLUMN.WITH_SUGGESTION");
    EXPECT_EQ(error.place->line, 1);
  }
  EXPECT_THAT(report.errors[0].message, HasSubstr("did you mean 'name'"));

  p.write("users.sql",
          users("CONSTRAINT a EXPECT (rand() > 0.5), CONSTRAINT b EXPECT (count(*) > 1)"));
  report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kInvalid) << errors_of(report);
  ASSERT_EQ(report.errors.size(), 2u) << errors_of(report);
  EXPECT_EQ(report.errors[0].code, "NONDETERMINISTIC_FUNCTION");
  EXPECT_EQ(report.errors[1].code, "STREAMING_OPERATION");

  // What the table computes later is not there yet.
  p.write(
      "users.sql",
      "CREATE STREAMING TABLE t (id INT, d INT GENERATED ALWAYS AS (id + 1), CONSTRAINT e EXPECT "
      "(d > 1)) AS SELECT id FROM STREAM read_files('data', format => 'json', schema => 'id "
      "INT');");
  report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kInvalid) << errors_of(report);
  EXPECT_THAT(report.errors.at(0).message, HasSubstr("reads 'd'"));

  // A view's, when a flow reads it.
  p.write("users.sql",
          "CREATE TEMPORARY VIEW v (CONSTRAINT e EXPECT (idd > 1)) AS SELECT id FROM STREAM "
          "read_files('data', format => 'json', schema => 'id INT');\nCREATE STREAMING TABLE t AS "
          "SELECT * FROM STREAM v;");
  report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kInvalid) << errors_of(report);
  EXPECT_THAT(report.errors.at(0).message, HasSubstr("did you mean 'id'"));
}

}  // namespace
}  // namespace strandline::pipeline
