#include "delta/file_filter.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "delta/test_support.h"

namespace strandline::delta {
namespace {

Field field(const std::string& name, DataType type) { return {name, std::move(type), true, {}}; }
Field field(const std::string& name, TypeId id) { return field(name, DataType::primitive(id)); }

class FileFilterTest : public ::testing::Test {
 protected:
  FileFilterTest() {
    table_.schema.fields = {
        field("i", TypeId::kLong),
        field("f", TypeId::kFloat),
        field("d", TypeId::kDouble),
        field("dec", DataType::decimal(38, 10)),
        field("s", TypeId::kString),
        field("day", TypeId::kDate),
        field("ts", TypeId::kTimestamp),
        field("ntz", TypeId::kTimestampNtz),
        field("flag", TypeId::kBoolean),
        field("blob", TypeId::kBinary),
        field("list", DataType::array(DataType::primitive(TypeId::kInteger))),
        field("st",
              DataType::structure({field("a", TypeId::kInteger), field("B", TypeId::kString)})),
        field("p", TypeId::kString),
        field("pi", TypeId::kInteger),
        field("pts", TypeId::kTimestamp),
    };
    table_.metadata.partition_columns = {"p", "pi", "pts"};
  }

  static AddFile file(const std::string& stats) {
    AddFile add;
    add.path = "f.parquet";
    add.partition_values = {{"p", std::nullopt}, {"pi", std::nullopt}, {"pts", std::nullopt}};
    add.stats = stats;
    return add;
  }
  // A file of ten rows of which one column has bounds.
  static AddFile bounds(const std::string& column, const std::string& min, const std::string& max,
                        const std::string& nulls = "0") {
    return file(fmt::format(
        R"({{"numRecords":10,"minValues":{{"{0}":{1}}},"maxValues":{{"{0}":{2}}},"nullCount":{{"{0}":{3}}}}})",
        column, min, max, nulls));
  }
  static AddFile partition(const std::string& column, std::optional<std::string> value) {
    AddFile add = file(R"({"numRecords":10})");
    add.partition_values[column] = std::move(value);
    return add;
  }

  FileFilter is(const std::string& column, CompareOp op, TypeId type, const std::string& text) {
    return FileFilter::compare(table_, {column}, op, {type, text});
  }
  static bool keeps(const FileFilter& filter, const AddFile& add) {
    return FileJudge(filter).may_match(add);
  }
  static bool keeps_not(FileFilter filter, const AddFile& add) {
    return keeps(FileFilter::negation(std::move(filter)), add);
  }

  Snapshot table_;
};

constexpr auto kEq = CompareOp::kEqual;
constexpr auto kNe = CompareOp::kNotEqual;
constexpr auto kLt = CompareOp::kLess;
constexpr auto kLe = CompareOp::kLessEqual;
constexpr auto kGt = CompareOp::kGreater;
constexpr auto kGe = CompareOp::kGreaterEqual;

TEST_F(FileFilterTest, ComparesIntegersWithBounds) {
  const AddFile add = bounds("i", "10", "20");
  const auto kept = [&](CompareOp op, const std::string& value) {
    return keeps(is("i", op, TypeId::kInteger, value), add);
  };
  EXPECT_FALSE(kept(kEq, "9"));
  EXPECT_TRUE(kept(kEq, "10"));
  EXPECT_TRUE(kept(kEq, "20"));
  EXPECT_FALSE(kept(kEq, "21"));
  EXPECT_FALSE(kept(kLt, "10"));
  EXPECT_TRUE(kept(kLe, "10"));
  EXPECT_FALSE(kept(kGt, "20"));
  EXPECT_TRUE(kept(kGe, "20"));
  EXPECT_TRUE(kept(kNe, "10"));
  EXPECT_FALSE(keeps(is("i", kNe, TypeId::kInteger, "10"), bounds("i", "10", "10")));
  EXPECT_FALSE(keeps_not(is("i", kLe, TypeId::kInteger, "20"), add));
  EXPECT_TRUE(keeps_not(is("i", kLt, TypeId::kInteger, "20"), add));
  // A constant beyond the type, and ones of other number types.
  EXPECT_FALSE(kept(kGt, "99999999999999999999"));
  EXPECT_TRUE(kept(kLt, "99999999999999999999"));
  EXPECT_FALSE(keeps(is("i", kGt, TypeId::kDecimal, "20.0"), add));
  EXPECT_TRUE(keeps(is("i", kGt, TypeId::kDecimal, "19.99"), add));
  EXPECT_FALSE(keeps(is("i", kGt, TypeId::kDouble, "2e1"), add));
  EXPECT_FALSE(keeps(is("i", kEq, TypeId::kString, "21"), add));
  EXPECT_TRUE(keeps(is("i", kEq, TypeId::kString, "2 1"), add)) << "not an exact number";
  EXPECT_TRUE(keeps(is("i", kEq, TypeId::kBoolean, "true"), add)) << "not of the same kind";
}

TEST_F(FileFilterTest, ADoubleBesideLongsComparesAsTheEngineRounds) {
  const AddFile add = bounds("i", "9007199254740993", "9007199254740993");
  EXPECT_TRUE(keeps(is("i", kEq, TypeId::kDouble, "9007199254740992"), add));
}

TEST_F(FileFilterTest, UnknownCellsAreUnknownAlone) {
  const auto filter = FileFilter::all_of(
      {is("i", kGt, TypeId::kInteger, "100"), is("s", kEq, TypeId::kString, "x")});
  // The text's bound is half of a surrogate pair; the number's still counts.
  const std::string half = R"({"numRecords":1,"minValues":{"s":"\ud83d","i":1},)";
  EXPECT_FALSE(keeps(filter, file(half + R"("maxValues":{"s":"\ud83d","i":99}})")));
  EXPECT_TRUE(keeps(filter, file(half + R"("maxValues":{"s":"\ud83d","i":101}})")));
  EXPECT_TRUE(keeps(filter, file(half + R"("maxValues":{"s":"z","i":"99"}})")))
      << "of another kind";
  EXPECT_TRUE(keeps(filter, file(half + R"("maxValues":{"s":"z","i":null}})")));
  EXPECT_TRUE(keeps(filter, file(half + R"("maxValues":{"s":"z","i":{"i":1}}})")));
  EXPECT_TRUE(keeps(filter, file(half + R"("maxValues":[])")));
  EXPECT_TRUE(keeps(filter, file(R"({"maxValues":{"i":99)"))) << "cut short";
  EXPECT_TRUE(keeps(filter, file("")));
  EXPECT_TRUE(keeps(filter, file("null")));
  AddFile without = file("");
  without.stats.reset();
  EXPECT_TRUE(keeps(filter, without));
  EXPECT_TRUE(keeps(is("i", kEq, TypeId::kInteger, "5"), bounds("i", "9", "1"))) << "upside down";
  EXPECT_TRUE(keeps(is("i", kGt, TypeId::kInteger, "100"), bounds("I", "1", "9")))
      << "statistics know names exactly";
}

TEST_F(FileFilterTest, CountsOfNulls) {
  const auto null = FileFilter::is_null(table_, {"i"});
  const auto equal = is("i", kEq, TypeId::kInteger, "1");
  const AddFile none = bounds("i", "1", "1", "0");
  const AddFile some = bounds("i", "1", "1", "3");
  const AddFile all = file(R"({"numRecords":10,"nullCount":{"i":10}})");
  const AddFile unknown = file(R"({"numRecords":10,"nullCount":{"i":-1}})");
  EXPECT_FALSE(keeps(null, none));
  EXPECT_TRUE(keeps(null, some));
  EXPECT_TRUE(keeps(null, all));
  EXPECT_TRUE(keeps(null, unknown));
  EXPECT_TRUE(keeps_not(null, none));
  EXPECT_TRUE(keeps_not(null, some));
  EXPECT_FALSE(keeps_not(null, all));
  EXPECT_FALSE(keeps(equal, all));
  EXPECT_FALSE(keeps_not(equal, all)) << "NOT NULL is null, not true";
  EXPECT_FALSE(keeps_not(equal, some));
  EXPECT_TRUE(keeps(FileFilter::is(equal, Truth::kNull), some));
  EXPECT_FALSE(keeps(FileFilter::is(equal, Truth::kNull), none));
  EXPECT_FALSE(keeps(FileFilter::is(equal, Truth::kFalse), some));
  // <=> is never null.
  const auto safe = FileFilter::null_safe_equal(table_, {"i"}, {TypeId::kInteger, "1"});
  EXPECT_TRUE(keeps_not(safe, some));
  EXPECT_FALSE(keeps_not(safe, none));
  EXPECT_FALSE(keeps(FileFilter::null_safe_equal(table_, {"i"}, {}), none));
  EXPECT_TRUE(keeps(FileFilter::null_safe_equal(table_, {"i"}, {}), some));
  EXPECT_FALSE(keeps(is("i", kEq, TypeId::kVoid, ""), some)) << "= NULL is never true";
  // Wide bounds: rows are gone, the count of nulls counts where it says none or all.
  AddFile wide = some;
  wide.stats = std::string(*some.stats).insert(1, R"("tightBounds":false,)");
  EXPECT_TRUE(keeps(null, wide));
  EXPECT_TRUE(keeps_not(null, wide));
  // Lists are counted in several ways.
  EXPECT_TRUE(keeps(FileFilter::is_null(table_, {"list"}),
                    file(R"({"numRecords":10,"nullCount":{"list":0}})")));
}

TEST_F(FileFilterTest, ThreeValuesJoin) {
  const AddFile add = bounds("i", "1", "5", "2");
  const auto no = is("i", kGt, TypeId::kInteger, "9");   // false or null
  const auto yes = is("i", kLt, TypeId::kInteger, "9");  // true or null
  const FileFilter unknown;
  const auto all = [](const FileFilter& a, const FileFilter& b) {
    return FileFilter::all_of({a, b});
  };
  const auto any = [](const FileFilter& a, const FileFilter& b) {
    return FileFilter::any_of({a, b});
  };
  EXPECT_FALSE(keeps(all(no, unknown), add));
  EXPECT_TRUE(keeps(any(no, unknown), add));
  EXPECT_TRUE(keeps(all(yes, unknown), add));
  EXPECT_TRUE(keeps_not(all(no, unknown), add));
  EXPECT_FALSE(keeps_not(any(yes, yes), add));
  EXPECT_TRUE(keeps_not(any(no, no), add));
  EXPECT_FALSE(keeps_not(FileFilter::constant(Truth::kTrue), add));
  EXPECT_FALSE(keeps_not(FileFilter::constant(Truth::kNull), add));
  EXPECT_TRUE(keeps(FileFilter::all_of({}), add));
  EXPECT_FALSE(keeps(FileFilter::any_of({}), add));
  EXPECT_TRUE(FileJudge(unknown).keeps_all());
  EXPECT_FALSE(FileJudge(FileFilter::constant(Truth::kFalse)).keeps_all());
}

TEST_F(FileFilterTest, StringsCompareByCodePointAndBoundsMayBeCut) {
  const AddFile add = bounds("s", "\"b\"", R"("m")");
  EXPECT_FALSE(keeps(is("s", kLt, TypeId::kString, "b"), add));
  EXPECT_FALSE(keeps(is("s", kEq, TypeId::kString, "mm"), add));
  EXPECT_FALSE(keeps(is("s", kEq, TypeId::kString, "B"), add)) << "upper case is before";
  EXPECT_FALSE(keeps(is("s", kEq, TypeId::kString, ""), add));
  EXPECT_TRUE(keeps(is("s", kEq, TypeId::kInteger, "5"), add));
  // A cut maximum ends in a character above what was cut.
  const AddFile cut = bounds("s", "\"aa\"", "\"aa\x7f\"");
  EXPECT_TRUE(keeps(is("s", kEq, TypeId::kString, "aazzz"), cut));
  // U+10000 is above U+FFFF by code point, below it in UTF-16.
  EXPECT_FALSE(keeps(is("s", kGt, TypeId::kString, "\xF0\x90\x80\x80"),
                     bounds("s", "\"a\"", "\"\xEF\xBF\xBF\"")));
  EXPECT_TRUE(keeps(is("s", kGt, TypeId::kString, "\xEF\xBF\xBF"),
                    bounds("s", "\"a\"", R"("\ud800\udc00")")));
  // Early writers cut with U+FFFD, whatever followed.
  EXPECT_TRUE(keeps(is("s", kEq, TypeId::kString, "a\xF0\x9F\x98\x80"),
                    bounds("s", "\"a\"", R"("a\ufffd")")));
}

TEST_F(FileFilterTest, Prefixes) {
  const auto starts = [&](const std::string& prefix) {
    return FileFilter::starts_with(table_, {"s"}, prefix);
  };
  const AddFile add = bounds("s", "\"cat\"", "\"dog\"");
  EXPECT_TRUE(keeps(starts("c"), add));
  EXPECT_TRUE(keeps(starts("cat"), add));
  EXPECT_TRUE(keeps(starts("catalogue"), add));
  EXPECT_TRUE(keeps(starts("d"), add));
  EXPECT_FALSE(keeps(starts("b"), add));
  EXPECT_FALSE(keeps(starts("cas"), add));
  EXPECT_FALSE(keeps(starts("doh"), add));
  EXPECT_TRUE(keeps(starts(""), add));
  EXPECT_FALSE(keeps_not(starts("do"), bounds("s", "\"dog\"", "\"dot\"")));
  EXPECT_TRUE(keeps(FileFilter::starts_with(table_, {"i"}, "5"), bounds("i", "1", "2")));
}

TEST_F(FileFilterTest, FloatingPointNumbers) {
  // NaN is above everything, and bounds may have left it out.
  const AddFile add = bounds("d", "1.5", "2.5");
  EXPECT_TRUE(keeps(is("d", kGt, TypeId::kDouble, "9"), add));
  EXPECT_FALSE(keeps(is("d", kEq, TypeId::kDouble, "9"), add));
  EXPECT_FALSE(keeps(is("d", kLt, TypeId::kDecimal, "1.5"), add));
  EXPECT_TRUE(keeps_not(is("d", kLe, TypeId::kDouble, "2.5"), add));
  EXPECT_TRUE(keeps(is("d", kNe, TypeId::kDouble, "1"), bounds("d", "1", "1")));
  EXPECT_TRUE(keeps(is("d", kLt, TypeId::kDouble, "0"), bounds("d", "\"NaN\"", "\"NaN\"")));
  EXPECT_TRUE(keeps(is("d", kEq, TypeId::kDouble, "NaN"), add));
  // The two zeros are one.
  EXPECT_TRUE(keeps(is("d", kEq, TypeId::kDouble, "-0.0"), bounds("d", "0.0", "0.0")));
  EXPECT_TRUE(keeps(is("d", kGe, TypeId::kDouble, "0.0"), bounds("d", "-0.0", "-0.0")));
  // 0.1 as a float is not 0.1: engines differ in which they compare.
  const AddFile tenth = bounds("f", "0.1", "0.1");
  EXPECT_TRUE(keeps(is("f", kEq, TypeId::kDecimal, "0.1"), tenth));
  EXPECT_TRUE(keeps(is("f", kGt, TypeId::kDecimal, "0.1"), tenth));
  EXPECT_FALSE(keeps(is("f", kLt, TypeId::kDecimal, "0.09"), tenth));
}

TEST_F(FileFilterTest, ColumnsThatWereNarrowerOnce) {
  table_.schema.fields[2].metadata["delta.typeChanges"] =
      R"([{"fromType":"float","toType":"double"}])";
  // The file holds the float 0.1, which is 0.100000001490116 as a double.
  EXPECT_TRUE(
      keeps(is("d", kEq, TypeId::kDouble, "0.10000000149011612"), bounds("d", "0.1", "0.1")));
  EXPECT_FALSE(keeps(is("d", kEq, TypeId::kDouble, "0.2"), bounds("d", "0.1", "0.1")));
  EXPECT_FALSE(keeps(is("ntz", kGt, TypeId::kTimestampNtz, "2024-01-02"),
                     bounds("ntz", "\"2023-01-01\"", "\"2024-01-01\"")));
  EXPECT_TRUE(keeps(is("ntz", kGe, TypeId::kTimestampNtz, "2024-01-01"),
                    bounds("ntz", "\"2023-01-01\"", "\"2024-01-01\"")));
  EXPECT_FALSE(keeps(is("dec", kGt, TypeId::kDecimal, "7.5"), bounds("dec", "1", "7")))
      << "were integers";
}

TEST_F(FileFilterTest, DecimalsNeverPassThroughDoubles) {
  const AddFile add = bounds("dec", "1234567890123456789012345678.0000000001",
                             "1234567890123456789012345678.0000000002");
  const auto kept = [&](CompareOp op, const std::string& text) {
    return keeps(is("dec", op, TypeId::kDecimal, text), add);
  };
  EXPECT_FALSE(kept(kEq, "1234567890123456789012345678.0000000003"));
  EXPECT_TRUE(kept(kEq, "1234567890123456789012345678.00000000020"));
  EXPECT_FALSE(kept(kLt, "1234567890123456789012345678.0000000001"));
  EXPECT_FALSE(keeps(is("dec", kLt, TypeId::kDecimal, "-1.50"), bounds("dec", "-1.5", "0E-10")));
  EXPECT_TRUE(keeps(is("dec", kLe, TypeId::kDecimal, "-1.50"), bounds("dec", "-1.5", "0E-10")));
  EXPECT_FALSE(keeps(is("dec", kGt, TypeId::kInteger, "0"), bounds("dec", "-1.5", "0E-10")));
  EXPECT_TRUE(keeps(is("dec", kEq, TypeId::kInteger, "1200"), bounds("dec", "1.2E+3", "1.2E+3")));
  EXPECT_FALSE(keeps(is("dec", kEq, TypeId::kInteger, "1201"), bounds("dec", "1.2E+3", "1.2E+3")));
}

TEST_F(FileFilterTest, TimestampsAreCutToMilliseconds) {
  const AddFile add = bounds("ts", "\"2024-01-01T00:00:00.123Z\"", "\"2024-01-01T00:00:00.456Z\"");
  const auto kept = [&](CompareOp op, const std::string& text) {
    return keeps(is("ts", op, TypeId::kTimestamp, text), add);
  };
  EXPECT_TRUE(kept(kEq, "2024-01-01 00:00:00.456999"));
  EXPECT_FALSE(kept(kEq, "2024-01-01 00:00:00.458"));
  EXPECT_FALSE(kept(kLt, "2024-01-01 00:00:00.123"));
  EXPECT_FALSE(kept(kEq, "2024-01-01 01:00:00.456+00"));
  EXPECT_TRUE(kept(kEq, "2024-01-01 02:00:00.300+02:00"));
  EXPECT_TRUE(kept(kEq, "2024-01-01T00:00:00.3000000001Z")) << "more than microseconds";
  EXPECT_FALSE(keeps(is("ts", kGe, TypeId::kDate, "2024-01-02"), add));
  EXPECT_FALSE(keeps(is("ts", kGe, TypeId::kString, "2024-01-02"), add));
  EXPECT_TRUE(keeps(is("ts", kGe, TypeId::kString, "2024-1-2"), add)) << "no exact text";
  // Before 1970 some writers cut upwards.
  EXPECT_TRUE(keeps(is("ts", kEq, TypeId::kTimestamp, "1969-12-31 23:59:59.4995"),
                    bounds("ts", "\"1969-12-31T23:59:59.500Z\"", "\"1969-12-31T23:59:59.500Z\"")));
  // An unreadable year is unknown, alone.
  const AddFile wild =
      bounds("ts", "\"2024-01-01T00:00:00.000Z\"", "\"+48690-07-02T22:50:38.211Z\"");
  EXPECT_TRUE(keeps(is("ts", kGt, TypeId::kTimestamp, "2050-01-01"), wild));
  EXPECT_FALSE(keeps(is("ts", kLt, TypeId::kTimestamp, "2023-01-01"), wild));
  EXPECT_FALSE(keeps(
      is("ts", kGe, TypeId::kTimestamp, "2024-01-01 10:00:00"),
      bounds("ts", "\"2024-01-01T00:00:00.000-08:00\"", "\"2024-01-01T01:00:00.000-08:00\"")));
  // A zone in the text beside a wall clock reading is the engine's affair.
  const AddFile clock = bounds("ntz", "\"2024-01-01T00:00:00.000\"", "\"2024-01-01T00:00:00.000\"");
  EXPECT_FALSE(keeps(is("ntz", kGt, TypeId::kString, "2024-01-02 00:00:00"), clock));
  EXPECT_TRUE(keeps(is("ntz", kGt, TypeId::kString, "2024-01-02 00:00:00+05"), clock));
}

TEST_F(FileFilterTest, Dates) {
  const AddFile add = bounds("day", "\"2024-02-28\"", "\"2024-02-29\"");
  EXPECT_FALSE(keeps(is("day", kGt, TypeId::kDate, "2024-02-29"), add));
  EXPECT_TRUE(keeps(is("day", kGe, TypeId::kString, "2024-02-29"), add));
  EXPECT_FALSE(keeps(is("day", kGe, TypeId::kTimestamp, "2024-02-29 00:00:01"), add));
  EXPECT_TRUE(keeps(is("day", kGt, TypeId::kDate, "2024-02-30"), add)) << "no such day";
}

TEST_F(FileFilterTest, PartitionValuesAreExact) {
  EXPECT_FALSE(keeps(is("p", kNe, TypeId::kString, "x"), partition("p", "x")));
  EXPECT_TRUE(keeps(is("p", kEq, TypeId::kString, "x"), partition("p", "x")));
  EXPECT_FALSE(keeps(is("pi", kEq, TypeId::kInteger, "7"), partition("pi", "8")));
  EXPECT_TRUE(keeps(is("pi", kEq, TypeId::kInteger, "7"), partition("pi", "007x"))) << "unreadable";
  EXPECT_FALSE(keeps(is("pts", kGt, TypeId::kTimestamp, "2024-01-01 00:00:00"),
                     partition("pts", "2024-01-01 00:00:00")))
      << "no millisecond more";
  EXPECT_TRUE(keeps(is("pts", kEq, TypeId::kTimestamp, "2024-01-01 00:00:00"),
                    partition("pts", "2024-01-01T00:00:00.000000Z")));
  // Null, also as an empty text.
  for (const AddFile& null : {partition("p", std::nullopt), partition("p", "")}) {
    EXPECT_FALSE(keeps(is("p", kEq, TypeId::kString, ""), null));
    EXPECT_FALSE(keeps(is("p", kNe, TypeId::kString, "x"), null));
    EXPECT_TRUE(keeps(FileFilter::is_null(table_, {"P"}), null));
    EXPECT_FALSE(keeps_not(FileFilter::is_null(table_, {"p"}), null));
  }
  EXPECT_FALSE(keeps(FileFilter::is_null(table_, {"p"}), partition("p", "x")));
  AddFile broken = partition("p", "x");
  broken.partition_values.clear();
  EXPECT_TRUE(keeps(is("p", kEq, TypeId::kString, "y"), broken));
}

TEST_F(FileFilterTest, PhysicalNamesAndMembers) {
  table_.protocol.min_reader_version = 2;
  table_.protocol.min_writer_version = 5;
  table_.metadata.configuration["delta.columnMapping.mode"] = "name";
  for (Field& column : table_.schema.fields)
    column.metadata["delta.columnMapping.physicalName"] = "\"col-" + column.name + "\"";
  auto members = *table_.schema.fields[11].type.fields;
  members[0].metadata["delta.columnMapping.physicalName"] = "\"col-a\"";
  members[1].metadata["delta.columnMapping.physicalName"] = "\"col-b\"";
  table_.schema.fields[11].type = DataType::structure(members);
  const auto member = FileFilter::compare(table_, {"ST", "A"}, kEq, {TypeId::kInteger, "5"});
  const auto nested = [&](const std::string& outer, const std::string& inner) {
    return file(fmt::format(
        R"({{"numRecords":1,"minValues":{{"{0}":{{"{1}":6}}}},"maxValues":{{"{0}":{{"{1}":7}}}}}})",
        outer, inner));
  };
  EXPECT_FALSE(keeps(member, nested("col-st", "col-a")));
  EXPECT_TRUE(keeps(member, nested("st", "a"))) << "logical names are not the file's";
  EXPECT_FALSE(keeps(is("i", kEq, TypeId::kInteger, "5"), bounds("col-i", "6", "7")));
  AddFile add = file("{}");
  add.partition_values = {{"col-p", "x"}};
  EXPECT_FALSE(keeps(is("p", kEq, TypeId::kString, "y"), add));
  EXPECT_TRUE(keeps(FileFilter::compare(table_, {"st", "gone"}, kEq, {TypeId::kInteger, "5"}),
                    nested("col-st", "col-a")));
}

TEST_F(FileFilterTest, Lists) {
  const auto in = [&](std::vector<std::string> values) {
    std::vector<FilterLiteral> literals;
    for (auto& value : values)
      literals.push_back(value == "NULL" ? FilterLiteral{}
                                         : FilterLiteral{TypeId::kInteger, value});
    return FileFilter::in(table_, {"i"}, literals);
  };
  EXPECT_TRUE(keeps(in({"50", "1", "15"}), bounds("i", "10", "20")));
  EXPECT_FALSE(keeps(in({"50", "1", "21", "9"}), bounds("i", "10", "20")));
  EXPECT_FALSE(keeps(in({"50", "NULL"}), bounds("i", "10", "20")));
  EXPECT_FALSE(keeps(in({}), bounds("i", "10", "20")));
  EXPECT_FALSE(keeps_not(in({"50", "NULL"}), bounds("i", "10", "20"))) << "null, not true";
  EXPECT_TRUE(keeps_not(in({"50"}), bounds("i", "10", "20")));
  EXPECT_FALSE(keeps_not(in({"5", "6"}), bounds("i", "5", "5")));
  const auto mixed = FileFilter::in(
      table_, {"i"}, {{TypeId::kInteger, "5"}, {TypeId::kDecimal, "7.0"}, {TypeId::kDouble, "9"}});
  EXPECT_TRUE(keeps(mixed, bounds("i", "7", "7")));
  EXPECT_TRUE(keeps(mixed, bounds("i", "9", "9")));
  EXPECT_FALSE(keeps(mixed, bounds("i", "8", "8")));
  EXPECT_TRUE(
      keeps(FileFilter::in(table_, {"i"}, {{TypeId::kString, "x"}}), bounds("i", "8", "8")));
}

TEST_F(FileFilterTest, Ranges) {
  const auto number = [](const std::string& text) { return FilterLiteral{TypeId::kLong, text}; };
  const auto ranges = FileFilter::in_ranges(
      table_, {"i"},
      {{number("30"), number("40")}, {number("1"), number("5")}, {number("4"), number("6")}},
      false);
  EXPECT_TRUE(keeps(ranges, bounds("i", "6", "9")));
  EXPECT_FALSE(keeps(ranges, bounds("i", "7", "29")));
  EXPECT_TRUE(keeps(ranges, bounds("i", "35", "36")));
  EXPECT_FALSE(keeps(ranges, bounds("i", "41", "99", "4")));
  EXPECT_TRUE(keeps(FileFilter::in_ranges(table_, {"i"}, {}, true), bounds("i", "41", "99", "4")));
  EXPECT_FALSE(keeps(FileFilter::in_ranges(table_, {"i"}, {}, true), bounds("i", "41", "99", "0")));
  EXPECT_FALSE(
      keeps(FileFilter::in_ranges(table_, {"i"}, {}, false), bounds("i", "41", "99", "0")));
  EXPECT_TRUE(keeps_not(ranges, bounds("i", "35", "36"))) << "a range need not be full";
}

TEST_F(FileFilterTest, SelectsFilesAndSaysWhy) {
  AddFile by_partition = bounds("i", "1", "9");
  by_partition.partition_values["p"] = "y";
  AddFile by_statistics = bounds("i", "1", "4");
  by_statistics.partition_values["p"] = "x";
  AddFile kept = bounds("i", "1", "9");
  kept.partition_values["p"] = "x";
  table_.files = {by_partition, kept, by_statistics, kept};
  const auto selection =
      select_files(table_, FileFilter::all_of({is("p", kEq, TypeId::kString, "x"),
                                               is("i", kEq, TypeId::kInteger, "5")}));
  EXPECT_EQ(selection.files, (std::vector<size_t>{1, 3}));
  EXPECT_EQ(selection.to_string(),
            "read 2 of 4 (partition values skipped 1, statistics skipped 1)");
  EXPECT_EQ(select_files(table_, FileFilter()).files.size(), 4u);
  EXPECT_EQ(select_files(table_, FileFilter::constant(Truth::kFalse)).files.size(), 0u);
}

}  // namespace
}  // namespace strandline::delta
