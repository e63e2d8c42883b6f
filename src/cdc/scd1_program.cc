// SCD type 1: of every key the latest event. The work is done on keys, sequences and row numbers;
// wide values are read only where equal sequences or unchanged rows must be told apart, and for the
// rows that are written.
#include "base/error.h"
#include "cdc/program_builder.h"

namespace strandline::cdc {

namespace {

class Scd1Program : public ProgramBuilder {
 public:
  using ProgramBuilder::ProgramBuilder;

  Result<Program> build() override {
    SL_ASSIGN(const std::string events, read_events());
    make_table("stage", "events", events);
    validate_events(table("events"));
    find_mark();
    rank_events();
    settle_ties();
    locate();
    compare_with_target();
    decide();
    sweep();
    outputs();
    metrics();
    return std::move(program_);
  }

 private:
  bool truncates() const { return plan_.state_spec.truncates; }
  std::string less(const std::string& a, const std::string& b) const {
    return fmt::format("({} < {})", order(a), order(b));
  }

  // The greatest truncate so far: "before" this batch and "now". One row, nulls for none.
  void find_mark() {
    if (!truncates()) return;
    make_table(
        "validate", "mark",
        fmt::format(
            "SELECT \"b\".\"seq\" AS \"before\", "
            "CASE WHEN \"n\".\"seq\" IS NULL OR NOT coalesce({}, true) THEN \"b\".\"seq\" ELSE "
            "\"n\".\"seq\" "
            "END AS \"now\", "
            "\"n\".\"seq\" IS NOT NULL AND coalesce({}, true) AS \"moved\" "
            "FROM (SELECT arg_max(\"seq\", {}) AS \"seq\" FROM ({}) WHERE \"kind\" = 2) AS \"b\", "
            "(SELECT arg_max(\"seq\", {}) AS \"seq\" FROM {} WHERE \"kind\" = 2) AS \"n\"",
            less("\"b\".\"seq\"", "\"n\".\"seq\""), less("\"b\".\"seq\"", "\"n\".\"seq\""),
            order("\"seq\""), read_state(false), order("\"seq\""), table("events")));
  }

  // Events of a key from the latest to the earliest, upserts before deletes at one sequence.
  void rank_events() {
    make_table(
        "normalise", "ranked",
        fmt::format(
            "SELECT {0}, \"seq\", \"kind\", \"rid\", \"place\", "
            "\"kind\" = 1 AND ((coalesce(\"kind_before\" = 1, false) AND \"seq\" IS NOT DISTINCT "
            "FROM "
            "\"seq_before\") OR (coalesce(\"kind_after\" = 1, false) AND \"seq\" IS NOT DISTINCT "
            "FROM "
            "\"seq_after\")) AS \"tied\" FROM (SELECT {0}, \"seq\", \"kind\", rowid AS \"rid\", "
            "row_number() OVER \"w\" AS \"place\", "
            "lag(\"seq\") OVER \"w\" AS \"seq_before\", lag(\"kind\") OVER \"w\" AS "
            "\"kind_before\", "
            "lead(\"seq\") OVER \"w\" AS \"seq_after\", lead(\"kind\") OVER \"w\" AS "
            "\"kind_after\" "
            "FROM {1} WHERE \"kind\" < 2 "
            "WINDOW \"w\" AS (PARTITION BY {0} ORDER BY {2} DESC, \"kind\" DESC))",
            keys(), table("events"), order("\"seq\"")));
  }

  // Upserts of one key and sequence: the greatest values count.
  void settle_ties() {
    const std::string group = fmt::format("{}, \"r\".\"seq\"", keys("\"r\""));
    make_table("normalise", "tied",
               fmt::format("SELECT {0}, \"r\".\"seq\", \"r\".\"rid\", "
                           "row_number() OVER \"w\" AS \"rank\", "
                           "bool_or(\"r\".\"place\" = 1) OVER (PARTITION BY {1}) AS \"is_top\", "
                           "lag(\"r\".\"rid\") OVER \"w\" AS \"rid_before\" "
                           "FROM {2} AS \"r\" JOIN {3} AS \"e\" ON \"e\".rowid = \"r\".\"rid\" "
                           "WHERE \"r\".\"tied\" "
                           "WINDOW \"w\" AS (PARTITION BY {1} ORDER BY {4}, \"r\".\"rid\")",
                           keys("\"r\""), group, table("ranked"), table("events"),
                           greatest_first("\"e\"")));
    make_table(
        "normalise", "conflicts",
        fmt::format(
            "SELECT DISTINCT {0}, \"t\".\"seq\" FROM {1} AS \"t\" JOIN {2} AS \"x\" ON \"x\".rowid "
            "= "
            "\"t\".\"rid\" JOIN {2} AS \"y\" ON \"y\".rowid = \"t\".\"rid_before\" WHERE NOT {3}",
            keys("\"t\""), table("tied"), table("events"), values_equal("\"x\"", "\"y\"")));
  }

  // Of each key the latest event, what is known of it, and which of both counts.
  void locate() {
    std::string known = "\"s\".\"seq\"";
    std::string more;
    if (plan_.sequence_column) {
      for (size_t i = 0; i < plan_.columns.size(); ++i) {
        if (!same_name(plan_.columns[i].name, *plan_.sequence_column) || !target_has(i)) continue;
        more = fmt::format("{} AS \"row_seq\", ", normal_zero("\"__strandline_target\"." +
                                                                  quote_name(plan_.columns[i].name),
                                                              plan_.sequence_type));
        known =
            "CASE WHEN \"s\".\"row_file\" IS NOT NULL THEN \"s\".\"seq\" ELSE \"t\".\"row_seq\" "
            "END";
      }
    }
    // A truncate ends what it covers; an event below it never counts.
    std::string vanished = "false";
    std::string counts = "true";
    std::string from_mark;
    if (truncates()) {
      from_mark = fmt::format(", {} AS \"m\"", table("mark"));
      vanished =
          fmt::format("(\"moved\" AND (\"known\" IS NULL OR {}))", less("\"known\"", "\"now\""));
      counts = fmt::format("(\"now\" IS NULL OR {0} > {1} OR (\"kind\" = 1 AND {0} = {1}))",
                           order("\"seq\""), order("\"now\""));
    }
    const std::string winners = fmt::format(
        "SELECT {0}, \"seq\", \"kind\", \"rid\" FROM {1} WHERE \"place\" = 1 AND NOT \"tied\" "
        "UNION ALL "
        "SELECT {0}, \"seq\", CAST(1 AS TINYINT), \"rid\" FROM {2} WHERE \"rank\" = 1 AND "
        "\"is_top\"",
        keys(), table("ranked"), table("tied"));
    make_table(
        "locate", "located",
        fmt::format("SELECT *{12}, CASE WHEN NOT {5} THEN 'keep' "
                    "WHEN \"known_kind\" IS NULL OR {6} OR \"known\" IS NULL THEN 'take' "
                    "WHEN {7} > {8} THEN 'take' WHEN {7} < {8} THEN 'keep' "
                    "WHEN \"kind\" = 1 AND \"known_kind\" = 0 THEN 'take' "
                    "WHEN \"kind\" = 1 AND \"known_kind\" = 1 THEN 'compare' ELSE 'keep' END AS "
                    "\"verdict\" FROM "
                    "(SELECT {0}, \"w\".\"seq\", \"w\".\"kind\", \"w\".\"rid\", "
                    "\"t\".\"row_file\" AS \"target_file\", \"t\".\"row_pos\" AS \"target_pos\", "
                    "\"t\".\"row_id\" AS \"row_id\", "
                    "\"s\".\"row_file\" AS \"state_file\", \"s\".\"row_pos\" AS \"state_pos\", "
                    "\"s\".\"kind\" AS \"state_kind\", "
                    "\"s\".\"seq\" AS \"state_seq\", {1} AS \"known\", "
                    "CASE WHEN \"t\".\"row_file\" IS NOT NULL THEN 1 WHEN \"s\".\"row_file\" IS "
                    "NOT NULL THEN 0 END AS "
                    "\"known_kind\" FROM ({2}) AS \"w\" LEFT JOIN ({3}) AS \"t\" ON {9} LEFT JOIN "
                    "(SELECT * FROM ({4}) WHERE \"kind\" "
                    "< 2) AS \"s\" ON {10}){11}",
                    keys("\"w\""), known, winners, read_target(keys_, more), read_state(false),
                    counts, vanished, order("\"seq\""), order("\"known\""),
                    keys_equal("\"w\"", "\"t\""), keys_equal("\"w\"", "\"s\""), from_mark,
                    truncates() ? " EXCLUDE (\"before\", \"now\", \"moved\")" : ""));
    check("locate",
          fmt::format(
              "SELECT count(*), min({}) FROM (SELECT {}, count(*) AS \"n\" FROM {} GROUP BY ALL) "
              "AS \"d\" WHERE "
              "\"n\" > 1 AND (SELECT count(*) FROM {}) <> (SELECT count(DISTINCT \"rid\") FROM {})",
              keys_text("\"d\""), keys(), table("located"), table("located"), table("located")),
          "AUTOCDC_INVALID_STATE.INVALID_TARGET_ROWS",
          "table " + plan_.target +
              " has {count} keys with more than one row, for example {example}: an SCD TYPE 1 "
              "table has one row for a key; "
              "delete the others");
  }

  // Rows whose values must be read: equal sequences, and upserts that may leave the row as it is.
  void compare_with_target() {
    std::vector<size_t> columns = values_;
    columns.insert(columns.end(), user_columns_.begin(), user_columns_.end());
    // A greater sequence that is kept in the row changes the row by itself.
    const std::string upserts = plan_.sequence_is_column ? "\"state_file\" IS NOT NULL" : "true";
    std::string wanted = fmt::format(
        "(\"verdict\" = 'compare' OR (\"verdict\" = 'take' AND \"kind\" = 1 AND "
        "\"target_file\" IS NOT NULL AND {}))",
        upserts);
    if (!user_columns_.empty()) wanted = "\"target_file\" IS NOT NULL";
    std::string kept;
    for (const size_t i : user_columns_)
      kept += fmt::format("\"t\".{} AS {}, ", column(i), column(i));
    fill_table(
        "locate", "compared",
        fmt::format(
            "SELECT \"l\".\"rid\", {0}{1} AS \"greater\", {2} AS \"same\", NOT {3} AS \"differs\" "
            "FROM (SELECT * FROM {4} WHERE {7}) AS \"l\" JOIN {5} AS \"e\" ON \"e\".rowid = "
            "\"l\".\"rid\" JOIN ({6}) AS \"t\" ON "
            "\"t\".\"row_pos\" = \"l\".\"target_pos\" AND \"t\".\"row_file\" = "
            "\"l\".\"target_file\"",
            kept, values_greater("\"e\"", "\"t\""), values_identical("\"e\"", "\"t\""),
            values_equal("\"e\"", "\"t\""), table("located"), table("events"), read_target(columns),
            wanted),
        fmt::format("SELECT count(*) FROM {} WHERE {}", table("located"), wanted));
    run("locate",
        fmt::format(
            "INSERT INTO {0} SELECT {1}, \"l\".\"seq\" FROM {2} AS \"l\" JOIN {3} AS \"c\" ON "
            "\"c\".\"rid\" = \"l\".\"rid\" WHERE \"l\".\"verdict\" = 'compare' AND "
            "\"c\".\"differs\"",
            table("conflicts"), keys("\"l\""), table("located"), table("compared")));
  }

  // What becomes of each key: put (write the event's row), drop (the target row dies), remember (a
  // state row is written), forget (the state row dies).
  void decide() {
    // The row itself tells the sequence when it is kept there, so the state does not.
    const std::string told = plan_.sequence_is_column ? "true" : "false";
    make_table(
        "diff", "decided",
        fmt::format(
            "SELECT *, \"wins\" AND \"kind\" = 1 AND NOT \"same\" AS \"put\", "
            "\"wins\" AND \"target_file\" IS NOT NULL AND NOT (\"kind\" = 1 AND \"same\") AS "
            "\"drop\", "
            "\"wins\" AND NOT \"remembered\" AND NOT (\"kind\" = 1 AND {0}) AS \"remember\", "
            "\"wins\" AND \"state_file\" IS NOT NULL AND NOT \"remembered\" AS \"forget\" FROM "
            "(SELECT \"l\".* EXCLUDE (\"verdict\"), "
            "\"l\".\"verdict\" = 'take' OR (\"l\".\"verdict\" = 'compare' AND "
            "coalesce(\"c\".\"greater\", false)) AS \"wins\", "
            "coalesce(\"c\".\"same\", false) AS \"same\", "
            "\"l\".\"state_file\" IS NOT NULL AND \"l\".\"state_kind\" = \"l\".\"kind\" AND "
            "\"l\".\"state_seq\" IS NOT DISTINCT "
            "FROM \"l\".\"seq\" AND NOT (\"l\".\"kind\" = 1 AND {0}) AS \"remembered\" "
            "FROM {1} AS \"l\" LEFT JOIN {2} AS \"c\" ON \"c\".\"rid\" = \"l\".\"rid\") WHERE "
            "\"wins\"",
            told, table("located"), table("compared")));
  }

  // A truncate beyond the last one ends every row and every remembered event below it; a row that
  // an event above it gives the very same values stays as it is.
  void sweep() {
    if (!truncates()) return;
    std::string known = "\"s\".\"seq\"";
    std::string more;
    if (plan_.sequence_column) {
      for (size_t i = 0; i < plan_.columns.size(); ++i) {
        if (!same_name(plan_.columns[i].name, *plan_.sequence_column) || !target_has(i)) continue;
        more = fmt::format("{} AS \"row_seq\", ", normal_zero("\"__strandline_target\"." +
                                                                  quote_name(plan_.columns[i].name),
                                                              plan_.sequence_type));
        known =
            "CASE WHEN \"s\".\"row_file\" IS NOT NULL THEN \"s\".\"seq\" ELSE \"t\".\"row_seq\" "
            "END";
      }
    }
    make_table("truncate", "swept",
               "SELECT CAST(NULL AS INTEGER) AS \"row_file\", CAST(NULL AS BIGINT) AS \"row_pos\" "
               "WHERE false");
    make_table("truncate", "swept_state",
               "SELECT CAST(NULL AS INTEGER) AS \"row_file\", CAST(NULL AS BIGINT) AS \"row_pos\" "
               "WHERE false");
    const std::string moved = fmt::format("SELECT count(*) FROM {} WHERE \"moved\"", table("mark"));
    run("truncate",
        fmt::format("INSERT INTO {0} SELECT \"x\".\"row_file\", \"x\".\"row_pos\" FROM (SELECT "
                    "\"t\".\"row_file\", "
                    "\"t\".\"row_pos\", {1} AS \"known\" FROM ({2}) AS \"t\" LEFT JOIN (SELECT * "
                    "FROM ({3}) WHERE \"kind\" < 2) "
                    "AS \"s\" ON {4}) AS \"x\" CROSS JOIN {5} ANTI JOIN (SELECT \"target_file\", "
                    "\"target_pos\" FROM {7} WHERE NOT "
                    "\"drop\" AND \"target_file\" IS NOT NULL) AS \"d\" ON \"d\".\"target_pos\" = "
                    "\"x\".\"row_pos\" AND "
                    "\"d\".\"target_file\" = \"x\".\"row_file\" WHERE \"known\" IS NULL OR {6}",
                    table("swept"), known, read_target(keys_, more), read_state(false),
                    keys_equal("\"t\"", "\"s\""), table("mark"), less("\"known\"", "\"now\""),
                    table("decided")),
        moved);
    // A delete at the mark itself says nothing that the mark does not.
    run("truncate",
        fmt::format("INSERT INTO {0} SELECT \"row_file\", \"row_pos\" FROM ({1}) AS \"s\", {2} "
                    "WHERE \"kind\" = 2 OR {3} OR "
                    "(\"kind\" = 0 AND {4} = {5})",
                    table("swept_state"), read_state(false), table("mark"),
                    less("\"seq\"", "\"now\""), order("\"seq\""), order("\"now\"")),
        moved);
  }

  void outputs() {
    const std::string user =
        user_columns_.empty()
            ? ""
            : fmt::format(" LEFT JOIN {} AS \"c\" ON \"c\".\"rid\" = \"d\".\"rid\"",
                          table("compared"));
    program_.target_new = fmt::format(
        "SELECT {}, \"d\".\"row_id\" AS \"__strandline_row_id\", CAST(NULL AS BIGINT) AS "
        "\"__strandline_row_commit_version\" "
        "FROM {} AS \"d\" JOIN {} AS \"e\" ON \"e\".rowid = \"d\".\"rid\"{} WHERE \"d\".\"put\"",
        target_row("\"e\"", "\"c\"", "", ""), table("decided"), table("events"), user);
    const std::string positions =
        "\"row_file\" AS \"__strandline_file\", \"row_pos\" AS \"__strandline_row\"";
    program_.target_dead = fmt::format(
        "SELECT \"target_file\" AS \"__strandline_file\", \"target_pos\" AS \"__strandline_row\" "
        "FROM {} WHERE \"drop\"",
        table("decided"));
    program_.state_dead = fmt::format(
        "SELECT \"state_file\" AS \"__strandline_file\", \"state_pos\" AS \"__strandline_row\" "
        "FROM {} WHERE \"forget\"",
        table("decided"));
    program_.state_new =
        state_rows(fmt::format("FROM {} WHERE \"remember\"", table("decided")), false);
    if (truncates()) {
      program_.target_dead += fmt::format(" UNION SELECT {} FROM {}", positions, table("swept"));
      program_.state_dead +=
          fmt::format(" UNION SELECT {} FROM {}", positions, table("swept_state"));
      program_.state_new +=
          " UNION ALL " + state_rows(fmt::format("FROM {} WHERE \"moved\"", table("mark")), true);
    }
    check_not_null_columns();
  }

  std::string state_rows(const std::string& from, bool is_mark) const {
    std::vector<std::string> parts;
    for (const Field& field : plan_.state_schema.fields) {
      std::string value = typed_null(field.type);
      if (same_name(field.name, kStateSequence)) {
        value = is_mark ? "\"now\"" : "\"seq\"";
      } else if (same_name(field.name, kStateKind)) {
        value = is_mark ? "CAST(2 AS TINYINT)" : "\"kind\"";
      } else if (!is_mark) {
        for (const size_t i : keys_) {
          if (same_name(plan_.columns[i].name, field.name)) value = column(i);
        }
      }
      parts.push_back(value + " AS " + quote_name(field.name));
    }
    return fmt::format("SELECT {} {}", fmt::join(parts, ", "), from);
  }

  void metrics() {
    std::string late_by_mark = "false";
    std::string mark_late = "0";
    std::string from_mark;
    if (truncates()) {
      from_mark = fmt::format(", {} AS \"m\"", table("mark"));
      late_by_mark = fmt::format("coalesce({}, false)", less("\"seq\"", "\"before\""));
      mark_late = fmt::format("(SELECT count(*) FROM {}, {} WHERE \"kind\" = 2 AND {})",
                              table("events"), table("mark"), late_by_mark);
    }
    const std::string late_by_key =
        fmt::format("coalesce({}, false)", less("\"seq\"", "\"known\""));
    program_.metrics = fmt::format(
        "SELECT (SELECT count(*) FROM {0} WHERE \"put\"), "
        "(SELECT count(*) FROM ({1})) - (SELECT count(*) FROM {0} WHERE \"put\" AND "
        "\"target_file\" IS NOT NULL), "
        "(SELECT count(*) FROM {2}), "
        "{3} + (SELECT count(*) FROM {4}{5} WHERE {6} OR {7}) + "
        "(SELECT count(*) FROM (SELECT \"r\".\"seq\", \"l\".\"known\" FROM {8} AS \"r\" JOIN {4} "
        "AS \"l\" ON {9} WHERE "
        "\"r\".\"place\" > 1){5} WHERE {6} OR {7}), "
        "(SELECT count(*) FROM (SELECT DISTINCT * FROM {10})), "
        "(SELECT min({11} || ', sequence = ' || CAST(\"x\".\"seq\" AS VARCHAR)) FROM {10} AS "
        "\"x\")",
        table("decided"), program_.target_dead, table("events"), mark_late, table("located"),
        from_mark, late_by_mark, late_by_key, table("ranked"), keys_equal("\"r\"", "\"l\""),
        table("conflicts"), keys_text("\"x\""));
  }
};

}  // namespace

Result<Program> make_scd1_program(const Plan& plan, const BatchRelations& relations,
                                  const ProgramOptions& options) {
  return Scd1Program(plan, relations, options).build();
}

}  // namespace strandline::cdc
