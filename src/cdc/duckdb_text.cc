#include "cdc/duckdb_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <vector>

namespace strandline::cdc {

namespace {

std::string quote(const std::string& text, char mark) {
  std::string quoted(1, mark);
  for (const char c : text) {
    if (c == mark) quoted += mark;
    quoted += c;
  }
  return quoted + mark;
}

// Names of lambda parameters differ by depth, so that inner ones hide nothing.
std::string parameter(int depth) { return fmt::format("__strandline_x{}", depth); }

const Field* find_member(const DataType& type, const std::string& name) {
  for (const Field& field : *type.fields) {
    if (same_name(field.name, name)) return &field;
  }
  return nullptr;
}

std::string struct_of(const std::string& expr,
                      const std::vector<std::pair<std::string, std::string>>& members) {
  return struct_when(expr + " IS NOT NULL", members);
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

std::string cast_nested(const std::string& expr, const DataType& from, const DataType& to,
                        int depth) {
  if (same_type(from, to)) {
    // Settles the spelling of struct fields and gives an untyped NULL its type; else it costs
    // nothing.
    return fmt::format("CAST({} AS {})", expr, duckdb_type(to));
  }
  const std::string x = parameter(depth);
  if (from.id == TypeId::kStruct && to.id == TypeId::kStruct) {
    std::vector<std::pair<std::string, std::string>> members;
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
    return fmt::format("list_transform({}, lambda {}: {})", expr, x,
                       cast_nested(x, *from.element, *to.element, depth + 1));
  }
  if (from.id == TypeId::kMap && to.id == TypeId::kMap) {
    return fmt::format(
        "map_from_entries(list_transform(map_entries({}), lambda {}: struct_pack(key := {}, value "
        ":= {})))",
        expr, x,
        cast_nested(fmt::format("struct_extract({}, 'key')", x), *from.key, *to.key, depth + 1),
        cast_nested(fmt::format("struct_extract({}, 'value')", x), *from.element, *to.element,
                    depth + 1));
  }
  return fmt::format("CAST({} AS {})", expr, duckdb_type(to));
}

std::string normal_nested(const std::string& expr, const DataType& type, int depth) {
  if (!contains(type, is_floating)) return expr;
  const std::string x = parameter(depth);
  switch (type.id) {
    case TypeId::kArray:
      return fmt::format("list_transform({}, lambda {}: {})", expr, x,
                         normal_nested(x, *type.element, depth + 1));
    case TypeId::kStruct: {
      std::vector<std::pair<std::string, std::string>> members;
      for (const Field& field : *type.fields) {
        members.emplace_back(field.name, normal_nested(member(expr, field), field.type, depth));
      }
      return struct_of(expr, members);
    }
    default:
      return fmt::format("({} + CAST(0 AS {}))", expr, duckdb_type(type));
  }
}

std::string comparable_nested(const std::string& expr, const DataType& type, int depth) {
  if (!contains(type, is_map)) return expr;
  const std::string x = parameter(depth);
  switch (type.id) {
    case TypeId::kArray:
      return fmt::format("list_transform({}, lambda {}: {})", expr, x,
                         comparable_nested(x, *type.element, depth + 1));
    case TypeId::kMap:
      return fmt::format(
          "list_sort(list_transform(map_entries({}), lambda {}: row({}, {})))", expr, x,
          comparable_nested(fmt::format("struct_extract({}, 'key')", x), *type.key, depth + 1),
          comparable_nested(fmt::format("struct_extract({}, 'value')", x), *type.element,
                            depth + 1));
    default: {
      std::vector<std::pair<std::string, std::string>> members;
      for (const Field& field : *type.fields) {
        members.emplace_back(field.name, comparable_nested(member(expr, field), field.type, depth));
      }
      return struct_of(expr, members);
    }
  }
}

std::string order_nested(const std::string& expr, const DataType& type, int depth);

// Inside a nested value null comes first: the flag decides before the value does.
std::string order_parts(const std::string& expr, const DataType& type, int depth) {
  return fmt::format("{} IS NOT NULL, {}", expr, order_nested(expr, type, depth));
}

std::string order_nested(const std::string& expr, const DataType& type, int depth) {
  const std::string x = parameter(depth);
  switch (type.id) {
    case TypeId::kArray:
      return fmt::format("list_transform({}, lambda {}: row({}))", expr, x,
                         order_parts(x, *type.element, depth + 1));
    case TypeId::kMap:
      return fmt::format(
          "list_sort(list_transform(map_entries({}), lambda {}: row({}, {})))", expr, x,
          order_nested(fmt::format("struct_extract({}, 'key')", x), *type.key, depth + 1),
          order_parts(fmt::format("struct_extract({}, 'value')", x), *type.element, depth + 1));
    case TypeId::kStruct: {
      std::vector<std::string> parts;
      for (const Field& field : *type.fields)
        parts.push_back(order_parts(member(expr, field), field.type, depth));
      return fmt::format("CASE WHEN {} IS NOT NULL THEN row({}) END", expr, fmt::join(parts, ", "));
    }
    default:
      return expr;
  }
}

}  // namespace

std::string quote_name(const std::string& name) { return quote(name, '"'); }
std::string quote_literal(const std::string& text) { return quote(text, '\''); }

std::string member(const std::string& expr, const Field& field) {
  return fmt::format("struct_extract({}, {})", expr, quote_literal(field.name));
}

std::string struct_when(const std::string& condition,
                        const std::vector<std::pair<std::string, std::string>>& members) {
  std::vector<std::string> parts;
  parts.reserve(members.size());
  for (const auto& [name, value] : members) parts.push_back(quote_name(name) + " := " + value);
  return fmt::format("CASE WHEN {} THEN struct_pack({}) END", condition, fmt::join(parts, ", "));
}

std::string boxed_when(const std::string& condition, const std::string& value) {
  return struct_when(condition, {{"v", value}});
}
std::string unboxed(const std::string& box) { return fmt::format("struct_extract({}, 'v')", box); }

std::string last_not_null(const std::string& expr, const std::string& window) {
  return fmt::format("last_value({} IGNORE NULLS) OVER {}", expr, window);
}

std::string list_of_texts(const std::vector<std::string>& texts) {
  if (texts.empty()) return "CAST(NULL AS VARCHAR[])";
  return fmt::format(
      "nullif(list_filter(CAST([{}] AS VARCHAR[]), lambda {}: {} IS NOT NULL), CAST([] AS "
      "VARCHAR[]))",
      fmt::join(texts, ", "), parameter(0), parameter(0));
}

std::string list_has(const std::string& list, const std::string& text) {
  return fmt::format("coalesce(list_contains({}, {}), false)", list, quote_literal(text));
}

std::string list_has_name(const std::string& list, const std::string& name) {
  return fmt::format(
      "coalesce(list_contains(list_transform({}, lambda {}: lower({})), lower({})), false)", list,
      parameter(0), parameter(0), quote_literal(name));
}

std::string list_rows(const std::string& list, const std::string& from) {
  return fmt::format("SELECT unnest({}) AS x FROM {}", list, from);
}

std::string value_of_greatest(const std::string& value, const std::string& by) {
  return fmt::format("arg_max({}, {})", value, by);
}

std::string value_of_least(const std::string& value, const std::string& by) {
  return fmt::format("arg_min({}, {})", value, by);
}

std::string duckdb_type(const DataType& type) {
  switch (type.id) {
    case TypeId::kString:
      return "VARCHAR";
    case TypeId::kLong:
      return "BIGINT";
    case TypeId::kInteger:
      return "INTEGER";
    case TypeId::kShort:
      return "SMALLINT";
    case TypeId::kByte:
      return "TINYINT";
    case TypeId::kFloat:
      return "FLOAT";
    case TypeId::kDouble:
      return "DOUBLE";
    case TypeId::kDecimal:
      return fmt::format("DECIMAL({}, {})", type.precision, type.scale);
    case TypeId::kBoolean:
      return "BOOLEAN";
    case TypeId::kBinary:
      return "BLOB";
    case TypeId::kDate:
      return "DATE";
    case TypeId::kTimestamp:
      return "TIMESTAMP WITH TIME ZONE";
    case TypeId::kTimestampNtz:
      return "TIMESTAMP";
    case TypeId::kInterval:
      return "INTERVAL";
    case TypeId::kVariant:
      return "VARIANT";
    case TypeId::kVoid:
      return "\"NULL\"";
    case TypeId::kArray:
      return duckdb_type(*type.element) + "[]";
    case TypeId::kMap:
      return fmt::format("MAP({}, {})", duckdb_type(*type.key), duckdb_type(*type.element));
    case TypeId::kStruct: {
      std::vector<std::string> parts;
      for (const Field& field : *type.fields)
        parts.push_back(quote_name(field.name) + " " + duckdb_type(field.type));
      return fmt::format("STRUCT({})", fmt::join(parts, ", "));
    }
  }
  return "VARCHAR";
}

std::string typed_null(const DataType& type) {
  return fmt::format("CAST(NULL AS {})", duckdb_type(type));
}

std::string cast_up(const std::string& expr, const DataType& from, const DataType& to) {
  return cast_nested(expr, from, to, 0);
}

std::string normal_zero(const std::string& expr, const DataType& type) {
  return normal_nested(expr, type, 0);
}

std::string comparable(const std::string& expr, const DataType& type) {
  return comparable_nested(expr, type, 0);
}

std::string equal(const std::string& a, const std::string& b, const DataType& type) {
  return fmt::format("({} IS NOT DISTINCT FROM {})", comparable(a, type), comparable(b, type));
}

std::string not_equal(const std::string& a, const std::string& b, const DataType& type) {
  return fmt::format("({} IS DISTINCT FROM {})", comparable(a, type), comparable(b, type));
}

std::string order_value(const std::string& expr, const DataType& type) {
  return order_nested(expr, type, 0);
}

std::string greater(const std::string& a, const std::string& b, const DataType& type) {
  return fmt::format(
      "(CASE WHEN {0} IS NULL THEN false WHEN {1} IS NULL THEN true ELSE {2} > {3} END)", a, b,
      order_value(a, type), order_value(b, type));
}

bool has_look_alikes(const DataType& type) {
  return contains(type, [](const DataType& part) { return is_floating(part) || is_map(part); });
}

std::string greatest(const std::string& expr, const DataType& type) {
  if (!has_look_alikes(type)) return value_of_greatest(expr, order_value(expr, type));
  // Aggregates that compare write values anew from their sort keys, as does a sort of what it sorts
  // by, and -0.0 becomes 0.0; boxes that are only carried along stay as they are.
  return unboxed(
      fmt::format("list_extract(list({0} ORDER BY {1} DESC NULLS LAST, {2} DESC NULLS LAST), 1)",
                  boxed_when("true", expr), order_value(expr, type), spelling(expr)));
}

std::string identical(const std::string& a, const std::string& b, const DataType& type) {
  if (!has_look_alikes(type)) return equal(a, b, type);
  return fmt::format("({} AND {} IS NOT DISTINCT FROM {})", equal(a, b, type), spelling(a),
                     spelling(b));
}

std::string spelling(const std::string& expr) { return fmt::format("CAST({} AS VARCHAR)", expr); }

}  // namespace strandline::cdc
