#include "terminal.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>

namespace strandline::cli {
namespace {

std::atomic<bool> cancel_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free);
void (*cancel_hook)() = nullptr;

void on_signal(int signal_number) {
  if (cancel_requested.exchange(true)) {
    // The clean stop is under way and the user does not want to wait for it.
    std::signal(signal_number, SIG_DFL);
    std::raise(signal_number);
    return;
  }
  if (cancel_hook != nullptr) cancel_hook();
}

}  // namespace

bool is_terminal(int file_descriptor) {
  const char* term = std::getenv("TERM");
  return isatty(file_descriptor) == 1 && (term == nullptr || std::strcmp(term, "dumb") != 0);
}

bool may_color(int file_descriptor) {
  const char* refused = std::getenv("NO_COLOR");
  return is_terminal(file_descriptor) && (refused == nullptr || *refused == '\0');
}

std::string colored(const std::string& text, Color color, int file_descriptor) {
  if (!may_color(file_descriptor)) return text;
  const char* code = "0";
  switch (color) {
    case Color::kRed:
      code = "31";
      break;
    case Color::kYellow:
      code = "33";
      break;
    case Color::kGreen:
      code = "32";
      break;
    case Color::kDim:
      code = "2";
      break;
  }
  return std::string("\033[") + code + "m" + text + "\033[0m";
}

void open_standard_streams() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // open() gives the lowest free number, which is this one.
    if (fcntl(number, F_GETFD) == -1 && open("/dev/null", O_RDWR) != number) std::abort();
  }
}

void ignore_file_size_signal() { std::signal(SIGXFSZ, SIG_IGN); }

bool write_text(std::FILE* file, const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  return std::fflush(file) == 0 && written;
}

const std::atomic<bool>& cancel_flag() { return cancel_requested; }
void reset_cancel_flag() { cancel_requested = false; }

void watch_signals(void (*on_cancel)()) {
  cancel_hook = on_cancel;
  struct sigaction action = {};
  action.sa_handler = on_signal;
  // Without SA_RESTART a prompt that waits for input wakes up.
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace strandline::cli
