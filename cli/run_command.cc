#include <fmt/format.h>

#include <csignal>
#include <cstdio>

#include "commands.h"
#include "progress.h"
#include "report.h"
#include "terminal.h"

namespace strandline::cli {

int run_command(const RunOptions& options, bool json) {
  watch_signals();
  // A reader of the progress that goes away must not end the update.
  std::signal(SIGPIPE, SIG_IGN);
  UpdateReport report;
  {
    ProgressDisplay display;
    report = run_update(
        options, [&display](const Progress& progress) { display.show(progress); }, &cancel_flag());
  }
  for (const auto& warning : report.warnings) print_warning(warning);
  if (json) {
    if (!print_out("{}\n", report_json(report))) return kFailed;
  } else {
    for (const auto& error : report.errors) print_error(error);
    if (options.dry_run && !report.graph.empty()) print_out("{}\n", report.graph);
    print_out("{}", report_text(report));
  }
  return exit_code(report.status);
}

int run_continuously_command(const ContinuousOptions& options, bool json) {
  watch_signals();
  bool is_first = true;
  bool printed = true;
  const auto show = [&](const UpdateReport& report) {
    const bool warns = is_first && !report.warnings.empty();
    is_first = false;
    if (!warns && !report.has_news() && report.status == UpdateStatus::kCompleted) return;
    for (const auto& warning : report.warnings) print_warning(warning);
    if (json) {
      printed = print_out("{}\n", report_json(report)) && printed;
      return;
    }
    for (const auto& error : report.errors) print_error(error);
    printed = print_out("{}", report_text(report)) && printed;
  };
  const auto report = run_continuously(options, show, cancel_flag());
  if (is_first) show(report);
  return printed ? exit_code(report.status) : kFailed;
}

}  // namespace strandline::cli
