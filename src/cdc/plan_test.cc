#include "cdc/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sql/parser.h"

namespace strandline::cdc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

DataType type(const std::string& text) { return *sql::parse_type(text, "test"); }
Schema schema(const std::string& ddl) { return *sql::parse_schema_ddl(ddl, "test"); }

// The declaration of one CREATE FLOW statement with these clauses.
Declaration declare(const std::string& clauses, const std::string& from = "FROM stream(s)") {
  const sql::Script script =
      sql::parse_script("CREATE FLOW f AS AUTO CDC INTO t " + from + "\n" + clauses, "flow.sql");
  EXPECT_THAT(script.errors, IsEmpty()) << script.errors.front().message;
  Declaration declaration;
  declaration.flow_name = "f";
  declaration.target = "t";
  declaration.clauses = std::get<sql::CreateAutoCdcFlow>(script.statements.at(0).body).clauses;
  declaration.place = script.statements.at(0).place;
  return declaration;
}

std::vector<std::string> codes(const std::vector<Error>& errors) {
  std::vector<std::string> list;
  list.reserve(errors.size());
  for (const Error& error : errors) list.push_back(error.code);
  return list;
}

std::vector<std::string> names(const Schema& some) {
  std::vector<std::string> list;
  list.reserve(some.fields.size());
  for (const Field& field : some.fields) list.push_back(field.name);
  return list;
}

// A flow over s(id BIGINT, name STRING, city STRING, op STRING, seq BIGINT).
struct Flow {
  std::string clauses = "KEYS (id) SEQUENCE BY seq";
  SourceFacts source{schema("id BIGINT, name STRING, city STRING, op STRING, seq BIGINT"),
                     DataType::primitive(TypeId::kLong),
                     schema("_metadata STRUCT<file_path: STRING>")};
  TargetFacts target;

  PlanOrErrors make() const { return make_plan(declare(clauses), source, target); }
  std::vector<std::string> error_codes() const { return codes(make().errors); }
  Plan plan() const {
    PlanOrErrors made = make();
    EXPECT_THAT(codes(made.errors), IsEmpty())
        << (made.errors.empty() ? "" : made.errors.front().message);
    return made.plan.value_or(Plan{});
  }
  // The same flow after its first batch.
  Flow later() const {
    const Plan first = plan();
    Flow next = *this;
    next.target.existing = first.target_schema;
    next.target.existing_state = first.state_schema;
    next.target.state = first.state_spec;
    return next;
  }
};

Flow flow(const std::string& clauses) {
  Flow some;
  some.clauses = clauses;
  return some;
}

const PlanColumn& column(const Plan& plan, const std::string& name) {
  const auto found = std::find_if(plan.columns.begin(), plan.columns.end(),
                                  [&](const PlanColumn& some) { return some.name == name; });
  EXPECT_NE(found, plan.columns.end()) << name;
  return *found;
}

// --- check_declaration ---------------------------------------------------------------------------

TEST(CheckDeclaration, ReportsEveryMistakeWithItsPlace) {
  const std::vector<Error> errors =
      check_declaration(declare("KEYS (id, ID)\n"
                                "APPLY AS TRUNCATE WHEN op = 'T'\n"
                                "SEQUENCE BY seq\n"
                                "STORED AS SCD TYPE 2\n"
                                "TRACK HISTORY ON (name, NAME)"));
  EXPECT_THAT(codes(errors),
              ElementsAre("AUTOCDC_DUPLICATE_COLUMN", "INVALID_MULTIPLE_ARGUMENT_CONDITIONS",
                          "AUTOCDC_DUPLICATE_COLUMN"));
  EXPECT_EQ(errors[0].place->line, 2);
  EXPECT_EQ(errors[1].place->line, 3);
  EXPECT_EQ(errors[2].place->line, 6);
  EXPECT_EQ(errors[0].place->file, "flow.sql");
}

TEST(CheckDeclaration, AcceptsTheDocumentsFlows) {
  EXPECT_THAT(check_declaration(declare("KEYS (userId) APPLY AS DELETE WHEN operation = 'DELETE' "
                                        "APPLY AS TRUNCATE WHEN operation = 'TRUNCATE' SEQUENCE BY "
                                        "sequenceNum COLUMNS * EXCEPT (operation, sequenceNum) "
                                        "STORED AS SCD TYPE 1")),
              IsEmpty());
  EXPECT_THAT(check_declaration(declare("KEYS (userId) SEQUENCE BY STRUCT(a, b) STORED AS SCD TYPE "
                                        "2 TRACK HISTORY ON * EXCEPT (city)")),
              IsEmpty());
}

TEST(CheckDeclaration, SnapshotsTakeTheirOwnClausesOnly) {
  const auto of = [](const std::string& clauses) {
    return codes(check_declaration(declare(clauses, "FROM SNAPSHOT (SELECT 1 AS id)")));
  };
  EXPECT_THAT(of("KEYS (id)"), IsEmpty());
  EXPECT_THAT(of("KEYS (id) STORED AS SCD TYPE 2 TRACK HISTORY ON * EXCEPT (city)"), IsEmpty());
  for (const char* clause : {"SEQUENCE BY seq", "APPLY AS DELETE WHEN gone", "COLUMNS (id)",
                             "IGNORE NULL UPDATES", "STORED AS BITEMPORAL"}) {
    EXPECT_THAT(of(std::string("KEYS (id) ") + clause),
                ElementsAre("INVALID_MULTIPLE_ARGUMENT_CONDITIONS"))
        << clause;
  }
  EXPECT_THAT(of("KEYS (id) TRACK HISTORY ON city"),
              ElementsAre("INVALID_MULTIPLE_ARGUMENT_CONDITIONS"));
  EXPECT_THAT(of("KEYS ()"), ElementsAre("AUTOCDC_EMPTY_KEYS"));
}

TEST(CheckDeclaration, MistakesInLaterClausesComeBeforeTheirRefusal) {
  EXPECT_THAT(codes(check_declaration(
                  declare("KEYS (id) IGNORE NULL UPDATES SEQUENCE BY seq COLUMNS TO UPDATE cols"))),
              ElementsAre("CANNOT_SET_TOGETHER"));
  EXPECT_THAT(codes(check_declaration(
                  declare("KEYS (id) IGNORE NULL UPDATES ON (id, name) SEQUENCE BY seq"))),
              ElementsAre("AUTOCDC_KEY_IN_IGNORE_NULL_LIST"));
  EXPECT_THAT(codes(check_declaration(declare("KEYS (id) SEQUENCE BY seq SYSTEM SEQUENCE BY sys"))),
              ElementsAre("INVALID_MULTIPLE_ARGUMENT_CONDITIONS"));
  EXPECT_THAT(codes(check_declaration(declare("KEYS (id) SEQUENCE BY seq STORED AS BITEMPORAL"))),
              ElementsAre("INVALID_MULTIPLE_ARGUMENT_CONDITIONS"));
  EXPECT_THAT(codes(check_declaration(declare("KEYS (id) SEQUENCE BY seq SYSTEM SEQUENCE BY sys "
                                              "STORED AS BITEMPORAL COLUMNS TO UPDATE c"))),
              ElementsAre("INVALID_MULTIPLE_ARGUMENT_CONDITIONS"));
}

TEST(CheckDeclaration, NeedsKeysAndASequence) {
  Declaration declaration;
  declaration.flow_name = "f";
  declaration.target = "t";
  EXPECT_THAT(codes(check_declaration(declaration)),
              ElementsAre("AUTOCDC_EMPTY_KEYS", "AUTOCDC_MISSING_SEQUENCE_BY"));
}

TEST(CheckDeclaration, RefusesHistoryListsUnderType1) {
  EXPECT_THAT(codes(check_declaration(declare("KEYS (id) SEQUENCE BY seq TRACK HISTORY ON name"))),
              ElementsAre("INVALID_MULTIPLE_ARGUMENT_CONDITIONS"));
}

TEST(CheckDeclaration, RefusesExpressionsThatDifferEachTime) {
  EXPECT_THAT(
      codes(check_declaration(
          declare("KEYS (id) APPLY AS DELETE WHEN rand() < 0.5 SEQUENCE BY uuid()"))),
      ElementsAre("AUTOCDC_NONDETERMINISTIC_EXPRESSION", "AUTOCDC_NONDETERMINISTIC_EXPRESSION"));
}

// --- columns -------------------------------------------------------------------------------------

TEST(MakePlan, SelectsColumnsInSourceOrder) {
  const Plan plan = flow("KEYS (id) SEQUENCE BY seq COLUMNS (city, ID)").plan();
  EXPECT_THAT(names(plan.target_schema), ElementsAre("id", "city"));
  EXPECT_TRUE(plan.target_schema_changed);
  EXPECT_TRUE(column(plan, "id").is_key);
  EXPECT_FALSE(column(plan, "id").tracked);
}

TEST(MakePlan, Type2AddsItsTwoColumnsLast) {
  const Plan plan =
      flow("KEYS (id) SEQUENCE BY seq COLUMNS * EXCEPT (op, seq) STORED AS SCD TYPE 2").plan();
  EXPECT_THAT(names(plan.target_schema),
              ElementsAre("id", "name", "city", "__START_AT", "__END_AT"));
  EXPECT_EQ(to_sql(plan.target_schema.get("__END_AT")->type), "BIGINT");
  EXPECT_TRUE(column(plan, "name").tracked);
  EXPECT_THAT(names(plan.state_schema),
              ElementsAre("id", "__strandline_sequence", "__strandline_kind", "name", "city"));
}

TEST(MakePlan, NamesColumnsThatDoNotExist) {
  EXPECT_THAT(flow("KEYS (id) SEQUENCE BY seq COLUMNS (id, nme)").error_codes(),
              ElementsAre("AUTOCDC_COLUMNS_NOT_FOUND_IN_SCHEMA"));
  EXPECT_THAT(flow("KEYS (id) SEQUENCE BY seq COLUMNS * EXCEPT (nme)").error_codes(),
              ElementsAre("AUTOCDC_COLUMNS_NOT_FOUND_IN_SCHEMA"));
  EXPECT_THAT(flow("KEYS (uid) SEQUENCE BY seq").error_codes(),
              ElementsAre("AUTOCDC_KEY_NOT_IN_SELECTED_SCHEMA"));
  EXPECT_THAT(flow("KEYS (id) SEQUENCE BY seq COLUMNS (name)").error_codes(),
              ElementsAre("AUTOCDC_KEY_NOT_IN_SELECTED_SCHEMA"));
  EXPECT_THAT(flow("KEYS (id) SEQUENCE BY seq COLUMNS (id, name) STORED AS SCD TYPE 2 TRACK "
                   "HISTORY ON city")
                  .error_codes(),
              ElementsAre("AUTOCDC_COLUMNS_NOT_FOUND_IN_SCHEMA"));
  EXPECT_THAT(flow("KEYS (id) APPLY AS DELETE WHEN operation = 'D' SEQUENCE BY seq").error_codes(),
              ElementsAre("UNRESOLVED_COLUMN"));
}

TEST(MakePlan, ReportsMistakesOfAllKindsTogether) {
  EXPECT_THAT(flow("KEYS (uid) APPLY AS DELETE WHEN operation = 'D' SEQUENCE BY seq TRACK HISTORY "
                   "ON nme")
                  .error_codes(),
              ElementsAre("INVALID_MULTIPLE_ARGUMENT_CONDITIONS", "UNRESOLVED_COLUMN",
                          "AUTOCDC_KEY_NOT_IN_SELECTED_SCHEMA"));
}

TEST(MakePlan, KeepsReservedNames) {
  Flow some = flow("KEYS (id) SEQUENCE BY seq STORED AS SCD TYPE 2");
  some.source.schema = schema("id BIGINT, __start_at INT, seq BIGINT");
  EXPECT_THAT(some.error_codes(), ElementsAre("AUTOCDC_RESERVED_COLUMN_NAME_CONFLICT"));
  some.clauses += " COLUMNS * EXCEPT (__start_at)";
  EXPECT_THAT(some.error_codes(), IsEmpty());
  some.clauses = "KEYS (id) SEQUENCE BY seq";  // type 1 has no such columns
  EXPECT_THAT(some.error_codes(), IsEmpty());
  some.source.schema = schema("id BIGINT, __Strandline_x INT, seq BIGINT");
  EXPECT_THAT(some.error_codes(), ElementsAre("AUTOCDC_RESERVED_COLUMN_NAME_CONFLICT"));
}

TEST(MakePlan, NamesBothColumnsThatDifferOnlyInCase) {
  Flow some;
  some.source.schema = schema("id BIGINT, seq BIGINT");
  some.source.schema.fields.push_back(Field{"ID", type("BIGINT"), true, {}});
  const PlanOrErrors made = some.make();
  ASSERT_THAT(codes(made.errors), ElementsAre("COLUMN_ALREADY_EXISTS"));
  EXPECT_THAT(made.errors[0].message, HasSubstr("'id' and 'ID'"));
}

TEST(MakePlan, RefusesTypesWithoutOrder) {
  Flow some;
  some.source.schema = schema("id MAP<STRING, INT>, seq BIGINT");
  EXPECT_THAT(some.error_codes(), ElementsAre("AUTOCDC_INVALID_KEY_TYPE"));
  Flow other;
  other.source.sequence_type = type("ARRAY<MAP<STRING, INT>>");
  EXPECT_THAT(other.error_codes(),
              ElementsAre("AUTOCDC_MICROBATCH_VALIDATION.NON_ORDERABLE_SEQUENCE"));
}

TEST(MakePlan, HiddenColumnsAreSelectedByNameOnly) {
  Flow some = flow("KEYS (id) SEQUENCE BY STRUCT(seq, _metadata.file_path)");
  some.source.sequence_type = type("STRUCT<seq: BIGINT, file_path: STRING>");
  EXPECT_EQ(some.plan().target_schema.get("_metadata"), nullptr);
  some.clauses += " COLUMNS (id, _metadata)";
  EXPECT_NE(some.plan().target_schema.get("_metadata"), nullptr);
}

// --- tracking ------------------------------------------------------------------------------------

TEST(MakePlan, TracksWhatTheClauseSays) {
  const std::string type_2 = "KEYS (id) SEQUENCE BY seq STORED AS SCD TYPE 2 ";
  EXPECT_TRUE(column(flow(type_2).plan(), "seq").tracked);  // a kept sequence makes every event one
  const Plan listed = flow(type_2 + "TRACK HISTORY ON city").plan();
  EXPECT_TRUE(column(listed, "city").tracked);
  EXPECT_FALSE(column(listed, "name").tracked);
  const Plan except = flow(type_2 + "TRACK HISTORY ON * EXCEPT (city)").plan();
  EXPECT_FALSE(column(except, "city").tracked);
  EXPECT_TRUE(column(except, "name").tracked);
}

TEST(MakePlan, TrackedStatusOfAKnownColumnIsFixed) {
  Flow some =
      flow("KEYS (id) SEQUENCE BY seq STORED AS SCD TYPE 2 TRACK HISTORY ON (name)").later();
  some.clauses = "KEYS (id) SEQUENCE BY seq STORED AS SCD TYPE 2 TRACK HISTORY ON (name, city)";
  const PlanOrErrors made = some.make();
  ASSERT_THAT(codes(made.errors), ElementsAre("AUTOCDC_INVALID_STATE.TRACK_HISTORY_DRIFT"));
  EXPECT_THAT(made.errors[0].message, HasSubstr("city not tracked"));
  EXPECT_THAT(made.errors[0].message, HasSubstr("full refresh"));
}

TEST(MakePlan, NewAndVanishedColumnsAreNoTrackingDrift) {
  Flow some = flow("KEYS (id) SEQUENCE BY seq STORED AS SCD TYPE 2").later();
  some.source.schema = schema("id BIGINT, name STRING, op STRING, seq BIGINT, zip STRING");
  const Plan plan = some.plan();
  EXPECT_THAT(names(plan.target_schema),
              ElementsAre("id", "name", "city", "op", "seq", "zip", "__START_AT", "__END_AT"));
  EXPECT_TRUE(plan.target_schema_changed);
  EXPECT_TRUE(column(plan, "zip").tracked);
  EXPECT_TRUE(column(plan, "city").tracked);
  EXPECT_TRUE(column(plan, "city").owned);
  EXPECT_FALSE(column(plan, "city").source.has_value());
  EXPECT_EQ(plan.warnings.size(), 1u);  // city is null from now on
  EXPECT_EQ(plan.state_schema.fields.back().name, "zip");
  EXPECT_TRUE(plan.state_schema_changed);
}

// --- drift ---------------------------------------------------------------------------------------

TEST(MakePlan, TheSameFlowAgainChangesNothing) {
  for (const char* clauses :
       {"KEYS (id) SEQUENCE BY seq", "KEYS (id) SEQUENCE BY seq STORED AS SCD TYPE 2"}) {
    const Plan plan = flow(clauses).later().plan();
    EXPECT_FALSE(plan.target_schema_changed);
    EXPECT_FALSE(plan.state_schema_changed);
    EXPECT_EQ(plan.state_spec.to_json(), flow(clauses).plan().state_spec.to_json());
  }
}

TEST(MakePlan, KeysMayNotDrift) {
  const Flow before = flow("KEYS (id, name) SEQUENCE BY seq").later();
  const auto drifts = [&](const std::string& clauses) {
    Flow some = before;
    some.clauses = clauses;
    return some.error_codes();
  };
  const std::string code = "AUTOCDC_INVALID_STATE.KEY_SCHEMA_DRIFT";
  EXPECT_THAT(drifts("KEYS (id) SEQUENCE BY seq"), ElementsAre(code));
  EXPECT_THAT(drifts("KEYS (id, city) SEQUENCE BY seq"), ElementsAre(code));
  EXPECT_THAT(drifts("KEYS (NAME, id) SEQUENCE BY seq"), IsEmpty());  // a set
  Flow narrower = before;
  narrower.source.schema = schema("id INT, name STRING, city STRING, op STRING, seq BIGINT");
  EXPECT_THAT(narrower.error_codes(), ElementsAre(code));
}

TEST(MakePlan, SequenceAndStorageTypeMayNotDrift) {
  Flow some = Flow().later();
  some.source.sequence_type = type("INT");
  EXPECT_THAT(some.error_codes(), ElementsAre("AUTOCDC_INVALID_STATE.SEQUENCING_TYPE_DRIFT"));
  Flow other = Flow().later();
  other.clauses = "KEYS (id) SEQUENCE BY seq STORED AS SCD TYPE 2";
  EXPECT_THAT(other.error_codes(), ElementsAre("AUTOCDC_INVALID_STATE.SCD_TYPE_DRIFT"));
  Flow expression = Flow().later();
  expression.clauses = "KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq + 1";
  EXPECT_THAT(expression.error_codes(), IsEmpty());  // expressions may change
}

// --- evolution and declared schemas --------------------------------------------------------------

TEST(MakePlan, NarrowerTypesAreCastUp) {
  Flow some = flow("KEYS (id) SEQUENCE BY seq COLUMNS (id, seq, n)");
  some.source.schema = schema("id BIGINT, n BIGINT, seq BIGINT");
  Flow later = some.later();
  later.source.schema = schema("id BIGINT, n INT, seq BIGINT");
  const Plan plan = later.plan();
  EXPECT_EQ(to_sql(column(plan, "n").type), "BIGINT");
  EXPECT_EQ(to_sql(column(plan, "n").source->type), "INT");
  EXPECT_FALSE(plan.target_schema_changed);
}

TEST(MakePlan, WiderTypesNeedTheProperty) {
  Flow some;
  some.source.schema = schema("id BIGINT, n INT, seq BIGINT");
  Flow later = some.later();
  later.source.schema = schema("id BIGINT, n BIGINT, seq BIGINT");
  const PlanOrErrors made = later.make();
  ASSERT_THAT(codes(made.errors), ElementsAre("CANNOT_MERGE_INCOMPATIBLE_DATA_TYPE"));
  EXPECT_THAT(made.errors[0].message, HasSubstr("delta.enableTypeWidening"));
  later.target.type_widening = true;
  const Plan plan = later.plan();
  EXPECT_EQ(to_sql(column(plan, "n").type), "BIGINT");
  EXPECT_EQ(to_sql(*column(plan, "n").existing), "INT");
  EXPECT_TRUE(plan.target_schema_changed);
}

TEST(MakePlan, TypesThatNothingHoldsAreRefused) {
  Flow some;
  some.source.schema = schema("id BIGINT, n TIMESTAMP, seq BIGINT");
  Flow later = some.later();
  later.source.schema = schema("id BIGINT, n STRING, seq BIGINT");
  later.target.type_widening = true;
  EXPECT_THAT(later.error_codes(), ElementsAre("CANNOT_MERGE_INCOMPATIBLE_DATA_TYPE"));
}

TEST(MakePlan, ADeclaredSchemaIsFixed) {
  Flow some = flow("KEYS (id) SEQUENCE BY seq COLUMNS * EXCEPT (op, seq)");
  some.target.declared = schema("city STRING, id DECIMAL(20, 0), name STRING, extra INT");
  const Plan plan = some.plan();
  EXPECT_THAT(names(plan.target_schema), ElementsAre("city", "id", "name", "extra"));
  EXPECT_EQ(to_sql(plan.keys.at(0).type), "DECIMAL(20,0)");
  EXPECT_FALSE(column(plan, "extra").owned);
  EXPECT_THAT(some.later().error_codes(), IsEmpty());

  some.target.declared = schema("id BIGINT, name STRING");
  EXPECT_THAT(some.error_codes(), ElementsAre("AUTOCDC_COLUMN_NOT_IN_DECLARED_SCHEMA"));
  some.target.declared = schema("id BIGINT, name STRING, city INT");
  EXPECT_THAT(some.error_codes(), ElementsAre("CANNOT_MERGE_INCOMPATIBLE_DATA_TYPE"));
}

TEST(MakePlan, ADeclaredType2SchemaHasTheIntervalColumns) {
  Flow some = flow("KEYS (id) SEQUENCE BY seq COLUMNS (id, name) STORED AS SCD TYPE 2");
  some.target.declared = schema("id BIGINT, name STRING");
  EXPECT_THAT(some.error_codes(), ElementsAre("AUTOCDC_INTERVAL_COLUMNS_MISMATCH",
                                              "AUTOCDC_INTERVAL_COLUMNS_MISMATCH"));
  some.target.declared = schema("__START_AT BIGINT, id BIGINT, name STRING, __END_AT INT");
  EXPECT_THAT(some.error_codes(), ElementsAre("AUTOCDC_INTERVAL_COLUMNS_MISMATCH"));
  some.target.declared = schema("__START_AT BIGINT, id BIGINT, name STRING, __END_AT BIGINT");
  const Plan plan = some.plan();
  EXPECT_EQ(plan.target_schema.fields.size(), 4u);
  EXPECT_EQ(plan.columns.size(), 2u);
}

TEST(MakePlan, AForeignTableIsAdoptedOnlyIfItsKeysFit) {
  Flow some;
  some.target.existing = schema("name STRING, id BIGINT");
  EXPECT_THAT(names(some.plan().target_schema), ElementsAre("name", "id", "city", "op", "seq"));
  some.target.existing = schema("name STRING, id INT");
  some.target.type_widening = true;
  EXPECT_THAT(some.error_codes(), ElementsAre("AUTOCDC_INVALID_STATE.KEY_SCHEMA_DRIFT"));
  some.target.existing = schema("name STRING");
  EXPECT_THAT(some.error_codes(), ElementsAre("AUTOCDC_INVALID_STATE.KEY_SCHEMA_DRIFT"));
}

// --- the sequence column -------------------------------------------------------------------------

TEST(MakePlan, AKeptSequenceColumnTellsTheSequence) {
  EXPECT_EQ(Flow().plan().sequence_column, "seq");
  EXPECT_TRUE(Flow().plan().sequence_is_column);
  EXPECT_EQ(flow("KEYS (id) SEQUENCE BY seq COLUMNS (id, name)").plan().sequence_column,
            std::nullopt);
  EXPECT_EQ(flow("KEYS (id) SEQUENCE BY seq + 1").plan().sequence_column, std::nullopt);
  // Decided once: a later flow with another expression writes its sequences to the state.
  Flow other = Flow().later();
  other.clauses = "KEYS (id) SEQUENCE BY seq * 2";
  EXPECT_EQ(other.plan().sequence_column, "seq");
  EXPECT_FALSE(other.plan().sequence_is_column);
  Flow back = flow("KEYS (id) SEQUENCE BY seq * 2").later();
  back.clauses = "KEYS (id) SEQUENCE BY seq";
  EXPECT_EQ(back.plan().sequence_column, std::nullopt);
}

TEST(MakePlan, RowsOfAnAdoptedTableTellNoSequence) {
  Flow some;
  some.target.existing = schema("id BIGINT, name STRING, city STRING, op STRING, seq BIGINT");
  some.target.has_rows = true;
  EXPECT_EQ(some.plan().sequence_column, std::nullopt);
  some.target.has_rows = false;
  EXPECT_EQ(some.plan().sequence_column, "seq");
}

// --- the state's description ---------------------------------------------------------------------

TEST(StateSpecJson, KeepsEverything) {
  StateSpec spec;
  spec.scd_type = ScdType::kType2;
  spec.keys = {Field{"a`b", type("DECIMAL(12,2)"), true, {}},
               Field{"Ünï \"x\"", type("STRUCT<x: INT, y: ARRAY<STRING>>"), true, {}}};
  spec.sequence_type = type("STRUCT<ts: TIMESTAMP, `odd name`: BINARY>");
  spec.tracked = {{"p", true}, {"q", false}};
  spec.selected_ever = {"p", "q", "a`b"};
  spec.sequence_column = "p";
  spec.truncates = true;
  const Result<StateSpec> read = StateSpec::from_json(spec.to_json());
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->to_json(), spec.to_json());
  EXPECT_EQ(read->keys[1].name, "Ünï \"x\"");
  EXPECT_TRUE(same_type(read->sequence_type, spec.sequence_type));
  EXPECT_TRUE(read->truncates);
}

TEST(StateSpecJson, RefusesDamage) {
  const std::string good = Flow().plan().state_spec.to_json();
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(StateSpec::from_json(good.substr(0, length)).ok()) << length;
  }
  EXPECT_EQ(StateSpec::from_json("{}").error().code, "STATE_SPEC");
  const Result<StateSpec> newer = StateSpec::from_json(R"({"format":3})");
  ASSERT_FALSE(newer.ok());
  EXPECT_THAT(newer.error().message, HasSubstr("format 3"));
}

}  // namespace
}  // namespace strandline::cdc
