#include "engine/rows.h"

#include "base/error.h"
#include "duck/delta_io.h"
#include "engine/assignment.h"
#include "engine/names.h"
#include "engine/relations.h"
#include "engine/write_rows.h"
#include "sql/duckdb_printer.h"
#include "sql/parser.h"
#include "sql/query.h"

namespace strandline::engine {

Status insert(const Context& context, const sql::Insert& statement) {
  if (statement.mode == sql::InsertMode::kReplaceWhere) {
    return at(unsupported("UNSUPPORTED_STATEMENT",
                          "INSERT INTO ... REPLACE WHERE is not supported: use DELETE and INSERT"),
              statement.table.place);
  }
  const bool overwrite = statement.mode == sql::InsertMode::kOverwrite;
  SL_ASSIGN(const auto found, find_table(context, statement.table));
  SL_TRY(refuse_pipeline_table(found, overwrite ? "INSERT OVERWRITE" : "INSERT"));
  Relations relations(context);
  SL_ASSIGN(const auto query, relations.print(*statement.query));
  SL_ASSIGN(const auto given, given_columns(*context.connection, query));
  AssignOptions options;
  options.by_name = statement.by_name;
  for (const auto& column : statement.columns) options.columns.push_back(column.text);
  auto rows = assign_all(query, given, found.snapshot->schema, found.name, options);
  if (!rows.ok()) return at(std::move(rows).error(), statement.table.place);

  SL_ASSIGN(auto transaction, delta::Transaction::begin(found.table, found.snapshot));
  const auto written = apply_change(context, found.table, transaction, found.snapshot,
                                    duck::TableChange{*rows, "", overwrite, false});
  if (!written.ok()) return relations.explain(written.error());
  transaction.set_operation("WRITE",
                            {{"mode", overwrite ? "Overwrite" : "Append"}, {"partitionBy", "[]"}});
  if (!overwrite) {
    if (written->empty()) return {};
    if (!may_read(context, *statement.query, found.table)) transaction.set_blind_append();
  }
  return duck::commit_change(transaction, found.table, *written);
}

Status delete_rows(const Context& context, const sql::Delete& statement) {
  if (statement.where == nullptr) return truncate(context, sql::Truncate{statement.table});
  SL_ASSIGN(const auto found, find_table(context, statement.table));
  SL_TRY(refuse_pipeline_table(found, "DELETE"));
  Relations relations(context);
  duck::ScanOptions options;
  options.with_positions = true;
  SL_ASSIGN(const auto scan, relations.scan(found.table, found.snapshot, options));
  SL_ASSIGN(const auto condition, relations.print(*statement.where));
  const auto alias = statement.alias ? statement.alias->text : statement.table.parts.back();
  TouchedRows touched(*context.connection);
  SL_ASSIGN(const auto rows,
            touched.keep(fmt::format("SELECT {}, {} FROM {} AS {} WHERE {}", duck::kFileColumn,
                                     duck::kRowColumn, scan, duck::quote_name(alias), condition)));
  if (rows == 0) return {};
  SL_ASSIGN(auto transaction, delta::Transaction::begin(found.table, found.snapshot));
  SL_ASSIGN(const auto written,
            apply_change(context, found.table, transaction, found.snapshot,
                         duck::TableChange{"", TouchedRows::positions(), false, true}));
  transaction.set_metric("numDeletedRows", rows);
  transaction.set_operation("DELETE",
                            {{"predicate", json_array({sql::print_spark(*statement.where)})}});
  return duck::commit_change(transaction, found.table, written);
}

Status update_rows(const Context& context, const sql::Update& statement) {
  SL_ASSIGN(const auto found, find_table(context, statement.table));
  SL_TRY(refuse_pipeline_table(found, "UPDATE"));
  const auto& schema = found.snapshot->schema;
  const bool keeps_ids = found.snapshot->row_tracking_enabled();
  Relations relations(context);
  duck::ScanOptions options;
  options.with_positions = true;
  options.with_row_ids = keeps_ids;
  SL_ASSIGN(const auto scan, relations.scan(found.table, found.snapshot, options));
  const auto alias = statement.alias ? statement.alias->text : statement.table.parts.back();
  std::string condition = "true";
  if (statement.where != nullptr) {
    SL_ASSIGN(condition, relations.print(*statement.where));
  }
  // Old rows with the assigned values beside them, computed once.
  std::map<size_t, size_t> assigned;  // column of the schema -> assignment
  std::string values;
  for (size_t i = 0; i < statement.assignments.size(); ++i) {
    const auto& [name, expression] = statement.assignments[i];
    SL_ASSIGN(const auto target, known_columns({name}, schema, "SET"));
    if (!assigned.emplace(*schema.find(target[0]), i).second) {
      return at(invalid_argument("DUPLICATE_ASSIGNMENTS", "column {} is assigned twice", target[0]),
                name.place);
    }
    SL_ASSIGN(const auto text, relations.print(*expression));
    values +=
        fmt::format(", {} AS {}", text, duck::quote_name(fmt::format("__strandline_set_{}", i)));
  }
  SL_ASSIGN(const auto types,
            context.connection->describe(fmt::format("SELECT 1 AS one{} FROM {} AS {} LIMIT 0",
                                                     values, scan, duck::quote_name(alias))));
  TouchedRows touched(*context.connection);
  SL_ASSIGN(const auto rows,
            touched.keep(fmt::format("SELECT {0}.*{1} FROM {2} AS {0} WHERE {3}",
                                     duck::quote_name(alias), values, scan, condition)));
  if (rows == 0) return {};
  std::string items;
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    const auto& field = schema.fields[i];
    std::string value = duck::quote_name(field.name);
    if (const auto found_at = assigned.find(i); found_at != assigned.end()) {
      const auto source = duck::quote_name(fmt::format("__strandline_set_{}", found_at->second));
      auto text = assign(source, types[found_at->second + 1].type, field, found.name);
      if (!text.ok()) {
        return at(std::move(text).error(), statement.assignments[found_at->second].first.place);
      }
      value = *text;
    }
    items +=
        fmt::format("{}{} AS {}", items.empty() ? "" : ", ", value, duck::quote_name(field.name));
  }
  if (keeps_ids) {
    // A changed row keeps its id and gets this commit's version.
    items += fmt::format(", {}, CAST(NULL AS BIGINT) AS {}", duck::kRowIdColumn,
                         duck::kRowVersionColumn);
  }
  SL_ASSIGN(auto transaction, delta::Transaction::begin(found.table, found.snapshot));
  SL_ASSIGN(
      const auto written,
      apply_change(context, found.table, transaction, found.snapshot,
                   duck::TableChange{fmt::format("SELECT {} FROM {}", items, TouchedRows::name()),
                                     TouchedRows::positions(), false, keeps_ids}));
  transaction.set_metric("numUpdatedRows", rows);
  transaction.set_operation("UPDATE");
  return duck::commit_change(transaction, found.table, written);
}

Status truncate(const Context& context, const sql::Truncate& statement) {
  SL_ASSIGN(const auto found, find_table(context, statement.table));
  SL_TRY(refuse_pipeline_table(found, "TRUNCATE TABLE"));
  if (found.snapshot->files.empty()) return {};
  SL_ASSIGN(auto transaction, delta::Transaction::begin(found.table, found.snapshot));
  for (const auto& file : found.snapshot->files) transaction.remove_file(file);
  transaction.set_metric("numRemovedFiles", static_cast<int64_t>(found.snapshot->files.size()));
  transaction.set_operation("TRUNCATE");
  return duck::commit_change(transaction, found.table, {});
}

}  // namespace strandline::engine
