#include "sql/frame_columns.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"

namespace strandline::sql {
namespace {

constexpr const char* kWith = "__strandline_with";
constexpr const char* kSet = "__strandline_set";
constexpr const char* kRename = "__strandline_rename";
constexpr const char* kDrop = "__strandline_drop";
constexpr const char* kNames = "__strandline_names";
constexpr const char* kEach = "__strandline_each";

const Call* frame_call(const Expr& expr) {
  const auto* call = expr.as<Call>();
  if (call == nullptr) return nullptr;
  const std::string& name = call->name.text;
  const bool known = name == kWith || name == kSet || name == kRename || name == kDrop ||
                     name == kNames || name == kEach;
  return known ? call : nullptr;
}

std::string text_of(const ExprPtr& argument) {
  const auto* literal = argument->as<Literal>();
  return literal != nullptr ? literal->text : "";
}

// Pairs of a name and what goes with it, by name.
struct Pair {
  std::string name;
  ExprPtr value;
  bool used = false;
};
std::vector<Pair> pairs_of(const Call& call) {
  std::vector<Pair> pairs;
  for (size_t i = 0; i + 1 < call.args.size(); i += 2)
    pairs.push_back({text_of(call.args[i]), call.args[i + 1]});
  return pairs;
}
Pair* find(std::vector<Pair>& pairs, const std::string& name) {
  const auto found = std::find_if(pairs.begin(), pairs.end(),
                                  [&](const Pair& pair) { return same_name(pair.name, name); });
  return found == pairs.end() ? nullptr : &*found;
}

bool is_hidden(const std::string& column) {
  return same_name(column, "_metadata") || column.starts_with("__strandline_");
}

class Maker {
 public:
  Maker(const Expr& item, const std::vector<std::string>& columns)
      : item_(item), call_(*frame_call(item)), columns_(columns) {}

  Result<std::vector<SelectItem>> make() {
    const std::string& name = call_.name.text;
    const bool sets = name == kWith || name == kSet;
    auto pairs = sets || name == kRename ? pairs_of(call_) : std::vector<Pair>();
    size_t position = 0;
    const auto visible = static_cast<size_t>(
        std::count_if(columns_.begin(), columns_.end(),
                      [](const std::string& column) { return !is_hidden(column); }));
    if (name == kNames && visible != call_.args.size()) {
      return invalid_argument("NUM_COLUMNS_MISMATCH", "the frame has {} columns, not {}: name each",
                              visible, call_.args.size());
    }
    for (const std::string& column : columns_) {
      const bool hidden = is_hidden(column);
      if (hidden && times(column) > 1) continue;  // of both sides of a join
      if (Pair* pair = find(pairs, column)) {
        if (name == kRename) {
          add(keep(column), text_of(pair->value));
        } else {
          pair->used = true;
          add(pair->value, name == kSet ? column : pair->name);
        }
      } else if (name == kDrop && is_argument(column)) {
        continue;
      } else if (name == kNames && !hidden) {
        add(keep(column), text_of(call_.args[position++]));
      } else if (name == kEach && !hidden && !call_.args.empty()) {
        Call each;
        each.name = Name{"__strandline_" + text_of(call_.args[0]), call_.name.place};
        each.args = call_.args;
        each.args[0] = keep(column);
        add(make_expr(std::move(each), item_.place), column);
      } else {
        add(keep(column), column);
      }
    }
    if (sets) {
      for (const Pair& pair : pairs) {
        if (!pair.used) add(pair.value, pair.name);
      }
    }
    if (error_) return *error_;
    return std::move(items_);
  }

 private:
  bool is_argument(const std::string& column) const {
    return std::any_of(call_.args.begin(), call_.args.end(), [&](const ExprPtr& argument) {
      return same_name(text_of(argument), column);
    });
  }

  size_t times(const std::string& column) const {
    return static_cast<size_t>(
        std::count_if(columns_.begin(), columns_.end(),
                      [&](const std::string& other) { return same_name(other, column); }));
  }

  ExprPtr keep(const std::string& column) {
    if (times(column) > 1 && !error_) {
      error_ = invalid_argument(
          "AMBIGUOUS_REFERENCE",
          "the frame has {} columns '{}': give the sides of the join names with alias() and name "
          "what stays with select()",
          times(column), column);
      if (item_.place.line > 0) error_->place = item_.place;
    }
    return make_expr(ColumnRef{{column}}, item_.place);
  }

  void add(ExprPtr value, const std::string& name) {
    items_.push_back({std::move(value), {Name{name, item_.place}}});
  }

  const Expr& item_;
  const Call& call_;
  const std::vector<std::string>& columns_;
  std::vector<SelectItem> items_;
  std::optional<Error> error_;
};

}  // namespace

bool is_frame_item(const Expr& expr) { return frame_call(expr) != nullptr; }

bool gives_all_columns(const Expr& expr) {
  return expr.as<Star>() != nullptr || is_frame_item(expr);
}

Result<std::vector<SelectItem>> frame_items(const Expr& item,
                                            const std::vector<std::string>& columns) {
  return Maker(item, columns).make();
}

ExprPtr frame_source(const Expr& item, const std::string& name) {
  const Call& call = *frame_call(item);
  const ExprPtr same = column(name);
  if (call.name.text == kWith || call.name.text == kSet) {
    auto pairs = pairs_of(call);
    const Pair* pair = find(pairs, name);
    return pair != nullptr ? pair->value : same;
  }
  if (call.name.text == kDrop) {
    const bool gone = std::any_of(call.args.begin(), call.args.end(), [&](const ExprPtr& argument) {
      return same_name(text_of(argument), name);
    });
    return gone ? nullptr : same;
  }
  if (call.name.text == kRename) {
    for (const Pair& pair : pairs_of(call)) {
      if (same_name(pair.name, name) || same_name(text_of(pair.value), name)) return nullptr;
    }
    return same;
  }
  return nullptr;
}

}  // namespace strandline::sql
