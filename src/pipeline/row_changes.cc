#include "pipeline/row_changes.h"

#include "base/error.h"
#include "duck/delta_io.h"

namespace strandline::pipeline {
namespace {

using duck::quote_name;

// The primary key of a row as one value that is never null.
std::string key_of(const std::vector<cdf::KeyPart>& key, const std::string& alias) {
  std::string parts;
  for (size_t i = 0; i < key.size(); ++i) {
    std::string names;
    for (const auto& name : key[i]) {
      names += fmt::format("{}{}.{}", names.empty() ? "" : ", ", alias, quote_name(name));
    }
    parts += fmt::format("{}k{} := coalesce({})", i == 0 ? "" : ", ", i, names);
  }
  return "struct_pack(" + parts + ")";
}

}  // namespace

duck::RowChange replaced_rows(const Schema& before, const Schema& after,
                              const std::vector<cdf::KeyPart>& key, const std::string& old_rows,
                              const std::string& dead_rows, const std::string& new_rows) {
  std::string old_columns, new_columns;
  for (const auto& field : after.fields) {
    const std::string name = quote_name(field.name);
    const char* const comma = new_columns.empty() ? "" : ", ";
    const std::string type = duck::engine_type(field.type);
    const auto* const old = before.get(field.name);
    const std::string value = old == nullptr ? "CAST(NULL AS " + type + ")"
                              : same_type(old->type, field.type)
                                  ? "t." + name
                                  : fmt::format("CAST(t.{} AS {})", name, type);
    old_columns += fmt::format("{}{} AS {}", comma, value, name);
    new_columns += fmt::format("{}t.{} AS {}", comma, name, name);
  }
  const std::string gone =
      fmt::format("(SELECT t.* FROM {0} AS t JOIN ({1}) AS d ON t.{2} = d.{2} AND t.{3} = d.{3})",
                  old_rows, dead_rows, duck::kFileColumn, duck::kRowColumn);
  const std::string came = "(" + new_rows + ")";
  const auto rows = [&](const std::string& columns, const std::string& from, const char* join,
                        const std::string& other) {
    return fmt::format(
        "SELECT {} FROM {} AS t {} JOIN (SELECT {} AS k FROM {} AS o) AS o ON {} IS NOT DISTINCT "
        "FROM o.k",
        columns, from, join, key_of(key, "o"), other, key_of(key, "t"));
  };
  duck::RowChange change;
  change.deleted = rows(old_columns, gone, "ANTI", came);
  change.updated_before = rows(old_columns, gone, "SEMI", came);
  change.updated_after = rows(new_columns, came, "SEMI", gone);
  change.inserted = rows(new_columns, came, "ANTI", gone);
  return change;
}

}  // namespace strandline::pipeline
