// What others do to source and target while a snapshot is taken.
#include <gtest/gtest.h>

#include "duck/table_change.h"
#include "pipeline/identity.h"
#include "pipeline/snapshot_version.h"
#include "pipeline/target.h"
#include "pipeline/test_pipeline.h"

namespace strandline::pipeline {
namespace {

// Rows of a query come, rows that meet the condition go.
void change(const TestPipeline& p, const std::string& name, const std::string& new_rows,
            const std::string& gone) {
  const auto table = p.table(name);
  const auto snapshot = p.snapshot(name);
  auto connection = shared_database()->connect();
  ASSERT_TRUE(connection.ok());
  duck::ScanOptions options;
  options.with_positions = true;
  auto scan = duck::scan_table(**connection, table, snapshot, options);
  ASSERT_TRUE(scan.ok()) << scan.error().message;
  duck::TableChange change;
  change.new_rows = new_rows;
  if (!gone.empty()) {
    change.dead_rows = "SELECT " + std::string(duck::kFileColumn) + ", " + duck::kRowColumn +
                       " FROM " + (*scan)->sql() + " WHERE " + gone;
  }
  auto transaction = delta::Transaction::begin(table, snapshot);
  ASSERT_TRUE(transaction.ok()) << transaction.error().message;
  transaction->set_operation("UPDATE");
  duck::AppliedChange applied;
  const auto done =
      duck::apply_change(**connection, *transaction, table, snapshot, change, &applied);
  ASSERT_TRUE(done.ok()) << done.error().message;
  const auto committed = duck::commit_change(*transaction, table, applied);
  ASSERT_TRUE(committed.ok()) << committed.error().message;
}

// `source` and `loads` are tables of another pipeline, so that they can be written by hand.
class SnapshotFlowTest : public testing::Test {
 protected:
  void SetUp() override {
    feeder_.write("t.sql",
                  "CREATE STREAMING TABLE source AS SELECT * FROM STREAM read_files('" +
                      feeder_.path("source") +
                      "', format => 'json', schema => 'id INT, v STRING');\nCREATE STREAMING TABLE "
                      "loads AS SELECT * FROM STREAM read_files('" +
                      feeder_.path("loads") + "', format => 'json', schema => 'version INT');");
    feeder_.write("source/1.json", "{\"id\":1,\"v\":\"a\"}\n{\"id\":2,\"v\":\"b\"}\n");
    feeder_.write("loads/1.json", "{\"version\":1}\n");
    feeder_.warehouse = follower_.path("warehouse");
    ASSERT_EQ(feeder_.run().status, UpdateStatus::kCompleted);
  }
  void follow(const std::string& storage) {
    follower_.write("t.sql",
                    "CREATE STREAMING TABLE t;\nCREATE FLOW t AS AUTO CDC INTO t FROM SNAPSHOT "
                    "(source) WITH VERSION (SELECT max(version) FROM loads) KEYS (id) " +
                        storage + ";");
    const auto report = follower_.run();
    ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  }

  TestPipeline feeder_{"feeder"}, follower_;
};

TEST_F(SnapshotFlowTest, RowsChangedByHandJustBeforeTheCommitAreCompared) {
  follow("");
  change(feeder_, "source", "SELECT 3::INT AS id, 'c' AS v", "");
  change(feeder_, "loads", "SELECT 2::INT AS version", "");
  int commits = 0;
  follower_.listener = [&](const Progress& progress) {
    if (progress.kind != Progress::Kind::kStage || progress.stage != "commit") return;
    if (++commits == 1) change(follower_, "t", "SELECT 1::INT AS id, 'hand' AS v", "id = 1");
  };
  const auto report = follower_.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_EQ(commits, 2);
  EXPECT_EQ(follower_.rows("t"), (std::vector<std::string>{"1|a", "2|b", "3|c"}));
  EXPECT_EQ(report.flows[0].metrics.at("num_upserted_rows"), 2);
}

// Versions of the first table of the pipeline that the next snapshot takes for changed by hand.
std::vector<Target::Versions> doubted(const TestPipeline& p) {
  Context context;
  context.store = storage::make_local_store();
  context.parquet = duck::make_parquet_port(shared_database());
  context.spec = load_spec(*context.store, p.path(), std::nullopt).spec;
  context.warehouse =
      *catalog::Warehouse::open(context.store, context.parquet, context.spec.warehouse);
  context.graph = build_graph(context.spec, *context.store, *context.warehouse).graph;
  context.pipeline_id = read_identity(context)->id;
  const auto target = *Target::open(context, 0);
  const auto progress =
      *FlowCheckpoint::open(context.store, target.checkpoint().flow_directory("t"));
  return *target.hand_edits(**target.snapshot(progress), nullptr);
}

TEST_F(SnapshotFlowTest, ATableThatWasTakenOverIsLookedThroughOnce) {
  delta::NewTable definition;
  definition.schema = feeder_.snapshot("source")->schema;
  auto created = delta::Transaction::create(follower_.table("t"), definition);
  ASSERT_TRUE(created.ok()) << created.error().message;
  ASSERT_TRUE(created->commit_or_error().ok());
  change(follower_, "t", "SELECT 1::INT AS id, 'x' AS v UNION ALL SELECT 5, 'y'", "");
  follow("");
  EXPECT_EQ(follower_.rows("t"), (std::vector<std::string>{"1|a", "2|b"}));
  EXPECT_TRUE(doubted(follower_).empty());
  change(follower_, "t", "SELECT 7::INT AS id, 'hand' AS v", "");
  const auto version = follower_.snapshot("t")->version;
  EXPECT_EQ(doubted(follower_), (std::vector<Target::Versions>{{version, version}}));
}

TEST_F(SnapshotFlowTest, AVersionBelongsToTheRowsBesideWhichItWasRead) {
  int changes = 0;
  follower_.listener = [&](const Progress& progress) {
    if (progress.kind != Progress::Kind::kStage || progress.stage != "plan" || changes++ > 0)
      return;
    change(feeder_, "loads", "SELECT 2::INT AS version", "");
    change(feeder_, "source", "SELECT 3::INT AS id, 'c' AS v", "id = 1");
  };
  follower_.write("t.sql",
                  "CREATE STREAMING TABLE t;\nCREATE FLOW t AS AUTO CDC INTO t FROM SNAPSHOT "
                  "(source) WITH VERSION (SELECT max(version) FROM loads WHERE EXISTS (SELECT * "
                  "FROM source)) KEYS (id) STORED AS SCD TYPE 2;");
  auto report = follower_.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_EQ(changes, 1);
  EXPECT_EQ(follower_.rows("t"), (std::vector<std::string>{"1|a|1|NULL", "2|b|1|NULL"}));
  report = follower_.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_EQ(follower_.rows("t"), (std::vector<std::string>{"1|a|1|2", "2|b|1|NULL", "3|c|2|NULL"}));
}

TEST_F(SnapshotFlowTest, WhatTheFirstSnapshotBroughtIsGoneWithAFullRefresh) {
  follow("STORED AS SCD TYPE 2");
  change(feeder_, "source", "", "id = 1");
  change(feeder_, "loads", "SELECT 0::INT AS version", "true");
  // A version below the latest is skipped, until the flow begins anew.
  auto report = follower_.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_EQ(report.flows[0].metrics.at("num_skipped_snapshots"), 1);
  ASSERT_EQ(report.warnings.size(), 1u);
  EXPECT_EQ(report.warnings[0].code,
            "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.OUT_OF_ORDER_SNAPSHOT_VERSION");
  EXPECT_EQ(follower_.rows("t"), (std::vector<std::string>{"1|a|1|NULL", "2|b|1|NULL"}));
  report = follower_.full_refresh();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_EQ(follower_.rows("t"), (std::vector<std::string>{"2|b|0|NULL"}));
}

// Rounded to microseconds, two versions would be one, and a function would be asked for ever.
TEST(SnapshotVersionTest, RefusesWhatItsTypeWouldRound) {
  auto connection = shared_database()->connect();
  ASSERT_TRUE(connection.ok());
  const auto code_of = [&](const char* type, const char* value) {
    const auto version = read_version(**connection, type, value);
    return version.ok() ? version->value : version.error().code;
  };
  const std::string refused = "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.INVALID_SNAPSHOT_VERSION_TYPE";
  EXPECT_EQ(code_of("TIMESTAMP", "2024-01-01 00:00:00.0000001"), refused);
  EXPECT_EQ(code_of("TIMESTAMP", "2024-01-01 00:00:00.0000001+02:00"), refused);
  EXPECT_EQ(code_of("DECIMAL", "0.0000000000000000001"), refused);
  for (const char* value : {"2024-01-01 00:00:00.123456", "2024-01-01 00:00:00.123456000",
                            "2024-01-01 00:00:00.000000+10:00", "2024-01-01 00:00:00"}) {
    EXPECT_EQ(code_of("TIMESTAMP", value), value);
  }
  EXPECT_EQ(code_of("DECIMAL", "10.0"), "10.0");
  EXPECT_EQ(code_of("DECIMAL", "100"), "100");
}

}  // namespace
}  // namespace strandline::pipeline
