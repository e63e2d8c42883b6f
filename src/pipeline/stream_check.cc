#include "pipeline/stream_check.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"

namespace strandline::pipeline {
namespace {

const std::set<std::string>& aggregates() {
  static const std::set<std::string> names = {"any",
                                              "any_value",
                                              "approx_count_distinct",
                                              "approx_percentile",
                                              "array_agg",
                                              "avg",
                                              "bit_and",
                                              "bit_or",
                                              "bit_xor",
                                              "bool_and",
                                              "bool_or",
                                              "collect_list",
                                              "collect_set",
                                              "corr",
                                              "count",
                                              "count_if",
                                              "covar_pop",
                                              "covar_samp",
                                              "every",
                                              "first",
                                              "first_value",
                                              "kurtosis",
                                              "last",
                                              "last_value",
                                              "listagg",
                                              "max",
                                              "max_by",
                                              "mean",
                                              "median",
                                              "min",
                                              "min_by",
                                              "mode",
                                              "percentile",
                                              "percentile_approx",
                                              "regr_slope",
                                              "skewness",
                                              "some",
                                              "std",
                                              "stddev",
                                              "stddev_pop",
                                              "stddev_samp",
                                              "string_agg",
                                              "sum",
                                              "try_avg",
                                              "try_sum",
                                              "var_pop",
                                              "var_samp",
                                              "variance",
                                              "histogram_numeric",
                                              "grouping_id",
                                              "percentile_cont",
                                              "percentile_disc"};
  return names;
}

class Checker {
 public:
  Checker(const IsStreamingView& is_streaming_view, std::vector<Error>* errors)
      : is_streaming_view_(is_streaming_view), errors_(errors) {}

  bool query(const sql::Query& query) {
    const auto outer = ctes_;
    for (const auto& cte : query.with) {
      const bool streaming = this->query(*cte.query);
      ctes_[fold_name(cte.name.text)] = streaming;
    }
    bool streaming = false;
    if (const auto* select = query.as<sql::Select>()) {
      streaming = this->select(*select, query.place);
    } else if (const auto* set = query.as<sql::SetOperation>()) {
      streaming = set_operation(*set, query.place);
    } else if (const auto* derived = query.as<sql::Derived>()) {
      streaming = this->query(*derived->query);
    }
    if (streaming) {
      if (!query.order_by.empty() || query.order_by_all) refuse("ORDER BY", query.place);
      if (query.limit || query.offset) refuse("LIMIT", query.place);
    }
    ctes_ = outer;
    return streaming;
  }

 private:
  bool select(const sql::Select& select, const SourcePlace& place) {
    const bool streaming = select.from && relation(*select.from);
    for (const auto& item : select.items) expression(item.expr, streaming);
    expression(select.where, streaming);
    expression(select.having, false);
    expression(select.qualify, false);
    for (const auto& expr : select.group_by) expression(expr, false);
    if (!streaming) return false;
    if (select.distinct) refuse("SELECT DISTINCT", place);
    if (!select.group_by.empty() || select.group_by_all) {
      refuse("GROUP BY", place);
    } else if (select.having) {
      refuse("HAVING", place);
    }
    if (select.qualify) refuse("QUALIFY", place);
    return true;
  }

  bool set_operation(const sql::SetOperation& set, const SourcePlace& place) {
    const bool left = query(*set.left);
    const bool right = query(*set.right);
    if (!left && !right) return false;
    if (set.kind == sql::SetKind::kIntersect) {
      refuse("INTERSECT", place);
    } else if (set.kind == sql::SetKind::kExcept) {
      refuse("EXCEPT", place);
    } else if (!set.all) {
      refuse("UNION without ALL", place);
    } else if (left != right) {
      refuse("UNION ALL with a query that is not a stream", place);
    }
    return true;
  }

  bool relation(const sql::Relation& relation) {
    if (const auto* use = relation.as<sql::TableUse>()) return table(*use);
    if (const auto* derived = relation.as<sql::Derived>()) return query(*derived->query);
    if (const auto* view = relation.as<sql::LateralView>()) return this->relation(*view->input);
    if (const auto* join = relation.as<sql::Join>()) {
      const bool left = this->relation(*join->left);
      const bool right = this->relation(*join->right);
      expression(join->on, false);
      if (left && right) {
        refuse("a join of two streams", relation.place);
        return true;
      }
      using sql::JoinKind;
      const bool keeps_left = join->kind == JoinKind::kInner || join->kind == JoinKind::kCross ||
                              join->kind == JoinKind::kLeft || join->kind == JoinKind::kLeftSemi ||
                              join->kind == JoinKind::kLeftAnti;
      const bool keeps_right = join->kind == JoinKind::kInner || join->kind == JoinKind::kCross ||
                               join->kind == JoinKind::kRight;
      if ((left && !keeps_left) || (right && !keeps_right)) {
        refuse("an outer, semi or anti join that keeps rows of the table without a stream's row",
               relation.place);
      }
      return left || right;
    }
    return false;
  }

  bool table(const sql::TableUse& use) {
    if (use.stream) return true;
    if (use.function.empty() && use.name.parts.size() == 1 && !use.name.is_path) {
      const auto cte = ctes_.find(fold_name(use.name.parts[0]));
      if (cte != ctes_.end()) return cte->second;
    }
    return is_streaming_view_(use);
  }

  // over_stream: the expression is computed over a stream's rows.
  void expression(const sql::ExprPtr& expr, bool over_stream) {
    if (!expr) return;
    if (const auto* call = expr->as<sql::Call>(); call != nullptr && over_stream) {
      if (call->over) {
        refuse("a window function", expr->place);
      } else if (aggregates().count(call->name.text) > 0) {
        refuse("the aggregate " + call->name.text + "()", expr->place);
      }
    }
    const sql::Query* inside = nullptr;
    if (const auto* in = expr->as<sql::In>()) inside = in->query.get();
    if (const auto* exists = expr->as<sql::Exists>()) inside = exists->query.get();
    if (const auto* scalar = expr->as<sql::ScalarSubquery>()) inside = scalar->query.get();
    if (inside != nullptr && query(*inside)) refuse("a stream in a subquery", expr->place);
    sql::for_each_child(*expr, [&](const sql::ExprPtr& child) { expression(child, over_stream); });
  }

  void refuse(const std::string& what, const SourcePlace& place) {
    Error error =
        unsupported("STREAMING_OPERATION",
                    "{} is not possible in a query over a stream, which sees the rows of one "
                    "batch at a time: use projections, filters, explode, UNION ALL and joins "
                    "with a table, or read the table without STREAM in a materialized view",
                    what);
    error.place = place;
    errors_->push_back(std::move(error));
  }

  const IsStreamingView& is_streaming_view_;
  std::vector<Error>* errors_;
  std::map<std::string, bool> ctes_;
};

// A walk over an expression that has one row at a time.
void refuse_beyond_row(const sql::Expr& expr, const char* clause, const SourcePlace& place,
                       std::vector<Error>* errors) {
  static const std::set<std::string> generators = {
      "explode", "explode_outer", "posexplode", "posexplode_outer",
      "inline",  "inline_outer",  "stack",      "json_tuple"};
  std::string what;
  if (const auto* call = expr.as<sql::Call>()) {
    if (call->over) {
      what = "the window function " + call->name.text + "()";
    } else if (aggregates().count(call->name.text) > 0) {
      what = "the aggregate " + call->name.text + "()";
    } else if (generators.count(call->name.text) > 0) {
      what = call->name.text + "(), which makes rows,";
    }
  } else if (const auto* in = expr.as<sql::In>(); in != nullptr && in->query) {
    what = "a subquery";
  } else if (expr.as<sql::Exists>() != nullptr || expr.as<sql::ScalarSubquery>() != nullptr) {
    what = "a subquery";
  }
  if (!what.empty()) {
    Error error = unsupported("STREAMING_OPERATION",
                              "{} is not possible in {}, which looks at one event at a time: its "
                              "value must depend on the columns of the event alone",
                              what, clause);
    error.place = expr.place.line > 0 ? expr.place : place;
    errors->push_back(std::move(error));
    return;
  }
  sql::for_each_child(
      expr, [&](const sql::ExprPtr& child) { refuse_beyond_row(*child, clause, place, errors); });
}

}  // namespace

void check_row_expression(const sql::Expr& expr, const char* clause, const SourcePlace& place,
                          std::vector<Error>* errors) {
  refuse_beyond_row(expr, clause, place, errors);
}

bool check_streaming(const sql::Query& query, const IsStreamingView& is_streaming_view,
                     std::vector<Error>* errors) {
  return Checker(is_streaming_view, errors).query(query);
}

}  // namespace strandline::pipeline
