// The programs whose rows come from several events: names, leaves, and what a batch loads.
#include "base/error.h"
#include "cdc/history_program.h"

namespace strandline::cdc {

using fmt::arg;

std::string HistoryProgram::moment(const std::string& alias) const {
  const std::string p = prefix(alias);
  return is_bitemporal() ? fmt::format("{0}seq, {0}sys", p) : p + "seq";
}

std::string HistoryProgram::key_and_moment(const std::string& alias) const {
  return keys(alias) + ", " + moment(alias);
}

std::string HistoryProgram::same_moment(const std::string& a, const std::string& b) const {
  std::string text =
      fmt::format("{} AND {}.seq IS NOT DISTINCT FROM {}.seq", keys_equal(a, b), a, b);
  if (is_bitemporal()) text += fmt::format(" AND {}.sys = {}.sys", a, b);
  return text;
}

std::string HistoryProgram::system_order(const std::string& sys) const {
  return order_value(sys, plan_.system_sequence_type);
}

std::string HistoryProgram::by_moment(const std::string& direction) const {
  std::string text = order("seq") + " " + direction;
  if (is_bitemporal()) text += ", " + system_order("sys") + " " + direction;
  return text;
}

std::string HistoryProgram::is_first(const std::string& window) const {
  std::vector<std::string> changes;
  const auto add = [&](const std::string& name) {
    changes.push_back(fmt::format("{0} IS DISTINCT FROM lag({0}) OVER {1}", name, window));
  };
  for (const size_t i : keys_) add(column(i));
  if (is_bitemporal()) add("place");
  return "(" + join(changes, " OR ") + ")";
}

std::string HistoryProgram::columns(const std::vector<size_t>& which,
                                    const std::string& alias) const {
  std::vector<std::string> parts;
  parts.reserve(which.size());
  for (const size_t i : which) parts.push_back(prefix(alias) + column(i));
  return parts.empty() ? "" : join(parts) + ", ";
}

std::string HistoryProgram::last_of(const std::string& partition, const std::string& order) {
  return fmt::format("lead(false, 1, true) OVER (PARTITION BY {} ORDER BY {})", partition, order);
}

std::vector<Leaf> HistoryProgram::leaves(const std::string& alias) const {
  std::vector<Leaf> all;
  for (const size_t i : values_) {
    const PlanColumn& target = plan_.columns[i];
    for (Leaf& leaf : leaves_of(*this, target.name, prefix(alias) + column(i), target.type)) {
      all.push_back(std::move(leaf));
    }
  }
  return all;
}

std::vector<HistoryProgram::LeafRange> HistoryProgram::leaf_ranges() const {
  std::vector<LeafRange> ranges;
  size_t number = 0;
  for (const size_t i : values_) {
    const size_t first = number;
    number += leaves_of(*this, plan_.columns[i].name, column(i), plan_.columns[i].type).size();
    ranges.push_back({i, first, number});
  }
  return ranges;
}

std::string HistoryProgram::given_any(const LeafRange& range, const std::vector<Leaf>& leaves,
                                      const std::string& alias) const {
  std::vector<std::string> parts;
  for (size_t j = range.first; j < range.end; ++j) parts.push_back(given(leaves[j], alias));
  return "(" + join(parts, " OR ") + ")";
}

std::string HistoryProgram::given(const Leaf& leaf, const std::string& alias) const {
  return fmt::format("(({}) IS NOT NULL OR {})", leaf.value,
                     list_has(prefix(alias) + "nulls", leaf.path));
}

std::string HistoryProgram::values_as(const std::function<std::string(size_t)>& value) const {
  std::string text;
  for (const size_t i : values_) text += fmt::format("{} AS {}, ", value(i), column(i));
  return text;
}

std::map<size_t, std::string> HistoryProgram::values_from_leaves(const std::string& alias,
                                                                 const std::string& mark) const {
  size_t number = 0;
  std::map<size_t, std::string> values;
  for (const size_t i : values_) {
    values[i] = from_leaves(*this, plan_.columns[i].type,
                            [&] { return fmt::format("{}.{}{}", alias, mark, number++); });
  }
  return values;
}

void HistoryProgram::stage_events(const std::string& events) {
  make_table("stage", "events", events);
  if (is_edited()) {
    make_table("stage", "hand_rows", read_edits(is_scd1() ? keys_ : owned_, hand_bounds()));
    make_table("stage", "edited",
               fmt::format("SELECT DISTINCT {} FROM {}", keys(), table("hand_rows")));
    std::vector<std::string> nulls;
    for (const size_t i : keys_) nulls.push_back(fmt::format("e.{} IS NULL", column(i)));
    check("validate",
          fmt::format("SELECT count(*), min({}) FROM {} AS e WHERE change > 0 AND ({})",
                      keys_text("e"), table("hand_rows"), join(nulls, " OR ")),
          "AUTOCDC_INVALID_STATE.INVALID_TARGET_ROWS",
          "table " + plan_.target +
              " was given rows by hand whose key has a null ({count} of them, for example one with "
              "{example}): give them a key or delete them");
  }
  if (!truncates()) {
    program_.keys = fmt::format("SELECT {} FROM {}", keys(), table("events"));
    if (is_edited())
      program_.keys += fmt::format(" UNION SELECT {} FROM {}", keys(), table("edited"));
  }
  validate_events(table("events"));
  if (is_bitemporal()) {
    check("validate",
          fmt::format("SELECT count(*), min({}) FROM {} AS e WHERE e.sys IS NULL", keys_text("e"),
                      table("events")),
          "AUTOCDC_MICROBATCH_VALIDATION.NULL_SEQUENCE",
          "flow " + plan_.flow_name +
              ": SYSTEM SEQUENCE BY is null in {count} of the batch's events, for example in the "
              "one with {example}" +
              kLeaveOut);
  }
  if (plan_.columns_to_update) check_names();
  if (truncates()) find_mark();
  make_table("load", "keys",
             fmt::format("SELECT DISTINCT {} FROM {} WHERE kind <> 2", keys(), table("events")));
  if (is_edited()) {
    append("load", "keys",
           fmt::format("SELECT * FROM {} EXCEPT SELECT * FROM {}", table("edited"), table("keys")));
  }
  if (truncates()) touch_what_a_truncate_covers();
}

void HistoryProgram::check_names() {
  std::vector<std::string> known;
  const auto add = [&](const std::string& name) {
    known.push_back(fmt::format("lower({})", quote_literal(name)));
  };
  for (const PlanColumn& target : plan_.columns) {
    if (target.source) add(target.source->name);
  }
  for (const std::string& name : plan_.unselected) add(name);
  check("validate",
        fmt::format("SELECT count(*), min(x) FROM ({}) WHERE x IS NOT NULL AND lower(x) NOT IN "
                    "({})",
                    list_rows("names", table("events") + " WHERE kind = 3"), join(known)),
        "AUTOCDC_COLUMNS_NOT_FOUND_IN_SCHEMA",
        "flow " + plan_.flow_name + ": COLUMNS TO UPDATE " + plan_.columns_to_update->name +
            " names a column that the source does not have, for example '{example}' (whole columns "
            "only; count: {count}); nothing was written");
}

std::string HistoryProgram::any_moved() const {
  return fmt::format("SELECT count(*) FROM {} WHERE moved", table("mark"));
}

void HistoryProgram::touch_what_a_truncate_covers() {
  const std::string below = fmt::format("coalesce({}, true)", less("r.seq", "mark_now"));
  append("load", "keys",
         fmt::format(R"(
SELECT {keys} FROM (
  SELECT {r_keys} FROM ({state}) AS r, {mark} WHERE r.kind <> 2 AND ({below} OR (r.kind = 0 AND {same}))
  UNION
  SELECT {r_keys} FROM ({target}) AS r ANTI JOIN (SELECT * FROM ({state}) WHERE kind <> 2) AS s ON {r_is_s}
  CROSS JOIN {mark} WHERE {below}
  EXCEPT SELECT {keys} FROM {touched}))",
                     arg("touched", table("keys")), arg("keys", keys()), arg("r_keys", keys("r")),
                     arg("state", read_state(false)), arg("mark", table("mark")),
                     arg("below", below), arg("same", order("r.seq") + " = " + order("mark_now")),
                     arg("target", read_target(keys_, row_sequence() + " AS seq, ")),
                     arg("r_is_s", keys_equal("r", "s"))),
         any_moved());
}

std::string HistoryProgram::touched(const std::string& rows) const {
  return fmt::format("SELECT r.* FROM ({}) AS r SEMI JOIN {} AS k ON {}", rows, table("keys"),
                     keys_equal("r", "k"));
}

std::string HistoryProgram::owned(const std::string& key,
                                  const std::function<std::string(size_t)>& value,
                                  const std::function<std::string(size_t)>& note) const {
  std::string text;
  for (const size_t i : owned_) {
    text += fmt::format("{} AS {}, ", plan_.columns[i].is_key ? prefix(key) + column(i) : value(i),
                        column(i));
  }
  for (const size_t i : noted_) {
    text +=
        fmt::format("{} AS {}, ", note ? note(i) : typed_null(plan_.columns[i].type), column(i));
  }
  return text;
}

std::string HistoryProgram::without_notes(const std::string& alias) const {
  if (noted_.empty()) return columns(owned_, alias);
  return owned(alias, [&](size_t i) { return prefix(alias) + column(i); });
}

std::string HistoryProgram::entry(const std::string& values, const std::string& at,
                                  const std::string& kind, const std::string& src,
                                  const std::string& nulls, const std::string& stored,
                                  const std::string& position, const std::string& from) const {
  return fmt::format(
      "SELECT {}{}, CAST({} AS TINYINT) AS kind, CAST({} AS TINYINT) AS src, {} AS nulls, "
      "CAST({} AS TINYINT) AS stored, {} FROM {}",
      values, at, kind, src, nulls, stored, position, from);
}

void HistoryProgram::load() {
  load_rows();
  make_numbered(
      "load", "entries",
      entry(without_notes(), moment(), "kind", std::to_string(kFromBatch), "nulls",
            std::to_string(kNotStored), kNoPosition, table("events") + " WHERE kind <> 2"));
  std::string more = fmt::format(
      "{} AS nulls, ",
      state_column(kStateGivenNulls, DataType::array(DataType::primitive(TypeId::kString))));
  if (is_bitemporal()) {
    more +=
        fmt::format("{} AS sys, ", state_column(kStateSystemSequence, plan_.system_sequence_type));
  }
  make_table("load", "known",
             fmt::format("SELECT *, max(CASE WHEN kind = 3 THEN 1 ELSE 0 END) OVER (PARTITION BY "
                         "{}) = 1 AS is_full FROM ({})",
                         keys(), touched(read_state(true, more))));
  if (is_scd1()) {
    load_type1();
  } else {
    append("load", "entries",
           entry(columns(carried_), moment(), "kind", std::to_string(kFromState), "nulls",
                 std::to_string(kStored), "row_file, row_pos", table("known")));
  }
  if (plan_.scd_type == ScdType::kType2) load_type2_rows();
  if (is_edited()) is_scd1() ? take_in_edited_rows() : take_in_edited_versions();
}

void HistoryProgram::load_rows() {
  std::vector<size_t> every;
  for (size_t i = 0; i < plan_.columns.size(); ++i) every.push_back(i);
  std::string more;
  const auto bound = [&](const char* name, const DataType& type, const char* as) {
    more += fmt::format(
        "{} AS {}, ", has_target() ? normal_zero(target_column(name), type) : typed_null(type), as);
  };
  if (is_scd1()) {
    more = row_sequence() + " AS seq, ";
  } else {
    bound(kStartAt, plan_.sequence_type, "start_seq");
    bound(kEndAt, plan_.sequence_type, "stop_seq");
  }
  if (is_bitemporal()) {
    bound(kSystemStartAt, plan_.system_sequence_type, "start_sys");
    bound(kSystemEndAt, plan_.system_sequence_type, "stop_sys");
  }
  make_numbered("load", "rows", touched(read_target(every, more)));
  const auto invalid = [&](const std::string& sql, const std::string& what) {
    check("load", sql, "AUTOCDC_INVALID_STATE.INVALID_TARGET_ROWS",
          "table " + plan_.target + " has " + what);
  };
  const std::string start = is_scd1()         ? ""
                            : is_bitemporal() ? ", start_seq, start_sys"
                                              : ", start_seq";
  invalid(fmt::format("SELECT count(*), min({}) FROM (SELECT {}{} FROM {} GROUP BY ALL HAVING "
                      "count(*) > 1) AS d",
                      keys_text("d"), keys(), start, table("rows")),
          is_scd1()
              ? "more than one row for {count} of its keys, for example {example}, and an SCD TYPE "
                "1 table has one row for a key" +
                    repair_advice(plan_)
          : is_bitemporal()
              ? "two rows of one __START_AT and __SYSTEM_START_AT for {count} of its keys, for "
                "example {example}" +
                    repair_advice(plan_)
              : "two rows of one __START_AT for {count} of its keys, for example {example}" +
                    repair_advice(plan_));
  if (is_scd1() || is_bitemporal()) return;
  invalid(fmt::format("SELECT count(*), min({}) FROM {} AS p WHERE stop_seq IS NOT NULL AND "
                      "start_seq IS NOT NULL AND {} <= {}",
                      keys_text("p"), table("rows"), order("stop_seq"), order("start_seq")),
          "an __END_AT that is not after the __START_AT in {count} of its rows, for example in one "
          "with {example}: correct or delete it");
}

void HistoryProgram::load_type1() {
  const std::string values = owned(
      "k",
      [](size_t i) {
        return fmt::format("CASE WHEN k.is_full THEN k.{0} ELSE r.{0} END", column(i));
      },
      [](size_t i) { return "r." + column(i); });
  append("load", "entries",
         entry(values, "k.seq",
               "CASE WHEN NOT k.is_full AND k.kind IN (1, 4) AND r.row_file IS NULL THEN 0 "
               "ELSE k.kind END",
               fmt::format("CASE WHEN k.is_full OR k.kind IN (0, 5) THEN {} ELSE {} END",
                           kFromState, kFromTarget),
               "k.nulls",
               fmt::format("CASE WHEN k.is_full OR k.kind IN (0, 5) THEN {} ELSE {} END", kStored,
                           kStoredWithoutValues),
               "k.row_file, k.row_pos",
               fmt::format("{} AS k LEFT JOIN {} AS r ON {}", table("known"), table("rows"),
                           keys_equal("k", "r"))));
  append("load", "entries",
         entry(without_notes("r"), "r.seq", "1", std::to_string(kFromTarget), no_nulls(),
               std::to_string(kNotStored), kNoPosition,
               fmt::format("{} AS r ANTI JOIN {} AS k ON {}", table("rows"), table("known"),
                           keys_equal("r", "k"))));
}

void HistoryProgram::load_type2_rows() {
  if (is_edited()) undo_edits();
  const std::string told = table(is_edited() ? "told" : "rows");
  const std::string whole =
      fmt::format("{} AS r ANTI JOIN (SELECT {} FROM {} WHERE is_full) AS k ON {}", told, keys(),
                  table("known"), keys_equal("r", "k"));
  append("load", "entries",
         entry(without_notes("r"), "r.start_seq", "1", std::to_string(kFromTarget), no_nulls(),
               std::to_string(kNotStored), kNoPosition, whole));
  const std::string nothing =
      owned("r", [&](size_t i) { return typed_null(plan_.columns[i].type); });
  append("load", "entries",
         entry(nothing, "r.stop_seq", "0", std::to_string(kFromTarget), no_nulls(),
               std::to_string(kNotStored), kNoPosition,
               fmt::format("{} ANTI JOIN {} AS n ON {} AND n.start_seq = r.stop_seq WHERE "
                           "r.stop_seq IS NOT NULL",
                           whole, told, keys_equal("n", "r"))));
}

}  // namespace strandline::cdc
