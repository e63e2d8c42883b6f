// Tables declared on their own, and ONCE flows, stopped at every mutating call of the store: the
// next try gives the reference result (auto-cdc.md section 9).
#include <gtest/gtest.h>

#include "pipeline/table_pipeline.h"
#include "pipeline/test_pipeline.h"

namespace strandline::pipeline {
namespace {

constexpr const char* kRows =
    "{\"id\":1,\"v\":\"a\",\"seq\":1}\n{\"id\":2,\"v\":\"b\",\"seq\":1}\n"
    "{\"id\":1,\"v\":\"c\",\"seq\":2}\n{\"id\":2,\"v\":null,\"seq\":4}\n";
const std::vector<std::string> kReference = {"1|a|1|2", "1|c|2|NULL", "2|NULL|4|NULL", "2|b|1|4"};

class OwnTable {
 public:
  OwnTable() {
    p_.write("data/1.json", kRows);
    use(storage::make_local_store());
    declaration_.name = {"main", "default", "t"};
    declaration_.statement =
        "CREATE STREAMING TABLE t FLOW AUTO CDC FROM STREAM read_files('data', format => 'json', "
        "schema => 'id INT, v STRING, seq INT') KEYS (id) SEQUENCE BY seq COLUMNS * EXCEPT (seq) "
        "STORED AS SCD TYPE 2";
    declaration_.place = {"t.sql", 1, 1};
    declaration_.directory = p_.path();
  }

  void use(std::shared_ptr<storage::Store> store) {
    dependencies_.store = store;
    dependencies_.database = shared_database();
    auto opened = catalog::Warehouse::open(store, duck::make_parquet_port(shared_database()),
                                           p_.path("warehouse"));
    ASSERT_TRUE(opened.ok());
    warehouse_ = *opened;
  }
  Result<std::optional<UpdateReport>> create(bool or_refresh = false) {
    return create_table_pipeline(*warehouse_, declaration_, {or_refresh, false}, dependencies_, {},
                                 nullptr);
  }
  Result<UpdateReport> refresh(bool full = false) {
    return refresh_table_pipeline(*warehouse_, declaration_.name, {full, false}, dependencies_, {},
                                  nullptr);
  }
  Status drop() { return drop_table_pipeline(*warehouse_, declaration_.name); }
  bool is_declared() const {
    const auto found = find_declaration(*warehouse_, declaration_.name);
    return found.ok() && found->has_value();
  }
  bool exists() const {
    const auto found = warehouse_->table_exists(declaration_.name);
    return found.ok() && *found;
  }
  std::vector<std::string> rows() const { return p_.rows("t"); }
  const TestPipeline& folder() const { return p_; }

 private:
  TestPipeline p_;
  std::shared_ptr<catalog::Warehouse> warehouse_;
  Dependencies dependencies_;
  TableDeclaration declaration_;
};

class Stopped : public testing::TestWithParam<storage::FaultMode> {
 protected:
  // Runs the step with a store that fails at each call in turn; then what follows.
  void everywhere(const std::function<void(OwnTable&)>& before,
                  const std::function<void(OwnTable&)>& step,
                  const std::function<void(OwnTable&)>& after, int least) {
    int stops = 0;
    for (int at = 1;; ++at) {
      SCOPED_TRACE("stopped at call " + std::to_string(at));
      OwnTable table;
      before(table);
      auto faulty = storage::FaultStore::wrap(storage::make_local_store());
      table.use(faulty);
      faulty->arm(at, GetParam());
      step(table);
      const bool reached = faulty->mutating_calls() >= at;
      table.use(storage::make_local_store());
      after(table);
      if (HasFailure() || !reached) break;
      ++stops;
      ASSERT_LT(at, 300);
    }
    EXPECT_GE(stops, least);
  }
};

TEST_P(Stopped, CreateIsFinishedByRefreshOrLeavesNothing) {
  everywhere([](OwnTable&) {}, [](OwnTable& table) { (void)table.create().ok(); },
             [](OwnTable& table) {
               // What a user does: REFRESH where the table is declared, else CREATE again.
               if (table.is_declared()) {
                 const auto again = table.create();
                 ASSERT_FALSE(again.ok());
                 EXPECT_EQ(again.error().code, "TABLE_OR_VIEW_ALREADY_EXISTS");
                 const auto done = table.refresh();
                 ASSERT_TRUE(done.ok()) << done.error().message;
                 ASSERT_EQ(done->status, UpdateStatus::kCompleted) << errors_of(*done);
               } else {
                 const auto done = table.create();
                 ASSERT_TRUE(done.ok()) << done.error().message;
                 ASSERT_EQ((*done)->status, UpdateStatus::kCompleted) << errors_of(**done);
               }
               EXPECT_EQ(table.rows(), kReference);
             },
             10);
}

TEST_P(Stopped, FullRefreshIsFinishedByRefresh) {
  everywhere(
      [](OwnTable& table) {
        const auto done = table.create();
        ASSERT_TRUE(done.ok() && (*done)->status == UpdateStatus::kCompleted);
      },
      [](OwnTable& table) { (void)table.refresh(true).ok(); },
      [](OwnTable& table) {
        EXPECT_EQ(table.rows(), kReference) << "readers see the old or the new rows";
        const auto done = table.refresh();
        ASSERT_TRUE(done.ok()) << done.error().message;
        ASSERT_EQ(done->status, UpdateStatus::kCompleted) << errors_of(*done);
        EXPECT_EQ(table.rows(), kReference);
      },
      10);
}

TEST_P(Stopped, DropIsFinishedByDrop) {
  everywhere(
      [](OwnTable& table) {
        const auto done = table.create();
        ASSERT_TRUE(done.ok() && (*done)->status == UpdateStatus::kCompleted);
      },
      [](OwnTable& table) { (void)table.drop().ok(); },
      [](OwnTable& table) {
        if (table.is_declared()) {
          ASSERT_TRUE(table.drop().ok());
        }
        EXPECT_FALSE(table.exists());
        // The name is free, and nothing is known of the earlier table.
        const auto done = table.create();
        ASSERT_TRUE(done.ok()) << done.error().message;
        ASSERT_EQ((*done)->status, UpdateStatus::kCompleted) << errors_of(**done);
        EXPECT_EQ(table.rows(), kReference);
      },
      3);
}

// Flows that load what does not stream have nothing to find their batch by but their plan.
TEST_P(Stopped, OnceFlowsLoadOnce) {
  int stops = 0;
  for (int at = 1;; ++at) {
    SCOPED_TRACE("stopped at call " + std::to_string(at));
    TestPipeline p;
    p.write("data/1.json", kRows);
    p.write("t.sql", R"sql(
CREATE STREAMING TABLE appended;
CREATE FLOW appended AS INSERT INTO ONCE appended BY NAME SELECT * FROM VALUES (1, 'x'), (2, 'y') AS t(id, v);
CREATE STREAMING TABLE applied;
CREATE FLOW applied AS AUTO CDC ONCE INTO applied FROM (SELECT * FROM VALUES (1, 'x', 1), (1, 'y', 2) AS t(id, v, seq))
KEYS (id) SEQUENCE BY seq;
CREATE STREAMING TABLE of_files;
CREATE FLOW of_files AS AUTO CDC ONCE INTO of_files
FROM read_files('data', format => 'json', schema => 'id INT, v STRING, seq INT') KEYS (id) SEQUENCE BY seq;
)sql");
    auto faulty = storage::FaultStore::wrap(storage::make_local_store());
    faulty->arm(at, GetParam());
    p.store = faulty;
    (void)p.run();
    const bool reached = faulty->mutating_calls() >= at;
    p.store = nullptr;
    for (int again = 0; again < 2; ++again) {
      const auto report = p.run();
      ASSERT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
    }
    ASSERT_EQ(p.rows("appended"), (std::vector<std::string>{"1|x", "2|y"}));
    ASSERT_EQ(p.rows("applied"), (std::vector<std::string>{"1|y|2"}));
    ASSERT_EQ(p.rows("of_files"), (std::vector<std::string>{"1|c|2", "2|NULL|4"}));
    if (!reached) break;
    ++stops;
    ASSERT_LT(at, 300);
  }
  EXPECT_GT(stops, 20);
}

std::string name_of(const testing::TestParamInfo<storage::FaultMode>& mode) {
  return mode.param == storage::FaultMode::kStop ? "stop" : "error_after";
}

INSTANTIATE_TEST_SUITE_P(EveryCall, Stopped,
                         testing::Values(storage::FaultMode::kStop,
                                         storage::FaultMode::kErrorAfter),
                         name_of);

}  // namespace
}  // namespace strandline::pipeline
