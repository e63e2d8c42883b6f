// Expressions. Precedence as Spark's: OR, AND, NOT, predicates (BETWEEN, IN, LIKE, IS), comparison,
// |, ^, &, shifts, + - ||, * / % DIV, signs, then :: . [] and : after a primary.
#include <array>
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "sql/names.h"
#include "sql/parser_core.h"

namespace strandline::sql {

namespace {

struct BinaryLevel {
  std::string_view symbol;
  BinaryOp op;
  int level;
};
constexpr int kLevels = 6;
constexpr std::array kBinaryLevels = {
    BinaryLevel{"|", BinaryOp::kBitOr, 0},    BinaryLevel{"^", BinaryOp::kBitXor, 1},
    BinaryLevel{"&", BinaryOp::kBitAnd, 2},   BinaryLevel{"+", BinaryOp::kAdd, 4},
    BinaryLevel{"-", BinaryOp::kSubtract, 4}, BinaryLevel{"||", BinaryOp::kConcat, 4},
    BinaryLevel{"*", BinaryOp::kMultiply, 5}, BinaryLevel{"/", BinaryOp::kDivide, 5},
    BinaryLevel{"%", BinaryOp::kModulo, 5},
};

struct Comparison {
  std::string_view symbol;
  BinaryOp op;
};
constexpr std::array kComparisons = {
    Comparison{"=", BinaryOp::kEqual},           Comparison{"==", BinaryOp::kEqual},
    Comparison{"<=>", BinaryOp::kNullSafeEqual}, Comparison{"<>", BinaryOp::kNotEqual},
    Comparison{"!=", BinaryOp::kNotEqual},       Comparison{"<", BinaryOp::kLess},
    Comparison{"<=", BinaryOp::kLessEqual},      Comparison{">", BinaryOp::kGreater},
    Comparison{">=", BinaryOp::kGreaterEqual},
};

}  // namespace

bool Parser::at_clause_word(size_t ahead) const {
  const Token& token = peek(ahead);
  return token.kind == TokenKind::kWord && is_clause_word(token.upper);
}

ExprPtr Parser::expression() {
  const Nesting nesting(*this);
  ExprPtr left = and_expression();
  while (at_word("OR")) {
    const SourcePlace place = next().place;
    ExprPtr right = and_expression();
    left = make(Binary{BinaryOp::kOr, std::move(left), std::move(right)}, place);
  }
  return left;
}

ExprPtr Parser::and_expression() {
  ExprPtr left = not_expression();
  while (at_word("AND")) {
    const SourcePlace place = next().place;
    ExprPtr right = not_expression();
    left = make(Binary{BinaryOp::kAnd, std::move(left), std::move(right)}, place);
  }
  return left;
}

ExprPtr Parser::not_expression() {
  if (at_word("NOT") || at_symbol("!")) {
    const Nesting nesting(*this);
    const SourcePlace place = next().place;
    return make(Unary{UnaryOp::kNot, not_expression()}, place);
  }
  return predicate();
}

ExprPtr Parser::predicate() {
  ExprPtr left = comparison();
  while (!failed_) {
    const SourcePlace place = peek().place;
    const bool negated =
        at_word("NOT") && (at_word("BETWEEN", 1) || at_word("IN", 1) || at_word("LIKE", 1) ||
                           at_word("ILIKE", 1) || at_word("RLIKE", 1) || at_word("REGEXP", 1));
    if (negated) next();
    if (accept_word("BETWEEN")) {
      Between between{left, negated, nullptr, nullptr};
      between.low = value_expression(0);
      expect_word("AND");
      between.high = value_expression(0);
      left = make(std::move(between), place);
    } else if (accept_word("IN")) {
      In in{left, negated, {}, nullptr};
      int height = 0;
      expect_symbol("(");
      if (at_query()) {
        in.query = subquery(&height);
      } else {
        in.list = expression_list();
      }
      expect_symbol(")");
      left = make(std::move(in), place, height);
    } else if (at_word("LIKE") || at_word("ILIKE") || at_word("RLIKE") || at_word("REGEXP")) {
      Like like;
      like.value = left;
      like.negated = negated;
      const std::string& word = next().upper;
      like.kind = word == "LIKE"    ? LikeKind::kLike
                  : word == "ILIKE" ? LikeKind::kILike
                                    : LikeKind::kRLike;
      const bool several = like.kind != LikeKind::kRLike && at_symbol("(", 1) &&
                           (at_word("ANY") || at_word("SOME") || at_word("ALL"));
      if (several) {
        like.quantifier = next().upper == "ALL" ? LikeQuantifier::kAll : LikeQuantifier::kAny;
        next();
        like.patterns = expression_list();
        expect_symbol(")");
      } else {
        like.patterns.push_back(value_expression(0));
        if (accept_word("ESCAPE")) {
          like.escape = string_value("the escape character");
          if (!failed_ && like.escape->size() != 1)
            fail_at(place, "ESCAPE takes a string of one character");
        }
      }
      left = make(std::move(like), place);
    } else if (accept_word("IS")) {
      Is is;
      is.value = left;
      is.negated = accept_word("NOT");
      if (accept_word("NULL")) {
        is.what = IsWhat::kNull;
      } else if (accept_word("TRUE")) {
        is.what = IsWhat::kTrue;
      } else if (accept_word("FALSE")) {
        is.what = IsWhat::kFalse;
      } else if (accept_word("UNKNOWN")) {
        is.what = IsWhat::kUnknown;
      } else if (accept_words({"DISTINCT", "FROM"})) {
        is.what = IsWhat::kDistinctFrom;
        is.other = value_expression(0);
      } else {
        fail_expected("NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM",
                      {"NULL", "TRUE", "FALSE", "DISTINCT"});
      }
      left = make(std::move(is), place);
    } else {
      break;
    }
  }
  return left;
}

ExprPtr Parser::comparison() {
  ExprPtr left = value_expression(0);
  while (!failed_ && peek().kind == TokenKind::kSymbol) {
    const Comparison* found = nullptr;
    for (const Comparison& candidate : kComparisons) {
      if (at_symbol(candidate.symbol)) found = &candidate;
    }
    if (found == nullptr) break;
    const SourcePlace place = next().place;
    if (at_word("ANY") || at_word("SOME") || at_word("ALL")) {
      if (at_symbol("(", 1)) {
        fail_unsupported(peek().place, peek().upper + " (subquery) in a comparison",
                         "use IN or EXISTS");
      }
    }
    ExprPtr right = value_expression(0);
    left = make(Binary{found->op, std::move(left), std::move(right)}, place);
  }
  return left;
}

ExprPtr Parser::value_expression(int level) {
  if (level == kLevels) return unary();
  ExprPtr left = value_expression(level + 1);
  while (!failed_) {
    std::optional<BinaryOp> op;
    size_t tokens = 1;
    if (level == 3) {
      const auto glued = [&](std::string_view symbol, size_t count) {
        for (size_t i = 0; i < count; ++i) {
          if (!at_symbol(symbol, i) || (i > 0 && peek(i).begin != peek(i - 1).end)) return false;
        }
        return true;
      };
      if (glued(">", 3)) {
        op = BinaryOp::kShiftRightUnsigned;
        tokens = 3;
      } else if (glued(">", 2)) {
        op = BinaryOp::kShiftRight;
        tokens = 2;
      } else if (glued("<", 2)) {
        op = BinaryOp::kShiftLeft;
        tokens = 2;
      }
    } else if (level == 5 && at_word("DIV")) {
      op = BinaryOp::kIntegerDivide;
    } else {
      for (const BinaryLevel& candidate : kBinaryLevels) {
        if (candidate.level == level && at_symbol(candidate.symbol)) op = candidate.op;
      }
    }
    if (!op) break;
    const SourcePlace place = peek().place;
    for (size_t i = 0; i < tokens; ++i) next();
    ExprPtr right = value_expression(level + 1);
    left = make(Binary{*op, std::move(left), std::move(right)}, place);
  }
  return left;
}

ExprPtr Parser::unary() {
  if (!at_symbol("-") && !at_symbol("+") && !at_symbol("~")) return postfix();
  const Nesting nesting(*this);
  if (at_symbol("-") && peek(1).kind == TokenKind::kNumber)
    return postfix();  // a negative constant
  const Token& sign = next();
  const UnaryOp op = sign.text == "-"   ? UnaryOp::kMinus
                     : sign.text == "+" ? UnaryOp::kPlus
                                        : UnaryOp::kBitNot;
  const SourcePlace place = sign.place;
  return make(Unary{op, unary()}, place);
}

ExprPtr Parser::postfix() {
  ExprPtr value = primary();
  while (!failed_) {
    const SourcePlace place = peek().place;
    if (accept_symbol("::")) {
      DataType target = cast_type();
      value = make(Cast{value, std::move(target), false}, place);
    } else if (at_symbol(".") && (at_name(1) || at_symbol("*", 1))) {
      next();
      if (at_symbol("*")) {
        fail_unsupported(place, "expanding a struct expression with .*", "name its fields");
        break;
      }
      value = make(FieldAccess{value, name("a field's name")}, place);
    } else if (accept_symbol("[")) {
      ExprPtr index = expression();
      expect_symbol("]");
      value = make(IndexAccess{value, std::move(index)}, place);
    } else if (at_symbol(":") && (at_name(1) || at_symbol("[", 1))) {
      next();
      std::string path = json_path();
      value = make(JsonAccess{value, std::move(path)}, place);
    } else {
      break;
    }
  }
  return value;
}

std::string Parser::json_path() {
  std::string path = "$";
  bool first = true;
  const auto quoted = [](const std::string& key) {
    const bool plain = !key.empty() && key.find_first_not_of(
                                           "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                           "0123456789_") == std::string::npos;
    return plain ? "." + key : "['" + key + "']";
  };
  while (!failed_) {
    if (at_symbol("[")) {
      next();
      if (peek().kind == TokenKind::kString) {
        path += quoted(next().text);
      } else if (peek().kind == TokenKind::kNumber && peek().suffix.empty()) {
        path += "[" + next().text + "]";
      } else if (at_symbol("*")) {
        fail_unsupported(peek().place, "[*] in a JSON path", "use from_json and transform");
      } else {
        fail_expected("an index or a quoted key");
      }
      expect_symbol("]");
    } else if (first || (at_symbol(".") && at_name(1))) {
      if (!first) next();
      path += quoted(name("a JSON key").text);
    } else {
      break;
    }
    first = false;
  }
  return path;
}

ExprPtr Parser::number(bool negative) {
  const SourcePlace place = peek().place;
  if (negative) next();
  const Token& token = next();
  Literal literal;
  literal.text = (negative ? "-" : "") + token.text;
  const std::string& suffix = token.suffix;
  const bool fraction = token.text.find('.') != std::string::npos;
  const bool exponent = token.text.find_first_of("eE") != std::string::npos;
  const auto fits = [&](TypeId type, const char* most, const char* most_negative) {
    const std::string digits =
        token.text.substr(std::min(token.text.find_first_not_of('0'), token.text.size() - 1));
    const std::string limit = negative ? most_negative : most;
    const bool inside =
        digits.size() < limit.size() || (digits.size() == limit.size() && digits <= limit);
    if (inside) literal.type = type;
    return inside;
  };
  const auto must_fit = [&](TypeId type, const char* most, const char* most_negative) {
    if (fraction || exponent || !fits(type, most, most_negative)) {
      fail_at(place, fmt::format("'{}{}' is out of range for its suffix", literal.text, suffix));
    }
  };
  if (suffix == "D") {
    literal.type = TypeId::kDouble;
  } else if (suffix == "F") {
    literal.type = TypeId::kFloat;
  } else if (suffix == "BD") {
    literal.type = TypeId::kDecimal;
  } else if (suffix == "L") {
    must_fit(TypeId::kLong, "9223372036854775807", "9223372036854775808");
  } else if (suffix == "S") {
    must_fit(TypeId::kShort, "32767", "32768");
  } else if (suffix == "Y") {
    must_fit(TypeId::kByte, "127", "128");
  } else if (exponent) {
    literal.type = TypeId::kDouble;
  } else if (fraction) {
    literal.type = TypeId::kDecimal;
  } else if (!fits(TypeId::kInteger, "2147483647", "2147483648") &&
             !fits(TypeId::kLong, "9223372036854775807", "9223372036854775808")) {
    literal.type = TypeId::kDecimal;
  }
  if (literal.type == TypeId::kDecimal) {
    if (exponent) {
      fail_unsupported(place, "a decimal constant with an exponent", "write its digits");
    }
    // Zeros before the first digit do not count.
    const std::string digits =
        token.text.substr(std::min(token.text.find_first_not_of('0'), token.text.size() - 1));
    if (digits.size() - (fraction ? 1 : 0) > 38) {
      fail_at(place, fmt::format("'{}' has more than the 38 digits of a DECIMAL", literal.text));
    }
  }
  const bool single = literal.type == TypeId::kFloat;
  if ((single || literal.type == TypeId::kDouble) &&
      std::isinf(single ? std::strtof(token.text.c_str(), nullptr)
                        : std::strtod(token.text.c_str(), nullptr))) {
    fail(invalid_argument("INVALID_NUMERIC_LITERAL_RANGE",
                          "{} is outside the range of {}: CAST('Infinity' AS {}) is the infinity",
                          literal.text, single ? "FLOAT" : "DOUBLE", single ? "FLOAT" : "DOUBLE"),
         place);
  }
  return make(std::move(literal), place);
}

ExprPtr Parser::string_constant() {
  const SourcePlace place = peek().place;
  return make(Literal{TypeId::kString, string_value("a constant")}, place);
}

QueryPtr Parser::subquery(int* height) {
  const int outside = tallest_;
  tallest_ = 0;
  QueryPtr result = query();
  *height = tallest_;
  tallest_ = outside;
  return result;
}

ExprPtr Parser::parenthesised() {
  const SourcePlace place = peek().place;
  expect_symbol("(");
  if (at_query()) {
    int height = 0;
    QueryPtr inner = subquery(&height);
    expect_symbol(")");
    return make(ScalarSubquery{std::move(inner)}, place, height);
  }
  ExprPtr first = expression();
  if (at_symbol(",") || at_word("AS")) {  // a row value is a struct
    Call row;
    row.name = Name{"struct", place};
    const auto add = [&](ExprPtr part) {
      row.args.push_back(std::move(part));
      row.arg_names.push_back(accept_word("AS") ? name("a field's name").text : "");
    };
    add(std::move(first));
    while (accept_symbol(",")) add(expression());
    expect_symbol(")");
    return make(std::move(row), place);
  }
  expect_symbol(")");
  return first;
}

ExprPtr Parser::case_expression() {
  const SourcePlace place = next().place;
  Case result;
  if (!at_word("WHEN")) result.operand = expression();
  while (!failed_ && accept_word("WHEN")) {
    ExprPtr condition = expression();
    expect_word("THEN");
    result.branches.emplace_back(std::move(condition), expression());
  }
  if (result.branches.empty()) fail_expected("WHEN", {"WHEN"});
  if (accept_word("ELSE")) result.otherwise = expression();
  if (!accept_word("END")) fail_expected("WHEN, ELSE or END", {"WHEN", "ELSE", "END"});
  return make(std::move(result), place);
}

ExprPtr Parser::cast_expression(bool try_cast) {
  const SourcePlace place = next().place;
  expect_symbol("(");
  Cast cast;
  cast.try_cast = try_cast;
  cast.value = expression();
  expect_word("AS");
  cast.type = cast_type();
  expect_symbol(")");
  return make(std::move(cast), place);
}

ExprPtr Parser::interval() {
  const SourcePlace place = next().place;
  static constexpr std::array<std::string_view, 10> kUnits = {
      "YEAR", "QUARTER", "MONTH",  "WEEK",        "DAY",
      "HOUR", "MINUTE",  "SECOND", "MILLISECOND", "MICROSECOND"};
  const auto unit_of = [&](const std::string& text) -> std::string {
    std::string word = upper_ascii(text);
    if (word.size() > 1 && word.back() == 'S') word.pop_back();
    for (const std::string_view unit : kUnits) {
      if (word == unit) return word;
    }
    return "";
  };
  IntervalLiteral result;
  const auto at_unit = [&] {
    return peek().kind == TokenKind::kWord && !unit_of(peek().upper).empty();
  };
  while (!failed_) {
    ExprPtr value;
    if (peek().kind == TokenKind::kString) {
      value = string_constant();
    } else if (peek().kind == TokenKind::kNumber) {
      value = number(false);
    } else if (at_symbol("-") && peek(1).kind == TokenKind::kNumber) {
      value = number(true);
    } else if (result.parts.empty() && at_symbol("(")) {
      value = parenthesised();
    } else {
      break;
    }
    if (at_unit()) {
      std::string unit = unit_of(next().upper);
      if (at_word("TO")) {
        fail_unsupported(peek().place, "INTERVAL '...' x TO y",
                         "write one unit at a time: INTERVAL 1 DAY 2 HOURS");
      }
      result.parts.emplace_back(std::move(value), std::move(unit));
      continue;
    }
    const auto* text = value->as<Literal>();
    if (text == nullptr || text->type != TypeId::kString || !result.parts.empty()) {
      fail_expected("a unit such as DAY",
                    {"YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"});
      break;
    }
    // '1 day 2 hours': the units stand inside the string
    std::string words = lower_ascii(text->text) + " ";
    std::vector<std::string> split;
    std::string current;
    for (const char c : words) {
      if (c == ' ') {
        if (!current.empty()) split.push_back(std::move(current));
        current.clear();
      } else {
        current += c;
      }
    }
    if (!split.empty() && split[0] == "interval") split.erase(split.begin());
    bool good = !split.empty() && split.size() % 2 == 0;
    for (size_t i = 0; good && i < split.size(); i += 2) {
      const std::string unit = unit_of(split[i + 1]);
      good = !unit.empty() && split[i].find_first_not_of("0123456789.-+") == std::string::npos;
      if (good) result.parts.emplace_back(make(Literal{TypeId::kString, split[i]}, place), unit);
    }
    if (!good)
      fail_at(place,
              fmt::format("'{}' is not an interval: write for example INTERVAL 1 DAY", text->text));
    break;
  }
  if (result.parts.empty()) fail_expected("the interval's value");
  return make(std::move(result), place);
}

std::vector<ExprPtr> Parser::expression_list() {
  std::vector<ExprPtr> list;
  do {
    list.push_back(expression());
  } while (!failed_ && accept_symbol(","));
  return list;
}

bool Parser::at_lambda() const {
  if (at_name()) return at_symbol("->", 1);
  if (!at_symbol("(")) return false;
  size_t ahead = 1;
  while (at_name(ahead) && at_symbol(",", ahead + 1)) ahead += 2;
  return at_name(ahead) && at_symbol(")", ahead + 1) && at_symbol("->", ahead + 2);
}

ExprPtr Parser::lambda() {
  Lambda result;
  const SourcePlace place = peek().place;
  if (accept_symbol("(")) {
    do {
      result.params.push_back(name("a parameter").text);
    } while (accept_symbol(","));
    expect_symbol(")");
  } else {
    result.params.push_back(name("a parameter").text);
  }
  expect_symbol("->");
  result.body = expression();
  return make(std::move(result), place);
}

ExprPtr Parser::argument() {
  if (at_symbol("*")) {
    const SourcePlace place = next().place;
    Star star;
    return make(std::move(star), place);
  }
  if (at_lambda()) return lambda();
  return expression();
}

ExprPtr Parser::function_call() {
  const Token& token = next();
  Call call;
  call.name = Name{lower_ascii(token.text), token.place};
  const SourcePlace place = token.place;
  expect_symbol("(");
  const auto add = [&](ExprPtr arg) {
    call.args.push_back(std::move(arg));
    call.arg_names.emplace_back();
  };

  // Special forms.
  if (call.name.text == "extract" && peek(1).upper == "FROM" && at_name()) {
    call.name.text = "date_part";
    const SourcePlace field_place = peek().place;
    add(make(Literal{TypeId::kString, lower_ascii(next().text)}, field_place));
    next();
    add(expression());
    expect_symbol(")");
    return make(std::move(call), place);
  }
  if (call.name.text == "position" && !at_symbol(")")) {
    ExprPtr needle = value_expression(0);
    add(std::move(needle));
    if (accept_word("IN")) {
      add(expression());
      expect_symbol(")");
      return make(std::move(call), place);
    }
    while (accept_symbol(",")) add(expression());
    expect_symbol(")");
    return call_suffix(std::move(call), place);
  }
  if (call.name.text == "trim" && (at_word("BOTH") || at_word("LEADING") || at_word("TRAILING"))) {
    const std::string& side = next().upper;
    call.name.text = side == "LEADING" ? "ltrim" : side == "TRAILING" ? "rtrim" : "trim";
    ExprPtr characters = at_word("FROM") ? nullptr : expression();
    expect_word("FROM");
    if (characters && call.name.text == "trim") call.name.text = "btrim";
    ExprPtr value = expression();
    if (call.name.text == "btrim" || !characters) {
      add(std::move(value));
      if (characters) add(std::move(characters));
    } else {  // ltrim(characters, value)
      add(std::move(characters));
      add(std::move(value));
    }
    expect_symbol(")");
    return make(std::move(call), place);
  }

  if (accept_word("DISTINCT")) {
    call.distinct = true;
  } else if (at_word("ALL") && !at_symbol(")", 1) && !at_symbol(",", 1) && !at_symbol(".", 1)) {
    next();
  }
  // timestampdiff(HOUR, a, b): the unit is a word
  if ((call.name.text == "timestampadd" || call.name.text == "timestampdiff" ||
       call.name.text == "dateadd" || call.name.text == "date_add" ||
       call.name.text == "datediff" || call.name.text == "date_diff") &&
      peek().kind == TokenKind::kWord && at_symbol(",", 1)) {
    static constexpr std::array<std::string_view, 11> kUnits = {
        "YEAR", "QUARTER", "MONTH",  "WEEK",        "DAY",        "DAYOFYEAR",
        "HOUR", "MINUTE",  "SECOND", "MILLISECOND", "MICROSECOND"};
    for (const std::string_view unit : kUnits) {
      if (!at_word(unit)) continue;
      const bool three = [&] {  // datediff(day, start) has two arguments: then `day` is a column
        int depth = 0;
        int commas = 0;
        for (size_t i = 0; peek(i).kind != TokenKind::kEnd; ++i) {
          if (at_symbol("(", i) || at_symbol("[", i)) ++depth;
          if ((at_symbol(")", i) || at_symbol("]", i)) && depth-- == 0) break;
          if (depth == 0 && at_symbol(",", i)) ++commas;
        }
        return commas == 2;
      }();
      if (!three) break;
      const SourcePlace unit_place = peek().place;
      add(make(Literal{TypeId::kString, lower_ascii(next().text)}, unit_place));
      call.name.text =
          call.name.text.find("diff") != std::string::npos ? "timestampdiff" : "timestampadd";
      expect_symbol(",");
      break;
    }
  }
  while (!failed_ && !at_symbol(")")) {
    if (at_name() && at_symbol("=>", 1)) {
      Name key = name("an argument's name");
      next();
      call.named_args.emplace_back(std::move(key), expression());
    } else {
      add(argument());
      if (call.name.text == "struct" && accept_word("AS"))
        call.arg_names.back() = name("a field's name").text;
      if ((call.name.text == "substring" || call.name.text == "substr") && call.args.size() == 1 &&
          (at_word("FROM"))) {
        next();
        add(expression());
        if (accept_word("FOR")) add(expression());
        break;
      }
      if (call.name.text == "trim" && call.args.size() == 1 &&
          accept_word("FROM")) {  // trim(chars FROM value)
        call.name.text = "btrim";
        ExprPtr characters = call.args.back();
        call.args.back() = expression();
        add(std::move(characters));
        break;
      }
      if (at_words({"IGNORE", "NULLS"}) || at_words({"RESPECT", "NULLS"})) {
        call.ignore_nulls = next().upper == "IGNORE";
        next();
      }
    }
    if (!accept_symbol(",")) break;
    if (at_symbol(")")) fail_expected("an argument");
  }
  expect_symbol(")");
  return call_suffix(std::move(call), place);
}

ExprPtr Parser::call_suffix(Call call, const SourcePlace& place) {
  if (accept_words({"WITHIN", "GROUP"})) {
    expect_symbol("(");
    expect_word("ORDER");
    expect_word("BY");
    call.within_group = order_items();
    expect_symbol(")");
  }
  if (at_word("FILTER") && at_symbol("(", 1)) {
    next();
    next();
    expect_word("WHERE");
    call.filter = expression();
    expect_symbol(")");
  }
  if (at_words({"IGNORE", "NULLS"}) || at_words({"RESPECT", "NULLS"})) {
    call.ignore_nulls = next().upper == "IGNORE";
    next();
  }
  if (at_word("OVER") && (at_symbol("(", 1) || at_name(1))) {
    next();
    if (at_name()) {
      WindowSpec spec;
      spec.base = name("a window's name");
      call.over = std::move(spec);
    } else {
      call.over = window_spec();
    }
  }
  return make(std::move(call), place);
}

OrderItem Parser::order_item() {
  OrderItem item;
  item.expr = expression();
  if (accept_word("DESC")) {
    item.descending = true;
  } else {
    accept_word("ASC");
  }
  if (at_word("NULLS") && (at_word("FIRST", 1) || at_word("LAST", 1))) {
    next();
    item.nulls_first = next().upper == "FIRST";
  }
  return item;
}

std::vector<OrderItem> Parser::order_items() {
  std::vector<OrderItem> items;
  do {
    items.push_back(order_item());
  } while (!failed_ && accept_symbol(","));
  return items;
}

FrameBound Parser::frame_bound() {
  FrameBound bound;
  if (accept_words({"CURRENT", "ROW"})) {
    bound.kind = FrameBoundKind::kCurrentRow;
  } else if (accept_words({"UNBOUNDED", "PRECEDING"})) {
    bound.kind = FrameBoundKind::kUnboundedPreceding;
  } else if (accept_words({"UNBOUNDED", "FOLLOWING"})) {
    bound.kind = FrameBoundKind::kUnboundedFollowing;
  } else {
    bound.offset = value_expression(0);
    if (accept_word("PRECEDING")) {
      bound.kind = FrameBoundKind::kPreceding;
    } else if (accept_word("FOLLOWING")) {
      bound.kind = FrameBoundKind::kFollowing;
    } else {
      fail_expected("PRECEDING or FOLLOWING", {"PRECEDING", "FOLLOWING"});
    }
  }
  return bound;
}

WindowSpec Parser::window_spec() {
  WindowSpec spec;
  expect_symbol("(");
  if (at_name() && !at_word("PARTITION") && !at_word("DISTRIBUTE") && !at_word("ORDER") &&
      !at_word("SORT") && !at_word("ROWS") && !at_word("RANGE")) {
    spec.base = name("a window's name");
  }
  if ((at_word("PARTITION") || at_word("DISTRIBUTE")) && at_word("BY", 1)) {
    next();
    next();
    spec.partition_by = expression_list();
  }
  if ((at_word("ORDER") || at_word("SORT")) && at_word("BY", 1)) {
    next();
    next();
    spec.order_by = order_items();
  }
  if (at_word("ROWS") || at_word("RANGE")) {
    WindowFrame frame;
    frame.unit = next().upper == "ROWS" ? FrameUnit::kRows : FrameUnit::kRange;
    if (accept_word("BETWEEN")) {
      frame.start = frame_bound();
      expect_word("AND");
      frame.end = frame_bound();
    } else {
      frame.start = frame_bound();
    }
    spec.frame = std::move(frame);
  }
  expect_symbol(")");
  return spec;
}

ExprPtr Parser::primary() {
  const Token& token = peek();
  const SourcePlace place = token.place;
  switch (token.kind) {
    case TokenKind::kNumber:
      return number(false);
    case TokenKind::kString:
      return string_constant();
    case TokenKind::kBinary:
      return make(Literal{TypeId::kBinary, next().text}, place);
    case TokenKind::kQuotedName:
      break;
    case TokenKind::kEnd:
      break;
    case TokenKind::kSymbol:
      if (token.text == "-" && peek(1).kind == TokenKind::kNumber) return number(true);
      if (token.text == "(") return parenthesised();
      if (token.text == "*") {
        next();
        Star star;
        return make(std::move(star), place);
      }
      if (token.text == "?" || token.text == ":") {
        fail_unsupported(place, "a query parameter",
                         "write the value, or use ${key} from the configuration");
      }
      break;
    case TokenKind::kWord: {
      const std::string& word = token.upper;
      if (word == "NULL") {
        next();
        return make(Literal{}, place);
      }
      if (word == "TRUE" || word == "FALSE") {
        next();
        return make(Literal{TypeId::kBoolean, word == "TRUE" ? "true" : "false"}, place);
      }
      if (word == "CASE") return case_expression();
      if ((word == "CAST" || word == "TRY_CAST") && at_symbol("(", 1))
        return cast_expression(word == "TRY_CAST");
      if (word == "EXISTS" && at_symbol("(", 1) &&
          (at_word("SELECT", 2) || at_word("WITH", 2) || at_word("FROM", 2))) {
        next();
        next();
        int height = 0;
        QueryPtr inner = subquery(&height);
        expect_symbol(")");
        return make(Exists{std::move(inner)}, place, height);
      }
      const TokenKind following = peek(1).kind;
      if (word == "INTERVAL" &&
          (following == TokenKind::kString || following == TokenKind::kNumber ||
           (at_symbol("-", 1) && peek(2).kind == TokenKind::kNumber) || at_symbol("(", 1))) {
        return interval();
      }
      if (following == TokenKind::kString) {
        TypeId type = TypeId::kVoid;
        if (word == "DATE") type = TypeId::kDate;
        if (word == "TIMESTAMP" || word == "TIMESTAMP_LTZ") type = TypeId::kTimestamp;
        if (word == "TIMESTAMP_NTZ") type = TypeId::kTimestampNtz;
        if (type != TypeId::kVoid) {
          next();
          return make(Literal{type, string_value("a constant")}, place);
        }
      }
      if (!at_symbol("(", 1) &&
          (word == "CURRENT_DATE" || word == "CURRENT_TIMESTAMP" || word == "CURRENT_USER" ||
           word == "LOCALTIMESTAMP" || word == "CURRENT_TIME")) {
        next();
        Call call;
        call.name = Name{lower_ascii(word), place};
        return make(std::move(call), place);
      }
      if (at_symbol("(", 1)) {
        // Reserved words are functions before a parenthesis only where such a function exists.
        const bool function = !at_clause_word() || word == "LEFT" || word == "RIGHT" ||
                              word == "LIKE" || word == "RLIKE" || word == "ILIKE" ||
                              word == "REGEXP" || word == "FILTER";
        if (function) return function_call();
      }
      if (at_clause_word()) {
        fail_expected("an expression");
        return make(Literal{}, place);
      }
      break;
    }
  }
  if (!at_name()) {
    fail_expected("an expression");
    return make(Literal{}, place);
  }
  ColumnRef column;
  column.parts.push_back(next().text);
  while (at_symbol(".")) {
    if (at_symbol("*", 1)) {
      next();
      next();
      return make(Star{std::move(column.parts), {}, {}}, place);
    }
    if (!at_name(1)) {
      next();
      fail_expected("a name after the dot");
      break;
    }
    if (at_symbol("(", 2)) {
      fail_unsupported(place,
                       fmt::format("the function name {}.{} in several parts", column.parts.back(),
                                   peek(1).text),
                       "only built-in functions exist");
      break;
    }
    next();
    column.parts.push_back(next().text);
  }
  return make(std::move(column), place);
}

}  // namespace strandline::sql
