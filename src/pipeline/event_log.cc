#include "pipeline/event_log.h"

#include <cmath>

#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/json.h"
#include "base/secrets.h"
#include "delta/transaction.h"
#include "duck/delta_io.h"

namespace strandline::pipeline {
namespace {

using duck::quote_literal;

Schema event_schema() {
  Schema schema;
  for (const char* name : {"id", "sequence", "origin", "timestamp", "message", "level",
                           "maturity_level", "error", "details", "event_type"}) {
    const bool is_time = std::string(name) == "timestamp";
    schema.fields.push_back(
        Field{name, DataType::primitive(is_time ? TypeId::kTimestamp : TypeId::kString), true, {}});
  }
  return schema;
}

std::string nullable(const std::string& text) {
  return text.empty() ? "NULL" : quote_literal(text);
}

}  // namespace

std::string flow_progress_details(const FlowReport& report) {
  JsonWriter w;
  w.begin_object();
  w.key("status");
  w.value(report.status);
  w.key("metrics");
  w.begin_object();
  for (const auto& [name, value] : report.metrics) {
    w.key(name);
    if (std::floor(value) == value) {
      w.value(static_cast<int64_t>(value));
    } else {
      w.raw(fmt::format("{:.6f}", value));
    }
  }
  w.end_object();
  if (!report.expectations.empty()) {
    w.key("data_quality");
    w.begin_object();
    w.key("dropped_records");
    w.value(report.dropped_records);
    w.key("expectations");
    w.begin_array();
    for (const auto& expectation : report.expectations) {
      w.begin_object();
      w.key("name");
      w.value(expectation.name);
      w.key("dataset");
      w.value(expectation.dataset);
      w.key("passed_records");
      w.value(expectation.passed_records);
      w.key("failed_records");
      w.value(expectation.failed_records);
      w.key("dropped_records");
      w.value(expectation.dropped_records);
      w.end_object();
    }
    w.end_array();
    w.end_object();
  }
  w.end_object();
  return w.take();
}

std::string flow_progress_details(const std::string& status) {
  JsonWriter w;
  w.begin_object();
  w.key("status");
  w.value(status);
  w.end_object();
  return w.take();
}

std::string request_details(const RunOptions& options) {
  JsonWriter w;
  w.begin_object();
  w.key("cause");
  w.value("USER_ACTION");
  w.key("full_refresh");
  w.value(options.refresh == RefreshKind::kFullAll ||
          options.refresh == RefreshKind::kFullSelected);
  w.key("tables");
  w.begin_array();
  for (const auto& table : options.tables) w.value(table);
  w.end_array();
  w.end_object();
  return w.take();
}

std::string flow_definition_details(const Graph& graph, const Flow& flow) {
  JsonWriter w;
  w.begin_object();
  w.key("output_dataset");
  w.value(graph.datasets[flow.target].name.to_string());
  w.key("flow_type");
  w.value(flow.kind == FlowKind::kAutoCdc  ? "AUTO_CDC"
          : flow.kind == FlowKind::kAppend ? "APPEND"
                                           : "COMPLETE");
  w.key("input_datasets");
  w.begin_array();
  for (const size_t upstream : flow.upstream) w.value(graph.datasets[upstream].name.to_string());
  w.end_array();
  w.end_object();
  return w.take();
}

std::string planning_details(const std::string& how) {
  const size_t colon = how.find(':');
  JsonWriter w;
  w.begin_object();
  w.key("technique");
  w.value(how.substr(0, colon));
  w.key("reason");
  w.value(how.substr(colon + 2));
  w.end_object();
  return w.take();
}

EventLog::EventLog(const Context& context, std::string update_id)
    : context_(context), update_id_(std::move(update_id)) {}

void EventLog::add(const std::string& type, const std::string& level, const std::string& message,
                   const std::string& details, const FlowReport* flow, const Error* error) {
  Event event{now_micros(), type, level, without_secrets(message), "", "", ""};
  JsonWriter w;
  w.begin_object();
  w.key(type);
  w.raw(details);
  w.end_object();
  event.details = w.take();
  JsonWriter origin;
  origin.begin_object();
  origin.key("pipeline_id");
  origin.value(context_.pipeline_id);
  origin.key("pipeline_name");
  origin.value(context_.spec.name);
  origin.key("update_id");
  origin.value(update_id_);
  if (flow != nullptr) {
    origin.key("flow_name");
    origin.value(flow->name);
    origin.key("dataset_name");
    origin.value(flow->target);
  }
  origin.end_object();
  event.origin = origin.take();
  if (error != nullptr) {
    JsonWriter e;
    e.begin_object();
    e.key("exceptions");
    e.begin_array();
    e.begin_object();
    e.key("code");
    e.value(error->code);
    e.key("message");
    e.value(without_secrets(error->message));
    e.end_object();
    e.end_array();
    e.end_object();
    event.error = e.take();
  }
  events_.push_back(std::move(event));
}

Status EventLog::write() {
  const std::string path =
      context_.warehouse->pipeline_directory(context_.spec.name) + "/event_log";
  const delta::Table table(context_.store, context_.parquet, path);
  SL_ASSIGN(const bool exists, table.exists());
  std::optional<delta::Transaction> transaction;
  if (exists) {
    SL_ASSIGN(auto snapshot, table.snapshot());
    SL_ASSIGN(auto begun, delta::Transaction::begin(table, std::move(snapshot)));
    transaction.emplace(std::move(begun));
  } else {
    delta::NewTable definition;
    definition.schema = event_schema();
    // Readers of every kind look at this table, and its rows never change.
    definition.properties = {{"delta.enableRowTracking", "false"},
                             {"delta.enableDeletionVectors", "false"}};
    SL_ASSIGN(auto created, delta::Transaction::create(table, definition));
    transaction.emplace(std::move(created));
  }
  std::string rows;
  int number = 0;
  for (const auto& event : events_) {
    rows += fmt::format(
        "{}({}, {}, {}, make_timestamptz(CAST({} AS BIGINT)), {}, {}, 'STABLE', {}, {}, {})",
        rows.empty() ? "" : ", ", quote_literal(new_uuid()),
        quote_literal(fmt::format("{{\"update_id\":\"{}\",\"number\":{}}}", update_id_, number++)),
        quote_literal(event.origin), event.time_us, quote_literal(event.message),
        quote_literal(event.level), nullable(event.error), quote_literal(event.details),
        quote_literal(event.type));
  }
  const std::string query = fmt::format(
      "SELECT id, sequence, origin, timestamp, message, level, maturity_level, CAST(error AS "
      "VARCHAR) AS error, details, "
      "event_type FROM (VALUES {}) AS e(id, sequence, origin, timestamp, message, level, "
      "maturity_level, error, details, "
      "event_type)",
      rows);
  SL_ASSIGN(const auto files,
            duck::write_files(*context_.connection, table, transaction->snapshot(), query));
  for (const auto& file : files) transaction->add_file(file);
  if (exists) transaction->set_blind_append();
  transaction->set_operation("WRITE", {{"mode", "Append"}});
  SL_ASSIGN(const auto version, transaction->commit_or_error());
  (void)version;
  return {};
}

}  // namespace strandline::pipeline
