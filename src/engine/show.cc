#include "engine/show.h"

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "engine/listing.h"
#include "engine/relations.h"
#include "sql/duckdb_printer.h"
#include "sql/parser.h"

namespace strandline::engine {
namespace {

using std::string;

std::optional<string> comment_of(const Field& field) {
  const auto found = field.metadata.find("comment");
  if (found == field.metadata.end()) return std::nullopt;
  const auto json = Json::parse(found->second);
  if (!json.ok() || json->as_string() == nullptr) return std::nullopt;
  return *json->as_string();
}

// Spark spells types in lower case here.
string type_text(const DataType& type) {
  string text = to_sql(type);
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : static_cast<char>(c);
  });
  return type.is_nested() ? to_sql(type) : text;
}

std::vector<string> clustering_columns(const delta::Snapshot& snapshot) {
  std::vector<string> out;
  const auto domain = snapshot.domains.find("delta.clustering");
  if (domain == snapshot.domains.end()) return out;
  const auto json = Json::parse(domain->second.configuration);
  const Json* columns = json.ok() ? json->get("clusteringColumns") : nullptr;
  if (columns == nullptr) return out;
  for (const auto& path : columns->items()) {
    string name;
    for (const auto& part : path.items()) name += (name.empty() ? "" : ".") + part.text();
    out.push_back(name);
  }
  return out;
}

std::vector<string> features_of(const delta::Protocol& protocol) {
  std::set<string> all = protocol.reader_features;
  all.insert(protocol.writer_features.begin(), protocol.writer_features.end());
  return {all.begin(), all.end()};
}

Listing columns_listing() {
  return Listing({{"col_name", "VARCHAR"}, {"data_type", "VARCHAR"}, {"comment", "VARCHAR"}});
}

Result<std::optional<catalog::View>> find_view(const Context& context, const sql::TableName& name) {
  if (name.is_path) return std::optional<catalog::View>();
  if (name.parts.size() == 1) {
    const auto found = context.temporary_views.find(fold_name(name.parts[0]));
    if (found != context.temporary_views.end()) return std::optional(found->second);
  }
  SL_ASSIGN(auto* warehouse, context.needs_warehouse());
  SL_ASSIGN(const auto qualified, warehouse->qualify(name, context.defaults));
  return warehouse->view(qualified);
}

Result<string> describe_view(const Context& context, const sql::TableName& name,
                             const catalog::View& view, bool extended) {
  Relations relations(context);
  SL_ASSIGN(const auto query, sql::parse_query("SELECT * FROM " + sql::to_string(name), ""));
  SL_ASSIGN(const auto text, relations.print(*query));
  SL_ASSIGN(const auto columns, context.connection->describe(text));
  auto listing = columns_listing();
  for (const auto& column : columns) {
    listing.add({Listing::text(column.name), Listing::text(type_text(column.type)), "NULL"});
  }
  if (extended) {
    const auto row = [&listing](const char* key, const string& value) {
      listing.add({Listing::text(key), Listing::text(value), "''"});
    };
    row("", "");
    row("# Detailed Table Information", "");
    row("Type", "VIEW");
    if (view.comment) row("Comment", *view.comment);
    row("View Text", view.sql);
    row("View Catalog and Namespace", fmt::format("{}.{}", view.catalog, view.schema));
  }
  return listing.query();
}

string describe_columns(const FoundTable& found, bool extended) {
  const auto& snapshot = *found.snapshot;
  auto listing = columns_listing();
  for (const auto& field : snapshot.schema.fields) {
    listing.add({Listing::text(field.name), Listing::text(type_text(field.type)),
                 Listing::text(comment_of(field))});
  }
  const auto heading = [&listing](const char* title) {
    listing.add({"''", "''", "''"});
    listing.add({Listing::text(title), "''", "''"});
  };
  const auto& partitions = snapshot.metadata.partition_columns;
  if (!partitions.empty()) {
    heading("# Partition Information");
    for (const auto& name : partitions) {
      const auto* field = snapshot.schema.get(name);
      listing.add(
          {Listing::text(name), Listing::text(field ? type_text(field->type) : ""), "NULL"});
    }
  }
  const auto clusters = clustering_columns(snapshot);
  if (!clusters.empty()) {
    heading("# Clustering Information");
    for (const auto& name : clusters) {
      const auto* field = snapshot.schema.get(name);
      listing.add(
          {Listing::text(name), Listing::text(field ? type_text(field->type) : ""), "NULL"});
    }
  }
  if (extended) {
    heading("# Detailed Table Information");
    const auto row = [&listing](const char* key, const string& value) {
      listing.add({Listing::text(key), Listing::text(value), "''"});
    };
    row("Name", found.name);
    row("Type", belongs_to_pipeline(snapshot) ? "STREAMING_TABLE" : "TABLE");
    row("Provider", "delta");
    row("Location", found.table.path());
    if (snapshot.metadata.description) row("Comment", *snapshot.metadata.description);
    string properties;
    for (const auto& [key, value] : snapshot.metadata.configuration) {
      properties += fmt::format("{}{}={}", properties.empty() ? "" : ",", key, value);
    }
    row("Table Properties", "[" + properties + "]");
  }
  return listing.query();
}

string describe_detail(const FoundTable& found) {
  const auto& snapshot = *found.snapshot;
  int64_t bytes = 0;
  for (const auto& file : snapshot.files) bytes += file.size_bytes;
  Listing listing({{"format", "VARCHAR"},
                   {"id", "VARCHAR"},
                   {"name", "VARCHAR"},
                   {"description", "VARCHAR"},
                   {"location", "VARCHAR"},
                   {"createdAt", "TIMESTAMP WITH TIME ZONE"},
                   {"lastModified", "TIMESTAMP WITH TIME ZONE"},
                   {"partitionColumns", "VARCHAR[]"},
                   {"clusteringColumns", "VARCHAR[]"},
                   {"numFiles", "BIGINT"},
                   {"sizeInBytes", "BIGINT"},
                   {"properties", "MAP(VARCHAR, VARCHAR)"},
                   {"minReaderVersion", "INTEGER"},
                   {"minWriterVersion", "INTEGER"},
                   {"tableFeatures", "VARCHAR[]"}});
  listing.add({"'delta'", Listing::text(snapshot.metadata.id), Listing::text(found.name),
               Listing::text(snapshot.metadata.description), Listing::text(found.table.path()),
               Listing::instant(snapshot.metadata.created_time_ms),
               Listing::instant(snapshot.timestamp_ms),
               Listing::list(snapshot.metadata.partition_columns),
               Listing::list(clustering_columns(snapshot)),
               Listing::number(static_cast<int64_t>(snapshot.files.size())), Listing::number(bytes),
               Listing::map(snapshot.metadata.configuration),
               Listing::number(snapshot.protocol.min_reader_version),
               Listing::number(snapshot.protocol.min_writer_version),
               Listing::list(features_of(snapshot.protocol))});
  return listing.query();
}

// Newest first; versions whose log is gone are left out.
Result<string> describe_history(const FoundTable& found) {
  Listing listing({{"version", "BIGINT"},
                   {"timestamp", "TIMESTAMP WITH TIME ZONE"},
                   {"operation", "VARCHAR"},
                   {"operationParameters", "MAP(VARCHAR, VARCHAR)"},
                   {"readVersion", "BIGINT"},
                   {"isolationLevel", "VARCHAR"},
                   {"isBlindAppend", "BOOLEAN"},
                   {"operationMetrics", "MAP(VARCHAR, VARCHAR)"},
                   {"engineInfo", "VARCHAR"}});
  for (delta::Version version = found.snapshot->version; version >= 0; --version) {
    auto actions = found.table.commit(version);
    if (!actions.ok()) {
      if (actions.error().kind == ErrorKind::kNotFound) break;
      return std::move(actions).error();
    }
    delta::CommitInfo info;
    for (const auto& action : *actions) {
      if (const auto* known = std::get_if<delta::CommitInfo>(&action)) info = *known;
    }
    std::map<string, string> parameters;
    for (const auto& [key, value] : info.operation_parameters) {
      const auto json = Json::parse(value);
      const auto* text = json.ok() ? json->as_string() : nullptr;
      parameters[key] = text != nullptr ? *text : value;
    }
    listing.add({Listing::number(version),
                 Listing::instant(info.in_commit_timestamp_ms.value_or(info.timestamp_ms)),
                 Listing::text(info.operation), Listing::map(parameters),
                 Listing::number(info.read_version), Listing::text(info.isolation_level),
                 Listing::truth(info.is_blind_append), Listing::map(info.operation_metrics),
                 Listing::text(info.engine_info)});
  }
  return listing.query();
}

string show_properties(const FoundTable& found, const std::optional<string>& key) {
  Listing listing({{"key", "VARCHAR"}, {"value", "VARCHAR"}});
  const auto& properties = found.snapshot->metadata.configuration;
  if (key) {
    const auto known = properties.find(*key);
    listing.add(
        {Listing::text(key), Listing::text(known != properties.end()
                                               ? known->second
                                               : fmt::format("Table {} does not have property: {}",
                                                             found.name, *key))});
  } else {
    for (const auto& [name, value] : properties) {
      listing.add({Listing::text(name), Listing::text(value)});
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

string create_table_text(const FoundTable& found) {
  const auto& snapshot = *found.snapshot;
  string out = fmt::format("CREATE TABLE {} (", found.name);
  bool first = true;
  for (const auto& field : snapshot.schema.fields) {
    out += fmt::format("{}\n  {} {}{}", first ? "" : ",", quoted(field.name), to_sql(field.type),
                       field.nullable ? "" : " NOT NULL");
    if (const auto comment = comment_of(field)) out += " COMMENT " + sql_string(*comment);
    first = false;
  }
  out += ")\nUSING delta";
  const auto names = [](const std::vector<string>& columns) {
    string list;
    for (const auto& column : columns) list += (list.empty() ? "" : ", ") + quoted(column);
    return list;
  };
  if (!snapshot.metadata.partition_columns.empty()) {
    out += "\nPARTITIONED BY (" + names(snapshot.metadata.partition_columns) + ")";
  }
  const auto clusters = clustering_columns(snapshot);
  if (!clusters.empty()) out += "\nCLUSTER BY (" + names(clusters) + ")";
  if (snapshot.metadata.description)
    out += "\nCOMMENT " + sql_string(*snapshot.metadata.description);
  string properties;
  for (const auto& [key, value] : snapshot.metadata.configuration) {
    // Names of hidden columns belong to this table alone.
    if (key.starts_with("delta.rowTracking.materialized")) continue;
    properties += fmt::format("{}\n  {} = {}", properties.empty() ? "" : ",", sql_string(key),
                              sql_string(value));
  }
  if (!properties.empty()) out += "\nTBLPROPERTIES (" + properties + ")";
  return out + "\n";
}

// Catalog and schema of SHOW TABLES IN [c.]s.
Result<std::pair<string, string>> schema_of(const Context& context,
                                            const std::optional<sql::TableName>& name) {
  if (!name) return std::pair{context.defaults.catalog, context.defaults.schema};
  const auto& parts = name->parts;
  if (name->is_path || parts.empty() || parts.size() > 2) {
    auto error =
        invalid_argument("INVALID_NAME", "{} is not a schema: write schema or catalog.schema",
                         sql::to_string(*name));
    error.place = name->place;
    return error;
  }
  return std::pair{parts.size() == 2 ? parts[0] : context.defaults.catalog, parts.back()};
}

}  // namespace

Result<string> describe(const Context& context, const sql::Describe& statement) {
  using What = sql::Describe::What;
  SL_ASSIGN(const auto view, find_view(context, statement.table));
  if (view && (statement.what == What::kColumns || statement.what == What::kExtended)) {
    return describe_view(context, statement.table, *view, statement.what == What::kExtended);
  }
  SL_ASSIGN(const auto found, find_table(context, statement.table));
  switch (statement.what) {
    case What::kColumns:
      return describe_columns(found, false);
    case What::kExtended:
      return describe_columns(found, true);
    case What::kDetail:
      return describe_detail(found);
    case What::kHistory:
      return describe_history(found);
  }
  return internal_error("INTERNAL_ERROR", "unknown DESCRIBE");
}

Result<string> show(const Context& context, const sql::Show& statement) {
  using What = sql::Show::What;
  SL_ASSIGN(auto* warehouse, context.needs_warehouse());
  const auto needs_name = [&]() -> Result<sql::TableName> {
    if (statement.name) return *statement.name;
    return invalid_argument("PARSE_SYNTAX_ERROR", "SHOW needs a table's name here");
  };
  switch (statement.what) {
    case What::kTables: {
      SL_ASSIGN(const auto where, schema_of(context, statement.name));
      SL_ASSIGN(const bool exists, warehouse->schema_exists(where.first, where.second));
      if (!exists) {
        return not_found("SCHEMA_NOT_FOUND", "there is no schema {}.{}", where.first, where.second);
      }
      SL_ASSIGN(const auto entries, warehouse->tables(where.first, where.second));
      Listing listing(
          {{"database", "VARCHAR"}, {"tableName", "VARCHAR"}, {"isTemporary", "BOOLEAN"}});
      for (const auto& entry : entries) {
        listing.add({Listing::text(entry.name.schema), Listing::text(entry.name.name), "false"});
      }
      for (const auto& [name, view] : context.temporary_views) {
        listing.add({"''", Listing::text(name), "true"});
      }
      return listing.query();
    }
    case What::kSchemas: {
      if (statement.name && statement.name->parts.size() != 1) {
        return invalid_argument("INVALID_NAME", "{} is not a catalog",
                                sql::to_string(*statement.name));
      }
      SL_ASSIGN(const auto names, warehouse->schemas(statement.name ? statement.name->parts[0]
                                                                    : context.defaults.catalog));
      Listing listing({{"databaseName", "VARCHAR"}});
      for (const auto& name : names) listing.add({Listing::text(name)});
      return listing.query();
    }
    case What::kCatalogs: {
      SL_ASSIGN(const auto names, warehouse->catalogs());
      Listing listing({{"catalog", "VARCHAR"}});
      for (const auto& name : names) listing.add({Listing::text(name)});
      return listing.query();
    }
    case What::kTableProperties: {
      SL_ASSIGN(const auto name, needs_name());
      SL_ASSIGN(const auto found, find_table(context, name));
      return show_properties(found, statement.key);
    }
    case What::kCreateTable: {
      SL_ASSIGN(const auto name, needs_name());
      SL_ASSIGN(const auto found, find_table(context, name));
      Listing listing({{"createtab_stmt", "VARCHAR"}});
      listing.add({Listing::text(create_table_text(found))});
      return listing.query();
    }
    case What::kColumns: {
      SL_ASSIGN(const auto name, needs_name());
      SL_ASSIGN(const auto found, find_table(context, name));
      Listing listing({{"col_name", "VARCHAR"}});
      for (const auto& field : found.snapshot->schema.fields)
        listing.add({Listing::text(field.name)});
      return listing.query();
    }
  }
  return internal_error("INTERNAL_ERROR", "unknown SHOW");
}

}  // namespace strandline::engine
