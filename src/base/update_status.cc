#include <strandline/strandline.h>

namespace strandline {

const char* to_string(UpdateStatus status) {
  switch (status) {
    case UpdateStatus::kCompleted:
      return "COMPLETED";
    case UpdateStatus::kFailed:
      return "FAILED";
    case UpdateStatus::kInvalid:
      return "INVALID";
    case UpdateStatus::kCanceled:
      return "CANCELED";
  }
  return "FAILED";
}

}  // namespace strandline
