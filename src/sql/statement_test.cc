// Statements: every form of sql.md, its fields, and its refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sql/duckdb_printer.h"
#include "sql/parser.h"

namespace strandline::sql {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

template <typename T>
T parsed(const std::string& text) {
  const Script script = parse_script(text, "t.sql");
  for (const Error& error : script.errors) ADD_FAILURE() << render_error(error, text);
  const T* body =
      script.statements.size() == 1 ? std::get_if<T>(&script.statements[0].body) : nullptr;
  if (body == nullptr) ADD_FAILURE() << "not one statement of the kind: " << text;
  return body == nullptr ? T{} : *body;
}

std::vector<std::string> texts(const std::vector<Name>& names) {
  std::vector<std::string> result;
  for (const Name& name : names) result.push_back(name.text);
  return result;
}

// "CODE line:column message" of each error.
std::vector<std::string> errors(const std::string& text) {
  std::vector<std::string> result;
  for (const Error& error : parse_script(text, "t.sql").errors) {
    result.push_back(error.code + " " + std::to_string(error.place->line) + ":" +
                     std::to_string(error.place->column) + " " + error.message);
  }
  return result;
}

TEST(Statement, CreateStreamingTable) {
  const auto table = parsed<CreateStreamingTable>(R"(
    CREATE OR REFRESH PRIVATE STREAMING TABLE IF NOT EXISTS main.s.t (
      id INT NOT NULL COMMENT 'key', v STRING DEFAULT 'x', d DATE GENERATED ALWAYS AS (CAST(ts AS DATE)), ts TIMESTAMP,
      CONSTRAINT a EXPECT (id > 0), CONSTRAINT b EXPECT (v IS NOT NULL) ON VIOLATION DROP ROW,
      CONSTRAINT c EXPECT (d > '2020-01-01') ON VIOLATION FAIL UPDATE, CONSTRAINT k CHECK (id < 100))
    USING delta PARTITIONED BY (d) LOCATION '/p' COMMENT 'text' DEFAULT COLLATION UTF8_BINARY
    TBLPROPERTIES ('a.b' = 'c', delta.enableRowTracking = false, pipelines.cdc.tombstoneGCThresholdInSeconds = 60)
    AS SELECT * FROM STREAM x)");
  EXPECT_TRUE(table.or_refresh);
  EXPECT_TRUE(table.is_private);
  EXPECT_TRUE(table.if_not_exists);
  EXPECT_THAT(table.name.parts, ElementsAre("main", "s", "t"));
  ASSERT_THAT(table.options.columns, SizeIs(4));
  EXPECT_FALSE(table.options.columns[0].nullable);
  EXPECT_EQ(table.options.columns[0].comment, "key");
  EXPECT_EQ(literal_text(*table.options.columns[1].default_value), "x");
  EXPECT_EQ(print_spark(*table.options.columns[2].generated_as), "CAST(ts AS DATE)");
  ASSERT_THAT(table.options.expectations, SizeIs(3));
  EXPECT_EQ(table.options.expectations[0].on_violation, OnViolation::kKeep);
  EXPECT_EQ(table.options.expectations[1].on_violation, OnViolation::kDropRow);
  EXPECT_EQ(table.options.expectations[2].on_violation, OnViolation::kFailUpdate);
  ASSERT_THAT(table.options.checks, SizeIs(1));
  EXPECT_THAT(texts(table.options.partitioned_by), ElementsAre("d"));
  EXPECT_EQ(table.options.using_format->text, "delta");
  EXPECT_EQ(table.options.location, "/p");
  EXPECT_EQ(table.options.comment, "text");
  ASSERT_THAT(table.options.properties, SizeIs(3));
  EXPECT_EQ(table.options.properties[1].key, "delta.enableRowTracking");
  EXPECT_EQ(table.options.properties[1].value, "false");
  EXPECT_EQ(table.options.properties[2].value, "60");
  EXPECT_NE(table.query, nullptr);

  const auto with_flow = parsed<CreateStreamingTable>(
      "CREATE STREAMING TABLE t CLUSTER BY (a, b.c) FLOW AUTO CDC FROM STREAM(s) KEYS (id) "
      "SEQUENCE "
      "BY ts");
  ASSERT_TRUE(with_flow.auto_cdc.has_value());
  EXPECT_THAT(texts(with_flow.auto_cdc->keys), ElementsAre("id"));
  ASSERT_EQ(with_flow.options.cluster_by.size(), 2u);
  EXPECT_THAT(with_flow.options.cluster_by[0].parts, ElementsAre("a"));
  EXPECT_THAT(with_flow.options.cluster_by[1].parts, ElementsAre("b", "c"));
}

TEST(Statement, ViewsAndOldForms) {
  const auto view = parsed<CreateMaterializedView>(
      "CREATE OR REFRESH MATERIALIZED VIEW v COMMENT 'c' AS SELECT 1");
  EXPECT_TRUE(view.or_refresh);
  EXPECT_EQ(view.options.comment, "c");
  EXPECT_THAT(
      parsed<CreateMaterializedView>("CREATE OR REFRESH LIVE TABLE v AS SELECT 1").name.parts,
      ElementsAre("v"));
  EXPECT_THAT(parsed<CreateStreamingTable>("CREATE OR REFRESH STREAMING LIVE TABLE t").name.parts,
              ElementsAre("t"));
  const auto plain = parsed<CreateView>(
      "CREATE TEMPORARY LIVE VIEW v (a COMMENT 'x', b, CONSTRAINT e EXPECT (a > 0)) TBLPROPERTIES "
      "('k' = 'v') AS SELECT 1, 2");
  EXPECT_TRUE(plain.temporary);
  EXPECT_THAT(texts(plain.columns), ElementsAre("a", "b"));
  EXPECT_THAT(plain.expectations, SizeIs(1));
  EXPECT_TRUE(parsed<CreateView>("CREATE OR REPLACE VIEW a.v AS SELECT 1").or_replace);
}

TEST(Statement, Flows) {
  const auto insert = parsed<CreateInsertFlow>(
      "CREATE FLOW f AS INSERT INTO ONCE t BY NAME SELECT * FROM VALUES (1) AS v(a)");
  EXPECT_TRUE(insert.once);
  EXPECT_TRUE(insert.by_name);
  EXPECT_THAT(insert.target.parts, ElementsAre("t"));
  EXPECT_TRUE(
      parsed<CreateInsertFlow>("CREATE FLOW f AS INSERT ONCE INTO t BY NAME SELECT 1").once);
  const auto named_once =
      parsed<CreateInsertFlow>("CREATE FLOW f AS INSERT INTO once BY NAME SELECT 1");
  EXPECT_FALSE(named_once.once);
  EXPECT_THAT(named_once.target.parts, ElementsAre("once"));

  const auto old_form = parsed<CreateAutoCdcFlow>(
      "APPLY CHANGES INTO LIVE.t FROM STREAM(LIVE.s) KEYS (id) SEQUENCE BY ts");
  EXPECT_FALSE(old_form.flow_name.has_value());
  EXPECT_THAT(old_form.target.parts, ElementsAre("t"));

  const auto snapshot = parsed<CreateAutoCdcFlow>(
      "CREATE FLOW f AS AUTO CDC INTO t FROM SNAPSHOT (SELECT * FROM s) WITH VERSION (SELECT "
      "max(v) FROM s) KEYS (id) "
      "STORED AS SCD TYPE 2 TRACK HISTORY ON (a)");
  EXPECT_TRUE(snapshot.clauses.from_snapshot);
  EXPECT_NE(snapshot.clauses.snapshot_version, nullptr);
  EXPECT_FALSE(parsed<CreateAutoCdcFlow>("CREATE FLOW f AS AUTO CDC INTO target FROM "
                                         "stream(snapshot) KEYS (id) SEQUENCE BY source")
                   .clauses.from_snapshot);

  const auto partial = parsed<CreateAutoCdcFlow>(
      "CREATE FLOW f AS AUTO CDC INTO t FROM STREAM s KEYS id SEQUENCE BY bt SYSTEM SEQUENCE BY st "
      "STORED AS BITEMPORAL");
  EXPECT_EQ(partial.clauses.stored_as, StoredAs::kBitemporal);
  EXPECT_NE(partial.clauses.system_sequence_by, nullptr);
  EXPECT_EQ(parsed<CreateAutoCdcFlow>("CREATE FLOW f AS AUTO CDC INTO t FROM STREAM s KEYS (id) "
                                      "SEQUENCE BY n COLUMNS TO UPDATE c")
                .clauses.columns_to_update->text,
            "c");
  const auto all = parsed<CreateAutoCdcFlow>(
      "CREATE FLOW f AS AUTO CDC INTO t FROM STREAM s KEYS (id) IGNORE NULL UPDATES SEQUENCE BY n "
      "COLUMNS *");
  EXPECT_TRUE(all.clauses.ignore_null_updates);
  EXPECT_FALSE(all.clauses.ignore_null_columns.has_value());
  EXPECT_TRUE(all.clauses.columns->except);
  EXPECT_THAT(all.clauses.columns->names, IsEmpty());
  EXPECT_NE(parsed<CreateAutoCdcFlow>("CREATE FLOW f AS AUTO CDC INTO t FROM (FROM STREAM(x) |> "
                                      "SELECT a, b |> WHERE a > 1) KEYS (a) SEQUENCE BY b")
                .clauses.source,
            nullptr);
}

TEST(Statement, TablesAndData) {
  const auto table = parsed<CreateTable>(
      "CREATE TABLE IF NOT EXISTS s.t (id INT) TBLPROPERTIES (delta.enableChangeDataFeed = true)");
  EXPECT_TRUE(table.if_not_exists);
  EXPECT_THAT(parsed<CreateTable>("CREATE OR REPLACE TABLE t AS SELECT 1 AS a").name.parts,
              ElementsAre("t"));
  EXPECT_TRUE(parsed<CreateSchema>("CREATE SCHEMA IF NOT EXISTS main.x COMMENT 'c'").if_not_exists);
  EXPECT_THAT(parsed<CreateSchema>("CREATE DATABASE x").name.parts, ElementsAre("x"));

  const auto insert = parsed<Insert>("INSERT INTO t (id, __START_AT) VALUES (123, NULL)");
  EXPECT_THAT(texts(insert.columns), ElementsAre("id", "__START_AT"));
  EXPECT_EQ(parsed<Insert>("INSERT OVERWRITE TABLE t SELECT 1").mode, InsertMode::kOverwrite);
  EXPECT_TRUE(parsed<Insert>("INSERT INTO t BY NAME SELECT 1 AS a").by_name);
  EXPECT_THAT(parsed<Insert>("INSERT INTO t (SELECT 1)").columns, IsEmpty());
  const auto replace = parsed<Insert>("INSERT INTO t REPLACE WHERE d >= '2024' SELECT 1");
  EXPECT_EQ(replace.mode, InsertMode::kReplaceWhere);
  EXPECT_NE(replace.replace_where, nullptr);

  const auto update = parsed<Update>("UPDATE a.t AS x SET x.b = b + 1, t.c = 'y' WHERE x.id = 1");
  ASSERT_THAT(update.assignments, SizeIs(2));
  EXPECT_THAT(update.assignments[0].target, ElementsAre("x", "b"));
  EXPECT_EQ(update.alias->text, "x");
  EXPECT_THAT(parsed<Update>("UPDATE t SET a.b.c = DEFAULT").assignments[0].target,
              ElementsAre("a", "b", "c"));
  EXPECT_NE(parsed<Delete>("DELETE FROM delta.`/p/q` WHERE a = 1").where, nullptr);
  EXPECT_TRUE(parsed<Delete>("DELETE FROM delta.`/p/q`").table.is_path);
  EXPECT_THAT(parsed<Truncate>("TRUNCATE TABLE a.b").table.parts, ElementsAre("a", "b"));
  EXPECT_EQ(parsed<Drop>("DROP VIEW IF EXISTS v").what, Drop::What::kView);
  EXPECT_TRUE(parsed<Drop>("DROP SCHEMA s CASCADE").cascade);
  EXPECT_EQ(parsed<Drop>("DROP MATERIALIZED VIEW v").what, Drop::What::kTable);
}

TEST(Statement, InsertPartitions) {
  const auto insert = parsed<Insert>(
      "INSERT WITH SCHEMA EVOLUTION OVERWRITE TABLE t PARTITION (p = 'a', q) (x, y) SELECT 1, 2");
  EXPECT_EQ(insert.mode, InsertMode::kOverwrite);
  EXPECT_TRUE(insert.schema_evolution);
  ASSERT_THAT(insert.partition, SizeIs(2));
  EXPECT_EQ(literal_text(*insert.partition[0].second), "a");
  EXPECT_EQ(insert.partition[1].second, nullptr);
  EXPECT_THAT(texts(insert.columns), ElementsAre("x", "y"));
  EXPECT_NE(parsed<Insert>("INSERT INTO t TABLE u").query, nullptr);
  EXPECT_THAT(errors("INSERT INTO t PARTITION (p = 1, P) SELECT 1"),
              ElementsAre("DUPLICATE_KEY 1:33 the partition column P is given twice"));
}

TEST(Statement, Merge) {
  const auto merge = parsed<Merge>(R"(
    MERGE WITH SCHEMA EVOLUTION INTO a.t AS x USING (SELECT 1 AS id) s ON x.id = s.id
    WHEN MATCHED AND s.gone THEN DELETE
    WHEN MATCHED AND s.v > x.v THEN UPDATE SET x.v = s.v, x.info.at = DEFAULT
    WHEN MATCHED THEN UPDATE SET * EXCEPT (id)
    WHEN NOT MATCHED BY TARGET AND s.ok THEN INSERT (id, info.at) VALUES (s.id, now())
    WHEN NOT MATCHED THEN INSERT *
    WHEN NOT MATCHED BY SOURCE AND x.v < 1 THEN UPDATE SET v = 0
    WHEN NOT MATCHED BY SOURCE THEN DELETE)");
  EXPECT_TRUE(merge.schema_evolution);
  EXPECT_THAT(merge.table.parts, ElementsAre("a", "t"));
  EXPECT_EQ(merge.alias->text, "x");
  EXPECT_EQ(merge.source->alias->text, "s");
  EXPECT_EQ(print_spark(*merge.on), "x.id = s.id");
  ASSERT_THAT(merge.clauses, SizeIs(7));
  const auto& clauses = merge.clauses;
  EXPECT_EQ(clauses[0].action, MergeClause::Action::kDelete);
  EXPECT_EQ(print_spark(*clauses[0].condition), "s.gone");
  ASSERT_THAT(clauses[1].assignments, SizeIs(2));
  EXPECT_THAT(clauses[1].assignments[1].target, ElementsAre("x", "info", "at"));
  EXPECT_EQ(plain_column(*clauses[1].assignments[1].value)->text, "DEFAULT");
  EXPECT_TRUE(clauses[2].star);
  EXPECT_THAT(texts(clauses[2].except), ElementsAre("id"));
  EXPECT_EQ(clauses[3].when, MergeClause::When::kNotMatched);
  EXPECT_EQ(clauses[3].action, MergeClause::Action::kInsert);
  ASSERT_THAT(clauses[3].assignments, SizeIs(2));
  EXPECT_EQ(print_spark(*clauses[3].assignments[1].value), "now()");
  EXPECT_TRUE(clauses[4].star);
  EXPECT_EQ(clauses[5].when, MergeClause::When::kNotMatchedBySource);
  EXPECT_EQ(clauses[6].action, MergeClause::Action::kDelete);
  EXPECT_EQ(clauses[6].condition, nullptr);

  const auto plain = parsed<Merge>(
      "MERGE INTO delta.`/p` USING u VERSION AS OF 3 ON id = uid WHEN MATCHED THEN DELETE");
  EXPECT_TRUE(plain.table.is_path);
  EXPECT_FALSE(plain.alias.has_value());
  EXPECT_EQ(plain.source->as<TableUse>()->version_as_of, "3");
}

TEST(Statement, MergeMistakes) {
  const std::string start = "MERGE INTO t USING s ON t.a = s.a ";
  const auto mistake = [&](const std::string& clauses) {
    const auto found = errors(start + clauses);
    return found.size() == 1 ? found[0] : "no single mistake";
  };
  EXPECT_THAT(mistake(""), HasSubstr("MERGE_WITHOUT_WHEN 1:1 "));
  EXPECT_THAT(mistake("WHEN MATCHED THEN DELETE WHEN MATCHED AND t.b THEN UPDATE SET b = 1"),
              HasSubstr("NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION 1:35 "));
  EXPECT_THAT(mistake("WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED AND s.b THEN INSERT *"),
              HasSubstr("NON_LAST_NOT_MATCHED_BY_TARGET_CLAUSE_OMIT_CONDITION 1:35 "));
  EXPECT_THAT(mistake("WHEN NOT MATCHED BY SOURCE THEN DELETE "
                      "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET b = 1"),
              HasSubstr("NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION 1:35 "));
  EXPECT_THAT(mistake("WHEN NOT MATCHED THEN INSERT (a, b) VALUES (1)"),
              HasSubstr("MERGE_INSERT_VALUE_COUNT_MISMATCH 1:78 "));
  EXPECT_THAT(mistake("WHEN NOT MATCHED THEN UPDATE SET a = 1"), HasSubstr("expected INSERT"));
  EXPECT_THAT(mistake("WHEN MATCHED THEN INSERT *"), HasSubstr("expected UPDATE SET or DELETE"));
  EXPECT_THAT(mistake("WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *"),
              HasSubstr("here is no source row"));
  EXPECT_THAT(mistake("WHEN MATCHED THEN DELETE; SELECT"), HasSubstr("PARSE_SYNTAX_ERROR"));
}

TEST(Statement, Questions) {
  EXPECT_EQ(parsed<Describe>("DESCRIBE t").what, Describe::What::kColumns);
  EXPECT_EQ(parsed<Describe>("DESC TABLE EXTENDED a.t").what, Describe::What::kExtended);
  EXPECT_EQ(parsed<Describe>("DESCRIBE DETAIL t").what, Describe::What::kDetail);
  EXPECT_EQ(parsed<Describe>("DESCRIBE HISTORY t").what, Describe::What::kHistory);
  EXPECT_THAT(parsed<Describe>("DESCRIBE history").table.parts, ElementsAre("history"));
  EXPECT_EQ(parsed<Describe>("DESCRIBE HISTORY t LIMIT 3").limit, 3);
  EXPECT_THAT(parsed<Describe>("DESCRIBE TABLE t a.b").column->parts, ElementsAre("a", "b"));
  EXPECT_EQ(parsed<Describe>("DESCRIBE SCHEMA EXTENDED s").what, Describe::What::kSchemaExtended);
  EXPECT_EQ(parsed<Describe>("DESCRIBE QUERY SELECT 1").what, Describe::What::kQuery);
  EXPECT_THAT(parsed<Describe>("DESCRIBE schema").table.parts, ElementsAre("schema"));
  const auto properties = parsed<Show>("SHOW TBLPROPERTIES my_mv ('delta.enableRowTracking')");
  EXPECT_EQ(properties.what, Show::What::kTableProperties);
  EXPECT_EQ(properties.key, "delta.enableRowTracking");
  EXPECT_EQ(parsed<Show>("SHOW TABLES IN main.s").name->parts.size(), 2u);
  EXPECT_EQ(parsed<Show>("SHOW CREATE TABLE t").what, Show::What::kCreateTable);
  EXPECT_EQ(parsed<Show>("SHOW DATABASES").what, Show::What::kSchemas);
  EXPECT_EQ(parsed<Show>("SHOW COLUMNS IN t").what, Show::What::kColumns);
  EXPECT_THAT(parsed<Show>("SHOW COLUMNS IN t IN a.s").name->parts, ElementsAre("a", "s", "t"));
  EXPECT_EQ(parsed<Show>("SHOW TABLES FROM s LIKE 'a*|b'").pattern, "a*|b");
  EXPECT_EQ(parsed<Show>("SHOW TABLES 'a*'").pattern, "a*");
  EXPECT_EQ(parsed<Show>("SHOW VIEWS").what, Show::What::kViews);
  EXPECT_EQ(parsed<Show>("SHOW PARTITIONS t").what, Show::What::kPartitions);
  const auto comment = parsed<CommentOn>("COMMENT ON COLUMN s.t.`a b` IS 'x'");
  EXPECT_THAT(comment.name.parts, ElementsAre("s", "t"));
  EXPECT_EQ(comment.column.text, "a b");
  EXPECT_EQ(comment.comment, "x");
  EXPECT_TRUE(parsed<CommentOn>("COMMENT ON COLUMN delta.`/p`.a IS ''").name.is_path);
  EXPECT_FALSE(parsed<CommentOn>("COMMENT ON TABLE t IS NULL").comment.has_value());
  EXPECT_NE(parsed<Explain>("EXPLAIN FORMATTED SELECT 1").query, nullptr);
  EXPECT_TRUE(parsed<Use>("USE CATALOG main").catalog);
  EXPECT_THAT(parsed<Use>("USE SCHEMA a.b").name.parts, ElementsAre("a", "b"));
  EXPECT_NE(parsed<SelectStatement>("FROM t |> LIMIT 1").query, nullptr);
  EXPECT_NE(parsed<SelectStatement>("VALUES (1)").query, nullptr);
}

TEST(Statement, AlterTable) {
  const auto action = []<typename T>(const std::string& text, T) {
    return std::get<T>(parsed<AlterTable>("ALTER TABLE `my t`.`a.b` " + text).action);
  };
  EXPECT_THAT(parsed<AlterTable>("ALTER TABLE `my t`.`a.b` RENAME TO c").table.parts,
              ElementsAre("my t", "a.b"));
  EXPECT_TRUE(parsed<AlterTable>("ALTER TABLE delta.`/p` CLUSTER BY NONE").table.is_path);

  const auto set = action("SET TBLPROPERTIES ('a b' = 'c', delta.x.y = 2)", SetTableProperties{});
  ASSERT_THAT(set.properties, SizeIs(2));
  EXPECT_EQ(set.properties[1].key, "delta.x.y");
  const auto unset = action("UNSET TBLPROPERTIES IF EXISTS ('a', b.c)", UnsetTableProperties{});
  EXPECT_TRUE(unset.if_exists);
  EXPECT_THAT(texts(unset.keys), ElementsAre("a", "b.c"));

  const auto add = action(
      "ADD COLUMNS (a.b STRUCT<x: INT> COMMENT 'c' FIRST, `d.e` STRING DEFAULT concat('x', 'y') "
      "AFTER f, g INT NOT NULL)",
      AddColumns{});
  ASSERT_THAT(add.columns, SizeIs(3));
  EXPECT_THAT(add.columns[0].path.parts, ElementsAre("a", "b"));
  EXPECT_EQ(add.columns[0].definition.comment, "c");
  EXPECT_TRUE(add.columns[0].position->first);
  EXPECT_THAT(add.columns[1].path.parts, ElementsAre("d.e"));
  EXPECT_EQ(add.columns[1].definition.default_sql, "concat('x', 'y')");
  EXPECT_EQ(add.columns[1].position->after.text, "f");
  EXPECT_FALSE(add.columns[2].definition.nullable);
  EXPECT_THAT(action("ADD COLUMN a INT, b INT", AddColumns{}).columns, SizeIs(2));

  const auto rename = action("RENAME COLUMN a.b TO `c d`", RenameColumn{});
  EXPECT_EQ(to_string(rename.column), "a.b");
  EXPECT_EQ(rename.new_name.text, "c d");
  const auto drop = action("DROP COLUMNS IF EXISTS (a, b.c)", DropColumns{});
  EXPECT_TRUE(drop.if_exists);
  ASSERT_THAT(drop.columns, SizeIs(2));
  EXPECT_THAT(drop.columns[1].parts, ElementsAre("b", "c"));

  const auto change = [&](const std::string& text) {
    return action("ALTER COLUMN a.b " + text, AlterColumns{}).changes.at(0);
  };
  EXPECT_EQ(change("TYPE BIGINT").type->id, TypeId::kLong);
  EXPECT_EQ(change("SET NOT NULL").nullable, false);
  EXPECT_EQ(change("DROP NOT NULL").nullable, true);
  EXPECT_EQ(change("SET DEFAULT 1 + 2").default_sql, "1 + 2");
  EXPECT_TRUE(change("DROP DEFAULT").drop_default);
  EXPECT_EQ(change("COMMENT ''").comment, "");
  EXPECT_TRUE(change("FIRST").position->first);
  EXPECT_EQ(change("AFTER c").position->after.text, "c");
  EXPECT_THAT(action("ALTER a TYPE INT, b COMMENT 'x'", AlterColumns{}).changes, SizeIs(2));
  const auto old = action("CHANGE a.b B BIGINT COMMENT 'x' AFTER c", AlterColumns{}).changes.at(0);
  EXPECT_EQ(old.type->id, TypeId::kLong);
  EXPECT_EQ(old.comment, "x");
  EXPECT_EQ(old.position->after.text, "c");

  const auto check = action("ADD CONSTRAINT k CHECK ( a  > 0 AND b = ')' )", AddConstraint{}).check;
  EXPECT_EQ(check.name.text, "k");
  EXPECT_EQ(check.sql, "a  > 0 AND b = ')'");
  EXPECT_TRUE(action("DROP CONSTRAINT IF EXISTS k", DropConstraint{}).if_exists);
  EXPECT_THAT(action("CLUSTER BY (a, b.c)", SetClustering{}).columns, SizeIs(2));
  EXPECT_THAT(action("CLUSTER BY NONE", SetClustering{}).columns, IsEmpty());
  EXPECT_THAT(action("RENAME TO s.x", RenameTable{}).to.parts, ElementsAre("s", "x"));
}

TEST(Statement, CreateTableInFull) {
  const auto table = parsed<CreateTable>(R"(
    CREATE OR REPLACE TABLE t (
      id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH -5 INCREMENT BY 10) COMMENT 'i',
      n BIGINT GENERATED BY DEFAULT AS IDENTITY, a INT DEFAULT 1 + 1 NOT NULL,
      g INT GENERATED ALWAYS AS (a * 2), CONSTRAINT k CHECK (a > 0) ENFORCED)
    PARTITIONED BY (d DATE COMMENT 'day', `e f` STRING))");
  const auto& columns = table.options.columns;
  ASSERT_THAT(columns, SizeIs(6));
  EXPECT_EQ(columns[0].identity->start, -5);
  EXPECT_EQ(columns[0].identity->step, 10);
  EXPECT_FALSE(columns[0].identity->by_default);
  EXPECT_EQ(columns[0].comment, "i");
  EXPECT_TRUE(columns[1].identity->by_default);
  EXPECT_EQ(columns[2].default_sql, "1 + 1");
  EXPECT_FALSE(columns[2].nullable);
  EXPECT_EQ(columns[3].generated_sql, "a * 2");
  EXPECT_EQ(columns[4].type.id, TypeId::kDate);
  EXPECT_EQ(columns[4].comment, "day");
  EXPECT_THAT(texts(table.options.partitioned_by), ElementsAre("d", "e f"));
  EXPECT_EQ(table.options.checks.at(0).sql, "a > 0");

  const auto like = parsed<CreateTable>("CREATE TABLE a LIKE b.c TBLPROPERTIES ('x' = 'y')");
  EXPECT_THAT(like.like->parts, ElementsAre("b", "c"));
  EXPECT_THAT(like.options.properties, SizeIs(1));
}

TEST(Statement, SetAndSubstitution) {
  const auto option = parsed<SetOption>(
      "SET spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled = true;");
  EXPECT_EQ(option.key, "spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled");
  EXPECT_EQ(option.value, "true");
  EXPECT_FALSE(parsed<SetOption>("SET a.b").value.has_value());
  EXPECT_EQ(parsed<SetOption>("SET start = '2024-01-01 00:00:00'").value, "'2024-01-01 00:00:00'");

  const Substitution configuration = [](const std::string& key) -> std::optional<std::string> {
    if (key == "src") return "main.raw";
    if (key == "day") return "from configuration";
    return std::nullopt;
  };
  const std::string text =
      "SET day = '2024-01-01';\nSELECT '${src}', ${day} FROM ${src}.t -- ${unknown} in a comment "
      "is text\n;";
  const Script script = parse_script(text, "t.sql", configuration);
  ASSERT_THAT(script.errors, IsEmpty());
  ASSERT_THAT(script.statements, SizeIs(2));
  EXPECT_EQ(print_spark(*std::get<SelectStatement>(script.statements[1].body).query),
            "SELECT 'main.raw', '2024-01-01' FROM main.raw.t");
  EXPECT_EQ(script.statements[1].text, "SELECT 'main.raw', '2024-01-01' FROM main.raw.t");

  const Script missing = parse_script("SELECT 1;\nSELECT ${nope} +", "t.sql", configuration);
  ASSERT_THAT(missing.errors, SizeIs(2));
  EXPECT_EQ(missing.errors[0].code, "UNKNOWN_CONFIGURATION_KEY");
  EXPECT_EQ(missing.errors[0].place->line, 2);
  EXPECT_EQ(missing.errors[0].place->column, 8);
  // A dollar sign of its own, and texts in which nothing stands for a value.
  const Script dollar = parse_script("SELECT `a${$}{src}`, '${$}'", "t.sql", configuration);
  ASSERT_THAT(dollar.errors, IsEmpty());
  EXPECT_EQ(dollar.statements[0].text, "SELECT `a${src}`, '$'");
  const auto plain = parse_query("SELECT `a${src}`, `b${$}{src}`, '${day}'", "");
  ASSERT_TRUE(plain.ok()) << plain.error().message;
  EXPECT_EQ(print_spark(**plain), "SELECT `a${src}`, `b${src}`, '${day}'");
  // A place after a value counts in the user's text.
  const Script after = parse_script("SELECT ${src} ) FROM t", "t.sql", configuration);
  ASSERT_THAT(after.errors, SizeIs(1));
  EXPECT_EQ(after.errors[0].place->column, 15);
}

TEST(Statement, ConstructsOfLaterAreRefusedByName) {
  const auto construct = [](const std::string& text) { return parsed<NotYet>(text).construct; };
  EXPECT_EQ(construct("ALTER TABLE t SET TAGS ('a' = 'b')"), "ALTER TABLE ... SET TAGS");
  EXPECT_EQ(construct("ALTER TABLE t ADD PARTITION (a = 1)"), "ALTER TABLE ... ADD PARTITION");
  EXPECT_EQ(construct("ALTER TABLE t PARTITION (a = 1) SET LOCATION 'x'"),
            "ALTER TABLE ... PARTITION");
  EXPECT_EQ(construct("ALTER VIEW v AS SELECT 1"), "ALTER VIEW");
  EXPECT_EQ(construct("COMMENT ON VOLUME v IS 'x'"), "COMMENT ON VOLUME");
  EXPECT_EQ(construct("CONVERT TO DELTA parquet.`/p`"), "CONVERT");
  EXPECT_EQ(construct("REFRESH FUNCTION f"), "REFRESH");
  EXPECT_EQ(construct("CREATE SINK s"), "CREATE SINK");
  EXPECT_EQ(construct("CREATE FUNCTION f() RETURNS INT RETURN 1"), "CREATE FUNCTION");
  EXPECT_EQ(construct("CREATE TABLE a SHALLOW CLONE b"), "CREATE TABLE ... CLONE");
}

TEST(Statement, Refresh) {
  const auto table = parsed<RefreshTable>("REFRESH STREAMING TABLE s.`t 1` FULL SYNC");
  EXPECT_EQ(table.what, RefreshTable::What::kStreamingTable);
  EXPECT_EQ(table.table.parts, (std::vector<std::string>{"s", "t 1"}));
  EXPECT_TRUE(table.full);
  const auto view = parsed<RefreshTable>("REFRESH MATERIALIZED VIEW v");
  EXPECT_EQ(view.what, RefreshTable::What::kMaterializedView);
  EXPECT_FALSE(view.full);
  EXPECT_EQ(parsed<RefreshTable>("refresh table t").what, RefreshTable::What::kTable);
  EXPECT_TRUE(parsed<CreateMaterializedView>("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT 1")
                  .or_refresh);
}

TEST(Statement, Maintenance) {
  const auto optimize = parsed<Optimize>("OPTIMIZE s.t WHERE p > 1 ZORDER BY (a, b)");
  EXPECT_EQ(optimize.table.parts, (std::vector<std::string>{"s", "t"}));
  EXPECT_NE(optimize.where, nullptr);
  ASSERT_THAT(optimize.zorder_by, SizeIs(2));
  EXPECT_EQ(optimize.zorder_by[1].text, "b");
  EXPECT_TRUE(parsed<Optimize>("OPTIMIZE t FULL").full);
  EXPECT_TRUE(parsed<Optimize>("REORG TABLE t WHERE p = 1 APPLY (PURGE)").purge);

  const auto vacuum = parsed<Vacuum>("VACUUM delta.`/x` RETAIN 1.5 HOURS DRY RUN");
  EXPECT_TRUE(vacuum.table.is_path);
  EXPECT_EQ(vacuum.retain_hours, 1.5);
  EXPECT_TRUE(vacuum.dry_run);
  EXPECT_FALSE(parsed<Vacuum>("VACUUM t").retain_hours);

  EXPECT_EQ(parsed<Restore>("RESTORE TABLE t TO VERSION AS OF 3").version_as_of, "3");
  EXPECT_EQ(parsed<Restore>("RESTORE t TIMESTAMP AS OF '2026-01-01'").timestamp_as_of,
            "2026-01-01");

  EXPECT_THAT(errors("VACUUM t RETAIN -1 HOURS"), ElementsAre(HasSubstr("hours from 0 on")));
  EXPECT_THAT(errors("VACUUM t RETAIN 1 DAYS"), ElementsAre(HasSubstr("HOUR")));
  EXPECT_THAT(errors("VACUUM t LITE"), ElementsAre(HasSubstr("VACUUM ... LITE")));
  EXPECT_THAT(errors("RESTORE TABLE t"), ElementsAre(HasSubstr("VERSION AS OF")));
  EXPECT_THAT(errors("OPTIMIZE t ZORDER (a)"), ElementsAre(HasSubstr("ZORDER BY")));
  EXPECT_THAT(errors("REORG TABLE t APPLY (UPGRADE UNIFORM)"), ElementsAre(HasSubstr("UPGRADE")));
}

TEST(Statement, RefusedClauses) {
  EXPECT_THAT(errors("CREATE STREAMING TABLE t (a INT MASK f) AS SELECT 1"),
              ElementsAre(HasSubstr("UNSUPPORTED_CONSTRUCT 1:33 MASK of a column")));
  EXPECT_THAT(errors("CREATE STREAMING TABLE t WITH ROW FILTER f ON (a)"),
              ElementsAre(HasSubstr("WITH ROW FILTER")));
  EXPECT_THAT(errors("CREATE TABLE t (a INT PRIMARY KEY)"),
              ElementsAre(HasSubstr("PRIMARY KEY of a column")));
  EXPECT_THAT(errors("CREATE TABLE t (id BIGINT GENERATED BY DEFAULT AS (1))"),
              ElementsAre(HasSubstr("IDENTITY after GENERATED BY DEFAULT AS")));
  EXPECT_THAT(errors("CREATE TABLE t (id BIGINT GENERATED ALWAYS AS IDENTITY (INCREMENT BY 0))"),
              ElementsAre(HasSubstr("IDENTITY_COLUMNS_ILLEGAL_STEP")));
  EXPECT_THAT(errors("CREATE TABLE t (id INT DEFAULT 1 GENERATED ALWAYS AS (2))"),
              ElementsAre(HasSubstr("'id' has a DEFAULT and is GENERATED")));
  EXPECT_THAT(errors("ALTER TABLE t CHANGE COLUMN a b INT"),
              ElementsAre(HasSubstr("RENAME COLUMN a TO b")));
  EXPECT_THAT(errors("ALTER TABLE t ALTER COLUMN a SET MASK f"),
              ElementsAre(HasSubstr("SET MASK of a column")));
  EXPECT_THAT(errors("ALTER TABLE t ADD CONSTRAINT k PRIMARY KEY (a)"),
              ElementsAre(HasSubstr("PRIMARY KEY")));
  EXPECT_THAT(errors("ALTER TABLE t RENAME COLUMN a.b TO a.c"),
              ElementsAre(HasSubstr("the new name is a plain one")));
  EXPECT_THAT(errors("CREATE TABLE t (a STRUCT<b: VARCHAR(5)>)"),
              ElementsAre(HasSubstr("VARCHAR in this place is not supported: use STRING")));
  EXPECT_THAT(errors("CREATE TABLE t (a VARCHAR)"),
              ElementsAre(HasSubstr("VARCHAR needs a length")));
  EXPECT_THAT(errors("CREATE TABLE t PARTITIONED BY (bucket(4, a))"),
              ElementsAre(HasSubstr("partition transform bucket")));
  EXPECT_THAT(
      errors("CREATE FLOW f AS AUTO CDC INTO t FROM STREAM s WHERE a KEYS (id) SEQUENCE BY b"),
      ElementsAre(HasSubstr("WHERE after the source")));
  EXPECT_THAT(errors("INSERT OVERWRITE t PARTITION (a = 1) IF NOT EXISTS SELECT 1"),
              ElementsAre(HasSubstr("IF NOT EXISTS of a partition")));
  EXPECT_THAT(errors("INSERT INTO t REPLACE USING (a) SELECT 1"),
              ElementsAre(HasSubstr("use REPLACE WHERE")));
}

TEST(Statement, AllMistakesInOneGo) {
  EXPECT_THAT(errors(R"(CREATE STREAMING TABLE a (id INT, ID STRING);
CREATE FLOW f AS AUTO CDC INTO t FROM STREAM s KEYS (a.id, b) SEQUENCE BY x SEQUENCE BY y COLUMNS (c.d);
CREATE FLOW g AS AUTO CDC INTO t FROM STREAM s SEQENCE BY x;
CREATE MATERIALISED VIEW v AS SELECT 1;
SELECT 'open)"),
              ElementsAre(HasSubstr("COLUMN_ALREADY_EXISTS 1:35"),
                          HasSubstr("AUTOCDC_MULTIPART_COLUMN_IDENTIFIER 2:54"),
                          HasSubstr("DUPLICATE_CLAUSES 2:77"),
                          HasSubstr("AUTOCDC_MULTIPART_COLUMN_IDENTIFIER 2:100"),
                          AllOf(HasSubstr("PARSE_SYNTAX_ERROR 3:48"), HasSubstr("KEYS")),
                          AllOf(HasSubstr("PARSE_SYNTAX_ERROR 4:8"),
                                HasSubstr("did you mean MATERIALIZED?")),
                          HasSubstr("5:8 the string that starts with ' is not closed")));
  const Script script = parse_script(
      "CREATE MATERIALISED VIEW m.v AS SELECT 1; CREATE STREAMING TABLE t (a INT,, b INT);",
      "t.sql");
  EXPECT_THAT(script.doubtful_names, ElementsAre("m.v", "t"));
}

TEST(Statement, PlacesAndTexts) {
  const Script script = parse_script("-- first\n  SELECT 1 ;\n\nSELECT 2", "t.sql");
  ASSERT_THAT(script.statements, SizeIs(2));
  EXPECT_EQ(script.statements[0].text, "SELECT 1");
  EXPECT_EQ(script.statements[0].place.line, 2);
  EXPECT_EQ(script.statements[0].place.column, 3);
  EXPECT_EQ(script.statements[1].place.line, 4);
  EXPECT_EQ(script.statements[1].place.file, "t.sql");
  EXPECT_THAT(parse_script(" ; ;; -- nothing", "t.sql").statements, IsEmpty());
}

TEST(RenderError, ShowsTheLineWithACaret) {
  const std::string text = "SELECT 1;\nSELECT '客户',\t é +;";
  const Script script = parse_script(text, "q.sql");
  ASSERT_THAT(script.errors, SizeIs(1));
  EXPECT_EQ(
      render_error(script.errors[0], text),
      "q.sql:2:18: [PARSE_SYNTAX_ERROR] found the end of the statement, expected an expression\n"
      " 2 | SELECT '客户',  é +;\n"
      "   |                    ^");
  Error without_place = script.errors[0];
  without_place.place.reset();
  EXPECT_EQ(render_error(without_place, text),
            "[PARSE_SYNTAX_ERROR] found the end of the statement, expected an expression");
  Error beyond = script.errors[0];
  beyond.place->line = 99;
  EXPECT_THAT(render_error(beyond, text), HasSubstr("q.sql:99:18"));
}

}  // namespace
}  // namespace strandline::sql
