// Stops an update at every mutating call of the store; running again always gives the reference
// result, nothing twice and nothing missing (auto-cdc.md section 9).
#include <gtest/gtest.h>

#include "pipeline/test_pipeline.h"

namespace strandline::pipeline {
namespace {

constexpr const char* kFlows = R"sql(
CREATE STREAMING TABLE events AS SELECT * FROM STREAM read_files('data', format => 'json', schema => 'id INT, v STRING, op STRING, seq INT');
CREATE STREAMING TABLE current_rows;
CREATE FLOW to_current AS AUTO CDC INTO current_rows FROM STREAM(events) KEYS (id) APPLY AS DELETE WHEN op = 'D'
SEQUENCE BY seq COLUMNS * EXCEPT (op, seq);
CREATE STREAMING TABLE history;
CREATE FLOW to_history AS AUTO CDC INTO history FROM STREAM(events) KEYS (id) APPLY AS DELETE WHEN op = 'D'
SEQUENCE BY seq COLUMNS * EXCEPT (op, seq) STORED AS SCD TYPE 2;
)sql";
constexpr const char* kFirst =
    "{\"id\":1,\"v\":\"a\",\"seq\":1}\n{\"id\":2,\"v\":\"b\",\"seq\":1}\n{\"id\":3,\"v\":\"c\","
    "\"seq\":5}\n"
    "{\"id\":3,\"op\":\"D\",\"seq\":7}\n";
constexpr const char* kSecond =
    "{\"id\":1,\"v\":\"z\",\"seq\":3}\n{\"id\":2,\"op\":\"D\",\"seq\":2}\n{\"id\":3,\"v\":\"late\","
    "\"seq\":6}\n"
    "{\"id\":4,\"v\":\"new\",\"seq\":1}\n{\"id\":1,\"v\":\"a\",\"seq\":1}\n";

// Arrives between the stopped update and the next.
constexpr const char* kThird =
    "{\"id\":5,\"v\":\"e\",\"seq\":1}\n{\"id\":1,\"v\":\"y\",\"seq\":2}\n{\"id\":4,\"op\":\"D\","
    "\"seq\":4}\n";

struct Tables {
  std::vector<std::string> events, current_rows, history;
  bool operator==(const Tables&) const = default;
};

Tables read(const TestPipeline& p) {
  return {p.rows("events"), p.rows("current_rows"), p.rows("history")};
}

// The tables after all files, each read by an update of its own.
const Tables& reference() {
  static const Tables tables = [] {
    TestPipeline p;
    p.write("t.sql", kFlows);
    p.write("data/1.json", kFirst);
    EXPECT_EQ(p.run().status, UpdateStatus::kCompleted);
    p.write("data/2.json", kSecond);
    EXPECT_EQ(p.run().status, UpdateStatus::kCompleted);
    p.write("data/3.json", kThird);
    EXPECT_EQ(p.run().status, UpdateStatus::kCompleted);
    return read(p);
  }();
  return tables;
}

class Crash : public testing::TestWithParam<std::tuple<storage::FaultMode, int>> {};

// second: the update that reads the second file is stopped, not the first one.
void stop_everywhere(storage::FaultMode mode, int phase) {
  ASSERT_EQ(reference().current_rows, (std::vector<std::string>{"1|z", "5|e"}));
  ASSERT_EQ(reference().history,
            (std::vector<std::string>{"1|a|1|2", "1|y|2|3", "1|z|3|NULL", "2|b|1|2", "3|c|5|6",
                                      "3|late|6|7", "4|new|1|4", "5|e|1|NULL"}));
  // Copies of this pipeline read its files, so that what was consumed keeps its path.
  TestPipeline before;
  std::string text = kFlows;
  text.replace(text.find("'data'"), 6, "'" + before.path("data") + "'");
  before.write("t.sql", text);
  before.write("data/1.json", kFirst);
  if (phase > 0) {
    ASSERT_EQ(before.run().status, UpdateStatus::kCompleted);
    before.write("data/2.json", kSecond);
  }
  int stops = 0;
  for (int at = 1;; ++at) {
    TestPipeline p;
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
    before.write("data/3.json", kThird);
    const auto report = p.run();
    ASSERT_EQ(report.status, UpdateStatus::kCompleted)
        << "stopped at call " << at << "\n"
        << errors_of(report) << "first " << errors_of(broken);
    if (phase == 0) {
      before.write("data/2.json", kSecond);
      const auto last = p.run();
      before.remove("data/2.json");
      ASSERT_EQ(last.status, UpdateStatus::kCompleted) << "stopped at call " << at << "\n"
                                                       << errors_of(last);
    }
    before.remove("data/3.json");
    const Tables got = read(p);
    ASSERT_EQ(got.events, reference().events)
        << "stopped at call " << at << " first " << errors_of(broken);
    ASSERT_EQ(got.current_rows, reference().current_rows)
        << "stopped at call " << at << " first " << errors_of(broken);
    ASSERT_EQ(got.history, reference().history)
        << "stopped at call " << at << " first " << errors_of(broken);
    if (!reached) break;
    ++stops;
    ASSERT_LT(at, 500);
  }
  EXPECT_GT(stops, 10);
}

std::string name_of(const testing::TestParamInfo<Crash::ParamType>& param) {
  const auto [mode, phase] = param.param;
  const char* const modes[] = {"error", "error_after", "stop"};
  const char* const phases[] = {"first_update", "second_update", "full_refresh"};
  return std::string(modes[static_cast<int>(mode)]) + "_in_" + phases[phase];
}

TEST_P(Crash, RerunGivesTheReference) {
  stop_everywhere(std::get<0>(GetParam()), std::get<1>(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(EveryCall, Crash,
                         testing::Values(std::tuple{storage::FaultMode::kStop, 0},
                                         std::tuple{storage::FaultMode::kStop, 1},
                                         std::tuple{storage::FaultMode::kStop, 2},
                                         std::tuple{storage::FaultMode::kError, 1},
                                         std::tuple{storage::FaultMode::kErrorAfter, 1}),
                         name_of);

}  // namespace
}  // namespace strandline::pipeline
