#include "duck/delta_io.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/json.h"
#include "delta/deletion_vector.h"
#include "duck/names.h"
#include "duck/statistics.h"
#include "duck/test_tables.h"

namespace strandline::duck {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr const char* kAllTypesQuery =
    "SELECT 'x' || i AS s, i::BIGINT AS l, i::INTEGER AS n, i::SMALLINT AS sh, i::TINYINT AS b, "
    "(i + 0.5)::FLOAT AS f, CASE WHEN i = 1 THEN 'nan'::DOUBLE ELSE i END AS d, "
    "(i - 1.25)::DECIMAL(10,2) AS dec, (i - 1.25)::DECIMAL(38,10) AS big, i = 1 AS bo, "
    "('b' || i)::BLOB AS bin, DATE '2024-01-01' + i::INTEGER AS da, "
    "TIMESTAMPTZ '2024-01-01 00:00:00.123456+00' + to_hours(i) AS ts, "
    "TIMESTAMP '2024-01-01 00:00:00.5' AS ntz, "
    "CASE WHEN i > 0 THEN {'a': i::BIGINT, 'b': ['y', NULL]} END AS st, "
    "[{'q': i::INTEGER}] AS li, MAP {'k': i::BIGINT} AS mp "
    "FROM range(3) AS r(i)";

std::vector<Field> all_types() {
  return {field("s", TypeId::kString),
          field("l", TypeId::kLong),
          field("n", TypeId::kInteger),
          field("sh", TypeId::kShort),
          field("b", TypeId::kByte),
          field("f", TypeId::kFloat),
          field("d", TypeId::kDouble),
          field("dec", DataType::decimal(10, 2)),
          field("big", DataType::decimal(38, 10)),
          field("bo", TypeId::kBoolean),
          field("bin", TypeId::kBinary),
          field("da", TypeId::kDate),
          field("ts", TypeId::kTimestamp),
          field("ntz", TypeId::kTimestampNtz),
          field("st", DataType::structure(
                          {field("a", TypeId::kLong),
                           field("b", DataType::array(DataType::primitive(TypeId::kString)))})),
          field("li", DataType::array(DataType::structure({field("q", TypeId::kInteger)}))),
          field("mp", DataType::map(DataType::primitive(TypeId::kString),
                                    DataType::primitive(TypeId::kLong)))};
}

TEST_F(DeltaIoTest, RowsOfEveryTypeRoundTrip) {
  const auto snapshot = with_rows(define(all_types()), kAllTypesQuery);
  ASSERT_EQ(snapshot->files.size(), 1u);
  EXPECT_EQ(rows(snapshot), query_rows(kAllTypesQuery));
  const auto columns = connection_->describe("FROM " + scan(snapshot)->sql() + " AS t");
  ASSERT_TRUE(columns.ok());
  for (size_t i = 0; i < columns->size(); ++i) {
    EXPECT_EQ(columns->at(i).name, snapshot->schema.fields[i].name);
    EXPECT_TRUE(same_type(columns->at(i).type, snapshot->schema.fields[i].type));
  }
}

TEST_F(DeltaIoTest, StatisticsFollowTheProtocol) {
  const auto snapshot = with_rows(define(all_types()), kAllTypesQuery);
  const auto stats = Json::parse(*snapshot->files.at(0).stats);
  ASSERT_TRUE(stats.ok());
  EXPECT_EQ(stats->get("numRecords")->as_int(), 3);
  EXPECT_EQ(stats->get("minValues")->dump(),
            R"({"s":"x0","l":0,"n":0,"sh":0,"b":0,"f":0.5,"dec":-1.25,"big":-1.2500000000,)"
            R"("da":"2024-01-01","ts":"2024-01-01T00:00:00.123Z","ntz":"2024-01-01T00:00:00.500",)"
            R"("st":{"a":1}})");
  EXPECT_EQ(stats->get("maxValues")->dump(),
            R"({"s":"x2","l":2,"n":2,"sh":2,"b":2,"f":2.5,"dec":0.75,"big":0.7500000000,)"
            R"("da":"2024-01-03","ts":"2024-01-01T02:00:00.123Z","ntz":"2024-01-01T00:00:00.500",)"
            R"("st":{"a":2}})");
  EXPECT_EQ(stats->get("nullCount")->dump(),
            R"({"s":0,"l":0,"n":0,"sh":0,"b":0,"f":0,"d":0,"dec":0,"big":0,"bo":0,"bin":0,"da":0,)"
            R"("ts":0,"ntz":0,"st":{"a":1}})");
  EXPECT_EQ(stats->get("tightBounds")->as_bool(), true);
}

TEST_F(DeltaIoTest, StatisticsCoverTheFirstColumnsOrTheNamedOnes) {
  std::vector<Field> fields;
  std::string query = "SELECT ";
  for (int i = 0; i < 40; ++i) {
    fields.push_back(field(fmt::format("c{}", i), TypeId::kLong));
    query += fmt::format("{}{}::BIGINT AS c{}", i == 0 ? "" : ", ", i, i);
  }
  const auto count = [&](delta::Snapshot definition) {
    const auto snapshot = with_rows(std::move(definition), query);
    return Json::parse(*snapshot->files.at(0).stats)->get("minValues")->items().size();
  };
  delta::Snapshot definition = define(fields);
  EXPECT_EQ(count(definition), 32u);
  definition.metadata.configuration["delta.dataSkippingNumIndexedCols"] = "-1";
  EXPECT_EQ(count(definition), 40u);
  definition.metadata.configuration["delta.dataSkippingStatsColumns"] = "c3, `C39`";
  EXPECT_EQ(count(definition), 2u);
}

TEST(BoundTest, LongTextsAreCutToBounds) {
  EXPECT_EQ(lower_bound("short", 8), "short");
  EXPECT_EQ(upper_bound("short", 8), "short");
  EXPECT_EQ(lower_bound("abcdef", 3), "abc");
  EXPECT_EQ(upper_bound("abcdef", 3), "abc\x7F");
  // The tie-breaker is never below the character that was cut.
  EXPECT_EQ(upper_bound("abc\x7F", 3), "abc\xF4\x8F\xBF\xBF");
  EXPECT_EQ(upper_bound("abc\xC3\xA9", 3), "abc\xF4\x8F\xBF\xBF");
  // Cut between characters, not inside.
  EXPECT_EQ(lower_bound("\xC3\xA9\xC3\xA9\xC3\xA9", 2), "\xC3\xA9\xC3\xA9");
  // After the last code point nothing is greater: the prefix grows, and gives up at twice its
  // length.
  const std::string last = "\xF4\x8F\xBF\xBF";
  EXPECT_EQ(upper_bound("ab" + last + "cd", 2), "ab" + last + "\x7F");
  EXPECT_EQ(upper_bound("ab" + last + last + last + last, 2), std::nullopt);
  EXPECT_EQ(upper_bound("ab" + last + last, 2), "ab" + last + last);
  // What is cut off may be broken, what is kept may not.
  EXPECT_EQ(upper_bound("abcdef\xC3", 3), "abc\x7F");
  EXPECT_EQ(upper_bound("ab\xC3", 3), std::nullopt);
}

TEST_F(DeltaIoTest, NoRowsNoFiles) {
  const auto snapshot =
      with_rows(define(all_types()), std::string(kAllTypesQuery) + " WHERE false");
  EXPECT_THAT(snapshot->files, IsEmpty());
  EXPECT_THAT(files_on_disk(), IsEmpty());
  EXPECT_THAT(rows(snapshot), IsEmpty());
  const auto columns = connection_->describe("FROM " + scan(snapshot)->sql() + " AS t");
  ASSERT_TRUE(columns.ok());
  EXPECT_EQ(columns->size(), all_types().size());
  EXPECT_TRUE(same_type(columns->at(14).type, snapshot->schema.fields[14].type));
}

TEST_F(DeltaIoTest, LargeOutputsAreSplit) {
  WriteOptions options;
  options.target_file_size_bytes = 1 << 20;
  const auto snapshot =
      with_rows(define({field("a", TypeId::kLong), field("b", TypeId::kString)}),
                "SELECT hash(i)::BIGINT AS a, md5(i::VARCHAR) AS b "
                "FROM (SELECT i, hash(i) % 2 = 0 AS even FROM range(1500000) r(i)) "
                "WHERE hash(i) < 9223372036854775807",
                options);
  EXPECT_GT(snapshot->files.size(), 2u);
  int64_t total = 0;
  for (const auto& file : snapshot->files) total += delta::num_records(file).value_or(-1000000);
  EXPECT_THAT(rows(snapshot, "SELECT count(*) FROM {} AS t"), ElementsAre(std::to_string(total)));
}

TEST_F(DeltaIoTest, SortColumnsOrderTheFile) {
  WriteOptions options;
  options.order_by = "a NULLS FIRST";
  const auto snapshot = with_rows(
      define({field("a", TypeId::kLong)}),
      "SELECT CASE WHEN i > 0 THEN (i * 7919) % 10007 END AS a FROM range(10000) r(i)", options);
  ScanOptions positions;
  positions.with_positions = true;
  EXPECT_THAT(rows(snapshot,
                   "SELECT count(*) FROM (SELECT a, lag(a) OVER (ORDER BY __strandline_row) AS p "
                   "FROM {} AS t) WHERE a < p OR (a IS NULL AND p IS NOT NULL)",
                   positions),
              ElementsAre("0"));
}

TEST_F(DeltaIoTest, OrderedFilesTakeARangeEach) {
  WriteOptions options;
  options.order_by = "a DESC";
  options.rows_per_file = 400;
  const std::string query = "SELECT (i * 7919) % 1000 AS a, i % 2 AS p FROM range(1000) r(i)";
  for (const std::vector<std::string>& partitions :
       {std::vector<std::string>{}, std::vector<std::string>{"p"}}) {
    const auto snapshot = with_rows(
        define({field("a", TypeId::kLong), field("p", TypeId::kLong)}, partitions), query, options);
    EXPECT_EQ(snapshot->files.size(), partitions.empty() ? 3u : 4u);
    EXPECT_EQ(rows(snapshot), query_rows(query));
    ScanOptions positions;
    positions.with_positions = true;
    // Ranges of files of one partition do not meet.
    const auto scanned = scan(snapshot, positions);
    const std::string files =
        "(SELECT __strandline_file AS f, any_value(p) AS p, min(a) AS low, "
        "max(a) AS high FROM " +
        scanned->sql() + " AS t GROUP BY f)";
    EXPECT_THAT(query_rows(fmt::format(
                    "SELECT count(*) FROM {0} x, {0} y WHERE x.f < y.f AND x.low <= y.high AND "
                    "y.low <= x.high AND {1}",
                    files, partitions.empty() ? "true" : "x.p = y.p")),
                ElementsAre("0"));
  }
  EXPECT_TRUE(with_rows(define({field("a", TypeId::kLong), field("p", TypeId::kLong)}),
                        query + " WHERE false", options)
                  ->files.empty());
}

TEST_F(DeltaIoTest, ColumnsMatchByNameAndWiden) {
  const auto snapshot =
      with_rows(define({field("Id", TypeId::kLong), field("d", DataType::decimal(20, 2)),
                        field("v", TypeId::kDouble)}),
                "SELECT 1.5::FLOAT AS v, 2.5::DECIMAL(5,1) AS D, 7::SMALLINT AS id");
  EXPECT_THAT(rows(snapshot), ElementsAre("7|2.50|1.5"));
}

TEST_F(DeltaIoTest, WrongColumnsAreRefusedByName) {
  const delta::Snapshot definition = define({field("a", TypeId::kInteger)});
  EXPECT_THAT(write_error(definition, "SELECT 1 AS b").message, HasSubstr("no column b"));
  EXPECT_THAT(write_error(definition, "SELECT 1 AS a, 2 AS c").message, HasSubstr("no column c"));
  EXPECT_THAT(write_error(define({field("a", TypeId::kLong), field("z", TypeId::kLong)}),
                          "SELECT 1::BIGINT AS a")
                  .message,
              HasSubstr("no column z"));
  const Error narrow = write_error(definition, "SELECT 1::BIGINT AS a");
  EXPECT_EQ(narrow.code, "INCOMPATIBLE_COLUMN_TYPE");
  EXPECT_THAT(narrow.message, HasSubstr("BIGINT"));
  const Error huge = write_error(definition, "SELECT 1::HUGEINT AS a");
  EXPECT_EQ(huge.kind, ErrorKind::kUnsupported);
  EXPECT_THAT(huge.message, HasSubstr("HUGEINT"));
  EXPECT_THAT(write_error(define({field("a", TypeId::kVoid)}), "SELECT NULL AS a").message,
              HasSubstr("no column besides its partition columns"));
  EXPECT_THAT(files_on_disk(), IsEmpty());
}

TEST_F(DeltaIoTest, NullsInNotNullColumnsLeaveNothing) {
  const auto violation = [&](Field not_null, const std::string& value) {
    const std::string name = not_null.name;
    const Error error = write_error(
        define({field("id", TypeId::kLong), std::move(not_null)}),
        fmt::format("SELECT i AS id, CASE WHEN i <> 5 THEN {} END AS \"{}\" FROM range(10) r(i)",
                    value, name));
    EXPECT_EQ(error.code, "NOT_NULL_CONSTRAINT_VIOLATION");
    EXPECT_THAT(error.message, HasSubstr("column " + name));
    EXPECT_THAT(files_on_disk(), IsEmpty());
  };
  violation(field("n", TypeId::kLong, false), "i");
  violation(field("l", DataType::array(DataType::primitive(TypeId::kLong)), false), "[i]");
  violation(field("s", DataType::structure({field("m", TypeId::kLong)}), false), "{'m': i}");
}

TEST_F(DeltaIoTest, NullsInsideNestedNotNullAreFound) {
  const Field inner = field("s", DataType::structure({field("m", TypeId::kLong, false)}));
  const auto good =
      with_rows(define({inner, field("i", TypeId::kLong)}),
                "SELECT CASE WHEN i > 0 THEN {'m': i} END AS s, i FROM range(3) r(i)");
  EXPECT_THAT(rows(good, "SELECT count(s), count(*) FROM {} AS t"), ElementsAre("2|3"));
  EXPECT_EQ(write_error(define({inner}), "SELECT {'m': NULL::BIGINT} AS s").code,
            "NOT_NULL_CONSTRAINT_VIOLATION");
  const Field list = field("l", DataType::array(DataType::primitive(TypeId::kLong), false));
  EXPECT_EQ(write_error(define({list}), "SELECT [1, NULL]::BIGINT[] AS l").code,
            "NOT_NULL_CONSTRAINT_VIOLATION");
  const Field map = field("m", DataType::map(DataType::primitive(TypeId::kString),
                                             DataType::primitive(TypeId::kLong), false));
  EXPECT_EQ(write_error(define({map}), "SELECT MAP {'a': NULL::BIGINT} AS m").code,
            "NOT_NULL_CONSTRAINT_VIOLATION");
}

TEST_F(DeltaIoTest, FailuresLeaveNoFiles) {
  const delta::Snapshot definition = define({field("a", TypeId::kLong)});
  const std::string late =
      "SELECT CASE WHEN i = 900000 THEN error('[LATE] stop')::BIGINT ELSE i END AS a "
      "FROM range(1000000) r(i)";
  EXPECT_EQ(write_error(definition, late).code, "LATE");
  EXPECT_THAT(files_on_disk(), IsEmpty());
  auto store = storage::FaultStore::wrap(storage::make_local_store());
  // make_directories, before_external_write, after_external_write
  for (int call = 1; call <= 3; ++call) {
    store->arm(call, storage::FaultMode::kError);
    EXPECT_EQ(write_error(definition, "SELECT 1::BIGINT AS a", store).kind, ErrorKind::kIo) << call;
    EXPECT_THAT(files_on_disk(), IsEmpty()) << call;
  }
}

TEST_F(DeltaIoTest, EmptyPartitionValueIsNull) {
  const auto definition =
      define({field("v", TypeId::kLong), field("p", TypeId::kString), field("q", TypeId::kBinary)},
             {"p", "q"});
  const auto snapshot = with_rows(definition,
                                  "SELECT * FROM (VALUES (1::BIGINT, '', 'x'::BLOB), (2, 'a', "
                                  "''::BLOB), (3, NULL, NULL), (4, ' ', ' '::BLOB)) AS t(v, p, q)");
  EXPECT_THAT(rows(snapshot, "SELECT v, p IS NULL, q IS NULL FROM {} AS t ORDER BY v"),
              ElementsAre("1|true|false", "2|false|true", "3|true|true", "4|false|false"));
  for (const auto& file : snapshot->files) {
    for (const auto& [name, value] : file.partition_values) EXPECT_NE(value, "") << name;
  }
}

TEST_F(DeltaIoTest, PartitionsOfOddValues) {
  const auto definition =
      define({field("v", TypeId::kLong), field("p", TypeId::kString), field("q", TypeId::kInteger)},
             {"p", "q"});
  const std::string query =
      "SELECT i AS v, CASE i % 6 WHEN 0 THEN NULL WHEN 1 THEN 'a%b/c=d' WHEN 2 THEN 'ü ''x' || "
      "chr(10) "
      "WHEN 3 THEN '[1]*?' WHEN 4 THEN ' ' ELSE '__HIVE_DEFAULT_PARTITION__' END AS p, "
      "(i // 6)::INTEGER AS q FROM range(24) r(i)";
  const auto snapshot = with_rows(definition, query);
  EXPECT_EQ(snapshot->files.size(), 6u * 4u);
  EXPECT_EQ(rows(snapshot), query_rows("SELECT v, p, q FROM (" + query + ")"));
  EXPECT_EQ(rows(snapshot, "SELECT v FROM {} AS t WHERE p = 'a%b/c=d' AND q = 2"),
            std::vector<std::string>{"13"});
  const auto percent = std::find_if(
      snapshot->files.begin(), snapshot->files.end(),
      [](const delta::AddFile& file) { return file.partition_values.at("p") == "a%b/c=d"; });
  ASSERT_NE(percent, snapshot->files.end());
  EXPECT_THAT(percent->path, StartsWith("p=a%2525b%252Fc%253Dd/q=0/part-"));
}

TEST_F(DeltaIoTest, PartitionValuesOfEveryType) {
  const std::string query =
      "SELECT i AS v, CASE WHEN i > 0 THEN i END AS l, i::TINYINT AS b, CASE WHEN i = 1 THEN "
      "'nan'::DOUBLE "
      "WHEN i = 2 THEN '-inf'::DOUBLE ELSE 1.5 END AS d, (i - 0.25)::DECIMAL(10,2) AS dec, i = 1 "
      "AS bo, "
      "('b' || i)::BLOB AS bin, DATE '2024-01-01' + i::INTEGER AS da, "
      "TIMESTAMPTZ '2024-01-01 00:00:00.123456+00' + to_hours(i) AS ts, "
      "TIMESTAMP '2024-01-01 00:00:00.5' AS ntz FROM range(3) r(i)";
  const auto snapshot =
      with_rows(define({field("v", TypeId::kLong), field("l", TypeId::kLong),
                        field("b", TypeId::kByte), field("d", TypeId::kDouble),
                        field("dec", DataType::decimal(10, 2)), field("bo", TypeId::kBoolean),
                        field("bin", TypeId::kBinary), field("da", TypeId::kDate),
                        field("ts", TypeId::kTimestamp), field("ntz", TypeId::kTimestampNtz)},
                       {"l", "b", "d", "dec", "bo", "bin", "da", "ts", "ntz"}),
                query);
  EXPECT_EQ(snapshot->files.size(), 3u);
  EXPECT_EQ(rows(snapshot), query_rows(query));
}

// JSON has no ".5".
TEST_F(DeltaIoTest, DecimalsBelowOneKeepTheZeroBeforeThePoint) {
  const DataType type = DataType::decimal(2, 2);
  const auto snapshot = with_rows(define({field("d", type), field("p", type)}, {"p"}),
                                  "SELECT '-0.5'::DECIMAL(2,2) AS d, '0.25'::DECIMAL(2,2) AS p");
  ASSERT_EQ(snapshot->files.size(), 1u);
  EXPECT_THAT(std::string(*snapshot->files[0].stats), HasSubstr(R"("minValues":{"d":-0.50})"));
  EXPECT_EQ(snapshot->files[0].partition_values.at("p"), "0.25");
}

TEST_F(DeltaIoTest, ManyPartitionsAreLookedUp) {
  const auto snapshot =
      with_rows(define({field("v", TypeId::kLong), field("p", TypeId::kLong)}, {"p"}),
                "SELECT i AS v, CASE WHEN i % 100 > 0 THEN i % 100 END AS p FROM range(1000) r(i)");
  EXPECT_EQ(snapshot->files.size(), 100u);
  EXPECT_THAT(rows(snapshot,
                   "SELECT count(*), count(p), sum(v), count(DISTINCT p), "
                   "count(*) FILTER (p = v % 100) FROM {} AS t"),
              ElementsAre("1000|990|499500|99|990"));
  ScanOptions subset;
  subset.files = {7, 93};
  subset.with_positions = true;
  EXPECT_THAT(
      rows(snapshot, "SELECT __strandline_file, count(*) FROM {} AS t GROUP BY ALL", subset),
      ElementsAre("7|10", "93|10"));
}

TEST_F(DeltaIoTest, NullInNotNullPartitionColumn) {
  const Error error =
      write_error(define({field("v", TypeId::kLong), field("p", TypeId::kString, false)}, {"p"}),
                  "SELECT i AS v, CASE WHEN i > 0 THEN 'x' END AS p FROM range(3) r(i)");
  EXPECT_EQ(error.code, "NOT_NULL_CONSTRAINT_VIOLATION");
  EXPECT_THAT(files_on_disk(), IsEmpty());
}

TEST_F(DeltaIoTest, UserColumnsDoNotShadowTheReadersOwn) {
  const std::string query =
      "SELECT 'u' || i AS filename, (i + 100)::BIGINT AS file_row_number, (i + 50)::BIGINT AS "
      "file_index, "
      "i AS c0 FROM range(3) r(i)";
  const auto snapshot =
      with_rows(define({field("filename", TypeId::kString), field("file_row_number", TypeId::kLong),
                        field("file_index", TypeId::kLong), field("c0", TypeId::kLong)}),
                query);
  ScanOptions options;
  options.with_positions = true;
  EXPECT_THAT(rows(snapshot, "SELECT * FROM {} AS t", options),
              ElementsAre("u0|100|50|0|0|0", "u1|101|51|1|0|1", "u2|102|52|2|0|2"));
  const auto reserved =
      with_rows(define({field(kRowColumn, TypeId::kLong)}), "SELECT 1::BIGINT AS __strandline_row");
  auto refused = scan_table(*connection_, table(), reserved, options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, "RESERVED_COLUMN_NAME");
}

class MappedTest : public DeltaIoTest, public ::testing::WithParamInterface<std::string> {};

// Physical names and ids at every depth, in both modes.
TEST_P(MappedTest, RoundTripsAndRenames) {
  const auto inner = [](int id) {
    Field member = mapped("x", DataType::primitive(TypeId::kLong), id);
    return DataType::structure({member});
  };
  delta::Snapshot definition =
      define({mapped("id", DataType::primitive(TypeId::kLong), 1),
              mapped("part", DataType::primitive(TypeId::kString), 2), mapped("st", inner(5), 3),
              mapped("li", DataType::array(DataType::array(inner(6))), 4),
              mapped("mp", DataType::map(DataType::primitive(TypeId::kString), inner(8)), 7)},
             {"part"});
  definition.protocol.min_reader_version = 2;
  definition.protocol.min_writer_version = 5;
  definition.metadata.configuration["delta.columnMapping.mode"] = GetParam();
  const std::string st = "CASE WHEN i > 0 THEN {'x': i} END";
  const std::string query = fmt::format(
      "SELECT i AS id, 'p' || (i % 2) AS part, {0} AS st, [[{0}], NULL] AS li, "
      "CASE WHEN i <> 2 THEN MAP {{'k': {0}}} END AS mp FROM range(4) r(i)",
      st);
  auto snapshot = with_rows(definition, query);
  ASSERT_EQ(snapshot->files.size(), 2u);
  EXPECT_EQ(rows(snapshot), query_rows(query));
  EXPECT_EQ(snapshot->files[0].partition_values.count("col-2"), 1u);
  EXPECT_THAT(*snapshot->files[0].stats,
              HasSubstr(R"("minValues":{"col-1":0,"col-3":{"col-5":2}})"));
  const auto path = delta::resolve_data_path(directory_, snapshot->files[0].path);
  EXPECT_THAT(
      query_rows("SELECT name, field_id FROM parquet_schema(" + path_literal(*path) +
                 ") WHERE field_id IS NOT NULL"),
      ElementsAre("col-1|1", "col-3|3", "col-4|4", "col-5|5", "col-6|6", "col-7|7", "col-8|8"));

  // A rename changes the logical name alone; a new column is null in old files.
  delta::Snapshot renamed = *snapshot;
  renamed.schema.fields[0].name = "key";
  renamed.schema.fields[2].type =
      DataType::structure({mapped("y", DataType::primitive(TypeId::kLong), 5),
                           mapped("void", DataType::primitive(TypeId::kVoid), 10)});
  renamed.schema.fields.push_back(mapped("added", DataType::primitive(TypeId::kDate), 9));
  const auto shared = std::make_shared<const delta::Snapshot>(renamed);
  EXPECT_EQ(
      rows(shared, "SELECT key, added, st FROM {} AS t WHERE key > 1"),
      (std::vector<std::string>{"2|NULL|{'y': 2, 'void': NULL}", "3|NULL|{'y': 3, 'void': NULL}"}));
}
INSTANTIATE_TEST_SUITE_P(Modes, MappedTest, ::testing::Values("name", "id"));

TEST_F(DeltaIoTest, MissingColumnsAreNullAndProjectionKeepsOrder) {
  auto snapshot = with_rows(define({field("a", TypeId::kLong),
                                    field("s", DataType::structure({field("x", TypeId::kLong)}))}),
                            "SELECT 1::BIGINT AS a, {'x': 2::BIGINT} AS s");
  delta::Snapshot wider = *snapshot;
  wider.schema.fields = {
      field("n", TypeId::kString),
      field("s", DataType::structure({field("x", TypeId::kLong), field("y", TypeId::kDate)})),
      field("nothing", TypeId::kVoid), field("a", TypeId::kLong)};
  const auto shared = std::make_shared<const delta::Snapshot>(wider);
  EXPECT_THAT(rows(shared), ElementsAre("NULL|{'x': 2, 'y': NULL}|NULL|1"));
  ScanOptions options;
  options.columns = {"A", "n"};
  EXPECT_THAT(rows(shared, "SELECT * FROM {} AS t", options), ElementsAre("1|NULL"));
  options.columns = {"zzz"};
  EXPECT_FALSE(scan_table(*connection_, table(), shared, options).ok());
}

TEST_F(DeltaIoTest, OnlyPartitionColumnsCanBeRead) {
  const auto snapshot =
      with_rows(define({field("v", TypeId::kLong), field("p", TypeId::kLong)}, {"p"}),
                "SELECT i AS v, i % 2 AS p FROM range(5) r(i)");
  ScanOptions options;
  options.columns = {"p"};
  EXPECT_THAT(rows(snapshot, "SELECT p, count(*) FROM {} AS t GROUP BY p", options),
              ElementsAre("0|3", "1|2"));
}

TEST_F(DeltaIoTest, PositionsFilesAndFilters) {
  auto snapshot =
      with_rows(define({field("a", TypeId::kLong)}), "SELECT i AS a FROM range(300000) r(i)");
  snapshot = with_rows(*snapshot, "SELECT i + 1000000 AS a FROM range(10) r(i)");
  snapshot = with_rows(*snapshot, "SELECT i + 2000000 AS a FROM range(10) r(i)");
  ASSERT_EQ(snapshot->files.size(), 3u);
  ScanOptions options;
  options.with_positions = true;
  // Positions stay right when row groups and files are pruned.
  const std::string at = "SELECT __strandline_file, __strandline_row FROM {} AS t WHERE a = 250000";
  const auto found = rows(snapshot, at, options);
  ASSERT_EQ(found.size(), 1u);
  const size_t big = static_cast<size_t>(std::stoi(found[0]));
  EXPECT_EQ(delta::num_records(snapshot->files[big]), 300000);
  EXPECT_THAT(found[0], HasSubstr("|250000"));
  // A subset keeps the snapshot's numbering, in any order.
  options.files = {(big + 1) % 3, big};
  EXPECT_EQ(rows(snapshot, at, options), found);
  EXPECT_EQ(rows(snapshot, "SELECT DISTINCT __strandline_file FROM {} AS t", options).size(), 2u);
}

TEST_F(DeltaIoTest, DeletedRowsAreGone) {
  auto snapshot =
      with_rows(define({field("a", TypeId::kLong)}), "SELECT i AS a FROM range(5000) r(i)");
  snapshot = with_rows(*snapshot, "SELECT i + 10000 AS a FROM range(5000) r(i)");
  ScanOptions positions;
  positions.with_positions = true;
  const auto scanned = scan(snapshot, positions);
  auto deleted = collect_rows(*connection_, "SELECT __strandline_file, __strandline_row FROM " +
                                                scanned->sql() + " AS t WHERE a % 10 = 3");
  ASSERT_TRUE(deleted.ok()) << deleted.error().message;
  ASSERT_EQ(deleted->size(), 2u);
  EXPECT_EQ(deleted->at(0).cardinality(), 500u);
  EXPECT_TRUE(deleted->at(1).contains(4993));

  delta::Snapshot marked = *snapshot;
  const auto vectors =
      delta::build_deletion_vector_file(directory_, {&deleted->at(0), &deleted->at(1)});
  ASSERT_TRUE(table().store()->put(vectors.path, vectors.bytes).ok());
  for (size_t i = 0; i < 2; ++i) marked.files[i].deletion_vector = vectors.descriptors[i];
  const auto shared = std::make_shared<const delta::Snapshot>(marked);
  EXPECT_THAT(rows(shared, "SELECT count(*), count(*) FILTER (a % 10 = 3), sum(a) FROM {} AS t"),
              ElementsAre(query_rows(
                  "SELECT 9000, 0, sum(a) FROM (FROM range(5000) r(a) UNION ALL SELECT a + 10000 "
                  "FROM range(5000) r(a)) WHERE a % 10 <> 3")[0]));
  ScanOptions all;
  all.apply_deletion_vectors = false;
  EXPECT_THAT(rows(shared, "SELECT count(*) FROM {} AS t", all), ElementsAre("10000"));
  // A query must not outlive its scan.
  const std::string sql = "SELECT count(*) FROM " + scan(shared)->sql() + " AS t";
  EXPECT_FALSE(connection_->query(sql).ok());
}

TEST_F(DeltaIoTest, RowIdsAreMaterialisedOrDerived) {
  delta::Snapshot definition = define({field("a", TypeId::kLong)});
  definition.protocol = {1, 7, {}, {"rowTracking", "domainMetadata"}};
  definition.metadata.configuration = {
      {"delta.enableRowTracking", "true"},
      {"delta.rowTracking.materializedRowIdColumnName", "_row-id-col-1"},
      {"delta.rowTracking.materializedRowCommitVersionColumnName", "_row-version-col-1"}};
  auto snapshot = with_rows(definition, "SELECT i AS a FROM range(3) r(i)");
  WriteOptions moved;
  moved.with_row_ids = true;
  snapshot = with_rows(
      *snapshot,
      "SELECT i AS a, CASE WHEN i > 10 THEN i * 7 END AS __strandline_row_id, "
      "CASE WHEN i > 11 THEN 3 END AS __strandline_row_commit_version FROM range(10, 13) r(i)",
      moved);
  ScanOptions options;
  options.with_row_ids = true;
  EXPECT_THAT(rows(snapshot, "SELECT * FROM {} AS t", options),
              ElementsAre("0|0|7", "10|1000|7", "11|77|7", "12|84|3", "1|1|7", "2|2|7"));
  EXPECT_THAT(rows(snapshot), ElementsAre("0", "1", "10", "11", "12", "2"));
  auto untracked = with_rows(define({field("b", TypeId::kLong)}), "SELECT 1::BIGINT AS b");
  EXPECT_FALSE(scan_table(*connection_, table(), untracked, options).ok());
}

TEST_F(DeltaIoTest, CollectRowsRefusesNulls) {
  auto rows_of = collect_rows(*connection_, "SELECT NULL::INTEGER, 1::BIGINT");
  ASSERT_FALSE(rows_of.ok());
  EXPECT_EQ(rows_of.error().kind, ErrorKind::kInternal);
  EXPECT_FALSE(collect_rows(*connection_, "SELECT 'x', 1").ok());
}

TEST_F(DeltaIoTest, CodecsAreChosenByTheTable) {
  delta::Snapshot definition = define({field("a", TypeId::kLong)});
  definition.metadata.configuration["delta.parquet.compression.codec"] = "ZSTD";
  EXPECT_EQ(with_rows(definition, "SELECT 1::BIGINT AS a")->files.size(), 1u);
  definition.metadata.configuration["delta.parquet.compression.codec"] = "lzo";
  EXPECT_THAT(write_error(definition, "SELECT 1::BIGINT AS a").message, HasSubstr("lzo"));
}

}  // namespace
}  // namespace strandline::duck
