// Spark text of expressions and queries, normalised: parsing it gives the same tree again.
#include <fmt/format.h>

#include "sql/duckdb_printer.h"
#include "sql/names.h"

namespace strandline::sql {

namespace {

// Binding strength, weakest first.
enum Level {
  kOrLevel = 1,
  kAndLevel,
  kNotLevel,
  kPredicateLevel,
  kComparisonLevel,
  kBitOrLevel,
  kBitXorLevel,
  kBitAndLevel,
  kShiftLevel,
  kAddLevel,
  kMultiplyLevel,
  kUnaryLevel,
  kPostfixLevel
};

struct Operator {
  const char* text;
  Level level;
};

Operator operator_of(BinaryOp op) {
  switch (op) {
    case BinaryOp::kOr:
      return {"OR", kOrLevel};
    case BinaryOp::kAnd:
      return {"AND", kAndLevel};
    case BinaryOp::kEqual:
      return {"=", kComparisonLevel};
    case BinaryOp::kNullSafeEqual:
      return {"<=>", kComparisonLevel};
    case BinaryOp::kNotEqual:
      return {"<>", kComparisonLevel};
    case BinaryOp::kLess:
      return {"<", kComparisonLevel};
    case BinaryOp::kLessEqual:
      return {"<=", kComparisonLevel};
    case BinaryOp::kGreater:
      return {">", kComparisonLevel};
    case BinaryOp::kGreaterEqual:
      return {">=", kComparisonLevel};
    case BinaryOp::kBitOr:
      return {"|", kBitOrLevel};
    case BinaryOp::kBitXor:
      return {"^", kBitXorLevel};
    case BinaryOp::kBitAnd:
      return {"&", kBitAndLevel};
    case BinaryOp::kShiftLeft:
      return {"<<", kShiftLevel};
    case BinaryOp::kShiftRight:
      return {">>", kShiftLevel};
    case BinaryOp::kShiftRightUnsigned:
      return {">>>", kShiftLevel};
    case BinaryOp::kAdd:
      return {"+", kAddLevel};
    case BinaryOp::kSubtract:
      return {"-", kAddLevel};
    case BinaryOp::kConcat:
      return {"||", kAddLevel};
    case BinaryOp::kMultiply:
      return {"*", kMultiplyLevel};
    case BinaryOp::kDivide:
      return {"/", kMultiplyLevel};
    case BinaryOp::kIntegerDivide:
      return {"DIV", kMultiplyLevel};
    case BinaryOp::kModulo:
      return {"%", kMultiplyLevel};
  }
  return {"?", kOrLevel};
}

class SparkPrinter {
 public:
  std::string expr(const Expr& expr, int level = 0) const {
    const auto [text, own] = print(expr);
    return own < level ? "(" + text + ")" : text;
  }

  std::string query(const Query& query) const {
    std::string result;
    if (!query.with.empty()) {
      result += "WITH ";
      for (size_t i = 0; i < query.with.size(); ++i) {
        const Cte& cte = query.with[i];
        result += fmt::format("{}{}{} AS ({})", i == 0 ? "" : ", ", spark_name(cte.name.text),
                              columns_in_parentheses(cte.columns), this->query(*cte.query));
      }
      result += " ";
    }
    if (const auto* select = query.as<Select>()) {
      result += this->select(*select);
    } else if (const auto* operation = query.as<SetOperation>()) {
      const char* word = operation->kind == SetKind::kUnion       ? "UNION"
                         : operation->kind == SetKind::kIntersect ? "INTERSECT"
                                                                  : "EXCEPT";
      result += fmt::format("({}) {}{}{} ({})", this->query(*operation->left), word,
                            operation->all ? " ALL" : "", operation->by_name ? " BY NAME" : "",
                            this->query(*operation->right));
    } else if (const auto* values = query.as<ValuesRows>()) {
      result += rows(*values);
    } else if (const auto* derived = query.as<Derived>()) {
      result += "(" + this->query(*derived->query) + ")";
    }
    if (query.order_by_all) result += " ORDER BY ALL";
    if (!query.order_by.empty()) result += " ORDER BY " + order(query.order_by);
    if (query.limit) result += " LIMIT " + expr(*query.limit);
    if (query.offset) result += " OFFSET " + expr(*query.offset);
    return result;
  }

 private:
  using Printed = std::pair<std::string, int>;

  std::string list(const std::vector<ExprPtr>& items) const {
    std::string result;
    for (const ExprPtr& item : items) {
      if (!result.empty()) result += ", ";
      result += expr(*item);
    }
    return result;
  }

  static std::string names(const std::vector<Name>& items) {
    std::string result;
    for (const Name& item : items) {
      if (!result.empty()) result += ", ";
      result += spark_name(item.text);
    }
    return result;
  }

  static std::string columns_in_parentheses(const std::vector<Name>& columns) {
    return columns.empty() ? "" : "(" + names(columns) + ")";
  }

  std::string order(const std::vector<OrderItem>& items) const {
    std::string result;
    for (const OrderItem& item : items) {
      const bool nulls_first = item.nulls_first.value_or(!item.descending);
      result += fmt::format("{}{} {} NULLS {}", result.empty() ? "" : ", ", expr(*item.expr),
                            item.descending ? "DESC" : "ASC", nulls_first ? "FIRST" : "LAST");
    }
    return result;
  }

  std::string bound(const FrameBound& bound) const {
    switch (bound.kind) {
      case FrameBoundKind::kUnboundedPreceding:
        return "UNBOUNDED PRECEDING";
      case FrameBoundKind::kUnboundedFollowing:
        return "UNBOUNDED FOLLOWING";
      case FrameBoundKind::kCurrentRow:
        return "CURRENT ROW";
      case FrameBoundKind::kPreceding:
        return expr(*bound.offset, kBitOrLevel) + " PRECEDING";
      case FrameBoundKind::kFollowing:
        return expr(*bound.offset, kBitOrLevel) + " FOLLOWING";
    }
    return "";
  }

  std::string window(const WindowSpec& spec) const {
    std::string result;
    const auto add = [&](const std::string& part) { result += (result.empty() ? "" : " ") + part; };
    if (spec.base) add(spark_name(spec.base->text));
    if (!spec.partition_by.empty()) add("PARTITION BY " + list(spec.partition_by));
    if (!spec.order_by.empty()) add("ORDER BY " + order(spec.order_by));
    if (spec.frame) {
      add(fmt::format("{} BETWEEN {} AND {}",
                      spec.frame->unit == FrameUnit::kRows ? "ROWS" : "RANGE",
                      bound(spec.frame->start), bound(spec.frame->end)));
    }
    return "(" + result + ")";
  }

  std::string rows(const ValuesRows& values) const {
    std::string result = "VALUES ";
    for (size_t i = 0; i < values.rows.size(); ++i)
      result += (i == 0 ? "(" : ", (") + list(values.rows[i]) + ")";
    return result;
  }

  static Printed literal(const Literal& literal) {
    switch (literal.type) {
      case TypeId::kVoid:
        return {"NULL", kPostfixLevel};
      case TypeId::kString:
        return {spark_string(literal.text), kPostfixLevel};
      case TypeId::kBinary:
        return {"X'" + literal.text + "'", kPostfixLevel};
      case TypeId::kDate:
        return {"DATE " + spark_string(literal.text), kPostfixLevel};
      case TypeId::kTimestamp:
        return {"TIMESTAMP " + spark_string(literal.text), kPostfixLevel};
      case TypeId::kTimestampNtz:
        return {"TIMESTAMP_NTZ " + spark_string(literal.text), kPostfixLevel};
      case TypeId::kByte:
        return {literal.text + "Y", kPostfixLevel};
      case TypeId::kShort:
        return {literal.text + "S", kPostfixLevel};
      case TypeId::kLong:
        return {literal.text + "L", kPostfixLevel};
      case TypeId::kFloat:
        return {literal.text + "F", kPostfixLevel};
      case TypeId::kDouble:
        return {literal.text + "D", kPostfixLevel};
      case TypeId::kDecimal:
        return {literal.text + "BD", kPostfixLevel};
      default:
        return {literal.text, kPostfixLevel};
    }
  }

  std::string call(const Call& call) const {
    std::string args = call.distinct ? "DISTINCT " : "";
    for (size_t i = 0; i < call.args.size(); ++i) {
      if (i > 0) args += ", ";
      args += expr(*call.args[i]);
      if (i < call.arg_names.size() && !call.arg_names[i].empty())
        args += " AS " + spark_name(call.arg_names[i]);
    }
    for (const auto& [key, value] : call.named_args) {
      args +=
          fmt::format("{}{} => {}", args.empty() ? "" : ", ", spark_name(key.text), expr(*value));
    }
    std::string result = fmt::format("{}({})", call.name.text, args);
    if (!call.within_group.empty())
      result += fmt::format(" WITHIN GROUP (ORDER BY {})", order(call.within_group));
    if (call.filter) result += fmt::format(" FILTER (WHERE {})", expr(*call.filter));
    if (call.ignore_nulls) result += *call.ignore_nulls ? " IGNORE NULLS" : " RESPECT NULLS";
    if (call.over) result += " OVER " + window(*call.over);
    return result;
  }

  // Only passes on, so that its frame stays small: it stands in every level of a deep tree.
  Printed print(const Expr& node) const {
    if (const auto* constant = node.as<Literal>()) return literal(*constant);
    if (const auto* operation = node.as<Binary>()) return binary(*operation);
    if (const auto* operation = node.as<Unary>()) return unary(*operation);
    if (const auto* test = node.as<Is>()) return {is(*test), kPredicateLevel};
    if (const auto* range = node.as<Between>()) return {between(*range), kPredicateLevel};
    if (const auto* pattern = node.as<Like>()) return {like(*pattern), kPredicateLevel};
    if (const auto* test = node.as<In>()) return {in(*test), kPredicateLevel};
    if (const auto* lambda = node.as<Lambda>()) return {this->lambda(*lambda), kOrLevel};
    return {postfix(node), kPostfixLevel};
  }

  // What binds strongest.
  std::string postfix(const Expr& node) const {
    if (const auto* column = node.as<ColumnRef>()) return spark_names(column->parts);
    if (const auto* all = node.as<Star>()) return star(*all);
    if (const auto* field = node.as<FieldAccess>()) {
      // a.b would be read as one column: the parentheses keep the tree as it is
      return "(" + expr(*field->value) + ")." + spark_name(field->name.text);
    }
    if (const auto* index = node.as<IndexAccess>()) {
      return expr(*index->value, kPostfixLevel) + "[" + expr(*index->index) + "]";
    }
    if (const auto* json = node.as<JsonAccess>()) {
      return expr(*json->value, kPostfixLevel) + ":" + json_path(json->path);
    }
    if (const auto* exists = node.as<Exists>()) return "EXISTS (" + query(*exists->query) + ")";
    if (const auto* subquery = node.as<ScalarSubquery>())
      return "(" + query(*subquery->query) + ")";
    if (const auto* choice = node.as<Case>()) return case_when(*choice);
    if (const auto* conversion = node.as<Cast>()) return cast(*conversion);
    if (const auto* function = node.as<Call>()) return call(*function);
    if (const auto* duration = node.as<IntervalLiteral>()) return interval(*duration);
    return "";
  }

  Printed binary(const Binary& binary) const {
    const Operator op = operator_of(binary.op);
    return {fmt::format("{} {} {}", expr(*binary.left, op.level), op.text,
                        expr(*binary.right, op.level + 1)),
            op.level};
  }

  Printed unary(const Unary& unary) const {
    if (unary.op == UnaryOp::kNot) return {"NOT " + expr(*unary.operand, kNotLevel), kNotLevel};
    std::string text = unary.op == UnaryOp::kMinus ? "- " : unary.op == UnaryOp::kPlus ? "+ " : "~";
    // "- 1" would be read as a constant
    const bool number = unary.operand->as<Literal>() != nullptr;
    text += number ? "(" + expr(*unary.operand) + ")" : expr(*unary.operand, kUnaryLevel);
    return {std::move(text), kUnaryLevel};
  }

  std::string is(const Is& is) const {
    const char* what = is.what == IsWhat::kNull      ? "NULL"
                       : is.what == IsWhat::kTrue    ? "TRUE"
                       : is.what == IsWhat::kFalse   ? "FALSE"
                       : is.what == IsWhat::kUnknown ? "UNKNOWN"
                                                     : "DISTINCT FROM ";
    return fmt::format("{} IS {}{}{}", expr(*is.value, kPredicateLevel), is.negated ? "NOT " : "",
                       what, is.other ? expr(*is.other, kBitOrLevel) : "");
  }

  std::string between(const Between& between) const {
    return fmt::format("{} {}BETWEEN {} AND {}", expr(*between.value, kPredicateLevel),
                       between.negated ? "NOT " : "", expr(*between.low, kBitOrLevel),
                       expr(*between.high, kBitOrLevel));
  }

  std::string in(const In& in) const {
    return fmt::format("{} {}IN ({})", expr(*in.value, kPredicateLevel), in.negated ? "NOT " : "",
                       in.query ? query(*in.query) : list(in.list));
  }

  std::string case_when(const Case& choice) const {
    std::string result = "CASE";
    if (choice.operand) result += " " + expr(*choice.operand);
    for (const auto& [condition, value] : choice.branches) {
      result += fmt::format(" WHEN {} THEN {}", expr(*condition), expr(*value));
    }
    if (choice.otherwise) result += " ELSE " + expr(*choice.otherwise);
    return result + " END";
  }

  std::string cast(const Cast& cast) const {
    return fmt::format("{}({} AS {})", cast.try_cast ? "TRY_CAST" : "CAST", expr(*cast.value),
                       to_sql(cast.type));
  }

  std::string lambda(const Lambda& lambda) const {
    std::string params;
    for (const std::string& param : lambda.params) {
      params += (params.empty() ? "" : ", ") + spark_name(param);
    }
    if (lambda.params.size() != 1) params = "(" + params + ")";
    return params + " -> " + expr(*lambda.body);
  }

  std::string interval(const IntervalLiteral& interval) const {
    std::string result = "INTERVAL";
    for (const auto& [value, unit] : interval.parts) {
      const bool constant = value->as<Literal>() != nullptr;
      result += " " + (constant ? expr(*value) : "(" + expr(*value) + ")") + " " + unit;
    }
    return result;
  }

  std::string like(const Like& like) const {
    const char* word = like.kind == LikeKind::kLike    ? "LIKE"
                       : like.kind == LikeKind::kILike ? "ILIKE"
                                                       : "RLIKE";
    std::string result = fmt::format("{} {}{} ", expr(*like.value, kPredicateLevel),
                                     like.negated ? "NOT " : "", word);
    if (like.quantifier == LikeQuantifier::kOne) {
      result += expr(*like.patterns[0], kBitOrLevel);
      if (like.escape) result += " ESCAPE " + spark_string(*like.escape);
    } else {
      result += fmt::format("{} ({})", like.quantifier == LikeQuantifier::kAny ? "ANY" : "ALL",
                            list(like.patterns));
    }
    return result;
  }

  // "$.a.b[0]" as the user writes it after the colon
  static std::string json_path(const std::string& path) {
    return path.size() > 1 && path[1] == '.' ? path.substr(2) : path.substr(1);
  }

  std::string star(const Star& star) const {
    std::string result = star.qualifier.empty() ? "*" : spark_names(star.qualifier) + ".*";
    if (!star.except.empty()) result += " EXCEPT (" + names(star.except) + ")";
    return result;
  }

  std::string use(const TableUse& use) const {
    std::string result;
    if (!use.function.empty()) {
      std::string args = list(use.arguments);
      for (const auto& [key, value] : use.named_arguments) {
        args += fmt::format("{}{} => {}", args.empty() ? "" : ", ", spark_name(key), expr(*value));
      }
      result = fmt::format("{}({})", use.function, args);
      if (use.stream) result = "STREAM " + result;
    } else {
      result = to_string(use.name);
      if (use.stream) result = "STREAM(" + result + ")";
    }
    if (use.version_as_of) result += " VERSION AS OF " + *use.version_as_of;
    if (use.timestamp_as_of) {
      result += " TIMESTAMP AS OF ";
      result += use.timestamp_expr ? *use.timestamp_as_of : spark_string(*use.timestamp_as_of);
    }
    if (!use.stream_options.empty()) {
      std::string options;
      for (const Option& option : use.stream_options) {
        options += fmt::format("{}{} = {}", options.empty() ? "" : ", ", spark_string(option.key),
                               spark_string(option.value));
      }
      result += " WITH (" + options + ")";
    }
    return result;
  }

  std::string relation(const Relation& node) const {
    if (const auto* view = node.as<LateralView>()) {
      std::string result = fmt::format("{} LATERAL VIEW {}{}", relation(*view->input),
                                       view->outer ? "OUTER " : "", expr(*view->generator));
      if (node.alias) result += " " + spark_name(node.alias->text);
      if (!node.column_aliases.empty()) result += " AS " + names(node.column_aliases);
      return result;
    }
    std::string result;
    if (const auto* table = node.as<TableUse>()) {
      result = use(*table);
    } else if (const auto* derived = node.as<Derived>()) {
      result = "(" + query(*derived->query) + ")";
    } else if (const auto* values = node.as<ValuesRows>()) {
      result = rows(*values);
    } else if (const auto* join = node.as<Join>()) {
      const bool nested =
          join->right->as<Join>() != nullptr || join->right->as<LateralView>() != nullptr;
      const std::string right =
          nested ? "(" + relation(*join->right) + ")" : relation(*join->right);
      result = fmt::format("{} {}{} {}{}", relation(*join->left), join->natural ? "NATURAL " : "",
                           join_words(join->kind), join->lateral ? "LATERAL " : "", right);
      if (join->on) result += " ON " + expr(*join->on);
      if (!join->using_columns.empty()) result += " USING (" + names(join->using_columns) + ")";
    }
    if (node.alias)
      result += " AS " + spark_name(node.alias->text) + columns_in_parentheses(node.column_aliases);
    return result;
  }

  static const char* join_words(JoinKind kind) {
    switch (kind) {
      case JoinKind::kInner:
        return "JOIN";
      case JoinKind::kLeft:
        return "LEFT JOIN";
      case JoinKind::kRight:
        return "RIGHT JOIN";
      case JoinKind::kFull:
        return "FULL JOIN";
      case JoinKind::kCross:
        return "CROSS JOIN";
      case JoinKind::kLeftSemi:
        return "LEFT SEMI JOIN";
      case JoinKind::kLeftAnti:
        return "LEFT ANTI JOIN";
    }
    return "JOIN";
  }

  std::string item(const SelectItem& item) const {
    std::string result = expr(*item.expr);
    if (item.aliases.size() == 1) result += " AS " + spark_name(item.aliases[0].text);
    if (item.aliases.size() > 1) result += " AS (" + names(item.aliases) + ")";
    return result;
  }

  std::string select(const Select& select) const {
    // SET of the pipe syntax has no other spelling
    if (select.items.size() == 1) {
      if (const auto* star = select.items[0].expr->as<Star>();
          star != nullptr && !star->replaced.empty()) {
        Select without = select;
        Star plain = *star;
        plain.replaced.clear();
        without.items[0].expr = make_expr(std::move(plain), select.items[0].expr->place);
        std::string result = this->select(without) + " |> SET ";
        for (size_t i = 0; i < star->replaced.size(); ++i) {
          result +=
              fmt::format("{}{} = {}", i == 0 ? "" : ", ", spark_name(star->replaced[i].first.text),
                          expr(*star->replaced[i].second));
        }
        return result;
      }
    }
    std::string result = select.distinct ? "SELECT DISTINCT " : "SELECT ";
    for (size_t i = 0; i < select.items.size(); ++i)
      result += (i == 0 ? "" : ", ") + item(select.items[i]);
    if (select.from) result += " FROM " + relation(*select.from);
    if (select.where) result += " WHERE " + expr(*select.where);
    if (select.group_by_all) result += " GROUP BY ALL";
    if (!select.groupings.empty()) {
      result += " GROUP BY " + groupings(select);
    } else if (!select.group_by.empty()) {
      result += " GROUP BY " + list(select.group_by);
    }
    if (select.having) result += " HAVING " + expr(*select.having);
    if (select.qualify) result += " QUALIFY " + expr(*select.qualify);
    for (size_t i = 0; i < select.windows.size(); ++i) {
      const NamedWindow& named = select.windows[i];
      result += fmt::format("{} {} AS {}", i == 0 ? " WINDOW" : ",", spark_name(named.name.text),
                            window(named.spec));
    }
    return result;
  }

  std::string groupings(const Select& select) const {
    std::string result;
    for (const Grouping& grouping : select.groupings) {
      std::string sets;
      for (const auto& set : grouping.sets) {
        const bool alone = grouping.kind == GroupingKind::kPlain;
        sets += (sets.empty() ? "" : ", ") + (alone ? list(set) : "(" + list(set) + ")");
      }
      const char* word = grouping.kind == GroupingKind::kRollup ? "ROLLUP "
                         : grouping.kind == GroupingKind::kCube ? "CUBE "
                                                                : "GROUPING SETS ";
      result += result.empty() ? "" : ", ";
      result += grouping.kind == GroupingKind::kPlain ? sets : word + ("(" + sets + ")");
    }
    return result;
  }
};

}  // namespace

std::string print_spark(const Expr& expr) { return SparkPrinter().expr(expr); }
std::string print_spark(const Query& query) { return SparkPrinter().query(query); }

}  // namespace strandline::sql
