#include "cdc/value_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace strandline::cdc {

namespace {

// Names of lambda parameters differ by depth, so that inner ones hide nothing.
std::string parameter(int depth) { return fmt::format("__strandline_x{}", depth); }

const Field* find_member(const DataType& type, const std::string& name) {
  for (const Field& field : *type.fields) {
    if (same_name(field.name, name)) return &field;
  }
  return nullptr;
}

bool contains(const DataType& type, const std::function<bool(const DataType&)>& test) {
  if (test(type)) return true;
  switch (type.id) {
    case TypeId::kArray:
      return contains(*type.element, test);
    case TypeId::kMap:
      return contains(*type.key, test) || contains(*type.element, test);
    case TypeId::kStruct:
      return std::any_of(type.fields->begin(), type.fields->end(),
                         [&](const Field& field) { return contains(field.type, test); });
    default:
      return false;
  }
}

bool is_floating(const DataType& type) {
  return type.id == TypeId::kFloat || type.id == TypeId::kDouble;
}
bool is_map(const DataType& type) { return type.id == TypeId::kMap; }

const DataType kText = DataType::primitive(TypeId::kString);

}  // namespace

std::string ValueText::typed_null(const DataType& type) const {
  return fmt::format("CAST(NULL AS {})", type_text(type));
}

std::string ValueText::as_text(const std::string& expr) const {
  return fmt::format("CAST({} AS {})", expr, text_type());
}

std::string ValueText::as_literal(const std::string& expr, const DataType& type) const {
  std::string text = as_text(expr), before = "'";
  switch (type.id) {
    case TypeId::kString:
      for (const char* special : {"\\", "'"}) {
        text = fmt::format("replace({}, {}, {})", text, quote_literal(special),
                           quote_literal(std::string("\\") + special));
      }
      break;
    case TypeId::kDate:
      before = "DATE '";
      break;
    case TypeId::kTimestamp:
      before = "TIMESTAMP '";
      break;
    case TypeId::kTimestampNtz:
      before = "TIMESTAMP_NTZ '";
      break;
    default:
      return text;
  }
  return fmt::format("{} || {} || {}", quote_literal(before), text, quote_literal("'"));
}

std::string ValueText::member(const std::string& expr, const Field& field) const {
  return dialect_.member(expr, field.name);
}

std::string ValueText::struct_when(const std::string& condition,
                                   const Dialect::Members& members) const {
  return fmt::format("CASE WHEN {} THEN {} END", condition, dialect_.pack(members));
}

std::string ValueText::struct_of(const std::string& expr, const Dialect::Members& members) const {
  return struct_when(expr + " IS NOT NULL", members);
}

std::string ValueText::boxed_when(const std::string& condition, const std::string& value) const {
  return struct_when(condition, {{"v", value}});
}
std::string ValueText::unboxed(const std::string& box) const { return dialect_.member(box, "v"); }

std::string ValueText::list_of_texts(const std::vector<std::string>& texts) const {
  if (texts.empty()) return typed_null(DataType::array(kText));
  return fmt::format(
      "nullif({}, {})",
      dialect_.filter(dialect_.list(texts, kText), parameter(0), parameter(0) + " IS NOT NULL"),
      dialect_.list({}, kText));
}

std::string ValueText::list_has(const std::string& list, const std::string& text) const {
  return fmt::format("coalesce({}, false)", dialect_.contains(list, quote_literal(text)));
}

std::string ValueText::list_has_name(const std::string& list, const std::string& name) const {
  return fmt::format("coalesce({}, false)",
                     dialect_.contains(dialect_.transform(list, parameter(0),
                                                          fmt::format("lower({})", parameter(0))),
                                       fmt::format("lower({})", quote_literal(name))));
}

std::string ValueText::list_rows(const std::string& list, const std::string& from) const {
  return fmt::format("SELECT {} AS x FROM {}", dialect_.unnest(list), from);
}

// --- casts ---------------------------------------------------------------------------------------

std::string ValueText::cast_up(const std::string& expr, const DataType& from,
                               const DataType& to) const {
  return cast_nested(expr, from, to, 0);
}

std::string ValueText::cast_nested(const std::string& expr, const DataType& from,
                                   const DataType& to, int depth) const {
  if (same_type(from, to)) {
    // Settles the spelling of struct fields and gives an untyped NULL its type; else it costs
    // nothing.
    return fmt::format("CAST({} AS {})", expr, type_text(to));
  }
  const std::string x = parameter(depth);
  if (from.id == TypeId::kStruct && to.id == TypeId::kStruct) {
    Dialect::Members members;
    for (const Field& field : *to.fields) {
      const Field* source = find_member(from, field.name);
      members.emplace_back(
          field.name, source == nullptr
                          ? typed_null(field.type)
                          : cast_nested(member(expr, *source), source->type, field.type, depth));
    }
    return struct_of(expr, members);
  }
  if (from.id == TypeId::kArray && to.id == TypeId::kArray) {
    return dialect_.transform(expr, x, cast_nested(x, *from.element, *to.element, depth + 1));
  }
  if (from.id == TypeId::kMap && to.id == TypeId::kMap) {
    const std::string key = cast_nested(dialect_.member(x, "key"), *from.key, *to.key, depth + 1);
    const std::string value =
        cast_nested(dialect_.member(x, "value"), *from.element, *to.element, depth + 1);
    return dialect_.map_of(dialect_.transform(dialect_.entries(expr), x,
                                              dialect_.pack({{"key", key}, {"value", value}})));
  }
  return fmt::format("CAST({} AS {})", expr, type_text(to));
}

std::string ValueText::normal_zero(const std::string& expr, const DataType& type) const {
  return normal_nested(expr, type, 0);
}

std::string ValueText::normal_nested(const std::string& expr, const DataType& type,
                                     int depth) const {
  if (!contains(type, is_floating)) return expr;
  const std::string x = parameter(depth);
  switch (type.id) {
    case TypeId::kArray:
      return dialect_.transform(expr, x, normal_nested(x, *type.element, depth + 1));
    case TypeId::kStruct: {
      Dialect::Members members;
      for (const Field& field : *type.fields) {
        members.emplace_back(field.name, normal_nested(member(expr, field), field.type, depth));
      }
      return struct_of(expr, members);
    }
    default:
      return fmt::format("({} + CAST(0 AS {}))", expr, type_text(type));
  }
}

// --- equality and order --------------------------------------------------------------------------

std::string ValueText::comparable(const std::string& expr, const DataType& type) const {
  return comparable_nested(expr, type, 0);
}

std::string ValueText::comparable_nested(const std::string& expr, const DataType& type,
                                         int depth) const {
  if (!contains(type, is_map)) return expr;
  const std::string x = parameter(depth);
  switch (type.id) {
    case TypeId::kArray:
      return dialect_.transform(expr, x, comparable_nested(x, *type.element, depth + 1));
    case TypeId::kMap:
      return dialect_.sort(dialect_.transform(
          dialect_.entries(expr), x,
          dialect_.row(
              {comparable_nested(dialect_.member(x, "key"), *type.key, depth + 1),
               comparable_nested(dialect_.member(x, "value"), *type.element, depth + 1)})));
    default: {
      Dialect::Members members;
      for (const Field& field : *type.fields) {
        members.emplace_back(field.name, comparable_nested(member(expr, field), field.type, depth));
      }
      return struct_of(expr, members);
    }
  }
}

std::string ValueText::equal(const std::string& a, const std::string& b,
                             const DataType& type) const {
  return fmt::format("({} IS NOT DISTINCT FROM {})", comparable(a, type), comparable(b, type));
}

std::string ValueText::not_equal(const std::string& a, const std::string& b,
                                 const DataType& type) const {
  return fmt::format("({} IS DISTINCT FROM {})", comparable(a, type), comparable(b, type));
}

std::string ValueText::order_value(const std::string& expr, const DataType& type) const {
  return order_nested(expr, type, Fields::kAsTheyStand, 0);
}

std::string ValueText::rank_value(const std::string& expr, const DataType& type) const {
  return order_nested(expr, type, Fields::kByName, 0);
}

// Inside a nested value null comes first: the flag decides before the value does.
Dialect::Parts ValueText::order_parts(const std::string& expr, const DataType& type, Fields fields,
                                      int depth) const {
  return {expr + " IS NOT NULL", order_nested(expr, type, fields, depth)};
}

std::string ValueText::order_nested(const std::string& expr, const DataType& type, Fields fields,
                                    int depth) const {
  const std::string x = parameter(depth);
  switch (type.id) {
    case TypeId::kArray:
      return dialect_.transform(expr, x,
                                dialect_.row(order_parts(x, *type.element, fields, depth + 1)));
    case TypeId::kMap: {
      Dialect::Parts parts{order_nested(dialect_.member(x, "key"), *type.key, fields, depth + 1)};
      for (std::string& part :
           order_parts(dialect_.member(x, "value"), *type.element, fields, depth + 1)) {
        parts.push_back(std::move(part));
      }
      return dialect_.sort(dialect_.transform(dialect_.entries(expr), x, dialect_.row(parts)));
    }
    case TypeId::kStruct: {
      std::vector<Field> members = *type.fields;
      if (fields == Fields::kByName) {
        std::sort(members.begin(), members.end(), [](const Field& a, const Field& b) {
          return fold_name(a.name) < fold_name(b.name);
        });
      }
      Dialect::Parts parts;
      for (const Field& field : members) {
        for (std::string& part : order_parts(member(expr, field), field.type, fields, depth)) {
          parts.push_back(std::move(part));
        }
      }
      return fmt::format("CASE WHEN {} IS NOT NULL THEN {} END", expr, dialect_.row(parts));
    }
    default:
      return expr;
  }
}

std::string ValueText::greater(const std::string& a, const std::string& b,
                               const DataType& type) const {
  return fmt::format(
      "(CASE WHEN {0} IS NULL THEN false WHEN {1} IS NULL THEN true ELSE {2} > {3} END)", a, b,
      rank_value(a, type), rank_value(b, type));
}

bool ValueText::has_look_alikes(const DataType& type) {
  return contains(type, [](const DataType& part) { return is_floating(part) || is_map(part); });
}

std::string ValueText::greatest(const std::string& expr, const DataType& type) const {
  if (!has_look_alikes(type)) return value_of_greatest(expr, rank_value(expr, type));
  // Aggregates that compare may write values anew from their sort keys, and -0.0 becomes 0.0;
  // boxes that are only carried along stay as they are.
  return unboxed(
      dialect_.box_of_greatest(boxed_when("true", expr), {rank_value(expr, type), spelling(expr)}));
}

std::string ValueText::identical(const std::string& a, const std::string& b,
                                 const DataType& type) const {
  if (!has_look_alikes(type)) return equal(a, b, type);
  return fmt::format("({} AND {} IS NOT DISTINCT FROM {})", equal(a, b, type), spelling(a),
                     spelling(b));
}

}  // namespace strandline::cdc
