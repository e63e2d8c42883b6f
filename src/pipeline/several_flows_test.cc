// Several flows into one target: whichever brings events first, the table is the same (auto-cdc.md
// sections 1 and 5).
#include <gmock/gmock.h>

#include "pipeline/test_pipeline.h"

namespace strandline::pipeline {
namespace {

using testing::ElementsAre;

constexpr const char* kFlows = R"(
CREATE STREAMING TABLE t (id BIGINT, a STRING, b STRING DEFAULT 'none', c STRING DEFAULT 'mine');
CREATE FLOW f AS AUTO CDC INTO t
FROM STREAM read_files('f', format => 'json', schema => 'id BIGINT, a STRING, s BIGINT')
KEYS (id) SEQUENCE BY s COLUMNS (id, a);
CREATE FLOW g AS AUTO CDC INTO t FROM STREAM read_files('g', format => 'json')
KEYS (id) SEQUENCE BY s COLUMNS (id, b);
)";

std::vector<std::string> rows_after(const std::vector<std::string>& order) {
  TestPipeline p;
  p.write("t.sql", kFlows);
  p.write("f/0.json", "");
  p.write("g/0.json", "");
  for (const std::string& flow : order) {
    p.write(flow + "/1.json",
            flow == "f" ? "{\"id\":1,\"a\":\"x\",\"s\":1}\n" : "{\"id\":2,\"b\":\"y\",\"s\":1}\n");
    const auto report = p.run();
    EXPECT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
  }
  return p.rows("t");
}

// Only `c` is the table's own: `b` is the other flow's, even before that has brought anything.
TEST(SeveralFlows, AColumnOfAFlowWithoutEventsHasNoDefault) {
  const auto expected = ElementsAre("1|x|NULL|mine", "2|NULL|y|mine");
  EXPECT_THAT(rows_after({"f", "g"}), expected);
  EXPECT_THAT(rows_after({"g", "f"}), expected);
}

// A table has the fields of a struct in the order in which they came.
TEST(SeveralFlows, TiesOfStructsWhoseFieldsCameInAnyOrder) {
  const std::string files[] = {"{\"id\":9,\"s\":1,\"n\":{\"y\":0}}\n",
                               "{\"id\":1,\"s\":1,\"n\":{\"x\":1,\"y\":2}}\n",
                               "{\"id\":1,\"s\":1,\"n\":{\"x\":2,\"y\":1}}\n"};
  for (const auto& order : {std::vector<int>{0, 1, 2}, {1, 2, 0}, {2, 0, 1}}) {
    TestPipeline p;
    p.write("t.sql",
            "CREATE STREAMING TABLE t; CREATE FLOW f AS AUTO CDC INTO t FROM STREAM "
            "read_files('data', format => 'json') KEYS (id) SEQUENCE BY s;");
    for (const int file : order) {
      p.write("data/" + std::to_string(file) + ".json", files[file]);
      const auto report = p.run();
      EXPECT_EQ(report.status, UpdateStatus::kCompleted) << errors_of(report);
    }
    EXPECT_THAT(p.rows("t", "id, n.x, n.y"), ElementsAre("1|2|1", "9|NULL|0"));
  }
}

}  // namespace
}  // namespace strandline::pipeline
