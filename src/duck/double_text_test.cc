#include "duck/double_text.h"

#include <gtest/gtest.h>

#include <limits>

namespace strandline::duck {
namespace {

TEST(DoubleTextTest, WritesAsSpark) {
  EXPECT_EQ(double_text(1.0), "1.0");
  EXPECT_EQ(double_text(-0.0), "-0.0");
  EXPECT_EQ(double_text(0.001), "0.001");
  EXPECT_EQ(double_text(0.00099), "9.9E-4");
  EXPECT_EQ(double_text(9999999.0), "9999999.0");
  EXPECT_EQ(double_text(1e7), "1.0E7");
  EXPECT_EQ(double_text(123456.789), "123456.789");
  EXPECT_EQ(double_text(-1.25e100), "-1.25E100");
  EXPECT_EQ(double_text(1e-5), "1.0E-5");
  EXPECT_EQ(double_text(0.1F), "0.1");
  EXPECT_EQ(double_text(16777216.0F), "1.6777216E7");
  EXPECT_EQ(double_text(std::numeric_limits<double>::quiet_NaN()), "NaN");
  EXPECT_EQ(double_text(-std::numeric_limits<double>::infinity()), "-Infinity");
}

}  // namespace
}  // namespace strandline::duck
