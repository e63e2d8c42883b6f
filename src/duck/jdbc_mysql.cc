#include "duck/jdbc_mysql.h"

#include "base/error.h"
#include "duck/engine_errors.h"

namespace strandline::duck {
namespace {

std::string mysql_name(const std::string& name) {
  std::string out = "`";
  for (const char c : name) {
    out += c;
    if (c == '`') out += c;
  }
  return out + "`";
}

// What the engine's type of a column hides.
struct Hidden {
  bool is_decimal = false;  // of DOUBLE: the extension makes it of a DECIMAL of more than 38 digits
  bool is_text = false;     // of BLOB: the extension takes text of a collation "_bin" for one
};

Result<std::vector<Hidden>> hidden_types(Connection& connection, const std::string& database,
                                         const std::string& relation,
                                         const std::vector<ResultColumn>& columns) {
  std::vector<Hidden> out(columns.size());
  std::string asked;
  std::vector<size_t> places;
  // More digits than a double has: next to a DECIMAL they are a DECIMAL, too.
  const std::string digits = "0.12345678901234567890123456";
  for (size_t i = 0; i < columns.size(); ++i) {
    const auto column = "q." + mysql_name(columns[i].name);
    std::string item;
    if (columns[i].engine_type == "DOUBLE")
      item = fmt::format("CAST(COALESCE({}, {}) AS CHAR)", column, digits);
    else if (columns[i].engine_type == "BLOB")
      item = fmt::format("CHARSET({})", column);
    else
      continue;
    asked += fmt::format("{}{} AS t{}", asked.empty() ? "" : ", ", item, i);
    places.push_back(i);
  }
  if (asked.empty()) return out;
  const auto query = fmt::format(
      "SELECT {} FROM (SELECT 1) AS one LEFT JOIN (SELECT * FROM {} LIMIT 0) AS q ON true", asked,
      relation);
  SL_ASSIGN(const auto answer,
            connection.query(fmt::format("SELECT * FROM mysql_query({}, {})",
                                         quote_literal(database), quote_literal(query))));
  if (answer.rows.size() != 1) return out;
  for (size_t i = 0; i < places.size(); ++i) {
    const auto said = answer.rows[0][i].value_or("");
    if (columns[places[i]].engine_type == "DOUBLE")
      out[places[i]].is_decimal = said.starts_with(digits);
    else
      out[places[i]].is_text = said != "binary";
  }
  return out;
}

// What is sent for a column {0}, and what becomes of that here, {0} again: null where the value
// does not fit.
struct Passage {
  std::string sent;
  std::string taken;  // empty: it is what was sent
  std::string type;   // that the value does not fit
  std::string way_out;
};

std::optional<Passage> passage_of(const ResultColumn& column, const Hidden& hidden) {
  const std::string& type = column.engine_type;
  if (hidden.is_text) return Passage{"CONVERT({0} USING utf8mb4)", "", "", ""};
  const char* const kAsText = "CAST({0} AS CHAR)";
  // The extension makes null of 0000-00-00.
  if (type == "DATE" || type == "TIMESTAMP")
    return Passage{kAsText, fmt::format("TRY_CAST({{0}} AS {})", type), spark_type(type),
                   "give it as text, or as null, in a query, as CAST(... AS CHAR) and NULLIF(..., "
                   "'0000-00-00') do"};
  // A TINYINT(1), too.
  if (type == "BOOLEAN")
    return Passage{"{0} + 0", "CASE {0} WHEN 0 THEN false WHEN 1 THEN true END", type,
                   "give it as a number, in a query, as CAST(... AS SIGNED) does"};
  const char* const kDecimals = "give it as text, or as another DECIMAL, in a query";
  // The extension has one digit too few of an unsigned one.
  if (type.starts_with("DECIMAL("))
    return Passage{kAsText, fmt::format("TRY_CAST({{0}} AS {})", type), type, kDecimals};
  if (hidden.is_decimal)
    return Passage{kAsText,
                   R"(CASE WHEN NOT regexp_matches({0}, '\.\d{{18}}\d*[1-9]') THEN )"
                   "TRY_CAST({0} AS DECIMAL(38,18)) END",
                   "DECIMAL(38,18)", kDecimals};
  return std::nullopt;
}

}  // namespace

Result<MysqlRows> checked_from_mysql(Connection& connection, const std::string& database,
                                     const std::string& relation,
                                     const std::vector<ResultColumn>& columns) {
  SL_ASSIGN(const auto hidden, hidden_types(connection, database, relation, columns));
  MysqlRows out;
  std::string items;
  for (size_t i = 0; i < columns.size(); ++i) {
    const auto there = mysql_name(columns[i].name);
    const auto here = quote_name(columns[i].name);
    const auto passage = passage_of(columns[i], hidden[i]);
    items += i == 0 ? "" : ", ";
    items += passage ? fmt::format(fmt::runtime(passage->sent), there) + " AS " + there : there;
    if (!passage) {
      out.values.emplace_back(std::nullopt);
    } else if (passage->taken.empty()) {
      out.values.emplace_back(here);
    } else {
      out.values.emplace_back(fmt::format(
          "CASE WHEN {0} IS NOT NULL THEN coalesce({1}, error({2} || {0} || {3})) END", here,
          fmt::format(fmt::runtime(passage->taken), here),
          quote_literal(fmt::format("[VALUE_OUT_OF_TYPE] column '{}' of that database has ",
                                    columns[i].name)),
          quote_literal(
              fmt::format(", which does not fit {}: {}", passage->type, passage->way_out))));
    }
  }
  out.query = fmt::format("SELECT {} FROM (SELECT * FROM {}) AS q", items, relation);
  return out;
}

}  // namespace strandline::duck
