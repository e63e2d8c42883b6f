#include <iostream>

#include "commands.h"
#include "report.h"
#include "terminal.h"

namespace strandline::cli {
namespace {

// For the signal handler; set while a session is open.
Session* running_session = nullptr;

void cancel_session() {
  if (running_session != nullptr) running_session->cancel();
}

}  // namespace

int changes_command(const ChangesArguments& arguments) {
  SessionOptions options;
  options.engine = arguments.engine;
  options.warehouse = arguments.warehouse;
  if (options.warehouse.empty()) {
    const auto found = find_warehouse(options);
    if (!found.ok()) {
      print_error(found.error());
      return kUsage;
    }
  }
  auto session = Session::open(options);
  if (!session.ok()) {
    print_error(session.error());
    return kFailed;
  }
  running_session = session->get();
  watch_signals(cancel_session);
  const auto done = (*session)->changes(arguments.changes, arguments.format, std::cout);
  std::cout.flush();
  running_session = nullptr;
  if (!done.ok()) {
    print_error(done.error());
    return kFailed;
  }
  if (!std::cout) {
    print_err("error: the output cannot be written\n");
    return kFailed;
  }
  return kDone;
}

}  // namespace strandline::cli
