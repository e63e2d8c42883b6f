#include "engine/names.h"

#include <strandline/suggest.h>

#include "base/error.h"
#include "pipeline/context.h"
#include "sql/duckdb_printer.h"

namespace strandline::engine {

Error at(Error error, const SourcePlace& place) {
  if (!error.place && place.line > 0) error.place = place;
  return error;
}

Result<std::vector<std::string>> known_columns(const std::vector<sql::Name>& names,
                                               const Schema& schema, const char* clause) {
  std::vector<std::string> out;
  for (const auto& name : names) {
    const auto* field = schema.get(name.text);
    if (field == nullptr) {
      std::vector<std::string> known;
      known.reserve(schema.fields.size());
      for (const auto& each : schema.fields) known.push_back(each.name);
      const auto near = nearest_name(name.text, known);
      return at(invalid_argument("UNRESOLVED_COLUMN.WITH_SUGGESTION",
                                 "{} names {}, which is no column of the table{}", clause,
                                 name.text, near ? ": did you mean " + *near + "?" : ""),
                name.place);
    }
    out.push_back(field->name);
  }
  return out;
}

Status refuse_pipeline_table(const FoundTable& found, const char* verb) {
  if (!belongs_to_pipeline(*found.snapshot)) return {};
  return unsupported("DML_ON_PIPELINE_TABLE",
                     "{} on {} is not supported: the table is written by the pipeline {}. Change "
                     "its source and run the pipeline",
                     verb, found.name,
                     found.snapshot->property(pipeline::kPipelineNameProperty)
                         .value_or(*found.snapshot->property(pipeline::kPipelineIdProperty)));
}

bool may_read(const Context& context, const sql::Query& query, const delta::Table& table) {
  for (const auto& use : sql::table_uses(query)) {
    if (!use.function.empty()) continue;
    if (use.name.is_path) {
      if (context.absolute_path(use.name.parts[0]) == table.path()) return true;
      continue;
    }
    if (use.name.parts.size() == 1 &&
        context.temporary_views.contains(fold_name(use.name.parts[0]))) {
      return true;
    }
    const auto name = context.warehouse->qualify(use.name, context.defaults);
    if (!name.ok()) return true;
    const auto named = context.warehouse->table(*name);
    const auto exists = context.warehouse->table_exists(*name);
    if (!named.ok() || !exists.ok() || !*exists || named->path() == table.path()) return true;
  }
  return false;
}

}  // namespace strandline::engine
