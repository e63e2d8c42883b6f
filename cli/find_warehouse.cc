#include <filesystem>

#include "commands.h"

namespace strandline::cli {

Status find_warehouse(SessionOptions& options) {
  auto pipeline = locate_pipeline(".");
  if (pipeline.ok()) {
    options.warehouse = pipeline->warehouse;
    options.catalog = pipeline->catalog;
    options.schema = pipeline->schema;
    return {};
  }
  if (pipeline.error().kind != ErrorKind::kNotFound) return std::move(pipeline).error();
  if (std::filesystem::is_directory("warehouse")) options.warehouse = "warehouse";
  return {};
}

}  // namespace strandline::cli
