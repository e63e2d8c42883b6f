// A row that a stage loses or gives twice stops the batch before anything is written, whichever
// stage it is: the programs are changed here as a fault of the engine would change their tables.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cdc/program_fixture.h"

namespace strandline::test {
namespace {

using testing::HasSubstr;

enum class Fault { kTwice, kLost };

struct Case {
  const char* name;
  const char* clauses;
  const char* stage;  // that tells it
  const char* table;  // the temporary table that has the fault
  Fault fault;
};

constexpr const char* kColumns = "id BIGINT, v STRING, op STRING, seq BIGINT";
constexpr const char* kType1 =
    "KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS (id, v)";
constexpr const char* kType2 =
    "KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS (id, v) STORED AS SCD TYPE 2";
constexpr const char* kPartial1 = "KEYS (id) IGNORE NULL UPDATES SEQUENCE BY seq COLUMNS (id, v)";
constexpr const char* kPartial2 =
    "KEYS (id) IGNORE NULL UPDATES SEQUENCE BY seq COLUMNS (id, v) STORED AS SCD TYPE 2";
constexpr const char* kBitemporal =
    "KEYS (id) SEQUENCE BY seq SYSTEM SEQUENCE BY seq COLUMNS (id, v) STORED AS BITEMPORAL";

const Case kCases[] = {
    {"Type1RankedTwice", kType1, "locate", "ranked", Fault::kTwice},
    {"Type1RankedLost", kType1, "locate", "ranked", Fault::kLost},
    {"Type1DecidedLost", kType1, "locate", "decided", Fault::kLost},
    {"Type2TimelineTwice", kType2, "merge", "line", Fault::kTwice},
    {"Type2TimelineLost", kType2, "merge", "line", Fault::kLost},
    {"Type2RunTwice", kType2, "diff", "runs", Fault::kTwice},
    {"Type2RunLost", kType2, "diff", "runs", Fault::kLost},
    {"Type2ChangedTwice", kType2, "diff", "changed", Fault::kTwice},
    {"Type2ChangedLost", kType2, "diff", "changed", Fault::kLost},
    {"Partial1MomentLost", kPartial1, "diff", "moments", Fault::kLost},
    {"Partial1FilledTwice", kPartial1, "diff", "filled", Fault::kTwice},
    {"Partial1MatchedTwice", kPartial1, "diff", "matched", Fault::kTwice},
    {"Partial2ChosenTwice", kPartial2, "diff", "chosen", Fault::kTwice},
    {"Partial2FilledLost", kPartial2, "diff", "filled", Fault::kLost},
    {"Partial2TimelineTwice", kPartial2, "diff", "line", Fault::kTwice},
    {"Partial2ResultTwice", kPartial2, "diff", "result", Fault::kTwice},
    {"BitemporalTimelineLost", kBitemporal, "diff", "line", Fault::kLost},
    {"BitemporalResultTwice", kBitemporal, "diff", "result", Fault::kTwice},
    {"BitemporalMatchedLost", kBitemporal, "diff", "matched", Fault::kLost},
};

class BalanceTest : public ProgramFixture, public testing::WithParamInterface<Case> {};

void plant(const Case& fault, cdc::Program* program) {
  const std::string table = fmt::format("__strandline_cdc_{}", fault.table);
  const auto made = std::find_if(program->steps.begin(), program->steps.end(),
                                 [&](const cdc::Step& step) { return step.table == table; });
  ASSERT_NE(made, program->steps.end());
  cdc::Step change{cdc::Step::Kind::kChange, made->stage, table, "", "", "", ""};
  change.sql =
      fault.fault == Fault::kTwice
          ? fmt::format("INSERT INTO {0} SELECT * FROM {0} LIMIT 1", table)
          : fmt::format("DELETE FROM {0} WHERE rowid = (SELECT min(rowid) FROM {0})", table);
  program->steps.insert(made + 1, change);
}

TEST_P(BalanceTest, AFaultBetweenStagesStopsTheBatch) {
  const Flow flow{kColumns, GetParam().clauses};
  deliver(flow, "(1, 'a', 'U', 1), (2, 'b', 'U', 1), (3, 'c', 'U', 1)");
  const auto before = table();
  const auto state_before = state();
  lake_->tamper = [](cdc::Program* program) { plant(GetParam(), program); };
  const std::string news = "(1, 'x', 'U', 5), (1, 'y', 'U', 6), (2, 'z', 'U', 7), (4, 'n', 'U', 2)";
  const Error error = deliver_badly(flow, news);
  EXPECT_EQ(error.code, "INTERNAL_INVARIANT") << error.message;
  EXPECT_EQ(error.kind, ErrorKind::kInternal);
  EXPECT_THAT(error.message, HasSubstr(fmt::format("flow f, stage {}: ", GetParam().stage)));
  EXPECT_THAT(error.message, HasSubstr("but "));
  EXPECT_THAT(error.message, HasSubstr("please report it"));
  EXPECT_EQ(table(), before);
  EXPECT_EQ(state(), state_before);
  lake_->tamper = nullptr;
  deliver(flow, news);
}

INSTANTIATE_TEST_SUITE_P(Faults, BalanceTest, testing::ValuesIn(kCases),
                         [](const auto& fault) { return std::string(fault.param.name); });

}  // namespace
}  // namespace strandline::test
