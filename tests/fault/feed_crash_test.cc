// Stops an update that reads a change data feed at every mutating call of the store; after running
// again every change is there exactly once (change-data-feed.md, streaming).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "pipeline/test_pipeline.h"

namespace strandline::pipeline {
namespace {

using ::testing::UnorderedElementsAre;

constexpr const char* kFlows = R"sql(
CREATE STREAMING TABLE users;
CREATE FLOW to_users AS AUTO CDC INTO users FROM STREAM read_files('data', format => 'json', schema => 'id INT, v STRING, op STRING, seq INT')
KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op, seq);
CREATE STREAMING TABLE archive AS SELECT * FROM STREAM users WITH (readChangeFeed=true, maxFilesPerTrigger=1);
CREATE STREAMING TABLE copy;
CREATE FLOW to_copy AS AUTO CDC INTO copy FROM STREAM users WITH (readChangeFeed=true)
KEYS (id) SEQUENCE BY _commit_version;
)sql";
constexpr const char* kFirst =
    "{\"id\":1,\"v\":\"a\",\"seq\":1}\n{\"id\":2,\"v\":\"b\",\"seq\":1}\n";
constexpr const char* kSecond =
    "{\"id\":1,\"v\":\"z\",\"seq\":3}\n{\"id\":2,\"op\":\"D\",\"seq\":2}\n{\"id\":4,\"v\":\"new\","
    "\"seq\":1}\n";
// Arrives between the stopped update and the next.
constexpr const char* kThird =
    "{\"id\":5,\"v\":\"e\",\"seq\":1}\n{\"id\":4,\"op\":\"D\",\"seq\":4}\n";

// The rows that the archived changes come to; a change that is there twice is a failure.
std::vector<std::string> net(const TestPipeline& p) {
  std::set<std::string> changes;
  std::map<std::string, int> counts;
  for (const auto& row : p.rows("archive", "id, v, _change_type, _commit_version")) {
    EXPECT_TRUE(changes.insert(row).second) << row << " is there twice";
    const std::string values = row.substr(0, row.find('|', row.find('|') + 1));
    const bool came = row.find("|insert|") != std::string::npos ||
                      row.find("|update_postimage|") != std::string::npos;
    counts[values] += came ? 1 : -1;
  }
  std::vector<std::string> rows;
  for (const auto& [values, count] : counts) {
    EXPECT_TRUE(count == 0 || count == 1) << values << " " << count;
    if (count == 1) rows.push_back(values);
  }
  return rows;
}

class FeedCrash : public testing::TestWithParam<storage::FaultMode> {};

TEST_P(FeedCrash, EveryChangeComesOnce) {
  // Copies of this pipeline read its files, so that what was consumed keeps its path.
  TestPipeline before;
  std::string text = kFlows;
  text.replace(text.find("'data'"), 6, "'" + before.path("data") + "'");
  before.write("t.sql", text);
  before.write("data/1.json", kFirst);
  ASSERT_EQ(before.run().status, UpdateStatus::kCompleted);
  before.write("data/2.json", kSecond);
  int stops = 0;
  for (int at = 1;; ++at) {
    TestPipeline p;
    std::filesystem::copy(before.path(), p.path(),
                          std::filesystem::copy_options::recursive |
                              std::filesystem::copy_options::overwrite_existing);
    auto faulty = storage::FaultStore::wrap(storage::make_local_store());
    faulty->arm(at, GetParam());
    p.store = faulty;
    const auto broken = p.run();
    const bool reached = faulty->mutating_calls() >= at;
    p.store = nullptr;
    before.write("data/3.json", kThird);
    const auto report = p.run();
    before.remove("data/3.json");
    SCOPED_TRACE("stopped at call " + std::to_string(at) + " first " + errors_of(broken));
    ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
    ASSERT_THAT(p.rows("users"), UnorderedElementsAre("1|z", "5|e"));
    ASSERT_THAT(p.rows("copy"), UnorderedElementsAre("1|z", "5|e"));
    ASSERT_THAT(net(p), UnorderedElementsAre("1|z", "5|e"));
    if (HasFailure() || !reached) break;
    ++stops;
    ASSERT_LT(at, 500);
  }
  EXPECT_GT(stops, 10);
}

INSTANTIATE_TEST_SUITE_P(EveryCall, FeedCrash,
                         testing::Values(storage::FaultMode::kStop,
                                         storage::FaultMode::kErrorAfter),
                         [](const auto& param) {
                           return param.param == storage::FaultMode::kStop ? "stop" : "error_after";
                         });

}  // namespace
}  // namespace strandline::pipeline
