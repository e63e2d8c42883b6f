// Statements that change rows: INSERT, UPDATE, DELETE, MERGE.
#include "base/error.h"
#include "sql/parser_core.h"

namespace strandline::sql {

namespace {

const char* kind_of(MergeClause::When when) {
  switch (when) {
    case MergeClause::When::kMatched:
      return "WHEN MATCHED";
    case MergeClause::When::kNotMatched:
      return "WHEN NOT MATCHED";
    case MergeClause::When::kNotMatchedBySource:
      return "WHEN NOT MATCHED BY SOURCE";
  }
  return "WHEN";
}

const char* omitted_condition_code(MergeClause::When when) {
  switch (when) {
    case MergeClause::When::kMatched:
      return "NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION";
    case MergeClause::When::kNotMatched:
      return "NON_LAST_NOT_MATCHED_BY_TARGET_CLAUSE_OMIT_CONDITION";
    case MergeClause::When::kNotMatchedBySource:
      return "NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION";
  }
  return "PARSE_SYNTAX_ERROR";
}

}  // namespace

// [AS] alias, where not_an_alias begins the next clause.
std::optional<Name> Parser::table_alias(std::string_view not_an_alias) {
  if (at_words({"VERSION", "AS", "OF"}) || at_words({"TIMESTAMP", "AS", "OF"})) {
    fail_unsupported(peek().place, "a change of an earlier version of a table",
                     "leave VERSION AS OF out, or use RESTORE TABLE first");
    return std::nullopt;
  }
  if (accept_word("AS")) return name("an alias");
  if (at_name() && !at_clause_word() && !at_word(not_an_alias)) return name("an alias");
  return std::nullopt;
}

// Whether INSERT or MERGE follows the common table expressions of WITH.
bool Parser::at_with_of_dml() const {
  if (!at_word("WITH")) return false;
  int depth = 0;
  for (size_t i = 1; peek(i).kind != TokenKind::kEnd && !at_symbol(";", i); ++i) {
    if (at_symbol("(", i)) ++depth;
    if (at_symbol(")", i)) --depth;
    if (depth != 0) continue;
    if (at_word("INSERT", i) || at_words({"MERGE", "INTO"}, i) || at_words({"MERGE", "WITH"}, i))
      return true;
    if (at_word("SELECT", i) || at_word("FROM", i) || at_word("VALUES", i)) return false;
  }
  return false;
}

// WITH c AS (...) INSERT INTO t SELECT ... FROM c; the same for the source of MERGE.
void Parser::with_dml(Statement& statement) {
  const SourcePlace place = peek().place;
  std::vector<Cte> with = with_clause();
  if (failed_) return;
  const auto around = [&](QueryPtr inner) {
    Query query;
    query.place = place;
    query.with = std::move(with);
    query.body = Derived{std::move(inner)};
    return std::make_shared<const Query>(std::move(query));
  };
  if (at_word("INSERT")) {
    insert(statement);
    auto* insertion = std::get_if<Insert>(&statement.body);
    if (!failed_ && insertion != nullptr) insertion->query = around(std::move(insertion->query));
    return;
  }
  expect_word("MERGE");
  merge(statement);
  auto* merging = std::get_if<Merge>(&statement.body);
  if (failed_ || merging == nullptr || !merging->source) return;
  Relation source;
  source.place = merging->source->place;
  source.alias = merging->source->alias;
  if (const auto* use = merging->source->as<TableUse>(); use != nullptr && !source.alias) {
    source.alias = Name{use->function.empty() ? use->name.parts.back() : use->function, use->place};
  }
  source.node = Derived{around(select_all(merging->source))};
  merging->source = std::make_shared<const Relation>(std::move(source));
}

// PARTITION (p = 1, q)
std::vector<std::pair<Name, ExprPtr>> Parser::partition_values() {
  std::vector<std::pair<Name, ExprPtr>> values;
  expect_symbol("(");
  do {
    Name column = column_name("a partition column");
    for (const auto& [other, value] : values) {
      if (!same_name(other.text, column.text)) continue;
      note(invalid_argument("DUPLICATE_KEY", "the partition column {} is given twice", column.text),
           column.place);
    }
    ExprPtr value;
    if (accept_symbol("=")) value = expression();
    values.emplace_back(std::move(column), std::move(value));
  } while (!failed_ && accept_symbol(","));
  expect_symbol(")");
  return values;
}

void Parser::insert(Statement& statement) {
  next();
  Insert insertion;
  insertion.schema_evolution = accept_words({"WITH", "SCHEMA", "EVOLUTION"});
  if (accept_word("OVERWRITE")) {
    insertion.mode = InsertMode::kOverwrite;
    if (at_word("DIRECTORY") || at_words({"LOCAL", "DIRECTORY"})) {
      return fail_unsupported(peek().place, "INSERT OVERWRITE DIRECTORY", "insert into a table");
    }
    if (!accept_word("INTO")) accept_word("TABLE");
  } else {
    if (!accept_word("INTO")) return fail_expected("INTO or OVERWRITE", {"INTO", "OVERWRITE"});
    accept_word("TABLE");
  }
  insertion.table = table_name();
  if (accept_word("PARTITION")) {
    insertion.partition = partition_values();
    if (at_words({"IF", "NOT", "EXISTS"})) {
      return fail_unsupported(peek().place, "IF NOT EXISTS of a partition", "leave it out");
    }
  }
  if (at_word("REPLACE")) {
    const SourcePlace place = next().place;
    if (!accept_word("WHERE")) {
      return fail_unsupported(place, "INSERT ... REPLACE " + peek().upper, "use REPLACE WHERE");
    }
    if (insertion.mode == InsertMode::kOverwrite || !insertion.partition.empty()) {
      return fail_unsupported(place, "REPLACE WHERE with OVERWRITE or PARTITION",
                              "write INSERT INTO t REPLACE WHERE condition query");
    }
    insertion.mode = InsertMode::kReplaceWhere;
    insertion.replace_where = expression();
  }
  if (at_symbol("(") && !at_query()) insertion.columns = name_list("a column name");
  insertion.by_name = accept_words({"BY", "NAME"});
  insertion.query = query();
  statement.body = std::move(insertion);
}

// a = 1, t.b.c = DEFAULT
std::vector<Assignment> Parser::assignments() {
  std::vector<Assignment> result;
  do {
    Assignment assignment;
    assignment.place = peek().place;
    assignment.target = name_parts("a column name", 64);
    expect_symbol("=");
    assignment.value = expression();
    result.push_back(std::move(assignment));
  } while (!failed_ && accept_symbol(","));
  return result;
}

void Parser::update(Statement& statement) {
  Update update;
  update.table = table_name();
  update.alias = table_alias("SET");
  expect_word("SET");
  update.assignments = assignments();
  if (accept_word("WHERE")) update.where = expression();
  statement.body = std::move(update);
}

void Parser::delete_rows(Statement& statement) {
  expect_word("FROM");
  Delete deletion;
  deletion.table = table_name();
  deletion.alias = table_alias("WHERE");
  if (accept_word("WHERE")) deletion.where = expression();
  statement.body = std::move(deletion);
}

void Parser::merge(Statement& statement) {
  Merge merge;
  merge.schema_evolution = accept_words({"WITH", "SCHEMA", "EVOLUTION"});
  expect_word("INTO");
  merge.table = table_name();
  merge.alias = table_alias("USING");
  expect_word("USING");
  merge.source = relation_primary();
  expect_word("ON");
  merge.on = expression();
  if (!failed_ && !at_word("WHEN")) {
    if (!at_end()) return fail_expected("WHEN [NOT] MATCHED ... THEN", {"WHEN"});
    return note(invalid_argument("MERGE_WITHOUT_WHEN",
                                 "MERGE has no clause: add WHEN MATCHED THEN or WHEN NOT MATCHED "
                                 "THEN"),
                statement.place);
  }
  while (!failed_ && at_word("WHEN")) merge.clauses.push_back(merge_clause());
  check_merge_conditions(merge);
  statement.body = std::move(merge);
}

MergeClause Parser::merge_clause() {
  MergeClause clause;
  clause.place = next().place;
  if (accept_word("MATCHED")) {
    clause.when = MergeClause::When::kMatched;
  } else if (accept_words({"NOT", "MATCHED"})) {
    clause.when = MergeClause::When::kNotMatched;
    if (accept_words({"BY", "SOURCE"})) {
      clause.when = MergeClause::When::kNotMatchedBySource;
    } else if (at_word("BY") && !accept_words({"BY", "TARGET"})) {
      next();
      fail_expected("TARGET or SOURCE", {"TARGET", "SOURCE"});
    }
  } else {
    fail_expected("MATCHED or NOT MATCHED", {"MATCHED", "NOT"});
  }
  if (accept_word("AND")) clause.condition = expression();
  expect_word("THEN");
  const auto star = [&] {
    if (!accept_symbol("*")) return false;
    clause.star = true;
    if (accept_word("EXCEPT")) clause.except = name_list("a column name");
    return true;
  };
  const bool inserts = clause.when == MergeClause::When::kNotMatched;
  const SourcePlace place = peek().place;
  if (!inserts && accept_word("DELETE")) {
    clause.action = MergeClause::Action::kDelete;
  } else if (!inserts && accept_words({"UPDATE", "SET"})) {
    clause.action = MergeClause::Action::kUpdate;
    if (clause.when == MergeClause::When::kNotMatchedBySource && at_symbol("*")) {
      fail_at(place,
              "UPDATE SET * takes the source's columns, but here is no source row: name the "
              "columns, as in UPDATE SET a = 1");
    }
    if (!star()) clause.assignments = assignments();
  } else if (inserts && accept_word("INSERT")) {
    clause.action = MergeClause::Action::kInsert;
    if (star()) return clause;
    expect_symbol("(");
    do {
      Assignment assignment;
      assignment.place = peek().place;
      assignment.target = name_parts("a column name", 64);
      clause.assignments.push_back(std::move(assignment));
    } while (!failed_ && accept_symbol(","));
    expect_symbol(")");
    expect_word("VALUES");
    const SourcePlace values_place = peek().place;
    expect_symbol("(");
    std::vector<ExprPtr> values = expression_list();
    expect_symbol(")");
    if (!failed_ && values.size() != clause.assignments.size()) {
      note(invalid_argument("MERGE_INSERT_VALUE_COUNT_MISMATCH",
                            "INSERT names {} columns, but VALUES gives {}: give one value for each "
                            "column",
                            clause.assignments.size(), values.size()),
           values_place);
      values.resize(clause.assignments.size(), null_literal());
    }
    for (size_t i = 0; i < values.size() && i < clause.assignments.size(); ++i) {
      clause.assignments[i].value = std::move(values[i]);
    }
  } else if (inserts) {
    fail_expected("INSERT: a source row without a target row can only be inserted", {"INSERT"});
  } else {
    fail_expected("UPDATE SET or DELETE", {"UPDATE", "DELETE"});
  }
  return clause;
}

void Parser::check_merge_conditions(const Merge& merge) {
  if (failed_) return;
  for (size_t i = 0; i < merge.clauses.size(); ++i) {
    const MergeClause& clause = merge.clauses[i];
    if (clause.condition) continue;
    for (size_t later = i + 1; later < merge.clauses.size(); ++later) {
      if (merge.clauses[later].when != clause.when) continue;
      return note(invalid_argument(omitted_condition_code(clause.when),
                                   "this {} has no condition, so the later one would never run: "
                                   "only the last of a kind may lack AND condition",
                                   kind_of(clause.when)),
                  clause.place);
    }
  }
}

}  // namespace strandline::sql
