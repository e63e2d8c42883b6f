// Expression trees of Spark SQL: meaning, not spelling. Every node is immutable and shared.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sql/ast.h"

namespace strandline::sql {

// A constant. kVoid is NULL; numbers keep their digits (with sign), binary is upper-case hex,
// date and timestamps are the quoted text as written.
struct Literal {
  TypeId type = TypeId::kVoid;
  std::string text;
};

// a, t.a, t.a.field, _metadata.file_path: which part is table, column or field is not known here.
struct ColumnRef {
  std::vector<std::string> parts;
};

// *, t.*, * EXCEPT (a, b); replaced columns come from the pipe operator SET
struct Star {
  std::vector<std::string> qualifier;
  std::vector<Name> except;
  std::vector<std::pair<Name, ExprPtr>> replaced;
};

// value.name where value is not a plain column
struct FieldAccess {
  ExprPtr value;
  Name name;
};

// value[index]: zero-based for arrays, a key for maps
struct IndexAccess {
  ExprPtr value;
  ExprPtr index;
};

// value:path, the path normalised to JSONPath ("$.a.b[0]")
struct JsonAccess {
  ExprPtr value;
  std::string path;
};

enum class UnaryOp { kNot, kMinus, kPlus, kBitNot };
struct Unary {
  UnaryOp op;
  ExprPtr operand;
};

enum class BinaryOp {
  kOr,
  kAnd,
  kEqual,
  kNullSafeEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kBitOr,
  kBitXor,
  kBitAnd,
  kShiftLeft,
  kShiftRight,
  kShiftRightUnsigned,
  kAdd,
  kSubtract,
  kConcat,
  kMultiply,
  kDivide,
  kIntegerDivide,
  kModulo,
};
struct Binary {
  BinaryOp op;
  ExprPtr left;
  ExprPtr right;
};

// IS [NOT] NULL | TRUE | FALSE | UNKNOWN | DISTINCT FROM other
enum class IsWhat { kNull, kTrue, kFalse, kUnknown, kDistinctFrom };
struct Is {
  ExprPtr value;
  bool negated = false;
  IsWhat what = IsWhat::kNull;
  ExprPtr other;  // kDistinctFrom
};

struct Between {
  ExprPtr value;
  bool negated = false;
  ExprPtr low, high;
};

enum class LikeKind { kLike, kILike, kRLike };
enum class LikeQuantifier { kOne, kAny, kAll };
struct Like {
  ExprPtr value;
  bool negated = false;
  LikeKind kind = LikeKind::kLike;
  LikeQuantifier quantifier = LikeQuantifier::kOne;
  std::vector<ExprPtr> patterns;
  std::optional<std::string> escape;  // one character; kOne only
};

struct In {
  ExprPtr value;
  bool negated = false;
  std::vector<ExprPtr> list;  // empty when query is set
  QueryPtr query;
};

struct Exists {
  QueryPtr query;
};

struct ScalarSubquery {
  QueryPtr query;
};

struct Case {
  ExprPtr operand;  // null: searched CASE
  std::vector<std::pair<ExprPtr, ExprPtr>> branches;
  ExprPtr otherwise;  // null: no ELSE
};

struct Cast {
  ExprPtr value;
  DataType type;
  bool try_cast = false;
};

struct OrderItem {
  ExprPtr expr;
  bool descending = false;
  std::optional<bool>
      nulls_first;  // absent: Spark's default, first when ascending, last when descending
};

enum class FrameUnit { kRows, kRange };
enum class FrameBoundKind {
  kUnboundedPreceding,
  kPreceding,
  kCurrentRow,
  kFollowing,
  kUnboundedFollowing
};
struct FrameBound {
  FrameBoundKind kind = FrameBoundKind::kCurrentRow;
  ExprPtr offset;
};
struct WindowFrame {
  FrameUnit unit = FrameUnit::kRows;
  FrameBound start;
  FrameBound end;
};
struct WindowSpec {
  std::optional<Name> base;  // a name of the WINDOW clause
  std::vector<ExprPtr> partition_by;
  std::vector<OrderItem> order_by;
  std::optional<WindowFrame> frame;
};

// name(args). Special forms of the grammar are calls too: struct (also for row values (a, b)),
// trim/btrim, extract as date_part, position, substring, current_timestamp without parentheses.
struct Call {
  Name name;  // lower case, as the function table spells it
  bool distinct = false;
  std::vector<ExprPtr> args;
  std::vector<std::string> arg_names;  // names given by AS inside struct(...), else empty strings
  std::vector<std::pair<Name, ExprPtr>> named_args;  // key => value
  std::vector<OrderItem> within_group;
  ExprPtr filter;                    // FILTER (WHERE ...)
  std::optional<bool> ignore_nulls;  // IGNORE NULLS / RESPECT NULLS
  std::optional<WindowSpec> over;
};

struct Lambda {
  std::vector<std::string> params;
  ExprPtr body;
};

// INTERVAL '1' DAY, INTERVAL 1 DAY 2 HOURS, INTERVAL '1 day 2 hours'; units upper case, singular.
struct IntervalLiteral {
  std::vector<std::pair<ExprPtr, std::string>> parts;
};

struct Expr {
  std::variant<Literal, ColumnRef, Star, FieldAccess, IndexAccess, JsonAccess, Unary, Binary, Is,
               Between, Like, In, Exists, ScalarSubquery, Case, Cast, Call, Lambda, IntervalLiteral>
      node;
  SourcePlace place;
  // Levels of expressions below and including this one, outside subqueries; the parser bounds it so
  // that walks can recurse.
  int height = 1;

  template <typename T>
  const T* as() const {
    return std::get_if<T>(&node);
  }
};

// Calls visit(const ExprPtr&) for each direct child that is an expression, in text order.
template <typename Visit>
void for_each_child(const Expr& expr, Visit&& visit);

template <typename Node>
ExprPtr make_expr(Node node, SourcePlace place = {}) {
  Expr expr{std::move(node), std::move(place), 1};
  int below = 0;
  for_each_child(
      expr, [&](const ExprPtr& child) { below = child->height > below ? child->height : below; });
  expr.height = below + 1;
  return std::make_shared<const Expr>(std::move(expr));
}

// Shorthands for code that builds expressions.
ExprPtr column(const std::string& name);
ExprPtr string_literal(const std::string& text);
ExprPtr integer_literal(int64_t value);
ExprPtr null_literal();
ExprPtr call(const std::string& name, std::vector<ExprPtr> args);
ExprPtr binary(BinaryOp op, ExprPtr left, ExprPtr right);
// The conditions joined by AND; null for none.
ExprPtr all_of(const std::vector<ExprPtr>& conditions);

template <typename Visit>
void for_each_child(const Expr& expr, Visit&& visit) {
  const auto one = [&](const ExprPtr& child) {
    if (child) visit(child);
  };
  const auto items = [&](const std::vector<OrderItem>& order) {
    for (const OrderItem& item : order) one(item.expr);
  };
  if (const auto* star = expr.as<Star>()) {
    for (const auto& [column, value] : star->replaced) one(value);
  } else if (const auto* field = expr.as<FieldAccess>()) {
    one(field->value);
  } else if (const auto* index = expr.as<IndexAccess>()) {
    one(index->value);
    one(index->index);
  } else if (const auto* json = expr.as<JsonAccess>()) {
    one(json->value);
  } else if (const auto* unary = expr.as<Unary>()) {
    one(unary->operand);
  } else if (const auto* operation = expr.as<Binary>()) {
    one(operation->left);
    one(operation->right);
  } else if (const auto* is = expr.as<Is>()) {
    one(is->value);
    one(is->other);
  } else if (const auto* between = expr.as<Between>()) {
    one(between->value);
    one(between->low);
    one(between->high);
  } else if (const auto* like = expr.as<Like>()) {
    one(like->value);
    for (const ExprPtr& pattern : like->patterns) one(pattern);
  } else if (const auto* in = expr.as<In>()) {
    one(in->value);
    for (const ExprPtr& item : in->list) one(item);
  } else if (const auto* choice = expr.as<Case>()) {
    one(choice->operand);
    for (const auto& [condition, result] : choice->branches) {
      one(condition);
      one(result);
    }
    one(choice->otherwise);
  } else if (const auto* cast = expr.as<Cast>()) {
    one(cast->value);
  } else if (const auto* function = expr.as<Call>()) {
    for (const ExprPtr& arg : function->args) one(arg);
    for (const auto& [key, value] : function->named_args) one(value);
    items(function->within_group);
    one(function->filter);
    if (function->over) {
      for (const ExprPtr& part : function->over->partition_by) one(part);
      items(function->over->order_by);
      if (function->over->frame) {
        one(function->over->frame->start.offset);
        one(function->over->frame->end.offset);
      }
    }
  } else if (const auto* lambda = expr.as<Lambda>()) {
    one(lambda->body);
  } else if (const auto* interval = expr.as<IntervalLiteral>()) {
    for (const auto& [value, unit] : interval->parts) one(value);
  }
}

}  // namespace strandline::sql
