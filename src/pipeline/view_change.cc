#include "pipeline/view_change.h"

#include <algorithm>
#include <atomic>

#include "base/error.h"
#include "delta/empty_partitions.h"
#include "pipeline/declared_columns.h"

namespace strandline::pipeline {
namespace {

using duck::quote_name;

constexpr const char* kNumber = "__strandline_number";  // tells equal rows apart
constexpr const char* kHadEmpty = "__strandline_had_empty";
constexpr const char* kPairNumber = "__strandline_pair_number";
constexpr const char* kTables[] = {"result", "gone", "came", "old", "new"};

std::string next_prefix() {
  static std::atomic<int64_t> next{0};
  return fmt::format("__strandline_view_{}_", ++next);
}

// One value that is never null; of no columns: null.
std::string key_of(const std::vector<std::string>& key, const std::string& alias) {
  if (key.empty()) return "NULL";
  std::string parts;
  for (size_t i = 0; i < key.size(); ++i)
    parts += fmt::format("{}k{} := {}.{}", i == 0 ? "" : ", ", i, alias, quote_name(key[i]));
  return "struct_pack(" + parts + ")";
}

}  // namespace

bool can_compare(const delta::Snapshot& view, const Schema& columns) {
  return !view.files.empty() && view.schema.fields.size() == columns.fields.size() &&
         std::all_of(view.schema.fields.begin(), view.schema.fields.end(), [&](const Field& field) {
           const auto* const other = columns.get(field.name);
           return other != nullptr && same_type(field.type, other->type) &&
                  !is_filled_at_write(field);
         });
}

ViewChange::ViewChange(duck::Connection& connection, std::shared_ptr<const delta::Snapshot> view)
    : connection_(connection), view_(std::move(view)), prefix_(next_prefix()) {
  for (const auto& field : view_->schema.fields)
    columns_ += (columns_.empty() ? "" : ", ") + quote_name(field.name);
  any_empty_ = "false";
  for (const auto& field : delta::columns_without_empty(view_->metadata, view_->schema)) {
    const std::string name = quote_name(field.name);
    const std::string nothing = fmt::format("CAST('' AS {})", duck::engine_type(field.type));
    any_empty_ += fmt::format(" OR coalesce({} = {}, false)", name, nothing);
    empty_to_nulls_ += fmt::format("{}nullif({}, {}) AS {}", empty_to_nulls_.empty() ? "" : ", ",
                                   name, nothing, name);
  }
}

ViewChange::~ViewChange() {
  for (const char* table : kTables)
    (void)connection_.execute(fmt::format("DROP TABLE IF EXISTS temp.{}{}", prefix_, table)).ok();
}

Status ViewChange::run(const std::string& table, const std::string& query) {
  SL_TRY(connection_.execute(fmt::format("CREATE TEMP TABLE {}{} AS {}", prefix_, table, query)));
  return {};
}

// Rows with their places and ids.
Status ViewChange::scan_view(const delta::Table& table) {
  duck::ScanOptions options;
  options.with_positions = true;
  options.with_row_ids = view_->row_tracking_enabled();
  SL_ASSIGN(scan_, duck::scan_table(connection_, table, view_, options));
  view_rows_ = options.with_row_ids ? scan_->sql()
                                    : fmt::format("(SELECT *, CAST(NULL AS BIGINT) AS {} FROM {})",
                                                  duck::kRowIdColumn, scan_->sql());
  return {};
}

std::string ViewChange::numbered(const std::string& relation) const {
  return fmt::format("SELECT *, row_number() OVER (PARTITION BY {}) AS {} FROM {}", columns_,
                     kNumber, relation);
}

// The rows as the view holds them.
std::string ViewChange::without_empty(const std::string& relation) const {
  if (empty_to_nulls_.empty()) return relation;
  return fmt::format("(SELECT * REPLACE ({}) FROM {})", empty_to_nulls_, relation);
}

// Of a and b, both numbered.
std::string ViewChange::equal() const {
  std::string text = fmt::format("a.{0} = b.{0}", kNumber);
  for (const auto& field : view_->schema.fields)
    text += fmt::format(" AND a.{0} IS NOT DISTINCT FROM b.{0}", quote_name(field.name));
  return text;
}

// The change from what is gone and what came, in `old` and `new` with kRowPair.
Status ViewChange::finish() {
  for (const auto& [name, count] :
       {std::pair("new", &change_.new_count), std::pair("old", &change_.dead_count)}) {
    SL_ASSIGN(*count,
              connection_.query_int(fmt::format("SELECT count(*) FROM {}{}", prefix_, name)));
  }
  const auto numbered_pairs = [&](const char* table) {
    return fmt::format(
        "(SELECT *, CASE WHEN {0} IS NOT NULL THEN row_number() OVER (PARTITION BY {0}) END AS {1} "
        "FROM {2}{3})",
        kRowPair, kPairNumber, prefix_, table);
  };
  const std::string gone = numbered_pairs("old");
  const std::string came = numbered_pairs("new");
  const std::string pairs =
      fmt::format("a.{0} IS NOT DISTINCT FROM b.{0} AND a.{1} = b.{1}", kRowPair, kPairNumber);
  change_.dead_rows =
      fmt::format("SELECT {}, {} FROM {}old", duck::kFileColumn, duck::kRowColumn, prefix_);
  change_.with_row_ids = true;
  std::string of_a;
  for (const auto& field : view_->schema.fields)
    of_a += (of_a.empty() ? "a." : ", a.") + quote_name(field.name);
  change_.new_rows = fmt::format(
      "SELECT {}, b.{} AS {}, CAST(NULL AS BIGINT) AS {} FROM {} AS a LEFT JOIN {} AS b ON {}",
      of_a, duck::kRowIdColumn, duck::kRowIdColumn, duck::kRowVersionColumn, came, gone, pairs);
  if (!view_->property_is_true("delta.enableChangeDataFeed")) return {};
  const auto those = [&](const std::string& one, const char* join, const std::string& other) {
    return fmt::format("SELECT {} FROM {} AS a {} JOIN {} AS b ON {}", of_a, one, join, other,
                       pairs);
  };
  change_.rows.emplace();
  change_.rows->deleted = those(gone, "ANTI", came);
  change_.rows->updated_before = those(gone, "SEMI", came);
  change_.rows->updated_after = those(came, "SEMI", gone);
  change_.rows->inserted = those(came, "ANTI", gone);
  return {};
}

Result<std::unique_ptr<ViewChange>> ViewChange::make(
    duck::Connection& connection, const delta::Table& table,
    const std::shared_ptr<const delta::Snapshot>& view, const ViewRows& rows) {
  std::unique_ptr<ViewChange> made(new ViewChange(connection, view));
  const std::string& prefix = made->prefix_;
  const std::string given =
      fmt::format("(SELECT *, {} AS {} FROM ({}))", made->any_empty_, kHadEmpty, rows.rows);
  SL_TRY(made->run("result", made->numbered(made->without_empty(given))));
  SL_ASSIGN(made->result_rows_,
            connection.query_int(fmt::format("SELECT count(*) FROM {}result", prefix)));
  SL_ASSIGN(made->empty_partition_rows_,
            connection.query_int(
                fmt::format("SELECT count(*) FROM {}result WHERE {}", prefix, kHadEmpty)));
  SL_TRY(made->scan_view(table));
  std::string old_rows = made->view_rows_;
  if (!rows.of_keys.empty()) {
    std::string names, same;
    for (size_t i = 0; i < rows.key.size(); ++i) {
      names += fmt::format("{}k{}", i == 0 ? "" : ", ", i);
      same += fmt::format("{}v.{} IS NOT DISTINCT FROM g.k{}", i == 0 ? "" : " AND ",
                          quote_name(rows.key[i]), i);
    }
    old_rows = fmt::format("(SELECT v.* FROM {} AS v SEMI JOIN (SELECT * FROM {}) AS g({}) ON {})",
                           old_rows, rows.of_keys, names, same);
  }
  old_rows = "(" + made->numbered(old_rows) + ")";
  const std::string result = prefix + "result";
  const auto only_in = [&](const std::string& one, const std::string& other) {
    return fmt::format("SELECT a.*, {} AS {} FROM {} AS a ANTI JOIN {} AS b ON {}",
                       key_of(rows.key, "a"), kRowPair, one, other, made->equal());
  };
  SL_TRY(made->run("old", only_in(old_rows, result)));
  SL_TRY(made->run("new", only_in(result, old_rows)));
  SL_TRY(made->finish());
  return made;
}

Result<std::unique_ptr<ViewChange>> ViewChange::of_changes(
    duck::Connection& connection, const delta::Table& table,
    const std::shared_ptr<const delta::Snapshot>& view, const std::string& changes) {
  std::unique_ptr<ViewChange> made(new ViewChange(connection, view));
  const std::string& prefix = made->prefix_;
  const std::string& columns = made->columns_;
  // What came and went between is nothing; of equal rows it does not matter which one goes.
  SL_TRY(made->run("result", fmt::format("SELECT {0}, {1}, sum({2}) AS {2} FROM ({3}) GROUP BY ALL "
                                         "HAVING sum({2}) <> 0",
                                         columns, kRowPair, kRowSign, changes)));
  SL_ASSIGN(
      made->empty_partition_rows_,
      connection.query_int(fmt::format(
          "SELECT CAST(coalesce(sum({0}), 0) AS BIGINT) FROM {1}result WHERE {0} > 0 AND ({2})",
          kRowSign, prefix, made->any_empty_)));
  const auto side = [&](const char* sign) {
    return made->numbered(fmt::format(
        "(SELECT {0}, {1} FROM (SELECT {0}, {1}, unnest(range(CAST(greatest({2}{3}, 0) AS "
        "BIGINT))) FROM {4} WHERE {2}{3} > 0))",
        columns, kRowPair, sign, kRowSign, made->without_empty(prefix + "result")));
  };
  SL_TRY(made->run("gone", side("-")));
  SL_TRY(made->run("came", side("")));
  const auto count = [&](const char* name) {
    return connection.query_int(fmt::format("SELECT count(*) FROM {}{}", prefix, name));
  };
  SL_ASSIGN(const int64_t gone_rows, count("gone"));
  SL_ASSIGN(const int64_t came_rows, count("came"));
  made->result_rows_ = gone_rows + came_rows;
  const auto only_in = [&](const char* one, const char* other) {
    return fmt::format("SELECT {0}, {1} FROM {2}{3} AS a ANTI JOIN {2}{4} AS b ON {5}", columns,
                       kRowPair, prefix, one, other, made->equal());
  };
  SL_TRY(made->run("new", only_in("came", "gone")));
  SL_TRY(made->scan_view(table));
  const std::string going = "(" + made->numbered("(" + only_in("gone", "came") + ")") + ")";
  std::string same;
  for (const auto& field : view->schema.fields) {
    same += fmt::format("{0}v.{1} IS NOT DISTINCT FROM g.{1}", same.empty() ? "" : " AND ",
                        quote_name(field.name));
  }
  // Only rows that look like one that goes are numbered.
  const std::string alike =
      "(" +
      made->numbered(fmt::format("(SELECT v.* FROM {} AS v SEMI JOIN {}gone AS g ON {})",
                                 made->view_rows_, prefix, same)) +
      ")";
  SL_TRY(made->run("old", fmt::format("SELECT a.*, b.{} FROM {} AS a JOIN {} AS b ON {}", kRowPair,
                                      alike, going, made->equal())));
  SL_ASSIGN(const int64_t found, count("old"));
  SL_ASSIGN(const int64_t sought,
            connection.query_int("SELECT count(*) FROM (" + only_in("gone", "came") + ")"));
  if (found != sought) return std::unique_ptr<ViewChange>();
  SL_TRY(made->finish());
  return made;
}

}  // namespace strandline::pipeline
