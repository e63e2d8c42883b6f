#include "support/paths.h"

#include <cstdlib>

namespace strandline::test {

std::filesystem::path source_directory() { return STRANDLINE_SOURCE_DIR; }

std::filesystem::path shared_directory() {
  const char* const shared = std::getenv("STRANDLINE_SHARED");
  return shared != nullptr ? std::filesystem::path(shared) : source_directory() / ".." / "shared";
}

}  // namespace strandline::test
