// Names and table functions of a query, as DuckDB relations.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "duck/delta_io.h"
#include "engine/context.h"
#include "pipeline/file_reader.h"
#include "sql/duckdb_printer.h"

namespace strandline::engine {

// Turns the queries of one statement into DuckDB text. Must outlive the queries that use the text:
// it holds the scans with their deletion vectors.
class Relations {
 public:
  explicit Relations(const Context& context) : context_(context) {}

  // Errors: of the printer, TABLE_OR_VIEW_NOT_FOUND, time travel errors, kUnsupported functions.
  Result<std::string> print(const sql::Query& query);
  // A condition or value of UPDATE and DELETE, whose subqueries may read other tables.
  Result<std::string> print(const sql::Expr& expr);
  // A scan of a snapshot; positions and row ids as asked.
  Result<std::string> scan(const delta::Table& table,
                           const std::shared_ptr<const delta::Snapshot>& snapshot,
                           const duck::ScanOptions& options = {});
  // After the printed query failed: the file and line that did it, when a file of read_files did.
  Error explain(Error error) const;

 private:
  struct FileRead {
    pipeline::FileOptions options;
    Schema schema;
    std::vector<pipeline::ConsumedFile> files;
  };

  Result<std::string> resolve(const sql::TableUse& use, const catalog::Defaults& defaults);
  Result<std::string> resolve_function(const sql::TableUse& use);
  Result<std::string> read_files(const sql::TableUse& use);
  Result<std::string> number_range(const sql::TableUse& use);
  Result<std::string> event_log(const sql::TableUse& use);
  Result<std::string> print_view(const catalog::View& view, const std::string& name);
  Result<std::string> scan_at(const delta::Table& table, const sql::TableUse& use);

  const Context& context_;
  std::vector<std::unique_ptr<duck::Scan>> scans_;
  std::vector<FileRead> file_reads_;
  bool mentions_metadata_ = false;
  std::vector<std::string> open_views_;  // being printed, to find cycles
};

}  // namespace strandline::engine
