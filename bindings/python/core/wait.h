// Long calls: they run without the GIL on a thread of their own, while the calling thread looks for
// Ctrl-C, which stops them.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <future>
#include <utility>

namespace strandline::python {

// What work() gives. On a signal whose Python handler raises, cancel() is called once; the
// handler's exception is raised when work() has ended. Neither function may touch Python without
// the GIL.
template <typename Work, typename Cancel>
auto wait_for(Work&& work, Cancel&& cancel) {
  bool interrupted = false;
  auto result = [&] {
    const nanobind::gil_scoped_release release;
    auto running = std::async(std::launch::async, std::forward<Work>(work));
    while (running.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready) {
      if (interrupted) continue;
      const nanobind::gil_scoped_acquire acquire;
      interrupted = PyErr_CheckSignals() != 0;
      if (interrupted) cancel();
    }
    return running.get();
  }();
  if (interrupted) throw nanobind::python_error();
  return result;
}

}  // namespace strandline::python
