// Parsing: the trees of statements, the errors and their places.
#include "sql/parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sql/duckdb_printer.h"

namespace strandline::sql {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

template <typename T>
T one_statement(const std::string& text) {
  Script script = parse_script(text, "t.sql");
  for (const Error& error : script.errors) ADD_FAILURE() << render_error(error, text);
  if (script.statements.size() != 1) {
    ADD_FAILURE() << script.statements.size() << " statements in: " << text;
    return T{};
  }
  const T* body = std::get_if<T>(&script.statements[0].body);
  if (body == nullptr) {
    ADD_FAILURE() << "another kind of statement: " << text;
    return T{};
  }
  return *body;
}

std::vector<std::string> texts(const std::vector<Name>& names) {
  std::vector<std::string> result;
  for (const Name& name : names) result.push_back(name.text);
  return result;
}

Error one_error(const std::string& text) {
  Script script = parse_script(text, "t.sql");
  if (script.errors.size() != 1) {
    ADD_FAILURE() << script.errors.size() << " errors in: " << text;
    for (const Error& error : script.errors) ADD_FAILURE() << render_error(error, text);
    return Error{};
  }
  return script.errors[0];
}

TEST(Parser, AutoCdcWithEveryClause) {
  const auto flow = one_statement<CreateAutoCdcFlow>(R"(
    CREATE FLOW f COMMENT 'c' AS AUTO CDC ONCE INTO LIVE.target FROM stream(main.cdc.users)
    KEYS (userId, `b.c`) IGNORE NULL UPDATES ON * EXCEPT (x)
    APPLY AS DELETE WHEN operation = "DELETE" APPLY AS TRUNCATE WHEN operation = "TRUNCATE"
    SEQUENCE BY STRUCT(a, b) COLUMNS * EXCEPT (operation, sequenceNum)
    STORED AS SCD TYPE 2 TRACK HISTORY ON city, name)");
  EXPECT_EQ(flow.flow_name->text, "f");
  EXPECT_EQ(flow.comment, "c");
  EXPECT_THAT(flow.target.parts, ElementsAre("target"));
  EXPECT_TRUE(flow.clauses.once);
  EXPECT_THAT(texts(flow.clauses.keys), ElementsAre("userId", "b.c"));
  const TableUse* source = plain_table(*flow.clauses.source);
  ASSERT_NE(source, nullptr);
  EXPECT_TRUE(source->stream);
  EXPECT_THAT(source->name.parts, ElementsAre("main", "cdc", "users"));
  EXPECT_EQ(print_spark(*flow.clauses.delete_when), "operation = 'DELETE'");
  EXPECT_THAT(sequence_parts(*flow.clauses.sequence_by), SizeIs(2));
  EXPECT_TRUE(flow.clauses.columns->except);
  EXPECT_THAT(texts(flow.clauses.columns->names), ElementsAre("operation", "sequenceNum"));
  EXPECT_EQ(flow.clauses.stored_as, StoredAs::kScdType2);
  EXPECT_FALSE(flow.clauses.track_history->except);
  EXPECT_THAT(texts(flow.clauses.track_history->names), ElementsAre("city", "name"));
  EXPECT_TRUE(flow.clauses.ignore_null_updates);
  EXPECT_TRUE(flow.clauses.ignore_null_columns->except);
}

TEST(Parser, SchemaText) {
  const auto schema = parse_schema_ddl(
      "id INT NOT NULL, tags ARRAY<STRING>, s: STRUCT<a: DECIMAL(10,2), m MAP<STRING, BIGINT>>",
      "t");
  ASSERT_TRUE(schema.ok()) << schema.error().message;
  ASSERT_EQ(schema->fields.size(), 3u);
  EXPECT_FALSE(schema->fields[0].nullable);
  EXPECT_EQ(to_sql(schema->fields[2].type), "STRUCT<a: DECIMAL(10,2), m: MAP<STRING, BIGINT>>");
}

TEST(Parser, ExpressionHelpers) {
  const auto expr =
      parse_expression("coalesce(a.b, c) > 1 AND exists(xs, x -> x = d) AND C is not null", "t");
  ASSERT_TRUE(expr.ok()) << expr.error().message;
  EXPECT_THAT(texts(columns_read(**expr)), ElementsAre("a.b", "c", "xs", "d"));
  EXPECT_EQ(plain_column(**parse_expression("`weird name`", "t"))->text, "weird name");
  EXPECT_FALSE(plain_column(**parse_expression("a.b", "t")).has_value());
}

TEST(Parser, ErrorsNameWhatWasFoundAndExpected) {
  const std::string text =
      "CREATE FLOW f AS AUTO CDC INTO t\nFROM stream(s) KYES (id) SEQUENCE BY ts";
  const Error error = one_error(text);
  EXPECT_EQ(error.code, "PARSE_SYNTAX_ERROR");
  EXPECT_EQ(error.place->line, 2);
  EXPECT_EQ(error.place->column, 16);
  EXPECT_THAT(error.message, HasSubstr("KEYS"));
}

TEST(Parser, GoesOnAtTheNextSemicolon) {
  const Script script =
      parse_script("CREATE STREAMING TABLE t (id INT,;\nSELECT 1;\nSELEC 2;\nSELECT 3", "t.sql");
  EXPECT_THAT(script.statements, SizeIs(2));
  EXPECT_THAT(script.errors, SizeIs(2));
  EXPECT_THAT(script.doubtful_names, ElementsAre("t"));
  EXPECT_THAT(script.errors[1].message, HasSubstr("did you mean SELECT?"));
}

}  // namespace
}  // namespace strandline::sql
