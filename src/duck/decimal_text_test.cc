#include "duck/decimal_text.h"

#include <gtest/gtest.h>

#include <limits>

namespace strandline::duck {
namespace {

TEST(DecimalTextTest, RoundsHalfAwayFromZero) {
  EXPECT_EQ(decimal_quotient("1", "3", 6), "0.333333");
  EXPECT_EQ(decimal_quotient("2", "3", 6), "0.666667");
  EXPECT_EQ(decimal_quotient("-2", "3.00", 2), "-0.67");
  EXPECT_EQ(decimal_quotient("1", "-8", 2), "-0.13");
  EXPECT_EQ(decimal_quotient("-1", "-8", 3), "0.125");
  EXPECT_EQ(decimal_quotient("10", "4", 0), "3");
  EXPECT_EQ(decimal_quotient(".05", "5", 3), "0.010");
  EXPECT_EQ(decimal_quotient("0", "5", 2), "0.00");
  EXPECT_EQ(decimal_quotient("0.995", "1", 2), "1.00");
}

TEST(DecimalTextTest, HoldsEveryDigit) {
  const std::string nines(38, '9');
  EXPECT_EQ(decimal_quotient(nines, "1", 6), nines + ".000000");
  EXPECT_EQ(decimal_quotient(nines, nines, 10), "1.0000000000");
  EXPECT_EQ(decimal_quotient("1", nines, 40), "0." + std::string(37, '0') + "100");
  EXPECT_EQ(decimal_quotient("12345678901234567890123456789012345678", "0.0000000003", 6),
            std::string("4115226300411522630041152263004115226") + "0000000000.000000");
  EXPECT_EQ(decimal_quotient("1.0000000000", "30000000000000000000000000000", 6), "0.000000");
}

TEST(DecimalTextTest, NothingForWhatHasNoQuotient) {
  EXPECT_FALSE(decimal_quotient("1", "0.00", 2));
  EXPECT_FALSE(decimal_quotient("a", "1", 2));
  EXPECT_FALSE(decimal_quotient("1", "", 2));
}

TEST(DecimalTextTest, ProductsSumsAndRests) {
  EXPECT_EQ(decimal_product("1.5", "-2.25", 3), "-3.375");
  EXPECT_EQ(decimal_product("10.000000000000000000", "10.000000000000000000", 6), "100.000000");
  EXPECT_EQ(decimal_product("0.5", "0.1", 1), "0.1");
  EXPECT_EQ(decimal_product("-0.4", "0.1", 1), "0.0");
  EXPECT_EQ(decimal_product("0", "7", 2), "0.00");
  const std::string nines(38, '9');
  EXPECT_EQ(decimal_product(nines, nines, 0),
            std::string(37, '9') + "8" + std::string(37, '0') + "1");
  EXPECT_EQ(decimal_sum("1.05", "2.1", 1), "3.2");
  EXPECT_EQ(decimal_sum("-1.05", "1.050", 2), "0.00");
  EXPECT_EQ(decimal_sum("99.9", "0.1", 1), "100.0");
  EXPECT_EQ(decimal_sum("1", "-3.25", 2), "-2.25");
  EXPECT_EQ(decimal_sum(nines, "1", 0), "1" + std::string(38, '0'));
  EXPECT_EQ(decimal_difference("1", "3.25", 2), "-2.25");
  EXPECT_EQ(decimal_difference("1", "-3.25", 2), "4.25");
  EXPECT_EQ(decimal_remainder("7.5", "2", 1), "1.5");
  EXPECT_EQ(decimal_remainder("-7.5", "2", 1), "-1.5");
  EXPECT_EQ(decimal_remainder("7.5", "-0.25", 2), "0.00");
  EXPECT_EQ(decimal_remainder("0.1", "0.03", 2), "0.01");
  EXPECT_FALSE(decimal_remainder("1", "0", 2));
}

TEST(DecimalTextTest, TextsWithExponents) {
  EXPECT_EQ(decimal_of_text("1.005", 2), "1.01");
  EXPECT_EQ(decimal_of_text("-1.005e0", 2), "-1.01");
  EXPECT_EQ(decimal_of_text("9.5E-12", 0), "0");
  EXPECT_EQ(decimal_of_text("12.5e+1", 0), "125");
  EXPECT_EQ(decimal_of_text("0.0000125E5", 1), "1.3");
  EXPECT_EQ(decimal_of_text("0e99999999999", 1), "0.0");
  EXPECT_EQ(decimal_of_text("7e-99999999999", 1), "0.0");
  for (const char* text : {"", "e5", "1e", "1e+-2", "1e2x", "7e99999999999", "NaN", "1_0"})
    EXPECT_FALSE(decimal_of_text(text, 2)) << text;
}

TEST(DecimalTextTest, DoublesByTheirShortestText) {
  EXPECT_EQ(decimal_of_double(1.005, 2), "1.01");
  EXPECT_EQ(decimal_of_double(-2.675, 2), "-2.68");
  EXPECT_EQ(decimal_of_double(1e20, 0), "100000000000000000000");
  EXPECT_EQ(decimal_of_double(123456789012345.67, 2), "123456789012345.67");
  EXPECT_EQ(decimal_of_double(-0.0, 1), "0.0");
  EXPECT_EQ(decimal_of_double(5e-324, 3), "0.000");
  EXPECT_FALSE(decimal_of_double(std::numeric_limits<double>::infinity(), 2));
  EXPECT_FALSE(decimal_of_double(std::numeric_limits<double>::quiet_NaN(), 2));
}

}  // namespace
}  // namespace strandline::duck
