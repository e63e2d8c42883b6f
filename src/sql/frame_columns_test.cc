// What items of frames stand for, and what is printed of them over columns that a describer tells.
#include "sql/frame_columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "sql/duckdb_printer.h"
#include "sql/parser.h"

namespace strandline::sql {
namespace {

using ::testing::HasSubstr;

DataType type(TypeId id) { return DataType::primitive(id); }

// A query over t (id BIGINT, x DOUBLE, s STRING) and what a file hides.
std::string printed(const std::string& text) {
  const auto parsed = parse_query(text, "q.sql");
  if (!parsed.ok()) return render_error(parsed.error(), text);
  PrintOptions options;
  options.describe = [](const std::string& query) -> std::optional<std::vector<Field>> {
    if (query.find("nowhere") != std::string::npos) return std::nullopt;
    if (query.find(" AS v") != std::string::npos)
      return std::vector<Field>{{"v", type(TypeId::kLong), true, {}}};
    return std::vector<Field>{{"id", type(TypeId::kLong), true, {}},
                              {"x", type(TypeId::kDouble), true, {}},
                              {"s", type(TypeId::kString), true, {}},
                              {"_metadata", type(TypeId::kVoid), true, {}}};
  };
  const Resolve resolve = [](const TableUse& use) -> Result<std::string> {
    return to_string(use.name);
  };
  const auto result = print_duckdb(**parsed, resolve, options);
  return result.ok() ? *result : result.error().code + ": " + result.error().message;
}

TEST(FrameColumns, ReplacesAtThePlaceOrAddsAtTheEnd) {
  EXPECT_EQ(printed("SELECT __strandline_with('z', id, 'ID', s) FROM t"),
            "SELECT \"s\" AS \"ID\", \"x\" AS \"x\", \"s\" AS \"s\", \"_metadata\" AS "
            "\"_metadata\", \"id\" AS \"z\" FROM t AS \"t\"");
  EXPECT_THAT(printed("SELECT __strandline_set('ID', s) FROM t"),
              HasSubstr("SELECT \"s\" AS \"id\", "));
}

TEST(FrameColumns, NamesThatAreNotThereAreNoMistake) {
  EXPECT_EQ(printed("SELECT __strandline_drop('X', 'no', 's') FROM t"),
            "SELECT \"id\" AS \"id\", \"_metadata\" AS \"_metadata\" FROM t AS \"t\"");
  EXPECT_EQ(printed("SELECT __strandline_rename('no', 'a', 'S', 'b') FROM t"),
            "SELECT \"id\" AS \"id\", \"x\" AS \"x\", \"s\" AS \"b\", \"_metadata\" AS "
            "\"_metadata\" FROM t AS \"t\"");
}

TEST(FrameColumns, NamesOfAll) {
  EXPECT_THAT(printed("SELECT __strandline_names('a', 'b', 'c') FROM t"),
              HasSubstr("\"s\" AS \"c\", \"_metadata\" AS \"_metadata\""));
  EXPECT_EQ(printed("SELECT __strandline_names('a', 'b') FROM t"),
            "NUM_COLUMNS_MISMATCH: the frame has 3 columns, not 2: name each");
}

TEST(FrameColumns, ValuesOfTheColumnsThatTakeThem) {
  const std::string filled = printed("SELECT __strandline_each('filled', 7) FROM t");
  EXPECT_THAT(filled, HasSubstr("\"s\" AS \"s\""));
  EXPECT_THAT(filled, HasSubstr("isnan(\"x\")"));
  EXPECT_THAT(filled, HasSubstr("coalesce(\"id\""));
  const std::string replaced =
      printed("SELECT __strandline_each('replaced', 'a', 'b', 1, 2) FROM t");
  EXPECT_THAT(replaced, HasSubstr("WHEN (\"s\" = 'a')"));
  EXPECT_THAT(replaced, ::testing::Not(HasSubstr("\"id\" = 'a'")));
  EXPECT_THAT(printed("SELECT 1 AS n FROM t WHERE __strandline_missing(id, x) = 0"),
              HasSubstr("(CASE WHEN \"id\" IS NULL THEN 1 ELSE 0 END + CASE WHEN \"x\" IS NULL OR "
                        "isnan(\"x\") THEN 1 ELSE 0 END) = 0"));
}

TEST(FrameColumns, AFromClauseWithAMistakeFailsInTheEngine) {
  EXPECT_EQ(
      printed("SELECT __strandline_drop('a') FROM nowhere"),
      "SELECT \"__strandline_columns\" AS \"__strandline_columns\" FROM nowhere AS \"nowhere\"");
}

TEST(FrameColumns, AColumnThatIsThereTwiceCannotStay) {
  const auto parsed = parse_query("SELECT __strandline_drop('a') FROM t", "q.sql");
  ASSERT_TRUE(parsed.ok());
  const Expr& item = *(*parsed)->as<Select>()->items[0].expr;
  const auto kept = frame_items(item, {"id", "a", "ID"});
  ASSERT_FALSE(kept.ok());
  EXPECT_EQ(kept.error().code, "AMBIGUOUS_REFERENCE");
  const auto gone = frame_items(item, {"id", "a", "A"});
  ASSERT_TRUE(gone.ok());
  EXPECT_EQ(gone->size(), 1U);
}

TEST(FrameColumns, WhatAColumnIsMadeOf) {
  const auto source = [](const std::string& text, const std::string& name) -> std::string {
    const auto parsed = parse_query("SELECT " + text + " FROM t", "q.sql");
    if (!parsed.ok()) return parsed.error().message;
    const ExprPtr found = frame_source(*(*parsed)->as<Select>()->items[0].expr, name);
    return found ? print_spark(*found) : "";
  };
  EXPECT_EQ(source("__strandline_with('z', id + 1)", "Z"), "id + 1");
  EXPECT_EQ(source("__strandline_with('z', id + 1)", "s"), "s");
  EXPECT_EQ(source("__strandline_drop('s')", "s"), "");
  EXPECT_EQ(source("__strandline_rename('s', 'r')", "r"), "");
  EXPECT_EQ(source("__strandline_rename('s', 'r')", "id"), "id");
  EXPECT_EQ(source("__strandline_each('filled', 1)", "id"), "");
}

}  // namespace
}  // namespace strandline::sql
