#include "pipeline/view_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "sql/clock_calls.h"
#include "sql/duckdb_printer.h"
#include "sql/frame_columns.h"
#include "sql/functions.h"

namespace strandline::pipeline {
namespace {

// What an expression has that goes beyond its row.
struct Contents {
  bool aggregate = false;
  bool window = false;
  bool subquery = false;
};

void look_into(const sql::ExprPtr& expr, Contents* found) {
  if (!expr) return;
  const auto* const in = expr->as<sql::In>();
  found->subquery = found->subquery || (in != nullptr && in->query) ||
                    expr->as<sql::Exists>() != nullptr ||
                    expr->as<sql::ScalarSubquery>() != nullptr;
  if (const auto* const call = expr->as<sql::Call>()) {
    bool known = false;
    const auto* const function = sql::find_function(call->name.text, call->args.size(), &known);
    const bool is_aggregate =
        function != nullptr && function->kind == sql::FunctionKind::kAggregate;
    found->window = found->window || call->over.has_value() ||
                    (function != nullptr && function->kind == sql::FunctionKind::kWindow);
    found->aggregate = found->aggregate || (is_aggregate && !call->over);
  }
  sql::for_each_child(*expr, [&](const sql::ExprPtr& child) { look_into(child, found); });
}

Contents contents(const sql::ExprPtr& expr) {
  Contents found;
  look_into(expr, &found);
  return found;
}

class Reader {
 public:
  explicit Reader(const FlowSources& sources) : sources_(sources) {}

  // What keeps a result from being the sum of what the rows of each source bring; empty: nothing.
  std::string of_query(const sql::Query& query);
  std::string of_relation(const sql::RelationPtr& relation);
  std::string of_expression(const sql::ExprPtr& expr, bool may_aggregate = false);
  // Of what stands around SELECT.
  std::string of_frame(const sql::Query& query, bool may_distinct = false);
  void enter(const sql::Query& query) {
    ctes_.insert(ctes_.end(), query.with.begin(), query.with.end());
  }

 private:
  std::string of_use(const sql::TableUse& use);

  const FlowSources& sources_;
  std::vector<sql::Cte> ctes_;  // in scope
  std::set<size_t> seen_;       // sources
};

std::string Reader::of_expression(const sql::ExprPtr& expr, bool may_aggregate) {
  const Contents found = contents(expr);
  if (found.subquery) return "it has a subquery in an expression";
  if (found.window) return "it has a window function";
  if (found.aggregate && !may_aggregate) return "it aggregates what it then reads on";
  return {};
}

std::string Reader::of_use(const sql::TableUse& use) {
  if (use.function.empty() && use.name.parts.size() == 1 && !use.name.is_path) {
    for (size_t i = ctes_.size(); i-- > 0;) {
      if (!same_name(ctes_[i].name.text, use.name.parts[0])) continue;
      // Its own query sees those before it.
      std::vector<sql::Cte> later(ctes_.begin() + static_cast<long>(i), ctes_.end());
      ctes_.resize(i);
      std::string why = of_query(*later.front().query);
      ctes_.insert(ctes_.end(), later.begin(), later.end());
      return why;
    }
  }
  if (const auto source = sources_.source_of(use)) {
    if (!seen_.insert(*source).second)
      return fmt::format("it reads {} through a view or WITH more than once",
                         sources_.sources()[*source].shown);
    if (sources_.sources()[*source].version)
      return fmt::format("it reads a fixed version of {}", sources_.sources()[*source].shown);
    return {};
  }
  if (const auto* const view = sources_.view_of(use)) {
    std::vector<sql::Cte> outside;
    outside.swap(ctes_);
    std::string why = of_query(*view);
    outside.swap(ctes_);
    return why;
  }
  return use.function == "range" ? "it reads range()" : "it reads what is no table";
}

std::string Reader::of_relation(const sql::RelationPtr& relation) {
  if (relation == nullptr) return "it has a SELECT without FROM";
  if (const auto* const use = relation->as<sql::TableUse>()) return of_use(*use);
  if (const auto* const derived = relation->as<sql::Derived>()) return of_query(*derived->query);
  if (const auto* const join = relation->as<sql::Join>()) {
    if (join->kind != sql::JoinKind::kInner && join->kind != sql::JoinKind::kCross)
      return "it has a join that is no inner join";
    if (join->lateral) return "it has a LATERAL join";
    if (join->natural) return "it has a NATURAL join";
    if (auto why = of_relation(join->left); !why.empty()) return why;
    if (auto why = of_relation(join->right); !why.empty()) return why;
    return of_expression(join->on);
  }
  if (const auto* const view = relation->as<sql::LateralView>()) {
    if (auto why = of_relation(view->input); !why.empty()) return why;
    return of_expression(view->generator);
  }
  return "it has VALUES";
}

std::string Reader::of_frame(const sql::Query& query, bool may_distinct) {
  if (query.limit || query.offset) return "it has LIMIT or OFFSET";
  const auto* const select = query.as<sql::Select>();
  if (select == nullptr) {
    return query.as<sql::SetOperation>() != nullptr ? "it has a set operation such as UNION"
                                                    : "it is no plain SELECT";
  }
  if (select->distinct && !may_distinct) return "it has DISTINCT";
  if (select->qualify) return "it has QUALIFY";
  return {};
}

std::string Reader::of_query(const sql::Query& query) {
  if (const auto* const derived = query.as<sql::Derived>();
      derived != nullptr && !query.limit && !query.offset) {
    return of_query(*derived->query);
  }
  if (auto why = of_frame(query); !why.empty()) return why;
  const auto& select = *query.as<sql::Select>();
  if (!select.group_by.empty() || select.group_by_all || select.having)
    return "it groups what it then reads on";
  const size_t outside = ctes_.size();
  enter(query);
  std::string why = of_relation(select.from);
  if (why.empty()) why = of_expression(select.where);
  for (const auto& item : select.items) {
    if (why.empty()) why = of_expression(item.expr);
  }
  ctes_.resize(outside);
  return why;
}

std::string name_of(const sql::SelectItem& item) {
  return item.aliases.empty() ? sql::output_name(*item.expr) : item.aliases[0].text;
}

// Whether an item reads another item of that SELECT by its alias.
bool reads_alias(const sql::SelectItem& item, const sql::Select& select) {
  for (const auto& column : sql::columns_read(*item.expr)) {
    for (const auto& other : select.items) {
      if (&other == &item || other.aliases.size() != 1) continue;
      if (!same_name(other.aliases[0].text, column.text)) continue;
      const auto plain = sql::plain_column(*other.expr);
      if (!plain || !same_name(plain->text, column.text)) return true;
    }
  }
  return false;
}

ViewShape other(std::string why) {
  ViewShape shape;
  shape.why = std::move(why);
  return shape;
}

// A query that groups: its groups are known by the columns of the result that are no aggregates.
ViewShape grouped(const sql::Query& query, const sql::Select& select, Reader& reader) {
  if (!select.groupings.empty()) return other("it groups by several sets of columns at once");
  reader.enter(query);
  if (auto why = reader.of_relation(select.from); !why.empty()) return other(std::move(why));
  if (auto why = reader.of_expression(select.where); !why.empty()) return other(std::move(why));
  if (auto why = reader.of_expression(select.having, true); !why.empty())
    return other(std::move(why));
  for (const auto& key : select.group_by) {
    if (auto why = reader.of_expression(key); !why.empty()) return other(std::move(why));
  }
  ViewShape shape;
  sql::Select keys;
  std::vector<sql::ExprPtr> conditions;
  bool countable = true;
  for (const auto& item : select.items) {
    if (sql::gives_all_columns(*item.expr))
      return other(select.distinct ? "it has DISTINCT with *" : "it groups by *");
    if (auto why = reader.of_expression(item.expr, true); !why.empty())
      return other(std::move(why));
    ++shape.columns;
    countable = countable && item.aliases.size() <= 1;
    if (contents(item.expr).aggregate || item.aliases.size() > 1) continue;
    if (sql::columns_read(*item.expr).empty() || reads_alias(item, select)) continue;
    const std::string column = fmt::format("{}{}", kGroupColumn, shape.group_columns.size());
    shape.group_columns.push_back({name_of(item), shape.columns - 1});
    keys.items.push_back({item.expr, {sql::Name{column, {}}}});
    conditions.push_back(sql::binary(sql::BinaryOp::kNullSafeEqual,
                                     sql::make_expr(sql::ColumnRef{{kGroupsTable, column}}),
                                     item.expr));
  }
  if (shape.group_columns.empty()) return other("no column of its result tells its groups apart");
  shape.kind = ViewShape::Kind::kGroups;
  if (!countable) shape.columns = 0;
  keys.from = select.from;
  keys.where = select.where;
  sql::Query groups;
  groups.with = query.with;
  groups.place = query.place;
  groups.body = std::move(keys);
  shape.groups = std::make_shared<const sql::Query>(std::move(groups));

  sql::Select touched;
  touched.items.push_back({sql::integer_literal(1), {}});
  sql::Relation relation;
  sql::TableUse use;
  use.name.parts = {kGroupsTable};
  relation.node = use;
  touched.from = std::make_shared<const sql::Relation>(std::move(relation));
  touched.where = sql::all_of(conditions);
  sql::Query subquery;
  subquery.place = query.place;
  subquery.body = std::move(touched);
  const auto exists =
      sql::make_expr(sql::Exists{std::make_shared<const sql::Query>(std::move(subquery))});
  sql::Select narrowed = select;
  narrowed.where = select.where ? sql::all_of({select.where, exists}) : exists;
  sql::Query of_groups = query;
  of_groups.body = std::move(narrowed);
  shape.of_groups = std::make_shared<const sql::Query>(std::move(of_groups));
  return shape;
}

// The names by which the sources in FROM are known, by source; false where one is not there by
// itself.
bool find_names(const sql::RelationPtr& relation, const FlowSources& sources,
                std::map<size_t, std::string>* names) {
  if (const auto* const join = relation->as<sql::Join>()) {
    return !relation->alias && find_names(join->left, sources, names) &&
           find_names(join->right, sources, names);
  }
  const auto* const use = relation->as<sql::TableUse>();
  if (use == nullptr || !relation->column_aliases.empty()) return false;
  const auto source = sources.source_of(*use);
  if (!source) return false;
  std::string& name = (*names)[*source];
  if (relation->alias) {
    name = relation->alias->text;
  } else if (!use->name.is_path && !use->name.parts.empty()) {
    name = use->name.parts.back();
  }
  return !name.empty();
}

// Also through views.
void find_sources(const sql::Query& query, const FlowSources& sources, std::set<size_t>* found) {
  for (const auto& use : sql::table_uses(query)) {
    if (const auto source = sources.source_of(use)) found->insert(*source);
    if (const auto* const view = sources.view_of(use)) find_sources(*view, sources, found);
  }
}

ViewShape::Part part_of(const sql::QueryPtr& query, const FlowSources& sources) {
  ViewShape::Part part;
  part.query = query;
  std::set<size_t> found;
  find_sources(*query, sources, &found);
  part.sources.assign(found.begin(), found.end());
  const auto& select = *query->as<sql::Select>();
  part.has_star =
      std::any_of(select.items.begin(), select.items.end(),
                  [](const sql::SelectItem& item) { return sql::gives_all_columns(*item.expr); });
  std::map<size_t, std::string> names;
  const bool named = query->with.empty() && find_names(select.from, sources, &names);
  for (const size_t source : part.sources) part.row_names.push_back(named ? names[source] : "");
  return part;
}

// The SELECTs that UNION ALL joins, each with the common table expressions around it; false where
// two of these have one name.
bool split_union(const sql::Query& query, std::vector<sql::Cte> with,
                 std::vector<sql::QueryPtr>* selects) {
  for (const auto& cte : query.with) {
    if (std::any_of(with.begin(), with.end(), [&](const sql::Cte& other) {
          return same_name(other.name.text, cte.name.text);
        })) {
      return false;
    }
    with.push_back(cte);
  }
  const bool cut = query.limit || query.offset;
  if (const auto* const derived = query.as<sql::Derived>(); derived != nullptr && !cut)
    return split_union(*derived->query, with, selects);
  if (const auto* const sides = query.as<sql::SetOperation>();
      sides != nullptr && !cut && sides->kind == sql::SetKind::kUnion && sides->all &&
      !sides->by_name) {
    return split_union(*sides->left, with, selects) && split_union(*sides->right, with, selects);
  }
  sql::Query select = query;
  select.with = std::move(with);
  selects->push_back(std::make_shared<const sql::Query>(std::move(select)));
  return true;
}

}  // namespace

std::string why_it_changes_by_itself(const sql::Query& query, const FlowSources& sources) {
  if (const auto names = sql::nondeterministic_calls(query); !names.empty())
    return fmt::format("it calls {}()", names.front().text);
  if (const auto names = sql::clock_calls(query); !names.empty())
    return fmt::format("it asks for the time ({})", names.front().text);
  for (const auto& use : sql::table_uses(query)) {
    const auto* const view = sources.view_of(use);
    if (view == nullptr) continue;
    if (auto why = why_it_changes_by_itself(*view, sources); !why.empty()) return why;
  }
  return {};
}

ViewShape shape_of(const sql::Query& query, const FlowSources& sources) {
  if (auto why = why_it_changes_by_itself(query, sources); !why.empty())
    return other(std::move(why));
  for (const auto& source : sources.sources()) {
    if (source.kind == SourceKind::kChanges)
      return other(fmt::format("it reads a range of the changes of {}", source.shown));
    if (source.kind != SourceKind::kTable)
      return other(fmt::format("it reads {}, which is no Delta table", source.shown));
  }
  if (sources.sources().empty()) return other("it reads no table");
  if (!sources.expecting_views().empty()) return other("it reads a view with expectations");
  Reader reader(sources);
  std::vector<sql::QueryPtr> selects;
  if (!split_union(query, {}, &selects)) return other("it has a set operation such as UNION");
  if (selects.size() == 1) {
    const sql::Query& only = *selects.front();
    if (auto why = reader.of_frame(only, true); !why.empty()) return other(std::move(why));
    const auto& select = *only.as<sql::Select>();
    bool aggregates = !select.group_by.empty() || select.group_by_all || select.having;
    for (const auto& item : select.items) {
      aggregates = aggregates || contents(item.expr).aggregate;
    }
    // DISTINCT groups by all columns.
    if (aggregates != select.distinct) return grouped(only, select, reader);
  }
  ViewShape shape;
  for (const auto& select : selects) {
    if (auto why = reader.of_query(*select); !why.empty()) return other(std::move(why));
    shape.parts.push_back(part_of(select, sources));
  }
  shape.kind = ViewShape::Kind::kRows;
  return shape;
}

sql::QueryPtr with_columns(const sql::Query& query,
                           const std::vector<std::vector<std::string>>& columns) {
  sql::Query more = query;
  sql::Select select = *query.as<sql::Select>();
  for (const auto& column : columns) {
    select.items.push_back(
        {sql::make_expr(sql::ColumnRef{column}), {sql::Name{column.back() + "_of_view", {}}}});
  }
  more.body = std::move(select);
  return std::make_shared<const sql::Query>(std::move(more));
}

}  // namespace strandline::pipeline
