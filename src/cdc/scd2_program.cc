// SCD type 2: one row for each maximal run of consecutive upserts with equal tracked values.
//
// All events of a touched key - stored ones, those the target tells, new ones - become one
// timeline, sorted once and folded in one pass by streaming windows. The pass sees keys, sequences,
// a hash of the tracked values and row numbers only; equal hashes are candidates that are compared
// in full.
#include "base/error.h"
#include "cdc/program_builder.h"

namespace strandline::cdc {

namespace {

// Where a timeline entry comes from; at one sequence a smaller one is preferred.
constexpr int kFromState = 0;
constexpr int kFromTarget = 1;
constexpr int kFromBatch = 2;

class Scd2Program : public ProgramBuilder {
 public:
  Scd2Program(const Plan& plan, const BatchRelations& relations, const ProgramOptions& options)
      : ProgramBuilder(plan, relations, options) {
    for (const size_t i : values_) {
      if (plan.columns[i].tracked) tracked_.push_back(i);
    }
  }

  Result<Program> build() override {
    SL_ASSIGN(const std::string events, read_events());
    gather(events);
    merge_timelines();
    settle_ties();
    verify_equal_neighbours();
    find_runs();
    find_unchanged();
    outputs();
    metrics();
    return std::move(program_);
  }

 private:
  // --- load ------------------------------------------------------------------------------------

  // Columns of the payload table besides c<i>: src, seq (start of a target row), end_seq, kind,
  // row_file, row_pos, row_id, hash. rowid is the entry's number.
  std::string payload_columns() const {
    std::string text;
    for (size_t i = 0; i < plan_.columns.size(); ++i) text += column(i) + ", ";
    return text +
           "\"seq\", \"end_seq\", \"kind\", \"src\", \"row_file\", \"row_pos\", \"row_id\", "
           "\"hash\"";
  }

  std::string tracked_hash() const {
    if (tracked_.empty() || options_.hash_bits == 0) return "CAST(0 AS UBIGINT)";
    std::vector<std::string> parts;
    for (const size_t i : tracked_) parts.push_back(comparable(column(i), plan_.columns[i].type));
    const std::string hash = fmt::format("hash({})", fmt::join(parts, ", "));
    return options_.hash_bits >= 64 ? hash
                                    : fmt::format("({} >> {})", hash, 64 - options_.hash_bits);
  }

  std::string payload(const std::string& rows, const std::vector<bool>& has, int src,
                      const std::string& end_seq, bool has_position, bool has_row_id) const {
    std::string text = "SELECT ";
    for (size_t i = 0; i < plan_.columns.size(); ++i) {
      text += has[i] ? column(i) + ", "
                     : fmt::format("{} AS {}, ", typed_null(plan_.columns[i].type), column(i));
    }
    text += fmt::format("\"seq\", {} AS \"end_seq\", \"kind\", CAST({} AS TINYINT) AS \"src\", ",
                        end_seq, src);
    text += has_position
                ? "\"row_file\", \"row_pos\", "
                : "CAST(NULL AS INTEGER) AS \"row_file\", CAST(NULL AS BIGINT) AS \"row_pos\", ";
    text += has_row_id ? "\"row_id\"" : "CAST(NULL AS BIGINT) AS \"row_id\"";
    return fmt::format("SELECT {}, {} AS \"hash\" FROM ({} FROM ({}))",
                       payload_columns_without_hash(), tracked_hash(), text, rows);
  }

  std::string payload_columns_without_hash() const {
    const std::string all = payload_columns();
    return all.substr(0, all.size() - std::string(", \"hash\"").size());
  }

  void gather(const std::string& events) {
    const size_t count = plan_.columns.size();
    std::vector<bool> owned(count), stored(count), all(count, true);
    std::vector<size_t> every;
    for (size_t i = 0; i < count; ++i) {
      owned[i] = plan_.columns[i].owned;
      stored[i] = plan_.columns[i].owned || plan_.columns[i].is_key;
      every.push_back(i);
    }
    make_table("stage", "payload",
               payload(events, owned, kFromBatch, typed_null(plan_.sequence_type), false, false));
    validate_events(table("payload"));
    make_table("load", "keys", fmt::format("SELECT DISTINCT {} FROM {}", keys(), table("payload")));

    const bool has_rows = !relations_.target.empty();
    const auto bound = [&](const char* name) {
      return has_rows ? normal_zero(fmt::format("\"__strandline_target\".{}", quote_name(name)),
                                    plan_.sequence_type)
                      : typed_null(plan_.sequence_type);
    };
    const std::string more =
        fmt::format("{} AS \"seq\", {} AS \"stop\", CAST(1 AS TINYINT) AS \"kind\", ",
                    bound(kStartAt), bound(kEndAt));
    run("load",
        fmt::format(
            "INSERT INTO {} {}", table("payload"),
            payload(
                fmt::format("SELECT \"t\".* FROM ({}) AS \"t\" SEMI JOIN {} AS \"k\" ON {}",
                            read_target(every, more), table("keys"), keys_equal("\"t\"", "\"k\"")),
                all, kFromTarget, "\"stop\"", true, true)));
    run("load",
        fmt::format(
            "INSERT INTO {} {}", table("payload"),
            payload(fmt::format("SELECT \"t\".* FROM ({}) AS \"t\" SEMI JOIN {} AS \"k\" ON {}",
                                read_state(true), table("keys"), keys_equal("\"t\"", "\"k\"")),
                    stored, kFromState, typed_null(plan_.sequence_type), true, false)));
    check("load",
          fmt::format("SELECT count(*), min({}) FROM {} AS \"p\" WHERE \"src\" = {} AND "
                      "\"end_seq\" IS NOT NULL AND \"seq\" IS "
                      "NOT NULL AND {} <= {}",
                      keys_text("\"p\""), table("payload"), kFromTarget, order("\"end_seq\""),
                      order("\"seq\"")),
          "AUTOCDC_INVALID_STATE.INVALID_TARGET_ROWS",
          "table " + plan_.target +
              " has {count} rows whose __END_AT is not after their __START_AT, for example "
              "{example}: correct or delete them");
  }

  // --- merge -----------------------------------------------------------------------------------

  // The timeline: of each key and sequence the entry that counts, in order, with what the fold
  // says:
  //   entry, src       the payload row, kFrom...; up: an upsert, else a delete
  //   old_entry, old_end, old_row_id   the target row that starts here
  //   starts, ends     first, last event of its run; run: the run's number
  //   next_seq         sequence of the key's next event
  //   hidden           a delete that ends no run
  //   tied             upserts of the batch meet another one here; doubled: two target rows do
  //   before           payload row of the upsert before, where the hashes are equal
  std::string timeline(bool with_verdicts) const {
    // Settled ties come first, whatever their origin; proven differences start a run.
    std::string verdicts, won = "false", split = "false";
    if (with_verdicts) {
      verdicts = fmt::format(
          " LEFT JOIN {} AS \"w\" ON \"w\".\"winner\" = \"u\".\"claim\" LEFT JOIN {} AS \"x\" ON "
          "\"x\".\"split\" = \"u\".\"claim\"",
          table("won"), table("splits"));
      won = "\"w\".\"winner\" IS NOT NULL";
      split = "\"x\".\"split\" IS NOT NULL";
    }
    // Only an upsert's own claim can have won or be split: a target row's end has none.
    const std::string claims = fmt::format(
        "SELECT {0}, \"seq\", \"kind\" AS \"up\", \"src\", rowid AS \"entry\", CASE WHEN \"kind\" "
        "= 1 THEN rowid END AS \"claim\", "
        "\"hash\", \"end_seq\" AS \"old_end\", \"row_id\" AS \"old_row_id\" FROM {1} UNION ALL "
        "SELECT {0}, \"end_seq\", CAST(0 AS TINYINT), \"src\", rowid, CAST(NULL AS BIGINT), CAST(0 "
        "AS UBIGINT), {2}, "
        "CAST(NULL AS BIGINT) FROM {1} WHERE \"src\" = {3} AND \"end_seq\" IS NOT NULL",
        keys(), table("payload"), typed_null(plan_.sequence_type), kFromTarget);
    std::vector<std::string> key_order, key_change;
    for (const size_t i : keys_) {
      key_order.push_back(column(i));
      key_change.push_back(fmt::format("{0} IS DISTINCT FROM lag({0}) OVER ()", column(i)));
    }
    const std::string sorted = fmt::format(
        "SELECT {0}, \"seq\", \"up\", \"src\", \"entry\", \"hash\", \"old_end\", \"old_row_id\", "
        "{1} AS \"split\" FROM ({2}) AS "
        "\"u\"{3} ORDER BY {4}, {5} NULLS FIRST, \"up\" DESC, {6} DESC, \"src\", "
        "\"entry\"",
        keys(), split, claims, verdicts, fmt::join(key_order, ", "), order("\"seq\""), won);
    const std::string marked = fmt::format(
        "SELECT *, \"new_key\" OR \"seq\" IS DISTINCT FROM \"seq_before\" AS \"new_group\" FROM "
        "(SELECT *, {} AS \"new_key\", "
        "lag(\"seq\") OVER () AS \"seq_before\" FROM ({}))",
        fmt::join(key_change, " OR "), sorted);
    const std::string ahead = fmt::format(
        "SELECT *, lead(\"new_group\", 1, true) OVER () AS \"alone\", lead(\"new_group\", 2, true) "
        "OVER () AS \"alone_2\", "
        "lead(\"up\", 1) OVER () AS \"up_1\", lead(\"up\", 2) OVER () AS \"up_2\", "
        "lead(\"src\", 1) OVER () AS \"src_1\", lead(\"src\", 2) OVER () AS \"src_2\", "
        "lead(\"entry\", 1) OVER () AS \"entry_1\", lead(\"entry\", 2) OVER () AS \"entry_2\", "
        "lead(\"old_end\", 1) OVER () AS \"old_end_1\", lead(\"old_end\", 2) OVER () AS "
        "\"old_end_2\", "
        "lead(\"old_row_id\", 1) OVER () AS \"old_row_id_1\", lead(\"old_row_id\", 2) OVER () AS "
        "\"old_row_id_2\" FROM ({})",
        marked);
    // The target's claim stands at the first, second or third place of its group.
    const std::string at_0 = fmt::format("\"up\" = 1 AND \"src\" = {}", kFromTarget);
    const std::string at_1 =
        fmt::format("NOT \"alone\" AND \"up_1\" = 1 AND \"src_1\" = {}", kFromTarget);
    const std::string at_2 = fmt::format(
        "NOT \"alone\" AND NOT \"alone_2\" AND \"up_2\" = 1 AND \"src_2\" = {}", kFromTarget);
    const auto of_target = [&](const char* name) {
      return fmt::format(
          "CASE WHEN {0} THEN \"{3}\" WHEN {1} THEN \"{3}_1\" WHEN {2} THEN \"{3}_2\" END", at_0,
          at_1, at_2, name);
    };
    const std::string first = fmt::format(
        "SELECT {0}, \"seq\", \"up\" = 1 AS \"up\", \"src\", \"entry\", \"hash\", \"split\", "
        "\"new_key\", "
        "{1} AS \"old_entry\", {2} AS \"old_end\", {3} AS \"old_row_id\", "
        "\"up\" = 1 AND ((NOT \"alone\" AND \"up_1\" = 1 AND \"src_1\" = {4}) OR (NOT \"alone\" "
        "AND NOT \"alone_2\" AND \"up_2\" = "
        "1 AND \"src_2\" = {4})) AS \"tied\", "
        "({5} AND {6}) OR ({6} AND {7}) AS \"doubled\" FROM ({8}) WHERE \"new_group\"",
        keys(), of_target("entry"), of_target("old_end"), of_target("old_row_id"), kFromBatch, at_0,
        at_1, at_2, ahead);
    const std::string neighbours = fmt::format(
        "SELECT *, NOT \"new_key\" AND lag(\"up\") OVER () AS \"joins\", lag(\"hash\") OVER () = "
        "\"hash\" AND NOT \"split\" AS "
        "\"same\", lag(\"entry\") OVER () AS \"entry_before\", "
        "lead(\"new_key\", 1, true) OVER () AS \"is_final\", lead(\"seq\") OVER () AS "
        "\"seq_after\", lead(\"up\") OVER () AS "
        "\"up_after\", lead(\"hash\") OVER () = \"hash\" AND NOT lead(\"split\") OVER () AS "
        "\"same_after\" FROM ({})",
        first);
    const std::string folded = fmt::format(
        "SELECT {}, \"seq\", \"up\", \"src\", \"entry\", \"old_entry\", \"old_end\", "
        "\"old_row_id\", \"tied\", \"doubled\", "
        "\"up\" AND NOT (\"joins\" AND \"same\") AS \"starts\", "
        "\"up\" AND (\"is_final\" OR NOT (\"up_after\" AND \"same_after\")) AS \"ends\", "
        "CASE WHEN NOT \"is_final\" THEN \"seq_after\" END AS \"next_seq\", "
        "NOT \"up\" AND NOT \"joins\" AS \"hidden\", "
        "CASE WHEN \"up\" AND \"joins\" AND \"same\" THEN \"entry_before\" END AS \"before\" FROM "
        "({})",
        keys(), neighbours);
    return fmt::format(
        "SELECT *, count(CASE WHEN \"starts\" THEN 1 END) OVER (ROWS UNBOUNDED PRECEDING) AS "
        "\"run\" FROM ({})",
        folded);
  }

  void merge_timelines() {
    make_table("merge", "won", "SELECT CAST(NULL AS BIGINT) AS \"winner\" WHERE false");
    make_table("merge", "splits", "SELECT CAST(NULL AS BIGINT) AS \"split\" WHERE false");
    make_table("merge", "line", timeline(false));
    check("merge",
          fmt::format("SELECT count(*), min({}) FROM {} AS \"l\" WHERE \"doubled\"",
                      keys_text("\"l\""), table("line")),
          "AUTOCDC_INVALID_STATE.INVALID_TARGET_ROWS",
          "table " + plan_.target +
              " has {count} keys with two rows of one __START_AT, for example {example}: delete "
              "one of them");
  }

  // Upserts of one key and sequence: the greatest values count.
  void settle_ties() {
    // The entry the timeline chose, and the batch's entries at its place.
    const std::string group = fmt::format("{}, \"t\".\"seq\"", keys("\"t\""));
    const std::string any_tied =
        fmt::format("SELECT count(*) FROM {} WHERE \"tied\"", table("line"));
    fill_table(
        "merge", "tied",
        fmt::format("SELECT {0}, \"t\".\"seq\", \"t\".\"entry\", \"t\".\"rival\", row_number() "
                    "OVER \"w\" AS \"rank\", "
                    "lag(\"t\".\"rival\") OVER \"w\" AS \"rival_before\" FROM (SELECT {1}, "
                    "\"l\".\"seq\", \"l\".\"entry\", "
                    "\"e\".rowid AS \"rival\" FROM {2} AS \"l\" JOIN {3} AS \"e\" ON {4} AND "
                    "\"e\".\"seq\" = \"l\".\"seq\" "
                    "WHERE \"l\".\"tied\" AND \"e\".\"src\" = {5} AND \"e\".\"kind\" = 1 UNION ALL "
                    "SELECT {1}, \"l\".\"seq\", "
                    "\"l\".\"entry\", \"l\".\"entry\" FROM {2} AS \"l\" WHERE \"l\".\"tied\" AND "
                    "\"l\".\"src\" <> {5}) AS \"t\" "
                    "JOIN {3} AS \"p\" ON \"p\".rowid = \"t\".\"rival\" "
                    "WINDOW \"w\" AS (PARTITION BY {6} ORDER BY {7}, \"p\".\"src\", \"p\".rowid)",
                    keys("\"t\""), keys("\"l\""), table("line"), table("payload"),
                    keys_equal("\"e\"", "\"l\""), kFromBatch, group, greatest_first("\"p\"")),
        any_tied);
    fill_table(
        "merge", "conflicts",
        fmt::format("SELECT DISTINCT {0}, \"t\".\"seq\" FROM {1} AS \"t\" JOIN {2} AS \"x\" ON "
                    "\"x\".rowid = \"t\".\"rival\" "
                    "JOIN {2} AS \"y\" ON \"y\".rowid = \"t\".\"rival_before\" WHERE NOT {3}",
                    keys("\"t\""), table("tied"), table("payload"), values_equal("\"x\"", "\"y\"")),
        any_tied);
    run("merge",
        fmt::format(
            "INSERT INTO {} SELECT \"rival\" FROM {} WHERE \"rank\" = 1 AND \"rival\" <> \"entry\"",
            table("won"), table("tied")));
    run("merge",
        fmt::format("CREATE OR REPLACE TEMP TABLE {} AS {}", table("line"), timeline(true)),
        fmt::format("SELECT count(*) FROM {}", table("won")));
  }

  // No hash decides: neighbours of equal hash are compared in full, and those that differ are
  // split.
  void verify_equal_neighbours() {
    if (tracked_.empty()) return;
    std::vector<std::string> differs;
    for (const size_t i : tracked_) {
      differs.push_back(
          not_equal("\"x\"." + column(i), "\"y\"." + column(i), plan_.columns[i].type));
    }
    run("merge",
        fmt::format("INSERT INTO {} SELECT \"l\".\"entry\" FROM {} AS \"l\" JOIN {} AS \"x\" ON "
                    "\"x\".rowid = \"l\".\"entry\" JOIN "
                    "{} AS \"y\" ON \"y\".rowid = \"l\".\"before\" WHERE {}",
                    table("splits"), table("line"), table("payload"), table("payload"),
                    fmt::join(differs, " OR ")),
        fmt::format("SELECT count(\"before\") FROM {}", table("line")));
    run("merge",
        fmt::format("CREATE OR REPLACE TEMP TABLE {} AS {}", table("line"), timeline(true)),
        fmt::format("SELECT count(*) FROM {}", table("splits")));
  }

  // --- fold ------------------------------------------------------------------------------------

  // One row per run: start and the target row that stood there; the last event; the end.
  void find_runs() {
    make_table(
        "fold", "runs",
        fmt::format("SELECT \"seq\" AS \"start\", \"next_seq\" AS \"stop\", \"entry\" AS \"last\", "
                    "\"src\" AS \"last_src\", \"old_entry\", "
                    "\"old_end\", \"old_row_id\" FROM {0} WHERE \"starts\" AND \"ends\" UNION ALL "
                    "SELECT \"a\".\"seq\", \"b\".\"next_seq\", \"b\".\"entry\", \"b\".\"src\", "
                    "\"a\".\"old_entry\", \"a\".\"old_end\", "
                    "\"a\".\"old_row_id\" FROM {0} AS \"a\" JOIN {0} AS \"b\" ON \"b\".\"run\" = "
                    "\"a\".\"run\" WHERE \"a\".\"starts\" AND NOT "
                    "\"a\".\"ends\" AND \"b\".\"ends\" AND NOT \"b\".\"starts\"",
                    table("line")));
  }

  // --- diff ------------------------------------------------------------------------------------

  // A run that had its start and end before keeps its row unless its last event is new and differs:
  // between two old bounds every old event belonged to that row, and its last one gave the values.
  void find_unchanged() {
    const std::string same_bounds =
        "\"r\".\"old_entry\" IS NOT NULL AND \"r\".\"old_end\" IS NOT DISTINCT FROM \"r\".\"stop\"";
    make_table("diff", "kept",
               fmt::format("SELECT \"r\".\"old_entry\" AS \"entry\" FROM {} AS \"r\" WHERE {} AND "
                           "\"r\".\"last_src\" <> {}",
                           table("runs"), same_bounds, kFromBatch));
    const std::string doubtful =
        fmt::format("{} AND \"r\".\"last_src\" = {}", same_bounds, kFromBatch);
    run("diff",
        fmt::format("INSERT INTO {} SELECT \"r\".\"old_entry\" FROM {} AS \"r\" JOIN {} AS \"x\" "
                    "ON \"x\".rowid = \"r\".\"last\" "
                    "JOIN {} AS \"y\" ON \"y\".rowid = \"r\".\"old_entry\" WHERE {} AND {}",
                    table("kept"), table("runs"), table("payload"), table("payload"), doubtful,
                    values_identical("\"x\"", "\"y\"")),
        fmt::format("SELECT count(*) FROM {} AS \"r\" WHERE {}", table("runs"), doubtful));
    // A row keeps its id while its primary key, keys and coalesce(start, end), stays.
    make_table("diff", "changed",
               fmt::format("SELECT \"r\".\"start\", \"r\".\"stop\", \"r\".\"last\", CASE WHEN "
                           "\"lives\" THEN \"r\".\"old_entry\" END AS "
                           "\"old_entry\", CASE WHEN \"lives\" THEN \"r\".\"old_row_id\" END AS "
                           "\"old_row_id\" FROM (SELECT *, "
                           "\"start\" IS NOT NULL OR \"stop\" IS NOT DISTINCT FROM \"old_end\" AS "
                           "\"lives\" FROM {}) AS \"r\" ANTI "
                           "JOIN {} AS \"k\" ON \"k\".\"entry\" = \"r\".\"old_entry\"",
                           table("runs"), table("kept")));
  }

  std::string required() const {
    return "(\"l\".\"up\" AND NOT (\"l\".\"starts\" AND \"l\".\"ends\") OR \"l\".\"hidden\")";
  }

  void outputs() {
    const std::string user =
        user_columns_.empty()
            ? ""
            : fmt::format(" LEFT JOIN {} AS \"o\" ON \"o\".rowid = \"r\".\"old_entry\"",
                          table("payload"));
    program_.target_new = fmt::format(
        "SELECT {}, \"r\".\"old_row_id\" AS \"__strandline_row_id\", CAST(NULL AS BIGINT) AS "
        "\"__strandline_row_commit_version\" "
        "FROM {} AS \"r\" JOIN {} AS \"p\" ON \"p\".rowid = \"r\".\"last\"{}",
        target_row("\"p\"", "\"o\"", "\"r\".\"start\"", "\"r\".\"stop\""), table("changed"),
        table("payload"), user);
    program_.target_dead = fmt::format(
        "SELECT \"p\".\"row_file\" AS \"__strandline_file\", \"p\".\"row_pos\" AS "
        "\"__strandline_row\" FROM {} AS \"p\" ANTI JOIN {} AS "
        "\"k\" ON \"k\".\"entry\" = \"p\".rowid WHERE \"p\".\"src\" = {}",
        table("payload"), table("kept"), kFromTarget);

    std::vector<std::string> parts;
    for (const Field& field : plan_.state_schema.fields) {
      std::string value = typed_null(field.type);
      if (same_name(field.name, kStateSequence)) {
        value = "\"l\".\"seq\"";
      } else if (same_name(field.name, kStateKind)) {
        value = "CAST(\"l\".\"up\" AS TINYINT)";
      } else {
        for (size_t i = 0; i < plan_.columns.size(); ++i) {
          if (!same_name(plan_.columns[i].name, field.name)) continue;
          value = plan_.columns[i].is_key
                      ? "\"p\"." + column(i)
                      : fmt::format("CASE WHEN \"l\".\"up\" THEN \"p\".{} END", column(i));
        }
      }
      parts.push_back(value + " AS " + quote_name(field.name));
    }
    program_.state_new = fmt::format(
        "SELECT {} FROM {} AS \"l\" JOIN {} AS \"p\" ON \"p\".rowid = \"l\".\"entry\" WHERE "
        "\"l\".\"src\" <> {} AND {}",
        fmt::join(parts, ", "), table("line"), table("payload"), kFromState, required());
    program_.state_dead = fmt::format(
        "SELECT \"p\".\"row_file\" AS \"__strandline_file\", \"p\".\"row_pos\" AS "
        "\"__strandline_row\" FROM {} AS \"p\" ANTI JOIN "
        "(SELECT \"l\".\"entry\" FROM {} AS \"l\" WHERE \"l\".\"src\" = {} AND {}) AS \"k\" ON "
        "\"k\".\"entry\" = \"p\".rowid WHERE "
        "\"p\".\"src\" = {}",
        table("payload"), table("line"), kFromState, required(), kFromState);
    check_not_null_columns();
  }

  void metrics() {
    // What was known of a key before the batch: starts and ends in the target, events in the state.
    const std::string known = fmt::format(
        "SELECT {0}, max({1}) AS \"known\" FROM (SELECT {0}, \"seq\" FROM {2} WHERE \"src\" <> {3} "
        "UNION ALL SELECT {0}, \"end_seq\" "
        "FROM {2} WHERE \"src\" = {4}) WHERE \"seq\" IS NOT NULL GROUP BY ALL",
        keys(), order("\"seq\""), table("payload"), kFromBatch, kFromTarget);
    program_.metrics = fmt::format(
        "SELECT (SELECT count(*) FROM {0}), "
        "(SELECT count(*) FROM ({1})) - (SELECT count(\"old_entry\") FROM {0}), "
        "(SELECT count(*) FROM {2} WHERE \"src\" = {3}), "
        "(SELECT count(*) FROM {2} AS \"e\" JOIN ({4}) AS \"k\" ON {5} WHERE \"e\".\"src\" = {3} "
        "AND {6} < \"k\".\"known\"), "
        "(SELECT count(*) FROM {7}), "
        "(SELECT min({8} || ', sequence = ' || CAST(\"x\".\"seq\" AS VARCHAR)) FROM {7} AS \"x\")",
        table("changed"), program_.target_dead, table("payload"), kFromBatch, known,
        keys_equal("\"e\"", "\"k\""), order("\"e\".\"seq\""), table("conflicts"),
        keys_text("\"x\""));
  }

  std::vector<size_t> tracked_;
};

}  // namespace

Result<Program> make_scd2_program(const Plan& plan, const BatchRelations& relations,
                                  const ProgramOptions& options) {
  return Scd2Program(plan, relations, options).build();
}

}  // namespace strandline::cdc
