// Targets between updates and batches: those that another program has restored or replaced
// (auto-cdc.md section 6), where the next update says so, by name, and a full refresh leads on;
// what a batch looks at to know the newest version.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "delta/restore.h"
#include "delta/transaction.h"
#include "pipeline/test_pipeline.h"
#include "storage/passing_store.h"

namespace strandline::pipeline {
namespace {

using testing::HasSubstr;

constexpr const char* kFlow = R"sql(CREATE STREAMING TABLE t;
CREATE FLOW f AS AUTO CDC INTO t
FROM STREAM read_files('data', format => 'json', schema => 'id INT, v STRING, s INT') KEYS (id) SEQUENCE BY s
STORED AS )sql";

struct OtherProgram {
  const char* name;
  const char* says;
  void (*act)(const delta::Table& table);
};

void commit_as(const delta::Table& table, const char* operation) {
  const auto newest = table.snapshot();
  ASSERT_TRUE(newest.ok());
  auto transaction = delta::Transaction::begin(table, *newest);
  ASSERT_TRUE(transaction.ok());
  // What REPLACE leaves of our properties.
  delta::Metadata metadata = (*newest)->metadata;
  std::erase_if(metadata.configuration,
                [](const auto& property) { return property.first.starts_with("strandline."); });
  transaction->set_metadata(std::move(metadata));
  transaction->set_operation(operation);
  const auto done = transaction->commit_or_error();
  ASSERT_TRUE(done.ok()) << done.error().message;
}

const OtherProgram kPrograms[] = {
    {"restored", "was restored at version",
     [](const delta::Table& table) {
       const auto wanted = table.snapshot(1);
       ASSERT_TRUE(wanted.ok());
       const auto done = delta::restore(table, **wanted);
       ASSERT_TRUE(done.ok()) << done.error().message;
     }},
    {"replaced", "was replaced at version",
     [](const delta::Table& table) { commit_as(table, "CREATE OR REPLACE TABLE AS SELECT"); }},
    {"replaced_by_replace", "was replaced at version",
     [](const delta::Table& table) { commit_as(table, "REPLACE TABLE"); }},
};

class ReplacedTarget : public testing::TestWithParam<std::tuple<OtherProgram, const char*>> {};

TEST_P(ReplacedTarget, IsSaidAndAFullRefreshLeadsOn) {
  const auto& [other, storage] = GetParam();
  TestPipeline p;
  p.write("t.sql", std::string(kFlow) + storage + ";");
  p.write("data/1.json", "{\"id\":1,\"v\":\"a\",\"s\":1}\n");
  ASSERT_EQ(p.run().status, UpdateStatus::kCompleted);
  p.write("data/2.json", "{\"id\":1,\"v\":\"b\",\"s\":2}\n{\"id\":2,\"v\":\"c\",\"s\":2}\n");
  ASSERT_EQ(p.run().status, UpdateStatus::kCompleted);
  const auto rows = p.rows("t");
  other.act(p.table("t"));
  // Without anything new, and with something new, again and again.
  for (const char* file : {"", "data/3.json", ""}) {
    if (*file != '\0') p.write(file, "{\"id\":3,\"v\":\"d\",\"s\":3}\n");
    const auto version = p.snapshot("t")->version;
    const auto report = p.run();
    ASSERT_EQ(report.status, UpdateStatus::kFailed);
    ASSERT_EQ(report.errors.size(), 1u) << errors_of(report);
    EXPECT_EQ(report.errors[0].code, "AUTOCDC_INVALID_STATE.TARGET_REPLACED");
    EXPECT_THAT(report.errors[0].message, HasSubstr(other.says));
    EXPECT_THAT(report.errors[0].message, HasSubstr("--full-refresh"));
    EXPECT_EQ(p.snapshot("t")->version, version);
  }
  const auto refreshed = p.full_refresh({"t"});
  ASSERT_EQ(refreshed.status, UpdateStatus::kCompleted) << errors_of(refreshed);
  EXPECT_EQ(p.rows("t").size(), rows.size() + 1);
  const auto after = p.rows("t");
  p.write("data/4.json", "{\"id\":1,\"v\":\"b\",\"s\":2}\n");
  const auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_EQ(p.rows("t"), after);
}

INSTANTIATE_TEST_SUITE_P(
    ByAnotherProgram, ReplacedTarget,
    testing::Combine(testing::ValuesIn(kPrograms), testing::Values("SCD TYPE 1", "SCD TYPE 2")),
    [](const auto& chosen) {
      return std::string(std::get<0>(chosen.param).name) +
             (std::string(std::get<1>(chosen.param)) == "SCD TYPE 1" ? "_type1" : "_type2");
    });

// Counts the listings of logs.
class CountingStore : public storage::PassingStore {
 public:
  CountingStore() : PassingStore(storage::make_local_store()) {}
  Result<std::vector<storage::FileInfo>> list(const std::string& directory) override {
    if (directory.ends_with("/_delta_log")) ++listed;
    return inner_->list(directory);
  }

  int listed = 0;
};

// A log grows with every batch, and so does the time that a listing of it takes.
TEST(Target, BatchesDoNotListItsLog) {
  constexpr int kBatches = 40;
  TestPipeline p;
  const auto store = std::make_shared<CountingStore>();
  p.store = store;
  std::string flow = kFlow;
  flow.replace(flow.find("schema =>"), 0, "maxFilesPerTrigger => 1, ");
  p.write("t.sql", flow + "SCD TYPE 2;");
  for (int i = 0; i < kBatches; ++i) {
    p.write("data/" + std::to_string(i) + ".json",
            "{\"id\":" + std::to_string(i % 7) + ",\"v\":\"a\",\"s\":" + std::to_string(i) + "}\n");
  }
  const auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_EQ(report.flows[0].metrics.at("num_batches"), kBatches);
  // The start, and after every so many batches a checkpoint and a look at the files.
  EXPECT_LT(store->listed, kBatches);
}

}  // namespace
}  // namespace strandline::pipeline
