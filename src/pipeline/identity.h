// What a warehouse knows a pipeline by: its name, its id and where it lies, in pipeline.json of the
// pipeline's folder.
#pragma once

#include <strandline/result.h>

#include <string>

#include "pipeline/context.h"

namespace strandline::pipeline {

struct Identity {
  std::string id;               // empty before the first update
  bool place_is_known = false;  // the file says where the pipeline lies now
};

// Errors: PIPELINE_NAME_TAKEN (kAlreadyExists) when the name stands for another pipeline of the
// warehouse; CHECKPOINT_CORRUPT (kCorrupt); kIo.
Result<Identity> read_identity(const Context& context);

// Gives a new pipeline its id and notes its place, given as the user named it. Returns the id.
Result<std::string> keep_identity(const Context& context, const Identity& identity,
                                  const std::string& place);

}  // namespace strandline::pipeline
