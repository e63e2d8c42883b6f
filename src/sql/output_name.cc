// The names Spark gives to columns without an alias: upper(name), (a + 1), count(1).
#include <fmt/format.h>

#include "sql/duckdb_core.h"
#include "sql/names.h"

namespace strandline::sql {

namespace {

std::string pretty(const Expr& expr);

std::string pretty_list(const std::vector<ExprPtr>& items) {
  std::string result;
  for (const ExprPtr& item : items) result += (result.empty() ? "" : ", ") + pretty(*item);
  return result;
}

const char* operator_name(BinaryOp op) {
  switch (op) {
    case BinaryOp::kOr:
      return "OR";
    case BinaryOp::kAnd:
      return "AND";
    case BinaryOp::kEqual:
      return "=";
    case BinaryOp::kNullSafeEqual:
      return "<=>";
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
    case BinaryOp::kBitXor:
      return "^";
    case BinaryOp::kBitAnd:
      return "&";
    case BinaryOp::kShiftLeft:
      return "<<";
    case BinaryOp::kShiftRight:
      return ">>";
    case BinaryOp::kShiftRightUnsigned:
      return ">>>";
    case BinaryOp::kAdd:
      return "+";
    case BinaryOp::kSubtract:
      return "-";
    case BinaryOp::kMultiply:
      return "*";
    case BinaryOp::kDivide:
      return "/";
    case BinaryOp::kIntegerDivide:
      return "div";
    case BinaryOp::kModulo:
      return "%";
    default:
      return "";
  }
}

std::string pretty_call(const Call& call) {
  std::string args;
  if (call.name.text == "count" && call.args.size() == 1 && call.args[0]->as<Star>() != nullptr) {
    args = "1";
  } else if (call.name.text == "struct") {
    return "struct(" + pretty_list(call.args) + ")";
  } else {
    args = pretty_list(call.args);
  }
  return fmt::format("{}({}{})", call.name.text, call.distinct ? "DISTINCT " : "", args);
}

std::string pretty(const Expr& expr) {
  if (const auto* literal = expr.as<Literal>())
    return literal->type == TypeId::kVoid ? "NULL" : literal->text;
  if (const auto* column = expr.as<ColumnRef>()) return column->parts.back();
  if (const auto* field = expr.as<FieldAccess>())
    return pretty(*field->value) + "." + field->name.text;
  if (const auto* index = expr.as<IndexAccess>())
    return fmt::format("{}[{}]", pretty(*index->value), pretty(*index->index));
  if (const auto* binary = expr.as<Binary>()) {
    if (binary->op == BinaryOp::kConcat)
      return fmt::format("concat({}, {})", pretty(*binary->left), pretty(*binary->right));
    if (binary->op == BinaryOp::kNotEqual) {
      return fmt::format("(NOT ({} = {}))", pretty(*binary->left), pretty(*binary->right));
    }
    return fmt::format("({} {} {})", pretty(*binary->left), operator_name(binary->op),
                       pretty(*binary->right));
  }
  if (const auto* unary = expr.as<Unary>()) {
    const char* sign = unary->op == UnaryOp::kNot     ? "NOT "
                       : unary->op == UnaryOp::kMinus ? "- "
                       : unary->op == UnaryOp::kPlus  ? "+ "
                                                      : "~";
    return fmt::format("({}{})", sign, pretty(*unary->operand));
  }
  if (const auto* is = expr.as<Is>(); is != nullptr && is->what == IsWhat::kNull) {
    return fmt::format("({} IS {}NULL)", pretty(*is->value), is->negated ? "NOT " : "");
  }
  if (const auto* in = expr.as<In>(); in != nullptr && !in->query) {
    const std::string text = fmt::format("({} IN ({}))", pretty(*in->value), pretty_list(in->list));
    return in->negated ? "(NOT " + text + ")" : text;
  }
  if (const auto* cast = expr.as<Cast>()) {
    return fmt::format("{}({} AS {})", cast->try_cast ? "TRY_CAST" : "CAST", pretty(*cast->value),
                       to_sql(cast->type));
  }
  if (const auto* choice = expr.as<Case>()) {
    std::string result = "CASE";
    if (choice->operand) result += " " + pretty(*choice->operand);
    for (const auto& [condition, value] : choice->branches) {
      result += fmt::format(" WHEN {} THEN {}", pretty(*condition), pretty(*value));
    }
    if (choice->otherwise) result += " ELSE " + pretty(*choice->otherwise);
    return result + " END";
  }
  if (const auto* call = expr.as<Call>(); call != nullptr && !call->over && !call->filter)
    return pretty_call(*call);
  if (expr.as<ScalarSubquery>() != nullptr) return "scalarsubquery()";
  return print_spark(expr);
}

}  // namespace

std::string output_name(const Expr& expr) {
  if (const auto* field = expr.as<FieldAccess>()) return field->name.text;
  if (const auto* json = expr.as<JsonAccess>()) {
    // raw:owner.name is named after its last key
    std::string path = json->path;
    while (!path.empty() && path.back() == ']') path.resize(path.rfind('['));
    const size_t dot = path.rfind('.');
    return dot == std::string::npos ? json->path : path.substr(dot + 1);
  }
  // A cast column keeps its name.
  if (const auto* cast = expr.as<Cast>();
      cast != nullptr && cast->value->as<ColumnRef>() != nullptr) {
    return cast->value->as<ColumnRef>()->parts.back();
  }
  // Spark leaves the column of an empty text without a name, which the engine cannot; nor can a
  // name of the engine have a zero byte.
  std::string name = pretty(expr);
  std::erase(name, '\0');
  return name.empty() ? "''" : name;
}

}  // namespace strandline::sql
