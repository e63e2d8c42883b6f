// A batch is stopped at any of its writes, somebody changes rows by hand, and the next update
// repeats the batch: the change is taken in like any other (auto-cdc.md sections 8 and 9).
#include <gtest/gtest.h>

#include "duck/table_change.h"
#include "pipeline/test_pipeline.h"

namespace strandline::pipeline {
namespace {

struct Flow {
  const char* name;
  const char* clauses;
  bool type2;
};
constexpr Flow kFlows[] = {{"type1", "", false},
                           {"type1_truncates", "APPLY AS TRUNCATE WHEN op = 'T'", false},
                           {"type1_no_nulls", "IGNORE NULL UPDATES", false},
                           {"type1_named", "COLUMNS TO UPDATE names", false},
                           {"type2", "STORED AS SCD TYPE 2", true},
                           {"type2_no_nulls", "IGNORE NULL UPDATES STORED AS SCD TYPE 2", true},
                           {"type2_named", "COLUMNS TO UPDATE names STORED AS SCD TYPE 2", true}};

constexpr const char* kFirst =
    "{\"id\":1,\"v\":\"a\",\"seq\":1}\n{\"id\":2,\"v\":\"a\",\"seq\":1}\n"
    "{\"id\":4,\"op\":\"D\",\"seq\":1}\n"
    "{\"id\":9,\"v\":\"u\",\"seq\":4}\n{\"id\":9,\"v\":\"u\",\"seq\":6}\n";
constexpr const char* kSecond =
    "{\"id\":1,\"v\":\"b\",\"seq\":5}\n{\"id\":1,\"v\":\"b\",\"seq\":3}\n"
    "{\"id\":2,\"op\":\"D\",\"seq\":5}\n{\"id\":3,\"v\":\"c\",\"seq\":5}\n"
    "{\"id\":4,\"op\":\"D\",\"seq\":8}\n";
// Late.
constexpr const char* kThird =
    "{\"id\":9,\"v\":\"late\",\"seq\":2}\n{\"id\":1,\"v\":\"late\",\"seq\":2}\n"
    "{\"id\":4,\"v\":\"late\",\"seq\":7}\n";

// The rows that meet the condition get another v.
void update_by_hand(const TestPipeline& p, const std::string& condition, const std::string& v) {
  const auto table = p.table("t");
  const auto snapshot = p.snapshot("t");
  auto connection = shared_database()->connect();
  ASSERT_TRUE(connection.ok());
  duck::ScanOptions options;
  options.with_positions = true;
  auto scan = duck::scan_table(**connection, table, snapshot, options);
  ASSERT_TRUE(scan.ok()) << scan.error().message;
  const std::string rows = (*scan)->sql() + " WHERE " + condition;
  duck::TableChange change;
  change.new_rows = "SELECT * EXCLUDE (" + std::string(duck::kFileColumn) + ", " +
                    duck::kRowColumn + ") REPLACE ('" + v + "' AS v) FROM " + rows;
  change.dead_rows =
      "SELECT " + std::string(duck::kFileColumn) + ", " + duck::kRowColumn + " FROM " + rows;
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

delta::Version state_version(const TestPipeline& p) {
  const auto table = p.table("t");
  const delta::Table state(table.store(), table.parquet(), table.path() + "/_strandline_state");
  const auto version = state.latest_version();
  return version.ok() ? *version : -1;
}

// Versions of both tables and the names of the checkpoint's files.
std::string describe_progress(const TestPipeline& p) {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(p.path("warehouse/_strandline/pipelines"))) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  std::string text =
      std::to_string(state_version(p)) + " " + std::to_string(p.snapshot("t")->version);
  for (const auto& name : names) text += " " + name;
  return text;
}

bool has(const std::vector<std::string>& rows, const std::string& row) {
  return std::find(rows.begin(), rows.end(), row) != rows.end();
}

class EditInTheGap : public testing::TestWithParam<Flow> {};

TEST_P(EditInTheGap, IsTakenInWhereverTheBatchWasStopped) {
  const Flow& flow = GetParam();
  // Copies of this pipeline read its files, so that what was consumed keeps its path.
  TestPipeline before;
  before.write("t.sql",
               "CREATE STREAMING TABLE t;\nCREATE FLOW t AS AUTO CDC INTO t FROM STREAM "
               "read_files('" +
                   before.path("data") +
                   "', format => 'json', schema => 'id INT, v STRING, op STRING, names "
                   "ARRAY<STRING>, seq INT') KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY "
                   "seq COLUMNS * EXCEPT (op, names, seq) " +
                   flow.clauses + ";");
  before.write("data/1.json", kFirst);
  ASSERT_EQ(before.run().status, UpdateStatus::kCompleted);
  int stops = 0, between = 0;
  std::string left_before;
  for (int at = 1;; ++at) {
    SCOPED_TRACE("stopped at call " + std::to_string(at));
    before.write("data/2.json", kSecond);
    TestPipeline p;
    std::filesystem::copy(before.path(), p.path(),
                          std::filesystem::copy_options::recursive |
                              std::filesystem::copy_options::overwrite_existing);
    auto faulty = storage::FaultStore::wrap(storage::make_local_store());
    faulty->arm(at, storage::FaultMode::kStop);
    p.store = faulty;
    (void)p.run();
    const bool reached = faulty->mutating_calls() >= at;
    p.store = nullptr;
    const bool batch_shows = has(p.rows("t", "id"), "3");
    // Stops that leave the same commits and checkpoints are one case.
    const std::string left = describe_progress(p);
    if (reached && left == left_before) continue;
    left_before = left;
    if (!batch_shows && state_version(p) > state_version(before)) ++between;
    update_by_hand(p, flow.type2 ? "id IN (1, 2, 9) AND __START_AT IN (1, 4)" : "id IN (1, 2, 9)",
                   "HAND");
    auto report = p.run();
    ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
    EXPECT_TRUE(has(p.rows("t", "id"), "3"));
    // Late events, and everything again.
    before.write("data/3.json", std::string(kThird) + kSecond + kFirst);
    report = p.run();
    ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
    before.remove("data/3.json");
    const auto got = p.rows("t");
    if (flow.type2) {
      EXPECT_EQ(got, (std::vector<std::string>{"1|HAND|1|2", "1|b|3|NULL", "1|late|2|3",
                                               "2|HAND|1|5", "3|c|5|NULL", "4|late|7|8",
                                               "9|HAND|4|NULL", "9|late|2|4"}));
    } else {
      // What was there to be changed: the row after the batch, or the one before, which it changes.
      EXPECT_EQ(got, (std::vector<std::string>{batch_shows ? "1|HAND" : "1|b", "3|c", "9|HAND"}));
    }
    if (HasFailure() || !reached) break;
    ++stops;
    ASSERT_LT(at, 500);
  }
  EXPECT_GT(stops, 3);
  EXPECT_GT(between, 0) << "it was never stopped between the commits of state and target";
}

INSTANTIATE_TEST_SUITE_P(AllModes, EditInTheGap, testing::ValuesIn(kFlows),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace strandline::pipeline
