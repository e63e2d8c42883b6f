#include "errors.h"

#include <nanobind/stl/string.h>
#include <strandline/jdbc.h>

namespace nb = nanobind;

namespace strandline::python {

nb::object exception_of(const Error& error) {
  const SourcePlace place = error.place.value_or(SourcePlace{});
  return nb::module_::import_("strandline.errors")
      .attr("_make")(to_string(error.kind), error.code, without_secrets(error.message), place.file,
                     place.line, place.column);
}

void raise(const Error& error) {
  const nb::object exception = exception_of(error);
  PyErr_SetObject(exception.type().ptr(), exception.ptr());
  throw nb::python_error();
}

}  // namespace strandline::python
