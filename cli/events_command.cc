#include <fmt/format.h>

#include <iostream>

#include "commands.h"
#include "report.h"
#include "terminal.h"

namespace strandline::cli {
namespace {

// A string literal of Spark SQL.
std::string literal(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

}  // namespace

int events_command(const EventsArguments& arguments) {
  std::string pipeline = arguments.pipeline;
  SessionOptions options;
  options.warehouse = arguments.warehouse;
  if (pipeline.empty() || options.warehouse.empty()) {
    auto location = locate_pipeline(arguments.directory);
    if (!location.ok()) {
      print_error(location.error());
      return kUsage;
    }
    if (pipeline.empty()) pipeline = location->name;
    if (options.warehouse.empty()) options.warehouse = location->warehouse;
  }
  auto session = Session::open(options);
  if (!session.ok()) {
    print_error(session.error());
    return kFailed;
  }

  // The log's own columns are JSON; people read these.
  const std::string events = fmt::format(
      "SELECT timestamp, level, event_type, get_json_object(origin, '$.flow_name') AS flow_name, "
      "message, "
      "error, details, get_json_object(origin, '$.update_id') AS update_id, "
      "CAST(get_json_object(sequence, '$.number') AS BIGINT) AS number FROM event_log({})",
      literal(pipeline));
  std::string where;
  const auto filter = [&where](const std::string& condition) {
    where += (where.empty() ? " WHERE " : " AND ") + condition;
  };
  if (!arguments.type.empty()) filter("event_type = " + literal(arguments.type));
  if (!arguments.level.empty()) filter("level = upper(" + literal(arguments.level) + ")");
  if (!arguments.flow.empty()) filter("flow_name = " + literal(arguments.flow));
  if (arguments.update == "latest") {
    filter("update_id = (SELECT max_by(update_id, timestamp) FROM events)");
  } else if (!arguments.update.empty()) {
    filter("update_id = " + literal(arguments.update));
  }
  const std::string limit = arguments.limit > 0 ? fmt::format(" LIMIT {}", arguments.limit) : "";
  const std::string query = fmt::format(
      "WITH events AS ({}), "
      "newest AS (SELECT * FROM events{} ORDER BY timestamp DESC, number DESC{}) "
      "SELECT timestamp, level, event_type, flow_name, message, {} FROM newest "
      "ORDER BY timestamp, number",
      events, where, limit,
      arguments.format == OutputFormat::kTable || arguments.format == OutputFormat::kMarkdown
          ? "update_id"
          : "error, details, update_id");

  auto done = (*session)->run(query, "", arguments.format, std::cout);
  std::cout.flush();
  if (!done.ok()) {
    Error error = done.error();
    error.place.reset();  // a place in the query above, which the user did not write
    print_error(error);
    return kFailed;
  }
  return kDone;
}

}  // namespace strandline::cli
