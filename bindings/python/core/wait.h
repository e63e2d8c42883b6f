// Long calls: they run without the GIL on a thread of their own, while the calling thread looks for
// Ctrl-C, which stops them.
#pragma once

#include <nanobind/nanobind.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include "errors.h"

namespace strandline::python {

// The calls that run. Python ends threads that still run when the program ends by unwinding them
// where they next ask for the GIL; out of a call of ours that would end the whole process with
// SIGABRT. So the program's end stops the calls of all threads, and waits until they have left.
class RunningCalls {
 public:
  // For the life of the process.
  static RunningCalls& all() {
    static auto* calls = new RunningCalls;
    return *calls;
  }

  // One call, from here to the end of its scope; the GIL is held at both.
  class Call {
   public:
    // Raises where the program has ended but for its threads.
    explicit Call(const std::function<void()>& cancel) {
      if (!all().enter(cancel, &place_))
        raise({ErrorKind::kCancelled, "CANCELED", "stopped, as the program ends", {}});
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    ~Call() {
      auto& calls = all();
      const std::lock_guard lock(calls.mutex_);
      calls.cancels_.erase(place_);
      calls.left_.notify_all();
    }

   private:
    std::list<std::function<void()>>::iterator place_;
  };

  // At the end of the program. A call that does not let itself be stopped (the other side of a
  // connection is silent) is given up after a while.
  void end() {
    if (::getpid() != process_) return;  // after a fork the threads are in the other process
    const nanobind::gil_scoped_release release;
    std::unique_lock lock(mutex_);
    ending_ = true;
    ended_by_ = std::this_thread::get_id();
    for (const auto& cancel : cancels_) cancel();
    left_.wait_for(lock, std::chrono::seconds(30), [this] { return cancels_.empty(); });
  }

 private:
  using Cancels = std::list<std::function<void()>>;

  bool enter(const std::function<void()>& cancel, Cancels::iterator* place) {
    const std::lock_guard lock(mutex_);
    if (ending_ && std::this_thread::get_id() != ended_by_) return false;
    *place = cancels_.insert(cancels_.end(), cancel);
    return true;
  }

  const pid_t process_ = ::getpid();
  std::mutex mutex_;
  std::condition_variable left_;
  Cancels cancels_;
  bool ending_ = false;
  std::thread::id ended_by_;
};

// What work() gives. On a signal whose Python handler raises, cancel() is called once; the
// handler's exception is raised when work() has ended. Neither function may touch Python without
// the GIL.
template <typename Work, typename Cancel>
auto wait_for(Work&& work, Cancel&& cancel) {
  const RunningCalls::Call call(cancel);
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
