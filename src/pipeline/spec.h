// A pipeline's folder and spec file: what it is called, which files it has, where its tables go.
// The spec file is the one of open-source Spark's declarative pipelines (architecture.md, decision
// 8).
#pragma once

#include <strandline/result.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "catalog/warehouse.h"
#include "storage/store.h"

namespace strandline::pipeline {

struct PipelineFile {
  std::string path;     // absolute
  std::string display;  // as messages name it: below the folder as the user wrote it
  // The text, where it is not what the file holds.
  std::optional<std::string> text = {};

  bool is_python() const { return path.size() > 3 && path.compare(path.size() - 3, 3, ".py") == 0; }
};

struct PipelineSpec {
  std::string name;
  std::string root;       // absolute folder; relative paths of read_files start here
  std::string warehouse;  // absolute folder
  catalog::Defaults defaults;
  std::map<std::string, std::string> configuration;
  std::vector<PipelineFile> files;  // .sql and .py, sorted by path
  // A table that is declared on its own (table_pipeline.h): the one dataset.
  bool of_one_table = false;
};

// What a place on disk holds. With errors the spec is as far as it could be read.
struct LoadedSpec {
  PipelineSpec spec;
  std::vector<Error> errors;
};

// path: a folder, or a spec file. A folder's own spec file is spark-pipeline.yml,
// spark-pipeline.yaml, pipeline.yml or pipeline.yaml. Without one: transformations/ if there is
// such a folder, else the whole folder; explorations/ never. warehouse overrides the spec's
// storage.
LoadedSpec load_spec(storage::Store& store, const std::string& path,
                     const std::optional<std::string>& warehouse);

}  // namespace strandline::pipeline
