// Statements: pipelines, queries, tables (sql.md).
#include <algorithm>
#include <array>

#include "base/error.h"
#include "sql/names.h"
#include "sql/parser_core.h"

namespace strandline::sql {

namespace {

std::string dotted(const std::vector<std::string>& parts) {
  std::string result;
  for (const std::string& part : parts) result += (result.empty() ? "" : ".") + part;
  return result;
}

// First words of statements that are recognised and refused by name.
constexpr std::array<std::string_view, 29> kNotYet = {
    "ALTER",   "REFRESH", "COPY",  "ANALYZE", "GRANT",    "REVOKE",   "DENY",    "CACHE",
    "UNCACHE", "CLEAR",   "MSCK",  "FSCK",    "CONVERT",  "GENERATE", "COMMENT", "CALL",
    "DECLARE", "EXECUTE", "BEGIN", "COMMIT",  "ROLLBACK", "UNDROP",   "REPAIR",  "LOAD",
    "LIST",    "PUT",     "GET",   "REMOVE",  "SYNC",
};

}  // namespace

void Parser::skip_statement() {
  while (!at_end()) next();
}

// Names after CREATE ... TABLE, VIEW or FLOW, for statements that broke before they were read.
void Parser::guess_declared_names(size_t from) {
  if (!declared_.empty()) return;
  at_ = std::min(at_, lexed_.tokens.size() - 1);
  const size_t end = lexed_.tokens.size() - 1;
  if (lexed_.tokens[from].upper != "CREATE") return;
  for (size_t i = from + 1; i < end && i < from + 8; ++i) {
    const std::string& word = lexed_.tokens[i].upper;
    if (word != "TABLE" && word != "VIEW" && word != "FLOW") continue;
    ++i;
    if (i + 2 < end && lexed_.tokens[i].upper == "IF") i += 3;
    std::vector<std::string> parts;
    while (i < end && (lexed_.tokens[i].kind == TokenKind::kWord ||
                       lexed_.tokens[i].kind == TokenKind::kQuotedName)) {
      parts.push_back(lexed_.tokens[i].text);
      if (i + 1 >= end || lexed_.tokens[i + 1].text != ".") break;
      i += 2;
    }
    if (!parts.empty()) declared_.push_back(dotted(parts));
    return;
  }
}

bool Parser::statement(Statement& statement) {
  if (at_with_of_dml()) {
    with_dml(statement);
  } else if (at_query() || at_word("VALUES")) {
    statement.body = SelectStatement{query()};
  } else if (at_word("CREATE")) {
    create(statement);
  } else if (at_words({"APPLY", "CHANGES"})) {
    next();
    next();
    expect_word("INTO");
    CreateAutoCdcFlow flow;
    flow.target = target_table();
    flow.clauses = auto_cdc_clauses();
    statement.body = std::move(flow);
  } else if (accept_word("SET")) {
    set(statement);
  } else if (at_word("INSERT")) {
    insert(statement);
  } else if (accept_word("UPDATE")) {
    update(statement);
  } else if (accept_word("DELETE")) {
    delete_rows(statement);
  } else if (accept_word("MERGE")) {
    merge(statement);
  } else if (accept_word("DROP")) {
    drop(statement);
  } else if (at_words({"ALTER", "TABLE"})) {
    alter_table(statement);
  } else if (at_words({"COMMENT", "ON"})) {
    comment_on(statement);
  } else if (accept_word("TRUNCATE")) {
    expect_word("TABLE");
    statement.body = Truncate{table_name()};
  } else if (at_word("DESCRIBE") || at_word("DESC")) {
    next();
    describe_statement(statement);
  } else if (accept_word("SHOW")) {
    show(statement);
  } else if (accept_word("EXPLAIN")) {
    explain(statement);
  } else if (accept_word("USE")) {
    Use use;
    use.catalog = accept_word("CATALOG");
    if (!use.catalog && !accept_word("SCHEMA")) accept_word("DATABASE");
    use.name = table_name();
    statement.body = std::move(use);
  } else if (accept_word("OPTIMIZE")) {
    optimize(statement);
  } else if (accept_word("REORG")) {
    reorg(statement);
  } else if (accept_word("VACUUM")) {
    vacuum(statement);
  } else if (accept_word("RESTORE")) {
    restore(statement);
  } else if (at_words({"REFRESH", "STREAMING"}) || at_words({"REFRESH", "MATERIALIZED"}) ||
             at_words({"REFRESH", "TABLE"})) {
    next();
    refresh(statement);
  } else if (at_words({"AUTO", "CDC"})) {
    fail_expected("CREATE FLOW name AS before AUTO CDC (or the old form APPLY CHANGES INTO)");
  } else {
    for (const std::string_view word : kNotYet) {
      if (!at_word(word)) continue;
      std::string construct(word);
      // ALTER TABLE, COPY INTO, REFRESH STREAMING TABLE, ...
      if (word == "ALTER" || word == "REFRESH" || word == "COPY" || word == "COMMENT" ||
          word == "ANALYZE") {
        for (size_t i = 1; i <= 2; ++i) {
          static constexpr std::array<std::string_view, 10> kKinds = {
              "TABLE",     "VIEW",         "SCHEMA", "DATABASE", "CATALOG",
              "STREAMING", "MATERIALIZED", "INTO",   "ON",       "FLOW"};
          for (const std::string_view kind : kKinds) {
            if (at_word(kind, i)) construct += " " + std::string(kind);
          }
        }
      }
      not_yet(statement, construct);
      return !failed_;
    }
    fail_expected("a statement",
                  {"SELECT", "CREATE", "INSERT",   "UPDATE",   "DELETE",  "DROP",    "APPLY",
                   "SET",    "SHOW",   "DESCRIBE", "TRUNCATE", "EXPLAIN", "MERGE",   "ALTER",
                   "WITH",   "VALUES", "USE",      "OPTIMIZE", "VACUUM",  "RESTORE", "REORG"});
  }
  return !failed_;
}

void Parser::explain(Statement& statement) {
  if (at_word("EXTENDED") || at_word("FORMATTED") || at_word("COST") || at_word("CODEGEN")) next();
  const bool changes_rows = at_word("INSERT") || at_word("UPDATE") || at_word("DELETE") ||
                            at_word("MERGE") || at_with_of_dml();
  if (!changes_rows) {
    if (at_query() || at_word("VALUES")) {
      statement.body = Explain{query(), nullptr};
    } else {
      fail_expected("a query, INSERT, UPDATE, DELETE or MERGE",
                    {"SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "WITH"});
    }
    return;
  }
  Statement explained;
  explained.place = peek().place;
  if (this->statement(explained))
    statement.body = Explain{nullptr, std::make_shared<const Statement>(std::move(explained))};
}

void Parser::not_yet(Statement& statement, std::string construct) {
  statement.body = NotYet{std::move(construct)};
  skip_statement();
}

void Parser::note_clause(std::vector<std::string>& seen, const std::string& clause,
                         const SourcePlace& place) {
  if (std::find(seen.begin(), seen.end(), clause) != seen.end()) {
    note(invalid_argument("DUPLICATE_CLAUSES", "the clause {} is given twice: keep one", clause),
         place);
  }
  seen.push_back(clause);
}

// --- CREATE ------------------------------------------------------------------------------------

void Parser::create(Statement& statement) {
  next();
  bool or_refresh = false;
  bool or_replace = false;
  if (accept_word("OR")) {
    if (accept_word("REFRESH")) {
      or_refresh = true;
    } else if (accept_word("REPLACE")) {
      or_replace = true;
    } else {
      return fail_expected("REFRESH or REPLACE", {"REFRESH", "REPLACE"});
    }
  }
  bool is_private = false;
  bool temporary = false;
  if (accept_word("PRIVATE")) is_private = true;
  if (at_words({"GLOBAL", "TEMPORARY"}) || at_words({"GLOBAL", "TEMP"})) {
    return fail_unsupported(peek().place, "a GLOBAL TEMPORARY view",
                            "use CREATE VIEW or CREATE TEMPORARY VIEW");
  }
  if (at_word("TEMPORARY") || at_word("TEMP")) {
    next();
    temporary = true;
  }
  if (at_word("STREAMING") || (at_word("LIVE") && !at_word("VIEW", 1))) {
    const bool streaming = accept_word("STREAMING");
    accept_word("LIVE");
    if (streaming && accept_word("VIEW")) return create_view(or_replace, temporary, statement);
    if (streaming && or_replace) {
      return fail_at(statement.place,
                     "a streaming table is not replaced: write CREATE OR REFRESH STREAMING TABLE");
    }
    expect_word("TABLE");
    if (streaming) return create_streaming_table(or_refresh, is_private || temporary, statement);
    return create_materialized_view(or_refresh || or_replace, is_private || temporary,
                                    statement);  // CREATE LIVE TABLE
  }
  if (accept_word("MATERIALIZED")) {
    expect_word("VIEW");
    return create_materialized_view(or_refresh || or_replace, is_private || temporary, statement);
  }
  accept_word("LIVE");
  if (accept_word("VIEW")) {
    if (or_refresh)
      return fail_at(statement.place,
                     "a view is not refreshed: write CREATE VIEW or CREATE OR REPLACE VIEW");
    return create_view(or_replace, temporary || is_private, statement);
  }
  if (accept_word("FLOW")) return create_flow(statement);
  if (at_word("TABLE")) {
    if (or_refresh)
      return fail_expected("STREAMING TABLE or MATERIALIZED VIEW after CREATE OR REFRESH");
    if (temporary)
      return fail_unsupported(peek().place, "a TEMPORARY TABLE", "use CREATE TEMPORARY VIEW");
    next();
    return create_table(or_replace, statement);
  }
  if (at_word("SCHEMA") || at_word("DATABASE")) {
    next();
    return create_schema(statement);
  }
  static constexpr std::array<std::string_view, 12> kRefused = {
      "SINK",      "FUNCTION",  "CATALOG", "EXTERNAL", "CONNECTION",  "VOLUME",
      "PROCEDURE", "RECIPIENT", "SHARE",   "STORAGE",  "BLOOMFILTER", "POLICY"};
  for (const std::string_view word : kRefused) {
    if (at_word(word)) return not_yet(statement, "CREATE " + std::string(word));
  }
  fail_expected("STREAMING TABLE, MATERIALIZED VIEW, VIEW, FLOW, TABLE or SCHEMA",
                {"STREAMING", "MATERIALIZED", "VIEW", "FLOW", "TABLE", "SCHEMA", "DATABASE", "OR",
                 "TEMPORARY", "PRIVATE"});
}

TableName Parser::declared_table(bool strip_live) {
  TableName result = table_name();
  if (strip_live && result.parts.size() == 2 && upper_ascii(result.parts[0]) == "LIVE") {
    result.parts.erase(result.parts.begin());
  }
  if (!failed_) declared_.push_back(dotted(result.parts));
  return result;
}

TableName Parser::target_table() {
  TableName result = table_name();
  if (result.parts.size() == 2 && upper_ascii(result.parts[0]) == "LIVE")
    result.parts.erase(result.parts.begin());
  return result;
}

void Parser::create_streaming_table(bool or_refresh, bool is_private, Statement& statement) {
  CreateStreamingTable table;
  table.or_refresh = or_refresh;
  table.is_private = is_private;
  table.if_not_exists = accept_words({"IF", "NOT", "EXISTS"});
  table.name = declared_table(true);
  if (at_symbol("(")) table_elements(table.options);
  table_clauses(table.options, true);
  if (accept_word("AS")) {
    table.query = query();
  } else if (accept_word("FLOW")) {
    if (at_word("INSERT") || at_word("REPLACE")) {
      return fail_unsupported(peek().place, "FLOW " + peek().upper + " in CREATE STREAMING TABLE",
                              "write AS query, or CREATE FLOW name AS INSERT INTO");
    }
    accept_word("AS");
    if (!accept_words({"AUTO", "CDC"}) && !accept_words({"APPLY", "CHANGES"})) {
      return fail_expected("AUTO CDC after FLOW", {"AUTO"});
    }
    const bool once = accept_word("ONCE");
    table.auto_cdc = auto_cdc_clauses();
    table.auto_cdc->once = once;
  } else if (!at_end()) {
    fail_expected(
        "a table clause (COMMENT, TBLPROPERTIES, PARTITIONED BY, CLUSTER BY, USING), AS, FLOW AUTO "
        "CDC or ';'",
        {"COMMENT", "TBLPROPERTIES", "PARTITIONED", "CLUSTER", "USING", "LOCATION", "AS", "FLOW"});
  }
  statement.body = std::move(table);
}

void Parser::create_materialized_view(bool or_refresh, bool is_private, Statement& statement) {
  CreateMaterializedView view;
  view.or_refresh = or_refresh;
  view.is_private = is_private;
  view.if_not_exists = accept_words({"IF", "NOT", "EXISTS"});
  view.name = declared_table(true);
  if (at_symbol("(")) table_elements(view.options, true);
  table_clauses(view.options, true);
  if (!accept_word("AS")) {
    return fail_expected("AS and a query (AUTO CDC flows feed streaming tables)",
                         {"AS", "COMMENT", "TBLPROPERTIES"});
  }
  view.query = query();
  statement.body = std::move(view);
}

void Parser::create_view(bool or_replace, bool temporary, Statement& statement) {
  CreateView view;
  view.or_replace = or_replace;
  view.temporary = temporary;
  view.if_not_exists = accept_words({"IF", "NOT", "EXISTS"});
  view.name = declared_table(true);
  if (accept_symbol("(")) {
    TableOptions options;
    while (!failed_ && !at_symbol(")")) {
      if (at_word("CONSTRAINT")) {
        constraint(options);
      } else {
        view.columns.push_back(name("a column name"));
        if (accept_word("COMMENT")) string_value("the comment");
      }
      if (!accept_symbol(",")) break;
    }
    expect_symbol(")");
    view.expectations = std::move(options.expectations);
  }
  while (!failed_ && !at_word("AS")) {
    if (accept_word("COMMENT")) {
      view.comment = string_value("the comment");
    } else if (accept_word("TBLPROPERTIES")) {
      view.properties = option_list();
    } else if (at_word("WITH")) {
      fail_unsupported(peek().place, "WITH " + peek(1).upper + " of a view", "");
    } else {
      fail_expected("AS and the view's query", {"AS", "COMMENT", "TBLPROPERTIES"});
    }
  }
  expect_word("AS");
  view.query = query();
  statement.body = std::move(view);
}

void Parser::create_flow(Statement& statement) {
  const SourcePlace place = peek().place;
  Name flow_name{dotted(name_parts("the flow's name", 3)), place};
  std::optional<std::string> comment;
  if (accept_word("COMMENT")) comment = string_value("the comment");
  if (!accept_word("AS")) return fail_expected("COMMENT or AS", {"AS", "COMMENT"});
  if (accept_words({"AUTO", "CDC"}) || accept_words({"APPLY", "CHANGES"})) {
    CreateAutoCdcFlow flow;
    const bool once = accept_word("ONCE");
    expect_word("INTO");
    flow.flow_name = std::move(flow_name);
    flow.comment = std::move(comment);
    flow.target = target_table();
    flow.clauses = auto_cdc_clauses();
    flow.clauses.once = once;
    statement.body = std::move(flow);
    return;
  }
  if (accept_word("INSERT")) {
    CreateInsertFlow flow;
    flow.flow_name = std::move(flow_name);
    flow.comment = std::move(comment);
    flow.once = accept_word("ONCE");
    expect_word("INTO");
    if (!flow.once && at_word("ONCE") && at_name(1) && !at_words({"BY", "NAME"}, 1)) {
      next();
      flow.once = true;
    }
    flow.target = target_table();
    flow.by_name = accept_words({"BY", "NAME"});
    flow.query = query();
    statement.body = std::move(flow);
    return;
  }
  if (at_word("REPLACE"))
    return fail_unsupported(peek().place, "a REPLACE flow", "use an INSERT flow or AUTO CDC");
  fail_expected("AUTO CDC or INSERT", {"AUTO", "INSERT", "APPLY"});
}

std::vector<Name> Parser::name_list(std::string_view what) {
  std::vector<Name> names;
  const bool parentheses = accept_symbol("(");
  if (parentheses && accept_symbol(")")) return names;
  do {
    names.push_back(column_name(what));
  } while (!failed_ && accept_symbol(","));
  if (parentheses) {
    if (!failed_ && !at_symbol(")")) fail_expected("',' or ')'");
    accept_symbol(")");
  }
  return names;
}

// --- AUTO CDC ----------------------------------------------------------------------------------

ColumnList Parser::column_list() {
  ColumnList list;
  list.place = peek().place;
  if (accept_symbol("*")) {
    list.except = true;
    if (accept_word("EXCEPT")) list.names = name_list("a column name");
    return list;
  }
  list.names = name_list("a column name");
  return list;
}

void Parser::auto_cdc_source(AutoCdcClauses& clauses) {
  if (!accept_word("FROM")) return fail_expected("FROM and the source", {"FROM"});
  if (at_word("SNAPSHOT") &&
      (at_symbol("(", 1) || (at_name(1) && !at_word("KEYS", 1) && !at_word("AS", 1)))) {
    next();
    clauses.from_snapshot = true;
    if (at_symbol("(")) {
      next();
      clauses.source = at_query() ? query() : select_table(table_name());
      expect_symbol(")");
    } else {
      clauses.source = select_table(table_name());
    }
    if (accept_words({"WITH", "VERSION"})) {
      expect_symbol("(");
      clauses.snapshot_version = query();
      expect_symbol(")");
    }
    return;
  }
  in_cdc_source_ = true;
  RelationPtr source = relation_primary();
  in_cdc_source_ = false;
  if (failed_) return;
  if (at_join() || at_symbol(",")) {
    return fail_expected(
        "KEYS: the source is one relation; write a join as (SELECT ... FROM STREAM(a) JOIN b ...)");
  }
  const auto* derived = source->as<Derived>();
  const bool bare_query = derived != nullptr && !source->alias;
  clauses.source = bare_query ? derived->query : select_all(std::move(source));
}

AutoCdcClauses Parser::auto_cdc_clauses() {
  AutoCdcClauses clauses;
  auto_cdc_source(clauses);
  std::vector<std::string> seen;
  const auto once = [&](const std::string& clause, const SourcePlace& place) {
    note_clause(seen, clause, place);
  };
  while (!failed_ && !at_end()) {
    const SourcePlace place = peek().place;
    if (accept_word("KEYS")) {
      once("KEYS", place);
      clauses.has_keys = true;
      clauses.keys_place = place;
      clauses.keys = name_list("a key column");
    } else if (accept_words({"IGNORE", "NULL", "UPDATES"})) {
      once("IGNORE NULL UPDATES", place);
      clauses.ignore_null_updates = true;
      clauses.ignore_null_place = place;
      if (accept_word("ON")) clauses.ignore_null_columns = column_list();
    } else if (accept_words({"APPLY", "AS", "DELETE", "WHEN"})) {
      once("APPLY AS DELETE WHEN", place);
      clauses.delete_place = place;
      clauses.delete_when = expression();
    } else if (accept_words({"APPLY", "AS", "TRUNCATE", "WHEN"})) {
      once("APPLY AS TRUNCATE WHEN", place);
      clauses.truncate_place = place;
      clauses.truncate_when = expression();
    } else if (accept_words({"SEQUENCE", "BY"})) {
      once("SEQUENCE BY", place);
      clauses.sequence_place = place;
      clauses.sequence_by = expression();
      if (at_symbol(","))
        fail_expected("a clause: several sequence columns are written SEQUENCE BY STRUCT(a, b)");
    } else if (accept_words({"SYSTEM", "SEQUENCE", "BY"})) {
      once("SYSTEM SEQUENCE BY", place);
      clauses.system_sequence_place = place;
      clauses.system_sequence_by = expression();
    } else if (accept_words({"COLUMNS", "TO", "UPDATE"})) {
      once("COLUMNS TO UPDATE", place);
      clauses.columns_to_update = column_name("a column name");
    } else if (accept_word("COLUMNS")) {
      once("COLUMNS", place);
      clauses.columns = column_list();
    } else if (accept_words({"STORED", "AS"})) {
      once("STORED AS", place);
      clauses.stored_as_place = place;
      if (accept_word("BITEMPORAL")) {
        clauses.stored_as = StoredAs::kBitemporal;
      } else if (accept_words({"SCD", "TYPE"})) {
        const Token& number = peek();
        const bool constant =
            number.kind == TokenKind::kNumber || number.kind == TokenKind::kString;
        if (constant && number.text == "1") {
          clauses.stored_as = StoredAs::kScdType1;
        } else if (constant && number.text == "2") {
          clauses.stored_as = StoredAs::kScdType2;
        } else {
          fail_expected("1 or 2 after SCD TYPE");
        }
        next();
      } else {
        fail_expected("SCD TYPE 1, SCD TYPE 2 or BITEMPORAL", {"SCD", "BITEMPORAL"});
      }
    } else if (accept_words({"TRACK", "HISTORY", "ON"})) {
      once("TRACK HISTORY ON", place);
      clauses.track_history = column_list();
    } else if (at_word("WHERE")) {
      fail_unsupported(place, "WHERE after the source of AUTO CDC",
                       "write FROM (SELECT * FROM STREAM(name) WHERE ...)");
    } else {
      const bool first = seen.empty();
      fail_expected(
          first
              ? "KEYS (columns)"
              : "a clause of AUTO CDC (SEQUENCE BY, APPLY AS DELETE WHEN, APPLY AS TRUNCATE WHEN, "
                "COLUMNS, STORED AS, TRACK HISTORY ON, IGNORE NULL UPDATES, ...) or ';'",
          {"KEYS", "IGNORE", "APPLY", "SEQUENCE", "SYSTEM", "COLUMNS", "STORED", "TRACK"});
    }
  }
  if (!failed_ && seen.empty()) fail_expected("KEYS (columns)", {"KEYS"});
  return clauses;
}

// --- other statements --------------------------------------------------------------------------

// SET key = value: the value is the rest of the statement as written, quotes included (as in
// Spark).
void Parser::set(Statement& statement) {
  SetOption option;
  if (at_end()) return fail_expected("a key");
  const bool time_zone = accept_words({"TIME", "ZONE"});
  option.key = time_zone ? "spark.sql.session.timeZone" : option_key();
  if (time_zone || accept_symbol("=")) {
    const size_t begin = peek().begin;
    size_t end = begin;
    while (!at_end()) end = next().end;
    option.value = lexed_.text.substr(begin, end - begin);
  }
  statement.body = std::move(option);
}

// After REFRESH.
void Parser::refresh(Statement& statement) {
  RefreshTable result;
  if (accept_word("MATERIALIZED")) {
    result.what = RefreshTable::What::kMaterializedView;
    expect_word("VIEW");
  } else {
    if (accept_word("STREAMING")) result.what = RefreshTable::What::kStreamingTable;
    expect_word("TABLE");
  }
  result.table = table_name();
  result.full = accept_word("FULL");
  if (at_word("ASYNC")) {
    return fail_unsupported(peek().place, "REFRESH ... ASYNC",
                            "leave ASYNC out: the statement ends when the rows are there");
  }
  accept_word("SYNC");
  if (!at_end()) fail_expected("FULL, SYNC or ';'", {"FULL", "SYNC"});
  statement.body = std::move(result);
}

void Parser::drop(Statement& statement) {
  Drop result;
  if (accept_word("TABLE") || accept_words({"STREAMING", "TABLE"}) ||
      accept_words({"MATERIALIZED", "VIEW"})) {
    result.what = Drop::What::kTable;
  } else if (accept_word("VIEW")) {
    result.what = Drop::What::kView;
  } else if (accept_word("SCHEMA") || accept_word("DATABASE")) {
    result.what = Drop::What::kSchema;
  } else {
    for (const std::string_view word : {"FUNCTION", "CATALOG", "VOLUME", "CONNECTION", "FLOW"}) {
      if (at_word(word)) return not_yet(statement, "DROP " + std::string(word));
    }
    return fail_expected("TABLE, VIEW or SCHEMA",
                         {"TABLE", "VIEW", "SCHEMA", "DATABASE", "MATERIALIZED", "STREAMING"});
  }
  result.if_exists = accept_words({"IF", "EXISTS"});
  result.name = table_name();
  if (accept_word("CASCADE")) {
    result.cascade = true;
  } else if (!accept_word("RESTRICT")) {
    accept_word("PURGE");
  }
  statement.body = std::move(result);
}

}  // namespace strandline::sql
