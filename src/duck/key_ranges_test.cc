#include "duck/key_ranges.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace strandline::duck {
namespace {

class KeyRangesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto database = Database::open({.memory_limit_bytes = 0, .threads = 2, .temp_directory = ""});
    ASSERT_TRUE(database.ok()) << database.error().message;
    database_ = *database;
    auto connection = database_->connect();
    ASSERT_TRUE(connection.ok());
    connection_ = std::move(connection).value();
  }

  // Whether a file whose column k lies between min and max (as JSON) may hold one of the keys.
  bool keeps(const std::string& keys, DataType type, const std::string& min, const std::string& max,
             bool nulls_match = false, int nulls = 0) {
    delta::Snapshot table;
    table.schema.fields = {Field{"K", std::move(type), true, {}}};
    auto ranges = key_ranges(*connection_, {{"k", "k.key", nulls_match}}, "(" + keys + ")");
    EXPECT_TRUE(ranges.ok()) << ranges.error().message;
    if (!ranges.ok()) return true;
    delta::AddFile file;
    file.stats = fmt::format(
        R"({{"numRecords":9,"minValues":{{"K":{}}},"maxValues":{{"K":{}}},"nullCount":{{"K":{}}}}})",
        min, max, nulls);
    return delta::FileJudge(ranges->filter(table)).may_match(file);
  }
  bool keeps(const std::string& keys, TypeId type, const std::string& min, const std::string& max) {
    return keeps(keys, DataType::primitive(type), min, max);
  }

  std::shared_ptr<Database> database_;
  std::unique_ptr<Connection> connection_;
};

TEST_F(KeyRangesTest, NumbersInGroupsFarApart) {
  const std::string keys =
      "SELECT unnest(range(1000, 2000)) AS key UNION ALL SELECT unnest(range(900000, 901000))";
  EXPECT_TRUE(keeps(keys, TypeId::kLong, "1990", "5000"));
  EXPECT_FALSE(keeps(keys, TypeId::kLong, "3000", "890000"));
  EXPECT_TRUE(keeps(keys, TypeId::kLong, "900500", "900501"));
  EXPECT_FALSE(keeps(keys, TypeId::kLong, "0", "999"));
  EXPECT_FALSE(keeps(keys, TypeId::kInteger, "901000", "901000"));
  // Apart by less than a double can tell.
  const std::string close = "SELECT unnest([9007199254740992, 9007199254740993]) AS key";
  EXPECT_TRUE(keeps(close, TypeId::kLong, "9007199254740993", "9007199254740993"));
  EXPECT_FALSE(keeps(close, TypeId::kLong, "9007199254740994", "9007199254740999"));
  const std::string wide = "SELECT unnest([-9223372036854775808, 0, 9223372036854775807]) AS key";
  EXPECT_TRUE(keeps(wide, TypeId::kLong, "-5", "5"));
  EXPECT_FALSE(keeps(wide, TypeId::kLong, "5", "9223372036854775806"));
  EXPECT_TRUE(keeps(wide, TypeId::kLong, "9223372036854775807", "9223372036854775807"));
  const std::string decimals = "SELECT unnest([0.25, 99999.75])::DECIMAL(20,2) AS key";
  EXPECT_FALSE(keeps(decimals, DataType::decimal(20, 2), "0.26", "99999.74"));
  EXPECT_TRUE(keeps(decimals, DataType::decimal(20, 2), "99999.75", "99999.75"));
}

TEST_F(KeyRangesTest, TextsByTheirBeginnings) {
  const std::string keys = "SELECT unnest(['user-aa1', 'user-aa7', 'user-zz9', 'user-é']) AS key";
  EXPECT_TRUE(keeps(keys, TypeId::kString, "\"user-aa3\"", "\"user-aa4\""))
      << "between two of one group";
  EXPECT_FALSE(keeps(keys, TypeId::kString, "\"user-ab\"", "\"user-zy\""));
  EXPECT_TRUE(keeps(keys, TypeId::kString, "\"user-zz9\"", "\"user-zz9\""));
  EXPECT_TRUE(keeps(keys, TypeId::kString, "\"user-zzz\"", "\"user-é\""));
  EXPECT_FALSE(keeps(keys, TypeId::kString, "\"user-f\"", "\"user-g\""));
  // More beginnings than ranges: one range is left.
  const std::string many =
      "SELECT chr(CAST(48 + i // 1000 AS INTEGER)) || chr(CAST(256 + i % 1000 "
      "AS INTEGER)) AS key FROM range(20000) AS r(i)";
  EXPECT_TRUE(keeps(many, TypeId::kString, "\"8\"", "\"8a\""));
  EXPECT_FALSE(keeps(many, TypeId::kString, "\"a\"", "\"b\""));
}

TEST_F(KeyRangesTest, Times) {
  const std::string days = "SELECT unnest([DATE '2026-01-01', DATE '2026-12-31']) AS key";
  EXPECT_FALSE(keeps(days, TypeId::kDate, "\"2026-02-01\"", "\"2026-11-01\""));
  EXPECT_TRUE(keeps(days, TypeId::kDate, "\"2026-12-31\"", "\"2027-01-01\""));
  const std::string instants =
      "SELECT unnest([TIMESTAMPTZ '2026-01-01 00:00:00+00', TIMESTAMPTZ '2026-06-01 "
      "12:00:00.123456+00']) AS key";
  EXPECT_FALSE(keeps(instants, TypeId::kTimestamp, "\"2026-02-01T00:00:00.000Z\"",
                     "\"2026-05-01T00:00:00.000Z\""));
  EXPECT_TRUE(keeps(instants, TypeId::kTimestamp, "\"2026-06-01T12:00:00.123Z\"",
                    "\"2026-06-01T12:00:00.123Z\""));
  EXPECT_TRUE(keeps("SELECT unnest([DATE '2026-01-01', DATE 'infinity']) AS key", TypeId::kDate,
                    "\"2026-02-01\"", "\"2026-11-01\""));
}

TEST_F(KeyRangesTest, WhatHasNoRangesLeavesNothingOut) {
  EXPECT_TRUE(keeps("SELECT unnest(['NaN'::DOUBLE, 1]) AS key", TypeId::kDouble, "5", "6"));
  EXPECT_FALSE(keeps("SELECT unnest([2::DOUBLE, 1]) AS key", TypeId::kDouble, "5", "6"));
  EXPECT_TRUE(keeps("SELECT unnest(['9', '10']) AS key", TypeId::kInteger, "9", "9"))
      << "texts are ordered otherwise";
  EXPECT_TRUE(keeps("SELECT 'a'::BLOB AS key", TypeId::kBinary, "\"b\"", "\"c\""));
  EXPECT_TRUE(
      keeps("SELECT {'a': 1} AS key",
            DataType::structure({Field{"a", DataType::primitive(TypeId::kInteger), true, {}}}), "5",
            "6"));
}

TEST_F(KeyRangesTest, NullsAndNoKeys) {
  const auto number = DataType::primitive(TypeId::kInteger);
  const std::string keys = "SELECT unnest([NULL, 5]) AS key";
  EXPECT_FALSE(keeps(keys, number, "7", "8", false, 3));
  EXPECT_TRUE(keeps(keys, number, "7", "8", true, 3));
  EXPECT_FALSE(keeps(keys, number, "7", "8", true, 0));
  EXPECT_FALSE(keeps("SELECT NULL::INTEGER AS key", number, "7", "8", false, 3));
  EXPECT_TRUE(keeps("SELECT NULL::INTEGER AS key", number, "7", "8", true, 3));
  EXPECT_FALSE(keeps("SELECT 1 AS key WHERE false", number, "0", "2"));
}

}  // namespace
}  // namespace strandline::duck
