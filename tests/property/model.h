// The reference model: what auto-cdc.md says of a set of events, in the plainest way. It shares no
// code with the engine: values are compared here, one key's events are sorted and folded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace strandline::model {

struct Value {
  enum class Kind { kNull, kInt, kDouble, kText, kList, kStruct, kMap };
  Kind kind = Kind::kNull;
  int64_t number = 0;        // kInt: also dates, timestamps, unscaled decimals, booleans
  double real = 0;           // kDouble
  std::string text;          // kText: also bytes
  std::vector<Value> parts;  // kList, kStruct; kMap: key, value, key, value, ...
  std::string spelled;       // as the engine spells it; tells -0.0 from 0.0 and map orders apart

  static Value integer(int64_t n);
  static Value floating(double d);
  static Value string(std::string s);
  static Value nested(Kind kind, std::vector<Value> parts);
};

// Section 6 and 7: negative, zero or positive; null lowest, NaN greatest and one, -0.0 is 0.0, maps
// by sorted entries.
int compare(const Value& a, const Value& b);

// Which values are structs, and of what; section 5 counts their leaves one by one.
struct Shape {
  bool is_struct = false;
  std::vector<Shape> fields;
  std::vector<size_t> by_name;  // places of the fields, by their lower-cased names
  bool is_one_leaf = false;     // every partial update gives it whole
};
// The leaves of a value: of a struct first 1 or null for whether it is there, then its fields'.
std::vector<Value> leaves_of(const Value& value, const Shape& shape);

// kNothing: by hand, where what was known counts no more; what comes later counts if it would have
// won its tie with that.
enum class EventKind { kUpsert, kDelete, kTruncate, kNothing };

struct Event {
  std::vector<Value> key;  // nulls on a truncate
  Value sequence;
  Value system;  // bitemporal
  EventKind kind = EventKind::kUpsert;
  bool by_hand = false;       // counts instead of all others of its moment; the last one does
  Value note;                 // by hand: of the column that no event gives
  std::vector<Value> values;  // selected columns in the order of their lower-cased names
  // A partial update instead: leaves of all values in that order, nothing where not given.
  bool partial = false;
  std::vector<std::optional<Value>> leaves;
};

struct Row {
  std::vector<Value> key;
  std::vector<Value> values;
  Value start, end;                // SCD 2, bitemporal
  Value system_start, system_end;  // bitemporal
  Value note;                      // of the column that no event gives
};

struct Columns {
  std::vector<Shape> shapes;
  std::vector<bool> tracked;  // whether a difference opens a version
  Value note;                 // that a new row has
};

std::vector<Row> scd1(const std::vector<Event>& events, const Columns& columns);
std::vector<Row> scd2(const std::vector<Event>& events, const Columns& columns);
std::vector<Row> bitemporal(const std::vector<Event>& events, const Columns& columns);
// What rows of a key that were changed by hand say (section 8), from all rows before and after.
// Type 1: the row, or its absence, at the greatest sequence that `events` has of the key. Type 2: a
// row that is new or differs is an upsert at its start and a delete at its end, one that is gone a
// delete at its start; what `events` has inside such a row counts no more.
std::vector<Event> edits(const std::vector<Event>& events, const std::vector<Value>& key,
                         const std::vector<Row>& before, const std::vector<Row>& after, bool type1);
// (key, sequence) pairs where upserts of one moment differ: whole rows, or partial updates in what
// both give.
int64_t conflicts(const std::vector<Event>& events);
// How many of `batch` lie below the greatest sequence that `earlier` has for their key, or below
// its greatest truncate.
int64_t late(const std::vector<Event>& earlier, const std::vector<Event>& batch);

// One text for equal keys.
bool same_key(const std::vector<Value>& a, const std::vector<Value>& b);

}  // namespace strandline::model
