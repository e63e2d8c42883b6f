#include "pipeline/file_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace strandline::pipeline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Texts = std::vector<std::string>;

class FileReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / ("file_reader_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    auto database = duck::Database::open({});
    ASSERT_TRUE(database.ok());
    auto connection = (*database)->connect();
    ASSERT_TRUE(connection.ok());
    connection_ = std::move(connection).value();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  ConsumedFile write(const std::string& name, const std::string& text) {
    const auto path = folder_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return {path.string(), static_cast<int64_t>(text.size()), 1700000000000};
  }
  static Schema schema(const std::vector<std::pair<std::string, DataType>>& columns) {
    Schema out;
    for (const auto& [name, type] : columns) out.fields.push_back(Field{name, type, true, {}});
    return out;
  }
  static DataType type(TypeId id) { return DataType::primitive(id); }

  // Rows as texts joined by '|', or the error's code and message.
  Texts read(const FileOptions& options, const Schema& columns,
             const std::vector<ConsumedFile>& files, const FileRelationOptions& relation = {},
             const std::string& select = "*") {
    const auto sql = file_relation(*connection_, *store_, options, columns, files, relation);
    if (!sql.ok()) return {sql.error().code + ": " + sql.error().message};
    const auto rows = connection_->query("SELECT " + select + " FROM " + *sql);
    if (!rows.ok()) {
      if (const auto why =
              explain_failure(*connection_, *store_, options, columns, files, rows.error())) {
        return {why->code + ": " + why->message};
      }
      return {rows.error().code + ": " + rows.error().message};
    }
    Texts out;
    for (const auto& row : rows->rows) {
      std::string text;
      for (const auto& cell : row) text += (text.empty() ? "" : "|") + cell.value_or("NULL");
      out.push_back(text);
    }
    return out;
  }
  // One JSON value of a type.
  std::string json(const std::string& value, const DataType& of) {
    return read({}, schema({{"a", of}}), {write("one.json", "{\"a\":" + value + "}\n")}).at(0);
  }

  std::filesystem::path folder_;
  std::shared_ptr<storage::Store> store_ = storage::make_local_store();
  std::unique_ptr<duck::Connection> connection_;
};

TEST_F(FileReaderTest, JsonValuesAreExactOrErrors) {
  EXPECT_EQ(json("12", type(TypeId::kInteger)), "12");
  EXPECT_EQ(json("1.0", type(TypeId::kInteger)), "1");
  EXPECT_EQ(json("\"12\"", type(TypeId::kInteger)), "12");
  EXPECT_EQ(json("null", type(TypeId::kInteger)), "NULL");
  EXPECT_THAT(json("1.5", type(TypeId::kInteger)), HasSubstr("VALUE_OUT_OF_TYPE"));
  EXPECT_THAT(json("3000000000", type(TypeId::kInteger)), HasSubstr("VALUE_OUT_OF_TYPE"));
  EXPECT_THAT(json("true", type(TypeId::kInteger)), HasSubstr("VALUE_OUT_OF_TYPE"));
  EXPECT_EQ(json("9223372036854775807", type(TypeId::kLong)), "9223372036854775807");
  EXPECT_EQ(json("1.25", DataType::decimal(10, 2)), "1.25");
  EXPECT_EQ(json("1.250", DataType::decimal(10, 2)), "1.25");
  EXPECT_THAT(json("1.234", DataType::decimal(10, 2)), HasSubstr("VALUE_OUT_OF_TYPE"));
  EXPECT_EQ(json("\"12345678901234567.89\"", DataType::decimal(20, 2)), "12345678901234567.89");
  EXPECT_EQ(json("12345678901234567.89", DataType::decimal(20, 2)), "12345678901234567.89");
  EXPECT_THAT(json("100000000000000.001", DataType::decimal(20, 2)),
              HasSubstr("VALUE_OUT_OF_TYPE"));
  EXPECT_THAT(json("100000000000000.001", DataType::decimal(20, 2)),
              HasSubstr("the value 100000000000000.001 of"));
  EXPECT_THAT(json("1.000000000000000001", DataType::decimal(38, 17)),
              HasSubstr("VALUE_OUT_OF_TYPE"));
  EXPECT_EQ(json("1.00000000000000001", DataType::decimal(38, 17)), "1.00000000000000001");
  EXPECT_EQ(json("0.0000001", DataType::decimal(38, 17)), "0.00000010000000000");
  EXPECT_EQ(json("1e-7", DataType::decimal(38, 17)), "0.00000010000000000");
  EXPECT_EQ(json("-12.5e3", DataType::decimal(20, 2)), "-12500.00");
  EXPECT_EQ(json("1.5E1", type(TypeId::kInteger)), "15");
  EXPECT_THAT(json("1.5e0", type(TypeId::kInteger)), HasSubstr("VALUE_OUT_OF_TYPE"));
  EXPECT_THAT(json("1e999", DataType::decimal(38, 0)), HasSubstr("VALUE_OUT_OF_TYPE"));
  EXPECT_EQ(json("9007199254740993.0", type(TypeId::kLong)), "9007199254740993");
  EXPECT_THAT(json("9007199254740993.5", type(TypeId::kLong)), HasSubstr("VALUE_OUT_OF_TYPE"));
  EXPECT_EQ(json("0.1000000000000000055511151231257827", type(TypeId::kDouble)), "0.1");
  EXPECT_EQ(json("0.1", type(TypeId::kDouble)), "0.1");
  EXPECT_THAT(json("\"x\"", type(TypeId::kDouble)), HasSubstr("VALUE_OUT_OF_TYPE"));
  EXPECT_EQ(json("true", type(TypeId::kBoolean)), "true");
  EXPECT_THAT(json("5", type(TypeId::kBoolean)), HasSubstr("VALUE_OUT_OF_TYPE"));
  EXPECT_EQ(json("\"2024-02-29\"", type(TypeId::kDate)), "2024-02-29");
  EXPECT_THAT(json("\"2024-02-29 10:00:00\"", type(TypeId::kDate)), HasSubstr("VALUE_OUT_OF_TYPE"));
  EXPECT_EQ(json("\"2024-01-01T02:00:00+02:00\"", type(TypeId::kTimestamp)),
            "2024-01-01 00:00:00+00");
  EXPECT_EQ(json("\"2024-01-01 00:00:00.123456\"", type(TypeId::kTimestamp)),
            "2024-01-01 00:00:00.123456+00");
  EXPECT_THAT(json("\"2024-01-01 00:00:00.1234567\"", type(TypeId::kTimestamp)),
              HasSubstr("VALUE_OUT_OF_TYPE"));
  EXPECT_EQ(json("\"2024-01-01 01:02:03\"", type(TypeId::kTimestampNtz)), "2024-01-01 01:02:03");
  EXPECT_THAT(json("\"2024-01-01 01:02:03+02:00\"", type(TypeId::kTimestampNtz)),
              HasSubstr("VALUE_OUT_OF_TYPE"));
  EXPECT_EQ(json("5", type(TypeId::kString)), "5");
  EXPECT_EQ(json("{\"x\":1}", type(TypeId::kString)), "{\"x\":1}");
  EXPECT_EQ(json("123456789012345678901234567890", type(TypeId::kString)),
            "123456789012345678901234567890");
  EXPECT_EQ(json("12345678901234567.8900", type(TypeId::kString)), "12345678901234567.8900");
  EXPECT_EQ(json("{\"x\": [1.00000000000000001]}", type(TypeId::kString)),
            "{\"x\":[1.00000000000000001]}");
  EXPECT_EQ(json(R"("q\"\\ \u00e9\uD83D\uDE00\n")", type(TypeId::kString)), "q\"\\ é😀\n");
  EXPECT_EQ(json("\"aGk=\"", type(TypeId::kBinary)), "hi");
}

TEST_F(FileReaderTest, JsonNestedValuesAreExactOrErrors) {
  const auto inner = DataType::structure({Field{"x", DataType::decimal(5, 1), true, {}},
                                          Field{"y", type(TypeId::kInteger), true, {}}});
  EXPECT_EQ(json("{\"x\":1.5,\"y\":2}", inner), "{'x': 1.5, 'y': 2}");
  EXPECT_EQ(json("{}", inner), "{'x': NULL, 'y': NULL}");
  EXPECT_THAT(json("{\"x\":1.55,\"y\":2}", inner), HasSubstr("VALUE_OUT_OF_TYPE"));
  EXPECT_EQ(json("[1,null,3]", DataType::array(type(TypeId::kInteger))), "[1, NULL, 3]");
  EXPECT_THAT(json("[1,2.5]", DataType::array(type(TypeId::kInteger))),
              HasSubstr("VALUE_OUT_OF_TYPE"));
  EXPECT_EQ(json("[[1],[2]]", DataType::array(DataType::array(type(TypeId::kLong)))), "[[1], [2]]");
  EXPECT_EQ(json("{\"k\":1}", DataType::map(type(TypeId::kString), type(TypeId::kInteger))),
            "{k=1}");
  EXPECT_THAT(json("{\"k\":1.5}", DataType::map(type(TypeId::kString), type(TypeId::kInteger))),
              HasSubstr("VALUE_OUT_OF_TYPE"));
}

TEST_F(FileReaderTest, NestedNumbersKeepTheirDigits) {
  const auto inner = DataType::structure({Field{"x", DataType::decimal(38, 17), true, {}}});
  EXPECT_EQ(json("[{\"X\":1.00000000000000001}]", DataType::array(inner)),
            "[{'x': 1.00000000000000001}]");
  EXPECT_EQ(
      json("{\"k\":9007199254740993.0}", DataType::map(type(TypeId::kString), type(TypeId::kLong))),
      "{k=9007199254740993}");
  EXPECT_THAT(json("[1.00000000000000001]", DataType::array(DataType::decimal(20, 2))),
              HasSubstr("VALUE_OUT_OF_TYPE"));
  EXPECT_THAT(json("5", inner), HasSubstr("VALUE_OUT_OF_TYPE"));
}

TEST_F(FileReaderTest, JsonNamesMatchInAnyCase) {
  const auto columns = schema({{"id", type(TypeId::kLong)}, {"Naïve", type(TypeId::kString)}});
  EXPECT_THAT(read({}, columns, {write("n.json", "{\"ID\":1,\"naïve\":\"x\"}\n")}),
              ElementsAre("1|x"));
  for (const char* bad : {"{\"id\":1,\"id\":2}", "{\"id\":1,\"Id\":1}", "{\"z\":1,\"z\":1}"}) {
    const auto got =
        read({}, columns, {write("n.json", "{\"id\":0}\n" + std::string(bad) + "\n")}).at(0);
    EXPECT_THAT(got, HasSubstr("MALFORMED_RECORD"));
    EXPECT_THAT(got, HasSubstr("n.json', line 2"));
    FileOptions options;
    options.rescued_column = "r";
    EXPECT_THAT(read(options, columns, {write("n.json", std::string(bad) + "\n")}).at(0),
                HasSubstr("NULL|NULL|{\"_corrupt_record\":"));
  }
}

TEST_F(FileReaderTest, JsonMapKeyTwiceIsMalformed) {
  const auto got =
      json("{\"k\":1,\"k\":2}", DataType::map(type(TypeId::kString), type(TypeId::kInteger)));
  EXPECT_THAT(got, HasSubstr("MALFORMED_RECORD"));
  EXPECT_THAT(got, HasSubstr("one.json', line 1"));
}

TEST_F(FileReaderTest, RescuedNumbersAreAsWritten) {
  FileOptions options;
  options.rescued_column = "r";
  EXPECT_THAT(read(options, schema({{"d", DataType::decimal(20, 2)}}),
                   {write("r.json", "{\"d\":100000000000000.001,\"n\":1.0000000000000000001}\n")})
                  .at(0),
              HasSubstr("NULL|{\"d\":100000000000000.001,\"n\":1.0000000000000000001,"
                        "\"_file_path\":\"file:///"));
}

TEST_F(FileReaderTest, ByteOrderMarkIsLeftOut) {
  const auto columns = schema({{"id", type(TypeId::kLong)}});
  const std::vector<ConsumedFile> files = {write("m.json", "\xef\xbb\xbf{\"id\":1}\n{\"id\":2}\n"),
                                           write("p.json", "{\"id\":3}\n"), write("e.json", "")};
  EXPECT_THAT(read({}, columns, files), testing::UnorderedElementsAre("1", "2", "3"));
  const auto found = infer_schema(*connection_, *store_, {}, files, nullptr);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->fields.size(), 1u);
  const auto bad = read({}, columns, {write("m.json", "\xef\xbb\xbf{\"id\":1}\n{\"id\":\n")});
  EXPECT_THAT(bad.at(0), HasSubstr("m.json', line 2"));
}

TEST_F(FileReaderTest, CutMultiLineFileIsAnError) {
  FileOptions options;
  options.multi_line = true;
  const auto columns = schema({{"id", type(TypeId::kLong)}});
  EXPECT_THAT(read(options, columns, {write("w.json", "[{\"id\":\n5},{\"ID\":6}]\n")}),
              ElementsAre("5", "6"));
  for (const char* cut : {"[{\"id\":5},", "[{\"id\":5}", "[{\"id\":5,\"s\":\"]}"}) {
    const auto got = read(options, columns, {write("c.json", cut)}).at(0);
    EXPECT_THAT(got, HasSubstr("MALFORMED_RECORD"));
    EXPECT_THAT(got, HasSubstr("c.json"));
  }
  const auto got = read(options, columns, {write("c.json", "[{\"id\":5,\n\"id\":6}]")}).at(0);
  EXPECT_THAT(got, HasSubstr("MALFORMED_RECORD"));
  EXPECT_THAT(got, HasSubstr("c.json"));
}

TEST_F(FileReaderTest, EmptyParquetFileHasNoRows) {
  FileOptions options;
  options.format = FileFormat::kParquet;
  const auto columns = schema({{"id", type(TypeId::kLong)}});
  const auto empty = write("e.parquet", "");
  const auto path = (folder_ / "p.parquet").string();
  ASSERT_TRUE(connection_->execute("COPY (SELECT 7::BIGINT AS id) TO '" + path + "'").ok());
  EXPECT_TRUE(read(options, columns, {empty}).empty());
  EXPECT_THAT(read(options, columns, {empty, {path, 0, 0}}), ElementsAre("7"));
  EXPECT_TRUE(infer_schema(*connection_, *store_, options, {empty}, nullptr).ok());
}

TEST_F(FileReaderTest, MalformedJsonNamesFileAndLine) {
  const auto file = write("bad.json", "{\"a\":1}\n\n{\"a\":2\n{\"a\":3}\n");
  const auto got =
      read({}, schema({{"a", type(TypeId::kInteger)}}), {write("good.json", "{\"a\":0}\n"), file});
  ASSERT_EQ(got.size(), 1u);
  EXPECT_THAT(got[0], HasSubstr("MALFORMED_RECORD"));
  EXPECT_THAT(got[0], HasSubstr("bad.json', line 3"));
}

TEST_F(FileReaderTest, WrongValueNamesFileLineAndColumn) {
  const auto got = read({}, schema({{"a", type(TypeId::kInteger)}, {"b", type(TypeId::kString)}}),
                        {write("v.json", "{\"a\":1}\n{\"a\":\"x\",\"b\":\"y\"}\n")});
  ASSERT_EQ(got.size(), 1u);
  EXPECT_THAT(got[0], HasSubstr("line 2"));
  EXPECT_THAT(got[0], HasSubstr("'a'"));
}

TEST_F(FileReaderTest, JsonRescuesBadRecords) {
  FileOptions options;
  options.rescued_column = "_rescued_data";
  const auto got = read(
      options, schema({{"a", type(TypeId::kInteger)}, {"b", type(TypeId::kString)}}),
      {write("r.json", "{\"a\":1,\"b\":\"x\"}\n{\"a\":1.5,\"b\":\"y\",\"c\":[1]}\nnonsense\n")}, {},
      "a, b, _rescued_data");
  ASSERT_EQ(got.size(), 3u);
  EXPECT_EQ(got[0], "1|x|NULL");
  EXPECT_THAT(got[1], HasSubstr("NULL|y|{\"a\":1.5,\"c\":[1],\"_file_path\":\"file:///"));
  EXPECT_THAT(got[2],
              HasSubstr("NULL|NULL|{\"_corrupt_record\":\"nonsense\",\"_file_path\":\"file:///"));
}

TEST_F(FileReaderTest, MetadataOfJson) {
  FileRelationOptions relation;
  relation.with_metadata = true;
  relation.with_row_index = true;
  const auto got = read(
      {}, schema({{"a", type(TypeId::kInteger)}}),
      {write("m1.json", "{\"a\":1}\n{\"a\":2}\n"), write("m[2].json", "{\"a\":3}\n")}, relation,
      "a, _metadata.file_name, _metadata.file_size, _metadata.row_index, "
      "_metadata.file_modification_time");
  EXPECT_THAT(got, testing::UnorderedElementsAre("1|m1.json|16|0|2023-11-14 22:13:20+00",
                                                 "2|m1.json|16|1|2023-11-14 22:13:20+00",
                                                 "3|m[2].json|8|0|2023-11-14 22:13:20+00"));
}

TEST_F(FileReaderTest, CsvByHeaderWhateverTheOrder) {
  FileOptions options;
  options.format = FileFormat::kCsv;
  options.header = true;
  const auto columns = schema({{"id", type(TypeId::kInteger)}, {"name", type(TypeId::kString)}});
  const auto got = read(options, columns,
                        {write("a.csv", "id,name\n1,\"a \"\"q\"\"\"\n2,\n3,\"\"\n"),
                         write("b.csv", "NAME,extra,Id\nx,9,4\n"), write("c.csv", "id\n5\n")});
  EXPECT_THAT(got, testing::UnorderedElementsAre("1|a \"q\"", "2|NULL", "3|NULL", "4|x", "5|NULL"));
}

// As Spark: nullValue counts in quotes, too; an empty field is null, one in quotes only if
// nullValue is empty.
TEST_F(FileReaderTest, CsvNulls) {
  FileOptions options;
  options.format = FileFormat::kCsv;
  options.header = true;
  const auto columns = schema({{"id", type(TypeId::kInteger)}, {"name", type(TypeId::kString)}});
  const auto file = write("n.csv", "id,name\n1,NA\n2,\"NA\"\n3,\n4,\"\"\n5,\" NA\"\nNA,x\n");
  EXPECT_THAT(read(options, columns, {file}).at(0), HasSubstr("VALUE_OUT_OF_TYPE"));
  options.null_value = "NA";
  EXPECT_THAT(read(options, columns, {file}),
              testing::UnorderedElementsAre("1|NULL", "2|NULL", "3|NULL", "4|", "5| NA", "NULL|x"));
}

TEST_F(FileReaderTest, CsvErrorsNameFileAndLine) {
  FileOptions options;
  options.format = FileFormat::kCsv;
  options.header = true;
  const auto columns = schema({{"id", type(TypeId::kInteger)}, {"name", type(TypeId::kString)}});
  auto got = read(options, columns, {write("a.csv", "id,name\n1,a\n2\n")});
  EXPECT_THAT(got.at(0), HasSubstr("MALFORMED_RECORD"));
  EXPECT_THAT(got.at(0), HasSubstr("a.csv', line 3"));
  got = read(options, columns, {write("b.csv", "id,name\n1,a\n2.5,b\n")});
  EXPECT_THAT(got.at(0), HasSubstr("VALUE_OUT_OF_TYPE"));
  EXPECT_THAT(got.at(0), HasSubstr("b.csv', line 3"));
  got = read(options, columns, {write("c.csv", "foo;bar\n1;2\n")});
  EXPECT_THAT(got.at(0), HasSubstr("CSV_HEADER"));
}

TEST_F(FileReaderTest, CsvRescuesBadRecords) {
  FileOptions options;
  options.format = FileFormat::kCsv;
  options.header = true;
  options.rescued_column = "_rescued_data";
  const auto got =
      read(options, schema({{"id", type(TypeId::kInteger)}, {"name", type(TypeId::kString)}}),
           {write("a.csv", "id,name\n1,a\nx,b\n3\n4,d,e\n")}, {}, "id, name, _rescued_data");
  ASSERT_EQ(got.size(), 4u);
  EXPECT_EQ(got[0], "1|a|NULL");
  EXPECT_THAT(got[1], HasSubstr("NULL|b|{\"id\":\"x\",\"_file_path\":"));
  EXPECT_EQ(got[2], "3|NULL|NULL");
  EXPECT_THAT(got[3], HasSubstr("4|d|{\"_c2\":\"e\","));
}

TEST_F(FileReaderTest, ParquetTypesConvertExactlyOrFail) {
  const auto path = (folder_ / "p.parquet").string();
  ASSERT_TRUE(
      connection_
          ->execute("COPY (SELECT 1::BIGINT AS id, 2.5::DOUBLE AS x, 'a' AS s) TO '" + path + "'")
          .ok());
  const std::vector<ConsumedFile> files = {{path, 0, 0}};
  FileOptions options;
  options.format = FileFormat::kParquet;
  EXPECT_THAT(read(options,
                   schema({{"ID", type(TypeId::kInteger)},
                           {"x", type(TypeId::kDouble)},
                           {"z", type(TypeId::kString)}}),
                   files),
              ElementsAre("1|2.5|NULL"));
  EXPECT_THAT(read(options, schema({{"x", type(TypeId::kInteger)}}), files).at(0),
              HasSubstr("VALUE_OUT_OF_TYPE"));
}

TEST_F(FileReaderTest, InfersJson) {
  const auto file =
      write("i.json", "{\"a\":1,\"t\":\"2024-01-01\",\"n\":null}\n{\"a\":2,\"s\":{\"x\":1.5}}\n");
  const auto found = infer_schema(*connection_, *store_, {}, {file}, nullptr);
  ASSERT_TRUE(found.ok());
  std::string text;
  for (const auto& field : found->fields) text += field.name + " " + to_sql(field.type) + "; ";
  EXPECT_EQ(text, "a BIGINT; t STRING; n STRING; s STRUCT<x: DOUBLE>; ");
  const auto more =
      infer_schema(*connection_, *store_, {},
                   {write("j.json", "{\"a\":7,\"b\":true,\"s\":{\"y\":1}}\n")}, &*found);
  ASSERT_TRUE(more.ok());
  EXPECT_EQ(more->fields.size(), 5u);
  EXPECT_EQ(to_sql(more->get("s")->type), "STRUCT<x: DOUBLE, y: BIGINT>");
  const auto bad =
      infer_schema(*connection_, *store_, {}, {write("k.json", "{\"a\":\"x\"}\n")}, &*found);
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code, "SCHEMA_CONFLICT");
}

TEST_F(FileReaderTest, InfersCsv) {
  FileOptions options;
  options.format = FileFormat::kCsv;
  options.header = true;
  const auto file = write("i.csv", "id,x,d,s\n1,1.5,2024-01-01,a\n2,,2024-01-02,b\n");
  auto found = infer_schema(*connection_, *store_, options, {file}, nullptr);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(to_sql(found->get("id")->type), "STRING");
  options.infer_types = true;
  found = infer_schema(*connection_, *store_, options, {file}, nullptr);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(to_sql(found->get("id")->type), "INT");
  EXPECT_EQ(to_sql(found->get("x")->type), "DOUBLE");
  EXPECT_EQ(to_sql(found->get("d")->type), "DATE");
  EXPECT_EQ(to_sql(found->get("s")->type), "STRING");
}

TEST_F(FileReaderTest, CsvColumnsWithoutValuesTellNoType) {
  FileOptions options;
  options.format = FileFormat::kCsv;
  options.header = true;
  options.infer_types = true;
  const auto types = [&](const std::string& text, const Schema* known, const WithoutValues& rule) {
    const auto found =
        infer_schema(*connection_, *store_, options, {write("v.csv", text)}, known, rule);
    EXPECT_TRUE(found.ok()) << found.error().message;
    std::string out;
    for (const auto& field : found->fields) out += field.name + " " + to_sql(field.type) + " ";
    return out;
  };
  const auto before = infer_schema(*connection_, *store_, options,
                                   {write("i.csv", "id,x,d\n1,1.5,2024-01-01\n")}, nullptr);
  ASSERT_TRUE(before.ok());
  const std::string header = "id,x,s\n";
  EXPECT_EQ(types(header, nullptr, {}), "id STRING x STRING s STRING ");
  EXPECT_EQ(types(header, nullptr, {.wait = true}), "");
  EXPECT_EQ(types("id,x,s\n,,\n", nullptr, {.wait = true}), "id STRING x STRING s STRING ");
  EXPECT_EQ(types("id,x\n", nullptr, {.before = &*before, .wait = true}), "id INT x DOUBLE ");
  EXPECT_EQ(types("id,x,s\n7,,a\n", nullptr, {.before = &*before}), "id INT x DOUBLE s STRING ");
  EXPECT_EQ(types("id,x,s\n7,,a\n", &*before, {}), "id INT x DOUBLE d DATE s STRING ");
  EXPECT_EQ(types("id,x\n", &*before, {}), "id INT x DOUBLE d DATE ");
}

}  // namespace
}  // namespace strandline::pipeline
