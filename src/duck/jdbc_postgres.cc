#include "duck/jdbc_postgres.h"

#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "duck/engine_errors.h"

namespace strandline::duck {
namespace {

constexpr int kMostDigits = 38;
constexpr int kFreeScale = 18;  // of a numeric that says none, or one that DECIMAL lacks

// The types of columns of DOUBLE, and of arrays of it, by their names in PostgreSQL, those of
// domains by what they are made of: the extension makes DOUBLE of a numeric without a precision.
Result<std::vector<std::string>> types_of_doubles(Connection& connection,
                                                  const std::string& database,
                                                  const std::string& relation,
                                                  const std::vector<ResultColumn>& columns) {
  std::vector<std::string> out(columns.size());
  std::string asked;
  std::vector<size_t> places;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (!columns[i].engine_type.starts_with("DOUBLE")) continue;
    // Next to a null, a domain is the type below it.
    asked += fmt::format("{}CAST(pg_typeof(coalesce(q.{}, NULL)) AS text) AS t{}",
                         asked.empty() ? "" : ", ", quote_name(columns[i].name), i);
    places.push_back(i);
  }
  if (asked.empty()) return out;
  const auto query = fmt::format(
      "SELECT {} FROM (SELECT 1) AS one LEFT JOIN (SELECT * FROM {} LIMIT 0) AS q ON true", asked,
      relation);
  SL_ASSIGN(const auto types,
            connection.query(fmt::format("SELECT * FROM postgres_query({}, {})",
                                         quote_literal(database), quote_literal(query))));
  if (types.rows.size() != 1) return out;
  for (size_t i = 0; i < places.size(); ++i) out[places[i]] = types.rows[0][i].value_or("");
  return out;
}

// What a type of PostgreSQL holds and its type here does not: a condition on {0}, the type that
// PostgreSQL is to send, and the name of the type here.
struct Misfit {
  std::string condition;
  std::string sent_as;
  std::string shown;
};

Misfit of_decimal(int precision, int scale) {
  return {"{0} = 'NaN'", fmt::format("numeric({},{})", precision, scale),
          fmt::format("DECIMAL({},{})", precision, scale)};
}

Misfit of_free_numeric() {
  auto out = of_decimal(kMostDigits, kFreeScale);
  out.condition += fmt::format(" OR abs({{0}}) >= 1e{} OR {{0}} <> round({{0}}, {})",
                               kMostDigits - kFreeScale, kFreeScale);
  return out;
}

std::optional<Misfit> misfit_of(const std::string& element, bool is_free_numeric) {
  if (is_free_numeric) return of_free_numeric();
  int precision = 0;
  int scale = 0;
  if (std::sscanf(element.c_str(), "DECIMAL(%d,%d)", &precision, &scale) == 2) {
    // The extension knows eight bits of a scale: those of a negative one are more than any digits.
    if (scale > kMostDigits) return of_free_numeric();
    return of_decimal(std::max(precision, scale), scale);
  }
  if (element == "DATE") return Misfit{"NOT isfinite({0})", "date", "DATE"};
  // The microseconds of 64 bits end before PostgreSQL's years do.
  constexpr const char* kTooLate = "NOT isfinite({{0}}) OR {{0}} >= '294247-01-10 04:00:54{}'";
  if (element == "TIMESTAMP")
    return Misfit{fmt::format(kTooLate, ""), "timestamp", spark_type(element)};
  if (element == "TIMESTAMP WITH TIME ZONE")
    return Misfit{fmt::format(kTooLate, "+00"), "timestamptz", spark_type(element)};
  return std::nullopt;
}

// A column as PostgreSQL is to send it: a value that does not fit fails there, as no expression of
// its own can be made to fail but a cast of a text that is none of the type.
std::optional<std::string> checked_column(const ResultColumn& column, const std::string& pg_type) {
  std::string element = column.engine_type;
  std::string brackets;
  while (element.ends_with("[]")) {
    element.resize(element.size() - 2);
    brackets = "[]";
  }
  const auto misfit = misfit_of(element, pg_type == "numeric" + brackets);
  const std::string quoted = quote_name(column.name);
  std::string shown = misfit ? misfit->shown : spark_type(element);
  if (!brackets.empty()) shown = "ARRAY<" + shown + ">";
  constexpr int kMostShown = 100;
  // As engine_errors.cc reads it.
  const auto message = fmt::format(
      "'misfit: ' || left(CAST({} AS text), {}) || {}", quoted, kMostShown,
      quote_literal(fmt::format(" of column '{}' does not fit {}", column.name, shown)));
  if (brackets.empty()) {
    if (!misfit) return std::nullopt;
    return fmt::format("CAST(CASE WHEN {1} THEN CAST({2} AS {3}) ELSE {0} END AS {3}) AS {0}",
                       quoted, fmt::format(fmt::runtime(misfit->condition), quoted), message,
                       misfit->sent_as);
  }
  // PostgreSQL's array types say nothing of dimensions. A slice has the type of its array.
  std::string condition = fmt::format("array_ndims({}) > 1", quoted);
  if (misfit)
    condition += fmt::format(" OR EXISTS (SELECT 1 FROM unnest({}) AS u(e) WHERE {})", quoted,
                             fmt::format(fmt::runtime(misfit->condition), "u.e"));
  const auto value = fmt::format("CASE WHEN {1} THEN {0}[CAST({2} AS integer):1] ELSE {0} END",
                                 quoted, condition, message);
  return misfit ? fmt::format("CAST({} AS {}[]) AS {}", value, misfit->sent_as, quoted)
                : fmt::format("{} AS {}", value, quoted);
}

}  // namespace

Result<std::optional<std::string>> checked_by_postgres(Connection& connection,
                                                       const std::string& database,
                                                       const std::string& relation,
                                                       const std::vector<ResultColumn>& columns) {
  SL_ASSIGN(const auto types, types_of_doubles(connection, database, relation, columns));
  std::string items;
  bool any = false;
  for (size_t i = 0; i < columns.size(); ++i) {
    const auto checked = checked_column(columns[i], types[i]);
    any = any || checked;
    items += (i == 0 ? "" : ", ") + checked.value_or(quote_name(columns[i].name));
  }
  if (!any) return std::optional<std::string>{};
  return std::optional(fmt::format("SELECT {} FROM (SELECT * FROM {}) AS q", items, relation));
}

}  // namespace strandline::duck
