// Queries: table uses, resolution, and the Spark text's fixpoint.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "sql/duckdb_printer.h"
#include "sql/parser.h"

namespace strandline::sql {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> uses(const std::string& text) {
  std::vector<std::string> result;
  const auto parsed = parse_query(text, "q.sql");
  if (!parsed.ok()) return {render_error(parsed.error(), text)};
  for (const TableUse& use : table_uses(**parsed)) {
    result.push_back((use.stream ? "stream " : "") +
                     (use.function.empty() ? to_string(use.name) : use.function + "()"));
  }
  return result;
}

std::string normalised(const std::string& text) {
  const auto parsed = parse_query(text, "q.sql");
  if (!parsed.ok()) return render_error(parsed.error(), text);
  std::string once = print_spark(**parsed);
  const auto again = parse_query(once, "again.sql");
  if (!again.ok()) return "AGAIN " + render_error(again.error(), once);
  EXPECT_EQ(print_spark(**again), once);
  return once;
}

TEST(Query, TableUsesInTextOrderWithoutCtes) {
  EXPECT_THAT(uses("WITH c AS (SELECT * FROM a), d AS (SELECT * FROM c) SELECT * FROM d JOIN "
                   "main.s.b ON true"),
              ElementsAre("a", "main.s.b"));
  EXPECT_THAT(uses("WITH a AS (SELECT * FROM a) SELECT * FROM A, `x y`.a"),
              ElementsAre("a", "`x y`.a"));
  EXPECT_THAT(uses("SELECT (SELECT max(x) FROM s1) FROM STREAM(t1) WHERE a IN (SELECT b FROM s2) "
                   "AND EXISTS (SELECT 1 FROM s3)"),
              ElementsAre("s1", "stream t1", "s2", "s3"));
  EXPECT_THAT(uses("SELECT * FROM STREAM read_files('/x', format => 'csv') UNION ALL SELECT * FROM "
                   "delta.`/p q`"),
              ElementsAre("stream read_files()", "delta.`/p q`"));
  EXPECT_THAT(uses("FROM t |> WHERE a > (SELECT 1 FROM u) |> JOIN v ON true"),
              ElementsAre("t", "u", "v"));
}

TEST(Query, StreamIsAlsoAName) {
  EXPECT_THAT(uses("SELECT * FROM stream"), ElementsAre("`stream`"));
  EXPECT_THAT(uses("SELECT * FROM stream WHERE a"), ElementsAre("`stream`"));
  EXPECT_THAT(uses("SELECT snapshot.target FROM snapshot, source, target"),
              ElementsAre("snapshot", "source", "target"));
  EXPECT_THAT(uses("SELECT * FROM Stream x"), ElementsAre("stream x"));
}

TEST(Query, TableUseCarriesEverything) {
  const auto parsed = parse_query(
      "SELECT * FROM STREAM m.t WITH (readChangeFeed=true, 'startingVersion' = 3) AS x, "
      "read_files('/a', format => 'json'), "
      "u VERSION AS OF 7, v TIMESTAMP AS OF '2024-01-01', w@v12",
      "q.sql");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  const std::vector<TableUse> found = table_uses(**parsed);
  ASSERT_EQ(found.size(), 5u);
  ASSERT_EQ(found[0].stream_options.size(), 2u);
  EXPECT_EQ(found[0].stream_options[0].key, "readChangeFeed");
  EXPECT_EQ(found[0].stream_options[0].value, "true");
  EXPECT_EQ(found[0].stream_options[1].value, "3");
  EXPECT_EQ(found[1].function, "read_files");
  EXPECT_EQ(literal_text(*found[1].arguments[0]), "/a");
  EXPECT_EQ(found[1].named_arguments[0].first, "format");
  EXPECT_EQ(found[2].version_as_of, "7");
  EXPECT_EQ(found[3].timestamp_as_of, "2024-01-01");
  EXPECT_EQ(found[4].version_as_of, "12");
  EXPECT_EQ(found[0].place.line, 1);
  EXPECT_EQ(found[0].place.column, 22);
}

TEST(Query, SparkTextIsAFixpoint) {
  EXPECT_EQ(normalised("select a b from t where c order by d"),
            "SELECT a AS b FROM t WHERE c ORDER BY d ASC NULLS FIRST");
  EXPECT_EQ(normalised("from t |> select a |> limit 3"), "(SELECT a FROM t LIMIT 3)");
  for (const char* text : {
           "SELECT DISTINCT a, t.*, * EXCEPT (b) FROM x AS t",
           "WITH a(x) AS (SELECT 1) SELECT * FROM a UNION ALL BY NAME SELECT 2 ORDER BY 1 DESC "
           "LIMIT 3 OFFSET 1",
           "SELECT 1 UNION SELECT 2 INTERSECT SELECT 3 EXCEPT ALL SELECT 4",
           "SELECT * FROM a LEFT JOIN b USING (x, y) NATURAL JOIN c CROSS JOIN d FULL OUTER JOIN e "
           "ON a.i = e.i",
           "SELECT * FROM a JOIN (b JOIN c ON true) ON false",
           "SELECT * FROM t LATERAL VIEW OUTER explode(a) u AS v LATERAL VIEW posexplode(b) w AS "
           "p, q",
           "SELECT * FROM t, LATERAL (SELECT * FROM u WHERE u.a = t.a) AS l",
           "SELECT a, sum(b) FROM t GROUP BY a HAVING sum(b) > 1 QUALIFY row_number() OVER w = 1 "
           "WINDOW w AS (PARTITION BY a)",
           "SELECT a, sum(b) FROM t GROUP BY a, ROLLUP (b, (c, d)), GROUPING SETS ((a), ())",
           "SELECT a, sum(b) FROM t GROUP BY a, b WITH CUBE",
           "SELECT a, sum(b) FROM t GROUP BY a, b GROUPING SETS ((a), b, (a + 1) * 2)",
           "SELECT * FROM VALUES (1, 'a'), (2, NULL) AS t(x, y)",
           "SELECT * FROM (VALUES (1))",
           "FROM t |> EXTEND a + 1 AS b |> SET a = b |> DROP b |> AS u |> AGGREGATE count(*) AS n "
           "GROUP BY a",
           "SELECT * FROM STREAM(a.b.c) WITH (skipChangeCommits = true)",
           "SELECT * FROM t VERSION AS OF 3 AS x",
           "SELECT `select`, `a``b`.`from` FROM `group`",
           "((SELECT 1))",
           "TABLE t",
       }) {
    SCOPED_TRACE(text);
    EXPECT_THAT(normalised(text), ::testing::Not(HasSubstr("SYNTAX")));
  }
}

TEST(Query, ResolverErrorsCarryThePlace) {
  const auto parsed = parse_query("SELECT *\nFROM a JOIN missing ON true", "q.sql");
  ASSERT_TRUE(parsed.ok());
  const auto printed = print_duckdb(**parsed, [](const TableUse& use) -> Result<std::string> {
    if (use.name.parts[0] == "missing")
      return not_found("TABLE_OR_VIEW_NOT_FOUND", "no table {}", to_string(use.name));
    return std::string("\"x\"");
  });
  ASSERT_FALSE(printed.ok());
  EXPECT_EQ(printed.error().code, "TABLE_OR_VIEW_NOT_FOUND");
  EXPECT_EQ(printed.error().place->line, 2);
  EXPECT_EQ(printed.error().place->column, 13);
}

TEST(Query, Mistakes) {
  const auto message = [](const std::string& text) {
    const auto parsed = parse_query(text, "q.sql");
    return parsed.ok() ? "no error" : parsed.error().message;
  };
  EXPECT_THAT(message("SELECT a FORM t"), HasSubstr("expected the end of the query"));
  EXPECT_THAT(message("SELECT FROM t"), HasSubstr("found 'FROM', expected an expression"));
  EXPECT_THAT(message("SELECT a AS 'b' FROM t"), HasSubstr("backquotes"));
  EXPECT_THAT(message("SELECT * FROM"), HasSubstr("found the end of the text, expected a table"));
  EXPECT_THAT(message("SELECT * FROM a LEFT JOIN b"), HasSubstr("expected ON or USING"));
  EXPECT_THAT(message("SELECT * FROM VALUES (1), (1, 2)"),
              HasSubstr("this row of VALUES has 2 values"));
  EXPECT_THAT(message("SELECT * FROM a.b.c.d"), HasSubstr("at most 3"));
  EXPECT_THAT(message("SELECT 'abc"), HasSubstr("is not closed"));
  EXPECT_THAT(message("SELECT 1 /* x"), HasSubstr("is not closed"));
  EXPECT_THAT(message("SELECT ${x}"), HasSubstr("unexpected character"));
  EXPECT_THAT(message("SELECT :a"), HasSubstr("query parameter is not supported"));
  EXPECT_THAT(message("SELECT a FROM t GROUP BY GROUPING SETS (CUBE (a, b))"),
              HasSubstr("CUBE inside another is not supported"));
  EXPECT_THAT(message("SELECT a FROM t TABLESAMPLE (5 ROWS)"),
              HasSubstr("TABLESAMPLE is not supported"));
  EXPECT_THAT(message("SELECT a FROM t SORT BY a"),
              HasSubstr("SORT BY is not supported: use ORDER BY"));
  EXPECT_THAT(message("FROM t |> WERE a"), HasSubstr("did you mean WHERE?"));
  EXPECT_THAT(message("WITH RECURSIVE a AS (SELECT 1) SELECT 1"),
              HasSubstr("WITH RECURSIVE is not supported"));
}

}  // namespace
}  // namespace strandline::sql
