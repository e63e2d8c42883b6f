// Statements that tend tables: OPTIMIZE, REORG, VACUUM, RESTORE.
#include <charconv>

#include "base/error.h"
#include "sql/parser_core.h"

namespace strandline::sql {

// A name, or the path of a table as a string.
TableName Parser::table_or_path() {
  if (peek().kind != TokenKind::kString) return table_name();
  TableName result;
  result.place = peek().place;
  result.parts = {next().text};
  result.is_path = true;
  return result;
}

void Parser::optimize(Statement& statement) {
  Optimize result;
  result.table = table_or_path();
  result.full = accept_word("FULL");
  if (accept_word("WHERE")) result.where = expression();
  if (accept_words({"ZORDER", "BY"})) result.zorder_by = name_list("a column name");
  if (!failed_ && !at_end()) {
    fail_expected("WHERE, ZORDER BY or the end of the statement", {"WHERE", "ZORDER", "FULL"});
  }
  statement.body = std::move(result);
}

void Parser::reorg(Statement& statement) {
  Optimize result;
  result.purge = true;
  expect_word("TABLE");
  result.table = table_name();
  if (accept_word("WHERE")) result.where = expression();
  expect_word("APPLY");
  expect_symbol("(");
  if (at_word("UPGRADE")) {
    return fail_unsupported(peek().place, "REORG ... APPLY (UPGRADE ...)",
                            "make the table anew with the properties it needs");
  }
  expect_word("PURGE");
  expect_symbol(")");
  statement.body = std::move(result);
}

void Parser::vacuum(Statement& statement) {
  Vacuum result;
  result.table = table_or_path();
  if (at_words({"USING", "INVENTORY"})) {
    return fail_unsupported(peek().place, "VACUUM ... USING INVENTORY",
                            "leave it out: the table's folder is listed");
  }
  if (at_word("LITE")) {
    return fail_unsupported(peek().place, "VACUUM ... LITE", "leave it out");
  }
  accept_word("FULL");
  if (accept_word("RETAIN")) {
    const Token& token = peek();
    double hours = -1;
    const std::string& text = token.text;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), hours);
    if (token.kind != TokenKind::kNumber || failed != std::errc() ||
        end != text.data() + text.size() || hours < 0) {
      return fail_expected("a number of hours from 0 on");
    }
    next();
    result.retain_hours = hours;
    if (!accept_word("HOURS")) expect_word("HOUR");
  }
  result.dry_run = accept_words({"DRY", "RUN"});
  if (!failed_ && !at_end()) {
    fail_expected("RETAIN n HOURS, DRY RUN or the end of the statement", {"RETAIN", "DRY"});
  }
  statement.body = std::move(result);
}

void Parser::restore(Statement& statement) {
  Restore result;
  accept_word("TABLE");
  result.table = table_name();
  accept_word("TO");
  TableUse moment;
  table_suffixes(moment);
  if (!failed_ && !moment.version_as_of && !moment.timestamp_as_of) {
    fail_expected("TO VERSION AS OF n or TO TIMESTAMP AS OF '...'", {"TO", "VERSION", "TIMESTAMP"});
  }
  result.version_as_of = std::move(moment.version_as_of);
  result.timestamp_as_of = std::move(moment.timestamp_as_of);
  result.timestamp_expr = std::move(moment.timestamp_expr);
  statement.body = std::move(result);
}

}  // namespace strandline::sql
