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

// The total order among upserts of one key and sequence: by values, then by how equal ones look.
bool less_values(const Event& a, const Event& b) {
  for (size_t i = 0; i < a.values.size(); ++i) {
    if (const int order = compare(a.values[i], b.values[i]); order != 0) return order < 0;
  }
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

using History = std::map<Value, std::vector<Event>, SequenceLess>;
using Histories = std::map<std::vector<Value>, History, KeyLess>;

Histories by_key(const std::vector<Event>& events) {
  Histories histories;
  for (const Event& event : events) {
    if (event.kind != EventKind::kTruncate) histories[event.key][event.sequence].push_back(event);
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

// What counts of the events at one sequence: the greatest upsert, else a delete.
Event settle(const std::vector<Event>& events) {
  const Event* best = nullptr;
  for (const Event& event : events) {
    if (event.kind != EventKind::kUpsert) continue;
    if (best == nullptr || less_values(*best, event)) best = &event;
  }
  return best != nullptr ? *best : events.front();
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

std::vector<Row> scd1(const std::vector<Event>& events) {
  const std::optional<Value> truncate = last_truncate(events);
  std::vector<Row> rows;
  for (const auto& [key, history] : by_key(events)) {
    const auto& [sequence, latest] = *history.rbegin();
    if (truncate && compare(sequence, *truncate) < 0) continue;
    const Event event = settle(latest);
    if (event.kind == EventKind::kUpsert) rows.push_back(Row{key, event.values, {}, {}});
  }
  return rows;
}

std::vector<Row> scd2(const std::vector<Event>& events, const std::vector<bool>& tracked) {
  std::vector<Row> rows;
  for (const auto& [key, history] : by_key(events)) {
    bool open = false;
    for (const auto& [sequence, at_once] : history) {
      const Event event = settle(at_once);
      if (event.kind == EventKind::kDelete) {
        if (open) rows.back().end = sequence;
        open = false;
        continue;
      }
      bool same = open;
      for (size_t i = 0; same && i < tracked.size(); ++i) {
        same = !tracked[i] || compare(rows.back().values[i], event.values[i]) == 0;
      }
      if (same) {
        rows.back().values = event.values;
        continue;
      }
      if (open) rows.back().end = sequence;
      rows.push_back(Row{key, event.values, sequence, {}});
      open = true;
    }
  }
  return rows;
}

int64_t conflicts(const std::vector<Event>& events) {
  int64_t count = 0;
  for (const auto& [key, history] : by_key(events)) {
    for (const auto& [sequence, at_once] : history) {
      const Event best = settle(at_once);
      count += std::any_of(at_once.begin(), at_once.end(), [&](const Event& event) {
        return event.kind == EventKind::kUpsert && compare_lists(event.values, best.values) != 0;
      });
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
