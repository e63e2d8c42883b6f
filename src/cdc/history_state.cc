// The programs whose rows come from several events: what changed, and what the state must have.
#include "base/error.h"
#include "cdc/history_program.h"

namespace strandline::cdc {

using fmt::arg;

void HistoryProgram::find_notes() {
  const std::string hands =
      fmt::format("(SELECT {}, seq FROM {} WHERE kind = 4)", keys(), table("entries"));
  if (is_scd1()) {
    make_table("diff", "noted",
               fmt::format(R"(
SELECT {keys}, entry
FROM (SELECT {keys}, entry, {is_last} AS is_last
      FROM (SELECT {m_keys}, m.seq, CASE WHEN e.kind = 4 THEN m.w END AS entry, e.kind = 4 OR m.d IS NOT NULL AS counts
            FROM {moments} AS m LEFT JOIN {entries} AS e ON e.rowid = m.w)
      WHERE counts)
WHERE is_last AND entry IS NOT NULL)",
                           arg("keys", keys()), arg("is_last", last_of(keys(), by_moment())),
                           arg("m_keys", keys("m")), arg("moments", table("moments")),
                           arg("entries", table("entries"))));
    make_table("diff", "annotated",
               fmt::format("SELECT r.rowid AS old FROM {} AS r SEMI JOIN {} AS h ON {}",
                           table("rows"), hands, keys_equal("h", "r")));
    return;
  }
  make_table("diff", "noted",
             fmt::format(R"(
SELECT {keys}, start_seq, entry
FROM (SELECT {l_keys}, l.start_seq, l.w AS entry, {is_last} AS is_last
      FROM {line} AS l JOIN {entries} AS e ON e.rowid = l.w
      WHERE l.up AND e.kind = 4)
WHERE is_last)",
                         arg("keys", keys()), arg("l_keys", keys("l")),
                         arg("is_last",
                             last_of(keys("l") + ", l.start_seq", order("l.seq") + " NULLS FIRST")),
                         arg("line", table("line")), arg("entries", table("entries"))));
  make_table("diff", "annotated",
             fmt::format(R"(
SELECT DISTINCT r.rowid AS old FROM {rows} AS r JOIN {hands} AS h ON {same_key}
WHERE h.seq IS NOT DISTINCT FROM r.start_seq
   OR (h.seq IS NOT NULL AND (r.start_seq IS NULL OR {start} < {seq}) AND (r.stop_seq IS NULL OR {seq} < {stop})))",
                         arg("rows", table("rows")), arg("hands", hands),
                         arg("same_key", keys_equal("h", "r")), arg("start", order("r.start_seq")),
                         arg("seq", order("h.seq")), arg("stop", order("r.stop_seq"))));
}

void HistoryProgram::diff() {
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
  std::string notes, note_joins, same_notes;
  if (!noted_.empty()) {
    find_notes();
    notes = fmt::format(", x.entry AS note, o.old IS NOT NULL AND {} AND a.old IS NULL AS keeps",
                        lives);
    note_joins = fmt::format(
        "\nLEFT JOIN {} AS x ON {}{} LEFT JOIN {} AS u ON u.rowid = x.entry LEFT JOIN {} AS a ON "
        "a.old = o.old",
        table("noted"), keys_equal("n", "x"),
        is_scd1() ? "" : " AND n.start_seq IS NOT DISTINCT FROM x.start_seq", table("entries"),
        table("annotated"));
  }
  for (const size_t i : noted_) {
    const DataType& type = plan_.columns[i].type;
    const std::string here = "o." + column(i);
    same_notes +=
        fmt::format(" AND CASE WHEN x.entry IS NOT NULL THEN {} ELSE a.old IS NULL OR {} END",
                    identical("u." + column(i), here, type), identical(default_of(i), here, type));
  }
  make_table(
      "diff", "matched",
      fmt::format(R"(
SELECT n.rowid AS number, o.old AS old, CASE WHEN {lives} THEN o.row_id END AS row_id,
       o.old IS NOT NULL AND {lives} AS lives, o.old IS NOT NULL AND {same_ends} AND {identical}{same_notes} AS is_same{notes}
FROM {result} AS n LEFT JOIN (SELECT *, rowid AS old FROM {rows}) AS o ON {same_row}{note_joins})",
                  arg("lives", lives), arg("same_ends", same_ends), arg("same_notes", same_notes),
                  arg("notes", notes), arg("note_joins", note_joins),
                  arg("identical", values_identical("n", "o")), arg("result", table("result")),
                  arg("rows", table("rows")), arg("same_row", same_row)));
}

void HistoryProgram::find_needed() {
  const std::string chosen = of_changed(table("chosen"));
  if (is_bitemporal()) {
    make_table("diff", "needed", fmt::format("SELECT entry, false AS bare FROM {}", chosen));
    return;
  }
  if (is_scd1()) return find_needed_type1();
  std::string superseded;
  if (weighs()) {
    superseded =
        fmt::format("\nUNION ALL SELECT entry, false FROM {}", of_changed(table("superseded")));
  }
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
SELECT entry, false FROM {chosen} WHERE kind = 6{superseded})",
                         arg("superseded", superseded), arg("chosen", chosen),
                         arg("moments", table("moments")), arg("full", table("full_keys")),
                         arg("r_is_f", keys_equal("r", "f")), arg("line", table("line")),
                         arg("entries", table("entries")), arg("l_is_f", keys_equal("l", "f"))));
}

std::string HistoryProgram::still_gives(size_t j) {
  return fmt::format("coalesce(g{0} = max(g{0}) OVER k, false)", j);
}

void HistoryProgram::find_needed_type1() {
  std::string gives, kept, contributes = "false";
  const std::vector<Leaf> all = leaves("e");
  for (size_t j = 0; j < all.size(); ++j) {
    std::string last = still_gives(j);
    std::string value = fmt::format("CASE WHEN {} THEN l{}", last, j);
    // A struct is where one of its fields is. What it is itself a later event says, if this one
    // no longer does: kept is then what the fields need, the same whatever the event once gave.
    for (size_t i = j + 1; all[j].is_struct && i < all.size(); ++i) {
      if (!all[i].path.starts_with(all[j].path + ".")) continue;
      last += " OR " + still_gives(i);
      value += fmt::format(" WHEN {} AND l{} IS NOT NULL THEN true", still_gives(i), i);
    }
    last = "(" + last + ")";
    gives += fmt::format(", {} AS l{}, CASE WHEN {} THEN m.place END AS g{}", all[j].value, j,
                         given(all[j], "e"), j);
    kept += fmt::format(", {} END AS l{}, {} AS g{}", value, j, last, j);
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
  make_table("diff", "giving",
             fmt::format(R"(
SELECT {m_keys}, CASE WHEN k.entry IS NOT NULL AND {same} THEN k.entry ELSE e.rowid END AS p
FROM {patches} AS m JOIN {entries} AS e ON {m_is_e} AND e.src = {trimmed}
LEFT JOIN (SELECT *, rowid AS entry FROM {entries} WHERE src = {state} AND kind = 3) AS k ON {m_is_k})",
                         arg("m_keys", keys("m")), arg("same", same_patch("m", "k")),
                         arg("patches", table("patches")), arg("entries", table("entries")),
                         arg("m_is_e", same_moment("m", "e")), arg("m_is_k", same_moment("m", "k")),
                         arg("trimmed", kTrimmed), arg("state", kFromState)));
  // In the whole form the target tells the values, and often the sequence.
  std::string told = fmt::format(
      "(e.src = {} AND e.stored = {}){}", kFromTarget, kNotStored,
      plan_.sequence_is_column ? fmt::format(" OR (e.src = {} AND e.kind = 1)", kFromBatch) : "");
  // A row with notes keeps the entry that they are from, so its other entries stand beside that.
  std::string noted, with_notes;
  if (!noted_.empty()) {
    make_table("diff", "note_entries",
               fmt::format("SELECT {}, x.entry FROM {} AS x ANTI JOIN {} AS m ON {} AND m.w = "
                           "x.entry AND m.place = m.base",
                           keys("x"), table("noted"), table("counting"), keys_equal("x", "m")));
    noted = fmt::format("SELECT entry, true AS bare FROM {}\nUNION ALL\n", table("note_entries"));
    with_notes =
        fmt::format("\n  LEFT JOIN {} AS x ON {}", table("note_entries"), keys_equal("m", "x"));
    told = fmt::format("({}) AND x.entry IS NULL", told);
  }
  make_table("diff", "needed",
             fmt::format(R"(
{noted}SELECT p AS entry, false AS bare FROM {giving}
UNION ALL
SELECT entry, is_whole AND kind IN (1, 4) FROM (
  SELECT e.rowid AS entry, e.kind, {told} AS is_told, g.{key} IS NULL AS is_whole
  FROM {counting} AS m JOIN {entries} AS e ON e.rowid = coalesce(m.w, m.d)
  LEFT JOIN (SELECT DISTINCT {keys} FROM {giving}) AS g ON {m_is_g}{with_notes}
  WHERE m.place = m.base)
WHERE NOT (is_whole AND is_told))",
                         arg("noted", noted), arg("with_notes", with_notes),
                         arg("giving", table("giving")), arg("told", told),
                         arg("key", column(keys_.front())), arg("counting", table("counting")),
                         arg("entries", table("entries")), arg("keys", keys()),
                         arg("m_is_g", keys_equal("m", "g"))));
}

std::string HistoryProgram::stands() {
  return fmt::format("(e.stored = {} OR (e.stored = {} AND n.bare))", kStored,
                     kStoredWithoutValues);
}

std::string HistoryProgram::state_row(bool is_mark) const {
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
      for (const size_t i : carried_) {
        if (!same_name(plan_.columns[i].name, field.name)) continue;
        value = "e." + column(i);
        if (!plan_.columns[i].is_key) {
          value =
              fmt::format("CASE WHEN NOT n.bare AND e.kind NOT IN (0, 5, 6, 7) THEN {} END", value);
        }
      }
    }
    parts.push_back(value + " AS " + quote_name(field.name));
  }
  return join(parts);
}

}  // namespace strandline::cdc
