#include "duck/connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "duck/engine.h"

namespace strandline::duck {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ConnectionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto database =
        Database::open({.memory_limit_bytes = 1ll << 30, .threads = 2, .temp_directory = ""});
    ASSERT_TRUE(database.ok()) << database.error().message;
    database_ = *database;
    auto connection = database_->connect();
    ASSERT_TRUE(connection.ok()) << connection.error().message;
    connection_ = std::move(connection).value();
  }

  // The single cell of a query, "NULL" for null, or the error's message.
  std::string cell(const std::string& sql) {
    auto rows = connection_->query(sql);
    if (!rows.ok()) return rows.error().message;
    return rows->rows.at(0).at(0).value_or("NULL");
  }
  Error error_of(const std::string& sql) {
    auto result = connection_->execute(sql);
    EXPECT_FALSE(result.ok()) << sql;
    return result.ok() ? Error{} : result.error();
  }

  std::shared_ptr<Database> database_;
  std::unique_ptr<Connection> connection_;
};

TEST_F(ConnectionTest, RunsStatementsAndCountsChangedRows) {
  auto changed = connection_->execute("CREATE TABLE t(a INT); INSERT INTO t VALUES (1), (2), (3)");
  ASSERT_TRUE(changed.ok()) << changed.error().message;
  EXPECT_EQ(*changed, 3);
  auto count = connection_->query_int("SELECT count(*) FROM t");
  ASSERT_TRUE(count.ok());
  EXPECT_EQ(*count, 3);
  auto none = connection_->query_int("SELECT a FROM t WHERE a > 5");
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(*none, 0);
  EXPECT_FALSE(connection_->query_int("SELECT 'x'").ok());
}

TEST_F(ConnectionTest, ConnectionsShareTables) {
  ASSERT_TRUE(connection_->execute("CREATE TABLE shared AS SELECT 7 AS a").ok());
  auto other = database_->connect();
  ASSERT_TRUE(other.ok());
  auto seen = (*other)->query_int("SELECT a FROM shared");
  ASSERT_TRUE(seen.ok());
  EXPECT_EQ(*seen, 7);
}

TEST_F(ConnectionTest, TimeZoneIsUtcOnEveryConnection) {
  EXPECT_EQ(cell("SELECT current_setting('TimeZone')"), "UTC");
  EXPECT_EQ(cell("SELECT '2024-01-01 00:00:00'::TIMESTAMPTZ"), "2024-01-01 00:00:00+00");
}

TEST_F(ConnectionTest, MemoryLimitLeavesHeadRoom) {
  EXPECT_EQ(cell("SELECT current_setting('memory_limit')"), "665.5 MiB");
}

TEST_F(ConnectionTest, WhatIsSpilledGoesWithTheDatabase) {
  const std::filesystem::path folder = cell("SELECT current_setting('temp_directory')");
  EXPECT_EQ(folder.parent_path(), std::filesystem::temp_directory_path());
  ASSERT_TRUE(connection_->execute("SET memory_limit = '40MB'").ok());
  const auto sorted = connection_->execute(
      "CREATE TABLE t AS SELECT md5(range::VARCHAR) AS m, repeat('x', 90) AS x FROM range(600000)");
  ASSERT_TRUE(sorted.ok()) << sorted.error().message;
  EXPECT_TRUE(std::filesystem::exists(folder));
  connection_.reset();
  database_.reset();
  EXPECT_FALSE(std::filesystem::exists(folder));
}

// Every cell reads as the engine's own cast to VARCHAR does.
TEST_F(ConnectionTest, CellsAreTheVarcharCast) {
  const std::vector<std::string> values = {
      "true",
      "(-128)::TINYINT",
      "7::UTINYINT",
      "7::SMALLINT",
      "7::USMALLINT",
      "7::UINTEGER",
      "-5",
      "9223372036854775807",
      "18446744073709551615::UBIGINT",
      "170141183460469231731687303715884105727::HUGEINT",
      "(-170141183460469231731687303715884105727)::HUGEINT",
      "1.5::FLOAT",
      "'nan'::DOUBLE",
      "'-inf'::DOUBLE",
      "1e300",
      "-1.25::DECIMAL(3,2)",
      "-1234567.25::DECIMAL(9,2)",
      "-12345678901.25::DECIMAL(18,2)",
      "(-0.01)::DECIMAL(38,2)",
      "12345678901234567890123456789012345.678::DECIMAL(38,3)",
      "DATE '-0044-03-15'",
      "TIMESTAMP '2024-01-01 10:00:00.000001'",
      "TIMESTAMPTZ '2024-01-01 10:00:00+02'",
      "'2024-01-01 10:00:00'::TIMESTAMP_S",
      "'2024-01-01 10:00:00.123'::TIMESTAMP_MS",
      "'2024-01-01 10:00:00.123456789'::TIMESTAMP_NS",
      "TIME '10:00:01.5'",
      "'10:00:01+02'::TIMETZ",
      "INTERVAL '1 month 2 days'",
      "'a\\x00\\xFF'::BLOB",
      "'it''s'",
      "''",
      "'eeccb8c5-9943-b2bb-bb5e-222f4e14b687'::UUID",
      "'00000000-0000-0000-0000-000000000001'::UUID",
      "'b'::ENUM('a','b')",
      "[1, NULL, 3]",
      "[[1], []]",
      "array_value(1, 2)",
      "{'a': 1, 'b c': 'it''s', 'd': NULL}",
      "MAP {'k': [1.5], 'l': NULL}",
      "NULL",
      "NULL::INTEGER[]",
  };
  for (const std::string& value : values) {
    EXPECT_EQ(cell("SELECT " + value), cell("SELECT (" + value + ")::VARCHAR")) << value;
  }
}

TEST_F(ConnectionTest, CellsOfLongResultsComeInOrder) {
  auto rows = connection_->query("SELECT i, [i, NULL] FROM range(5000) AS t(i) ORDER BY i");
  ASSERT_TRUE(rows.ok());
  ASSERT_EQ(rows->rows.size(), 5000u);
  EXPECT_EQ(rows->rows[4321][0], "4321");
  EXPECT_EQ(rows->rows[4321][1], "[4321, NULL]");
}

TEST_F(ConnectionTest, DescribesColumnsWithoutRunning) {
  auto columns = connection_->describe(
      "SELECT 1::BIGINT AS l, 's' AS s, 1.5::DECIMAL(5,2) AS d, now() AS ts, [1::SMALLINT] AS arr, "
      "MAP {'a': 1.5::DOUBLE} AS m, {'x': DATE '2024-01-01', 'Y z': true} AS st, "
      "1::HUGEINT AS h, '1'::TIME AS t, 5::UBIGINT AS u, "
      "CASE WHEN error('never evaluated') THEN 1 END AS e");
  ASSERT_TRUE(columns.ok()) << columns.error().message;
  const auto type = [&](size_t i) { return columns->at(i); };
  EXPECT_EQ(type(0).name, "l");
  EXPECT_EQ(type(0).type.id, TypeId::kLong);
  EXPECT_EQ(type(1).type.id, TypeId::kString);
  EXPECT_EQ(type(2).engine_type, "DECIMAL(5,2)");
  EXPECT_EQ(type(2).type.precision, 5);
  EXPECT_EQ(type(3).type.id, TypeId::kTimestamp);
  EXPECT_EQ(type(4).type.id, TypeId::kArray);
  EXPECT_EQ(type(4).type.element->id, TypeId::kShort);
  EXPECT_EQ(type(5).engine_type, "MAP(VARCHAR, DOUBLE)");
  ASSERT_EQ(type(6).type.id, TypeId::kStruct);
  EXPECT_EQ(type(6).type.fields->at(1).name, "Y z");
  EXPECT_FALSE(type(7).has_delta_type);
  EXPECT_EQ(type(7).engine_type, "HUGEINT");
  EXPECT_FALSE(type(8).has_delta_type);
  EXPECT_EQ(type(9).type.precision, 20);
}

// Every Delta type has an engine spelling that the engine reads back as the same type.
TEST_F(ConnectionTest, TypesRoundTrip) {
  std::vector<DataType> types;
  for (TypeId id : {TypeId::kString, TypeId::kLong, TypeId::kInteger, TypeId::kShort, TypeId::kByte,
                    TypeId::kFloat, TypeId::kDouble, TypeId::kBoolean, TypeId::kBinary,
                    TypeId::kDate, TypeId::kTimestamp, TypeId::kTimestampNtz}) {
    types.push_back(DataType::primitive(id));
  }
  types.push_back(DataType::decimal(38, 10));
  types.push_back(
      DataType::array(DataType::map(DataType::primitive(TypeId::kString), types.back())));
  types.push_back(
      DataType::structure({Field{"a \"q\"", types.back(), true, {}},
                           Field{"select", DataType::primitive(TypeId::kLong), true, {}}}));
  for (const DataType& type : types) {
    auto columns = connection_->describe("SELECT NULL::" + engine_type(type) + " AS c");
    ASSERT_TRUE(columns.ok()) << engine_type(type) << ": " << columns.error().message;
    EXPECT_EQ(columns->at(0).engine_type, engine_type(type));
    EXPECT_TRUE(same_type(columns->at(0).type, type)) << engine_type(type);
  }
}

TEST_F(ConnectionTest, ErrorsHaveKinds) {
  EXPECT_EQ(error_of("SELEC 1").kind, ErrorKind::kInvalidArgument);
  EXPECT_EQ(error_of("SELECT nothing_there").kind, ErrorKind::kInvalidArgument);
  EXPECT_EQ(error_of("SELECT * FROM no_table").kind, ErrorKind::kInvalidArgument);
  EXPECT_EQ(error_of("SELECT 'x'::INT").kind, ErrorKind::kInvalidData);
  EXPECT_EQ(error_of("SELECT 300::TINYINT").kind, ErrorKind::kInvalidData);
  EXPECT_EQ(error_of("SELECT * FROM read_parquet('/nowhere/x.parquet')").kind, ErrorKind::kIo);
  EXPECT_EQ(error_of("SELECT 'x'::INT").code, "ENGINE_ERROR");
  auto described = connection_->describe("SELECT nothing_there");
  ASSERT_FALSE(described.ok());
  EXPECT_EQ(described.error().kind, ErrorKind::kInvalidArgument);
}

TEST_F(ConnectionTest, WhatTheSystemRefusesHasItsName) {
  const Error full = error_of(
      "COPY (SELECT range FROM range(1000000)) TO '/dev/full' (FORMAT csv, USE_TMP_FILE false)");
  EXPECT_EQ(full.kind, ErrorKind::kIo) << full.message;
  EXPECT_EQ(full.code, "DISK_FULL") << full.message;
  EXPECT_THAT(full.message, testing::AllOf(HasSubstr("/dev/full"), HasSubstr("Free some space")));
  const Error denied = engine_error(DUCKDB_ERROR_INVALID,
                                    "IO Error: Cannot open file \"/w/t/x\": Permission denied");
  EXPECT_EQ(denied.kind, ErrorKind::kIo);
  EXPECT_EQ(denied.code, "PERMISSION_DENIED");
  EXPECT_THAT(denied.message, HasSubstr("/w/t/x"));
  const Error large = engine_error(DUCKDB_ERROR_INVALID,
                                   "IO Error: Could not write file \"/w/t/x\": File too large");
  EXPECT_EQ(large.kind, ErrorKind::kIo);
  EXPECT_EQ(large.code, "FILE_TOO_LARGE");
  EXPECT_THAT(large.message, testing::AllOf(HasSubstr("/w/t/x"), HasSubstr("ulimit -f")));
  // Text of the data decides nothing.
  EXPECT_EQ(error_of("SELECT 'No space left on device'::INT").code, "ENGINE_ERROR");
}

TEST_F(ConnectionTest, OutOfMemoryHasItsName) {
  ASSERT_TRUE(connection_->execute("SET memory_limit = '1MB'").ok());
  const Error full = error_of("SELECT list(range) FROM range(10000000)");
  const Error refused = engine_error(DUCKDB_ERROR_INVALID, "std::bad_alloc");
  for (const Error& error : {full, refused}) {
    EXPECT_EQ(error.kind, ErrorKind::kIo) << error.message;
    EXPECT_EQ(error.code, "OUT_OF_MEMORY") << error.message;
    EXPECT_THAT(error.message, testing::AllOf(HasSubstr("--memory-limit"), HasSubstr("--threads"),
                                              testing::Not(HasSubstr("Error:")),
                                              testing::Not(HasSubstr("Possible solutions"))));
  }
}

TEST_F(ConnectionTest, PublicNamesPassThrough) {
  const Error error = error_of("SELECT error('[AUTOCDC_X.NULL_KEY] key id is null')");
  EXPECT_EQ(error.kind, ErrorKind::kInvalidData);
  EXPECT_EQ(error.code, "AUTOCDC_X.NULL_KEY");
  EXPECT_EQ(error.message, "key id is null");
  const Error other = error_of("SELECT error('[not a name] text')");
  EXPECT_EQ(other.code, "ENGINE_ERROR");
  EXPECT_THAT(other.message, HasSubstr("[not a name] text"));
}

TEST_F(ConnectionTest, InterruptCancelsFromAnotherThread) {
  std::atomic<bool> stopped = false;
  std::thread stopper([&] {
    // An interrupt before the query runs is lost, so it is repeated.
    while (!stopped) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      connection_->interrupt();
    }
  });
  const Error error =
      error_of("SELECT max(sin(a.i + b.i)) FROM range(1000000) a(i), range(1000000) b(i)");
  stopped = true;
  stopper.join();
  EXPECT_EQ(error.kind, ErrorKind::kCancelled);
  EXPECT_EQ(cell("SELECT 1"), "1");
}

TEST_F(ConnectionTest, StreamsChunksAndReportsLateErrors) {
  std::vector<std::string> names;
  int64_t count = 0;
  const auto on_columns = [&](const std::vector<StreamColumn>& columns) -> Status {
    for (const auto& column : columns) names.push_back(column.name);
    return {};
  };
  const auto on_chunk = [&](duckdb_data_chunk chunk) -> Status {
    count += static_cast<int64_t>(duckdb_data_chunk_get_size(chunk));
    return {};
  };
  ASSERT_TRUE(
      stream(*connection_, "SELECT i AS a, i AS b FROM range(100000) t(i)", on_columns, on_chunk)
          .ok());
  EXPECT_THAT(names, ElementsAre("a", "b"));
  EXPECT_EQ(count, 100000);
  auto late = stream(*connection_,
                     "SELECT CASE WHEN i = 90000 THEN error('[LATE] boom')::BIGINT ELSE i END FROM "
                     "range(100000) t(i)",
                     on_columns, on_chunk);
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code, "LATE");
}

TEST(QuoteTest, DoublesQuotes) {
  EXPECT_EQ(quote_literal("it's"), "'it''s'");
  EXPECT_EQ(quote_name("odd \"name\""), "\"odd \"\"name\"\"\"");
}

}  // namespace
}  // namespace strandline::duck
