// INSERT in all its modes.
#include <algorithm>

#include "base/error.h"
#include "engine/assignment.h"
#include "engine/conditions.h"
#include "engine/names.h"
#include "engine/rows.h"
#include "engine/target.h"
#include "engine/write_rows.h"
#include "sql/duckdb_printer.h"

namespace strandline::engine {
namespace {

// A value of a partition column as the table holds it: of empty text and no bytes, null.
std::string as_partition(const std::string& value, const DataType& type) {
  if (type.id != TypeId::kString && type.id != TypeId::kBinary) return value;
  return fmt::format("nullif({}, CAST('' AS {}))", value, duck::engine_type(type));
}

bool is_partition_column(const Target& target, const std::string& name) {
  const auto& columns = target.view->metadata.partition_columns;
  return std::any_of(columns.begin(), columns.end(),
                     [&](const std::string& column) { return same_name(column, name); });
}

// VALUES with DEFAULT replaced by what the columns have; `columns` are the values' targets.
Result<sql::QueryPtr> with_defaults(const sql::QueryPtr& query, const Schema& schema,
                                    const std::vector<std::string>& columns) {
  const auto* values = query->as<sql::ValuesRows>();
  if (values == nullptr) return query;
  auto replaced = *values;
  bool any = false;
  for (auto& row : replaced.rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      const auto name = sql::plain_column(*row[i]);
      if (!name || !same_name(name->text, "DEFAULT")) continue;
      any = true;
      const auto* field = i < columns.size() ? schema.get(columns[i]) : nullptr;
      row[i] = sql::null_literal();
      if (field != nullptr) {
        SL_ASSIGN(row[i], default_of(*field));
      }
    }
  }
  if (!any) return query;
  auto copy = *query;
  copy.body = std::move(replaced);
  return std::make_shared<const sql::Query>(std::move(copy));
}

// Carries one INSERT.
class Insertion {
 public:
  Insertion(const Context& context, const sql::Insert& statement, Target target)
      : context_(context),
        statement_(statement),
        target_(std::move(target)),
        relations_(context),
        staged_(*context.connection, "inserted") {}

  Result<ChangedRows> run();
  Status check() { return read_rows(); }
  // An error of run() that says more where a file of the query caused it.
  Error explain(Error error) const { return relations_.explain(std::move(error)); }

 private:
  Status read_rows();
  Status evolve(std::vector<duck::ResultColumn> given, const AssignOptions& options);
  Status check_partition();
  Result<std::string> partition_condition() const;
  Status stage();
  Status plan_overwrite(duck::TableChange* change);
  Status plan_partitions(duck::TableChange* change, const std::string& condition);
  Status plan_replace_where(duck::TableChange* change);
  void describe(delta::Transaction& transaction, const duck::AppliedChange& applied) const;

  const Context& context_;
  const sql::Insert& statement_;
  Target target_;
  Relations relations_;
  TempTable staged_;
  std::string rows_;                                      // query of the table's columns
  std::vector<std::pair<std::string, std::string>> set_;  // static partition columns and values
  std::optional<delta::Alteration> alteration_;           // of WITH SCHEMA EVOLUTION
  int64_t deleted_ = 0;
  std::optional<TargetReads> reads_;  // of REPLACE WHERE
};

Status Insertion::check_partition() {
  for (const auto& [column, value] : statement_.partition) {
    SL_ASSIGN(const auto known, known_columns({column}, target_.schema(), "PARTITION"));
    if (!is_partition_column(target_, known[0])) {
      return at(invalid_argument("NON_PARTITION_COLUMN",
                                 "PARTITION names {}, by which {} is not partitioned", known[0],
                                 target_.found.name),
                column.place);
    }
    if (!value) continue;
    const auto in_list =
        std::find_if(statement_.columns.begin(), statement_.columns.end(),
                     [&](const sql::Name& other) { return same_name(other.text, column.text); });
    if (in_list != statement_.columns.end()) {
      return at(invalid_argument("STATIC_PARTITION_COLUMN_IN_INSERT_COLUMN_LIST",
                                 "the partition column {} has its value in PARTITION: leave it out "
                                 "of the column list",
                                 known[0]),
                in_list->place);
    }
    SL_ASSIGN(auto text, relations_.print(*value));
    set_.emplace_back(known[0], std::move(text));
  }
  return {};
}

// The query's rows as rows of the table.
Status Insertion::read_rows() {
  SL_TRY(check_partition());
  const auto is_set = [&](const std::string& name) {
    return std::any_of(set_.begin(), set_.end(),
                       [&](const auto& value) { return same_name(value.first, name); });
  };
  AssignOptions options;
  options.by_name = statement_.by_name;
  for (const auto& column : statement_.columns) options.columns.push_back(column.text);
  if (options.columns.empty() && !options.by_name && !set_.empty()) {
    for (const auto& field : target_.schema().fields) {
      if (!is_set(field.name)) options.columns.push_back(field.name);
    }
  }
  auto targets = options.columns;
  if (targets.empty()) {
    for (const auto& field : target_.schema().fields) targets.push_back(field.name);
  }
  SL_ASSIGN(const auto source, with_defaults(statement_.query, target_.schema(), targets));
  SL_ASSIGN(auto query, relations_.print(*source));
  if (!set_.empty()) {
    std::string items = "*";
    for (const auto& [name, value] : set_) {
      items += fmt::format(", {} AS {}", value, duck::quote_name(name));
      if (!options.by_name) options.columns.push_back(name);
    }
    query = fmt::format("SELECT {} FROM ({})", items, query);
  }
  SL_ASSIGN(const auto given, given_columns(*context_.connection, query));
  SL_TRY(evolve(given, options));
  auto rows = assign_all(query, given, target_.schema(), target_.found.name, options);
  if (!rows.ok()) return at(std::move(rows).error(), statement_.table.place);
  rows_ = std::move(rows).value();
  return {};
}

// Columns go by their names where the statement gives names, else by position: those beyond the
// table's are new.
Status Insertion::evolve(std::vector<duck::ResultColumn> given, const AssignOptions& options) {
  if (!statement_.schema_evolution) return {};
  const auto& fields = target_.schema().fields;
  for (size_t i = 0; i < given.size() && !options.by_name; ++i) {
    if (!options.columns.empty()) {
      if (i < options.columns.size()) given[i].name = options.columns[i];
    } else if (i < fields.size()) {
      given[i].name = fields[i].name;
    }
  }
  const auto structs_by = options.by_name ? StructsBy::kName : StructsBy::kPosition;
  auto alteration = evolve_target(target_, given, structs_by);
  if (!alteration.ok()) return at(std::move(alteration).error(), statement_.table.place);
  alteration_ = std::move(alteration).value();
  return {};
}

// Keeps the new rows where they are read more than once.
Status Insertion::stage() {
  SL_TRY(staged_.fill(rows_));
  rows_ = "SELECT * FROM " + staged_.name();
  return {};
}

// The target's rows that PARTITION (p = 1) names.
Result<std::string> Insertion::partition_condition() const {
  std::string condition;
  for (const auto& [name, value] : set_) {
    const auto* field = target_.schema().get(name);
    SL_ASSIGN(const auto types, given_columns(*context_.connection, "SELECT " + value + " AS v"));
    SL_ASSIGN(const auto text, assign("v.v", types[0], *field, target_.found.name));
    condition +=
        fmt::format("{}{} IS NOT DISTINCT FROM (SELECT {} FROM (SELECT {}) AS v(v))",
                    condition.empty() ? "" : " AND ", qualified(target_.alias, field->name),
                    as_partition(text, field->type), value);
  }
  return condition;
}

// The files that hold rows of a condition over partition columns leave whole.
Status Insertion::plan_partitions(duck::TableChange* change, const std::string& condition) {
  SL_ASSIGN(const auto scan, scan_target(relations_, target_,
                                         reads_of(relations_, target_, nullptr).selection.files));
  SL_ASSIGN(const auto files, context_.connection->query(fmt::format(
                                  "SELECT DISTINCT {0} FROM {1} WHERE {2} ORDER BY {0}",
                                  qualified(target_.alias, duck::kFileColumn), scan, condition)));
  for (const auto& row : files.rows) {
    const auto index = static_cast<size_t>(std::stoll(*row[0]));
    change->dead_files.push_back(index);
  }
  return {};
}

Status Insertion::plan_overwrite(duck::TableChange* change) {
  const auto mode = context_.settings.find("spark.sql.sources.partitionOverwriteMode");
  const bool dynamic = mode != context_.settings.end() && same_name(mode->second, "dynamic");
  const auto& partitions = target_.view->metadata.partition_columns;
  if (dynamic && !partitions.empty() && set_.size() < partitions.size()) {
    SL_TRY(stage());
    std::string same;
    for (const auto& name : partitions) {
      const auto& type = target_.schema().get(name)->type;
      same += fmt::format("{}{} IS NOT DISTINCT FROM {}", same.empty() ? "" : " AND ",
                          as_partition("n." + duck::quote_name(name), type),
                          qualified(target_.alias, name));
    }
    std::string names;
    for (const auto& name : partitions) {
      names += (names.empty() ? "" : ", ") + duck::quote_name(name);
    }
    return plan_partitions(
        change, fmt::format("EXISTS (SELECT 1 FROM (SELECT DISTINCT {} FROM {}) AS n WHERE {})",
                            names, staged_.name(), same));
  }
  if (!set_.empty()) {
    SL_ASSIGN(const auto condition, partition_condition());
    return plan_partitions(change, condition);
  }
  change->replace = true;
  return {};
}

// Old rows of the condition go; every new row must be of it.
Status Insertion::plan_replace_where(duck::TableChange* change) {
  SL_TRY(refuse_chance(statement_.replace_where, "REPLACE WHERE"));
  reads_ = reads_of(relations_, target_, statement_.replace_where);
  SL_ASSIGN(const auto scan, scan_target(relations_, target_, reads_->selection.files));
  SL_ASSIGN(const auto condition, relations_.print(*statement_.replace_where, target_.names, scan));
  SL_TRY(check_condition(*context_.connection, condition, scan, statement_.replace_where->place));
  const auto violated = duck::quote_literal(
      fmt::format("[DELTA_REPLACE_WHERE_MISMATCH] a row to be written to {} does not meet REPLACE "
                  "WHERE {}: filter such rows in the query",
                  target_.found.name, sql::print_spark(*statement_.replace_where)));
  rows_ = fmt::format("SELECT * FROM ({}) AS {} WHERE CASE WHEN {} THEN true ELSE error({}) END",
                      rows_, duck::quote_name(target_.alias), condition, violated);
  SL_TRY(stage());
  change->rows = duck::RowChange{};
  change->rows->inserted = rows_;
  change->staged_inserts = staged_.name();
  std::string items;
  for (const auto& field : target_.schema().fields) {
    items += (items.empty() ? "" : ", ") + qualified(target_.alias, field.name);
  }
  change->rows->deleted = fmt::format("SELECT {} FROM {} WHERE {}", items, scan, condition);
  change->dead_rows =
      fmt::format("SELECT {}, {} FROM {} WHERE {}", qualified(target_.alias, duck::kFileColumn),
                  qualified(target_.alias, duck::kRowColumn), scan, condition);
  SL_ASSIGN(deleted_, context_.connection->query_int(
                          fmt::format("SELECT count(*) FROM ({})", change->dead_rows)));
  change->with_row_ids = target_.tracks_rows();
  return {};
}

void Insertion::describe(delta::Transaction& transaction,
                         const duck::AppliedChange& applied) const {
  set_output_metrics(transaction, applied);
  std::map<std::string, std::string> parameters = {{"mode", "Append"}, {"partitionBy", "[]"}};
  if (statement_.mode != sql::InsertMode::kAppend) {
    parameters["mode"] = "Overwrite";
    transaction.set_metric("numRemovedFiles", applied.removed_files);
    transaction.set_metric("numRemovedBytes", applied.removed_bytes);
  }
  if (statement_.mode == sql::InsertMode::kReplaceWhere) {
    parameters["predicate"] = json_array({sql::print_spark(*statement_.replace_where)});
    transaction.set_metric("numDeletedRows", deleted_);
    transaction.set_metric("numCopiedRows", applied.copied_rows);
    transaction.set_metric("numOutputRows", applied.written_rows() - applied.copied_rows);
    transaction.set_metric("numAddedChangeFiles",
                           static_cast<int64_t>(applied.change_files.size()));
  }
  transaction.set_operation("WRITE", parameters);
}

Result<ChangedRows> Insertion::run() {
  const bool append = statement_.mode == sql::InsertMode::kAppend;
  SL_TRY(read_rows());
  duck::TableChange change;
  if (statement_.mode == sql::InsertMode::kOverwrite) SL_TRY(plan_overwrite(&change));
  if (statement_.mode == sql::InsertMode::kReplaceWhere) SL_TRY(plan_replace_where(&change));
  change.new_rows = rows_;
  if (change.with_row_ids) {
    // Rows that stay keep their ids, new ones have none yet.
    change.new_rows =
        fmt::format("SELECT *, CAST(NULL AS BIGINT) AS {}, CAST(NULL AS BIGINT) AS {} FROM ({})",
                    duck::kRowIdColumn, duck::kRowVersionColumn, rows_);
  }
  const auto& [table, snapshot, name] = target_.found;
  SL_ASSIGN(auto transaction, delta::Transaction::begin(table, snapshot));
  if (alteration_) alteration_->apply_to(&transaction);
  SL_ASSIGN(const auto applied, apply_change(context_, table, transaction, snapshot, change));
  ChangedRows changed;
  changed.inserted = applied.written_rows() - applied.copied_rows;
  changed.deleted = deleted_;
  if (!transaction.has_changes()) return changed;
  describe(transaction, applied);
  const bool reads_itself = may_read(context_, *statement_.query, table);
  if (append && !reads_itself) transaction.set_blind_append();
  if (reads_ && !reads_itself)
    tell_reads(context_, transaction, target_, *reads_, statement_.replace_where);
  SL_TRY(duck::commit_change(transaction, table, applied));
  return changed;
}

}  // namespace

Result<ChangedRows> insert(const Context& context, const sql::Insert& statement) {
  const bool append = statement.mode == sql::InsertMode::kAppend;
  for (int attempt = 1;; ++attempt) {
    SL_ASSIGN(auto target, find_target(context, statement.table, std::nullopt,
                                       append ? "INSERT" : "INSERT OVERWRITE", !append));
    const auto snapshot = target.found.snapshot;
    Insertion insertion(context, statement, std::move(target));
    auto changed = insertion.run();
    if (changed.ok()) return changed;
    if (!append || !lost_identity_race(changed.error(), *snapshot, attempt))
      return insertion.explain(std::move(changed).error());
  }
}

Status check_insert(const Context& context, const sql::Insert& statement) {
  const bool append = statement.mode == sql::InsertMode::kAppend;
  SL_ASSIGN(auto target, find_target(context, statement.table, std::nullopt,
                                     append ? "INSERT" : "INSERT OVERWRITE", !append));
  if (!append) SL_TRY(refuse_chance(statement.replace_where, "REPLACE WHERE"));
  return Insertion(context, statement, std::move(target)).check();
}

}  // namespace strandline::engine
