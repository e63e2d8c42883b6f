// Expressions: normalised Spark text, DuckDB text, and what they read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sql/duckdb_printer.h"
#include "sql/parser.h"

namespace strandline::sql {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string normalised(const std::string& text) {
  const auto parsed = parse_expression(text, "e.sql");
  if (!parsed.ok()) return "ERROR " + parsed.error().message;
  std::string once = print_spark(**parsed);
  const auto again = parse_expression(once, "again.sql");
  if (!again.ok()) return "AGAIN " + again.error().message + ": " + once;
  EXPECT_EQ(print_spark(**again), once);
  return once;
}

std::string duckdb(const std::string& text) {
  const auto parsed = parse_expression(text, "e.sql");
  if (!parsed.ok()) return "ERROR " + parsed.error().message;
  const auto printed = print_duckdb(**parsed);
  return printed.ok() ? *printed : "ERROR " + printed.error().message;
}

TEST(Expression, Precedence) {
  EXPECT_EQ(normalised("a or b and not c = d + e * f"), "a OR b AND NOT c = d + e * f");
  EXPECT_EQ(normalised("(a or b) and c"), "(a OR b) AND c");
  EXPECT_EQ(normalised("a - (b - c) - d"), "a - (b - c) - d");
  EXPECT_EQ(normalised("a | b ^ c & d << 1 + 2"), "a | b ^ c & d << 1 + 2");
  EXPECT_EQ(normalised("-a::int"), "- CAST(a AS INT)");
  EXPECT_EQ(normalised("-1::string"), "CAST(-1 AS STRING)");
  EXPECT_EQ(normalised("- (1)"), "- (1)");
  EXPECT_EQ(normalised("a = b is null"), "a = b IS NULL");
  EXPECT_EQ(normalised("not a is null"), "NOT a IS NULL");
  EXPECT_EQ(normalised("a between 1 and 2 and b"), "a BETWEEN 1 AND 2 AND b");
  EXPECT_EQ(normalised("!a"), "NOT a");
  EXPECT_EQ(normalised("a == b"), "a = b");
  EXPECT_EQ(normalised("a != b"), "a <> b");
  EXPECT_EQ(normalised("a div b"), "a DIV b");
  EXPECT_EQ(normalised("a is not distinct from b"), "a IS NOT DISTINCT FROM b");
  EXPECT_EQ(normalised("x -> 1"), "ERROR found '->', expected the end of the expression");
}

TEST(Expression, Literals) {
  EXPECT_EQ(normalised(R"('it''s')"), R"('it\'s')");
  EXPECT_EQ(normalised(R"('it\'s' "a""b")"), R"('it\'sa"b')");
  EXPECT_EQ(normalised(R"('tab\t\u0041\\')"), R"('tab\tA\\')");
  EXPECT_EQ(normalised(R"(r'raw\n')"), R"('raw\\n')");
  EXPECT_EQ(normalised(R"('50\% \_')"), R"('50\% \_')");
  EXPECT_EQ(normalised("1L + 2S + 3Y + 1.5 + 1.5D + 2F + 7BD + 1e3"),
            "1L + 2S + 3Y + 1.5BD + 1.5D + 2F + 7BD + 1e3D");
  EXPECT_EQ(normalised("2147483648"), "2147483648L");
  EXPECT_EQ(normalised("-9223372036854775808"), "-9223372036854775808L");
  EXPECT_EQ(normalised("9223372036854775808"), "9223372036854775808BD");
  EXPECT_EQ(normalised("300Y"), "ERROR '300Y' is out of range for its suffix");
  EXPECT_EQ(normalised("x'1f'"), "X'1F'");
  EXPECT_EQ(normalised("date '2024-01-01'"), "DATE '2024-01-01'");
  EXPECT_EQ(normalised("date"), "`date`");
  EXPECT_EQ(normalised("interval 1 day 2 hours"), "INTERVAL 1 DAY 2 HOUR");
  EXPECT_EQ(normalised("interval '1 day -2 hours'"), "INTERVAL '1' DAY '-2' HOUR");
  EXPECT_EQ(normalised("interval"), "`interval`");
  EXPECT_EQ(normalised(".5"), ".5BD");
}

TEST(Expression, AccessAndCalls) {
  EXPECT_EQ(normalised("a.b.c"), "a.b.c");
  EXPECT_EQ(normalised("`a.b`.`c``d`"), "`a.b`.`c``d`");
  EXPECT_EQ(normalised("_metadata.file_path"), "_metadata.file_path");
  EXPECT_EQ(normalised("a[0].b['k']"), "(a[0]).b['k']");
  EXPECT_EQ(normalised("raw:a.b[0]['c d']::int"), "CAST(raw:a.b[0]['c d'] AS INT)");
  EXPECT_EQ(normalised("STRUCT(a, b AS c)"), "struct(a, b AS c)");
  EXPECT_EQ(normalised("(a, b)"), "struct(a, b)");
  EXPECT_EQ(normalised("COUNT(distinct a) filter (where b > 1)"),
            "count(DISTINCT a) FILTER (WHERE b > 1)");
  EXPECT_EQ(normalised("sum(a) over (partition by b order by c desc rows unbounded preceding)"),
            "sum(a) OVER (PARTITION BY b ORDER BY c DESC NULLS LAST ROWS BETWEEN UNBOUNDED "
            "PRECEDING AND CURRENT ROW)");
  EXPECT_EQ(normalised("last(a) ignore nulls over w"), "last(a) IGNORE NULLS OVER (w)");
  EXPECT_EQ(normalised("transform(a, (x, i) -> x + i)"), "transform(a, (x, i) -> x + i)");
  EXPECT_EQ(normalised("filter(a, x -> x > 1)"), "filter(a, x -> x > 1)");
  EXPECT_EQ(normalised("extract(year from d)"), "date_part('year', d)");
  EXPECT_EQ(normalised("current_timestamp"), "current_timestamp()");
  EXPECT_EQ(normalised("left(a, 1) || right(a, 1)"), "left(a, 1) || right(a, 1)");
  EXPECT_EQ(normalised("case a when 1 then 'x' else 'y' end"),
            "CASE a WHEN 1 THEN 'x' ELSE 'y' END");
  EXPECT_EQ(normalised("datediff(day, a)"), "datediff(day, a)");
  EXPECT_EQ(normalised("datediff(day, a, b)"), "timestampdiff('day', a, b)");
  EXPECT_EQ(normalised("a.f(1)"),
            "ERROR the function name a.f in several parts is not supported: only built-in "
            "functions exist");
}

TEST(Expression, DuckdbQuotesNamesAndKeepsMeaning) {
  EXPECT_EQ(duckdb("`odd \"name` + 1"), "(\"odd \"\"name\" + 1)");
  EXPECT_EQ(duckdb("operation = \"DELETE\""), "(\"operation\" = 'DELETE')");
  EXPECT_EQ(duckdb("a <=> b"), "(\"a\" IS NOT DISTINCT FROM \"b\")");
  EXPECT_EQ(duckdb("STRUCT(ts, _metadata.file_path)"),
            "{'ts': \"ts\", 'file_path': \"_metadata\".\"file_path\"}");
  EXPECT_EQ(duckdb("TIMESTAMP '2024-01-01'"), "CAST('2024-01-01' AS TIMESTAMPTZ)");
  EXPECT_EQ(duckdb("-2147483648"), "CAST(-2147483648 AS INTEGER)");
  EXPECT_EQ(duckdb("1D / 2"), "(CAST(1 AS DOUBLE) / 2)");
  EXPECT_EQ(duckdb("max(a) OVER (ORDER BY b)"), "max(\"a\") OVER (ORDER BY \"b\" ASC NULLS FIRST)");
  EXPECT_THAT(duckdb("a IN (SELECT 1)"), HasSubstr("ERROR a subquery in this place"));
  EXPECT_THAT(duckdb("CAST(a AS STRUCT<x: INT>)"), HasSubstr("ERROR CAST to a STRUCT"));
  EXPECT_EQ(duckdb("a AND b AND c"), "(\"a\" AND \"b\" AND \"c\")");
}

TEST(Expression, NowIsThePlannedTime) {
  PrintOptions options;
  options.now_us = -1;
  EXPECT_EQ(*print_duckdb(**parse_expression("now()", "e"), options),
            "CAST('1969-12-31 23:59:59.999999+00' AS TIMESTAMPTZ)");
  options.now_us = 951782400000000;  // a leap day
  EXPECT_EQ(*print_duckdb(**parse_expression("current_date()", "e"), options),
            "CAST(CAST('2000-02-29 00:00:00.000000+00' AS TIMESTAMPTZ) AS DATE)");
}

TEST(Expression, Questions) {
  const auto columns = [](const std::string& text) {
    std::vector<std::string> names;
    for (const Name& name : columns_read(**parse_expression(text, "e"))) names.push_back(name.text);
    return names;
  };
  EXPECT_THAT(columns("a + A + s.x + `d.e` + t.`d.e`"), ElementsAre("a", "s.x", "d.e", "t.`d.e`"));
  EXPECT_THAT(columns("transform(xs, x -> x + y)"), ElementsAre("xs", "y"));
  EXPECT_THAT(columns("sum(a) FILTER (WHERE b) OVER (PARTITION BY c ORDER BY d)"),
              ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(columns("1"), IsEmpty());

  const auto calls =
      nondeterministic_calls(**parse_expression("current_timestamp() > a AND rand() > 1", "e"));
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].text, "rand");
  EXPECT_EQ(calls[0].place.column, 29);
  EXPECT_EQ(nondeterministic_calls(**parse_query("SELECT a FROM (SELECT uuid() AS a)", "q")).size(),
            1u);

  EXPECT_EQ(sequence_parts(**parse_expression("STRUCT(a, b)", "e")).size(), 2u);
  EXPECT_EQ(sequence_parts(**parse_expression("a", "e")).size(), 1u);
  EXPECT_EQ(literal_text(**parse_expression("-5", "e")), "-5");
  EXPECT_EQ(literal_text(**parse_expression("a", "e")), std::nullopt);
  EXPECT_EQ(literal_text(**parse_expression("NULL", "e")), std::nullopt);
}

TEST(Expression, LimitsInsteadOfFullStacks) {
  EXPECT_THAT(normalised(std::string(100000, '(')), HasSubstr("nested more than"));
  EXPECT_THAT(normalised(std::string(100000, '-') + "a"), HasSubstr("ERROR"));
  EXPECT_THAT(normalised("NOT " + std::string(4000, '!') + "a"), HasSubstr("nested more than"));
  std::string chain = "a";
  for (int i = 0; i < 5000; ++i) chain += " + a";
  EXPECT_THAT(normalised(chain), HasSubstr("too long"));
  std::string fits = "a = 0";
  for (int i = 1; i < 900; ++i) fits += " OR a = " + std::to_string(i);
  EXPECT_EQ(normalised(fits), fits);
  EXPECT_THAT(duckdb(fits), HasSubstr("(\"a\" = 899))"));
  std::string joined = "a";
  for (int i = 0; i < 900; ++i) joined += " || b";
  EXPECT_THAT(duckdb(joined), HasSubstr("(CASE WHEN"));
  std::string nested = "a";
  for (int i = 0; i < 60; ++i) nested = "b[" + nested + "]";
  constexpr size_t kMostOfEach = 3000;
  EXPECT_LT(duckdb(nested).size(), 60 * kMostOfEach);
  EXPECT_THAT(duckdb(nested), HasSubstr("list_transform"));
  const std::string long_text(1 << 21, 'x');
  EXPECT_THAT(duckdb("'" + long_text + "'"), HasSubstr("an expression as nested as this"));
}

}  // namespace
}  // namespace strandline::sql
