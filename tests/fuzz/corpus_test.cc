// Replays the kept inputs: seeds, and what once broke a promise.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "fuzz/targets.h"
#include "support/paths.h"

namespace strandline::fuzz {
namespace {

class CorpusTest : public ::testing::TestWithParam<Target> {};

TEST_P(CorpusTest, KeepsItsPromises) {
  const auto folder = test::source_directory() / "tests/fuzz/corpus";
  int replayed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / GetParam().name)) {
    SCOPED_TRACE(entry.path().filename());
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(file), {});
    GetParam().run(bytes);
    GetParam().run(std::string_view(bytes).substr(0, bytes.size() / 2));
    ++replayed;
  }
  EXPECT_GE(replayed, 3);
}

INSTANTIATE_TEST_SUITE_P(All, CorpusTest, ::testing::ValuesIn(kTargets),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(CorpusDeathTest, ABrokenPromiseEndsTheProcess) {
  EXPECT_DEATH(canary("%4\x7f"), "no control character");
}

}  // namespace
}  // namespace strandline::fuzz
