// What the program may print where: terminals, colours, signals.
#pragma once

#include <atomic>
#include <functional>
#include <string>

namespace strandline::cli {

// A terminal that can redraw a line: TERM=dumb is none.
bool is_terminal(int file_descriptor);
// Colours only on a terminal and without NO_COLOR.
bool may_color(int file_descriptor);

enum class Color { kRed, kYellow, kGreen, kDim };
// text in colour if the descriptor takes colours, else as it is.
std::string colored(const std::string& text, Color color, int file_descriptor);

// Set by the first SIGINT or SIGTERM; the second one ends the process.
const std::atomic<bool>& cancel_flag();
void reset_cancel_flag();
// on_cancel runs inside the signal handler: it may only do what a handler may do.
void watch_signals(void (*on_cancel)() = nullptr);

}  // namespace strandline::cli
