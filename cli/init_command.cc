#include <fmt/format.h>

#include "commands.h"
#include "report.h"
#include "terminal.h"

namespace strandline::cli {

int init_command(const std::string& directory) {
  auto done = init_pipeline(directory);
  if (!done.ok()) {
    print_error(done.error());
    return kFailed;
  }
  print_out(
      "{0}/ is ready: customer changes in data/, two AUTO CDC targets in transformations/.\n"
      "\n"
      "Next:\n"
      "  strandline run {0}\n"
      "  strandline sql --warehouse {0}/warehouse -c \"SELECT * FROM customers_history\"\n"
      "\n"
      "Then add a file of changes to {0}/data/customers/ and run it again: only the new file is "
      "read.\n",
      directory);
  return kDone;
}

}  // namespace strandline::cli
