// Random AUTO CDC flows with random events, run through the program and held against the model.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/data_type.h"
#include "cdc/plan.h"
#include "duck/connection.h"
#include "property/model.h"

namespace strandline::property {

// A type and the few values that events take from it; small, so that they meet.
struct Pool {
  DataType type;
  std::vector<model::Value> values;
};

// What the upserts of a flow give.
enum class Updates { kWholeRows, kIgnoreNulls, kIgnoreNullsOn, kIgnoreNullsExcept, kNamedColumns };

struct Column {
  static constexpr size_t kAlways = 1000;
  std::string name;
  Pool pool;
  bool tracked = true;
  size_t from_batch = 0;         // the source has it from this batch on
  size_t until_batch = kAlways;  // and no longer from this one on
  bool in_second = true;         // the second flow selects it too
  bool listed = false;           // stands in the list of IGNORE NULL UPDATES

  bool is_in(size_t batch) const { return from_batch <= batch && batch < until_batch; }
  bool comes_or_goes() const { return from_batch > 0 || until_batch < kAlways; }
};

// One event as indexes into the pools; -1 is null.
struct RawEvent {
  model::EventKind kind = model::EventKind::kUpsert;
  std::vector<int> key;
  int sequence = 0;
  int system = 0;  // bitemporal
  std::vector<int> values;
  int names = -1;  // COLUMNS TO UPDATE: bits of the columns named, -1 for null
  int junk = 0;    // a column that is not selected
  int flow = 0;    // 1: a second flow into the same target
};

struct HandEdit {
  // kSwallow: the row has no end any more, and the later ones of its key are gone.
  enum class Kind { kValue, kEnd, kDelete, kInsert, kSwallow } kind = Kind::kValue;
  int row = 0;     // of the table, or of events for the key of a new row
  int column = 0;  // of the values; one beyond them: the users' own
  int value = 0;   // of its pool
  int start = 0;   // of the sequence's pool
  int end = 0;     // the same, -1 for none
};

struct Scenario {
  cdc::ScdType scd_type = cdc::ScdType::kType1;
  std::vector<Column> keys;
  Column sequence;
  bool keeps_sequence = false;  // the sequence column lands in the target
  bool deletes = true;
  bool truncates = false;
  bool lists_tracked = false;  // TRACK HISTORY ON, else the default
  int hash_bits = 64;
  // A second flow selects fewer columns and orders by another column of the sequence's type, whose
  // value is the next one of the pool.
  bool two_flows = false;
  Updates updates[2] = {Updates::kWholeRows, Updates::kWholeRows};  // by flow
  Pool system;
  // The table has a column of its users' own, of two-valued strings; `note_default` is the index of
  // its DEFAULT, -1 for none.
  bool has_note = false;
  int note_default = -1;
  // Before each batch but the first somebody changes this many rows of the target by hand, chosen
  // by these numbers.
  static constexpr size_t kEditsOfBatch = 4;
  std::vector<HandEdit> edits;
  std::vector<Column> values;
  std::vector<std::vector<RawEvent>> batches;

  std::string describe() const;
};

Scenario make_scenario(std::mt19937_64& random, size_t key_count);
// One of type 2 whose rows are changed by hand.
Scenario make_edited_scenario(std::mt19937_64& random, size_t key_count);
// One of partial updates with a struct column, whose events meet at few sequences.
Scenario make_tied_scenario(std::mt19937_64& random, size_t key_count);
// The same events in another order, cut into other batches.
Scenario shuffled(const Scenario& scenario, std::mt19937_64& random);

// What is wrong, or nothing.
std::optional<std::string> run_scenario(duck::Connection& connection, const Scenario& scenario);

// Fewer events that still fail.
Scenario shrink(duck::Connection& connection, Scenario scenario);

// SQL of a value; DuckDB's spelling of it is put into every Value::spelled of a pool.
std::string literal(const model::Value& value, const DataType& type);

}  // namespace strandline::property
