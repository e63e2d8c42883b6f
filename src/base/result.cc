#include <strandline/result.h>

namespace strandline {

const char* to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalidArgument:
      return "invalid_argument";
    case ErrorKind::kInvalidData:
      return "invalid_data";
    case ErrorKind::kNotFound:
      return "not_found";
    case ErrorKind::kAlreadyExists:
      return "already_exists";
    case ErrorKind::kUnsupported:
      return "unsupported";
    case ErrorKind::kCorrupt:
      return "corrupt";
    case ErrorKind::kConflict:
      return "conflict";
    case ErrorKind::kIo:
      return "io";
    case ErrorKind::kBusy:
      return "busy";
    case ErrorKind::kCancelled:
      return "cancelled";
    case ErrorKind::kInternal:
      return "internal";
  }
  return "internal";
}

Error Error::with_context(const std::string& context) const {
  return Error{kind, code, context + ": " + message, place};
}

}  // namespace strandline
