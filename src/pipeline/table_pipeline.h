// Streaming tables and materialized views that are declared on their own, outside of a pipeline's
// folder (sql.md, statements outside a pipeline). Each is the one table of a pipeline that lies in
// the warehouse and is named after it, so that its progress, event log, lock, recovery and
// ownership are those of every pipeline.
//
//   <warehouse>/_strandline/pipelines/<catalog.schema.table>/table.sql   the statement as given
#pragma once

#include <strandline/strandline.h>

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "catalog/warehouse.h"
#include "pipeline/pipeline.h"

namespace strandline::pipeline {

struct TableDeclaration {
  catalog::QualifiedName name;
  bool is_materialized_view = false;
  std::string statement;       // CREATE …
  SourcePlace place;           // of its first character, for messages
  catalog::Defaults defaults;  // where names in it lie
  std::string directory;       // where relative paths in it start
};
const char* kind_of(const TableDeclaration& table);  // "streaming table", "materialized view"

// The pipeline of a table, without regard to the case of the table's name.
std::string table_pipeline_name(const catalog::QualifiedName& name);

// What the warehouse keeps; none for tables that are not declared on their own.
// Errors: kCorrupt, kIo.
Result<std::optional<TableDeclaration>> find_declaration(const catalog::Warehouse& warehouse,
                                                         const catalog::QualifiedName& name);
// The same by the pipeline's name.
Result<std::optional<TableDeclaration>> declaration_of_pipeline(const catalog::Warehouse& warehouse,
                                                                const std::string& pipeline);
Result<std::vector<TableDeclaration>> declarations_in(const catalog::Warehouse& warehouse,
                                                      const std::string& catalog,
                                                      const std::string& schema);

// Where a pipeline of this warehouse lies; empty when that is not known.
std::string place_of_pipeline(const catalog::Warehouse& warehouse, const std::string& pipeline);

struct CreateMode {
  bool or_refresh = false;  // takes the place of an earlier declaration
  bool if_not_exists = false;
};
// Declares the table and loads it. None: it exists and the mode asks for no more.
// A statement with mistakes changes nothing (INVALID); neither does a new table whose first load
// fails before any of it is committed. Otherwise the table stays, for REFRESH to go on with it. A
// new declaration of a table that fails so leaves the earlier one.
// Errors: TABLE_OR_VIEW_ALREADY_EXISTS, SCHEMA_NOT_FOUND, PIPELINE_BUSY, …; those of the
// statement and of the load are in the report.
Result<std::optional<UpdateReport>> create_table_pipeline(catalog::Warehouse& warehouse,
                                                          const TableDeclaration& table,
                                                          const CreateMode& mode,
                                                          const Dependencies& dependencies,
                                                          const ProgressListener& listener,
                                                          const std::atomic<bool>* cancel);

struct RefreshMode {
  bool full = false;
  bool allow_missing_sources = false;
};
// Loads what is new. Errors: kNotFound TABLE_OR_VIEW_NOT_FOUND when there is no such declaration.
Result<UpdateReport> refresh_table_pipeline(catalog::Warehouse& warehouse,
                                            const catalog::QualifiedName& name,
                                            const RefreshMode& mode,
                                            const Dependencies& dependencies,
                                            const ProgressListener& listener,
                                            const std::atomic<bool>* cancel);

// Drops table, declaration and progress; cut short, it is finished by another try.
// Errors: PIPELINE_BUSY while an update runs, kIo.
Status drop_table_pipeline(catalog::Warehouse& warehouse, const catalog::QualifiedName& name);

}  // namespace strandline::pipeline
