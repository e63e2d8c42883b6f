// Makers of errors, one per kind, with fmt formatting: invalid_argument("CODE", "... {}", x).
#pragma once

#include <fmt/format.h>
#include <strandline/result.h>

namespace strandline {

#define SL_ERROR_MAKER(name, kind_value)                                                    \
  template <typename... Args>                                                               \
  Error name(std::string code, fmt::format_string<Args...> format, Args&&... args) {        \
    return Error{                                                                           \
        kind_value, std::move(code), fmt::format(format, std::forward<Args>(args)...), {}}; \
  }

SL_ERROR_MAKER(invalid_argument, ErrorKind::kInvalidArgument)
SL_ERROR_MAKER(invalid_data, ErrorKind::kInvalidData)
SL_ERROR_MAKER(not_found, ErrorKind::kNotFound)
SL_ERROR_MAKER(already_exists, ErrorKind::kAlreadyExists)
SL_ERROR_MAKER(unsupported, ErrorKind::kUnsupported)
SL_ERROR_MAKER(corrupt, ErrorKind::kCorrupt)
SL_ERROR_MAKER(conflict, ErrorKind::kConflict)
SL_ERROR_MAKER(io_error, ErrorKind::kIo)
SL_ERROR_MAKER(busy, ErrorKind::kBusy)
SL_ERROR_MAKER(cancelled, ErrorKind::kCancelled)
SL_ERROR_MAKER(internal_error, ErrorKind::kInternal)

#undef SL_ERROR_MAKER

}  // namespace strandline
