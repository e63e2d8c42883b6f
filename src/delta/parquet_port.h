// What the Delta layer asks of a Parquet engine; implemented in duck (checkpoint files only).
#pragma once

#include <strandline/result.h>

#include <functional>
#include <optional>
#include <string>

#include "base/data_type.h"
#include "delta/actions.h"

namespace strandline::delta {

// Takes the rows of a checkpoint as they are read, in any order.
class CheckpointVisitor {
 public:
  virtual ~CheckpointVisitor() = default;

  // Files that are not wanted are not read.
  virtual bool wants_adds() const = 0;
  virtual bool wants_removes() const = 0;
  // Before the actions of a file of so many rows.
  virtual void expect(size_t rows) = 0;
  virtual Status take(Action action) = 0;
  // The path that a V2 checkpoint gives a file of its actions, as in the log.
  virtual Status take_sidecar(std::string path) = 0;
};

// What a checkpoint file is to hold (delta-protocol.md 10.5).
struct CheckpointContent {
  using Take = std::function<Status(const Action&)>;
  // Hands over each action once and stops at an error of `take`.
  std::function<Status(const Take& take)> each;
  bool only_files = false;  // columns for adds and removes alone: a sidecar
  bool json_stats = true;   // add.stats
  // Columns of add.stats_parsed and add.partitionValues_parsed, if wanted; physical names.
  std::optional<Schema> parsed_stats;
  std::optional<Schema> parsed_partition_values;
};

class ParquetPort {
 public:
  virtual ~ParquetPort() = default;

  // A classic or V2 checkpoint, part of one, or sidecar. Stats that exist only as stats_parsed come
  // as JSON text in AddFile::stats. Errors: kCorrupt naming the file, kIo, the visitor's.
  virtual Status read_checkpoint(const std::string& path, CheckpointVisitor* visitor) = 0;
  // Writes a Parquet file of actions to path (a new, hidden name).
  virtual Status write_checkpoint(const std::string& path, const CheckpointContent& content) = 0;
};

}  // namespace strandline::delta
