// AUTO CDC FROM SNAPSHOT (auto-cdc.md section 10): where snapshots and their versions come from,
// and how one becomes a commit. The target is all there is to change, in one commit, so that a
// snapshot is processed whole or not at all: one that was cut short is taken again.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <numeric>

#include "base/clock.h"
#include "base/error.h"
#include "cdc/snapshot_program.h"
#include "duck/engine_errors.h"
#include "duck/program_runner.h"
#include "duck/table_change.h"
#include "pipeline/compaction.h"
#include "pipeline/file_reader.h"
#include "pipeline/flow_execution.h"
#include "pipeline/flow_run.h"
#include "pipeline/stream_check.h"
#include "pipeline/table_properties.h"
#include "sql/duckdb_printer.h"
#include "sql/parser.h"

namespace strandline::pipeline {
namespace {

bool says(const std::string& value, const char* word) { return fold_name(value) == word; }

std::string snapshot_error(const char* sub_code) { return std::string(kSnapshotError) + sub_code; }

ProgramVersion to_program(const SnapshotVersion& version) {
  const bool decimal = version.type.id == TypeId::kDecimal;
  return {decimal ? "DECIMAL" : to_sql(version.type), version.value};
}

// The table of a query that gives at most one row for each of its rows, from that row alone; else
// null.
const sql::TableUse* table_of_rows(const sql::Query& query) {
  const auto* const select = query.as<sql::Select>();
  if (select == nullptr || !query.with.empty() || query.limit || query.offset || select->distinct ||
      !select->group_by.empty() || select->group_by_all || select->having || select->qualify ||
      !select->from || !sql::nondeterministic_calls(query).empty()) {
    return nullptr;
  }
  std::vector<Error> beyond_row;
  for (const auto& item : select->items) {
    if (item.expr) check_row_expression(*item.expr, "", query.place, &beyond_row);
  }
  if (select->where) check_row_expression(*select->where, "", query.place, &beyond_row);
  return beyond_row.empty() ? select->from->as<sql::TableUse>() : nullptr;
}

bool mentions(const std::string& text, const char* word) {
  return fold_name(text).find(word) != std::string::npos;
}

}  // namespace

// --- options ------------------------------------------------------------------------------------

// As the statement says it: what the table has of an earlier statement no longer counts.
std::optional<std::string> FlowRun::target_property(const char* key) const {
  for (const auto& option : target_->dataset().options.properties) {
    if (same_name(option.key, key)) return option.value;
  }
  return {};
}

Status FlowRun::read_snapshot_options(std::vector<Error>* errors) {
  const auto& dataset = target_->dataset();
  const auto refuse = [&](const char* key, const std::string& value, const char* accepted) {
    SourcePlace place = dataset.place;
    for (const auto& option : dataset.options.properties) {
      if (same_name(option.key, key) && option.place.line > 0) place = option.place;
    }
    errors->push_back(
        placed(invalid_argument("INVALID_TABLE_PROPERTY", "property '{}' of '{}' is '{}': give {}",
                                key, dataset.shown, value, accepted),
               place));
  };
  if (const auto value = target_property(kVersionProperty)) {
    snapshot_options_.by_time = says(*value, "timestamp");
    if (!snapshot_options_.by_time && !says(*value, "counter"))
      refuse(kVersionProperty, *value, "'timestamp' or 'counter'");
  }
  if (const auto value = target_property(kOutOfOrderProperty)) {
    snapshot_options_.fails_out_of_order = says(*value, "error");
    if (!snapshot_options_.fails_out_of_order && !says(*value, "skip"))
      refuse(kOutOfOrderProperty, *value, "'skip' or 'error'");
  }
  if (const auto value = target_property(kDeleteRatioProperty)) {
    double ratio = -1;
    const char* const end = value->data() + value->size();
    const auto [read, problem] = std::from_chars(value->data(), end, ratio);
    if (problem != std::errc() || read != end || !(ratio >= 0) || ratio > 1) {
      refuse(kDeleteRatioProperty, *value, "a number from 0 to 1");
    } else {
      snapshot_options_.max_delete_ratio = ratio;
    }
  }
  return {};
}

// --- versions -----------------------------------------------------------------------------------

// The query over empty sources; empty while the columns of a source are not known.
Result<std::string> FlowRun::print_empty() const {
  for (const auto& schema : schemas_) {
    if (!schema) return std::string();
  }
  const auto relation_of = [&](size_t i) -> Result<std::string> {
    const auto& source = sources_.sources()[i];
    if (source.kind != SourceKind::kFiles) return empty_relation(*schemas_[i]);
    FileRelationOptions options;
    options.with_metadata = flow_.mentions_metadata;
    return file_relation(*context_.connection, *context_.store, source.files, *schemas_[i], {},
                         options);
  };
  const auto unchecked = [](size_t, const std::string& text) -> Result<std::string> {
    return text;
  };
  return sources_.print(*flow_.query, 0, relation_of, unchecked, *context_.connection);
}

// None while the columns that the version query reads are not known.
Result<std::optional<DataType>> FlowRun::find_version_type(const PlannedSchemas* planned) {
  if (!version_run_) {
    return std::optional(
        DataType::primitive(snapshot_options_.by_time ? TypeId::kTimestamp : TypeId::kLong));
  }
  SL_TRY(version_run_->find_source_schemas(true, planned));
  SL_ASSIGN(const auto query, version_run_->print_empty());
  if (query.empty()) return std::optional<DataType>();
  auto columns = context_.connection->describe(query);
  if (!columns.ok()) {
    Error error = duck::in_users_words(columns.error(), version_run_->flow_.query, flow_.place);
    if (error.code == "ENGINE_ERROR") error.code = "QUERY_INVALID";
    return error.with_context("WITH VERSION");
  }
  if (columns->size() != 1) {
    return invalid_argument(snapshot_error("INVALID_SNAPSHOT_VERSION"),
                            "the version query gives {} columns: it gives the version alone",
                            columns->size());
  }
  const auto& column = columns->front();
  SL_ASSIGN(const auto type, version_type(column.type, column.has_delta_type ? to_sql(column.type)
                                                                             : column.engine_type));
  return std::optional(type);
}

// What WITH VERSION gives now; none for null.
Result<std::optional<SnapshotVersion>> FlowRun::evaluate_version() {
  stage("version");
  SL_ASSIGN(const auto type, find_version_type(nullptr));
  if (!type) {
    return not_found("SOURCE_SCHEMA_UNKNOWN",
                     "nothing was seen yet of what the version query of flow '{}' reads",
                     flow_.name);
  }
  BatchPlan reads;
  reads.time_us = now_micros();
  SL_TRY(version_run_->plan_reads(&reads));
  Execution execution;
  SL_ASSIGN(const auto query, version_run_->print_batch(reads, &execution));
  // A TIMESTAMP as text without its zone, which is UTC.
  const std::string printed =
      type->id == TypeId::kTimestamp ? "TIMESTAMP" : duck::engine_type(*type);
  SL_ASSIGN(const auto found, context_.connection->query(fmt::format(
                                  "SELECT CAST(CAST(v AS {}) AS VARCHAR) FROM ({}) AS q(v) LIMIT 2",
                                  printed, query)));
  if (found.rows.size() > 1) {
    return invalid_data(snapshot_error("INVALID_SNAPSHOT_VERSION"),
                        "the version query gives more than one row: it gives the version of the "
                        "snapshot alone, as max(…) does");
  }
  if (found.rows.empty() || !found.rows[0][0]) return std::optional<SnapshotVersion>();
  return std::optional(SnapshotVersion{*type, *found.rows[0][0]});
}

// Whether a snapshot of this version is to be processed; else it is passed over, or an error.
Result<bool> FlowRun::comes_next(const SnapshotVersion& version) {
  const auto& latest = checkpoint_->snapshot_version();
  // Another type than before is drift, which the plan finds.
  if (!latest || !same_type(latest->type, version.type)) return true;
  SL_ASSIGN(const bool above, is_above(*context_.connection, version, *latest));
  if (above) return true;
  // A version query that says the same as before says that there is nothing new.
  SL_ASSIGN(const bool below, is_above(*context_.connection, *latest, version));
  if (version_run_ && !below) return false;
  Error late = placed(
      invalid_data(snapshot_error("OUT_OF_ORDER_SNAPSHOT_VERSION"),
                   "flow '{}': the snapshot of version {} does not come after the latest one, {}; "
                   "it is skipped",
                   flow_.name, version.value, latest->value),
      flow_.place);
  if (snapshot_options_.fails_out_of_order) {
    late.message = fmt::format(
        "flow '{}': the snapshot of version {} does not come after the latest one, {}, and {} is "
        "'error'",
        flow_.name, version.value, latest->value, kOutOfOrderProperty);
    return late;
  }
  warnings_.push_back(std::move(late));
  add_metric("num_skipped_snapshots", 1);
  return false;
}

// --- taking snapshots ---------------------------------------------------------------------------

// The query that a program gave stands for the flow's.
Status FlowRun::take_program_query(const ProgramSnapshot& snapshot) {
  auto script = sql::parse_script(snapshot.query, flow_.place.file, [&](const std::string& key) {
    const auto value = context_.spec.configuration.find(key);
    return value == context_.spec.configuration.end() ? std::nullopt : std::optional(value->second);
  });
  const auto* const select = script.statements.size() == 1
                                 ? std::get_if<sql::SelectStatement>(&script.statements[0].body)
                                 : nullptr;
  if (!script.errors.empty() || select == nullptr) {
    Error error = script.errors.empty()
                      ? internal_error("NO_QUERY", "'{}' is not one query", snapshot.query)
                      : script.errors.front();
    error.place = flow_.place;
    return error.with_context("the snapshot that the function gave");
  }
  flow_.query = select->query;
  flow_.mentions_metadata = mentions(snapshot.query, "_metadata");
  flow_.mentions_row_index = flow_.mentions_metadata && mentions(snapshot.query, "row_index");
  inferred_.clear();
  std::vector<Error> errors;
  sources_ =
      FlowSources::analyze(context_.graph, flow_, context_.spec, *context_.warehouse, &errors);
  for (const auto& use : sql::table_uses(*flow_.query)) {
    if (use.function.empty() || use.function == "read_files" || use.function == "read_jdbc" ||
        use.function == "table_changes" || use.function == "table_changes_by_path")
      continue;
    errors.push_back(unsupported("UNSUPPORTED_TABLE_FUNCTION",
                                 "a snapshot cannot read {}(): it reads tables, views, files and "
                                 "tables of other databases",
                                 use.function));
  }
  for (const auto& source : sources_.sources()) {
    if (source.kind != SourceKind::kStream) continue;
    errors.push_back(invalid_argument("SNAPSHOT_OF_STREAM",
                                      "the snapshot reads '{}' as a stream, which gives each row "
                                      "once: read it with spark.read",
                                      source.shown));
  }
  if (errors.empty()) return {};
  errors.front().place = flow_.place;
  return errors.front();
}

// All that the sources have now.
Status FlowRun::plan_reads(BatchPlan* plan) const {
  const auto& sources = sources_.sources();
  for (size_t i = 0; i < sources.size(); ++i) {
    const auto& source = sources[i];
    if (source.kind == SourceKind::kFiles) {
      SourcePlan part;
      part.key = source.key;
      const auto files = backlog_.find(i);
      if (files != backlog_.end()) part.files = files->second;
      part.schema = schemas_[i];
      plan->sources.push_back(std::move(part));
    } else if (source.kind == SourceKind::kJdbc) {
      continue;
    } else if (newest_[i] != nullptr) {
      plan->pinned[source.key] = newest_[i]->version;
    } else {
      return placed(
          not_found("TABLE_OR_VIEW_NOT_FOUND", "table '{}' is not there yet", source.shown),
          source.place);
    }
  }
  return {};
}

// The version of the next snapshot, and the query that gives it. False: there is none to process.
Result<bool> FlowRun::find_snapshot(std::optional<SnapshotVersion>* version) {
  if (!flow_.snapshot_function.empty()) {
    if (context_.program == nullptr)
      return internal_error("NO_PROGRAM", "flow '{}' has no program to ask", flow_.name);
    stage("version function");
    std::optional<ProgramVersion> latest;
    if (checkpoint_->snapshot_version()) latest = to_program(*checkpoint_->snapshot_version());
    auto given = context_.program->next_snapshot(flow_.snapshot_function, latest);
    if (!given.ok()) return placed(given.error(), flow_.place);
    if (!*given) return false;
    if ((*given)->version) {
      SL_ASSIGN(*version, read_version(*context_.connection, (*given)->version->type,
                                       (*given)->version->value));
      SL_ASSIGN(const bool next, comes_next(**version));
      if (!next) return false;
      SL_TRY(take_program_query(**given));
    }
  } else if (version_run_) {
    SL_ASSIGN(*version, evaluate_version());
  } else if (snapshot_options_.by_time) {
    SL_ASSIGN(*version,
              version_of_time(*context_.connection, now_micros(), checkpoint_->snapshot_version()));
  } else {
    const auto& latest = checkpoint_->snapshot_version();
    int64_t count = 0;
    if (latest && latest->type.id == TypeId::kLong)
      count = std::strtoll(latest->value.c_str(), nullptr, 10) + 1;
    *version = SnapshotVersion{DataType::primitive(TypeId::kLong), std::to_string(count)};
  }
  if (!*version) {
    return invalid_data(snapshot_error("NULL_SNAPSHOT_VERSION"),
                        "flow '{}': the version of the snapshot is null: each snapshot needs one, "
                        "which says what came before it",
                        flow_.name);
  }
  return flow_.snapshot_function.empty() ? comes_next(**version) : Result<bool>(true);
}

// Why find_facts() does not know the columns.
std::string FlowRun::unknown_columns() const {
  for (size_t i = 0; i < schemas_.size(); ++i) {
    if (schemas_[i]) continue;
    const auto& source = sources_.sources()[i];
    if (source.kind != SourceKind::kFiles) {
      return fmt::format("it reads '{}', which is not there yet{}", source.shown,
                         source.dataset == flow_.target
                             ? " and is made by the first snapshot: read it once there is one"
                             : "");
    }
    const auto files = backlog_.find(i);
    const char* const why = files == backlog_.end() || files->second.empty()
                                ? "there are no files yet"
                                : "its files have no rows";
    return fmt::format(
        "{}, so that the columns are not known; give read_files a schema to take an empty snapshot",
        why);
  }
  return "its columns are not known";
}

// One snapshot, if there is one. False: no further one is to be asked for in this update.
Result<bool> FlowRun::take_snapshot() {
  BatchPlan plan;
  plan.batch = checkpoint_->last_batch() + 1;
  plan.time_us = now_micros();
  plan.definition = flow_.definition;
  plan.is_snapshot = true;
  SL_ASSIGN(const bool there, find_snapshot(&plan.snapshot_version));
  if (!there) {
    if (!flow_.once) return false;
    // ONCE is done even if that was nothing.
    plan.snapshot_version.reset();
    SL_ASSIGN(plan.marks, target_->marks());
    SL_TRY(checkpoint_->write_plan(plan));
    SL_TRY(mark_done());
    return false;
  }
  version_type_ = plan.snapshot_version->type;
  stage("plan");
  SL_TRY(find_source_schemas(false, nullptr));
  if (version_run_) {
    // A version belongs to the rows beside which it was read.
    const auto& others = version_run_->sources_.sources();
    for (size_t i = 0; i < newest_.size(); ++i) {
      const auto& source = sources_.sources()[i];
      if (source.kind != SourceKind::kTable || source.version) continue;
      for (size_t k = 0; k < others.size(); ++k) {
        if (others[k].kind != SourceKind::kTable || others[k].version ||
            others[k].table->path() != source.table->path()) {
          continue;
        }
        newest_[i] = version_run_->newest_[k];
        if (newest_[i] != nullptr) schemas_[i] = newest_[i]->schema;
      }
    }
  }
  SL_ASSIGN(facts_, find_facts(nullptr));
  if (!facts_) {
    // Nothing was ever seen of a source: there is nothing to make a table of yet.
    warnings_.push_back(placed(not_found("SOURCE_SCHEMA_UNKNOWN", "flow '{}' took no snapshot: {}",
                                         flow_.name, unknown_columns()),
                               flow_.place));
    return false;
  }
  // A snapshot that is refused leaves the table's properties alone.
  if (auto fits = check_fit(); !fits.ok()) {
    const auto target = target_->snapshot(*checkpoint_);
    if (target.ok() && *target) target_->warn_of_fixed(**target, &warnings_);
    return fits.error();
  }
  SL_ASSIGN(const auto target, ensure_target());
  if (!checkpoint_->snapshot_version() && target_->has_batches(*target)) {
    return placed(
        invalid_argument("AUTOCDC_INVALID_STATE.SNAPSHOT_DRIFT",
                         "'{0}' was written by other flows than '{1}', which knows no snapshot of "
                         "it: give the flow its earlier name and source, or run a full refresh of "
                         "the table (--full-refresh {0})",
                         target_->dataset().shown, flow_.name),
        flow_.place);
  }
  plan.target_id = target->metadata.id;
  SL_TRY(plan_reads(&plan));
  SL_ASSIGN(plan.marks, target_->marks());
  SL_TRY(checkpoint_->write_plan(plan));
  SL_TRY(run_batch(true));
  compact(kCompactionInterval);
  return !flow_.snapshot_function.empty() && !flow_.once;
}

Status FlowRun::take_snapshots() {
  SL_TRY(finish_unfinished());
  if (flow_.once && checkpoint_->last_batch() >= 0) return {};
  for (bool more = true; more && !context_.stopping();) {
    SL_TRY(context_.check_cancelled());
    SL_ASSIGN(more, take_snapshot());
  }
  return {};
}

// --- one snapshot -------------------------------------------------------------------------------

// A table's version or Parquet files, row by row: no other rows come when they are read again, and
// reading them again costs less than a copy.
bool FlowRun::reads_same_rows_again() const {
  const auto& sources = sources_.sources();
  const sql::TableUse* const use = table_of_rows(*flow_.query);
  if (sources.size() != 1 || use == nullptr || !sources_.expecting_views().empty()) return false;
  const auto& source = sources.front();
  const bool is_view = source.place.file != use->place.file ||
                       source.place.line != use->place.line ||
                       source.place.column != use->place.column;
  if (is_view) return false;
  return source.kind == SourceKind::kTable ||
         (source.kind == SourceKind::kFiles && source.files.format == FileFormat::kParquet);
}

Status FlowRun::execute_snapshot(const BatchPlan& plan) {
  const Status done = write_snapshot(plan);
  if (done.ok()) return {};
  // Many can wait in one update.
  return done.error().with_context(
      fmt::format("flow '{}', snapshot of version {}", flow_.name, plan.snapshot_version->value));
}

Status FlowRun::write_snapshot(const BatchPlan& plan) {
  auto& connection = *context_.connection;
  SL_ASSIGN(const auto target, target_before(plan));
  if (!target) return {};
  const bool reads_target = target_->is_current(*target) && !target->files.empty();
  SL_ASSIGN(const auto facts, target_facts(*target, nullptr));
  SL_ASSIGN(const auto cdc_plan, make_plan(facts));
  warn(cdc_plan.warnings);

  // Relations.
  Execution execution;
  cdc::BatchRelations relations;
  SL_ASSIGN(const auto query, print_batch(plan, &execution));
  relations.source = "(" + query + ")";
  relations.now_us = plan.time_us;
  cdc::SnapshotFacts snapshot;
  if (reads_target) {
    std::vector<size_t> files(target->files.size());
    std::iota(files.begin(), files.end(), size_t{0});
    SL_ASSIGN(relations.target,
              positioned(connection, target_->table(), target, files, true, &execution.scans));
    SL_ASSIGN(const auto edits, target_->hand_edits(*target, nullptr));
    snapshot.doubts_target = !edits.empty();
  }
  const auto& dataset = target_->dataset();
  snapshot.version = to_engine(*plan.snapshot_version);
  snapshot.is_first = !checkpoint_->snapshot_version();
  snapshot.copies_source = !reads_same_rows_again();
  snapshot.has_expectations = !dataset.options.expectations.empty();
  snapshot.max_delete_ratio = snapshot_options_.max_delete_ratio;
  SL_ASSIGN(const auto made, cdc::make_snapshot_program(cdc_plan, relations, snapshot));
  const cdc::Program& program = made.program;

  const ProgramTables tables(connection, program);
  const duck::OnStage on_stage = [&](const std::string& name) { stage(name); };
  SL_TRY(duck::run_steps(connection, program, on_stage, 0, made.compared));
  if (snapshot.has_expectations) {
    RowsToCheck rows;
    rows.query = made.upserts;
    rows.now_us = plan.time_us;
    for (const auto& column : cdc_plan.columns) {
      if (column.generated) continue;
      auto& columns = column.source ? rows.columns : rows.missing;
      columns.fields.push_back(Field{column.name, column.type, true, {}});
    }
    for (const auto& field : target_columns_.fields) {
      if (!rows.columns.find(field.name) && !rows.missing.find(field.name))
        rows.missing.fields.push_back(field);
    }
    SL_ASSIGN(execution.checked, CheckedRows::make(connection, dataset.options.expectations,
                                                   dataset.name.to_string(), dataset.shown, rows));
    if (execution.checked->dropped_rows() > 0) {
      const std::string kept =
          fmt::format("SELECT {} FROM {}", cdc::kUpsertRow, execution.checked->sql());
      SL_TRY(connection.execute(fmt::format(fmt::runtime(made.keep), fmt::arg("rows", kept))));
    }
  }
  SL_ASSIGN(const auto metrics, duck::run_program(connection, program, on_stage, made.compared));
  SL_TRY(context_.check_cancelled());
  SL_TRY(check_files_unchanged(plan));

  stage("write");
  duck::AppliedChange applied;
  SL_ASSIGN(auto transaction,
            change_target(target, cdc_plan, program, metrics, relations.target, &applied));
  if (transaction.has_changes()) {
    transaction.set_txn(target_->app_id(flow_.name), plan.batch);
    transaction.set_operation("AUTO CDC FROM SNAPSHOT",
                              {{"flow", flow_.name},
                               {"batch", std::to_string(plan.batch)},
                               {"version", plan.snapshot_version->value}});
    Target::sign_commit(&transaction, plan);
    transaction.set_metric("num_upserted_rows", metrics.num_upserted_rows);
    transaction.set_metric("num_deleted_rows", metrics.num_deleted_rows);
    transaction.set_metric("num_input_rows", metrics.num_input_rows);
    stage("commit");
    SL_TRY(duck::commit_change(transaction, target_->table(), applied));
    committed_ = true;
  }
  add_metric("num_upserted_rows", static_cast<double>(metrics.num_upserted_rows));
  add_metric("num_deleted_rows", static_cast<double>(metrics.num_deleted_rows));
  add_metric("num_input_rows", static_cast<double>(metrics.num_input_rows));
  add_metric("num_output_bytes", static_cast<double>(applied.written_bytes()));
  if (reads_target) add_metric("num_files_read", static_cast<double>(target->files.size()));
  count_expectations(execution);
  tell_empty_partitions(*target, metrics.num_emptied_rows, metrics.emptied_example);
  return {};
}

}  // namespace strandline::pipeline
