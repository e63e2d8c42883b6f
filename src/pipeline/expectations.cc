#include "pipeline/expectations.h"

#include <strandline/suggest.h>

#include <algorithm>
#include <atomic>

#include "base/error.h"
#include "duck/engine_errors.h"
#include "duck/row_rules.h"
#include "pipeline/context.h"
#include "sql/duckdb_printer.h"

namespace strandline::pipeline {
namespace {

using duck::quote_name;
using sql::OnViolation;

Result<std::string> print(const sql::Expectation& expectation, int64_t now_us) {
  sql::PrintOptions options;
  options.now_us = now_us;
  auto text = sql::print_duckdb(*expectation.condition, options);
  if (!text.ok()) return placed(text.error(), expectation.name.place);
  return text;
}

// A column that a condition reads and that is not there.
std::optional<Error> unknown_column(const sql::Expectation& expectation, const std::string& shown,
                                    const Schema& columns) {
  for (const auto& read : sql::columns_read(*expectation.condition)) {
    const std::string first = read.text.substr(0, read.text.find('.'));
    if (columns.find(read.text) || columns.find(first)) continue;
    std::vector<std::string> known;
    known.reserve(columns.fields.size());
    for (const auto& field : columns.fields) known.push_back(field.name);
    const auto near = nearest_name(first, known);
    return placed(
        invalid_argument("UNRESOLVED_COLUMN.WITH_SUGGESTION",
                         "the expectation '{}' of '{}' reads '{}', which is none of the columns "
                         "that it sees{}; these are {}",
                         expectation.name.text, shown, read.text,
                         near ? fmt::format(": did you mean '{}'?", *near) : "",
                         fmt::join(known, ", ")),
        read.place.line > 0 ? read.place : expectation.name.place);
  }
  return std::nullopt;
}

// What stands for the n-th column of a query while its rows are checked: no name of a user's.
std::string inner(size_t n) { return fmt::format("__strandline_c{}", n); }
std::string flag(size_t n) { return fmt::format("__strandline_e{}", n); }

std::string typed_null(const DataType& type) {
  if (type.id == TypeId::kVoid) return "NULL";
  return fmt::format("CAST(NULL AS {})", duck::engine_type(type));
}

// "a = 1, b = NULL" of a violating row.
std::string example(const sql::Expectation& expectation, const Schema& columns) {
  return duck::shown_row(*expectation.condition, columns);
}

}  // namespace

Schema columns_of(const std::vector<duck::ResultColumn>& columns) {
  Schema schema;
  for (const auto& column : columns) {
    schema.fields.push_back(Field{column.name, column.type, true, {}});
  }
  return schema;
}

std::vector<Error> check_expectations(duck::Connection& connection,
                                      const std::vector<sql::Expectation>& expectations,
                                      const std::string& shown, const Schema& columns) {
  std::vector<Error> errors;
  std::string nulls;
  for (const auto& field : columns.fields) {
    nulls += fmt::format("{}{} AS {}", nulls.empty() ? "" : ", ", typed_null(field.type),
                         quote_name(field.name));
  }
  for (const auto& expectation : expectations) {
    if (auto unknown = unknown_column(expectation, shown, columns)) {
      errors.push_back(std::move(*unknown));
      continue;
    }
    const auto text = print(expectation, 0);
    if (!text.ok()) {
      errors.push_back(text.error());
      continue;
    }
    const auto type = connection.describe(
        fmt::format("SELECT {} AS c FROM (SELECT {})", *text, nulls.empty() ? "1" : nulls));
    if (!type.ok()) {
      Error error = duck::in_users_words(type.error(), nullptr, expectation.name.place);
      if (error.code == "ENGINE_ERROR") error.code = "QUERY_INVALID";
      errors.push_back(error.with_context(
          fmt::format("the expectation '{}' of '{}'", expectation.name.text, shown)));
      continue;
    }
    const auto& found = (*type)[0];
    if (found.type.id == TypeId::kBoolean || found.engine_type == "NULL" ||
        found.engine_type == "\"NULL\"") {
      continue;
    }
    errors.push_back(
        placed(invalid_argument("NOT_A_CONDITION",
                                "the expectation '{}' of '{}' needs a condition, this is {}: "
                                "compare it with a value, as in EXPECT (id IS NOT NULL)",
                                expectation.name.text, shown, to_sql(found.type)),
               expectation.name.place));
  }
  return errors;
}

Result<std::unique_ptr<CheckedRows>> CheckedRows::make(
    duck::Connection& connection, const std::vector<sql::Expectation>& expectations,
    const std::string& dataset, const std::string& shown, const RowsToCheck& rows) {
  Schema seen = rows.columns;
  for (const auto& field : rows.missing.fields) seen.fields.push_back(field);
  if (auto errors = check_expectations(connection, expectations, shown, seen); !errors.empty())
    return errors.front();

  // Three layers: the query's columns under names of ours, so that the conditions see the given
  // ones alone; these under their own names; then the conditions.
  SL_ASSIGN(const auto given, connection.describe("SELECT * FROM (" + rows.query + ")"));
  std::string renamed, kept, back, visible, flags;
  for (size_t i = 0; i < given.size(); ++i) {
    const char* comma = i == 0 ? "" : ", ";
    renamed += fmt::format("{}s.{} AS {}", comma, quote_name(given[i].name), inner(i));
    kept += fmt::format("{}{}", comma, inner(i));
    back += fmt::format("{}{} AS {}", comma, inner(i), quote_name(given[i].name));
  }
  for (const auto& field : rows.columns.fields) {
    const auto at = std::find_if(given.begin(), given.end(), [&](const auto& column) {
      return same_name(column.name, field.name);
    });
    if (at == given.end()) {
      return internal_error("NO_SUCH_COLUMN", "the rows of '{}' have no column '{}'", shown,
                            field.name);
    }
    visible += fmt::format(", {} AS {}", inner(static_cast<size_t>(at - given.begin())),
                           quote_name(field.name));
  }
  for (const auto& field : rows.missing.fields) {
    visible += fmt::format(", {} AS {}", typed_null(field.type), quote_name(field.name));
  }
  renamed += fmt::format(", {} AS __strandline_exempt",
                         rows.exempt.empty() ? "false" : "coalesce(" + rows.exempt + ", false)");
  std::string counts, stays;
  for (size_t i = 0; i < expectations.size(); ++i) {
    SL_ASSIGN(const auto condition, print(expectations[i], rows.now_us));
    // True: violated. Null: not checked.
    flags +=
        fmt::format(", CASE WHEN NOT __strandline_exempt THEN NOT coalesce({}, false) END AS {}",
                    condition, flag(i));
    counts += fmt::format("{0}count(*) FILTER (WHERE NOT {1}), count(*) FILTER (WHERE {1})",
                          i == 0 ? "" : ", ", flag(i));
    if (expectations[i].on_violation == OnViolation::kFailUpdate) {
      // The text of the row, for the error.
      flags += fmt::format(", CASE WHEN {} THEN {} END AS {}_row", flag(i),
                           example(expectations[i], seen), flag(i));
      counts += fmt::format(", min({}_row)", flag(i));
    } else {
      counts += ", NULL";
    }
    if (expectations[i].on_violation == OnViolation::kDropRow) {
      stays += fmt::format("{}NOT coalesce({}, false)", stays.empty() ? "" : " AND ", flag(i));
    }
  }
  if (stays.empty()) stays = "true";

  static std::atomic<int64_t> next{0};
  std::unique_ptr<CheckedRows> checked(
      new CheckedRows(connection, fmt::format("__strandline_checked_{}", ++next)));
  SL_TRY(connection.execute(fmt::format(
      "CREATE TEMP TABLE {} AS SELECT {}{} FROM (SELECT *{} FROM (SELECT {} FROM ({}) AS s))",
      checked->table_, kept, flags, visible, renamed, rows.query)));
  SL_ASSIGN(const auto counted,
            connection.query(fmt::format("SELECT {}, count(*) FILTER (WHERE NOT ({})) FROM {}",
                                         counts, stays, checked->table_)));
  const auto& values = counted.rows.at(0);
  const auto number = [&](size_t i) -> int64_t {
    return values.at(i) ? std::strtoll(values[i]->c_str(), nullptr, 10) : 0;
  };
  checked->counts_ = uncounted(expectations, dataset);
  for (size_t i = 0; i < expectations.size(); ++i) {
    auto& count = checked->counts_[i];
    count.passed_records = number(3 * i);
    count.failed_records = number(3 * i + 1);
    if (expectations[i].on_violation == OnViolation::kDropRow) {
      count.dropped_records = count.failed_records;
    }
    if (expectations[i].on_violation == OnViolation::kFailUpdate && count.failed_records > 0) {
      return placed(
          invalid_data("EXPECTATION_VIOLATION",
                       "{} rows for '{}' violate the expectation '{}' EXPECT ({}), for example the "
                       "one with {}; it says FAIL UPDATE, so nothing was written: correct the "
                       "source, or say DROP ROW to leave such rows out",
                       count.failed_records, shown, expectations[i].name.text,
                       sql::print_spark(*expectations[i].condition),
                       values.at(3 * i + 2).value_or("")),
          expectations[i].name.place);
    }
  }
  checked->dropped_rows_ = number(3 * expectations.size());
  checked->sql_ = fmt::format("(SELECT {} FROM {} WHERE {})", back, checked->table_, stays);
  return checked;
}

CheckedRows::~CheckedRows() { (void)connection_.execute("DROP TABLE IF EXISTS temp." + table_).ok(); }

std::vector<ExpectationReport> uncounted(const std::vector<sql::Expectation>& expectations,
                                         const std::string& dataset) {
  std::vector<ExpectationReport> reports;
  reports.reserve(expectations.size());
  for (const auto& expectation : expectations)
    reports.push_back({expectation.name.text, dataset, 0, 0, 0});
  return reports;
}

void add_counts(std::vector<ExpectationReport>* to, const std::vector<ExpectationReport>& more) {
  for (const auto& report : more) {
    const auto same = std::find_if(to->begin(), to->end(), [&](const ExpectationReport& other) {
      return other.name == report.name && other.dataset == report.dataset;
    });
    if (same == to->end()) {
      to->push_back(report);
      continue;
    }
    same->passed_records += report.passed_records;
    same->failed_records += report.failed_records;
    same->dropped_records += report.dropped_records;
  }
}

std::string expectations_text(const std::vector<sql::Expectation>& expectations) {
  std::string text;
  for (const auto& expectation : expectations) {
    text += fmt::format("\nEXPECT {} ({}) {}", expectation.name.text,
                        sql::print_spark(*expectation.condition),
                        static_cast<int>(expectation.on_violation));
  }
  return text;
}

}  // namespace strandline::pipeline
