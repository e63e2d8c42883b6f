// SCD type 1: of every key the latest event. The work is done on keys, sequences and row numbers;
// wide values are read only where equal sequences or unchanged rows must be told apart, and for the
// rows that are written.
#include "base/error.h"
#include "cdc/program_builder.h"

namespace strandline::cdc {

namespace {

using fmt::arg;

class Scd1Program : public ProgramBuilder {
 public:
  using ProgramBuilder::ProgramBuilder;

  Result<Program> build() override {
    SL_TRY(print_defaults());
    SL_ASSIGN(const std::string events, read_events());
    make_numbered("stage", "events", events);
    give_keys(table("events"));
    validate_events(table("events"));
    if (truncates()) find_mark();
    rank_events();
    settle_ties();
    decide();
    balance_keys();
    compare_with_target();
    sweep();
    outputs();
    metrics();
    return std::move(program_);
  }

 private:
  bool truncates() const { return plan_.state_spec.truncates; }

  // Events of a key from the latest (place 1) to the earliest, upserts before deletes at one
  // sequence. tied: an upsert whose sequence another upsert before it has.
  void rank_events() {
    make_table("normalise", "ranked",
               fmt::format(R"(
SELECT {keys}, seq, kind, rowid AS rid, row_number() OVER w AS place,
       kind = 1 AND row_number() OVER w <> rank() OVER w AS tied
FROM {events} WHERE kind < 2
WINDOW w AS (PARTITION BY {keys} ORDER BY {order} DESC, kind DESC))",
                           arg("keys", keys()), arg("events", table("events")),
                           arg("order", order("seq"))));
  }

  // Upserts of one key and sequence: the greatest values count.
  void settle_ties() {
    const std::string any_tied = fmt::format("SELECT count(*) FROM {} WHERE tied", table("ranked"));
    std::string tied_values;
    for (const size_t i : values_) tied_values += fmt::format("e.{}, ", column(i));
    make_table(
        "normalise", "tied",
        fmt::format(R"(
SELECT {r_keys}, r.seq, r.rid, {values}row_number() OVER w AS standing, min(r.place) OVER g AS top_place,
       lag(r.rid) OVER w AS rid_before
FROM {ranked} AS r
SEMI JOIN (SELECT DISTINCT {keys}, seq FROM {ranked} WHERE tied) AS t ON {same_key} AND t.seq = r.seq
JOIN {events} AS e ON e.rowid = r.rid
WHERE r.kind = 1
WINDOW g AS (PARTITION BY {r_keys}, r.seq), w AS (PARTITION BY {r_keys}, r.seq ORDER BY {greatest_first}, r.rid))",
                    arg("r_keys", keys("r")), arg("keys", keys()), arg("ranked", table("ranked")),
                    arg("events", table("events")), arg("same_key", keys_equal("t", "r")),
                    arg("values", tied_values), arg("greatest_first", greatest_first("e"))),
        any_tied);
    make_table("normalise", "conflicts",
               fmt::format(R"(
SELECT DISTINCT {keys}, x.seq FROM {tied} AS x JOIN {tied} AS y ON y.rid = x.rid_before WHERE NOT {equal})",
                           arg("keys", keys("x")), arg("tied", table("tied")),
                           arg("equal", values_equal("x", "y"))),
               any_tied);
    update("normalise", "ranked", "rid", "f.rid", table("tied"),
           "r.place = 1 AND f.top_place = 1 AND f.standing = 1 AND " + keys_equal("f", "r"),
           any_tied);
  }

  // The sequence of a live row stands in the state, or else in the row itself if it is kept there.
  std::string target_keys() const { return read_target(keys_, row_sequence() + " AS row_seq, "); }
  static constexpr const char* kKnown =
      "CASE WHEN s.row_file IS NOT NULL THEN s.seq ELSE t.row_seq END";

  // What becomes of a key by its verdict:
  //   0 what is known stays
  //   1 the event wins
  //   2 equal upserts, to be compared: becomes 4 or 0
  //   3 the event wins and leaves the row's values as they are
  //   4 the event has the known sequence and greater values
  static constexpr const char* kPut = "(kind = 1 AND verdict IN (1, 4))";  // its row is written
  static constexpr const char* kDies = "(target_file IS NOT NULL AND verdict IN (1, 4))";
  // The state already says what a winning event would have it say.
  std::string said() const {
    return plan_.sequence_is_column ? "false" : "(verdict = 4 AND coalesce(state_kind = 1, false))";
  }
  // A state row is written, an old one dies.
  std::string remember() const {
    return fmt::format("(verdict IN (1, 3, 4) AND NOT ({}) AND NOT {})", told(), said());
  }
  std::string forget() const {
    return fmt::format("(state_file IS NOT NULL AND verdict IN (1, 3, 4) AND NOT {})", said());
  }
  // A row that keeps its sequence tells it, so the state does not.
  std::string told() const { return plan_.sequence_is_column ? "kind = 1" : "false"; }

  // Of each key the latest event, what is known of the key, and the verdict.
  void decide() {
    std::string vanished, counts, from_mark;
    if (truncates()) {
      // A truncate ends what it covers; an event below it never counts, nor a delete at it.
      from_mark = ", " + table("mark");
      vanished = fmt::format(" OR (moved AND {})", less("known", "mark_now"));
      counts = fmt::format("WHEN coalesce({0} < {1} OR (kind = 0 AND {0} = {1}), false) THEN 0",
                           order("seq"), order("mark_now"));
    }
    std::string state_columns =
        "CAST(NULL AS INTEGER) AS state_file, CAST(NULL AS BIGINT) AS state_pos, "
        "CAST(NULL AS TINYINT) AS state_kind, t.row_seq AS known, "
        "CASE WHEN t.row_file IS NOT NULL THEN 1 END AS known_kind";
    std::string state_join;
    if (has_state()) {
      state_columns = fmt::format(
          "s.row_file AS state_file, s.row_pos AS state_pos, s.kind AS state_kind, {} AS known, "
          "CASE WHEN t.row_file IS NOT NULL THEN 1 WHEN s.row_file IS NOT NULL THEN 0 END AS "
          "known_kind",
          kKnown);
      // The semi-join keeps the engine from hashing the whole state, which has a row for each key.
      state_join = fmt::format(
          "LEFT JOIN (SELECT r.* FROM ({}) AS r SEMI JOIN (SELECT {} FROM {} WHERE place = 1) AS k "
          "ON {} WHERE r.kind < 2) AS s ON {}",
          read_state(false), keys(), table("ranked"), keys_equal("k", "r"), keys_equal("w", "s"));
    }
    make_table("locate", "decided",
               fmt::format(R"(
SELECT {keys}, seq, kind, rid, target_file, target_pos, row_id, state_file, state_pos, state_kind, known,
  CAST(CASE {counts}
       WHEN known_kind IS NULL OR known IS NULL{vanished} THEN 1
       WHEN {order} > {known_order} THEN 1
       WHEN {order} < {known_order} OR kind = 0 THEN 0
       WHEN known_kind = 0 THEN 1
       ELSE 2 END AS TINYINT) AS verdict
FROM (
  SELECT {w_keys}, w.seq, w.kind, w.rid,
    t.row_file AS target_file, t.row_pos AS target_pos, t.row_id, {state_columns}
  FROM (SELECT {keys}, seq, kind, rid FROM {ranked} WHERE place = 1) AS w
  LEFT JOIN ({target}) AS t ON {w_is_t}
  {state_join}){from_mark})",
                           arg("keys", keys()), arg("w_keys", keys("w")), arg("counts", counts),
                           arg("vanished", vanished), arg("order", order("seq")),
                           arg("known_order", order("known")), arg("state_columns", state_columns),
                           arg("ranked", table("ranked")), arg("target", target_keys()),
                           arg("w_is_t", keys_equal("w", "t")), arg("state_join", state_join),
                           arg("from_mark", from_mark)));
    check(
        "locate",
        fmt::format("SELECT count(*), min({text}) FROM (SELECT {keys} FROM {decided} GROUP BY ALL "
                    "HAVING count(*) > 1) AS d",
                    arg("text", keys_text("d")), arg("keys", keys()),
                    arg("decided", table("decided"))),
        "AUTOCDC_INVALID_STATE.INVALID_TARGET_ROWS",
        "table " + plan_.target +
            " has more than one row for {count} of its keys, for example {example}, and an SCD "
            "TYPE "
            "1 table has one row for a key" +
            repair_advice(plan_),
        fmt::format("SELECT (SELECT count(*) FROM {}) - (SELECT count(*) FROM {} WHERE place = 1)",
                    table("decided"), table("ranked")));
  }

  // Every event has its place, and every key one verdict.
  void balance_keys() {
    balance("locate",
            {{"e", fmt::format("SELECT count(*) AS n FROM {} WHERE kind < 2", table("events"))},
             {"r", fmt::format("SELECT count(*) AS n, count(CASE WHEN place = 1 THEN 1 END) AS "
                               "latest FROM {}",
                               table("ranked"))},
             {"d", fmt::format("SELECT count(*) AS n FROM {}", table("decided"))}},
            {{"e.n", "events", "r.n", "ranked"}, {"r.latest", "keys", "d.n", "decided"}});
  }

  // Rows whose values must be read: equal sequences, and upserts that may leave the row as it is.
  void compare_with_target() {
    // Joined by key, not by position: keys prune the scan.
    std::vector<size_t> columns = keys_;
    columns.insert(columns.end(), values_.begin(), values_.end());
    columns.insert(columns.end(), user_columns_.begin(), user_columns_.end());
    std::string wanted = "target_file IS NOT NULL";
    if (user_columns_.empty()) {
      // A greater sequence that the row keeps changes the row by itself.
      wanted =
          fmt::format("(verdict = 2 OR (verdict = 1 AND kind = 1 AND target_file IS NOT NULL{}))",
                      plan_.sequence_is_column ? " AND state_file IS NOT NULL" : "");
    }
    const std::string any_wanted =
        fmt::format("SELECT count(*) FROM {} WHERE {}", table("decided"), wanted);
    std::string user;
    for (const size_t i : user_columns_) user += fmt::format("t.{0} AS {0}, ", column(i));
    make_table("locate", "compared",
               fmt::format(R"(
SELECT d.rid, {user}{greater} AS is_greater, {identical} AS is_same, NOT {equal} AS differs
FROM (SELECT * FROM {decided} WHERE {wanted}) AS d
JOIN {events} AS e ON e.rowid = d.rid
JOIN ({target}) AS t ON {same_key})",
                           arg("user", user), arg("same_key", keys_equal("t", "d")),
                           arg("greater", values_greater("e", "t")),
                           arg("identical", values_identical("e", "t")),
                           arg("equal", values_equal("e", "t")), arg("decided", table("decided")),
                           arg("wanted", wanted), arg("events", table("events")),
                           arg("target", read_target(columns))),
               any_wanted);
    append("diff", "conflicts",
           fmt::format("SELECT {keys}, d.seq FROM {decided} AS d JOIN {compared} AS c ON c.rid = "
                       "d.rid WHERE d.verdict = 2 AND c.differs",
                       arg("keys", keys("d")), arg("decided", table("decided")),
                       arg("compared", table("compared"))),
           any_wanted);
    update("diff", "decided", "verdict", R"(CASE
  WHEN r.verdict = 2 THEN CASE WHEN f.is_greater THEN 4 ELSE 0 END
  WHEN r.verdict = 1 AND r.kind = 1 AND f.is_same THEN 3
  ELSE r.verdict END)",
           table("compared"), "f.rid = r.rid", any_wanted);
  }

  // A truncate beyond the last one ends every row and every remembered event below it; a row that
  // an event above it gives the very same values stays as it is.
  void sweep() {
    if (!truncates()) return;
    const std::string moved = fmt::format("SELECT count(*) FROM {} WHERE moved", table("mark"));
    make_table("truncate", "swept",
               fmt::format(R"(
SELECT x.row_file, x.row_pos
FROM (SELECT t.row_file, t.row_pos, {known} AS known
      FROM ({target}) AS t LEFT JOIN (SELECT * FROM ({state}) WHERE kind < 2) AS s ON {t_is_s}) AS x
CROSS JOIN {mark}
ANTI JOIN (SELECT target_file, target_pos FROM {decided} WHERE verdict = 3) AS d
  ON d.target_pos = x.row_pos AND d.target_file = x.row_file
WHERE x.known IS NULL OR {below})",
                           arg("known", kKnown), arg("target", target_keys()),
                           arg("state", read_state(false)), arg("t_is_s", keys_equal("t", "s")),
                           arg("mark", table("mark")), arg("decided", table("decided")),
                           arg("below", less("x.known", "mark_now"))),
               moved);
    // A delete at the mark itself says nothing that the mark does not.
    make_table("truncate", "swept_state",
               fmt::format("SELECT row_file, row_pos FROM ({}) AS s, {} WHERE kind = 2 OR {} OR "
                           "(kind = 0 AND {} = {})",
                           read_state(false), table("mark"), less("seq", "mark_now"), order("seq"),
                           order("mark_now")),
               moved);
  }

  void outputs() {
    const std::string decided = table("decided");
    const std::string user =
        user_columns_.empty()
            ? ""
            : fmt::format("LEFT JOIN {} AS c ON c.rid = d.rid ", table("compared"));
    program_.target_new = fmt::format(
        "SELECT {row}, d.row_id AS __strandline_row_id, CAST(NULL AS BIGINT) AS "
        "__strandline_row_commit_version FROM {decided} AS d JOIN {events} AS e ON e.rowid = d.rid "
        "{user}",
        arg("row", target_row("e", [&](size_t i) { return kept_or_default(i, "c", "d.is_new"); })),
        arg("decided",
            fmt::format("(SELECT rid, row_id{} FROM {} WHERE {})",
                        defaults_.empty() ? "" : ", target_file IS NULL AS is_new", decided, kPut)),
        arg("events", table("events")), arg("user", user));
    program_.target_dead = fmt::format(
        "SELECT target_file AS __strandline_file, target_pos AS __strandline_row FROM {} "
        "WHERE {}",
        decided, kDies);
    program_.state_dead = fmt::format(
        "SELECT state_file AS __strandline_file, state_pos AS __strandline_row FROM {} "
        "WHERE {}",
        decided, forget());
    program_.state_new = state_rows(false, fmt::format("{} WHERE {}", decided, remember()));
    if (truncates()) {
      const char* swept = " UNION SELECT row_file, row_pos FROM {}";
      program_.target_dead += fmt::format(fmt::runtime(swept), table("swept"));
      program_.state_dead += fmt::format(fmt::runtime(swept), table("swept_state"));
      program_.state_new +=
          " UNION ALL " + state_rows(true, fmt::format("{} WHERE moved", table("mark")));
    }
    check_not_null_columns();
  }

  std::string state_rows(bool is_mark, const std::string& from) const {
    std::vector<std::string> parts;
    for (const Field& field : plan_.state_schema.fields) {
      std::string value = typed_null(field.type);
      if (same_name(field.name, kStateSequence)) {
        value = is_mark ? "mark_now" : "seq";
      } else if (same_name(field.name, kStateKind)) {
        value = is_mark ? "CAST(2 AS TINYINT)" : "kind";
      } else if (!is_mark) {
        for (const size_t i : keys_) {
          if (same_name(plan_.columns[i].name, field.name)) value = column(i);
        }
      }
      parts.push_back(value + " AS " + quote_name(field.name));
    }
    return fmt::format("SELECT {} FROM {}", fmt::join(parts, ", "), from);
  }

  void metrics() {
    // Late is what lies below what was known before the batch; arrival inside it means nothing.
    std::string late = fmt::format("coalesce({}, false)", less("seq", "known"));
    std::string from_mark, late_truncates = "0";
    if (truncates()) {
      const std::string below = fmt::format("coalesce({}, false)", less("seq", "mark_before"));
      late += " OR " + below;
      from_mark = ", " + table("mark");
      late_truncates = fmt::format("(SELECT count(*) FROM {}{} WHERE kind = 2 AND {})",
                                   table("events"), from_mark, below);
    }
    program_.metrics = fmt::format(
        R"(
SELECT
  (SELECT count(*) FROM {decided} WHERE {put}) AS num_upserted_rows,
  d.n - (SELECT count(*) FROM {decided} WHERE {put} AND target_file IS NOT NULL) AS num_deleted_rows,
  (SELECT count(*) FROM {events}) AS num_input_rows,
  {late_truncates} + (SELECT count(*) FROM {decided}{from_mark} WHERE {late})
    + (SELECT count(*) FROM (SELECT r.seq, d.known FROM {ranked} AS r JOIN {decided} AS d ON {same_key} WHERE r.place > 1){from_mark}
       WHERE {late}) AS num_late_rows,
  (SELECT count(*) FROM (SELECT DISTINCT * FROM {conflicts})) AS num_sequence_conflicts,
  (SELECT min({text} || ', sequence = ' || {seq_text}) FROM {conflicts} AS x) AS conflict_example,
  d.n AS num_dead_rows
FROM (SELECT count(*) AS n FROM ({dead})) AS d)",
        arg("decided", table("decided")), arg("put", kPut), arg("dead", program_.target_dead),
        arg("events", table("events")), arg("late_truncates", late_truncates),
        arg("from_mark", from_mark), arg("late", late), arg("ranked", table("ranked")),
        arg("same_key", keys_equal("r", "d")), arg("conflicts", table("conflicts")),
        arg("text", keys_text("x")), arg("seq_text", as_literal("x.seq", plan_.sequence_type)));
  }
};

}  // namespace

Result<Program> make_scd1_program(const Dialect& dialect, const Plan& plan,
                                  const BatchRelations& relations, const ProgramOptions& options) {
  return Scd1Program(dialect, plan, relations, options).build();
}

}  // namespace strandline::cdc
