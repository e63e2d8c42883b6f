#include "cdc/snapshot_program.h"

#include "base/error.h"
#include "cdc/program_builder.h"

namespace strandline::cdc {

namespace {

using fmt::arg;

// c<i> are the snapshot's values, and the user's columns of the target; o<i> the target's values.
std::string old_column(size_t index) { return fmt::format("o{}", index); }

constexpr const char* kSameRow = "x.row_file = t.row_file AND x.row_pos = t.row_pos";

std::string snapshot_error(const char* sub_code) {
  return std::string("APPLY_CHANGES_FROM_SNAPSHOT_ERROR.") + sub_code;
}

class SnapshotBuilder : public ProgramBuilder {
 public:
  SnapshotBuilder(const Plan& plan, const BatchRelations& relations, const SnapshotFacts& facts)
      : ProgramBuilder(duckdb_dialect(), plan, relations, options_of()), facts_(facts) {}

  Result<Program> build() override {
    SL_TRY(print_defaults());
    read_snapshot();
    find_cuts();
    find_differences();
    compared_ = program_.steps.size();
    check_keys();
    check_history();
    check_deletes();
    check_starts();
    balance_partners();
    outputs();
    metrics();
    return std::move(program_);
  }

  Result<SnapshotProgram> build_all() {
    SnapshotProgram all;
    SL_ASSIGN(all.program, build());
    all.compared = compared_;
    if (!facts_.has_expectations) return all;
    std::string names;
    for (size_t i = 0; i < plan_.columns.size(); ++i) {
      if (!plan_.columns[i].source) continue;
      names += fmt::format("{} AS {}, ", column(i), quote_name(plan_.columns[i].name));
    }
    all.upserts =
        fmt::format("SELECT {}rowid AS {} FROM {} WHERE here", names, kUpsertRow, differences_);
    all.keep = fmt::format("DELETE FROM {} WHERE here AND rowid NOT IN ({{rows}})", differences_);
    return all;
  }

 private:
  static const ProgramOptions& options_of() {
    static const ProgramOptions options;
    return options;
  }
  bool keeps_history() const { return plan_.scd_type == ScdType::kType2; }

  // The snapshot's rows: c<i> of every owned column, null where the source has none, and `here`.
  void read_snapshot() {
    const std::string rows = fmt::format("SELECT {}true AS here{} FROM {} AS __strandline_source",
                                         source_values(), emptied_flag(), relations_.source);
    if (facts_.copies_source) make_table("read", "snapshot", rows);
    snapshot_ = facts_.copies_source ? table("snapshot") : "(" + rows + ")";
    tell_emptied(snapshot_);
    if (!facts_.is_first) return;
    check(
        "read",
        fmt::format("SELECT CASE WHEN count(*) = 0 THEN 1 ELSE 0 END, NULL FROM (SELECT here FROM "
                    "{} LIMIT 1)",
                    snapshot_),
        snapshot_error("FIRST_SNAPSHOT_EMPTY"),
        "it is the first one for " + plan_.target +
            " and has no rows, so nothing was written: look whether the source is complete and run "
            "again");
  }

  // All that a row of the target is written again from.
  std::vector<size_t> kept_columns() const {
    std::vector<size_t> columns = keys_;
    columns.insert(columns.end(), values_.begin(), values_.end());
    columns.insert(columns.end(), user_columns_.begin(), user_columns_.end());
    return columns;
  }

  // The target's rows that no later row of their key has replaced.
  std::string current_rows() const {
    const std::vector<size_t> columns = kept_columns();
    if (!keeps_history()) return "(" + read_target(columns) + ")";
    if (!mends_history()) {
      return fmt::format("(SELECT * FROM ({}) WHERE end_at IS NULL)",
                         read_target(columns, intervals()));
    }
    return fmt::format("(SELECT t.* FROM ({}) AS t ANTI JOIN {} AS x ON {} WHERE t.end_at IS NULL)",
                       read_target(columns, intervals()), table("cuts"), kSameRow);
  }

  // Whether the history may be one that no snapshots made.
  bool mends_history() const { return has_target() && keeps_history() && facts_.doubts_target; }

  std::string intervals() const {
    return fmt::format("{} AS start_at, {} AS end_at, ", target_column(kStartAt),
                       target_column(kEndAt));
  }

  // Keys and intervals of all the target's rows.
  std::string spans() const { return "(" + read_target(keys_, intervals()) + ")"; }

  // Rows that end where the next one of their key starts, not where they say (section 8).
  void find_cuts() {
    if (!mends_history()) return;
    make_table(
        "compare", "cuts",
        fmt::format("SELECT row_file, row_pos, next_start FROM (SELECT *, lead(start_at) OVER "
                    "(PARTITION BY {} ORDER BY {} NULLS FIRST) AS next_start FROM {}) WHERE "
                    "next_start IS NOT NULL AND (end_at IS NULL OR {})",
                    keys(), order("start_at"), spans(), less("next_start", "end_at")));
  }

  std::string tracked_equal(const std::string& a, const std::string& b) const {
    std::string text;
    for (const size_t i : values_) {
      if (!plan_.columns[i].tracked) continue;
      text += (text.empty() ? "" : " AND ") +
              equal(a + "." + column(i), b + "." + column(i), plan_.columns[i].type);
    }
    return text.empty() ? "true" : text;
  }

  // Rows of the snapshot that the target lacks or has otherwise, and rows of the target whose key
  // the snapshot lacks (here is null).
  void find_differences() {
    std::string columns;
    for (const size_t i : keys_) columns += fmt::format("s.{0} AS {0}, ", column(i));
    for (const size_t i : values_) columns += fmt::format("s.{0} AS {0}, ", column(i));
    const std::string nothing =
        "CAST(NULL AS INTEGER) AS row_file, CAST(NULL AS BIGINT) AS row_pos, CAST(NULL AS BIGINT) "
        "AS row_id";
    if (!has_target()) {
      for (const size_t i : user_columns_) {
        columns += fmt::format("{} AS {}, ", typed_null(plan_.columns[i].type), column(i));
      }
      const std::string all =
          fmt::format("SELECT {}s.here AS here, {} FROM {} AS s", columns, nothing, snapshot_);
      if (facts_.has_expectations) {
        make_table("compare", "differences", all);
        differences_ = table("differences");
      } else {
        differences_ = "(" + all + ")";
      }
      make_table("compare", "counts",
                 fmt::format("SELECT count(*) AS snapshot_rows, CAST(0 AS BIGINT) AS target_rows, "
                             "count(*) AS fresh, CAST(0 AS BIGINT) AS gone FROM {}",
                             snapshot_));
    } else {
      for (const size_t i : user_columns_) columns += fmt::format("t.{0} AS {0}, ", column(i));
      std::string history;
      if (keeps_history()) {
        for (const size_t i : keys_) {
          history += fmt::format("t.{} AS {}, ", column(i), old_column(i));
        }
        for (const size_t i : values_) {
          history += fmt::format("t.{} AS {}, ", column(i), old_column(i));
        }
        history += fmt::format("t.start_at, t.row_file IS NULL OR NOT ({}) AS opens, ",
                               tracked_equal("s", "t"));
      }
      make_table(
          "compare", "differences",
          fmt::format(R"(
SELECT {columns}{history}s.here, t.row_file, t.row_pos, t.row_id
FROM {snapshot} AS s FULL OUTER JOIN {target} AS t ON {same_key}
WHERE s.here IS NULL OR t.row_file IS NULL OR NOT {equal})",
                      arg("columns", columns), arg("history", history), arg("snapshot", snapshot_),
                      arg("target", current_rows()), arg("same_key", keys_equal("s", "t")),
                      arg("equal", values_equal("s", "t"))));
      differences_ = table("differences");
      make_table("compare", "counts",
                 fmt::format(R"(
SELECT (SELECT count(*) FROM {snapshot}) AS snapshot_rows, (SELECT count(*) FROM {target}) AS target_rows,
  count(*) FILTER (WHERE row_file IS NULL) AS fresh, count(*) FILTER (WHERE here IS NULL) AS gone
FROM {differences})",
                             arg("snapshot", snapshot_), arg("target", current_rows()),
                             arg("differences", differences_)));
    }
    make_table(
        "compare", "repeated",
        fmt::format("SELECT {keys} FROM {differences} WHERE row_file IS NULL AND NOT ({null}) "
                    "GROUP BY {keys} HAVING count(*) > 1",
                    arg("keys", keys()), arg("differences", differences_),
                    arg("null", null_key(""))));
  }

  std::string null_key(const std::string& alias) const {
    std::vector<std::string> parts;
    parts.reserve(keys_.size());
    for (const size_t i : keys_) {
      parts.push_back(fmt::format("{}{} IS NULL", alias.empty() ? "" : alias + ".", column(i)));
    }
    return fmt::format("{}", fmt::join(parts, " OR "));
  }

  // Keys that several rows of the relation have.
  std::string repeated_keys(const std::string& relation) const {
    return fmt::format(
        "SELECT count(*), min({}) FROM (SELECT {} FROM {} GROUP BY {} HAVING count(*) > 1) AS d",
        keys_text("d"), keys(), relation, keys());
  }

  void check_keys() {
    std::vector<std::string> names;
    names.reserve(plan_.keys.size());
    for (const Field& key : plan_.keys) names.push_back(key.name);
    check("validate",
          fmt::format("SELECT count(*), min({}) FROM {} AS d WHERE d.here AND ({})", keys_text("d"),
                      differences_, null_key("d")),
          "AUTOCDC_MICROBATCH_VALIDATION.NULL_KEY",
          "the key (" + fmt::format("{}", fmt::join(names, ", ")) +
              ") has a null in {count} of the snapshot's rows, for example in the one with "
              "{example}; nothing was written. Leave such rows out with WHERE in the snapshot's "
              "query, or drop them with an expectation of the target: CONSTRAINT name EXPECT (... "
              "IS NOT NULL) ON VIOLATION DROP ROW");
    check_empty_keys(differences_, "e.here", "snapshot's rows");
    const std::string code = snapshot_error("DUPLICATE_KEY_VIOLATION");
    const std::string message =
        "more than one row has the same key, for {count} of the keys, for example {example}; "
        "nothing "
        "was written. A snapshot has one row for a key: choose one of them in its query, or name "
        "more columns as KEYS";
    check("validate",
          fmt::format("SELECT count(*), min({}) FROM {} AS d", keys_text("d"), table("repeated")),
          code, message);
    if (!has_target()) return;
    // Rows that found a partner are as many on both sides, unless a key repeats.
    const std::string uneven = fmt::format(
        "SELECT (snapshot_rows - fresh) - (target_rows - gone) FROM {}", table("counts"));
    check("validate", repeated_keys(snapshot_), code, message, uneven);
    check(
        "validate", repeated_keys(current_rows()), "AUTOCDC_INVALID_STATE.INVALID_TARGET_ROWS",
        "table " + plan_.target +
            " has more than one current row for {count} of its keys, for example {example}, and " +
            to_string(plan_.scd_type) + " has one" +
            (keeps_history() ? " whose __END_AT is null" : " row for a key") + repair_advice(plan_),
        facts_.doubts_target ? "" : uneven);
  }

  // Rows of the snapshot and current rows of the table that found each other are as many on both
  // sides: no key repeats.
  void balance_partners() {
    if (!has_target()) return;
    balance("compare", {{"c", fmt::format("SELECT * FROM {}", table("counts"))}},
            {{"(c.snapshot_rows - c.fresh)", "rows of the snapshot that the table has",
              "(c.target_rows - c.gone)", "of the table that the snapshot has"}});
  }

  void check_history() {
    if (!mends_history()) return;
    const char* const code = "AUTOCDC_INVALID_STATE.INVALID_TARGET_ROWS";
    check("validate",
          fmt::format("SELECT count(*), min({}) FROM {} AS d WHERE d.start_at IS NOT NULL AND "
                      "d.end_at IS NOT NULL AND NOT ({})",
                      keys_text("d"), spans(), less("d.start_at", "d.end_at")),
          code,
          "table " + plan_.target +
              " has an __END_AT that is not after the __START_AT in {count} of its rows, for "
              "example in one with {example}: correct or delete it");
    check(
        "validate",
        fmt::format("SELECT count(DISTINCT example), min(example) FROM (SELECT {} AS example FROM "
                    "{} AS d GROUP BY {}, d.start_at HAVING count(*) > 1)",
                    keys_text("d"), spans(), keys("d")),
        code,
        "table " + plan_.target +
            " has two rows of one __START_AT for {count} of its keys, for example {example}" +
            repair_advice(plan_));
    check(
        "validate",
        fmt::format("SELECT count(*), min({}) FROM {} AS d SEMI JOIN {} AS n ON {} AND n.here AND "
                    "(n.row_file IS NULL OR n.opens) WHERE d.end_at IS NOT NULL AND {}",
                    keys_text("d"), spans(), differences_, keys_equal("d", "n"),
                    less(facts_.version, "d.end_at")),
        code,
        "table " + plan_.target +
            " has rows that end after the snapshot's version, where a new one begins: {count}, for "
            "example one with {example}: mend their __END_AT");
  }

  void check_deletes() {
    if (!has_target() || facts_.max_delete_ratio >= 1) return;
    check("validate",
          // A quotient is rounded as the ratio's text is, so that 3 of 10 are not above 0.3.
          fmt::format("SELECT CASE WHEN CAST(gone AS DOUBLE) / target_rows > CAST('{}' AS DOUBLE) "
                      "THEN gone ELSE 0 END, {} FROM {}",
                      facts_.max_delete_ratio, as_text("target_rows"), table("counts")),
          snapshot_error("DELETE_RATIO_EXCEEDED"),
          "it lacks {count} of the {example} current rows of " + plan_.target +
              fmt::format(", and pipelines.cdc.snapshot.maxDeleteRatio is {}: nothing was written "
                          "and the snapshot is not consumed. Look whether it is complete, or raise "
                          "the property",
                          facts_.max_delete_ratio));
  }

  // Only a row put there by hand begins at or after a version that comes.
  void check_starts() {
    if (!has_target() || !keeps_history()) return;
    std::vector<std::string> parts;
    parts.reserve(keys_.size());
    for (const size_t i : keys_) {
      parts.push_back(fmt::format("{} || coalesce({}, 'NULL')",
                                  quote_literal(plan_.columns[i].name + " = "),
                                  as_literal("d." + old_column(i), plan_.columns[i].type)));
    }
    check("validate",
          fmt::format(
              "SELECT count(*), min(concat_ws(', ', {})) FROM {} AS d WHERE d.row_file IS NOT NULL "
              "AND (d.here IS NULL OR d.opens) AND d.start_at IS NOT NULL AND NOT ({})",
              fmt::join(parts, ", "), differences_, less("d.start_at", facts_.version)),
          "AUTOCDC_INVALID_STATE.INVALID_TARGET_ROWS",
          "table " + plan_.target +
              " has current rows that begin at or after the snapshot's version and would end "
              "there, of {count} of its keys, for example {example}: mend their __START_AT");
  }

  void outputs() {
    const char* const place = "row_file AS __strandline_file, row_pos AS __strandline_row";
    const auto kept = [](size_t i) { return "d." + column(i); };
    const std::string no_version = "CAST(NULL AS BIGINT) AS __strandline_row_commit_version";
    program_.target_dead =
        fmt::format("SELECT {} FROM {} WHERE row_file IS NOT NULL", place, differences_);
    if (mends_history()) {
      program_.target_dead += fmt::format(" UNION ALL SELECT {} FROM {}", place, table("cuts"));
    }
    if (!keeps_history()) {
      program_.target_new = fmt::format(
          "SELECT {}, d.row_id AS __strandline_row_id, {} FROM {} AS d WHERE d.here",
          target_row("d", [&](size_t i) { return kept_or_default(i, "d", "d.row_file IS NULL"); }),
          no_version, differences_);
      check_not_null_columns();
      return;
    }
    const std::string version = fmt::format("CAST({} AS {})", facts_.version, sequence_type());
    const std::string no_end = typed_null(plan_.sequence_type);
    // A version that begins: of a new key or with other tracked values. No row was its own before.
    std::string fresh;
    for (const size_t i : keys_) fresh += column(i) + ", ";
    for (const size_t i : values_) fresh += column(i) + ", ";
    for (const size_t i : user_columns_) {
      fresh += fmt::format("{} AS {}, ", default_of(i), column(i));
    }
    const std::string opens = has_target() ? "here AND opens" : "here";
    program_.target_new = fmt::format(
        "SELECT {}, CAST(NULL AS BIGINT) AS __strandline_row_id, {} FROM (SELECT {}here FROM {} "
        "WHERE {}) AS d",
        target_row("d", kept, {version, no_end}), no_version, fresh, differences_, opens);
    if (has_target()) {
      // Other values that open no version: the row goes on with them.
      program_.target_new += fmt::format(
          " UNION ALL SELECT {}, d.row_id, {} FROM {} AS d WHERE d.here AND NOT d.opens",
          target_row("d", kept, {"d.start_at", no_end}), no_version, differences_);
      // What ends. Its row id goes with its primary key, keys and coalesce(start, end).
      std::string old;
      for (const size_t i : keys_) old += fmt::format("{} AS {}, ", old_column(i), column(i));
      for (const size_t i : values_) old += fmt::format("{} AS {}, ", old_column(i), column(i));
      for (const size_t i : user_columns_) old += column(i) + ", ";
      program_.target_new += fmt::format(
          " UNION ALL SELECT {}, CASE WHEN d.start_at IS NOT NULL THEN d.row_id END, {} FROM "
          "(SELECT {}start_at, row_id FROM {} WHERE row_file IS NOT NULL AND (here IS NULL OR "
          "opens)) AS d",
          target_row("d", kept, {"d.start_at", version}), no_version, old, differences_);
    }
    if (mends_history()) {
      program_.target_new += fmt::format(
          " UNION ALL SELECT {}, CASE WHEN d.start_at IS NOT NULL THEN d.row_id END, {} FROM "
          "(SELECT t.*, x.next_start FROM ({}) AS t JOIN {} AS x ON {}) AS d",
          target_row("d", kept, {"d.start_at", "d.next_start"}), no_version,
          read_target(kept_columns(), intervals()), table("cuts"), kSameRow);
    }
    check_not_null_columns();
  }

  void metrics() {
    // A row that ends is a row that changes: the history loses none.
    std::string upserted = fmt::format("SELECT count(*) FROM {} WHERE here", differences_);
    std::string deleted = "CAST(0 AS BIGINT)";
    if (has_target() && keeps_history()) {
      upserted = fmt::format(
          "SELECT count(*) + count(*) FILTER (WHERE here AND opens AND row_file IS NOT NULL) FROM "
          "{}",
          differences_);
      if (mends_history()) upserted += fmt::format(") + (SELECT count(*) FROM {}", table("cuts"));
    } else if (has_target()) {
      deleted = fmt::format("(SELECT count(*) FROM {} WHERE here IS NULL)", differences_);
    }
    std::string dead = "CAST(0 AS BIGINT)";
    if (has_target()) {
      dead = fmt::format("(SELECT count(row_file) FROM {})", differences_);
      if (mends_history()) dead += fmt::format(" + (SELECT count(*) FROM {})", table("cuts"));
    }
    program_.metrics = fmt::format(
        "SELECT ({}) AS num_upserted_rows, {} AS num_deleted_rows, snapshot_rows AS "
        "num_input_rows, CAST(0 AS BIGINT) AS num_late_rows, CAST(0 AS BIGINT) AS "
        "num_sequence_conflicts, NULL AS conflict_example, {} AS num_dead_rows FROM {}",
        upserted, deleted, dead, table("counts"));
  }

  const SnapshotFacts& facts_;
  std::string snapshot_;     // relation of its rows
  std::string differences_;  // relation; a table where there is a target
  size_t compared_ = 0;
};

}  // namespace

Result<SnapshotProgram> make_snapshot_program(const Plan& plan, const BatchRelations& relations,
                                              const SnapshotFacts& facts) {
  for (const Field& field : plan.target_schema.fields) SL_TRY(duckdb_dialect().check(field));
  return SnapshotBuilder(plan, relations, facts).build_all();
}

}  // namespace strandline::cdc
