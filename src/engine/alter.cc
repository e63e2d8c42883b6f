#include "engine/alter.h"

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "delta/alter.h"
#include "delta/column_rules.h"
#include "duck/check_rules.h"
#include "duck/delta_io.h"
#include "duck/row_rules.h"
#include "engine/drop_feature.h"
#include "engine/names.h"
#include "engine/relations.h"
#include "pipeline/context.h"
#include "pipeline/declared_columns.h"

namespace strandline::engine {
namespace {

using delta::Alteration;
using delta::FieldPath;

FieldPath parent_of(const FieldPath& path) { return {path.begin(), path.end() - 1}; }

delta::FieldPosition position_of(const std::optional<sql::ColumnPosition>& position) {
  if (!position) return delta::FieldPosition::last();
  if (position->first) return delta::FieldPosition::first();
  return delta::FieldPosition::behind(position->after.text);
}

std::string json_object(const std::map<std::string, std::string>& members) {
  JsonWriter json;
  json.begin_object();
  for (const auto& [key, value] : members) {
    json.key(key);
    json.value(value);
  }
  json.end_object();
  return json.take();
}

// "`a`.`b` INT" of columns, for the log.
std::string column_text(const FieldPath& path, const DataType& type) {
  return delta::to_string(path) + " " + to_sql(type);
}

// One ALTER TABLE statement at work.
class Alter {
 public:
  Alter(const Context& context, FoundTable found) : context_(context), found_(std::move(found)) {}

  Status run(const sql::SetTableProperties& set) {
    std::map<std::string, std::string> properties;
    for (const auto& option : set.properties) {
      SL_TRY(check_key(option.key, option.place));
      properties[option.key] = option.value;
    }
    return commit({"SET TBLPROPERTIES", {{"properties", json_object(properties)}}},
                  [&](const delta::Snapshot&, Alteration* alteration) {
                    return alteration->set_properties(properties);
                  });
  }

  Status run(const sql::UnsetTableProperties& unset) {
    std::vector<std::string> keys;
    for (const auto& key : unset.keys) {
      SL_TRY(check_key(key.text, key.place));
      keys.push_back(key.text);
    }
    JsonWriter json;
    json.begin_array();
    for (const auto& key : keys) json.value(key);
    json.end_array();
    return commit({"UNSET TBLPROPERTIES",
                   {{"properties", json.take()}, {"ifExists", unset.if_exists ? "true" : "false"}}},
                  [&](const delta::Snapshot&, Alteration* alteration) {
                    return alteration->unset_properties(keys, unset.if_exists);
                  });
  }

  Status run(const sql::AddColumns& add) {
    SL_TRY(refuse_pipeline_definition(found_, "ADD COLUMNS"));
    std::vector<delta::AddedColumn> columns;
    std::string shown;
    for (const auto& column : add.columns) {
      columns.push_back({parent_of(column.path.parts), pipeline::declared_field(column.definition),
                         position_of(column.position)});
      shown += (shown.empty() ? "" : ", ") + column_text(column.path.parts, column.definition.type);
    }
    return commit({"ADD COLUMNS", {{"columns", shown}}},
                  [&](const delta::Snapshot&, Alteration* alteration) -> Status {
                    for (size_t i = 0; i < columns.size(); ++i) {
                      auto added = alteration->add_columns({columns[i]});
                      if (!added.ok())
                        return at(std::move(added).error(), add.columns[i].path.place);
                    }
                    return {};
                  });
  }

  Status run(const sql::RenameColumn& rename) {
    SL_TRY(refuse_pipeline_definition(found_, "RENAME COLUMN"));
    FieldPath renamed = rename.column.parts;
    renamed.back() = rename.new_name.text;
    return commit({"RENAME COLUMN",
                   {{"oldColumnPath", delta::to_string(rename.column.parts)},
                    {"newColumnPath", delta::to_string(renamed)}}},
                  placed(rename.column.place, [&](Alteration* alteration) {
                    return alteration->rename_column(rename.column.parts, rename.new_name.text);
                  }));
  }

  Status run(const sql::DropColumns& drop) {
    SL_TRY(refuse_pipeline_definition(found_, "DROP COLUMNS"));
    std::string shown;
    for (const auto& column : drop.columns) {
      shown += (shown.empty() ? "" : ", ") + delta::to_string(column.parts);
    }
    return commit({"DROP COLUMNS", {{"columns", shown}}},
                  placed(drop.columns[0].place, [&](Alteration* alteration) -> Status {
                    std::vector<FieldPath> paths;
                    for (const auto& column : drop.columns) {
                      const bool known =
                          delta::find_field(alteration->schema(), column.parts) != nullptr;
                      if (known || !drop.if_exists) paths.push_back(column.parts);
                    }
                    return paths.empty() ? Status() : alteration->drop_columns(paths);
                  }));
  }

  Status run(const sql::ReplaceColumns& replace) {
    SL_TRY(refuse_pipeline_definition(found_, "REPLACE COLUMNS"));
    std::string shown;
    for (const auto& column : replace.columns) {
      if (column.path.parts.size() > 1) {
        return at(invalid_argument("DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP",
                                   "REPLACE COLUMNS takes whole columns, not {}",
                                   sql::to_string(column.path)),
                  column.path.place);
      }
      shown += (shown.empty() ? "" : ", ") + column_text(column.path.parts, column.definition.type);
    }
    return commit({"REPLACE COLUMNS", {{"columns", shown}}},
                  [&](const delta::Snapshot& snapshot, Alteration* alteration) -> Status {
                    auto replaced = replace_columns(snapshot, replace, alteration);
                    if (!replaced.ok())
                      return at(std::move(replaced).error(), replace.columns[0].path.place);
                    return {};
                  });
  }

  Status run(const sql::DropFeature& drop) {
    SL_TRY(refuse_pipeline_definition(found_, "DROP FEATURE"));
    auto dropped = drop_feature(*context_.connection, found_.table,
                                {drop.feature.text, drop.truncate_history});
    if (!dropped.ok()) return at(std::move(dropped).error(), drop.feature.place);
    return {};
  }

  Status run(const sql::AlterColumns& alter) {
    std::string shown;
    for (const auto& change : alter.changes) {
      const bool only_comment = change.comment && !change.type && !change.position;
      if (!only_comment) SL_TRY(refuse_pipeline_definition(found_, "ALTER COLUMN"));
      shown += (shown.empty() ? "" : ", ") + delta::to_string(change.column.parts);
    }
    return commit({"CHANGE COLUMN", {{"column", shown}}},
                  [&](const delta::Snapshot& snapshot, Alteration* alteration) -> Status {
                    for (const auto& change : alter.changes) {
                      auto changed = change_column(snapshot, change, alteration);
                      if (!changed.ok()) return at(std::move(changed).error(), change.column.place);
                    }
                    return {};
                  });
  }

  Status run(const sql::AddConstraint& add) {
    SL_TRY(refuse_pipeline_definition(found_, "ADD CONSTRAINT"));
    return commit({"ADD CONSTRAINT", {{"name", add.check.name.text}, {"expr", add.check.sql}}},
                  [&](const delta::Snapshot& snapshot, Alteration* alteration) -> Status {
                    auto added = add_constraint(snapshot, add.check, alteration);
                    if (!added.ok()) return at(std::move(added).error(), add.check.name.place);
                    return {};
                  });
  }

  Status run(const sql::DropConstraint& drop) {
    SL_TRY(refuse_pipeline_definition(found_, "DROP CONSTRAINT"));
    return commit({"DROP CONSTRAINT", {{"name", drop.name.text}}},
                  placed(drop.name.place, [&](Alteration* alteration) {
                    return alteration->drop_constraint(drop.name.text, drop.if_exists);
                  }));
  }

  Status run(const sql::SetClustering& clustering) {
    SL_TRY(refuse_pipeline_definition(found_, "CLUSTER BY"));
    std::vector<FieldPath> columns;
    std::string shown;
    for (const auto& column : clustering.columns) {
      columns.push_back(column.parts);
      shown += (shown.empty() ? "" : ",") + delta::to_string(column.parts);
    }
    std::string before;
    for (const auto& column : clustering_of(*found_.snapshot)) {
      before += (before.empty() ? "" : ",") + delta::to_string(column);
    }
    const SourcePlace place =
        clustering.columns.empty() ? SourcePlace{} : clustering.columns[0].place;
    return commit(
        {"CLUSTER BY", {{"oldClusteringColumns", before}, {"newClusteringColumns", shown}}},
        placed(place, [&](Alteration* alteration) { return alteration->set_clustering(columns); }));
  }

  Status comment(const std::optional<FieldPath>& column, const std::optional<std::string>& text) {
    if (column) {
      return commit({"CHANGE COLUMN", {{"column", delta::to_string(*column)}}},
                    placed({}, [&](Alteration* alteration) {
                      return alteration->change_comment(*column, text);
                    }));
    }
    return commit(
        {"SET TBLPROPERTIES", {{"properties", json_object({{"comment", text.value_or("")}})}}},
        placed({}, [&](Alteration* alteration) { return alteration->set_description(text); }));
  }

 private:
  using Change = std::function<Status(const delta::Snapshot&, Alteration*)>;

  template <typename Body>
  Change placed(const SourcePlace& place, Body body) {
    return [place, body](const delta::Snapshot&, Alteration* alteration) -> Status {
      auto changed = body(alteration);
      if (!changed.ok()) return at(std::move(changed).error(), place);
      return {};
    };
  }

  Status commit(const delta::AlterOperation& operation, const Change& change) {
    const auto version = delta::commit_alteration(found_.table, operation, change);
    return version.ok() ? Status() : Status(version.error());
  }

  // What a pipeline remembers in a table's properties is its own.
  static Status check_key(const std::string& key, const SourcePlace& place) {
    if (!key.starts_with("strandline.") && key != pipeline::kPipelineIdProperty) return {};
    return at(invalid_argument("RESERVED_TABLE_PROPERTY",
                               "the property {} belongs to Strandline: choose another name", key),
              place);
  }

  Status change_column(const delta::Snapshot& snapshot, const sql::ColumnChange& change,
                       Alteration* alteration) const {
    const FieldPath& path = change.column.parts;
    if (change.type) {
      SL_TRY(alteration->change_type(path, *change.type));
      SL_TRY(alteration->change_text_type(path, change.sized_type));
    }
    if (change.comment) SL_TRY(alteration->change_comment(path, change.comment));
    if (change.position) SL_TRY(alteration->move_column(path, position_of(change.position)));
    if (change.nullable && *change.nullable) SL_TRY(alteration->set_nullable(path));
    if (change.nullable && !*change.nullable) {
      SL_TRY(alteration->set_not_null(path));
      SL_TRY(check_no_nulls(snapshot, path));
    }
    if (change.sync_identity) SL_TRY(sync_identity(snapshot, path, alteration));
    if (change.drop_default) SL_TRY(alteration->change_default(path, std::nullopt));
    if (change.default_value != nullptr) {
      SL_TRY(alteration->change_default(path, change.default_sql));
      SL_ASSIGN(const auto rules, delta::table_rules(alteration->metadata(), alteration->schema()));
      if (const auto* rule = rules.find(path[0])) {
        SL_TRY(duck::check_column_rule(*context_.connection, alteration->schema(), *rule));
      }
    }
    return {};
  }

  // New columns are added first, so that a table may lose all it had.
  Status replace_columns(const delta::Snapshot& snapshot, const sql::ReplaceColumns& replace,
                         Alteration* alteration) const {
    const auto is_kept = [&](const Field& field) {
      return std::any_of(replace.columns.begin(), replace.columns.end(), [&](const auto& column) {
        return same_name(column.definition.name.text, field.name);
      });
    };
    std::vector<FieldPath> gone;
    for (const auto& field : alteration->schema().fields) {
      if (!is_kept(field)) gone.push_back({field.name});
    }
    auto position = delta::FieldPosition::first();
    std::vector<std::string> seen;
    for (const auto& column : replace.columns) {
      const auto& definition = column.definition;
      const auto& name = definition.name.text;
      for (const auto& other : seen) {
        if (!same_name(other, name)) continue;
        return invalid_argument("COLUMN_ALREADY_EXISTS", "the column '{}' is declared twice", name);
      }
      seen.push_back(name);
      if (alteration->schema().find(name)) {
        sql::ColumnChange change;
        change.column = column.path;
        change.type = definition.type;
        change.sized_type = definition.sized_type;
        change.default_value = definition.default_value;
        change.default_sql = definition.default_sql;
        const auto* before = alteration->schema().get(name);
        if (before->nullable != definition.nullable) change.nullable = definition.nullable;
        SL_TRY(change_column(snapshot, change, alteration));
        SL_TRY(alteration->change_comment({name}, definition.comment));
        SL_TRY(alteration->move_column({name}, position));
      } else {
        SL_TRY(alteration->add_columns({{{}, pipeline::declared_field(definition), position}}));
      }
      position = delta::FieldPosition::behind(name);
    }
    return gone.empty() ? Status() : alteration->drop_columns(gone);
  }

  Result<std::string> scan(const delta::Snapshot& snapshot, Relations* relations) const {
    return relations->scan(found_.table, std::make_shared<const delta::Snapshot>(snapshot));
  }

  // A column, or a member of structs: there is a row where what holds it is there and it is not.
  Status check_no_nulls(const delta::Snapshot& snapshot, const FieldPath& path) const {
    Relations relations(context_);
    SL_ASSIGN(const auto rows, scan(snapshot, &relations));
    std::string value = duck::quote_name(path[0]);
    std::string broken = "true";
    for (size_t i = 1; i < path.size(); ++i) {
      broken += " AND " + value + " IS NOT NULL";
      value = fmt::format("struct_extract({}, {})", value, duck::quote_literal(path[i]));
    }
    SL_ASSIGN(const auto nulls,
              context_.connection->query_int(fmt::format(
                  "SELECT count(*) FROM {} WHERE {} AND {} IS NULL", rows, broken, value)));
    if (nulls == 0) return {};
    return invalid_data(
        "DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
        "{} rows of {} have no value in column {}: give them one, then SET NOT NULL", nulls,
        found_.name, delta::to_string(path));
  }

  Status sync_identity(const delta::Snapshot& snapshot, const FieldPath& path,
                       Alteration* alteration) const {
    SL_ASSIGN(const auto rules, delta::table_rules(snapshot.metadata, snapshot.schema));
    const auto* rule = rules.find(path[0]);
    if (rule == nullptr || !rule->identity) return alteration->sync_identity(path, std::nullopt);
    Relations relations(context_);
    SL_ASSIGN(const auto rows, scan(snapshot, &relations));
    SL_ASSIGN(const auto found,
              context_.connection->query(fmt::format("SELECT CAST({}({}) AS BIGINT) FROM {}",
                                                     rule->identity->step > 0 ? "max" : "min",
                                                     duck::quote_name(rule->path[0]), rows)));
    const auto& furthest = found.rows.at(0).at(0);
    return alteration->sync_identity(
        path, furthest ? std::optional<int64_t>(std::stoll(*furthest)) : std::nullopt);
  }

  Status add_constraint(const delta::Snapshot& snapshot, const sql::CheckDefinition& check,
                        Alteration* alteration) const {
    SL_TRY(alteration->add_constraint(check.name.text, check.sql));
    SL_TRY(duck::check_constraint(*context_.connection, snapshot.schema,
                                  {fold_name(check.name.text), check.sql}));
    SL_ASSIGN(const auto text, duck::rule_text(*context_.connection, snapshot.schema, check.sql,
                                               "the constraint " + check.name.text));
    Relations relations(context_);
    SL_ASSIGN(const auto rows, scan(snapshot, &relations));
    SL_ASSIGN(const auto broken,
              context_.connection->query(
                  fmt::format("SELECT count(*), min({}) FROM {} AS r WHERE NOT coalesce({}, false)",
                              duck::shown_row(*text.expr, snapshot.schema), rows, text.duckdb)));
    const auto& answer = broken.rows.at(0);
    if (answer[0].value_or("0") == "0") return {};
    return invalid_data(
        "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION",
        "{} rows of {} violate the new CHECK constraint {} ({}), such as {}: change "
        "or delete them first",
        *answer[0], found_.name, check.name.text, check.sql, answer[1].value_or(""));
  }

  const Context& context_;
  const FoundTable found_;
};

Status rename_table(const Context& context, const sql::TableName& from, const sql::TableName& to) {
  SL_ASSIGN(auto* warehouse, context.needs_warehouse());
  SL_ASSIGN(const auto found, find_table(context, from));
  SL_TRY(refuse_pipeline_definition(found, "RENAME TO"));
  SL_ASSIGN(const auto old_name, warehouse->qualify(from, context.defaults));
  // A plain new name stays in the schema of the old one.
  SL_ASSIGN(const auto new_name,
            warehouse->qualify(to, catalog::Defaults{old_name.catalog, old_name.schema}));
  auto renamed = warehouse->rename_table(old_name, new_name);
  if (!renamed.ok()) return at(std::move(renamed).error(), to.place);
  return {};
}

}  // namespace

Status alter_table(const Context& context, const sql::AlterTable& statement) {
  if (const auto* rename = std::get_if<sql::RenameTable>(&statement.action)) {
    return rename_table(context, statement.table, rename->to);
  }
  SL_ASSIGN(auto found, find_table(context, statement.table));
  Alter alter(context, std::move(found));
  return std::visit(
      [&alter](const auto& action) -> Status {
        if constexpr (std::is_same_v<std::decay_t<decltype(action)>, sql::RenameTable>) {
          return {};  // done above
        } else {
          return alter.run(action);
        }
      },
      statement.action);
}

Status comment_on(const Context& context, const sql::CommentOn& statement) {
  if (statement.what == sql::CommentOn::What::kSchema) {
    SL_ASSIGN(auto* warehouse, context.needs_warehouse());
    SL_ASSIGN(const auto schema, schema_named(context, statement.name));
    auto set = warehouse->set_schema_comment(schema.first, schema.second, statement.comment);
    if (!set.ok()) return at(std::move(set).error(), statement.name.place);
    return {};
  }
  SL_ASSIGN(auto found, find_table(context, statement.name));
  Alter alter(context, std::move(found));
  std::optional<FieldPath> column;
  if (statement.what == sql::CommentOn::What::kColumn) column = FieldPath{statement.column.text};
  auto done = alter.comment(column, statement.comment);
  if (!done.ok()) return at(std::move(done).error(), statement.name.place);
  return {};
}

}  // namespace strandline::engine
