// What every statement of a session works with.
#pragma once

#include <strandline/strandline.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "catalog/warehouse.h"
#include "duck/connection.h"
#include "sql/ast.h"

namespace strandline::engine {

struct Context {
  duck::Connection* connection = nullptr;
  std::shared_ptr<storage::Store> store;
  std::shared_ptr<delta::ParquetPort> parquet;
  catalog::Warehouse* warehouse = nullptr;               // null: the session has none
  catalog::Defaults defaults;                            // changed by USE
  std::map<std::string, std::string> settings;           // SET key = value
  std::map<std::string, catalog::View> temporary_views;  // by folded name
  // Relations given as Arrow streams, by folded name: the engine's table that holds them.
  std::map<std::string, std::string> streams;
  std::string directory;  // relative paths resolve against it
  // Of statements that run an update: what it works with, who is told, what stops it.
  std::shared_ptr<duck::Database> database;
  ProgressListener on_progress;
  std::function<void(const UpdateReport&)> on_update;
  const std::atomic<bool>* cancel = nullptr;

  // Errors: kInvalidArgument WAREHOUSE_NOT_GIVEN.
  Result<catalog::Warehouse*> needs_warehouse() const;
  Result<std::string> absolute_path(const std::string& path) const;
  // Relative delta.`path` names made absolute.
  Result<sql::TableName> absolute_name(sql::TableName name) const;
  // The handle of a delta.`path` name, for which no warehouse is needed. Errors: INVALID_NAME.
  Result<delta::Table> table_at_path(const sql::TableName& name) const;
};

// A Delta table of a statement, which must exist. name is as the user sees it.
struct FoundTable {
  delta::Table table;
  std::shared_ptr<const delta::Snapshot> snapshot;
  std::string name;
};

// Errors: TABLE_OR_VIEW_NOT_FOUND with the nearest name, EXPECT_TABLE_NOT_VIEW.
Result<FoundTable> find_table(const Context& context, const sql::TableName& name);

// TABLE_OR_VIEW_NOT_FOUND for a name of the warehouse, with the nearest known one.
Error table_missing(const catalog::Warehouse& warehouse, const catalog::QualifiedName& name,
                    const SourcePlace& place);
// DELTA_TABLE_NOT_FOUND for a path; says so where data files lie there without a log.
Error table_missing_at(storage::Store& store, const std::string& path, const SourcePlace& place);

// The target of AUTO CDC or another pipeline flow.
bool belongs_to_pipeline(const delta::Snapshot& snapshot);

}  // namespace strandline::engine
