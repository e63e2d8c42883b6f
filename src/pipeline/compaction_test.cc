#include "pipeline/compaction.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pipeline/test_pipeline.h"

namespace strandline::pipeline {
namespace {

constexpr int kBatches = 90;

// Each batch has one file of three events: two new keys and one that came before, at times late.
// The sequence is not kept in the target, so target and state both get a file with every batch.
void feed(const TestPipeline& p, const std::string& properties) {
  p.write("t.sql", "CREATE STREAMING TABLE t " + properties +
                       ";\nCREATE FLOW f AS AUTO CDC INTO t FROM STREAM read_files('data', format "
                       "=> 'json', schema => 'k INT, v STRING, s INT', maxFilesPerTrigger => 1)\n"
                       "KEYS (k) APPLY AS DELETE WHEN v = 'gone' SEQUENCE BY s COLUMNS * EXCEPT "
                       "(s);\n");
  for (int i = 0; i < kBatches; ++i) {
    std::string text;
    for (int e = 0; e < 3; ++e) {
      const int key = e == 2 ? (i * 5) % (2 * i + 1) : i * 2 + e;
      text += fmt::format("{{\"k\": {}, \"v\": \"{}\", \"s\": {}}}\n", key,
                          (i + e) % 11 == 0 ? "gone" : fmt::format("v{}", i), (i * 7) % 97 + e);
    }
    p.write(fmt::format("data/{:03}.json", i), text);
  }
}

size_t files_of(const delta::Table& table) {
  const auto snapshot = table.snapshot();
  return snapshot.ok() ? (*snapshot)->files.size() : 0;
}

TEST(Compaction, SmallBatchesLeaveFewFiles) {
  TestPipeline on;
  feed(on, "");
  const auto report = on.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_TRUE(report.warnings.empty());
  TestPipeline off;
  feed(off, "TBLPROPERTIES ('delta.autoOptimize.autoCompact' = 'false')");
  ASSERT_EQ(off.run().status, UpdateStatus::kCompleted);
  TestPipeline half;
  feed(half, "TBLPROPERTIES ('strandline.cdc.stateAutoCompact' = 'false')");
  ASSERT_EQ(half.run().status, UpdateStatus::kCompleted);

  const auto state = [](const TestPipeline& p) {
    const delta::Table target = p.table("t");
    return delta::Table(target.store(), target.parquet(), target.path() + "/_strandline_state");
  };
  EXPECT_GE(files_of(off.table("t")), 70u);
  EXPECT_GE(files_of(state(off)), 70u);
  EXPECT_LE(files_of(on.table("t")), 40u);
  EXPECT_LE(files_of(state(on)), 40u);
  EXPECT_LE(files_of(half.table("t")), 40u);
  EXPECT_GE(files_of(state(half)), 70u);
  EXPECT_EQ(on.rows("t"), off.rows("t"));
  EXPECT_EQ(half.rows("t"), off.rows("t"));

  // The compacted state knows what it knew: late events land where they land without it.
  for (const TestPipeline* p : {&on, &off}) {
    p->write("data/late.json",
             "{\"k\": 1, \"v\": \"late\", \"s\": 2}\n{\"k\": 19, \"v\": \"late\", \"s\": 40}\n");
    const auto again = p->run();
    ASSERT_EQ(again.status, UpdateStatus::kCompleted) << errors_of(again);
  }
  EXPECT_EQ(on.rows("t"), off.rows("t"));
}

}  // namespace
}  // namespace strandline::pipeline
