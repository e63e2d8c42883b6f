// Expressions as DuckDB text.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/error.h"
#include "sql/duckdb_core.h"
#include "sql/names.h"

namespace strandline::sql {

namespace {

const char* operator_text(BinaryOp op) {
  switch (op) {
    case BinaryOp::kOr:
      return "OR";
    case BinaryOp::kAnd:
      return "AND";
    case BinaryOp::kEqual:
      return "=";
    case BinaryOp::kNullSafeEqual:
      return "IS NOT DISTINCT FROM";
    case BinaryOp::kNotEqual:
      return "<>";
    case BinaryOp::kLess:
      return "<";
    case BinaryOp::kLessEqual:
      return "<=";
    case BinaryOp::kGreater:
      return ">";
    case BinaryOp::kGreaterEqual:
      return ">=";
    case BinaryOp::kBitOr:
      return "|";
    case BinaryOp::kBitAnd:
      return "&";
    case BinaryOp::kShiftLeft:
      return "<<";
    case BinaryOp::kShiftRight:
      return ">>";
    case BinaryOp::kAdd:
      return "+";
    case BinaryOp::kSubtract:
      return "-";
    case BinaryOp::kConcat:
      return "||";
    case BinaryOp::kMultiply:
      return "*";
    case BinaryOp::kModulo:
      return "%";
    default:
      return "";
  }
}

// Whether a value may be a struct or an array, as far as its own form tells.
bool may_hold_parts(const Expr& expr) {
  return expr.as<Literal>() == nullptr && known_type(expr) == TypeId::kVoid &&
         expr.as<Binary>() == nullptr && expr.as<Unary>() == nullptr;
}
bool is_zero(const Literal& literal) {
  return literal.text.find_first_of("123456789") == std::string::npos;
}

}  // namespace

TypeId known_type(const Expr& expr) {
  if (const auto* literal = expr.as<Literal>()) return literal->type;
  if (const auto* cast = expr.as<Cast>()) return cast->type.id;
  if (expr.as<JsonAccess>() != nullptr) return TypeId::kString;
  if (expr.as<Is>() != nullptr || expr.as<Between>() != nullptr || expr.as<Like>() != nullptr ||
      expr.as<In>() != nullptr || expr.as<Exists>() != nullptr) {
    return TypeId::kBoolean;
  }
  if (const auto* unary = expr.as<Unary>()) {
    if (unary->op == UnaryOp::kNot) return TypeId::kBoolean;
    const TypeId type = known_type(*unary->operand);
    return type == TypeId::kString && unary->op != UnaryOp::kBitNot ? TypeId::kDouble : type;
  }
  if (const auto* binary = expr.as<Binary>()) {
    const TypeId left = known_type(*binary->left);
    const TypeId right = known_type(*binary->right);
    switch (binary->op) {
      case BinaryOp::kConcat:
        return left == TypeId::kString || right == TypeId::kString ? TypeId::kString
                                                                   : TypeId::kVoid;
      case BinaryOp::kDivide:
        // Decimals give a decimal, and what is not known may be one.
        if (is_floating(left) || is_floating(right)) return TypeId::kDouble;
        return is_integer(left) && is_integer(right) ? TypeId::kDouble : TypeId::kVoid;
      case BinaryOp::kIntegerDivide:
        return TypeId::kLong;
      case BinaryOp::kAdd:
      case BinaryOp::kSubtract:
      case BinaryOp::kMultiply:
      case BinaryOp::kModulo:
        if (left == TypeId::kFloat || right == TypeId::kFloat) {
          // With another FLOAT a FLOAT, with others a DOUBLE.
          if (left == TypeId::kVoid || right == TypeId::kVoid) return TypeId::kVoid;
          return left == right ? TypeId::kFloat : TypeId::kDouble;
        }
        if (is_floating(left) || is_floating(right)) return TypeId::kDouble;
        return left == right && is_integer(left) ? left : TypeId::kVoid;
      case BinaryOp::kBitOr:
      case BinaryOp::kBitXor:
      case BinaryOp::kBitAnd:
      case BinaryOp::kShiftLeft:
      case BinaryOp::kShiftRight:
      case BinaryOp::kShiftRightUnsigned:
        return TypeId::kVoid;
      default:
        return TypeId::kBoolean;
    }
  }
  if (const auto* choice = expr.as<Case>()) {
    TypeId type = TypeId::kVoid;
    for (const auto& [condition, value] : choice->branches) {
      const TypeId branch = known_type(*value);
      if (branch == TypeId::kVoid) {
        const auto* null = value->as<Literal>();
        if (null != nullptr) continue;
        return TypeId::kVoid;
      }
      if (type != TypeId::kVoid && type != branch) return TypeId::kVoid;
      type = branch;
    }
    if (choice->otherwise && choice->otherwise->as<Literal>() == nullptr &&
        known_type(*choice->otherwise) != type) {
      return TypeId::kVoid;
    }
    if (choice->otherwise) {
      const TypeId last = known_type(*choice->otherwise);
      if (last != TypeId::kVoid && last != type) return TypeId::kVoid;
    }
    return type;
  }
  if (const auto* call = expr.as<Call>()) {
    bool known = false;
    const Function* function = find_function(call->name.text, call->args.size(), &known);
    if (function == nullptr) return TypeId::kVoid;
    if (function->result != TypeId::kVoid) return function->result;
    if (function->name == "concat") {
      for (const ExprPtr& arg : call->args) {
        if (known_type(*arg) == TypeId::kString) return TypeId::kString;
      }
      return TypeId::kVoid;
    }
    const std::string_view name = function->name;
    if (name == "coalesce" || name == "nvl" || name == "ifnull" || name == "greatest" ||
        name == "least" || name == "min" || name == "max" || name == "nullif") {
      TypeId type = TypeId::kVoid;
      for (const ExprPtr& arg : call->args) {
        const TypeId of_arg = known_type(*arg);
        if (of_arg == TypeId::kVoid && arg->as<Literal>() != nullptr) continue;
        if (of_arg == TypeId::kVoid || (type != TypeId::kVoid && type != of_arg))
          return TypeId::kVoid;
        type = of_arg;
      }
      return type;
    }
  }
  return TypeId::kVoid;
}

std::string duckdb_type(const DataType& type) {
  switch (type.id) {
    case TypeId::kString:
      return "VARCHAR";
    case TypeId::kLong:
      return "BIGINT";
    case TypeId::kInteger:
      return "INTEGER";
    case TypeId::kShort:
      return "SMALLINT";
    case TypeId::kByte:
      return "TINYINT";
    case TypeId::kFloat:
      return "FLOAT";
    case TypeId::kDouble:
      return "DOUBLE";
    case TypeId::kDecimal:
      return fmt::format("DECIMAL({}, {})", type.precision, type.scale);
    case TypeId::kBoolean:
      return "BOOLEAN";
    case TypeId::kBinary:
      return "BLOB";
    case TypeId::kDate:
      return "DATE";
    case TypeId::kTimestamp:
      return "TIMESTAMPTZ";
    case TypeId::kTimestampNtz:
      return "TIMESTAMP";
    case TypeId::kInterval:
      return "INTERVAL";
    case TypeId::kVoid:
    case TypeId::kVariant:
      return "";
    case TypeId::kArray: {
      const std::string element = duckdb_type(*type.element);
      return element.empty() ? "" : element + "[]";
    }
    case TypeId::kMap: {
      const std::string key = duckdb_type(*type.key);
      const std::string value = duckdb_type(*type.element);
      return key.empty() || value.empty() ? "" : fmt::format("MAP({}, {})", key, value);
    }
    case TypeId::kStruct: {
      std::string fields;
      for (const Field& field : *type.fields) {
        const std::string of_field = duckdb_type(field.type);
        if (of_field.empty()) return "";
        fields +=
            fmt::format("{}{} {}", fields.empty() ? "" : ", ", duckdb_name(field.name), of_field);
      }
      return fields.empty() ? "" : "STRUCT(" + fields + ")";
    }
  }
  return "";
}

void DuckdbPrinter::fail(Error error, const SourcePlace& place) {
  if (error_) return;
  if (!error.place) error.place = place;
  error_ = std::move(error);
}

void DuckdbPrinter::fail_unsupported(const SourcePlace& place, const std::string& what,
                                     const std::string& instead) {
  fail(unsupported("UNSUPPORTED_CONSTRUCT", "{} is not supported{}{}", what,
                   instead.empty() ? "" : ": ", instead),
       place);
}

Result<std::string> DuckdbPrinter::whole(const Expr& node) {
  std::string text = expr(node);
  if (error_) return *error_;
  return text;
}

std::string DuckdbPrinter::list(const std::vector<ExprPtr>& items) {
  std::string result;
  for (const ExprPtr& item : items) {
    if (!result.empty()) result += ", ";
    result += expr(item);
  }
  return result;
}

std::string DuckdbPrinter::filter(const ExprPtr& node) {
  is_filter_ = true;
  std::string text = condition(node);
  is_filter_ = false;
  return text;
}

std::string DuckdbPrinter::condition(const ExprPtr& node) {
  const std::string text = expr(node);
  const TypeId type = known_type(*node);
  const auto* constant = node->as<Literal>();
  if (type == TypeId::kBoolean || (constant != nullptr && constant->type == TypeId::kVoid))
    return text;
  if (type != TypeId::kVoid) {
    fail(invalid_argument("DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN",
                          "the condition is of type {}: write a comparison that is true or false",
                          to_sql(DataType::primitive(type))),
         node->place);
  }
  if (!options_.mark_conditions) return text;
  const std::string place = fmt::format("{}:{}", node->place.line, node->place.column);
  return fmt::format("/*?{}*/({})", place, text);
}

namespace {

// The text of a statement ends at a zero byte.
std::string string_text(const std::string& value) {
  if (value.find('\0') == std::string::npos) return duckdb_string(value);
  std::string parts;
  for (size_t begin = 0;;) {
    const size_t end = value.find('\0', begin);
    parts += duckdb_string(value.substr(begin, end - begin));
    if (end == std::string::npos) return fmt::format("concat({})", parts);
    parts += ", chr(0), ";
    begin = end + 1;
  }
}

}  // namespace

std::string DuckdbPrinter::literal(const Expr& node, const Literal& literal) {
  switch (literal.type) {
    case TypeId::kVoid:
      return "NULL";
    case TypeId::kBoolean:
      return literal.text;
    case TypeId::kString:
      return string_text(literal.text);
    case TypeId::kBinary:
      return fmt::format("unhex('{}')", literal.text);
    case TypeId::kDate:
      if (!is_date_text(literal.text)) {
        fail(invalid_argument("CAST_INVALID_INPUT",
                              "the text '{}' is no DATE: write it as in DATE'2026-05-17'",
                              literal.text),
             node.place);
      }
      return fmt::format("CAST({} AS DATE)", duckdb_string(whole_date(literal.text)));
    case TypeId::kTimestamp:
      return duckdb_instant_of_text(duckdb_string(whole_date(literal.text)), false);
    case TypeId::kTimestampNtz:
      return fmt::format("CAST({} AS TIMESTAMP)", duckdb_string(whole_date(literal.text)));
    case TypeId::kInteger:
      // DuckDB would read the sign apart from the digits, which are a BIGINT.
      return literal.text == "-2147483648" ? "CAST(-2147483648 AS INTEGER)" : literal.text;
    case TypeId::kDecimal: {
      const bool negative = literal.text[0] == '-';
      const size_t point = literal.text.find('.');
      const size_t digits = literal.text.size() - (negative ? 1 : 0);
      if (point == std::string::npos)
        return fmt::format("CAST({} AS DECIMAL({}, 0))", duckdb_string(literal.text), digits);
      // DuckDB counts the zero before the point as a digit.
      constexpr size_t kMostDigits = 38;
      if (digits <= kMostDigits + 1) return literal.text;
      return fmt::format("CAST({} AS DECIMAL({}, {}))", duckdb_string(literal.text), kMostDigits,
                         literal.text.size() - point - 1);
    }
    default: {
      // As a number the engine would read -0.0 as a decimal, which has no sign of zero.
      const bool negative_zero =
          is_floating(literal.type) && literal.text[0] == '-' && is_zero(literal);
      return fmt::format("CAST({} AS {})", negative_zero ? "'-0.0'" : literal.text,
                         duckdb_type(DataType::primitive(literal.type)));
    }
  }
}

std::string DuckdbPrinter::column(const Expr& node, const ColumnRef& column) {
  if (auto meant = ordered_column(column); !meant.empty())
    return captured(std::move(meant), std::nullopt);
  std::string result;
  for (const auto& [alias, name] : doubles_) {
    const bool qualified =
        !alias.empty() && column.parts.size() > 1 && same_name(column.parts[0], alias);
    if (same_name(column.parts[qualified ? 1 : 0], name)) {
      fail(invalid_argument("AMBIGUOUS_REFERENCE",
                            "the subquery of FROM has two columns called {}: name one of them "
                            "differently",
                            name),
           node.place);
    }
  }
  size_t first = 0;
  for (size_t i = params_.size(); first == 0 && i > 0; --i) {
    if (!same_name(params_[i - 1].first, column.parts[0])) continue;
    result = captured(params_[i - 1].second, i - 1);
    first = 1;
  }
  const bool is_param = first == 1;
  // schema.table.column: the table goes by its last name alone.
  const std::vector<std::string>& parts = column.parts;
  for (auto table = tables_.rbegin(); first == 0 && table != tables_.rend(); ++table) {
    for (size_t count = std::min(table->parts.size(), parts.size() - 1); count > 1; --count) {
      if (std::equal(parts.begin(), parts.begin() + static_cast<long>(count),
                     table->parts.end() - static_cast<long>(count), same_name)) {
        first = count - 1;
        break;
      }
    }
  }
  for (size_t i = first; i < column.parts.size(); ++i) {
    if (!result.empty()) result += '.';
    result += duckdb_name(column.parts[i]);
  }
  return is_param ? result : captured(std::move(result), std::nullopt);
}

std::string DuckdbPrinter::captured(std::string text, std::optional<size_t> param) {
  for (Captures& captures : captures_) {
    if (param && *param >= captures.first_param) continue;
    const auto found = std::find(captures.texts.begin(), captures.texts.end(), text);
    const auto place = found - captures.texts.begin();
    if (found == captures.texts.end()) captures.texts.push_back(std::move(text));
    text = fmt::format("{}.c{}", captures.box, place);
  }
  return text;
}

std::string DuckdbPrinter::star(const Star& star) {
  std::string result;
  for (const std::string& part : star.qualifier) result += duckdb_name(part) + ".";
  result += "*";
  if (!star.except.empty()) {
    std::string names;
    for (const Name& name : star.except)
      names += (names.empty() ? "" : ", ") + duckdb_name(name.text);
    result += " EXCLUDE (" + names + ")";
  }
  if (!star.replaced.empty()) {
    std::string parts;
    for (const auto& [name, value] : star.replaced) {
      parts +=
          fmt::format("{}{} AS {}", parts.empty() ? "" : ", ", expr(value), duckdb_name(name.text));
    }
    result += " REPLACE (" + parts + ")";
  }
  return result;
}

std::string DuckdbPrinter::expr(const Expr& node) {
  // Forms repeat their arguments, so nesting can multiply the text.
  constexpr size_t kMaxText = 1 << 20;
  if (error_) return "";
  std::string text = print(node);
  if (text.size() > kMaxText) {
    fail_unsupported(node.place, "an expression as nested as this",
                     "compute its parts in a subquery first");
    return "";
  }
  return text;
}

// Only passes on, so that its frame stays small: it stands in every level of a deep tree.
std::string DuckdbPrinter::print(const Expr& node) {
  const auto* chained = node.as<Binary>();
  if (chained == nullptr || (chained->op != BinaryOp::kAnd && chained->op != BinaryOp::kOr))
    is_filter_ = false;
  if (const auto* constant = node.as<Literal>()) return literal(node, *constant);
  if (const auto computed = computed_.find(&node); computed != computed_.end())
    return computed->second.text;
  if (const auto* reference = node.as<ColumnRef>()) return column(node, *reference);
  if (node.as<Star>() != nullptr) {
    fail_unsupported(node.place, "* in this place", "name the columns");
    return "";
  }
  if (const auto* field = node.as<FieldAccess>()) return this->field(*field);
  if (const auto* access = node.as<IndexAccess>()) return index(*access);
  if (const auto* json = node.as<JsonAccess>()) return json_value(expr(json->value), json->path);
  if (const auto* operation = node.as<Unary>()) return unary(*operation);
  if (const auto* operation = node.as<Binary>()) return binary(node, *operation);
  if (const auto* test = node.as<Is>()) return is(*test);
  if (const auto* range = node.as<Between>()) return between(*range);
  if (const auto* pattern = node.as<Like>()) return like(*pattern);
  if (const auto* test = node.as<In>()) return in(*test);
  if (const auto* exists = node.as<Exists>()) return "EXISTS (" + query(*exists->query) + ")";
  if (const auto* subquery = node.as<ScalarSubquery>()) return "(" + query(*subquery->query) + ")";
  if (const auto* choice = node.as<Case>()) return case_when(*choice);
  if (const auto* conversion = node.as<Cast>()) {
    return cast(node, conversion->value, conversion->type, conversion->try_cast);
  }
  if (const auto* function = node.as<Call>()) return call(node, *function);
  if (const auto* duration = node.as<IntervalLiteral>()) return interval(*duration);
  fail_unsupported(node.place, "a lambda in this place",
                   "lambdas are arguments of transform, filter and their kin");
  return "";
}

std::string DuckdbPrinter::field(const FieldAccess& field) {
  return fmt::format("struct_extract({}, {})", expr(field.value), duckdb_string(field.name.text));
}

std::string DuckdbPrinter::unary(const Unary& unary) {
  const char* sign = unary.op == UnaryOp::kNot     ? "NOT"
                     : unary.op == UnaryOp::kMinus ? "-"
                     : unary.op == UnaryOp::kPlus  ? "+"
                                                   : "~";
  return fmt::format("({} {})", sign,
                     unary.op == UnaryOp::kNot      ? condition(unary.operand)
                     : unary.op == UnaryOp::kBitNot ? expr(unary.operand)
                                                    : number(unary.operand, nullptr));
}

std::string DuckdbPrinter::is(const Is& is) {
  const char* what = is.what == IsWhat::kTrue           ? "TRUE"
                     : is.what == IsWhat::kFalse        ? "FALSE"
                     : is.what == IsWhat::kDistinctFrom ? "DISTINCT FROM "
                                                        : "NULL";
  return fmt::format("({} IS {}{}{})", expr(is.value), is.negated ? "NOT " : "", what,
                     is.other ? expr(is.other) : "");
}

// A FLOAT meets a DECIMAL as DOUBLE in Spark, as FLOAT in DuckDB, where 0.1 is then the nearest
// FLOAT to it. Other constants are the same number in both.
std::string DuckdbPrinter::comparison(const ExprPtr& value, const std::vector<ExprPtr>& others,
                                      const std::function<std::string(const std::string&)>& form) {
  const auto inexact = [](const ExprPtr& other) {
    const auto* constant = other->as<Literal>();
    if (constant == nullptr || constant->type != TypeId::kDecimal) return false;
    const double number = std::strtod(constant->text.c_str(), nullptr);
    return static_cast<double>(static_cast<float>(number)) != number;
  };
  const std::string text = expr(value);
  // The engine makes several comparisons of IN, which compute the value each.
  if (!is_plain_value(text) && !nondeterministic_calls(*value).empty()) {
    return computed_once(text, [&](const std::string& once) {
      return form(meets_as_double(value, others) ? fmt::format("CAST({} AS DOUBLE)", once) : once);
    });
  }
  if (meets_as_double(value, others)) return form(fmt::format("CAST({} AS DOUBLE)", text));
  TypeId type = known_type(*value);
  if ((type != TypeId::kFloat && type != TypeId::kVoid) || value->as<Literal>() != nullptr ||
      std::none_of(others.begin(), others.end(), inexact)) {
    return form(text);
  }
  if (type == TypeId::kVoid && !is_plain_value(text)) type = type_of(*value).id;
  if (type == TypeId::kFloat) return form(fmt::format("CAST({} AS DOUBLE)", text));
  if (type != TypeId::kVoid) return form(text);
  return computed_once(text, [&](const std::string& once) {
    return fmt::format("CASE typeof({}) WHEN 'FLOAT' THEN {} ELSE {} END", once,
                       form(fmt::format("CAST({} AS DOUBLE)", once)), form(once));
  });
}

// Whether a FLOAT and a DECIMAL that are no constants stand together.
bool DuckdbPrinter::meets_as_double(const ExprPtr& value, const std::vector<ExprPtr>& others) {
  const auto is = [](TypeId id) { return [id](const DataType& type) { return type.id == id; }; };
  if (!options_.describe || value->as<Literal>() != nullptr) return false;
  bool any = false;
  for (const ExprPtr& other : others) any = any || other->as<Literal>() == nullptr;
  if (!any || !scope_has(is(TypeId::kFloat)) || !scope_has(is(TypeId::kDecimal))) return false;
  const TypeId type = type_of(*value).id;
  if (type != TypeId::kFloat && type != TypeId::kDecimal) return false;
  const TypeId wanted = type == TypeId::kFloat ? TypeId::kDecimal : TypeId::kFloat;
  return std::any_of(others.begin(), others.end(), [&](const ExprPtr& other) {
    return other->as<Literal>() == nullptr && type_of(*other).id == wanted;
  });
}

std::string DuckdbPrinter::between(const Between& between) {
  const bool parts = char_length(between.value) > 0 ||
                     (may_hold_parts(*between.value) && type_of(*between.value).is_nested());
  if (parts || compared_type({between.value, between.low}) ||
      compared_type({between.value, between.high})) {
    return with_columns({between.value, between.low, between.high},
                        [&](const std::vector<ExprPtr>& sides) {
                          return fmt::format("({}({} AND {}))", between.negated ? "NOT " : "",
                                             infix({BinaryOp::kGreaterEqual, sides[0], sides[1]}),
                                             infix({BinaryOp::kLessEqual, sides[0], sides[2]}));
                        });
  }
  return comparison(between.value, {between.low, between.high}, [&](const std::string& value) {
    return fmt::format("({} {}BETWEEN {} AND {})", value, between.negated ? "NOT " : "",
                       compared(between.low, between.value), compared(between.high, between.value));
  });
}

std::string DuckdbPrinter::in(const In& in) {
  if (in.query || char_length(in.value) == 0) return padded_in(in);
  std::vector<ExprPtr> all = in.list;
  all.insert(all.begin(), in.value);
  pad(all);
  In same = in;
  same.value = all[0];
  same.list.assign(all.begin() + 1, all.end());
  return padded_in(same);
}

std::string DuckdbPrinter::padded_in(const In& in) {
  const char* negated = in.negated ? "NOT " : "";
  if (in.query) {
    std::optional<DataType> type;
    const std::string found = compared_query(in, &type);
    if (!type) {
      return comparison(in.value, {}, [&](const std::string& value) {
        return fmt::format("({} {}IN ({}))", value, negated, found);
      });
    }
    return fmt::format("({} {}IN ({}))", expr(as_type(in.value, *type)), negated, found);
  }
  std::vector<ExprPtr> all = in.list;
  all.insert(all.begin(), in.value);
  if (const auto type = compared_type(all, "DATATYPE_MISMATCH.DATA_DIFF_TYPES")) {
    std::string items;
    for (const ExprPtr& item : in.list)
      items += (items.empty() ? "" : ", ") + expr(as_type(item, *type));
    const auto among = [&](const std::string& value) {
      return fmt::format("({} {}IN ({}))", value, negated, items);
    };
    const std::string value = expr(as_type(in.value, *type));
    return nondeterministic_calls(*in.value).empty() ? among(value) : computed_once(value, among);
  }
  return comparison(in.value, in.list, [&](const std::string& value) {
    std::string items;
    for (const ExprPtr& item : in.list) {
      items +=
          (items.empty() ? "" : ", ") + compared_struct(item, in.value, compared(item, in.value));
    }
    return fmt::format("({} {}IN ({}))", value, negated, items);
  });
}

std::string DuckdbPrinter::nonzero(const ExprPtr& divisor, const std::string& text,
                                   const std::string& dividend, const char* code) {
  if (const auto* constant = divisor->as<Literal>();
      constant != nullptr && constant->type != TypeId::kVoid) {
    const TypeId type = constant->type;
    const bool number = is_integer(type) || is_floating(type) || type == TypeId::kDecimal;
    if (number && !is_zero(*constant)) return text;
  }
  // A long dividend is not written twice, so that chains of divisions stay short.
  constexpr size_t kLongest = 500;
  return fmt::format(
      "CASE WHEN {0} = 0{2} THEN error('[{1}] division by zero: use try_divide, or nullif on the "
      "divisor') ELSE {0} END",
      text, code, dividend.size() > kLongest ? "" : fmt::format(" AND {} IS NOT NULL", dividend));
}

std::string DuckdbPrinter::divide(const ExprPtr& left, const ExprPtr& right) {
  const TypeId left_type = known_type(*left);
  const TypeId right_type = known_type(*right);
  std::string dividend = number(left, right);
  const std::string right_text = number(right, left);
  const std::string divisor = nonzero(right, right_text, dividend);
  if (is_text(left) || is_text(right)) return fmt::format("({} / {})", dividend, divisor);
  const DataType left_full = type_of(*left);
  const DataType right_full = type_of(*right);
  const auto decimal_like = [](const DataType& type) {
    return type.id == TypeId::kDecimal || is_integer(type.id);
  };
  if (decimal_like(left_full) && decimal_like(right_full) &&
      (left_full.id == TypeId::kDecimal || right_full.id == TypeId::kDecimal)) {
    const DataType type = arithmetic_type(BinaryOp::kDivide, *left, left_full, *right, right_full);
    return decimals(BinaryOp::kDivide, type, false, dividend, divisor);
  }
  if (left_full.id == TypeId::kFloat || right_full.id == TypeId::kFloat)
    return fmt::format("(CAST({} AS DOUBLE) / CAST({} AS DOUBLE))", dividend, divisor);
  if (!is_floating(left_full.id) && !is_floating(right_full.id) &&
      !(is_integer(left_full.id) && is_integer(right_full.id))) {
    // DuckDB divides decimals as DOUBLE; Spark gives a DECIMAL.
    const auto decimal = [&](TypeId type, const std::string& text) {
      return type == TypeId::kDecimal ? std::string("true")
             : type != TypeId::kVoid  ? std::string("false")
                                      : fmt::format("typeof({}) LIKE 'DECIMAL%'", text);
    };
    const auto floating = [&](TypeId type, const std::string& text) {
      return type != TypeId::kVoid ? std::string("false")
                                   : fmt::format("typeof({}) IN ('DOUBLE', 'FLOAT')", text);
    };
    dividend = fmt::format(
        "CASE WHEN ({} OR {}) AND NOT ({} OR {}) THEN error('[UNSUPPORTED_CONSTRUCT] division of "
        "DECIMALs is not supported: cast one side to DOUBLE, and the result back') ELSE {} END",
        decimal(left_type, dividend), decimal(right_type, right_text),
        floating(left_type, dividend), floating(right_type, right_text), dividend);
  }
  return fmt::format("({} / {})", dividend, divisor);
}

std::string DuckdbPrinter::binary(const Expr& node, const Binary& binary) {
  switch (binary.op) {
    case BinaryOp::kDivide:
    case BinaryOp::kIntegerDivide:
    case BinaryOp::kModulo: {
      const auto quotient = [&](const std::vector<ExprPtr>& sides) {
        return binary.op == BinaryOp::kDivide ? divide(sides[0], sides[1])
                                              : remainder({binary.op, sides[0], sides[1]});
      };
      // A constant divisor is not zero: nothing stands in the text twice.
      const auto* constant = binary.right->as<Literal>();
      const TypeId left = type_of(*binary.left).id;
      const bool once = constant != nullptr && constant->type != TypeId::kVoid &&
                        !is_zero(*constant) && left != TypeId::kVoid &&
                        (binary.op != BinaryOp::kIntegerDivide || left != TypeId::kDecimal);
      if (once) return quotient({binary.left, binary.right});
      return with_columns({binary.left, binary.right}, quotient);
    }
    case BinaryOp::kShiftRightUnsigned:
      fail_unsupported(node.place, ">>>", "use >> on values that are not negative");
      return "";
    case BinaryOp::kConcat:
    case BinaryOp::kAnd:
    case BinaryOp::kOr:
      return chain(binary);
    case BinaryOp::kAdd:
    case BinaryOp::kSubtract:
      if (binary.op == BinaryOp::kSubtract && type_of(*binary.left).id == TypeId::kDate &&
          type_of(*binary.right).id == TypeId::kDate) {
        fail_unsupported(node.place, "the difference of two DATEs as an INTERVAL", "use datediff");
        return "";
      }
      if ((binary.left->as<IntervalLiteral>() != nullptr) !=
          (binary.right->as<IntervalLiteral>() != nullptr)) {
        return add_interval(binary);
      }
      break;
    default:
      break;
  }
  return infix(binary);
}

// Of decimals: the engine counts their digits in another way. Where its own result may not hold all
// (`exact` is false), the digits are counted out as text.
std::string DuckdbPrinter::decimals(BinaryOp op, const DataType& result, bool exact,
                                    const std::string& left, const std::string& right) {
  const std::string type = duckdb_type(result);
  if (exact) return fmt::format("CAST(({} {} {}) AS {})", left, operator_text(op), right, type);
  const char* name = op == BinaryOp::kAdd        ? "sl_decimal_sum"
                     : op == BinaryOp::kSubtract ? "sl_decimal_difference"
                     : op == BinaryOp::kMultiply ? "sl_decimal_product"
                     : op == BinaryOp::kModulo   ? "sl_decimal_remainder"
                                                 : "sl_decimal_quotient";
  return fmt::format("CAST({}(CAST({} AS VARCHAR), CAST({} AS VARCHAR), {}) AS {})", name, left,
                     right, result.scale, type);
}

std::string DuckdbPrinter::arithmetic(const Binary& binary) {
  const DataType left_type = operand_type(binary.left, binary.right);
  const DataType right_type = operand_type(binary.right, binary.left);
  std::string left = number(binary.left, binary.right);
  std::string right = number(binary.right, binary.left);
  const bool modulo = binary.op == BinaryOp::kModulo;
  if (modulo) right = nonzero(binary.right, right, left, "REMAINDER_BY_ZERO");
  const char* word = operator_text(binary.op);
  const auto plain = [&] { return fmt::format("({} {} {})", left, word, right); };
  const bool truth = (left_type.id == TypeId::kBoolean && right_type.id != TypeId::kVoid) ||
                     (right_type.id == TypeId::kBoolean && left_type.id != TypeId::kVoid);
  if (truth) {
    const bool same = left_type.id == right_type.id;
    fail(invalid_argument(same ? "DATATYPE_MISMATCH.BINARY_OP_WRONG_TYPE"
                               : "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES",
                          "arithmetic with {} and {}: cast the BOOLEAN to a number",
                          to_sql(left_type), to_sql(right_type)),
         binary.left->place);
    return "";
  }
  const DataType result =
      arithmetic_type(binary.op, *binary.left, left_type, *binary.right, right_type);
  const auto widened = [&](const DataType& type, const std::string& text) {
    return same_type(type, result) ? text
                                   : fmt::format("CAST({} AS {})", text, duckdb_type(result));
  };
  if (is_floating(result.id)) {
    if (left_type.id == TypeId::kFloat) left = widened(left_type, left);
    if (right_type.id == TypeId::kFloat) right = widened(right_type, right);
  } else if (is_integer(result.id)) {
    // The engine gives constants the type of what they meet.
    const bool narrow = result.id != TypeId::kLong && left_type.id != right_type.id;
    if (narrow) left = widened(left_type, left);
    if (narrow) right = widened(right_type, right);
  } else if (result.id == TypeId::kDecimal) {
    const DecimalShape a = decimal_shape(*binary.left, left_type);
    const DecimalShape b = decimal_shape(*binary.right, right_type);
    constexpr int kMost = 38;
    const int scale = std::max(a.scale, b.scale);
    const int whole = std::max(a.precision - a.scale, b.precision - b.scale);
    const bool exact = binary.op == BinaryOp::kMultiply ? a.precision + b.precision < kMost
                       : modulo                         ? whole + scale <= kMost
                                                        : whole + scale < kMost;
    return decimals(binary.op, result, exact, left, right);
  }
  return plain();
}

std::string DuckdbPrinter::infix(const Binary& binary) {
  switch (binary.op) {
    case BinaryOp::kEqual:
    case BinaryOp::kNullSafeEqual:
    case BinaryOp::kNotEqual:
    case BinaryOp::kLess:
    case BinaryOp::kLessEqual:
    case BinaryOp::kGreater:
    case BinaryOp::kGreaterEqual: {
      std::vector<ExprPtr> sides = {binary.left, binary.right};
      pad(sides);
      return padded_infix({binary.op, sides[0], sides[1]});
    }
    default:
      return padded_infix(binary);
  }
}

std::string DuckdbPrinter::padded_infix(const Binary& binary) {
  if (binary.op == BinaryOp::kBitXor) {
    const std::string left = number(binary.left, binary.right);
    return fmt::format("xor({}, {})", left, number(binary.right, binary.left));
  }
  const char* word = operator_text(binary.op);
  const bool compares = binary.op == BinaryOp::kEqual || binary.op == BinaryOp::kNullSafeEqual ||
                        binary.op == BinaryOp::kNotEqual || binary.op == BinaryOp::kLess ||
                        binary.op == BinaryOp::kLessEqual || binary.op == BinaryOp::kGreater ||
                        binary.op == BinaryOp::kGreaterEqual;
  if (binary.op == BinaryOp::kAdd || binary.op == BinaryOp::kSubtract ||
      binary.op == BinaryOp::kMultiply) {
    return arithmetic(binary);
  }
  if (!compares) {
    const std::string left = number(binary.left, binary.right);
    return fmt::format("({} {} {})", left, word, number(binary.right, binary.left));
  }
  if (const auto type = compared_type({binary.left, binary.right})) {
    return fmt::format("({} {} {})", expr(as_type(binary.left, *type)), word,
                       expr(as_type(binary.right, *type)));
  }
  const bool sorts = binary.op == BinaryOp::kLess || binary.op == BinaryOp::kLessEqual ||
                     binary.op == BinaryOp::kGreater || binary.op == BinaryOp::kGreaterEqual;
  if (sorts && may_hold_parts(*binary.left) && may_hold_parts(*binary.right)) {
    const DataType left = type_of(*binary.left);
    const DataType right = type_of(*binary.right);
    const bool nested = left.id == TypeId::kStruct || left.id == TypeId::kArray;
    if (nested && left.id == right.id)
      return fmt::format("({} {} {})", sortable(binary.left), word, sortable(binary.right));
  }
  if (binary.right->as<Literal>() != nullptr && becomes_date(binary.right, binary.left)) {
    return fmt::format("({} {} {})", expr(binary.left), word, text_as_date(binary.right, false));
  }
  if (binary.left->as<Literal>() != nullptr) {
    return comparison(binary.right, {binary.left}, [&](const std::string& right) {
      return fmt::format("({} {} {})", compared(binary.left, binary.right), word, right);
    });
  }
  if (becomes_date(binary.left, binary.right)) {
    return fmt::format("({} {} {})", text_as_date(binary.left, false), word, expr(binary.right));
  }
  return comparison(binary.left, {binary.right}, [&](const std::string& left) {
    return fmt::format(
        "({} {} {})", left, word,
        compared_struct(binary.right, binary.left, compared(binary.right, binary.left)));
  });
}

bool DuckdbPrinter::becomes_date(const ExprPtr& value, const ExprPtr& other) {
  const auto is = [](TypeId id) { return [id](const DataType& type) { return type.id == id; }; };
  if (const auto* constant = value->as<Literal>()) {
    // Nothing need be asked about what is no date or a whole one.
    const std::string& text = constant->text;
    const size_t start = text.find_first_of("0123456789");
    if (constant->type != TypeId::kString || start == std::string::npos || start > 1) return false;
    if (is_date_text(text) && whole_date(text) == text) return false;
    return type_of(*other).id == TypeId::kDate;
  }
  if (!options_.describe || other->as<Literal>() != nullptr) return false;
  if (known_type(*other) != TypeId::kDate && !scope_has(is(TypeId::kDate))) return false;
  return is_text(value) && type_of(*other).id == TypeId::kDate;
}

std::string DuckdbPrinter::compared(const ExprPtr& value, const ExprPtr& other) {
  return becomes_date(value, other) ? text_as_date(value, false) : expr(value);
}

std::string DuckdbPrinter::remainder(const Binary& binary) {
  if (binary.op == BinaryOp::kModulo) return arithmetic(binary);
  const std::string left = number(binary.left, binary.right);
  const std::string divisor = nonzero(binary.right, number(binary.right, binary.left), left);
  const DataType left_type = operand_type(binary.left, binary.right);
  const DataType right_type = operand_type(binary.right, binary.left);
  const DataType rest =
      arithmetic_type(BinaryOp::kModulo, *binary.left, left_type, *binary.right, right_type);
  if (rest.id == TypeId::kDecimal) {  // the engine would round
    return fmt::format(
        "CAST(sl_decimal_quotient(sl_decimal_difference(CAST({0} AS VARCHAR), "
        "sl_decimal_remainder(CAST({0} AS VARCHAR), CAST({1} AS VARCHAR), {2}), {2}), CAST({1} AS "
        "VARCHAR), 0) AS BIGINT)",
        left, divisor, rest.scale);
  }
  return fmt::format("CAST({} // {} AS BIGINT)", left, divisor);
}

namespace {

// a IS NULL AND b IS NULL, which is never null.
bool are_both_null(const Expr& node) {
  const auto* both = node.as<Binary>();
  if (both == nullptr || both->op != BinaryOp::kAnd) return false;
  const auto is_null = [](const ExprPtr& side) {
    const auto* test = side->as<Is>();
    return test != nullptr && test->what == IsWhat::kNull && !test->negated;
  };
  return is_null(both->left) && is_null(both->right);
}

}  // namespace

// a AND b AND c, without recursion on the left side.
std::string DuckdbPrinter::chain(const Binary& binary) {
  const bool filters = std::exchange(is_filter_, false);
  std::vector<ExprPtr> terms = {binary.right};
  ExprPtr left = binary.left;
  while (const auto* next = left->as<Binary>()) {
    if (next->op != binary.op) break;
    terms.push_back(next->right);
    left = next->left;
  }
  terms.push_back(left);
  // Of a = b OR a IS NULL AND b IS NULL the engine makes a test that is never null.
  if (binary.op == BinaryOp::kOr && !filters) {
    std::string nulls;
    std::string others;
    for (auto term = terms.rbegin(); term != terms.rend(); ++term) {
      std::string& part = are_both_null(**term) ? nulls : others;
      part += (part.empty() ? "" : " OR ") + condition(*term);
    }
    if (nulls.empty()) return "(" + others + ")";
    return fmt::format("CASE WHEN {} THEN true ELSE {} END", nulls,
                       others.empty() ? "false" : others);
  }
  std::string result;
  for (auto term = terms.rbegin(); term != terms.rend(); ++term) {
    result += result.empty() ? "(" : fmt::format(" {} ", operator_text(binary.op));
    is_filter_ = filters && binary.op == BinaryOp::kAnd;
    result += binary.op == BinaryOp::kConcat ? concat_part(**term) : condition(*term);
  }
  is_filter_ = false;
  return result + ")";
}

// Arrays and binary are concatenated as they are; a time would print its zone, a floating-point
// number DuckDB's digits.
std::string DuckdbPrinter::concat_part(const Expr& operand) {
  const TypeId type = type_of(operand).id;
  if (type == TypeId::kTimestamp || is_number(type)) return cast_to_string(operand);
  const std::string text = expr(operand);
  if (type != TypeId::kVoid || operand.as<Literal>() != nullptr) return text;
  return computed_once(text, [](const std::string& once) {
    return fmt::format(
        "CASE WHEN typeof({0}) IN ('TIMESTAMP WITH TIME ZONE', 'DOUBLE', 'FLOAT') THEN "
        "error('[UNSUPPORTED_CONSTRUCT] || of a ' || typeof({0}) || ': cast it to STRING') ELSE "
        "{0} END",
        once);
  });
}

// DATE + INTERVAL is a DATE in Spark, a TIMESTAMP in DuckDB.
std::string DuckdbPrinter::add_interval(const Binary& binary) {
  const bool right_interval = binary.right->as<IntervalLiteral>() != nullptr;
  const ExprPtr& time = right_interval ? binary.left : binary.right;
  const ExprPtr& span = right_interval ? binary.right : binary.left;
  const TypeId type = is_text(time) ? TypeId::kString : known_type(*time);
  bool days = true;
  for (const auto& [value, unit] : span->as<IntervalLiteral>()->parts) {
    days = days && (unit == "YEAR" || unit == "QUARTER" || unit == "MONTH" || unit == "WEEK" ||
                    unit == "DAY");
  }
  const auto sum = [&](const std::string& text) {
    return fmt::format("({} {} {})", text, operator_text(binary.op), expr(span));
  };
  if (type == TypeId::kDate)
    return fmt::format("CAST({} AS {})", sum(as_time(time)), days ? "DATE" : "TIMESTAMPTZ");
  if (type != TypeId::kVoid) return sum(as_time(time));
  return computed_once(as_time(time), [&](const std::string& once) {
    if (days) return fmt::format("cast_to_type({}, {})", sum(once), once);
    return sum(fmt::format(
        "CASE WHEN typeof({0}) = 'DATE' THEN error('[UNSUPPORTED_CONSTRUCT] a DATE column plus "
        "hours, minutes or seconds: write CAST(column AS TIMESTAMP)') ELSE {0} END",
        once));
  });
}

// Arrays count from 0 in Spark and from 1 in DuckDB; maps take the key as it is.
std::string DuckdbPrinter::index(const IndexAccess& access) {
  const std::string value = expr(access.value);
  const std::string position = expr(access.index);
  const auto* constant = access.index->as<Literal>();
  if (constant != nullptr && !is_integer(constant->type))
    return fmt::format("({})[{}]", value, position);
  const ElementRule outside{
      "{1} < 0 OR {1} >= {0}",
      "[INVALID_ARRAY_INDEX] there is no element ', {1}, ' in an array of ', {0}, ', which counts "
      "from 0: use get for null instead"};
  return computed_once(std::vector{value, position}, [&](const std::vector<std::string>& values) {
    return element(type_of(*access.value).id, values[0], values[1],
                   "CASE WHEN {0} < 0 THEN NULL ELSE {0} + 1 END", {outside});
  });
}

std::string DuckdbPrinter::element(TypeId container, const std::string& value,
                                   const std::string& position, const char* shifted,
                                   const std::vector<ElementRule>& rules) {
  if (container == TypeId::kMap) return fmt::format("({})[{}]", value, position);
  const bool known = container == TypeId::kArray;
  // Where it is not known whether this is a map, everything must bind for one too.
  const std::string number = known ? position : fmt::format("TRY_CAST({} AS BIGINT)", position);
  const std::string length =
      known ? fmt::format("len({})", value) : fmt::format("json_array_length(to_json({}))", value);
  const std::string is_array = fmt::format("typeof({}) LIKE '%]'", value);
  std::string errors;
  for (const ElementRule& rule : rules) {
    errors += fmt::format(" WHEN {}{} IS NOT NULL AND ({}) THEN error(concat('{}'))",
                          known ? "" : is_array + " AND ", value,
                          fmt::format(fmt::runtime(rule.broken), length, number),
                          fmt::format(fmt::runtime(rule.message), length, number));
  }
  std::string index = fmt::format(fmt::runtime(shifted), number);
  if (!known) {
    index = fmt::format("CASE WHEN {} THEN cast_to_type({}, {}) ELSE {} END", is_array, index,
                        position, position);
  }
  // Only where there is nothing need be asked why.
  return fmt::format("coalesce(({})[{}], CASE{} END)", value, index, errors);
}

std::string DuckdbPrinter::json_value(const std::string& value, const std::string& path) {
  return computed_once(value, [&](const std::string& once) {
    return fmt::format("CASE WHEN json_valid({0}) THEN json_extract_string({0}, {1}) END", once,
                       duckdb_string(path));
  });
}

std::string DuckdbPrinter::like(const Like& like) {
  const auto one = [&](const std::string& value, const ExprPtr& pattern) {
    if (like.kind == LikeKind::kRLike)
      return fmt::format("regexp_matches({}, {})", value, as_string(pattern));
    const char* word = like.kind == LikeKind::kLike ? "LIKE" : "ILIKE";
    const auto* constant = pattern->as<Literal>();
    const std::string escape = like.escape.value_or("\\");
    const bool plain = constant != nullptr && constant->text.find(escape) == std::string::npos;
    return plain ? fmt::format("({} {} {})", value, word, as_string(pattern))
                 : fmt::format("({} {} {} ESCAPE {})", value, word, as_string(pattern),
                               duckdb_string(escape));
  };
  const auto all = [&](const std::string& value) {
    std::string parts;
    for (const ExprPtr& pattern : like.patterns) {
      if (!parts.empty()) parts += like.quantifier == LikeQuantifier::kAny ? " OR " : " AND ";
      parts += one(value, pattern);
    }
    return parts;
  };
  const std::string text = as_string(like.value);
  std::string result = like.patterns.size() > 1 ? computed_once(text, all) : all(text);
  if (like.patterns.size() > 1) result = "(" + result + ")";
  return like.negated ? "(NOT " + result + ")" : result;
}

std::string DuckdbPrinter::case_when(const Case& choice) {
  std::vector<ExprPtr> values;
  for (const auto& [when, value] : choice.branches) values.push_back(value);
  values.push_back(choice.otherwise);
  check_structs(values);
  merge(values);
  bool mixed = false;  // the operand is of another type than what it is compared with
  for (const auto& [when, value] : choice.branches)
    mixed = mixed || (choice.operand && compared_type({choice.operand, when}).has_value());
  mixed = mixed || (choice.operand && char_length(choice.operand) > 0);
  std::string result = "CASE";
  if (choice.operand && !mixed) result += " " + expr(choice.operand);
  // What is compared several times gives the number of the branch first: the values of branches may
  // hold what no lambda can.
  const bool counts = mixed && choice.branches.size() > 1 && !is_plain_value(expr(choice.operand));
  if (counts) {
    std::vector<ExprPtr> compared = {choice.operand};
    for (const auto& [when, value] : choice.branches) compared.push_back(when);
    result += " " + with_columns(compared, [&](const std::vector<ExprPtr>& sides) {
                std::string branch = "CASE";
                for (size_t i = 1; i < sides.size(); ++i)
                  branch += fmt::format(" WHEN {} THEN {}",
                                        infix({BinaryOp::kEqual, sides[0], sides[i]}), i);
                return branch + " END";
              });
  }
  for (size_t i = 0; i < choice.branches.size(); ++i) {
    const ExprPtr& when = choice.branches[i].first;
    const std::string test = counts  ? std::to_string(i + 1)
                             : mixed ? infix({BinaryOp::kEqual, choice.operand, when})
                                     : (choice.operand ? expr(when) : condition(when));
    result += fmt::format(" WHEN {} THEN {}", test, expr(values[i]));
  }
  if (choice.otherwise) result += " ELSE " + expr(values.back());
  return result + " END";
}

// --- casts -------------------------------------------------------------------------------------

std::string DuckdbPrinter::cast_to_string(const Expr& value) {
  if (const auto* constant = value.as<Literal>();
      constant != nullptr && constant->type == TypeId::kVoid) {
    return "CAST(NULL AS VARCHAR)";
  }
  const std::string text = expr(value);
  DataType type = type_of(value);
  // Asked for: parts that are not known and parts that are null are both VOID else.
  if (type.is_nested()) type = described_value(text).value_or(DataType());
  if (!duckdb_text_of("x", type).empty()) {
    if (!type.is_nested()) return duckdb_text_of(text, type);
    return computed_once(text, [&](const std::string& once) { return duckdb_text_of(once, type); });
  }
  return computed_once(text, [](const std::string& once) {
    const std::string plain = fmt::format("CAST({} AS VARCHAR)", once);
    return fmt::format(
        "CASE WHEN typeof({0}) = 'TIMESTAMP WITH TIME ZONE' THEN left({1}, -3) "
        "WHEN typeof({0}) = 'DOUBLE' THEN sl_double_text(TRY_CAST({1} AS DOUBLE)) "
        "WHEN typeof({0}) = 'FLOAT' THEN sl_float_text(TRY_CAST({1} AS FLOAT)) "
        "WHEN typeof({0}) LIKE 'DECIMAL%' THEN {2} "
        "WHEN typeof({0}) IN ('BLOB', 'INTERVAL') OR typeof({0}) LIKE '%]' OR typeof({0}) LIKE "
        "'STRUCT(%' OR "
        "typeof({0}) LIKE 'MAP(%' THEN error('[UNSUPPORTED_CONSTRUCT] CAST AS STRING of a ' || "
        "typeof({0}) || ': use "
        "to_json, array_join or decode') ELSE {1} END",
        once, plain, decimal_text(plain));
  });
}

std::string DuckdbPrinter::cast_to_integer(const ExprPtr& value, const DataType& type,
                                           bool try_cast) {
  const TypeId known = type_of(*value).id;
  const auto form = [&](const std::string& text) {
    const std::string target = duckdb_type(type);
    const char* word = try_cast ? "TRY_CAST" : "CAST";
    const std::string plain = fmt::format("{}({} AS {})", word, text, target);
    // Spark cuts fractions, DuckDB rounds.
    const auto of_floating = [&] {
      return fmt::format("{}(trunc(CAST({} AS DOUBLE)) AS {})", word, text, target);
    };
    const auto of_decimal = [&] {
      const std::string digits = decimal_text(fmt::format("CAST({} AS VARCHAR)", text));
      return fmt::format("{}(split_part({}, '.', 1) AS {})", word, digits, target);
    };
    const auto of_string = [&](const std::string& string) {
      return try_cast ? duckdb_try_cast_of_text(string, type) : duckdb_cast_of_text(string, type);
    };
    if (known == TypeId::kString) return of_string(text);
    if (known == TypeId::kDecimal) return of_decimal();
    if (is_floating(known)) return of_floating();
    if (known != TypeId::kVoid || value->as<Literal>() != nullptr) return plain;
    const std::string string = fmt::format("CAST({} AS VARCHAR)", text);
    const std::string bad =
        try_cast ? "NULL"
                 : fmt::format(
                       "error('[CAST_INVALID_INPUT] ''' || {} || ''' is not a whole number: use "
                       "try_cast for null instead')",
                       string);
    return fmt::format(
        "CASE WHEN typeof({0}) IN ('DOUBLE', 'FLOAT') THEN {1} WHEN typeof({0}) LIKE 'DECIMAL%' "
        "THEN "
        "{2} "
        "WHEN typeof({0}) = 'VARCHAR' AND regexp_matches(trim({3}), '[^0-9+-]') THEN {4} ELSE {5} "
        "END",
        text, fmt::format("{}(trunc(TRY_CAST({} AS DOUBLE)) AS {})", word, text, target),
        of_decimal(), string, bad, plain);
  };
  // Where the type is not known the value stands in the text several times.
  const bool repeats = known == TypeId::kVoid && value->as<Literal>() == nullptr;
  return repeats ? computed_once(expr(value), form) : form(expr(value));
}

std::string DuckdbPrinter::cast(const Expr& node, const ExprPtr& value, const DataType& type,
                                bool try_cast) {
  const TypeId known = known_type(*value);
  const auto* constant = value->as<Literal>();
  const bool null = constant != nullptr && constant->type == TypeId::kVoid;
  const std::string target = duckdb_type(type);
  if (target.empty()) {
    if (type.id == TypeId::kVoid && null) return "NULL";
    fail_unsupported(node.place, "CAST to " + to_sql(type), "");
    return "";
  }
  if (null) return fmt::format("CAST(NULL AS {})", target);
  const char* word = try_cast ? "TRY_CAST" : "CAST";
  switch (type.id) {
    case TypeId::kString:
      return cast_to_string(*value);
    case TypeId::kByte:
    case TypeId::kShort:
    case TypeId::kInteger:
    case TypeId::kLong:
      return cast_to_integer(value, type, try_cast);
    case TypeId::kBinary:
      return as_bytes(value);
    case TypeId::kBoolean:
    case TypeId::kFloat:
    case TypeId::kDouble:
    case TypeId::kDecimal:
      if (!is_text(value)) break;
      return try_cast ? duckdb_try_cast_of_text(expr(value), type)
                      : duckdb_cast_of_text(expr(value), type);
    case TypeId::kDate:
      if (is_text(value)) return text_as_date(value, try_cast);
      return fmt::format("{}({} AS DATE)", word, expr(value));
    case TypeId::kTimestamp:
    case TypeId::kTimestampNtz: {
      // A zone in the text counts for both kinds of timestamp: read the instant first.
      if (is_text(value)) {
        const std::string instant = duckdb_instant_of_text(date_text(value), try_cast);
        return type.id == TypeId::kTimestampNtz ? fmt::format("CAST({} AS TIMESTAMP)", instant)
                                                : instant;
      }
      const std::string text = expr(value);
      if (is_integer(known) && type.id == TypeId::kTimestamp) {
        return fmt::format("make_timestamptz(CAST({} AS BIGINT) * 1000000)", text);
      }
      return fmt::format("{}({} AS {})", word, text, target);
    }
    case TypeId::kStruct:
      fail_unsupported(node.place, "CAST to a STRUCT", "build it with named_struct");
      return "";
    case TypeId::kArray:
    case TypeId::kMap: {
      const bool structs = target.find("STRUCT(") != std::string::npos;
      if (structs) {
        fail_unsupported(node.place, "CAST to " + to_sql(type), "build it with named_struct");
        return "";
      }
      break;
    }
    default:
      break;
  }
  const std::string text = expr(value);
  const std::string plain = fmt::format("{}({} AS {})", word, text, target);
  DataType from = type_of(*value);
  if (from.is_nested()) from = described_value(text).value_or(from);
  if (std::string exact = duckdb_exact_cast(text, from, type, try_cast); !exact.empty())
    return exact;
  if (type.id != TypeId::kDecimal || from.id != TypeId::kVoid) return plain;
  return computed_once(text, [&](const std::string& once) {
    const std::string of_floating =
        duckdb_exact_cast(fmt::format("TRY_CAST({} AS DOUBLE)", once),
                          DataType::primitive(TypeId::kDouble), type, try_cast);
    return fmt::format(
        "CASE WHEN typeof({0}) IN ('DOUBLE', 'FLOAT') THEN {1} ELSE {2}({0} AS {3}) END", once,
        of_floating, word, target);
  });
}

std::string DuckdbPrinter::as_string(const ExprPtr& value) {
  const TypeId type = type_of(*value).id;
  // What is not known is left to DuckDB, which refuses what is no string.
  if (type == TypeId::kVoid || type == TypeId::kString) return expr(value);
  if (type == TypeId::kArray || type == TypeId::kMap || type == TypeId::kStruct) {
    fail(invalid_argument("DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
                          "{} stands where a STRING is asked for: cast it to STRING",
                          to_sql(type_of(*value))),
         value->place);
    return "";
  }
  return cast_to_string(*value);
}

std::string DuckdbPrinter::date_text(const ExprPtr& value) {
  if (const auto* constant = value->as<Literal>()) return duckdb_string(whole_date(constant->text));
  return whole_date_of(expr(value));
}

std::string DuckdbPrinter::as_time(const ExprPtr& value) {
  return is_text(value) ? duckdb_instant_of_text(date_text(value), false) : expr(value);
}

std::string DuckdbPrinter::as_date(const ExprPtr& value) {
  if (known_type(*value) == TypeId::kDate) return expr(value);
  return is_text(value) ? text_as_date(value, false) : fmt::format("CAST({} AS DATE)", expr(value));
}

std::string DuckdbPrinter::text_as_date(const ExprPtr& value, bool try_cast) {
  const DataType date = DataType::primitive(TypeId::kDate);
  const auto* constant = value->as<Literal>();
  if (constant == nullptr || !is_date_text(constant->text)) {
    return try_cast ? duckdb_try_cast_of_text(expr(value), date)
                    : duckdb_cast_of_text(expr(value), date);
  }
  return fmt::format("{}({} AS DATE)", try_cast ? "TRY_CAST" : "CAST",
                     duckdb_string(whole_date(constant->text)));
}

std::string DuckdbPrinter::as_bytes(const ExprPtr& value) {
  const std::string text = expr(value);
  const TypeId known = type_of(*value).id;
  if (known == TypeId::kString) return fmt::format("encode({})", text);
  if (known == TypeId::kBinary) return text;
  return computed_once(text, [](const std::string& once) {
    return fmt::format(
        "CASE WHEN typeof({0}) = 'VARCHAR' THEN encode(CAST({0} AS VARCHAR)) "
        "WHEN typeof({0}) = 'BLOB' THEN CAST({0} AS BLOB) WHEN typeof({0}) <> '\"NULL\"' "
        "THEN error('[UNSUPPORTED_CONSTRUCT] bytes of a ' || typeof({0}) || "
        "': cast it to STRING first') END",
        once);
  });
}

// --- lambdas, intervals, windows ---------------------------------------------------------------

std::string DuckdbPrinter::lambda(const Lambda& lambda, bool zero_based_index, bool is_condition) {
  const size_t scope = params_.size();
  std::string names;
  for (size_t i = 0; i < lambda.params.size(); ++i) {
    const std::string& param = lambda.params[i];
    // A name of no column, which the engine would take instead.
    std::string text = fmt::format("sl_param_{}", params_.size());
    names += (names.empty() ? "" : ", ") + text;
    // Spark's second parameter of transform and filter counts from 0.
    if (zero_based_index && i == 1) text = fmt::format("CAST({} - 1 AS INTEGER)", text);
    params_.emplace_back(param, std::move(text));
  }
  std::string result = fmt::format("lambda {}: {}", names,
                                   is_condition ? condition(lambda.body) : expr(lambda.body));
  params_.resize(scope);
  return result;
}

std::string DuckdbPrinter::interval(const IntervalLiteral& interval) {
  std::string result;
  for (const auto& [value, unit] : interval.parts) {
    if (!result.empty()) result += " + ";
    const auto* constant = value->as<Literal>();
    std::string number = expr(value);
    if (constant == nullptr) number = "(" + number + ")";
    if (constant != nullptr && constant->type != TypeId::kString)
      number = duckdb_string(constant->text);
    result += fmt::format("INTERVAL {} {}", number, unit);
  }
  return interval.parts.size() > 1 ? "(" + result + ")" : result;
}

// In an expression of ORDER BY a name of the SELECT list hides columns of FROM, which the engine
// would take.
std::string DuckdbPrinter::ordered_column(const ColumnRef& column) {
  if (ordered_ == nullptr || !computes_order_ || ordered_->distinct) return "";
  const SelectItem* item = named_item(column);
  if (item == nullptr || scopes_.back().from.empty()) return "";
  const auto& columns = columns_of(scopes_.back());
  const auto is_hidden = [&](const Field& field) { return same_name(field.name, column.parts[0]); };
  if (!columns || std::none_of(columns->begin(), columns->end(), is_hidden)) return "";
  const auto* ordered = std::exchange(ordered_, nullptr);
  scopes_.back().sees_names = false;
  std::string text = "(" + expr(item->expr) + ")";
  ordered_ = ordered;
  scopes_.back().sees_names = true;
  return text;
}

std::string DuckdbPrinter::order(const std::vector<OrderItem>& items) {
  std::string result;
  for (const OrderItem& item : items) {
    // DuckDB sorts nulls inside a struct last whatever is asked: sort by its fields.
    if (const auto* call = item.expr->as<Call>(); call != nullptr && call->name.text == "struct") {
      const ExprPtr named = without_stars(*item.expr, *call);
      if (!named) return "";
      std::vector<OrderItem> fields;
      for (const ExprPtr& field : named->as<Call>()->args) {
        fields.push_back(OrderItem{field, item.descending, item.nulls_first});
      }
      result += (result.empty() ? "" : ", ") + order(fields);
      continue;
    }
    const bool nulls_first = item.nulls_first.value_or(!item.descending);
    computes_order_ = item.expr->as<ColumnRef>() == nullptr;
    result += fmt::format("{}{} {} NULLS {}", result.empty() ? "" : ", ", sortable(item.expr),
                          item.descending ? "DESC" : "ASC", nulls_first ? "FIRST" : "LAST");
  }
  return result;
}

std::string DuckdbPrinter::bound(const FrameBound& bound) {
  switch (bound.kind) {
    case FrameBoundKind::kUnboundedPreceding:
      return "UNBOUNDED PRECEDING";
    case FrameBoundKind::kUnboundedFollowing:
      return "UNBOUNDED FOLLOWING";
    case FrameBoundKind::kCurrentRow:
      return "CURRENT ROW";
    case FrameBoundKind::kPreceding:
      return expr(bound.offset) + " PRECEDING";
    case FrameBoundKind::kFollowing:
      return expr(bound.offset) + " FOLLOWING";
  }
  return "";
}

std::string DuckdbPrinter::window(const WindowSpec& spec) {
  std::string result;
  const auto add = [&](const std::string& part) { result += (result.empty() ? "" : " ") + part; };
  if (spec.base) add(duckdb_name(spec.base->text));
  if (!spec.partition_by.empty()) {
    // Of one that is named twice the engine makes the partitions of another window.
    std::vector<std::string> keys;
    for (const ExprPtr& key : spec.partition_by) {
      std::string text = expr(key);
      if (std::find(keys.begin(), keys.end(), text) == keys.end()) keys.push_back(std::move(text));
    }
    add(fmt::format("PARTITION BY {}", fmt::join(keys, ", ")));
  }
  // Without both the engine streams, which gives rows twice and other frames' values
  // (docs/engine-faults.md).
  if (!spec.base && spec.partition_by.empty() && spec.order_by.empty()) add("PARTITION BY 1");
  if (!spec.order_by.empty()) add("ORDER BY " + order(spec.order_by));
  if (spec.frame) {
    add(fmt::format("{} BETWEEN {} AND {}", spec.frame->unit == FrameUnit::kRows ? "ROWS" : "RANGE",
                    bound(spec.frame->start), bound(spec.frame->end)));
  }
  return "(" + result + ")";
}

}  // namespace strandline::sql
