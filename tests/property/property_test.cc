// AUTO CDC against the reference model on random histories.
//
//   STRANDLINE_PROPERTY_HISTORIES=100000  how many key histories (default 5,000)
//   STRANDLINE_PROPERTY_SEED=42           the first seed (default 1); printed
//   STRANDLINE_PROPERTY_SHRINK=0          tells a failure as it was found, at once
//
// Each scenario has a seed of its own, one after the other, so that a run can be split, or go on
// where it was stopped: with the next seed, as printed, and as many histories as are left. How many
// are wanted also says how large scenarios are.
//
// It runs programs over tables in memory. What only a pipeline has is tested in tests/fault: random
// histories whose updates are stopped anywhere (history_test.cc), an update stopped at each of its
// writes, with rows changed by hand meanwhile (edit_test.cc). Killed at any moment: tests/crash;
// deletes that are forgotten: tests/crash/test_retention.py.

#include <gtest/gtest.h>

#include <algorithm>
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
    const bool shrinks = number_from_environment("STRANDLINE_PROPERTY_SHRINK", 1) != 0;
    const Scenario small = shrinks ? shrink(*connection_, scenario) : scenario;
    const std::optional<std::string> problem = run_scenario(*connection_, small);
    FAIL() << problem.value_or("(gone after shrinking)") << "\nseed " << seed
           << ", STRANDLINE_PROPERTY_HISTORIES " << wanted_ << "\n"
           << small.describe();
  }

  uint64_t wanted_ = 0;
  std::shared_ptr<duck::Database> database_;
  std::unique_ptr<duck::Connection> connection_;
};

TEST_F(PropertyTest, TablesEqualTheModelUnderAnyOrderAndBatching) {
  const uint64_t wanted = number_from_environment("STRANDLINE_PROPERTY_HISTORIES", 5000);
  wanted_ = wanted;
  const uint64_t first_seed = number_from_environment("STRANDLINE_PROPERTY_SEED", 1);
  std::cout << "seed " << first_seed << ", " << wanted << " histories\n";
  uint64_t histories = 0;
  constexpr uint64_t kTold = 10000;  // histories between two lines about how far it is
  uint64_t told = 0;
  for (uint64_t seed = first_seed; histories < wanted; ++seed) {
    if (histories / kTold > told) {
      told = histories / kTold;
      std::cout << histories << " histories passed; next seed " << seed << std::endl;
    }
    std::mt19937_64 random(seed);
    const size_t keys = 40 + random() % std::max<uint64_t>(360, wanted / 50);
    const Scenario scenario = make_scenario(random, keys);
    histories += keys;
    if (run_scenario(*connection_, scenario)) return fail(scenario, seed);
    // The same events in another order and other batches; columns that come later pin their batch.
    const bool evolves = std::any_of(scenario.values.begin(), scenario.values.end(),
                                     [](const Column& column) { return column.comes_or_goes(); });
    // What somebody changes by hand keeps its place among the batches.
    if (evolves || !scenario.edits.empty()) continue;
    const Scenario other = shuffled(scenario, random);
    if (run_scenario(*connection_, other)) return fail(other, seed);
  }
}

// Few keys, so that events of their sequences come before and after what hands change.
TEST_F(PropertyTest, RowsChangedByHandAmongEventsOfTheirSequences) {
  wanted_ = number_from_environment("STRANDLINE_PROPERTY_HISTORIES", 5000);
  const uint64_t first_seed = number_from_environment("STRANDLINE_PROPERTY_SEED", 1);
  std::cout << "seed " << first_seed << "\n";
  constexpr uint64_t kOneOf = 20;
  uint64_t histories = 0;
  for (uint64_t seed = first_seed; histories * kOneOf < wanted_; ++seed) {
    std::mt19937_64 random(seed);
    const size_t keys = 4 + random() % 20;
    const Scenario scenario = make_edited_scenario(random, keys);
    histories += keys;
    if (run_scenario(*connection_, scenario)) return fail(scenario, seed);
  }
}

// Many schemas with few keys: what partial updates of one sequence give depends on the types.
TEST_F(PropertyTest, PartialUpdatesThatMeetAtOneSequence) {
  wanted_ = number_from_environment("STRANDLINE_PROPERTY_HISTORIES", 5000);
  const uint64_t first_seed = number_from_environment("STRANDLINE_PROPERTY_SEED", 1);
  std::cout << "seed " << first_seed << "\n";
  constexpr uint64_t kOneOf = 20;
  uint64_t histories = 0;
  for (uint64_t seed = first_seed; histories * kOneOf < wanted_; ++seed) {
    std::mt19937_64 random(seed);
    const size_t keys = 4 + random() % 20;
    const Scenario scenario = make_tied_scenario(random, keys);
    histories += keys;
    if (run_scenario(*connection_, scenario)) return fail(scenario, seed);
  }
}

model::Event random_event(std::mt19937_64& random) {
  model::Event event;
  event.key = {model::Value::integer(static_cast<int64_t>(random() % 3))};
  event.sequence = model::Value::integer(static_cast<int64_t>(random() % 12));
  event.kind = random() % 4 == 0 ? model::EventKind::kDelete : model::EventKind::kUpsert;
  event.partial = random() % 2 == 0;
  for (int i = 0; i < 2; ++i) {
    event.values.push_back(model::Value::integer(static_cast<int64_t>(random() % 3)));
    event.leaves.push_back(random() % 2 == 0 ? std::optional(event.values.back()) : std::nullopt);
  }
  return event;
}

const model::Columns kTwoColumns{{model::Shape{}, model::Shape{}}, {true, true}, {}};

void expect_same_values(const std::vector<model::Row>& a, const std::vector<model::Row>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(model::same_key(a[i].key, b[i].key));
    EXPECT_EQ(model::compare(a[i].start, b[i].start), 0);
    EXPECT_EQ(model::compare(a[i].end, b[i].end), 0);
    for (size_t v = 0; v < a[i].values.size(); ++v)
      EXPECT_EQ(model::compare(a[i].values[v], b[i].values[v]), 0);
  }
}

// SCD type 1 rows are the open rows of SCD type 2, without its two columns. No interval is empty,
// none overlap.
TEST_F(PropertyTest, ModelsOfTypes1And2Agree) {
  std::mt19937_64 random(number_from_environment("STRANDLINE_PROPERTY_SEED", 1));
  for (int round = 0; round < 200; ++round) {
    std::vector<model::Event> events;
    for (int i = 0; i < 30; ++i) events.push_back(random_event(random));
    std::vector<model::Row> open;
    const model::Row* before = nullptr;
    const std::vector<model::Row> versions = model::scd2(events, kTwoColumns);
    for (const model::Row& row : versions) {
      const bool is_open = row.end.kind == model::Value::Kind::kNull;
      if (!is_open) {
        EXPECT_LT(model::compare(row.start, row.end), 0);
      }
      if (before != nullptr && model::same_key(before->key, row.key)) {
        EXPECT_NE(before->end.kind, model::Value::Kind::kNull);
        EXPECT_LE(model::compare(before->end, row.start), 0);
      }
      before = &row;
      if (!is_open) continue;
      open.push_back(row);
      open.back().start = {};
    }
    expect_same_values(open, model::scd1(events, kTwoColumns));
  }
}

// The current beliefs of a bitemporal table are SCD type 2, where no key has two events at one
// business time.
TEST_F(PropertyTest, ModelsOfType2AndBitemporalAgree) {
  std::mt19937_64 random(number_from_environment("STRANDLINE_PROPERTY_SEED", 1));
  for (int round = 0; round < 200; ++round) {
    std::vector<model::Event> events;
    for (int64_t key = 0; key < 3; ++key) {
      for (int64_t sequence = 0; sequence < 10; ++sequence) {
        model::Event event = random_event(random);
        event.key = {model::Value::integer(key)};
        event.sequence = model::Value::integer(sequence);
        event.system = model::Value::integer(static_cast<int64_t>(random() % 6));
        events.push_back(event);
      }
    }
    std::vector<model::Row> current;
    for (model::Row& row : model::bitemporal(events, kTwoColumns)) {
      if (row.system_end.kind == model::Value::Kind::kNull) current.push_back(std::move(row));
    }
    std::stable_sort(current.begin(), current.end(), [](const auto& a, const auto& b) {
      const int order = model::compare(a.key[0], b.key[0]);
      return order != 0 ? order < 0 : model::compare(a.start, b.start) < 0;
    });
    for (model::Event& event : events) event.system = {};
    expect_same_values(current, model::scd2(events, kTwoColumns));
  }
}

}  // namespace
}  // namespace strandline::property
