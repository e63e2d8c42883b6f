// The event log of a pipeline: a Delta table with the columns of the public event log, one commit
// for each update (auto-cdc.md section 12).
#pragma once

#include <strandline/result.h>
#include <strandline/strandline.h>

#include <string>
#include <vector>

#include "pipeline/context.h"

namespace strandline::pipeline {

class EventLog {
 public:
  EventLog(const Context& context, std::string update_id);

  // type: "create_update", "flow_definition", "flow_progress", "planning_information",
  // "update_progress". details: JSON value that stands under the type's name. flow may be null.
  void add(const std::string& type, const std::string& level, const std::string& message,
           const std::string& details, const FlowReport* flow = nullptr,
           const Error* error = nullptr);

  // Appends the events to <pipeline>/event_log in one commit.
  Status write();

 private:
  struct Event {
    int64_t time_us;
    std::string type, level, message, details, origin, error;
  };

  const Context& context_;
  std::string update_id_;
  std::vector<Event> events_;
};

// {"status":"COMPLETED","metrics":{…}}, with "data_quality" where there are expectations.
std::string flow_progress_details(const FlowReport& report);
std::string flow_progress_details(const std::string& status);
// Of "create_update", "flow_definition", "planning_information" (how: FlowRun::refresh_plan).
std::string request_details(const RunOptions& options);
std::string flow_definition_details(const Graph& graph, const Flow& flow);
std::string planning_details(const std::string& how);

}  // namespace strandline::pipeline
