// Parser of the SQL surface (spec: sql.md). Never stops at the first mistake.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sql/ast.h"
#include "sql/lexer.h"

namespace strandline::sql {

struct Script {
  std::vector<Statement> statements;
  // Parse errors in text order, code PARSE_SYNTAX_ERROR (or DUPLICATE_CLAUSES, ...), place set.
  std::vector<Error> errors;
  // Names that broken statements would have declared, so that they are not reported as unknown.
  std::vector<std::string> doubtful_names;
};

// Whole file: statements separated by ';'. file is only for messages. ${key} in the text is
// replaced by what substitution gives (nothing there: an error at that place).
Script parse_script(std::string_view text, const std::string& file,
                    const Substitution& substitution = {});
Result<QueryPtr> parse_query(std::string_view text, const std::string& file);
Result<ExprPtr> parse_expression(std::string_view text, const std::string& file);
// "id INT, name STRING NOT NULL, tags ARRAY<STRING>" (DDL of read_files and Python schemas).
Result<Schema> parse_schema_ddl(std::string_view text, const std::string& file);
Result<DataType> parse_type(std::string_view text, const std::string& file);

// The error's text with the line of source below it and a caret under the column.
std::string render_error(const Error& error, std::string_view source_text);

}  // namespace strandline::sql
