#include "sql/table_conditions.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "sql/duckdb_printer.h"
#include "sql/frame_columns.h"

namespace strandline::sql {
namespace {

ExprPtr anything() { return make_expr(ColumnRef{}); }

bool has_subquery(const Expr& expr) {
  if (expr.as<Exists>() != nullptr || expr.as<ScalarSubquery>() != nullptr) return true;
  if (const auto* in = expr.as<In>(); in != nullptr && in->query) return true;
  bool found = false;
  for_each_child(expr, [&](const ExprPtr& child) { found = found || has_subquery(*child); });
  return found;
}

bool has_window(const Expr& expr) {
  if (const auto* call = expr.as<Call>(); call != nullptr && call->over) return true;
  bool found = false;
  for_each_child(expr, [&](const ExprPtr& child) { found = found || has_window(*child); });
  return found;
}

bool is_constant(const Expr& expr) {
  return expr.as<Star>() == nullptr && columns_read(expr).empty() && !has_subquery(expr);
}

// What stands for a column; null: anything.
using Replace = std::function<ExprPtr(const ColumnRef&)>;

// The expression with its columns replaced. Nodes that conditions on files have no use for become
// anything when they read columns.
ExprPtr rewrite(const ExprPtr& expr, const Replace& replace) {
  const auto inner = [&](const ExprPtr& child) { return child ? rewrite(child, replace) : child; };
  const auto all = [&](std::vector<ExprPtr> children) {
    for (ExprPtr& child : children) child = inner(child);
    return children;
  };
  if (const auto* column = expr->as<ColumnRef>()) {
    ExprPtr other = column->parts.empty() ? nullptr : replace(*column);
    return other ? other : anything();
  }
  if (expr->as<Literal>() != nullptr) return expr;
  if (const auto* binary = expr->as<Binary>())
    return make_expr(Binary{binary->op, inner(binary->left), inner(binary->right)}, expr->place);
  if (const auto* unary = expr->as<Unary>())
    return make_expr(Unary{unary->op, inner(unary->operand)}, expr->place);
  if (const auto* is = expr->as<Is>())
    return make_expr(Is{inner(is->value), is->negated, is->what, inner(is->other)}, expr->place);
  if (const auto* between = expr->as<Between>()) {
    return make_expr(
        Between{inner(between->value), between->negated, inner(between->low), inner(between->high)},
        expr->place);
  }
  if (const auto* like = expr->as<Like>()) {
    Like copy = *like;
    copy.value = inner(like->value);
    copy.patterns = all(like->patterns);
    return make_expr(std::move(copy), expr->place);
  }
  if (const auto* in = expr->as<In>(); in != nullptr && !in->query)
    return make_expr(In{inner(in->value), in->negated, all(in->list), nullptr}, expr->place);
  if (const auto* cast = expr->as<Cast>())
    return make_expr(Cast{inner(cast->value), cast->type, cast->try_cast}, expr->place);
  const auto* call = expr->as<Call>();
  if (call != nullptr && !call->distinct && call->named_args.empty() &&
      call->within_group.empty() && !call->filter && !call->over) {
    Call copy = *call;
    copy.args = all(call->args);
    return make_expr(std::move(copy), expr->place);
  }
  return is_constant(*expr) ? expr : anything();
}

Conditions rewrite_all(const Conditions& conditions, const Replace& replace) {
  Conditions result;
  for (const ExprPtr& condition : conditions) result.push_back(rewrite(condition, replace));
  return result;
}

void split(const ExprPtr& expr, Conditions* conditions) {
  if (!expr) return;
  const auto* binary = expr->as<Binary>();
  if (binary != nullptr && binary->op == BinaryOp::kAnd) {
    split(binary->left, conditions);
    split(binary->right, conditions);
  } else {
    conditions->push_back(expr);
  }
}

bool is_one_of(const std::string& name, const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& other) { return same_name(name, other); });
}

std::vector<std::string> qualifier_of(const Relation& relation) {
  if (relation.alias) return {relation.alias->text};
  const auto* table = relation.as<TableUse>();
  if (table == nullptr || table->name.is_path || !table->function.empty()) return {};
  return table->name.parts;
}

// The column of the relation that goes by `qualifier` as an unqualified one; null if it is not of
// that relation.
ExprPtr unqualified(const ColumnRef& column, const std::vector<std::string>& qualifier,
                    const std::vector<std::string>& others) {
  const auto& parts = column.parts;
  for (size_t length = std::min(qualifier.size(), parts.size() - 1); length > 0; --length) {
    const auto tail = qualifier.end() - static_cast<std::ptrdiff_t>(length);
    if (std::equal(tail, qualifier.end(), parts.begin(), same_name)) {
      return make_expr(
          ColumnRef{{parts.begin() + static_cast<std::ptrdiff_t>(length), parts.end()}});
    }
  }
  if (parts.size() > 1 && is_one_of(parts[0], others)) return nullptr;
  return make_expr(column);
}

// The output columns of a query, if all are written out.
std::optional<std::vector<std::string>> output_columns(const Query& query) {
  if (const auto* derived = query.as<Derived>()) return output_columns(*derived->query);
  if (const auto* operation = query.as<SetOperation>()) return output_columns(*operation->left);
  const auto* select = query.as<Select>();
  if (select == nullptr) return std::nullopt;
  std::vector<std::string> names;
  for (const SelectItem& item : select->items) {
    if (gives_all_columns(*item.expr) || item.aliases.size() > 1) return std::nullopt;
    names.push_back(item.aliases.empty() ? output_name(*item.expr) : item.aliases[0].text);
  }
  return names;
}

ExprPtr with_fields(const ExprPtr& value, const std::vector<std::string>& column_parts) {
  if (value->as<Literal>() != nullptr) return column_parts.size() == 1 ? value : nullptr;
  const auto* column = value->as<ColumnRef>();
  if (column == nullptr) return nullptr;
  ColumnRef result = *column;
  result.parts.insert(result.parts.end(), column_parts.begin() + 1, column_parts.end());
  return make_expr(std::move(result));
}

class Finder {
 public:
  std::map<const TableUse*, Conditions> found;

  void query(const Query& query, Conditions outer) {
    if (query.limit || query.offset) outer.clear();
    const size_t scope = ctes_.size();
    for (const Cte& cte : query.with) ctes_.push_back({&cte, {}});
    if (const auto* selection = query.as<Select>()) {
      select(*selection, outer);
    } else if (const auto* operation = query.as<SetOperation>()) {
      // Conditions on the result are not those of a side: the sides' types may be cast.
      this->query(*operation->left, {});
      this->query(*operation->right, {});
    } else if (const auto* derived = query.as<Derived>()) {
      this->query(*derived->query, outer);
    } else if (const auto* values = query.as<ValuesRows>()) {
      rows(*values);
    }
    for (const OrderItem& item : query.order_by) subqueries(item.expr);
    subqueries(query.limit);
    subqueries(query.offset);
    // A common table expression is read once, for all its uses; later ones may use earlier ones.
    while (ctes_.size() > scope) {
      const CteUses uses = std::move(ctes_.back());
      ctes_.pop_back();
      Conditions conditions = any_use(uses.uses);
      if (!uses.cte->columns.empty()) {
        std::vector<std::string> names;
        for (const Name& name : uses.cte->columns) names.push_back(name.text);
        conditions = rename_columns(conditions, names, *uses.cte->query);
      }
      this->query(*uses.cte->query, std::move(conditions));
    }
  }

  void subqueries(const ExprPtr& expr) {
    if (expr) subqueries(*expr);
  }
  void subqueries(const Expr& expr) {
    for_each_child(expr, [&](const ExprPtr& child) { subqueries(*child); });
    if (const auto* in = expr.as<In>(); in != nullptr && in->query) query(*in->query, {});
    if (const auto* exists = expr.as<Exists>()) query(*exists->query, {});
    if (const auto* subquery = expr.as<ScalarSubquery>()) query(*subquery->query, {});
  }

 private:
  struct CteUses {
    const Cte* cte;
    std::vector<Conditions> uses;
  };

  static Conditions any_use(const std::vector<Conditions>& uses) {
    constexpr size_t kMostUses = 8;
    if (uses.empty() || uses.size() > kMostUses) return {};
    if (uses.size() == 1) return uses[0];
    ExprPtr any;
    for (const Conditions& use : uses) {
      if (use.empty()) return {};
      const ExprPtr all = all_of(use);
      any = any ? binary(BinaryOp::kOr, any, all) : all;
    }
    return {any};
  }

  void rows(const ValuesRows& values) {
    for (const auto& row : values.rows) {
      for (const ExprPtr& value : row) subqueries(value);
    }
  }

  void select(const Select& select, const Conditions& outer) {
    const size_t scope = names_.size();
    collect_names(select.from);
    Conditions conditions;
    split(select.where, &conditions);
    for (ExprPtr& condition : through(select, outer)) conditions.push_back(std::move(condition));
    relation(select.from, conditions);
    for (const SelectItem& item : select.items) subqueries(item.expr);
    subqueries(select.where);
    for (const ExprPtr& key : select.group_by) subqueries(key);
    subqueries(select.having);
    subqueries(select.qualify);
    names_.resize(scope);
  }

  // Conditions on the output of a SELECT as conditions on its FROM clause.
  static Conditions through(const Select& select, const Conditions& outer) {
    if (outer.empty() || !select.from || select.qualify || !select.groupings.empty()) return {};
    for (const SelectItem& item : select.items) {
      if (has_window(*item.expr)) return {};
    }
    // Of a grouped query only its plain keys are columns.
    for (const ExprPtr& key : select.group_by) {
      if (key->as<ColumnRef>() == nullptr && key->as<Literal>() == nullptr) return {};
    }
    return rewrite_all(outer, [&](const ColumnRef& column) { return source_of(select, column); });
  }

  static ExprPtr source_of(const Select& select, const ColumnRef& column) {
    const std::string& name = column.parts[0];
    ExprPtr source;
    const Star* star = nullptr;
    // Of a join two columns may have one name.
    const bool single =
        select.from->as<TableUse>() != nullptr || select.from->as<Derived>() != nullptr;
    if (select.items.size() == 1 && is_frame_item(*select.items[0].expr)) {
      source = single ? frame_source(*select.items[0].expr, name) : nullptr;
      return source ? with_fields(source, column.parts) : nullptr;
    }
    for (const SelectItem& item : select.items) {
      if (is_frame_item(*item.expr)) return nullptr;
      if (const auto* found_star = item.expr->as<Star>()) {
        if (star != nullptr) return nullptr;
        star = found_star;
        continue;
      }
      if (item.aliases.size() > 1) return nullptr;
      const std::string own = item.aliases.empty() ? output_name(*item.expr) : item.aliases[0].text;
      if (!same_name(own, name)) continue;
      if (source) return nullptr;
      source = item.expr;
    }
    if (source) return star == nullptr ? with_fields(source, column.parts) : nullptr;
    if (star == nullptr) return nullptr;
    if (!single) return nullptr;
    for (const Name& other : star->except) {
      if (same_name(other.text, name)) return nullptr;
    }
    for (const auto& [other, value] : star->replaced) {
      if (same_name(other.text, name)) return with_fields(value, column.parts);
    }
    return make_expr(column);
  }

  void collect_names(const RelationPtr& node) {
    if (!node) return;
    const auto qualifier = qualifier_of(*node);
    if (!qualifier.empty()) names_.push_back(qualifier.back());
    if (const auto* join = node->as<Join>()) {
      collect_names(join->left);
      collect_names(join->right);
    } else if (const auto* view = node->as<LateralView>()) {
      collect_names(view->input);
    }
  }

  void relation(const RelationPtr& node, const Conditions& conditions) {
    if (!node) return;
    if (const auto* join = node->as<Join>()) {
      joined(*join, node->alias ? Conditions{} : conditions);
    } else if (const auto* view = node->as<LateralView>()) {
      relation(view->input, conditions);
      subqueries(view->generator);
    } else if (const auto* values = node->as<ValuesRows>()) {
      rows(*values);
    } else if (const auto* derived = node->as<Derived>()) {
      Conditions inner = of_relation(*node, conditions);
      if (!node->column_aliases.empty()) {
        std::vector<std::string> names;
        for (const Name& name : node->column_aliases) names.push_back(name.text);
        inner = rename_columns(inner, names, *derived->query);
      }
      query(*derived->query, std::move(inner));
    } else if (const auto* table = node->as<TableUse>()) {
      for (const ExprPtr& argument : table->arguments) subqueries(argument);
      Conditions own = of_relation(*node, conditions);
      if (!node->column_aliases.empty()) own.clear();
      if (CteUses* cte = find_cte(*table)) {
        cte->uses.push_back(std::move(own));
      } else if (!own.empty()) {
        found[table] = std::move(own);
      }
    }
  }

  // Rows of a side that a condition leaves out must not come back as a row filled with nulls.
  void joined(const Join& join, const Conditions& conditions) {
    Conditions left;
    Conditions right;
    Conditions on;
    split(join.on, &on);
    const auto add = [](Conditions* to, const Conditions& more) {
      to->insert(to->end(), more.begin(), more.end());
    };
    switch (join.kind) {
      case JoinKind::kInner:
      case JoinKind::kCross:
        add(&left, conditions);
        add(&left, on);
        right = left;
        break;
      case JoinKind::kLeft:
        left = conditions;
        right = on;
        break;
      case JoinKind::kRight:
        left = on;
        right = conditions;
        break;
      case JoinKind::kLeftSemi:
        left = conditions;
        add(&left, on);
        right = on;
        break;
      case JoinKind::kLeftAnti:
        left = conditions;
        right = on;
        break;
      case JoinKind::kFull:
        break;
    }
    relation(join.left, left);
    relation(join.right, right);
    subqueries(join.on);
  }

  Conditions of_relation(const Relation& node, const Conditions& conditions) const {
    const auto qualifier = qualifier_of(node);
    return rewrite_all(conditions, [&](const ColumnRef& column) {
      return unqualified(column, qualifier, names_);
    });
  }

  CteUses* find_cte(const TableUse& use) {
    if (!use.function.empty() || use.stream || use.name.is_path || use.name.parts.size() != 1)
      return nullptr;
    for (size_t i = ctes_.size(); i-- > 0;) {
      if (same_name(ctes_[i].cte->name.text, use.name.parts[0])) return &ctes_[i];
    }
    return nullptr;
  }

  std::vector<CteUses> ctes_;       // in scope, innermost last
  std::vector<std::string> names_;  // of relations in this FROM clause and those around
};

}  // namespace

std::map<const TableUse*, Conditions> table_conditions(const Query& query,
                                                       const Conditions& outer) {
  Finder finder;
  finder.query(query, outer);
  return std::move(finder.found);
}

std::map<const TableUse*, Conditions> table_conditions(const Expr& expr) {
  Finder finder;
  finder.subqueries(expr);
  return std::move(finder.found);
}

Conditions conjuncts(const Expr& expr) {
  Conditions conditions;
  split(std::make_shared<const Expr>(expr), &conditions);
  return conditions;
}

Conditions conditions_on(const Expr& expr, const std::vector<std::string>& qualifier,
                         const std::vector<std::string>& others) {
  return rewrite_all(conjuncts(expr), [&](const ColumnRef& column) {
    return unqualified(column, qualifier, others);
  });
}

Conditions rename_columns(const Conditions& conditions, const std::vector<std::string>& names,
                          const Query& query) {
  if (conditions.empty()) return {};
  const auto inner = output_columns(query);
  if (!inner || inner->size() != names.size()) return {};
  return rewrite_all(conditions, [&](const ColumnRef& column) -> ExprPtr {
    for (size_t i = 0; i < names.size(); ++i) {
      if (!same_name(names[i], column.parts[0])) continue;
      ColumnRef renamed = column;
      renamed.parts[0] = (*inner)[i];
      return make_expr(std::move(renamed));
    }
    return nullptr;
  });
}

}  // namespace strandline::sql
