#include "pipeline/table_pipeline.h"

#include <algorithm>
#include <utility>

#include "base/data_type.h"
#include "base/error.h"
#include "base/json.h"
#include "pipeline/context.h"

namespace strandline::pipeline {
namespace {

constexpr const char* kFile = "table.sql";
constexpr const char* kHeader = "-- Kept by Strandline, DROP TABLE removes it. ";

std::string declaration_path(const catalog::Warehouse& warehouse, const std::string& pipeline) {
  return warehouse.pipeline_directory(pipeline) + "/" + kFile;
}

// One comment line that says what the statement alone does not, then the statement.
std::string print(const TableDeclaration& table) {
  JsonWriter w;
  w.begin_object();
  const std::pair<const char*, const std::string*> members[] = {
      {"catalog", &table.name.catalog},
      {"schema", &table.name.schema},
      {"table", &table.name.name},
      {"currentCatalog", &table.defaults.catalog},
      {"currentSchema", &table.defaults.schema},
      {"directory", &table.directory}};
  for (const auto& [key, value] : members) {
    w.key(key);
    w.value(*value);
  }
  w.key("materializedView");
  w.value(table.is_materialized_view);
  w.end_object();
  return kHeader + w.take() + "\n" + table.statement + "\n";
}

Result<TableDeclaration> parse(const std::string& path, const std::string& text) {
  const auto damaged = [&path] {
    return corrupt("WAREHOUSE_CORRUPT", "'{}' does not hold the declaration of a table: restore it",
                   path);
  };
  const size_t end = text.find('\n');
  const size_t begin = text.find('{');
  if (begin == std::string::npos || end == std::string::npos || begin > end) return damaged();
  const auto json = Json::parse(text.substr(begin, end - begin));
  if (!json.ok()) return damaged();
  TableDeclaration table;
  const std::pair<const char*, std::string*> members[] = {
      {"catalog", &table.name.catalog},
      {"schema", &table.name.schema},
      {"table", &table.name.name},
      {"currentCatalog", &table.defaults.catalog},
      {"currentSchema", &table.defaults.schema},
      {"directory", &table.directory}};
  for (const auto& [key, value] : members) {
    const Json* member = json->get(key);
    if (member == nullptr || !member->is_string()) return damaged();
    *value = member->text();
  }
  const Json* view = json->get("materializedView");
  if (view == nullptr || !view->as_bool()) return damaged();
  table.is_materialized_view = *view->as_bool();
  table.statement = text.substr(end + 1);
  while (!table.statement.empty() && table.statement.back() == '\n') table.statement.pop_back();
  table.place = {path, 2, 1};
  return table;
}

Result<std::optional<TableDeclaration>> read_declaration(const catalog::Warehouse& warehouse,
                                                         const std::string& path) {
  const auto text = warehouse.store()->read(path);
  if (!text.ok()) {
    if (text.error().kind == ErrorKind::kNotFound) return std::optional<TableDeclaration>();
    return text.error();
  }
  SL_ASSIGN(auto table, parse(path, *text));
  return std::optional(std::move(table));
}

PipelineSpec spec_of(const catalog::Warehouse& warehouse, const TableDeclaration& table) {
  PipelineSpec spec;
  spec.name = table_pipeline_name(table.name);
  spec.root = table.directory;
  spec.warehouse = warehouse.root();
  spec.defaults = table.defaults;
  spec.of_one_table = true;
  // The statement stands where the user's text has it, so that places in messages are theirs.
  const auto blanks = [](int count, char blank) {
    return std::string(static_cast<size_t>(std::max(count, 0)), blank);
  };
  std::string text = blanks(table.place.line - 1, '\n') + blanks(table.place.column - 1, ' ');
  spec.files.push_back({declaration_path(warehouse, spec.name), table.place.file,
                        std::move(text) + table.statement});
  return spec;
}

// A statement that differs only in words that say what to do with an earlier one.
bool same_table(const TableDeclaration& a, const TableDeclaration& b) {
  return a.statement == b.statement && a.directory == b.directory &&
         same_name(a.defaults.catalog, b.defaults.catalog) &&
         same_name(a.defaults.schema, b.defaults.schema);
}

Status remove_pipeline(const catalog::Warehouse& warehouse, const std::string& pipeline) {
  const std::string folder = warehouse.pipeline_directory(pipeline);
  // Progress goes before the declaration: cut short, nothing is left for another table of the name.
  SL_TRY(warehouse.store()->remove_tree(folder + "/checkpoints"));
  SL_TRY(warehouse.store()->remove(folder + "/" + kFile));
  return warehouse.store()->remove_tree(folder);
}

// Of a drop that was cut short the log is gone, and with it the table; the state may still be
// there.
Status drop_table(catalog::Warehouse& warehouse, const catalog::QualifiedName& name) {
  SL_ASSIGN(const bool exists, warehouse.table_exists(name));
  SL_ASSIGN(const bool external, warehouse.is_external(name));
  if (exists || external) return warehouse.drop_table(name);
  SL_ASSIGN(const auto table, warehouse.table(name));
  return warehouse.store()->remove_tree(table.path());
}

// What a CREATE left that came to nothing; had_table: the table was there before.
Status undo_create(catalog::Warehouse& warehouse, const catalog::QualifiedName& name,
                   bool had_table) {
  const std::string pipeline = table_pipeline_name(name);
  if (!place_of_pipeline(warehouse, pipeline).empty()) return {};  // not ours
  SL_ASSIGN(const auto table, warehouse.table(name));
  SL_ASSIGN(const bool exists, table.exists());
  if (exists) {
    SL_ASSIGN(const auto snapshot, table.snapshot());
    const bool owned = snapshot->property(kPipelineNameProperty) == pipeline;
    if (owned && had_table) return {};  // taken over: it is this pipeline's from now on
    if (!owned) return remove_pipeline(warehouse, pipeline);
  }
  SL_TRY(drop_table(warehouse, name));
  return remove_pipeline(warehouse, pipeline);
}

bool has_committed(const UpdateReport& report) {
  return std::any_of(report.flows.begin(), report.flows.end(), [](const FlowReport& flow) {
    const auto batches = flow.metrics.find("num_batches");
    return batches != flow.metrics.end() && batches->second > 0;
  });
}

Error exists_already(const TableDeclaration& table) {
  const std::string shown = table.name.to_string();
  return already_exists(
      "TABLE_OR_VIEW_ALREADY_EXISTS",
      "the {} {} exists: REFRESH {} {} loads what is new, CREATE OR REFRESH changes its "
      "declaration",
      kind_of(table), shown, table.is_materialized_view ? "MATERIALIZED VIEW" : "STREAMING TABLE",
      shown);
}

}  // namespace

const char* kind_of(const TableDeclaration& table) {
  return table.is_materialized_view ? "materialized view" : "streaming table";
}

std::string table_pipeline_name(const catalog::QualifiedName& name) {
  return catalog::QualifiedName{fold_name(name.catalog), fold_name(name.schema),
                                fold_name(name.name)}
      .to_string();
}

Result<std::optional<TableDeclaration>> find_declaration(const catalog::Warehouse& warehouse,
                                                         const catalog::QualifiedName& name) {
  return declaration_of_pipeline(warehouse, table_pipeline_name(name));
}

Result<std::optional<TableDeclaration>> declaration_of_pipeline(const catalog::Warehouse& warehouse,
                                                                const std::string& pipeline) {
  return read_declaration(warehouse, declaration_path(warehouse, pipeline));
}

Result<std::vector<TableDeclaration>> declarations_in(const catalog::Warehouse& warehouse,
                                                      const std::string& catalog,
                                                      const std::string& schema) {
  std::vector<TableDeclaration> found;
  const std::string any = warehouse.pipeline_directory("any");
  const auto folders = warehouse.store()->list(any.substr(0, any.rfind('/')));
  if (!folders.ok()) {
    if (folders.error().kind == ErrorKind::kNotFound) return found;
    return folders.error();
  }
  for (const auto& folder : *folders) {
    if (!folder.is_directory) continue;
    SL_ASSIGN(auto table, read_declaration(warehouse, folder.path + "/" + kFile));
    if (table && same_name(table->name.catalog, catalog) && same_name(table->name.schema, schema))
      found.push_back(std::move(*table));
  }
  return found;
}

std::string place_of_pipeline(const catalog::Warehouse& warehouse, const std::string& pipeline) {
  const auto text =
      warehouse.store()->read(warehouse.pipeline_directory(pipeline) + "/pipeline.json");
  if (!text.ok()) return "";
  const auto json = Json::parse(*text);
  const Json* place = json.ok() ? json->get("place") : nullptr;
  return place != nullptr && place->is_string() ? place->text() : "";
}

Result<std::optional<UpdateReport>> create_table_pipeline(catalog::Warehouse& warehouse,
                                                          const TableDeclaration& table,
                                                          const CreateMode& mode,
                                                          const Dependencies& dependencies,
                                                          const ProgressListener& listener,
                                                          const std::atomic<bool>* cancel) {
  using Report = std::optional<UpdateReport>;
  const std::string shown = table.name.to_string();
  SL_ASSIGN(const auto view, warehouse.view(table.name));
  if (view) {
    if (mode.if_not_exists) return Report();
    return already_exists("TABLE_OR_VIEW_ALREADY_EXISTS",
                          "{} is a view: drop it, or choose another name", shown);
  }
  SL_ASSIGN(const bool has_schema, warehouse.schema_exists(table.name.catalog, table.name.schema));
  if (!has_schema) {
    return not_found("SCHEMA_NOT_FOUND", "there is no schema {}.{}: create it with CREATE SCHEMA",
                     table.name.catalog, table.name.schema);
  }
  const std::string pipeline = table_pipeline_name(table.name);
  // Whether the statement is to do nothing, or the error that says why it cannot do anything.
  const auto stops = [&](const std::optional<TableDeclaration>& earlier,
                         bool exists) -> Result<bool> {
    if (!earlier && !exists) return false;
    if (mode.if_not_exists) return true;
    if (!earlier) {
      if (mode.or_refresh) return false;
      return already_exists("TABLE_OR_VIEW_ALREADY_EXISTS",
                            "{} exists: drop it, or choose another name", shown);
    }
    if (earlier->is_materialized_view != table.is_materialized_view) {
      return already_exists("TABLE_OR_VIEW_ALREADY_EXISTS",
                            "{} is a {}: drop it, or choose another name", shown,
                            kind_of(*earlier));
    }
    if (!mode.or_refresh) return exists_already(*earlier);
    return false;
  };
  const auto look = [&]() -> Result<bool> {
    SL_ASSIGN(const auto earlier, find_declaration(warehouse, table.name));
    SL_ASSIGN(const bool exists, warehouse.table_exists(table.name));
    return stops(earlier, exists);
  };
  SL_ASSIGN(const bool done, look());
  if (done) return Report();

  TableUpdate update;
  SL_ASSIGN(update.lock, lock_pipeline(warehouse, pipeline));
  // Again, now that no one else can change it.
  SL_ASSIGN(const bool done_meanwhile, look());
  if (done_meanwhile) return Report();
  SL_ASSIGN(const auto earlier, find_declaration(warehouse, table.name));
  SL_ASSIGN(const bool existed, warehouse.table_exists(table.name));
  update.spec = spec_of(warehouse, table);
  bool declared = false;
  update.on_checked = [&](bool has_unfinished) -> Status {
    if (has_unfinished && earlier && !same_table(*earlier, table)) {
      return invalid_data(
          "UNFINISHED_BATCH",
          "an update of {} was interrupted half-way: finish it by REFRESH {} {} "
          "before the declaration changes",
          shown, earlier->is_materialized_view ? "MATERIALIZED VIEW" : "STREAMING TABLE", shown);
    }
    SL_TRY(warehouse.store()->put(declaration_path(warehouse, pipeline), print(table)));
    declared = true;
    return {};
  };
  bool has_unfinished = false;
  update.on_ran = [&](bool unfinished) { has_unfinished = unfinished; };
  Dependencies own = dependencies;
  own.table = &update;
  UpdateReport report = run_update({}, own, listener, cancel);
  if (report.status == UpdateStatus::kCompleted) return Report(std::move(report));
  if (earlier) {
    // What came to nothing leaves the earlier declaration.
    const bool undone = declared && report.status != UpdateStatus::kCanceled && !has_unfinished &&
                        !has_committed(report);
    if (undone) {
      auto kept = warehouse.store()->put(declaration_path(warehouse, pipeline), print(*earlier));
      if (!kept.ok()) report.warnings.push_back(std::move(kept).error());
    }
    return Report(std::move(report));
  }
  const bool keeps =
      declared && (report.status == UpdateStatus::kCanceled || has_committed(report));
  if (keeps) return Report(std::move(report));
  if (const auto undone = undo_create(warehouse, table.name, existed); !undone.ok()) {
    report.warnings.push_back(
        undone.error().with_context(fmt::format("what was made of {} is still there", shown)));
  }
  return Report(std::move(report));
}

Result<UpdateReport> refresh_table_pipeline(catalog::Warehouse& warehouse,
                                            const catalog::QualifiedName& name,
                                            const RefreshMode& mode,
                                            const Dependencies& dependencies,
                                            const ProgressListener& listener,
                                            const std::atomic<bool>* cancel) {
  const auto gone = [&name] {
    return not_found("TABLE_OR_VIEW_NOT_FOUND",
                     "there is no streaming table or materialized view {}", name.to_string());
  };
  const std::string pipeline = table_pipeline_name(name);
  SL_ASSIGN(const auto known, find_declaration(warehouse, name));
  if (!known) return gone();
  TableUpdate update;
  SL_ASSIGN(update.lock, lock_pipeline(warehouse, pipeline));
  // Again, now that no one else can change it.
  SL_ASSIGN(const auto table, find_declaration(warehouse, name));
  if (!table) return gone();
  update.spec = spec_of(warehouse, *table);
  update.on_checked = [](bool) { return Status(); };
  Dependencies own = dependencies;
  own.table = &update;
  RunOptions options;
  if (mode.full) {
    options.refresh = RefreshKind::kFullSelected;
    options.tables = {table->name.to_string()};
  }
  options.allow_missing_sources = mode.allow_missing_sources;
  return run_update(options, own, listener, cancel);
}

Status drop_table_pipeline(catalog::Warehouse& warehouse, const catalog::QualifiedName& name) {
  const std::string pipeline = table_pipeline_name(name);
  SL_ASSIGN(const auto lock, lock_pipeline(warehouse, pipeline));
  SL_TRY(drop_table(warehouse, name));
  return remove_pipeline(warehouse, pipeline);
}

}  // namespace strandline::pipeline
