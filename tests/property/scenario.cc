#include "property/scenario.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "sql/parser.h"
#include "support/toy_lake.h"

namespace strandline::property {

using model::Event;
using model::EventKind;
using model::Row;
using model::Value;

namespace {

// --- pools
// -----------------------------------------------------------------------------------------

Value null() { return Value{}; }
Value list(std::vector<Value> parts) { return Value::nested(Value::Kind::kList, std::move(parts)); }
Value record(std::vector<Value> parts) {
  return Value::nested(Value::Kind::kStruct, std::move(parts));
}
Value map(std::vector<Value> parts) { return Value::nested(Value::Kind::kMap, std::move(parts)); }
Value n(int64_t number) { return Value::integer(number); }
Value d(double real) { return Value::floating(real); }
Value s(std::string text) { return Value::string(std::move(text)); }

DataType type_of(TypeId id) { return DataType::primitive(id); }
DataType pair_type() {
  return DataType::structure({Field{"a", type_of(TypeId::kInteger), true, {}},
                              Field{"b", type_of(TypeId::kString), true, {}}});
}

const double kNan = std::numeric_limits<double>::quiet_NaN();
const double kInf = std::numeric_limits<double>::infinity();

std::vector<Pool> sortable_pools() {
  const DataType nested =
      DataType::structure({Field{"x", pair_type(), true, {}},
                           Field{"y", DataType::array(type_of(TypeId::kDouble)), true, {}}});
  return {
      {type_of(TypeId::kLong), {n(1), n(2), n(3), n(4), n(5), n(6), n(7), n(8), n(9)}},
      {type_of(TypeId::kLong),
       {n(-5), n(0), n(2), n(1ll << 40), n(std::numeric_limits<int64_t>::max())}},
      {type_of(TypeId::kInteger), {n(-1), n(0), n(1), n(2), n(3)}},
      {type_of(TypeId::kDouble), {d(-kInf), d(-1.5), d(-0.0), d(0.0), d(2.5), d(kInf), d(kNan)}},
      {type_of(TypeId::kFloat), {d(-1.5), d(-0.0), d(0.0), d(2.5), d(kNan)}},
      {type_of(TypeId::kString),
       {s(""), s(" "), s("A"), s("a"), s("aa"), s("é"), s("\xF0\x9F\x98\x80"), s("z")}},
      {type_of(TypeId::kBinary),
       {s(""), s(std::string("\x01", 1)), s("a"), s("\xff"), s("\xff\x01")}},
      {type_of(TypeId::kTimestamp), {n(0), n(1), n(1700000000000000), n(1700000000000001), n(-1)}},
      {type_of(TypeId::kTimestampNtz), {n(0), n(1), n(1700000000000000), n(1700000000000001)}},
      {type_of(TypeId::kDate), {n(-1), n(0), n(19000), n(19001)}},
      {type_of(TypeId::kBoolean), {n(0), n(1)}},
      {DataType::decimal(12, 2), {n(-100), n(0), n(150), n(151), n(99999)}},
      {pair_type(),
       {record({n(1), s("a")}), record({n(1), null()}), record({null(), null()}),
        record({null(), s("a")}), record({n(1), s("b")}), record({n(2), null()}),
        record({n(2), s("")})}},
      {DataType::array(type_of(TypeId::kInteger)),
       {list({}), list({null()}), list({null(), n(1)}), list({n(1)}), list({n(1), null()}),
        list({n(1), n(0)}), list({n(2)})}},
      {nested,
       {record({null(), null()}), record({record({n(1), null()}), list({d(kNan)})}),
        record({record({n(1), null()}), list({d(0.0)})}),
        record({record({n(1), null()}), list({d(-0.0)})}),
        record({record({n(1), s("a")}), list({})}),
        record({record({null(), null()}), list({null()})})}},
  };
}

std::vector<Pool> value_pools() {
  std::vector<Pool> pools = sortable_pools();
  const DataType counts = DataType::map(type_of(TypeId::kString), type_of(TypeId::kInteger));
  pools.push_back({counts,
                   {map({}), map({s("a"), n(1), s("b"), n(2)}), map({s("b"), n(2), s("a"), n(1)}),
                    map({s("a"), null()}), map({s("a"), n(1)})}});
  pools.push_back({DataType::array(counts),
                   {list({}), list({map({s("a"), n(1), s("b"), n(2)})}),
                    list({map({s("b"), n(2), s("a"), n(1)})}), list({null()})}});
  // Fields in another order than that of their names.
  pools.push_back({DataType::structure({Field{"q", type_of(TypeId::kInteger), true, {}},
                                        Field{"P", pair_type(), true, {}},
                                        Field{"o", type_of(TypeId::kString), true, {}}}),
                   {record({n(1), record({n(1), s("b")}), s("y")}),
                    record({n(2), record({n(1), s("a")}), s("x")}),
                    record({n(1), record({n(2), null()}), s("x")}), record({n(2), null(), null()}),
                    record({null(), null(), s("x")})}});
  pools.push_back({type_of(TypeId::kInteger), {n(1), n(2)}});
  pools.push_back({type_of(TypeId::kString), {s("x"), s("y"), s("it's \"odd\", {x}")}});
  return pools;
}

// Keys and sequences: -0.0 is 0.0.
Value normal(Value value) {
  if (value.kind == Value::Kind::kDouble && value.real == 0) value.real = 0.0;
  for (Value& part : value.parts) part = normal(part);
  return value;
}

// --- rendering
// -------------------------------------------------------------------------------------

std::string double_text(double real) {
  if (std::isnan(real)) return "nan";
  if (std::isinf(real)) return real < 0 ? "-inf" : "inf";
  if (real == 0) return std::signbit(real) ? "-0.0" : "0.0";
  return fmt::format("{}", real);
}

}  // namespace

std::string literal(const Value& value, const DataType& type) {
  const std::string name = duck::engine_type(type);
  if (value.kind == Value::Kind::kNull) return fmt::format("CAST(NULL AS {})", name);
  switch (type.id) {
    case TypeId::kString:
      return duck::quote_literal(value.text);
    case TypeId::kBinary: {
      std::string text;
      for (const char c : value.text)
        text += fmt::format("\\x{:02X}", static_cast<unsigned char>(c));
      return fmt::format("CAST('{}' AS BLOB)", text);
    }
    case TypeId::kFloat:
    case TypeId::kDouble:
      return fmt::format("CAST('{}' AS {})", double_text(value.real), name);
    case TypeId::kDate:
      return fmt::format("CAST(DATE '1970-01-01' + CAST({} AS INTEGER) AS DATE)", value.number);
    case TypeId::kTimestamp:
      return fmt::format("make_timestamptz({})", value.number);
    case TypeId::kTimestampNtz:
      return fmt::format("make_timestamp({})", value.number);
    case TypeId::kBoolean:
      return value.number != 0 ? "true" : "false";
    case TypeId::kDecimal:
      return fmt::format("CAST(CAST({} AS DECIMAL(30, 0)) / CAST({} AS DECIMAL(30, 0)) AS {})",
                         value.number, static_cast<int64_t>(std::pow(10, type.scale)), name);
    case TypeId::kStruct: {
      std::string parts;
      for (size_t i = 0; i < value.parts.size(); ++i) {
        parts +=
            fmt::format("{}{} := {}", i > 0 ? ", " : "", duck::quote_name((*type.fields)[i].name),
                        literal(value.parts[i], (*type.fields)[i].type));
      }
      return fmt::format("CAST(struct_pack({}) AS {})", parts, name);
    }
    case TypeId::kArray: {
      std::vector<std::string> parts;
      parts.reserve(value.parts.size());
      for (const Value& part : value.parts) parts.push_back(literal(part, *type.element));
      return fmt::format("CAST([{}] AS {})", fmt::join(parts, ", "), name);
    }
    case TypeId::kMap: {
      std::vector<std::string> keys, values;
      for (size_t i = 0; i + 1 < value.parts.size(); i += 2) {
        keys.push_back(literal(value.parts[i], *type.key));
        values.push_back(literal(value.parts[i + 1], *type.element));
      }
      return fmt::format("CAST(MAP([{}], [{}]) AS {})", fmt::join(keys, ", "),
                         fmt::join(values, ", "), name);
    }
    default:
      return fmt::format("CAST({} AS {})", value.number, name);
  }
}

namespace {

// The engine's spelling of values, asked once for each.
class Speller {
 public:
  explicit Speller(duck::Connection& connection) : connection_(connection) {}

  Result<std::string> spell(const Value& value, const DataType& type) {
    const std::string text = literal(value, type);
    const auto known = spelled_.find(text);
    if (known != spelled_.end()) return known->second;
    SL_ASSIGN(const duck::Rows rows, connection_.query("SELECT " + text));
    return spelled_[text] = rows.rows.at(0).at(0).value_or("NULL");
  }

  Status spell_pool(Pool& pool) {
    for (Value& value : pool.values) {
      SL_ASSIGN(value.spelled, spell(value, pool.type));
    }
    return {};
  }

 private:
  duck::Connection& connection_;
  std::map<std::string, std::string> spelled_;
};

// Names that mean something to the engine, or look like what programs use inside.
const std::vector<std::string>& odd_names() {
  static const std::vector<std::string> names = {
      "rowid", "row",  "file_index", "filename", "c0",     "c1",    "seq",  "kind", "we\"ird",
      "a.b",   "Ünï",  "select",     "key",      "values", "entry", "hash", "src",  "old",
      "new",   "up",   "count",      "start",    "end",    "Name",  "it's", "x y",  "op2",
      "__x",   "rank", "rid",        "place",    "src_1",  "$1",    "{0}",  "known"};
  return names;
}

size_t pick(std::mt19937_64& random, size_t below) {
  return std::uniform_int_distribution<size_t>(0, below - 1)(random);
}
bool chance(std::mt19937_64& random, double probability) {
  return std::bernoulli_distribution(probability)(random);
}

// Pool values at an index; -1 is null.
Value at(const Pool& pool, int index) {
  return index < 0 ? Value{} : pool.values[static_cast<size_t>(index)];
}

}  // namespace

// --- making
// ----------------------------------------------------------------------------------------

Scenario make_scenario(std::mt19937_64& random, size_t key_count) {
  const std::vector<Pool> sortable = sortable_pools();
  const std::vector<Pool> any = value_pools();
  std::vector<std::string> names = odd_names();
  std::shuffle(names.begin(), names.end(), random);
  const auto name = [&] {
    std::string next = names.back();
    names.pop_back();
    return next;
  };

  Scenario scenario;
  const cdc::ScdType types[] = {cdc::ScdType::kType1, cdc::ScdType::kType1, cdc::ScdType::kType2,
                                cdc::ScdType::kType2, cdc::ScdType::kBitemporal};
  scenario.scd_type = types[pick(random, 5)];
  scenario.keeps_sequence = chance(random, 0.3);
  scenario.deletes = chance(random, 0.8);
  scenario.truncates = scenario.scd_type == cdc::ScdType::kType1 && chance(random, 0.4);
  scenario.lists_tracked = scenario.scd_type != cdc::ScdType::kType1 && chance(random, 0.5);
  scenario.two_flows = chance(random, 0.25);
  if (chance(random, 0.6)) {
    const bool bitemporal = scenario.scd_type == cdc::ScdType::kBitemporal;
    for (Updates& updates : scenario.updates) {
      updates = static_cast<Updates>(pick(random, bitemporal ? 4 : 5));
    }
  }
  scenario.system = sortable[chance(random, 0.5) ? 0 : pick(random, sortable.size())];
  const int bits[] = {64, 64, 1, 0};
  scenario.hash_bits = bits[pick(random, 4)];
  scenario.sequence = Column{name(), sortable[pick(random, sortable.size())], true};
  // Plenty of integer sequences: long histories with few ties.
  if (chance(random, 0.4)) scenario.sequence.pool = sortable[0];

  // The first key tells the histories apart; a second one has a type of its own.
  Pool ids{type_of(TypeId::kLong), {}};
  const bool text_ids = chance(random, 0.3);
  if (text_ids) ids.type = type_of(TypeId::kString);
  const bool second_key = chance(random, 0.4);
  const size_t id_count = second_key ? std::max<size_t>(1, key_count / 3) : key_count;
  for (size_t i = 0; i < id_count; ++i) {
    ids.values.push_back(text_ids ? s(fmt::format("id{}", i)) : n(static_cast<int64_t>(i) - 3));
  }
  scenario.keys.push_back(Column{name(), ids, false});
  if (second_key)
    scenario.keys.push_back(Column{name(), sortable[pick(random, sortable.size())], false});

  const size_t batch_count = 1 + pick(random, 5);
  const size_t value_count = 1 + pick(random, 4);
  scenario.has_note = chance(random, 0.4);
  scenario.note_default = static_cast<int>(pick(random, 3)) - 1;
  for (size_t i = 0; i < value_count; ++i) {
    Column column{name(), any[pick(random, any.size())]};
    if (chance(random, 0.4)) column.pool = any[any.size() - 1 - pick(random, 2)];
    if (scenario.lists_tracked) column.tracked = chance(random, 0.5);
    if (i > 0 && chance(random, 0.15)) column.from_batch = pick(random, batch_count);
    if (i > 0 && chance(random, 0.1)) {
      column.until_batch = column.from_batch + 1 + pick(random, batch_count);
      if (column.until_batch > batch_count) column.until_batch = Column::kAlways;
    }
    column.in_second = chance(random, 0.7);
    column.listed = chance(random, 0.5);
    scenario.values.push_back(std::move(column));
  }

  const double nulls = scenario.updates[0] == Updates::kWholeRows ? 0.15 : 0.4;
  std::vector<RawEvent> events;
  for (size_t id = 0; id < id_count; ++id) {
    const size_t lives = second_key ? 1 + pick(random, 4) : 1;
    for (size_t life = 0; life < lives; ++life) {
      RawEvent event;
      event.key = {static_cast<int>(id)};
      if (second_key)
        event.key.push_back(static_cast<int>(pick(random, scenario.keys[1].pool.values.size())));
      const size_t count = 1 + pick(random, 9);
      for (size_t i = 0; i < count; ++i) {
        event.flow = scenario.two_flows && chance(random, 0.4) ? 1 : 0;
        event.kind =
            scenario.deletes && chance(random, 0.25) ? EventKind::kDelete : EventKind::kUpsert;
        event.sequence = static_cast<int>(pick(random, scenario.sequence.pool.values.size()));
        event.system = static_cast<int>(pick(random, scenario.system.values.size()));
        event.names = chance(random, 0.15) ? -1 : static_cast<int>(pick(random, 32));
        event.values.clear();
        for (const Column& column : scenario.values) {
          event.values.push_back(chance(random, nulls)
                                     ? -1
                                     : static_cast<int>(pick(random, column.pool.values.size())));
        }
        event.junk = static_cast<int>(pick(random, 3));
        events.push_back(event);
      }
    }
  }
  if (scenario.truncates) {
    const size_t count = pick(random, 4);
    for (size_t i = 0; i < count; ++i) {
      RawEvent event;
      event.kind = EventKind::kTruncate;
      event.key = {chance(random, 0.7) ? -1 : 0};
      if (second_key) event.key.push_back(chance(random, 0.7) ? -1 : 0);
      event.sequence = static_cast<int>(pick(random, scenario.sequence.pool.values.size()));
      for (size_t c = 0; c < scenario.values.size(); ++c) event.values.push_back(-1);
      events.push_back(event);
    }
  }
  std::shuffle(events.begin(), events.end(), random);
  scenario.batches.resize(batch_count);
  if (scenario.scd_type != cdc::ScdType::kBitemporal && chance(random, 0.25)) {
    for (size_t i = 0; i < Scenario::kEditsOfBatch * batch_count; ++i) {
      using Kind = HandEdit::Kind;
      const Kind kinds[] = {Kind::kValue,  Kind::kValue,   Kind::kValue,
                            Kind::kDelete, Kind::kDelete,  Kind::kInsert,
                            Kind::kEnd,    Kind::kSwallow, Kind::kSwallow};
      scenario.edits.push_back(
          {kinds[pick(random, 9)], static_cast<int>(pick(random, 1000)),
           static_cast<int>(pick(random, value_count + (scenario.has_note ? 2 : 0))),
           static_cast<int>(pick(random, 10)),
           static_cast<int>(pick(random, scenario.sequence.pool.values.size())),
           static_cast<int>(pick(random, scenario.sequence.pool.values.size() + 1)) - 1});
    }
  }
  for (RawEvent& event : events) {
    const size_t batch = pick(random, batch_count);
    scenario.batches[batch].push_back(event);
    // Delivered again, at once or later.
    if (chance(random, 0.15))
      scenario.batches[batch + pick(random, batch_count - batch)].push_back(event);
  }
  return scenario;
}

Scenario make_edited_scenario(std::mt19937_64& random, size_t key_count) {
  for (;;) {
    Scenario scenario = make_scenario(random, key_count);
    const bool is_edited = !scenario.edits.empty() && scenario.batches.size() > 1;
    if (is_edited && scenario.scd_type == cdc::ScdType::kType2) return scenario;
  }
}

Scenario make_tied_scenario(std::mt19937_64& random, size_t key_count) {
  const auto is_struct = [](const Column& column) {
    return column.pool.type.id == TypeId::kStruct;
  };
  for (;;) {
    Scenario scenario = make_scenario(random, key_count);
    const bool names_columns = scenario.updates[0] == Updates::kNamedColumns ||
                               scenario.updates[0] == Updates::kIgnoreNullsOn;
    if (!names_columns || !scenario.edits.empty()) continue;
    if (std::none_of(scenario.values.begin(), scenario.values.end(), is_struct)) continue;
    for (auto& batch : scenario.batches) {
      for (RawEvent& event : batch) {
        event.sequence %= 2;
        event.system %= 2;
      }
    }
    return scenario;
  }
}

Scenario shuffled(const Scenario& scenario, std::mt19937_64& random) {
  Scenario other = scenario;
  std::vector<RawEvent> events;
  for (const auto& batch : scenario.batches)
    events.insert(events.end(), batch.begin(), batch.end());
  std::shuffle(events.begin(), events.end(), random);
  other.batches.assign(1 + pick(random, 7), {});
  for (RawEvent& event : events)
    other.batches[pick(random, other.batches.size())].push_back(std::move(event));
  return other;
}

// --- running
// ---------------------------------------------------------------------------------------

namespace {

class Runner {
 public:
  Runner(duck::Connection& connection, const Scenario& scenario)
      : scenario_(scenario), speller_(connection), lake_(connection) {}

  std::optional<std::string> run() {
    for (Column& column : scenario_.keys) {
      if (auto problem = spell(column)) return problem;
    }
    if (auto problem = spell(scenario_.sequence)) return problem;
    if (const Status done = speller_.spell_pool(scenario_.system); !done.ok())
      return "spelling system times: " + done.error().message;
    for (Column& column : scenario_.values) {
      if (auto problem = spell(column)) return problem;
    }
    order_values();
    if (scenario_.has_note) {
      lake_.note = Field{kNote, note_pool().type, true, {}};
      columns_.note = at(note_pool(), scenario_.note_default);
      if (scenario_.note_default >= 0) {
        lake_.note_default = sql::parse_expression("'" + columns_.note.text + "'", "test").value();
      }
    }

    lake_.tells_edits = true;
    for (size_t batch = 0; batch < scenario_.batches.size(); ++batch) {
      if (auto problem = edit_by_hand(batch)) return problem;
      for (const int flow : flows()) {
        if (auto problem = run_batch(batch, flow, of_flow(scenario_.batches[batch], flow))) {
          return fmt::format("batch {}, flow {}: {}", batch, flow, *problem);
        }
      }
    }
    // Everything again, and nothing new.
    std::vector<RawEvent> all;

    for (const auto& batch : scenario_.batches) all.insert(all.end(), batch.begin(), batch.end());
    const bool evolves = std::any_of(scenario_.values.begin(), scenario_.values.end(),
                                     [](const Column& column) { return column.comes_or_goes(); });
    if (evolves) return std::nullopt;  // an old event read again would give columns it did not have
    for (const int flow : flows()) {
      const Result<duck::Rows> before = lake_.state_rows();
      if (!before.ok()) return "state: " + before.error().message;
      const Result<test::BatchOutcome> again =
          deliver(scenario_.batches.size(), flow, of_flow(all, flow));
      if (!again.ok()) return "redelivery: " + again.error().code + ": " + again.error().message;
      if (!again->changed_nothing() || again->metrics.num_upserted_rows != 0 ||
          again->metrics.num_deleted_rows != 0) {
        return fmt::format(
            "redelivery of everything wrote {} and removed {} target rows, wrote {} and removed {} "
            "state rows; metrics {} and {}{}",
            again->target_new, again->target_dead, again->state_new, again->state_dead,
            again->metrics.num_upserted_rows, again->metrics.num_deleted_rows,
            changed_rows(*before, lake_.state_rows()));
      }
    }
    return std::nullopt;
  }

 private:
  // The rows that are in one of them alone, as lines.
  static std::string changed_rows(const duck::Rows& before, const Result<duck::Rows>& after) {
    if (!after.ok()) return "\n  state: " + after.error().message;
    std::string text;
    const auto list = [&](const char* mark, const duck::Rows& rows, const duck::Rows& others) {
      for (const auto& row : rows.rows) {
        if (std::find(others.rows.begin(), others.rows.end(), row) != others.rows.end()) continue;
        text += fmt::format("\n  {}", mark);
        for (const auto& value : row) text += " | " + value.value_or("null");
      }
    };
    list("-", before, *after);
    list("+", *after, before);
    return text;
  }

  std::vector<int> flows() const {
    return scenario_.two_flows ? std::vector<int>{0, 1} : std::vector<int>{0};
  }
  static std::vector<RawEvent> of_flow(const std::vector<RawEvent>& events, int flow) {
    std::vector<RawEvent> some;
    for (const RawEvent& event : events) {
      if (event.flow == flow) some.push_back(event);
    }
    return some;
  }

  struct KnownRow {
    std::string text;
    std::string row_id;
  };
  using Table = std::map<std::string, KnownRow>;  // by primary key

  std::optional<std::string> spell(Column& column) {
    const Status done = speller_.spell_pool(column.pool);
    if (!done.ok()) return "spelling " + column.name + ": " + done.error().message;
    return std::nullopt;
  }

  // The model takes values in the order of their lower-cased names; the kept sequence is one of
  // them.
  void order_values() {
    for (size_t i = 0; i < scenario_.values.size(); ++i)
      value_order_.push_back(static_cast<int>(i));
    if (scenario_.keeps_sequence) value_order_.push_back(-1);
    std::sort(value_order_.begin(), value_order_.end(), [&](int a, int b) {
      return fold_name(value_column(a).name) < fold_name(value_column(b).name);
    });
    for (const int i : value_order_) {
      columns_.tracked.push_back(value_column(i).tracked);
      columns_.shapes.push_back(shape_of(i));
    }
  }
  const Column& value_column(int index) const {
    return index < 0 ? scenario_.sequence : scenario_.values[static_cast<size_t>(index)];
  }

  // What the event's flow orders by.
  int order_index(const RawEvent& raw) const {
    const int size = static_cast<int>(scenario_.sequence.pool.values.size());
    return raw.flow == 0 ? raw.sequence : (raw.sequence + 1) % size;
  }

  Event to_model(const RawEvent& raw, size_t batch) const {
    Event event;
    event.kind = raw.kind;
    for (size_t i = 0; i < raw.key.size(); ++i)
      event.key.push_back(normal(at(scenario_.keys[i].pool, raw.key[i])));
    event.sequence = normal(at(scenario_.sequence.pool, order_index(raw)));
    if (scenario_.scd_type == cdc::ScdType::kBitemporal)
      event.system = normal(at(scenario_.system, raw.system));
    const Updates updates = scenario_.updates[raw.flow];
    event.partial = updates != Updates::kWholeRows;
    for (const int i : value_order_) {
      const Column& column = value_column(i);
      const int index = i < 0 ? raw.sequence : raw.values[static_cast<size_t>(i)];
      const bool given = column.is_in(batch) && (raw.flow == 0 || column.in_second);
      event.values.push_back(given ? at(column.pool, index) : Value{});
      if (event.partial) add_given_leaves(raw, i, given, event.values.back(), &event.leaves);
    }
    return event;
  }

  // Whether a flow that selects the column leaves its nulls out.
  bool skips_nulls(int flow, int i) const {
    const Column& column = value_column(i);
    const Updates updates = scenario_.updates[flow];
    if (i < 0 && flow == 0) return false;  // SEQUENCE BY reads it
    return updates == Updates::kIgnoreNulls ||
           (updates == Updates::kIgnoreNullsOn && column.listed) ||
           (updates == Updates::kIgnoreNullsExcept && !column.listed);
  }

  model::Shape shape_of(int i) const {
    const Column& column = value_column(i);
    model::Shape shape = shape_of(column.pool.type);
    shape.is_one_leaf = !skips_nulls(0, i);
    if (scenario_.two_flows && column.in_second && skips_nulls(1, i)) shape.is_one_leaf = false;
    return shape;
  }

  static model::Shape shape_of(const DataType& type) {
    model::Shape shape;
    shape.is_struct = type.id == TypeId::kStruct;
    if (!shape.is_struct) return shape;
    for (const Field& field : *type.fields) {
      shape.by_name.push_back(shape.fields.size());
      shape.fields.push_back(shape_of(field.type));
    }
    std::sort(shape.by_name.begin(), shape.by_name.end(), [&](size_t a, size_t b) {
      return fold_name((*type.fields)[a].name) < fold_name((*type.fields)[b].name);
    });
    return shape;
  }

  // The types of a value's leaves, in the model's order.
  static void leaf_types(const DataType& type, bool is_one_leaf, std::vector<DataType>* types) {
    const bool is_split = type.id == TypeId::kStruct && !is_one_leaf;
    types->push_back(is_split ? type_of(TypeId::kLong) : type);
    if (!is_split) return;
    for (const Field& field : *type.fields) leaf_types(field.type, false, types);
  }

  // A struct with nothing in it is not there.
  static Value without_empty_structs(const Value& value, const model::Shape& shape) {
    if (!shape.is_struct || value.kind == Value::Kind::kNull) return value;
    Value cleaned = value;
    bool any = false;
    for (size_t i = 0; i < value.parts.size(); ++i) {
      cleaned.parts[i] = without_empty_structs(value.parts[i], shape.fields[i]);
      any = any || cleaned.parts[i].kind != Value::Kind::kNull;
    }
    return any ? cleaned : Value{};
  }

  // What a partial update gives of one value.
  void add_given_leaves(const RawEvent& raw, int i, bool given, const Value& value,
                        std::vector<std::optional<Value>>* leaves) const {
    const Column& column = value_column(i);
    const model::Shape shape = shape_of(i);
    const Updates updates = scenario_.updates[raw.flow];
    const bool orders = i < 0 && raw.flow == 0;  // SEQUENCE BY reads it
    const bool named = updates != Updates::kNamedColumns || raw.names < 0 || orders ||
                       (raw.names >> (i + 1) & 1) != 0;
    const bool skips = skips_nulls(raw.flow, i);
    std::vector<DataType> types;
    leaf_types(column.pool.type, shape.is_one_leaf, &types);
    size_t number = 0;
    for (Value& leaf :
         model::leaves_of(skips ? without_empty_structs(value, shape) : value, shape)) {
      const DataType& type = types[number++];
      const bool is_null = leaf.kind == Value::Kind::kNull;
      if (!given || !named || (skips && is_null)) {
        leaves->emplace_back(std::nullopt);
        continue;
      }
      if (!is_null) leaf.spelled = speller_.spell(leaf, type).value();
      leaves->emplace_back(std::move(leaf));
    }
  }

  // The events as a relation: indexes in a VALUES list, looked up in lists of the pools.
  std::string source(size_t batch, const std::vector<RawEvent>& events) const {
    std::string select = "(SELECT ";
    size_t column_number = 0;
    const auto look_up = [&](const Column& column) {
      std::vector<std::string> values;
      values.reserve(column.pool.values.size());
      for (const Value& value : column.pool.values)
        values.push_back(literal(value, column.pool.type));
      select += fmt::format("list_extract(CAST([{}] AS {}[]), CAST(i{} AS INTEGER)) AS {}, ",
                            fmt::join(values, ", "), duck::engine_type(column.pool.type),
                            column_number++, duck::quote_name(column.name));
    };
    for (const Column& column : scenario_.keys) look_up(column);
    look_up(scenario_.sequence);
    look_up(Column{kSecondSequence, scenario_.sequence.pool, false});
    look_up(Column{kSystem, scenario_.system, false});
    for (const Column& column : scenario_.values) {
      if (column.is_in(batch)) {
        look_up(column);
      } else {
        ++column_number;
      }
    }
    std::string header;
    for (size_t i = 0; i < column_number; ++i) header += fmt::format("i{}, ", i);
    const size_t width = column_number + 3;
    select += fmt::format("CAST(names_code AS VARCHAR[]) AS {}, ", duck::quote_name(kNames));
    select += "op_code AS \"op\", junk_code AS \"junk\" FROM (VALUES ";
    for (const RawEvent& event : events) {
      select += "(";
      // list_extract counts from 1; an index beyond the list is null.
      const auto index = [&](int i) { select += fmt::format("{}, ", i < 0 ? 1000 : i + 1); };
      for (const int i : event.key) index(i);
      index(event.sequence);
      index(order_index(event));
      index(event.system);
      for (const int i : event.values) index(i);
      const char* op = event.kind == EventKind::kDelete     ? "'D'"
                       : event.kind == EventKind::kTruncate ? "'T'"
                       : event.junk == 0                    ? "NULL"
                                                            : "'U'";
      select += fmt::format("{}, {}, {}), ", names_of(event), op, event.junk);
    }
    select += "(";
    for (size_t i = 0; i + 1 < width; ++i) select += "NULL, ";
    select +=
        fmt::format("-1)) AS v({}names_code, op_code, junk_code) WHERE junk_code >= 0)", header);
    return select;
  }

  static constexpr const char* kSecondSequence = "the other sequence";
  static constexpr const char* kNote = "my note";
  static const Pool& note_pool() {
    static const Pool pool{type_of(TypeId::kString), {s("first"), s("second")}};
    return pool;
  }
  static constexpr const char* kSystem = "system time";
  static constexpr const char* kNames = "to update";

  // COLUMNS TO UPDATE of an event; names in any case, some twice, keys and null among them.
  std::string names_of(const RawEvent& event) const {
    if (event.names < 0) return "NULL";
    std::string list = "[NULL";
    const auto add = [&](const std::string& name) {
      list += ", " + duck::quote_literal(event.junk == 1 ? upper(name) : name);
    };
    if (event.junk == 2) add(scenario_.keys[0].name);
    for (size_t i = 0; i < scenario_.values.size(); ++i) {
      if ((event.names >> (i + 1) & 1) == 0) continue;
      // Only what this flow's source has may be named.
      add(scenario_.values[i].is_in(current_batch_) ? scenario_.values[i].name : "op");
    }
    if (scenario_.keeps_sequence && (event.names & 1) != 0) add(scenario_.sequence.name);
    return list + "]";
  }
  static std::string upper(std::string name) {
    for (char& c : name) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    return name;
  }

  // What decides of a flow's clauses how ties of its partial updates are settled.
  sql::AutoCdcClauses clauses_of(int flow) const {
    sql::AutoCdcClauses clauses;
    std::vector<sql::Name> listed, except;
    if (scenario_.keeps_sequence && flow == 1)
      listed.push_back(sql::Name{scenario_.sequence.name, {}});
    for (const Column& column : scenario_.values) {
      if (flow == 1 && !column.in_second) {
        except.push_back(sql::Name{column.name, {}});
      } else if (column.listed) {
        listed.push_back(sql::Name{column.name, {}});
      }
    }
    clauses.columns = sql::ColumnList{true, except, {}};
    clauses.sequence_by =
        sql::parse_expression("`" + (flow == 0 ? scenario_.sequence.name : kSecondSequence) + "`",
                              "test")
            .value();
    const Updates updates = scenario_.updates[flow];
    clauses.ignore_null_updates =
        updates != Updates::kWholeRows && updates != Updates::kNamedColumns;
    if (updates == Updates::kIgnoreNullsOn || updates == Updates::kIgnoreNullsExcept) {
      clauses.ignore_null_columns =
          sql::ColumnList{updates == Updates::kIgnoreNullsExcept, listed, {}};
    }
    if (updates == Updates::kNamedColumns) clauses.columns_to_update = sql::Name{kNames, {}};
    return clauses;
  }

  Result<test::BatchOutcome> deliver(size_t batch, int flow, const std::vector<RawEvent>& events) {
    cdc::SourceFacts facts;
    std::vector<sql::Name> keys, except{sql::Name{"op", {}}, sql::Name{"junk", {}}}, tracked;
    const auto field = [&](const Column& column) {
      facts.schema.fields.push_back(Field{column.name, column.pool.type, true, {}});
    };
    for (const Column& column : scenario_.keys) {
      field(column);
      keys.push_back(sql::Name{column.name, {}});
    }
    field(scenario_.sequence);
    field(Column{kSecondSequence, scenario_.sequence.pool, false});
    except.push_back(sql::Name{kSecondSequence, {}});
    field(Column{kSystem, scenario_.system, false});
    except.push_back(sql::Name{kSystem, {}});
    std::vector<sql::Name> listed;
    if (scenario_.keeps_sequence && flow == 1)
      listed.push_back(sql::Name{scenario_.sequence.name, {}});
    if (!scenario_.keeps_sequence) except.push_back(sql::Name{scenario_.sequence.name, {}});
    if (scenario_.keeps_sequence) tracked.push_back(sql::Name{scenario_.sequence.name, {}});
    for (const Column& column : scenario_.values) {
      if (!column.is_in(batch)) continue;
      field(column);
      if (flow == 1 && !column.in_second) {
        except.push_back(sql::Name{column.name, {}});
        continue;
      }
      if (column.tracked) tracked.push_back(sql::Name{column.name, {}});
      if (column.listed) listed.push_back(sql::Name{column.name, {}});
    }
    const DataType names = DataType::array(type_of(TypeId::kString));
    facts.schema.fields.push_back(Field{kNames, names, true, {}});
    except.push_back(sql::Name{kNames, {}});
    facts.schema.fields.push_back(Field{"op", type_of(TypeId::kString), true, {}});
    facts.schema.fields.push_back(Field{"junk", type_of(TypeId::kInteger), true, {}});
    facts.sequence_type = scenario_.sequence.pool.type;

    cdc::Declaration declaration;
    declaration.flow_name = "f";
    declaration.target = "t";
    sql::AutoCdcClauses& clauses = declaration.clauses;
    clauses.keys = keys;
    clauses.has_keys = true;
    SL_ASSIGN(clauses.sequence_by,
              sql::parse_expression(
                  "`" + (flow == 0 ? scenario_.sequence.name : kSecondSequence) + "`", "test"));
    if (scenario_.deletes) {
      SL_ASSIGN(clauses.delete_when, sql::parse_expression("op = 'D'", "test"));
    }
    if (scenario_.truncates) {
      SL_ASSIGN(clauses.truncate_when, sql::parse_expression("op = 'T'", "test"));
    }
    clauses.columns = sql::ColumnList{true, except, {}};
    const sql::StoredAs stored_as[] = {sql::StoredAs::kScdType1, sql::StoredAs::kScdType2,
                                       sql::StoredAs::kBitemporal};
    clauses.stored_as = stored_as[static_cast<int>(scenario_.scd_type)];
    if (scenario_.scd_type == cdc::ScdType::kBitemporal) {
      SL_ASSIGN(clauses.system_sequence_by,
                sql::parse_expression(std::string("`") + kSystem + "`", "test"));
      facts.system_sequence_type = scenario_.system.type;
    }
    const Updates updates = scenario_.updates[flow];
    clauses.ignore_null_updates =
        updates != Updates::kWholeRows && updates != Updates::kNamedColumns;
    if (updates == Updates::kIgnoreNullsOn && listed.empty()) {
      // An empty list is a mistake, so the columns are left out one by one.
      clauses.ignore_null_updates = false;
      clauses.ignore_null_columns =
          sql::ColumnList{true, all_values(facts.schema, keys, except), {}};
      clauses.ignore_null_updates = true;
    } else if (updates == Updates::kIgnoreNullsOn || updates == Updates::kIgnoreNullsExcept) {
      clauses.ignore_null_columns =
          sql::ColumnList{updates == Updates::kIgnoreNullsExcept, listed, {}};
    }
    if (updates == Updates::kNamedColumns) clauses.columns_to_update = sql::Name{kNames, {}};
    current_batch_ = batch;
    lake_.clauses_elsewhere.clear();
    if (scenario_.two_flows) lake_.clauses_elsewhere.push_back(clauses_of(1 - flow));
    if (scenario_.lists_tracked) clauses.track_history = sql::ColumnList{false, tracked, {}};

    cdc::ProgramOptions options;
    options.hash_bits = scenario_.hash_bits;
    return lake_.run_batch(declaration, facts, source(batch, events), options);
  }

  static std::vector<sql::Name> all_values(const Schema& schema, const std::vector<sql::Name>& keys,
                                           const std::vector<sql::Name>& except) {
    std::vector<sql::Name> names;
    for (const Field& field : schema.fields) {
      const auto is_field = [&](const sql::Name& name) { return name.text == field.name; };
      if (std::any_of(keys.begin(), keys.end(), is_field)) continue;
      if (field.name == "op" || field.name == "junk") continue;
      if (std::none_of(except.begin(), except.end(), is_field)) names.push_back({field.name, {}});
    }
    return names;
  }

  std::optional<std::string> run_batch(size_t batch, int flow, const std::vector<RawEvent>& raw) {
    // A second flow begins late, and then finds a state that another one made.
    if (flow == 1 && raw.empty()) return std::nullopt;
    std::vector<Event> events;
    events.reserve(raw.size());
    for (const RawEvent& event : raw) events.push_back(to_model(event, batch));
    Table before;
    if (auto problem = read_table(before)) return problem;
    const int64_t late = model::late(consumed_, events);
    const bool first = consumed_.empty();
    consumed_.insert(consumed_.end(), events.begin(), events.end());

    const Result<test::BatchOutcome> outcome = deliver(batch, flow, raw);
    if (!outcome.ok()) return outcome.error().code + ": " + outcome.error().message;
    Table after;
    if (auto problem = read_table(after)) return problem;
    if (auto problem = compare_with_model(after)) return problem;
    return check_promises(before, after, *outcome, static_cast<int64_t>(raw.size()), late,
                          first ? std::optional(model::conflicts(events)) : std::nullopt);
  }

  std::vector<Row> model_rows() const {
    switch (scenario_.scd_type) {
      case cdc::ScdType::kType1:
        return model::scd1(consumed_, columns_);
      case cdc::ScdType::kType2:
        return model::scd2(consumed_, columns_);
      case cdc::ScdType::kBitemporal:
        break;
    }
    return model::bitemporal(consumed_, columns_);
  }

  // The rows changed by hand before a batch, here and in the model.
  std::optional<std::string> edit_by_hand(size_t batch) {
    if (batch == 0 || scenario_.edits.empty()) return std::nullopt;
    const std::vector<Row> before = model_rows();
    std::vector<Row> rows = before;
    for (size_t i = 0; i < scenario_.edits.size(); ++i) {
      if (i / Scenario::kEditsOfBatch + 1 != batch) continue;
      if (auto problem = change_row(scenario_.edits[i], &rows)) return problem;
    }
    std::vector<Event> said;
    std::set<std::string> known;
    for (const std::vector<Row>* table : {&before, static_cast<const std::vector<Row>*>(&rows)}) {
      for (const Row& row : *table) {
        if (!known.insert(key_text(row)).second) continue;
        for (Event& event : model::edits(consumed_, row.key, before, rows,
                                         scenario_.scd_type == cdc::ScdType::kType1)) {
          said.push_back(std::move(event));
        }
      }
    }
    consumed_.insert(consumed_.end(), said.begin(), said.end());
    return std::nullopt;
  }

  std::string key_text(const Row& row) const {
    std::string text;
    for (size_t i = 0; i < row.key.size(); ++i)
      text += literal(row.key[i], scenario_.keys[i].pool.type) + " | ";
    return text;
  }

  std::optional<std::string> change_row(const HandEdit& edit, std::vector<Row>* rows) {
    if (rows->empty()) return std::nullopt;
    const bool type1 = scenario_.scd_type == cdc::ScdType::kType1;
    const size_t number = static_cast<size_t>(edit.row) % rows->size();
    const bool of_note = static_cast<size_t>(edit.column) >= scenario_.values.size();
    const Column column =
        of_note ? Column{kNote, note_pool()} : scenario_.values[static_cast<size_t>(edit.column)];
    const auto place = static_cast<size_t>(
        std::find(value_order_.begin(), value_order_.end(), edit.column) - value_order_.begin());
    const Value value =
        column.pool.values[static_cast<size_t>(edit.value) % column.pool.values.size()];
    const bool has_column = lake_.target_schema().find(column.name).has_value();
    Row row = (*rows)[number];
    const auto changed = [&]() -> Value& { return of_note ? row.note : row.values[place]; };
    Table table;
    if (auto problem = read_table(table)) return problem;
    const auto [primary, text] = spelled(row);
    const auto found = table.find(primary);
    if (found == table.end()) return "no row to change by hand: " + text;
    const std::string condition = fmt::format("\"__toy_row_id\" = {}", found->second.row_id);
    edited_keys_[key_text(row)] = row.key;
    const auto failed = [](const Status& done) -> std::optional<std::string> {
      return done.ok() ? std::nullopt : std::optional(done.error().message);
    };
    const auto set = [&](const std::string& name, const Value& to, const DataType& type) {
      (*rows)[number] = row;
      return failed(
          lake_.update_by_hand(duck::quote_name(name) + " = " + literal(to, type), condition));
    };
    const DataType& sequence_type = scenario_.sequence.pool.type;
    switch (edit.kind) {
      case HandEdit::Kind::kDelete:
        rows->erase(rows->begin() + static_cast<std::ptrdiff_t>(number));
        return failed(lake_.delete_by_hand(condition));
      case HandEdit::Kind::kValue:
        // What is equal and only looks different is no change for some types.
        if (!has_column || model::compare(changed(), value) == 0) return std::nullopt;
        changed() = value;
        return set(column.name, value, column.pool.type);
      case HandEdit::Kind::kEnd: {
        if (type1) return std::nullopt;
        Value end = normal(at(scenario_.sequence.pool, edit.end));
        if (model::compare(end, row.start) <= 0) end = null();
        row.end = end;
        return set(cdc::kEndAt, end, sequence_type);
      }
      case HandEdit::Kind::kSwallow: {
        if (type1) return std::nullopt;
        const auto is_later = [&](const Row& other) {
          return model::same_key(other.key, row.key) && model::compare(row.start, other.start) < 0;
        };
        for (const Row& other : *rows) {
          if (!is_later(other)) continue;
          const auto later = table.find(spelled(other).first);
          if (later == table.end()) return "no later row to delete: " + spelled(other).second;
          const Status gone =
              lake_.delete_by_hand(fmt::format("\"__toy_row_id\" = {}", later->second.row_id));
          if (!gone.ok()) return gone.error().message;
        }
        row.end = null();
        (*rows)[number] = row;
        std::erase_if(*rows, is_later);
        return failed(lake_.update_by_hand(
            duck::quote_name(cdc::kEndAt) + " = " + literal(row.end, sequence_type), condition));
      }
      case HandEdit::Kind::kInsert:
        break;
    }
    // A new row: of a key that events had, with the values of the chosen row but one.
    const Event& event = consumed_[static_cast<size_t>(edit.row) % consumed_.size()];
    if (event.kind == EventKind::kTruncate || !has_column) return std::nullopt;
    row.key = event.key;
    changed() = value;
    if (!type1) {
      row.start = normal(at(scenario_.sequence.pool, edit.start));
      row.end = normal(at(scenario_.sequence.pool, edit.end));
      if (model::compare(row.end, row.start) <= 0) row.end = null();
    }
    const bool taken = std::any_of(rows->begin(), rows->end(), [&](const Row& other) {
      return model::same_key(other.key, row.key) && model::compare(other.start, row.start) == 0;
    });
    if (taken) return std::nullopt;
    rows->push_back(row);
    edited_keys_[key_text(row)] = row.key;
    return failed(lake_.insert_by_hand({cells_of(row)}));
  }

  // A row as SQL values for the target's columns.
  std::string cells_of(const Row& row) const {
    std::vector<std::string> cells;
    for (const Field& field : lake_.target_schema().fields) {
      std::string cell = literal(Value{}, field.type);
      for (size_t i = 0; i < row.key.size(); ++i) {
        if (same_name(scenario_.keys[i].name, field.name)) cell = literal(row.key[i], field.type);
      }
      for (size_t i = 0; i < value_order_.size(); ++i) {
        if (same_name(value_column(value_order_[i]).name, field.name))
          cell = literal(row.values[i], field.type);
      }
      if (field.name == kNote) cell = literal(row.note, field.type);
      if (field.name == cdc::kStartAt) cell = literal(row.start, field.type);
      if (field.name == cdc::kEndAt) cell = literal(row.end, field.type);
      cells.push_back(cell);
    }
    return fmt::format("{}", fmt::join(cells, ", "));
  }

  std::string primary_key(const std::map<std::string, std::string>& row) const {
    std::string text;
    for (const Column& column : scenario_.keys) text += row.at(column.name) + " | ";
    if (scenario_.scd_type != cdc::ScdType::kType1) {
      const std::string& start = row.at(cdc::kStartAt);
      text += start == "<null>" ? row.at(cdc::kEndAt) : start;
    }
    if (scenario_.scd_type == cdc::ScdType::kBitemporal)
      text += " | " + row.at(cdc::kSystemStartAt);
    return text;
  }

  std::string row_text(const std::map<std::string, std::string>& row) const {
    std::string text;
    const auto add = [&](const std::string& name) {
      const auto found = row.find(name);
      text += fmt::format("{}={} ", name, found == row.end() ? "<null>" : found->second);
    };
    for (const Column& column : scenario_.keys) add(column.name);
    for (const int i : value_order_) add(value_column(i).name);
    if (scenario_.has_note) add(kNote);
    if (scenario_.scd_type != cdc::ScdType::kType1) {
      add(cdc::kStartAt);
      add(cdc::kEndAt);
    }
    if (scenario_.scd_type == cdc::ScdType::kBitemporal) {
      add(cdc::kSystemStartAt);
      add(cdc::kSystemEndAt);
    }
    return text;
  }

  std::optional<std::string> read_table(Table& table) {
    const Result<duck::Rows> rows = lake_.target_rows();
    if (!rows.ok()) return rows.error().message;
    for (const std::vector<duck::Cell>& cells : rows->rows) {
      std::map<std::string, std::string> row;
      for (size_t i = 0; i < cells.size(); ++i)
        row[rows->columns[i].name] = cells[i].value_or("<null>");
      const std::string key = primary_key(row);
      if (!table.emplace(key, KnownRow{row_text(row), row.at("__toy_row_id")}).second)
        return "two rows with the key " + key;
    }
    return std::nullopt;
  }

  // A model's row as the table shows it: its primary key, and all of it.
  std::pair<std::string, std::string> spelled(const Row& row) const {
    std::map<std::string, std::string> cells;
    const auto put = [&](const std::string& name, const Value& value,
                         const DataType& type) -> bool {
      if (value.kind == Value::Kind::kNull) {
        cells[name] = "<null>";
        return true;
      }
      const Result<std::string> spelled = speller_.spell(value, type);
      cells[name] = spelled.ok() ? *spelled : spelled.error().message;
      return spelled.ok();
    };
    for (size_t i = 0; i < row.key.size(); ++i)
      put(scenario_.keys[i].name, row.key[i], scenario_.keys[i].pool.type);
    for (size_t i = 0; i < value_order_.size(); ++i) {
      const Column& column = value_column(value_order_[i]);
      put(column.name, row.values[i], column.pool.type);
    }
    put(kNote, row.note, note_pool().type);
    put(cdc::kStartAt, row.start, scenario_.sequence.pool.type);
    put(cdc::kEndAt, row.end, scenario_.sequence.pool.type);
    put(cdc::kSystemStartAt, row.system_start, scenario_.system.type);
    put(cdc::kSystemEndAt, row.system_end, scenario_.system.type);
    return {primary_key(cells), row_text(cells)};
  }

  // No interval is empty, and of what is believed at one time none overlap, so that at most one row
  // of a key is open.
  std::optional<std::string> broken_promise(const std::vector<Row>& rows) const {
    const auto is_null = [](const Value& value) { return value.kind == Value::Kind::kNull; };
    const auto before = [&](const Value& end, const Value& start) {
      return !is_null(end) && model::compare(end, start) <= 0;
    };
    if (scenario_.scd_type == cdc::ScdType::kType1) return std::nullopt;
    const bool bitemporal = scenario_.scd_type == cdc::ScdType::kBitemporal;
    for (size_t i = 0; i < rows.size(); ++i) {
      const Row& a = rows[i];
      if (before(a.end, a.start) || (bitemporal && before(a.system_end, a.system_start)))
        return "an empty interval: " + spelled(a).second;
      // Rows of a key come one after the other.
      for (size_t k = i + 1; k < rows.size() && model::same_key(rows[k].key, a.key); ++k) {
        const Row& b = rows[k];
        const bool apart = before(a.end, b.start) || before(b.end, a.start) ||
                           (bitemporal && (before(a.system_end, b.system_start) ||
                                           before(b.system_end, a.system_start)));
        if (!apart) return "intervals overlap: " + spelled(a).second + ", " + spelled(b).second;
      }
    }
    return std::nullopt;
  }

  std::optional<std::string> compare_with_model(const Table& table) {
    Table expected;
    const std::vector<Row> rows = model_rows();
    if (auto problem = broken_promise(rows)) return problem;
    for (const Row& row : rows) {
      const auto [key, text] = spelled(row);
      expected.emplace(key, KnownRow{text, ""});
    }
    std::string problem;
    int shown = 0;
    for (const auto& [key, row] : expected) {
      const auto found = table.find(key);
      if (found != table.end() && found->second.text == row.text) continue;
      if (++shown <= 5) {
        problem += fmt::format("\n  expected {}\n       got {}", row.text,
                               found == table.end() ? "nothing" : found->second.text);
      }
    }
    for (const auto& [key, row] : table) {
      if (expected.count(key) == 0 && ++shown <= 8) problem += "\n  unexpected " + row.text;
    }
    if (problem.empty()) return std::nullopt;

    return fmt::format("{} rows differ from the model:{}", shown, problem);
  }

  // Metrics, row ids, and that only changed rows are written.
  std::optional<std::string> check_promises(const Table& before, const Table& after,
                                            const test::BatchOutcome& outcome, int64_t input,
                                            int64_t late, std::optional<int64_t> conflicts) {
    int64_t upserted = 0, deleted = 0, replaced = 0;
    std::set<std::string> old_ids;
    for (const auto& [key, row] : before) {
      old_ids.insert(row.row_id);
      deleted += after.count(key) == 0 ? 1 : 0;
    }
    for (const auto& [key, row] : after) {
      const auto found = before.find(key);
      if (found == before.end()) {
        ++upserted;
        if (old_ids.count(row.row_id) > 0) return "a new row has an old row's id: " + row.text;
      } else if (found->second.text != row.text) {
        ++upserted;
        ++replaced;
      }
      if (found != before.end() && found->second.row_id != row.row_id)
        return "a row lost its id: " + row.text;
    }
    const auto differs = [](const char* what, int64_t expected, int64_t got) {
      return fmt::format("{}: expected {}, got {}", what, expected, got);
    };
    if (outcome.target_new != upserted)
      return differs("rows written", upserted, outcome.target_new);
    if (outcome.target_dead != replaced + deleted)
      return differs("rows removed", replaced + deleted, outcome.target_dead);
    const duck::BatchMetrics& metrics = outcome.metrics;
    if (metrics.num_upserted_rows != upserted)
      return differs("num_upserted_rows", upserted, metrics.num_upserted_rows);
    if (metrics.num_deleted_rows != deleted)
      return differs("num_deleted_rows", deleted, metrics.num_deleted_rows);
    if (metrics.num_input_rows != input)
      return differs("num_input_rows", input, metrics.num_input_rows);
    if (metrics.num_late_rows != late) return differs("num_late_rows", late, metrics.num_late_rows);
    // Partial updates that a truncate ends are not looked at.
    const bool hides = scenario_.truncates && (scenario_.updates[0] != Updates::kWholeRows ||
                                               scenario_.updates[1] != Updates::kWholeRows);
    if (conflicts && !hides && metrics.num_sequence_conflicts != *conflicts) {
      return differs("num_sequence_conflicts", *conflicts, metrics.num_sequence_conflicts);
    }
    if ((metrics.num_sequence_conflicts > 0) != !metrics.conflict_example.empty())
      return "the conflict example is missing";
    return std::nullopt;
  }

  Scenario scenario_;
  mutable Speller speller_;
  test::ToyLake lake_;
  std::vector<int> value_order_;
  model::Columns columns_;
  size_t current_batch_ = 0;
  std::vector<Event> consumed_;
  std::map<std::string, std::vector<Value>> edited_keys_;
};

}  // namespace

std::optional<std::string> run_scenario(duck::Connection& connection, const Scenario& scenario) {
  return Runner(connection, scenario).run();
}

Scenario shrink(duck::Connection& connection, Scenario scenario) {
  const auto total = [](const Scenario& some) {
    size_t count = 0;
    for (const auto& batch : some.batches) count += batch.size();
    return count;
  };
  const auto without = [](const Scenario& some, size_t from, size_t count) {
    Scenario fewer = some;
    size_t number = 0;
    for (auto& batch : fewer.batches) {
      std::vector<RawEvent> left;
      for (RawEvent& event : batch) {
        if (number < from || number >= from + count) left.push_back(std::move(event));
        ++number;
      }
      batch = std::move(left);
    }
    return fewer;
  };
  for (size_t chunk = std::max<size_t>(1, total(scenario) / 2); chunk >= 1; chunk /= 2) {
    for (size_t from = 0; from < total(scenario);) {
      Scenario fewer = without(scenario, from, chunk);
      if (run_scenario(connection, fewer)) {
        scenario = std::move(fewer);
      } else {
        from += chunk;
      }
    }
    if (chunk == 1) break;
  }
  for (size_t batch = scenario.batches.size(); batch-- > 0;) {
    if (!scenario.batches[batch].empty() || scenario.batches.size() == 1) continue;
    Scenario fewer = scenario;
    fewer.batches.erase(fewer.batches.begin() + static_cast<std::ptrdiff_t>(batch));
    if (run_scenario(connection, fewer)) scenario = std::move(fewer);
  }
  return scenario;
}

std::string Scenario::describe() const {
  std::string text = fmt::format("{}, hash bits {}{}{}{}\n", cdc::to_string(scd_type), hash_bits,
                                 keeps_sequence ? ", keeps the sequence" : "",
                                 deletes ? ", deletes" : "", truncates ? ", truncates" : "");
  if (two_flows) text += "  flow 1 orders by the next value of the pool\n";
  const char* const gives[] = {"whole rows", "no nulls", "no nulls in the list",
                               "no nulls but in the list", "named columns"};
  text += fmt::format("  flow 0 gives {}, flow 1 {}\n", gives[static_cast<int>(updates[0])],
                      gives[static_cast<int>(updates[1])]);
  if (has_note) text += fmt::format("  users' own column, default {}\n", note_default);
  if (scd_type == cdc::ScdType::kBitemporal)
    text += fmt::format("  system sequence {}\n", to_sql(system.type));
  const char* const changes[] = {"value", "end", "delete", "insert", "swallow"};
  for (const HandEdit& edit : edits) {
    text += fmt::format("  by hand: {} row {} column {} value {} start {} end {}\n",
                        changes[static_cast<int>(edit.kind)], edit.row, edit.column, edit.value,
                        edit.start, edit.end);
  }
  for (const Column& column : keys)
    text += fmt::format("  key {} {}\n", column.name, to_sql(column.pool.type));
  text += fmt::format("  sequence {} {}\n", sequence.name, to_sql(sequence.pool.type));
  for (const Column& column : values) {
    text += fmt::format(
        "  value {} {}{}{}\n", column.name, to_sql(column.pool.type),
        fmt::format("{}{}{}", column.tracked ? ", tracked" : "", column.listed ? ", listed" : "",
                    column.in_second ? "" : ", not in flow 1"),
        (column.from_batch > 0 ? fmt::format(", from batch {}", column.from_batch) : "") +
            (column.until_batch < Column::kAlways
                 ? fmt::format(", until batch {}", column.until_batch)
                 : ""));
  }
  for (size_t batch = 0; batch < batches.size(); ++batch) {
    text += fmt::format("  batch {}\n", batch);
    for (const RawEvent& event : batches[batch]) {
      text += event.flow == 1 ? "    flow 1:" : "";
      text += event.kind == EventKind::kDelete     ? "    delete  "
              : event.kind == EventKind::kTruncate ? "    truncate"
                                                   : "    upsert  ";
      for (size_t i = 0; i < event.key.size(); ++i)
        text += " " + literal(at(keys[i].pool, event.key[i]), keys[i].pool.type);
      text += " @ " + literal(at(sequence.pool, event.sequence), sequence.pool.type);
      if (scd_type == cdc::ScdType::kBitemporal)
        text += ", " + literal(at(system, event.system), system.type);
      if (updates[event.flow] == Updates::kNamedColumns)
        text += fmt::format(" named {}", event.names);
      text += " :";
      for (size_t i = 0; i < event.values.size() && event.kind == EventKind::kUpsert; ++i) {
        text += fmt::format(" {} = {}", values[i].name,
                            literal(at(values[i].pool, event.values[i]), values[i].pool.type));
      }
      text += "\n";
    }
  }
  return text;
}

}  // namespace strandline::property
