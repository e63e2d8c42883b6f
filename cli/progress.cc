#include "progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "terminal.h"

namespace strandline::cli {
namespace {

constexpr auto kRedrawEvery = std::chrono::milliseconds(200);

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

std::string row_text(int64_t rows, double seconds) {
  if (rows == 0) return duration_text(seconds);
  return fmt::format("{} rows{}, {}", with_separators(rows), rate_text(rows, seconds),
                     duration_text(seconds));
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

ProgressDisplay::ProgressDisplay() : terminal_(is_terminal(STDERR_FILENO)) {
  if (terminal_) ticker_ = std::thread([this] { tick(); });
}

ProgressDisplay::~ProgressDisplay() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    erase();
  }
  stopped_.notify_all();
  if (ticker_.joinable()) ticker_.join();
}

void ProgressDisplay::show(const Progress& progress) {
  const std::lock_guard lock(mutex_);
  switch (progress.kind) {
    case Progress::Kind::kUpdateStarted:
    case Progress::Kind::kUpdateDone:
      running_.reset();
      erase();
      break;
    case Progress::Kind::kFlowStarted:
      if (!terminal_) print_err("{}: started\n", progress.flow);
      running_ = progress;
      flow_started_ = Clock::now();
      redraw();
      break;
    case Progress::Kind::kStage:
    case Progress::Kind::kRows:
      running_ = progress;
      redraw();
      break;
    case Progress::Kind::kFlowDone:
      running_.reset();
      erase();
      print_err("{}: {} ({})\n", progress.flow, progress.stage.empty() ? "done" : progress.stage,
                row_text(progress.rows, progress.elapsed_seconds));
      break;
  }
}

void ProgressDisplay::tick() {
  std::unique_lock lock(mutex_);
  while (!stopped_.wait_for(lock, kRedrawEvery, [this] { return stop_; })) redraw();
}

void ProgressDisplay::redraw() {
  if (!terminal_ || !running_) return;
  const std::chrono::duration<double> elapsed = Clock::now() - flow_started_;
  std::string line =
      fmt::format("{}: {}", running_->flow, running_->stage.empty() ? "starting" : running_->stage);
  if (running_->fraction >= 0) line += fmt::format(" {:.0f}%", running_->fraction * 100);
  line += "  " + row_text(running_->rows, elapsed.count());
  line = cut(line, terminal_width() - 1);
  const size_t width = line.size();
  print_err("\r{}{}", line, std::string(drawn_width_ > width ? drawn_width_ - width : 0, ' '));
  drawn_width_ = width;
}

// Blanks instead of an escape sequence, which NO_COLOR users need not expect.
void ProgressDisplay::erase() {
  if (drawn_width_ == 0) return;
  print_err("\r{}\r", std::string(drawn_width_, ' '));
  drawn_width_ = 0;
}

}  // namespace strandline::cli
