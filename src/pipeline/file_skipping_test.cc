// AUTO CDC reads the files of target and state that its batch's keys may be in, and no others.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

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

// Another writer compacts the target between a batch's reading and its commit.
TEST_P(FileSkippingTest, ABatchSurvivesCompaction) {
  TestPipeline p;
  p.write("f.sql", flow(GetParam()));
  for (int batch = 0; batch < 3; ++batch) {
    p.write(fmt::format("data/{}.json", batch), events(batch * 100, 100, 1));
    ASSERT_EQ(p.run().status, UpdateStatus::kCompleted);
  }
  int compactions = 0;
  // The file of that place moves: the same rows under another name.
  const auto move_file = [&](size_t index) {
    const auto table = p.table("t");
    auto transaction = delta::Transaction::begin(table, p.snapshot("t"));
    ASSERT_TRUE(transaction.ok());
    const delta::AddFile old = transaction->snapshot().files.at(index);
    delta::AddFile moved = old;
    moved.path = fmt::format("moved-{}.parquet", ++compactions);
    moved.data_change = false;
    const auto from = delta::resolve_data_path(table.path(), old.path);
    const auto to = delta::resolve_data_path(table.path(), moved.path);
    std::filesystem::copy_file(*from, *to);
    transaction->remove_file(old, false);
    transaction->add_file(moved);
    transaction->set_read_files({index});
    const auto done = transaction->commit_or_error();
    ASSERT_TRUE(done.ok()) << done.error().message;
  };
  const auto file_of = [&](int id) {
    const auto snapshot = p.snapshot("t");
    const auto filter = delta::FileFilter::compare(*snapshot, {"id"}, delta::CompareOp::kEqual,
                                                   {TypeId::kLong, std::to_string(id)});
    return delta::select_files(*snapshot, filter).files.at(0);
  };
  int commits = 0;
  int at_commit_of_file = 50;
  p.listener = [&](const Progress& progress) {
    if (progress.stage == "commit" && ++commits == 1) move_file(file_of(at_commit_of_file));
  };
  // The file that the batch changes: the batch is computed again from its plan.
  p.write("data/again.json", events(50, 1, 2));
  auto report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_EQ(commits, 2);
  EXPECT_EQ(metric(report, "num_batches"), 1);
  // A file that the batch did not read is no concern of it.
  commits = 0;
  at_commit_of_file = 250;
  p.write("data/other.json", events(150, 1, 2));
  report = p.run();
  ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  EXPECT_EQ(commits, 1);
  EXPECT_EQ(compactions, 2);
  const bool type1 = GetParam() == std::string("1");
  const auto rows = p.rows("t", "id, v");
  EXPECT_EQ(rows.size(), type1 ? 300u : 302u);
  EXPECT_EQ(std::count(rows.begin(), rows.end(), "50|2"), 1);
  EXPECT_EQ(std::count(rows.begin(), rows.end(), "150|2"), 1);
  EXPECT_EQ(std::count(rows.begin(), rows.end(), "50|1"), type1 ? 0 : 1);
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
