#include <strandline/repair.h>

#include <algorithm>

#include "base/error.h"
#include "cdf/primary_key.h"
#include "duck/delta_io.h"
#include "engine/open_context.h"
#include "engine/table_changes.h"
#include "engine/write_rows.h"
#include "pipeline/context.h"
#include "pipeline/hand_rows.h"

namespace strandline {
namespace engine {
namespace {

using duck::quote_name;

constexpr const char* kStateFolder = "/_strandline_state";
constexpr int kExamples = 5;

std::string column_list(const Schema& schema) {
  std::string names;
  for (const auto& field : schema.fields)
    names += (names.empty() ? "" : ", ") + quote_name(field.name);
  return names;
}

// The rows of one snapshot that stand there more than once, as a temporary table: their columns,
// where each of them is, and its number among its equals.
class RepeatedRows {
 public:
  RepeatedRows(const Context& context, delta::Table table, const std::string& name)
      : context_(context), table_(std::move(table)), kept_(*context.connection, name) {}

  // Rows that may be equal are found by a hash first, so that the others are not held.
  Status find() {
    SL_ASSIGN(snapshot_, table_.snapshot());
    duck::ScanOptions options;
    options.with_positions = true;
    SL_ASSIGN(scan_, duck::scan_table(*context_.connection, table_, snapshot_, options));
    const std::string columns = column_list(snapshot_->schema);
    TempTable hashes(*context_.connection, "equal_hashes");
    SL_TRY(hashes.fill(
        fmt::format("SELECT __strandline_hash FROM (SELECT hash({}) AS __strandline_hash FROM {}) "
                    "GROUP BY __strandline_hash HAVING count(*) > 1",
                    columns, scan_->sql())));
    return kept_.fill(fmt::format(
        "SELECT *, row_number() OVER (PARTITION BY {0} ORDER BY {1}, {2}) AS __strandline_number, "
        "count(*) OVER (PARTITION BY {0}) AS __strandline_count FROM (SELECT * FROM {3} AS r WHERE "
        "hash({0}) IN (SELECT __strandline_hash FROM {4})) QUALIFY __strandline_count > 1",
        columns, duck::kFileColumn, duck::kRowColumn, scan_->sql(), hashes.name()));
  }

  const std::shared_ptr<const delta::Snapshot>& snapshot() const { return snapshot_; }
  const std::string& scanned() const { return scan_->sql(); }
  const std::string& name() const { return kept_.name(); }
  Result<int64_t> count(const char* condition) const {
    return context_.connection->query_int(fmt::format(
        "SELECT count(*) FROM {} WHERE __strandline_number {}", kept_.name(), condition));
  }

  // All but the first of each. Errors: kConflict when others wrote meanwhile.
  Result<delta::Version> fold() const {
    const auto& schema = snapshot_->schema;
    SL_ASSIGN(auto transaction, delta::Transaction::begin(table_, snapshot_));
    const std::string extra = kept_.name() + " WHERE __strandline_number > 1";
    duck::TableChange change;
    change.dead_rows =
        fmt::format("SELECT {}, {} FROM {}", duck::kFileColumn, duck::kRowColumn, extra);
    change.with_row_ids = true;
    change.rows = duck::RowChange{};
    change.rows->deleted = fmt::format("SELECT {} FROM {}", column_list(schema), extra);
    SL_ASSIGN(const auto applied,
              engine::apply_change(context_, table_, transaction, snapshot_, change));
    set_change_metrics(transaction, applied);
    SL_ASSIGN(const auto rows, count("> 1"));
    transaction.set_metric("numDeletedRows", rows);
    transaction.set_operation("REPAIR", {{"what", "equal rows"}});
    transaction.set_tag(pipeline::kRepairTag, "true");
    SL_TRY(duck::commit_change(transaction, table_, applied));
    return table_.latest_version();
  }

 private:
  const Context& context_;
  delta::Table table_;
  TempTable kept_;
  std::shared_ptr<const delta::Snapshot> snapshot_;
  std::unique_ptr<duck::Scan> scan_;
};

// "k = 1, v = a", a null without quotes or other marks.
std::string row_text(const Schema& schema) {
  std::string text;
  for (const auto& field : schema.fields) {
    text += fmt::format("{}{} || coalesce(CAST({} AS VARCHAR), 'NULL')", text.empty() ? "" : ", ",
                        duck::quote_literal(field.name + " = "), quote_name(field.name));
  }
  return "concat_ws(', ', " + text + ")";
}

Result<std::vector<std::string>> texts(const Context& context, const std::string& query) {
  SL_ASSIGN(const auto found, context.connection->query(query));
  std::vector<std::string> out;
  for (const auto& row : found.rows) out.push_back(row.at(0).value_or("NULL"));
  return out;
}

Status find_conflicts(const Context& context, const RepeatedRows& rows,
                      const std::vector<cdf::KeyPart>& key, RepairReport* report) {
  const auto& snapshot = *rows.snapshot();
  std::string parts;
  for (const auto& part : key) {
    std::string names;
    for (const auto& name : part) names += (names.empty() ? "" : ", ") + quote_name(name);
    const std::string text = part.size() > 1 ? "coalesce(" + names + ")" : names;
    report->key.push_back(part.size() > 1 ? fmt::format("coalesce({})", fmt::join(part, ", "))
                                          : part.at(0));
    parts += fmt::format("{}p{} := {}", parts.empty() ? "" : ", ", report->key.size(), text);
  }
  // Of whole rows only those are held whose key repeats. Nulls in a struct are equal.
  TempTable repeated(*context.connection, "repeated_keys");
  SL_TRY(
      repeated.fill(fmt::format("SELECT struct_pack({}) AS __strandline_key FROM {} GROUP BY "
                                "__strandline_key HAVING count(*) > 1",
                                parts, rows.scanned())));
  TempTable keys(*context.connection, "conflicting_keys");
  SL_ASSIGN(
      report->conflicting_keys,
      keys.keep(fmt::format("SELECT __strandline_key FROM (SELECT DISTINCT struct_pack({0}) AS "
                            "__strandline_key, {1} FROM "
                            "{2} AS r "
                            "WHERE struct_pack({0}) IN (SELECT __strandline_key FROM {3})) GROUP "
                            "BY __strandline_key HAVING "
                            "count(*) > 1",
                            parts, column_list(snapshot.schema), rows.scanned(), repeated.name())));
  if (report->conflicting_keys == 0) return {};
  SL_ASSIGN(
      report->conflicting,
      texts(context,
            fmt::format(
                "SELECT DISTINCT {0} AS __strandline_text FROM {1} AS r WHERE struct_pack({2}) IN "
                "(SELECT __strandline_key FROM {3} ORDER BY __strandline_key LIMIT {4}) "
                "ORDER BY __strandline_text",
                row_text(snapshot.schema), rows.scanned(), parts, keys.name(), kExamples)));
  const bool can_delete = snapshot.property(pipeline::kScdTypeProperty) != "BITEMPORAL";
  report->way_out = fmt::format(
      "{}run a full refresh of that table (--full-refresh {})",
      can_delete ? fmt::format("delete the wrong ones (DELETE FROM {} WHERE …, naming a column in "
                               "which they differ), or ",
                               report->table)
                 : "",
      report->table);
  return {};
}

Status check_repairable(const delta::Snapshot& snapshot, const std::string& name) {
  if (!snapshot.property(pipeline::kScdTypeProperty) || cdf::primary_key(snapshot).empty()) {
    return unsupported(
        "REPAIR_NOT_OF_AUTO_CDC",
        "'{0}' is not a target of AUTO CDC, and equal rows may be right in any other table: where "
        "they are not, INSERT OVERWRITE {0} SELECT DISTINCT * FROM {0} leaves each once in a "
        "table of your own, and a full refresh rebuilds a pipeline's",
        name);
  }
  if (snapshot.property_is_true("delta.appendOnly")) {
    return invalid_argument("DELTA_CANNOT_MODIFY_APPEND_ONLY",
                            "repair of {} is refused: it has 'delta.appendOnly' = 'true', so rows "
                            "can only be added; set the property to 'false' first",
                            name);
  }
  return {};
}

Result<RepairReport> repair(const Context& context, const RepairOptions& options) {
  RepairReport report;
  report.table = options.table;
  SL_ASSIGN(const auto table, feed_table(context, options.table));
  RepeatedRows rows(context, table, "repeated");
  SL_ASSIGN(const auto snapshot, table.snapshot());
  SL_TRY(check_repairable(*snapshot, options.table));
  SL_TRY(rows.find());
  report.version = rows.snapshot()->version;
  SL_ASSIGN(report.repeated_rows, rows.count("= 1"));
  SL_ASSIGN(report.extra_rows, rows.count("> 1"));
  SL_ASSIGN(
      report.repeated,
      texts(context,
            fmt::format("SELECT {} || ' (' || __strandline_count || ' times)' AS __strandline_text "
                        "FROM {} WHERE __strandline_number = 1 ORDER BY __strandline_text LIMIT {}",
                        row_text(rows.snapshot()->schema), rows.name(), kExamples)));
  SL_TRY(find_conflicts(context, rows, cdf::primary_key(*rows.snapshot()), &report));

  const delta::Table state(table.store(), table.parquet(), table.path() + kStateFolder);
  RepeatedRows state_rows(context, state, "repeated_state");
  SL_ASSIGN(const bool has_state, state.exists());
  if (has_state) {
    SL_TRY(state_rows.find());
    SL_ASSIGN(report.extra_state_rows, state_rows.count("> 1"));
  }
  if (!options.apply) return report;
  if (report.extra_state_rows > 0) {
    SL_ASSIGN(const auto version, state_rows.fold());
    (void)version;
  }
  if (report.extra_rows > 0) {
    SL_ASSIGN(report.committed_version, rows.fold());
  }
  return report;
}

}  // namespace
}  // namespace engine

Result<RepairReport> repair_table(const SessionOptions& session, const RepairOptions& options) {
  SL_ASSIGN(const auto opened, engine::OpenContext::open(session));
  return engine::repair(opened->context, options);
}

}  // namespace strandline
