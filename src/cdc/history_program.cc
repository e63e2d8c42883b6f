// Storage types whose rows come from several events: partial updates in SCD type 1 and 2, and
// bitemporal. The state keeps the events of a key one by one; a batch reads those of the keys it
// touches, settles what meets at one moment (auto-cdc.md section 7), fills what was not given
// (section 5) and folds the rows anew.
//
// A moment is a sequence; bitemporal, a sequence and a system sequence. A key is kept in one of two
// forms: *whole* while none of its events that still count is partial, the form the programs for
// whole rows use, where the target tells most; else *full*, where the state has every event that
// counts.
#include <functional>
#include <map>

#include "base/error.h"
#include "cdc/leaves.h"
#include "cdc/program_builder.h"

namespace strandline::cdc {

namespace {

using fmt::arg;

// Where an entry comes from. The smaller one is kept of two that say the same.
constexpr int kFromState = 0;
constexpr int kFromTarget = 1;
constexpr int kFromBatch = 2;
constexpr int kMerged = 3;   // partial events of one moment, laid over each other
constexpr int kTrimmed = 4;  // a partial event less what later ones give too
constexpr int kByHand = 5;   // what a row changed by hand says

// What the state has of an entry.
constexpr int kNotStored = 0;
constexpr int kStoredWithoutValues = 1;
constexpr int kStored = 2;

std::string join(const std::vector<std::string>& parts, const char* glue = ", ") {
  return fmt::format("{}", fmt::join(parts, glue));
}

class HistoryProgram : public ProgramBuilder {
 public:
  HistoryProgram(const Dialect& dialect, const Plan& plan, const BatchRelations& relations,
                 const ProgramOptions& options)
      : ProgramBuilder(dialect, plan, relations, options) {
    for (size_t i = 0; i < plan.columns.size(); ++i) {
      if (plan.columns[i].owned) owned_.push_back(i);
    }
    for (const size_t i : values_) {
      if (plan.columns[i].tracked) tracked_.push_back(i);
    }
  }

  Result<Program> build() override {
    SL_ASSIGN(const std::string events, read_partial_events());
    stage_events(events);
    load();
    settle();
    line_up();
    fill();
    switch (plan_.scd_type) {
      case ScdType::kType1:
        keep_latest();
        break;
      case ScdType::kType2:
        fold_runs();
        find_versions();
        break;
      case ScdType::kBitemporal:
        fold_runs();
        find_beliefs();
        break;
    }
    diff();
    find_needed();
    outputs();
    metrics();
    return std::move(program_);
  }

 private:
  bool is_scd1() const { return plan_.scd_type == ScdType::kType1; }
  bool truncates() const { return plan_.state_spec.truncates; }
  bool is_edited() const { return !relations_.edits.empty(); }

  // --- names -----------------------------------------------------------------------------------

  static std::string prefix(const std::string& alias) { return alias.empty() ? "" : alias + "."; }
  // a.seq, a.sys
  std::string moment(const std::string& alias = "") const {
    const std::string p = prefix(alias);
    return is_bitemporal() ? fmt::format("{0}seq, {0}sys", p) : p + "seq";
  }
  std::string key_and_moment(const std::string& alias = "") const {
    return keys(alias) + ", " + moment(alias);
  }
  std::string same_moment(const std::string& a, const std::string& b) const {
    std::string text =
        fmt::format("{} AND {}.seq IS NOT DISTINCT FROM {}.seq", keys_equal(a, b), a, b);
    if (is_bitemporal()) text += fmt::format(" AND {}.sys = {}.sys", a, b);
    return text;
  }
  std::string system_order(const std::string& sys) const {
    return order_value(sys, plan_.system_sequence_type);
  }
  std::string by_moment(const std::string& direction = "NULLS FIRST") const {
    std::string text = order("seq") + " " + direction;
    if (is_bitemporal()) text += ", " + system_order("sys") + " " + direction;
    return text;
  }
  // The moments of a key, bitemporal of a key as it was known at one system time.
  std::string partition() const { return is_bitemporal() ? keys() + ", place" : keys(); }
  std::string columns(const std::vector<size_t>& which, const std::string& alias = "") const {
    std::vector<std::string> parts;
    parts.reserve(which.size());
    for (const size_t i : which) parts.push_back(prefix(alias) + column(i));
    return parts.empty() ? "" : join(parts) + ", ";
  }

  // Whether a row is the last of its partition. Not row_number() = 1, which the engine turns into
  // an aggregate that writes values anew.
  static std::string last_of(const std::string& partition, const std::string& order) {
    return fmt::format("lead(false, 1, true) OVER (PARTITION BY {} ORDER BY {})", partition, order);
  }

  // --- leaves ----------------------------------------------------------------------------------

  // Leaves of all value columns of a row of `entries`.
  std::vector<Leaf> leaves(const std::string& alias) const {
    std::vector<Leaf> all;
    for (const size_t i : values_) {
      const PlanColumn& target = plan_.columns[i];
      for (Leaf& leaf : leaves_of(*this, target.name, prefix(alias) + column(i), target.type)) {
        all.push_back(std::move(leaf));
      }
    }
    return all;
  }
  // Whether a partial event gives the leaf.
  std::string given(const Leaf& leaf, const std::string& alias) const {
    return fmt::format("(({}) IS NOT NULL OR {})", leaf.value,
                       list_has(prefix(alias) + "nulls", leaf.path));
  }
  // "x AS c1, " of all value columns.
  std::string values_as(const std::function<std::string(size_t)>& value) const {
    std::string text;
    for (const size_t i : values_) text += fmt::format("{} AS {}, ", value(i), column(i));
    return text;
  }
  // Of each value column the value from columns named mark0, mark1, ... of all their leaves.
  std::map<size_t, std::string> values_from_leaves(const std::string& alias,
                                                   const std::string& mark) const {
    size_t number = 0;
    std::map<size_t, std::string> values;
    for (const size_t i : values_) {
      values[i] = from_leaves(*this, plan_.columns[i].type,
                              [&] { return fmt::format("{}.{}{}", alias, mark, number++); });
    }
    return values;
  }

  // --- load ------------------------------------------------------------------------------------

  void stage_events(const std::string& events) {
    make_table("stage", "events", events);
    if (is_edited()) {
      make_table("stage", "hand_rows", read_edits(is_scd1() ? keys_ : owned_, hand_bounds()));
      make_table("stage", "edited",
                 fmt::format("SELECT DISTINCT {} FROM {}", keys(), table("hand_rows")));
    }
    if (!truncates()) {
      program_.keys = fmt::format("SELECT {} FROM {}", keys(), table("events"));
      if (is_edited())
        program_.keys += fmt::format(" UNION SELECT {} FROM {}", keys(), table("edited"));
    }
    validate_events(table("events"));
    if (is_bitemporal()) {
      check("validate",
            fmt::format("SELECT count(*), min({}) FROM {} AS e WHERE e.sys IS NULL", keys_text("e"),
                        table("events")),
            "AUTOCDC_MICROBATCH_VALIDATION.NULL_SEQUENCE",
            "flow " + plan_.flow_name +
                ": {count} events have no system sequence, SYSTEM SEQUENCE BY is null, for example "
                "the one with {example}" +
                kLeaveOut);
    }
    if (plan_.columns_to_update) check_names();
    if (truncates()) find_mark();
    make_table("load", "keys",
               fmt::format("SELECT DISTINCT {} FROM {} WHERE kind <> 2", keys(), table("events")));
    if (is_edited()) {
      append(
          "load", "keys",
          fmt::format("SELECT * FROM {} EXCEPT SELECT * FROM {}", table("edited"), table("keys")));
    }
    if (truncates()) touch_what_a_truncate_covers();
  }

  // COLUMNS TO UPDATE may name what the source has.
  void check_names() {
    std::vector<std::string> known;
    const auto add = [&](const std::string& name) {
      known.push_back(fmt::format("lower({})", quote_literal(name)));
    };
    for (const PlanColumn& target : plan_.columns) {
      if (target.source) add(target.source->name);
    }
    for (const std::string& name : plan_.unselected) add(name);
    check("validate",
          fmt::format("SELECT count(*), min(x) FROM ({}) WHERE x IS NOT NULL AND lower(x) NOT IN "
                      "({})",
                      list_rows("names", table("events") + " WHERE kind = 3"), join(known)),
          "AUTOCDC_COLUMNS_NOT_FOUND_IN_SCHEMA",
          "flow " + plan_.flow_name + ": COLUMNS TO UPDATE " + plan_.columns_to_update->name +
              " names {count} times a column that the source does not have, for example "
              "'{example}' (whole columns only); nothing was written");
  }

  std::string any_moved() const {
    return fmt::format("SELECT count(*) FROM {} WHERE moved", table("mark"));
  }

  // A truncate beyond the last one changes every key that has something below it.
  void touch_what_a_truncate_covers() {
    const std::string below = fmt::format("coalesce({}, true)", less("r.seq", "mark_now"));
    append("load", "keys",
           fmt::format(R"(
SELECT {keys} FROM (
  SELECT {r_keys} FROM ({state}) AS r, {mark} WHERE r.kind <> 2 AND ({below} OR (r.kind = 0 AND {same}))
  UNION
  SELECT {r_keys} FROM ({target}) AS r ANTI JOIN (SELECT * FROM ({state}) WHERE kind <> 2) AS s ON {r_is_s}
  CROSS JOIN {mark} WHERE {below}
  EXCEPT SELECT {keys} FROM {touched}))",
                       arg("touched", table("keys")), arg("keys", keys()), arg("r_keys", keys("r")),
                       arg("state", read_state(false)), arg("mark", table("mark")),
                       arg("below", below), arg("same", order("r.seq") + " = " + order("mark_now")),
                       arg("target", read_target(keys_, row_sequence() + " AS seq, ")),
                       arg("r_is_s", keys_equal("r", "s"))),
           any_moved());
  }

  std::string touched(const std::string& rows) const {
    return fmt::format("SELECT r.* FROM ({}) AS r SEMI JOIN {} AS k ON {}", rows, table("keys"),
                       keys_equal("r", "k"));
  }

  // "x AS c0, " of a row of `entries`: the key of `key`, and the values.
  std::string owned(const std::string& key, const std::function<std::string(size_t)>& value) const {
    std::string text;
    for (const size_t i : owned_) {
      text += fmt::format("{} AS {}, ",
                          plan_.columns[i].is_key ? prefix(key) + column(i) : value(i), column(i));
    }
    return text;
  }
  // An entry of the table `entries`; its rowid is the entry's number.
  std::string entry(const std::string& values, const std::string& at, const std::string& kind,
                    const std::string& src, const std::string& nulls, const std::string& stored,
                    const std::string& position, const std::string& from) const {
    return fmt::format(
        "SELECT {}{}, CAST({} AS TINYINT) AS kind, CAST({} AS TINYINT) AS src, {} AS nulls, "
        "CAST({} AS TINYINT) AS stored, {} FROM {}",
        values, at, kind, src, nulls, stored, position, from);
  }
  static constexpr const char* kNoPosition =
      "CAST(NULL AS INTEGER) AS row_file, CAST(NULL AS BIGINT) AS row_pos";
  std::string no_nulls() const { return list_of_texts({}); }

  void load() {
    load_rows();
    make_numbered(
        "load", "entries",
        entry(columns(owned_), moment(), "kind", std::to_string(kFromBatch), "nulls",
              std::to_string(kNotStored), kNoPosition, table("events") + " WHERE kind <> 2"));
    std::string more = fmt::format(
        "{} AS nulls, ",
        state_column(kStateGivenNulls, DataType::array(DataType::primitive(TypeId::kString))));
    if (is_bitemporal()) {
      more += fmt::format("{} AS sys, ",
                          state_column(kStateSystemSequence, plan_.system_sequence_type));
    }
    make_table("load", "known",
               fmt::format("SELECT *, max(CASE WHEN kind = 3 THEN 1 ELSE 0 END) OVER (PARTITION BY "
                           "{}) = 1 AS is_full FROM ({})",
                           keys(), touched(read_state(true, more))));
    if (is_scd1()) {
      load_type1();
    } else {
      append("load", "entries",
             entry(columns(owned_), moment(), "kind", std::to_string(kFromState), "nulls",
                   std::to_string(kStored), "row_file, row_pos", table("known")));
    }
    if (plan_.scd_type == ScdType::kType2) load_type2_rows();
    if (is_edited()) is_scd1() ? take_in_edited_rows() : take_in_edited_versions();
  }

  void load_rows() {
    std::vector<size_t> every;
    for (size_t i = 0; i < plan_.columns.size(); ++i) every.push_back(i);
    std::string more;
    const auto bound = [&](const char* name, const DataType& type, const char* as) {
      more +=
          fmt::format("{} AS {}, ",
                      has_target() ? normal_zero(target_column(name), type) : typed_null(type), as);
    };
    if (is_scd1()) {
      more = row_sequence() + " AS seq, ";
    } else {
      bound(kStartAt, plan_.sequence_type, "start_seq");
      bound(kEndAt, plan_.sequence_type, "stop_seq");
    }
    if (is_bitemporal()) {
      bound(kSystemStartAt, plan_.system_sequence_type, "start_sys");
      bound(kSystemEndAt, plan_.system_sequence_type, "stop_sys");
    }
    make_numbered("load", "rows", touched(read_target(every, more)));
    const auto invalid = [&](const std::string& sql, const std::string& what) {
      check("load", sql, "AUTOCDC_INVALID_STATE.INVALID_TARGET_ROWS",
            "table " + plan_.target + " has {count} " + what);
    };
    if (is_bitemporal()) return;
    const std::string start = is_scd1() ? "" : ", start_seq";
    invalid(fmt::format("SELECT count(*), min({}) FROM (SELECT {}{} FROM {} GROUP BY ALL HAVING "
                        "count(*) > 1) AS d",
                        keys_text("d"), keys(), start, table("rows")),
            is_scd1() ? "keys with more than one row, for example {example}: an SCD TYPE 1 table "
                        "has one row for a key; delete the others"
                      : "keys with two rows of one __START_AT, for example {example}: delete one "
                        "of them");
    if (is_scd1()) return;
    invalid(fmt::format("SELECT count(*), min({}) FROM {} AS p WHERE stop_seq IS NOT NULL AND "
                        "start_seq IS NOT NULL AND {} <= {}",
                        keys_text("p"), table("rows"), order("stop_seq"), order("start_seq")),
            "rows whose __END_AT is not after their __START_AT, for example {example}: correct or "
            "delete them");
  }

  // In the whole form the state has the sequence of a row and the target its values.
  void load_type1() {
    const std::string values = owned("k", [](size_t i) {
      return fmt::format("CASE WHEN k.is_full THEN k.{0} ELSE r.{0} END", column(i));
    });
    append("load", "entries",
           entry(values, "k.seq",
                 "CASE WHEN NOT k.is_full AND k.kind IN (1, 4) AND r.row_file IS NULL THEN 0 "
                 "ELSE k.kind END",
                 fmt::format("CASE WHEN k.is_full OR k.kind IN (0, 5) THEN {} ELSE {} END",
                             kFromState, kFromTarget),
                 "k.nulls",
                 fmt::format("CASE WHEN k.is_full OR k.kind IN (0, 5) THEN {} ELSE {} END", kStored,
                             kStoredWithoutValues),
                 "k.row_file, k.row_pos",
                 fmt::format("{} AS k LEFT JOIN {} AS r ON {}", table("known"), table("rows"),
                             keys_equal("k", "r"))));
    append("load", "entries",
           entry(columns(owned_, "r"), "r.seq", "1", std::to_string(kFromTarget), no_nulls(),
                 std::to_string(kNotStored), kNoPosition,
                 fmt::format("{} AS r ANTI JOIN {} AS k ON {}", table("rows"), table("known"),
                             keys_equal("r", "k"))));
  }

  // In the whole form a row is an upsert at its start and, if no other one begins there, a delete
  // at its end.
  void load_type2_rows() {
    if (is_edited()) undo_edits();
    const std::string told = table(is_edited() ? "told" : "rows");
    const std::string whole =
        fmt::format("{} AS r ANTI JOIN (SELECT {} FROM {} WHERE is_full) AS k ON {}", told, keys(),
                    table("known"), keys_equal("r", "k"));
    append("load", "entries",
           entry(columns(owned_, "r"), "r.start_seq", "1", std::to_string(kFromTarget), no_nulls(),
                 std::to_string(kNotStored), kNoPosition, whole));
    const std::string nothing =
        owned("r", [&](size_t i) { return typed_null(plan_.columns[i].type); });
    append("load", "entries",
           entry(nothing, "r.stop_seq", "0", std::to_string(kFromTarget), no_nulls(),
                 std::to_string(kNotStored), kNoPosition,
                 fmt::format("{} ANTI JOIN {} AS n ON {} AND n.start_seq = r.stop_seq WHERE "
                             "r.stop_seq IS NOT NULL",
                             whole, told, keys_equal("n", "r"))));
  }

  // --- hand edits (section 8) ------------------------------------------------------------------

  // What a row of `hand_rows` says besides its columns.
  std::string hand_bounds() const {
    if (is_scd1()) return shown_sequence() + " AS seq, ";
    return fmt::format("{} AS start_seq, {} AS stop_seq, ",
                       normal_zero(target_column(kStartAt), plan_.sequence_type),
                       normal_zero(target_column(kEndAt), plan_.sequence_type));
  }

  // What was known of the edited keys before: rows (keys, seq).
  std::string known_sequences() const {
    // What the target implies, it implies of the row as it is now; the old one counts.
    return fmt::format(
        "SELECT {}, e.seq FROM {} AS e JOIN {} AS k ON {} WHERE e.src < {} AND NOT (e.src = {} AND "
        "e.stored = {}) UNION ALL SELECT {}, seq FROM {} WHERE change < 0",
        keys("e"), table("entries"), table("edited"), keys_equal("e", "k"), kFromBatch, kFromTarget,
        kNotStored, keys(), table("hand_rows"));
  }

  // The row, or its absence, at the greatest sequence known of the key, or below all.
  void take_in_edited_rows() {
    std::string known = known_sequences();
    if (truncates()) {
      known += fmt::format(" UNION ALL SELECT {}, mark_before FROM {} AS k, {}", keys("k"),
                           table("edited"), table("mark"));
    }
    const std::string values = owned("k", [](size_t i) { return "r." + column(i); });
    append("load", "entries",
           entry(values, "s.seq", "CASE WHEN r.row_file IS NULL THEN 5 ELSE 4 END",
                 std::to_string(kByHand), no_nulls(), std::to_string(kNotStored), kNoPosition,
                 fmt::format("{} AS k LEFT JOIN {} AS r ON {} LEFT JOIN (SELECT {}, {} AS seq FROM "
                             "({}) GROUP BY {}) AS s ON {}",
                             table("edited"), table("rows"), keys_equal("k", "r"), keys(),
                             value_of_greatest("seq", order("seq")), known, keys(),
                             keys_equal("k", "s"))));
  }

  // Rows of the table `rows` that a hand made or changed.
  std::string made_by_hand(const std::string& rows) const {
    return fmt::format(
        "(SELECT DISTINCT {}, start_seq, true AS is_new FROM {} WHERE change > 0) AS h ON {} AND "
        "h.start_seq IS NOT "
        "DISTINCT FROM {}.start_seq",
        keys(), table("hand_rows"), keys_equal("h", rows), rows);
  }

  // The rows as events made them: the table `told`.
  void undo_edits() {
    make_table(
        "load", "told",
        fmt::format("SELECT {}r.start_seq, r.stop_seq FROM {} AS r ANTI JOIN {} UNION ALL SELECT "
                    "{}start_seq, stop_seq FROM {} WHERE change < 0",
                    columns(owned_, "r"), table("rows"), made_by_hand("r"), columns(owned_),
                    table("hand_rows")));
  }

  // A row that a hand made or changed counts at its start and ends at its end, one that it took
  // away is a delete at its start; what was known between start and end counts no more. All other
  // rows stay what their events make them. The table `hand`.
  void take_in_edited_versions() {
    make_table("load", "versions",
               fmt::format(R"(
SELECT r.*, coalesce(h.is_new, false) AS is_new
FROM (SELECT {columns}r.start_seq, r.stop_seq, lead(r.start_seq) OVER (PARTITION BY {r_keys} ORDER BY {start} NULLS FIRST) AS next_start
      FROM {rows} AS r SEMI JOIN {edited} AS k ON {r_is_k}) AS r
LEFT JOIN {made})",
                           arg("columns", columns(owned_, "r")), arg("r_keys", keys("r")),
                           arg("start", order("r.start_seq")), arg("rows", table("rows")),
                           arg("edited", table("edited")), arg("r_is_k", keys_equal("r", "k")),
                           arg("made", made_by_hand("r"))));
    // A row ends where the next one begins.
    const std::string is_cut =
        fmt::format("(next_start IS NOT NULL AND (stop_seq IS NULL OR {} <= {}))",
                    order("next_start"), order("stop_seq"));
    make_table(
        "load", "spans",
        fmt::format(R"(
SELECT {keys}, start_seq, CASE WHEN {is_cut} THEN next_start ELSE stop_seq END AS stop_seq, true AS stands, {is_cut} AS is_cut
FROM {versions} WHERE is_new
UNION ALL SELECT {keys}, start_seq, stop_seq, false, false FROM {hand_rows} WHERE change < 0)",
                    arg("keys", keys()), arg("is_cut", is_cut), arg("versions", table("versions")),
                    arg("hand_rows", table("hand_rows"))));
    const auto inside = [&](const std::string& seq) {
      return fmt::format(
          "({0} IS NOT NULL AND (s.start_seq IS NULL OR {1} < {2}) AND (s.stop_seq IS NULL OR {2} "
          "< "
          "{3}))",
          seq, order("s.start_seq"), order(seq), order("s.stop_seq"));
    };
    const std::string nothing =
        owned("r", [&](size_t i) { return typed_null(plan_.columns[i].type); });
    make_table(
        "load", "hand",
        fmt::format(R"(
SELECT {columns}start_seq AS seq, 4 AS kind FROM {versions} WHERE is_new
UNION ALL
SELECT {nothing}r.seq, 5 FROM (
  SELECT {keys}, stop_seq AS seq FROM {spans} WHERE stands AND NOT is_cut AND stop_seq IS NOT NULL
  UNION
  SELECT {h_keys}, h.start_seq FROM {spans} AS h ANTI JOIN {versions} AS v ON {v_is_h} AND v.start_seq IS NOT DISTINCT FROM h.start_seq
  ANTI JOIN (SELECT * FROM {spans} WHERE stands) AS s ON {s_is_h} AND {inside}
  WHERE NOT h.stands) AS r)",
                    arg("columns", columns(owned_)), arg("versions", table("versions")),
                    arg("nothing", nothing), arg("keys", keys()), arg("spans", table("spans")),
                    arg("h_keys", keys("h")), arg("v_is_h", keys_equal("v", "h")),
                    arg("s_is_h", keys_equal("s", "h")), arg("inside", inside("h.start_seq"))));
    append("load", "hand",
           fmt::format(R"(
SELECT {nothing}r.seq, 6 FROM (
  SELECT DISTINCT {e_keys}, e.seq FROM {entries} AS e JOIN {spans} AS s ON {s_is_e} AND {inside} WHERE e.src < {batch}) AS r
ANTI JOIN {hand} AS h ON {h_is_r} AND h.seq IS NOT DISTINCT FROM r.seq)",
                       arg("nothing", nothing), arg("e_keys", keys("e")),
                       arg("entries", table("entries")), arg("spans", table("spans")),
                       arg("s_is_e", keys_equal("s", "e")), arg("inside", inside("e.seq")),
                       arg("batch", kFromBatch), arg("hand", table("hand")),
                       arg("h_is_r", keys_equal("h", "r"))));
    append("load", "entries",
           entry(columns(owned_), "seq", "kind", std::to_string(kByHand), no_nulls(),
                 std::to_string(kNotStored), kNoPosition, table("hand")));
  }

  // What else was known of edited keys counts no more: of type 1 at all, of type 2 where a hand
  // says something.
  std::string overruled() const {
    const std::string same = is_scd1()
                                 ? keys_equal("h", "e")
                                 : keys_equal("h", "e") + " AND h.seq IS NOT DISTINCT FROM e.seq";
    return fmt::format("(e.src < {} AND EXISTS (SELECT 1 FROM {} AS h WHERE {}))", kFromBatch,
                       table(is_scd1() ? "edited" : "hand"), same);
  }

  // --- settle ----------------------------------------------------------------------------------

  // What a truncate has ended. A row that a hand deleted at its very sequence is not: that beats
  // upserts of this sequence, which the truncate does not.
  std::string covered() const {
    return fmt::format("(mark_now IS NOT NULL AND coalesce({} OR (kind = 0 AND {} = {}), true))",
                       less("seq", "mark_now"), order("seq"), order("mark_now"));
  }

  // Of each key, moment and kind the one entry that counts: the table `chosen`.
  void settle() {
    const std::string with_mark = truncates() ? ", " + table("mark") : "";
    std::string where = " WHERE true";
    if (truncates()) where += " AND NOT " + covered();
    if (is_edited()) where += " AND NOT " + overruled();
    make_table("settle", "places",
               fmt::format(R"(
SELECT entry, {at_key}, kind, src, count(*) OVER (PARTITION BY {at_key}, kind) AS n
FROM (SELECT e.rowid AS entry, {at_key}, kind, src,
             max(CASE WHEN kind >= 4 THEN 1 ELSE 0 END) OVER (PARTITION BY {at_key}) AS by_hand,
             min(src) OVER (PARTITION BY {at_key}, kind) AS first_src
      FROM {entries} AS e{with_mark}{where})
WHERE (by_hand = 0 OR kind >= 4) AND NOT (src = {target} AND first_src = {state}))",
                           arg("at_key", key_and_moment()), arg("entries", table("entries")),
                           arg("with_mark", with_mark), arg("where", where),
                           arg("target", kFromTarget), arg("state", kFromState)));
    const std::string part = "PARTITION BY " + key_and_moment("p") + ", p.kind ORDER BY";
    make_table("settle", "chosen",
               fmt::format(R"(
SELECT {at_key}, kind, entry, src FROM {places} WHERE n = 1
UNION ALL
SELECT {at_key}, kind, entry, src FROM (
  SELECT p.*, row_number() OVER ({part} p.src, p.entry) AS standing FROM {places} AS p WHERE n > 1 AND kind NOT IN (1, 3))
WHERE standing = 1)",
                           arg("at_key", key_and_moment()), arg("places", table("places")),
                           arg("part", part)));
    const std::string any_tied =
        fmt::format("SELECT count(*) FROM {} WHERE n > 1 AND kind = 1", table("places"));
    make_table(
        "settle", "tied",
        fmt::format(R"(
SELECT {p_key}, p.entry, p.src, {values}row_number() OVER ({part} {greatest}, p.src, p.entry) AS standing
FROM {places} AS p JOIN {entries} AS e ON e.rowid = p.entry WHERE p.n > 1 AND p.kind = 1)",
                    arg("p_key", key_and_moment("p")), arg("part", part),
                    arg("values", columns(values_, "e")), arg("greatest", greatest_first("e")),
                    arg("places", table("places")), arg("entries", table("entries"))),
        any_tied);
    append("settle", "chosen",
           fmt::format("SELECT {}, CAST(1 AS TINYINT), entry, src FROM {} WHERE standing = 1",
                       key_and_moment(), table("tied")));
    make_table("settle", "conflicts",
               fmt::format("SELECT DISTINCT {}, x.seq FROM {} AS x JOIN {} AS y ON {} AND "
                           "y.standing = 1 WHERE NOT {}",
                           keys("x"), table("tied"), table("tied"), same_moment("x", "y"),
                           values_equal("x", "y")),
               any_tied);
    if (fills()) merge_partial_events();
    find_changed();
  }

  // Partial events of one moment: of each leaf the greatest value that one of them gives.
  void merge_partial_events() {
    const std::string any_tied =
        fmt::format("SELECT count(*) FROM {} WHERE n > 1 AND kind = 3", table("places"));
    std::string inner, merged, conflict = "false";
    const std::vector<Leaf> here = leaves("e");
    for (size_t j = 0; j < here.size(); ++j) {
      const Leaf& leaf = here[j];
      const std::string value = fmt::format("l{}", j);
      const std::string rank = order_value(value, leaf.type);
      inner += fmt::format(", {} AS l{}, {} AS g{}", leaf.value, j, given(leaf, "e"), j);
      merged += fmt::format(", {} AS l{}, max(CASE WHEN g{} THEN 1 ELSE 0 END) = 1 AS g{}",
                            greatest(value, leaf.type), j, j, j);
      conflict += fmt::format(
          " OR (count({0}) > 0 AND max(CASE WHEN g{1} AND {0} IS NULL THEN 1 ELSE 0 END) = 1) OR "
          "min({2}) IS DISTINCT FROM max({2})",
          value, j, rank);
    }
    make_table("settle", "merged",
               fmt::format(R"(
SELECT {at_key}, min(CASE WHEN src = {state} THEN entry END) AS known_entry, {conflict} AS conflict{merged}
FROM (SELECT {p_key}, p.src, p.entry{inner} FROM {places} AS p JOIN {entries} AS e ON e.rowid = p.entry
      WHERE p.n > 1 AND p.kind = 3)
GROUP BY {at_key})",
                           arg("at_key", key_and_moment()), arg("p_key", key_and_moment("p")),
                           arg("state", kFromState), arg("conflict", "(" + conflict + ")"),
                           arg("merged", merged), arg("inner", inner),
                           arg("places", table("places")), arg("entries", table("entries"))),
               any_tied);
    add_patches("settle", "merged", kMerged, "", any_tied);
    append("settle", "chosen",
           fmt::format(R"(
SELECT {at_key}, CAST(3 AS TINYINT), CASE WHEN is_same THEN known_entry ELSE entry END,
       CAST(CASE WHEN is_same THEN {state} ELSE {merged_src} END AS TINYINT)
FROM (SELECT {m_key}, m.known_entry, e.rowid AS entry, m.known_entry IS NOT NULL AND {same} AS is_same
      FROM {merged} AS m JOIN {entries} AS e ON {same_moment} LEFT JOIN {entries} AS k ON k.rowid = m.known_entry
      WHERE e.src = {merged_src}))",
                       arg("at_key", key_and_moment()), arg("m_key", key_and_moment("m")),
                       arg("state", kFromState), arg("merged_src", kMerged),
                       arg("same", same_patch("m", "k")), arg("merged", table("merged")),
                       arg("entries", table("entries")), arg("same_moment", same_moment("m", "e"))),
           any_tied);
    append("settle", "conflicts",
           fmt::format("SELECT {}, seq FROM {} WHERE conflict", keys(), table("merged")));
  }

  // A patch is what a partial update gives, leaf by leaf: l<j>, and g<j> for whether it is given.
  // Whether patch m says what entry k says.
  std::string same_patch(const std::string& m, const std::string& k) const {
    std::string same = "true";
    size_t j = 0;
    for (const Leaf& leaf : leaves(k)) {
      same += fmt::format(" AND {}.g{} = {} AND {}", m, j, given(leaf, k),
                          identical(fmt::format("{}.l{}", m, j), leaf.value, leaf.type));
      ++j;
    }
    return same;
  }
  // Partial entries from the patches of a table.
  void add_patches(const char* stage, const char* from, int src, const std::string& where,
                   const std::string& only_if) {
    std::vector<std::string> nulls;
    for (const Leaf& leaf : leaves("m")) {
      nulls.push_back(fmt::format("CASE WHEN m.g{0} AND m.l{0} IS NULL THEN {1} END", nulls.size(),
                                  quote_literal(leaf.path)));
    }
    const std::map<size_t, std::string> values = values_from_leaves("m", "l");
    append(stage, "entries",
           entry(owned("m", [&](size_t i) { return values.at(i); }), moment("m"), "3",
                 std::to_string(src), list_of_texts(nulls), std::to_string(kNotStored), kNoPosition,
                 fmt::format("{} AS m{}", table(from), where)),
           only_if);
  }

  // Keys of which something new counts, or something known no longer does. Bitemporal: since which
  // system time.
  void find_changed() {
    if (is_bitemporal()) {
      make_table("settle", "changed",
                 fmt::format("SELECT {}, {} AS since FROM {} WHERE src >= {} GROUP BY {}", keys(),
                             value_of_least("sys", system_order("sys")), table("chosen"),
                             kFromBatch, keys()));
      return;
    }
    std::string query = fmt::format("SELECT DISTINCT {} FROM {} WHERE src >= {}", keys(),
                                    table("chosen"), kFromBatch);
    if (truncates()) {
      query += fmt::format(" UNION SELECT {} FROM {}, {} WHERE src < {} AND {}", keys(),
                           table("entries"), table("mark"), kFromBatch, covered());
    }
    if (is_edited()) query += fmt::format(" UNION SELECT {} FROM {}", keys(), table("edited"));
    make_table("settle", "changed", query);
  }

  std::string of_changed(const std::string& from) const {
    return fmt::format("{} AS r SEMI JOIN {} AS k ON {}", from, table("changed"),
                       keys_equal("r", "k"));
  }

  // --- line up and fill ------------------------------------------------------------------------

  // Moments of the changed keys: w, p, d are the entries of a whole row, a partial update and a
  // delete.
  void line_up() {
    make_table(
        "fold", "moments",
        fmt::format(R"(
SELECT {at_key}, max(CASE WHEN kind IN (1, 4) THEN entry END) AS w, max(CASE WHEN kind = 3 THEN entry END) AS p,
       max(CASE WHEN kind IN (0, 5) THEN entry END) AS d
FROM {chosen} WHERE kind <> 6 GROUP BY {at_key})",
                    arg("at_key", key_and_moment()), arg("chosen", of_changed(table("chosen")))));
    if (!is_bitemporal()) return;
    // The system times whose beliefs may change, and the one before them.
    make_table(
        "fold", "times",
        fmt::format(R"(
SELECT {keys}, sys, place, next_sys, is_before, first_place
FROM (SELECT *, coalesce(max(CASE WHEN is_before THEN place END) OVER (PARTITION BY {keys}), 1) AS first_place
      FROM (SELECT {t_keys}, t.sys, {sys} < {since} AS is_before, row_number() OVER w AS place, lead(t.sys) OVER w AS next_sys
            FROM (SELECT DISTINCT {keys}, sys FROM {moments}) AS t JOIN {changed} AS c ON {t_is_c}
            WINDOW w AS (PARTITION BY {t_keys} ORDER BY {sys})))
WHERE place >= first_place)",
                    arg("keys", keys()), arg("t_keys", keys("t")), arg("moments", table("moments")),
                    arg("changed", table("changed")), arg("t_is_c", keys_equal("t", "c")),
                    arg("sys", system_order("t.sys")), arg("since", system_order("c.since"))));
  }

  // The moments with the row that holds after each: the table `filled`.
  void fill() {
    std::string line = fmt::format("SELECT * FROM {}", table("moments"));
    if (is_bitemporal()) {
      line = fmt::format(
          "SELECT {}, t.place, m.w, m.p, m.d FROM {} AS m JOIN {} AS t ON {} AND "
          "{} <= {}",
          key_and_moment("m"), table("moments"), table("times"), keys_equal("m", "t"),
          system_order("m.sys"), system_order("t.sys"));
    }
    const std::string place = is_bitemporal() ? ", l.place" : "";
    std::string query;
    if (fills()) {
      std::string boxes, lasts;
      const std::map<size_t, std::string> filled = values_from_leaves("l", "f");
      const std::vector<Leaf> of_partial = leaves("p");
      const std::vector<Leaf> of_whole = leaves("w");
      for (size_t j = 0; j < of_partial.size(); ++j) {
        boxes += fmt::format(", coalesce({}, {}) AS b{}",
                             boxed_when(given(of_partial[j], "p"), of_partial[j].value),
                             boxed_when("l.w IS NOT NULL", of_whole[j].value), j);
        lasts += fmt::format(", {} AS f{}",
                             unboxed(last_not_null(fmt::format("b{}", j), "life_so_far")), j);
      }
      query =
          fmt::format(R"(
SELECT {l_key}{place}, {values}l.up, l.w, l.p, l.d
FROM (SELECT *{lasts}
      FROM (SELECT l.*, w IS NOT NULL OR p IS NOT NULL AS up,
                   sum(CASE WHEN w IS NOT NULL OR d IS NOT NULL THEN 1 ELSE 0 END)
                     OVER (PARTITION BY {part} ORDER BY {by_moment} ROWS UNBOUNDED PRECEDING) AS life
            FROM (SELECT {l_key}{place}, l.w, l.p, l.d{boxes}
                  FROM ({line}) AS l LEFT JOIN {entries} AS w ON w.rowid = l.w LEFT JOIN {entries} AS p ON p.rowid = l.p) AS l)
      WINDOW life_so_far AS (PARTITION BY {part}, life ORDER BY {by_moment} ROWS UNBOUNDED PRECEDING)) AS l)",
                      arg("l_key", key_and_moment("l")), arg("place", place),
                      arg("values", values_as([&](size_t i) { return filled.at(i); })),
                      arg("lasts", lasts), arg("part", partition()), arg("by_moment", by_moment()),
                      arg("boxes", boxes), arg("line", line), arg("entries", table("entries")));
    } else {
      query = fmt::format(
          "SELECT {}{}, {}l.w IS NOT NULL AS up, l.w, l.p, l.d FROM ({}) AS l LEFT JOIN {} AS e "
          "ON e.rowid = l.w",
          key_and_moment("l"), place, columns(values_, "e"), line, table("entries"));
    }
    if (is_bitemporal()) {
      // The last result of a business time is what counts.
      query = fmt::format("SELECT * FROM (SELECT *, {} AS is_last FROM ({})) WHERE is_last",
                          last_of(keys() + ", place, seq", system_order("sys")), query);
    }
    make_table("fold", "filled", query);
  }

  // --- fold: the table `result`, rows as they shall be -------------------------------------------

  void keep_latest() {
    make_numbered(
        "fold", "result",
        fmt::format("SELECT {}, {}up FROM (SELECT *, {} AS is_last FROM {}) WHERE is_last "
                    "AND up",
                    keys(), columns(values_), last_of(keys(), by_moment()), table("filled")));
  }

  // Moments with what becomes of them: the table `line`.
  //   starts, ends  first, last event of its run; start_seq its run's start; next_seq the next
  //   moment's sequence; hidden: a delete that ends no run
  void fold_runs() {
    std::string before, equal_before;
    for (const size_t i : tracked_) {
      before += fmt::format(", lag({0}) OVER k AS b_{0}", column(i));
      equal_before += " AND " + equal(column(i), "b_" + column(i), plan_.columns[i].type);
    }
    const std::string window =
        fmt::format("(PARTITION BY {} ORDER BY {} NULLS FIRST)", partition(), order("seq"));
    const std::string so_far =
        fmt::format("(PARTITION BY {} ORDER BY {} NULLS FIRST ROWS UNBOUNDED PRECEDING)",
                    partition(), order("seq"));
    make_table(
        "fold", "line",
        fmt::format(R"(
SELECT {keys}{place}, {values}seq, up, w, d, starts, {start} AS start_seq,
       up AND NOT lead(continues, 1, false) OVER k AS ends, lead(seq) OVER k AS next_seq,
       NOT up AND NOT coalesce(up_before, false) AS hidden
FROM (SELECT *, up AND NOT continues AS starts
      FROM (SELECT *, coalesce(up AND up_before{equal_before}, false) AS continues
            FROM (SELECT *, lag(up) OVER k AS up_before{before} FROM {filled} WINDOW k AS {window})))
WINDOW k AS {window})",
                    arg("keys", keys()), arg("place", is_bitemporal() ? ", place" : ""),
                    arg("values", columns(values_)),
                    arg("start", unboxed(last_not_null(boxed_when("starts", "seq"), so_far))),
                    arg("equal_before", equal_before), arg("before", before),
                    arg("filled", table("filled")), arg("window", window)));
  }

  void find_versions() {
    make_numbered("fold", "result",
                  fmt::format("SELECT {}, {}start_seq, next_seq AS stop_seq FROM {} WHERE ends",
                              keys(), columns(values_), table("line")));
  }

  // A version is believed from the first to the last of the consecutive system times that have it.
  void find_beliefs() {
    std::string before, equal_before;
    for (const size_t i : values_) {
      before += fmt::format(", lag(l.{0}) OVER k AS b_{0}", column(i));
      equal_before += " AND " + equal(column(i), "b_" + column(i), plan_.columns[i].type);
    }
    make_table(
        "fold", "stretches",
        fmt::format(R"(
SELECT {keys}, {values}start_seq, stop_seq, stop_sys, from_sys, reaches_back
FROM (SELECT *, {first_sys} AS from_sys, {first_back} AS reaches_back, NOT lead(continues, 1, false) OVER k AS ends
      FROM (SELECT *, coalesce(place = place_before + 1 AND stop_seq IS NOT DISTINCT FROM stop_before{equal_before}, false) AS continues
            FROM (SELECT {l_keys}, {l_values}l.start_seq, l.next_seq AS stop_seq, t.sys, t.next_sys AS stop_sys, l.place, t.is_before,
                         lag(l.place) OVER k AS place_before, lag(l.next_seq) OVER k AS stop_before{before}
                  FROM {line} AS l JOIN {times} AS t ON {l_is_t} AND t.place = l.place
                  WHERE l.ends WINDOW k AS (PARTITION BY {l_keys}, l.start_seq ORDER BY l.place)))
      WINDOW k AS (PARTITION BY {keys}, start_seq ORDER BY place))
WHERE ends)",
                    arg("keys", keys()), arg("values", columns(values_)), arg("l_keys", keys("l")),
                    arg("l_values", columns(values_, "l")), arg("first_sys", first_of_run("sys")),
                    arg("first_back", first_of_run("is_before")), arg("equal_before", equal_before),
                    arg("before", before), arg("line", table("line")), arg("times", table("times")),
                    arg("l_is_t", keys_equal("l", "t"))));
    // What was believed just before goes on from where it began.
    make_table(
        "fold", "active",
        fmt::format(R"(
SELECT r.*, r.rowid AS row_number, t.sys AS known_sys, t.is_before
FROM {rows} AS r JOIN {times} AS t ON {same_key} AND t.place = t.first_place
WHERE r.stop_sys IS NULL OR NOT t.is_before OR {stop} > {known})",
                    arg("rows", table("rows")), arg("times", table("times")),
                    arg("same_key", keys_equal("r", "t")), arg("stop", system_order("r.stop_sys")),
                    arg("known", system_order("t.sys"))));
    make_numbered(
        "fold", "result",
        fmt::format(R"(
SELECT {s_keys}, {values}s.start_seq, s.stop_seq, CASE WHEN s.reaches_back THEN a.start_sys ELSE s.from_sys END AS start_sys,
       s.stop_sys, s.reaches_back AND a.row_number IS NULL AS is_lost
FROM {stretches} AS s LEFT JOIN (SELECT * FROM {active} WHERE is_before AND {begin} <= {known}) AS a
  ON {s_is_a} AND a.start_seq IS NOT DISTINCT FROM s.start_seq AND s.reaches_back)",
                    arg("s_keys", keys("s")), arg("values", columns(values_, "s")),
                    arg("stretches", table("stretches")), arg("active", table("active")),
                    arg("begin", system_order("start_sys")),
                    arg("known", system_order("known_sys")), arg("s_is_a", keys_equal("s", "a"))));
    check("fold",
          fmt::format("SELECT count(*), min({}) FROM {} AS r WHERE is_lost", keys_text("r"),
                      table("result")),
          "AUTOCDC_INVALID_STATE.INVALID_TARGET_ROWS",
          "table " + plan_.target +
              " lacks {count} rows that its state knows of, for example of {example}: a BITEMPORAL "
              "table cannot be changed by hand; restore it or run a full refresh of that table");
  }

  std::string first_of_run(const std::string& value) const {
    return unboxed(last_not_null(
        boxed_when("NOT continues", value),
        fmt::format("(PARTITION BY {}, start_seq ORDER BY place ROWS UNBOUNDED PRECEDING)",
                    keys())));
  }

  // --- diff ------------------------------------------------------------------------------------

  // Each row of the result with the target row of the same primary key: the table `matched`.
  void diff() {
    std::string same_row = keys_equal("n", "o");
    std::string same_ends = "true";
    if (!is_scd1()) {
      same_row += " AND n.start_seq IS NOT DISTINCT FROM o.start_seq";
      same_ends = "n.stop_seq IS NOT DISTINCT FROM o.stop_seq";
    }
    if (is_bitemporal()) {
      same_row += " AND n.start_sys = o.start_sys";
      same_ends += " AND n.stop_sys IS NOT DISTINCT FROM o.stop_sys";
    }
    const std::string lives =
        is_scd1() ? "true"
                  : "(n.start_seq IS NOT NULL OR n.stop_seq IS NOT DISTINCT FROM o.stop_seq)";
    make_table(
        "diff", "matched",
        fmt::format(R"(
SELECT n.rowid AS number, o.old AS old, CASE WHEN {lives} THEN o.row_id END AS row_id,
       o.old IS NOT NULL AND {lives} AS lives, o.old IS NOT NULL AND {same_ends} AND {identical} AS is_same
FROM {result} AS n LEFT JOIN (SELECT *, rowid AS old FROM {rows}) AS o ON {same_row})",
                    arg("lives", lives), arg("same_ends", same_ends),
                    arg("identical", values_identical("n", "o")), arg("result", table("result")),
                    arg("rows", table("rows")), arg("same_row", same_row)));
  }

  // --- state -----------------------------------------------------------------------------------

  // Entries that the state must have: the table `needed`; bare where the values are left out.
  void find_needed() {
    const std::string chosen = of_changed(table("chosen"));
    if (is_bitemporal()) {
      make_table("diff", "needed", fmt::format("SELECT entry, false AS bare FROM {}", chosen));
      return;
    }
    if (is_scd1()) return find_needed_type1();
    // A delete where a whole row stands says nothing.
    make_table(
        "diff", "full_keys",
        fmt::format("SELECT DISTINCT {} FROM {} WHERE p IS NOT NULL", keys(), table("moments")));
    make_table("diff", "needed",
               fmt::format(R"(
SELECT entry, false AS bare FROM (
  SELECT r.w AS entry FROM {moments} AS r SEMI JOIN {full} AS f ON {r_is_f}
  UNION ALL SELECT r.p FROM {moments} AS r SEMI JOIN {full} AS f ON {r_is_f}
  UNION ALL SELECT r.d FROM {moments} AS r SEMI JOIN {full} AS f ON {r_is_f} WHERE r.w IS NULL)
WHERE entry IS NOT NULL
UNION ALL
SELECT e.rowid, false FROM {line} AS l JOIN {entries} AS e ON e.rowid = l.w ANTI JOIN {full} AS f ON {l_is_f}
WHERE NOT (l.starts AND l.ends) OR e.kind = 4
UNION ALL
SELECT e.rowid, false FROM {line} AS l JOIN {entries} AS e ON e.rowid = l.d ANTI JOIN {full} AS f ON {l_is_f}
WHERE l.hidden OR e.kind = 5
UNION ALL
SELECT entry, false FROM {chosen} WHERE kind = 6)",
                           arg("chosen", chosen), arg("moments", table("moments")),
                           arg("full", table("full_keys")), arg("r_is_f", keys_equal("r", "f")),
                           arg("line", table("line")), arg("entries", table("entries")),
                           arg("l_is_f", keys_equal("l", "f"))));
  }

  // Whether no later partial update gives the leaf.
  static std::string still_gives(size_t j) {
    return fmt::format("coalesce(g{0} = max(g{0}) OVER k, false)", j);
  }

  // Nothing before the latest whole row or delete counts any more; of the partial updates since
  // then, those that still give a leaf, and the latest.
  void find_needed_type1() {
    std::string gives, kept, contributes = "false";
    const std::vector<Leaf> all = leaves("e");
    for (size_t j = 0; j < all.size(); ++j) {
      std::string last = still_gives(j);
      // A struct is where one of its fields is.
      for (size_t i = j + 1; all[j].is_struct && i < all.size(); ++i) {
        if (all[i].path.starts_with(all[j].path + ".")) last += " OR " + still_gives(i);
      }
      last = "(" + last + ")";
      gives += fmt::format(", {} AS l{}, CASE WHEN {} THEN m.place END AS g{}", all[j].value, j,
                           given(all[j], "e"), j);
      kept += fmt::format(", CASE WHEN {0} THEN l{1} END AS l{1}, {0} AS g{1}", last, j);
      contributes += " OR " + last;
    }
    make_table("diff", "counting",
               fmt::format(R"(
SELECT * FROM (
  SELECT *, max(CASE WHEN w IS NOT NULL OR d IS NOT NULL THEN place END) OVER (PARTITION BY {keys}) AS base
  FROM (SELECT *, row_number() OVER (PARTITION BY {keys} ORDER BY {by_moment}) AS place,
               count(*) OVER (PARTITION BY {keys}) AS last_place FROM {moments}))
WHERE base IS NULL OR place >= base)",
                           arg("keys", keys()), arg("by_moment", by_moment()),
                           arg("moments", table("moments"))));
    // Only what they still give is kept of them: what arrives again for the rest changes nothing.
    make_table("diff", "patches",
               fmt::format(R"(
SELECT * FROM (
  SELECT {keys}, seq, place = last_place OR {contributes} AS counts{kept}
  FROM (SELECT {m_keys}, m.seq, m.place, m.last_place{gives} FROM {counting} AS m JOIN {entries} AS e ON e.rowid = m.p)
  WINDOW k AS (PARTITION BY {keys}))
WHERE counts)",
                           arg("keys", keys()), arg("contributes", contributes), arg("kept", kept),
                           arg("m_keys", keys("m")), arg("gives", gives),
                           arg("counting", table("counting")), arg("entries", table("entries"))));
    add_patches("diff", "patches", kTrimmed, "", "");
    make_table(
        "diff", "giving",
        fmt::format(R"(
SELECT {m_keys}, CASE WHEN k.entry IS NOT NULL AND {same} THEN k.entry ELSE e.rowid END AS p
FROM {patches} AS m JOIN {entries} AS e ON {m_is_e} AND e.src = {trimmed}
LEFT JOIN (SELECT *, rowid AS entry FROM {entries} WHERE src = {state} AND kind = 3) AS k ON {m_is_k})",
                    arg("m_keys", keys("m")), arg("same", same_patch("m", "k")),
                    arg("patches", table("patches")), arg("entries", table("entries")),
                    arg("m_is_e", same_moment("m", "e")), arg("m_is_k", same_moment("m", "k")),
                    arg("trimmed", kTrimmed), arg("state", kFromState)));
    // In the whole form the target tells the values, and often the sequence.
    const std::string told = fmt::format(
        "(e.src = {} AND e.stored = {}){}", kFromTarget, kNotStored,
        plan_.sequence_is_column ? fmt::format(" OR (e.src = {} AND e.kind = 1)", kFromBatch) : "");
    make_table("diff", "needed",
               fmt::format(R"(
SELECT p AS entry, false AS bare FROM {giving}
UNION ALL
SELECT entry, is_whole AND kind IN (1, 4) FROM (
  SELECT e.rowid AS entry, e.kind, {told} AS is_told, g.{key} IS NULL AS is_whole
  FROM {counting} AS m JOIN {entries} AS e ON e.rowid = coalesce(m.w, m.d)
  LEFT JOIN (SELECT DISTINCT {keys} FROM {giving}) AS g ON {m_is_g}
  WHERE m.place = m.base)
WHERE NOT (is_whole AND is_told))",
                           arg("giving", table("giving")), arg("told", told),
                           arg("key", column(keys_.front())), arg("counting", table("counting")),
                           arg("entries", table("entries")), arg("keys", keys()),
                           arg("m_is_g", keys_equal("m", "g"))));
  }

  // An entry that stands in the state as it is needed.
  static std::string stands() {
    return fmt::format("(e.stored = {} OR (e.stored = {} AND n.bare))", kStored,
                       kStoredWithoutValues);
  }

  std::string state_row(bool is_mark) const {
    std::vector<std::string> parts;
    for (const Field& field : plan_.state_schema.fields) {
      std::string value = typed_null(field.type);
      if (same_name(field.name, kStateSequence)) {
        value = is_mark ? "mark_now" : "e.seq";
      } else if (same_name(field.name, kStateKind)) {
        value = is_mark ? "CAST(2 AS TINYINT)" : "e.kind";
      } else if (is_mark) {
        // Only its sequence.
      } else if (same_name(field.name, kStateSystemSequence)) {
        value = "e.sys";
      } else if (same_name(field.name, kStateGivenNulls)) {
        value = "e.nulls";
      } else {
        for (const size_t i : owned_) {
          if (!same_name(plan_.columns[i].name, field.name)) continue;
          value = "e." + column(i);
          if (!plan_.columns[i].is_key) {
            value =
                fmt::format("CASE WHEN NOT n.bare AND e.kind NOT IN (0, 5, 6) THEN {} END", value);
          }
        }
      }
      parts.push_back(value + " AS " + quote_name(field.name));
    }
    return join(parts);
  }

  // --- outputs ---------------------------------------------------------------------------------

  std::string old_rows() const {
    if (is_bitemporal()) {
      return fmt::format("(SELECT row_number AS old, row_file, row_pos FROM {})", table("active"));
    }
    return fmt::format("(SELECT r.rowid AS old, r.row_file, r.row_pos FROM {})",
                       of_changed(table("rows")));
  }

  void outputs() {
    std::vector<std::string> intervals;
    if (!is_scd1()) intervals = {"r.start_seq", "r.stop_seq"};
    if (is_bitemporal()) intervals.insert(intervals.end(), {"r.start_sys", "r.stop_sys"});
    const std::string user =
        user_columns_.empty()
            ? ""
            : fmt::format(" LEFT JOIN {} AS o ON o.rowid = CASE WHEN m.lives THEN m.old END",
                          table("rows"));
    program_.target_new = fmt::format(
        "SELECT {}, m.row_id AS __strandline_row_id, CAST(NULL AS BIGINT) AS "
        "__strandline_row_commit_version FROM (SELECT * FROM {} WHERE NOT is_same) AS m JOIN {} AS "
        "r ON r.rowid = m.number{}",
        target_row("r", "o", intervals), table("matched"), table("result"), user);
    program_.target_dead = fmt::format(
        "SELECT o.row_file AS __strandline_file, o.row_pos AS __strandline_row FROM {} AS o ANTI "
        "JOIN (SELECT old FROM {} WHERE is_same) AS m ON m.old = o.old",
        old_rows(), table("matched"));
    program_.state_new =
        fmt::format("SELECT {} FROM {} AS n JOIN {} AS e ON e.rowid = n.entry WHERE NOT {}",
                    state_row(false), table("needed"), table("entries"), stands());
    program_.state_dead = fmt::format(
        "SELECT r.row_file AS __strandline_file, r.row_pos AS __strandline_row FROM (SELECT *, "
        "rowid AS entry FROM {0}) AS r SEMI JOIN {1} AS k ON {2} ANTI JOIN (SELECT n.entry FROM "
        "{3} AS n JOIN {0} AS e ON e.rowid = n.entry WHERE {4}) AS s ON s.entry = r.entry WHERE "
        "r.row_file IS NOT NULL",
        table("entries"), table("changed"), keys_equal("r", "k"), table("needed"), stands());
    if (truncates()) {
      program_.state_new +=
          fmt::format(" UNION ALL SELECT {} FROM {} WHERE moved", state_row(true), table("mark"));
      program_.state_dead += fmt::format(
          " UNION ALL SELECT s.row_file, s.row_pos FROM ({}) AS s, {} WHERE s.kind = 2 AND moved",
          read_state(false), table("mark"));
    }
    check_not_null_columns();
  }

  void metrics() {
    std::string late = fmt::format("coalesce({}, false)", less("seq", "known"));
    std::string known =
        fmt::format("SELECT {}, seq FROM {} WHERE src < {}", keys(), table("entries"), kFromBatch);
    // A row that a hand took away was known, too.
    if (is_edited()) {
      known += " UNION ALL " + (is_scd1()
                                    ? known_sequences()
                                    : fmt::format("SELECT {}, seq FROM {}", keys(), table("hand")));
    }
    std::string from_mark;
    if (truncates()) {
      late += fmt::format(" OR coalesce({}, false)", less("seq", "mark_before"));
      from_mark = ", " + table("mark");
    }
    program_.metrics = fmt::format(
        R"(
SELECT
  (SELECT count(*) FROM {matched} WHERE NOT is_same) AS num_upserted_rows,
  (SELECT count(*) FROM ({dead})) - (SELECT count(*) FROM {matched} WHERE NOT is_same AND lives) AS num_deleted_rows,
  (SELECT count(*) FROM {events}) AS num_input_rows,
  (SELECT count(*) FROM (
     SELECT e.seq, k.known FROM {events} AS e
     LEFT JOIN (SELECT {keys}, {greatest} AS known FROM ({known}) GROUP BY {keys}) AS k
       ON e.kind <> 2 AND {same_key}) AS e{from_mark} WHERE {late}) AS num_late_rows,
  (SELECT count(*) FROM (SELECT DISTINCT * FROM {conflicts})) AS num_sequence_conflicts,
  (SELECT min({text} || ', sequence = ' || {seq_text}) FROM {conflicts} AS x) AS conflict_example)",
        arg("matched", table("matched")), arg("dead", program_.target_dead),
        arg("events", table("events")), arg("keys", keys()),
        arg("greatest", value_of_greatest("seq", order("seq"))), arg("known", known),
        arg("same_key", keys_equal("e", "k")), arg("from_mark", from_mark), arg("late", late),
        arg("conflicts", table("conflicts")), arg("text", keys_text("x")),
        arg("seq_text", as_text("x.seq")));
  }

  std::vector<size_t> owned_, tracked_;
};

}  // namespace

Result<Program> make_history_program(const Dialect& dialect, const Plan& plan,
                                     const BatchRelations& relations,
                                     const ProgramOptions& options) {
  return HistoryProgram(dialect, plan, relations, options).build();
}

}  // namespace strandline::cdc
