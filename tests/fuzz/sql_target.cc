#include <algorithm>

#include "fuzz/targets.h"
#include "sql/parser.h"

namespace strandline::fuzz {
namespace {

void check_errors(const std::vector<Error>& errors, std::string_view text) {
  for (const Error& error : errors) {
    expect(!error.code.empty() && !error.message.empty(), "an error has a code and a message");
    expect(!sql::render_error(error, text).empty(), "an error can be shown");
  }
}

}  // namespace

void sql(std::string_view input) {
  const sql::Script script = sql::parse_script(input, "f.sql");
  check_errors(script.errors, input);
  const bool is_substituted = input.find("${") != std::string_view::npos;
  for (const sql::Statement& statement : script.statements) {
    expect(is_substituted || input.find(statement.text) != std::string_view::npos,
           "a statement's text is of the file");
  }
  const auto query = sql::parse_query(input, "f.sql");
  const auto expression = sql::parse_expression(input, "f.sql");
  const auto type = sql::parse_type(input, "f.sql");
  const auto schema = sql::parse_schema_ddl(input, "f.sql");
  std::vector<Error> errors;
  if (!query.ok()) errors.push_back(query.error());
  if (!expression.ok()) errors.push_back(expression.error());
  if (!type.ok()) errors.push_back(type.error());
  if (!schema.ok()) errors.push_back(schema.error());
  check_errors(errors, input);
  if (type.ok()) {
    const auto again = sql::parse_type(to_sql(*type), "f.sql");
    expect(again.ok() && same_type(*again, *type), "a type survives printing");
  }
}

}  // namespace strandline::fuzz
