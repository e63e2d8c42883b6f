// What the Delta layer asks of a Parquet engine; implemented in duck (checkpoint files only).
#pragma once

#include <strandline/result.h>

#include <string>
#include <vector>

#include "delta/actions.h"

namespace strandline::delta {

class ParquetPort {
 public:
  virtual ~ParquetPort() = default;

  // All actions of a classic or V2 checkpoint part or sidecar, in any order. Stats that exist only
  // as stats_parsed come back as JSON text in AddFile::stats. sidecars receives the sidecar file
  // names a V2 manifest lists. Errors: kCorrupt naming the file, kIo.
  virtual Result<std::vector<Action>> read_checkpoint(const std::string& path,
                                                      std::vector<std::string>* sidecars) = 0;
  // Writes a classic V1 checkpoint (delta-protocol.md 10.5) to path (a new, hidden name).
  virtual Status write_checkpoint(const std::string& path, const std::vector<Action>& actions) = 0;
};

}  // namespace strandline::delta
