#include "sql/parser.h"

#include <algorithm>

#include "base/error.h"
#include "sql/names.h"
#include "sql/parser_core.h"

namespace strandline::sql {

namespace {

constexpr int kMaxSteps = 1000;

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  size_t best_distance = 3;
  for (const std::string& candidate : candidates) {
    if (candidate == word) continue;
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance && distance * 3 <= candidate.size()) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

Parser::Parser(const Lexed& lexed, std::string file) : lexed_(lexed), file_(std::move(file)) {}

Parser::Nesting::Nesting(Parser& parser) : parser_(parser) {
  if (++parser_.depth_ > kMaxNesting && !parser_.failed_) {
    parser_.fail_at(
        parser_.peek().place,
        fmt::format("the text is nested more than {} levels deep: split it", kMaxNesting));
  }
}

void Parser::count_step() {
  if (++steps_ > kMaxSteps) {
    fail_at(peek().place,
            fmt::format("the statement has more than {} joins, set operations and pipes: split it",
                        kMaxSteps));
  }
}

const Token& Parser::peek(size_t ahead) const {
  if (failed_) return stop_;
  return lexed_.tokens[std::min(at_ + ahead, lexed_.tokens.size() - 1)];
}

const Token& Parser::next() {
  const Token& token = peek();
  if (!failed_ && at_ + 1 < lexed_.tokens.size()) ++at_;
  return token;
}

bool Parser::at_end() const {
  const Token& token = peek();
  return token.kind == TokenKind::kEnd || (token.kind == TokenKind::kSymbol && token.text == ";");
}

bool Parser::at_word(std::string_view word, size_t ahead) const {
  const Token& token = peek(ahead);
  return token.kind == TokenKind::kWord && token.upper == word;
}

bool Parser::at_words(std::initializer_list<std::string_view> words, size_t ahead) const {
  for (const std::string_view word : words) {
    if (!at_word(word, ahead++)) return false;
  }
  return true;
}

bool Parser::at_symbol(std::string_view symbol, size_t ahead) const {
  const Token& token = peek(ahead);
  return token.kind == TokenKind::kSymbol && token.text == symbol;
}

bool Parser::accept_word(std::string_view word) {
  if (!at_word(word)) return false;
  next();
  return true;
}

bool Parser::accept_words(std::initializer_list<std::string_view> words) {
  if (!at_words(words)) return false;
  for (size_t i = 0; i < words.size(); ++i) next();
  return true;
}

bool Parser::accept_symbol(std::string_view symbol) {
  if (!at_symbol(symbol)) return false;
  next();
  return true;
}

void Parser::expect_word(std::string_view word) {
  if (!accept_word(word)) fail_expected(word, {word});
}

void Parser::expect_symbol(std::string_view symbol) {
  if (!accept_symbol(symbol)) fail_expected(fmt::format("'{}'", symbol));
}

std::string Parser::describe(const Token& token) const {
  switch (token.kind) {
    case TokenKind::kEnd:
      return "the end of the text";
    case TokenKind::kString:
      return fmt::format("the string '{}'", token.text);
    case TokenKind::kQuotedName:
      return fmt::format("`{}`", token.text);
    case TokenKind::kBinary:
      return fmt::format("X'{}'", token.text);
    case TokenKind::kSymbol:
      break;
    case TokenKind::kWord:
    case TokenKind::kNumber:
      break;
  }
  if (token.text == ";") return "the end of the statement";
  return fmt::format("'{}'", token.text + token.suffix);
}

void Parser::fail_expected(std::string_view what,
                           std::initializer_list<std::string_view> keywords) {
  if (failed_) return;
  const Token& token = peek();
  std::string hint;
  if (token.kind == TokenKind::kWord) {
    const std::string nearest =
        nearest_word(token.upper, std::vector<std::string>(keywords.begin(), keywords.end()));
    if (!nearest.empty()) hint = fmt::format("; did you mean {}?", nearest);
  }
  fail_at(token.place, fmt::format("found {}, expected {}{}", describe(token), what, hint));
}

void Parser::fail_at(const SourcePlace& place, const std::string& message) {
  fail(invalid_argument("PARSE_SYNTAX_ERROR", "{}", message), place);
}

void Parser::fail(Error error, const SourcePlace& place) {
  if (failed_) return;
  note(std::move(error), place);
  failed_ = true;
  stop_ = Token{};
  stop_.place = place;
}

void Parser::fail_unsupported(const SourcePlace& place, const std::string& construct,
                              const std::string& instead) {
  fail(unsupported("UNSUPPORTED_CONSTRUCT", "{} is not supported{}{}", construct,
                   instead.empty() ? "" : ": ", instead),
       place);
}

void Parser::note(Error error, const SourcePlace& place) {
  error.place = place;
  errors_.push_back(std::move(error));
}

bool Parser::at_name(size_t ahead) const {
  const Token& token = peek(ahead);
  return token.kind == TokenKind::kWord || token.kind == TokenKind::kQuotedName;
}

Name Parser::name(std::string_view what) {
  if (!at_name()) {
    fail_expected(what);
    return Name{"", peek().place};
  }
  const Token& token = next();
  return Name{token.text, token.place};
}

std::vector<std::string> Parser::name_parts(std::string_view what, size_t most) {
  const SourcePlace place = peek().place;
  std::vector<std::string> parts = {name(what).text};
  while (at_symbol(".") && at_name(1)) {
    next();
    parts.push_back(name(what).text);
  }
  if (parts.size() > most && !failed_) {
    fail_at(place,
            fmt::format("{} has {} parts, but at most {} are allowed", what, parts.size(), most));
  }
  return parts;
}

TableName Parser::table_name() {
  TableName result;
  result.place = peek().place;
  // delta.`/path`
  if (at_word("DELTA") && at_symbol(".", 1) && peek(2).kind == TokenKind::kQuotedName &&
      !at_symbol(".", 3)) {
    next();
    next();
    result.parts = {next().text};
    result.is_path = true;
    return result;
  }
  result.parts = name_parts("a table name", 3);
  return result;
}

Name Parser::column_name(std::string_view what) {
  Name result = name(what);
  if (!failed_ && at_symbol(".") && at_name(1)) {
    std::string full = result.text;
    while (at_symbol(".") && at_name(1)) {
      next();
      full += "." + next().text;
    }
    note(invalid_argument(
             "AUTOCDC_MULTIPART_COLUMN_IDENTIFIER",
             "'{}' has several parts, but this list takes plain column names: write the column's "
             "own name, in backquotes if it contains a dot",
             full),
         result.place);
    result.text = full;
  }
  return result;
}

std::string Parser::string_value(std::string_view what) {
  if (peek().kind != TokenKind::kString) {
    fail_expected(fmt::format("{} as a string", what));
    return "";
  }
  std::string text = next().text;
  while (peek().kind == TokenKind::kString) text += next().text;
  return text;
}

std::string Parser::option_key() {
  if (peek().kind == TokenKind::kString) return next().text;
  if (!at_name()) {
    fail_expected("an option's name");
    return "";
  }
  std::string key = next().text;
  // spark.databricks.delta-x.enabled: dots and dashes join words without blanks
  while ((at_symbol(".") || at_symbol("-") || at_symbol(":")) &&
         peek().begin == lexed_.tokens[at_ - 1].end) {
    const Token& separator = next();
    const bool joined =
        (at_name() || peek().kind == TokenKind::kNumber) && peek().begin == separator.end;
    if (!joined) {
      fail_expected("the rest of the option's name");
      return key;
    }
    key += separator.text + next().text;
  }
  return key;
}

std::optional<std::string> Parser::literal_value() {
  const Token& token = peek();
  if (token.kind == TokenKind::kString) return string_value("a value");
  const bool sign = (at_symbol("-") || at_symbol("+")) && peek(1).kind == TokenKind::kNumber;
  if (sign || token.kind == TokenKind::kNumber) {
    std::string text = sign && next().text == "-" ? "-" : "";
    return text + next().text;
  }
  if (token.kind == TokenKind::kWord && (token.upper == "TRUE" || token.upper == "FALSE")) {
    return lower_ascii(next().text);
  }
  if (token.kind == TokenKind::kWord && token.upper == "NULL") {
    next();
    return "";
  }
  return std::nullopt;
}

std::string Parser::option_value() {
  if (std::optional<std::string> value = literal_value()) return *value;
  if (at_name()) return next().text;  // a bare word, as in format = delta
  fail_expected("the option's value");
  return "";
}

Options Parser::option_list() {
  Options options;
  expect_symbol("(");
  while (!failed_ && !at_symbol(")")) {
    Option option;
    option.place = peek().place;
    option.key = option_key();
    if (!accept_symbol("=")) accept_symbol("=>");
    option.value = option_value();
    if (failed_) return options;
    for (const Option& other : options) {
      if (other.key == option.key) {
        note(invalid_argument("DUPLICATE_KEY", "the option '{}' is given twice", option.key),
             option.place);
      }
    }
    options.push_back(std::move(option));
    if (!accept_symbol(",")) break;
  }
  expect_symbol(")");
  return options;
}

Result<QueryPtr> Parser::whole_query() {
  QueryPtr result = query();
  accept_symbol(";");
  if (!failed_ && peek().kind != TokenKind::kEnd) fail_expected("the end of the query");
  if (!errors_.empty()) return errors_.front();
  return result;
}

Result<ExprPtr> Parser::whole_expression() {
  ExprPtr result = expression();
  if (!failed_ && peek().kind != TokenKind::kEnd) fail_expected("the end of the expression");
  if (!errors_.empty()) return errors_.front();
  return result;
}

Result<DataType> Parser::whole_type() {
  DataType result = type();
  if (!failed_ && peek().kind != TokenKind::kEnd) fail_expected("the end of the type");
  if (!errors_.empty()) return errors_.front();
  return result;
}

Result<Schema> Parser::whole_schema() {
  Schema schema;
  schema.fields = schema_fields("");
  if (!failed_ && peek().kind != TokenKind::kEnd) fail_expected("',' or the end of the schema");
  if (!errors_.empty()) return errors_.front();
  return schema;
}

void Parser::parse_script(Script& script) {
  while (true) {
    failed_ = false;
    depth_ = 0;
    steps_ = 0;
    tallest_ = 0;
    in_cdc_source_ = false;
    declared_.clear();
    while (accept_symbol(";")) {
    }
    if (peek().kind == TokenKind::kEnd) break;
    const size_t first = at_;
    Statement parsed;
    parsed.place = peek().place;
    const size_t errors_before = errors_.size();
    statement(parsed);
    if (!failed_ && !at_end()) fail_expected("';' or the end of the statement");
    const bool broken = failed_;
    failed_ = false;
    if (broken) guess_declared_names(first);
    skip_statement();
    const size_t begin = lexed_.tokens[first].begin;
    const size_t end = lexed_.tokens[at_ > first ? at_ - 1 : first].end;
    parsed.text = lexed_.text.substr(begin, end - begin);
    if (broken) {
      script.doubtful_names.insert(script.doubtful_names.end(), declared_.begin(), declared_.end());
    } else {
      script.statements.push_back(std::move(parsed));
    }
    if (errors_.size() > errors_before && !broken) {
      script.doubtful_names.insert(script.doubtful_names.end(), declared_.begin(), declared_.end());
    }
  }
  script.errors.insert(script.errors.end(), errors_.begin(), errors_.end());
}

namespace {

// Sorts by place; stable, so errors of one place keep their order.
void sort_by_place(std::vector<Error>& errors) {
  std::stable_sort(errors.begin(), errors.end(), [](const Error& a, const Error& b) {
    const SourcePlace left = a.place.value_or(SourcePlace{});
    const SourcePlace right = b.place.value_or(SourcePlace{});
    return std::pair(left.line, left.column) < std::pair(right.line, right.column);
  });
}

template <typename Rule>
auto parse_whole(std::string_view text, const std::string& file, Rule rule)
    -> decltype((std::declval<Parser&>().*rule)()) {
  const Lexed lexed = lex(text, file);
  if (!lexed.errors.empty()) return lexed.errors.front();
  Parser parser(lexed, file);
  return (parser.*rule)();
}

}  // namespace

Script parse_script(std::string_view text, const std::string& file,
                    const Substitution& substitution) {
  Script script;
  const Lexed lexed = lex(text, file, substitution);
  script.errors = lexed.errors;
  Parser parser(lexed, file);
  parser.parse_script(script);
  sort_by_place(script.errors);
  return script;
}

Result<QueryPtr> parse_query(std::string_view text, const std::string& file) {
  return parse_whole(text, file, &Parser::whole_query);
}

Result<ExprPtr> parse_expression(std::string_view text, const std::string& file) {
  return parse_whole(text, file, &Parser::whole_expression);
}

Result<Schema> parse_schema_ddl(std::string_view text, const std::string& file) {
  return parse_whole(text, file, &Parser::whole_schema);
}

Result<DataType> parse_type(std::string_view text, const std::string& file) {
  return parse_whole(text, file, &Parser::whole_type);
}

}  // namespace strandline::sql
