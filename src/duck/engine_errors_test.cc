#include "duck/engine_errors.h"

#include <gtest/gtest.h>

#include "sql/parser.h"

namespace strandline::duck {
namespace {

Error told(const std::string& statement, const std::string& message) {
  auto script = sql::parse_script(statement, "");
  EXPECT_TRUE(script.errors.empty());
  return in_users_words(Error{ErrorKind::kInvalidData, "ENGINE_ERROR", message, {}},
                        script.statements.at(0));
}

struct Case {
  const char* message;
  const char* code;
  const char* says;
};

TEST(EngineErrors, GoByPublicNames) {
  const Case cases[] = {
      {"Binder Error: Referenced column \"nosuch\" not found in FROM clause!\nCandidate bindings: "
       "\"k\", \"__strandline_row\"\n\nLINE 1: SELECT __strandline",
       "UNRESOLVED_COLUMN.WITH_SUGGESTION", "there is no column nosuch here; near are \"k\""},
      {"Binder Error: Referenced column \"nosuch\" was not found because the FROM clause is "
       "missing",
       "UNRESOLVED_COLUMN.WITH_SUGGESTION", "there is no column nosuch here"},
      {"Binder Error: Table \"t\" does not have a column named \"nosuch\"\n\nCandidate bindings: : "
       "\"s\"",
       "UNRESOLVED_COLUMN.WITH_SUGGESTION", "t has no column nosuch; near are \"s\""},
      {"Binder Error: Referenced table \"_metadata\" not found!\nCandidate tables: \"t\"",
       "UNRESOLVED_COLUMN.WITH_SUGGESTION", "_metadata tells of files that read_files reads"},
      {"Binder Error: Referenced table \"x\" not found!\nCandidate tables: \"t\"",
       "UNRESOLVED_COLUMN.WITH_SUGGESTION", "no relation of FROM is called x"},
      {"Binder Error: Could not find key \"zz\" in struct\n\nCandidate Entries: \"a\"",
       "FIELD_NOT_FOUND", "the struct has no field zz"},
      {"Binder Error: column \"k\" must appear in the GROUP BY clause or must be part of an "
       "aggregate function.",
       "MISSING_AGGREGATION", "the column k"},
      {"Conversion Error: Could not convert string 'a\nb' to INT32\n\nLINE 1: x",
       "CAST_INVALID_INPUT", "the text 'a\nb' is no INT: use try_cast"},
      {"Conversion Error: Could not convert string \"1234\" to DECIMAL(3,1)", "CAST_INVALID_INPUT",
       "the text '1234' is no DECIMAL(3,1)"},
      {"Conversion Error: invalid date field format: \"abc\", expected format is (YYYY-MM-DD)",
       "CAST_INVALID_INPUT", "the text 'abc' is no date"},
      {"Conversion Error: Type INT32 with value 300 can't be cast because the value is out of "
       "range "
       "for the destination type INT8",
       "CAST_OVERFLOW", "300 is out of the range of TINYINT"},
      {"Out of Range Error: Overflow in addition of INT64 (9223372036854775807 + 1)!",
       "ARITHMETIC_OVERFLOW", "9223372036854775807 + 1 is out of the range"},
      {"Not implemented Error: Cannot combine types DECIMAL(11,1) and BOOLEAN - an explicit cast "
       "is "
       "required",
       "INVALID_INLINE_TABLE.INCOMPATIBLE_TYPES_IN_INLINE_TABLE", "DECIMAL(11,1) and of BOOLEAN"},
      {"Binder Error: Cannot mix values of type INTEGER and DATE in COALESCE operator - an "
       "explicit "
       "cast is required",
       "DATATYPE_MISMATCH.DATA_DIFF_TYPES", "INT and of DATE"},
      {"Conversion Error: Unimplemented type for cast (INTEGER -> INTEGER[]) when casting from",
       "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION", "INT cannot become ARRAY<INT>"},
      {"Binder Error: No function matches the given name and argument types 'upper(INTEGER)'. You "
       "might need to add explicit type casts.\n\tCandidate functions:\n\tupper(VARCHAR)",
       "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE", "upper does not take (INTEGER)"},
      {"Invalid Input Error: Map keys must be unique.", "DUPLICATED_MAP_KEY", "twice"},
      {"Invalid Input Error: Map keys can not be NULL.", "NULL_MAP_KEY", "null key"},
  };
  for (const auto& each : cases) {
    const auto error = told("SELECT 1", each.message);
    EXPECT_EQ(error.code, each.code) << each.message;
    EXPECT_NE(error.message.find(each.says), std::string::npos) << error.message;
    EXPECT_EQ(error.message.find("__strandline"), std::string::npos) << error.message;
  }
}

TEST(EngineErrors, ANameIsPointedAt) {
  const auto error = told("SELECT k,\n  t.nosuch FROM t",
                          "Binder Error: Table \"t\" does not have a column named \"nosuch\"");
  ASSERT_TRUE(error.place.has_value());
  EXPECT_EQ(error.place->line, 2);
  EXPECT_EQ(error.place->column, 3);
}

TEST(EngineErrors, WhatIsNotKnownIsShownWithoutTheEnginesText) {
  const auto error = told("SELECT 1",
                          "Invalid Input Error: no such thing in \"__strandline_source\".k\n\nLINE "
                          "1: SELECT __strandline_x\n ^");
  EXPECT_EQ(error.code, "ENGINE_ERROR");
  EXPECT_EQ(error.message, "no such thing in k");
}

TEST(EngineErrors, OtherErrorsStay) {
  auto script = sql::parse_script("SELECT 1", "");
  const auto error =
      in_users_words(Error{ErrorKind::kInvalidData, "DIVIDE_BY_ZERO", "Overflow in addition", {}},
                     script.statements.at(0));
  EXPECT_EQ(error.code, "DIVIDE_BY_ZERO");
  EXPECT_EQ(error.message, "Overflow in addition");
}

}  // namespace
}  // namespace strandline::duck
