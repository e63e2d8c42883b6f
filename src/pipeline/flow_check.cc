// What is wrong with a flow before it runs: with its declaration, given what it reads, its target,
// its target's state and the other flows.
#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "pipeline/feed_source.h"
#include "pipeline/flow_run.h"

namespace strandline::pipeline {
namespace {

bool is_interval_column(const std::string& name, cdc::ScdType type) {
  const bool business = same_name(name, cdc::kStartAt) || same_name(name, cdc::kEndAt);
  const bool system = same_name(name, cdc::kSystemStartAt) || same_name(name, cdc::kSystemEndAt);
  return (business && type != cdc::ScdType::kType1) ||
         (system && type == cdc::ScdType::kBitemporal);
}

}  // namespace

Status FlowRun::check(bool fresh, PlannedSchemas* planned, std::vector<Error>* errors) {
  SL_TRY(start());
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
  if (facts->warning) warnings_.push_back(*facts->warning);
  if (const auto declared = declared_schema(facts->schema)) {
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
    if (const auto declared = declared_schema(schema)) {
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
  if (!target_ || !checkpoint_ || checkpoint_->unfinished()) return {};
  SL_ASSIGN(const auto target, target_->snapshot(*checkpoint_));
  if (!target || flow_.kind != FlowKind::kAutoCdc || !facts_) return {};
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

std::vector<std::string> FlowRun::selected() const {
  if (declared_) return declared_->selected_ever;
  std::vector<std::string> names;
  // A list names them before the sources are known.
  if (declaration_ && declaration_->clauses.columns && !declaration_->clauses.columns->except) {
    for (const auto& name : declaration_->clauses.columns->names) names.push_back(name.text);
  }
  return names;
}

void FlowRun::set_other_flows(const std::vector<const FlowRun*>& others) {
  selected_elsewhere_.clear();
  clauses_elsewhere_.clear();
  for (const FlowRun* other : others) {
    for (auto& name : other->selected()) selected_elsewhere_.push_back(std::move(name));
    if (other->declaration_) clauses_elsewhere_.push_back(other->declaration_->clauses);
  }
}

Status FlowRun::check_sources_complete(bool allow_missing) {
  later_starts_.clear();
  if (!checkpoint_) return {};  // it cannot be read: the flow fails
  const char* leave_out = context_.spec.of_one_table ? "SET strandline.allowMissingSources = true"
                                                     : "pass --allow-missing-sources";
  for (const auto& source : sources_.sources()) {
    if (source.kind == SourceKind::kFiles && (source.whole || allow_missing)) continue;
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
      SL_ASSIGN(const bool exists, source.table->exists());
      bool same = !offset || allow_missing;
      if (exists && !same) {
        SL_ASSIGN(const auto snapshot, source.table->snapshot());
        same = snapshot->metadata.id == offset->table_id;
      }
      if (!exists && (same || source.dataset)) continue;
      if (same) {
        SL_TRY(check_stream_start(source, allow_missing));
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

Status FlowRun::check_stream_start(const Source& source, bool allow_missing) {
  const auto read = source.table->snapshot();
  if (!read.ok()) return {};  // the flow says so when it runs
  const auto& newest = *read;
  SL_ASSIGN(const auto loss, source.is_feed() ? find_feed_loss(*source.table, newest, source.stream,
                                                               source.tolerates_out_of_range)
                                              : find_delta_loss(*source.table, *newest,
                                                                source.stream, source.shown));
  if (!loss.first) return {};
  // Without the advice for a stream that is no flow's.
  std::string what = loss.first->message;
  for (const char* advice : {": start ", "; start there", ": run a full refresh"})
    what.resize(std::min(what.size(), what.rfind(advice)));
  // ONCE reads all there is in one batch, which a note of its start would be.
  const bool can_start = loss.later && !flow_.once;
  if (allow_missing && can_start) {
    SourcePlan start;
    start.key = source.key;
    start.from = loss.later;
    start.to = loss.later;
    later_starts_.push_back(std::move(start));
    warnings_.push_back(placed(
        invalid_data(
            kStreamDataLoss,
            "flow '{}' reads '{}' from version {} on, as what came before is not all there: {}",
            flow_.name, source.shown, loss.later->version, what),
        source.place));
    return {};
  }
  std::string way_out = "bring it back";
  if (can_start) {
    way_out += fmt::format(", or {} to read from version {} on",
                           context_.spec.of_one_table ? "SET strandline.allowMissingSources = true"
                                                      : "pass --allow-missing-sources",
                           loss.later->version);
  } else if (loss.later) {
    way_out += fmt::format(", or begin with startingVersion={}", loss.later->version);
  }
  return placed(
      not_found("MISSING_SOURCE",
                "flow '{}' would read '{}' anew in a full refresh, and not all of that is "
                "there: {}; {}",
                flow_.name, source.shown, what, way_out),
      source.place);
}

Status FlowRun::begin_after_missing() {
  if (later_starts_.empty()) return {};
  SL_TRY(start());
  // A batch without rows, as those that only note how far a stream has come.
  BatchPlan plan;
  plan.batch = checkpoint_->last_batch() + 1;
  plan.time_us = now_micros();
  plan.definition = flow_.definition;
  plan.sources = std::move(later_starts_);
  later_starts_.clear();
  SL_TRY(checkpoint_->write_plan(plan));
  return checkpoint_->mark_done({});
}

}  // namespace strandline::pipeline
