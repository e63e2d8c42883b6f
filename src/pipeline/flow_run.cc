#include "pipeline/flow_run.h"

#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "base/error.h"
#include "pipeline/compaction.h"
#include "pipeline/feed_flow.h"
#include "pipeline/feed_source.h"
#include "pipeline/file_reader.h"
#include "pipeline/glob.h"
#include "pipeline/stream_check.h"
#include "pipeline/view_shape.h"
#include "sql/duckdb_printer.h"

namespace strandline::pipeline {
namespace {

// A stream that passed over this many versions without a row notes its place.
constexpr int64_t kQuietVersions = 32;

// Columns of a described query; types without counterpart in Delta are errors.
Result<Schema> described(const std::vector<duck::ResultColumn>& columns) {
  Schema schema;
  for (const auto& column : columns) {
    DataType type = column.type;
    if (type.id == TypeId::kVoid) {
      if (column.engine_type == "JSON" || column.engine_type == "UUID") {
        type = DataType::primitive(TypeId::kString);
      } else if (column.engine_type != "NULL" && column.engine_type != "\"NULL\"") {
        return unsupported(
            "UNSUPPORTED_TYPE",
            "column '{}' has type {}, which has no counterpart in Delta: cast it in the query",
            column.name, column.engine_type);
      }
    }
    if (schema.find(column.name)) {
      return invalid_argument("COLUMN_ALREADY_EXISTS",
                              "the query gives two columns '{}': rename one of them", column.name);
    }
    schema.fields.push_back(Field{column.name, std::move(type), true, {}});
  }
  return schema;
}

bool is_interval_column(const std::string& name, cdc::ScdType type) {
  const bool business = same_name(name, cdc::kStartAt) || same_name(name, cdc::kEndAt);
  const bool system = same_name(name, cdc::kSystemStartAt) || same_name(name, cdc::kSystemEndAt);
  return (business && type != cdc::ScdType::kType1) ||
         (system && type == cdc::ScdType::kBitemporal);
}

}  // namespace

FlowRun::FlowRun(Context& context, Flow flow) : context_(context), flow_(std::move(flow)) {
  report_.name = flow_.name;
  report_.target = context.graph.datasets[flow_.target].name.to_string();
  report_.status = "SKIPPED";
  for (const char* key :
       {"num_upserted_rows", "num_deleted_rows", "num_input_rows", "num_late_rows",
        "num_sequence_conflicts", "num_skipped_snapshots", "num_output_bytes", "num_batches",
        "num_files_read", "num_files_skipped", "duration_seconds"}) {
    report_.metrics[key] = 0;
  }
  if (flow_.kind != FlowKind::kAutoCdc) report_.metrics["num_output_rows"] = 0;
  report_.expectations =
      uncounted(context.graph.datasets[flow_.target].options.expectations, report_.target);
}

FlowRun::~FlowRun() = default;

void FlowRun::stage(const std::string& name) const {
  if (context_.on_stage) context_.on_stage(name);
}

void FlowRun::add_metric(const char* name, double value) { report_.metrics[name] += value; }

void FlowRun::analyze(std::vector<Error>* errors) {
  sources_ =
      FlowSources::analyze(context_.graph, flow_, context_.spec, *context_.warehouse, errors);
  // A view of the warehouse is redefined without this flow's being touched.
  if (const auto texts = sources_.texts_of_views(); !texts.empty())
    flow_.definition += "+" + fingerprint(texts);
  if (flow_.declaration) {
    declaration_ = flow_.declaration;
    if (sources_.reads_feed()) {
      auto declared = over_feed(*flow_.declaration);
      if (declared.ok()) {
        declaration_ = *std::move(declared);
      } else {
        errors->push_back(declared.error());
      }
    }
  }
  if (takes_snapshots() && flow_.declaration->clauses.snapshot_version) {
    Flow version = flow_;
    version.query = flow_.declaration->clauses.snapshot_version;
    version.kind = FlowKind::kMaterialize;
    version.declaration.reset();
    version.once = true;  // so that files are read without STREAM
    version_run_ = std::make_unique<FlowRun>(context_, std::move(version));
    version_run_->analyze(errors);
  }
  for (const size_t index : sources_.expecting_views()) {
    const auto& view = context_.graph.datasets[index];
    add_counts(&report_.expectations, uncounted(view.options.expectations, view.name.to_string()));
  }
}

// --- sources ------------------------------------------------------------------------------------

// Files that were not consumed, oldest first.
Result<std::vector<ConsumedFile>> FlowRun::new_files(const Source& source,
                                                     const FlowCheckpoint* progress) const {
  const FileOptions& options = source.files;
  auto listed = list_files(*context_.store, options.location);
  if (!listed.ok()) {
    if (listed.error().kind != ErrorKind::kNotFound) return listed.error();
    return placed(not_found("PATH_NOT_FOUND", "read_files('{}'): there is no '{}'", options.path,
                            options.location),
                  source.place);
  }
  std::vector<ConsumedFile> files;
  for (const auto& info : *listed) {
    const std::string name = info.path.substr(info.path.rfind('/') + 1);
    if (options.name_pattern && !glob_match(*options.name_pattern, name)) continue;
    if (!options.recursive && !has_glob(options.location) &&
        info.path.substr(0, info.path.rfind('/')) != options.location &&
        info.path != options.location) {
      continue;
    }
    const ConsumedFile* before =
        progress == nullptr ? nullptr : progress->consumed(source.key, info.path);
    if (before != nullptr) {
      const bool changed = before->size_bytes != info.size_bytes;
      if (options.allow_overwrites ? !changed && before->modified_ms == info.modified_ms : !changed)
        continue;
      if (!options.allow_overwrites) {
        return placed(invalid_data("SOURCE_FILE_CHANGED",
                                   "file '{}' changed after it was read ({} bytes then, {} now): "
                                   "write changes into new "
                                   "files, or set allowOverwrites => true to read such files again",
                                   info.path, before->size_bytes, info.size_bytes),
                      source.place);
      }
    }
    files.push_back({info.path, info.size_bytes, info.modified_ms});
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) {
    return std::tie(a.modified_ms, a.path) < std::tie(b.modified_ms, b.path);
  });
  return files;
}

// Columns that another database has now.
Result<Schema> FlowRun::jdbc_schema(const Source& source) const {
  SL_ASSIGN(const auto relation, duck::jdbc_relation(*context_.connection, source.jdbc));
  SL_ASSIGN(const auto columns, context_.connection->describe("SELECT * FROM " + relation));
  return described(columns);
}

// Columns of every source as far as they are known; planned: of tables that are not there yet.
Status FlowRun::find_source_schemas(bool fresh, const PlannedSchemas* planned) {
  const auto& sources = sources_.sources();
  schemas_.assign(sources.size(), std::nullopt);
  newest_.assign(sources.size(), nullptr);
  backlog_.clear();
  backlog_next_.clear();
  for (size_t i = 0; i < sources.size(); ++i) {
    const auto& source = sources[i];
    // Snapshots are read whole each time.
    const bool whole = takes_snapshots() || source.whole;
    const FlowCheckpoint* progress = fresh || !checkpoint_ || whole ? nullptr : &*checkpoint_;
    if (source.kind == SourceKind::kFiles) {
      // A declared schema needs no look at the files before the flow runs.
      if (source.files.schema && planned != nullptr) {
        schemas_[i] = *source.files.schema;
        continue;
      }
      if (const auto known = inferred_.find(i); known != inferred_.end()) {
        // Inferred while checking; files that came since wait for the next update.
        schemas_[i] = known->second.schema;
        for (const auto& file : known->second.files) {
          if (progress == nullptr || progress->consumed(source.key, file.path) == nullptr ||
              source.files.allow_overwrites) {
            backlog_[i].push_back(file);
          }
        }
        continue;
      }
      SL_ASSIGN(backlog_[i], new_files(source, progress));
      if (source.files.schema) {
        schemas_[i] = *source.files.schema;
        continue;
      }
      if (whole && backlog_[i].empty() && checkpoint_) {
        // No file is left of those that told the columns.
        if (const Schema* before = checkpoint_->schema(source.key)) schemas_[i] = *before;
        continue;
      }
      const Schema* known = progress == nullptr ? nullptr : progress->schema(source.key);
      auto inferred =
          infer_schema(*context_.connection, *context_.store, source.files, backlog_[i], known);
      if (!inferred.ok()) {
        if (auto why = explain_failure(*context_.connection, *context_.store, source.files,
                                       Schema{}, backlog_[i], inferred.error())) {
          return *why;
        }
        return placed(inferred.error(), source.place);
      }
      if (!inferred->fields.empty()) {
        schemas_[i] = std::move(*inferred);
        inferred_[i] = {*schemas_[i], backlog_[i]};
      }
      continue;
    }
    if (source.kind == SourceKind::kJdbc) {
      auto schema = jdbc_schema(source);
      if (!schema.ok()) return placed(schema.error(), source.place);
      schemas_[i] = *std::move(schema);
      continue;
    }
    SL_ASSIGN(const bool exists, source.table->exists());
    if (exists) {
      auto snapshot = source.table->snapshot(source.version);
      if (!snapshot.ok()) return placed(snapshot.error(), source.place);
      newest_[i] = *snapshot;
      schemas_[i] = newest_[i]->schema;
    }
    if (planned != nullptr && source.dataset) {
      // While checking, the table is as the flows before will leave it.
      const auto it = planned->find(*source.dataset);
      if (it != planned->end()) schemas_[i] = it->second;
    }
    if (source.is_feed() && schemas_[i]) {
      auto schema = feed_schema(*schemas_[i], source.shown);
      if (!schema.ok()) return placed(schema.error(), source.place);
      schemas_[i] = *std::move(schema);
    }
  }
  return {};
}

// Columns of the flow's query, asked of empty sources; nullopt while a source's columns are
// unknown.
Result<std::optional<FlowRun::Facts>> FlowRun::find_facts(std::vector<Error>* errors) const {
  for (const auto& schema : schemas_) {
    if (!schema) return std::optional<Facts>();
  }
  const auto& sources = sources_.sources();
  std::vector<Error> found;
  const auto fail = [&](Error error) {
    error = placed(std::move(error), flow_.place);
    if (error.code == "ENGINE_ERROR") error.code = "QUERY_INVALID";
    found.push_back(std::move(error));
  };
  // All that was found, or the first of it.
  const auto failed = [&]() -> Result<std::optional<Facts>> {
    if (errors == nullptr) return found.front();
    for (auto& error : found) errors->push_back(std::move(error));
    return std::optional<Facts>();
  };
  // Names first: the engine renames what differs only in case and places errors in its own text.
  const auto names = sources_.output_columns(
      *flow_.query,
      [&](size_t i) -> OutputColumns {
        std::vector<OutputColumn> columns;
        const bool files = sources[i].kind == SourceKind::kFiles;
        const Schema schema = files ? file_columns(sources[i].files, *schemas_[i]) : *schemas_[i];
        for (const auto& field : schema.fields) columns.push_back({field.name, sources[i].place});
        return columns;
      },
      &found);
  const bool by_place = flow_.kind == FlowKind::kAppend && !flow_.by_name;
  if (names && !by_place) {
    if (auto error = repeated_column(*names)) fail(std::move(*error));
  }
  const auto relation_of = [&](size_t i) -> Result<std::string> {
    if (sources[i].kind != SourceKind::kFiles) return empty_relation(*schemas_[i]);
    FileRelationOptions options;
    options.with_metadata = flow_.mentions_metadata;
    return file_relation(*context_.connection, *context_.store, sources[i].files, *schemas_[i], {},
                         options);
  };
  const auto check_view = [&](size_t index, const std::string& text) -> Result<std::string> {
    const auto& view = context_.graph.datasets[index];
    // A mistake in the view's query is reported with the whole.
    const auto of_view = context_.connection->describe("SELECT * FROM " + text);
    if (!of_view.ok()) return text;
    for (auto& error : check_expectations(*context_.connection, view.options.expectations,
                                          view.shown, columns_of(*of_view))) {
      found.push_back(std::move(error));
    }
    return text;
  };
  auto printed =
      sources_.print(*flow_.query, now_micros(), relation_of, check_view, *context_.connection);
  if (!printed.ok()) fail(printed.error());
  if (!found.empty()) return failed();
  const std::string relation = "(" + *printed + ")";
  const auto columns = context_.connection->describe("SELECT * FROM " + relation);
  if (!columns.ok()) {
    fail(columns.error());
    return failed();
  }
  if (!names && !by_place) {
    // As a query of its own it keeps repeated names.
    SL_ASSIGN(const auto whole, context_.connection->describe(*printed));
    std::vector<OutputColumn> outputs;
    for (const auto& column : whole) outputs.push_back({column.name, {}});
    if (auto error = repeated_column(outputs)) {
      fail(std::move(*error));
      return failed();
    }
  }
  auto schema = described(*columns);
  if (!schema.ok()) {
    fail(schema.error());
    return failed();
  }
  Facts facts;
  facts.schema = std::move(*schema);
  if (const auto index = facts.schema.find("_metadata");
      index && same_type(facts.schema.fields[*index].type, metadata_type())) {
    facts.hidden.fields.push_back(facts.schema.fields[*index]);
    facts.schema.fields.erase(facts.schema.fields.begin() + static_cast<long>(*index));
  }
  if (flow_.kind != FlowKind::kAutoCdc) return std::optional<Facts>(std::move(facts));

  // Type of a clause's expression; nullopt when it has a mistake.
  if (sources_.reads_feed()) {
    for (auto& error : check_over_feed(*declaration_, facts.schema)) fail(std::move(error));
    if (!found.empty()) return failed();
    hide_feed_columns(&facts.schema, &facts.hidden);
  }
  const auto& clauses = declaration_->clauses;
  const auto type_of = [&](const sql::ExprPtr& expr,
                           const SourcePlace& place) -> std::optional<DataType> {
    std::vector<Error> beyond_row;  // reported with the graph
    check_row_expression(*expr, "", place, &beyond_row);
    if (!beyond_row.empty()) {
      facts.broken = true;
      return {};
    }
    sql::PrintOptions options;
    options.now_us = 0;
    const auto text = sql::print_duckdb(*expr, options);
    if (!text.ok()) {
      fail(placed(text.error(), place));
      return {};
    }
    const auto type =
        context_.connection->describe(fmt::format("SELECT {} AS c FROM {}", *text, relation));
    if (type.ok()) return (*type)[0].type;
    facts.broken = true;
    // The compiler says which column is missing, when that is the reason.
    const auto checked = cdc::make_plan(*declaration_, {facts.schema, {}, facts.hidden}, {});
    const auto reads = sql::columns_read(*expr);
    const bool said =
        std::any_of(checked.errors.begin(), checked.errors.end(), [&](const Error& error) {
          return error.code == "UNRESOLVED_COLUMN" &&
                 std::any_of(reads.begin(), reads.end(), [&](const sql::Name& name) {
                   return error.message.find("'" + name.text + "'") != std::string::npos;
                 });
        });
    if (!said) fail(placed(type.error(), place));
    return {};
  };
  if (version_type_) facts.sequence_type = *version_type_;
  if (clauses.sequence_by) {
    const auto type = type_of(clauses.sequence_by, clauses.sequence_place);
    // Any type that can be compared lets the other mistakes be found.
    facts.sequence_type = type ? *type : DataType::primitive(TypeId::kLong);
  }
  if (clauses.system_sequence_by) {
    const auto type = type_of(clauses.system_sequence_by, clauses.system_sequence_place);
    facts.system_sequence_type = type ? *type : DataType::primitive(TypeId::kLong);
  }
  const std::pair<sql::ExprPtr, SourcePlace> conditions[] = {
      {clauses.delete_when, clauses.delete_place}, {clauses.truncate_when, clauses.truncate_place}};
  for (const auto& [condition, place] : conditions) {
    if (!condition) continue;
    const auto type = type_of(condition, place);
    if (type && type->id != TypeId::kBoolean && type->id != TypeId::kVoid) {
      fail(placed(invalid_argument("NOT_A_CONDITION",
                                   "APPLY AS … WHEN needs a condition, this is {}: compare "
                                   "it with a value, as in operation = 'DELETE'",
                                   to_sql(*type)),
                  place));
    }
  }
  facts.broken = facts.broken || !found.empty();
  if (errors == nullptr && !found.empty()) return found.front();
  for (auto& error : found) errors->push_back(std::move(error));
  return std::optional<Facts>(std::move(facts));
}

Status FlowRun::check(bool fresh, PlannedSchemas* planned, std::vector<Error>* errors) {
  SL_ASSIGN(auto target, Target::open(context_, flow_.target));
  SL_ASSIGN(checkpoint_,
            FlowCheckpoint::open(context_.store, target.checkpoint().flow_directory(flow_.name)));
  target_.emplace(std::move(target));
  const auto& dataset = target_->dataset();
  if (takes_snapshots()) {
    SL_TRY(read_snapshot_options(errors));
    if (!flow_.snapshot_function.empty()) {
      // What the snapshots look like is known when the function gives one.
      const auto declared = dataset.declared_schema();
      if (declared && (*planned)[flow_.target].fields.empty()) (*planned)[flow_.target] = *declared;
      return {};
    }
    auto type = find_version_type(planned);
    if (!type.ok()) {
      errors->push_back(placed(type.error(), flow_.place));
      return {};
    }
    version_type_ = *type;
    if (!version_type_) return {};
  }
  SL_TRY(find_source_schemas(fresh, planned));
  SL_ASSIGN(const auto facts, find_facts(errors));
  if (!facts) return {};
  for (const auto& option : dataset.options.properties) {
    const auto valid = tombstone_seconds(option.key, option.value, dataset.shown);
    if (!valid.ok()) {
      errors->push_back(
          placed(valid.error(), option.place.line > 0 ? option.place : dataset.place));
    }
  }
  if (const auto declared = dataset.declared_schema()) {
    for (auto& error : check_declared_rules(*context_.connection, dataset.options, *declared)) {
      const auto same = [&](const Error& other) {
        return other.message == error.message && other.place && error.place &&
               other.place->line == error.place->line;
      };
      if (std::none_of(errors->begin(), errors->end(), same)) errors->push_back(std::move(error));
    }
  }
  Schema schema;
  if (flow_.kind == FlowKind::kAutoCdc) {
    cdc::TargetFacts target_facts;
    target_facts.declared = dataset.declared_schema();
    auto checked = cdc::make_plan(
        *declaration_,
        {facts->schema, facts->sequence_type, facts->hidden, facts->system_sequence_type},
        target_facts);
    for (auto& error : checked.errors) {
      if (!error.place) error.place = flow_.place;
      errors->push_back(std::move(error));
    }
    if (!checked.plan || facts->broken) return {};
    schema = checked.plan->target_schema;
    declared_ = checked.plan->state_spec;
    facts_ = facts;
  } else {
    schema = facts->schema;
    given_ = facts->schema;
    if (const auto declared = dataset.declared_schema()) {
      for (const auto& field : schema.fields) {
        if (!declared->find(field.name) && flow_.by_name) {
          errors->push_back(placed(
              invalid_argument("COLUMN_NOT_IN_TARGET",
                               "column '{}' of flow '{}' is not among the declared columns of '{}'",
                               field.name, flow_.name, dataset.shown),
              flow_.place));
        }
      }
      schema = *declared;
    }
  }
  auto& known = (*planned)[flow_.target];
  SL_ASSIGN(const bool exists, target_->table().exists());
  if (!exists && known.fields.empty()) {
    if (auto possible = target_->check_definition(schema); !possible.ok()) {
      errors->push_back(placed(possible.error(), dataset.place));
    }
  }
  if (known.fields.empty() && !fresh) {
    if (exists) {
      SL_ASSIGN(const auto snapshot, target_->table().snapshot());
      known = snapshot->schema;
    }
  }
  for (const auto& field : schema.fields) {
    if (!known.find(field.name)) known.fields.push_back(field);
  }
  checked_ = true;
  return {};
}

void FlowRun::check_target_expectations(const Schema& columns, std::vector<Error>* errors) {
  const auto& dataset = target_->dataset();
  if (dataset.options.expectations.empty()) return;
  target_columns_ = columns;
  std::erase_if(target_columns_.fields, [&](const Field& field) {
    if (flow_.kind != FlowKind::kAutoCdc) return !sees(field);
    if (facts_ && is_filled_at_write(field) && !facts_->schema.find(field.name)) return true;
    return declared_ && is_interval_column(field.name, declared_->scd_type);
  });
  for (auto& error : check_expectations(*context_.connection, dataset.options.expectations,
                                        dataset.shown, target_columns_)) {
    errors->push_back(std::move(error));
  }
}

// Of an INSERT flow: what the table computes as rows are written comes after its expectations.
bool FlowRun::sees(const Field& field) const {
  return !flow_.by_name || given_.find(field.name) || !is_filled_at_write(field);
}

bool FlowRun::stands_alone() const {
  if (version_run_ && !version_run_->stands_alone()) return false;
  const auto& sources = sources_.sources();
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), [](const Source& source) {
    return source.kind == SourceKind::kFiles ? source.files.schema.has_value() : !source.dataset;
  });
}

Status FlowRun::check_fit() {
  if (flow_.kind != FlowKind::kAutoCdc || !facts_ || !checkpoint_ || checkpoint_->unfinished())
    return {};
  SL_ASSIGN(const auto target, target_->snapshot(*checkpoint_));
  if (!target) return {};
  std::shared_ptr<const delta::Snapshot> state;
  if (!takes_snapshots()) {
    SL_ASSIGN(state, target_->state(*target, *checkpoint_));
  }
  SL_ASSIGN(const auto facts, target_facts(*target, state.get()));
  const auto plan = make_plan(facts);
  return plan.ok() ? Status() : Status(plan.error());
}

std::optional<Error> FlowRun::disagreement(const FlowRun& earlier) const {
  if (!declared_ || !earlier.declared_) return std::nullopt;
  const cdc::StateSpec& ours = *declared_;
  const cdc::StateSpec& theirs = *earlier.declared_;
  const auto keys = [](const cdc::StateSpec& spec) {
    std::string text;
    for (const auto& key : spec.keys)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", key.name, to_sql(key.type));
    return text;
  };
  const auto has = [&](const Field& key) {
    return std::any_of(theirs.keys.begin(), theirs.keys.end(), [&](const Field& other) {
      return same_name(key.name, other.name) && same_type(key.type, other.type);
    });
  };
  std::string what;
  if (ours.scd_type != theirs.scd_type) {
    what = fmt::format("are stored as {} and {}", cdc::to_string(theirs.scd_type),
                       cdc::to_string(ours.scd_type));
  } else if (ours.keys.size() != theirs.keys.size() ||
             !std::all_of(ours.keys.begin(), ours.keys.end(), has)) {
    what = fmt::format("have the keys ({}) and ({})", keys(theirs), keys(ours));
  } else if (!same_type(ours.sequence_type, theirs.sequence_type)) {
    what = fmt::format("have a SEQUENCE BY of type {} and {}", to_sql(theirs.sequence_type),
                       to_sql(ours.sequence_type));
  } else if (ours.system_sequence_type && theirs.system_sequence_type &&
             !same_type(*ours.system_sequence_type, *theirs.system_sequence_type)) {
    what = fmt::format("have a SYSTEM SEQUENCE BY of type {} and {}",
                       to_sql(*theirs.system_sequence_type), to_sql(*ours.system_sequence_type));
  } else {
    return std::nullopt;
  }
  return placed(
      invalid_argument(
          "AUTOCDC_FLOWS_DISAGREE",
          "flows '{}' and '{}' into '{}' {}: flows into one target must agree in keys, sequence "
          "type and storage type",
          earlier.flow_.name, flow_.name, target_->dataset().shown, what),
      flow_.place);
}

Status FlowRun::check_sources_complete() {
  const char* leave_out = context_.spec.of_one_table ? "SET strandline.allowMissingSources = true"
                                                     : "pass --allow-missing-sources";
  for (const auto& source : sources_.sources()) {
    if (source.kind == SourceKind::kFiles && source.whole) continue;
    if (source.kind == SourceKind::kFiles) {
      for (const auto* file : checkpoint_->consumed_files(source.key)) {
        const auto info = context_.store->stat(file->path);
        if (info.ok()) continue;
        if (info.error().kind != ErrorKind::kNotFound) return info.error();
        return placed(
            not_found(
                "MISSING_SOURCE",
                "file '{}' was read by flow '{}' before and is gone: its rows would be lost by the "
                "full refresh; bring it back, or {}",
                file->path, flow_.name, leave_out),
            source.place);
      }
    } else if (source.kind == SourceKind::kStream) {
      const auto offset = checkpoint_->offset(source.key);
      if (!offset) continue;
      SL_ASSIGN(const bool exists, source.table->exists());
      if (exists) {
        SL_ASSIGN(const auto snapshot, source.table->snapshot());
        if (snapshot->metadata.id == offset->table_id) continue;
      } else if (source.dataset) {
        continue;
      }
      return placed(
          not_found(
              "MISSING_SOURCE",
              "table '{}' as flow '{}' read it before is gone: its rows would be lost by the full "
              "refresh; bring it back, or {}",
              source.shown, flow_.name, leave_out),
          source.place);
    }
  }
  return {};
}

// --- batches ------------------------------------------------------------------------------------

Status FlowRun::start() {
  SL_ASSIGN(auto target, Target::open(context_, flow_.target));
  SL_ASSIGN(checkpoint_,
            FlowCheckpoint::open(context_.store, target.checkpoint().flow_directory(flow_.name)));
  target_.emplace(std::move(target));
  return {};
}

Status FlowRun::prepare_to_run() {
  stage("plan");
  SL_TRY(find_source_schemas(false, nullptr));
  SL_ASSIGN(facts_, find_facts(nullptr));
  return {};
}

Status FlowRun::recover() {
  SL_TRY(start());
  if (!checkpoint_->unfinished()) return {};
  if (!takes_snapshots()) SL_TRY(prepare_to_run());
  return finish_unfinished();
}

Status FlowRun::run() {
  const auto begin = std::chrono::steady_clock::now();
  const auto work = [&]() -> Status {
    SL_TRY(start());
    if (flow_.once && checkpoint_->last_batch() >= 0 && !checkpoint_->unfinished()) {
      SL_ASSIGN(const auto snapshot, target_->snapshot(*checkpoint_));
      (void)snapshot;
      return {};
    }
    if (takes_snapshots()) return take_snapshots();
    SL_TRY(prepare_to_run());
    SL_TRY(finish_unfinished());
    if (flow_.once && checkpoint_->last_batch() >= 0) return {};
    if (facts_) {
      SL_ASSIGN(const auto snapshot, ensure_target());
      (void)snapshot;
    } else {
      // Nothing was ever seen of a source: there is nothing to make a table of yet.
      SL_ASSIGN(const auto snapshot, target_->snapshot(*checkpoint_));
      (void)snapshot;
      return {};
    }
    // A declaration that no longer fits is said at once, not when the next file comes.
    SL_TRY(check_fit());
    while (!context_.stopping()) {
      SL_TRY(context_.check_cancelled());
      BatchPlan plan;
      bool has_data = false;
      SL_ASSIGN(const bool more, plan_next(&plan, &has_data));
      if (!more) return {};
      SL_TRY(checkpoint_->write_plan(plan));
      SL_TRY(run_batch(has_data));
      compact(kCompactionInterval);
      if (flow_.once || flow_.kind == FlowKind::kMaterialize) return {};
    }
    return {};
  };
  auto status = work();
  if (status.ok()) compact(1);
  add_metric("duration_seconds",
             std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  return status;
}

// Housekeeping between batches: whatever goes wrong is a warning, the rows are committed.
void FlowRun::compact(int64_t least_batches) {
  const auto batches = static_cast<int64_t>(report_.metrics["num_batches"]);
  if (flow_.kind != FlowKind::kAutoCdc || batches - compacted_batches_ < least_batches) return;
  const Status done = compact_if_needed(context_, *target_, batches - compacted_batches_);
  compacted_batches_ = batches;
  if (done.ok() || done.error().kind == ErrorKind::kCancelled) return;
  warnings_.push_back(placed(done.error().with_context(fmt::format(
                                 "small files of '{}' were not merged, its rows are as reported",
                                 target_->dataset().shown)),
                             flow_.place));
}

bool FlowRun::has_other_files(const Source& source, const std::vector<ConsumedFile>& files) const {
  const auto before = checkpoint_->consumed_files(source.key);
  return before.size() != files.size() ||
         std::any_of(files.begin(), files.end(), [&](const ConsumedFile& file) {
           const ConsumedFile* known = checkpoint_->consumed(source.key, file.path);
           return known == nullptr || known->size_bytes != file.size_bytes ||
                  known->modified_ms != file.modified_ms;
         });
}

// Next batch, if there is one. has_data false: nothing to compute, only progress to note.
Result<bool> FlowRun::plan_next(BatchPlan* plan, bool* has_data) {
  SL_ASSIGN(const auto target, target_->snapshot(*checkpoint_));
  plan->batch = checkpoint_->last_batch() + 1;
  plan->time_us = now_micros();
  plan->definition = flow_.definition;
  plan->target_id = target->metadata.id;
  const bool must_clear = !target_->is_current(*target) && !target->files.empty();
  bool note = flow_.once;
  *has_data = must_clear;
  const auto& sources = sources_.sources();
  for (size_t i = 0; i < sources.size(); ++i) {
    const auto& source = sources[i];
    SourcePlan part;
    part.key = source.key;
    if (source.kind == SourceKind::kFiles && source.whole) {
      part.files = backlog_[i];
      part.schema = schemas_[i];
      *has_data = *has_data ||
                  (flow_.kind == FlowKind::kMaterialize && has_other_files(source, part.files));
    } else if (source.kind == SourceKind::kFiles) {
      const auto& files = backlog_[i];
      size_t& next = backlog_next_[i];
      int64_t bytes = 0;
      while (next < files.size()) {
        const auto& file = files[next];
        const bool full = static_cast<int64_t>(part.files.size()) >= source.files.max_files ||
                          bytes + file.size_bytes > source.files.max_bytes;
        if (!flow_.once && !part.files.empty() && full) break;
        bytes += file.size_bytes;
        part.files.push_back(file);
        ++next;
      }
      part.schema = schemas_[i];
      *has_data = *has_data || !part.files.empty();
    } else if (source.kind == SourceKind::kStream) {
      if (newest_[i] == nullptr) continue;
      const auto progress = checkpoint_->offset(source.key);
      auto range = source.is_feed()
                       ? plan_feed(*source.table, newest_[i], source.stream, progress, flow_.once,
                                   source.tolerates_out_of_range, source.shown)
                       : plan_delta(*source.table, *newest_[i], source.stream, progress, flow_.once,
                                    source.shown);
      if (!range.ok()) return placed(range.error(), source.place);
      *has_data = *has_data || range->has_data;
      // A start is kept, except one that is still waited for.
      const bool starts =
          !progress &&
          (source.stream.starting_latest ||
           (range->to.version <= newest_[i]->version + 1 && !(range->to == range->from)));
      const auto done = progress ? progress->version : range->from.version;
      note = note || starts || range->to.version - done > kQuietVersions;
      part.from = range->from;
      part.to = range->to;
    } else if (source.kind == SourceKind::kJdbc) {
      // Whether anything changed there is known when it was read.
      *has_data = *has_data || flow_.kind == FlowKind::kMaterialize;
    } else {
      if (newest_[i] == nullptr) {
        return placed(
            not_found("TABLE_OR_VIEW_NOT_FOUND", "table '{}' is not there yet", source.shown),
            source.place);
      }
      plan->pinned[source.key] = newest_[i]->version;
      plan->pinned_ids[source.key] = newest_[i]->metadata.id;
    }
    plan->sources.push_back(std::move(part));
  }
  if (flow_.kind == FlowKind::kMaterialize) {
    const bool same = checkpoint_->last_batch() >= 0 && checkpoint_->pinned() == plan->pinned &&
                      checkpoint_->pinned_ids() == plan->pinned_ids &&
                      checkpoint_->definition() == plan->definition && target_->is_current(*target);
    *has_data = *has_data || !same || !why_it_changes_by_itself(*flow_.query, sources_).empty();
  }
  *has_data = *has_data || loads_once();
  if (!*has_data && !note) return false;
  if (flow_.kind == FlowKind::kAutoCdc) {
    SL_ASSIGN(const auto state, target_->state(*target, *checkpoint_));
    if (state) plan->state_version = state->version;
  }
  return true;
}

// A ONCE flow whose first batch has rows whatever its streams and files bring: of tables read
// whole, or of the query's own text (VALUES).
bool FlowRun::loads_once() const {
  if (!flow_.once) return false;
  const auto& sources = sources_.sources();
  return flow_.kind == FlowKind::kAppend || sources.empty() ||
         std::any_of(sources.begin(), sources.end(),
                     [](const Source& source) { return source.kind == SourceKind::kTable; });
}

Result<bool> FlowRun::is_state_committed(int64_t batch) const {
  if (flow_.kind != FlowKind::kAutoCdc) return false;
  return is_in_log(target_->state_table(), batch);
}

Result<bool> FlowRun::is_committed(int64_t batch) const {
  SL_ASSIGN(const bool in_target, is_in_log(target_->table(), batch));
  if (in_target) return true;
  return is_state_committed(batch);
}

Result<bool> FlowRun::is_in_log(const delta::Table& table, int64_t batch) const {
  SL_ASSIGN(const bool exists, table.exists());
  if (!exists) return false;
  SL_ASSIGN(const auto snapshot, table.snapshot());
  return snapshot->txn_version(target_->app_id(flow_.name)).value_or(-1) >= batch;
}

// A batch that was planned and not marked done runs again from its plan.
Status FlowRun::finish_unfinished() {
  if (!checkpoint_->unfinished()) return {};
  const BatchPlan plan = *checkpoint_->unfinished();
  SL_ASSIGN(const auto target, target_->snapshot(*checkpoint_));
  const std::string app = target_->app_id(flow_.name);
  const bool in_target = target && target->txn_version(app).value_or(-1) >= plan.batch;
  if (takes_snapshots()) {
    // A snapshot is one commit: it is there, or nothing of it is and the next try takes another.
    return in_target ? checkpoint_->mark_done() : checkpoint_->drop_plan();
  }
  if (!in_target) {
    SL_ASSIGN(const bool in_state, is_state_committed(plan.batch));
    const bool gone = !target || (!plan.target_id.empty() && target->metadata.id != plan.target_id);
    if (gone && in_state) {
      return invalid_data(
          "AUTOCDC_INVALID_STATE.TARGET_REPLACED",
          "'{}' was dropped or made anew during batch {} of flow '{}': run a full refresh of that "
          "table",
          target_->dataset().shown, plan.batch, flow_.name);
    }
    if (plan.definition != flow_.definition || !facts_ || gone) {
      if (in_state) {
        return invalid_data(
            "UNFINISHED_BATCH",
            "batch {} of flow '{}' was interrupted half-way and the flow's text has changed since: "
            "run it once with the earlier text, or run a full refresh of '{}'",
            plan.batch, flow_.name, target_->dataset().shown);
      }
      // Nothing of it was committed: plan anew with the new text.
      return checkpoint_->drop_plan();
    }
  }
  bool has_data = flow_.kind == FlowKind::kMaterialize || loads_once() || !plan.pinned.empty() ||
                  (target && !target_->is_current(*target) && !target->files.empty());
  for (const auto& source : plan.sources) {
    has_data = has_data || !source.files.empty() ||
               (source.from && source.to && !(*source.from == *source.to));
  }
  SL_TRY(run_batch(has_data && !in_target));
  // What the batch consumed is no longer new.
  return find_source_schemas(false, nullptr);
}

Status FlowRun::run_batch(bool has_data) {
  const BatchPlan plan = *checkpoint_->unfinished();
  if (has_data) {
    committed_ = false;
    auto status = execute(plan);
    if (!status.ok()) {
      const Error error = explain(plan, status.error());
      // A batch of which nothing was committed is planned anew, so that corrected input is seen.
      if (!committed_ && error.kind != ErrorKind::kCancelled) {
        const auto there = is_committed(plan.batch);
        if (there.ok() && !*there) (void)checkpoint_->drop_plan().ok();
      }
      return error;
    }
    add_metric("num_batches", 1);
  }
  return checkpoint_->mark_done();
}

}  // namespace strandline::pipeline
