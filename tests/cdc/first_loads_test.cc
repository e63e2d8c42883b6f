// First loads of SCD type 2 at sizes where one vector more or less decides whether the engine's
// pipelines are flushed in one go: what a batch gives must not depend on it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cdc/program_fixture.h"

namespace strandline::test {
namespace {

// {0} events, four of each key. wanted: the rows of the target, by SQL alone.
struct Load {
  const char* name;
  const char* columns;
  const char* clauses;
  const char* events;
  const char* wanted;
};

const Load kLoads[] = {
    {"Plain", "id BIGINT, v STRING, seq BIGINT",
     "KEYS (id) SEQUENCE BY seq COLUMNS * EXCEPT (seq) STORED AS SCD TYPE 2",
     "SELECT i // 4 AS id, 'v' || i AS v, i AS seq FROM range({0}) AS r(i)",
     "SELECT i // 4, 'v' || i, i, CASE WHEN i % 4 < 3 AND i + 1 < {0} THEN i + 1 END "
     "FROM range({0}) AS r(i)"},
    {"TrackHistory", "id BIGINT, v STRING, w BIGINT, seq BIGINT",
     "KEYS (id) SEQUENCE BY seq COLUMNS * EXCEPT (seq) STORED AS SCD TYPE 2 TRACK HISTORY ON (v)",
     "SELECT i // 4 AS id, 'v' || i // 2 AS v, i AS w, i AS seq FROM range({0}) AS r(i)",
     "SELECT i // 4, 'v' || i // 2, least(i + 1, {0} - 1), i, "
     "CASE WHEN i % 4 = 0 AND i + 2 < {0} THEN i + 2 END FROM range(0, {0}, 2) AS r(i)"},
    {"Nested", "id BIGINT, v STRUCT<a: STRING, b: ARRAY<BIGINT>>, seq BIGINT",
     "KEYS (id) SEQUENCE BY seq COLUMNS * EXCEPT (seq) STORED AS SCD TYPE 2",
     "SELECT i // 4 AS id, {{'a': 'v' || i, 'b': [i, NULL]}} AS v, i AS seq "
     "FROM range({0}) AS r(i)",
     "SELECT i // 4, {{'a': 'v' || i, 'b': [i, NULL]}}, i, "
     "CASE WHEN i % 4 < 3 AND i + 1 < {0} THEN i + 1 END FROM range({0}) AS r(i)"},
};

// Around 26 + 51 k vectors of 2,048 rows; with more threads fewer sizes, for the time they take.
const std::vector<int> kSizes = {51200, 51201, 52000, 53247, 53248, 155649, 157696, 262000};
const std::vector<int> kSomeSizes = {51201, 53247, 262000};

class FirstLoadTest : public ProgramFixture,
                      public testing::WithParamInterface<std::tuple<Load, int>> {};

TEST_P(FirstLoadTest, GivesEveryRowOnceAtEverySize) {
  const auto& [load, threads] = GetParam();
  ASSERT_TRUE(connection_->execute(fmt::format("SET threads = {}", threads)).ok());
  for (const int size : threads == 1 ? kSizes : kSomeSizes) {
    lake_.reset();
    lake_ = std::make_unique<ToyLake>(*connection_);
    const auto outcome = try_deliver_query({load.columns, load.clauses},
                                           fmt::format(fmt::runtime(load.events), size));
    ASSERT_TRUE(outcome.ok()) << size << ": " << outcome.error().message;
    const std::string wanted = fmt::format(fmt::runtime(load.wanted), size);
    const std::string got =
        fmt::format("SELECT * EXCLUDE (__toy_pos, __toy_row_id) FROM {}", ToyLake::target_table());
    const auto missing =
        connection_->query_int(fmt::format("SELECT count(*) FROM ({} EXCEPT ALL {})", wanted, got));
    ASSERT_TRUE(missing.ok()) << missing.error().message;
    EXPECT_EQ(*missing, 0) << size << " events";
    EXPECT_EQ(*connection_->query_int(fmt::format("SELECT count(*) FROM ({})", got)),
              *connection_->query_int(fmt::format("SELECT count(*) FROM ({})", wanted)))
        << size << " events";
    EXPECT_EQ(outcome->metrics.num_input_rows, size);
    EXPECT_EQ(outcome->metrics.num_upserted_rows, outcome->target_new) << size << " events";
  }
}

INSTANTIATE_TEST_SUITE_P(Loads, FirstLoadTest,
                         testing::Combine(testing::ValuesIn(kLoads), testing::Values(1, 2, 8)),
                         [](const auto& load) {
                           return fmt::format("{}On{}Threads", std::get<0>(load.param).name,
                                              std::get<1>(load.param));
                         });

}  // namespace
}  // namespace strandline::test
