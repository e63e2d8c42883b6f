// The strandline program: reads the arguments, hands them to a command.
#include <fmt/format.h>
#include <strandline/engine_version.h>
#include <strandline/suggest.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "commands.h"
#include "report.h"
#include "terminal.h"

namespace strandline::cli {
namespace {

const std::map<std::string, OutputFormat> kFormats = {
    {"table", OutputFormat::kTable},       {"csv", OutputFormat::kCsv},
    {"json", OutputFormat::kJson},         {"ndjson", OutputFormat::kNdjson},
    {"markdown", OutputFormat::kMarkdown},
};

constexpr const char* kMainExamples = R"(Examples:
  strandline init my_pipeline
  strandline run my_pipeline
  strandline sql --warehouse my_pipeline/warehouse -c "SELECT * FROM customers"
  strandline events my_pipeline

Each command has its own --help.)";

constexpr const char* kRunExamples = R"(Examples:
  strandline run                                   the pipeline in this directory
  strandline run my_pipeline --dry-run             check everything, touch nothing
  strandline run my_pipeline --full-refresh users_current
  strandline run my_pipeline/spark-pipeline.yml --warehouse lake --json
  strandline run my_pipeline --continuous --interval 10s

Exit codes: 0 done, 1 the update failed or was stopped, 2 invalid pipeline or arguments.)";

constexpr const char* kPlanExamples = R"(Examples:
  strandline plan my_pipeline                      what the embedded engine runs
  strandline plan my_pipeline --dialect spark      the same in Spark SQL
  strandline plan my_pipeline --dialect spark --json

The program of each AUTO CDC flow's next batch, as the tables stand; nothing is changed.
Exit codes: 0 done, 1 a flow cannot be printed, 2 invalid pipeline or arguments.)";

constexpr const char* kSqlExamples = R"(Examples:
  strandline sql -c "SELECT * FROM users_current"
  strandline sql --warehouse lake -f load.sql
  strandline sql --format ndjson -c "SELECT * FROM delta.`/data/users` VERSION AS OF 3"
  echo "SHOW TABLES" | strandline sql
  strandline sql                                   statements from the terminal

Without --warehouse it is that of the pipeline in this directory, else ./warehouse.
Exit codes: 0 done, 1 a statement failed, 2 invalid arguments.)";

constexpr const char* kChangesExamples = R"(Examples:
  strandline changes users_current --from 3
  strandline changes users_current --from 3 --to 7 --format ndjson
  strandline changes users_current --from "2026-01-31 12:00:00"
  strandline changes "delta.`/data/users`" --from 0 --follow --format ndjson

Both ends are inclusive. --follow prints each new commit until Ctrl-C.
Exit codes: 0 done, 1 the feed cannot be read, 2 invalid arguments.)";

constexpr const char* kRepairExamples = R"(Examples:
  strandline repair users_current
  strandline repair users_current --apply

Without --apply it shows which rows of an AUTO CDC target stand there more than once, equal in all
columns, and changes nothing. With it each of them stays once, in one commit.
Exit codes: 0 done, 1 it failed or rows of one primary key differ, 2 invalid arguments.)";

constexpr const char* kPythonExamples = R"(Examples:
  strandline python report.py
  strandline python --warehouse lake report.py 2026-01

spark and dbutils are there, and pyspark is Strandline's, installed or not.
The interpreter is that of STRANDLINE_PYTHON, else python3.)";

constexpr const char* kInitExamples = R"(Examples:
  strandline init my_pipeline
  strandline init /srv/pipelines/customers)";

constexpr const char* kEventsExamples = R"(Examples:
  strandline events my_pipeline
  strandline events my_pipeline --update latest --level ERROR
  strandline events my_pipeline --type flow_progress --flow apply_cdc --format ndjson
  strandline events --warehouse lake --pipeline my_pipeline --limit 0)";

constexpr int64_t kLeastMemoryBytes = 250'000'000;

// "2GB", "1.5 GiB", "500MB", "800000000": bytes.
std::optional<int64_t> parse_bytes(const std::string& text) {
  size_t used = 0;
  double number = 0;
  try {
    number = std::stod(text, &used);
  } catch (const std::exception&) {
    return std::nullopt;
  }
  std::string unit;
  for (const char c : text.substr(used)) {
    if (c != ' ') unit += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  static const std::map<std::string, double> kUnits = {
      {"", 1},         {"B", 1},        {"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},
      {"TB", 1e12},    {"K", 1e3},      {"M", 1e6},      {"G", 1e9},      {"T", 1e12},
      {"KIB", 0x1p10}, {"MIB", 0x1p20}, {"GIB", 0x1p30}, {"TIB", 0x1p40},
  };
  const auto found = kUnits.find(unit);
  if (found == kUnits.end()) return std::nullopt;
  const double bytes = number * found->second;
  if (!(bytes >= 1) || bytes > 9e18) return std::nullopt;
  return static_cast<int64_t>(bytes);
}

// "5s", "500ms", "1.5m", "2 seconds", "5": milliseconds.
std::optional<int64_t> parse_duration_ms(const std::string& text) {
  size_t used = 0;
  double number = 0;
  try {
    number = std::stod(text, &used);
  } catch (const std::exception&) {
    return std::nullopt;
  }
  const size_t unit_at = std::min(text.find_first_not_of(' ', used), text.size());
  static const std::map<std::string, double> kUnits = {
      {"", 1e3},         {"s", 1e3},    {"second", 1e3},  {"seconds", 1e3},
      {"ms", 1},         {"m", 60e3},   {"min", 60e3},    {"minute", 60e3},
      {"minutes", 60e3}, {"h", 3600e3}, {"hour", 3600e3}, {"hours", 3600e3},
  };
  const auto unit = kUnits.find(text.substr(unit_at));
  if (unit == kUnits.end() || !(number >= 0) || number * unit->second > 1e12) return std::nullopt;
  return static_cast<int64_t>(number * unit->second);
}

// "a, main.s.`odd,name`" -> names; commas inside backquotes do not split.
std::vector<std::string> split_names(const std::string& text) {
  std::vector<std::string> out;
  std::string name;
  bool quoted = false;
  const auto flush = [&] {
    const size_t first = name.find_first_not_of(' ');
    if (first != std::string::npos) {
      out.push_back(name.substr(first, name.find_last_not_of(' ') - first + 1));
    }
    name.clear();
  };
  for (const char c : text) {
    if (c == '`') quoted = !quoted;
    if (c == ',' && !quoted) {
      flush();
    } else {
      name += c;
    }
  }
  flush();
  return out;
}

// Everything the arguments can say.
struct Arguments {
  RunOptions run;
  bool json = false;
  bool full_refresh_all = false;
  std::string refresh, full_refresh, warehouse;
  std::string memory_limit;
  int threads = 0;
  PlanOptions plan;
  std::string dialect = "duckdb";
  SqlArguments sql;
  EventsArguments events;
  ChangesArguments changes;
  RepairArguments repair;
  PythonArguments python;
  std::string changes_to;
  bool continuous = false;
  std::string run_interval = "5s";
  double interval_seconds = 1;
  std::string format = "table";
  std::string command;
  std::string init_directory;
};

void add_engine_options(CLI::App* app, Arguments& arguments) {
  app->add_option(
      "--memory-limit", arguments.memory_limit,
      "Memory the process aims to stay under, such as 2GB (default: most of the machine's)");
  app->add_option("--threads", arguments.threads, "Threads to use (default: all cores)")
      ->check(CLI::Range(1, 1024));
}

void add_format(CLI::App* app, Arguments& arguments) {
  std::set<std::string> names;
  for (const auto& [name, format] : kFormats) names.insert(name);
  app->add_option("--format", arguments.format, "table, csv, json, ndjson or markdown")
      ->check(CLI::IsMember(names));
}

struct Program {
  CLI::App app{"Strandline: AUTO CDC pipelines into Delta Lake tables, on one machine.",
               "strandline"};
  CLI::App* run = nullptr;
  CLI::App* plan = nullptr;
  CLI::App* sql = nullptr;
  CLI::App* init = nullptr;
  CLI::App* events = nullptr;
  CLI::App* changes = nullptr;
  CLI::App* repair = nullptr;
  CLI::App* python = nullptr;
};

void declare(Program& program, Arguments& arguments) {
  CLI::App& app = program.app;
  app.footer(kMainExamples);
  app.set_version_flag("--version",
                       fmt::format("strandline {} (DuckDB {})", version(), engine_version()),
                       "Print the version, and the engine's");
  app.allow_extras();
  app.require_subcommand(0, 1);

  program.run = app.add_subcommand("run", "Run one update of a pipeline");
  program.run->add_option("pipeline", arguments.run.pipeline,
                          "Pipeline directory or spec file (default: this directory)");
  program.run->add_option(
      "--warehouse", arguments.warehouse,
      "Directory of the tables (default: the spec's storage, else warehouse/ beside it)");
  auto* all = program.run->add_flag("--full-refresh-all", arguments.full_refresh_all,
                                    "Rebuild every table from its sources");
  auto* full = program.run->add_option("--full-refresh", arguments.full_refresh,
                                       "Rebuild these tables (t1,t2), update the others");
  auto* some =
      program.run->add_option("--refresh", arguments.refresh, "Update only these tables (t1,t2)");
  all->excludes(full)->excludes(some);
  full->excludes(some);
  program.run->add_flag("--allow-missing-sources", arguments.run.allow_missing_sources,
                        "A full refresh goes on without source files or versions that are gone");
  program.run->add_flag("--dry-run", arguments.run.dry_run,
                        "Validate everything and print the graph; touch nothing");
  auto* continuous = program.run->add_flag(
      "--continuous", arguments.continuous,
      "Run update after update until Ctrl-C, which lets the batch in hand finish");
  program.run
      ->add_option("--interval", arguments.run_interval,
                   "With --continuous: time from one update to the next, such as 5s or 500ms "
                   "(default: 5s)")
      ->needs(continuous);
  continuous->excludes("--dry-run");
  program.run->add_flag("--json", arguments.json, "Print the outcome as one JSON object");
  add_engine_options(program.run, arguments);
  program.run->footer(kRunExamples);

  program.plan =
      app.add_subcommand("plan", "Print the SQL programs of a pipeline's AUTO CDC flows");
  program.plan->add_option("pipeline", arguments.plan.pipeline,
                           "Pipeline directory or spec file (default: this directory)");
  program.plan->add_option("--warehouse", arguments.warehouse,
                           "Directory of the tables (default: as for run)");
  program.plan->add_option("--dialect", arguments.dialect, "duckdb or spark")
      ->check(CLI::IsMember(std::set<std::string>{"duckdb", "spark"}));
  program.plan->add_flag("--json", arguments.json, "Print the programs as one JSON object");
  program.plan->footer(kPlanExamples);

  program.sql = app.add_subcommand("sql", "Run SQL over a warehouse");
  program.sql->add_option("--warehouse", arguments.sql.warehouse, "Directory of the tables");
  auto* command = program.sql->add_option("-c,--command", arguments.command, "Statements to run");
  auto* file = program.sql->add_option("-f,--file", arguments.sql.file,
                                       "File of statements; - is standard input");
  command->excludes(file);
  add_format(program.sql, arguments);
  add_engine_options(program.sql, arguments);
  program.sql->footer(kSqlExamples);

  program.init = app.add_subcommand("init", "Make a small working pipeline in a new directory");
  program.init->add_option("name", arguments.init_directory, "The directory to make")->required();
  program.init->footer(kInitExamples);

  program.events = app.add_subcommand("events", "Show a pipeline's event log, oldest first");
  program.events->add_option("directory", arguments.events.directory,
                             "Pipeline directory or spec file (default: this directory)");
  program.events->add_option("--warehouse", arguments.events.warehouse, "Directory of the tables");
  program.events->add_option("--pipeline", arguments.events.pipeline,
                             "Pipeline name (default: the directory's pipeline)");
  program.events->add_option("--type", arguments.events.type,
                             "Only events of this type, such as flow_progress");
  program.events->add_option("--level", arguments.events.level,
                             "Only INFO, WARN, ERROR or METRICS events");
  program.events->add_option("--flow", arguments.events.flow, "Only events of this flow");
  program.events->add_option("--update", arguments.events.update,
                             "Only events of this update id, or latest");
  program.events->add_option("--limit", arguments.events.limit, "The newest so many; 0 is all")
      ->check(CLI::NonNegativeNumber);
  add_format(program.events, arguments);
  program.events->footer(kEventsExamples);

  program.changes = app.add_subcommand("changes", "Print the change data feed of a table");
  program.changes
      ->add_option("table", arguments.changes.changes.table,
                   "Table, as in SQL: name, schema.name or delta.`/path`")
      ->required();
  program.changes
      ->add_option("--from", arguments.changes.changes.from,
                   "First version, or a timestamp such as \"2026-01-31 12:00:00\" (UTC)")
      ->required();
  auto* to = program.changes->add_option("--to", arguments.changes_to,
                                         "Last version or a timestamp (default: the newest)");
  auto* follow = program.changes->add_flag("--follow", arguments.changes.changes.follow,
                                           "Then print each new commit until stopped");
  follow->excludes(to);
  program.changes
      ->add_option("--interval", arguments.interval_seconds,
                   "With --follow: seconds between looks for a new commit")
      ->check(CLI::Range(0.05, 86400.0));
  program.changes->add_option("--warehouse", arguments.changes.warehouse,
                              "Directory of the tables");
  add_format(program.changes, arguments);
  add_engine_options(program.changes, arguments);
  program.changes->footer(kChangesExamples);

  program.repair =
      app.add_subcommand("repair", "Take rows away that an AUTO CDC target has more than once");
  program.repair
      ->add_option("table", arguments.repair.repair.table,
                   "Table, as in SQL: name, schema.name or delta.`/path`")
      ->required();
  program.repair->add_flag("--apply", arguments.repair.repair.apply,
                           "Do it; without it the rows are only shown");
  program.repair->add_option("--warehouse", arguments.repair.warehouse, "Directory of the tables");
  program.repair->add_flag("--json", arguments.json, "Print what is found as one JSON object");
  add_engine_options(program.repair, arguments);
  program.repair->footer(kRepairExamples);

  program.python = app.add_subcommand("python", "Run a Python script over a warehouse");
  program.python->add_option("--warehouse", arguments.python.warehouse, "Directory of the tables");
  program.python->add_option("file", arguments.python.file, "The script")->required();
  program.python->footer(kPythonExamples);

  for (auto* sub : app.get_subcommands({})) sub->allow_extras();
  program.python->prefix_command();
}

// What is wrong with words no option took; suggests the option or command meant.
std::string explain_extra(const CLI::App& app, const std::string& word) {
  const bool is_option = word.size() > 1 && word[0] == '-';
  std::vector<std::string> known;
  if (is_option) {
    for (const auto* option : app.get_options()) {
      for (const auto& name : option->get_lnames()) known.push_back("--" + name);
    }
  } else if (app.get_parent() == nullptr) {
    for (const auto* sub : app.get_subcommands({})) known.push_back(sub->get_name());
  }
  std::string out = fmt::format("{} {}",
                                is_option                     ? "unknown option"
                                : app.get_parent() == nullptr ? "unknown command"
                                                              : "unexpected argument",
                                word);
  const auto option = word.substr(0, word.find('='));
  if (const auto near = nearest_name(option, known))
    out += fmt::format(": did you mean {}?", *near);
  return out;
}

int usage_error(const CLI::App& app, const std::string& message, bool json) {
  if (json) {
    UpdateReport report;
    report.status = UpdateStatus::kInvalid;
    report.errors.push_back({ErrorKind::kInvalidArgument, "USAGE", message, {}});
    print_out("{}\n", report_json(report));
  } else {
    print_error({ErrorKind::kInvalidArgument, "USAGE", message, {}});
    const bool is_sub = app.get_parent() != nullptr;
    print_err("See strandline{} --help.\n", is_sub ? " " + app.get_name() : "");
  }
  return kUsage;
}

// The command line may be too wrong to parse and still ask for JSON.
bool wants_json(int argc, char** argv) {
  bool run = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "run" || word == "plan" || word == "repair") run = true;
    if (run && word == "--json") return true;
  }
  return false;
}

int run_main(int argc, char** argv) {
  Arguments arguments;
  Program program;
  declare(program, arguments);
  const bool json = wants_json(argc, argv);

  const auto chosen = [&program]() -> const CLI::App& {
    const auto subs = program.app.get_subcommands();
    return subs.empty() ? program.app : *subs.front();
  };
  try {
    program.app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return program.app.exit(success);  // --help, --version
  } catch (const CLI::ParseError& error) {
    return usage_error(chosen(), error.what(), json);
  }
  for (const auto* app : {&program.app, program.run, program.plan, program.sql, program.init,
                          program.events, program.changes, program.repair}) {
    const auto extras = app->remaining();
    if (!extras.empty()) return usage_error(*app, explain_extra(*app, extras.front()), json);
  }
  EngineOptions engine;
  engine.threads = arguments.threads;
  if (!arguments.memory_limit.empty()) {
    const auto bytes = parse_bytes(arguments.memory_limit);
    if (!bytes) {
      return usage_error(chosen(),
                         fmt::format("--memory-limit {}: write a size such as 2GB or 1500MiB",
                                     arguments.memory_limit),
                         json);
    }
    if (*bytes < kLeastMemoryBytes) {
      return usage_error(chosen(),
                         fmt::format("--memory-limit {} is too little: the SQL engine does not "
                                     "work with less than {}MB",
                                     arguments.memory_limit, kLeastMemoryBytes / 1'000'000),
                         json);
    }
    engine.memory_limit_bytes = *bytes;
  }
  const OutputFormat format = kFormats.at(arguments.format);

  if (program.run->parsed()) {
    RunOptions& run = arguments.run;
    if (run.pipeline.empty()) run.pipeline = ".";
    if (!arguments.warehouse.empty()) run.warehouse = arguments.warehouse;
    run.engine = engine;
    const auto name_tables = [&](const std::string& text, RefreshKind kind) {
      run.refresh = kind;
      run.tables = split_names(text);
      return !run.tables.empty();
    };
    if (arguments.full_refresh_all) run.refresh = RefreshKind::kFullAll;
    if (program.run->count("--full-refresh") > 0 &&
        !name_tables(arguments.full_refresh, RefreshKind::kFullSelected)) {
      return usage_error(*program.run, "--full-refresh names no table", json);
    }
    if (program.run->count("--refresh") > 0 &&
        !name_tables(arguments.refresh, RefreshKind::kSelected)) {
      return usage_error(*program.run, "--refresh names no table", json);
    }
    if (!arguments.continuous) return run_command(run, arguments.json);
    const auto interval_ms = parse_duration_ms(arguments.run_interval);
    if (!interval_ms) {
      return usage_error(*program.run,
                         fmt::format("--interval {}: write a time such as 5s, 500ms or 1m",
                                     arguments.run_interval),
                         json);
    }
    return run_continuously_command({run, *interval_ms}, arguments.json);
  }
  if (program.plan->parsed()) {
    PlanOptions& plan = arguments.plan;
    if (plan.pipeline.empty()) plan.pipeline = ".";
    if (!arguments.warehouse.empty()) plan.warehouse = arguments.warehouse;
    plan.dialect = arguments.dialect == "spark" ? Dialect::kSpark : Dialect::kDuckDb;
    plan.engine = engine;
    return plan_command(plan, arguments.json);
  }
  if (program.sql->parsed()) {
    if (program.sql->count("--command") > 0) arguments.sql.command = arguments.command;
    arguments.sql.format = format;
    arguments.sql.engine = engine;
    return sql_command(arguments.sql);
  }
  if (program.python->parsed()) {
    arguments.python.arguments = program.python->remaining();
    return python_command(arguments.python);
  }
  if (program.init->parsed()) return init_command(arguments.init_directory);
  if (program.events->parsed()) {
    arguments.events.format = format;
    return events_command(arguments.events);
  }
  if (program.changes->parsed()) {
    ChangesArguments& changes = arguments.changes;
    if (program.changes->count("--to") > 0) changes.changes.to = arguments.changes_to;
    changes.changes.poll_ms = static_cast<int>(arguments.interval_seconds * 1000);
    changes.format = format;
    changes.engine = engine;
    return changes_command(changes);
  }
  if (program.repair->parsed()) {
    arguments.repair.json = arguments.json;
    arguments.repair.engine = engine;
    return repair_command(arguments.repair);
  }
  print_err("{}", program.app.help());
  return kUsage;
}

}  // namespace
}  // namespace strandline::cli

int main(int argc, char** argv) {
  strandline::cli::open_standard_streams();
  strandline::cli::ignore_file_size_signal();
  try {
    return strandline::cli::run_main(argc, argv);
  } catch (const std::exception& bug) {
    strandline::cli::print_err("error: internal error: {}\n", bug.what());
    return strandline::cli::kFailed;
  }
}
