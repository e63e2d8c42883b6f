// Names and table functions of a query, as DuckDB relations.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cdf/plan.h"
#include "duck/delta_io.h"
#include "engine/context.h"
#include "engine/file_conditions.h"
#include "pipeline/file_reader.h"
#include "sql/duckdb_printer.h"
#include "sql/table_changes.h"

namespace strandline::engine {

// A Delta table as a statement reads it.
struct TableRead {
  std::string table_path;
  delta::Version version = -1;
  delta::FileSelection selection;
};

// The snapshot that VERSION AS OF or TIMESTAMP AS OF (literal texts, or a constant expression)
// names, else the newest. Errors: INVALID_TIME_TRAVEL_SPEC, INVALID_TIME_TRAVEL_TIMESTAMP_EXPR,
// versions out of range.
Result<std::shared_ptr<const delta::Snapshot>> snapshot_at(
    const Context& context, const delta::Table& table,
    const std::optional<std::string>& version_as_of,
    const std::optional<std::string>& timestamp_as_of,
    const sql::ExprPtr& timestamp_expr = nullptr);

// Turns the queries of one statement into DuckDB text. Must outlive the queries that use the text:
// it holds the scans with their deletion vectors. Conditions of a query leave files of its tables
// out; "now" is one time for the whole statement.
class Relations {
 public:
  explicit Relations(const Context& context);

  // Errors: of the printer, TABLE_OR_VIEW_NOT_FOUND, time travel errors, kUnsupported functions.
  Result<std::string> print(const sql::Query& query);
  // A condition or value of UPDATE, DELETE and MERGE, whose subqueries may read other tables. The
  // columns of `tables` may be written in full; `from` is the FROM clause of its columns, as DuckDB
  // text.
  Result<std::string> print(const sql::Expr& expr, const std::vector<sql::TableName>& tables = {},
                            const std::string& from = "");
  // Files of the snapshot that may hold rows for which the condition is true; null: all. Columns
  // may be qualified with alias; others are the names of relations beside it (a MERGE's source).
  delta::FileFilter filter(const delta::Snapshot& snapshot, const std::string& alias,
                           const sql::ExprPtr& condition,
                           const std::vector<std::string>& others = {}) const;
  // A scan of a snapshot; files, positions and row ids as asked.
  Result<std::string> scan(const delta::Table& table,
                           const std::shared_ptr<const delta::Snapshot>& snapshot,
                           const duck::ScanOptions& options = {});
  // The Delta tables that the printed queries read.
  const std::vector<TableRead>& table_reads() const { return table_reads_; }
  // After the printed query failed: the file and line that did it, when a file of read_files did;
  // the data file or partition value, when a Delta table's did.
  Error explain(Error error) const { return explain(std::move(error), *context_.connection); }
  // The same with a connection of the caller's, for when the session may be gone.
  Error explain(Error error, duck::Connection& connection) const;

 private:
  struct FileRead {
    pipeline::FileOptions options;
    Schema schema;
    std::vector<pipeline::ConsumedFile> files;
  };

  Result<std::string> resolve(const sql::TableUse& use, const catalog::Defaults& defaults);
  Result<std::string> resolve_function(const sql::TableUse& use, const catalog::Defaults& defaults);
  Result<std::string> read_files(const sql::TableUse& use);
  Result<std::string> number_range(const sql::TableUse& use);
  Result<std::string> event_log(const sql::TableUse& use);
  // table_changes and table_changes_by_path.
  Result<std::string> table_changes(const sql::TableUse& use, const sql::TableChanges& changes,
                                    const catalog::Defaults& defaults);
  // Leaves out files by what the query says about the change columns.
  void prune_changes(const sql::Conditions& conditions, cdf::ChangePlan* plan) const;
  Result<std::string> print_view(const catalog::View& view, const std::string& name,
                                 const sql::Conditions& conditions);
  Result<std::string> scan_at(const delta::Table& table, const sql::TableUse& use);

  // The first partition value that its column's type cannot hold.
  static std::optional<Error> find_bad_partition(const delta::Snapshot& snapshot,
                                                 duck::Connection& connection);

  // The types of a query's columns, told without a look at any data file.
  std::optional<std::vector<Field>> describe(const std::string& query) const;

  // Says of each table use of the query what it says about its rows.
  void add_conditions(std::map<const sql::TableUse*, sql::Conditions> conditions);
  sql::Conditions conditions_of(const sql::TableUse& use) const;
  // The value of an expression without columns, as the query will see it.
  std::optional<delta::FilterLiteral> constant(const sql::Expr& expr) const;

  const Context& context_;
  std::shared_ptr<storage::Store> store_;
  sql::PrintOptions print_options_;
  std::map<const sql::TableUse*, sql::Conditions> conditions_;
  std::vector<sql::QueryPtr> view_queries_;  // whose nodes conditions_ points to
  std::vector<TableRead> table_reads_;
  std::vector<std::unique_ptr<duck::Scan>> scans_;
  std::vector<std::shared_ptr<const delta::Snapshot>> scanned_;
  // Texts of scans, and relations of the same columns that read no files.
  std::vector<std::pair<std::string, std::string>> stand_ins_;
  std::vector<FileRead> file_reads_;
  std::vector<cdf::ChangePlan> change_plans_;
  bool mentions_metadata_ = false;
  std::vector<std::string> open_views_;  // being printed, to find cycles
};

}  // namespace strandline::engine
