// Views of a pipeline as the warehouse's other sessions read them.
#pragma once

#include <strandline/result.h>

#include "pipeline/context.h"

namespace strandline::pipeline {

// Defines those over tables only in the warehouse, where they differ from what is there.
// Errors: kIo, kCorrupt, kAlreadyExists.
Status publish_views(const Context& context);

}  // namespace strandline::pipeline
