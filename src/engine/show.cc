#include "engine/show.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/secrets.h"
#include "delta/text_length.h"
#include "engine/describe.h"
#include "engine/listing.h"
#include "engine/names.h"
#include "engine/streaming_tables.h"
#include "sql/duckdb_printer.h"

namespace strandline::engine {
namespace {

using std::string;

// LIKE of SHOW: * stands for any text, | separates alternatives, case does not count.
bool matches(const std::optional<string>& pattern, const string& name) {
  if (!pattern) return true;
  const string text = fold_name(name);
  const auto one = [&text](const string& wanted) {
    // Greedy with one way back: the last star.
    size_t at = 0;
    size_t in = 0;
    size_t star = string::npos;
    size_t resume = 0;
    while (in < text.size()) {
      if (at < wanted.size() && wanted[at] == '*') {
        star = at++;
        resume = in;
      } else if (at < wanted.size() && wanted[at] == text[in]) {
        ++at;
        ++in;
      } else if (star != string::npos) {
        at = star + 1;
        in = ++resume;
      } else {
        return false;
      }
    }
    while (at < wanted.size() && wanted[at] == '*') ++at;
    return at == wanted.size();
  };
  const string folded = fold_name(*pattern);
  for (size_t begin = 0; begin <= folded.size();) {
    const size_t end = std::min(folded.find('|', begin), folded.size());
    if (one(folded.substr(begin, end - begin))) return true;
    begin = end + 1;
  }
  return false;
}

string show_properties(const FoundTable& found, const std::optional<string>& key) {
  Listing listing({{"key", "VARCHAR"}, {"value", "VARCHAR"}});
  const auto& properties = found.snapshot->metadata.configuration;
  if (key) {
    const auto known = properties.find(*key);
    listing.add(
        {Listing::text(key), Listing::text(known != properties.end()
                                               ? shown_value(*key, known->second)
                                               : fmt::format("Table {} does not have property: {}",
                                                             found.name, *key))});
  } else {
    for (const auto& [name, value] : properties) {
      listing.add({Listing::text(name), Listing::text(shown_value(name, value))});
    }
  }
  return listing.query();
}

string sql_string(const string& text) {
  string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

string quoted(const string& name) { return sql::to_string(sql::TableName{{name}, false, {}}); }

string column_clauses(const Field& field) {
  string out = field.nullable ? "" : " NOT NULL";
  if (const auto comment = comment_of(field)) out += " COMMENT " + sql_string(*comment);
  return out;
}

// The type with everything its members say, as CREATE TABLE takes it.
string type_ddl(const DataType& type) {
  switch (type.id) {
    case TypeId::kArray:
      return fmt::format("ARRAY<{}>", type_ddl(*type.element));
    case TypeId::kMap:
      return fmt::format("MAP<{}, {}>", type_ddl(*type.key), type_ddl(*type.element));
    case TypeId::kStruct: {
      string members;
      for (const auto& field : *type.fields) {
        members += fmt::format("{}{}: {}{}", members.empty() ? "" : ", ", quoted(field.name),
                               type_ddl(field.type), column_clauses(field));
      }
      return "STRUCT<" + members + ">";
    }
    default:
      return to_sql(type);
  }
}

Result<string> create_table_text(const Context& context, const FoundTable& found,
                                 const sql::TableName& name) {
  const auto& snapshot = *found.snapshot;
  SL_ASSIGN(const auto rules, delta::table_rules(snapshot.metadata, snapshot.schema));
  string elements;
  const auto add = [&elements](const string& element) {
    elements += (elements.empty() ? "\n  " : ",\n  ") + element;
  };
  for (const auto& field : snapshot.schema.fields) {
    const auto* rule = rules.find(field.name);
    const auto value = rule == nullptr ? "" : value_clause(*rule);
    const auto type = field.type.is_nested() ? type_ddl(field.type) : delta::declared_type(field);
    add(fmt::format("{} {}{}{}{}", quoted(field.name), type, value.empty() ? "" : " ", value,
                    column_clauses(field)));
  }
  for (const auto& check : rules.checks) {
    add(fmt::format("CONSTRAINT {} CHECK ({})", quoted(check.name), check.sql));
  }
  string out = fmt::format("CREATE TABLE {} ({})\nUSING delta", found.name, elements);
  string partitions;
  for (const auto& column : snapshot.metadata.partition_columns) {
    partitions += (partitions.empty() ? "" : ", ") + quoted(column);
  }
  if (!partitions.empty()) out += "\nPARTITIONED BY (" + partitions + ")";
  string clusters;
  for (const auto& column : clustering_of(snapshot)) {
    clusters += (clusters.empty() ? "" : ", ") + sql::to_string(sql::ColumnPath{column, {}});
  }
  if (!clusters.empty()) out += "\nCLUSTER BY (" + clusters + ")";
  if (!name.is_path) {
    SL_ASSIGN(auto* warehouse, context.needs_warehouse());
    SL_ASSIGN(const auto qualified, warehouse->qualify(name, context.defaults));
    SL_ASSIGN(const bool external, warehouse->is_external(qualified));
    if (external) out += "\nLOCATION " + sql_string(found.table.path());
  }
  if (snapshot.metadata.description) {
    out += "\nCOMMENT " + sql_string(*snapshot.metadata.description);
  }
  string properties;
  for (const auto& [key, value] : snapshot.metadata.configuration) {
    if (belongs_to_one_table(key) || key.starts_with(delta::kConstraintPrefix)) continue;
    properties += fmt::format("{}\n  {} = {}", properties.empty() ? "" : ",", sql_string(key),
                              sql_string(shown_value(key, value)));
  }
  if (!properties.empty()) out += "\nTBLPROPERTIES (" + properties + ")";
  return out + "\n";
}

string create_view_text(const sql::TableName& name, const catalog::View& view) {
  string columns;
  for (const auto& column : view.columns) {
    columns += (columns.empty() ? "" : ", ") + quoted(column);
  }
  return fmt::format("CREATE VIEW {}{}{} AS {}\n", sql::to_string(name),
                     columns.empty() ? "" : " (" + columns + ")",
                     view.comment ? " COMMENT " + sql_string(*view.comment) : "", view.sql);
}

// One row for each combination of values that live files have.
Result<string> show_partitions(const FoundTable& found) {
  const auto& snapshot = *found.snapshot;
  const auto& names = snapshot.metadata.partition_columns;
  if (names.empty()) {
    return invalid_argument("DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_TABLE",
                            "{} has no partition columns", found.name);
  }
  std::vector<Listing::Column> columns;
  std::vector<string> keys;
  for (const auto& name : names) {
    const auto* field = snapshot.schema.get(name);
    if (field == nullptr) {
      return corrupt("DELTA_INVALID_TABLE_DEFINITION", "{} has no column {}, its partition column",
                     found.name, name);
    }
    columns.push_back({field->name, duck::engine_type(field->type)});
    keys.push_back(snapshot.column_mapping_mode() == "none"
                       ? field->name
                       : delta::Snapshot::physical_name(*field));
  }
  std::set<std::vector<std::optional<string>>> rows;
  for (const auto& file : snapshot.files) {
    std::vector<std::optional<string>> row;
    for (const auto& key : keys) {
      const auto value = file.partition_values.find(key);
      const bool given =
          value != file.partition_values.end() && value->second && !value->second->empty();
      row.push_back(given ? value->second : std::nullopt);
    }
    rows.insert(std::move(row));
  }
  Listing listing(columns);
  for (const auto& row : rows) {
    std::vector<string> cells;
    for (const auto& cell : row) cells.push_back(Listing::text(cell));
    listing.add(std::move(cells));
  }
  return listing.query() + " ORDER BY ALL";
}

Result<std::vector<string>> columns_of(const Context& context, const sql::TableName& name) {
  std::vector<string> names;
  SL_ASSIGN(const auto view, find_view(context, name));
  if (view) {
    SL_ASSIGN(const auto columns, view_columns(context, name));
    for (const auto& column : columns) names.push_back(column.name);
    return names;
  }
  SL_ASSIGN(const auto found, find_table(context, name));
  for (const auto& field : found.snapshot->schema.fields) names.push_back(field.name);
  return names;
}

// Tables and views of a schema, and the session's views.
// Nothing found in a folder that is not there may be a mistyped path.
Result<catalog::Warehouse*> existing_warehouse(const Context& context) {
  SL_ASSIGN(auto* warehouse, context.needs_warehouse());
  std::error_code failed;
  if (std::filesystem::exists(warehouse->root(), failed) || failed) return warehouse;
  return not_found("WAREHOUSE_NOT_FOUND",
                   "there is no warehouse at {}: check the path; the first CREATE makes it",
                   warehouse->root());
}

Result<string> show_tables(const Context& context, const sql::Show& statement, bool only_views) {
  SL_ASSIGN(auto* warehouse, existing_warehouse(context));
  std::pair<string, string> where{context.defaults.catalog, context.defaults.schema};
  if (statement.name) {
    SL_ASSIGN(where, known_schema(context, *statement.name));
  }
  SL_ASSIGN(const auto entries, warehouse->tables(where.first, where.second));
  Listing listing({{only_views ? "namespace" : "database", "VARCHAR"},
                   {only_views ? "viewName" : "tableName", "VARCHAR"},
                   {"isTemporary", "BOOLEAN"}});
  for (const auto& entry : entries) {
    if ((only_views && !entry.is_view) || !matches(statement.pattern, entry.name.name)) continue;
    listing.add({Listing::text(entry.name.schema), Listing::text(entry.name.name), "false"});
  }
  for (const auto& [name, view] : context.temporary_views) {
    if (matches(statement.pattern, name)) listing.add({"''", Listing::text(name), "true"});
  }
  return listing.query();
}

}  // namespace

Result<string> show(const Context& context, const sql::Show& statement) {
  using What = sql::Show::What;
  const auto names_listing = [&statement](const char* title, const std::vector<string>& names) {
    Listing listing({{title, "VARCHAR"}});
    for (const auto& name : names) {
      if (matches(statement.pattern, name)) listing.add({Listing::text(name)});
    }
    return listing.query();
  };
  switch (statement.what) {
    case What::kTables:
    case What::kViews:
      return show_tables(context, statement, statement.what == What::kViews);
    case What::kSchemas: {
      SL_ASSIGN(auto* warehouse, existing_warehouse(context));
      if (statement.name && statement.name->parts.size() != 1) {
        return at(invalid_argument("INVALID_NAME", "{} is not a catalog",
                                   sql::to_string(*statement.name)),
                  statement.name->place);
      }
      SL_ASSIGN(const auto names, warehouse->schemas(statement.name ? statement.name->parts[0]
                                                                    : context.defaults.catalog));
      return names_listing("databaseName", names);
    }
    case What::kCatalogs: {
      SL_ASSIGN(auto* warehouse, context.needs_warehouse());
      SL_ASSIGN(const auto names, warehouse->catalogs());
      return names_listing("catalog", names);
    }
    default:
      break;
  }
  if (!statement.name) return internal_error("INTERNAL_ERROR", "SHOW without a name");
  const auto& name = *statement.name;
  if (statement.what == What::kColumns) {
    SL_ASSIGN(const auto names, columns_of(context, name));
    return names_listing("col_name", names);
  }
  if (statement.what == What::kCreateTable) {
    Listing listing({{"createtab_stmt", "VARCHAR"}});
    SL_ASSIGN(const auto view, find_view(context, name));
    if (view) {
      listing.add({Listing::text(create_view_text(name, *view))});
    } else {
      SL_ASSIGN(const auto found, find_table(context, name));
      if (const auto declared = declaration_of(context, found)) {
        listing.add({Listing::text(declared->statement + "\n")});
      } else {
        SL_ASSIGN(const auto text, create_table_text(context, found, name));
        listing.add({Listing::text(text)});
      }
    }
    return listing.query();
  }
  SL_ASSIGN(const auto found, find_table(context, name));
  if (statement.what == What::kPartitions) return show_partitions(found);
  return show_properties(found, statement.key);
}

}  // namespace strandline::engine
