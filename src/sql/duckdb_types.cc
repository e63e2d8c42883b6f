// Types of columns, where what an expression means depends on them. The printer asks its describer
// with the text printed so far: the columns of a FROM clause, the sides of a set operation.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/error.h"
#include "sql/described_columns.h"
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

// A struct of a value's parts, each after whether it is there: false sorts first.
std::string sort_key(const std::string& value, const DataType& type, int depth) {
  const auto part = [&](const std::string& text, const DataType& of_part, size_t i) {
    return fmt::format("n{} := {} IS NOT NULL, v{} := {}", i, text, i,
                       sort_key(text, of_part, depth + 1));
  };
  if (type.id == TypeId::kArray) {
    const auto item = fmt::format("sl_part_{}", depth);
    return fmt::format("list_transform({}, lambda {}: struct_pack({}))", value, item,
                       part(item, *type.element, 0));
  }
  if (type.id != TypeId::kStruct) return value;
  std::string parts;
  for (size_t i = 0; i < type.fields->size(); ++i) {
    parts += (i == 0 ? "" : ", ") + part(fmt::format("struct_extract_at({}, {})", value, i + 1),
                                         (*type.fields)[i].type, i);
  }
  return fmt::format("CASE WHEN {} IS NOT NULL THEN struct_pack({}) END", value, parts);
}

// A value given as text as another type that holds it.
std::string cast_of(const std::string& text, const DataType& from, const DataType& to) {
  if (same_type(from, to)) return text;
  return from.id == TypeId::kString ? duckdb_cast_of_text(text, to)
                                    : fmt::format("CAST({} AS {})", text, duckdb_type(to));
}

bool is_null(const Expr& expr) {
  const auto* constant = expr.as<Literal>();
  return constant != nullptr && constant->type == TypeId::kVoid;
}

// Whether a text that is compared with values of a type is that value in the engine as in Spark.
bool is_plain_text(const std::string& text, TypeId other) {
  const size_t sign = !text.empty() && text[0] == '-' ? 1 : 0;
  const size_t digits = std::min(text.find_first_not_of("0123456789", sign), text.size()) - sign;
  constexpr size_t kMostDigits = 9;
  switch (other) {
    case TypeId::kInteger:
    case TypeId::kLong:
      return digits > 0 && digits <= kMostDigits && sign + digits == text.size();
    case TypeId::kDouble:
      return digits > 0 && text.find_first_not_of("0123456789.", sign) == std::string::npos;
    case TypeId::kTimestamp:
    case TypeId::kTimestampNtz:
      return true;
    case TypeId::kBoolean:
      return text == "true" || text == "false";
    default:
      return false;
  }
}

const Field* member_of(const DataType& type, const std::string& name) {
  if (type.id != TypeId::kStruct) return nullptr;
  for (const Field& field : *type.fields) {
    if (same_name(field.name, name)) return &field;
  }
  return nullptr;
}

}  // namespace

std::optional<std::vector<Field>> DuckdbPrinter::described(const std::string& query) {
  if (!options_.describe || !asks_ || error_) return std::nullopt;
  return options_.describe(with_.empty() ? query : fmt::format("WITH {} {}", with_, query));
}

const std::optional<std::vector<Field>>& DuckdbPrinter::columns_of(Scope& scope) {
  if (!scope.columns) scope.columns = described("SELECT * FROM " + scope.from);
  return *scope.columns;
}

std::optional<DataType> DuckdbPrinter::described_value(const std::string& text) {
  auto column = described_column(text);
  return column ? std::optional(std::move(column->type)) : std::nullopt;
}

std::optional<Field> DuckdbPrinter::described_column(const std::string& text) {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    const bool has_from = !scope->from.empty();
    auto known = scope->values.find(text);
    if (known == scope->values.end()) {
      const auto found =
          described(fmt::format("SELECT {} AS v{}", text, has_from ? " FROM " + scope->from : ""));
      const bool one = found && found->size() == 1;
      known = scope->values.emplace(text, one ? std::optional(found->front()) : std::nullopt).first;
    }
    if (known->second) return known->second;
    // What does not bind here may be of the query around, unless nothing binds here.
    if (has_from && !columns_of(*scope)) return std::nullopt;
  }
  return std::nullopt;
}

const SelectItem* DuckdbPrinter::named_item(const ColumnRef& column) const {
  if (scopes_.empty() || !scopes_.back().sees_names || column.parts.size() != 1) return nullptr;
  for (const SelectItem& item : scopes_.back().select->items) {
    if (item.aliases.size() != 1 || !same_name(item.aliases[0].text, column.parts[0])) continue;
    const auto* same = item.expr->as<ColumnRef>();
    if (same == nullptr || !same_name(same->parts.back(), column.parts[0])) return &item;
  }
  return nullptr;
}

DataType DuckdbPrinter::type_of_column(const Expr& node, const ColumnRef& column) {
  const DataType unknown;
  for (const auto& [name, text] : params_) {
    if (same_name(name, column.parts[0])) return unknown;
  }
  if (const SelectItem* item = named_item(column)) {
    // HAVING and QUALIFY may mean either.
    if (ordered_ == nullptr) return unknown;
    const auto* ordered = std::exchange(ordered_, nullptr);
    const bool names = std::exchange(scopes_.back().sees_names, false);
    DataType type = type_of(*item->expr);
    ordered_ = ordered;
    scopes_.back().sees_names = names;
    return type;
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
    if (!value || is_null(*value)) continue;
    const DataType type = type_of(*value);
    if (type.id == TypeId::kVoid) return type;
    auto both = common_type(common, type);
    if (!both) return DataType();
    common = *std::move(both);
  }
  return common;
}

std::optional<DataType> DuckdbPrinter::merged_type(const std::vector<ExprPtr>& values,
                                                   const char* code, Texts texts) {
  DataType common;
  bool differ = false;
  const ExprPtr* misfit = nullptr;
  DataType misfits;
  for (const ExprPtr& value : values) {
    if (!value || is_null(*value)) continue;
    DataType type = type_of(*value);
    if (type.id == TypeId::kVoid || has_struct(type)) return std::nullopt;
    if (misfit != nullptr) continue;
    differ = differ || (common.id != TypeId::kVoid && !same_type(common, type));
    auto both = common_type(common, type, texts);
    if (!both) {
      misfit = &value;
      misfits = std::move(type);
    } else {
      common = *std::move(both);
    }
  }
  if (misfit != nullptr) {
    fail(
        invalid_argument(code, "{} and {} stand together, and no type holds both: cast one of them",
                         to_sql(common), to_sql(misfits)),
        (*misfit)->place);
    return std::nullopt;
  }
  return differ ? std::optional(common) : std::nullopt;
}

std::optional<DataType> DuckdbPrinter::compared_type(const std::vector<ExprPtr>& values,
                                                     const char* code) {
  if (std::all_of(values.begin(), values.end(), [](const ExprPtr& value) {
        const TypeId known = known_type(*value);
        return known == TypeId::kBoolean || is_null(*value);
      })) {
    return std::nullopt;
  }
  const auto common = merged_type(values, code);
  if (!common || common->is_nested()) return std::nullopt;
  // STRING constants take the type of what they are compared with, as in Spark where that is
  // theirs.
  DataType others;
  bool texts = false;
  bool plain = true;
  bool floats = false;
  bool exact = true;  // a FLOAT holds the others, which are constants
  for (const ExprPtr& value : values) {
    if (is_null(*value)) continue;
    const DataType type = type_of(*value);
    constexpr size_t kMostDigits = 7;
    const auto* constant = value->as<Literal>();
    const bool held =
        constant != nullptr && is_integer(type.id) && constant->text.size() <= kMostDigits;
    texts = texts || type.id == TypeId::kString;
    floats = floats || type.id == TypeId::kFloat;
    exact = exact && (type.id == TypeId::kFloat || held);
    if (type.id != TypeId::kString) others = common_type(others, type).value_or(others);
  }
  if (!texts) return floats && !exact ? common : std::nullopt;
  // Handled by becomes_date.
  if (others.id == TypeId::kDate) return std::nullopt;
  for (const ExprPtr& value : values) {
    const auto* constant = value->as<Literal>();
    if (constant == nullptr) {
      plain = plain && type_of(*value).id != TypeId::kString;
    } else if (constant->type == TypeId::kString) {
      plain = plain && is_plain_text(constant->text, others.id);
    }
  }
  return plain ? std::nullopt : common;
}

ExprPtr DuckdbPrinter::as_type(const ExprPtr& value, const DataType& type) {
  if (!value || is_null(*value)) return value;
  const DataType own = type_of(*value);
  if (own.id == TypeId::kVoid || same_type(own, type)) return value;
  return make_expr(Cast{value, type}, value->place);
}

void DuckdbPrinter::merge(std::vector<ExprPtr>& values, const char* code, Texts texts) {
  if (const auto type = merged_type(values, code, texts)) {
    for (ExprPtr& value : values) value = as_type(value, *type);
  }
}

Call DuckdbPrinter::merged_arguments(const Call& call) {
  static constexpr std::string_view kAll[] = {"array",  "coalesce", "nvl",
                                              "ifnull", "greatest", "least"};
  Call result = call;
  const std::string& name = call.name.text;
  const auto some = [&](size_t first, size_t step) {
    std::vector<ExprPtr> values;
    for (size_t i = first; i < call.args.size(); i += step) values.push_back(call.args[i]);
    const bool stay = name == "greatest" || name == "least";
    merge(values,
          name != "map" ? "DATATYPE_MISMATCH.DATA_DIFF_TYPES"
          : first == 0  ? "DATATYPE_MISMATCH.CREATE_MAP_KEY_DIFF_TYPES"
                        : "DATATYPE_MISMATCH.CREATE_MAP_VALUE_DIFF_TYPES",
          stay ? Texts::kStayTexts : Texts::kBecomeOthers);
    for (size_t i = first, at = 0; i < call.args.size(); i += step) result.args[i] = values[at++];
  };
  if (std::find(std::begin(kAll), std::end(kAll), name) != std::end(kAll)) {
    some(0, 1);
  } else if ((name == "if" || name == "iff" || name == "nvl2") && call.args.size() == 3) {
    some(1, 1);
  } else if (name == "map") {
    some(0, 2);
    some(1, 2);
  }
  return result;
}

DataType DuckdbPrinter::operand_type(const ExprPtr& operand, const ExprPtr& other) {
  const DataType type = type_of(*operand);
  if (type.id != TypeId::kString) return type;
  const DataType beside = type_of(*other);
  if (is_integer(beside.id)) return DataType::primitive(TypeId::kLong);
  return is_number(beside.id) ? DataType::primitive(TypeId::kDouble) : type;
}

DataType DuckdbPrinter::type_of_operation(const Binary& binary) {
  switch (binary.op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSubtract:
    case BinaryOp::kMultiply:
    case BinaryOp::kModulo:
    case BinaryOp::kDivide: {
      const DataType left = operand_type(binary.left, binary.right);
      const DataType right = operand_type(binary.right, binary.left);
      const DataType type = arithmetic_type(binary.op, *binary.left, left, *binary.right, right);
      const bool quotient = binary.op == BinaryOp::kDivide && type.id != TypeId::kDecimal;
      return quotient && type.id != TypeId::kVoid ? DataType::primitive(TypeId::kDouble) : type;
    }
    default:
      return DataType();
  }
}

// Of calls whose types follow from those of their arguments.
DataType DuckdbPrinter::type_of_call(const Call& call) {
  const std::string& name = call.name.text;
  if (call.args.empty()) return DataType();
  if (name == "array") return DataType::array(common_type_of(call.args));
  if (name == "coalesce" || name == "nvl" || name == "ifnull" || name == "greatest" ||
      name == "least") {
    return common_type_of(call.args);
  }
  if ((name == "if" || name == "iff" || name == "nvl2") && call.args.size() == 3)
    return common_type_of({call.args[1], call.args[2]});
  static constexpr std::string_view kFirst[] = {
      "min",       "max",    "first",     "first_value", "last",     "last_value",
      "any_value", "nullif", "nth_value", "positive",    "negative", "mode"};
  if (std::find(std::begin(kFirst), std::end(kFirst), name) != std::end(kFirst)) {
    const DataType type = type_of(*call.args[0]);
    const bool sign = name == "positive" || name == "negative";
    return sign && type.id == TypeId::kString ? DataType::primitive(TypeId::kDouble) : type;
  }
  if (name == "sum" || name == "avg" || name == "mean") {
    DataType type = type_of(*call.args[0]);
    if (type.id == TypeId::kString) type = DataType::primitive(TypeId::kDouble);
    return name == "sum" ? sum_type(type) : average_type(type);
  }
  return DataType();
}

DataType DuckdbPrinter::type_of(const Expr& node) {
  // Types are asked for where the columns stand.
  auto captures = std::exchange(captures_, {});
  DataType type = type_of_value(node);
  captures_ = std::move(captures);
  return type;
}

DataType DuckdbPrinter::type_of_value(const Expr& node) {
  if (const auto computed = computed_.find(&node); computed != computed_.end())
    return computed->second.type;
  if (const auto* literal = node.as<Literal>()) return literal_type(*literal);
  if (const auto* cast = node.as<Cast>()) return cast->type;
  if (node.as<Star>() != nullptr) return DataType();
  if (const TypeId known = known_type(node); known != TypeId::kVoid && known != TypeId::kDecimal)
    return DataType::primitive(known);
  if (const auto* call = node.as<Call>(); call != nullptr && !options_.describe) {
    const bool map = call->name.text == "map" || call->name.text.starts_with("map_from_") ||
                     call->name.text == "map_concat";
    if (map) return DataType::map(DataType(), DataType());
    if (call->name.text == "array") return DataType::array(DataType());
  }
  if (const auto* unary = node.as<Unary>()) {
    const DataType type = type_of(*unary->operand);
    const bool text = type.id == TypeId::kString && unary->op != UnaryOp::kBitNot;
    return text ? DataType::primitive(TypeId::kDouble) : type;
  }
  if (const auto* operation = node.as<Binary>()) {
    DataType type = type_of_operation(*operation);
    if (type.id != TypeId::kVoid) return type;
  }
  if (const auto* choice = node.as<Case>()) {
    std::vector<ExprPtr> values;
    for (const auto& [when, value] : choice->branches) values.push_back(value);
    values.push_back(choice->otherwise);
    return common_type_of(values);
  }
  if (const auto* call = node.as<Call>()) {
    DataType type = type_of_call(*call);
    if (type.id != TypeId::kVoid) return type;
  }
  if (!options_.describe || !asks_ || scopes_.empty()) return DataType();
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
  // To ask, the expression must be printed: once in each place.
  const size_t place = scopes_.size() - 1;
  if (const auto known = scopes_[place].types.find(&node); known != scopes_[place].types.end())
    return known->second;
  DataType type = described_value(expr(node)).value_or(DataType());
  scopes_[place].types.emplace(&node, type);
  return type;
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

size_t DuckdbPrinter::char_length(const ExprPtr& value) {
  const auto* column = value->as<ColumnRef>();
  if (!options_.describe || column == nullptr) return 0;
  if (const auto computed = computed_.find(value.get()); computed != computed_.end())
    return computed->second.char_length;
  for (const auto& [name, text] : params_) {
    if (same_name(name, column->parts[0])) return 0;
  }
  const auto is_char = [](const Field& field) { return field.metadata.contains(kCharLengthKey); };
  // Only where there is one at all is it worth asking.
  const bool any = std::any_of(scopes_.begin(), scopes_.end(), [&](Scope& scope) {
    if (scope.from.empty()) return false;
    const auto& columns = columns_of(scope);
    return columns && std::any_of(columns->begin(), columns->end(), is_char);
  });
  if (!any) return 0;
  auto captures = std::exchange(captures_, {});
  const auto found = described_column(expr(value));
  captures_ = std::move(captures);
  if (!found || !is_char(*found)) return 0;
  return static_cast<size_t>(
      std::strtoull(found->metadata.at(kCharLengthKey).c_str(), nullptr, 10));
}

void DuckdbPrinter::pad(std::vector<ExprPtr>& values) {
  const auto text_of = [](const ExprPtr& value) -> const std::string* {
    const auto* constant = value->as<Literal>();
    return constant != nullptr && constant->type == TypeId::kString ? &constant->text : nullptr;
  };
  const auto characters = [](const std::string& text) {
    return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    }));
  };
  std::vector<size_t> lengths;
  size_t longest = 0;
  bool any = false;
  for (const ExprPtr& value : values) {
    const auto* text = text_of(value);
    size_t length = text == nullptr ? 0 : characters(*text);
    if (text == nullptr && !is_null(*value)) {
      length = char_length(value);
      if (length == 0) return;
      any = true;
    }
    lengths.push_back(length);
    longest = std::max(longest, length);
  }
  if (!any) return;
  for (size_t i = 0; i < values.size(); ++i) {
    if (lengths[i] == longest || is_null(*values[i])) continue;
    if (const auto* text = text_of(values[i])) {
      values[i] =
          make_expr(Literal{TypeId::kString, *text + std::string(longest - lengths[i], ' ')},
                    values[i]->place);
    } else {
      values[i] = sql::call(
          "rpad", {values[i], integer_literal(static_cast<int64_t>(longest)), string_literal(" ")});
    }
  }
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

std::string DuckdbPrinter::sortable(const ExprPtr& value) {
  const std::string text = expr(value);
  const bool plain = value->as<Literal>() != nullptr || value->as<Binary>() != nullptr ||
                     known_type(*value) != TypeId::kVoid;
  if (!options_.describe || plain) return text;
  const DataType type = type_of(*value);
  if (type.id != TypeId::kStruct && type.id != TypeId::kArray) return text;
  sorts_parts_ = true;
  return computed_once(text, [&](const std::string& once) { return sort_key(once, type, 0); });
}

std::string DuckdbPrinter::sorted_by_parts(const Call& call) {
  const std::string& name = call.name.text;
  const bool several = name == "greatest" || name == "least";
  const bool one = name == "array_max" || name == "array_min";
  const bool all = name == "sort_array" || (name == "array_sort" && call.args.size() == 1);
  if (!options_.describe || call.args.empty() || (!several && !one && !all)) return "";
  DataType type;
  if (several) {
    for (const ExprPtr& arg : call.args) {
      if (type.id == TypeId::kVoid && !is_null(*arg)) type = type_of(*arg);
    }
  } else if (const DataType list = type_of(*call.args[0]); list.id == TypeId::kArray) {
    type = *list.element;
  }
  if (type.id != TypeId::kStruct && type.id != TypeId::kArray) return "";
  const std::string items = several ? "[" + list(call.args) + "]" : expr(call.args[0]);
  const auto keyed = [&](const std::string& values, const char* null) {
    return fmt::format(
        "list_transform({}, lambda sl_each: struct_pack(n := sl_each IS {}NULL, k := {}, v := "
        "sl_each))",
        values, null, sort_key("sl_each", type, 0));
  };
  if (!all) {
    const bool least = name == "least" || name == "array_min";
    const auto known = fmt::format("list_filter({}, lambda sl_each: sl_each IS NOT NULL)", items);
    return fmt::format("struct_extract(list_{}({}), 'v')", least ? "min" : "max",
                       keyed(known, "NOT "));
  }
  std::optional<std::string> ascending = "true";
  if (call.args.size() == 2) ascending = constant_argument(call, 1, "a direction");
  if (!ascending) return "";
  return fmt::format("list_transform(list_sort({}, '{}'), lambda sl_each: sl_each.v)",
                     keyed(items, name == "array_sort" ? "" : "NOT "),
                     *ascending == "true" ? "ASC" : "DESC");
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
  if (same_names_of(type, named) || !same_shape(type, named)) return text;
  return computed_once(text,
                       [&](const std::string& once) { return renamed(once, type, named, 0); });
}

std::string DuckdbPrinter::compared_query(const In& in, std::optional<DataType>* type) {
  std::string text = query(*in.query);
  if (!options_.describe || is_null(*in.value)) return text;
  const DataType value = type_of(*in.value);
  if (value.id == TypeId::kVoid) return text;
  const auto given = described(fmt::format("SELECT * FROM ({})", text));
  if (!given || given->size() != 1) return text;
  const DataType& found = given->front().type;
  std::string item;
  if (has_struct(value)) {
    if (same_names_of(found, value) || !same_shape(found, value)) return text;
    item = renamed("c0", found, value, 0);
  } else {
    if (found.id == TypeId::kVoid || has_struct(found) || same_type(found, value)) return text;
    const auto common = common_type(value, found);
    if (!common) {
      fail(invalid_argument("DATATYPE_MISMATCH.IN_SUBQUERY_DATA_TYPE_MISMATCH",
                            "{} is looked for among values of type {}: cast one of them",
                            to_sql(value), to_sql(found)),
           in.value->place);
      return "";
    }
    item = cast_of("c0", found, *common);
    *type = common;
  }
  return fmt::format("SELECT {} FROM ({}) AS sl_side(c0)", item, text);
}

// Columns go by position in Spark, and so do the fields of structs in those of UNION; DuckDB would
// take fields by name and give a struct of the fields of both sides.
void DuckdbPrinter::align_sides(const SetOperation& operation, std::string& left,
                                std::string& right) {
  const auto known = std::exchange(last_sides_, {});
  const auto given = described(fmt::format("SELECT * FROM ({})", right));
  if (!given) return;
  const auto wanted = known.first == left ? std::optional(known.second)
                                          : described(fmt::format("SELECT * FROM ({})", left));
  if (!wanted || wanted->size() != given->size()) return;
  std::string names;
  std::string left_items;
  std::string right_items;
  bool left_differs = false;
  bool right_differs = false;
  std::vector<Field> both = *wanted;
  for (size_t i = 0; i < given->size(); ++i) {
    const auto name = fmt::format("c{}", i);
    const DataType& to = (*wanted)[i].type;
    const DataType& from = (*given)[i].type;
    names += (i == 0 ? "" : ", ") + name;
    std::string left_item = name;
    std::string item = name;
    const auto refuse = [&](const char* way_out) {
      fail(invalid_argument("INCOMPATIBLE_COLUMN_TYPE",
                            "column {} is {} on one side of UNION, INTERSECT or EXCEPT and {} on "
                            "the other: {}",
                            i + 1, to_sql(to), to_sql(from), way_out),
           operation.right->place);
    };
    if (has_struct(from) || has_struct(to)) {
      if (!same_names_of(to, from)) {
        if (operation.kind != SetKind::kUnion || !same_shape(to, from))
          return refuse("give the fields the same names, order and types");
        item = renamed(name, from, to, 0);
      }
    } else if (from.id != TypeId::kVoid && to.id != TypeId::kVoid && !same_type(from, to)) {
      const auto common = common_type(to, from);
      if (!common) return refuse("cast one of them");
      left_item = cast_of(name, to, *common);
      item = cast_of(name, from, *common);
      both[i].type = *common;
    } else if (to.id == TypeId::kVoid) {
      both[i].type = from;
    }
    left_differs = left_differs || left_item != name;
    right_differs = right_differs || item != name;
    const auto& left_name = duckdb_name((*wanted)[i].name);
    left_items += fmt::format("{}{} AS {}", i == 0 ? "" : ", ", left_item, left_name);
    right_items +=
        fmt::format("{}{} AS {}", i == 0 ? "" : ", ", item, duckdb_name((*given)[i].name));
  }
  const auto wrap = [&](std::string& side, const std::string& items) {
    side = fmt::format("SELECT {} FROM ({}) AS sl_side({})", items, side, names);
  };
  if (left_differs) wrap(left, left_items);
  if (right_differs) wrap(right, right_items);
  last_sides_.second = std::move(both);
}

bool DuckdbPrinter::align_names(std::string& left, std::string& right) {
  const auto wanted = described(fmt::format("SELECT * FROM ({})", left));
  const auto given = described(fmt::format("SELECT * FROM ({})", right));
  if (!wanted || !given) return false;
  const auto find = [](const std::vector<Field>& fields, const std::string& name) {
    return std::find_if(fields.begin(), fields.end(),
                        [&](const Field& field) { return same_name(field.name, name); });
  };
  std::vector<Field> all = *wanted;
  for (const Field& field : *given) {
    if (find(*wanted, field.name) == wanted->end()) all.push_back(field);
  }
  const auto side = [&](const std::vector<Field>& fields) {
    std::string items;
    for (const Field& field : all) {
      const auto name = duckdb_name(field.name);
      const auto own = find(fields, field.name);
      const auto type = duckdb_type(field.type);
      items += items.empty() ? "" : ", ";
      if (own != fields.end()) {
        items += duckdb_name(own->name) + " AS " + name;
      } else {
        items += (type.empty() ? "NULL" : fmt::format("CAST(NULL AS {})", type)) + " AS " + name;
      }
    }
    return items;
  };
  left = fmt::format("SELECT {} FROM ({}) AS sl_side", side(*wanted), left);
  right = fmt::format("SELECT {} FROM ({}) AS sl_side", side(*given), right);
  return true;
}

}  // namespace strandline::sql
