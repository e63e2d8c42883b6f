#include "engine/conditions.h"

#include <charconv>
#include <vector>

#include "base/error.h"
#include "duck/boolean_only.h"
#include "duck/engine_errors.h"
#include "engine/names.h"
#include "sql/duckdb_printer.h"

namespace strandline::engine {
namespace {

// A marked condition of a text: "/*?12:5*/(x)".
struct Mark {
  std::string key;  // "12:5"
  SourcePlace place;

  std::string begin() const { return "/*?" + key + "*/("; }
};

std::vector<Mark> marks_of(const std::string& text) {
  std::vector<Mark> marks;
  for (size_t at = text.find("/*?"); at != std::string::npos; at = text.find("/*?", at + 1)) {
    const size_t begin = at + 3;
    const size_t close = text.find("*/(", begin);
    if (close == std::string::npos) break;
    Mark mark{text.substr(begin, close - begin), {}};
    const char* last = mark.key.data() + mark.key.size();
    const auto line = std::from_chars(mark.key.data(), last, mark.place.line);
    if (line.ec != std::errc() || line.ptr == last || *line.ptr != ':') continue;
    const auto column = std::from_chars(line.ptr + 1, last, mark.place.column);
    if (column.ec == std::errc() && column.ptr == last) marks.push_back(std::move(mark));
  }
  return marks;
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

// The type of a condition that is no boolean.
std::optional<std::string> wrong_type(duck::Connection& connection, std::string query,
                                      const std::vector<Mark>& marks) {
  for (const auto& mark : marks) {
    replace_all(query, mark.begin(), fmt::format("{}(", duck::kBooleanOnly));
  }
  const auto bound = connection.describe(query);
  if (bound.ok()) return std::nullopt;
  const std::string& says = bound.error().message;
  const auto call = fmt::format("'{}(", duck::kBooleanOnly);
  const size_t begin = says.find(call);
  if (begin == std::string::npos) return std::nullopt;
  const size_t first = begin + call.size();
  return says.substr(first, says.find(")'", first) - first);
}

Error not_boolean(const std::string& type, const SourcePlace& place) {
  return at(
      invalid_argument("DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN",
                       "the condition is of type {}: write a comparison that is true or false",
                       duck::spark_type(type)),
      place);
}

}  // namespace

Status check_conditions(duck::Connection& connection, const std::string& query) {
  const auto marks = marks_of(query);
  if (marks.empty()) return {};
  const auto any = wrong_type(connection, query, marks);
  if (!any) return {};
  for (const auto& mark : marks) {
    if (const auto type = wrong_type(connection, query, {mark}))
      return not_boolean(*type, mark.place);
  }
  return not_boolean(*any, marks[0].place);
}

Status check_condition(duck::Connection& connection, const std::string& condition,
                       const std::string& from, const SourcePlace& place) {
  const auto query = fmt::format("SELECT {} FROM {}", condition, from);
  SL_TRY(check_conditions(connection, query));
  const auto columns = connection.describe(query);
  if (!columns.ok()) return at(columns.error(), place);
  const auto& type = (*columns)[0].engine_type;
  if (type == "BOOLEAN" || condition == "NULL") return {};
  return not_boolean(type, place);
}

Status refuse_chance(const sql::ExprPtr& condition, const char* verb) {
  if (!condition) return {};
  const auto calls = sql::nondeterministic_calls(*condition);
  if (calls.empty()) return {};
  const auto& place = calls[0].place.line > 0 ? calls[0].place : condition->place;
  return at(unsupported("DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
                        "a condition of {} cannot call {}, which answers differently each time: "
                        "compute it into a table first",
                        verb, calls[0].text),
            place);
}

}  // namespace strandline::engine
