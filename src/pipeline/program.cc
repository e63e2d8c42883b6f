#include "pipeline/program.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <map>
#include <thread>

#include "base/error.h"
#include "base/secrets.h"
#include "duck/extensions.h"
#include "strandline/python.h"

extern char** environ;

namespace strandline::pipeline {
namespace {

constexpr int kChildChannel = 3;  // its number in the interpreter

std::string text_of(const Json& json, const char* key) {
  const Json* value = json.get(key);
  return value != nullptr && value->is_string() ? value->text() : std::string();
}

int number_of(const Json& json, const char* key) {
  const Json* value = json.get(key);
  return value == nullptr ? 0 : static_cast<int>(value->as_int().value_or(0));
}

Error error_of(const Json& json) {
  static const std::map<std::string, ErrorKind> kinds = {{"unsupported", ErrorKind::kUnsupported},
                                                         {"not_found", ErrorKind::kNotFound},
                                                         {"invalid_data", ErrorKind::kInvalidData},
                                                         {"io", ErrorKind::kIo}};
  const auto kind = kinds.find(text_of(json, "kind"));
  Error error{kind == kinds.end() ? ErrorKind::kInvalidArgument : kind->second,
              text_of(json, "code"), text_of(json, "message"), std::nullopt};
  const std::string file = text_of(json, "file");
  if (!file.empty()) error.place = SourcePlace{file, number_of(json, "line"), 0};
  return error;
}

class ChildProgram final : public Program {
 public:
  ChildProgram(std::string python, pid_t child, int channel, const std::atomic<bool>* cancel)
      : python_(std::move(python)), child_(child), channel_(channel), cancel_(cancel) {}

  ~ChildProgram() override {
    ::close(channel_);
    // It ends when the channel does; user code that holds it up is stopped.
    for (int waited_ms = 0; waited_ms < 2000; waited_ms += 10) {
      if (gone_ || ::waitpid(child_, nullptr, WNOHANG) != 0) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }

  Result<ProgramDeclarations> declare(const PipelineSpec& spec,
                                      const std::vector<PipelineFile>& files) override {
    JsonWriter w;
    w.begin_object();
    w.key("do");
    w.value("declare");
    w.key("root");
    w.value(spec.root);
    w.key("warehouse");
    w.value(spec.warehouse);
    w.key("catalog");
    w.value(spec.defaults.catalog);
    w.key("schema");
    w.value(spec.defaults.schema);
    w.key("configuration");
    w.begin_object();
    for (const auto& [key, value] : spec.configuration) {
      w.key(key);
      w.value(value);
    }
    w.end_object();
    w.key("files");
    w.begin_array();
    for (const auto& file : files) {
      w.begin_array();
      w.value(file.path);
      w.value(file.display);
      w.end_array();
    }
    w.end_array();
    w.end_object();
    SL_ASSIGN(const Json answer, ask(w.take()));
    ProgramDeclarations out;
    std::map<std::string, int> at_place;
    if (const Json* statements = answer.get("statements")) {
      for (const auto& one : statements->items()) {
        ProgramStatement& statement = out.statements.emplace_back();
        statement.sql = text_of(one, "sql");
        statement.place = {text_of(one, "file"), number_of(one, "line"), 0};
        statement.function = text_of(one, "function");
        statement.key = fmt::format("{}:{}", statement.place.file, statement.place.line);
        if (const int before = at_place[statement.key]++; before > 0)
          statement.key += fmt::format(" ({})", before + 1);
      }
    }
    if (const Json* errors = answer.get("errors")) {
      for (const auto& error : errors->items()) out.errors.push_back(error_of(error));
    }
    if (const Json* names = answer.get("doubtful")) {
      for (const auto& name : names->items()) out.doubtful_names.push_back(name.text());
    }
    return out;
  }

  Result<std::optional<ProgramSnapshot>> next_snapshot(
      const std::string& function, const std::optional<ProgramVersion>& latest) override {
    JsonWriter w;
    w.begin_object();
    w.key("do");
    w.value("next_snapshot");
    w.key("function");
    w.value(function);
    w.key("latest");
    if (latest) {
      w.begin_object();
      w.key("type");
      w.value(latest->type);
      w.key("value");
      w.value(latest->value);
      w.end_object();
    } else {
      w.null();
    }
    w.end_object();
    SL_ASSIGN(const Json answer, ask(w.take()));
    if (const Json* error = answer.get("error"); error != nullptr && error->is_object())
      return error_of(*error);
    // A package that does not know the request says so as it does of declarations.
    if (const Json* errors = answer.get("errors"); errors != nullptr && !errors->items().empty())
      return error_of(errors->items().front());
    if (const Json* done = answer.get("done"); done != nullptr && done->as_bool().value_or(false))
      return std::optional<ProgramSnapshot>();
    ProgramSnapshot snapshot;
    snapshot.query = text_of(answer, "query");
    if (snapshot.query.empty())
      return internal_error("PYTHON_PROTOCOL",
                            "the interpreter gave neither a snapshot nor an end");
    if (const Json* version = answer.get("version"); version != nullptr && version->is_object())
      snapshot.version = ProgramVersion{text_of(*version, "type"), text_of(*version, "value")};
    return std::optional<ProgramSnapshot>(std::move(snapshot));
  }

 private:
  Result<Json> ask(std::string request) {
    request += '\n';
    for (size_t sent = 0; sent < request.size();) {
      const ssize_t count =
          ::send(channel_, request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return ended();
      sent += static_cast<size_t>(count);
    }
    for (;;) {
      if (const size_t end = unread_.find('\n'); end != std::string::npos) {
        auto answer = Json::parse(std::string_view(unread_).substr(0, end));
        unread_.erase(0, end + 1);
        if (!answer.ok()) return answer.error().with_context("the answer of the interpreter");
        answered_ = true;
        take_what_reads_need(*answer);
        return answer;
      }
      if (cancel_ != nullptr && *cancel_)
        return cancelled("CANCELED", "stopped while Python files ran");
      pollfd waiting{channel_, POLLIN, 0};
      if (::poll(&waiting, 1, 50) <= 0) continue;
      char buffer[65536];
      const ssize_t count = ::recv(channel_, buffer, sizeof buffer, 0);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return ended();
      unread_.append(buffer, static_cast<size_t>(count));
    }
  }

  // Passwords of the databases that the files read, and where DuckDB's extensions for them are.
  static void take_what_reads_need(const Json& answer) {
    if (const Json* secrets = answer.get("secrets")) {
      for (size_t i = 0; i < secrets->items().size(); ++i)
        keep_secret(secrets->names()[i], secrets->items()[i].text());
    }
    if (const Json* folders = answer.get("extensions")) {
      for (const auto& folder : folders->items()) duck::add_extension_folder(folder.text());
    }
  }

  Error ended() {
    if (cancel_ != nullptr && *cancel_)
      return cancelled("CANCELED", "stopped while Python files ran");
    int status = 0;
    if (!gone_) ::waitpid(child_, &status, 0);
    gone_ = true;
    const std::string how = WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                                                : fmt::format("exit code {}", WEXITSTATUS(status));
    if (answered_ || WIFSIGNALED(status)) {
      return invalid_argument(
          "PYTHON_FAILED",
          "Python ended while it ran code of the pipeline's .py files ({}): look "
          "whether they, or a library that they use, crash or run out of memory",
          how);
    }
    return not_found("PYTHON_FAILED",
                     "the pipeline's .py files need Python with the package strandline, and "
                     "'{} -m strandline._declare' ended early ({}): install the package for it, or "
                     "name another interpreter with the environment variable STRANDLINE_PYTHON",
                     python_, how);
  }

  std::string python_;
  pid_t child_;
  int channel_;
  const std::atomic<bool>* cancel_;
  std::string unread_;
  bool answered_ = false;  // so the package is there
  bool gone_ = false;
};

}  // namespace

Result<std::unique_ptr<Program>> Program::start(const std::atomic<bool>* cancel) {
  const char* named = std::getenv("STRANDLINE_PYTHON");
  const std::string python = named != nullptr && *named != '\0' ? named : "python3";
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return io_error("IO_ERROR", "no channel to Python: {}", std::strerror(errno));
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  // What user code prints must not get between the program's own output.
  ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], kChildChannel);
  std::vector<std::string> words = python_words(python, "strandline._declare");
  words.push_back(std::to_string(kChildChannel));
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  // Ctrl-C waits until the child can take it: while it imports, Python would print a traceback.
  sigset_t blocked;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  ::sigaddset(&blocked, SIGINT);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setsigmask(&attributes, &blocked);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  const int failed =
      ::posix_spawnp(&child, python.c_str(), &actions, &attributes, arguments.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (failed != 0) {
    ::close(ends[0]);
    return not_found("PYTHON_NOT_FOUND",
                     "the pipeline has .py files, and the interpreter '{}' cannot be started: {}; "
                     "name one with the environment variable STRANDLINE_PYTHON",
                     python, std::strerror(failed));
  }
  return std::unique_ptr<Program>(std::make_unique<ChildProgram>(python, child, ends[0], cancel));
}

}  // namespace strandline::pipeline
