#include "duck/row_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "duck/check_rules.h"

namespace strandline::duck {
namespace {

using testing::HasSubstr;

class RowRulesTest : public testing::Test {
 protected:
  void SetUp() override {
    auto database = Database::open({});
    ASSERT_TRUE(database.ok());
    connection_ = std::move((*database)->connect()).value();
    definition_.table_path = "/t";
    definition_.schema.fields = {
        Field{"a b", DataType::primitive(TypeId::kInteger), true, {}},
        Field{"s",
              DataType::structure({Field{"x", DataType::primitive(TypeId::kInteger), true, {}}}),
              true,
              {}},
        Field{"id", DataType::primitive(TypeId::kLong), true, {}}};
  }

  Field& field(const std::string& name) {
    return definition_.schema.fields[*definition_.schema.find(name)];
  }

  // Rows of "a b", s, id after the rules as text, or the error.
  std::string apply(const std::string& rows) {
    auto rules = RowRules::of(*connection_, definition_);
    if (!rules.ok()) return rules.error().code + ": " + rules.error().message;
    auto query = rules->apply(rows);
    if (!query.ok()) return query.error().code + ": " + query.error().message;
    const auto result = connection_->query(*query);
    if (!result.ok()) return result.error().code + ": " + result.error().message;
    std::string text;
    for (const auto& row : result->rows) {
      for (const auto& cell : row) text += cell.value_or("NULL") + " ";
      text += "\n";
    }
    return text;
  }
  static std::string row(const std::string& values) {
    return "SELECT * FROM (VALUES " + values + ") AS v(\"a b\", s, id)";
  }

  std::unique_ptr<Connection> connection_;
  delta::Snapshot definition_;
};

TEST_F(RowRulesTest, WithoutRulesTheQueryStaysAsItIs) {
  auto rules = RowRules::of(*connection_, definition_);
  ASSERT_TRUE(rules.ok());
  EXPECT_EQ(*rules->apply("SELECT 1"), "SELECT 1");
  EXPECT_EQ(*rules->apply(""), "");
}

TEST_F(RowRulesTest, ConditionsMustBeTrue) {
  definition_.metadata.configuration["delta.constraints.small"] = "`a b` < 10 AND s.x <> 3";
  EXPECT_EQ(apply(row("(1, {'x': 1}, 5)")), "1 {'x': 1} 5 \n");
  EXPECT_EQ(
      apply(row("(10, {'x': 1}, 5)")),
      "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES: CHECK constraint small (`a b` < 10 AND s.x <> 3) "
      "of /t is violated by a row with a b = 10, s = {'x': 1}");
  EXPECT_THAT(apply(row("(1, {'x': 3}, 5)")), HasSubstr("CHECK constraint small"));
  EXPECT_THAT(apply(row("(NULL, {'x': 1}, 5)")), HasSubstr("a b = NULL"));
}

TEST_F(RowRulesTest, InvariantsMustBeTrue) {
  field("a b").metadata["delta.invariants"] =
      R"("{\"expression\":{\"expression\":\"`a b` > 0\"}}")";
  EXPECT_EQ(apply(row("(1, NULL::STRUCT(x INT), 5)")), "1 NULL 5 \n");
  EXPECT_THAT(apply(row("(0, NULL::STRUCT(x INT), 5)")),
              HasSubstr("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES: the invariant (`a b` > 0)"));
}

TEST_F(RowRulesTest, NotNull) {
  field("a b").nullable = false;
  EXPECT_THAT(apply(row("(NULL::INT, {'x': 1}, 5)")),
              HasSubstr("DELTA_NOT_NULL_CONSTRAINT_VIOLATED: column a b of /t"));
}

TEST_F(RowRulesTest, GeneratedColumnsAreComputedOrCompared) {
  delta::set_generated(&field("id"), "`a b` * 2");
  EXPECT_EQ(apply(row("(1, {'x': 1}, NULL::BIGINT), (NULL, NULL, NULL), (2, NULL, 4)")),
            "1 {'x': 1} 2 \nNULL NULL NULL \n2 NULL 4 \n");
  EXPECT_THAT(
      apply(row("(1, {'x': 1}, 3)")),
      HasSubstr("column id is generated as (`a b` * 2): leave it out, or give that value; a "
                "row has id = 3 with a b = 1"));
  EXPECT_THAT(apply(row("(NULL::INT, {'x': 1}, 3)")), HasSubstr("id = 3 with a b = NULL"));
}

TEST_F(RowRulesTest, IdentityColumnsCountOn) {
  delta::set_identity(&field("id"), {5, -3, false, 2});
  EXPECT_EQ(apply(row("(1, NULL, NULL::BIGINT), (2, NULL, 77), (3, NULL, NULL)")),
            "1 NULL -1 \n2 NULL 77 \n3 NULL -4 \n");
  // Each set of rules counts from the table's mark.
  EXPECT_EQ(apply(row("(1, NULL, NULL::BIGINT)")), "1 NULL -1 \n");
  delta::set_identity(&field("id"), {5, 1, false, std::numeric_limits<int64_t>::max()});
  EXPECT_THAT(apply(row("(1, NULL, NULL::BIGINT)")), HasSubstr("DELTA_IDENTITY_COLUMN_EXHAUSTED"));
}

TEST_F(RowRulesTest, TheLastBigintIsGivenOut) {
  delta::set_identity(&field("id"), {std::numeric_limits<int64_t>::max() - 1, 1, false, {}});
  EXPECT_EQ(apply(row("(1, NULL, NULL::BIGINT), (2, NULL, NULL)")),
            "1 NULL 9223372036854775806 \n2 NULL 9223372036854775807 \n");
  delta::set_identity(&field("id"), {std::numeric_limits<int64_t>::min(), -1, false, {}});
  EXPECT_EQ(apply(row("(1, NULL, NULL::BIGINT)")), "1 NULL -9223372036854775808 \n");
}

TEST_F(RowRulesTest, TextHasTheLengthOfItsColumn) {
  definition_.schema.fields = {Field{"v", DataType::primitive(TypeId::kString), true, {}},
                               Field{"c", DataType::primitive(TypeId::kString), true, {}}};
  const std::string key = "__CHAR_VARCHAR_TYPE_STRING";
  field("v").metadata[key] = "\"varchar(3)\"";
  field("c").metadata[key] = "\"char(3)\"";
  const auto rows = [](const std::string& values) {
    return "SELECT * FROM (VALUES " + values + ") AS t(v, c)";
  };
  EXPECT_EQ(apply(rows("('abc', 'a'), ('ab   ', 'abc  '), ('é', ''), (NULL, NULL)")),
            "abc a   \nab  abc \né     \nNULL NULL \n");
  EXPECT_EQ(apply(rows("('abcd', 'a')")),
            "EXCEED_LIMIT_LENGTH: column v is VARCHAR(3), but a row has 4 characters");
  EXPECT_THAT(apply(rows("('a', 'abcd ')")), HasSubstr("EXCEED_LIMIT_LENGTH"));
  field("c").metadata[key] = "\"array<char(3)>\"";
  EXPECT_THAT(apply(rows("('a', 'a')")), HasSubstr("UNSUPPORTED_CHAR_OR_VARCHAR_AS_STRING"));
}

TEST_F(RowRulesTest, WhatCannotBeEvaluatedIsNamed) {
  definition_.metadata.configuration["delta.constraints.odd"] = "no_such_function(`a b`)";
  EXPECT_THAT(apply(row("(1, NULL, 5)")),
              testing::AllOf(HasSubstr("DELTA_UNSUPPORTED_EXPRESSION"), HasSubstr("odd"),
                             HasSubstr("no_such_function")));
}

TEST_F(RowRulesTest, DefaultsHaveTheColumnsType) {
  EXPECT_EQ(*default_value(field("id")), "CAST(NULL AS BIGINT)");
  delta::set_default(&field("id"), "current_timestamp()");
  const auto text = default_value(field("id"), 1000);
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(text->find("now"), std::string::npos) << *text;
}

TEST_F(RowRulesTest, DefinitionsAreChecked) {
  const auto code = [](const Status& status) { return status.ok() ? "ok" : status.error().code; };
  const auto rule = [&](auto set) {
    delta::ColumnRule checked;
    checked.path = {"id"};
    set(&checked);
    return code(check_column_rule(*connection_, definition_.schema, checked));
  };
  EXPECT_EQ(rule([](auto* r) { r->default_sql = "1"; }), "ok");
  EXPECT_EQ(rule([](auto* r) { r->default_sql = "1.5"; }), "INVALID_DEFAULT_VALUE.DATA_TYPE");
  EXPECT_EQ(rule([](auto* r) { r->default_sql = "'12'"; }), "ok");
  EXPECT_EQ(rule([](auto* r) { r->default_sql = "'x'"; }), "INVALID_DEFAULT_VALUE.DATA_TYPE");
  EXPECT_EQ(rule([](auto* r) { r->default_sql = "`a b`"; }),
            "INVALID_DEFAULT_VALUE.UNRESOLVED_EXPRESSION");
  EXPECT_EQ(rule([](auto* r) { r->default_sql = "array(1)"; }), "INVALID_DEFAULT_VALUE.DATA_TYPE");
  EXPECT_EQ(rule([](auto* r) { r->generated_sql = "s.x + 1"; }), "ok");
  EXPECT_EQ(rule([](auto* r) { r->generated_sql = "id + 1"; }),
            "DELTA_INVALID_GENERATED_COLUMN_REFERENCES");
  EXPECT_EQ(rule([](auto* r) { r->generated_sql = "uuid()"; }),
            "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED");
  EXPECT_EQ(rule([](auto* r) { r->generated_sql = "'x'"; }),
            "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH");
  EXPECT_EQ(rule([](auto* r) { r->identity = delta::IdentityRule{}; }), "ok");

  const auto check = [&](const std::string& sql) {
    return code(check_constraint(*connection_, definition_.schema, {"c", sql}));
  };
  EXPECT_EQ(check("id > 1"), "ok");
  EXPECT_EQ(check("id + 1"), "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT");
  EXPECT_EQ(check("idd > 1"), "UNRESOLVED_COLUMN.WITH_SUGGESTION");
  EXPECT_NE(check("sum(id) > 1"), "ok");
}

}  // namespace
}  // namespace strandline::duck
