#include "engine/target.h"

#include <algorithm>

#include "base/error.h"
#include "delta/column_rules.h"
#include "engine/names.h"
#include "sql/duckdb_printer.h"

namespace strandline::engine {

Result<Target> find_target(const Context& context, const sql::TableName& name,
                           const std::optional<sql::Name>& alias, const char* verb,
                           bool removes_rows) {
  SL_ASSIGN(auto found, find_table(context, name));
  SL_TRY(refuse_pipeline_rows(found, verb));
  if (removes_rows && found.snapshot->property_is_true("delta.appendOnly")) {
    return at(invalid_argument("DELTA_CANNOT_MODIFY_APPEND_ONLY",
                               "{} of {} is refused: it has 'delta.appendOnly' = 'true', so rows "
                               "can only be added; set the property to 'false' first",
                               verb, found.name),
              name.place);
  }
  Target target{std::move(found), alias ? alias->text : name.parts.back(), {}, nullptr};
  target.view = target.found.snapshot;
  if (!alias && !name.is_path) target.names.push_back(name);
  return target;
}

Result<std::optional<delta::Alteration>> evolve_target(
    Target& target, const std::vector<duck::ResultColumn>& incoming, StructsBy structs_by) {
  Schema schema;
  for (const auto& column : incoming) {
    // A column of nothing but NULL has no type to bring.
    if (column.type.id == TypeId::kVoid && column.has_delta_type) continue;
    auto aligned = column;
    if (const auto* own = target.schema().get(column.name); own != nullptr)
      aligned.type = aligned_type(column.type, own->type, structs_by);
    SL_ASSIGN(auto type, storable_type(aligned));
    schema.fields.push_back(Field{column.name, std::move(type), true, {}});
  }
  std::optional<delta::Alteration> alteration(std::in_place, *target.found.snapshot);
  SL_TRY(alteration->merge_schema(schema));
  if (!alteration->changed()) return std::optional<delta::Alteration>();
  SL_TRY(refuse_pipeline_table(target.found, "WITH SCHEMA EVOLUTION"));
  auto view = std::make_shared<delta::Snapshot>(*target.found.snapshot);
  view->metadata = alteration->metadata();
  view->protocol = alteration->protocol();
  view->schema = alteration->schema();
  target.view = std::move(view);
  return alteration;
}

TargetReads reads_of(const Target& target, delta::FileFilter filter) {
  TargetReads reads{std::move(filter), {}};
  reads.selection = delta::select_files(*target.view, reads.filter);
  return reads;
}

TargetReads reads_of(const Relations& relations, const Target& target,
                     const sql::ExprPtr& condition) {
  return reads_of(target, relations.filter(*target.view, target.alias, condition));
}

void tell_reads(const Context& context, delta::Transaction& transaction, const Target& target,
                const TargetReads& reads, const sql::ExprPtr& condition,
                const std::vector<sql::ExprPtr>& values) {
  transaction.set_metric("numFilesBeforeSkipping", static_cast<int64_t>(reads.selection.total));
  transaction.set_metric("numFilesAfterSkipping",
                         static_cast<int64_t>(reads.selection.files.size()));
  if (!condition || !sql::nondeterministic_calls(*condition).empty()) return;
  sql::Select select;
  select.items.push_back({condition, {}});
  for (const auto& value : values) {
    if (value) select.items.push_back({value, {}});
  }
  sql::Query all;
  all.body = std::move(select);
  if (may_read(context, all, target.found.table)) return;
  transaction.set_read_predicate(reads.filter, reads.selection.files);
}

Result<std::string> scan_target(Relations& relations, const Target& target,
                                std::vector<size_t> files) {
  duck::ScanOptions options;
  options.with_positions = true;
  options.with_row_ids = target.tracks_rows();
  options.files = std::move(files);
  SL_ASSIGN(const auto scan, relations.scan(target.found.table, target.view, options));
  return scan + " AS " + duck::quote_name(target.alias);
}

bool lost_identity_race(const Error& error, const delta::Snapshot& snapshot, int attempt) {
  constexpr int kAttempts = 20;
  if (attempt >= kAttempts || error.code != "DELTA_METADATA_CHANGED") return false;
  const auto rules = delta::table_rules(snapshot.metadata, snapshot.schema);
  return rules.ok() && std::any_of(rules->columns.begin(), rules->columns.end(),
                                   [](const auto& rule) { return rule.identity.has_value(); });
}

std::string qualified(const std::string& alias, const std::string& column) {
  return duck::quote_name(alias) + "." + duck::quote_name(column);
}

}  // namespace strandline::engine
