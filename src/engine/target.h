// The table that a statement changes, and how its text names it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "delta/alter.h"
#include "duck/delta_io.h"
#include "engine/assignment.h"
#include "engine/context.h"
#include "engine/relations.h"

namespace strandline::engine {

struct Target {
  FoundTable found;
  std::string alias;                  // what its columns are qualified with
  std::vector<sql::TableName> names;  // written in full, if it has no alias
  // What rows are read and written by: the snapshot found, or the same with a schema that evolved.
  std::shared_ptr<const delta::Snapshot> view;

  const Schema& schema() const { return view->schema; }
  bool tracks_rows() const { return view->row_tracking_enabled(); }
  bool has_change_feed() const { return view->property_is_true("delta.enableChangeDataFeed"); }
};

// The table of INSERT, UPDATE, DELETE or MERGE (verb). Errors: of find_table,
// DML_ON_PIPELINE_TABLE, and where old rows leave (removes_rows) DELTA_CANNOT_MODIFY_APPEND_ONLY.
Result<Target> find_target(const Context& context, const sql::TableName& name,
                           const std::optional<sql::Name>& alias, const char* verb,
                           bool removes_rows);

// WITH SCHEMA EVOLUTION: the target's columns joined with those of new rows; changes the view.
// The alteration, if it changed anything, belongs into the statement's transaction.
// Errors: of Alteration::merge_schema, DELTA_UNSUPPORTED_DATA_TYPES.
Result<std::optional<delta::Alteration>> evolve_target(
    Target& target, const std::vector<duck::ResultColumn>& incoming,
    StructsBy structs_by = StructsBy::kName);

// What a statement reads of its target: rows that a filter asks for, from the files that may hold
// some.
struct TargetReads {
  delta::FileFilter filter;
  delta::FileSelection selection;
};
TargetReads reads_of(const Target& target, delta::FileFilter filter);
// Rows for which a condition over the target's columns is true; null: all.
TargetReads reads_of(const Relations& relations, const Target& target,
                     const sql::ExprPtr& condition);

// Tells the transaction what was read, which decides its conflicts (delta-protocol.md section 2),
// and sets the metrics of files. A condition that is not deterministic, and conditions or values
// whose subqueries read the target, count as reading all of it.
void tell_reads(const Context& context, delta::Transaction& transaction, const Target& target,
                const TargetReads& reads, const sql::ExprPtr& condition,
                const std::vector<sql::ExprPtr>& values = {});

// The target's rows as a relation under its alias, with positions, and row ids where it tracks
// rows. Every statement reads its target here.
Result<std::string> scan_target(Relations& relations, const Target& target,
                                std::vector<size_t> files);

// Two writers that give out values of an identity column at once cannot both have theirs: whether
// that is why this one failed, so that it is to try again. `attempt` counts from 1.
bool lost_identity_race(const Error& error, const delta::Snapshot& snapshot, int attempt);

// "alias"."column"
std::string qualified(const std::string& alias, const std::string& column);

}  // namespace strandline::engine
