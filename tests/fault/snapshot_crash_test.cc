// Stops an update that takes snapshots at every mutating call of the store: each snapshot is
// processed once or not at all, and running again gives the reference result.
#include <gtest/gtest.h>

#include "pipeline/test_pipeline.h"

namespace strandline::pipeline {
namespace {

std::string flows(const std::string& data) {
  const std::string files = "read_files('" + data +
                            "', format => 'json', schema => 'id INT, v STRING, note STRING, ver "
                            "INT')";
  return "CREATE STREAMING TABLE latest;\n"
         "CREATE FLOW a AS AUTO CDC INTO latest FROM SNAPSHOT (SELECT id, v, note FROM " +
         files +
         ") KEYS (id);\n"
         "CREATE STREAMING TABLE history;\n"
         "CREATE FLOW b AS AUTO CDC INTO history FROM SNAPSHOT (SELECT id, v, note FROM " +
         files + ") WITH VERSION (SELECT max(ver) FROM " + files +
         ") KEYS (id) STORED AS SCD TYPE 2 TRACK HISTORY ON (v);\n";
}

// What the source holds at versions 1, 2 and 3.
constexpr const char* kSnapshots[] = {
    "{\"id\":1,\"v\":\"a\",\"ver\":1}\n{\"id\":2,\"v\":\"b\",\"ver\":1}\n{\"id\":3,\"v\":\"c\","
    "\"ver\":1}\n",
    "{\"id\":1,\"v\":\"a\",\"note\":\"n\",\"ver\":2}\n{\"id\":3,\"v\":\"d\",\"ver\":2}\n{\"id\":4,"
    "\"v\":\"e\",\"ver\":2}\n",
    "{\"id\":2,\"v\":\"b\",\"ver\":3}\n{\"id\":3,\"v\":\"d\",\"ver\":3}\n{\"id\":4,\"v\":\"f\","
    "\"ver\":3}\n"};

const std::vector<std::string> kLatest = {"2|b|NULL", "3|d|NULL", "4|f|NULL"};
const std::vector<std::string> kHistory = {"1|a|n|1|3",       "2|b|NULL|1|2",    "2|b|NULL|3|NULL",
                                           "3|c|NULL|1|2",    "3|d|NULL|2|NULL", "4|e|NULL|2|3",
                                           "4|f|NULL|3|NULL"};
// Begun anew at version 2.
const std::vector<std::string> kRefreshed = {"1|a|n|2|3", "2|b|NULL|3|NULL", "3|d|NULL|2|NULL",
                                             "4|e|NULL|2|3", "4|f|NULL|3|NULL"};

class SnapshotCrash : public testing::TestWithParam<std::tuple<storage::FaultMode, int>> {};

// phase: the first update is stopped, the second one, or a full refresh in its place.
TEST_P(SnapshotCrash, RerunGivesTheReference) {
  const auto [mode, phase] = GetParam();
  TestPipeline before;
  before.write("t.sql", flows(before.path("data")));
  before.write("data/1.json", kSnapshots[0]);
  if (phase > 0) {
    ASSERT_EQ(before.run().status, UpdateStatus::kCompleted);
    before.write("data/1.json", kSnapshots[1]);
  }
  int stops = 0;
  for (int at = 1;; ++at) {
    TestPipeline p;
    before.write("data/1.json", kSnapshots[phase > 0 ? 1 : 0]);
    std::filesystem::copy(before.path(), p.path(),
                          std::filesystem::copy_options::recursive |
                              std::filesystem::copy_options::overwrite_existing);
    auto faulty = storage::FaultStore::wrap(storage::make_local_store());
    faulty->arm(at, mode);
    p.store = faulty;
    RunOptions options;
    if (phase == 2) options.refresh = RefreshKind::kFullAll;
    const auto broken = p.run(options);
    const bool reached = faulty->mutating_calls() >= at;
    p.store = nullptr;
    for (int version = phase > 0 ? 1 : 0; version < 3; ++version) {
      before.write("data/1.json", kSnapshots[version]);
      const auto report = p.run();
      ASSERT_EQ(report.status, UpdateStatus::kCompleted)
          << "stopped at call " << at << "\n"
          << errors_of(report) << "first " << errors_of(broken);
    }
    ASSERT_EQ(p.rows("latest"), kLatest) << "stopped at call " << at;
    const auto history = p.rows("history");
    ASSERT_TRUE(history == kHistory || (phase == 2 && history == kRefreshed))
        << "stopped at call " << at << " first " << errors_of(broken)
        << testing::PrintToString(history);
    if (!reached) {
      if (phase == 2) {
        EXPECT_EQ(history, kRefreshed);
      }
      break;
    }
    ++stops;
    ASSERT_LT(at, 500);
  }
  EXPECT_GT(stops, 10);
}

std::string name_of(const testing::TestParamInfo<SnapshotCrash::ParamType>& param) {
  const auto [mode, phase] = param.param;
  const char* const modes[] = {"error", "error_after", "stop"};
  const char* const phases[] = {"first_update", "second_update", "full_refresh"};
  return std::string(modes[static_cast<int>(mode)]) + "_in_" + phases[phase];
}

INSTANTIATE_TEST_SUITE_P(EveryCall, SnapshotCrash,
                         testing::Values(std::tuple{storage::FaultMode::kStop, 0},
                                         std::tuple{storage::FaultMode::kStop, 1},
                                         std::tuple{storage::FaultMode::kStop, 2},
                                         std::tuple{storage::FaultMode::kErrorAfter, 1}),
                         name_of);

}  // namespace
}  // namespace strandline::pipeline
