#include "engine/streaming_tables.h"

#include "base/error.h"
#include "engine/names.h"
#include "pipeline/context.h"
#include "sql/duckdb_printer.h"
#include "sql/query.h"

namespace strandline::engine {
namespace {

constexpr const char* kAllowMissingSources = "strandline.allowMissingSources";

pipeline::Dependencies dependencies(const Context& context) {
  pipeline::Dependencies out;
  out.store = context.store;
  out.database = context.database;
  return out;
}

// Tells the context; the statement fails with the first error.
Status finish(const Context& context, const UpdateReport& report) {
  if (context.on_update) context.on_update(report);
  return report.errors.empty() ? Status() : Status(report.errors.front());
}

// What lives no longer than the session cannot be the source of a table that does.
Status check_sources(const Context& context, const sql::Query& query) {
  for (const auto& use : sql::table_uses(query)) {
    if (!use.function.empty() || use.name.is_path || use.name.parts.size() != 1) continue;
    const auto name = fold_name(use.name.parts[0]);
    const bool view = context.temporary_views.contains(name);
    if (!view && !context.streams.contains(name)) continue;
    return at(invalid_argument("INVALID_TEMP_OBJ_REFERENCE",
                               "{} is {} of this session, which a later REFRESH could not read: "
                               "use a table or a view of the warehouse",
                               sql::to_string(use.name), view ? "a temporary view" : "a stream"),
              use.place);
  }
  return {};
}

Status create(const Context& context, pipeline::TableDeclaration table, const sql::TableName& name,
              const pipeline::CreateMode& mode, const sql::Statement& statement) {
  SL_ASSIGN(auto* warehouse, context.needs_warehouse());
  SL_ASSIGN(table.name, warehouse->qualify(name, context.defaults));
  table.statement = statement.text;
  table.place = statement.place;
  table.defaults = context.defaults;
  table.directory = context.directory;
  while (table.directory.size() > 1 && table.directory.back() == '/') table.directory.pop_back();
  auto report = pipeline::create_table_pipeline(*warehouse, table, mode, dependencies(context),
                                                context.on_progress, context.cancel);
  if (!report.ok()) return at(std::move(report).error(), name.place);
  return *report ? finish(context, **report) : Status();
}

Status refuse_private(bool is_private, const sql::TableName& name) {
  if (!is_private) return {};
  return at(invalid_argument("UNSUPPORTED_CONSTRUCT",
                             "{} is PRIVATE, which tables of a pipeline can be: leave the word out",
                             sql::to_string(name)),
            name.place);
}

// A command line of this program, its words quoted where a shell needs it.
std::string quoted_word(const std::string& word) {
  const bool plain = word.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-") ==
                     std::string::npos;
  if (plain) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// Why a table without a declaration of its own cannot be refreshed.
Error not_refreshed(const Context& context, const FoundTable& found,
                    const sql::RefreshTable& statement) {
  const auto owner = found.snapshot->property(pipeline::kPipelineNameProperty);
  if (owner) {
    const auto place = pipeline_place(context, *owner);
    return unsupported("REFRESH_OF_PIPELINE_TABLE",
                       "{} belongs to pipeline '{}', which refreshes it: strandline run {} {} {}",
                       found.name, *owner, place.empty() ? "DIRECTORY" : quoted_word(place),
                       statement.full ? "--full-refresh" : "--refresh", quoted_word(found.name));
  }
  const bool view = statement.what == sql::RefreshTable::What::kMaterializedView;
  return invalid_argument(view ? "NOT_A_MATERIALIZED_VIEW" : "NOT_A_STREAMING_TABLE",
                          "{} is a plain table, which is read as it is and needs no REFRESH",
                          found.name);
}

}  // namespace

Status create_streaming_table(const Context& context, const sql::CreateStreamingTable& table,
                              const sql::Statement& statement) {
  SL_TRY(refuse_private(table.is_private, table.name));
  const auto& source = table.auto_cdc ? table.auto_cdc->source : table.query;
  if (source) SL_TRY(check_sources(context, *source));
  return create(context, {}, table.name, {table.or_refresh, table.if_not_exists}, statement);
}

Status create_materialized_view(const Context& context, const sql::CreateMaterializedView& view,
                                const sql::Statement& statement) {
  SL_TRY(refuse_private(view.is_private, view.name));
  SL_TRY(check_sources(context, *view.query));
  pipeline::TableDeclaration table;
  table.is_materialized_view = true;
  return create(context, std::move(table), view.name, {view.or_refresh, view.if_not_exists},
                statement);
}

Status refresh(const Context& context, const sql::RefreshTable& statement) {
  using What = sql::RefreshTable::What;
  SL_ASSIGN(auto* warehouse, context.needs_warehouse());
  if (statement.table.is_path) {
    return at(invalid_argument("INVALID_NAME", "{} is a path: REFRESH takes the table's name",
                               sql::to_string(statement.table)),
              statement.table.place);
  }
  SL_ASSIGN(const auto name, warehouse->qualify(statement.table, context.defaults));
  SL_ASSIGN(const auto known, pipeline::find_declaration(*warehouse, name));
  if (!known) {
    SL_ASSIGN(const auto found, find_table(context, statement.table));
    return at(not_refreshed(context, found, statement), statement.table.place);
  }
  if (statement.what == What::kMaterializedView && !known->is_materialized_view) {
    return at(invalid_argument("NOT_A_MATERIALIZED_VIEW",
                               "{} is a streaming table: write REFRESH STREAMING TABLE {}",
                               name.to_string(), name.to_string()),
              statement.table.place);
  }
  if (statement.what != What::kMaterializedView && known->is_materialized_view) {
    return at(invalid_argument("NOT_A_STREAMING_TABLE",
                               "{} is a materialized view: write REFRESH MATERIALIZED VIEW {}",
                               name.to_string(), name.to_string()),
              statement.table.place);
  }
  pipeline::RefreshMode mode;
  mode.full = statement.full;
  const auto setting = context.settings.find(kAllowMissingSources);
  mode.allow_missing_sources =
      setting != context.settings.end() && same_name(setting->second, "true");
  auto report = pipeline::refresh_table_pipeline(*warehouse, name, mode, dependencies(context),
                                                 context.on_progress, context.cancel);
  if (!report.ok()) return at(std::move(report).error(), statement.table.place);
  return finish(context, *report);
}

std::optional<pipeline::TableDeclaration> declaration_of(const Context& context,
                                                         const FoundTable& table) {
  const auto owner = table.snapshot->property(pipeline::kPipelineNameProperty);
  if (!owner || context.warehouse == nullptr) return {};
  auto declared = pipeline::declaration_of_pipeline(*context.warehouse, *owner);
  return declared.ok() ? std::move(declared).value() : std::nullopt;
}

std::string pipeline_place(const Context& context, const std::string& pipeline) {
  return context.warehouse == nullptr ? ""
                                      : pipeline::place_of_pipeline(*context.warehouse, pipeline);
}

Result<bool> drop_declared_table(const Context& context, const sql::Drop& statement, DropKind kind,
                                 const catalog::QualifiedName& name) {
  SL_ASSIGN(const auto declared, pipeline::find_declaration(*context.warehouse, name));
  if (!declared) return false;
  const bool view = declared->is_materialized_view;
  if (kind == (view ? DropKind::kStreamingTable : DropKind::kMaterializedView)) {
    return at(
        invalid_argument(view ? "NOT_A_STREAMING_TABLE" : "NOT_A_MATERIALIZED_VIEW",
                         "{} is a {}: use DROP {}", name.to_string(), pipeline::kind_of(*declared),
                         view ? "MATERIALIZED VIEW" : "STREAMING TABLE"),
        statement.name.place);
  }
  auto dropped = pipeline::drop_table_pipeline(*context.warehouse, name);
  if (!dropped.ok()) return at(std::move(dropped).error(), statement.name.place);
  return true;
}

Status drop_declared_tables(const Context& context, const sql::Drop& statement,
                            const std::pair<std::string, std::string>& schema) {
  SL_ASSIGN(const auto tables,
            pipeline::declarations_in(*context.warehouse, schema.first, schema.second));
  for (const auto& table : tables) {
    if (!statement.cascade) {
      return at(
          invalid_argument("SCHEMA_NOT_EMPTY", "schema {}.{} holds {}: drop it or use CASCADE",
                           schema.first, schema.second, table.name.to_string()),
          statement.name.place);
    }
    auto dropped = pipeline::drop_table_pipeline(*context.warehouse, table.name);
    if (!dropped.ok()) return at(std::move(dropped).error(), statement.name.place);
  }
  return {};
}

}  // namespace strandline::engine
