#include "pipeline/row_changes.h"

#include <algorithm>
#include <atomic>

#include "base/error.h"
#include "pipeline/declared_columns.h"

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

bool can_compare(const delta::Snapshot& view, const Schema& columns) {
  return !view.files.empty() && view.schema.fields.size() == columns.fields.size() &&
         std::all_of(view.schema.fields.begin(), view.schema.fields.end(), [&](const Field& field) {
           const auto* const other = columns.get(field.name);
           return other != nullptr && same_type(field.type, other->type) &&
                  !is_filled_at_write(field);
         });
}

Result<std::unique_ptr<ViewChange>> ViewChange::make(
    duck::Connection& connection, const delta::Table& table,
    const std::shared_ptr<const delta::Snapshot>& view, const std::string& rows) {
  static std::atomic<int64_t> next{0};
  std::unique_ptr<ViewChange> made(
      new ViewChange(connection, fmt::format("__strandline_view_{}", ++next)));
  std::string columns, equal;
  for (const auto& field : view->schema.fields) {
    const std::string name = quote_name(field.name);
    columns += (columns.empty() ? "" : ", ") + name;
    equal += fmt::format("a.{0} IS NOT DISTINCT FROM b.{0} AND ", name);
  }
  // Equal rows are told apart by counting them.
  constexpr const char* kNumber = "__strandline_number";
  equal += fmt::format("a.{0} = b.{0}", kNumber);
  const std::string number =
      fmt::format("row_number() OVER (PARTITION BY {}) AS {}", columns, kNumber);
  SL_TRY(connection.execute(fmt::format("CREATE TEMP TABLE {} AS SELECT {}, {} FROM ({})",
                                        made->table_, columns, number, rows)));
  SL_ASSIGN(made->result_rows_,
            connection.query_int(fmt::format("SELECT count(*) FROM {}", made->table_)));
  duck::ScanOptions options;
  options.with_positions = true;
  SL_ASSIGN(made->scan_, duck::scan_table(connection, table, view, options));
  const std::string old = fmt::format("(SELECT *, {} FROM {})", number, made->scan_->sql());
  const auto only_in = [&](const std::string& select, const std::string& one,
                           const std::string& other) {
    return fmt::format("SELECT {} FROM {} AS a ANTI JOIN {} AS b ON {}", select, one, other, equal);
  };
  duck::TableChange& change = made->change_;
  change.dead_rows =
      only_in(fmt::format("{}, {}", duck::kFileColumn, duck::kRowColumn), old, made->table_);
  change.with_row_ids = true;
  change.new_rows =
      only_in(fmt::format("{}, CAST(NULL AS BIGINT) AS {}, CAST(NULL AS BIGINT) AS {}", columns,
                          duck::kRowIdColumn, duck::kRowVersionColumn),
              made->table_, old);
  if (view->property_is_true("delta.enableChangeDataFeed")) {
    change.rows.emplace();
    change.rows->deleted = only_in(columns, old, made->table_);
    change.rows->inserted = only_in(columns, made->table_, old);
  }
  return made;
}

ViewChange::~ViewChange() { (void)connection_.execute("DROP TABLE IF EXISTS temp." + table_).ok(); }

}  // namespace strandline::pipeline
