#include <gtest/gtest.h>
#include <strandline/suggest.h>

namespace strandline {
namespace {

TEST(NearestName, FindsSlipsOfTheKeyboard) {
  const std::vector<std::string> names = {"--warehouse", "--full-refresh", "--refresh", "run"};
  EXPECT_EQ(nearest_name("--warehose", names), "--warehouse");
  EXPECT_EQ(nearest_name("--WAREHOUSE", names), "--warehouse");
  EXPECT_EQ(nearest_name("rnu", names), "run");
  EXPECT_EQ(nearest_name("--refrehs", names), "--refresh");
}

TEST(NearestName, StaysSilentWhenNothingIsNear) {
  EXPECT_EQ(nearest_name("xyz", {"run", "sql"}), std::nullopt);
  EXPECT_EQ(nearest_name("", {}), std::nullopt);
  EXPECT_EQ(nearest_name("orders", {"customers", "users"}), std::nullopt);
}

}  // namespace
}  // namespace strandline
