#include "property/model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

namespace strandline::model {

Value Value::integer(int64_t n) {
  Value value;
  value.kind = Kind::kInt;
  value.number = n;
  return value;
}

Value Value::floating(double d) {
  Value value;
  value.kind = Kind::kDouble;
  value.real = d;
  return value;
}

Value Value::string(std::string s) {
  Value value;
  value.kind = Kind::kText;
  value.text = std::move(s);
  return value;
}

Value Value::nested(Kind kind, std::vector<Value> parts) {
  Value value;
  value.kind = kind;
  value.parts = std::move(parts);
  return value;
}

namespace {

template <typename T>
int three_way(const T& a, const T& b) {
  return a < b ? -1 : (b < a ? 1 : 0);
}

int compare_lists(const std::vector<Value>& a, const std::vector<Value>& b) {
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (const int order = compare(a[i], b[i]); order != 0) return order;
  }
  return three_way(a.size(), b.size());
}

std::vector<Value> sorted_entries(const Value& map) {
  std::vector<Value> entries;
  for (size_t i = 0; i + 1 < map.parts.size(); i += 2) {
    entries.push_back(Value::nested(Value::Kind::kStruct, {map.parts[i], map.parts[i + 1]}));
  }
  std::sort(entries.begin(), entries.end(),
            [](const Value& a, const Value& b) { return compare(a, b) < 0; });
  return entries;
}

// As compare, but fields of structs go by name.
int compare_by_name(const Value& a, const Value& b, const Shape& shape) {
  const bool is_null = a.kind == Value::Kind::kNull || b.kind == Value::Kind::kNull;
  if (!shape.is_struct || is_null) return compare(a, b);
  for (const size_t i : shape.by_name) {
    const int order = compare_by_name(a.parts[i], b.parts[i], shape.fields[i]);
    if (order != 0) return order;
  }
  return 0;
}

int compare_values(const Event& a, const Event& b, const std::vector<Shape>& shapes) {
  for (size_t i = 0; i < a.values.size(); ++i) {
    if (const int order = compare_by_name(a.values[i], b.values[i], shapes[i]); order != 0)
      return order;
  }
  return 0;
}

// The total order among upserts of one key and sequence: by values, then by how equal ones look.
bool less_values(const Event& a, const Event& b, const std::vector<Shape>& shapes) {
  if (const int order = compare_values(a, b, shapes); order != 0) return order < 0;
  for (size_t i = 0; i < a.values.size(); ++i) {
    if (a.values[i].spelled != b.values[i].spelled)
      return a.values[i].spelled < b.values[i].spelled;
  }
  return false;
}

struct KeyLess {
  bool operator()(const std::vector<Value>& a, const std::vector<Value>& b) const {
    return compare_lists(a, b) < 0;
  }
};
struct SequenceLess {
  bool operator()(const Value& a, const Value& b) const { return compare(a, b) < 0; }
};

// One key's events by sequence, then by system sequence.
using Moments = std::map<Value, std::vector<Event>, SequenceLess>;
using History = std::map<Value, Moments, SequenceLess>;
using Histories = std::map<std::vector<Value>, History, KeyLess>;

Histories by_key(const std::vector<Event>& events) {
  Histories histories;
  for (const Event& event : events) {
    if (event.kind != EventKind::kTruncate)
      histories[event.key][event.sequence][event.system].push_back(event);
  }
  return histories;
}

std::optional<Value> last_truncate(const std::vector<Event>& events) {
  std::optional<Value> last;
  for (const Event& event : events) {
    if (event.kind == EventKind::kTruncate && (!last || compare(*last, event.sequence) < 0))
      last = event.sequence;
  }
  return last;
}

void add_leaves(const Value* value, const Shape& shape, std::vector<Value>* leaves) {
  const bool is_null = value == nullptr || value->kind == Value::Kind::kNull;
  if (!shape.is_struct || shape.is_one_leaf) {
    leaves->push_back(is_null ? Value{} : *value);
    return;
  }
  leaves->push_back(is_null ? Value{} : Value::integer(1));
  for (size_t i = 0; i < shape.fields.size(); ++i) {
    add_leaves(is_null ? nullptr : &value->parts[i], shape.fields[i], leaves);
  }
}

Value from_leaves(const Shape& shape, const std::vector<std::optional<Value>>& leaves, size_t* at) {
  const Value first = leaves[(*at)++].value_or(Value{});
  if (!shape.is_struct || shape.is_one_leaf) return first;
  std::vector<Value> parts;
  for (const Shape& field : shape.fields) parts.push_back(from_leaves(field, leaves, at));
  return first.kind == Value::Kind::kNull ? Value{}
                                          : Value::nested(Value::Kind::kStruct, std::move(parts));
}

// Of each leaf of the columns what it is compared by.
void add_leaf_shapes(const Shape& shape, std::vector<Shape>* leaves) {
  if (!shape.is_struct || shape.is_one_leaf) {
    leaves->push_back(shape);
    return;
  }
  leaves->emplace_back();
  for (const Shape& field : shape.fields) add_leaf_shapes(field, leaves);
}

std::vector<Shape> leaf_shapes(const Columns& columns) {
  std::vector<Shape> leaves;
  for (const Shape& shape : columns.shapes) add_leaf_shapes(shape, &leaves);
  return leaves;
}

bool less_leaf(const Value& a, const Value& b, const Shape& shape) {
  const int order = compare_by_name(a, b, shape);
  return order != 0 ? order < 0 : a.spelled < b.spelled;
}

const Event* greatest_whole(const std::vector<Event>& events, const std::vector<Shape>& shapes) {
  const Event* best = nullptr;
  for (const Event& event : events) {
    if (event.kind != EventKind::kUpsert || event.partial) continue;
    if (best == nullptr || less_values(*best, event, shapes)) best = &event;
  }
  return best;
}

// Of leaves in the order of leaves_of: which ones a value of `shape` begins with at `at`, the
// struct's own first. A struct that does not win still is where one of its fields is.
bool keep_winning(const Shape& shape, const Event& event, const std::vector<bool>& wins, size_t* at,
                  std::vector<std::optional<Value>>* left) {
  const size_t own = (*at)++;
  const auto& leaf = event.leaves[own];
  bool has_field = false;
  for (size_t i = 0; i < (shape.is_one_leaf ? 0 : shape.fields.size()); ++i)
    has_field = keep_winning(shape.fields[i], event, wins, at, left) || has_field;
  if (wins[own] || has_field) (*left)[own] = leaf;
  return has_field || (wins[own] && leaf && leaf->kind != Value::Kind::kNull);
}

// Events of one moment that come after superseded ones, less what would not have won against them.
std::vector<Event> winning(const std::vector<Event>& known, const std::vector<Event>& news,
                           const Columns& columns) {
  const Event* whole = greatest_whole(known, columns.shapes);
  const bool has_delete = std::any_of(known.begin(), known.end(), [](const Event& event) {
    return event.kind == EventKind::kDelete;
  });
  const std::vector<Shape> compared_by = leaf_shapes(columns);
  std::vector<Event> left;
  for (const Event& event : news) {
    if (event.kind == EventKind::kDelete) {
      if (whole == nullptr && !has_delete) left.push_back(event);
      continue;
    }
    if (!event.partial) {
      if (whole == nullptr || compare_values(event, *whole, columns.shapes) > 0)
        left.push_back(event);
      continue;
    }
    std::vector<bool> wins;
    for (const auto& leaf : event.leaves) wins.push_back(leaf.has_value());
    bool is_known = false;
    for (const Event& other : known) {
      if (other.kind != EventKind::kUpsert || !other.partial) continue;
      is_known = true;
      for (size_t i = 0; i < wins.size(); ++i) {
        if (event.leaves[i] && other.leaves[i] &&
            compare_by_name(*event.leaves[i], *other.leaves[i], compared_by[i]) <= 0)
          wins[i] = false;
      }
    }
    if (is_known && std::find(wins.begin(), wins.end(), true) == wins.end()) continue;
    Event patch = event;
    patch.leaves.assign(event.leaves.size(), std::nullopt);
    size_t at = 0;
    for (const Shape& shape : columns.shapes) keep_winning(shape, event, wins, &at, &patch.leaves);
    left.push_back(std::move(patch));
  }
  return left;
}

// What a key is after the events of a sequence: a row, or none.
struct Result {
  Value sequence;
  bool up = false;
  std::vector<Value> values;
  std::optional<Value> note_here;  // what a hand writes at this sequence
  std::optional<Value> note;       // what a hand wrote last in this life
};

// Section 5 and 7 for one key, sequence after sequence.
std::vector<Result> results(const History& history, const Columns& columns) {
  std::vector<Result> list;
  const std::vector<Shape> compared_by = leaf_shapes(columns);
  std::vector<std::optional<Value>> row;
  const auto leaves_of_row = [&](const std::vector<Value>& values) {
    std::vector<std::optional<Value>> leaves;
    for (size_t i = 0; i < columns.shapes.size(); ++i) {
      for (Value& leaf : leaves_of(values[i], columns.shapes[i]))
        leaves.emplace_back(std::move(leaf));
    }
    return leaves;
  };
  const std::vector<std::optional<Value>> nothing(
      leaves_of_row(std::vector<Value>(columns.shapes.size())).size());
  row = nothing;
  std::optional<Value> note;
  for (const auto& [sequence, moments] : history) {
    Result result{sequence, false, {}, {}, {}};
    bool counts = true;
    for (const auto& [system, all_events] : moments) {
      std::vector<Event> events = all_events;
      result.up = false;
      auto hand = std::find_if(events.rbegin(), events.rend(),
                               [](const Event& event) { return event.by_hand; });
      if (hand != events.rend() && hand->kind == EventKind::kNothing) {
        std::vector<Event> known(events.begin(), hand.base() - 1);
        const bool by_hand_before = std::any_of(known.begin(), known.end(), [](const Event& event) {
          return event.by_hand && event.kind != EventKind::kNothing;
        });
        events = by_hand_before ? std::vector<Event>{}
                                : winning(known, {hand.base(), events.end()}, columns);
        counts = !events.empty();
        if (!counts) continue;
        hand = events.rend();
      }
      if (hand != events.rend()) {
        result.up = hand->kind == EventKind::kUpsert;
        row = result.up ? leaves_of_row(hand->values) : nothing;
        note = result.up ? std::optional(hand->note) : std::nullopt;
        result.note_here = note;
        continue;
      }
      for (const Event& event : events) {
        if (event.kind != EventKind::kDelete) continue;
        row = nothing;
        note.reset();
      }
      if (const Event* whole = greatest_whole(events, columns.shapes)) {
        row = leaves_of_row(whole->values);
        result.up = true;
      }
      std::vector<std::optional<Value>> patch = nothing;
      for (const Event& event : events) {
        if (event.kind != EventKind::kUpsert || !event.partial) continue;
        result.up = true;
        for (size_t i = 0; i < patch.size(); ++i) {
          if (event.leaves[i] &&
              (!patch[i] || less_leaf(*patch[i], *event.leaves[i], compared_by[i])))
            patch[i] = event.leaves[i];
        }
      }
      for (size_t i = 0; i < patch.size(); ++i) {
        if (patch[i]) row[i] = patch[i];
      }
    }
    if (!counts) continue;
    result.note = note;
    if (result.up) {
      size_t at = 0;
      for (const Shape& shape : columns.shapes)
        result.values.push_back(from_leaves(shape, row, &at));
    }
    list.push_back(std::move(result));
  }
  return list;
}

std::vector<Row> versions(const std::vector<Value>& key, const History& history,
                          const Columns& columns) {
  std::vector<Row> rows;
  bool open = false;
  for (const Result& result : results(history, columns)) {
    if (!result.up) {
      if (open) rows.back().end = result.sequence;
      open = false;
      continue;
    }
    bool same = open;
    for (size_t i = 0; same && i < columns.tracked.size(); ++i) {
      same = !columns.tracked[i] || compare(rows.back().values[i], result.values[i]) == 0;
    }
    if (same) {
      rows.back().values = result.values;
      if (result.note_here) rows.back().note = *result.note_here;
      continue;
    }
    if (open) rows.back().end = result.sequence;
    Row row;
    row.key = key;
    row.values = result.values;
    row.start = result.sequence;
    row.note = result.note_here.value_or(columns.note);
    rows.push_back(std::move(row));
    open = true;
  }
  return rows;
}

}  // namespace

int compare(const Value& a, const Value& b) {
  const bool null_a = a.kind == Value::Kind::kNull;
  const bool null_b = b.kind == Value::Kind::kNull;
  if (null_a || null_b) return three_way(!null_a, !null_b);
  switch (a.kind) {
    case Value::Kind::kNull:
      return 0;
    case Value::Kind::kInt:
      return three_way(a.number, b.number);
    case Value::Kind::kDouble:
      if (std::isnan(a.real) || std::isnan(b.real))
        return three_way(std::isnan(a.real), std::isnan(b.real));
      return three_way(a.real, b.real);
    case Value::Kind::kText: {
      const int order = a.text.compare(b.text);
      return order < 0 ? -1 : (order > 0 ? 1 : 0);
    }
    case Value::Kind::kList:
    case Value::Kind::kStruct:
      return compare_lists(a.parts, b.parts);
    case Value::Kind::kMap:
      return compare_lists(sorted_entries(a), sorted_entries(b));
  }
  return 0;
}

bool same_key(const std::vector<Value>& a, const std::vector<Value>& b) {
  return compare_lists(a, b) == 0;
}

std::vector<Value> leaves_of(const Value& value, const Shape& shape) {
  std::vector<Value> leaves;
  add_leaves(&value, shape, &leaves);
  return leaves;
}

std::vector<Row> scd1(const std::vector<Event>& events, const Columns& columns) {
  const std::optional<Value> truncate = last_truncate(events);
  std::vector<Row> rows;
  for (auto& [key, history] : by_key(events)) {
    History left;
    for (const auto& [sequence, moments] : history) {
      if (!truncate || compare(sequence, *truncate) >= 0) left[sequence] = moments;
    }
    const std::vector<Result> all = results(left, columns);
    if (all.empty() || !all.back().up) continue;
    Row row;
    row.key = key;
    row.values = all.back().values;
    row.note = all.back().note.value_or(columns.note);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<Row> scd2(const std::vector<Event>& events, const Columns& columns) {
  std::vector<Row> rows;
  for (const auto& [key, history] : by_key(events)) {
    for (Row& row : versions(key, history, columns)) rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<Row> bitemporal(const std::vector<Event>& events, const Columns& columns) {
  std::vector<Row> rows;
  for (const auto& [key, history] : by_key(events)) {
    std::map<Value, std::vector<Row>, SequenceLess> beliefs;  // by system time
    for (const auto& [sequence, moments] : history) {
      for (const auto& [system, at_once] : moments) beliefs[system];
    }
    for (auto& [system, believed] : beliefs) {
      History known;
      for (const auto& [sequence, moments] : history) {
        for (const auto& [at, at_once] : moments) {
          if (compare(at, system) <= 0) known[sequence][at] = at_once;
        }
      }
      believed = versions(key, known, columns);
    }
    std::vector<Row> open;  // believed at the system time before
    for (const auto& [system, believed] : beliefs) {
      std::vector<Row> now;
      for (Row row : believed) {
        row.system_start = system;
        for (const Row& before : open) {
          if (compare(before.start, row.start) == 0 && compare(before.end, row.end) == 0 &&
              compare_lists(before.values, row.values) == 0) {
            row.system_start = before.system_start;
          }
        }
        now.push_back(std::move(row));
      }
      for (Row& before : open) {
        const bool goes_on = std::any_of(now.begin(), now.end(), [&](const Row& row) {
          return compare(row.system_start, system) != 0 && compare(before.start, row.start) == 0;
        });
        if (goes_on) continue;
        before.system_end = system;
        rows.push_back(std::move(before));
      }
      open = std::move(now);
    }
    for (Row& row : open) rows.push_back(std::move(row));
  }
  return rows;
}

namespace {

Event by_hand(const std::vector<Value>& key, const Value& sequence, EventKind kind) {
  Event event;
  event.key = key;
  event.sequence = sequence;
  event.kind = kind;
  event.by_hand = true;
  return event;
}

std::vector<Row> of_key(const std::vector<Row>& rows, const std::vector<Value>& key) {
  std::vector<Row> some;
  for (const Row& row : rows) {
    if (same_key(row.key, key)) some.push_back(row);
  }
  std::sort(some.begin(), some.end(),
            [](const Row& a, const Row& b) { return compare(a.start, b.start) < 0; });
  return some;
}

bool has_row(const std::vector<Row>& rows, const Row& row) {
  return std::any_of(rows.begin(), rows.end(), [&](const Row& other) {
    return compare(other.start, row.start) == 0 && compare(other.end, row.end) == 0 &&
           compare_lists(other.values, row.values) == 0 && compare(other.note, row.note) == 0;
  });
}

bool is_inside(const Value& sequence, const Row& row) {
  return compare(row.start, sequence) < 0 &&
         (row.end.kind == Value::Kind::kNull || compare(sequence, row.end) < 0);
}

std::vector<Event> edits_of_type1(const std::vector<Event>& events, const std::vector<Value>& key,
                                  const std::vector<Row>& before, const std::vector<Row>& after) {
  if (before.size() == after.size() && (before.empty() || has_row(before, after.front())))
    return {};
  Value greatest;
  for (const Event& event : events) {
    // A truncate is an event of every key.
    if (event.kind != EventKind::kTruncate && !same_key(event.key, key)) continue;
    if (compare(greatest, event.sequence) < 0) greatest = event.sequence;
  }
  Event event = by_hand(key, greatest, after.empty() ? EventKind::kDelete : EventKind::kUpsert);
  if (!after.empty()) {
    event.values = after.front().values;
    event.note = after.front().note;
  }
  return {event};
}

}  // namespace

std::vector<Event> edits(const std::vector<Event>& events, const std::vector<Value>& key,
                         const std::vector<Row>& all_before, const std::vector<Row>& all_after,
                         bool type1) {
  const std::vector<Row> before = of_key(all_before, key), after = of_key(all_after, key);
  if (type1) return edits_of_type1(events, key, before, after);
  std::vector<Event> made;
  std::vector<Row> standing, gone;
  const auto starts_at = [&](const Value& sequence) {
    return std::any_of(after.begin(), after.end(),
                       [&](const Row& row) { return compare(row.start, sequence) == 0; });
  };
  const auto inside_any = [](const std::vector<Row>& rows, const Value& sequence) {
    return std::any_of(rows.begin(), rows.end(),
                       [&](const Row& row) { return is_inside(sequence, row); });
  };
  for (size_t i = 0; i < after.size(); ++i) {
    if (has_row(before, after[i])) continue;
    Row row = after[i];
    const bool has_next = i + 1 < after.size();
    const bool is_cut = has_next && (row.end.kind == Value::Kind::kNull ||
                                     compare(after[i + 1].start, row.end) <= 0);
    if (is_cut) row.end = after[i + 1].start;
    made.push_back(by_hand(key, row.start, EventKind::kUpsert));
    made.back().values = row.values;
    made.back().note = row.note;
    if (!is_cut && row.end.kind != Value::Kind::kNull)
      made.push_back(by_hand(key, row.end, EventKind::kDelete));
    standing.push_back(std::move(row));
  }
  for (const Row& row : before) {
    if (has_row(after, row)) continue;
    gone.push_back(row);
    if (!starts_at(row.start) && !inside_any(standing, row.start))
      made.push_back(by_hand(key, row.start, EventKind::kDelete));
  }
  const size_t said = made.size();
  for (const Event& event : events) {
    if (event.kind == EventKind::kTruncate || !same_key(event.key, key)) continue;
    if (!inside_any(standing, event.sequence) && !inside_any(gone, event.sequence)) continue;
    const bool is_said = std::any_of(
        made.begin(), made.begin() + static_cast<std::ptrdiff_t>(said),
        [&](const Event& other) { return compare(other.sequence, event.sequence) == 0; });
    if (!is_said) made.push_back(by_hand(key, event.sequence, EventKind::kNothing));
  }
  return made;
}

int64_t conflicts(const std::vector<Event>& events) {
  int64_t count = 0;
  for (const auto& [key, history] : by_key(events)) {
    for (const auto& [sequence, moments] : history) {
      bool conflict = false;
      for (const auto& [system, at_once] : moments) {
        const auto whole = [](const Event& event) {
          return event.kind == EventKind::kUpsert && !event.partial;
        };
        const auto any = std::find_if(at_once.begin(), at_once.end(), whole);
        for (const Event& event : at_once) {
          if (event.kind != EventKind::kUpsert) continue;
          if (!event.partial) {
            conflict = conflict || compare_lists(event.values, any->values) != 0;
            continue;
          }
          for (const Event& other : at_once) {
            if (other.kind != EventKind::kUpsert || !other.partial) continue;
            for (size_t i = 0; i < event.leaves.size(); ++i) {
              conflict = conflict || (event.leaves[i] && other.leaves[i] &&
                                      compare(*event.leaves[i], *other.leaves[i]) != 0);
            }
          }
        }
      }
      count += conflict ? 1 : 0;
    }
  }
  return count;
}

int64_t late(const std::vector<Event>& earlier, const std::vector<Event>& batch) {
  const std::optional<Value> truncate = last_truncate(earlier);
  const Histories known = by_key(earlier);
  int64_t count = 0;
  for (const Event& event : batch) {
    bool is_late = truncate && compare(event.sequence, *truncate) < 0;
    if (event.kind != EventKind::kTruncate) {
      const auto at = known.find(event.key);
      is_late =
          is_late || (at != known.end() && compare(event.sequence, at->second.rbegin()->first) < 0);
    }
    count += is_late ? 1 : 0;
  }
  return count;
}

}  // namespace strandline::model
