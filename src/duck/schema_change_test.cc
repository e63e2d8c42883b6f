// Data files of older schemas, read as the table is now, and columns that are in no file.
#include <gmock/gmock.h>

#include "base/json.h"
#include "delta/alter.h"
#include "delta/column_mapping.h"
#include "delta/definition.h"
#include "delta/type_widening.h"
#include "duck/names.h"
#include "duck/test_tables.h"

namespace strandline::duck {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SchemaChangeTest : public DeltaIoTest {
 protected:
  // The same files under another schema.
  static std::shared_ptr<const delta::Snapshot> as(
      const std::shared_ptr<const delta::Snapshot>& snapshot, std::vector<Field> fields) {
    delta::Snapshot changed = *snapshot;
    changed.schema.fields = std::move(fields);
    return std::make_shared<const delta::Snapshot>(std::move(changed));
  }
};

TEST_F(SchemaChangeTest, WidenedTypesAreReadFromOldFiles) {
  const auto narrow = with_rows(
      define({field("b", TypeId::kByte), field("s", TypeId::kShort), field("i", TypeId::kInteger),
              field("l", TypeId::kLong), field("f", TypeId::kFloat),
              field("m", DataType::decimal(5, 2)), field("d", TypeId::kDate),
              field("n", DataType::structure(
                             {field("a", DataType::array(DataType::primitive(TypeId::kInteger)))})),
              field("k", DataType::map(DataType::primitive(TypeId::kByte),
                                       DataType::primitive(TypeId::kDate)))}),
      "SELECT (-5)::TINYINT AS b, 300::SMALLINT AS s, -70000::INTEGER AS i, 9000000000::BIGINT AS "
      "l, "
      "0.5::FLOAT AS f, -1.25::DECIMAL(5,2) AS m, DATE '1969-12-31' AS d, "
      "{'a': [1, NULL]} AS n, MAP {7::TINYINT: DATE '2024-02-29'} AS k");
  const auto all = [&](std::vector<Field> fields) { return rows(as(narrow, std::move(fields))); };
  const auto array_of = [](const DataType& type) {
    return DataType::structure({field("a", DataType::array(type))});
  };
  EXPECT_THAT(
      all({field("b", TypeId::kShort), field("s", TypeId::kInteger), field("i", TypeId::kLong),
           field("l", DataType::decimal(22, 2)), field("f", TypeId::kDouble),
           field("m", DataType::decimal(12, 5)), field("d", TypeId::kTimestampNtz),
           field("n", array_of(DataType::primitive(TypeId::kLong))),
           field("k", DataType::map(DataType::primitive(TypeId::kLong),
                                    DataType::primitive(TypeId::kTimestampNtz)))}),
      ElementsAre("-5|300|-70000|9000000000.00|0.5|-1.25000|1969-12-31 00:00:00|{'a': [1, NULL]}|"
                  "{7='2024-02-29 00:00:00'}"));
  EXPECT_THAT(all({field("b", TypeId::kDouble), field("s", DataType::decimal(12, 2)),
                   field("i", TypeId::kDouble)}),
              ElementsAre("-5.0|300.00|-70000.0"));
}

// Constants of a filter must not be cut to what the old files hold.
TEST_F(SchemaChangeTest, FiltersSeeWidenedValues) {
  const auto nested = [](TypeId type) { return DataType::structure({field("d", type)}); };
  const auto narrow =
      with_rows(define({field("d", TypeId::kDate), field("m", DataType::decimal(5, 2)),
                        field("i", TypeId::kInteger), field("s", nested(TypeId::kDate))}),
                "SELECT DATE '2024-02-29' AS d, 3.25::DECIMAL(5,2) AS m, 2::INTEGER AS i, "
                "{'d': DATE '2024-02-29'} AS s");
  std::vector<Field> wide = {field("d", TypeId::kTimestampNtz), field("m", DataType::decimal(9, 4)),
                             field("i", TypeId::kDouble),
                             field("s", nested(TypeId::kTimestampNtz))};
  for (size_t i = 0; i < wide.size(); ++i) {
    delta::record_type_changes(narrow->schema.fields[i], &wide[i]);
  }
  const auto widened = as(narrow, wide);
  for (const char* held : {"d < TIMESTAMP '2024-02-29 06:00:00'", "d = TIMESTAMP '2024-02-29'",
                           "m < 3.251", "i > 1.5", "s.d < TIMESTAMP '2024-02-29 06:00:00'"}) {
    EXPECT_THAT(rows(widened, fmt::format("SELECT i FROM {{}} AS t WHERE {}", held)),
                ElementsAre("2.0"))
        << held;
  }
  for (const char* broken :
       {"d >= TIMESTAMP '2024-02-29 00:00:00.1'", "m >= 3.251", "i < 1.6",
        "s.d >= TIMESTAMP '2024-02-29 00:00:00.1'",
        "d BETWEEN TIMESTAMP '2024-02-29 00:00:00.1' AND TIMESTAMP '2024-02-29 06:00:00'"}) {
    EXPECT_THAT(rows(widened, fmt::format("SELECT i FROM {{}} AS t WHERE {}", broken)),
                ElementsAre())
        << broken;
  }
}

// Members were dropped and others added: the struct is still there, its new member has no value.
TEST_F(SchemaChangeTest, StructsMayShareNoMemberWithTheirFiles) {
  const auto member = [](const std::string& name, int id) {
    return DataType::structure({mapped(name, DataType::primitive(TypeId::kLong), id)});
  };
  for (const char* mode : {"name", "id"}) {
    auto definition =
        define({mapped("id", DataType::primitive(TypeId::kLong), 1), mapped("s", member("x", 3), 2),
                mapped("l", DataType::array(member("x", 5)), 4)});
    definition.protocol.min_reader_version = 2;
    definition.protocol.min_writer_version = 5;
    definition.metadata.configuration = {{"delta.columnMapping.mode", mode},
                                         {"delta.columnMapping.maxColumnId", "7"}};
    const auto old = with_rows(
        definition,
        "SELECT 1::BIGINT AS id, {'x': 2::BIGINT} AS s, [{'x': 3::BIGINT}, NULL] AS l UNION ALL "
        "SELECT 2, NULL, NULL");
    delta::Snapshot now =
        *as(old, {mapped("id", DataType::primitive(TypeId::kLong), 1),
                  mapped("s", member("y", 6), 2), mapped("l", DataType::array(member("z", 7)), 4)});
    // Files of both kinds at once.
    const auto both = with_rows(
        now, "SELECT 3::BIGINT AS id, {'y': 4::BIGINT} AS s, NULL::STRUCT(z BIGINT)[] AS l");
    EXPECT_THAT(rows(both),
                ElementsAre("1|{'y': NULL}|[{'z': NULL}, NULL]", "2|NULL|NULL", "3|{'y': 4}|NULL"))
        << mode;
  }
}

// Under ids the names of members in files mean nothing (files that another format's writer named).
TEST_F(SchemaChangeTest, MembersAreFoundByTheirIds) {
  std::vector<Field> members;
  for (const char* name : {"a", "b"}) {
    members.push_back(mapped(name, DataType::primitive(TypeId::kLong), name[0] == 'a' ? 3 : 4));
  }
  auto definition =
      define({mapped("s", DataType::structure(members), 1),
              mapped("m",
                     DataType::map(
                         DataType::primitive(TypeId::kString),
                         DataType::structure({mapped("b", DataType::primitive(TypeId::kLong), 5)})),
                     2)});
  definition.protocol.min_reader_version = 2;
  definition.protocol.min_writer_version = 5;
  definition.metadata.configuration = {{"delta.columnMapping.mode", "id"}};
  const std::string path = directory_ / "foreign.parquet";
  ASSERT_TRUE(connection_
                  ->execute("COPY (SELECT {'second': 2::BIGINT, 'first': 1::BIGINT} AS top, "
                            "MAP {'k': {'other': 5::BIGINT}} AS mm) TO " +
                            quote_literal(path) +
                            " (FORMAT parquet, FIELD_IDS {top: {__duckdb_field_id: 1, second: 4, "
                            "first: 3}, mm: {__duckdb_field_id: 2, value: {other: 5}}})")
                  .ok());
  delta::AddFile file;
  file.path = "foreign.parquet";
  file.size_bytes =
      static_cast<int64_t>(std::filesystem::file_size(directory_ / "foreign.parquet"));
  definition.files.push_back(file);
  EXPECT_THAT(rows(std::make_shared<const delta::Snapshot>(definition)),
              ElementsAre("{'a': 1, 'b': 2}|{k={'b': 5}}"));
}

TEST_F(SchemaChangeTest, NullabilityOfFilesDoesNotMatter) {
  const auto strict =
      with_rows(define({field("a", TypeId::kLong, false), field("b", TypeId::kLong)}),
                "SELECT 1::BIGINT AS a, NULL::BIGINT AS b");
  EXPECT_THAT(rows(as(strict, {field("a", TypeId::kLong), field("b", TypeId::kLong, false)})),
              ElementsAre("1|NULL"));
}

TEST_F(SchemaChangeTest, VoidColumnsAreInNoFile) {
  const DataType nothing = DataType::primitive(TypeId::kVoid);
  const auto definition =
      define({field("a", TypeId::kLong), field("v", nothing),
              field("s", DataType::structure({field("x", TypeId::kLong), field("w", nothing)}))});
  const std::string query = "SELECT 1::BIGINT AS a, NULL AS v, {'x': 2::BIGINT, 'w': NULL} AS s";
  const auto written = with_rows(definition, query);
  ASSERT_EQ(written->files.size(), 1u);
  EXPECT_THAT(rows(written), ElementsAre("1|NULL|{'x': 2, 'w': NULL}"));
  const auto path = delta::resolve_data_path(directory_, written->files[0].path);
  EXPECT_THAT(query_rows("SELECT name FROM parquet_schema(" + path_literal(*path) +
                         ") WHERE name IN ('v', 'w')"),
              ElementsAre());
  EXPECT_EQ(Json::parse(*written->files[0].stats)->get("nullCount")->dump(),
            R"({"a":0,"s":{"x":0}})");
  // The column may become one with values.
  EXPECT_THAT(rows(as(written, {field("v", TypeId::kDate), field("a", TypeId::kLong)})),
              ElementsAre("NULL|1"));
  for (const char* filled : {"SELECT 1::BIGINT AS a, 5 AS v, {'x': 2::BIGINT, 'w': NULL} AS s",
                             "SELECT 1::BIGINT AS a, NULL AS v, {'x': 2::BIGINT, 'w': 3} AS s"}) {
    EXPECT_EQ(write_error(definition, filled).code, "DELTA_VOID_COLUMN_HAS_VALUE");
  }
  EXPECT_EQ(write_error(define({field("a", TypeId::kLong), field("l", DataType::array(nothing))}),
                        "SELECT 1::BIGINT AS a, NULL AS l")
                .code,
            "UNSUPPORTED_TYPE");
}

TEST_F(SchemaChangeTest, ClusteringColumnsAlwaysHaveStatistics) {
  auto definition = define({field("a", TypeId::kLong), field("b", TypeId::kLong),
                            field("s", DataType::structure({field("x", TypeId::kLong)}))});
  definition.metadata.configuration["delta.dataSkippingNumIndexedCols"] = "1";
  definition.domains[delta::kClusteringDomain] = delta::clustering_domain({{"s", "x"}});
  const auto written =
      with_rows(definition, "SELECT 1::BIGINT AS a, 2::BIGINT AS b, {'x': 3::BIGINT} AS s");
  EXPECT_EQ(Json::parse(*written->files[0].stats)->get("minValues")->dump(),
            R"({"a":1,"s":{"x":3}})");
}

// What others write: timestamps as INT96 or in milliseconds, decimals as bytes.
TEST_F(SchemaChangeTest, DecimalsAndSmallIntegersHaveTheSmallestForm) {
  const auto written = with_rows(
      define({field("b", TypeId::kByte), field("s", TypeId::kShort),
              field("m", DataType::decimal(9, 2)), field("n", DataType::decimal(18, 2)),
              field("o", DataType::decimal(38, 2)), field("t", TypeId::kTimestamp),
              field("w", TypeId::kTimestampNtz)}),
      "SELECT 1::TINYINT AS b, 2::SMALLINT AS s, 3::DECIMAL(9,2) AS m, 4::DECIMAL(18,2) AS n, "
      "5::DECIMAL(38,2) AS o, TIMESTAMPTZ '2024-01-01 00:00:00+00' AS t, "
      "TIMESTAMP '2024-01-01 00:00:00' AS w");
  const auto path = delta::resolve_data_path(directory_, written->files[0].path);
  EXPECT_THAT(query_rows("SELECT name, type, coalesce(converted_type, '') FROM parquet_schema(" +
                         path_literal(*path) + ") WHERE type IS NOT NULL"),
              ElementsAre("b|INT32|INT_8", "m|INT32|DECIMAL", "n|INT64|DECIMAL",
                          "o|FIXED_LEN_BYTE_ARRAY|DECIMAL", "s|INT32|INT_16",
                          "t|INT64|TIMESTAMP_MICROS", "w|INT64|TIMESTAMP_MICROS"));
  EXPECT_THAT(query_rows("SELECT contains(logical_type, 'isAdjustedToUTC=1') FROM parquet_schema(" +
                         path_literal(*path) + ") WHERE name IN ('t', 'w')"),
              ElementsAre("false", "true"));
}

}  // namespace
}  // namespace strandline::duck
