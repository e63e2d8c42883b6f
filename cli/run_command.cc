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

}  // namespace strandline::cli
