// Shows how an update goes: one changing line on a terminal, plain lines elsewhere. On stderr.
#pragma once

#include <strandline/strandline.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace strandline::cli {

// show() is called by the thread that runs the update; the line's clock goes on by itself.
class ProgressDisplay {
 public:
  ProgressDisplay();
  ~ProgressDisplay();
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  void show(const Progress& progress);

 private:
  using Clock = std::chrono::steady_clock;

  // The callers of these hold mutex_.
  void redraw();
  void erase();
  void tick();

  const bool terminal_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  std::optional<Progress> running_;  // the flow on the line
  Clock::time_point flow_started_;
  size_t drawn_width_ = 0;
  std::thread ticker_;
};

// "1,234,567", "12.3s", "2m05s".
std::string with_separators(int64_t number);
std::string duration_text(double seconds);

}  // namespace strandline::cli
