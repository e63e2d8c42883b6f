// AUTO CDC reads the files of target and state that its batch's keys may be in, and no others.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "delta/transaction.h"
#include "pipeline/test_pipeline.h"

namespace strandline::pipeline {
namespace {

using ::testing::ElementsAre;

double metric(const UpdateReport& report, const std::string& name) {
  return report.flows.at(0).metrics.at(name);
}

std::string flow(const std::string& stored_as, const std::string& more = "") {
  return "CREATE OR REFRESH STREAMING TABLE t; CREATE FLOW f AS AUTO CDC INTO t FROM STREAM "
         "read_files('data', format => 'json', schema => 'id BIGINT, region STRING, v INT, s INT, "
         "kind STRING') KEYS (region, id) " +
         more + " SEQUENCE BY s COLUMNS * EXCEPT (s, kind) STORED AS SCD TYPE " + stored_as + ";";
}

// Rows of ids first, first + step, ...
std::string events(int first, int count, int sequence, int step = 1, const char* region = "r") {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += fmt::format(R"({{"id":{},"region":"{}","v":{},"s":{},"kind":"u"}})", first + i * step,
                        region, sequence, sequence) +
            "\n";
  }
  return text;
}

class FileSkippingTest : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Types, FileSkippingTest, ::testing::Values("1", "2"));

TEST_P(FileSkippingTest, ABatchReadsTheFilesOfItsKeys) {
  TestPipeline p;
  p.write("f.sql", flow(GetParam()));
  for (int batch = 0; batch < 6; ++batch) {
    p.write(fmt::format("data/{}.json", batch), events(batch * 100, 100, 1));
    const auto report = p.run();
    ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
    EXPECT_EQ(metric(report, "num_files_read"), 0) << "keys above all that are there";
  }
  const auto skipped = [&](const std::string& name, const std::string& text) {
    p.write("data/" + name, text);
    const auto report = p.run();
    EXPECT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
    return std::pair(metric(report, "num_files_read"), metric(report, "num_files_skipped"));
  };
  const bool type1 = GetParam() == std::string("1");
  // One key in each of two files: a range from the first to the last would take four.
  const auto [read, left] = skipped("far.json", events(150, 2, 2, 300));
  EXPECT_EQ(left, read * 2) << "four of six files, of the target and of what state there is";
  EXPECT_EQ(read, type1 ? 4 : 2);
  const auto rows = p.rows("t", type1 ? "id, v" : "id, v, __END_AT");
  EXPECT_EQ(rows.size(), type1 ? 600u : 602u);
  EXPECT_EQ(std::count(rows.begin(), rows.end(), type1 ? "150|2" : "150|2|NULL"), 1);
  EXPECT_EQ(std::count(rows.begin(), rows.end(), type1 ? "450|2" : "450|2|NULL"), 1);
  // The other column of the key leaves files out as well.
  EXPECT_EQ(skipped("region.json", events(0, 600, 9, 1, "q")).first, 0);
  // The commit tells.
  p.write("data/last.json", events(550, 1, 3));
  ASSERT_EQ(p.run().status, UpdateStatus::kCompleted);
  const auto commit = p.table("t").commit(p.snapshot("t")->version).value();
  const auto& metrics = std::get<delta::CommitInfo>(commit.front()).operation_metrics;
  EXPECT_EQ(metrics.at("numFilesBeforeSkipping"), "8");
  EXPECT_EQ(metrics.at("numFilesAfterSkipping"), "1");
}

TEST(FileSkipping, AFlowThatTruncatesReadsAll) {
  TestPipeline p;
  p.write("f.sql", flow("1", "APPLY AS TRUNCATE WHEN kind = 't'"));
  for (int batch = 0; batch < 3; ++batch) {
    p.write(fmt::format("data/{}.json", batch), events(batch * 100, 100, 1));
    ASSERT_EQ(p.run().status, UpdateStatus::kCompleted);
  }
  p.write("data/t.json", R"({"id":1,"region":"r","v":0,"s":5,"kind":"t"})");
  const auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_EQ(metric(report, "num_files_skipped"), 0);
  EXPECT_THAT(p.rows("t"), ElementsAre());
}

}  // namespace
}  // namespace strandline::pipeline
