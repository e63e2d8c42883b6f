#include "engine/context.h"

#include <strandline/suggest.h>

#include <filesystem>

#include "base/error.h"
#include "pipeline/context.h"
#include "pipeline/table_pipeline.h"
#include "strandline/paths.h"

namespace strandline::engine {

Result<catalog::Warehouse*> Context::needs_warehouse() const {
  if (warehouse == nullptr) {
    return invalid_argument(
        "WAREHOUSE_NOT_GIVEN",
        "there is no warehouse here: name one with --warehouse DIR, or start in "
        "the directory of a pipeline");
  }
  return warehouse;
}

namespace {}  // namespace

Result<std::string> Context::absolute_path(const std::string& path) const {
  SL_ASSIGN(const std::filesystem::path given, local_path(path));
  return (given.is_absolute() ? given : std::filesystem::path(directory) / given)
      .lexically_normal()
      .string();
}

Result<sql::TableName> Context::absolute_name(sql::TableName name) const {
  if (name.is_path && name.parts.size() == 1 && !name.parts[0].empty()) {
    SL_ASSIGN(name.parts[0], absolute_path(name.parts[0]));
  }
  return name;
}

Result<delta::Table> Context::table_at_path(const sql::TableName& name) const {
  if (name.parts.size() != 1 || name.parts[0].empty()) {
    return invalid_argument("INVALID_NAME", "{} names no path", sql::to_string(name));
  }
  SL_ASSIGN(std::string path, absolute_path(name.parts[0]));
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return delta::Table(store, parquet, std::move(path));
}

namespace {

// What lies in a folder where a table's log is missing; empty where nothing points to a table.
std::string lost_log(storage::Store& store, const std::string& path) {
  const auto files = store.list(path);
  if (!files.ok()) return "";
  for (const auto& file : *files) {
    const auto name = file.path.substr(file.path.rfind('/') + 1);
    // Folders of partitions are called column=value.
    const bool is_trace = file.is_directory
                              ? name == "_delta_log" || name.find('=') != std::string::npos
                              : name.ends_with(".parquet");
    if (!is_trace) continue;
    return fmt::format(
        ", but there is {}: if this was a table, its log is gone; restore {}/_delta_log, or read "
        "Parquet files with read_files",
        file.path, path);
  }
  return "";
}

}  // namespace

Error table_missing_at(storage::Store& store, const std::string& path, const SourcePlace& place) {
  auto error = not_found("DELTA_TABLE_NOT_FOUND", "there is no Delta table at {}{}", path,
                         lost_log(store, path));
  if (place.line > 0) error.place = place;
  return error;
}

Error table_missing(const catalog::Warehouse& warehouse, const catalog::QualifiedName& name,
                    const SourcePlace& place) {
  std::string hint;
  std::string lost;
  if (const auto handle = warehouse.table(name); handle.ok()) {
    lost = lost_log(*warehouse.store(), handle->path());
  }
  auto known = warehouse.schema_exists(name.catalog, name.schema);
  const auto declared = pipeline::find_declaration(warehouse, name);
  if (!lost.empty()) {
    hint = lost;
  } else if (declared.ok() && *declared) {
    hint = fmt::format(
        " yet: it is declared, and made when its source first has something; REFRESH {} {} looks "
        "again",
        (*declared)->is_materialized_view ? "MATERIALIZED VIEW" : "STREAMING TABLE",
        name.to_string());
  } else if (known.ok() && !*known) {
    hint = fmt::format("; there is no schema {}.{} either", name.catalog, name.schema);
  } else if (auto entries = warehouse.tables(name.catalog, name.schema); entries.ok()) {
    std::vector<std::string> names;
    for (const auto& entry : *entries) names.push_back(entry.name.name);
    if (const auto near = nearest_name(name.name, names)) {
      const catalog::QualifiedName meant{name.catalog, name.schema, *near};
      hint = fmt::format(": did you mean {}?", meant.to_string());
    } else {
      hint = fmt::format("; SHOW TABLES IN {}.{} lists what is there", name.catalog, name.schema);
    }
  }
  auto error = not_found("TABLE_OR_VIEW_NOT_FOUND", "there is no table or view {}{}",
                         name.to_string(), hint);
  if (place.line > 0) error.place = place;
  return error;
}

Result<FoundTable> find_table(const Context& context, const sql::TableName& name) {
  SL_ASSIGN(const auto full, context.absolute_name(name));
  if (full.is_path) {
    SL_ASSIGN(auto table, context.table_at_path(full));
    SL_ASSIGN(const bool exists, table.exists());
    if (!exists) return table_missing_at(*context.store, table.path(), name.place);
    SL_ASSIGN(auto snapshot, table.snapshot());
    return FoundTable{std::move(table), std::move(snapshot), sql::to_string(full)};
  }
  SL_ASSIGN(auto* warehouse, context.needs_warehouse());
  SL_ASSIGN(const auto qualified, warehouse->qualify(full, context.defaults));
  SL_ASSIGN(const auto view, warehouse->view(qualified));
  if (view) {
    auto error = invalid_argument("EXPECT_TABLE_NOT_VIEW", "{} is a view: name a table",
                                  qualified.to_string());
    error.place = name.place;
    return error;
  }
  SL_ASSIGN(auto table, warehouse->table(qualified));
  SL_ASSIGN(const bool exists, table.exists());
  if (!exists) return table_missing(*warehouse, qualified, name.place);
  SL_ASSIGN(auto snapshot, table.snapshot());
  return FoundTable{std::move(table), std::move(snapshot), qualified.to_string()};
}

bool belongs_to_pipeline(const delta::Snapshot& snapshot) {
  return snapshot.property(pipeline::kPipelineIdProperty).has_value();
}

}  // namespace strandline::engine
