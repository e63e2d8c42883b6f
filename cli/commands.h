// What each command does, after its arguments are known to be well formed.
#pragma once

#include <strandline/program.h>
#include <strandline/repair.h>
#include <strandline/strandline.h>

#include <optional>
#include <string>
#include <vector>

namespace strandline::cli {

// Exit codes of every command.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;

int run_command(const RunOptions& options, bool json);

int plan_command(const PlanOptions& options, bool json);

// Until a signal, or an update that does not complete. Prints the updates that found something; as
// JSON one object a line.
int run_continuously_command(const ContinuousOptions& options, bool json);

struct SqlArguments {
  std::string warehouse;               // empty: the one of the current directory
  std::optional<std::string> command;  // -c
  std::string file;                    // -f; "-" is standard input
  OutputFormat format = OutputFormat::kTable;
  EngineOptions engine;
};
int sql_command(const SqlArguments& arguments);

// Fills the warehouse of the current directory in: its pipeline's with its defaults, else
// ./warehouse, else none. Errors: of a broken pipeline.
Status find_warehouse(SessionOptions& options);

struct ChangesArguments {
  std::string warehouse;  // empty: the one of the current directory
  ChangesOptions changes;
  OutputFormat format = OutputFormat::kTable;
  EngineOptions engine;
};
int changes_command(const ChangesArguments& arguments);

struct RepairArguments {
  std::string warehouse;  // empty: the one of the current directory
  RepairOptions repair;
  bool json = false;
  EngineOptions engine;
};
// Fails where rows are left that no repair can choose between.
int repair_command(const RepairArguments& arguments);

struct PythonArguments {
  std::string warehouse;  // empty: the one of the current directory
  std::string file;
  std::vector<std::string> arguments;  // of the script
};
// Does not return when the interpreter starts.
int python_command(const PythonArguments& arguments);

int init_command(const std::string& directory);

struct EventsArguments {
  std::string directory = ".";  // pipeline directory or spec file
  std::string warehouse;
  std::string pipeline;  // name; empty: the directory's
  std::string type, level, flow, update;
  int64_t limit = 100;  // newest events; 0 = all
  OutputFormat format = OutputFormat::kTable;
};
int events_command(const EventsArguments& arguments);

}  // namespace strandline::cli
