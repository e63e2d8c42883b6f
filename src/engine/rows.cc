#include "engine/rows.h"

#include "base/error.h"
#include "engine/conditions.h"
#include "engine/names.h"
#include "engine/new_values.h"
#include "engine/target.h"
#include "engine/write_rows.h"
#include "sql/duckdb_printer.h"

namespace strandline::engine {
namespace {

// Every row of a table leaves with its file.
Result<ChangedRows> remove_all(const Context& context, const Target& target,
                               const std::string& operation) {
  const auto& [table, snapshot, name] = target.found;
  if (snapshot->files.empty()) return ChangedRows{};
  SL_ASSIGN(auto transaction, delta::Transaction::begin(table, snapshot));
  duck::TableChange change;
  change.replace = true;
  SL_ASSIGN(const auto applied, apply_change(context, table, transaction, snapshot, change));
  ChangedRows changed;
  changed.deleted = delta::live_row_count(*snapshot).value_or(0);
  if (operation == "DELETE") {
    set_change_metrics(transaction, applied);
    transaction.set_metric("numDeletedRows", changed.deleted);
    transaction.set_operation(operation, {{"predicate", "[]"}});
  } else {
    transaction.set_metric("numRemovedFiles", applied.removed_files);
    transaction.set_operation(operation);
  }
  SL_TRY(duck::commit_change(transaction, table, applied));
  return changed;
}

// The columns of the table out of the rows that a statement keeps.
std::string old_rows(const Schema& schema, const std::string& from) {
  std::string items;
  for (const auto& field : schema.fields) {
    items += (items.empty() ? "" : ", ") + duck::quote_name(field.name);
  }
  return fmt::format("SELECT {} FROM {}", items, from);
}

}  // namespace

Result<ChangedRows> delete_rows(const Context& context, const sql::Delete& statement) {
  SL_ASSIGN(const auto target,
            find_target(context, statement.table, statement.alias, "DELETE", true));
  if (statement.where == nullptr) return remove_all(context, target, "DELETE");
  SL_TRY(refuse_chance(statement.where, "DELETE"));
  Relations relations(context);
  const auto reads = reads_of(relations, target, statement.where);
  SL_ASSIGN(const auto scan, scan_target(relations, target, reads.selection.files));
  SL_ASSIGN(const auto condition, relations.print(*statement.where, target.names, scan));
  SL_TRY(check_condition(*context.connection, condition, scan, statement.where->place));
  const auto columns = target.has_change_feed()
                           ? duck::quote_name(target.alias) + ".*"
                           : fmt::format("{}, {}", duck::kFileColumn, duck::kRowColumn);
  TempTable touched(*context.connection, "touched");
  ChangedRows changed;
  SL_ASSIGN(changed.deleted,
            touched.keep(fmt::format("SELECT {} FROM {} WHERE {}", columns, scan, condition)));
  if (changed.deleted == 0) return changed;
  const auto& [table, snapshot, name] = target.found;
  SL_ASSIGN(auto transaction, delta::Transaction::begin(table, snapshot));
  duck::TableChange change;
  change.dead_rows =
      fmt::format("SELECT {}, {} FROM {}", duck::kFileColumn, duck::kRowColumn, touched.name());
  change.with_row_ids = true;
  change.rows = duck::RowChange{};
  change.rows->deleted = old_rows(target.schema(), touched.name());
  SL_ASSIGN(const auto applied, apply_change(context, table, transaction, snapshot, change));
  set_change_metrics(transaction, applied);
  transaction.set_metric("numDeletedRows", changed.deleted);
  tell_reads(context, transaction, target, reads, statement.where);
  transaction.set_operation("DELETE",
                            {{"predicate", json_array({sql::print_spark(*statement.where)})}});
  SL_TRY(duck::commit_change(transaction, table, applied));
  return changed;
}

Result<ChangedRows> update_rows(const Context& context, const sql::Update& statement) {
  SL_ASSIGN(const auto target,
            find_target(context, statement.table, statement.alias, "UPDATE", true));
  const auto& schema = target.schema();
  SL_TRY(refuse_chance(statement.where, "UPDATE"));
  Relations relations(context);
  const auto reads = reads_of(relations, target, statement.where);
  SL_ASSIGN(const auto scan, scan_target(relations, target, reads.selection.files));
  std::string condition = "true";
  if (statement.where != nullptr) {
    SL_ASSIGN(condition, relations.print(*statement.where, target.names, scan));
    SL_TRY(check_condition(*context.connection, condition, scan, statement.where->place));
  }
  NewValues values(target, "set", StructsBy::kWholeName);
  SL_TRY(values.add(statement.assignments, relations, target.names, scan));
  SL_TRY(values.find_types(*context.connection, scan));

  // The old values that stay, or that the change feed shows, with the new ones beside them: each
  // is computed once.
  std::string items =
      qualified(target.alias, duck::kFileColumn) + ", " + qualified(target.alias, duck::kRowColumn);
  if (target.tracks_rows()) items += ", " + qualified(target.alias, duck::kRowIdColumn);
  std::string new_items;
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    const auto& field = schema.fields[i];
    if (!values.replaces(i) || target.has_change_feed()) {
      items += ", " + qualified(target.alias, field.name);
    }
    SL_ASSIGN(const auto text, values.updated(i, duck::quote_name(field.name)));
    new_items += fmt::format("{}{} AS {}", new_items.empty() ? "" : ", ", text,
                             duck::quote_name(field.name));
  }
  TempTable touched(*context.connection, "touched");
  ChangedRows changed;
  SL_ASSIGN(changed.updated, touched.keep(fmt::format("SELECT {}{} FROM {} WHERE {}", items,
                                                      values.select_items(), scan, condition)));
  if (changed.updated == 0) return changed;

  const auto& [table, snapshot, name] = target.found;
  SL_ASSIGN(auto transaction, delta::Transaction::begin(table, snapshot));
  duck::TableChange change;
  change.dead_rows =
      fmt::format("SELECT {}, {} FROM {}", duck::kFileColumn, duck::kRowColumn, touched.name());
  change.rows = duck::RowChange{};
  change.rows->updated_before = old_rows(schema, touched.name());
  change.rows->updated_after = fmt::format("SELECT {} FROM {}", new_items, touched.name());
  // A changed row keeps its id and gets this commit's version.
  change.with_row_ids = target.tracks_rows();
  if (change.with_row_ids) {
    new_items += fmt::format(", {}, CAST(NULL AS BIGINT) AS {}", duck::kRowIdColumn,
                             duck::kRowVersionColumn);
  }
  change.new_rows = fmt::format("SELECT {} FROM {}", new_items, touched.name());
  SL_ASSIGN(const auto applied, apply_change(context, table, transaction, snapshot, change));
  set_change_metrics(transaction, applied);
  transaction.set_metric("numUpdatedRows", changed.updated);
  std::vector<sql::ExprPtr> assigned;
  for (const auto& assignment : statement.assignments) assigned.push_back(assignment.value);
  tell_reads(context, transaction, target, reads, statement.where, assigned);
  std::vector<std::string> predicate;
  if (statement.where != nullptr) predicate.push_back(sql::print_spark(*statement.where));
  transaction.set_operation("UPDATE", {{"predicate", json_array(predicate)}});
  SL_TRY(duck::commit_change(transaction, table, applied));
  return changed;
}

Status check_update(const Context& context, const sql::Update& statement) {
  SL_ASSIGN(const auto target,
            find_target(context, statement.table, statement.alias, "UPDATE", true));
  SL_TRY(refuse_chance(statement.where, "UPDATE"));
  Relations relations(context);
  SL_ASSIGN(const auto scan, scan_target(relations, target, {}));
  NewValues values(target, "set", StructsBy::kWholeName);
  SL_TRY(values.add(statement.assignments, relations, target.names, scan));
  SL_TRY(values.find_types(*context.connection, scan));
  for (size_t i = 0; i < target.schema().fields.size(); ++i) SL_TRY(values.updated(i, "NULL"));
  return {};
}

Status truncate(const Context& context, const sql::Truncate& statement) {
  SL_ASSIGN(const auto target,
            find_target(context, statement.table, std::nullopt, "TRUNCATE TABLE", true));
  SL_TRY(remove_all(context, target, "TRUNCATE"));
  return {};
}

}  // namespace strandline::engine
