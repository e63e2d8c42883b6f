#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>

#include "commands.h"
#include "progress.h"
#include "report.h"
#include "terminal.h"

namespace strandline::cli {
namespace {

// For the signal handler; set while a session is open.
Session* running_session = nullptr;

void cancel_session() {
  if (running_session != nullptr) running_session->cancel();
}

// Reads to the end of the first statement: a ';' outside of strings, names and comments.
class StatementScanner {
 public:
  // True once the text so far ends a statement with nothing but blanks after it.
  bool add(const std::string& line) {
    for (size_t i = 0; i < line.size(); ++i) {
      const char c = line[i];
      const char next = i + 1 < line.size() ? line[i + 1] : '\0';
      if (inside_ == '*') {
        if (c == '*' && next == '/') inside_ = 0, ++i;
      } else if (inside_ != 0) {
        if (c == '\\' && inside_ != '`') {
          ++i;
        } else if (c == inside_) {
          inside_ = 0;
        }
      } else if (c == '-' && next == '-') {
        break;
      } else if (c == '/' && next == '*') {
        inside_ = '*', ++i;
      } else if (c == '\'' || c == '"' || c == '`') {
        inside_ = c, ended_ = false;
      } else if (c == ';') {
        ended_ = true;
      } else if (c != ' ' && c != '\t' && c != '\r') {
        ended_ = false;
      }
    }
    return ended_ && inside_ == 0;
  }

 private:
  char inside_ = 0;  // quote we are in, '*' for a block comment
  bool ended_ = false;
};

// What people type to leave.
bool asks_to_leave(const std::string& line) {
  const size_t first = line.find_first_not_of(" \t\r");
  if (first == std::string::npos) return false;
  const std::string word = line.substr(first, line.find_last_not_of(" \t\r;") + 1 - first);
  return word == "exit" || word == "quit" || word == "\\q";
}

bool only_blanks(const std::string& text) {
  return text.find_first_not_of(" \t\r\n;") == std::string::npos;
}

// Of the statement that ran last, if it was an update.
struct LastUpdate {
  std::vector<Error> errors;
};

// Progress to the error stream. What an update did goes where the rows go, as long as people read
// them.
void show_updates(SessionOptions& options, OutputFormat format, LastUpdate& last) {
  const auto display = std::make_shared<std::unique_ptr<ProgressDisplay>>();
  options.on_progress = [display](const Progress& progress) {
    if (!*display) *display = std::make_unique<ProgressDisplay>();
    (*display)->show(progress);
  };
  options.on_update = [display, format, &last](const UpdateReport& report) {
    display->reset();
    last.errors = report.errors;
    for (const auto& warning : report.warnings) print_warning(warning);
    if (report.status == UpdateStatus::kInvalid) return;
    const auto text = report_text(report);
    if (format == OutputFormat::kTable) {
      std::cout << text << std::flush;
    } else {
      print_err("{}", text);
    }
  };
}

// All that is wrong with a statement; an update may have found more than one mistake.
void print_failure(const Error& error, const std::string& text, const std::string& file,
                   LastUpdate& last) {
  std::vector<Error> errors = std::exchange(last.errors, {});
  if (errors.empty()) errors.push_back(error);
  for (const auto& each : errors) {
    // A declaration that the warehouse keeps stands in a file of its own.
    const bool elsewhere = each.place && each.place->file != file;
    print_error(each, elsewhere ? std::string() : text);
  }
}

int run_interactive(Session& session, OutputFormat format, LastUpdate& last) {
  print_out("Strandline {}. Statements end with ';', exit or Ctrl-D leaves.\n", version());
  while (true) {
    std::string text;
    StatementScanner scanner;
    bool ended = false;
    while (!ended) {
      print_out("{}", text.empty() ? "strandline> " : "        ..> ");
      std::string line;
      if (!std::getline(std::cin, line)) {
        if (!cancel_flag()) {
          print_out("\n");
          return kDone;
        }
        // Ctrl-C at the prompt: drop what was typed and ask again.
        reset_cancel_flag();
        std::clearerr(stdin);
        std::cin.clear();
        print_out("\n");
        text.clear();
        scanner = {};
        continue;
      }
      if (text.empty() && asks_to_leave(line)) return kDone;
      text += line + "\n";
      ended = scanner.add(line) || only_blanks(text);
    }
    if (only_blanks(text)) continue;
    reset_cancel_flag();
    auto done = session.run(text, "", format, std::cout);
    std::cout.flush();
    if (!done.ok()) print_failure(done.error(), text, "", last);
    reset_cancel_flag();
  }
}

Result<std::string> read_all(std::istream& in, const std::string& name) {
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (in.bad()) return Error{ErrorKind::kIo, "IO_ERROR", "cannot read " + name, {}};
  return text;
}

Result<std::string> read_file(const std::string& path) {
  if (path == "-") return read_all(std::cin, "standard input");
  if (std::filesystem::is_directory(path)) {
    return Error{
        ErrorKind::kInvalidArgument, "IO_ERROR", path + " is a directory: name a .sql file", {}};
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) return Error{ErrorKind::kNotFound, "FILE_NOT_FOUND", "cannot open " + path, {}};
  return read_all(in, path);
}

}  // namespace

int sql_command(const SqlArguments& arguments) {
  std::string text;
  std::string file = arguments.file == "-" ? "" : arguments.file;
  bool interactive = false;
  if (arguments.command) {
    text = *arguments.command;
  } else if (!arguments.file.empty()) {
    auto read = read_file(arguments.file);
    if (!read.ok()) {
      print_error(read.error());
      return kUsage;
    }
    text = std::move(read).value();
  } else if (isatty(STDIN_FILENO) == 1) {
    interactive = true;
  } else {
    auto read = read_file("-");
    if (!read.ok()) {
      print_error(read.error());
      return kFailed;
    }
    text = std::move(read).value();
  }

  SessionOptions options;
  options.engine = arguments.engine;
  options.warehouse = arguments.warehouse;
  options.show_changed_rows = interactive;
  if (options.warehouse.empty()) {
    const auto found = find_warehouse(options);
    if (!found.ok()) {
      print_error(found.error());
      return kUsage;
    }
  }
  LastUpdate last;
  show_updates(options, arguments.format, last);
  auto session = Session::open(options);
  if (!session.ok()) {
    print_error(session.error());
    return kFailed;
  }
  running_session = session->get();
  watch_signals(cancel_session);

  int code = kDone;
  if (interactive) {
    code = run_interactive(**session, arguments.format, last);
  } else {
    auto done = (*session)->run(text, file, arguments.format, std::cout);
    std::cout.flush();
    if (!done.ok()) {
      print_failure(done.error(), text, file, last);
      code = kFailed;
    } else if (!std::cout) {
      print_err("error: the output cannot be written\n");
      code = kFailed;
    }
  }
  running_session = nullptr;
  return code;
}

}  // namespace strandline::cli
