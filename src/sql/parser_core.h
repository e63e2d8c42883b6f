// The recursive-descent parser behind parser.h. Private to this folder.
//
// Errors: the first mistake of a statement is recorded and the cursor then stands at a made-up end
// token, so every rule above returns quickly without checks of its own; what they build is thrown
// away. The next statement starts afresh.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sql/ast.h"
#include "sql/lexer.h"
#include "sql/parser.h"
#include "sql/query.h"

namespace strandline::sql {

class Parser {
 public:
  Parser(const Lexed& lexed, std::string file);

  void parse_script(Script& script);
  // One rule over the whole text; a trailing ';' is allowed.
  Result<QueryPtr> whole_query();
  Result<ExprPtr> whole_expression();
  Result<DataType> whole_type();
  Result<Schema> whole_schema();

 private:
  // --- cursor (parser.cc) ---
  const Token& peek(size_t ahead = 0) const;
  const Token& next();
  bool at_end() const;
  bool at_word(std::string_view word, size_t ahead = 0) const;
  // The next words are these, in order.
  bool at_words(std::initializer_list<std::string_view> words, size_t ahead = 0) const;
  bool at_symbol(std::string_view symbol, size_t ahead = 0) const;
  bool accept_word(std::string_view word);
  bool accept_words(std::initializer_list<std::string_view> words);
  bool accept_symbol(std::string_view symbol);
  void expect_word(std::string_view word);
  void expect_symbol(std::string_view symbol);
  bool failed() const { return failed_; }
  // "found X, expected <what>" at the next token; `keywords` are candidates for "did you mean".
  void fail_expected(std::string_view what, std::initializer_list<std::string_view> keywords = {});
  void fail(Error error, const SourcePlace& place);
  void fail_at(const SourcePlace& place, const std::string& message);
  void fail_unsupported(const SourcePlace& place, const std::string& construct,
                        const std::string& instead);
  // A mistake that does not stop the parser: the rest of the statement is read on.
  void note(Error error, const SourcePlace& place);
  std::string describe(const Token& token) const;

  // Counts nesting for the life of a rule; too deep is an error instead of a full stack.
  class Nesting {
   public:
    explicit Nesting(Parser& parser);
    ~Nesting() { --parser_.depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    Parser& parser_;
  };

  // make_expr with a bound on the tree's height.
  template <typename Node>
  ExprPtr make(Node node, const SourcePlace& place, int query_height = 0) {
    ExprPtr expr = make_expr(std::move(node), place);
    tallest_ = std::max(tallest_, expr->height + query_height);
    if (tallest_ > kMaxHeight) {
      fail_at(place, "the expression is too long: split it, or use IN or concat for many terms");
    }
    return expr;
  }
  static constexpr int kMaxHeight = 1000;
  static constexpr int kMaxNesting = 150;
  // Joins, set operations and pipes of one statement.
  void count_step();

  // --- names, values (parser.cc) ---
  bool at_name(size_t ahead = 0) const;  // a word or a quoted name
  Name name(std::string_view what);
  TableName table_name();
  std::vector<std::string> name_parts(std::string_view what, size_t most);
  // A column name; several parts are noted as an error.
  Name column_name(std::string_view what);
  std::string string_value(std::string_view what);
  std::string option_key();
  std::string option_value();
  Options option_list();  // (k = v, 'k' = 'v', k 'v')
  std::optional<std::string> literal_value();

  // --- types (parse_type.cc) ---
  DataType type();
  bool at_sized_type() const;
  // The same of a column, which may be a CHAR(n) or VARCHAR(n): a STRING, and its type in *sized.
  DataType column_type(std::string* sized);
  // The same in a cast, where CHAR(n) and VARCHAR(n) are STRING: Spark cuts and pads nothing there.
  DataType cast_type();
  std::vector<Field> schema_fields(std::string_view stop_symbol);

  // --- expressions (parse_expression.cc) ---
  ExprPtr expression();
  ExprPtr and_expression();
  ExprPtr not_expression();
  ExprPtr predicate();
  ExprPtr comparison();
  ExprPtr value_expression(int level);
  ExprPtr unary();
  ExprPtr postfix();
  ExprPtr primary();
  ExprPtr number(bool negative);
  ExprPtr string_constant();
  ExprPtr parenthesised();
  ExprPtr case_expression();
  ExprPtr cast_expression(bool try_cast);
  ExprPtr interval();
  ExprPtr function_call();
  ExprPtr call_suffix(Call call, const SourcePlace& place);
  ExprPtr lambda();
  ExprPtr argument();
  // ( query ): the height of its tallest expression goes to *height.
  QueryPtr subquery(int* height);
  std::string json_path();
  std::vector<ExprPtr> expression_list();
  std::vector<OrderItem> order_items();
  OrderItem order_item();
  WindowSpec window_spec();
  FrameBound frame_bound();
  bool at_lambda() const;
  bool at_clause_word(size_t ahead = 0) const;

  // --- queries (parse_query.cc) ---
  QueryPtr query();
  QueryPtr set_operations(int level);
  QueryPtr query_primary();
  QueryPtr select(RelationPtr from);
  QueryPtr from_first();
  QueryPtr pipes(QueryPtr input);
  void pipe_operator(Query& current);
  void query_tail(Query& query);
  std::vector<Cte> with_clause();
  std::vector<SelectItem> select_items();
  SelectItem select_item();
  void select_clauses(Select& select);
  void window_clause(Select& select);
  void group_by(Select& select);
  Grouping grouping_element();
  RelationPtr from_list();
  RelationPtr joins(RelationPtr left);
  RelationPtr lateral(RelationPtr left, bool outer);
  RelationPtr lateral_view(RelationPtr input);
  RelationPtr relation_primary();
  Relation stream_relation();
  RelationPtr aliased(Relation relation);
  TableUse table_function(const Name& function_name);
  void table_suffixes(TableUse& use);
  void take_path_version(TableUse& use);
  TableName table_or_path();
  bool at_with_of_dml() const;
  void with_dml(Statement& statement);
  void explain(Statement& statement);
  ValuesRows values_rows();
  bool at_query(size_t ahead = 0) const;
  bool at_join() const;
  bool at_implicit_alias() const;

  // --- statements (parse_statement.cc) ---
  bool statement(Statement& statement);
  void create(Statement& statement);
  void create_streaming_table(bool or_refresh, bool is_private, Statement& statement);
  void create_materialized_view(bool or_refresh, bool is_private, Statement& statement);
  void create_view(bool or_replace, bool temporary, Statement& statement);
  void create_flow(Statement& statement);
  void set(Statement& statement);
  void drop(Statement& statement);
  void refresh(Statement& statement);
  void optimize(Statement& statement);  // these four: parse_maintenance.cc
  void reorg(Statement& statement);
  void vacuum(Statement& statement);
  void restore(Statement& statement);
  void not_yet(Statement& statement, std::string construct);
  TableName declared_table(bool strip_live);
  TableName target_table();
  AutoCdcClauses auto_cdc_clauses();
  void auto_cdc_source(AutoCdcClauses& clauses);
  ColumnList column_list();
  std::vector<Name> name_list(std::string_view what);
  // Adds a clause to those seen of a statement; one seen before is DUPLICATE_CLAUSES.
  void note_clause(std::vector<std::string>& seen, const std::string& clause,
                   const SourcePlace& place);
  void skip_statement();
  void guess_declared_names(size_t from);

  // --- statements that change rows (parse_rows.cc) ---
  void insert(Statement& statement);
  void update(Statement& statement);
  void delete_rows(Statement& statement);
  void merge(Statement& statement);
  MergeClause merge_clause();
  // The last clause of a kind alone may lack a condition; clauses after it could never run.
  void check_merge_conditions(const Merge& merge);
  std::vector<Assignment> assignments();
  std::vector<std::pair<Name, ExprPtr>> partition_values();
  std::optional<Name> table_alias(std::string_view not_an_alias);

  // --- statements that define and show tables (parse_table_statement.cc) ---
  void create_table(bool or_replace, Statement& statement);
  void create_schema(Statement& statement);
  // types_optional: the list may do without types, as that of a materialized view.
  void table_elements(TableOptions& options, bool types_optional = false);
  void add_column(TableOptions& options, ColumnDefinition column);
  ColumnDefinition column_definition(bool types_optional);
  // What follows the name: a type and the column's clauses; stops at FIRST and AFTER.
  void column_clauses(ColumnDefinition& column);
  IdentityDefinition identity(bool by_default, const SourcePlace& place);
  int64_t signed_number(std::string_view what);
  void constraint(TableOptions& options);
  CheckDefinition check(Name constraint_name);
  void table_clauses(TableOptions& options, bool pipeline);
  // Also gives the expression's own text.
  ExprPtr expression(std::string* sql);
  void alter_table(Statement& statement);
  std::vector<NewColumn> new_columns();
  bool alter_columns(AlterTable& alter);  // ADD, RENAME, DROP, ALTER and CHANGE of columns
  ColumnPath column_path(std::string_view what);
  std::vector<ColumnPath> column_paths(std::string_view what);
  std::optional<ColumnPosition> column_position();
  ColumnChange column_change();
  void comment_on(Statement& statement);
  void describe_statement(Statement& statement);
  void show(Statement& statement);

  const Lexed& lexed_;
  std::string file_;
  size_t at_ = 0;
  bool failed_ = false;
  Token stop_;  // what peek() gives after a failure
  int depth_ = 0;
  int steps_ = 0;
  int tallest_ = 0;  // height of the tallest expression made since the present (sub)query began
  std::vector<Error> errors_;
  std::vector<std::string> declared_;  // names the present statement declares
  // In the source of AUTO CDC the clause words after it are no aliases.
  bool in_cdc_source_ = false;
};

// Nearest of the candidates by spelling, or "".
std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace strandline::sql
