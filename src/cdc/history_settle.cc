// The programs whose rows come from several events: what meets at one moment (auto-cdc.md section
// 7).
#include "base/error.h"
#include "cdc/history_program.h"

namespace strandline::cdc {

using fmt::arg;

std::string HistoryProgram::covered() const {
  return fmt::format("(mark_now IS NOT NULL AND coalesce({} OR (kind = 0 AND {} = {}), true))",
                     less("seq", "mark_now"), order("seq"), order("mark_now"));
}

void HistoryProgram::settle() {
  const std::string with_mark = truncates() ? ", " + table("mark") : "";
  std::string where = " WHERE true";
  if (truncates()) where += " AND NOT " + covered();
  if (is_edited()) where += " AND NOT " + overruled();
  std::string left_out;
  if (weighs()) {
    weigh();
    left_out = fmt::format(" ANTI JOIN {} AS o ON o.entry = e.rowid", table("outdone"));
    where += " AND kind < 7";
  }
  make_table(
      "settle", "places",
      fmt::format(R"(
SELECT entry, {at_key}, kind, src, count(*) OVER (PARTITION BY {at_key}, kind) AS n
FROM (SELECT e.rowid AS entry, {at_key}, kind, src,
             max(CASE WHEN kind >= 4 THEN 1 ELSE 0 END) OVER (PARTITION BY {at_key}) AS by_hand,
             min(src) OVER (PARTITION BY {at_key}, kind) AS first_src
      FROM {entries} AS e{left_out}{with_mark}{where})
WHERE (by_hand = 0 OR kind >= 4) AND NOT (src = {target} AND first_src = {state}))",
                  arg("at_key", key_and_moment()), arg("entries", table("entries")),
                  arg("left_out", left_out), arg("with_mark", with_mark), arg("where", where),
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
  make_table("settle", "tied",
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

void HistoryProgram::merge_leaf(const Leaf& leaf, size_t j, Merging* merging) const {
  const std::string value = fmt::format("l{}", j);
  const std::string rank = rank_value(value, leaf.type);
  merging->inner += fmt::format(", {} AS l{}, {} AS g{}", leaf.value, j, given(leaf, "e"), j);
  merging->merged += fmt::format(", {} AS l{}, max(CASE WHEN g{} THEN 1 ELSE 0 END) = 1 AS g{}",
                                 greatest(value, leaf.type), j, j, j);
  merging->unpacked += fmt::format(", l{0}, g{0}", j);
  merging->conflict += fmt::format(
      " OR (count({0}) > 0 AND max(CASE WHEN g{1} AND {0} IS NULL THEN 1 ELSE 0 END) = 1) OR "
      "min({2}) IS DISTINCT FROM max({2})",
      value, j, rank);
}

void HistoryProgram::merge_column(const LeafRange& range, const std::vector<Leaf>& here,
                                  Merging* merging) const {
  const DataType& type = plan_.columns[range.column].type;
  const std::string value = "v" + std::to_string(range.column);
  const std::string is_given = fmt::format("h{}", range.column);
  const std::string rank = rank_value(value, type);
  merging->inner += fmt::format(", CASE WHEN {0} THEN e.{1} END AS {2}, {0} AS {3}",
                                given_any(range, here, "e"), column(range.column), value, is_given);
  // What is carried: the value, and of each leaf whether it is given.
  Dialect::Members box{{"v", value}};
  Dialect::Parts by{fmt::format("CASE WHEN {} THEN 1 ELSE 0 END", is_given), rank};
  if (has_look_alikes(type)) by.push_back(spelling(value));
  for (size_t j = range.first; j < range.end; ++j) {
    merging->inner +=
        fmt::format(", CASE WHEN {} THEN 1 ELSE 0 END AS g{}", given(here[j], "e"), j);
    box.emplace_back(fmt::format("g{}", j), fmt::format("g{}", j));
    by.push_back(fmt::format("g{}", j));
  }
  const std::string winner = fmt::format("x{}", range.column);
  merging->merged +=
      fmt::format(", {} AS {}", dialect_.box_of_greatest(dialect_.pack(box), by), winner);
  size_t j = range.first;
  for (const Leaf& leaf : leaves_of(*this, "", dialect_.member(winner, "v"), type)) {
    merging->unpacked += fmt::format(", {} AS l{}, {} = 1 AS g{}", leaf.value, j,
                                     dialect_.member(winner, fmt::format("g{}", j)), j);
    ++j;
  }
  merging->conflict += fmt::format(
      " OR (count({0}) > 0 AND max(CASE WHEN {1} AND {0} IS NULL THEN 1 ELSE 0 END) = 1) OR "
      "min({2}) IS DISTINCT FROM max({2})",
      value, is_given, rank);
}

void HistoryProgram::merge_partial_events() {
  const std::string any_tied =
      fmt::format("SELECT count(*) FROM {} WHERE n > 1 AND kind = 3", table("places"));
  const std::vector<Leaf> here = leaves("e");
  Merging merging;
  merging.conflict = "false";
  for (const LeafRange& range : leaf_ranges()) {
    if (settles_whole(range.column)) {
      merge_column(range, here, &merging);
    } else {
      for (size_t j = range.first; j < range.end; ++j) merge_leaf(here[j], j, &merging);
    }
  }
  make_table("settle", "merged",
             fmt::format(R"(
SELECT {at_key}, known_entry, conflict{unpacked}
FROM (SELECT {at_key}, min(CASE WHEN src = {state} THEN entry END) AS known_entry, {conflict} AS conflict{merged}
      FROM (SELECT {p_key}, p.src, p.entry{inner} FROM {places} AS p JOIN {entries} AS e ON e.rowid = p.entry
            WHERE p.n > 1 AND p.kind = 3)
      GROUP BY {at_key}))",
                         arg("at_key", key_and_moment()), arg("p_key", key_and_moment("p")),
                         arg("state", kFromState), arg("conflict", "(" + merging.conflict + ")"),
                         arg("merged", merging.merged), arg("inner", merging.inner),
                         arg("unpacked", merging.unpacked), arg("places", table("places")),
                         arg("entries", table("entries"))),
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

std::string HistoryProgram::same_patch(const std::string& m, const std::string& k) const {
  std::string same = "true";
  size_t j = 0;
  for (const Leaf& leaf : leaves(k)) {
    same += fmt::format(" AND {}.g{} = {} AND {}", m, j, given(leaf, k),
                        identical(fmt::format("{}.l{}", m, j), leaf.value, leaf.type));
    ++j;
  }
  return same;
}

void HistoryProgram::add_patches(const char* stage, const char* from, int src,
                                 const std::string& where, const std::string& only_if) {
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

void HistoryProgram::find_changed() {
  if (is_bitemporal()) {
    make_table("settle", "changed",
               fmt::format("SELECT {}, {} AS since FROM {} WHERE src >= {} GROUP BY {}", keys(),
                           value_of_least("sys", system_order("sys")), table("chosen"), kFromBatch,
                           keys()));
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

std::string HistoryProgram::of_changed(const std::string& from) const {
  return fmt::format("{} AS r SEMI JOIN {} AS k ON {}", from, table("changed"),
                     keys_equal("r", "k"));
}

}  // namespace strandline::cdc
