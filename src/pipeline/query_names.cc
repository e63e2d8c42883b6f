#include "pipeline/query_names.h"

#include <strandline/suggest.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/data_type.h"
#include "base/error.h"
#include "sql/duckdb_printer.h"
#include "sql/frame_columns.h"

namespace strandline::pipeline {
namespace {

constexpr const char* kMetadata = "_metadata";

class Reader {
 public:
  Reader(const ColumnsOf& columns_of, std::vector<Error>* errors)
      : columns_of_(columns_of), errors_(errors) {}

  OutputColumns query(const sql::Query& query) {
    const size_t scope = ctes_.size();
    for (const auto& cte : query.with) {
      auto columns = named(this->query(*cte.query), cte.columns);
      ctes_.emplace_back(cte.name.text, std::move(columns));
    }
    OutputColumns out;
    if (const auto* select = query.as<sql::Select>()) {
      out = this->select(*select);
    } else if (const auto* set = query.as<sql::SetOperation>()) {
      out = this->query(*set->left);
      this->query(*set->right);
      if (set->by_name) out.reset();
    } else if (const auto* derived = query.as<sql::Derived>()) {
      out = this->query(*derived->query);
    }
    ctes_.erase(ctes_.begin() + static_cast<long>(scope), ctes_.end());
    return out;
  }

 private:
  static OutputColumns named(OutputColumns columns, const std::vector<sql::Name>& names) {
    if (names.empty()) return columns;
    std::vector<OutputColumn> out;
    out.reserve(names.size());
    for (const auto& name : names) out.push_back({name.text, name.place});
    return out;
  }

  OutputColumns select(const sql::Select& select) {
    OutputColumns from;
    if (select.from) from = relation(*select.from);
    if (select.from && from && is_single(*select.from)) check(select, *from);
    std::vector<OutputColumn> out;
    return all_items(select, select.items, from, &out) ? OutputColumns(std::move(out))
                                                       : std::nullopt;
  }

  // false: not known.
  bool all_items(const sql::Select& select, const std::vector<sql::SelectItem>& items,
                 const OutputColumns& from, std::vector<OutputColumn>* out) {
    for (const auto& item : items) {
      if (const auto* star = item.expr->as<sql::Star>()) {
        if (!from) return false;
        if (!star->qualifier.empty() &&
            !(is_single(*select.from) && is_table(star->qualifier, select))) {
          return false;
        }
        for (const auto& column : *from) {
          const bool excepted =
              std::any_of(star->except.begin(), star->except.end(),
                          [&](const sql::Name& name) { return same_name(name.text, column.name); });
          if (!excepted) out->push_back({column.name, item.expr->place});
        }
      } else if (sql::is_frame_item(*item.expr)) {
        if (!from) return false;
        std::vector<std::string> names;
        for (const auto& column : *from) names.push_back(column.name);
        const auto written_out = sql::frame_items(*item.expr, names);
        if (!written_out.ok()) {
          add(written_out.error(), item.expr->place);
          return false;
        }
        if (!all_items(select, *written_out, from, out)) return false;
      } else if (!item.aliases.empty()) {
        for (const auto& alias : item.aliases) out->push_back({alias.text, alias.place});
      } else if (is_generator(*item.expr)) {
        return false;
      } else {
        out->push_back({sql::output_name(*item.expr), item.expr->place});
      }
    }
    return true;
  }

  static bool is_generator(const sql::Expr& expr) {
    const auto* call = expr.as<sql::Call>();
    if (call == nullptr) return false;
    const std::string& name = call->name.text;
    return name.rfind("explode", 0) == 0 || name.rfind("posexplode", 0) == 0 ||
           name.rfind("inline", 0) == 0 || name == "stack" || name == "json_tuple";
  }

  static bool is_single(const sql::Relation& relation) {
    return relation.as<sql::TableUse>() != nullptr || relation.as<sql::Derived>() != nullptr;
  }

  // Whether the parts before a column's name mean the select's only relation.
  static bool is_table(const std::vector<std::string>& qualifier, const sql::Select& select) {
    const auto& relation = *select.from;
    if (relation.alias)
      return qualifier.size() == 1 && same_name(qualifier[0], relation.alias->text);
    const auto* use = relation.as<sql::TableUse>();
    return use != nullptr && use->function.empty() && !use->name.parts.empty() &&
           !qualifier.empty() && same_name(qualifier.back(), use->name.parts.back());
  }

  void check(const sql::Select& select, const std::vector<OutputColumn>& columns) {
    std::vector<std::string> aliases;  // of the items before: they may be read, too
    for (const auto& item : select.items) {
      if (item.expr->as<sql::Star>() == nullptr) check(*item.expr, select, columns, aliases);
      for (const auto& alias : item.aliases) aliases.push_back(alias.text);
    }
    if (select.where) check(*select.where, select, columns, aliases);
  }

  void check(const sql::Expr& expr, const sql::Select& select,
             const std::vector<OutputColumn>& columns, const std::vector<std::string>& aliases) {
    for (const auto& name : sql::columns_read(expr)) {
      const size_t dot = name.text.find('.');
      const std::string first = name.text.substr(0, dot);
      const auto count = [&](const std::string& wanted) {
        return std::count_if(columns.begin(), columns.end(), [&](const OutputColumn& column) {
          return same_name(column.name, wanted);
        });
      };
      if (same_name(first, kMetadata)) continue;
      const auto whole = count(name.text);
      if (whole == 1) continue;
      if (whole > 1) {
        add(invalid_argument("AMBIGUOUS_REFERENCE",
                             "column '{}' is there {} times where it is read: rename the others in "
                             "the query that gives them",
                             name.text, whole),
            name.place);
        continue;
      }
      // t.a, a.field: what comes first is enough.
      if (dot != std::string::npos) {
        if (count(first) > 0) continue;
        if (may_be_table(first, *select.from)) {
          const std::string rest = name.text.substr(dot + 1);
          const bool plain = select.from->alias && rest.find('`') == std::string::npos;
          if (!plain || count(rest) > 0 || count(rest.substr(0, rest.find('.'))) > 0) continue;
        }
      }
      if (std::any_of(aliases.begin(), aliases.end(), [&](const std::string& alias) {
            return same_name(alias, first) || same_name(alias, name.text);
          })) {
        continue;
      }
      std::vector<std::string> known;
      std::string list;
      for (const auto& column : columns) {
        if (same_name(column.name, kMetadata)) continue;
        known.push_back(column.name);
        list += (list.empty() ? "'" : ", '") + column.name + "'";
      }
      const auto near = nearest_name(name.text, known);
      add(invalid_argument("UNRESOLVED_COLUMN", "there is no column '{}' here{}; there are {}",
                           name.text, near ? " (did you mean '" + *near + "'?)" : "", list),
          name.place);
    }
  }

  static bool may_be_table(const std::string& first, const sql::Relation& relation) {
    if (relation.alias) return same_name(first, relation.alias->text);
    const auto* use = relation.as<sql::TableUse>();
    return use != nullptr && std::any_of(use->name.parts.begin(), use->name.parts.end(),
                                         [&](const auto& part) { return same_name(first, part); });
  }

  void add(Error error, const SourcePlace& place) {
    if (place.line > 0) error.place = place;
    // A view that is read twice has its mistakes once.
    const bool known = std::any_of(errors_->begin(), errors_->end(), [&](const Error& other) {
      return other.message == error.message && other.place && error.place &&
             other.place->file == error.place->file && other.place->line == error.place->line &&
             other.place->column == error.place->column;
    });
    if (!known) errors_->push_back(std::move(error));
  }

  OutputColumns relation(const sql::Relation& relation) {
    if (const auto* use = relation.as<sql::TableUse>()) {
      return named(table(*use), relation.column_aliases);
    }
    if (const auto* derived = relation.as<sql::Derived>()) {
      return named(query(*derived->query), relation.column_aliases);
    }
    if (const auto* view = relation.as<sql::LateralView>()) {
      this->relation(*view->input);
      return {};
    }
    if (const auto* join = relation.as<sql::Join>()) {
      auto left = this->relation(*join->left);
      if (join->lateral) return {};
      const auto right = this->relation(*join->right);
      if (join->natural || !join->using_columns.empty()) return {};
      if (join->kind == sql::JoinKind::kLeftSemi || join->kind == sql::JoinKind::kLeftAnti)
        return left;
      if (!left || !right) return {};
      left->insert(left->end(), right->begin(), right->end());
      return left;
    }
    return {};
  }

  OutputColumns table(const sql::TableUse& use) {
    if (use.function.empty() && !use.stream && !use.name.is_path && use.name.parts.size() == 1) {
      for (auto cte = ctes_.rbegin(); cte != ctes_.rend(); ++cte) {
        if (same_name(cte->first, use.name.parts[0])) return cte->second;
      }
    }
    return columns_of_(use);
  }

  const ColumnsOf& columns_of_;
  std::vector<Error>* errors_;
  std::vector<std::pair<std::string, OutputColumns>> ctes_;  // in scope, innermost last
};

}  // namespace

OutputColumns output_columns(const sql::Query& query, const ColumnsOf& columns_of,
                             std::vector<Error>* errors) {
  return Reader(columns_of, errors).query(query);
}

std::optional<Error> repeated_column(const std::vector<OutputColumn>& columns) {
  std::map<std::string, std::string> seen;
  for (const auto& column : columns) {
    if (same_name(column.name, kMetadata)) continue;
    const auto [first, fresh] = seen.emplace(fold_name(column.name), column.name);
    if (fresh) continue;
    Error error = invalid_argument(
        "COLUMN_ALREADY_EXISTS",
        "the query gives the columns '{}' and '{}', which are one name because case does not "
        "count: rename one of them with AS",
        first->second, column.name);
    if (column.place.line > 0) error.place = column.place;
    return error;
  }
  return {};
}

}  // namespace strandline::pipeline
