// Spark queries give Spark's rows when DuckDB runs their printed form.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "duck/connection.h"
#include "sql/duckdb_printer.h"
#include "sql/parser.h"

namespace strandline::sql {
namespace {

using ::testing::HasSubstr;

class Queries : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = duck::Database::open({});
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    database_ = *opened;
    auto connected = database_->connect();
    ASSERT_TRUE(connected.ok()) << connected.error().message;
    connection_ = std::move(*connected);
    run("CREATE TABLE users AS SELECT * FROM (VALUES (1, 'Ann', 10), (2, 'Bob', NULL), (3, NULL, "
        "30)) AS t(id, name, age)");
    run("CREATE TABLE orders AS SELECT * FROM (VALUES (1, 'x', 5), (1, 'y', 7), (4, 'z', 9)) AS "
        "t(id, item, price)");
    run("CREATE TABLE lists AS SELECT * FROM (VALUES (1, ['a', 'b'], MAP {'k': 1}), (2, [], MAP "
        "{}), (3, NULL, NULL)) AS "
        "t(id, tags, m)");
    run("CREATE TABLE \"odd name\" AS SELECT 1 AS \"select\", 2 AS \"a.b\"");
  }

  void run(const std::string& sql) {
    const auto done = connection_->execute(sql);
    ASSERT_TRUE(done.ok()) << done.error().message;
  }

  // Header and rows: "a,b: 1,x | 2,y"
  std::string rows(const std::string& text) {
    const auto parsed = parse_query(text, "query");
    if (!parsed.ok()) return render_error(parsed.error(), text);
    const Resolve resolve = [](const TableUse& use) -> Result<std::string> {
      return duck::quote_name(use.name.parts.empty() ? use.function : use.name.parts.back());
    };
    const auto printed = print_duckdb(**parsed, resolve);
    if (!printed.ok()) return render_error(printed.error(), text);
    // The normalised Spark text means the same.
    const auto again = parse_query(print_spark(**parsed), "again");
    if (!again.ok()) return "again: " + render_error(again.error(), print_spark(**parsed));
    const auto printed_again = print_duckdb(**again, resolve);
    EXPECT_EQ(printed_again.ok() ? *printed_again : printed_again.error().message, *printed);
    const auto result = connection_->query(*printed);
    if (!result.ok()) return result.error().message + "\n" + *printed;
    std::string answer;
    for (const auto& column : result->columns) answer += (answer.empty() ? "" : ",") + column.name;
    answer += ":";
    for (size_t i = 0; i < result->rows.size(); ++i) {
      answer += i == 0 ? " " : " | ";
      for (size_t j = 0; j < result->rows[i].size(); ++j) {
        answer += (j == 0 ? "" : ",") + result->rows[i][j].value_or("NULL");
      }
    }
    return answer;
  }

  std::shared_ptr<duck::Database> database_;
  std::unique_ptr<duck::Connection> connection_;
};

TEST_F(Queries, Values) {
  EXPECT_EQ(rows("VALUES (1, 'a'), (2, NULL)"), "col1,col2: 1,a | 2,NULL");
  EXPECT_EQ(rows("SELECT * FROM VALUES (1, 'x10'), (2, 'x20') AS t(id, x)"), "id,x: 1,x10 | 2,x20");
  EXPECT_EQ(rows("SELECT col1 AS id, col2 AS name FROM (VALUES (1, \"a\"), (2, null))"),
            "id,name: 1,a | 2,NULL");
  EXPECT_EQ(rows("SELECT t.col1 FROM VALUES 1, 2 AS t"), "col1: 1 | 2");
  EXPECT_EQ(rows("SELECT * FROM VALUES (null, 1), (null, 2) AS t(a, b)"), "a,b: NULL,1 | NULL,2");
}

TEST_F(Queries, ColumnNames) {
  EXPECT_EQ(rows("SELECT id + 1, upper(name), count(*) OVER () > 0 AS c, CAST(id AS STRING), 'x', "
                 "users.age FROM users LIMIT 1"),
            "(id + 1),upper(name),c,id,x,age: 2,ANN,true,1,x,10");
  EXPECT_EQ(rows("SELECT count(*), sum(id), count(DISTINCT name) FROM users"),
            "count(1),sum(id),count(DISTINCT name): 3,6,2");
  EXPECT_EQ(rows("SELECT `select`, `a.b` FROM `odd name`"), "select,a.b: 1,2");
}

TEST_F(Queries, OrderPutsNullsFirst) {
  EXPECT_EQ(rows("SELECT name FROM users ORDER BY name"), "name: NULL | Ann | Bob");
  EXPECT_EQ(rows("SELECT name FROM users ORDER BY name DESC"), "name: Bob | Ann | NULL");
  EXPECT_EQ(rows("SELECT name FROM users ORDER BY name NULLS LAST"), "name: Ann | Bob | NULL");
  EXPECT_EQ(rows("SELECT age FROM users ORDER BY ALL"), "age: NULL | 10 | 30");
  EXPECT_EQ(rows("SELECT id FROM users ORDER BY 1 DESC LIMIT 1 OFFSET 1"), "id: 2");
}

TEST_F(Queries, Joins) {
  EXPECT_EQ(rows("SELECT u.id, o.item FROM users u JOIN orders AS o ON u.id = o.id ORDER BY item"),
            "id,item: 1,x | 1,y");
  EXPECT_EQ(rows("SELECT * FROM orders JOIN users USING (id) ORDER BY item"),
            "id,item,price,name,age: 1,x,5,Ann,10 | 1,y,7,Ann,10");
  EXPECT_EQ(
      rows(
          "SELECT * FROM (SELECT item, id FROM orders) o LEFT JOIN users USING (id) ORDER BY item"),
      "id,item,name,age: 1,x,Ann,10 | 1,y,Ann,10 | 4,z,NULL,NULL");
  EXPECT_EQ(rows("SELECT id FROM users LEFT SEMI JOIN orders ON users.id = orders.id"), "id: 1");
  EXPECT_EQ(rows("SELECT id FROM users LEFT ANTI JOIN orders ON users.id = orders.id ORDER BY id"),
            "id: 2 | 3");
  EXPECT_EQ(rows("SELECT id FROM users FULL OUTER JOIN orders USING (id) GROUP BY id ORDER BY id"),
            "id: 1 | 2 | 3 | 4");
  EXPECT_EQ(rows("SELECT count(*) AS n FROM users, orders"), "n: 9");
  EXPECT_EQ(rows("SELECT count(*) AS n FROM users JOIN orders"), "n: 9");
  EXPECT_EQ(rows("SELECT a.id FROM (users a JOIN orders b ON a.id = b.id) JOIN users c ON c.id = "
                 "a.id LIMIT 1"),
            "id: 1");
  EXPECT_EQ(rows("SELECT x FROM ((SELECT 1 x) a JOIN (SELECT 2 y) b ON x < y)"), "x: 1");
  EXPECT_EQ(rows("SELECT u.id, l.n FROM users u, LATERAL (SELECT count(*) AS n FROM orders o WHERE "
                 "o.id = u.id) l ORDER BY id"),
            "id,n: 1,2 | 2,0 | 3,0");
}

TEST_F(Queries, Grouping) {
  EXPECT_EQ(rows("SELECT id, sum(price) AS total FROM orders GROUP BY id HAVING sum(price) > 9 "
                 "ORDER BY id"),
            "id,total: 1,12");
  EXPECT_EQ(rows("SELECT id, count(*) AS n FROM orders GROUP BY ALL ORDER BY id"),
            "id,n: 1,2 | 4,1");
  EXPECT_EQ(rows("SELECT id % 2 AS odd, count(*) AS n FROM users GROUP BY odd ORDER BY 1"),
            "odd,n: 0,1 | 1,2");
  EXPECT_EQ(rows("SELECT DISTINCT id FROM orders ORDER BY id"), "id: 1 | 4");
  EXPECT_EQ(rows("SELECT item FROM orders QUALIFY row_number() OVER (PARTITION BY id ORDER BY "
                 "price DESC) = 1 ORDER BY item"),
            "item: y | z");
  EXPECT_EQ(rows("SELECT item, sum(price) OVER w AS s FROM orders WINDOW w AS (PARTITION BY id "
                 "ORDER BY price) ORDER BY item"),
            "item,s: x,5 | y,12 | z,9");
  EXPECT_EQ(rows("SELECT id, sum(price) AS s FROM orders GROUP BY ROLLUP (id) ORDER BY id, s"),
            "id,s: NULL,21 | 1,12 | 4,9");
}

TEST_F(Queries, SetOperationsAndCtes) {
  EXPECT_EQ(rows("SELECT 1 AS a UNION ALL SELECT 1 UNION SELECT 2 ORDER BY a"), "a: 1 | 2");
  EXPECT_EQ(rows("SELECT id FROM users INTERSECT SELECT id FROM orders"), "id: 1");
  EXPECT_EQ(rows("SELECT id FROM users EXCEPT SELECT id FROM orders ORDER BY id"), "id: 2 | 3");
  EXPECT_EQ(rows("SELECT id FROM users MINUS SELECT 2 ORDER BY id"), "id: 1 | 3");
  EXPECT_EQ(rows("SELECT 1 AS a, 2 AS b UNION ALL BY NAME SELECT 3 AS b, 4 AS a"),
            "a,b: 1,2 | 4,3");
  EXPECT_EQ(rows("WITH a AS (SELECT 1 AS x), b(y) AS (SELECT x + 1 FROM a) SELECT x, y FROM a, b"),
            "x,y: 1,2");
  EXPECT_EQ(rows("WITH users AS (SELECT 9 AS id) SELECT id FROM users"), "id: 9");
}

TEST_F(Queries, Subqueries) {
  EXPECT_EQ(rows("SELECT id FROM users WHERE id IN (SELECT id FROM orders)"), "id: 1");
  EXPECT_EQ(rows("SELECT id FROM users u WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.id = "
                 "u.id) ORDER BY id"),
            "id: 2 | 3");
  EXPECT_EQ(rows("SELECT (SELECT max(price) FROM orders) AS top"), "top: 9");
  EXPECT_EQ(rows("SELECT * EXCEPT (name, age) FROM users ORDER BY id"), "id: 1 | 2 | 3");
  EXPECT_EQ(rows("SELECT u.* EXCEPT (age), 1 AS one FROM users u WHERE u.id = 1"),
            "id,name,one: 1,Ann,1");
}

TEST_F(Queries, ColumnsInFull) {
  EXPECT_EQ(
      rows("SELECT main.d.users.id, d.users.name FROM main.d.users WHERE main.d.users.id = 1"),
      "id,name: 1,Ann");
  EXPECT_EQ(
      rows("SELECT d.users.id FROM d.users JOIN x.orders ON d.users.id = x.orders.id LIMIT 1"),
      "id: 1");
}

TEST_F(Queries, NullsInsideAStructSortFirst) {
  EXPECT_EQ(rows("SELECT name FROM users ORDER BY struct(name, id) LIMIT 2"), "name: NULL | Ann");
  EXPECT_EQ(
      rows("SELECT name, row_number() OVER (ORDER BY (name, id) DESC) AS n FROM users ORDER BY n"),
      "name,n: Bob,1 | Ann,2 | NULL,3");
}

TEST_F(Queries, Generators) {
  EXPECT_EQ(rows("SELECT id, explode(tags) AS tag FROM lists"), "id,tag: 1,a | 1,b");
  EXPECT_EQ(rows("SELECT id, explode(tags) FROM lists"), "id,col: 1,a | 1,b");
  EXPECT_EQ(rows("SELECT id, posexplode(tags) AS (p, tag) FROM lists"), "id,p,tag: 1,0,a | 1,1,b");
  EXPECT_EQ(rows("SELECT id, explode(m) AS (k, v) FROM lists"), "id,k,v: 1,k,1");
  EXPECT_EQ(rows("SELECT id, tag FROM lists LATERAL VIEW explode(tags) t AS tag"),
            "id,tag: 1,a | 1,b");
  EXPECT_EQ(
      rows(
          "SELECT id, t.tag FROM lists LATERAL VIEW OUTER explode(tags) t AS tag ORDER BY id, tag"),
      "id,tag: 1,a | 1,b | 2,NULL | 3,NULL");
  EXPECT_EQ(rows("SELECT id, explode_outer(tags) AS tag FROM lists ORDER BY id, tag"),
            "id,tag: 1,a | 1,b | 2,NULL | 3,NULL");
  EXPECT_EQ(rows("SELECT id, posexplode_outer(tags) AS (p, tag) FROM lists ORDER BY id, p"),
            "id,p,tag: 1,0,a | 1,1,b | 2,NULL,NULL | 3,NULL,NULL");
  EXPECT_EQ(rows("SELECT id, u.x FROM lists, LATERAL explode(tags) AS u(x)"), "id,x: 1,a | 1,b");
  EXPECT_EQ(rows("SELECT * FROM explode(array(1, 2)) AS t(n)"), "n: 1 | 2");
  EXPECT_EQ(rows("SELECT inline(array(struct(1 AS a, 'x' AS b)))"), "a,b: 1,x");
  EXPECT_EQ(rows("SELECT inline_outer(array(struct(1 AS a, 'x' AS b)))"), "a,b: 1,x");
  EXPECT_EQ(rows("SELECT id FROM range(2)"), "id: 0 | 1");
  EXPECT_THAT(rows("SELECT explode(tags) AS (a, b, c) FROM lists"),
              HasSubstr("UDTF_ALIAS_NUMBER_MISMATCH"));
}

TEST_F(Queries, Pipes) {
  EXPECT_EQ(rows("FROM users |> WHERE id > 1 |> SELECT id, age |> ORDER BY id DESC |> LIMIT 1"),
            "id,age: 3,30");
  EXPECT_EQ(rows("FROM orders |> AGGREGATE sum(price) AS total GROUP BY id |> WHERE total > 9"),
            "id,total: 1,12");
  EXPECT_EQ(rows("FROM users |> EXTEND id * 2 AS twice |> DROP name, age |> SET twice = twice + 1 "
                 "|> WHERE id = 1"),
            "id,twice: 1,3");
  EXPECT_EQ(rows("FROM users |> AS u |> JOIN orders o ON u.id = o.id |> SELECT u.name, o.item |> "
                 "ORDER BY item"),
            "name,item: Ann,x | Ann,y");
  EXPECT_EQ(rows("FROM users |> SELECT id |> UNION ALL SELECT 9 |> ORDER BY id DESC |> LIMIT 1"),
            "id: 9");
  EXPECT_EQ(rows("FROM users WHERE id = 2"), "id,name,age: 2,Bob,NULL");
  EXPECT_EQ(rows("FROM users SELECT id WHERE id = 2"), "id: 2");
}

}  // namespace
}  // namespace strandline::sql
