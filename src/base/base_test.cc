#include <gtest/gtest.h>

#include <set>

#include "base/clock.h"
#include "base/data_type.h"
#include "base/ids.h"
#include "base/json.h"
#include "base/type_widening.h"

namespace strandline {
namespace {

DataType type(TypeId id) { return DataType::primitive(id); }

TEST(Names, FoldAsciiAndUnicodeSimply) {
  EXPECT_EQ(fold_name("UserId_1"), "userid_1");
  EXPECT_EQ(fold_name("ÄÖÜ"), "äöü");
  EXPECT_EQ(fold_name("ΣΑΣ"), fold_name("σας"));  // final sigma folds to sigma
  EXPECT_EQ(fold_name("ПРИВЕТ"), "привет");
  EXPECT_EQ(fold_name("\xE1\xBA\x9E"), "ß");  // capital sharp s, status S
  EXPECT_EQ(fold_name("straße"), "straße");   // full folding to "ss" is not simple
  EXPECT_EQ(fold_name("İ"), "İ");             // only full and Turkic foldings exist
  EXPECT_EQ(fold_name("\xF0\x90\x90\x80"), "\xF0\x90\x90\xA8");  // Deseret, beyond 16 bits
  EXPECT_TRUE(same_name("K", "\xE2\x84\xAA"));                   // Kelvin sign
  EXPECT_FALSE(same_name("a", "b"));
  EXPECT_EQ(fold_name("a\xFF\x41"), "a\xFF\x61");
}

TEST(Names, SchemaLookupIgnoresCase) {
  Schema schema{{Field{"Id", type(TypeId::kLong), true, {}},
                 Field{"größe", type(TypeId::kString), true, {}}}};
  EXPECT_EQ(schema.find("ID"), std::optional<size_t>(0));
  EXPECT_EQ(schema.find("GRÖSSE"), std::nullopt);
  EXPECT_EQ(schema.find("GRÖßE"), std::optional<size_t>(1));
  EXPECT_EQ(schema.get("nope"), nullptr);
}

TEST(DataTypes, SqlText) {
  EXPECT_EQ(to_sql(DataType::decimal(10, 2)), "DECIMAL(10,2)");
  EXPECT_EQ(
      to_sql(DataType::structure({Field{"a", type(TypeId::kInteger), true, {}},
                                  Field{"b c", DataType::array(type(TypeId::kString)), true, {}}})),
      "STRUCT<a: INT, `b c`: ARRAY<STRING>>");
  EXPECT_EQ(to_sql(DataType::map(type(TypeId::kString), type(TypeId::kLong))),
            "MAP<STRING, BIGINT>");
}

TEST(DataTypes, Sortable) {
  EXPECT_TRUE(is_sortable(type(TypeId::kBinary)));
  EXPECT_FALSE(is_sortable(DataType::map(type(TypeId::kString), type(TypeId::kLong))));
  EXPECT_FALSE(is_sortable(DataType::structure({Field{"v", type(TypeId::kVariant), true, {}}})));
}

std::string common(const DataType& a, const DataType& b) {
  const auto forward = least_common_type(a, b);
  const auto backward = least_common_type(b, a);
  EXPECT_EQ(forward.has_value(), backward.has_value());
  if (!forward || !backward) return "none";
  EXPECT_EQ(to_sql(*forward), to_sql(*backward));
  return to_sql(*forward);
}

TEST(DataTypes, LeastCommonType) {
  EXPECT_EQ(common(type(TypeId::kByte), type(TypeId::kLong)), "BIGINT");
  EXPECT_EQ(common(type(TypeId::kInteger), type(TypeId::kFloat)), "DOUBLE");
  EXPECT_EQ(common(type(TypeId::kFloat), type(TypeId::kDouble)), "DOUBLE");
  EXPECT_EQ(common(type(TypeId::kLong), type(TypeId::kDouble)), "none");
  EXPECT_EQ(common(type(TypeId::kInteger), DataType::decimal(5, 2)), "DECIMAL(12,2)");
  EXPECT_EQ(common(type(TypeId::kByte), DataType::decimal(5, 2)), "DECIMAL(5,2)");
  EXPECT_EQ(common(DataType::decimal(10, 2), DataType::decimal(8, 4)), "DECIMAL(12,4)");
  EXPECT_EQ(common(DataType::decimal(38, 0), DataType::decimal(10, 4)), "none");
  EXPECT_EQ(common(type(TypeId::kDate), type(TypeId::kTimestampNtz)), "TIMESTAMP_NTZ");
  EXPECT_EQ(common(type(TypeId::kDate), type(TypeId::kTimestamp)), "none");
  EXPECT_EQ(common(type(TypeId::kVoid), type(TypeId::kString)), "STRING");
  EXPECT_EQ(common(type(TypeId::kString), type(TypeId::kLong)), "none");
}

TEST(DataTypes, Widening) {
  const auto decimal = DataType::decimal;
  EXPECT_TRUE(can_widen(type(TypeId::kByte), type(TypeId::kShort)));
  EXPECT_TRUE(can_widen(type(TypeId::kInteger), type(TypeId::kDouble)));
  EXPECT_TRUE(can_widen(type(TypeId::kByte), decimal(12, 2)));
  EXPECT_TRUE(can_widen(decimal(5, 2), decimal(7, 4)));
  EXPECT_FALSE(can_widen(type(TypeId::kLong), type(TypeId::kDouble)));
  EXPECT_FALSE(can_widen(type(TypeId::kInteger), type(TypeId::kFloat)));
  EXPECT_FALSE(can_widen(type(TypeId::kByte), decimal(9, 0)));
  EXPECT_FALSE(can_widen(type(TypeId::kInteger), decimal(10, 1)));
  EXPECT_FALSE(can_widen(decimal(5, 2), decimal(6, 4)));
  EXPECT_FALSE(can_widen(decimal(5, 2), decimal(5, 2)));
  EXPECT_FALSE(can_widen(type(TypeId::kDate), type(TypeId::kTimestamp)));
}

std::string widened(const DataType& current, const DataType& other, bool widening = true) {
  const auto found = widened_type(current, other, widening);
  return found ? to_sql(*found) : "none";
}

TEST(DataTypes, WidenedTypesCanBeRead) {
  EXPECT_EQ(widened(type(TypeId::kByte), DataType::decimal(5, 2)), "DECIMAL(12,2)");
  EXPECT_EQ(widened(type(TypeId::kLong), DataType::decimal(5, 0)), "DECIMAL(20,0)");
  EXPECT_EQ(widened(type(TypeId::kLong), DataType::decimal(38, 20)), "none");
  EXPECT_EQ(widened(DataType::decimal(5, 2), type(TypeId::kByte)), "DECIMAL(5,2)");
  EXPECT_EQ(widened(type(TypeId::kInteger), type(TypeId::kLong), false), "none");
  EXPECT_EQ(widened(type(TypeId::kLong), type(TypeId::kInteger), false), "BIGINT");
  EXPECT_EQ(widened(type(TypeId::kVoid), type(TypeId::kDate), false), "DATE");
  const DataType narrow =
      DataType::array(DataType::structure({Field{"x", type(TypeId::kInteger), true, {}}}));
  const DataType wide = DataType::array(DataType::structure(
      {Field{"y", type(TypeId::kDate), true, {}}, Field{"X", type(TypeId::kLong), true, {}}}));
  EXPECT_EQ(widened(narrow, wide), "ARRAY<STRUCT<x: BIGINT, y: DATE>>");
  EXPECT_EQ(widened(narrow, wide, false), "none");
  EXPECT_EQ(widened(wide, narrow, false), "ARRAY<STRUCT<y: DATE, X: BIGINT>>");
}

TEST(DataTypes, LeastCommonStructMatchesByName) {
  const DataType a = DataType::structure({Field{"x", type(TypeId::kInteger), false, {}}});
  const DataType b = DataType::structure(
      {Field{"y", type(TypeId::kString), false, {}}, Field{"X", type(TypeId::kLong), false, {}}});
  const auto joined = least_common_type(a, b);
  ASSERT_TRUE(joined);
  EXPECT_EQ(to_sql(*joined), "STRUCT<x: BIGINT, y: STRING>");
  EXPECT_FALSE((*joined->fields)[0].nullable);
  EXPECT_TRUE((*joined->fields)[1].nullable);
}

TEST(JsonValues, KeepNumbersAndOrder) {
  const std::string text =
      R"({"b":1.50,"a":[true,null,-12345678901234567890123.45,"\u00e9\n\"x"],"n":{"k":9007199254740993}})";
  const auto json = Json::parse(text);
  ASSERT_TRUE(json.ok()) << json.error().message;
  EXPECT_EQ(
      json->dump(),
      R"({"b":1.50,"a":[true,null,-12345678901234567890123.45,"é\n\"x"],"n":{"k":9007199254740993}})");
  EXPECT_EQ(json->get("n")->get("k")->as_int(), 9007199254740993);
  EXPECT_EQ(json->get("b")->as_int(), std::nullopt);
  EXPECT_EQ(json->get("b")->as_double(), 1.5);
  EXPECT_EQ(json->get("zz"), nullptr);
}

TEST(JsonValues, ScalarsAtTheRoot) {
  EXPECT_EQ(Json::parse(" 7 ")->as_int(), 7);
  EXPECT_EQ(*Json::parse("\"a\"")->as_string(), "a");
  EXPECT_TRUE(Json::parse("null")->is_null());
  EXPECT_EQ(*Json::parse(R"("\ud83d\ude00\b\/")")->as_string(), "\xF0\x9F\x98\x80\b/");
}

TEST(JsonValues, BadTextIsRefused) {
  for (const char* text :
       {"", "{", "[1,]", "{\"a\":}", "1 2", "1,2", "01", "1.", "nul", "tru", "{\"a\":1}}",
        "\"\xFF\"", "[1]]", "\"a", "-", "\"\\ud800\"", "\"\\u12g4\"", "[\"a\" \"b\"]"}) {
    EXPECT_FALSE(Json::parse(text).ok()) << text;
  }
  EXPECT_FALSE(Json::parse(std::string(100000, '[')).ok());
}

TEST(JsonValues, WriterPlacesCommas) {
  JsonWriter writer;
  writer.begin_object();
  writer.key("a");
  writer.begin_array();
  writer.value(1);
  writer.value("x\ty");
  writer.null();
  writer.end_array();
  writer.key("b");
  writer.begin_object();
  writer.end_object();
  writer.key("c");
  writer.raw("[2]");
  writer.key("d");
  writer.value(false);
  writer.end_object();
  EXPECT_EQ(writer.take(), R"({"a":[1,"x\ty",null],"b":{},"c":[2],"d":false})");
}

TEST(Ids, UuidsRoundTripAndDiffer) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(new_uuid());
  EXPECT_EQ(seen.size(), 1000u);
  const std::string text = "0123abcd-4567-489a-bcde-f0123456789a";
  const auto uuid = parse_uuid(text);
  ASSERT_TRUE(uuid);
  EXPECT_EQ(to_string(*uuid), text);
  EXPECT_EQ((*uuid)[0], 0x01);
  EXPECT_FALSE(parse_uuid("0123abcd-4567-489a-bcde-f0123456789"));
  EXPECT_FALSE(parse_uuid("0123abcd-4567-489a-bcdeaf0123456789a"));
}

TEST(Clock, UtcText) {
  EXPECT_EQ(format_utc_ms(0), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(format_utc_ms(-1), "1969-12-31T23:59:59.999Z");
  EXPECT_EQ(format_utc_ms(1785574800123), "2026-08-01T09:00:00.123Z");
}

}  // namespace
}  // namespace strandline
