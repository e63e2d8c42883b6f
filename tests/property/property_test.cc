// AUTO CDC against the reference model on random histories.
//
//   STRANDLINE_PROPERTY_HISTORIES=100000  how many key histories (default 2,000)
//   STRANDLINE_PROPERTY_SEED=42           the seed; printed, random by default

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <random>

#include "property/scenario.h"

namespace strandline::property {
namespace {

uint64_t number_from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' ? std::strtoull(text, nullptr, 10) : otherwise;
}

class PropertyTest : public testing::Test {
 protected:
  void SetUp() override {
    duck::DatabaseOptions options;
    options.threads = 2;
    auto database = duck::Database::open(options);
    ASSERT_TRUE(database.ok()) << database.error().message;
    database_ = *database;
    auto connection = database_->connect();
    ASSERT_TRUE(connection.ok()) << connection.error().message;
    connection_ = std::move(*connection);
  }

  void fail(const Scenario& scenario, uint64_t seed) {
    const Scenario small = shrink(*connection_, scenario);
    const std::optional<std::string> problem = run_scenario(*connection_, small);
    FAIL() << problem.value_or("(gone after shrinking)") << "\nseed " << seed << "\n"
           << small.describe();
  }

  std::shared_ptr<duck::Database> database_;
  std::unique_ptr<duck::Connection> connection_;
};

TEST_F(PropertyTest, TablesEqualTheModelUnderAnyOrderAndBatching) {
  const uint64_t wanted = number_from_environment("STRANDLINE_PROPERTY_HISTORIES", 2000);
  const uint64_t first_seed =
      number_from_environment("STRANDLINE_PROPERTY_SEED", std::random_device{}());
  std::cout << "seed " << first_seed << ", " << wanted << " histories\n";
  uint64_t histories = 0;
  for (uint64_t seed = first_seed; histories < wanted; ++seed) {
    std::mt19937_64 random(seed);
    const size_t keys = 20 + random() % 120;
    const Scenario scenario = make_scenario(random, keys);
    histories += keys;
    if (run_scenario(*connection_, scenario)) return fail(scenario, seed);
    // The same events in another order and other batches; columns that come later pin their batch.
    const bool evolves = std::any_of(scenario.values.begin(), scenario.values.end(),
                                     [](const Column& column) { return column.from_batch > 0; });
    if (evolves) continue;
    const Scenario other = shuffled(scenario, random);
    if (run_scenario(*connection_, other)) return fail(other, seed);
  }
}

// SCD type 1 rows are the open rows of SCD type 2, without its two columns.
TEST_F(PropertyTest, ModelsOfBothTypesAgree) {
  std::mt19937_64 random(
      number_from_environment("STRANDLINE_PROPERTY_SEED", std::random_device{}()));
  for (int round = 0; round < 200; ++round) {
    std::vector<model::Event> events;
    for (int i = 0; i < 30; ++i) {
      model::Event event;
      event.key = {model::Value::integer(static_cast<int64_t>(random() % 3))};
      event.sequence = model::Value::integer(static_cast<int64_t>(random() % 12));
      event.kind = random() % 4 == 0 ? model::EventKind::kDelete : model::EventKind::kUpsert;
      event.values = {model::Value::integer(static_cast<int64_t>(random() % 3))};
      events.push_back(event);
    }
    std::vector<model::Row> open;
    for (const model::Row& row : model::scd2(events, {true})) {
      if (row.end.kind == model::Value::Kind::kNull) open.push_back(row);
    }
    const std::vector<model::Row> current = model::scd1(events);
    ASSERT_EQ(open.size(), current.size());
    for (size_t i = 0; i < open.size(); ++i) {
      EXPECT_TRUE(model::same_key(open[i].key, current[i].key));
      EXPECT_EQ(model::compare(open[i].values[0], current[i].values[0]), 0);
    }
  }
}

}  // namespace
}  // namespace strandline::property
