#include <fmt/format.h>
#include <strandline/repair.h>

#include "commands.h"
#include "progress.h"
#include "report.h"
#include "terminal.h"

namespace strandline::cli {
namespace {

std::string json_texts(const std::vector<std::string>& texts) {
  std::string out;
  for (const auto& text : texts) out += (out.empty() ? "" : ", ") + json_string(text);
  return "[" + out + "]";
}

std::string as_json(const RepairReport& report, const std::vector<Error>& errors) {
  return fmt::format(
      "{{\"table\": {}, \"key\": {}, \"version\": {}, \"repeated_rows\": {}, \"extra_rows\": {}, "
      "\"extra_state_rows\": {}, \"committed_version\": {}, \"conflicting_keys\": {}, "
      "\"repeated\": {}, \"conflicting\": {}, \"errors\": {}}}\n",
      json_string(report.table), json_texts(report.key), report.version, report.repeated_rows,
      report.extra_rows, report.extra_state_rows,
      report.committed_version ? std::to_string(*report.committed_version) : "null",
      report.conflicting_keys, json_texts(report.repeated), json_texts(report.conflicting),
      json_errors(errors));
}

std::string as_text(const RepairReport& report, bool apply) {
  std::string out = fmt::format("{}, version {}: ", report.table, report.version);
  if (report.repeated_rows == 0) {
    out += "no row stands there twice\n";
  } else {
    out += fmt::format("of {} rows there are {} too many\n", with_separators(report.repeated_rows),
                       with_separators(report.extra_rows));
    for (const auto& row : report.repeated) out += "  " + row + "\n";
    if (report.repeated_rows > static_cast<int64_t>(report.repeated.size())) out += "  …\n";
  }
  if (report.extra_state_rows > 0) {
    out += fmt::format("its state: {} rows too many\n", with_separators(report.extra_state_rows));
  }
  if (report.extra_rows + report.extra_state_rows == 0) return out;
  if (!apply) return out + "Nothing was changed. With --apply each of them stays once.\n";
  if (!report.committed_version) return out + "Each of them stands there once now.\n";
  return out + fmt::format("Each of them stands there once from version {} on.\n",
                           *report.committed_version);
}

// Rows that no repair can choose between.
std::vector<Error> conflicts(const RepairReport& report) {
  if (report.conflicting_keys == 0) return {};
  std::string rows;
  for (const auto& row : report.conflicting) rows += "\n  " + row;
  return {Error{ErrorKind::kInvalidData,
                "REPAIR_ROWS_DIFFER",
                fmt::format("'{}' has rows of one primary key ({}) with other values, for {} keys, "
                            "and nothing tells which are right: {}{}",
                            report.table, fmt::join(report.key, ", "), report.conflicting_keys,
                            report.way_out, rows),
                {}}};
}

}  // namespace

int repair_command(const RepairArguments& arguments) {
  SessionOptions session;
  session.engine = arguments.engine;
  session.warehouse = arguments.warehouse;
  Result<RepairReport> done = RepairReport();
  if (session.warehouse.empty()) {
    const auto found = find_warehouse(session);
    if (!found.ok()) done = found.error();
  }
  if (done.ok()) done = repair_table(session, arguments.repair);
  if (!done.ok()) {
    if (arguments.json) {
      print_out("{{\"errors\": {}}}\n", json_errors({done.error()}));
    } else {
      print_error(done.error());
    }
    return kFailed;
  }
  const auto errors = conflicts(*done);
  if (arguments.json) {
    print_out("{}", as_json(*done, errors));
  } else {
    print_out("{}", as_text(*done, arguments.repair.apply));
    for (const auto& error : errors) print_error(error);
  }
  return errors.empty() ? kDone : kFailed;
}

}  // namespace strandline::cli
