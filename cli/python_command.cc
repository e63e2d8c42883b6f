#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "commands.h"
#include "report.h"
#include "strandline/python.h"

namespace strandline::cli {

// The program becomes the interpreter, so that signals and the exit code are the script's.
int python_command(const PythonArguments& arguments) {
  SessionOptions session;
  session.warehouse = arguments.warehouse;
  const auto found = session.warehouse.empty() ? find_warehouse(session) : Status();
  if (!found.ok()) {
    print_error(found.error());
    return kUsage;
  }
  const char* named = std::getenv("STRANDLINE_PYTHON");
  const std::string python = named != nullptr && *named != '\0' ? named : "python3";
  std::vector<std::string> words = python_words(python, "strandline._script");
  const auto add = [&](const char* flag, const std::string& value) {
    if (value.empty()) return;
    words.emplace_back(flag);
    words.push_back(value);
  };
  add("--warehouse", session.warehouse);
  add("--catalog", session.catalog);
  add("--schema", session.schema);
  words.push_back(arguments.file);
  words.insert(words.end(), arguments.arguments.begin(), arguments.arguments.end());
  std::vector<char*> pointers;
  for (auto& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execvp(python.c_str(), pointers.data());
  print_error({ErrorKind::kNotFound,
               "PYTHON_NOT_FOUND",
               fmt::format("the interpreter '{}' cannot be started: {}; name one with the "
                           "environment variable STRANDLINE_PYTHON",
                           python, std::strerror(errno)),
               {}});
  return kFailed;
}

}  // namespace strandline::cli
