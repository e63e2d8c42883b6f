// Queries: SELECT and its clauses, relations, set operations, CTEs, pipes.
#include <array>

#include "base/error.h"
#include "sql/duckdb_printer.h"
#include "sql/names.h"
#include "sql/parser_core.h"

namespace strandline::sql {

namespace {

bool has_tail(const Query& query) {
  return !query.with.empty() || !query.order_by.empty() || query.order_by_all || query.limit ||
         query.offset;
}

// A query that clauses can still be added to: the given one, or SELECT over it as a subquery.
Query open_query(const QueryPtr& query) {
  if (!has_tail(*query)) return *query;
  Query outer;
  outer.place = query->place;
  outer.body = Derived{query};
  return outer;
}

QueryPtr share(Query query) { return std::make_shared<const Query>(std::move(query)); }
RelationPtr share(Relation relation) {
  return std::make_shared<const Relation>(std::move(relation));
}

bool is_plain_star(const std::vector<SelectItem>& items) {
  if (items.size() != 1) return false;
  const auto* star = items[0].expr->as<Star>();
  return star != nullptr && star->qualifier.empty() && star->except.empty() &&
         star->replaced.empty();
}

// SELECT * FROM x [WHERE c]: pipe operators can be folded into it.
Select* open_select(Query& query) {
  auto* select = std::get_if<Select>(&query.body);
  if (select == nullptr || has_tail(query) || !is_plain_star(select->items) || !select->from ||
      select->distinct || !select->group_by.empty() || select->group_by_all || select->having ||
      select->qualify || !select->windows.empty()) {
    return nullptr;
  }
  return select;
}

// Makes query SELECT * FROM (query) unless it is one already.
Select& wrapped(Query& query) {
  if (Select* select = open_select(query)) return *select;
  Relation relation;
  relation.place = query.place;
  relation.node = Derived{share(query)};
  query = *select_all(share(std::move(relation)));
  return std::get<Select>(query.body);
}

}  // namespace

bool Parser::at_query(size_t ahead) const {
  if (at_word("SELECT", ahead) || at_word("FROM", ahead)) return true;
  if (at_word("WITH", ahead)) return at_name(ahead + 1);
  if (at_word("VALUES", ahead)) {
    const Token& following = peek(ahead + 1);
    return following.kind != TokenKind::kEnd &&
           !(following.kind == TokenKind::kSymbol && following.text != "(");
  }
  if (at_word("TABLE", ahead)) return at_name(ahead + 1) && !at_clause_word(ahead + 1);
  // A query in parentheses, unless what follows the closing one goes on with an expression or a
  // join.
  if (!at_symbol("(", ahead)) return false;
  size_t opening = ahead;
  while (at_symbol("(", opening)) ++opening;
  if (opening - ahead > static_cast<size_t>(kMaxNesting))
    return true;  // refused as too deep by the query's rule
  if (!at_query(ahead + 1)) return false;
  int depth = 0;
  size_t i = ahead;
  for (; peek(i).kind != TokenKind::kEnd; ++i) {
    if (at_symbol("(", i)) ++depth;
    if (at_symbol(")", i) && --depth == 0) break;
  }
  ++i;
  return at_symbol(")", i) || at_word("UNION", i) || at_word("EXCEPT", i) || at_word("MINUS", i) ||
         at_word("INTERSECT", i) || at_word("ORDER", i) || at_word("LIMIT", i) ||
         at_word("OFFSET", i) || at_symbol("|>", i) || at_symbol(";", i) ||
         peek(i).kind == TokenKind::kEnd;
}

QueryPtr Parser::query() {
  const Nesting nesting(*this);
  const bool outside_cdc = in_cdc_source_;
  in_cdc_source_ = false;
  const SourcePlace place = peek().place;
  std::vector<Cte> with;
  if (at_word("WITH")) with = with_clause();
  Query result = open_query(set_operations(0));
  result.place = place;
  query_tail(result);
  if (!with.empty()) {
    if (!result.with.empty())
      result = Query{{}, Derived{share(std::move(result))}, {}, false, {}, {}, place};
    result.with = std::move(with);
  }
  QueryPtr shared = share(std::move(result));
  if (at_symbol("|>")) shared = pipes(std::move(shared));
  in_cdc_source_ = outside_cdc;
  return shared;
}

std::vector<Cte> Parser::with_clause() {
  std::vector<Cte> result;
  expect_word("WITH");
  if (at_word("RECURSIVE") && at_name(1)) {
    fail_unsupported(peek().place, "WITH RECURSIVE", "");
    return result;
  }
  do {
    Cte cte;
    cte.name = name("the name of a common table expression");
    if (at_symbol("(")) cte.columns = name_list("a column name");
    accept_word("AS");
    expect_symbol("(");
    cte.query = query();
    expect_symbol(")");
    for (const Cte& other : result) {
      if (same_name(other.name.text, cte.name.text) && !failed_) {
        note(invalid_argument("DUPLICATED_CTE_NAMES", "WITH names '{}' twice", cte.name.text),
             cte.name.place);
      }
    }
    result.push_back(std::move(cte));
  } while (!failed_ && accept_symbol(","));
  return result;
}

void Parser::query_tail(Query& query) {
  if (at_words({"ORDER", "BY"})) {
    next();
    next();
    if (at_word("ALL") && !at_symbol(".", 1) && !at_symbol("(", 1)) {
      next();
      query.order_by_all = true;
    } else {
      query.order_by = order_items();
    }
  }
  if ((at_word("SORT") || at_word("CLUSTER") || at_word("DISTRIBUTE")) && at_word("BY", 1)) {
    fail_unsupported(peek().place, peek().upper + " BY", "use ORDER BY");
    return;
  }
  if (accept_word("LIMIT")) {
    if (!accept_word("ALL")) query.limit = expression();
  }
  if (accept_word("OFFSET")) query.offset = expression();
  if (at_word("FETCH")) fail_unsupported(peek().place, "FETCH", "use LIMIT");
}

// Level 0: UNION, EXCEPT, MINUS; level 1: INTERSECT.
QueryPtr Parser::set_operations(int level) {
  if (level == 2) {
    QueryPtr primary = query_primary();
    while (!failed_ && at_symbol("|>")) primary = pipes(std::move(primary));
    return primary;
  }
  QueryPtr left = set_operations(level + 1);
  while (!failed_) {
    std::optional<SetKind> kind;
    if (level == 0 && at_word("UNION")) kind = SetKind::kUnion;
    if (level == 0 && (at_word("EXCEPT") || at_word("MINUS"))) kind = SetKind::kExcept;
    if (level == 1 && at_word("INTERSECT")) kind = SetKind::kIntersect;
    if (!kind) break;
    count_step();
    const SourcePlace place = next().place;
    SetOperation operation;
    operation.kind = *kind;
    operation.all = accept_word("ALL");
    if (!operation.all) accept_word("DISTINCT");
    if (at_words({"BY", "NAME"})) {
      if (*kind != SetKind::kUnion)
        fail_unsupported(peek().place, "BY NAME outside UNION", "list the columns");
      next();
      next();
      operation.by_name = true;
    }
    operation.left = left;
    operation.right = set_operations(level + 1);
    Query query;
    query.place = place;
    query.body = std::move(operation);
    left = share(std::move(query));
  }
  return left;
}

QueryPtr Parser::query_primary() {
  const SourcePlace place = peek().place;
  if (at_word("SELECT")) return select(nullptr);
  if (at_word("FROM")) return from_first();
  if (at_word("VALUES")) {
    next();
    Query query;
    query.place = place;
    query.body = values_rows();
    return share(std::move(query));
  }
  if (at_word("TABLE")) {
    next();
    return select_table(table_name());
  }
  if (at_symbol("(")) {
    next();
    QueryPtr inner = query();
    expect_symbol(")");
    return inner;
  }
  fail_expected("a query", {"SELECT", "FROM", "VALUES", "WITH"});
  Query nothing;
  nothing.body = ValuesRows{};
  return share(std::move(nothing));
}

ValuesRows Parser::values_rows() {
  ValuesRows result;
  do {
    const SourcePlace place = peek().place;
    std::vector<ExprPtr> row;
    if (at_symbol("(") && !at_query()) {
      next();
      row = expression_list();
      expect_symbol(")");
    } else {
      row.push_back(expression());
    }
    if (!failed_ && !result.rows.empty() && result.rows[0].size() != row.size()) {
      fail_at(place, fmt::format("this row of VALUES has {} values, but the first has {}",
                                 row.size(), result.rows[0].size()));
    }
    result.rows.push_back(std::move(row));
  } while (!failed_ && accept_symbol(","));
  return result;
}

SelectItem Parser::select_item() {
  SelectItem item;
  item.expr = expression();
  if (failed_) return item;
  if (const auto* star = item.expr->as<Star>()) {
    if (at_word("EXCEPT") && at_symbol("(", 1) && !at_query(2) && !at_symbol("(", 2)) {
      next();
      Star with_except = *star;
      with_except.except = name_list("a column name");
      item.expr = make(std::move(with_except), item.expr->place);
    } else if (at_word("REPLACE") || at_word("EXCLUDE")) {
      fail_unsupported(peek().place, "* " + peek().upper, "use * EXCEPT (columns)");
    }
    return item;
  }
  if (accept_word("AS")) {
    if (accept_symbol("(")) {
      do {
        item.aliases.push_back(name("an alias"));
      } while (accept_symbol(","));
      expect_symbol(")");
    } else if (peek().kind == TokenKind::kString) {
      fail_at(peek().place,
              fmt::format("found the string '{}', expected a name: quote names with `backquotes`",
                          peek().text));
    } else {
      item.aliases.push_back(name("an alias"));
    }
  } else if (at_implicit_alias()) {
    item.aliases.push_back(name("an alias"));
  }
  return item;
}

std::vector<SelectItem> Parser::select_items() {
  std::vector<SelectItem> items;
  do {
    items.push_back(select_item());
  } while (!failed_ && accept_symbol(","));
  return items;
}

QueryPtr Parser::select(RelationPtr from) {
  Query query;
  query.place = peek().place;
  Select result;
  expect_word("SELECT");
  if (accept_word("DISTINCT")) {
    result.distinct = true;
  } else if (at_word("ALL") && !at_symbol(",", 1) && !at_symbol(".", 1)) {
    next();
  }
  if (at_word("TRANSFORM") && at_symbol("(", 1) && at_word("USING", 1)) {
    fail_unsupported(peek().place, "SELECT TRANSFORM", "");
  }
  result.items = select_items();
  if (from) {
    result.from = std::move(from);
  } else if (accept_word("FROM")) {
    result.from = from_list();
  }
  select_clauses(result);
  query.body = std::move(result);
  return share(std::move(query));
}

void Parser::select_clauses(Select& select) {
  if (accept_word("WHERE")) select.where = expression();
  if (at_words({"GROUP", "BY"})) group_by(select);
  if (accept_word("HAVING")) select.having = expression();
  if (accept_word("QUALIFY")) select.qualify = expression();
  if (at_word("WINDOW") && at_name(1) && at_word("AS", 2)) window_clause(select);
  if (select.qualify == nullptr && accept_word("QUALIFY")) select.qualify = expression();
}

void Parser::window_clause(Select& select) {
  expect_word("WINDOW");
  do {
    NamedWindow window;
    window.name = name("a window's name");
    expect_word("AS");
    if (at_symbol("(")) {
      window.spec = window_spec();
    } else {
      window.spec.base = name("a window's name");
    }
    select.windows.push_back(std::move(window));
  } while (!failed_ && accept_symbol(","));
}

void Parser::group_by(Select& select) {
  next();
  next();
  if (at_word("ALL") && !at_symbol(".", 1) && !at_symbol(",", 1) && !at_symbol("(", 1)) {
    next();
    select.group_by_all = true;
    return;
  }
  bool several = false;
  do {
    Grouping element = grouping_element();
    several = several || element.kind != GroupingKind::kPlain;
    for (const auto& set : element.sets)
      select.group_by.insert(select.group_by.end(), set.begin(), set.end());
    select.groupings.push_back(std::move(element));
  } while (!failed_ && accept_symbol(","));
  // The older form: a, b WITH ROLLUP, and a, b GROUPING SETS ((a, b), a).
  const bool rollup = at_words({"WITH", "ROLLUP"});
  if (!several && (rollup || at_words({"WITH", "CUBE"}))) {
    next();
    next();
    several = true;
    Grouping whole{rollup ? GroupingKind::kRollup : GroupingKind::kCube, {}};
    for (const ExprPtr& key : select.group_by) whole.sets.push_back({key});
    select.groupings = {std::move(whole)};
  } else if (!several && at_words({"GROUPING", "SETS"})) {
    several = true;
    select.groupings = {grouping_element()};
  }
  if (!several) select.groupings.clear();
}

Grouping Parser::grouping_element() {
  Grouping result;
  if (at_words({"GROUPING", "SETS"}) && at_symbol("(", 2)) {
    result.kind = GroupingKind::kSets;
    next();
  } else if (at_word("ROLLUP") && at_symbol("(", 1)) {
    result.kind = GroupingKind::kRollup;
  } else if (at_word("CUBE") && at_symbol("(", 1)) {
    result.kind = GroupingKind::kCube;
  } else {
    result.sets.push_back({expression()});
    return result;
  }
  next();
  expect_symbol("(");
  do {
    const bool nested = at_words({"GROUPING", "SETS"}) ||
                        ((at_word("ROLLUP") || at_word("CUBE")) && at_symbol("(", 1));
    if (nested) {
      fail_unsupported(peek().place, peek().upper + " inside another",
                       "write the sets out in GROUPING SETS");
    }
    // Parentheses hold a set; an expression may begin with them as well.
    if (at_symbol("(")) {
      const size_t start = at_;
      next();
      std::vector<ExprPtr> set;
      if (!accept_symbol(")")) {
        set = expression_list();
        expect_symbol(")");
      }
      if (failed_ || at_symbol(",") || at_symbol(")")) {
        result.sets.push_back(std::move(set));
        continue;
      }
      at_ = start;
    }
    result.sets.push_back({expression()});
  } while (!failed_ && accept_symbol(","));
  expect_symbol(")");
  return result;
}

QueryPtr Parser::from_first() {
  expect_word("FROM");
  RelationPtr from = from_list();
  if (at_word("SELECT")) return select(std::move(from));
  Query query = *select_all(std::move(from));
  if (at_word("WHERE")) {  // FROM t WHERE c
    next();
    std::get<Select>(query.body).where = expression();
  }
  return share(std::move(query));
}

// --- relations ---------------------------------------------------------------------------------

bool Parser::at_join() const {
  return at_word("JOIN") || at_word("NATURAL") || at_word("INNER") || at_word("CROSS") ||
         at_word("LEFT") || at_word("RIGHT") || at_word("FULL") || at_word("SEMI") ||
         at_word("ANTI");
}

RelationPtr Parser::from_list() {
  RelationPtr left = joins(relation_primary());
  while (!failed_ && accept_symbol(",")) {
    count_step();
    if (at_word("LATERAL") && !at_word("VIEW", 1)) {
      next();
      left = joins(lateral(std::move(left), false));
      continue;
    }
    Join cross;
    cross.kind = JoinKind::kCross;
    cross.left = std::move(left);
    cross.right = joins(relation_primary());
    Relation relation;
    relation.place = cross.left->place;
    relation.node = std::move(cross);
    left = share(std::move(relation));
    while (!failed_ && at_words({"LATERAL", "VIEW"})) left = lateral_view(std::move(left));
  }
  return left;
}

RelationPtr Parser::joins(RelationPtr left) {
  while (!failed_) {
    if (at_words({"LATERAL", "VIEW"})) {
      count_step();
      left = lateral_view(std::move(left));
      continue;
    }
    if (at_word("PIVOT") || at_word("UNPIVOT") || at_word("TABLESAMPLE")) {
      fail_unsupported(peek().place, peek().upper, "");
      break;
    }
    if (!at_join()) break;
    count_step();
    Join join;
    join.natural = accept_word("NATURAL");
    if (accept_word("CROSS")) {
      join.kind = JoinKind::kCross;
    } else if (accept_word("LEFT")) {
      join.kind = JoinKind::kLeft;
      if (accept_word("SEMI")) {
        join.kind = JoinKind::kLeftSemi;
      } else if (accept_word("ANTI")) {
        join.kind = JoinKind::kLeftAnti;
      } else {
        accept_word("OUTER");
      }
    } else if (accept_word("RIGHT")) {
      join.kind = JoinKind::kRight;
      accept_word("OUTER");
    } else if (accept_word("FULL")) {
      join.kind = JoinKind::kFull;
      accept_word("OUTER");
    } else if (accept_word("SEMI")) {
      join.kind = JoinKind::kLeftSemi;
    } else if (accept_word("ANTI")) {
      join.kind = JoinKind::kLeftAnti;
    } else {
      accept_word("INNER");
    }
    expect_word("JOIN");
    if (accept_word("LATERAL")) {
      left = lateral(std::move(left), join.kind == JoinKind::kLeft);
      // ON TRUE is the only condition a lateral join of a generator has.
      if (at_word("ON") && at_word("TRUE", 1)) {
        next();
        next();
      }
      continue;
    }
    Relation relation;
    relation.place = left->place;
    join.left = std::move(left);
    join.right = relation_primary();
    if (accept_word("ON")) {
      join.on = expression();
    } else if (accept_word("USING")) {
      join.using_columns = name_list("a column name");
    } else if (!join.natural && join.kind != JoinKind::kCross && join.kind != JoinKind::kInner) {
      fail_expected("ON or USING", {"ON", "USING"});
    }
    relation.node = std::move(join);
    left = share(std::move(relation));
  }
  return left;
}

// After LATERAL: a subquery or a generator.
RelationPtr Parser::lateral(RelationPtr left, bool outer) {
  Relation relation;
  relation.place = peek().place;
  if (at_symbol("(")) {
    Join join;
    join.kind = outer ? JoinKind::kLeft : JoinKind::kCross;
    join.lateral = true;
    join.left = std::move(left);
    join.right = relation_primary();
    relation.node = std::move(join);
    return share(std::move(relation));
  }
  LateralView view;
  view.input = std::move(left);
  view.outer = outer;
  if (!at_name() || !at_symbol("(", 1)) {
    fail_expected("a generator such as explode(...) or a subquery in parentheses");
  }
  view.generator = primary();
  relation.node = std::move(view);
  return aliased(std::move(relation));
}

RelationPtr Parser::lateral_view(RelationPtr input) {
  Relation relation;
  relation.place = next().place;
  expect_word("VIEW");
  LateralView view;
  view.input = std::move(input);
  view.outer = accept_word("OUTER");
  if (!at_name() || !at_symbol("(", 1)) fail_expected("a generator such as explode(...)");
  view.generator = primary();
  relation.node = std::move(view);
  if (at_name() && !at_word("AS") && !at_clause_word()) relation.alias = name("an alias");
  if (accept_word("AS") || (relation.alias && at_name() && !at_clause_word())) {
    do {
      relation.column_aliases.push_back(name("a column alias"));
    } while (accept_symbol(","));
  }
  return share(std::move(relation));
}

bool Parser::at_implicit_alias() const {
  if (!at_name() || at_clause_word()) return false;
  if (peek().kind == TokenKind::kQuotedName) return true;
  if ((at_word("VERSION") || at_word("TIMESTAMP")) && at_words({"AS", "OF"}, 1)) return false;
  // After the source of AUTO CDC a word is more likely a misspelt clause than an alias.
  return !in_cdc_source_ || (at_word("KEYS", 1) && !at_word("KEYS"));
}

RelationPtr Parser::aliased(Relation relation) {
  if (accept_word("AS")) {
    relation.alias = name("an alias");
  } else if (at_implicit_alias()) {
    relation.alias = name("an alias");
  }
  if (relation.alias && at_symbol("(") && !failed_)
    relation.column_aliases = name_list("a column alias");
  return share(std::move(relation));
}

TableUse Parser::table_function(const Name& function_name) {
  TableUse use;
  use.place = function_name.place;
  use.function = lower_ascii(function_name.text);
  expect_symbol("(");
  while (!failed_ && !at_symbol(")")) {
    if (at_name() && at_symbol("=>", 1)) {
      const Name key = name("an argument's name");
      next();
      for (const auto& [other, value] : use.named_arguments) {
        if (same_name(other, key.text)) {
          note(invalid_argument("DUPLICATE_ROUTINE_PARAMETER_ASSIGNMENT",
                                "the argument '{}' is given twice", key.text),
               key.place);
        }
      }
      use.named_arguments.emplace_back(key.text, expression());
    } else {
      if (!use.named_arguments.empty())
        fail_expected("name => value: arguments by position come first");
      use.arguments.push_back(expression());
    }
    if (!accept_symbol(",")) break;
  }
  expect_symbol(")");
  return use;
}

// delta.`/path@v3`
void Parser::take_path_version(TableUse& use) {
  std::string& path = use.name.parts[0];
  const size_t mark = path.rfind("@v");
  if (mark == std::string::npos || mark + 2 == path.size()) return;
  const std::string digits = path.substr(mark + 2);
  if (digits.find_first_not_of("0123456789") != std::string::npos) return;
  use.version_as_of = digits;
  path.resize(mark);
}

// VERSION AS OF, TIMESTAMP AS OF, WITH (options)
void Parser::table_suffixes(TableUse& use) {
  if (use.function.empty()) {
    if (use.name.is_path) take_path_version(use);
    if (at_word("FOR") && (at_word("VERSION", 1) || at_word("TIMESTAMP", 1) ||
                           at_word("SYSTEM_VERSION", 1) || at_word("SYSTEM_TIME", 1))) {
      next();
    }
    const bool version = at_word("VERSION") || at_word("SYSTEM_VERSION");
    const bool time = at_word("TIMESTAMP") || at_word("SYSTEM_TIME");
    if ((version || time) && at_words({"AS", "OF"}, 1)) {
      for (int i = 0; i < 3; ++i) next();
      const SourcePlace place = peek().place;
      const ExprPtr value = value_expression(0);
      const Expr* constant = value.get();
      if (const auto* cast = constant->as<Cast>(); cast != nullptr && time)
        constant = cast->value.get();
      const auto* literal = constant->as<Literal>();
      if (literal == nullptr || literal->type == TypeId::kVoid) {
        if (version || literal != nullptr) {
          return fail_unsupported(place, "time travel to anything but a constant",
                                  version ? "write a version number" : "write a timestamp");
        }
        use.timestamp_as_of = print_spark(*value);
        use.timestamp_expr = value;
      } else if (version) {
        if (literal->text.empty() ||
            literal->text.find_first_not_of("0123456789") != std::string::npos) {
          fail_at(place,
                  fmt::format("VERSION AS OF takes a version number, not '{}'", literal->text));
        }
        use.version_as_of = literal->text;
      } else {
        use.timestamp_as_of = literal->text;
      }
    } else if (at_symbol("@") && peek(1).kind == TokenKind::kWord && peek(1).begin == peek().end) {
      next();
      const Token& version_word = next();
      const std::string digits = version_word.text.substr(1);
      if (version_word.upper[0] != 'V' || digits.empty() ||
          digits.find_first_not_of("0123456789") != std::string::npos) {
        fail_at(version_word.place,
                "after @ comes v and a version number; for a time write TIMESTAMP AS OF '...'");
      }
      use.version_as_of = digits;
    }
  }
  if (at_word("WITH") && at_symbol("(", 1)) {
    next();
    use.stream_options = option_list();
  }
}

// STREAM(name), STREAM name, STREAM read_files(...), STREAM(read_files(...))
Relation Parser::stream_relation() {
  Relation relation;
  relation.place = next().place;
  const bool parentheses = accept_symbol("(");
  TableUse use;
  if (parentheses && at_query()) {
    fail_unsupported(relation.place, "STREAM(query)", "write (SELECT ... FROM STREAM(name))");
    return relation;
  }
  if (at_name() && at_symbol("(", 1)) {
    use = table_function(name("a table function"));
  } else {
    use.place = peek().place;
    use.name = table_name();
  }
  use.stream = true;
  if (parentheses) {
    table_suffixes(use);
    expect_symbol(")");
  }
  if (use.stream_options.empty()) table_suffixes(use);
  if (use.version_as_of || use.timestamp_as_of) {
    fail_at(use.place,
            "a stream has no time travel: use the option startingVersion or startingTimestamp");
  }
  relation.node = std::move(use);
  return relation;
}

RelationPtr Parser::relation_primary() {
  const Nesting nesting(*this);
  Relation relation;
  relation.place = peek().place;
  if (at_word("LATERAL")) {
    fail_expected("a table: LATERAL follows another relation");
    return share(std::move(relation));
  }
  if (at_word("STREAM")) {
    // `stream` is also an ordinary name: a stream read has a name or '(' after it.
    const bool is_keys = in_cdc_source_ && at_word("KEYS", 1);
    const bool named = at_name(1) && !at_clause_word(1) && !is_keys;
    if (at_symbol("(", 1) || named) return aliased(stream_relation());
  }
  if (at_word("VALUES")) {
    next();
    relation.node = values_rows();
    return aliased(std::move(relation));
  }
  if (at_symbol("(")) {
    if (at_query(1)) {
      next();
      relation.node = Derived{query()};
      expect_symbol(")");
      return aliased(std::move(relation));
    }
    next();
    RelationPtr inner = from_list();
    expect_symbol(")");
    if (!at_word("AS") && !at_implicit_alias()) return inner;
    relation.node = Derived{select_all(std::move(inner))};
    return aliased(std::move(relation));
  }
  if (at_word("TABLE") && at_symbol("(", 1)) {
    fail_unsupported(relation.place, "TABLE(...) in FROM", "name the table");
    return share(std::move(relation));
  }
  if (!at_name() || (at_clause_word() && !at_symbol("(", 1) && !at_symbol(".", 1))) {
    fail_expected("a table, a table function or a query in parentheses");
    return share(std::move(relation));
  }
  if (at_symbol("(", 1)) {
    TableUse use = table_function(name("a table function"));
    table_suffixes(use);
    relation.node = std::move(use);
    return aliased(std::move(relation));
  }
  TableUse use;
  use.place = relation.place;
  use.name = table_name();
  table_suffixes(use);
  relation.node = std::move(use);
  return aliased(std::move(relation));
}

// --- pipes -------------------------------------------------------------------------------------

QueryPtr Parser::pipes(QueryPtr input) {
  Query current = *input;
  while (!failed_ && accept_symbol("|>")) {
    count_step();
    pipe_operator(current);
  }
  return share(std::move(current));
}

void Parser::pipe_operator(Query& current) {
  const SourcePlace place = peek().place;
  if (accept_word("WHERE")) {
    Select& select = wrapped(current);
    ExprPtr condition = expression();
    select.where = select.where
                       ? make(Binary{BinaryOp::kAnd, select.where, std::move(condition)}, place)
                       : condition;
  } else if (accept_word("SELECT")) {
    Select& select = wrapped(current);
    select.distinct = accept_word("DISTINCT");
    select.items = select_items();
    if (at_word("WINDOW")) window_clause(select);
  } else if (accept_word("EXTEND")) {
    Select& select = wrapped(current);
    for (SelectItem& item : select_items()) select.items.push_back(std::move(item));
  } else if (accept_word("SET")) {
    Select& select = wrapped(current);
    Star star;
    do {
      Name column = name("a column name");
      expect_symbol("=");
      star.replaced.emplace_back(std::move(column), expression());
    } while (!failed_ && accept_symbol(","));
    select.items[0].expr = make(std::move(star), place);
  } else if (accept_word("DROP")) {
    Select& select = wrapped(current);
    Star star;
    do {
      star.except.push_back(name("a column name"));
    } while (!failed_ && accept_symbol(","));
    select.items[0].expr = make(std::move(star), place);
  } else if (accept_word("AS")) {
    Relation relation;
    relation.place = place;
    relation.alias = name("an alias");
    relation.node = Derived{share(current)};
    current = *select_all(share(std::move(relation)));
  } else if (accept_word("AGGREGATE")) {
    Select& select = wrapped(current);
    select.items.clear();
    std::vector<SelectItem> aggregates;
    if (!at_word("GROUP")) aggregates = select_items();
    if (accept_words({"GROUP", "BY"})) {
      for (SelectItem& item : select_items()) {
        select.group_by.push_back(item.expr);
        select.items.push_back(std::move(item));
      }
    }
    for (SelectItem& item : aggregates) select.items.push_back(std::move(item));
    if (select.items.empty()) fail_expected("an aggregate or GROUP BY");
  } else if (at_word("ORDER") || at_word("LIMIT") || at_word("OFFSET")) {
    const bool limited = current.limit || current.offset;
    if (limited || ((!current.order_by.empty() || current.order_by_all) && at_word("ORDER")) ||
        !current.with.empty()) {
      current = *select_all([&] {
        Relation relation;
        relation.place = place;
        relation.node = Derived{share(current)};
        return share(std::move(relation));
      }());
    }
    query_tail(current);
  } else if (at_join()) {
    Select& select = wrapped(current);
    if (select.where) {
      Relation relation;
      relation.place = place;
      relation.node = Derived{share(current)};
      current = *select_all(share(std::move(relation)));
      auto& outer = std::get<Select>(current.body);
      outer.from = joins(outer.from);
    } else {
      select.from = joins(select.from);
    }
  } else if (at_word("UNION") || at_word("EXCEPT") || at_word("MINUS") || at_word("INTERSECT")) {
    SetOperation operation;
    operation.kind = at_word("UNION")       ? SetKind::kUnion
                     : at_word("INTERSECT") ? SetKind::kIntersect
                                            : SetKind::kExcept;
    next();
    operation.all = accept_word("ALL");
    if (!operation.all) accept_word("DISTINCT");
    if (operation.kind == SetKind::kUnion && accept_words({"BY", "NAME"})) operation.by_name = true;
    operation.left = share(current);
    operation.right = query_primary();
    current = Query{};
    current.place = place;
    current.body = std::move(operation);
  } else if (at_word("PIVOT") || at_word("UNPIVOT") || at_word("TABLESAMPLE") || at_word("CALL")) {
    fail_unsupported(place, "|> " + peek().upper, "");
  } else {
    fail_expected(
        "a pipe operator (WHERE, SELECT, EXTEND, SET, DROP, AS, AGGREGATE, JOIN, ORDER BY, LIMIT, "
        "UNION)",
        {"WHERE", "SELECT", "EXTEND", "SET", "DROP", "AGGREGATE", "JOIN", "ORDER", "LIMIT",
         "UNION"});
  }
}

}  // namespace strandline::sql
