#include "duck/round_shortest.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace strandline::duck {
namespace {

TEST(RoundShortestTest, RoundsTheDigitsThatAreWritten) {
  const auto up = [](double value, int scale) {
    return round_shortest(value, scale, Halves::kAwayFromZero);
  };
  EXPECT_EQ(up(1.005, 2), 1.01);
  EXPECT_EQ(up(0.285, 2), 0.29);
  EXPECT_EQ(up(-1.255, 2), -1.26);
  EXPECT_EQ(up(2.5, 0), 3.0);
  EXPECT_EQ(up(0.5, 0), 1.0);
  EXPECT_EQ(up(9.996, 2), 10.0);
  EXPECT_EQ(up(1.25, 5), 1.25);
  EXPECT_EQ(up(1250, -2), 1300.0);
  EXPECT_EQ(up(50, -2), 100.0);
  EXPECT_EQ(up(5, -2), 0.0);
  EXPECT_EQ(up(1e300, 2), 1e300);
  EXPECT_EQ(up(1e-300, 2), 0.0);
  EXPECT_FALSE(std::signbit(up(-0.4, 0)));
  EXPECT_TRUE(std::isnan(up(std::nan(""), 2)));
  EXPECT_TRUE(std::isinf(up(std::numeric_limits<double>::max(), -308)));
}

TEST(RoundShortestTest, RoundsHalvesToEven) {
  const auto even = [](double value, int scale) {
    return round_shortest(value, scale, Halves::kToEven);
  };
  EXPECT_EQ(even(1.005, 2), 1.0);
  EXPECT_EQ(even(1.015, 2), 1.02);
  EXPECT_EQ(even(1.0051, 2), 1.01);
  EXPECT_EQ(even(0.5, 0), 0.0);
  EXPECT_EQ(even(-1.5, 0), -2.0);
}

}  // namespace
}  // namespace strandline::duck
