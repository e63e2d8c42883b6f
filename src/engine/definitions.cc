#include "engine/definitions.h"

#include <strandline/suggest.h>

#include "base/error.h"
#include "engine/assignment.h"
#include "engine/names.h"
#include "engine/relations.h"
#include "engine/streaming_tables.h"
#include "sql/lexer.h"
#include "sql/parser.h"

namespace strandline::engine {
namespace {

// The query of CREATE VIEW ... AS query: what follows the first AS after which the text is one
// query.
std::string view_query_text(const std::string& text) {
  const auto lexed = sql::lex(text, "");
  for (const auto& token : lexed.tokens) {
    if (token.kind != sql::TokenKind::kWord || token.upper != "AS") continue;
    auto rest = text.substr(token.end);
    const size_t first = rest.find_first_not_of(" \t\r\n");
    if (first == std::string::npos) continue;
    rest.erase(0, first);
    if (sql::parse_query(rest, "").ok()) return rest;
  }
  return "";
}

// What DROP names, as far as the parsed statement does not tell.
DropKind kind_of(const std::string& text) {
  const auto lexed = sql::lex(text, "");
  if (lexed.tokens.size() < 2) return DropKind::kOther;
  const auto& word = lexed.tokens[1].upper;
  return word == "STREAMING"      ? DropKind::kStreamingTable
         : word == "MATERIALIZED" ? DropKind::kMaterializedView
                                  : DropKind::kOther;
}

}  // namespace

Status create_schema(const Context& context, const sql::CreateSchema& statement) {
  SL_ASSIGN(auto* warehouse, context.needs_warehouse());
  SL_ASSIGN(const auto name, schema_named(context, statement.name));
  SL_ASSIGN(const bool existed, warehouse->schema_exists(name.first, name.second));
  auto made = warehouse->create_schema(name.first, name.second, statement.if_not_exists);
  if (!made.ok()) return at(std::move(made).error(), statement.name.place);
  if (existed || !statement.comment) return {};
  return warehouse->set_schema_comment(name.first, name.second, statement.comment);
}

Status create_view(Context& context, const sql::CreateView& statement, const std::string& text) {
  if (!statement.expectations.empty()) {
    return at(invalid_argument("UNSUPPORTED_CONSTRAINT", "EXPECT belongs to views of a pipeline"),
              statement.expectations[0].name.place);
  }
  if (!statement.properties.empty()) {
    return at(unsupported("UNSUPPORTED_CONSTRUCT",
                          "TBLPROPERTIES of a view are not kept: leave them out"),
              statement.properties[0].place);
  }
  catalog::View view;
  view.comment = statement.comment;
  view.sql = view_query_text(text);
  view.catalog = context.defaults.catalog;
  view.schema = context.defaults.schema;
  for (const auto& column : statement.columns) view.columns.push_back(column.text);
  if (view.sql.empty()) {
    return internal_error("INTERNAL_ERROR", "the query of view {} was not found in its statement",
                          sql::to_string(statement.name));
  }
  // A view whose query cannot run is refused now, not at its first reader.
  Relations relations(context);
  SL_ASSIGN(const auto query, relations.print(*statement.query));
  SL_ASSIGN(const auto columns, given_columns(*context.connection, query));
  if (!view.columns.empty() && view.columns.size() != columns.size()) {
    return at(invalid_argument("CREATE_VIEW_COLUMN_ARITY_MISMATCH",
                               "the view names {} columns, but its query gives {}",
                               view.columns.size(), columns.size()),
              statement.name.place);
  }
  if (statement.temporary) {
    if (statement.name.is_path || statement.name.parts.size() != 1) {
      return at(invalid_argument("INVALID_TEMP_OBJ_QUALIFIER",
                                 "a temporary view has a plain name: {} has several parts",
                                 sql::to_string(statement.name)),
                statement.name.place);
    }
    const auto key = fold_name(statement.name.parts[0]);
    if (context.temporary_views.contains(key)) {
      if (statement.if_not_exists) return {};
      if (!statement.or_replace) {
        return at(
            already_exists("TEMP_TABLE_OR_VIEW_ALREADY_EXISTS",
                           "the temporary view {} exists: use CREATE OR REPLACE TEMPORARY VIEW",
                           statement.name.parts[0]),
            statement.name.place);
      }
    }
    context.temporary_views[key] = std::move(view);
    return {};
  }
  SL_ASSIGN(auto* warehouse, context.needs_warehouse());
  SL_ASSIGN(const auto name, warehouse->qualify(statement.name, context.defaults));
  auto made = warehouse->create_view(name, view, statement.or_replace);
  if (!made.ok()) {
    if (statement.if_not_exists && made.error().kind == ErrorKind::kAlreadyExists) return {};
    return at(std::move(made).error(), statement.name.place);
  }
  return {};
}

Status drop(Context& context, const sql::Drop& statement, const std::string& text) {
  const DropKind kind = kind_of(text);
  SL_ASSIGN(auto* warehouse, context.needs_warehouse());
  const auto finish = [&statement](Status status) -> Status {
    if (status.ok()) return {};
    if (statement.if_exists && status.error().kind == ErrorKind::kNotFound) return {};
    return at(std::move(status).error(), statement.name.place);
  };
  const auto& parts = statement.name.parts;
  if (statement.what == sql::Drop::What::kSchema) {
    SL_ASSIGN(const auto schema, schema_named(context, statement.name));
    SL_TRY(drop_declared_tables(context, statement, schema));
    return finish(warehouse->drop_schema(schema.first, schema.second, statement.cascade));
  }
  if (statement.what == sql::Drop::What::kView && parts.size() == 1 && !statement.name.is_path &&
      context.temporary_views.erase(fold_name(parts[0])) > 0) {
    return {};
  }
  SL_ASSIGN(const auto name, warehouse->qualify(statement.name, context.defaults));
  SL_ASSIGN(const auto view, warehouse->view(name));
  if (statement.what == sql::Drop::What::kView) {
    if (!view) {
      SL_ASSIGN(const bool is_table, warehouse->table_exists(name));
      if (is_table) {
        return at(invalid_argument("EXPECT_VIEW_NOT_TABLE", "{} is a table: use DROP TABLE",
                                   name.to_string()),
                  statement.name.place);
      }
    }
    return finish(warehouse->drop_view(name));
  }
  if (view) {
    return at(
        invalid_argument("EXPECT_TABLE_NOT_VIEW", "{} is a view: use DROP VIEW", name.to_string()),
        statement.name.place);
  }
  warehouse->remove_dropped(name.catalog, name.schema);
  SL_ASSIGN(const bool declared, drop_declared_table(context, statement, kind, name));
  if (declared) return {};
  SL_ASSIGN(const bool is_table, warehouse->table_exists(name));
  SL_ASSIGN(const bool is_external, warehouse->is_external(name));
  if (!is_table && !is_external)
    return finish(table_missing(*warehouse, name, statement.name.place));
  if (kind != DropKind::kOther && is_table) {
    SL_ASSIGN(const auto found, find_table(context, statement.name));
    if (!belongs_to_pipeline(*found.snapshot)) {
      const bool wants_view = kind == DropKind::kMaterializedView;
      return at(invalid_argument(wants_view ? "NOT_A_MATERIALIZED_VIEW" : "NOT_A_STREAMING_TABLE",
                                 "{} is a plain table: use DROP TABLE", name.to_string()),
                statement.name.place);
    }
  }
  return finish(warehouse->drop_table(name));
}

Status use(Context& context, const sql::Use& statement) {
  if (statement.catalog) {
    SL_ASSIGN(auto* warehouse, context.needs_warehouse());
    SL_ASSIGN(const auto known, warehouse->catalogs());
    const auto& wanted = statement.name.parts.back();
    for (const auto& catalog : known) {
      if (statement.name.parts.size() != 1 || !same_name(catalog, wanted)) continue;
      context.defaults = catalog::Defaults{catalog, "default"};
      return {};
    }
    return at(not_found("CATALOG_NOT_FOUND", "there is no catalog {}: CREATE SCHEMA {}.{} makes it",
                        sql::to_string(statement.name), wanted, "a_schema"),
              statement.name.place);
  }
  SL_ASSIGN(const auto name, known_schema(context, statement.name));
  context.defaults.catalog = name.first;
  context.defaults.schema = name.second;
  return {};
}

}  // namespace strandline::engine
