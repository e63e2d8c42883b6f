// Questions about parsed text: tables used, columns read, calls that make a source not replayable.
#include <algorithm>
#include <array>
#include <functional>

#include "sql/clock_calls.h"
#include "sql/duckdb_printer.h"
#include "sql/names.h"

namespace strandline::sql {

namespace {

constexpr std::array<std::string_view, 13> kNondeterministic = {
    "rand",
    "random",
    "randn",
    "uuid",
    "shuffle",
    "monotonically_increasing_id",
    "spark_partition_id",
    "input_file_name",
    "randstr",
    "uniform",
    "current_user",
    "session_user",
    "user",
};

// Walks a query with the common table expressions that are in scope; calls back for each table use
// and each expression, in text order.
class Walker {
 public:
  std::function<void(const TableUse&)> on_table;
  std::function<void(const Expr&)> on_expr;

  void walk(const Query& query) { this->query(query); }
  void walk(const Expr& expr) { this->expr(expr); }
  void walk(const Statement& statement) { this->statement(statement); }

 private:
  void query(const Query& query) {
    const size_t scope = ctes_.size();
    for (const Cte& cte : query.with) {
      this->query(*cte.query);
      ctes_.push_back(cte.name.text);
    }
    if (const auto* select = query.as<Select>()) {
      for (const SelectItem& item : select->items) expr(item.expr);
      relation(select->from);
      expr(select->where);
      for (const ExprPtr& key : select->group_by) expr(key);
      expr(select->having);
      expr(select->qualify);
      for (const NamedWindow& window : select->windows) {
        for (const ExprPtr& part : window.spec.partition_by) expr(part);
        for (const OrderItem& item : window.spec.order_by) expr(item.expr);
      }
    } else if (const auto* operation = query.as<SetOperation>()) {
      this->query(*operation->left);
      this->query(*operation->right);
    } else if (const auto* values = query.as<ValuesRows>()) {
      rows(*values);
    } else if (const auto* derived = query.as<Derived>()) {
      this->query(*derived->query);
    }
    for (const OrderItem& item : query.order_by) expr(item.expr);
    expr(query.limit);
    expr(query.offset);
    ctes_.resize(scope);
  }

  void query(const QueryPtr& node) {
    if (node) query(*node);
  }

  void expr(const ExprPtr& node) {
    if (node) expr(*node);
  }

  void expr(const Expr& node) {
    if (on_expr) on_expr(node);
    for_each_child(node, [&](const ExprPtr& child) { expr(*child); });
    if (const auto* in = node.as<In>(); in != nullptr && in->query) query(*in->query);
    if (const auto* exists = node.as<Exists>()) query(*exists->query);
    if (const auto* subquery = node.as<ScalarSubquery>()) query(*subquery->query);
  }

  void relation(const RelationPtr& node) {
    if (!node) return;
    if (const auto* table = node->as<TableUse>()) {
      const bool cte = table->function.empty() && !table->stream && !table->name.is_path &&
                       table->name.parts.size() == 1 &&
                       std::any_of(ctes_.begin(), ctes_.end(), [&](const std::string& name) {
                         return same_name(name, table->name.parts[0]);
                       });
      if (!cte && on_table) on_table(*table);
      for (const ExprPtr& argument : table->arguments) expr(argument);
      for (const auto& [key, value] : table->named_arguments) expr(value);
    } else if (const auto* derived = node->as<Derived>()) {
      query(*derived->query);
    } else if (const auto* values = node->as<ValuesRows>()) {
      rows(*values);
    } else if (const auto* join = node->as<Join>()) {
      relation(join->left);
      relation(join->right);
      expr(join->on);
    } else if (const auto* view = node->as<LateralView>()) {
      relation(view->input);
      expr(view->generator);
    }
  }

  void assignments(const std::vector<Assignment>& list) {
    for (const Assignment& assignment : list) expr(assignment.value);
  }

  void statement(const Statement& statement) {
    const auto& body = statement.body;
    if (const auto* select = std::get_if<SelectStatement>(&body)) query(select->query);
    if (const auto* explain = std::get_if<Explain>(&body)) {
      query(explain->query);
      if (explain->statement) this->statement(*explain->statement);
    }
    if (const auto* view = std::get_if<CreateView>(&body)) query(view->query);
    if (const auto* table = std::get_if<CreateTable>(&body)) query(table->query);
    if (const auto* describe = std::get_if<Describe>(&body)) query(describe->query);
    if (const auto* optimize = std::get_if<Optimize>(&body)) expr(optimize->where);
    if (const auto* insert = std::get_if<Insert>(&body)) {
      for (const auto& [column, value] : insert->partition) expr(value);
      expr(insert->replace_where);
      query(insert->query);
    }
    if (const auto* update = std::get_if<Update>(&body)) {
      assignments(update->assignments);
      expr(update->where);
    }
    if (const auto* removal = std::get_if<Delete>(&body)) expr(removal->where);
    if (const auto* merge = std::get_if<Merge>(&body)) {
      relation(merge->source);
      expr(merge->on);
      for (const MergeClause& clause : merge->clauses) {
        expr(clause.condition);
        assignments(clause.assignments);
      }
    }
  }

  void rows(const ValuesRows& values) {
    for (const auto& row : values.rows) {
      for (const ExprPtr& value : row) expr(value);
    }
  }

  std::vector<std::string> ctes_;
};

bool is_nondeterministic(const Call& call) {
  return std::find(kNondeterministic.begin(), kNondeterministic.end(), call.name.text) !=
         kNondeterministic.end();
}

bool is_clock(const Call& call) {
  constexpr std::array<std::string_view, 5> kClocks = {"current_timestamp", "now", "current_date",
                                                       "curdate", "localtimestamp"};
  return std::find(kClocks.begin(), kClocks.end(), call.name.text) != kClocks.end() ||
         (call.args.empty() && call.name.text == "unix_timestamp");
}

// Calls back for every expression of a statement, query or expression, in text order.
template <typename Root, typename Visit>
void for_each_expr(const Root& root, const Visit& visit) {
  Walker walker;
  walker.on_expr = visit;
  walker.walk(root);
}

template <typename Root>
std::vector<Name> calls_in(const Root& root, bool (*is_such)(const Call&)) {
  std::vector<Name> found;
  for_each_expr(root, [&](const Expr& node) {
    const auto* call = node.as<Call>();
    if (call != nullptr && is_such(*call)) found.push_back(call->name);
  });
  return found;
}

void collect_columns(const Expr& node, std::vector<std::string>& params, std::vector<Name>& found) {
  if (const auto* column = node.as<ColumnRef>()) {
    const bool param = std::any_of(params.begin(), params.end(), [&](const std::string& name) {
      return same_name(name, column->parts[0]);
    });
    if (param) return;
    std::string text;
    for (const std::string& part : column->parts) {
      if (!text.empty()) text += '.';
      // In a dotted name a part that holds a dot itself keeps its backquotes.
      text +=
          column->parts.size() > 1 && part.find('.') != std::string::npos ? "`" + part + "`" : part;
    }
    const bool known = std::any_of(found.begin(), found.end(),
                                   [&](const Name& name) { return same_name(name.text, text); });
    if (!known) found.push_back(Name{std::move(text), node.place});
    return;
  }
  const size_t scope = params.size();
  if (const auto* lambda = node.as<Lambda>())
    params.insert(params.end(), lambda->params.begin(), lambda->params.end());
  for_each_child(node, [&](const ExprPtr& child) { collect_columns(*child, params, found); });
  params.resize(scope);
}

}  // namespace

std::vector<TableUse> table_uses(const Query& query) {
  std::vector<TableUse> found;
  Walker walker;
  walker.on_table = [&](const TableUse& use) { found.push_back(use); };
  walker.walk(query);
  return found;
}

std::vector<Name> columns_read(const Expr& expr) {
  std::vector<std::string> params;
  std::vector<Name> found;
  collect_columns(expr, params, found);
  return found;
}

std::optional<SourcePlace> place_of_column(const Statement& statement, const std::string& name) {
  std::optional<SourcePlace> place;
  for_each_expr(statement, [&](const Expr& node) {
    const auto* column = node.as<ColumnRef>();
    const auto* field = node.as<FieldAccess>();
    const bool found = (column != nullptr && std::any_of(column->parts.begin(), column->parts.end(),
                                                         [&](const std::string& part) {
                                                           return same_name(part, name);
                                                         })) ||
                       (field != nullptr && same_name(field->name.text, name));
    if (found && !place && node.place.line > 0) place = node.place;
  });
  return place;
}

namespace {

bool fails_as(const Expr& node, FailingValue what) {
  const auto* binary = node.as<Binary>();
  const auto* call = node.as<Call>();
  const auto called = [&](std::initializer_list<std::string_view> names) {
    return call != nullptr && std::find(names.begin(), names.end(), call->name.text) != names.end();
  };
  switch (what) {
    case FailingValue::kDivision:
      return (binary != nullptr &&
              (binary->op == BinaryOp::kDivide || binary->op == BinaryOp::kIntegerDivide ||
               binary->op == BinaryOp::kModulo)) ||
             called({"mod"});
    case FailingValue::kCast: {
      const auto* cast = node.as<Cast>();
      const auto* literal = cast == nullptr ? nullptr : cast->value->as<Literal>();
      if (literal != nullptr && literal->type == TypeId::kVoid) return false;
      return (cast != nullptr && !cast->try_cast && cast->type.id != TypeId::kString) ||
             called({"int", "bigint", "smallint", "tinyint", "float", "double", "decimal",
                     "boolean", "date", "timestamp", "to_date", "to_timestamp", "to_timestamp_ltz",
                     "to_timestamp_ntz"});
    }
    case FailingValue::kArithmetic:
      return (binary != nullptr &&
              (binary->op == BinaryOp::kAdd || binary->op == BinaryOp::kSubtract ||
               binary->op == BinaryOp::kMultiply)) ||
             called({"sum", "abs", "factorial", "pow", "power"});
  }
  return false;
}

}  // namespace

std::optional<SourcePlace> place_of_failure(const Statement& statement, FailingValue what) {
  std::optional<SourcePlace> place;
  bool several = false;
  for_each_expr(statement, [&](const Expr& node) {
    if (!fails_as(node, what) || node.place.line <= 0) return;
    several = several || place.has_value();
    place = node.place;
  });
  return several ? std::nullopt : place;
}

std::vector<Name> nondeterministic_calls(const Query& query) {
  return calls_in(query, is_nondeterministic);
}
std::vector<Name> nondeterministic_calls(const Expr& expr) {
  return calls_in(expr, is_nondeterministic);
}
std::vector<Name> clock_calls(const Query& query) { return calls_in(query, is_clock); }
std::vector<Name> clock_calls(const Expr& expr) { return calls_in(expr, is_clock); }

std::vector<ExprPtr> sequence_parts(const Expr& expr) {
  const auto* call = expr.as<Call>();
  if (call != nullptr && call->name.text == "struct" && !call->args.empty()) return call->args;
  return {std::make_shared<const Expr>(expr)};
}

std::optional<Name> plain_column(const Expr& expr) {
  const auto* column = expr.as<ColumnRef>();
  if (column == nullptr || column->parts.size() != 1) return std::nullopt;
  return Name{column->parts[0], expr.place};
}

std::optional<std::string> literal_text(const Expr& expr) {
  const auto* literal = expr.as<Literal>();
  if (literal == nullptr || literal->type == TypeId::kVoid) return std::nullopt;
  return literal->text;
}

}  // namespace strandline::sql
