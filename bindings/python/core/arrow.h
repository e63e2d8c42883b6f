// The Arrow C stream interface between Python objects and the library, and Arrow arrays as Python
// values.
#pragma once

#include <nanobind/nanobind.h>
#include <strandline/arrow.h>

#include <memory>
#include <string>

namespace strandline::python {

// A capsule that owns the stream, as __arrow_c_stream__ gives it.
nanobind::object stream_capsule(std::unique_ptr<ArrowArrayStream> stream);

// The stream of an object with __arrow_c_stream__, which keeps owning the struct; capsule holds it.
// Raises TypeError for other objects.
ArrowArrayStream* stream_of(nanobind::handle object, nanobind::object* capsule);

// A schema or array that is released with this object.
template <typename T>
struct Owned : T {
  Owned() : T{} {}
  ~Owned() {
    if (this->release != nullptr) this->release(this);
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
};

// The rows of a struct array of this schema as tuples of Python values, appended to the list: int,
// float, bool, str, bytes, decimal.Decimal, datetime.date, datetime.datetime (of TIMESTAMP with
// time zone UTC, of TIMESTAMP_NTZ without), dict of structs and maps, list. Raises ValueError for a
// type or a date that Python has no value for.
void append_rows(const ArrowSchema& schema, const ArrowArray& array, nanobind::list rows);

}  // namespace strandline::python
