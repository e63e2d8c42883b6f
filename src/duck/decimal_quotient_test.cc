#include "duck/decimal_quotient.h"

#include <gtest/gtest.h>

namespace strandline::duck {
namespace {

TEST(DecimalQuotientTest, RoundsHalfAwayFromZero) {
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

TEST(DecimalQuotientTest, HoldsEveryDigit) {
  const std::string nines(38, '9');
  EXPECT_EQ(decimal_quotient(nines, "1", 6), nines + ".000000");
  EXPECT_EQ(decimal_quotient(nines, nines, 10), "1.0000000000");
  EXPECT_EQ(decimal_quotient("1", nines, 40), "0." + std::string(37, '0') + "100");
  EXPECT_EQ(decimal_quotient("12345678901234567890123456789012345678", "0.0000000003", 6),
            std::string("4115226300411522630041152263004115226") + "0000000000.000000");
  EXPECT_EQ(decimal_quotient("1.0000000000", "30000000000000000000000000000", 6), "0.000000");
}

TEST(DecimalQuotientTest, NothingForWhatHasNoQuotient) {
  EXPECT_FALSE(decimal_quotient("1", "0.00", 2));
  EXPECT_FALSE(decimal_quotient("a", "1", 2));
  EXPECT_FALSE(decimal_quotient("1", "", 2));
}

}  // namespace
}  // namespace strandline::duck
