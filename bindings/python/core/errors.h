// Errors of the library as Python exceptions: one class per kind (strandline/errors.py).
#pragma once

#include <nanobind/nanobind.h>
#include <strandline/result.h>

#include <utility>

namespace strandline::python {

// The exception object that stands for the error.
nanobind::object exception_of(const Error& error);
[[noreturn]] void raise(const Error& error);

inline void check(const Status& status) {
  if (!status.ok()) raise(status.error());
}
template <typename T>
T check(Result<T> result) {
  if (!result.ok()) raise(result.error());
  return std::move(result).value();
}

}  // namespace strandline::python
