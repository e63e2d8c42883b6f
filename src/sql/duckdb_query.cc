// Queries as DuckDB text.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "sql/duckdb_core.h"
#include "sql/frame_columns.h"
#include "sql/names.h"

namespace strandline::sql {

namespace {

// USING columns come first in SELECT * in Spark: outermost join first.
void using_columns(const Relation& relation, std::vector<std::string>& names) {
  const auto* join = relation.as<Join>();
  if (join == nullptr || relation.alias) return;
  for (const Name& name : join->using_columns) {
    const bool known = std::any_of(names.begin(), names.end(), [&](const std::string& other) {
      return same_name(other, name.text);
    });
    if (!known) names.push_back(name.text);
  }
  using_columns(*join->left, names);
}

const char* join_words(JoinKind kind) {
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
      return "SEMI JOIN";
    case JoinKind::kLeftAnti:
      return "ANTI JOIN";
  }
  return "JOIN";
}

// Names that a SELECT without * gives several columns.
std::vector<std::string> doubles_of(const Query& query) {
  std::vector<std::string> names;
  std::vector<std::string> doubles;
  const auto* select = query.as<Select>();
  if (select == nullptr) return doubles;
  for (const SelectItem& item : select->items) {
    if (gives_all_columns(*item.expr)) return {};
    const std::string name = item.aliases.size() == 1 ? item.aliases[0].text
                             : item.aliases.empty()   ? output_name(*item.expr)
                                                      : "";
    const auto is_same = [&](const std::string& other) { return same_name(other, name); };
    if (!name.empty() && std::any_of(names.begin(), names.end(), is_same)) doubles.push_back(name);
    names.push_back(name);
  }
  return doubles;
}

bool is_negative(const Expr& expr) {
  const auto* sign = expr.as<Unary>();
  const auto* literal = (sign != nullptr ? *sign->operand : expr).as<Literal>();
  if (literal == nullptr || literal->text.find_first_of("123456789") == std::string::npos)
    return false;
  return (sign != nullptr && sign->op == UnaryOp::kMinus) != (literal->text[0] == '-');
}

const Call* generator_call(const Expr& expr) {
  const auto* call = expr.as<Call>();
  if (call == nullptr) return nullptr;
  bool known = false;
  const Function* function = find_function(call->name.text, call->args.size(), &known);
  return function != nullptr && function->kind == FunctionKind::kGenerator ? call : nullptr;
}

}  // namespace

Result<std::string> DuckdbPrinter::whole(const Query& node) {
  std::string text = query(node);
  if (error_) return *error_;
  return text;
}

std::string DuckdbPrinter::query(const Query& node) {
  if (error_) return "";
  if (resolve_ == nullptr) {
    fail_unsupported(node.place, "a subquery in this place", "join the table in the source query");
    return "";
  }
  const size_t scope = ctes_.size();
  const std::string with_around = with_;
  std::string result;
  for (size_t i = 0; i < node.with.size(); ++i) {
    const Cte& cte = node.with[i];
    std::string columns;
    for (const Name& name : cte.columns)
      columns += (columns.empty() ? "" : ", ") + duckdb_name(name.text);
    if (!columns.empty()) columns = "(" + columns + ")";
    const std::string text =
        fmt::format("{}{} AS ({})", duckdb_name(cte.name.text), columns, query(*cte.query));
    result += (i == 0 ? "WITH " : ", ") + text;
    with_ += (with_.empty() ? "" : ", ") + text;
    ctes_.push_back(cte.name.text);
  }
  if (!node.with.empty()) result += " ";
  if (const auto* selection = node.as<Select>()) {
    result += select(*selection);
  } else if (const auto* operation = node.as<SetOperation>()) {
    const char* word = operation->kind == SetKind::kUnion       ? "UNION"
                       : operation->kind == SetKind::kIntersect ? "INTERSECT"
                                                                : "EXCEPT";
    std::string left = query(*operation->left);
    const auto sides = last_sides_;  // those of the left side, if it has such
    std::string right = query(*operation->right);
    last_sides_ = sides;
    const bool by_name = operation->by_name && !align_names(left, right);
    if (!by_name) align_sides(*operation, left, right);
    result += fmt::format("({}) {}{}{} ({})", left, word, operation->all ? " ALL" : "",
                          by_name ? " BY NAME" : "", right);
    if (!last_sides_.second.empty()) last_sides_.first = result;
  } else if (const auto* values = node.as<ValuesRows>()) {
    result += "SELECT * FROM " + rows(*values);
  } else if (const auto* derived = node.as<Derived>()) {
    result += "SELECT * FROM (" + query(*derived->query) + ")";
  }
  const auto* selected = node.as<Select>();
  const auto written_out = last_select_;
  if (selected != nullptr && written_out) selected = written_out.get();
  scopes_.push_back(Scope{selected != nullptr ? last_from_ : "(" + result + ")"});
  scopes_.back().select = selected;
  scopes_.back().sees_names = selected != nullptr;
  if (node.order_by_all) result += " ORDER BY ALL ASC NULLS FIRST";
  if (!node.order_by.empty()) {
    ordered_ = selected;
    const std::string items = order(node.order_by);
    ordered_ = nullptr;
    // A set operation is ordered by its columns as they are, DISTINCT by what is selected.
    const bool plain = selected != nullptr && !selected->distinct;
    if (!plain && sorts_parts_) result = "SELECT * FROM (" + result + ")";
    sorts_parts_ = false;
    result += " ORDER BY " + items;
  }
  if (node.limit && is_negative(*node.limit)) {
    fail(invalid_argument("INVALID_LIMIT_LIKE_EXPRESSION.IS_NEGATIVE",
                          "LIMIT cannot be negative: leave it out for all rows"),
         node.limit->place);
  }
  if (node.limit) result += " LIMIT " + expr(node.limit);
  if (node.offset) result += " OFFSET " + expr(node.offset);
  scopes_.pop_back();
  ctes_.resize(scope);
  with_ = with_around;
  return result;
}

std::string DuckdbPrinter::select_item(const SelectItem& item, const Select& select) {
  if (const auto* all = item.expr->as<Star>()) {
    std::vector<std::string> first;
    if (all->qualifier.empty() && all->replaced.empty() && select.from)
      using_columns(*select.from, first);
    const auto excluded = [&](const std::string& name) {
      return std::any_of(all->except.begin(), all->except.end(),
                         [&](const Name& other) { return same_name(other.text, name); });
    };
    std::string result;
    Star rest = *all;
    for (const std::string& name : first) {
      if (excluded(name)) continue;
      result += duckdb_name(name) + ", ";
      rest.except.push_back(Name{name, {}});
    }
    return result + star(rest);
  }
  if (generator_call(*item.expr) != nullptr) return generator(*item.expr, false, item.aliases);
  if (item.aliases.size() > 1) {
    fail(invalid_argument("NUM_COLUMNS_MISMATCH",
                          "only a generator such as explode gives several columns"),
         item.aliases[1].place);
    return "";
  }
  const std::string name = item.aliases.empty() ? output_name(*item.expr) : item.aliases[0].text;
  return expr(item.expr) + " AS " + duckdb_name(name);
}

void DuckdbPrinter::collect_tables(const Relation& node) {
  if (const auto* joined = node.as<Join>(); joined != nullptr && !node.alias) {
    collect_tables(*joined->left);
    collect_tables(*joined->right);
  } else if (const auto* view = node.as<LateralView>()) {
    collect_tables(*view->input);
  } else if (const auto* derived = node.as<Derived>();
             derived != nullptr && node.column_aliases.empty()) {
    for (std::string& name : doubles_of(*derived->query))
      doubles_.emplace_back(node.alias ? node.alias->text : "", std::move(name));
  } else if (const auto* use = node.as<TableUse>(); use != nullptr && !node.alias) {
    if (use->name.parts.size() > 1) tables_.push_back(use->name);
  }
}

std::string DuckdbPrinter::select(const Select& given) {
  const size_t scope = tables_.size();
  // Names of a subquery are those of its own FROM clause first.
  const auto doubles_around = std::exchange(doubles_, {});
  if (given.from) collect_tables(*given.from);
  const std::string from = given.from ? relation(*given.from) : "";
  scopes_.push_back(Scope{from});
  const auto written_out = with_frame_items(given);
  const Select& selection = written_out ? *written_out : given;
  scopes_.back().select = &selection;
  const Name* generates = nullptr;
  std::string result = selection.distinct ? "SELECT DISTINCT " : "SELECT ";
  for (size_t i = 0; i < selection.items.size(); ++i) {
    const SelectItem& item = selection.items[i];
    result += (i == 0 ? "" : ", ") + select_item(item, selection);
    const Call* generated = generator_call(*item.expr);
    if (generated == nullptr) continue;
    if (generates != nullptr) {
      fail(invalid_argument("UNSUPPORTED_GENERATOR.MULTI_GENERATOR",
                            "SELECT has two generators, {} and {}: put one of them into LATERAL "
                            "VIEW, as in FROM t LATERAL VIEW {}(...) v AS c",
                            generates->text, generated->name.text, generated->name.text),
           item.expr->place);
    }
    generates = &generated->name;
  }
  if (selection.from) result += " FROM " + from;
  if (selection.where) result += " WHERE " + filter(selection.where);
  if (selection.group_by_all) result += " GROUP BY ALL";
  if (!selection.group_by.empty() || !selection.groupings.empty())
    result += " GROUP BY " + group_by(selection);
  scopes_.back().sees_names = true;
  if (selection.having) result += " HAVING " + filter(selection.having);
  for (size_t i = 0; i < selection.windows.size(); ++i) {
    const NamedWindow& named = selection.windows[i];
    result += fmt::format("{}{} AS {}", i == 0 ? " WINDOW " : ", ", duckdb_name(named.name.text),
                          window(named.spec));
  }
  if (selection.qualify) result += " QUALIFY " + filter(selection.qualify);
  scopes_.pop_back();
  last_from_ = from;
  last_select_ = written_out;
  tables_.resize(scope);
  doubles_ = doubles_around;
  return result;
}

std::string DuckdbPrinter::group_by(const Select& select) {
  if (select.groupings.empty()) return list(select.group_by);
  const auto key = [&](const ExprPtr& one) {
    const auto* place = one->as<Literal>();
    const bool number = place != nullptr && is_integer(place->type) && place->text.size() < 9;
    const auto index = number ? static_cast<size_t>(std::max(std::stoi(place->text), 0)) : 0;
    return expr(index > 0 && index <= select.items.size() ? select.items[index - 1].expr : one);
  };
  std::string result;
  for (const Grouping& grouping : select.groupings) {
    std::string sets;
    for (const auto& set : grouping.sets) {
      std::string keys;
      for (const ExprPtr& one : set) keys += (keys.empty() ? "" : ", ") + key(one);
      const bool alone = set.size() == 1;
      sets += fmt::format("{}{}", sets.empty() ? "" : ", ", alone ? keys : "(" + keys + ")");
    }
    const char* word = grouping.kind == GroupingKind::kRollup ? "ROLLUP "
                       : grouping.kind == GroupingKind::kCube ? "CUBE "
                                                              : "GROUPING SETS ";
    result += result.empty() ? "" : ", ";
    result += grouping.kind == GroupingKind::kPlain ? sets : fmt::format("{}({})", word, sets);
  }
  return result;
}

std::string DuckdbPrinter::rows(const ValuesRows& values) {
  if (values.rows.empty()) {
    fail_unsupported({}, "VALUES without rows", "");
    return "";
  }
  constexpr const char* kMismatch = "INVALID_INLINE_TABLE.INCOMPATIBLE_TYPES_IN_INLINE_TABLE";
  std::vector<std::vector<ExprPtr>> rows = values.rows;
  for (size_t c = 0; c < rows[0].size(); ++c) {
    std::vector<ExprPtr> column;
    for (const auto& row : rows) {
      if (c < row.size()) column.push_back(row[c]);
    }
    scopes_.push_back({});
    check_structs(column, kMismatch);
    // There may be many: types that do not show are not asked for.
    const bool asks = std::exchange(asks_, false);
    if (const auto type = merged_type(column, kMismatch, Texts::kStayTexts)) {
      for (auto& row : rows) {
        if (c < row.size()) row[c] = as_type(row[c], *type);
      }
    }
    asks_ = asks;
    scopes_.pop_back();
  }
  std::string result = "(VALUES ";
  for (size_t i = 0; i < values.rows.size(); ++i)
    result += (i == 0 ? "(" : ", (") + list(rows[i]) + ")";
  result += ") AS \"values\"(";
  for (size_t i = 0; i < values.rows[0].size(); ++i)
    result += fmt::format("{}\"col{}\"", i == 0 ? "" : ", ", i + 1);
  return result + ")";
}

std::string DuckdbPrinter::alias(const Relation& relation,
                                 const std::vector<std::string>& default_columns) {
  std::string columns;
  for (const Name& name : relation.column_aliases)
    columns += (columns.empty() ? "" : ", ") + duckdb_name(name.text);
  if (relation.column_aliases.empty()) {
    for (const std::string& name : default_columns)
      columns += (columns.empty() ? "" : ", ") + duckdb_name(name);
  }
  if (!relation.alias) return "";
  std::string result = " AS " + duckdb_name(relation.alias->text);
  if (!columns.empty()) result += "(" + columns + ")";
  return result;
}

bool DuckdbPrinter::is_cte(const TableUse& use) const {
  if (!use.function.empty() || use.stream || use.name.is_path || use.name.parts.size() != 1)
    return false;
  return std::any_of(ctes_.begin(), ctes_.end(),
                     [&](const std::string& name) { return same_name(name, use.name.parts[0]); });
}

std::string DuckdbPrinter::table(const Relation& node, const TableUse& use) {
  if (is_cte(use)) {
    if (use.version_as_of || use.timestamp_as_of) {
      fail_unsupported(use.place, "time travel of a common table expression", "");
    }
    return duckdb_name(use.name.parts[0]) + alias(node);
  }
  if (use.function == "range" && use.named_arguments.empty() && !use.arguments.empty() &&
      use.arguments.size() <= 3) {
    std::string args;
    for (const ExprPtr& argument : use.arguments) {
      args += fmt::format("{}CAST({} AS BIGINT)", args.empty() ? "" : ", ", expr(argument));
    }
    Relation named = node;
    if (!named.alias) named.alias = Name{"range", node.place};
    return "range(" + args + ")" + alias(named, {"id"});
  }
  bool known = false;
  const Function* function = find_function(use.function, use.arguments.size(), &known);
  if (function != nullptr && function->kind == FunctionKind::kGenerator) {
    Call call;
    call.name = Name{use.function, use.place};
    call.args = use.arguments;
    Relation named = node;
    if (!named.alias) named.alias = Name{use.function, node.place};
    const ExprPtr generator_expr = make_expr(std::move(call), use.place);
    const std::string inner = generator(*generator_expr, false, node.column_aliases);
    named.column_aliases.clear();
    return "(SELECT " + inner + ")" + alias(named);
  }
  Result<std::string> resolved = (*resolve_)(use);
  if (!resolved.ok()) {
    fail(resolved.error(), use.place);
    return "";
  }
  Relation named = node;
  // A table without alias can be named in expressions by its last part.
  if (!named.alias && use.function.empty() && !use.name.parts.empty() && !use.name.is_path) {
    named.alias = Name{use.name.parts.back(), use.place};
  } else if (!named.alias && !use.function.empty()) {
    named.alias = Name{use.function, use.place};
  }
  return *resolved + alias(named);
}

std::string DuckdbPrinter::join(const Join& node) {
  const bool nested = node.right->as<Join>() != nullptr || node.right->as<LateralView>() != nullptr;
  const std::string left = relation(*node.left);
  std::string right = relation(*node.right);
  if (nested && !node.right->alias) right = "(" + right + ")";
  JoinKind kind = node.kind;
  if (kind == JoinKind::kInner && !node.on && node.using_columns.empty() && !node.natural)
    kind = JoinKind::kCross;
  std::string result = fmt::format("{} {}{} {}{}", left, node.natural ? "NATURAL " : "",
                                   join_words(kind), node.lateral ? "LATERAL " : "", right);
  if (node.on) {
    scopes_.push_back(Scope{fmt::format("{} CROSS JOIN {}", left, right)});
    result += " ON " + filter(node.on);
    scopes_.pop_back();
  }
  if (node.lateral && kind == JoinKind::kLeft && !node.on) result += " ON true";
  if (!node.using_columns.empty()) {
    std::string names;
    for (const Name& name : node.using_columns)
      names += (names.empty() ? "" : ", ") + duckdb_name(name.text);
    result += " USING (" + names + ")";
  }
  return result;
}

std::string DuckdbPrinter::generator(const Expr& node, bool outer,
                                     const std::vector<Name>& aliases) {
  const Call& call = *generator_call(node);
  std::string name = call.name.text;
  if (name.size() > 6 && name.substr(name.size() - 6) == "_outer") {
    outer = true;
    name.resize(name.size() - 6);
  }
  const auto column = [&](size_t i, const char* otherwise) {
    return duckdb_name(i < aliases.size() ? aliases[i].text : otherwise);
  };
  const auto expect = [&](size_t least, size_t most) {
    if (aliases.empty() || (aliases.size() >= least && aliases.size() <= most)) return true;
    fail(invalid_argument("UDTF_ALIAS_NUMBER_MISMATCH",
                          "{} gives {} column{}, but {} aliases are given", call.name.text, least,
                          least == 1 ? "" : "s", aliases.size()),
         node.place);
    return false;
  };
  const std::string value = expr(call.args[0]);
  const DataType type = type_of(*call.args[0]);
  const bool takes = type.id == TypeId::kArray || type.id == TypeId::kVoid ||
                     (type.id == TypeId::kMap && name == "explode");
  if (!takes) {
    fail(invalid_argument("DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE", "{} takes {}, but {} is {}",
                          call.name.text, name == "explode" ? "an ARRAY or a MAP" : "an ARRAY",
                          output_name(*call.args[0]), to_sql(type)),
         call.args[0]->place);
    return "";
  }
  const bool map = name == "explode" &&
                   (type.id == TypeId::kMap || (aliases.size() == 2 && type.id != TypeId::kArray));
  if (map) {
    if (!expect(2, 2)) return "";
    const std::string keys = fmt::format("map_keys({})", value);
    const std::string values = fmt::format("map_values({})", value);
    const auto rows = [&](const std::string& items) {
      return outer ? fmt::format("CASE WHEN len({0}) > 0 THEN {0} ELSE [NULL] END", items) : items;
    };
    return fmt::format("unnest({}) AS {}, unnest({}) AS {}", rows(keys), column(0, "key"),
                       rows(values), column(1, "value"));
  }
  const std::string rows =
      outer ? fmt::format("CASE WHEN len({0}) > 0 THEN {0} ELSE [NULL] END", value) : value;
  if (name == "explode") {
    if (!expect(1, 1)) return "";
    return fmt::format("unnest({}) AS {}", rows, column(0, "col"));
  }
  if (name == "posexplode") {
    if (!expect(2, 2)) return "";
    const std::string positions = outer
                                      ? fmt::format(
                                            "CASE WHEN len({0}) > 0 THEN CAST(range(0, len({0})) "
                                            "AS INTEGER[]) ELSE [NULL] END",
                                            value)
                                      : fmt::format("CAST(range(0, len({})) AS INTEGER[])", value);
    return fmt::format("unnest({}) AS {}, unnest({}) AS {}", positions, column(0, "pos"), rows,
                       column(1, "col"));
  }
  // inline: the struct's fields become columns
  if (!aliases.empty()) {
    fail_unsupported(node.place, "column aliases of inline",
                     "name the struct's fields with named_struct");
    return "";
  }
  return fmt::format("unnest({}, max_depth := 2)", rows);
}

std::string DuckdbPrinter::lateral_view(const Relation& node, const LateralView& view) {
  if (generator_call(*view.generator) == nullptr) {
    fail_unsupported(view.generator->place,
                     "LATERAL VIEW of anything but explode, posexplode and inline", "");
    return "";
  }
  const std::string input = relation(*view.input);
  scopes_.push_back(Scope{input});
  const std::string columns = generator(*view.generator, view.outer, node.column_aliases);
  scopes_.pop_back();
  std::string result = fmt::format("{} CROSS JOIN LATERAL (SELECT {})", input, columns);
  if (node.alias) result += " AS " + duckdb_name(node.alias->text);
  return result;
}

std::string DuckdbPrinter::relation(const Relation& node) {
  if (error_) return "";
  if (const auto* use = node.as<TableUse>()) return table(node, *use);
  if (const auto* derived = node.as<Derived>())
    return "(" + query(*derived->query) + ")" + alias(node);
  if (const auto* values = node.as<ValuesRows>()) {
    std::string text = rows(*values);
    if (!node.alias) return text;
    if (node.column_aliases.empty()) return "(SELECT * FROM " + text + ")" + alias(node);
    if (node.column_aliases.size() != values->rows[0].size()) {
      fail(invalid_argument("NUM_TABLE_VALUE_ALIASES_MISMATCH",
                            "the alias {} names {} columns, but VALUES has {}", node.alias->text,
                            node.column_aliases.size(), values->rows[0].size()),
           node.alias->place);
      return "";
    }
    return "(SELECT * FROM " + text + ")" + alias(node);
  }
  if (const auto* joined = node.as<Join>()) return join(*joined);
  if (const auto* view = node.as<LateralView>()) return lateral_view(node, *view);
  return "";
}

Result<std::string> print_duckdb(const Query& query, const Resolve& resolve,
                                 const PrintOptions& options) {
  return DuckdbPrinter(&resolve, options).whole(query);
}

Result<std::string> print_duckdb(const Expr& expr, const PrintOptions& options) {
  return DuckdbPrinter(nullptr, options).whole(expr);
}

Result<std::string> print_duckdb(const Expr& expr, const Resolve& resolve,
                                 const PrintOptions& options) {
  return DuckdbPrinter(&resolve, options).whole(expr);
}

}  // namespace strandline::sql
