// Actions as JSON lines: the commit files and the JSON manifests of V2 checkpoints.
#pragma once

#include <strandline/result.h>

#include <string>
#include <vector>

#include "delta/actions.h"

namespace strandline::delta {

// The known actions of a text of JSON lines, in order; unknown actions and fields are skipped.
// sidecars, if wanted, receives the sidecar paths of a V2 manifest. Errors: kCorrupt naming file
// and line, kUnsupported for another data format than Parquet.
Result<std::vector<Action>> parse_actions(std::string text, const std::string& file,
                                          std::vector<std::string>* sidecars = nullptr);

// One line without its end.
std::string print_action(const Action& action);

}  // namespace strandline::delta
