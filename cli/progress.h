// Shows how an update goes: one changing line on a terminal, plain lines elsewhere. On stderr.
#pragma once

#include <strandline/strandline.h>

#include <chrono>
#include <string>

namespace strandline::cli {

class ProgressDisplay {
 public:
  ProgressDisplay();
  ~ProgressDisplay();
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  void show(const Progress& progress);

 private:
  void redraw(const std::string& line);
  void erase();

  bool terminal_;
  size_t drawn_width_ = 0;
  std::chrono::steady_clock::time_point last_drawn_;
};

// "1,234,567", "12.3s", "2m05s".
std::string with_separators(int64_t number);
std::string duration_text(double seconds);

}  // namespace strandline::cli
