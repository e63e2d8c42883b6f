// SCD type 2: one row for each maximal run of consecutive upserts with equal tracked values.
//
// All events of a touched key - those the state keeps, those the target tells, new ones - become
// one timeline, in which each sees its neighbours. The pass sees keys, sequences, a hash of the
// tracked values and row numbers only; equal hashes are candidates that are compared in full.
#include "base/error.h"
#include "cdc/program_builder.h"

namespace strandline::cdc {

namespace {

using fmt::arg;

// Where an entry of the timeline comes from. At one sequence the smaller counts: the state knows a
// run's first event, of which the target only tells the start.
constexpr int kFromState = 0;
constexpr int kFromTarget = 1;
constexpr int kFromBatch = 2;

// A claim's rank and payload row as one number, of which the least counts: upserts before deletes,
// the chosen one of tied upserts before the others, then by source, then by row.
constexpr int kEntryBits = 58;
constexpr int64_t kRank = int64_t{1} << kEntryBits;
constexpr int kNotChosen = 4;
constexpr int kIsDelete = 8;

class Scd2Program : public ProgramBuilder {
 public:
  Scd2Program(const Dialect& dialect, const Plan& plan, const BatchRelations& relations,
              const ProgramOptions& options)
      : ProgramBuilder(dialect, plan, relations, options) {
    for (const size_t i : values_) {
      if (plan.columns[i].tracked) tracked_.push_back(i);
    }
  }

  Result<Program> build() override {
    SL_TRY(print_defaults());
    SL_ASSIGN(const std::string events, read_events());
    gather(events);
    merge_timelines();
    settle_ties();
    verify_equal_neighbours();
    balance_timeline();
    find_runs();
    find_unchanged();
    balance_rows();
    outputs();
    metrics();
    return std::move(program_);
  }

 private:
  // --- load ------------------------------------------------------------------------------------

  // The same for every type of column, so that equal values have equal hashes whatever their
  // source.
  std::string tracked_hash() const {
    std::vector<std::string> parts;
    parts.reserve(tracked_.size());
    for (const size_t i : tracked_) {
      parts.push_back(comparable(column(i), plan_.columns[i].type));
    }
    return dialect_.hash(parts, options_.hash_bits);
  }

  // Rows of the payload table: c<i>; seq, for a target row its start; end_seq, its end; kind; src;
  // where it stands; hash. The table's rowid is the entry's number.
  std::string payload(int src, const std::string& rows, const std::vector<bool>& has) const {
    std::string columns;
    for (size_t i = 0; i < plan_.columns.size(); ++i) {
      columns += has[i] ? column(i) + ", "
                        : fmt::format("{} AS {}, ", typed_null(plan_.columns[i].type), column(i));
    }
    if (!emptied_flag().empty())
      columns += fmt::format("{0} AS {1}, ", src == kFromBatch ? kEmptied : "false", kEmptied);
    return fmt::format(
        R"(
SELECT *, {hash} AS hash FROM (
  SELECT {columns}seq, {end_seq} AS end_seq, kind, CAST({src} AS TINYINT) AS src,
         {row_file} AS row_file, {row_pos} AS row_pos, {row_id} AS row_id
  FROM ({rows})))",
        arg("hash", tracked_hash()), arg("columns", columns), arg("src", src), arg("rows", rows),
        arg("end_seq", src == kFromTarget ? "stop_seq" : typed_null(plan_.sequence_type)),
        arg("row_file", src == kFromBatch ? "CAST(NULL AS INTEGER)" : "row_file"),
        arg("row_pos", src == kFromBatch ? "CAST(NULL AS BIGINT)" : "row_pos"),
        arg("row_id", src == kFromTarget ? "row_id" : "CAST(NULL AS BIGINT)"));
  }

  std::string touched(const std::string& rows) const {
    return fmt::format("SELECT r.* FROM ({}) AS r SEMI JOIN {} AS k ON {}", rows, table("keys"),
                       keys_equal("r", "k"));
  }

  void gather(const std::string& events) {
    std::vector<bool> owned, kept;
    std::vector<size_t> of_target;
    for (size_t i = 0; i < plan_.columns.size(); ++i) {
      owned.push_back(plan_.columns[i].owned);
      kept.push_back(!plan_.columns[i].generated);
      if (kept.back()) of_target.push_back(i);
    }
    make_numbered("stage", "payload", payload(kFromBatch, events, owned));
    give_keys(table("payload"));
    validate_events(table("payload"));
    make_table("load", "keys", fmt::format("SELECT DISTINCT {} FROM {}", keys(), table("payload")));

    const auto bound = [&](const char* name) {
      return has_target() ? normal_zero(target_column(name), plan_.sequence_type)
                          : typed_null(plan_.sequence_type);
    };
    const std::string target = read_target(
        of_target, fmt::format("{} AS seq, {} AS stop_seq, CAST(1 AS TINYINT) AS kind, ",
                               bound(kStartAt), bound(kEndAt)));
    append("load", "payload", payload(kFromTarget, touched(target), kept));
    append("load", "payload", payload(kFromState, touched(read_state(true)), owned));
    check(
        "load",
        fmt::format("SELECT count(*), min({}) FROM {} AS p WHERE src = {} AND end_seq IS NOT NULL "
                    "AND seq IS NOT NULL AND {} <= {}",
                    keys_text("p"), table("payload"), kFromTarget, order("end_seq"), order("seq")),
        "AUTOCDC_INVALID_STATE.INVALID_TARGET_ROWS",
        "table " + plan_.target +
            " has an __END_AT that is not after the __START_AT in {count} of its rows, for example "
            "in "
            "one with {example}: correct or delete it");
  }

  // --- merge -----------------------------------------------------------------------------------

  // The timeline: of each key and sequence the entry that counts, and what the fold says of it.
  //   claims      how many met there
  //   entry, src  the payload row and where it is from; up: an upsert, else a delete
  //   old_entry   payload row of the target row that starts here
  //   starts, ends  first, last event of its run
  //   next_seq    sequence of the key's next event
  //   hidden      a delete that ends no run
  //   tied        upserts of the batch meet another one here; doubled: two target rows do
  //   before_entry  payload row of the upsert before, in the same run by hash
  // A second printing follows the verdicts on ties and on equal hashes, for the keys in `redo`.
  //
  // Claims of one key and sequence are grouped by hashing; a window that is partitioned and ordered
  // then shows each its neighbours (docs/decisions/0012-ordinary-windows.md says why no other).
  std::string timeline(bool with_verdicts) const {
    // Only an upsert's own claim can have won or be split: the delete at a target row's end has
    // none.
    std::string won, verdicts, splits, only;
    std::string split = "false", split_after = "false";
    if (with_verdicts) {
      won = fmt::format(" + CASE WHEN w.winner IS NULL THEN {} ELSE 0 END", kNotChosen);
      verdicts = fmt::format("LEFT JOIN {} AS w ON w.winner = u.claim", table("won"));
      split = "x.splits IS NOT NULL";
      split_after = "lead(split) OVER w";
      splits = fmt::format("LEFT JOIN {} AS x ON x.splits = CASE WHEN g.up THEN g.entry END",
                           table("splits"));
      only = fmt::format("SEMI JOIN {} AS k ON {}", table("redo"), keys_equal("p", "k"));
    }
    return fmt::format(
        R"(
WITH claims AS (
  SELECT {p_keys}, p.seq, p.kind AS up, p.src, p.rowid AS entry,
         CASE WHEN p.kind = 1 THEN p.rowid END AS claim, p.hash
  FROM {payload} AS p {only}
  UNION ALL
  SELECT {p_keys}, p.end_seq, CAST(0 AS TINYINT), p.src, p.rowid, CAST(NULL AS BIGINT), {no_hash}
  FROM {payload} AS p {only} WHERE p.src = {target} AND p.end_seq IS NOT NULL),
ranked AS (
  SELECT {keys}, seq, up, src, entry, hash, ((1 - up) * {is_delete} + src{won}) * {unit} + entry AS code
  FROM claims AS u {verdicts}),
slots AS (
  SELECT {keys}, seq, min(code) AS code, {hash_of_least} AS hash,
         min(CASE WHEN up = 1 AND src = {target} THEN entry END) AS old_entry,
         count(CASE WHEN up = 1 AND src = {target} THEN 1 END) > 1 AS doubled,
         count(CASE WHEN up = 1 AND src = {batch} THEN 1 END) AS rivals, count(*) AS claims
  FROM ranked GROUP BY {keys}, seq),
chosen AS (
  SELECT {keys}, seq, code < {first_delete} AS up, CAST((code >> {bits}) & 3 AS TINYINT) AS src,
         code & {mask} AS entry, CASE WHEN code < {first_delete} THEN hash END AS hash,
         old_entry, doubled, claims,
         code < {first_delete} AND rivals > CASE WHEN (code >> {bits}) & 3 = {batch} THEN 1 ELSE 0 END AS tied
  FROM slots),
judged AS (SELECT g.*, {split} AS split FROM chosen AS g {splits}),
placed AS (
  SELECT *, lag(hash) OVER w AS hash_before, lag(entry) OVER w AS entry_before,
         lead(hash) OVER w AS hash_after, {split_after} AS split_after, lead(seq) OVER w AS next_seq
  FROM judged WINDOW w AS (PARTITION BY {keys} ORDER BY {order} NULLS FIRST)),
linked AS (
  SELECT *, coalesce(hash_before = hash AND NOT split, false) AS continues,
         coalesce(hash_after = hash AND NOT split_after, false) AS goes_on
  FROM placed)
SELECT {keys}, seq, claims, up, src, entry, old_entry, tied, doubled,
       up AND NOT continues AS starts, up AND NOT goes_on AS ends, next_seq,
       NOT up AND hash_before IS NULL AS hidden, CASE WHEN continues THEN entry_before END AS before_entry
FROM linked)",
        arg("p_keys", keys("p")), arg("keys", keys()), arg("payload", table("payload")),
        arg("only", only), arg("target", kFromTarget), arg("batch", kFromBatch),
        arg("no_hash", dialect_.hash({}, 0)), arg("is_delete", kIsDelete), arg("won", won),
        arg("bits", kEntryBits), arg("unit", kRank), arg("first_delete", kIsDelete * kRank),
        arg("mask", kRank - 1), arg("verdicts", verdicts),
        arg("hash_of_least", value_of_least("hash", "code")), arg("split", split),
        arg("splits", splits), arg("split_after", split_after), arg("order", order("seq")));
  }

  void merge_timelines() {
    make_table("merge", "won", "SELECT CAST(NULL AS BIGINT) AS winner WHERE false");
    make_table("merge", "splits", "SELECT CAST(NULL AS BIGINT) AS splits WHERE false");
    make_table("merge", "line", timeline(false));
    check("merge",
          fmt::format("SELECT count(*), min({}) FROM {} AS l WHERE doubled", keys_text("l"),
                      table("line")),
          "AUTOCDC_INVALID_STATE.INVALID_TARGET_ROWS",
          "table " + plan_.target +
              " has two rows of one __START_AT for {count} of its keys, for example {example}" +
              repair_advice(plan_));
  }

  // Prints the timeline of some keys again, where a verdict changes it.
  void redo_keys(const std::string& which, const std::string& only_if) {
    make_table("merge", "redo", which);
    remove("merge", "line", table("redo"), keys_equal("r", "f"), only_if);
    append("merge", "line", timeline(true), only_if);
  }

  // Upserts of one key and sequence: the greatest values count.
  void settle_ties() {
    const std::string any_tied = fmt::format("SELECT count(*) FROM {} WHERE tied", table("line"));
    std::string tied_values;
    for (const size_t i : values_) tied_values += fmt::format("p.{}, ", column(i));
    // Rivals are the entry the timeline chose and the batch's entries at its place.
    make_table("merge", "tied",
               fmt::format(R"(
SELECT {t_keys}, t.seq, t.entry, t.rival, {values}row_number() OVER w AS standing, lag(t.rival) OVER w AS rival_before
FROM (SELECT {l_keys}, l.seq, l.entry, e.rowid AS rival
      FROM {line} AS l JOIN {payload} AS e ON {same_key} AND e.seq = l.seq
      WHERE l.tied AND e.src = {batch} AND e.kind = 1
      UNION ALL
      SELECT {l_keys}, l.seq, l.entry, l.entry FROM {line} AS l WHERE l.tied AND l.src <> {batch}) AS t
JOIN {payload} AS p ON p.rowid = t.rival
WINDOW w AS (PARTITION BY {t_keys}, t.seq ORDER BY {greatest_first}, p.src, p.rowid))",
                           arg("t_keys", keys("t")), arg("l_keys", keys("l")),
                           arg("line", table("line")), arg("payload", table("payload")),
                           arg("same_key", keys_equal("e", "l")), arg("batch", kFromBatch),
                           arg("values", tied_values), arg("greatest_first", greatest_first("p"))),
               any_tied);
    make_table("merge", "conflicts",
               fmt::format(R"(
SELECT DISTINCT {keys}, x.seq FROM {tied} AS x JOIN {tied} AS y ON y.rival = x.rival_before WHERE NOT {equal})",
                           arg("keys", keys("x")), arg("tied", table("tied")),
                           arg("equal", values_equal("x", "y"))),
               any_tied);
    append(
        "merge", "won",
        fmt::format("SELECT rival FROM {} WHERE standing = 1 AND rival <> entry", table("tied")));
    redo_keys(fmt::format("SELECT DISTINCT {} FROM {} WHERE standing = 1 AND rival <> entry",
                          keys(), table("tied")),
              fmt::format("SELECT count(*) FROM {}", table("won")));
  }

  // No hash decides: neighbours of equal hash are compared in full, and those that differ are
  // split.
  void verify_equal_neighbours() {
    if (tracked_.empty()) return;
    std::vector<std::string> differs;
    differs.reserve(tracked_.size());
    for (const size_t i : tracked_) {
      differs.push_back(not_equal("x." + column(i), "y." + column(i), plan_.columns[i].type));
    }
    append("merge", "splits",
           fmt::format(R"(
SELECT l.entry FROM (SELECT entry, before_entry FROM {line} WHERE before_entry IS NOT NULL) AS l
JOIN {payload} AS x ON x.rowid = l.entry JOIN {payload} AS y ON y.rowid = l.before_entry
WHERE {differs})",
                       arg("line", table("line")), arg("payload", table("payload")),
                       arg("differs", fmt::format("{}", fmt::join(differs, " OR ")))),
           fmt::format("SELECT count(before_entry) FROM {}", table("line")));
    redo_keys(fmt::format("SELECT DISTINCT {} FROM {} AS l JOIN {} AS x ON x.splits = l.entry",
                          keys("l"), table("line"), table("splits")),
              fmt::format("SELECT count(*) FROM {}", table("splits")));
  }

  // Every claim stands in the timeline, and every row of it but a key's first follows another one.
  void balance_timeline() {
    balance(
        "merge",
        {{"p", fmt::format("SELECT count(*) + count(end_seq) AS claims FROM {}", table("payload"))},
         {"k", fmt::format("SELECT count(*) AS n FROM {}", table("keys"))},
         {"l", fmt::format("SELECT coalesce(sum(claims), 0) AS claims, count(*) - "
                           "count(next_seq) AS firsts, count(CASE WHEN starts THEN 1 END) AS "
                           "starts, count(CASE WHEN ends THEN 1 END) AS ends FROM {}",
                           table("line"))}},
        {{"p.claims", "claims of events and rows", "l.claims", "in the timeline"},
         {"k.n", "keys", "l.firsts", "with a first event"},
         {"l.starts", "runs begin", "l.ends", "end"}});
  }

  // --- fold ------------------------------------------------------------------------------------

  // One row per run: its bounds, its last event, the target row that stood at its start. Of a run
  // of several events the last is the next bound of its key.
  void find_runs() {
    make_table(
        "fold", "runs",
        fmt::format(R"(
SELECT r.start_seq, r.stop_seq, r.last_entry, r.last_src, r.old_entry, p.end_seq AS old_stop, p.row_id AS old_row_id
FROM (SELECT seq AS start_seq, next_seq AS stop_seq, entry AS last_entry, src AS last_src, old_entry
      FROM {line} WHERE starts AND ends
      UNION ALL
      SELECT start_seq, stop_seq, last_entry, last_src, old_entry
      FROM (SELECT seq AS start_seq, lead(next_seq) OVER w AS stop_seq, lead(entry) OVER w AS last_entry,
                   lead(src) OVER w AS last_src, old_entry, starts
            FROM {line} WHERE starts <> ends
            WINDOW w AS (PARTITION BY {keys} ORDER BY {order} NULLS FIRST)) AS b
      WHERE starts) AS r
LEFT JOIN (SELECT rowid AS entry, end_seq, row_id FROM {payload} WHERE src = {target}) AS p ON p.entry = r.old_entry)",
                    arg("line", table("line")), arg("payload", table("payload")),
                    arg("keys", keys()), arg("order", order("seq")), arg("target", kFromTarget)));
  }

  // --- diff ------------------------------------------------------------------------------------

  // A run that had its start and end before keeps its row unless its last event is new and differs:
  // between two old bounds every old event belonged to that row, and its last one gave the values.
  void find_unchanged() {
    const std::string same_bounds =
        "r.old_entry IS NOT NULL AND r.old_stop IS NOT DISTINCT FROM r.stop_seq";
    make_table("diff", "kept",
               fmt::format("SELECT r.old_entry AS entry FROM {} AS r WHERE {} AND r.last_src <> {}",
                           table("runs"), same_bounds, kFromBatch));
    const std::string doubtful = fmt::format("{} AND r.last_src = {}", same_bounds, kFromBatch);
    append("diff", "kept",
           fmt::format(R"(
SELECT r.old_entry FROM (SELECT * FROM {runs} AS r WHERE {doubtful}) AS r
JOIN {payload} AS x ON x.rowid = r.last_entry JOIN {payload} AS y ON y.rowid = r.old_entry
WHERE {identical})",
                       arg("runs", table("runs")), arg("payload", table("payload")),
                       arg("doubtful", doubtful), arg("identical", values_identical("x", "y"))),
           fmt::format("SELECT count(*) FROM {} AS r WHERE {}", table("runs"), doubtful));
    // A row keeps its id while its primary key, keys and coalesce(start, end), stays.
    make_table("diff", "changed",
               fmt::format(R"(
SELECT r.start_seq, r.stop_seq, r.last_entry, CASE WHEN lives THEN r.old_entry END AS old_entry,
       CASE WHEN lives THEN r.old_row_id END AS old_row_id
FROM (SELECT *, start_seq IS NOT NULL OR stop_seq IS NOT DISTINCT FROM old_stop AS lives FROM {runs}) AS r
ANTI JOIN {kept} AS k ON k.entry = r.old_entry)",
                           arg("runs", table("runs")), arg("kept", table("kept"))));
  }

  // Rows of the target that were.
  std::string rows_before() const {
    return fmt::format("SELECT count(*) AS n FROM {} WHERE src = {}", table("payload"),
                       kFromTarget);
  }

  void balance_rows() {
    balance("diff",
            {{"l", fmt::format("SELECT count(*) AS n FROM {} WHERE starts", table("line"))},
             {"r", fmt::format("SELECT count(*) AS n, count(last_entry) AS whole FROM {}",
                               table("runs"))},
             {"k", fmt::format("SELECT count(*) AS n FROM {}", table("kept"))},
             {"c", fmt::format("SELECT count(*) AS n FROM {}", table("changed"))}},
            {{"l.n", "runs of the timeline", "r.n", "folded"},
             {"r.n", "runs", "r.whole", "with a last event"},
             {"r.n", "rows shall be", "(k.n + c.n)", "stay or are written"}});
  }

  // What the target does not tell: all events of runs of several, and deletes that end no run.
  static constexpr const char* kRequired = "(l.up AND NOT (l.starts AND l.ends) OR l.hidden)";

  void outputs() {
    const std::string user =
        user_columns_.empty()
            ? ""
            : fmt::format(" LEFT JOIN {} AS o ON o.rowid = r.old_entry", table("payload"));
    program_.target_new = fmt::format(
        "SELECT {row}, r.old_row_id AS __strandline_row_id, CAST(NULL AS BIGINT) AS "
        "__strandline_row_commit_version FROM {changed} AS r JOIN {payload} AS p ON p.rowid = "
        "r.last_entry{user}",
        arg("row",
            target_row("p",
                       [&](size_t i) { return kept_or_default(i, "o", "r.old_entry IS NULL"); },
                       {"r.start_seq", "r.stop_seq"})),
        arg("changed", table("changed")), arg("payload", table("payload")), arg("user", user));
    program_.target_dead = fmt::format(
        "SELECT p.row_file AS __strandline_file, p.row_pos AS __strandline_row FROM {} AS p ANTI "
        "JOIN {} AS k ON k.entry = p.rowid WHERE p.src = {}",
        table("payload"), table("kept"), kFromTarget);
    program_.state_new = fmt::format(
        "SELECT {} FROM {} AS l JOIN {} AS p ON p.rowid = l.entry WHERE l.src <> {} AND {}",
        state_row(), table("line"), table("payload"), kFromState, kRequired);
    program_.state_dead = fmt::format(
        "SELECT p.row_file AS __strandline_file, p.row_pos AS __strandline_row FROM {0} AS p ANTI "
        "JOIN (SELECT l.entry FROM {1} AS l WHERE l.src = {2} AND {3}) AS k ON k.entry = p.rowid "
        "WHERE p.src = {2}",
        table("payload"), table("line"), kFromState, kRequired);
    check_not_null_columns();
  }

  std::string state_row() const {
    std::vector<std::string> parts;
    for (const Field& field : plan_.state_schema.fields) {
      std::string value = typed_null(field.type);
      if (same_name(field.name, kStateSequence)) {
        value = "l.seq";
      } else if (same_name(field.name, kStateKind)) {
        value = "CAST(l.up AS TINYINT)";
      } else {
        for (size_t i = 0; i < plan_.columns.size(); ++i) {
          if (!same_name(plan_.columns[i].name, field.name)) continue;
          value = "p." + column(i);
          if (!plan_.columns[i].is_key) value = fmt::format("CASE WHEN l.up THEN {} END", value);
        }
      }
      parts.push_back(value + " AS " + quote_name(field.name));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
  }

  void metrics() {
    // Late is what lies below what was known of its key before the batch: starts and ends in the
    // target, events in the state.
    program_.metrics = fmt::format(
        R"(
SELECT
  (SELECT count(*) FROM {changed}) AS num_upserted_rows,
  d.n - (SELECT count(old_entry) FROM {changed}) AS num_deleted_rows,
  (SELECT count(*) FROM {payload} WHERE src = {batch}) AS num_input_rows,
  (SELECT count(*) FROM {payload} AS e
   JOIN (SELECT {keys}, max({order}) AS known
         FROM (SELECT {keys}, seq FROM {payload} WHERE src <> {batch}
               UNION ALL SELECT {keys}, end_seq FROM {payload} WHERE src = {target})
         WHERE seq IS NOT NULL GROUP BY ALL) AS k ON {same_key}
   WHERE e.src = {batch} AND {e_order} < k.known) AS num_late_rows,
  (SELECT count(*) FROM {conflicts}) AS num_sequence_conflicts,
  (SELECT min({text} || ', sequence = ' || {seq_text}) FROM {conflicts} AS x) AS conflict_example,
  d.n AS num_dead_rows
FROM (SELECT b.n - (SELECT count(*) FROM {kept}) AS n FROM ({before}) AS b) AS d)",
        arg("changed", table("changed")), arg("kept", table("kept")), arg("before", rows_before()),
        arg("payload", table("payload")), arg("batch", kFromBatch), arg("keys", keys()),
        arg("order", order("seq")), arg("target", kFromTarget),
        arg("same_key", keys_equal("e", "k")), arg("e_order", order("e.seq")),
        arg("conflicts", table("conflicts")), arg("text", keys_text("x")),
        arg("seq_text", as_literal("x.seq", plan_.sequence_type)));
  }

  std::vector<size_t> tracked_;
};

}  // namespace

Result<Program> make_scd2_program(const Dialect& dialect, const Plan& plan,
                                  const BatchRelations& relations, const ProgramOptions& options) {
  return Scd2Program(dialect, plan, relations, options).build();
}

}  // namespace strandline::cdc
