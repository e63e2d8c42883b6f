// The programs of each storage type and mode, in both dialects, as texts that a reviewer reads:
// tests/golden/<name>.<dialect>.sql. After a change of a program: STRANDLINE_UPDATE_GOLDEN=1
// build/tests/cdc_test, and read the diff.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "cdc/program.h"
#include "cdc/snapshot_program.h"
#include "sql/parser.h"
#include "support/paths.h"

namespace strandline::cdc {
namespace {

struct Sample {
  const char* name;
  const char* columns;
  const char* clauses;
  bool is_first = false;  // the first batch: there is neither target nor state
  bool is_edited = false;
  const char* sequence_type = "BIGINT";
  bool has_notes = false;  // columns of the table's own: `note` with a DEFAULT, `initial` computed
  const char* source = "stream(s)";
};

constexpr const char* kUsers = "id BIGINT, name STRING, op STRING, seq BIGINT";
constexpr const char* kNested =
    "id BIGINT, weight DOUBLE, place STRUCT<city: STRING, tags: MAP<STRING, INT>>, seq BIGINT";

const Sample kSamples[] = {
    {"scd1_first", kUsers,
     "KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op)", true},
    {"scd1", kUsers,
     "KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op)"},
    {"scd1_truncate", kUsers,
     "KEYS (id) APPLY AS DELETE WHEN op = 'D' APPLY AS TRUNCATE WHEN op = 'T' SEQUENCE BY seq "
     "COLUMNS * EXCEPT (op, seq)"},
    {"scd1_ignore_null", kUsers,
     "KEYS (id) IGNORE NULL UPDATES APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT "
     "(op)"},
    {"scd1_columns_to_update",
     "id BIGINT, name STRING, city STRING, given ARRAY<STRING>, seq BIGINT",
     "KEYS (id) SEQUENCE BY seq COLUMNS TO UPDATE given COLUMNS * EXCEPT (given, seq)"},
    {"scd1_edited", kUsers,
     "KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op)", false, true},
    {"scd2_first", kUsers,
     "KEYS (id) SEQUENCE BY seq COLUMNS * EXCEPT (op, seq) STORED AS SCD TYPE 2", true},
    {"scd2_track_history", kUsers,
     "KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq STORED AS SCD TYPE 2 TRACK HISTORY "
     "ON (name)"},
    {"scd2_nested", kNested,
     "KEYS (id) SEQUENCE BY struct(seq, id) COLUMNS * EXCEPT (seq) STORED AS SCD TYPE 2", false,
     false, "STRUCT<seq: BIGINT, id: BIGINT>"},
    {"scd2_ignore_null", kNested,
     "KEYS (id) IGNORE NULL UPDATES SEQUENCE BY seq COLUMNS * EXCEPT (seq) STORED AS SCD TYPE 2"},
    {"scd2_edited", kUsers,
     "KEYS (id) SEQUENCE BY seq COLUMNS * EXCEPT (op, seq) STORED AS SCD TYPE 2", false, true},
    {"scd2_edited_ignore_null", kNested,
     "KEYS (id) IGNORE NULL UPDATES SEQUENCE BY seq COLUMNS * EXCEPT (seq) STORED AS SCD TYPE 2",
     false, true},
    {"scd1_notes", kUsers,
     "KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS (id, name, seq)", false, true,
     "BIGINT", true},
    {"scd2_notes", kUsers, "KEYS (id) SEQUENCE BY seq COLUMNS (id, name) STORED AS SCD TYPE 2",
     false, true, "BIGINT", true},
    {"bitemporal", kUsers,
     "KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq SYSTEM SEQUENCE BY id COLUMNS (id, "
     "name) STORED AS BITEMPORAL"},
};

Result<Plan> plan_of(const Sample& sample) {
  const sql::Script script = sql::parse_script(
      fmt::format("CREATE FLOW f AS AUTO CDC INTO t FROM {} {}", sample.source, sample.clauses),
      "flow.sql");
  if (!script.errors.empty()) return script.errors.front();
  Declaration declaration;
  declaration.flow_name = "f";
  declaration.target = "t";
  declaration.clauses = std::get<sql::CreateAutoCdcFlow>(script.statements.at(0).body).clauses;
  SourceFacts source;
  SL_ASSIGN(source.schema, sql::parse_schema_ddl(sample.columns, "test"));
  SL_ASSIGN(source.sequence_type, sql::parse_type(sample.sequence_type, "test"));
  source.system_sequence_type = DataType::primitive(TypeId::kLong);
  TargetFacts target;
  target.has_rows = false;
  PlanOrErrors first = make_plan(declaration, source, target);
  if (!first.plan) return first.errors.front();
  if (sample.is_first) return std::move(*first.plan);
  target.has_rows = true;
  target.existing = first.plan->target_schema;
  target.existing_state = first.plan->state_schema;
  target.state = first.plan->state_spec;
  target.edited = sample.is_edited;
  if (sample.has_notes) {
    for (const char* name : {"note", "initial"}) {
      target.existing->fields.insert(target.existing->fields.begin(),
                                     Field{name, DataType::primitive(TypeId::kString), true, {}});
    }
    SL_ASSIGN(target.defaults["note"], sql::parse_expression("'new'", "test"));
    target.generated = {"initial"};
  }
  PlanOrErrors later = make_plan(declaration, source, target);
  if (!later.plan) return later.errors.front();
  return std::move(*later.plan);
}

BatchRelations relations_of(const Sample& sample) {
  BatchRelations relations;
  relations.source = "source";
  if (sample.is_first) return relations;
  relations.target = "target";
  relations.state = "state";
  if (sample.is_edited) relations.edits = "edits";
  return relations;
}

std::string without_first_break(const std::string& sql) {
  return !sql.empty() && sql.front() == '\n' ? sql.substr(1) : sql;
}

std::string text_of(const Program& program) {
  std::string text, stage;
  for (const Step& step : program.steps) {
    if (step.stage != stage) {
      stage = step.stage;
      text += fmt::format("{}-- ===== {} =====\n", text.empty() ? "" : "\n", stage);
    }
    const char* kind = step.kind == Step::Kind::kMake     ? "make"
                       : step.kind == Step::Kind::kChange ? "change"
                                                          : "check";
    text +=
        fmt::format("\n-- {} {}\n", kind, step.kind == Step::Kind::kCheck ? step.code : step.table);
    if (!step.only_if.empty()) text += "-- only if " + without_first_break(step.only_if) + "\n";
    text += without_first_break(step.sql) + ";\n";
  }
  text += "\n-- ===== write =====\n";
  for (const auto& [what, sql] :
       {std::pair("target new", program.target_new), std::pair("target dead", program.target_dead),
        std::pair("state new", program.state_new), std::pair("state dead", program.state_dead),
        std::pair("metrics", program.metrics)}) {
    text += fmt::format("\n-- {}\n{};\n", what, without_first_break(sql));
  }
  return text;
}

class GoldenTest : public testing::TestWithParam<Sample> {
 protected:
  void expect_golden(const Result<Program>& program, const char* dialect) {
    ASSERT_TRUE(program.ok()) << program.error().message;
    const std::string text = text_of(*program);
    const auto path = test::source_directory() / "tests/golden" /
                      fmt::format("{}.{}.sql", GetParam().name, dialect);
    if (std::getenv("STRANDLINE_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
    std::stringstream golden;
    golden << std::ifstream(path).rdbuf();
    EXPECT_EQ(golden.str(), text) << "run with STRANDLINE_UPDATE_GOLDEN=1 and read the diff";
  }
};

TEST_P(GoldenTest, DuckDb) {
  const Result<Plan> plan = plan_of(GetParam());
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  expect_golden(make_duckdb_program(*plan, relations_of(GetParam())), "duckdb");
}

TEST_P(GoldenTest, Spark) {
  const Result<Plan> plan = plan_of(GetParam());
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  expect_golden(make_spark_program(*plan, relations_of(GetParam())), "spark");
}

INSTANTIATE_TEST_SUITE_P(Programs, GoldenTest, testing::ValuesIn(kSamples),
                         [](const auto& sample) { return std::string(sample.param.name); });

constexpr const char* kSnapshot = "SNAPSHOT (s)";
const Sample kSnapshots[] = {
    {"snapshot_scd1_first", "id BIGINT, name STRING", "KEYS (id)", true, false, "BIGINT", false,
     kSnapshot},
    {"snapshot_scd1", "id BIGINT, name STRING", "KEYS (id)", false, false, "BIGINT", true,
     kSnapshot},
    {"snapshot_scd2", "id BIGINT, name STRING, seen DOUBLE",
     "KEYS (id) STORED AS SCD TYPE 2 TRACK HISTORY ON (name)", false, false, "DATE", true,
     kSnapshot},
};

class SnapshotGoldenTest : public GoldenTest {};

TEST_P(SnapshotGoldenTest, DuckDb) {
  const Result<Plan> plan = plan_of(GetParam());
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  SnapshotFacts facts;
  facts.version = "version";
  facts.is_first = GetParam().is_first;
  facts.copies_source = !GetParam().is_first;
  facts.max_delete_ratio = 0.5;
  facts.doubts_target = false;
  const auto made = make_snapshot_program(*plan, relations_of(GetParam()), facts);
  ASSERT_TRUE(made.ok()) << made.error().message;
  expect_golden(made->program, "duckdb");
}

INSTANTIATE_TEST_SUITE_P(Programs, SnapshotGoldenTest, testing::ValuesIn(kSnapshots),
                         [](const auto& sample) { return std::string(sample.param.name); });

TEST(SparkProgramTest, OperatorsOfDatabricksAreRefusedByName) {
  const Sample sample{"", "id BIGINT, doc STRING, seq BIGINT",
                      "KEYS (id) APPLY AS DELETE WHEN doc:op = 'D' SEQUENCE BY seq", true};
  const Result<Plan> plan = plan_of(sample);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  const Result<Program> program = make_spark_program(*plan, relations_of(sample));
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().code, "UNSUPPORTED_IN_DIALECT");
  EXPECT_NE(program.error().message.find("doc:op"), std::string::npos) << program.error().message;
  EXPECT_TRUE(make_duckdb_program(*plan, relations_of(sample)).ok());
}

TEST(SparkProgramTest, TypesWithoutEqualityAreRefusedByName) {
  const Sample sample{"", "id BIGINT, doc STRUCT<body: VARIANT>, seq BIGINT",
                      "KEYS (id) SEQUENCE BY seq", true};
  const Result<Plan> plan = plan_of(sample);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  const Result<Program> program = make_spark_program(*plan, relations_of(sample));
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().kind, ErrorKind::kUnsupported);
  EXPECT_EQ(program.error().code, "UNSUPPORTED_IN_DIALECT");
  EXPECT_NE(program.error().message.find("'doc'"), std::string::npos) << program.error().message;
  EXPECT_NE(program.error().message.find("VARIANT"), std::string::npos);
  EXPECT_TRUE(make_duckdb_program(*plan, relations_of(sample)).ok());
}

}  // namespace
}  // namespace strandline::cdc
