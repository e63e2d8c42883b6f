#include <strandline/paths.h>
#include <strandline/strandline.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "pipeline/spec.h"

namespace strandline {
namespace {

// A folder is taken for a pipeline by what lies directly in it; nothing is searched.
bool looks_like_pipeline(const std::filesystem::path& folder) {
  std::error_code failed;
  for (const char* name : {"spark-pipeline.yml", "spark-pipeline.yaml", "pipeline.yml",
                           "pipeline.yaml", "transformations"}) {
    if (std::filesystem::exists(folder / name, failed)) return true;
  }
  return false;
}

}  // namespace

Result<PipelineLocation> locate_pipeline(const std::string& given) {
  SL_ASSIGN(const std::string path, local_path(given));
  std::error_code failed;
  if (!std::filesystem::exists(path, failed)) {
    return not_found("PIPELINE_NOT_FOUND",
                     "there is no {}: name a pipeline's directory or spec file", path);
  }
  if (std::filesystem::is_directory(path, failed) && !looks_like_pipeline(path)) {
    return not_found("PIPELINE_NOT_FOUND",
                     "{} holds neither spark-pipeline.yml nor transformations/: name a pipeline's "
                     "directory or spec file",
                     path);
  }
  const auto store = storage::make_local_store();
  const auto loaded = pipeline::load_spec(*store, path, std::nullopt);
  for (const auto& error : loaded.errors) {
    // A pipeline without files yet has a name and a warehouse all the same.
    if (error.code != "PIPELINE_EMPTY") return error;
  }
  const auto& spec = loaded.spec;
  return PipelineLocation{spec.name, spec.root, spec.warehouse, spec.defaults.catalog,
                          spec.defaults.schema};
}

}  // namespace strandline
