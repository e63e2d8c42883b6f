// A flow's next batch as a program of a dialect, for readers and for other engines.
#include <strandline/program.h>

#include "base/error.h"
#include "cdc/snapshot_program.h"
#include "duck/delta_io.h"
#include "pipeline/flow_run.h"
#include "sql/duckdb_printer.h"
#include "sql/names.h"

namespace strandline::pipeline {

namespace {

constexpr const char* kSource = "strandline_source";
constexpr const char* kTarget = "strandline_target";
constexpr const char* kState = "strandline_state";
constexpr const char* kEdits = "strandline_edits";
constexpr const char* kVersion = "strandline_version";

std::string ddl(const std::vector<Field>& fields) {
  std::string text;
  for (const Field& field : fields) {
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", sql::spark_name(field.name),
                        to_sql(field.type), field.nullable ? "" : " NOT NULL");
  }
  return text;
}

ProgramStep::Kind kind_of(cdc::Step::Kind kind) {
  switch (kind) {
    case cdc::Step::Kind::kMake:
      return ProgramStep::Kind::kMake;
    case cdc::Step::Kind::kChange:
      return ProgramStep::Kind::kChange;
    case cdc::Step::Kind::kCheck:
      return ProgramStep::Kind::kCheck;
  }
  return ProgramStep::Kind::kMake;
}

std::vector<Field> positioned_columns(const Schema& schema, bool with_row_ids) {
  std::vector<Field> fields = schema.fields;
  fields.push_back({duck::kFileColumn, DataType::primitive(TypeId::kInteger), true, {}});
  fields.push_back({duck::kRowColumn, DataType::primitive(TypeId::kLong), true, {}});
  if (!with_row_ids) return fields;
  fields.push_back({duck::kRowIdColumn, DataType::primitive(TypeId::kLong), true, {}});
  fields.push_back({duck::kRowVersionColumn, DataType::primitive(TypeId::kLong), true, {}});
  return fields;
}

void put_text(const cdc::Program& program, FlowProgram* printed) {
  for (const cdc::Step& step : program.steps) {
    printed->steps.push_back({kind_of(step.kind), step.stage, step.table, step.sql, step.only_if,
                              step.code, step.message});
  }
  printed->target_new = program.target_new;
  printed->target_dead = program.target_dead;
  printed->state_new = program.state_new;
  printed->state_dead = program.state_dead;
  printed->metrics = program.metrics;
}

}  // namespace

// What happens to the rows of the source before the program sees them is the pipeline's work.
Status FlowRun::check_program(Dialect dialect, const cdc::Plan& plan) const {
  if (dialect == Dialect::kDuckDb) return {};
  const auto refuse = [&](const std::string& what, const std::string& way_out) {
    return placed(
        unsupported("UNSUPPORTED_IN_DIALECT", "flow '{}': {} cannot be printed in Spark SQL: {}",
                    flow_.name, what, way_out),
        flow_.place);
  };
  if (!target_->dataset().options.expectations.empty()) {
    return refuse("expectations of '" + target_->dataset().shown + "'",
                  "write them as WHERE in the source query");
  }
  for (const auto& column : plan.columns) {
    if (!column.generated) continue;
    return refuse("column '" + column.name + "', which the table computes",
                  "compute it in the source query");
  }
  if (sources_.reads_feed()) {
    return refuse("a source that is a change data feed",
                  "read table_changes() in a query with columns of your own");
  }
  return {};
}

Result<FlowProgram> FlowRun::print_program(Dialect dialect) {
  if (takes_snapshots()) return print_snapshot_program(dialect);
  if (!checkpoint_) SL_TRY(start());
  if (!facts_) {
    return placed(not_found("SOURCE_SCHEMA_UNKNOWN",
                            "flow '{}' has seen nothing of its source yet, so its columns are not "
                            "known: give read_files a schema, or let a first file arrive",
                            flow_.name),
                  flow_.place);
  }
  cdc::TargetFacts facts;
  facts.declared = target_->dataset().declared_schema();
  facts.has_rows = false;
  std::vector<Target::Versions> edits;
  cdc::BatchRelations relations;
  relations.source = kSource;
  SL_ASSIGN(const auto target, target_->snapshot(*checkpoint_));
  std::shared_ptr<const delta::Snapshot> state;
  if (target) {
    SL_ASSIGN(state, target_->state(*target, *checkpoint_));
    SL_ASSIGN(facts, target_facts(*target, state.get()));
    if (target_->is_current(*target)) {
      if (!target->files.empty()) relations.target = kTarget;
      SL_ASSIGN(edits, target_->hand_edits(*target, state.get()));
    }
    if (state && target_->is_current_state(*state) && !state->files.empty()) {
      relations.state = kState;
    }
  }
  SL_ASSIGN(facts.edited, takes_edits(target, edits));
  if (facts.edited) relations.edits = kEdits;
  SL_ASSIGN(const auto plan, make_plan(facts));
  SL_TRY(check_program(dialect, plan));
  SL_ASSIGN(const auto program, dialect == Dialect::kSpark
                                    ? cdc::make_spark_program(plan, relations)
                                    : cdc::make_duckdb_program(plan, relations));

  FlowProgram printed;
  printed.flow = flow_.name;
  printed.target = target_->dataset().shown;
  printed.stored_as = cdc::to_string(plan.scd_type);
  printed.source_query = sql::print_spark(*flow_.query);
  const auto reads = [&](const std::string& name, const std::vector<Field>& columns,
                         const char* what) {
    if (!name.empty()) printed.reads.push_back({name, ddl(columns), what});
  };
  std::vector<Field> events = facts_->schema.fields;
  if (flow_.mentions_metadata) {
    events.insert(events.end(), facts_->hidden.fields.begin(), facts_->hidden.fields.end());
  }
  reads(relations.source, events, "The batch: new rows of the source query.");
  if (target) {
    reads(relations.target, positioned_columns(target->schema, true),
          "The target as it stands, with the place of each row.");
  }
  if (state) {
    reads(relations.state, positioned_columns(state->schema, false),
          "The target's AUTO CDC state as it stands, with the place of each row.");
  }
  if (facts.edited) {
    std::vector<Field> changed = target->schema.fields;
    changed.push_back({cdc::kEditSign, DataType::primitive(TypeId::kInteger), true, {}});
    reads(
        relations.edits, changed,
        "Rows changed by hand since the batch before: 1 for one that is there now and was not, -1 "
        "for one that was.");
  }
  put_text(program, &printed);
  printed.target_columns = ddl(plan.target_schema.fields);
  printed.state_columns = ddl(plan.state_schema.fields);
  return printed;
}

Result<FlowProgram> FlowRun::print_snapshot_program(Dialect dialect) {
  if (dialect != Dialect::kDuckDb) {
    return placed(
        unsupported("UNSUPPORTED_IN_DIALECT",
                    "flow '{}': AUTO CDC FROM SNAPSHOT cannot be printed in Spark SQL", flow_.name),
        flow_.place);
  }
  if (!checkpoint_) SL_TRY(start());
  if (!facts_) {
    return placed(not_found("SOURCE_SCHEMA_UNKNOWN",
                            "flow '{}': the columns of its snapshots are not known before one is "
                            "taken",
                            flow_.name),
                  flow_.place);
  }
  cdc::TargetFacts facts;
  facts.declared = target_->dataset().declared_schema();
  facts.has_rows = false;
  cdc::BatchRelations relations;
  relations.source = kSource;
  SL_ASSIGN(const auto target, target_->snapshot(*checkpoint_));
  if (target) {
    SL_ASSIGN(facts, target_facts(*target, nullptr));
    if (target_->is_current(*target) && !target->files.empty()) relations.target = kTarget;
  }
  SL_ASSIGN(const auto plan, make_plan(facts));
  cdc::SnapshotFacts snapshot;
  snapshot.version = fmt::format("(SELECT version FROM {})", kVersion);
  snapshot.is_first = !checkpoint_->snapshot_version();
  snapshot.max_delete_ratio = snapshot_options_.max_delete_ratio;
  SL_ASSIGN(const auto made, cdc::make_snapshot_program(plan, relations, snapshot));

  FlowProgram printed;
  printed.flow = flow_.name;
  printed.target = target_->dataset().shown;
  printed.stored_as = cdc::to_string(plan.scd_type);
  printed.source_query = sql::print_spark(*flow_.query);
  printed.reads.push_back(
      {kSource, ddl(facts_->schema.fields), "The snapshot: all rows of the source query."});
  printed.reads.push_back({kVersion, ddl({{"version", plan.sequence_type, true, {}}}),
                           "The snapshot's version, in one row."});
  if (!relations.target.empty()) {
    printed.reads.push_back({kTarget, ddl(positioned_columns(target->schema, true)),
                             "The target as it stands, with the place of each row."});
  }
  put_text(made.program, &printed);
  printed.target_columns = ddl(plan.target_schema.fields);
  return printed;
}

}  // namespace strandline::pipeline
