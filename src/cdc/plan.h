// AUTO CDC: declaration -> checked, immutable plan (spec: auto-cdc.md sections 2, 3, 6).
// Pure: no I/O, no engine. What only an engine can tell (types of expressions) comes in as facts.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/data_type.h"
#include "sql/ast.h"

namespace strandline::cdc {

enum class ScdType { kType1, kType2, kBitemporal };
const char* to_string(ScdType type);  // "SCD TYPE 1", "SCD TYPE 2", "BITEMPORAL"

inline constexpr const char* kStartAt = "__START_AT";
inline constexpr const char* kEndAt = "__END_AT";
// Prefix that no user column may have; state and scans use it.
inline constexpr const char* kReservedPrefix = "__strandline_";

// One AUTO CDC flow as declared, from SQL or (later) Python.
struct Declaration {
  std::string flow_name;
  std::string target;  // for messages
  sql::AutoCdcClauses clauses;
  SourcePlace place;
};

// Mistakes that need no schema: missing clauses, illegal mixes, clauses of later work (refused by
// name). All of them, in text order.
std::vector<Error> check_declaration(const Declaration& declaration);

// What the engine says of the source relation.
struct SourceFacts {
  Schema schema;            // columns of FROM
  DataType sequence_type;   // of SEQUENCE BY over them
};

// What the target's state remembers of the flows before (kept as one JSON text in the state table's
// configuration). Drift against it is AUTOCDC_INVALID_STATE.* (section 6).
struct StateSpec {
  ScdType scd_type = ScdType::kType1;
  std::vector<Field> keys;                // name and type; compared as a set
  DataType sequence_type;
  std::map<std::string, bool> tracked;    // column -> opens a new version; SCD 2 only
  std::vector<std::string> selected_ever; // columns some flow has selected

  std::string to_json() const;
  static Result<StateSpec> from_json(const std::string& text);
};

// The target as it stands before the batch.
struct TargetFacts {
  std::optional<Schema> declared;  // schema written in CREATE STREAMING TABLE: fixed (section 3)
  std::optional<Schema> existing;  // of the Delta table
  std::optional<StateSpec> state;
  bool type_widening = false;      // delta.enableTypeWidening
};

// One flow, ready to run: everything resolved, nothing left to decide. Immutable.
struct Plan {
  std::string flow_name;
  std::string target;
  ScdType scd_type = ScdType::kType1;
  Schema target_schema;               // after this flow's evolution, interval columns included
  bool target_schema_changed = false; // against TargetFacts::existing
  std::vector<Field> keys;            // as in the target
  std::vector<Field> columns;         // target columns without interval columns, target order
  std::vector<bool> selected;         // per columns: this flow's source gives it
  std::vector<bool> tracked;          // per columns: a difference opens a new version
  DataType sequence_type;
  sql::ExprPtr sequence_by, delete_when, truncate_when;
  // Target column that is exactly SEQUENCE BY (plain, selected, same type): SCD 1 then keeps no
  // sequence of live rows in the state.
  std::optional<std::string> sequence_column;
  Schema state_schema;
  StateSpec state_spec;               // to store with the state
  std::vector<Error> warnings;        // e.g. whole-row flows with different columns
};

// Errors: all that apply, with places where known.
struct PlanOrErrors {
  std::optional<Plan> plan;
  std::vector<Error> errors;
};
PlanOrErrors make_plan(const Declaration& declaration, const SourceFacts& source, const TargetFacts& target);

}  // namespace strandline::cdc
