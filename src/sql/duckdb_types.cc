// Types of columns, where what an expression means depends on them. The printer asks its describer
// with the text printed so far: the columns of a FROM clause, the sides of a set operation.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "sql/duckdb_core.h"
#include "sql/names.h"

namespace strandline::sql {

namespace {

using Types = std::vector<DataType>;

bool has_struct(const DataType& type) {
  switch (type.id) {
    case TypeId::kStruct:
      return true;
    case TypeId::kArray:
      return has_struct(*type.element);
    case TypeId::kMap:
      return has_struct(*type.key) || has_struct(*type.element);
    default:
      return false;
  }
}

// The same shape with the same field names at every place, whatever the values' types are.
bool same_names_of(const DataType& a, const DataType& b) {
  if (a.id != b.id) return true;
  switch (a.id) {
    case TypeId::kStruct:
      return std::equal(a.fields->begin(), a.fields->end(), b.fields->begin(), b.fields->end(),
                        [](const Field& left, const Field& right) {
                          return same_name(left.name, right.name) &&
                                 same_names_of(left.type, right.type);
                        });
    case TypeId::kArray:
      return same_names_of(*a.element, *b.element);
    case TypeId::kMap:
      return same_names_of(*a.key, *b.key) && same_names_of(*a.element, *b.element);
    default:
      return true;
  }
}

// One value can stand for the other when fields go by their places.
bool same_shape(const DataType& a, const DataType& b) {
  if (a.id != b.id) return false;
  switch (a.id) {
    case TypeId::kStruct:
      return std::equal(
          a.fields->begin(), a.fields->end(), b.fields->begin(), b.fields->end(),
          [](const Field& left, const Field& right) { return same_shape(left.type, right.type); });
    case TypeId::kArray:
      return same_shape(*a.element, *b.element);
    case TypeId::kMap:
      return same_shape(*a.key, *b.key) && same_shape(*a.element, *b.element);
    default:
      return same_type(a, b);
  }
}

// The value, of a type of the same shape, with the field names of `named`.
std::string renamed(const std::string& value, const DataType& type, const DataType& named,
                    int depth) {
  if (!has_struct(type)) return value;
  const auto item = fmt::format("sl_item_{}", depth);
  switch (type.id) {
    case TypeId::kStruct: {
      std::string members;
      for (size_t i = 0; i < type.fields->size(); ++i) {
        const auto member = fmt::format("struct_extract_at({}, {})", value, i + 1);
        members += fmt::format(
            "{}{} := {}", members.empty() ? "" : ", ", duckdb_name((*named.fields)[i].name),
            renamed(member, (*type.fields)[i].type, (*named.fields)[i].type, depth));
      }
      return fmt::format("CASE WHEN {} IS NOT NULL THEN struct_pack({}) END", value, members);
    }
    case TypeId::kArray:
      return fmt::format("list_transform({}, lambda {}: {})", value, item,
                         renamed(item, *type.element, *named.element, depth + 1));
    default:
      return fmt::format(
          "map_from_entries(list_transform(map_entries({}), lambda {}: struct_pack(key := {}, "
          "value := {})))",
          value, item, renamed(item + ".key", *type.key, *named.key, depth + 1),
          renamed(item + ".value", *type.element, *named.element, depth + 1));
  }
}

int integer_digits(TypeId type) {
  return type == TypeId::kByte      ? 3
         : type == TypeId::kShort   ? 5
         : type == TypeId::kInteger ? 10
                                    : 20;
}

DataType literal_type(const Literal& literal) {
  if (literal.type != TypeId::kDecimal) return DataType::primitive(literal.type);
  const size_t sign = literal.text[0] == '-' ? 1 : 0;
  const size_t point = literal.text.find('.');
  const auto scale =
      point == std::string::npos ? 0 : static_cast<int>(literal.text.size() - point - 1);
  size_t first = sign;
  while (first < literal.text.size() && (literal.text[first] == '0' || first == point)) ++first;
  int digits = 0;
  for (size_t i = first; i < literal.text.size(); ++i) digits += literal.text[i] == '.' ? 0 : 1;
  return DataType::decimal(std::max({digits, scale, 1}), scale);
}

const Field* member_of(const DataType& type, const std::string& name) {
  if (type.id != TypeId::kStruct) return nullptr;
  for (const Field& field : *type.fields) {
    if (same_name(field.name, name)) return &field;
  }
  return nullptr;
}

}  // namespace

DecimalShape decimal_shape(const Expr& expr, const DataType& type) {
  if (type.id == TypeId::kDecimal) return {type.precision, type.scale};
  const auto* constant = expr.as<Literal>();
  if (constant != nullptr && is_integer(constant->type)) {
    const std::string digits = constant->text.substr(constant->text[0] == '-' ? 1 : 0);
    const size_t zeros = std::min(digits.find_first_not_of('0'), digits.size() - 1);
    return {static_cast<int>(digits.size() - zeros), 0};
  }
  return {integer_digits(type.id), 0};
}

std::optional<std::vector<Field>> DuckdbPrinter::described(const std::string& query) {
  if (!options_.describe || error_) return std::nullopt;
  return options_.describe(with_.empty() ? query : fmt::format("WITH {} {}", with_, query));
}

const std::optional<std::vector<Field>>& DuckdbPrinter::columns_of(Scope& scope) {
  if (!scope.columns) scope.columns = described("SELECT * FROM " + scope.from);
  return *scope.columns;
}

std::optional<DataType> DuckdbPrinter::described_value(const std::string& text) {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    const bool has_from = !scope->from.empty();
    auto known = scope->values.find(text);
    if (known == scope->values.end()) {
      const auto found =
          described(fmt::format("SELECT {} AS v{}", text, has_from ? " FROM " + scope->from : ""));
      const bool one = found && found->size() == 1;
      known = scope->values.emplace(text, one ? std::optional(found->front().type) : std::nullopt)
                  .first;
    }
    if (known->second) return known->second;
    // What does not bind here may be of the query around, unless nothing binds here.
    if (has_from && !columns_of(*scope)) return std::nullopt;
  }
  return std::nullopt;
}

DataType DuckdbPrinter::type_of_column(const Expr& node, const ColumnRef& column) {
  const DataType unknown;
  for (const auto& [name, text] : params_) {
    if (same_name(name, column.parts[0])) return unknown;
  }
  if (column.parts.size() == 1 && !scopes_.empty() && !scopes_.back().from.empty()) {
    const auto& columns = columns_of(scopes_.back());
    if (!columns) return unknown;
    const Field* found = nullptr;
    bool several = false;
    for (const Field& field : *columns) {
      if (!same_name(field.name, column.parts[0])) continue;
      several = found != nullptr;
      found = &field;
    }
    if (found != nullptr && !several) return found->type;
  }
  return described_value(expr(node)).value_or(unknown);
}

DataType DuckdbPrinter::common_type_of(const std::vector<ExprPtr>& values) {
  DataType common;
  for (const ExprPtr& value : values) {
    if (!value) continue;
    const auto* constant = value->as<Literal>();
    if (constant != nullptr && constant->type == TypeId::kVoid) continue;
    DataType type = type_of(*value);
    if (type.id == TypeId::kVoid) return type;
    if (common.id != TypeId::kVoid && !same_type(common, type)) return DataType();
    common = std::move(type);
  }
  return common;
}

DataType DuckdbPrinter::type_of(const Expr& node) {
  if (const auto* literal = node.as<Literal>()) return literal_type(*literal);
  if (const auto* cast = node.as<Cast>()) return cast->type;
  if (const TypeId known = known_type(node); known != TypeId::kVoid && known != TypeId::kDecimal)
    return DataType::primitive(known);
  if (const auto* call = node.as<Call>(); call != nullptr && !options_.describe) {
    const bool map = call->name.text == "map" || call->name.text.starts_with("map_from_") ||
                     call->name.text == "map_concat";
    if (map) return DataType::map(DataType(), DataType());
    if (call->name.text == "array") return DataType::array(DataType());
  }
  if (!options_.describe) return DataType();
  if (const auto* column = node.as<ColumnRef>()) return type_of_column(node, *column);
  if (const auto* access = node.as<FieldAccess>()) {
    const DataType whole = type_of(*access->value);
    const Field* field = member_of(whole, access->name.text);
    return field == nullptr ? DataType() : field->type;
  }
  if (const auto* access = node.as<IndexAccess>()) {
    const DataType whole = type_of(*access->value);
    return whole.element == nullptr ? DataType() : *whole.element;
  }
  if (const auto* unary = node.as<Unary>()) return type_of(*unary->operand);
  if (const auto* choice = node.as<Case>()) {
    std::vector<ExprPtr> values;
    for (const auto& [when, value] : choice->branches) values.push_back(value);
    values.push_back(choice->otherwise);
    return common_type_of(values);
  }
  if (const auto* call = node.as<Call>()) {
    const std::string& name = call->name.text;
    if (name == "array") return DataType::array(common_type_of(call->args));
    if (name == "coalesce" || name == "nvl" || name == "ifnull") return common_type_of(call->args);
    if ((name == "if" || name == "iff") && call->args.size() == 3)
      return common_type_of({call->args[1], call->args[2]});
  }
  return described_value(expr(node)).value_or(DataType());
}

bool DuckdbPrinter::scope_has(const std::function<bool(const DataType&)>& is_such) {
  if (scopes_.empty()) return true;
  if (scopes_.back().from.empty()) return scopes_.size() > 1;
  const auto& columns = columns_of(scopes_.back());
  return !columns || std::any_of(columns->begin(), columns->end(),
                                 [&](const Field& field) { return is_such(field.type); });
}

bool DuckdbPrinter::may_hold_struct(const Expr& node) {
  if (node.as<ScalarSubquery>() != nullptr) return true;
  if (node.as<ColumnRef>() != nullptr) return scope_has(has_struct);
  if (const auto* call = node.as<Call>()) {
    static constexpr std::string_view kMakers[] = {"struct", "named_struct", "from_json",
                                                   "map_entries"};
    if (std::find(std::begin(kMakers), std::end(kMakers), call->name.text) != std::end(kMakers))
      return true;
  }
  bool found = false;
  for_each_child(node, [&](const ExprPtr& child) { found = found || may_hold_struct(*child); });
  return found;
}

bool DuckdbPrinter::is_text(const ExprPtr& value) {
  const TypeId known = known_type(*value);
  if (known != TypeId::kVoid) return known == TypeId::kString;
  if (!options_.describe || value->as<Literal>() != nullptr || value->as<Binary>() != nullptr ||
      value->as<Unary>() != nullptr || value->as<IntervalLiteral>() != nullptr) {
    return false;
  }
  return type_of(*value).id == TypeId::kString;
}

std::string DuckdbPrinter::number(const ExprPtr& operand, const ExprPtr& other) {
  if (!is_text(operand)) return expr(operand);
  const auto as = [&](TypeId type) {
    return expr(make_expr(Cast{operand, DataType::primitive(type)}, operand->place));
  };
  if (!other) return as(TypeId::kDouble);
  if (is_text(other)) {
    fail(invalid_argument("DATATYPE_MISMATCH.BINARY_OP_WRONG_TYPE",
                          "arithmetic with two STRINGs: cast one of them to a number"),
         operand->place);
    return "";
  }
  switch (type_of(*other).id) {
    case TypeId::kByte:
    case TypeId::kShort:
    case TypeId::kInteger:
    case TypeId::kLong:
      return as(TypeId::kLong);
    case TypeId::kFloat:
    case TypeId::kDouble:
    case TypeId::kDecimal:
      return as(TypeId::kDouble);
    default:
      return expr(operand);
  }
}

void DuckdbPrinter::check_structs(const std::vector<ExprPtr>& values, const char* code) {
  if (!options_.describe || error_) return;
  std::vector<const ExprPtr*> open;
  for (const ExprPtr& value : values) {
    const bool unknown =
        value && value->as<Literal>() == nullptr && known_type(*value) == TypeId::kVoid;
    if (unknown && may_hold_struct(*value)) open.push_back(&value);
  }
  if (open.size() < 2) return;
  DataType first;
  for (const ExprPtr* value : open) {
    DataType type = type_of(**value);
    if (!has_struct(type)) continue;
    if (first.id == TypeId::kVoid) {
      first = std::move(type);
    } else if (!same_names_of(first, type)) {
      fail(invalid_argument(code,
                            "{} and {} stand together, but their fields are not called the same: "
                            "give them the same names in the same order, as with named_struct",
                            to_sql(first), to_sql(type)),
           (*value)->place);
      return;
    }
  }
}

std::string DuckdbPrinter::compared_struct(const ExprPtr& value, const ExprPtr& other,
                                           const std::string& text) {
  const auto plain = [](const ExprPtr& side) {
    return side->as<Literal>() != nullptr || known_type(*side) != TypeId::kVoid ||
           side->as<Binary>() != nullptr;
  };
  if (!options_.describe || plain(value) || plain(other) || !may_hold_struct(*value)) return text;
  const DataType type = type_of(*value);
  if (!has_struct(type)) return text;
  const DataType named = type_of(*other);
  return same_names_of(type, named) || !same_shape(type, named) ? text
                                                                : renamed(text, type, named, 0);
}

std::string DuckdbPrinter::compared_query(const In& in) {
  const std::string text = query(*in.query);
  if (!options_.describe || in.value->as<Literal>() != nullptr ||
      known_type(*in.value) != TypeId::kVoid) {
    return text;
  }
  const DataType named = type_of(*in.value);
  if (!has_struct(named)) return text;
  const auto given = described(fmt::format("SELECT * FROM ({})", text));
  if (!given || given->size() != 1) return text;
  const DataType& type = given->front().type;
  if (same_names_of(type, named) || !same_shape(type, named)) return text;
  return fmt::format("SELECT {} FROM ({}) AS sl_side(c0)", renamed("c0", type, named, 0), text);
}

// Columns go by position in Spark, and so do the fields of structs in those of UNION; DuckDB would
// take fields by name and give a struct of the fields of both sides.
void DuckdbPrinter::align_structs(const SetOperation& operation, const std::string& left,
                                  std::string& right) {
  const auto given = described(fmt::format("SELECT * FROM ({})", right));
  if (!given || std::none_of(given->begin(), given->end(),
                             [](const Field& field) { return has_struct(field.type); })) {
    return;
  }
  const auto wanted = described(fmt::format("SELECT * FROM ({})", left));
  if (!wanted || wanted->size() != given->size()) return;
  std::string names;
  std::string items;
  bool differs = false;
  for (size_t i = 0; i < given->size(); ++i) {
    const auto name = fmt::format("c{}", i);
    const DataType& to = (*wanted)[i].type;
    const DataType& from = (*given)[i].type;
    names += (i == 0 ? "" : ", ") + name;
    std::string item = name;
    if (!same_names_of(to, from)) {
      if (operation.kind != SetKind::kUnion || !same_shape(to, from)) {
        fail(invalid_argument("INCOMPATIBLE_COLUMN_TYPE",
                              "column {} is {} on one side of UNION, INTERSECT or EXCEPT and {} on "
                              "the other: give the fields the same names, order and types",
                              i + 1, to_sql(to), to_sql(from)),
             operation.right->place);
        return;
      }
      item = renamed(name, from, to, 0);
      differs = true;
    }
    items += fmt::format("{}{} AS {}", i == 0 ? "" : ", ", item, duckdb_name((*given)[i].name));
  }
  if (differs) right = fmt::format("SELECT {} FROM ({}) AS sl_side({})", items, right, names);
}

}  // namespace strandline::sql
