// The programs whose rows come from several events: rows changed by hand (auto-cdc.md section 8).
#include "base/error.h"
#include "cdc/history_program.h"

namespace strandline::cdc {

using fmt::arg;

std::string HistoryProgram::hand_bounds() const {
  if (is_scd1()) return shown_sequence() + " AS seq, ";
  return fmt::format("{} AS start_seq, {} AS stop_seq, ",
                     normal_zero(target_column(kStartAt), plan_.sequence_type),
                     normal_zero(target_column(kEndAt), plan_.sequence_type));
}

std::string HistoryProgram::known_sequences() const {
  // What the target implies, it implies of the row as it is now; the old one counts.
  return fmt::format(
      "SELECT {}, e.seq FROM {} AS e JOIN {} AS k ON {} WHERE e.src < {} AND NOT (e.src = {} AND "
      "e.stored = {}) UNION ALL SELECT {}, seq FROM {} WHERE change < 0",
      keys("e"), table("entries"), table("edited"), keys_equal("e", "k"), kFromBatch, kFromTarget,
      kNotStored, keys(), table("hand_rows"));
}

void HistoryProgram::take_in_edited_rows() {
  std::string known = known_sequences();
  if (truncates()) {
    known += fmt::format(" UNION ALL SELECT {}, mark_before FROM {} AS k, {}", keys("k"),
                         table("edited"), table("mark"));
  }
  const auto of_row = [](size_t i) { return "r." + column(i); };
  const std::string values = owned("k", of_row, of_row);
  append("load", "entries",
         entry(values, "s.seq", "CASE WHEN r.row_file IS NULL THEN 5 ELSE 4 END",
               std::to_string(kByHand), no_nulls(), std::to_string(kNotStored), kNoPosition,
               fmt::format("{} AS k LEFT JOIN {} AS r ON {} LEFT JOIN (SELECT {}, {} AS seq FROM "
                           "({}) GROUP BY {}) AS s ON {}",
                           table("edited"), table("rows"), keys_equal("k", "r"), keys(),
                           value_of_greatest("seq", order("seq")), known, keys(),
                           keys_equal("k", "s"))));
}

std::string HistoryProgram::made_by_hand(const std::string& rows) const {
  return fmt::format(
      "(SELECT DISTINCT {}, start_seq, true AS is_new FROM {} WHERE change > 0) AS h ON {} AND "
      "h.start_seq IS NOT "
      "DISTINCT FROM {}.start_seq",
      keys(), table("hand_rows"), keys_equal("h", rows), rows);
}

void HistoryProgram::undo_edits() {
  make_table(
      "load", "told",
      fmt::format("SELECT {}r.start_seq, r.stop_seq FROM {} AS r ANTI JOIN {} UNION ALL SELECT "
                  "{}start_seq, stop_seq FROM {} WHERE change < 0",
                  columns(owned_, "r"), table("rows"), made_by_hand("r"), columns(owned_),
                  table("hand_rows")));
}

void HistoryProgram::take_in_edited_versions() {
  make_table("load", "versions",
             fmt::format(R"(
SELECT r.*, coalesce(h.is_new, false) AS is_new
FROM (SELECT {columns}r.start_seq, r.stop_seq, lead(r.start_seq) OVER (PARTITION BY {r_keys} ORDER BY {start} NULLS FIRST) AS next_start
      FROM {rows} AS r SEMI JOIN {edited} AS k ON {r_is_k}) AS r
LEFT JOIN {made})",
                         arg("columns", columns(carried_, "r")), arg("r_keys", keys("r")),
                         arg("start", order("r.start_seq")), arg("rows", table("rows")),
                         arg("edited", table("edited")), arg("r_is_k", keys_equal("r", "k")),
                         arg("made", made_by_hand("r"))));
  // A row ends where the next one begins.
  const std::string is_cut =
      fmt::format("(next_start IS NOT NULL AND (stop_seq IS NULL OR {} <= {}))",
                  order("next_start"), order("stop_seq"));
  make_table("load", "spans",
             fmt::format(R"(
SELECT {keys}, start_seq, CASE WHEN {is_cut} THEN next_start ELSE stop_seq END AS stop_seq, true AS stands, {is_cut} AS is_cut
FROM {versions} WHERE is_new
UNION ALL SELECT {keys}, start_seq, stop_seq, false, false FROM {hand_rows} WHERE change < 0)",
                         arg("keys", keys()), arg("is_cut", is_cut),
                         arg("versions", table("versions")), arg("hand_rows", table("hand_rows"))));
  const auto inside = [&](const std::string& seq) {
    return fmt::format(
        "({0} IS NOT NULL AND (s.start_seq IS NULL OR {1} < {2}) AND (s.stop_seq IS NULL OR {2} "
        "< "
        "{3}))",
        seq, order("s.start_seq"), order(seq), order("s.stop_seq"));
  };
  const std::string nothing =
      owned("r", [&](size_t i) { return typed_null(plan_.columns[i].type); });
  make_table("load", "hand",
             fmt::format(R"(
SELECT {columns}start_seq AS seq, 4 AS kind, {no_nulls} AS nulls FROM {versions} WHERE is_new
UNION ALL
SELECT {nothing}r.seq, 5, {no_nulls} FROM (
  SELECT {keys}, stop_seq AS seq FROM {spans} WHERE stands AND NOT is_cut AND stop_seq IS NOT NULL
  UNION
  SELECT {h_keys}, h.start_seq FROM {spans} AS h ANTI JOIN {versions} AS v ON {v_is_h} AND v.start_seq IS NOT DISTINCT FROM h.start_seq
  ANTI JOIN (SELECT * FROM {spans} WHERE stands) AS s ON {s_is_h} AND {inside}
  WHERE NOT h.stands) AS r)",
                         arg("columns", columns(carried_)), arg("versions", table("versions")),
                         arg("nothing", nothing), arg("keys", keys()), arg("spans", table("spans")),
                         arg("h_keys", keys("h")), arg("v_is_h", keys_equal("v", "h")),
                         arg("s_is_h", keys_equal("s", "h")), arg("inside", inside("h.start_seq")),
                         arg("no_nulls", no_nulls())));
  supersede(inside("e.seq"));
  append("load", "entries",
         entry(columns(carried_), "seq", "kind", std::to_string(kByHand), "nulls",
               std::to_string(kNotStored), kNoPosition, table("hand")));
}

void HistoryProgram::supersede(const std::string& inside) {
  const std::string at_key = key_and_moment("e");
  // The state's word counts where the target tells the same event. Where a hand said something
  // before, events were of no account and are not told apart.
  make_table("load", "covered",
             fmt::format(R"(
SELECT entry, {at}, kind, src = min(src) OVER (PARTITION BY {at}, kind) AS is_first,
       max(CASE WHEN kind IN (4, 5, 6) THEN 1 ELSE 0 END) OVER (PARTITION BY {at}) = 1 AS by_hand
FROM (SELECT DISTINCT e.rowid AS entry, {at_key}, e.kind, e.src
      FROM {entries} AS e JOIN {spans} AS s ON {s_is_e} AND {inside} WHERE e.src < {batch}) AS e
ANTI JOIN {hand} AS h ON {h_is_e})",
                         arg("at", key_and_moment()), arg("at_key", at_key),
                         arg("entries", table("entries")), arg("spans", table("spans")),
                         arg("s_is_e", keys_equal("s", "e")), arg("inside", inside),
                         arg("batch", kFromBatch), arg("hand", table("hand")),
                         arg("h_is_e", same_moment("h", "e"))));
  append("load", "hand",
         fmt::format(R"(
SELECT {nothing}r.seq, 6, {no_nulls} FROM (SELECT DISTINCT {at} FROM {covered} WHERE by_hand) AS r
UNION ALL
SELECT {carried}e.seq, CASE c.kind WHEN 0 THEN 7 WHEN 1 THEN 8 WHEN 3 THEN 9 ELSE c.kind END, e.nulls
FROM {covered} AS c JOIN {entries} AS e ON e.rowid = c.entry WHERE c.is_first AND NOT c.by_hand)",
                     arg("nothing",
                         owned("r", [&](size_t i) { return typed_null(plan_.columns[i].type); })),
                     arg("no_nulls", no_nulls()), arg("at", key_and_moment()),
                     arg("covered", table("covered")), arg("carried", columns(carried_, "e")),
                     arg("entries", table("entries"))));
}

void HistoryProgram::weigh() {
  make_table("settle", "superseded",
             fmt::format("SELECT {}e.seq, e.kind, e.nulls, e.rowid AS entry FROM {} AS e WHERE "
                         "e.kind >= 7{}",
                         columns(owned_, "e"), table("entries"),
                         is_edited() ? " AND NOT " + overruled() : ""));
  const std::string any = fmt::format("SELECT count(*) FROM {}", table("superseded"));
  make_table(
      "settle", "outdone",
      fmt::format(R"(
SELECT DISTINCT e.rowid AS entry FROM {entries} AS e JOIN {superseded} AS k ON {same_moment}
WHERE e.src = {batch} AND ((e.kind = 0 AND k.kind IN (7, 8)) OR (e.kind = 3 AND k.kind = 9)
                        OR (e.kind = 1 AND k.kind = 8 AND NOT ({greater} AND NOT {equal}))))",
                  arg("entries", table("entries")), arg("superseded", table("superseded")),
                  arg("same_moment", same_moment("e", "k")), arg("batch", kFromBatch),
                  arg("greater", values_greater("e", "k")), arg("equal", values_equal("e", "k"))),
      any);
  if (fills()) add_what_wins(any);
}

void HistoryProgram::add_what_wins(const std::string& only_if) {
  const std::vector<Leaf> news = leaves("e"), known = leaves("k");
  std::string wins, patch, any;
  const auto add_win = [&](size_t j, const std::string& known_gives, const std::string& is_greater,
                           const std::string& news_gives) {
    wins += fmt::format(
        ", max(CASE WHEN {} AND NOT {} THEN 1 ELSE 0 END) = 0 AND max(CASE WHEN {} THEN 1 ELSE 0 "
        "END) = 1 AS b{}",
        known_gives, is_greater, news_gives, j);
  };
  for (const LeafRange& range : leaf_ranges()) {
    const std::string of_column = column(range.column);
    for (size_t j = range.first; j < range.end; ++j) {
      std::string gives = fmt::format("w.b{}", j);
      if (settles_whole(range.column)) {
        add_win(j, given_any(range, known, "k"),
                greater("e." + of_column, "k." + of_column, plan_.columns[range.column].type),
                given(news[j], "e"));
      } else {
        add_win(j, given(known[j], "k"), greater(news[j].value, known[j].value, news[j].type),
                given(news[j], "e"));
        // A struct is where one of its fields is.
        for (size_t i = j + 1; news[j].is_struct && i < range.end; ++i) {
          if (news[i].path.starts_with(news[j].path + "."))
            gives += fmt::format(" OR (w.b{} AND ({}) IS NOT NULL)", i, news[i].value);
        }
      }
      patch += fmt::format(", CASE WHEN {0} THEN {1} END AS l{2}, ({0}) AS g{2}", gives,
                           news[j].value, j);
      any += fmt::format("{}w.b{}", j == 0 ? "" : " OR ", j);
    }
  }
  if (news.empty()) return;
  make_table("settle", "winning",
             fmt::format(R"(
SELECT e.rowid AS entry{wins} FROM {entries} AS e JOIN {superseded} AS k ON {same_moment}
WHERE e.src = {batch} AND e.kind = 3 AND k.kind = 9 GROUP BY e.rowid)",
                         arg("wins", wins), arg("entries", table("entries")),
                         arg("superseded", table("superseded")),
                         arg("same_moment", same_moment("e", "k")), arg("batch", kFromBatch)),
             only_if);
  make_table("settle", "rest",
             fmt::format("SELECT {}{} FROM {} AS e JOIN {} AS w ON w.entry = e.rowid WHERE {}",
                         key_and_moment("e"), patch, table("entries"), table("winning"), any),
             only_if);
  add_patches("settle", "rest", kTrimmed, "", only_if);
}

std::string HistoryProgram::overruled() const {
  const std::string same = is_scd1()
                               ? keys_equal("h", "e")
                               : keys_equal("h", "e") + " AND h.seq IS NOT DISTINCT FROM e.seq";
  return fmt::format("(e.src < {} AND EXISTS (SELECT 1 FROM {} AS h WHERE {}))", kFromBatch,
                     table(is_scd1() ? "edited" : "hand"), same);
}

}  // namespace strandline::cdc
