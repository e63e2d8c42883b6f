// AUTO CDC: declaration -> checked, immutable plan (spec: auto-cdc.md sections 2, 3, 6).
// Pure: no I/O, no engine. What only an engine can tell (types of expressions) comes in as facts.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/data_type.h"
#include "sql/ast.h"

namespace strandline::cdc {

enum class ScdType { kType1, kType2, kBitemporal };
const char* to_string(ScdType type);  // "SCD TYPE 1", "SCD TYPE 2", "BITEMPORAL"

inline constexpr const char* kStartAt = "__START_AT";
inline constexpr const char* kEndAt = "__END_AT";
inline constexpr const char* kSystemStartAt = "__SYSTEM_START_AT";
inline constexpr const char* kSystemEndAt = "__SYSTEM_END_AT";
// Prefix that no user column may have; state and scans use it.
inline constexpr const char* kReservedPrefix = "__strandline_";
// Columns of every state table, after the keys.
inline constexpr const char* kStateSequence = "__strandline_sequence";
inline constexpr const char* kStateKind = "__strandline_kind";  // BYTE, a StateKind
// Bitemporal only.
inline constexpr const char* kStateSystemSequence = "__strandline_system_sequence";
// Only where a flow ever gave partial updates: ARRAY<STRING>, the paths of the leaves that a
// kPartial event gives as null. A leaf that is not null is given; any other null is not.
inline constexpr const char* kStateGivenNulls = "__strandline_given_nulls";

// kUpsert gives the whole row, kPartial some of its leaves. Hand edits count instead of all source
// events of their key and sequence. The last four give nothing: a row changed by hand holds there.
// A new event at the sequence of one of the last three counts if it would win its tie with it
// (auto-cdc.md section 7), and of a partial update what would win.
enum class StateKind {
  kDelete = 0,
  kUpsert = 1,
  kTruncate = 2,
  kPartial = 3,
  kHandUpsert = 4,
  kHandDelete = 5,
  kHandSuperseded = 6,  // an earlier hand edit; no event of its sequence counts
  kDeleteSuperseded = 7,
  kUpsertSuperseded = 8,
  kPartialSuperseded = 9
};

// One AUTO CDC flow as declared, from SQL or (later) Python.
struct Declaration {
  std::string flow_name;
  std::string target;  // for messages
  sql::AutoCdcClauses clauses;
  SourcePlace place;
};

// Mistakes that need no schema: missing clauses, illegal mixes. All of them, in text order.
std::vector<Error> check_declaration(const Declaration& declaration);

// What the engine says of the source relation.
struct SourceFacts {
  Schema schema;           // columns of FROM, as * means them
  DataType sequence_type;  // of SEQUENCE BY over them; of the snapshots' versions
  Schema hidden;           // columns the relation also has and * does not mean: _metadata
  DataType system_sequence_type = {};  // of SYSTEM SEQUENCE BY, if the flow has one
};

// What the target's state remembers of the flows before (kept as one JSON text in the state table's
// configuration). Drift against it is AUTOCDC_INVALID_STATE.* (section 6).
struct StateSpec {
  ScdType scd_type = ScdType::kType1;
  std::vector<Field> keys;  // name and type; compared as a set
  DataType sequence_type;
  std::optional<DataType> system_sequence_type;  // bitemporal
  std::map<std::string, bool> tracked;           // column -> opens a new version; SCD 2 only
  std::vector<std::string> selected_ever;        // columns some flow has selected
  // SCD 1: target column that tells the sequence of live rows without a row in the state. Decided
  // when the state begins and kept, whatever later flows use as SEQUENCE BY.
  std::optional<std::string> sequence_column;
  bool truncates = false;  // some flow has APPLY AS TRUNCATE WHEN, so there may be a truncate mark
  bool partial = false;    // some flow gives partial updates, so there may be kPartial events
  std::vector<std::string> by_leaves;  // columns of which some flow has given single leaves
  bool edited = false;  // the target was changed by hand, so there may be hand events

  std::string to_json() const;
  // Errors: kCorrupt "STATE_SPEC".
  static Result<StateSpec> from_json(const std::string& text);
};

// The target as it stands before the batch.
struct TargetFacts {
  std::optional<Schema> declared;  // schema written in CREATE STREAMING TABLE: fixed (section 3)
  std::optional<Schema> existing;  // of the Delta table
  std::optional<StateSpec> state;
  std::optional<Schema> existing_state;  // of the state table, if there is one
  bool type_widening = false;            // delta.enableTypeWidening
  bool edited = false;                   // rows were changed by hand since the batch before
  // What the table has for columns that no flow gives, by their names in the schema: the value of
  // a new row, and which columns it computes as rows are written.
  std::map<std::string, sql::ExprPtr> defaults;
  std::set<std::string> generated;
  // Columns that other flows into the table select, whether or not they have run.
  std::vector<std::string> selected_elsewhere;
  // What the other flows into the table declare, whether or not they have run.
  std::vector<sql::AutoCdcClauses> clauses_elsewhere;
  // Whether `existing` may hold rows; only an empty (or new) table can begin with its sequences in
  // the target alone (StateSpec::sequence_column).
  bool has_rows = true;
  // Text and bytes that the table is partitioned by: an empty value is null there
  // (delta-protocol.md section 5).
  std::vector<std::string> columns_without_empty;
};

// What a flow of partial updates gives of a column it selects (section 5).
enum class Gives { kAlways, kLeavesNotNull, kWhenNamed };

// A column of the target.
struct PlanColumn {
  std::string name;
  DataType type;  // after this batch
  bool nullable = true;
  bool is_key = false;
  bool tracked = false;              // a difference opens a new version (SCD 2)
  bool owned = false;                // some flow gives it, now or before; the others are the user's
  std::optional<Field> source;       // this flow's source column, if it selects one
  std::optional<DataType> existing;  // its type in the table as it stands, if it is there
  std::optional<DataType> existing_state;  // likewise in the state table
  Gives gives = Gives::kAlways;
  // Some flow gives, gave or may give single leaves of it, so partial events that meet are merged
  // leaf by leaf; else the greatest value given counts whole (section 7).
  bool by_leaves = false;
  // Of columns that are not owned. A row keeps its value while it lives.
  sql::ExprPtr default_value;  // of a new row; null: it has none
  bool generated = false;      // the table computes it from the row, programs write null
  bool noted = false;          // rows changed by hand may have given it values
  // An empty value is null in the table, and so from the source on. Of a key it is an error
  // instead.
  bool empty_is_null = false;
};

// One flow, ready to run: everything resolved, nothing left to decide. Immutable.
struct Plan {
  std::string flow_name;
  std::string target;
  ScdType scd_type = ScdType::kType1;
  Schema target_schema;                // after this flow's evolution, interval columns included
  bool target_schema_changed = false;  // against TargetFacts::existing (a new table too)
  std::vector<PlanColumn> columns;     // target columns without interval columns, target order
  std::vector<Field> keys;             // as in the target, in KEYS order
  DataType sequence_type;
  DataType system_sequence_type;  // bitemporal
  sql::ExprPtr sequence_by, system_sequence_by, delete_when, truncate_when;
  bool gives_partly = false;  // this flow's upserts are partial updates
  // COLUMNS TO UPDATE: the source column, and the names it may hold besides those of `columns`: of
  // source columns that the selection leaves out.
  std::optional<Field> columns_to_update;
  std::vector<std::string> unselected;
  // SCD 1: StateSpec::sequence_column, and whether this flow's SEQUENCE BY is exactly that column.
  std::optional<std::string> sequence_column;
  bool sequence_is_column = false;
  Schema state_schema;
  std::set<std::string> state_columns_before;  // columns of TargetFacts::existing_state
  bool state_schema_changed = false;  // against TargetFacts::existing_state (a new state too)
  StateSpec state_spec;               // to store with the state
  std::vector<Error> warnings;        // e.g. whole-row flows with different columns
};

// Errors: all that apply, check_declaration's among them, with places where known.
struct PlanOrErrors {
  std::optional<Plan> plan;
  std::vector<Error> errors;
};
PlanOrErrors make_plan(const Declaration& declaration, const SourceFacts& source,
                       const TargetFacts& target);

}  // namespace strandline::cdc
