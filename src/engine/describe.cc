#include "engine/describe.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/json.h"
#include "base/secrets.h"
#include "delta/alter.h"
#include "delta/column_rules.h"
#include "delta/commit_times.h"
#include "delta/text_length.h"
#include "engine/listing.h"
#include "engine/names.h"
#include "engine/relations.h"
#include "engine/streaming_tables.h"
#include "pipeline/context.h"
#include "sql/duckdb_printer.h"
#include "sql/parser.h"

namespace strandline::engine {
namespace {

using std::string;

// Spark spells types in lower case here.
string lower(string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : static_cast<char>(c);
  });
  return text;
}

string type_text(const DataType& type) {
  return type.is_nested() ? to_sql(type) : lower(to_sql(type));
}

string type_text(const Field& field) {
  return field.type.is_nested() ? to_sql(field.type) : lower(delta::declared_type(field));
}

// Names of columns; a name with a dot of its own stands in backquotes.
std::vector<string> dotted(const std::vector<delta::FieldPath>& paths) {
  std::vector<string> names;
  for (const auto& path : paths) {
    names.push_back(path.size() == 1 ? path[0] : sql::to_string(sql::ColumnPath{path, {}}));
  }
  return names;
}

std::vector<string> features_of(const delta::Protocol& protocol) {
  std::set<string> all = protocol.reader_features;
  all.insert(protocol.writer_features.begin(), protocol.writer_features.end());
  return {all.begin(), all.end()};
}

// Rows of col_name, data_type, comment, as DESCRIBE gives them.
class ColumnListing {
 public:
  void add(const string& name, const string& type, const std::optional<string>& comment) {
    listing_.add({Listing::text(name), Listing::text(type), Listing::text(comment)});
  }
  void heading(const string& title) {
    add("", "", "");
    add(title, "", "");
  }
  string query() const { return listing_.query(); }

 private:
  Listing listing_{{{"col_name", "VARCHAR"}, {"data_type", "VARCHAR"}, {"comment", "VARCHAR"}}};
};

string describe_result(const std::vector<duck::ResultColumn>& columns) {
  ColumnListing listing;
  for (const auto& column : columns) {
    listing.add(column.name, column.has_delta_type ? type_text(column.type) : column.engine_type,
                std::nullopt);
  }
  return listing.query();
}

Result<string> describe_view(const Context& context, const sql::TableName& name,
                             const catalog::View& view, bool extended) {
  SL_ASSIGN(const auto columns, view_columns(context, name));
  ColumnListing listing;
  for (const auto& column : columns) {
    listing.add(column.name, type_text(column.type), std::nullopt);
  }
  if (extended) {
    listing.heading("# Detailed Table Information");
    listing.add("Type", "VIEW", "");
    if (view.comment) listing.add("Comment", *view.comment, "");
    listing.add("View Text", view.sql, "");
    listing.add("View Catalog and Namespace", fmt::format("{}.{}", view.catalog, view.schema), "");
  }
  return listing.query();
}

Result<string> describe_columns(const Context& context, const FoundTable& found, bool extended) {
  const auto& snapshot = *found.snapshot;
  ColumnListing listing;
  for (const auto& field : snapshot.schema.fields) {
    listing.add(field.name, type_text(field), comment_of(field));
  }
  const auto& partitions = snapshot.metadata.partition_columns;
  if (!partitions.empty()) {
    listing.heading("# Partition Information");
    listing.add("# col_name", "data_type", "comment");
    for (const auto& name : partitions) {
      const auto* field = snapshot.schema.get(name);
      if (field != nullptr) listing.add(name, type_text(*field), comment_of(*field));
    }
  }
  const auto clusters = clustering_of(snapshot);
  if (!clusters.empty()) {
    listing.heading("# Clustering Information");
    listing.add("# col_name", "data_type", "comment");
    for (const auto& path : clusters) {
      const auto* field = delta::find_field(snapshot.schema, path);
      if (field != nullptr) {
        listing.add(dotted({path})[0], type_text(*field), comment_of(*field));
      }
    }
  }
  if (!extended) return listing.query();
  SL_ASSIGN(const auto rules, delta::table_rules(snapshot.metadata, snapshot.schema));
  const bool any_value = std::any_of(rules.columns.begin(), rules.columns.end(), [](const auto& r) {
    return r.default_sql || r.generated_sql || r.identity;
  });
  if (any_value) {
    listing.heading("# Column Default Values");
    listing.add("# col_name", "data_type", "default");
    for (const auto& rule : rules.columns) {
      const auto text = value_clause(rule);
      const auto* field = snapshot.schema.get(rule.path[0]);
      if (!text.empty() && field != nullptr) {
        listing.add(field->name, type_text(*field), rule.default_sql ? *rule.default_sql : text);
      }
    }
  }
  if (!rules.checks.empty()) {
    listing.heading("# Constraints");
    for (const auto& check : rules.checks) {
      listing.add(check.name, fmt::format("CHECK ({})", check.sql), "");
    }
  }
  listing.heading("# Detailed Table Information");
  listing.add("Name", found.name, "");
  listing.add("Type",
              !belongs_to_pipeline(snapshot)                              ? "TABLE"
              : snapshot.property(pipeline::kDatasetProperty).has_value() ? "MATERIALIZED_VIEW"
                                                                          : "STREAMING_TABLE",
              "");
  listing.add("Provider", "delta", "");
  listing.add("Location", found.table.path(), "");
  if (snapshot.metadata.description) listing.add("Comment", *snapshot.metadata.description, "");
  string properties;
  for (const auto& [key, value] : snapshot.metadata.configuration) {
    if (key.starts_with(delta::kConstraintPrefix)) continue;
    properties +=
        fmt::format("{}{}={}", properties.empty() ? "" : ",", key, shown_value(key, value));
  }
  listing.add("Table Properties", "[" + properties + "]", "");
  if (const auto pipeline = snapshot.property(pipeline::kPipelineNameProperty)) {
    listing.add("Pipeline", *pipeline, "");
    const auto declared = declaration_of(context, found);
    if (declared) {
      listing.add("Declaration", declared->statement, "");
      listing.add("Declared In", declared->directory, "");
    } else if (const auto place = pipeline_place(context, *pipeline); !place.empty()) {
      listing.add("Declared In", place, "");
    }
  }
  return listing.query();
}

Listing items(const char* item, const char* value) {
  return Listing({{item, "VARCHAR"}, {value, "VARCHAR"}});
}

Result<string> describe_column(const FoundTable& found, const sql::ColumnPath& path) {
  const auto* field = delta::find_field(found.snapshot->schema, path.parts);
  if (field == nullptr) {
    SL_TRY(
        known_columns({sql::Name{path.parts[0], path.place}}, found.snapshot->schema, "DESCRIBE"));
    return at(invalid_argument("UNRESOLVED_COLUMN.WITH_SUGGESTION", "{} has no column {}",
                               found.name, sql::to_string(path)),
              path.place);
  }
  auto listing = items("info_name", "info_value");
  listing.add(
      {"'col_name'", Listing::text(path.parts.size() == 1 ? field->name : sql::to_string(path))});
  listing.add({"'data_type'", Listing::text(type_text(*field))});
  listing.add({"'comment'", Listing::text(comment_of(*field))});
  return listing.query();
}

Result<string> describe_schema(const Context& context, const sql::TableName& name, bool extended) {
  SL_ASSIGN(auto* warehouse, context.needs_warehouse());
  SL_ASSIGN(const auto schema, known_schema(context, name));
  SL_ASSIGN(const auto comment, warehouse->schema_comment(schema.first, schema.second));
  SL_ASSIGN(const auto table,
            warehouse->table(catalog::QualifiedName{schema.first, schema.second, "t"}));
  auto listing = items("database_description_item", "database_description_value");
  const auto row = [&listing](const char* item, const string& value) {
    listing.add({Listing::text(item), Listing::text(value)});
  };
  row("Catalog Name", schema.first);
  row("Namespace Name", schema.second);
  row("Comment", comment.value_or(""));
  row("Location", table.path().substr(0, table.path().rfind('/')));
  if (extended) {
    SL_ASSIGN(const auto entries, warehouse->tables(schema.first, schema.second));
    row("Tables and Views", std::to_string(entries.size()));
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
  std::map<string, string> properties;
  for (const auto& [key, value] : snapshot.metadata.configuration)
    properties[key] = shown_value(key, value);
  listing.add({"'delta'", Listing::text(snapshot.metadata.id), Listing::text(found.name),
               Listing::text(snapshot.metadata.description), Listing::text(found.table.path()),
               Listing::instant(snapshot.metadata.created_time_ms),
               Listing::instant(snapshot.timestamp_ms),
               Listing::list(snapshot.metadata.partition_columns),
               Listing::list(dotted(clustering_of(snapshot))),
               Listing::number(static_cast<int64_t>(snapshot.files.size())), Listing::number(bytes),
               Listing::map(properties), Listing::number(snapshot.protocol.min_reader_version),
               Listing::number(snapshot.protocol.min_writer_version),
               Listing::list(features_of(snapshot.protocol))});
  return listing.query();
}

// Newest first; versions whose log is gone are left out.
Result<string> describe_history(const FoundTable& found, std::optional<int64_t> limit) {
  Listing listing({{"version", "BIGINT"},
                   {"timestamp", "TIMESTAMP WITH TIME ZONE"},
                   {"operation", "VARCHAR"},
                   {"operationParameters", "MAP(VARCHAR, VARCHAR)"},
                   {"readVersion", "BIGINT"},
                   {"isolationLevel", "VARCHAR"},
                   {"isBlindAppend", "BOOLEAN"},
                   {"operationMetrics", "MAP(VARCHAR, VARCHAR)"},
                   {"engineInfo", "VARCHAR"}});
  SL_ASSIGN(const auto times, delta::CommitTimes::of_table(found.table, *found.snapshot));
  const auto newest = found.snapshot->version;
  const auto oldest = limit ? newest - *limit + 1 : 0;
  for (delta::Version version = newest; version >= std::max<int64_t>(oldest, 0); --version) {
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
    SL_ASSIGN(const int64_t time_ms, times.of(version, *actions));
    listing.add({Listing::number(version), Listing::instant(time_ms), Listing::text(info.operation),
                 Listing::map(parameters), Listing::number(info.read_version),
                 Listing::text(info.isolation_level), Listing::truth(info.is_blind_append),
                 Listing::map(info.operation_metrics), Listing::text(info.engine_info)});
  }
  return listing.query();
}

}  // namespace

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

Result<std::vector<duck::ResultColumn>> view_columns(const Context& context,
                                                     const sql::TableName& name) {
  Relations relations(context);
  SL_ASSIGN(const auto query, sql::parse_query("SELECT * FROM " + sql::to_string(name), ""));
  SL_ASSIGN(const auto text, relations.print(*query));
  return context.connection->describe(text);
}

std::optional<string> comment_of(const Field& field) {
  const auto found = field.metadata.find("comment");
  if (found == field.metadata.end()) return std::nullopt;
  const auto json = Json::parse(found->second);
  if (!json.ok() || json->as_string() == nullptr) return std::nullopt;
  return *json->as_string();
}

string value_clause(const delta::ColumnRule& rule) {
  if (rule.default_sql) return "DEFAULT " + *rule.default_sql;
  if (rule.generated_sql) return fmt::format("GENERATED ALWAYS AS ({})", *rule.generated_sql);
  if (!rule.identity) return "";
  return fmt::format("GENERATED {} AS IDENTITY (START WITH {} INCREMENT BY {})",
                     rule.identity->allow_explicit_insert ? "BY DEFAULT" : "ALWAYS",
                     rule.identity->start, rule.identity->step);
}

Result<string> describe(const Context& context, const sql::Describe& statement) {
  using What = sql::Describe::What;
  if (statement.what == What::kQuery) {
    Relations relations(context);
    SL_ASSIGN(const auto text, relations.print(*statement.query));
    SL_ASSIGN(const auto columns, context.connection->describe(text));
    return describe_result(columns);
  }
  if (statement.what == What::kSchema || statement.what == What::kSchemaExtended) {
    return describe_schema(context, statement.table, statement.what == What::kSchemaExtended);
  }
  SL_ASSIGN(const auto view, find_view(context, statement.table));
  if (view && (statement.what == What::kColumns || statement.what == What::kExtended)) {
    return describe_view(context, statement.table, *view, statement.what == What::kExtended);
  }
  SL_ASSIGN(const auto found, find_table(context, statement.table));
  switch (statement.what) {
    case What::kExtended:
      return describe_columns(context, found, true);
    case What::kDetail:
      return describe_detail(found);
    case What::kHistory:
      return describe_history(found, statement.limit);
    case What::kColumn:
      return describe_column(found, *statement.column);
    default:
      return describe_columns(context, found, false);
  }
}

}  // namespace strandline::engine
