#include "progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "terminal.h"

namespace strandline::cli {
namespace {

constexpr auto kRedrawEvery = std::chrono::milliseconds(100);

size_t terminal_width() {
  struct winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20) return size.ws_col;
  return 80;
}

// text cut to a number of code points; a wrapped line could not be redrawn.
std::string cut(const std::string& text, size_t width) {
  size_t points = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) == 0x80) continue;
    if (points++ == width) return text.substr(0, i);
  }
  return text;
}

std::string rate_text(int64_t rows, double seconds) {
  if (seconds < 0.001 || rows == 0) return "";
  return fmt::format(", {} rows/s",
                     with_separators(std::llround(static_cast<double>(rows) / seconds)));
}

std::string row_text(const Progress& progress) {
  return fmt::format("{} rows{}, {}", with_separators(progress.rows),
                     rate_text(progress.rows, progress.elapsed_seconds),
                     duration_text(progress.elapsed_seconds));
}

}  // namespace

std::string with_separators(int64_t number) {
  std::string digits = std::to_string(number);
  for (size_t end = digits.size(); end > 3 && digits[end - 4] != '-'; end -= 3) {
    digits.insert(end - 3, 1, ',');
  }
  return digits;
}

std::string duration_text(double seconds) {
  if (seconds < 60) return fmt::format("{:.1f}s", seconds);
  const auto whole = static_cast<int64_t>(seconds);
  return fmt::format("{}m{:02}s", whole / 60, whole % 60);
}

ProgressDisplay::ProgressDisplay() : terminal_(is_terminal(STDERR_FILENO)) {}

ProgressDisplay::~ProgressDisplay() { erase(); }

void ProgressDisplay::show(const Progress& progress) {
  switch (progress.kind) {
    case Progress::Kind::kUpdateStarted:
    case Progress::Kind::kUpdateDone:
      erase();
      break;
    case Progress::Kind::kFlowStarted:
      if (terminal_) {
        redraw(fmt::format("{}: starting", progress.flow));
      } else {
        print_err("{}: started\n", progress.flow);
      }
      break;
    case Progress::Kind::kFlowDone:
      erase();
      print_err("{}: {} ({})\n", progress.flow, progress.stage.empty() ? "done" : progress.stage,
                row_text(progress));
      break;
    case Progress::Kind::kStage:
    case Progress::Kind::kRows: {
      if (!terminal_) break;
      const auto now = std::chrono::steady_clock::now();
      if (now - last_drawn_ < kRedrawEvery) break;
      last_drawn_ = now;
      const std::string percent =
          progress.fraction >= 0 ? fmt::format(" {:.0f}%", progress.fraction * 100) : "";
      redraw(
          fmt::format("{}: {}{}  {}", progress.flow, progress.stage, percent, row_text(progress)));
      break;
    }
  }
}

void ProgressDisplay::redraw(const std::string& line) {
  const std::string shown = cut(line, terminal_width() - 1);
  const size_t width = shown.size();
  print_err("\r{}{}", shown, std::string(drawn_width_ > width ? drawn_width_ - width : 0, ' '));
  drawn_width_ = width;
}

// Blanks instead of an escape sequence, which NO_COLOR users need not expect.
void ProgressDisplay::erase() {
  if (!terminal_ || drawn_width_ == 0) return;
  print_err("\r{}\r", std::string(drawn_width_, ' '));
  drawn_width_ = 0;
}

}  // namespace strandline::cli
