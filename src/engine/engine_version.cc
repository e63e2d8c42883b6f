#include <strandline/engine_version.h>

#include "duck/extensions.h"

namespace strandline {

const char* engine_version() { return duck::library_version(); }

}  // namespace strandline
