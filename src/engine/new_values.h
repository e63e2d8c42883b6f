// SET and INSERT lists: which columns and fields of a row get which values.
#pragma once

#include <string>
#include <vector>

#include "duck/connection.h"
#include "engine/assignment.h"
#include "engine/relations.h"
#include "engine/target.h"

namespace strandline::engine {

// One value for a column of the target, or for a field inside one.
struct NewValue {
  std::vector<size_t> path;   // index of the column, then of members inside it
  std::string sql;            // DuckDB text over the statement's relations
  std::string column;         // the name under which a query keeps the value
  duck::ResultColumn source;  // its type
  SourcePlace place;
};

// Values of one SET or INSERT list. Their names are made of the prefix, which is the list's own.
class NewValues {
 public:
  // structs_by: kWholeName, or kName where the schema may evolve.
  NewValues(const Target& target, std::string prefix, StructsBy structs_by)
      : target_(&target), prefix_(std::move(prefix)), structs_by_(structs_by) {}

  // A list as written. `tables` are those whose columns may be written in full, `from` is where
  // its values' columns come from, as DuckDB text.
  // Errors: UNRESOLVED_COLUMN.WITH_SUGGESTION, INVALID_EXTRACT_BASE_FIELD_TYPE,
  // DUPLICATE_ASSIGNMENTS.
  Status add(const std::vector<sql::Assignment>& assignments, Relations& relations,
             const std::vector<sql::TableName>& tables, const std::string& from);
  // A value at a path, as DuckDB text. Errors: DUPLICATE_ASSIGNMENTS.
  Status add(std::vector<size_t> path, std::string sql, const SourcePlace& place);
  // Asks the engine for the types of the values over a FROM clause.
  Status find_types(duck::Connection& connection, const std::string& from);

  const std::vector<NewValue>& values() const { return values_; }
  // ", sql AS name" of each value, for the select list of the query that keeps them; with a
  // condition the value is null where that is not true.
  std::string select_items(const std::string& condition = "") const;

  // Whether the value of a column is wholly new.
  bool replaces(size_t column) const;
  bool touches(size_t column) const;
  // The column's new value over the kept ones; `old` is the text of what it was.
  // Errors: of assign(), at the place of the value.
  Result<std::string> updated(size_t column, const std::string& old) const;
  // The column of a new row: members without a value are null, columns take their default.
  Result<std::string> inserted(size_t column) const;

 private:
  Result<std::vector<size_t>> resolve(const sql::Assignment& assignment) const;
  Result<std::string> value_text(const Field& field, const std::string& shown,
                                 const std::vector<size_t>& path, const std::string& old) const;

  const Target* target_;
  std::string prefix_;
  StructsBy structs_by_;
  std::vector<NewValue> values_;
};

}  // namespace strandline::engine
