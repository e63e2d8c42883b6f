#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/test_pipeline.h"

namespace strandline::pipeline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kUsersFlow = R"sql(
CREATE OR REFRESH STREAMING TABLE users;
CREATE FLOW apply_cdc AS AUTO CDC INTO users
FROM STREAM read_files('data', format => 'json', schema => 'userId INT, name STRING, city STRING, operation STRING, sequenceNum BIGINT')
KEYS (userId)
APPLY AS DELETE WHEN operation = "DELETE"
SEQUENCE BY sequenceNum
COLUMNS * EXCEPT (operation, sequenceNum)
)sql";

constexpr const char* kUsersData =
    "{\"userId\":124,\"name\":\"Raul\",\"city\":\"Oaxaca\",\"operation\":\"INSERT\","
    "\"sequenceNum\":1}\n"
    "{\"userId\":123,\"name\":\"Isabel\",\"city\":\"Monterrey\",\"operation\":\"INSERT\","
    "\"sequenceNum\":1}\n"
    "{\"userId\":125,\"name\":\"Mercedes\",\"city\":\"Tijuana\",\"operation\":\"INSERT\","
    "\"sequenceNum\":2}\n"
    "{\"userId\":126,\"name\":\"Lily\",\"city\":\"Cancun\",\"operation\":\"INSERT\","
    "\"sequenceNum\":2}\n"
    "{\"userId\":123,\"operation\":\"DELETE\",\"sequenceNum\":6}\n"
    "{\"userId\":125,\"name\":\"Mercedes\",\"city\":\"Guadalajara\",\"operation\":\"UPDATE\","
    "\"sequenceNum\":6}\n"
    "{\"userId\":125,\"name\":\"Mercedes\",\"city\":\"Mexicali\",\"operation\":\"UPDATE\","
    "\"sequenceNum\":5}\n"
    "{\"userId\":123,\"name\":\"Isabel\",\"city\":\"Chihuahua\",\"operation\":\"UPDATE\","
    "\"sequenceNum\":5}\n";

double metric(const UpdateReport& report, const std::string& name, size_t flow = 0) {
  return report.flows.at(flow).metrics.at(name);
}

TEST(PipelineEndToEnd, ScdType1FromJsonFiles) {
  TestPipeline p;
  p.write("users.sql", std::string(kUsersFlow) + "STORED AS SCD TYPE 1;");
  p.write("data/1.json", kUsersData);
  const auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_THAT(p.rows("users"),
              ElementsAre("124|Raul|Oaxaca", "125|Mercedes|Guadalajara", "126|Lily|Cancun"));
  EXPECT_EQ(metric(report, "num_upserted_rows"), 3);
  EXPECT_EQ(metric(report, "num_input_rows"), 8);
  EXPECT_EQ(metric(report, "num_batches"), 1);
  EXPECT_EQ(report.flows[0].metrics.count("num_output_rows"), 0u);

  // The same events again, late ones and a delete: only what changes is written.
  p.write("data/2.json", std::string(kUsersData) +
                             "{\"userId\":124,\"name\":\"old\",\"city\":\"x\",\"operation\":"
                             "\"UPDATE\",\"sequenceNum\":0}\n"
                             "{\"userId\":126,\"operation\":\"DELETE\",\"sequenceNum\":9}\n");
  const auto second = p.run();
  ASSERT_EQ(second.status, UpdateStatus::kCompleted) << errors_of(second);
  EXPECT_THAT(p.rows("users"), ElementsAre("124|Raul|Oaxaca", "125|Mercedes|Guadalajara"));
  EXPECT_EQ(metric(second, "num_upserted_rows"), 0);
  EXPECT_EQ(metric(second, "num_deleted_rows"), 1);

  // Nothing new: no version.
  const auto version = p.snapshot("users")->version;
  const auto third = p.run();
  ASSERT_EQ(third.status, UpdateStatus::kCompleted) << errors_of(third);
  EXPECT_EQ(p.snapshot("users")->version, version);
  EXPECT_EQ(metric(third, "num_batches"), 0);
}

TEST(PipelineEndToEnd, ScdType2FromJsonFiles) {
  TestPipeline p;
  p.write("users.sql", std::string(kUsersFlow) + "STORED AS SCD TYPE 2;");
  p.write("data/1.json", kUsersData);
  const auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  const std::vector<std::string> expected = {
      "123|Isabel|Chihuahua|5|6",        "123|Isabel|Monterrey|1|5",  "124|Raul|Oaxaca|1|NULL",
      "125|Mercedes|Guadalajara|6|NULL", "125|Mercedes|Mexicali|5|6", "125|Mercedes|Tijuana|2|5",
      "126|Lily|Cancun|2|NULL"};
  EXPECT_EQ(p.rows("users"), expected);
  p.write("data/2.json", kUsersData);
  const auto version = p.snapshot("users")->version;
  const auto second = p.run();
  ASSERT_EQ(second.status, UpdateStatus::kCompleted) << errors_of(second);
  EXPECT_EQ(p.rows("users"), expected);
  EXPECT_EQ(p.snapshot("users")->version, version) << "a repeated batch writes nothing";
}

// --- files
// ----------------------------------------------------------------------------------------

TEST(PipelineFiles, ChangedFileIsAnErrorUntilOverwritesAreAllowed) {
  TestPipeline p;
  p.write("users.sql", std::string(kUsersFlow) + ";");
  p.write("data/1.json", "{\"userId\":1,\"name\":\"a\",\"sequenceNum\":1}\n");
  ASSERT_EQ(p.run().status, UpdateStatus::kCompleted);
  p.write("data/1.json", "{\"userId\":1,\"name\":\"changed\",\"sequenceNum\":2}\n");
  const auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kFailed);
  EXPECT_EQ(report.errors.at(0).code, "SOURCE_FILE_CHANGED");
  EXPECT_THAT(report.errors.at(0).message, HasSubstr("data/1.json"));
  std::string flow = kUsersFlow;
  flow.replace(flow.find("format =>"), 0, "allowOverwrites => true, ");
  p.write("users.sql", flow + ";");
  const auto again = p.run();
  ASSERT_EQ(again.status, UpdateStatus::kCompleted) << errors_of(again);
  EXPECT_THAT(p.rows("users"), ElementsAre("1|changed|NULL"));
}

TEST(PipelineFiles, BadRecordFailsTheBatchWholeAndCorrectedInputGoesThrough) {
  TestPipeline p;
  p.write("users.sql", std::string(kUsersFlow) + ";");
  p.write("data/1.json", "{\"userId\":1,\"name\":\"a\",\"sequenceNum\":1}\n");
  ASSERT_EQ(p.run().status, UpdateStatus::kCompleted);
  p.write("data/2.json", "{\"userId\":2,\"name\":\"b\",\"sequenceNum\":1}\n{\"userId\":3,\n");
  const auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kFailed);
  EXPECT_EQ(report.errors.at(0).code, "MALFORMED_RECORD");
  EXPECT_EQ(report.errors.at(0).place->line, 2);
  EXPECT_THAT(p.rows("users"), ElementsAre("1|a|NULL"));
  p.write("data/2.json", "{\"userId\":2,\"name\":\"b\",\"sequenceNum\":1}\n");
  const auto again = p.run();
  ASSERT_EQ(again.status, UpdateStatus::kCompleted) << errors_of(again);
  EXPECT_THAT(p.rows("users"), ElementsAre("1|a|NULL", "2|b|NULL"));
}

TEST(PipelineFiles, NullKeyAndSequenceFailTheBatch) {
  TestPipeline p;
  p.write("users.sql", std::string(kUsersFlow) + ";");
  p.write("data/1.json", "{\"name\":\"a\",\"sequenceNum\":1}\n");
  auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kFailed);
  EXPECT_EQ(report.errors.at(0).code, "AUTOCDC_MICROBATCH_VALIDATION.NULL_KEY");
  p.write("data/1.json", "{\"userId\":1,\"name\":\"a\"}\n");
  report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kFailed);
  EXPECT_EQ(report.errors.at(0).code, "AUTOCDC_MICROBATCH_VALIDATION.NULL_SEQUENCE");
  EXPECT_TRUE(p.rows("users").empty()) << "the table is there, without rows";
}

TEST(PipelineFiles, MissingFolderIsNamed) {
  TestPipeline p;
  std::string flow = kUsersFlow;
  flow.replace(flow.find("'data'"), 6, "'nowhere/*.json'");
  p.write("users.sql", flow + ";");
  const auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kFailed);
  EXPECT_EQ(report.errors.at(0).code, "PATH_NOT_FOUND");
}

TEST(PipelineFiles, WithoutFilesTheTableIsThereAndEmpty) {
  TestPipeline p;
  p.write("users.sql", std::string(kUsersFlow) + ";");
  const auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  const auto snapshot = p.snapshot("users");
  ASSERT_NE(snapshot, nullptr);
  EXPECT_EQ(snapshot->schema.fields.size(), 3u);
  EXPECT_TRUE(snapshot->files.empty());
}

TEST(PipelineFiles, BatchesAreBoundedByMaxFiles) {
  TestPipeline p;
  std::string flow = kUsersFlow;
  flow.replace(flow.find("format =>"), 0, "maxFilesPerTrigger => 2, ");
  p.write("users.sql", flow + ";");
  for (int i = 0; i < 5; ++i) {
    p.write("data/" + std::to_string(i) + ".json",
            "{\"userId\":" + std::to_string(i) + ",\"name\":\"n\",\"sequenceNum\":1}\n");
  }
  const auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_EQ(metric(report, "num_batches"), 3);
  EXPECT_EQ(p.rows("users").size(), 5u);
}

TEST(PipelineFiles, InferredSchemaGrows) {
  TestPipeline p;
  p.write("t.sql",
          "CREATE STREAMING TABLE t; CREATE FLOW f AS AUTO CDC INTO t FROM STREAM "
          "read_files('data', format => 'json') "
          "KEYS (id) SEQUENCE BY seq;");
  p.write("data/1.json", "{\"id\":1,\"seq\":1,\"a\":\"x\"}\n");
  auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  p.write("data/2.json", "{\"id\":2,\"seq\":1,\"a\":\"y\",\"b\":true}\n");
  report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_THAT(p.rows("t", "id, a, b"), ElementsAre("1|x|NULL", "2|y|true"));
  p.write("data/3.json", "{\"id\":3,\"seq\":\"one\"}\n");
  report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kFailed);
  EXPECT_EQ(report.errors.at(0).code, "SCHEMA_CONFLICT");
}

TEST(PipelineFiles, FieldsThatDifferOnlyInCaseAreNamed) {
  TestPipeline p;
  p.write("t.sql",
          "CREATE STREAMING TABLE t; CREATE FLOW f AS AUTO CDC INTO t FROM STREAM "
          "read_files('data', format => 'json') "
          "KEYS (id) SEQUENCE BY seq;");
  p.write("data/1.json", "{\"id\":1,\"seq\":1}\n{\"ID\":2,\"seq\":1}\n");
  const auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kFailed);
  EXPECT_EQ(report.errors.at(0).code, "COLUMN_ALREADY_EXISTS");
  EXPECT_THAT(report.errors.at(0).message, HasSubstr("'id' and 'ID'"));
}

TEST(PipelineFiles, MetadataOrdersArrival) {
  TestPipeline p;
  p.write("t.sql",
          "CREATE STREAMING TABLE t; CREATE FLOW f AS AUTO CDC INTO t FROM STREAM "
          "read_files('data', format => 'json', "
          "schema => 'id INT, v STRING') KEYS (id) SEQUENCE BY STRUCT(_metadata.file_path, "
          "_metadata.row_index);");
  p.write("data/1.json",
          "{\"id\":1,\"v\":\"a\"}\n{\"id\":1,\"v\":\"b\"}\n{\"id\":2,\"v\":\"c\"}\n");
  p.write("data/2.json", "{\"id\":2,\"v\":\"d\"}\n");
  const auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_THAT(p.rows("t"), ElementsAre("1|b", "2|d"));
}

TEST(PipelineFiles, RescuedDataColumn) {
  TestPipeline p;
  p.write("t.sql",
          "CREATE STREAMING TABLE t AS SELECT id, v, _rescued_data FROM STREAM read_files('data', "
          "format => 'json', "
          "schema => 'id INT, v STRING', rescuedDataColumn => '_rescued_data');");
  p.write("data/1.json", "{\"id\":1,\"v\":\"a\"}\nbroken\n");
  const auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  const auto rows = p.rows("t");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0], "1|a|NULL");
  EXPECT_THAT(rows[1], HasSubstr("\"_corrupt_record\":\"broken\""));
}

TEST(PipelineFiles, ParquetColumnsThatDifferOnlyInCaseAreNamed) {
  TestPipeline p;
  std::filesystem::create_directories(p.path("pq"));
  const std::string file = p.path("pq/a.parquet");
  auto connection = shared_database()->connect();
  ASSERT_TRUE(connection.ok());
  ASSERT_TRUE(
      (*connection)
          ->execute("COPY (SELECT 1 AS id, {'name': 1} AS NAME, 'x' AS full, 3 AS seq) TO '" +
                    file + "' (FORMAT parquet)")
          .ok());
  const auto run = [&](const std::string& options) {
    p.write("t.sql",
            "CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_files('pq/*.parquet', format => "
            "'parquet'" +
                options + ");");
    return p.run();
  };
  // A field of a struct is not a column.
  auto report = run("");
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);

  std::string bytes;
  {
    std::ifstream in(file, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  for (size_t at = bytes.find("full"); at != std::string::npos; at = bytes.find("full", at)) {
    bytes.replace(at, 4, "Name");
  }
  p.write("pq/b.parquet", bytes);
  p.remove("warehouse");
  report = run("");
  ASSERT_NE(report.status, UpdateStatus::kCompleted);
  EXPECT_EQ(report.errors.at(0).code, "COLUMN_ALREADY_EXISTS");
  EXPECT_THAT(report.errors.at(0).message, HasSubstr("'NAME' and 'Name'"));
  EXPECT_THAT(report.errors.at(0).message, HasSubstr("b.parquet"));
  report = run(", schema => 'id INT, name STRING'");
  ASSERT_NE(report.status, UpdateStatus::kCompleted);
  EXPECT_EQ(report.errors.at(0).code, "COLUMN_ALREADY_EXISTS");
  // Columns with one meaning can be read.
  report = run(", schema => 'id INT, seq INT'");
  EXPECT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
}

TEST(PipelineFiles, CsvAndParquet) {
  TestPipeline p;
  p.write("t.sql", R"sql(
CREATE STREAMING TABLE c; CREATE FLOW fc AS AUTO CDC INTO c
FROM STREAM read_files('csv', format => 'csv', header => true, schema => 'id INT, v DECIMAL(10,2), seq INT') KEYS (id) SEQUENCE BY seq;
CREATE STREAMING TABLE q; CREATE FLOW fq AS AUTO CDC INTO q
FROM STREAM read_files('pq/*.parquet', format => 'parquet') KEYS (id) SEQUENCE BY seq;)sql");
  p.write("csv/a.csv", "seq,id,v\n1,7,1.50\n2,7,2\n");
  std::filesystem::create_directories(p.path("pq"));
  auto connection = shared_database()->connect();
  ASSERT_TRUE(connection.ok());
  ASSERT_TRUE((*connection)
                  ->execute("COPY (SELECT 1 AS id, 'x' AS v, 5::BIGINT AS seq) TO '" +
                            p.path("pq/a.parquet") + "'")
                  .ok());
  const auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_THAT(p.rows("c"), ElementsAre("7|2.00|2"));
  EXPECT_THAT(p.rows("q"), ElementsAre("1|x|5"));
}

// --- tables and views
// -----------------------------------------------------------------------------

constexpr const char* kChain = R"sql(
CREATE STREAMING TABLE bronze AS SELECT * FROM STREAM read_files('data', format => 'json', schema => 'id INT, v STRING, seq INT');
CREATE TEMPORARY VIEW clean AS SELECT id, upper(v) AS v, seq FROM STREAM(bronze) WHERE v IS NOT NULL;
CREATE STREAMING TABLE silver;
CREATE FLOW to_silver AS AUTO CDC INTO silver FROM STREAM(clean) KEYS (id) SEQUENCE BY seq COLUMNS * EXCEPT (seq);
CREATE MATERIALIZED VIEW gold AS SELECT count(*) AS n, max(v) AS top FROM silver;
)sql";

TEST(PipelineGraph, StreamsThroughTablesAndViewsInOneUpdate) {
  TestPipeline p;
  p.write("chain.sql", kChain);
  p.write(
      "data/1.json",
      "{\"id\":1,\"v\":\"a\",\"seq\":1}\n{\"id\":2,\"v\":\"b\",\"seq\":1}\n{\"id\":3,\"seq\":1}\n");
  auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_EQ(p.rows("bronze").size(), 3u);
  EXPECT_THAT(p.rows("silver"), ElementsAre("1|A", "2|B"));
  EXPECT_THAT(p.rows("gold"), ElementsAre("2|B"));
  EXPECT_EQ(report.flows.at(0).metrics.at("num_output_rows"), 3);
  const auto gold = p.snapshot("gold")->version;
  report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_EQ(p.snapshot("gold")->version, gold) << "nothing new, nothing recomputed";
  p.write("data/2.json", "{\"id\":2,\"v\":\"z\",\"seq\":2}\n");
  report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_THAT(p.rows("silver"), ElementsAre("1|A", "2|Z"));
  EXPECT_THAT(p.rows("gold"), ElementsAre("2|Z"));
}

TEST(PipelineGraph, AFailedFlowSkipsItsDependents) {
  TestPipeline p;
  p.write("chain.sql", std::string(kChain) +
                           "CREATE STREAMING TABLE other AS SELECT * FROM STREAM "
                           "read_files('more', format => 'json', "
                           "schema => 'x INT');");
  p.write("data/1.json", "{\"id\":\"one\"}\n");
  p.write("more/1.json", "{\"x\":1}\n");
  const auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kFailed);
  std::map<std::string, std::string> status;
  for (const auto& flow : report.flows) status[flow.name] = flow.status;
  EXPECT_EQ(status["bronze"], "FAILED");
  EXPECT_EQ(status["to_silver"], "SKIPPED");
  EXPECT_EQ(status["gold"], "SKIPPED");
  EXPECT_EQ(status["other"], "COMPLETED");
  EXPECT_THAT(p.rows("other"), ElementsAre("1"));
}

TEST(PipelineGraph, JoinWithATable) {
  TestPipeline p;
  p.write("t.sql", R"sql(
CREATE STREAMING TABLE cities AS SELECT * FROM STREAM read_files('cities', format => 'json', schema => 'city STRING, land STRING');
CREATE STREAMING TABLE t;
CREATE FLOW f AS AUTO CDC INTO t FROM (SELECT u.id, u.city, c.land, u.seq FROM STREAM read_files('data', format => 'json',
  schema => 'id INT, city STRING, seq INT') u LEFT JOIN cities c ON u.city = c.city) KEYS (id) SEQUENCE BY seq;)sql");
  p.write("cities/1.json", "{\"city\":\"Lima\",\"land\":\"Peru\"}\n");
  p.write("data/1.json",
          "{\"id\":1,\"city\":\"Lima\",\"seq\":1}\n{\"id\":2,\"city\":\"?\",\"seq\":1}\n");
  const auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_THAT(p.rows("t", "id, land"), ElementsAre("1|Peru", "2|NULL"));
}

TEST(PipelineGraph, SeveralFlowsIntoOneTargetAndOnce) {
  TestPipeline p;
  p.write("t.sql", R"sql(
CREATE STREAMING TABLE orders;
CREATE FLOW hydrate AS AUTO CDC ONCE INTO orders FROM STREAM read_files('full', format => 'json', schema => 'id INT, amount INT, ts INT') KEYS (id) SEQUENCE BY ts COLUMNS * EXCEPT (ts);
CREATE FLOW changes AS AUTO CDC INTO orders FROM STREAM read_files('data', format => 'json', schema => 'id INT, amount INT, op STRING, ts INT') KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY ts COLUMNS (id, amount);)sql");
  p.write("full/1.json",
          "{\"id\":1,\"amount\":10,\"ts\":1}\n{\"id\":2,\"amount\":20,\"ts\":1}\n{\"id\":3,"
          "\"amount\":30,\"ts\":1}\n");
  p.write("data/1.json",
          "{\"id\":2,\"amount\":25,\"ts\":4}\n{\"id\":3,\"op\":\"D\",\"ts\":5}\n{\"id\":4,"
          "\"amount\":40,\"ts\":6}\n");
  auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_THAT(p.rows("orders"), ElementsAre("1|10", "2|25", "4|40"));
  // ONCE is over, whatever comes later.
  p.write("full/2.json", "{\"id\":9,\"amount\":90,\"ts\":1}\n");
  report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_THAT(p.rows("orders"), ElementsAre("1|10", "2|25", "4|40"));
  report = p.full_refresh({"orders"});
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_THAT(p.rows("orders"), ElementsAre("1|10", "2|25", "4|40", "9|90"));
}

TEST(PipelineGraph, DryRunTouchesNothingAndDrawsTheGraph) {
  TestPipeline p;
  p.write("chain.sql", kChain);
  p.write("data/1.json", "{\"id\":1,\"v\":\"a\",\"seq\":1}\n");
  RunOptions options;
  options.dry_run = true;
  const auto report = p.run(options);
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_FALSE(std::filesystem::exists(p.path("warehouse")));
  EXPECT_THAT(report.graph, HasSubstr("to_silver"));
  EXPECT_THAT(report.graph, HasSubstr("stream read_files('data')"));
}

TEST(PipelineGraph, AllMistakesAtOnce) {
  TestPipeline p;
  p.write("a.sql", R"sql(CREATE STREAMING TABLE users;
CREATE FLOW f AS AUTO CDC INTO usrs FROM STREAM(nowhere) KEYS (id) SEQUENCE BY s;
CREATE FLOW g AS AUTO CDC INTO users FROM STREAM read_files('data', format => 'json', schema => 'id INT', colour => 'red') KEYS (id) SEQUENCE BY s;
SELECT 1;
)sql");
  p.write("b.sql", R"sql(CREATE STREAMING TABLE users;
CREATE STREAMING TABLE x AS SELECT count(*) AS n FROM STREAM read_files('data', format => 'json', schema => 'id INT');
CREATE MATERIALIZED VIEW m AS SELECT rand() AS r;
CREATE STREAMING TABEL oops;
)sql");
  const auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kInvalid) << errors_of(report);
  std::vector<std::string> codes;
  for (const auto& error : report.errors) {
    codes.push_back(error.code);
    EXPECT_TRUE(error.place && error.place->line > 0) << error.code << error.message;
  }
  EXPECT_THAT(codes,
              testing::IsSupersetOf({"UNKNOWN_TARGET", "READ_FILES_OPTION", "PIPELINE_STATEMENT",
                                     "DUPLICATE_DATASET", "STREAMING_OPERATION",
                                     "NONDETERMINISTIC_FUNCTION", "PARSE_SYNTAX_ERROR"}))
      << errors_of(report);
  EXPECT_THAT(errors_of(report), HasSubstr("did you mean 'users'?"));
  EXPECT_FALSE(std::filesystem::exists(p.path("warehouse")));
}

TEST(PipelineGraph, DeclarationMistakesAgainstTheSchema) {
  TestPipeline p;
  p.write("a.sql", R"sql(CREATE STREAMING TABLE a;
CREATE FLOW fa AS AUTO CDC INTO a FROM STREAM read_files('data', format => 'json', schema => 'id INT, s INT') KEYS (nokey) SEQUENCE BY s;
CREATE STREAMING TABLE b;
CREATE FLOW fb AS AUTO CDC INTO b FROM STREAM read_files('data', format => 'json', schema => 'id INT, s INT') KEYS (id) SEQUENCE BY noseq;
CREATE STREAMING TABLE c;
CREATE FLOW fc AS AUTO CDC INTO c FROM STREAM read_files('data', format => 'json', schema => 'id INT, s INT') KEYS (id) APPLY AS DELETE WHEN s + 1 SEQUENCE BY s;
CREATE STREAMING TABLE d;
CREATE FLOW fd AS AUTO CDC INTO d FROM STREAM read_files('data', format => 'json', schema => 'id INT, s INT') KEYS (id) APPLY AS DELETE WHEN frobnicate(s) SEQUENCE BY s;
)sql");
  const auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kInvalid) << errors_of(report);
  EXPECT_EQ(report.errors.size(), 4u) << errors_of(report);
  EXPECT_THAT(errors_of(report), HasSubstr("NOT_A_CONDITION"));
  EXPECT_THAT(errors_of(report), HasSubstr("frobnicate"));
  EXPECT_EQ(p.rows("a"), std::vector<std::string>{"no table"});
}

TEST(PipelineGraph, OneMistakeIsOneError) {
  TestPipeline p;
  p.write(
      "a.sql",
      R"sql(CREATE STREAMING TABLE a TBLPROPERTIES ('pipelines.cdc.tombstoneGCThresholdInSeconds' = 'abc');
CREATE FLOW fa AS AUTO CDC INTO a FROM STREAM read_files('data', format => 'json', schema => 'id INT, s INT') KEYS (id) SEQUENCE BY s;
CREATE STREAMING TABLE b;
CREATE FLOW fb AS AUTO CDC INTO b FROM STREAM read_files('data', format => 'json', schema => 'id STRUCT<q: INT>, s INT') KEYS (id.q) SEQUENCE BY s;
)sql");
  auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kInvalid) << errors_of(report);
  ASSERT_EQ(report.errors.size(), 2u) << errors_of(report);
  EXPECT_THAT(errors_of(report), HasSubstr("INVALID_TABLE_PROPERTY"));
  EXPECT_THAT(errors_of(report), HasSubstr("AUTOCDC_MULTIPART_COLUMN_IDENTIFIER"));
  EXPECT_EQ(p.rows("a"), std::vector<std::string>{"no table"});
  p.write("a.sql", R"sql(CREATE STREAMING TABLE a;
CREATE FLOW fa AS AUTO CDC INTO a FROM STREAM read_files('data', format => 'json', schema => 'id INT, s INT') KEYS (id) SEQUENCE BY rand();
CREATE STREAMING TABLE b;
CREATE FLOW fb AS AUTO CDC INTO b FROM read_files('data', format => 'json', schema => 'id INT, s INT') KEYS (id) SEQUENCE BY s;
)sql");
  report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kInvalid) << errors_of(report);
  ASSERT_EQ(report.errors.size(), 2u) << errors_of(report);
  EXPECT_THAT(errors_of(report), HasSubstr("AUTOCDC_NONDETERMINISTIC_EXPRESSION"));
  EXPECT_THAT(errors_of(report), HasSubstr("READ_FILES_BATCH"));
}

TEST(PipelineGraph, CyclesAndMixedFlows) {
  TestPipeline p;
  p.write("a.sql", R"sql(
CREATE STREAMING TABLE a AS SELECT * FROM STREAM(b);
CREATE STREAMING TABLE b AS SELECT * FROM STREAM(a);
CREATE STREAMING TABLE t;
CREATE FLOW f1 AS AUTO CDC INTO t FROM STREAM read_files('data', format => 'json', schema => 'id INT') KEYS (id) SEQUENCE BY id;
CREATE FLOW f2 AS INSERT INTO t BY NAME SELECT * FROM STREAM read_files('data', format => 'json', schema => 'id INT');
CREATE FLOW f2 AS INSERT INTO t BY NAME SELECT * FROM STREAM read_files('data', format => 'json', schema => 'id INT');
CREATE STREAMING TABLE u; CREATE FLOW f3 AS AUTO CDC INTO u FROM t KEYS (id) SEQUENCE BY id;
)sql");
  const auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kInvalid);
  std::vector<std::string> codes;
  codes.reserve(report.errors.size());
  for (const auto& error : report.errors) codes.push_back(error.code);
  EXPECT_THAT(codes, testing::IsSupersetOf(
                         {"CYCLE", "MIXED_FLOWS", "DUPLICATE_FLOW_NAME", "SOURCE_NOT_STREAMING"}))
      << errors_of(report);
}

TEST(PipelineGraph, ConfigurationIsSubstituted) {
  TestPipeline p;
  p.write("spark-pipeline.yml",
          "name: conf\ndatabase: s\nstorage: store\nconfiguration:\n  folder: data\nlibraries:\n  "
          "- glob:\n      include: '*.sql'\n");
  p.write("a.sql",
          "SET tab = t;\nCREATE STREAMING TABLE ${tab} AS SELECT * FROM STREAM "
          "read_files('${folder}', format => 'json', schema => 'x INT');");
  p.write("data/1.json", "{\"x\":1}\n");
  p.warehouse.reset();
  const auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_TRUE(std::filesystem::exists(p.path("store/main/s/t/_delta_log")));
}

// --- Delta sources
// --------------------------------------------------------------------------------

class DeltaSource : public testing::Test {
 protected:
  // A table of its own pipeline, appended to by files.
  void append(const std::string& file, const std::string& text) {
    source_.warehouse = p_.path("warehouse");
    source_.write("s.sql",
                  "CREATE STREAMING TABLE src AS SELECT * FROM STREAM read_files('data', format => "
                  "'json', schema => 'id INT, v STRING, seq INT');");
    source_.write("data/" + file, text);
    const auto report = source_.run();
    ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  }
  TestPipeline p_{"reader"};
  TestPipeline source_{"writer"};
};

TEST_F(DeltaSource, SnapshotThenAppends) {
  append("1.json", "{\"id\":1,\"v\":\"a\",\"seq\":1}\n");
  p_.write("t.sql",
           "CREATE STREAMING TABLE t; CREATE FLOW f AS AUTO CDC INTO t FROM "
           "stream(main.default.src) KEYS (id) SEQUENCE BY seq COLUMNS * EXCEPT (seq);");
  auto report = p_.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_THAT(p_.rows("t"), ElementsAre("1|a"));
  append("2.json", "{\"id\":1,\"v\":\"b\",\"seq\":2}\n{\"id\":2,\"v\":\"c\",\"seq\":1}\n");
  report = p_.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_EQ(metric(report, "num_input_rows"), 2);
  EXPECT_THAT(p_.rows("t"), ElementsAre("1|b", "2|c"));
}

TEST_F(DeltaSource, StartingVersionAndUnknownOptions) {
  append("1.json", "{\"id\":1,\"v\":\"a\",\"seq\":1}\n");
  append("2.json", "{\"id\":2,\"v\":\"b\",\"seq\":1}\n");
  p_.write("t.sql",
           "CREATE STREAMING TABLE t AS SELECT id FROM STREAM src WITH (startingVersion=2);");
  auto report = p_.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_THAT(p_.rows("t"), ElementsAre("2"));
  p_.write(
      "t.sql",
      "CREATE STREAMING TABLE t AS SELECT id FROM STREAM src WITH (readChangeFeed=true, foo=1);");
  report = p_.run();
  ASSERT_EQ(report.status, UpdateStatus::kInvalid);
  EXPECT_THAT(errors_of(report), HasSubstr("foo"));
}

TEST_F(DeltaSource, StartingTimestamp) {
  append("1.json", "{\"id\":1,\"v\":\"a\",\"seq\":1}\n");
  append("2.json", "{\"id\":2,\"v\":\"b\",\"seq\":1}\n");
  const auto flow = [&](const std::string& start) {
    p_.write("t.sql",
             "CREATE STREAMING TABLE t AS SELECT id FROM STREAM src WITH (startingTimestamp='" +
                 start + "');");
  };
  flow("yesterday");
  EXPECT_EQ(p_.run().errors.at(0).code, "DELTA_TIMESTAMP_INVALID");
  flow("2999-01-01");
  EXPECT_EQ(p_.run().errors.at(0).code, "DELTA_TIMESTAMP_GREATER_THAN_COMMIT");
  flow("2001-01-01 00:00:00.5");
  const auto report = p_.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_THAT(p_.rows("t"), ElementsAre("1", "2"));
}

TEST_F(DeltaSource, ChangesAreRefusedUnlessSkipped) {
  TestPipeline cdc("cdc");
  cdc.warehouse = p_.path("warehouse");
  cdc.write("users.sql", std::string(kUsersFlow) + ";");
  cdc.write("data/1.json", "{\"userId\":1,\"name\":\"a\",\"sequenceNum\":1}\n");
  ASSERT_EQ(cdc.run().status, UpdateStatus::kCompleted);
  p_.write("t.sql", "CREATE STREAMING TABLE t AS SELECT * FROM STREAM users;");
  auto report = p_.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  cdc.write("data/2.json", "{\"userId\":1,\"name\":\"b\",\"sequenceNum\":2}\n");
  ASSERT_EQ(cdc.run().status, UpdateStatus::kCompleted);
  report = p_.run();
  ASSERT_EQ(report.status, UpdateStatus::kFailed);
  EXPECT_EQ(report.errors.at(0).code, "DELTA_SOURCE_TABLE_IGNORE_CHANGES");
  EXPECT_THAT(report.errors.at(0).message, HasSubstr("skipChangeCommits"));
  p_.write("t.sql",
           "CREATE STREAMING TABLE t AS SELECT * FROM STREAM users WITH (skipChangeCommits=true);");
  cdc.write("data/3.json", "{\"userId\":2,\"name\":\"c\",\"sequenceNum\":2}\n");
  ASSERT_EQ(cdc.run().status, UpdateStatus::kCompleted);
  report = p_.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_THAT(p_.rows("t", "userId, name"), ElementsAre("1|a", "2|c"));
}

TEST_F(DeltaSource, RecreatedTableIsNoticed) {
  append("1.json", "{\"id\":1,\"v\":\"a\",\"seq\":1}\n");
  p_.write("t.sql", "CREATE STREAMING TABLE t AS SELECT id FROM STREAM src;");
  ASSERT_EQ(p_.run().status, UpdateStatus::kCompleted);
  std::filesystem::remove_all(p_.path("warehouse/main/default/src"));
  std::filesystem::remove_all(p_.path("warehouse/_strandline/pipelines/writer"));
  append("2.json", "{\"id\":2,\"v\":\"b\",\"seq\":1}\n");
  const auto report = p_.run();
  ASSERT_EQ(report.status, UpdateStatus::kFailed);
  EXPECT_EQ(report.errors.at(0).code, "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE");
}

// --- targets
// --------------------------------------------------------------------------------------

TEST(PipelineTarget, BelongsToOnePipeline) {
  TestPipeline first("first");
  TestPipeline second("second");
  second.warehouse = first.path("warehouse");
  first.write("users.sql", std::string(kUsersFlow) + ";");
  second.write("users.sql", std::string(kUsersFlow) + ";");
  ASSERT_EQ(first.run().status, UpdateStatus::kCompleted);
  const auto report = second.run();
  ASSERT_EQ(report.status, UpdateStatus::kFailed);
  EXPECT_EQ(report.errors.at(0).code, "TARGET_OF_OTHER_PIPELINE");
  EXPECT_THAT(report.errors.at(0).message, HasSubstr("'first'"));
  EXPECT_THAT(report.errors.at(0).message, HasSubstr("'second'"));
}

TEST(PipelineTarget, DroppedTargetNeedsAFullRefresh) {
  TestPipeline p;
  p.write("users.sql", std::string(kUsersFlow) + ";");
  p.write("data/1.json", kUsersData);
  ASSERT_EQ(p.run().status, UpdateStatus::kCompleted);
  p.remove("warehouse/main/default/users");
  auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kFailed);
  EXPECT_EQ(report.errors.at(0).code, "AUTOCDC_INVALID_STATE.TARGET_REPLACED");
  report = p.full_refresh({"users"});
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_EQ(p.rows("users").size(), 3u);
}

TEST(PipelineTarget, LostStateNeedsAFullRefresh) {
  TestPipeline p;
  p.write("users.sql", std::string(kUsersFlow) + ";");
  p.write("data/1.json", kUsersData);
  ASSERT_EQ(p.run().status, UpdateStatus::kCompleted);
  p.remove("warehouse/main/default/users/_strandline_state");
  p.write("data/2.json", "{\"userId\":1,\"name\":\"a\",\"sequenceNum\":1}\n");
  auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kFailed);
  EXPECT_EQ(report.errors.at(0).code, "AUTOCDC_INVALID_STATE.STATE_MISSING");
  report = p.full_refresh();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_EQ(p.rows("users").size(), 4u);
}

TEST(PipelineTarget, DriftNamesBothAndFullRefreshLeadsOn) {
  TestPipeline p;
  p.write("users.sql", std::string(kUsersFlow) + "STORED AS SCD TYPE 1;");
  p.write("data/1.json", kUsersData);
  ASSERT_EQ(p.run().status, UpdateStatus::kCompleted);
  const auto id = p.snapshot("users")->metadata.id;
  p.write("users.sql", std::string(kUsersFlow) + "STORED AS SCD TYPE 2;");
  p.write("data/2.json", "{\"userId\":1,\"name\":\"a\",\"sequenceNum\":1}\n");
  auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kFailed) << errors_of(report);
  EXPECT_EQ(report.errors.at(0).code, "AUTOCDC_INVALID_STATE.SCD_TYPE_DRIFT");
  EXPECT_EQ(p.rows("users").size(), 3u);
  report = p.full_refresh({"users"});
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_EQ(p.rows("users").size(), 8u);
  EXPECT_EQ(p.snapshot("users")->metadata.id, id) << "the table id stays";
}

TEST(PipelineTarget, FullRefreshWithoutDataEmptiesTheTable) {
  TestPipeline p;
  p.write("users.sql", std::string(kUsersFlow) + ";");
  p.write("data/1.json", kUsersData);
  ASSERT_EQ(p.run().status, UpdateStatus::kCompleted);
  p.remove("data/1.json");
  auto report = p.full_refresh({"users"});
  ASSERT_EQ(report.status, UpdateStatus::kFailed);
  EXPECT_EQ(report.errors.at(0).code, "MISSING_SOURCE");
  EXPECT_EQ(p.rows("users").size(), 3u);
  RunOptions options;
  options.refresh = RefreshKind::kFullSelected;
  options.tables = {"users"};
  options.allow_missing_sources = true;
  report = p.run(options);
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_TRUE(p.rows("users").empty());
  // What comes afterwards builds on nothing.
  p.write("data/2.json", "{\"userId\":123,\"name\":\"new\",\"sequenceNum\":1}\n");
  report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_THAT(p.rows("users"), ElementsAre("123|new|NULL"));
}

TEST(PipelineTarget, OldRowsStayUntilTheRefreshSucceeds) {
  TestPipeline p;
  p.write("users.sql", std::string(kUsersFlow) + ";");
  p.write("data/1.json", kUsersData);
  ASSERT_EQ(p.run().status, UpdateStatus::kCompleted);
  p.write("data/2.json", "{\"name\":\"no key\",\"sequenceNum\":1}\n");
  auto report = p.full_refresh({"users"});
  ASSERT_EQ(report.status, UpdateStatus::kFailed);
  EXPECT_EQ(p.rows("users").size(), 3u);
  p.remove("data/2.json");
  report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_EQ(p.rows("users").size(), 3u);
  EXPECT_EQ(metric(report, "num_input_rows"), 8) << "the refresh is still due";
}

TEST(PipelineTarget, ResetCanBeForbidden) {
  TestPipeline p;
  std::string flow = kUsersFlow;
  flow.replace(flow.find("users;"), 6, "users TBLPROPERTIES (pipelines.reset.allowed = false);");
  p.write("users.sql", flow + ";");
  p.write("data/1.json", kUsersData);
  ASSERT_EQ(p.run().status, UpdateStatus::kCompleted);
  const auto report = p.full_refresh({"users"});
  ASSERT_EQ(report.status, UpdateStatus::kFailed);
  EXPECT_EQ(report.errors.at(0).code, "RESET_NOT_ALLOWED");
  EXPECT_EQ(p.rows("users").size(), 3u);
}

TEST(PipelineTarget, CarriesItsProperties) {
  TestPipeline p;
  std::string flow = kUsersFlow;
  flow.replace(
      flow.find("users;"), 6,
      "users (userId INT COMMENT 'who', name STRING, city STRING, extra DOUBLE, __START_AT BIGINT, "
      "__END_AT BIGINT) COMMENT 'people' TBLPROPERTIES ('quality' = 'silver');");
  p.write("users.sql", flow + "STORED AS SCD TYPE 2;");
  p.write("data/1.json", kUsersData);
  const auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  const auto snapshot = p.snapshot("users");
  EXPECT_EQ(snapshot->property("strandline.primaryKey"),
            "[\"userId\",\"coalesce(__START_AT, __END_AT)\"]");
  EXPECT_EQ(snapshot->property("strandline.cdc.scdType"), "SCD TYPE 2");
  EXPECT_EQ(snapshot->property("quality"), "silver");
  EXPECT_EQ(snapshot->property("strandline.pipelineName"), "p");
  EXPECT_EQ(snapshot->metadata.description, "people");
  EXPECT_EQ(snapshot->schema.fields.size(), 6u);
  EXPECT_EQ(p.rows("users").size(), 7u);
}

TEST(PipelineTarget, OlderWritersNeedNoDeletionVectorsOrRowTracking) {
  TestPipeline p;
  std::string flow = kUsersFlow;
  flow.replace(flow.find("users;"), 6,
               "users TBLPROPERTIES ('delta.enableDeletionVectors' = 'false', "
               "'delta.enableRowTracking' = 'false');");
  p.write("users.sql", flow + ";");
  p.write("data/1.json", kUsersData);
  auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  p.write("data/2.json", "{\"userId\":124,\"name\":\"new\",\"sequenceNum\":9}\n");
  report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_THAT(p.rows("users"),
              ElementsAre("124|new|NULL", "125|Mercedes|Guadalajara", "126|Lily|Cancun"));
  const auto snapshot = p.snapshot("users");
  for (const auto& file : snapshot->files) EXPECT_FALSE(file.deletion_vector);
}

TEST(PipelineTarget, RowIdsStayWhileTheKeyStays) {
  TestPipeline p;
  p.write("users.sql", std::string(kUsersFlow) + ";");
  p.write("data/1.json", kUsersData);
  ASSERT_EQ(p.run().status, UpdateStatus::kCompleted);
  const auto ids = [&] {
    const auto table = p.table("users");
    auto connection = shared_database()->connect();
    auto snapshot = table.snapshot();
    duck::ScanOptions options;
    options.with_row_ids = true;
    auto scan = duck::scan_table(**connection, table, *snapshot, options);
    auto rows = (*connection)->query("SELECT userId, __strandline_row_id FROM " + (*scan)->sql());
    std::map<std::string, std::string> out;
    for (const auto& row : rows->rows) out[*row[0]] = row[1].value_or("NULL");
    return out;
  };
  const auto before = ids();
  p.write("data/2.json",
          "{\"userId\":124,\"name\":\"new\",\"sequenceNum\":9}\n{\"userId\":1,\"name\":\"x\","
          "\"sequenceNum\":1}\n");
  ASSERT_EQ(p.run().status, UpdateStatus::kCompleted);
  const auto after = ids();
  EXPECT_EQ(before.at("124"), after.at("124"));
  EXPECT_EQ(before.at("126"), after.at("126"));
  for (const auto& [key, id] : before) EXPECT_NE(after.at("1"), id);
}

TEST(PipelineTarget, PropertiesFollowTheStatement) {
  TestPipeline p;
  std::string flow = kUsersFlow;
  const size_t at = flow.find("users;") + 5;
  p.write("users.sql", flow + ";");
  p.write("data/1.json", kUsersData);
  ASSERT_EQ(p.run().status, UpdateStatus::kCompleted);
  flow.insert(at,
              " COMMENT 'people' TBLPROPERTIES ('quality' = 'gold', 'delta.enableDeletionVectors' "
              "= 'false')");
  p.write("users.sql", flow + ";");
  const auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_EQ(p.snapshot("users")->property("quality"), "gold");
  EXPECT_EQ(p.snapshot("users")->metadata.description, "people");
  ASSERT_EQ(report.warnings.size(), 1u);
  EXPECT_EQ(report.warnings[0].code, "TABLE_PROPERTY_FIXED");
  const auto version = p.snapshot("users")->version;
  ASSERT_EQ(p.run().status, UpdateStatus::kCompleted);
  EXPECT_EQ(p.snapshot("users")->version, version);
}

// An update that dies between the commit of the state and that of the target.
class HalfCommitted : public testing::Test {
 protected:
  void SetUp() override {
    p_.write("users.sql", std::string(kUsersFlow) + ";");
    p_.write("data/1.json", kUsersData);
    ASSERT_EQ(p_.run().status, UpdateStatus::kCompleted);
    p_.write("data/2.json",
             "{\"userId\":1,\"name\":\"a\",\"sequenceNum\":1}\n{\"userId\":124,\"operation\":"
             "\"DELETE\",\"sequenceNum\":8}\n");
    const auto before = p_.snapshot("users")->version;
    const delta::Table state(storage::make_local_store(),
                             duck::make_parquet_port(shared_database()),
                             p_.path("warehouse/main/default/users/_strandline_state"));
    const auto state_before = *state.latest_version();
    auto faulty = storage::FaultStore::wrap(storage::make_local_store());
    for (int at = 1; at < 100; ++at) {
      faulty = storage::FaultStore::wrap(storage::make_local_store());
      faulty->arm(at, storage::FaultMode::kStop);
      p_.store = faulty;
      (void)p_.run();
      if (*state.latest_version() > state_before) break;
    }
    p_.store = nullptr;
    ASSERT_EQ(*state.latest_version(), state_before + 1);
    ASSERT_EQ(p_.snapshot("users")->version, before);
  }
  TestPipeline p_;
};

TEST_F(HalfCommitted, RunsAgainFromItsPlan) {
  p_.write("data/3.json", "{\"userId\":2,\"name\":\"later\",\"sequenceNum\":1}\n");
  const auto report = p_.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_EQ(metric(report, "num_batches"), 2);
  EXPECT_THAT(p_.rows("users", "userId"), ElementsAre("1", "125", "126", "2"));
}

TEST_F(HalfCommitted, ChangedTextIsRefusedUntilARefresh) {
  std::string flow = kUsersFlow;
  flow.replace(flow.find("\"DELETE\""), 8, "\"D\"");
  p_.write("users.sql", flow + ";");
  auto report = p_.run();
  ASSERT_EQ(report.status, UpdateStatus::kFailed);
  EXPECT_EQ(report.errors.at(0).code, "UNFINISHED_BATCH");
  report = p_.full_refresh();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_EQ(p_.rows("users").size(), 5u);
}

TEST_F(HalfCommitted, ARemovedFlowIsNamed) {
  std::string flow = kUsersFlow;
  flow.replace(flow.find("apply_cdc"), 9, "other");
  p_.write("users.sql", flow + ";");
  const auto report = p_.run();
  ASSERT_EQ(report.status, UpdateStatus::kFailed);
  EXPECT_EQ(report.errors.at(0).code, "UNFINISHED_BATCH");
  EXPECT_THAT(report.errors.at(0).message, HasSubstr("apply_cdc"));
}

TEST_F(HalfCommitted, AVanishedFileIsNamed) {
  p_.remove("data/2.json");
  const auto report = p_.run();
  ASSERT_EQ(report.status, UpdateStatus::kFailed);
  EXPECT_EQ(report.errors.at(0).code, "SOURCE_FILE_VANISHED");
  EXPECT_THAT(report.errors.at(0).message, HasSubstr("data/2.json"));
  // The batch stays planned: it is half committed.
  p_.write("data/2.json",
           "{\"userId\":1,\"name\":\"a\",\"sequenceNum\":1}\n{\"userId\":124,\"operation\":"
           "\"DELETE\",\"sequenceNum\":8}\n");
  ASSERT_EQ(p_.run().status, UpdateStatus::kCompleted);
  EXPECT_THAT(p_.rows("users", "userId"), ElementsAre("1", "125", "126"));
}

// --- updates
// --------------------------------------------------------------------------------------

TEST(PipelineUpdate, OnlyOneAtATime) {
  TestPipeline p;
  p.write("users.sql", std::string(kUsersFlow) + ";");
  p.write("data/1.json", kUsersData);
  UpdateReport inner;
  bool ran = false;
  p.listener = [&](const Progress& progress) {
    if (progress.kind != Progress::Kind::kFlowStarted || ran) return;
    ran = true;
    RunOptions options;
    options.pipeline = p.path();
    inner = run_update(options, Dependencies{nullptr, shared_database()});
  };
  const auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  ASSERT_TRUE(ran);
  ASSERT_EQ(inner.status, UpdateStatus::kFailed);
  EXPECT_EQ(inner.errors.at(0).code, "PIPELINE_BUSY");
  EXPECT_EQ(inner.errors.at(0).kind, ErrorKind::kBusy);
}

TEST(PipelineUpdate, StoppedUpdateGoesOnLater) {
  TestPipeline p;
  p.write("users.sql", std::string(kUsersFlow) + ";");
  p.write("data/1.json", kUsersData);
  std::atomic<bool> cancel{false};
  p.cancel = &cancel;
  p.listener = [&](const Progress& progress) {
    if (progress.kind == Progress::Kind::kStage && progress.stage != "plan") cancel = true;
  };
  auto report = p.run();
  EXPECT_EQ(report.status, UpdateStatus::kCanceled) << errors_of(report);
  EXPECT_EQ(report.flows.at(0).status, "CANCELED");
  EXPECT_TRUE(report.warnings.empty())
      << "the event log is written all the same: " << report.warnings[0].message;
  p.cancel = nullptr;
  p.listener = {};
  report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_EQ(p.rows("users").size(), 3u);
}

TEST(PipelineUpdate, SelectedTablesOnly) {
  TestPipeline p;
  p.write("t.sql", R"sql(
CREATE STREAMING TABLE a AS SELECT * FROM STREAM read_files('data', format => 'json', schema => 'x INT');
CREATE STREAMING TABLE b AS SELECT * FROM STREAM read_files('data', format => 'json', schema => 'x INT');)sql");
  p.write("data/1.json", "{\"x\":1}\n");
  RunOptions options;
  options.refresh = RefreshKind::kSelected;
  options.tables = {"b"};
  auto report = p.run(options);
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_EQ(report.flows.at(0).status, "EXCLUDED");
  EXPECT_EQ(p.rows("a"), std::vector<std::string>{"no table"});
  EXPECT_THAT(p.rows("b"), ElementsAre("1"));
  options.tables = {"c"};
  report = p.run(options);
  EXPECT_EQ(report.status, UpdateStatus::kInvalid);
  EXPECT_EQ(report.errors.at(0).code, "UNKNOWN_TABLE");
}

TEST(PipelineUpdate, EventLogHasTheMetrics) {
  TestPipeline p;
  p.write("users.sql", std::string(kUsersFlow) + ";");
  p.write("data/1.json", kUsersData);
  ASSERT_EQ(p.run().status, UpdateStatus::kCompleted);
  ASSERT_EQ(p.run().status, UpdateStatus::kCompleted);
  const delta::Table log(storage::make_local_store(), duck::make_parquet_port(shared_database()),
                         p.path("warehouse/_strandline/pipelines/p/event_log"));
  const auto snapshot = log.snapshot();
  ASSERT_TRUE(snapshot.ok());
  EXPECT_EQ((*snapshot)->version, 1) << "one commit an update";
  const auto rows = TestPipeline::rows_of(
      log,
      "event_type, level, details->>'$.flow_progress.metrics.num_upserted_rows', "
      "details->>'$.flow_progress.metrics.num_late_rows', details->>'$.flow_progress.status'");
  EXPECT_THAT(rows, testing::Contains("flow_progress|INFO|3|0|COMPLETED"));
  EXPECT_THAT(rows, testing::Contains("flow_progress|INFO|0|0|COMPLETED"));
  EXPECT_THAT(rows, testing::Contains("create_update|INFO|NULL|NULL|NULL"));
}

TEST(PipelineUpdate, SequenceConflictsAreWarnedAbout) {
  TestPipeline p;
  p.write("users.sql", std::string(kUsersFlow) + ";");
  p.write("data/1.json",
          "{\"userId\":1,\"name\":\"a\",\"sequenceNum\":1}\n{\"userId\":1,\"name\":\"b\","
          "\"sequenceNum\":1}\n");
  const auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_THAT(p.rows("users"), ElementsAre("1|b|NULL"));
  ASSERT_EQ(report.warnings.size(), 1u);
  EXPECT_EQ(report.warnings[0].code, "SEQUENCE_CONFLICT");
  EXPECT_GT(metric(report, "num_sequence_conflicts"), 0);
}

}  // namespace
}  // namespace strandline::pipeline
