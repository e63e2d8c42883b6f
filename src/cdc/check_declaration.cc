#include <algorithm>
#include <map>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "cdc/plan.h"
#include "sql/duckdb_printer.h"

namespace strandline::cdc {

namespace {

// Collects the mistakes of one declaration.
class Checker {
 public:
  explicit Checker(const Declaration& declaration)
      : declaration_(declaration), clauses_(declaration.clauses) {}

  std::vector<Error> check() {
    check_keys();
    check_sequences();
    check_conditions();
    check_lists();
    check_partial_updates();
    check_snapshot();
    std::multimap<std::pair<int, int>, Error> by_place;  // of one place in order of discovery
    for (Error& error : errors_) {
      const SourcePlace place = error.place.value_or(SourcePlace{});
      by_place.emplace(std::pair(place.line, place.column), std::move(error));
    }
    std::vector<Error> sorted;
    sorted.reserve(by_place.size());
    for (auto& [place, error] : by_place) sorted.push_back(std::move(error));
    return sorted;
  }

 private:
  void add(Error error, const SourcePlace& place) {
    error.place = place.line > 0 ? place : declaration_.place;
    error.message = "flow " + declaration_.flow_name + ": " + error.message;
    errors_.push_back(std::move(error));
  }

  sql::StoredAs stored_as() const { return clauses_.stored_as.value_or(sql::StoredAs::kScdType1); }
  bool is_bitemporal() const { return stored_as() == sql::StoredAs::kBitemporal; }

  void check_repeats(const std::vector<sql::Name>& names, const char* clause) {
    std::unordered_set<std::string> seen;
    for (const sql::Name& name : names) {
      if (!seen.insert(fold_name(name.text)).second) {
        add(invalid_argument("AUTOCDC_DUPLICATE_COLUMN",
                             "column '{}' stands twice in {}: write it once", name.text, clause),
            name.place);
      }
    }
  }

  void check_keys() {
    if (clauses_.keys.empty()) {
      add(invalid_argument("AUTOCDC_EMPTY_KEYS",
                           "AUTO CDC into {} names no key: write KEYS (column, ...) with the "
                           "columns that identify a row",
                           declaration_.target),
          clauses_.keys_place);
    }
    check_repeats(clauses_.keys, "KEYS");
  }

  void check_sequences() {
    if (clauses_.from_snapshot) return;
    if (clauses_.sequence_by == nullptr) {
      add(invalid_argument("AUTOCDC_MISSING_SEQUENCE_BY",
                           "AUTO CDC into {} has no SEQUENCE BY: write SEQUENCE BY and the column "
                           "or expression that "
                           "orders the changes of a key",
                           declaration_.target),
          declaration_.place);
    } else {
      refuse_random(*clauses_.sequence_by, "SEQUENCE BY", clauses_.sequence_place);
    }
    if (clauses_.system_sequence_by != nullptr) {
      refuse_random(*clauses_.system_sequence_by, "SYSTEM SEQUENCE BY",
                    clauses_.system_sequence_place);
      if (!is_bitemporal()) {
        add(invalid_argument("INVALID_MULTIPLE_ARGUMENT_CONDITIONS",
                             "SYSTEM SEQUENCE BY belongs to STORED AS BITEMPORAL only: leave it "
                             "out or store the target "
                             "so"),
            clauses_.system_sequence_place);
      }
    } else if (is_bitemporal()) {
      add(invalid_argument("INVALID_MULTIPLE_ARGUMENT_CONDITIONS",
                           "STORED AS BITEMPORAL needs SYSTEM SEQUENCE BY, the second time axis"),
          clauses_.stored_as_place);
    }
  }

  void check_conditions() {
    if (clauses_.delete_when != nullptr) {
      refuse_random(*clauses_.delete_when, "APPLY AS DELETE WHEN", clauses_.delete_place);
    }
    if (clauses_.truncate_when == nullptr) return;
    refuse_random(*clauses_.truncate_when, "APPLY AS TRUNCATE WHEN", clauses_.truncate_place);
    if (stored_as() != sql::StoredAs::kScdType1) {
      add(invalid_argument("INVALID_MULTIPLE_ARGUMENT_CONDITIONS",
                           "APPLY AS TRUNCATE WHEN belongs to STORED AS SCD TYPE 1 only: history "
                           "is not truncated"),
          clauses_.truncate_place);
    }
  }

  void refuse_random(const sql::Expr& expr, const char* clause, const SourcePlace& place) {
    for (const sql::Name& name : sql::nondeterministic_calls(expr)) {
      add(invalid_argument("AUTOCDC_NONDETERMINISTIC_EXPRESSION",
                           "{}() in {} gives another value each time, so a repeated batch would "
                           "differ: use a column "
                           "of the source",
                           name.text, clause),
          name.place.line > 0 ? name.place : place);
    }
  }

  void check_lists() {
    if (clauses_.columns) check_repeats(clauses_.columns->names, "COLUMNS");
    if (clauses_.columns && !clauses_.columns->except && clauses_.columns->names.empty()) {
      add(invalid_argument("AUTOCDC_COLUMNS_NOT_FOUND_IN_SCHEMA", "COLUMNS names no column"),
          clauses_.columns->place);
    }
    if (clauses_.track_history) {
      check_repeats(clauses_.track_history->names, "TRACK HISTORY ON");
      if (stored_as() == sql::StoredAs::kScdType1) {
        add(invalid_argument(
                "INVALID_MULTIPLE_ARGUMENT_CONDITIONS",
                "TRACK HISTORY ON needs STORED AS SCD TYPE 2: SCD TYPE 1 keeps no history"),
            clauses_.track_history->place);
      }
    }
  }

  void check_partial_updates() {
    if (clauses_.ignore_null_columns) {
      const sql::ColumnList& list = *clauses_.ignore_null_columns;
      check_repeats(list.names, "IGNORE NULL UPDATES ON");
      if (list.names.empty() && !list.except) {
        add(invalid_argument("AUTOCDC_IGNORE_NULL_EMPTY_COLUMN_LIST",
                             "IGNORE NULL UPDATES ON names no column"),
            list.place);
      }
      for (const sql::Name& name : list.names) {
        const bool is_key =
            std::any_of(clauses_.keys.begin(), clauses_.keys.end(),
                        [&](const sql::Name& key) { return same_name(key.text, name.text); });
        if (is_key) {
          add(invalid_argument(
                  "AUTOCDC_KEY_IN_IGNORE_NULL_LIST",
                  "'{}' is a key and cannot stand in IGNORE NULL UPDATES ON: a key is never null",
                  name.text),
              name.place);
        }
      }
    }
    if (!clauses_.columns_to_update) return;
    const SourcePlace& place = clauses_.columns_to_update->place;
    if (clauses_.ignore_null_updates) {
      add(invalid_argument("CANNOT_SET_TOGETHER",
                           "COLUMNS TO UPDATE and IGNORE NULL UPDATES both say what an event "
                           "gives: keep one of them"),
          place);
    }
    if (is_bitemporal()) {
      add(invalid_argument("INVALID_MULTIPLE_ARGUMENT_CONDITIONS",
                           "COLUMNS TO UPDATE cannot be used with STORED AS BITEMPORAL"),
          place);
    }
  }

  void check_snapshot() {
    if (!clauses_.from_snapshot) return;
    const auto refuse = [&](bool is_set, const char* clause, const SourcePlace& place) {
      if (!is_set) return;
      add(invalid_argument(
              "INVALID_MULTIPLE_ARGUMENT_CONDITIONS",
              "{} has no meaning FROM SNAPSHOT: a snapshot is compared with the target as a whole",
              clause),
          place);
    };
    refuse(clauses_.sequence_by != nullptr, "SEQUENCE BY", clauses_.sequence_place);
    refuse(clauses_.system_sequence_by != nullptr, "SYSTEM SEQUENCE BY",
           clauses_.system_sequence_place);
    refuse(clauses_.delete_when != nullptr, "APPLY AS DELETE WHEN", clauses_.delete_place);
    refuse(clauses_.truncate_when != nullptr, "APPLY AS TRUNCATE WHEN", clauses_.truncate_place);
    refuse(clauses_.columns.has_value(), "COLUMNS",
           clauses_.columns ? clauses_.columns->place : SourcePlace{});
    refuse(clauses_.ignore_null_updates, "IGNORE NULL UPDATES", clauses_.ignore_null_place);
    refuse(clauses_.columns_to_update.has_value(), "COLUMNS TO UPDATE",
           clauses_.columns_to_update ? clauses_.columns_to_update->place : SourcePlace{});
    refuse(is_bitemporal(), "STORED AS BITEMPORAL", clauses_.stored_as_place);
  }

  const Declaration& declaration_;
  const sql::AutoCdcClauses& clauses_;
  std::vector<Error> errors_;
};

}  // namespace

std::vector<Error> check_declaration(const Declaration& declaration) {
  return Checker(declaration).check();
}

}  // namespace strandline::cdc
