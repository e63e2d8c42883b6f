#include "sql/expr.h"

#include "sql/query.h"

namespace strandline::sql {

ExprPtr column(const std::string& name) { return make_expr(ColumnRef{{name}}); }
ExprPtr string_literal(const std::string& text) {
  return make_expr(Literal{TypeId::kString, text});
}
ExprPtr integer_literal(int64_t value) {
  const bool narrow = value >= INT32_MIN && value <= INT32_MAX;
  return make_expr(Literal{narrow ? TypeId::kInteger : TypeId::kLong, std::to_string(value)});
}
ExprPtr null_literal() { return make_expr(Literal{}); }

ExprPtr call(const std::string& name, std::vector<ExprPtr> args) {
  Call node;
  node.name = Name{name, {}};
  node.arg_names.resize(args.size());
  node.args = std::move(args);
  return make_expr(std::move(node));
}

ExprPtr binary(BinaryOp op, ExprPtr left, ExprPtr right) {
  SourcePlace place = left->place;
  return make_expr(Binary{op, std::move(left), std::move(right)}, std::move(place));
}

ExprPtr all_of(const std::vector<ExprPtr>& conditions) {
  ExprPtr result;
  for (const ExprPtr& condition : conditions) {
    if (!condition) continue;
    result = result ? binary(BinaryOp::kAnd, result, condition) : condition;
  }
  return result;
}

QueryPtr select_all(RelationPtr relation) {
  Query query;
  query.place = relation->place;
  Select select;
  select.items.push_back(SelectItem{make_expr(Star{}, relation->place), {}});
  select.from = std::move(relation);
  query.body = std::move(select);
  return std::make_shared<const Query>(std::move(query));
}

QueryPtr select_table(const TableName& name) {
  Relation relation;
  relation.place = name.place;
  TableUse use;
  use.name = name;
  use.place = name.place;
  relation.node = std::move(use);
  return select_all(std::make_shared<const Relation>(std::move(relation)));
}

const TableUse* plain_table(const Query& query) {
  const auto* select = query.as<Select>();
  if (select == nullptr || !query.with.empty() || !query.order_by.empty() || query.limit ||
      query.offset || query.order_by_all) {
    return nullptr;
  }
  if (select->distinct || select->where || select->having || select->qualify ||
      !select->group_by.empty() || select->group_by_all || select->items.size() != 1 ||
      !select->from) {
    return nullptr;
  }
  const auto* star = select->items[0].expr->as<Star>();
  if (star == nullptr || !star->except.empty() || !star->replaced.empty() ||
      !star->qualifier.empty())
    return nullptr;
  if (!select->from->column_aliases.empty()) return nullptr;
  return select->from->as<TableUse>();
}

}  // namespace strandline::sql
