#include "sql/coercion.h"

#include <gtest/gtest.h>

namespace strandline::sql {
namespace {

DataType decimal(int precision, int scale) { return DataType::decimal(precision, scale); }

std::string common(const DataType& a, const DataType& b, Texts texts = Texts::kBecomeOthers) {
  const auto type = common_type(a, b, texts);
  const auto turned = common_type(b, a, texts);
  EXPECT_EQ(type.has_value(), turned.has_value());
  EXPECT_EQ(to_sql(type.value_or(DataType())), to_sql(turned.value_or(DataType())));
  return type ? to_sql(*type) : "none";
}

TEST(CoercionTest, CommonTypes) {
  const auto of = [](TypeId id) { return DataType::primitive(id); };
  EXPECT_EQ(common(of(TypeId::kByte), of(TypeId::kLong)), "BIGINT");
  EXPECT_EQ(common(of(TypeId::kFloat), of(TypeId::kInteger)), "DOUBLE");
  EXPECT_EQ(common(of(TypeId::kFloat), decimal(3, 1)), "DOUBLE");
  EXPECT_EQ(common(of(TypeId::kFloat), of(TypeId::kFloat)), "FLOAT");
  EXPECT_EQ(common(of(TypeId::kInteger), decimal(3, 1)), "DECIMAL(11,1)");
  EXPECT_EQ(common(of(TypeId::kLong), decimal(38, 37)), "DECIMAL(38,18)");
  EXPECT_EQ(common(of(TypeId::kString), of(TypeId::kShort)), "BIGINT");
  EXPECT_EQ(common(of(TypeId::kString), decimal(3, 1)), "DOUBLE");
  EXPECT_EQ(common(of(TypeId::kString), of(TypeId::kDate)), "DATE");
  EXPECT_EQ(common(of(TypeId::kString), of(TypeId::kBoolean)), "BOOLEAN");
  EXPECT_EQ(common(of(TypeId::kString), of(TypeId::kDate), Texts::kStayTexts), "none");
  EXPECT_EQ(common(of(TypeId::kDate), of(TypeId::kTimestampNtz)), "TIMESTAMP_NTZ");
  EXPECT_EQ(common(of(TypeId::kTimestamp), of(TypeId::kTimestampNtz)), "TIMESTAMP");
  EXPECT_EQ(common(of(TypeId::kBoolean), of(TypeId::kInteger)), "none");
  EXPECT_EQ(common(of(TypeId::kDate), of(TypeId::kInteger)), "none");
  EXPECT_EQ(common(of(TypeId::kVoid), of(TypeId::kDate)), "DATE");
  EXPECT_EQ(common(DataType::array(of(TypeId::kString)), DataType::array(of(TypeId::kInteger))),
            "ARRAY<BIGINT>");
  EXPECT_EQ(common(DataType::array(of(TypeId::kString)), of(TypeId::kString)), "none");
}

TEST(CoercionTest, DigitsOfDecimals) {
  const auto one = column("a");
  const auto result = [&](BinaryOp op, const DataType& a, const DataType& b) {
    return to_sql(arithmetic_type(op, *one, a, *one, b));
  };
  EXPECT_EQ(result(BinaryOp::kAdd, decimal(10, 2), decimal(7, 4)), "DECIMAL(13,4)");
  EXPECT_EQ(result(BinaryOp::kMultiply, decimal(10, 2), decimal(10, 2)), "DECIMAL(21,4)");
  EXPECT_EQ(result(BinaryOp::kMultiply, decimal(38, 18), decimal(38, 18)), "DECIMAL(38,6)");
  EXPECT_EQ(result(BinaryOp::kAdd, decimal(38, 18), decimal(38, 10)), "DECIMAL(38,9)");
  EXPECT_EQ(result(BinaryOp::kModulo, decimal(10, 2), decimal(5, 1)), "DECIMAL(6,2)");
  EXPECT_EQ(result(BinaryOp::kDivide, decimal(10, 2), decimal(5, 1)), "DECIMAL(17,8)");
  EXPECT_EQ(result(BinaryOp::kAdd, decimal(10, 2), DataType::primitive(TypeId::kLong)),
            "DECIMAL(23,2)");
  const auto constant = integer_literal(1);
  EXPECT_EQ(to_sql(arithmetic_type(BinaryOp::kAdd, *one, decimal(10, 2), *constant,
                                   DataType::primitive(TypeId::kInteger))),
            "DECIMAL(11,2)");
  EXPECT_EQ(to_sql(sum_type(decimal(10, 2))), "DECIMAL(20,2)");
  EXPECT_EQ(to_sql(average_type(decimal(10, 2))), "DECIMAL(14,6)");
  EXPECT_EQ(to_sql(average_type(decimal(38, 18))), "DECIMAL(38,22)");
}

}  // namespace
}  // namespace strandline::sql
