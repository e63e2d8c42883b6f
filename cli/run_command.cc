#include <fmt/format.h>

#include <cstdio>

#include "commands.h"
#include "progress.h"
#include "report.h"
#include "terminal.h"

namespace strandline::cli {

int run_command(const RunOptions& options, bool json) {
  watch_signals();
  UpdateReport report;
  {
    ProgressDisplay display;
    report = run_update(
        options, [&display](const Progress& progress) { display.show(progress); }, &cancel_flag());
  }
  for (const auto& warning : report.warnings) print_warning(warning);
  if (json) {
    fmt::print("{}\n", report_json(report));
  } else {
    for (const auto& error : report.errors) print_error(error);
    if (options.dry_run && !report.graph.empty()) fmt::print("{}\n", report.graph);
    fmt::print("{}", report_text(report));
  }
  return exit_code(report.status);
}

}  // namespace strandline::cli
