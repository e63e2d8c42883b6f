// What the program may print where: terminals, colours, signals.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <utility>

namespace strandline::cli {

// A terminal that can redraw a line: TERM=dumb is none.
bool is_terminal(int file_descriptor);
// Colours only on a terminal and without NO_COLOR.
bool may_color(int file_descriptor);

enum class Color { kRed, kYellow, kGreen, kDim };
// text in colour if the descriptor takes colours, else as it is.
std::string colored(const std::string& text, Color color, int file_descriptor);

// Opens /dev/null for standard streams that are closed: a data file opened later must not get their
// number and receive messages.
void open_standard_streams();

// Formatted text on stdout or stderr, flushed. A reader that went away or a full disk is no reason
// to stop: print_out says false, print_err says nothing.
bool write_text(std::FILE* file, const std::string& text);
template <typename... Args>
bool print_out(fmt::format_string<Args...> format, Args&&... args) {
  return write_text(stdout, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void print_err(fmt::format_string<Args...> format, Args&&... args) {
  write_text(stderr, fmt::format(format, std::forward<Args>(args)...));
}

// A write beyond the limit of file sizes is an error like any other, and no end of the process.
void ignore_file_size_signal();

// Set by the first SIGINT or SIGTERM; the second one ends the process.
const std::atomic<bool>& cancel_flag();
void reset_cancel_flag();
// on_cancel runs inside the signal handler: it may only do what a handler may do.
void watch_signals(void (*on_cancel)() = nullptr);

}  // namespace strandline::cli
