#include "duck/render.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/json.h"

namespace strandline::duck {
namespace {

using ::testing::HasSubstr;

class RenderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto database = Database::open({});
    ASSERT_TRUE(database.ok()) << database.error().message;
    auto connection = (*database)->connect();
    ASSERT_TRUE(connection.ok());
    connection_ = std::move(connection).value();
  }

  std::string text(const std::string& sql, const RenderOptions& options) {
    std::string all;
    auto rows = render(*connection_, sql, options, [&](std::string_view piece) -> Status {
      all += piece;
      return {};
    });
    if (!rows.ok()) return "ERROR " + rows.error().message;
    row_count_ = *rows;
    return all;
  }
  std::string text(const std::string& sql, RenderFormat format) {
    return text(sql, RenderOptions{format});
  }
  // JSON text of one value.
  std::string json(const std::string& value) {
    std::string line = text("SELECT " + value + " AS v", RenderFormat::kNdjson);
    EXPECT_TRUE(Json::parse(line).ok()) << line;
    return line.substr(5, line.size() - 7);
  }

  std::unique_ptr<Connection> connection_;
  int64_t row_count_ = -1;
};

TEST_F(RenderTest, JsonForms) {
  EXPECT_EQ(json("NULL"), "null");
  EXPECT_EQ(json("true"), "true");
  EXPECT_EQ(json("(-128)::TINYINT"), "-128");
  EXPECT_EQ(json("9223372036854775807"), "9223372036854775807");
  EXPECT_EQ(json("170141183460469231731687303715884105727::HUGEINT"),
            "170141183460469231731687303715884105727");
  EXPECT_EQ(json("-1.50::DECIMAL(10,2)"), "\"-1.50\"");
  EXPECT_EQ(json("1.0::DOUBLE"), "1.0");
  EXPECT_EQ(json("0.1::FLOAT"), "0.1");
  EXPECT_EQ(json("1e300"), "1e+300");
  EXPECT_EQ(json("'nan'::DOUBLE"), "\"NaN\"");
  EXPECT_EQ(json("'inf'::FLOAT"), "\"Infinity\"");
  EXPECT_EQ(json("'-inf'::DOUBLE"), "\"-Infinity\"");
  EXPECT_EQ(json("DATE '2024-02-29'"), "\"2024-02-29\"");
  EXPECT_EQ(json("TIMESTAMPTZ '2024-02-29 10:00:00+02'"), "\"2024-02-29T08:00:00Z\"");
  EXPECT_EQ(json("TIMESTAMP '2024-02-29 10:00:00.5'"), "\"2024-02-29T10:00:00.500000\"");
  EXPECT_EQ(json("TIMESTAMPTZ '0001-01-01 00:00:00+00'"), "\"0001-01-01T00:00:00Z\"");
  EXPECT_EQ(json("'a\\x00\\xFF'::BLOB"), "\"YQD/\"");
  EXPECT_EQ(json("'ab'::BLOB"), "\"YWI=\"");
  EXPECT_EQ(json("''::BLOB"), "\"\"");
  EXPECT_EQ(json("'say \"hi\"' || chr(10)"), "\"say \\\"hi\\\"\\n\"");
  EXPECT_EQ(json("{'a': 1, 'b \"q\"': [1.5::DECIMAL(2,1), NULL]}"),
            "{\"a\":1,\"b \\\"q\\\"\":[\"1.5\",null]}");
  EXPECT_EQ(json("MAP {'k': DATE '2024-01-01'}"), "{\"k\":\"2024-01-01\"}");
  EXPECT_EQ(json("MAP {1: true}"), "{\"1\":true}");
  EXPECT_EQ(json("[]::INTEGER[]"), "[]");
  EXPECT_EQ(json("array_value(1, 2)"), "[1,2]");
  EXPECT_EQ(json("'eeccb8c5-9943-b2bb-bb5e-222f4e14b687'::UUID"),
            "\"eeccb8c5-9943-b2bb-bb5e-222f4e14b687\"");
}

TEST_F(RenderTest, JsonIsOneArrayAndNdjsonLines) {
  const std::string sql = "SELECT i AS \"the i\" FROM range(2) t(i)";
  EXPECT_EQ(text(sql, RenderFormat::kJson), "[\n{\"the i\":0},\n{\"the i\":1}\n]\n");
  EXPECT_EQ(text(sql, RenderFormat::kNdjson), "{\"the i\":0}\n{\"the i\":1}\n");
  EXPECT_EQ(row_count_, 2);
  EXPECT_EQ(text("SELECT 1 AS a WHERE false", RenderFormat::kJson), "[]\n");
  EXPECT_EQ(text("SELECT 1 AS a WHERE false", RenderFormat::kNdjson), "");
}

TEST_F(RenderTest, SeveralQueriesMakeOneDocument) {
  const auto all = [&](RenderFormat format) -> std::string {
    std::vector<std::string> queries = {"SELECT 1 AS a", "SELECT 2 AS a WHERE false",
                                        "SELECT i AS a FROM range(20, 22) t(i)"};
    size_t at = 0;
    const auto next = [&]() -> Result<std::optional<std::string>> {
      if (at == queries.size()) return std::optional<std::string>();
      return std::optional(queries[at++]);
    };
    std::string text;
    const auto rows = render_all(*connection_, next, RenderOptions{format},
                                 [&](std::string_view piece) -> Status {
                                   text += piece;
                                   return {};
                                 });
    EXPECT_TRUE(rows.ok() && *rows == 3);
    return text;
  };
  EXPECT_EQ(all(RenderFormat::kJson), "[\n{\"a\":1},\n{\"a\":20},\n{\"a\":21}\n]\n");
  EXPECT_EQ(all(RenderFormat::kCsv), "a\n1\n20\n21\n");
  EXPECT_EQ(all(RenderFormat::kMarkdown), "| a |\n|---:|\n| 1 |\n| 20 |\n| 21 |\n");
  EXPECT_THAT(all(RenderFormat::kTable), HasSubstr("|  1 |\n| 20 |\n| 21 |\n+----+\n3 rows\n"));
}

TEST_F(RenderTest, ErrorsOfLaterQueriesAreReturned) {
  int calls = 0;
  const auto next = [&]() -> Result<std::optional<std::string>> {
    if (++calls == 2) return invalid_data("NO_MORE", "that was all");
    return std::optional<std::string>("SELECT 1 AS a");
  };
  const auto rows = render_all(*connection_, next, RenderOptions{RenderFormat::kCsv},
                               [](std::string_view) -> Status { return {}; });
  ASSERT_FALSE(rows.ok());
  EXPECT_EQ(rows.error().code, "NO_MORE");
}

TEST_F(RenderTest, CsvQuotesWhatNeedsIt) {
  EXPECT_EQ(text("SELECT 'a,b' AS \"x,y\", '' AS e, NULL AS n, 'say \"hi\"' AS q, [1, 2] AS l",
                 RenderFormat::kCsv),
            "\"x,y\",e,n,q,l\n\"a,b\",\"\",,\"say \"\"hi\"\"\",\"[1,2]\"\n");
}

TEST_F(RenderTest, TableAlignsByDisplayWidth) {
  EXPECT_EQ(
      text("SELECT * FROM (VALUES (1, 'ab'), (100, '日本'), (NULL, 'e' || chr(769) || chr(10))) "
           "t(n, name)",
           RenderFormat::kTable),
      "+------+------+\n"
      "| n    | name |\n"
      "+------+------+\n"
      "|    1 | ab   |\n"
      "|  100 | 日本 |\n"
      "| NULL | e\xCC\x81\\n  |\n"
      "+------+------+\n"
      "3 rows\n");
  EXPECT_EQ(text("SELECT 1 AS a WHERE false", RenderFormat::kTable),
            "+---+\n| a |\n+---+\n0 rows\n");
}

TEST_F(RenderTest, TableSaysWhatItLeavesOut) {
  const std::string shown = text("SELECT i FROM range(5000) t(i)",
                                 RenderOptions{RenderFormat::kTable, /*table_row_limit=*/3});
  EXPECT_THAT(shown, HasSubstr("| 2 |"));
  EXPECT_THAT(shown, ::testing::Not(HasSubstr("| 3 |")));
  EXPECT_THAT(shown, HasSubstr("5000 rows\nthe first 3 are shown"));
}

TEST_F(RenderTest, MarkdownEscapes) {
  EXPECT_EQ(text("SELECT 1 AS n, 'a|b' AS t", RenderFormat::kMarkdown),
            "| n | t |\n|---:|---|\n| 1 | a\\|b |\n");
}

TEST_F(RenderTest, LargeResultsComeInPieces) {
  size_t pieces = 0;
  size_t bytes = 0;
  auto rows = render(*connection_, "SELECT i, 'text ' || i AS t FROM range(100000) t(i)",
                     RenderOptions{RenderFormat::kNdjson}, [&](std::string_view piece) -> Status {
                       ++pieces;
                       bytes += piece.size();
                       return {};
                     });
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ(*rows, 100000);
  EXPECT_GT(pieces, 10u);
  EXPECT_GT(bytes, 2'000'000u);
}

TEST_F(RenderTest, SinkErrorsAndQueryErrorsAreReturned) {
  auto stopped = render(*connection_, "SELECT 1 AS a", {}, [](std::string_view) -> Status {
    return io_error("PIPE_CLOSED", "closed");
  });
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().code, "PIPE_CLOSED");
  EXPECT_THAT(text("SELECT nothing", RenderFormat::kJson), HasSubstr("ERROR"));
  EXPECT_THAT(text("SELECT error('[X.Y] late') FROM range(3)", RenderFormat::kJson), "ERROR late");
}

TEST(RenderFormatTest, Names) {
  EXPECT_EQ(parse_render_format("markdown"), RenderFormat::kMarkdown);
  EXPECT_EQ(parse_render_format("xml"), std::nullopt);
}

}  // namespace
}  // namespace strandline::duck
