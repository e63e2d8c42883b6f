// The reference model: what auto-cdc.md says of a set of events, in the plainest way. It shares no
// code with the engine: values are compared here, one key's events are sorted and folded.
#pragma once

#include <cstdint>
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

enum class EventKind { kUpsert, kDelete, kTruncate };

struct Event {
  std::vector<Value> key;  // nulls on a truncate
  Value sequence;
  EventKind kind = EventKind::kUpsert;
  std::vector<Value> values;  // selected columns in the order of their lower-cased names
};

struct Row {
  std::vector<Value> key;
  std::vector<Value> values;
  Value start, end;  // SCD 2
};

// tracked: per value, whether a difference opens a version.
std::vector<Row> scd1(const std::vector<Event>& events);
std::vector<Row> scd2(const std::vector<Event>& events, const std::vector<bool>& tracked);
// (key, sequence) pairs with differing upserts.
int64_t conflicts(const std::vector<Event>& events);
// How many of `batch` lie below the greatest sequence that `earlier` has for their key, or below
// its greatest truncate.
int64_t late(const std::vector<Event>& earlier, const std::vector<Event>& batch);

// One text for equal keys.
bool same_key(const std::vector<Value>& a, const std::vector<Value>& b);

}  // namespace strandline::model
