#include <fmt/format.h>
#include <strandline/program.h>

#include "commands.h"
#include "report.h"
#include "terminal.h"

namespace strandline::cli {
namespace {

const char* to_string(Dialect dialect) { return dialect == Dialect::kSpark ? "spark" : "duckdb"; }

const char* to_string(ProgramStep::Kind kind) {
  switch (kind) {
    case ProgramStep::Kind::kMake:
      return "make";
    case ProgramStep::Kind::kChange:
      return "change";
    case ProgramStep::Kind::kCheck:
      return "check";
  }
  return "";
}

// An object from pairs of name and JSON text.
std::string object(const std::vector<std::pair<const char*, std::string>>& members) {
  std::string out;
  for (const auto& [name, value] : members) {
    out += fmt::format("{}{}: {}", out.empty() ? "" : ", ", json_string(name), value);
  }
  return "{" + out + "}";
}

std::string array(const std::vector<std::string>& items) {
  return fmt::format("[{}]", fmt::join(items, ",\n"));
}

std::string program_json(const FlowProgram& program) {
  std::vector<std::string> reads, steps;
  for (const ProgramRelation& relation : program.reads) {
    reads.push_back(object({{"name", json_string(relation.name)},
                            {"columns", json_string(relation.columns)},
                            {"what", json_string(relation.what)}}));
  }
  for (const ProgramStep& step : program.steps) {
    std::vector<std::pair<const char*, std::string>> members = {
        {"kind", json_string(to_string(step.kind))}, {"stage", json_string(step.stage)}};
    if (!step.table.empty()) members.emplace_back("table", json_string(step.table));
    members.emplace_back("sql", json_string(step.sql));
    if (!step.only_if.empty()) members.emplace_back("only_if", json_string(step.only_if));
    if (step.kind == ProgramStep::Kind::kCheck) {
      members.emplace_back("code", json_string(step.code));
      members.emplace_back("message", json_string(step.message));
    }
    steps.push_back(object(members));
  }
  return object({{"flow", json_string(program.flow)},
                 {"target", json_string(program.target)},
                 {"stored_as", json_string(program.stored_as)},
                 {"source_query", json_string(program.source_query)},
                 {"reads", array(reads)},
                 {"steps", array(steps)},
                 {"target_new", json_string(program.target_new)},
                 {"target_dead", json_string(program.target_dead)},
                 {"state_new", json_string(program.state_new)},
                 {"state_dead", json_string(program.state_dead)},
                 {"metrics", json_string(program.metrics)},
                 {"target_columns", json_string(program.target_columns)},
                 {"state_columns", json_string(program.state_columns)}});
}

// The text without the line break a template begins with.
std::string trimmed(const std::string& sql) {
  const size_t first = sql.find_first_not_of('\n');
  return first == std::string::npos ? "" : sql.substr(first);
}

std::string step_text(const ProgramStep& step, Dialect dialect) {
  std::string out;
  if (!step.only_if.empty()) {
    out += fmt::format("-- {} this gives 0:\n--   {}\n",
                       step.kind == ProgramStep::Kind::kMake ? "No row when" : "Not when",
                       trimmed(step.only_if));
  }
  const std::string sql = trimmed(step.sql);
  if (step.kind == ProgramStep::Kind::kCheck) {
    return out + fmt::format("-- Must count 0, else {}.\n{};\n", step.code, sql);
  }
  if (dialect == Dialect::kSpark) {
    return out + fmt::format("-- {} {}, kept as it is now:\n{};\n",
                             step.kind == ProgramStep::Kind::kMake ? "Table" : "New rows of table",
                             step.table, sql);
  }
  if (step.kind == ProgramStep::Kind::kChange) return out + sql + ";\n";
  return out + fmt::format("CREATE OR REPLACE TEMP TABLE {} AS\n{};\n", step.table, sql);
}

std::string program_text(const FlowProgram& program, Dialect dialect) {
  std::string out =
      fmt::format("-- Flow {} into {}, {}: the next batch in {}.\n-- The source query:\n--   {}\n",
                  program.flow, program.target, program.stored_as,
                  dialect == Dialect::kSpark ? "Spark SQL" : "DuckDB SQL", program.source_query);
  for (const ProgramRelation& relation : program.reads) {
    out +=
        fmt::format("-- Reads {}: {}\n--   {}\n", relation.name, relation.what, relation.columns);
  }
  std::string stage;
  for (const ProgramStep& step : program.steps) {
    if (step.stage != stage) {
      stage = step.stage;
      out += fmt::format("\n-- ===== {} =====\n", stage);
    }
    out += "\n" + step_text(step, dialect);
  }
  out += "\n-- ===== write =====\n";
  for (const auto& [what, sql] : {std::pair("New rows of the target", program.target_new),
                                  std::pair("Places of its dead rows", program.target_dead),
                                  std::pair("New rows of the state", program.state_new),
                                  std::pair("Places of its dead rows", program.state_dead),
                                  std::pair("Metrics", program.metrics)}) {
    out += fmt::format("\n-- {}:\n{};\n", what, trimmed(sql));
  }
  return out;
}

}  // namespace

int plan_command(const PlanOptions& options, bool json) {
  const PlanReport report = print_programs(options);
  const int code = report.invalid ? kUsage : report.errors.empty() ? kDone : kFailed;
  if (json) {
    std::vector<std::string> programs;
    for (const FlowProgram& program : report.programs) programs.push_back(program_json(program));
    const std::string out = object({{"dialect", json_string(to_string(options.dialect))},
                                    {"programs", array(programs)},
                                    {"errors", json_errors(report.errors)}});
    return print_out("{}\n", out) ? code : kFailed;
  }
  for (const auto& error : report.errors) print_error(error);
  std::string out;
  for (const FlowProgram& program : report.programs) {
    out += (out.empty() ? "" : "\n\n") + program_text(program, options.dialect);
  }
  return print_out("{}", out) ? code : kFailed;
}

}  // namespace strandline::cli
