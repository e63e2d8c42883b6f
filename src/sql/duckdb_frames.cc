// What Python's DataFrames leave to the time when the columns and their types are known.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "sql/duckdb_core.h"
#include "sql/frame_columns.h"

namespace strandline::sql {
namespace {

// Which values a column takes in fillna() and replace(): PySpark leaves others alone.
enum class Family { kNone, kNumber, kText, kTruth };
Family family_of(const DataType& type) {
  if (type.id == TypeId::kString) return Family::kText;
  if (type.id == TypeId::kBoolean) return Family::kTruth;
  return is_number(type.id) ? Family::kNumber : Family::kNone;
}

bool has_nan(const DataType& type) {
  return type.id == TypeId::kFloat || type.id == TypeId::kDouble;
}

}  // namespace

std::shared_ptr<const Select> DuckdbPrinter::with_frame_items(const Select& select) {
  if (std::none_of(select.items.begin(), select.items.end(),
                   [](const SelectItem& item) { return is_frame_item(*item.expr); })) {
    return nullptr;
  }
  if (!options_.describe) {
    fail_unsupported(select.items.front().expr->place, "a DataFrame's columns in this place",
                     "name them with select()");
    return nullptr;
  }
  const std::string all = select_item(SelectItem{make_expr(Star{}), {}}, select);
  const auto known = described(fmt::format("SELECT {} FROM {}", all, scopes_.back().from));
  std::vector<std::string> columns;
  if (known) {
    for (const Field& field : *known) columns.push_back(field.name);
  }
  auto result = std::make_shared<Select>(select);
  result->items.clear();
  for (const SelectItem& item : select.items) {
    if (!is_frame_item(*item.expr)) {
      result->items.push_back(item);
    } else if (!known) {
      // FROM has a mistake, which the engine tells; where it has none, this column is not there.
      result->items.push_back({sql::column("__strandline_columns"), {}});
    } else if (auto items = frame_items(*item.expr, columns); items.ok()) {
      result->items.insert(result->items.end(), items->begin(), items->end());
    } else {
      fail(items.error(), item.expr->place);
      return nullptr;
    }
  }
  return result;
}

// __strandline_filled(column, value), __strandline_replaced(column, old, new, …): the column with
// other values, if it is of their family; __strandline_present(column, …) and
// __strandline_missing(column, …): how many have a value that is neither null nor NaN, or none.
std::optional<std::string> DuckdbPrinter::frame_value(const Call& call) {
  const std::string& name = call.name.text;
  if (!name.starts_with("__strandline_") || call.args.empty()) return std::nullopt;
  const ExprPtr& first = call.args[0];
  if (name == "__strandline_present" || name == "__strandline_missing") {
    const bool present = name == "__strandline_present";
    std::string sum;
    for (const ExprPtr& one : call.args) {
      const std::string value = expr(one);
      sum += fmt::format("{}CASE WHEN {} IS NULL{} THEN {} ELSE {} END", sum.empty() ? "" : " + ",
                         value, has_nan(type_of(*one)) ? fmt::format(" OR isnan({})", value) : "",
                         present ? 0 : 1, present ? 1 : 0);
    }
    return "(" + sum + ")";
  }
  const DataType type = type_of(*first);
  const Family family = family_of(type);
  const auto fits = [&](const ExprPtr& value) {
    return family != Family::kNone && family == family_of(type_of(*value));
  };
  if (name == "__strandline_filled" && call.args.size() == 2) {
    if (!fits(call.args[1])) return expr(first);
    const auto typed = [&](const ExprPtr& value) {
      return make_expr(Cast{value, type}, first->place);
    };
    const ExprPtr old = has_nan(type) ? typed(sql::call("nanvl", {first, null_literal()})) : first;
    return expr(sql::call("coalesce", {old, typed(call.args[1])}));
  }
  if (name == "__strandline_replaced") {
    Case choice;
    for (size_t i = 1; i + 1 < call.args.size(); i += 2) {
      if (!fits(call.args[i])) continue;
      choice.branches.emplace_back(sql::binary(BinaryOp::kEqual, first, call.args[i]),
                                   make_expr(Cast{call.args[i + 1], type}, first->place));
    }
    if (choice.branches.empty()) return expr(first);
    choice.otherwise = first;
    return expr(make_expr(std::move(choice), first->place));
  }
  return std::nullopt;
}

}  // namespace strandline::sql
