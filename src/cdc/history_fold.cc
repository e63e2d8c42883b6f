// The programs whose rows come from several events: moments become rows (auto-cdc.md sections 4,
// 5).
#include "base/error.h"
#include "cdc/history_program.h"

namespace strandline::cdc {

using fmt::arg;

void HistoryProgram::line_up() {
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

void HistoryProgram::fill() {
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
      // Where a life begins each leaf has a box, of null if nothing is given.
      boxes += fmt::format(", coalesce({}, {}) AS b{}",
                           boxed_when(given(of_partial[j], "p"), of_partial[j].value),
                           boxed_when("l.begins", of_whole[j].value), j);
      lasts +=
          fmt::format(", {} AS f{}", unboxed(last_not_null(fmt::format("b{}", j), "so_far")), j);
    }
    const std::string along = dialect_.along(partition(), by_moment());
    query = fmt::format(R"(
SELECT {l_key}{place}, {values}l.up, l.w, l.p, l.d
FROM (SELECT *{lasts}
      FROM (SELECT {l_key}{place}, l.w IS NOT NULL OR l.p IS NOT NULL AS up, l.w, l.p, l.d{boxes}
            FROM (SELECT *, w IS NOT NULL OR d IS NOT NULL OR {is_first} AS begins FROM ({line}) WINDOW k AS ({along})) AS l
            LEFT JOIN {entries} AS w ON w.rowid = l.w LEFT JOIN {entries} AS p ON p.rowid = l.p)
      WINDOW so_far AS ({along} ROWS UNBOUNDED PRECEDING)) AS l)",
                        arg("l_key", key_and_moment("l")), arg("place", place),
                        arg("values", values_as([&](size_t i) { return filled.at(i); })),
                        arg("lasts", lasts), arg("is_first", is_first("k")), arg("along", along),
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

void HistoryProgram::keep_latest() {
  make_numbered(
      "fold", "result",
      fmt::format("SELECT {}, {}up FROM (SELECT *, {} AS is_last FROM {}) WHERE is_last "
                  "AND up",
                  keys(), columns(values_), last_of(keys(), by_moment()), table("filled")));
}

void HistoryProgram::fold_runs() {
  std::string before, equal_before;
  for (const size_t i : tracked_) {
    before += fmt::format(", lag({0}) OVER k AS b_{0}", column(i));
    equal_before += " AND " + equal(column(i), "b_" + column(i), plan_.columns[i].type);
  }
  const std::string along = dialect_.along(partition(), order("seq") + " NULLS FIRST");
  // start_seq is good of upserts.
  make_table(
      "fold", "line",
      fmt::format(
          R"(
SELECT {keys}{place}, {values}seq, up, w, d, starts, {start} AS start_seq,
       up AND NOT lead(continues, 1, false) OVER k AS ends, CASE WHEN NOT lead(is_first, 1, true) OVER k THEN lead(seq) OVER k END AS next_seq,
       NOT up AND NOT coalesce(up_before, false) AS hidden
FROM (SELECT *, up AND NOT continues AS starts
      FROM (SELECT *, coalesce(up AND up_before{equal_before}, false) AS continues
            FROM (SELECT *, CASE WHEN NOT is_first THEN was_up END AS up_before
                  FROM (SELECT *, {is_first} AS is_first, lag(up) OVER k AS was_up{before} FROM {filled} WINDOW k AS ({along})))))
WINDOW k AS ({along}))",
          arg("keys", keys()), arg("place", is_bitemporal() ? ", place" : ""),
          arg("values", columns(values_)),
          arg("start", unboxed(last_not_null(boxed_when("starts", "seq"),
                                             fmt::format("({} ROWS UNBOUNDED PRECEDING)", along)))),
          arg("equal_before", equal_before), arg("before", before), arg("is_first", is_first("k")),
          arg("filled", table("filled")), arg("along", along)));
}

void HistoryProgram::find_versions() {
  make_numbered("fold", "result",
                fmt::format("SELECT {}, {}start_seq, next_seq AS stop_seq FROM {} WHERE ends",
                            keys(), columns(values_), table("line")));
}

void HistoryProgram::find_beliefs() {
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
                  arg("begin", system_order("start_sys")), arg("known", system_order("known_sys")),
                  arg("s_is_a", keys_equal("s", "a"))));
  check("fold",
        fmt::format("SELECT count(*), min({}) FROM {} AS r WHERE is_lost", keys_text("r"),
                    table("result")),
        "AUTOCDC_INVALID_STATE.INVALID_TARGET_ROWS",
        "table " + plan_.target +
            " lacks what its state knows of ({count}), for example a row with {example}: a "
            "BITEMPORAL "
            "table cannot be changed by hand; restore it or run a full refresh of that table");
}

std::string HistoryProgram::first_of_run(const std::string& value) const {
  return unboxed(last_not_null(
      boxed_when("NOT continues", value),
      fmt::format("(PARTITION BY {}, start_seq ORDER BY place ROWS UNBOUNDED PRECEDING)", keys())));
}

}  // namespace strandline::cdc
