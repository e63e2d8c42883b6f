#include "cdc/history_program.h"

#include "base/error.h"

namespace strandline::cdc {

using fmt::arg;

Result<Program> HistoryProgram::build() {
  SL_TRY(print_defaults());
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
  balance_stages();
  outputs();
  metrics();
  return std::move(program_);
}

std::string HistoryProgram::old_rows() const {
  if (is_bitemporal()) {
    return fmt::format("(SELECT row_number AS old, row_file, row_pos FROM {})", table("active"));
  }
  return fmt::format("(SELECT r.rowid AS old, r.row_file, r.row_pos FROM {})",
                     of_changed(table("rows")));
}

void HistoryProgram::balance_stages() {
  std::vector<std::pair<std::string, std::string>> tables{
      {"n", fmt::format("SELECT count(*) AS n FROM {}", table("result"))},
      {"m", fmt::format("SELECT count(*) AS n, count(CASE WHEN is_same THEN old END) AS same, "
                        "count(DISTINCT CASE WHEN is_same THEN old END) AS olds FROM {}",
                        table("matched"))},
      {"c", fmt::format("SELECT count(CASE WHEN kind <> 6 THEN 1 END) AS n FROM {}",
                        of_changed(table("chosen")))},
      {"a", fmt::format("SELECT count(w) + count(p) + count(d) AS entries, count(*) AS n FROM {}",
                        table("moments"))},
      {"f", fmt::format("SELECT count(*) AS n FROM {}", table("filled"))}};
  std::vector<Counts> counts{{"c.n", "entries that count", "a.entries", "at the moments"},
                             {"n.n", "rows shall be", "m.n", "compared with the table"},
                             {"m.same", "rows stay", "m.olds", "of the table"}};
  if (!is_bitemporal()) counts.push_back({"a.n", "moments", "f.n", "filled"});
  if (!is_scd1()) {
    tables.emplace_back("l", fmt::format("SELECT count(*) AS n, count(CASE WHEN starts THEN 1 END) "
                                         "AS starts, count(CASE WHEN ends THEN 1 END) AS ends "
                                         "FROM {}",
                                         table("line")));
    counts.push_back({"f.n", "moments filled", "l.n", "in the timeline"});
    counts.push_back({"l.starts", "runs begin", "l.ends", "end"});
  }
  if (plan_.scd_type == ScdType::kType2) {
    counts.push_back({"l.ends", "runs of the timeline", "n.n", "folded"});
  }
  if (is_bitemporal()) {
    tables.emplace_back("s", fmt::format("SELECT count(*) AS n FROM {}", table("stretches")));
    counts.push_back({"s.n", "beliefs", "n.n", "folded"});
  }
  balance("diff", tables, counts);
}

void HistoryProgram::outputs() {
  std::vector<std::string> intervals;
  if (!is_scd1()) intervals = {"r.start_seq", "r.stop_seq"};
  if (is_bitemporal()) intervals.insert(intervals.end(), {"r.start_sys", "r.stop_sys"});
  std::string user =
      user_columns_.empty()
          ? ""
          : fmt::format(" LEFT JOIN {} AS o ON o.rowid = CASE WHEN m.lives THEN m.old END",
                        table("rows"));
  if (!noted_.empty())
    user += fmt::format(" LEFT JOIN {} AS u ON u.rowid = m.note", table("entries"));
  const auto user_value = [&](size_t i) {
    if (noted_.empty()) return kept_or_default(i, "o", "NOT m.lives");
    return fmt::format(
        "CASE WHEN m.note IS NOT NULL THEN u.{0} WHEN m.keeps THEN o.{0} ELSE {1} END", column(i),
        default_of(i));
  };
  program_.target_new = fmt::format(
      "SELECT {}, m.row_id AS __strandline_row_id, CAST(NULL AS BIGINT) AS "
      "__strandline_row_commit_version FROM (SELECT * FROM {} WHERE NOT is_same) AS m JOIN {} AS "
      "r ON r.rowid = m.number{}",
      target_row("r", user_value, intervals), table("matched"), table("result"), user);
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

void HistoryProgram::metrics() {
  std::string late = fmt::format("coalesce({}, false)", less("seq", "known"));
  std::string known =
      fmt::format("SELECT {}, seq FROM {} WHERE src < {}", keys(), table("entries"), kFromBatch);
  // A row that a hand took away was known, too.
  if (is_edited()) {
    known +=
        " UNION ALL " + (is_scd1() ? known_sequences()
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
  d.n - (SELECT count(*) FROM {matched} WHERE NOT is_same AND lives) AS num_deleted_rows,
  (SELECT count(*) FROM {events}) AS num_input_rows,
  (SELECT count(*) FROM (
     SELECT e.seq, k.known FROM {events} AS e
     LEFT JOIN (SELECT {keys}, {greatest} AS known FROM ({known}) GROUP BY {keys}) AS k
       ON e.kind <> 2 AND {same_key}) AS e{from_mark} WHERE {late}) AS num_late_rows,
  (SELECT count(*) FROM (SELECT DISTINCT * FROM {conflicts})) AS num_sequence_conflicts,
  (SELECT min({text} || ', sequence = ' || {seq_text}) FROM {conflicts} AS x) AS conflict_example,
  d.n AS num_dead_rows
FROM (SELECT (SELECT count(*) FROM {old_rows} AS o) - (SELECT count(*) FROM {matched} WHERE is_same) AS n) AS d)",
      arg("matched", table("matched")), arg("old_rows", old_rows()), arg("events", table("events")),
      arg("keys", keys()), arg("greatest", value_of_greatest("seq", order("seq"))),
      arg("known", known), arg("same_key", keys_equal("e", "k")), arg("from_mark", from_mark),
      arg("late", late), arg("conflicts", table("conflicts")), arg("text", keys_text("x")),
      arg("seq_text", as_literal("x.seq", plan_.sequence_type)));
}

Result<Program> make_history_program(const Dialect& dialect, const Plan& plan,
                                     const BatchRelations& relations,
                                     const ProgramOptions& options) {
  return HistoryProgram(dialect, plan, relations, options).build();
}

}  // namespace strandline::cdc
