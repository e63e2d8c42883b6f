#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <strandline/strandline.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace strandline {
namespace {

using testing::HasSubstr;
using testing::Not;

class SessionTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::path(testing::TempDir()) /
                 (std::string("session_") + std::to_string(::getpid()) + "_" +
                  testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    open((directory_ / "lake").string());
  }
  void TearDown() override {
    session_.reset();
    std::filesystem::remove_all(directory_);
  }

  void open(const std::string& warehouse) {
    SessionOptions options;
    options.warehouse = warehouse;
    options.engine.threads = 2;
    options.directory = directory_.string();
    auto opened = Session::open(options);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    session_ = std::move(opened).value();
  }

  // Output of statements as JSON lines, or the error's code and message.
  std::string run(const std::string& text, OutputFormat format = OutputFormat::kNdjson) {
    std::ostringstream out;
    auto done = session_->run(text, "", format, out);
    if (!done.ok()) {
      place_ = done.error().place;
      return done.error().code + ": " + done.error().message;
    }
    return out.str();
  }
  std::string csv(const std::string& text) { return run(text, OutputFormat::kCsv); }

  std::filesystem::path directory_;
  std::unique_ptr<Session> session_;
  std::optional<SourcePlace> place_;
};

TEST_F(SessionTest, CreatesFillsAndReadsATable) {
  EXPECT_EQ(run("CREATE TABLE t (id INT, name STRING NOT NULL, price DECIMAL(10,2))"), "");
  EXPECT_EQ(run("INSERT INTO t VALUES (1, 'one', 1.5), (2, 'two', NULL)"), "");
  EXPECT_EQ(run("SELECT * FROM T ORDER BY id"),
            "{\"id\":1,\"name\":\"one\",\"price\":\"1.50\"}\n{\"id\":2,\"name\":\"two\",\"price\":"
            "null}\n");
  EXPECT_EQ(csv("SELECT count(*) AS n FROM main.default.t"), "n\n2\n");
}

TEST_F(SessionTest, RunsTheTutorialsData) {
  EXPECT_EQ(run(R"(CREATE SCHEMA IF NOT EXISTS main.cdc_tutorial;
    CREATE TABLE main.cdc_tutorial.users_cdf
    AS SELECT col1 AS userId, col2 AS name, col3 AS city
    FROM (VALUES
      -- Initial load.
      (124, "Raul", "Oaxaca"),
      (123, null, null)
    );)"),
            "");
  EXPECT_EQ(run("SELECT * FROM main.cdc_tutorial.users_cdf ORDER BY userId"),
            "{\"userId\":123,\"name\":null,\"city\":null}\n"
            "{\"userId\":124,\"name\":\"Raul\",\"city\":\"Oaxaca\"}\n");
  EXPECT_EQ(csv("DESCRIBE main.cdc_tutorial.users_cdf"),
            "col_name,data_type,comment\nuserId,int,\nname,string,\ncity,string,\n");
}

TEST_F(SessionTest, AStatementIsOneVersion) {
  run("CREATE TABLE t AS SELECT 1 AS a; INSERT INTO t VALUES (2); INSERT INTO t VALUES (3)");
  EXPECT_EQ(csv("SELECT sum(a) AS s FROM t VERSION AS OF 0"), "s\n1\n");
  EXPECT_EQ(csv("SELECT sum(a) AS s FROM t VERSION AS OF 1"), "s\n3\n");
  EXPECT_THAT(run("SELECT * FROM t TIMESTAMP AS OF '2999-01-01'"),
              AllOf(HasSubstr("DELTA_TIMESTAMP_GREATER_THAN_COMMIT"),
                    HasSubstr("2999-01-01T00:00:00.000Z")));
  EXPECT_THAT(run("SELECT * FROM t VERSION AS OF 9"), HasSubstr("9"));
  EXPECT_THAT(run("SELECT * FROM t TIMESTAMP AS OF '2020-01-01'"),
              HasSubstr("as old as 2020-01-01T00:00:00"));
  EXPECT_THAT(run("SELECT * FROM t TIMESTAMP AS OF 'soon'"),
              HasSubstr("INVALID_TIME_TRAVEL_TIMESTAMP_EXPR"));
}

TEST_F(SessionTest, DescribeHistoryNamesOperationsNewestFirst) {
  run("CREATE TABLE t (a INT); INSERT INTO t VALUES (1); TRUNCATE TABLE t");
  const auto history = csv("DESCRIBE HISTORY t");
  const auto truncate = history.find("TRUNCATE");
  const auto write = history.find("WRITE");
  const auto create = history.find("CREATE TABLE");
  EXPECT_LT(truncate, write) << history;
  EXPECT_LT(write, create) << history;
}

TEST_F(SessionTest, InsertMatchesColumnsByListAndByName) {
  run("CREATE TABLE t (a INT, b STRING, c BIGINT)");
  EXPECT_EQ(run("INSERT INTO t (C, a) VALUES (30, 3)"), "");
  EXPECT_EQ(run("INSERT INTO t BY NAME SELECT 'x' AS b, 4 AS a"), "");
  EXPECT_EQ(csv("SELECT * FROM t ORDER BY a"), "a,b,c\n3,,30\n4,x,\n");
  EXPECT_THAT(run("INSERT INTO t VALUES (1, 'x')"), HasSubstr("NOT_ENOUGH_DATA_COLUMNS"));
  EXPECT_THAT(run("INSERT INTO t VALUES (1, 'x', 2, 3)"), HasSubstr("TOO_MANY_DATA_COLUMNS"));
  EXPECT_THAT(run("INSERT INTO t (a, aa) VALUES (1, 2)"), HasSubstr("has no column aa"));
  EXPECT_THAT(run("INSERT INTO t (a, A) VALUES (1, 2)"), HasSubstr("given twice"));
}

TEST_F(SessionTest, EveryColumnTakesNull) {
  run("CREATE TABLE t (a INT, day DATE, pairs MAP<STRING, INT>, s STRUCT<x: BINARY>)");
  EXPECT_EQ(run("INSERT INTO t VALUES (1, NULL, NULL, NULL)"), "");
  EXPECT_EQ(run("INSERT INTO t SELECT NULL AS a, NULL AS day, NULL AS pairs, NULL AS s"), "");
  EXPECT_EQ(csv("SELECT count(*) AS n, count(day) AS days FROM t"), "n,days\n2,0\n");
  EXPECT_THAT(run("INSERT INTO t VALUES (1, 2, NULL, NULL)"), HasSubstr("CANNOT_SAFELY_CAST"));
  EXPECT_THAT(run("CREATE TABLE u AS SELECT NULL AS nothing"), HasSubstr("VOID"));
}

TEST_F(SessionTest, TellsAtWorkHowManyRowsChanged) {
  const std::string statements =
      "INSERT INTO t VALUES (1), (2), (3); UPDATE t SET a = a + 10 WHERE a > 1; "
      "MERGE INTO t USING (VALUES (1), (12), (50), (51)) AS s(a) ON t.a = s.a "
      "WHEN MATCHED AND s.a = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET a = 13 "
      "WHEN NOT MATCHED THEN INSERT *";
  run("CREATE TABLE t (a INT)");
  EXPECT_EQ(run(statements, OutputFormat::kTable), "");
  SessionOptions options;
  options.warehouse = (directory_ / "lake").string();
  options.show_changed_rows = true;
  session_ = std::move(Session::open(options)).value();
  EXPECT_EQ(run("DELETE FROM t WHERE a = 50", OutputFormat::kCsv), "");
  EXPECT_THAT(run("DELETE FROM t", OutputFormat::kTable), HasSubstr("|                 3 |"));
  const auto told = run(statements, OutputFormat::kTable);
  EXPECT_THAT(told, HasSubstr("| num_affected_rows | num_inserted_rows |"));
  EXPECT_THAT(told,
              HasSubstr("|                 4 |                1 |                1 |            "
                        "     2 |"));
}

TEST_F(SessionTest, InsertNeverCutsAValue) {
  run("CREATE TABLE t (tiny TINYINT, money DECIMAL(6,2), day DATE, flag BOOLEAN)");
  EXPECT_THAT(run("INSERT INTO t (tiny) VALUES (300)"), HasSubstr("CAST_OVERFLOW"));
  EXPECT_THAT(run("INSERT INTO t (money) VALUES (1.234)"), HasSubstr("CAST_OVERFLOW"));
  EXPECT_EQ(run("INSERT INTO t (money) VALUES (1.230)"), "");
  EXPECT_THAT(run("INSERT INTO t (day) VALUES ('tomorrow')"), HasSubstr("CAST_INVALID_INPUT"));
  EXPECT_THAT(run("INSERT INTO t (flag) VALUES (DATE'2026-01-01')"),
              HasSubstr("CANNOT_SAFELY_CAST"));
  EXPECT_EQ(csv("SELECT count(*) AS n FROM t"), "n\n1\n");
}

TEST_F(SessionTest, NotNullHolds) {
  run("CREATE TABLE t (a INT NOT NULL, b INT)");
  EXPECT_THAT(run("INSERT INTO t VALUES (NULL, 1)"),
              HasSubstr("DELTA_NOT_NULL_CONSTRAINT_VIOLATED"));
  EXPECT_THAT(run("INSERT INTO t (b) VALUES (1)"), HasSubstr("DELTA_NOT_NULL_CONSTRAINT_VIOLATED"));
  EXPECT_EQ(csv("SELECT count(*) AS n FROM t"), "n\n0\n");
}

TEST_F(SessionTest, OverwriteTruncateDeleteUpdate) {
  run("CREATE TABLE t AS SELECT * FROM VALUES (1, 'a'), (2, 'b'), (3, 'c') AS v(id, x)");
  EXPECT_EQ(run("DELETE FROM t WHERE id = 2"), "");
  EXPECT_EQ(csv("SELECT * FROM t ORDER BY id"), "id,x\n1,a\n3,c\n");
  EXPECT_EQ(run("UPDATE t SET x = concat(x, '!') WHERE id = 3"), "");
  EXPECT_EQ(csv("SELECT * FROM t ORDER BY id"), "id,x\n1,a\n3,c!\n");
  EXPECT_EQ(run("INSERT OVERWRITE t VALUES (9, 'z')"), "");
  EXPECT_EQ(csv("SELECT * FROM t"), "id,x\n9,z\n");
  EXPECT_EQ(run("TRUNCATE TABLE t"), "");
  EXPECT_EQ(csv("SELECT count(*) AS n FROM t"), "n\n0\n");
  EXPECT_EQ(csv("SELECT count(*) AS n FROM t VERSION AS OF 0"), "n\n3\n");
}

TEST_F(SessionTest, RowsChangeInTablesWithoutDeletionVectorsToo) {
  run("CREATE TABLE t (id INT, p STRING) PARTITIONED BY (p) "
      "TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')");
  run("INSERT INTO t VALUES (1, 'a'), (2, 'a'), (3, 'b'), (4, 'b')");
  EXPECT_EQ(run("DELETE FROM t WHERE id IN (2, 3)"), "");
  EXPECT_EQ(csv("SELECT * FROM t ORDER BY id"), "id,p\n1,a\n4,b\n");
  EXPECT_EQ(run("UPDATE t SET p = 'c' WHERE id = (SELECT max(id) FROM t)"), "");
  EXPECT_EQ(csv("SELECT * FROM t ORDER BY id"), "id,p\n1,a\n4,c\n");
  EXPECT_EQ(run("DELETE FROM t WHERE id = 77"), "");
  EXPECT_THAT(run("DESCRIBE HISTORY t"), HasSubstr("\"numDeletedRows\":\"2\""));
}

TEST_F(SessionTest, CreateOrReplaceKeepsTheHistory) {
  run("CREATE TABLE t AS SELECT 1 AS a");
  EXPECT_THAT(run("CREATE TABLE t (b INT)"), HasSubstr("TABLE_OR_VIEW_ALREADY_EXISTS"));
  EXPECT_EQ(run("CREATE TABLE IF NOT EXISTS t (b INT)"), "");
  EXPECT_EQ(run("CREATE OR REPLACE TABLE t AS SELECT 'x' AS b, 2 AS c"), "");
  EXPECT_EQ(csv("SELECT * FROM t"), "b,c\nx,2\n");
  EXPECT_EQ(csv("SELECT * FROM t VERSION AS OF 0"), "a\n1\n");
}

TEST_F(SessionTest, ViewsReadTheTablesAndSchemasTheyWereMadeWith) {
  run("CREATE SCHEMA s; CREATE TABLE s.t AS SELECT 1 AS a; USE s; CREATE VIEW v (n) AS SELECT a + "
      "1 FROM t");
  EXPECT_EQ(run("USE default"), "");
  EXPECT_EQ(csv("SELECT * FROM s.v"), "n\n2\n");
  run("INSERT INTO s.t VALUES (5)");
  EXPECT_EQ(csv("SELECT n FROM s.v ORDER BY n"), "n\n2\n6\n");
  EXPECT_EQ(run("CREATE TEMPORARY VIEW w AS SELECT max(n) AS m FROM s.v"), "");
  EXPECT_EQ(csv("SELECT * FROM w"), "m\n6\n");
  EXPECT_THAT(run("CREATE VIEW bad AS SELECT nothing FROM s.t"), HasSubstr("nothing"));
  EXPECT_THAT(run("INSERT INTO s.v VALUES (1)"), HasSubstr("EXPECT_TABLE_NOT_VIEW"));
  EXPECT_THAT(run("DROP TABLE s.v"), HasSubstr("DROP VIEW"));
  EXPECT_EQ(run("DROP VIEW s.v"), "");
  EXPECT_THAT(run("SELECT * FROM s.v"), HasSubstr("TABLE_OR_VIEW_NOT_FOUND"));
}

TEST_F(SessionTest, DescribeKnowsViews) {
  run("CREATE TABLE t (a INT); CREATE VIEW v COMMENT 'as SELECT 1' AS SELECT a AS b FROM t");
  EXPECT_EQ(csv("DESCRIBE v"), "col_name,data_type,comment\nb,int,\n");
  const auto extended = run("DESCRIBE EXTENDED v");
  EXPECT_THAT(extended, HasSubstr("\"SELECT a AS b FROM t\""));
  EXPECT_THAT(extended, HasSubstr("\"as SELECT 1\""));
}

TEST_F(SessionTest, OddNamesWork) {
  run("CREATE TABLE `odd \"name\", 100% [x]*? ünïcode.` AS SELECT 1 AS `a``c`");
  EXPECT_EQ(run("SELECT `a``c` FROM `ODD \"NAME\", 100% [x]*? ÜNÏCODE.`"), "{\"a`c\":1}\n");
  EXPECT_THAT(csv("SHOW TABLES"), HasSubstr("ünïcode."));
  EXPECT_EQ(run("DROP TABLE `odd \"name\", 100% [x]*? ünïcode.`"), "");
  EXPECT_EQ(csv("SHOW TABLES"), "database,tableName,isTemporary\n");
}

TEST_F(SessionTest, PathsAreTables) {
  run("CREATE TABLE delta.`elsewhere/t` (a INT); INSERT INTO delta.`elsewhere/t` VALUES (7)");
  EXPECT_EQ(csv("SELECT * FROM delta.`" + (directory_ / "elsewhere/t").string() + "`"), "a\n7\n");
  EXPECT_EQ(run("CREATE TABLE ext LOCATION 'elsewhere/t'"), "");
  EXPECT_EQ(csv("SELECT * FROM ext"), "a\n7\n");
  EXPECT_EQ(run("DROP TABLE ext"), "");
  EXPECT_EQ(csv("SELECT * FROM delta.`elsewhere/t`"), "a\n7\n");
  run("CREATE TABLE gone LOCATION 'elsewhere/t'");
  std::filesystem::remove_all(directory_ / "elsewhere");
  EXPECT_EQ(run("DROP TABLE gone"), "");
  EXPECT_THAT(run("SELECT * FROM delta.`nowhere`"), HasSubstr("DELTA_TABLE_NOT_FOUND"));
}

TEST_F(SessionTest, ShowAndDescribe) {
  run("CREATE SCHEMA s; CREATE TABLE s.t (a INT COMMENT 'the \"key\"', p STRING) PARTITIONED BY "
      "(p) "
      "COMMENT 'a table' TBLPROPERTIES ('owner.team' = 'x')");
  EXPECT_EQ(csv("SHOW TABLES IN s"), "database,tableName,isTemporary\ns,t,false\n");
  EXPECT_EQ(csv("SHOW SCHEMAS"), "databaseName\ndefault\ns\n");
  EXPECT_EQ(csv("SHOW CATALOGS"), "catalog\nmain\n");
  EXPECT_EQ(csv("SHOW TBLPROPERTIES s.t ('owner.team')"), "key,value\nowner.team,x\n");
  EXPECT_THAT(csv("DESCRIBE s.t"), HasSubstr("# Partition Information"));
  EXPECT_THAT(csv("DESCRIBE EXTENDED s.t"), HasSubstr("a table"));
  EXPECT_THAT(run("DESCRIBE DETAIL s.t"), HasSubstr("\"partitionColumns\":[\"p\"]"));
  const auto created = run("SHOW CREATE TABLE s.t");
  EXPECT_THAT(created, HasSubstr("PARTITIONED BY (p)"));
  EXPECT_THAT(created, HasSubstr("COMMENT 'the \\\"key\\\"'"));
}

TEST_F(SessionTest, DropSchemaCascade) {
  run("CREATE SCHEMA s; CREATE TABLE s.t (a INT)");
  EXPECT_THAT(run("DROP SCHEMA s"), HasSubstr("SCHEMA_NOT_EMPTY"));
  EXPECT_EQ(run("DROP SCHEMA s CASCADE"), "");
  EXPECT_THAT(run("DROP SCHEMA s"), HasSubstr("SCHEMA_NOT_FOUND"));
  EXPECT_EQ(run("DROP SCHEMA IF EXISTS s"), "");
  EXPECT_EQ(run("DROP TABLE IF EXISTS nothing"), "");
}

TEST_F(SessionTest, MistakesNameTheNearestThing) {
  run("CREATE TABLE customers (id INT)");
  EXPECT_THAT(run("SELECT * FROM custmers"), HasSubstr("did you mean main.default.customers?"));
  ASSERT_TRUE(place_.has_value());
  EXPECT_EQ(place_->column, 15);
  EXPECT_THAT(run("INSERT INTO nowhere.t VALUES (1)"),
              HasSubstr("there is no schema main.nowhere"));
  EXPECT_THAT(run("SELECT * FROM hive_metastore.a.b"), HasSubstr("hive_metastore"));
}

TEST_F(SessionTest, AFailureStopsTheScriptAndHasAPlace) {
  EXPECT_THAT(run("CREATE TABLE a (x INT);\nSELECT * FROM b;\nCREATE TABLE c (x INT)"),
              HasSubstr("TABLE_OR_VIEW_NOT_FOUND"));
  ASSERT_TRUE(place_.has_value());
  EXPECT_EQ(place_->line, 2);
  EXPECT_EQ(csv("SHOW TABLES"), "database,tableName,isTemporary\ndefault,a,false\n");
}

TEST_F(SessionTest, RefusesWhatItDoesNotDoByName) {
  run("CREATE TABLE t (a INT)");
  EXPECT_THAT(run("CREATE STREAMING TABLE s"), HasSubstr("strandline run"));
  EXPECT_THAT(run("SELECT * FROM STREAM(t)"), HasSubstr("STREAM"));
  EXPECT_THAT(run("CREATE TABLE u (a INT) USING ICEBERG"), HasSubstr("ICEBERG"));
  EXPECT_THAT(run("ALTER TABLE t SET TAGS ('a' = 'b')"), HasSubstr("SET TAGS"));
  EXPECT_THAT(run("VACUUM t LITE"), HasSubstr("LITE"));
  EXPECT_THAT(run("SELECT * FROM no_such_function(1)"), HasSubstr("no_such_function"));
  EXPECT_THAT(run("CREATE SCHEMA s LOCATION 'x'"), HasSubstr("LOCATION"));
  EXPECT_THAT(run("CREATE VIEW v TBLPROPERTIES ('a' = 'b') AS SELECT 1 AS x"),
              HasSubstr("TBLPROPERTIES"));
  EXPECT_THAT(run("SET spark.sql.session.timeZone = 'Europe/Lisbon'"), HasSubstr("UTC"));
}

TEST_F(SessionTest, TablesOfAPipelineAreNotChangedByHand) {
  run("CREATE TABLE t (a INT) TBLPROPERTIES ('pipelines.pipelineId' = 'p')");
  for (const char* statement :
       {"INSERT INTO t VALUES (1)", "DELETE FROM t WHERE a = 1", "UPDATE t SET a = 2",
        "TRUNCATE TABLE t", "INSERT OVERWRITE t VALUES (1)", "CREATE OR REPLACE TABLE t (b INT)"}) {
    EXPECT_THAT(run(statement), HasSubstr("DML_ON_PIPELINE_TABLE")) << statement;
  }
  // Nor can beliefs be; other targets of AUTO CDC take them in.
  run("CREATE TABLE b (a INT) TBLPROPERTIES ('pipelines.pipelineId' = 'p', "
      "'strandline.cdc.scdType' = 'BITEMPORAL')");
  EXPECT_THAT(run("INSERT INTO b VALUES (1)"), HasSubstr("DML_ON_PIPELINE_TABLE"));
  run("CREATE TABLE c (a INT) TBLPROPERTIES ('pipelines.pipelineId' = 'p', "
      "'strandline.cdc.scdType' = 'SCD TYPE 1')");
  EXPECT_THAT(run("INSERT INTO c VALUES (1)"), Not(HasSubstr("DML_ON_PIPELINE_TABLE")));
  EXPECT_THAT(run("CREATE OR REPLACE TABLE c (b INT)"), HasSubstr("DML_ON_PIPELINE_TABLE"));
}

TEST_F(SessionTest, SetGivesValuesToLaterTexts) {
  run("CREATE TABLE t AS SELECT 1 AS a");
  EXPECT_EQ(run("SET source = t"), "");
  EXPECT_EQ(csv("SELECT * FROM ${source}"), "a\n1\n");
  EXPECT_EQ(csv("SET source"), "key,value\nsource,t\n");
}

TEST_F(SessionTest, WithoutAWarehouseQueriesRunAndNamesExplain) {
  open("");
  EXPECT_EQ(csv("SELECT 1 + 1 AS two"), "two\n2\n");
  EXPECT_THAT(run("SELECT * FROM t"), HasSubstr("--warehouse"));
  EXPECT_THAT(run("CREATE TABLE t (a INT)"), HasSubstr("--warehouse"));
}

TEST_F(SessionTest, TwoSessionsAppendAtOnce) {
  run("CREATE TABLE t (a INT)");
  auto first = std::move(session_);
  open((directory_ / "lake").string());
  std::ostringstream out;
  ASSERT_TRUE(first->run("INSERT INTO t VALUES (1)", "", OutputFormat::kCsv, out).ok());
  EXPECT_EQ(run("INSERT INTO t VALUES (2)"), "");
  EXPECT_EQ(csv("SELECT sum(a) AS s FROM t"), "s\n3\n");
}

TEST(RenderError, ShowsTheLineWithACaret) {
  const Error error{ErrorKind::kInvalidArgument, "CODE", "something is off", SourcePlace{"", 2, 3}};
  const auto text = render_error(error, "SELECT\n  oops\n");
  EXPECT_THAT(text, HasSubstr("something is off"));
  EXPECT_THAT(text, HasSubstr("oops"));
  EXPECT_THAT(text, HasSubstr("^"));
}

TEST(RenderError, PlacesWithoutAFileOrAColumn) {
  const Error typed{ErrorKind::kInvalidArgument, "CODE", "off", SourcePlace{"", 1, 3}};
  EXPECT_EQ(render_error(typed, "a b"), "line 1, column 3: [CODE] off\n 1 | a b\n   |   ^");
  const Error record{ErrorKind::kInvalidData, "CODE", "off", SourcePlace{"in/1.json", 7, 0}};
  EXPECT_EQ(render_error(record), "in/1.json:7: [CODE] off");
  const Error file{ErrorKind::kUnsupported, "CODE", "off", SourcePlace{"a.py", 0, 0}};
  EXPECT_EQ(render_error(file), "a.py: [CODE] off");
  const Error nowhere{ErrorKind::kIo, "CODE", "off", {}};
  EXPECT_EQ(render_error(nowhere), "[CODE] off");
}

TEST(InitPipeline, WritesAPipelineOnlyIntoAnEmptyPlace) {
  const auto directory = std::filesystem::path(testing::TempDir()) /
                         ("init_pipeline_test_" + std::to_string(::getpid()));
  std::filesystem::remove_all(directory);
  ASSERT_TRUE(init_pipeline((directory / "p").string()).ok());
  EXPECT_TRUE(std::filesystem::exists(directory / "p/spark-pipeline.yml"));
  EXPECT_TRUE(std::filesystem::exists(directory / "p/data/customers/2026-01-10.json"));
  EXPECT_EQ(init_pipeline((directory / "p").string()).error().kind, ErrorKind::kAlreadyExists);
  auto located = locate_pipeline((directory / "p").string());
  ASSERT_TRUE(located.ok()) << located.error().message;
  EXPECT_EQ(located->name, "p");
  EXPECT_EQ(located->warehouse, (directory / "p/warehouse").string());
  EXPECT_EQ(locate_pipeline(directory.string()).error().kind, ErrorKind::kNotFound);
  std::filesystem::remove_all(directory);
}

TEST_F(SessionTest, HistoryAndDetailSayWhatWasDone) {
  EXPECT_EQ(
      run("CREATE TABLE t (a INT, p STRING) PARTITIONED BY (p); INSERT INTO t VALUES (1, 'x');"
          "ALTER TABLE t ADD COLUMN b INT; ALTER TABLE t SET TBLPROPERTIES ('k' = 'v');"
          "ALTER TABLE t ADD CONSTRAINT pos CHECK (a > 0)"),
      "");
  const auto history = run("DESCRIBE HISTORY t");
  EXPECT_THAT(history, HasSubstr("\"operation\":\"ADD CONSTRAINT\",\"operationParameters\":"
                                 "{\"expr\":\"a > 0\",\"name\":\"pos\"}"));
  EXPECT_THAT(history, HasSubstr("\"operation\":\"SET TBLPROPERTIES\""));
  EXPECT_THAT(history, HasSubstr("\"columns\":\"b INT\""));
  EXPECT_THAT(history, HasSubstr("\"operation\":\"CREATE TABLE\""));
  const auto newest = run("DESCRIBE HISTORY t LIMIT 2");
  EXPECT_EQ(std::count(newest.begin(), newest.end(), '\n'), 2);
  EXPECT_THAT(newest, HasSubstr("\"version\":4"));

  const auto detail = run("DESCRIBE DETAIL t");
  EXPECT_THAT(detail, HasSubstr("\"format\":\"delta\""));
  EXPECT_THAT(detail, HasSubstr("\"partitionColumns\":[\"p\"]"));
  EXPECT_THAT(detail, HasSubstr("\"numFiles\":1"));
  EXPECT_THAT(detail, HasSubstr("\"k\":\"v\""));
  EXPECT_THAT(detail, HasSubstr("checkConstraints"));
  const auto extended = csv("DESCRIBE EXTENDED t");
  EXPECT_THAT(extended, HasSubstr("# Constraints,\"\",\"\"\npos,CHECK (a > 0),"));
  EXPECT_THAT(
      extended,
      HasSubstr("# Partition Information,\"\",\"\"\n# col_name,data_type,comment\np,string"));
  EXPECT_THAT(extended, HasSubstr("Provider,delta,"));
}

}  // namespace
}  // namespace strandline
