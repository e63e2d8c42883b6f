#include "pipeline/exact_cast.h"

#include <fmt/format.h>

#include "duck/connection.h"
#include "sql/duckdb_printer.h"

namespace strandline::pipeline {
namespace {

using duck::engine_type;
using duck::quote_literal;
using duck::quote_name;

}  // namespace

std::string carrier_type(const DataType& type) {
  switch (type.id) {
    case TypeId::kStruct: {
      std::string out = "STRUCT(";
      for (const auto& field : *type.fields) {
        if (&field != &type.fields->front()) out += ", ";
        out += quote_name(field.name) + " " + carrier_type(field.type);
      }
      return out + ")";
    }
    case TypeId::kArray:
      return carrier_type(*type.element) + "[]";
    case TypeId::kMap:
      return fmt::format("MAP(VARCHAR, {})", carrier_type(*type.element));
    default:
      return "VARCHAR";
  }
}

std::string bad_value(const std::string& value, const DataType& type, TextKind kind) {
  const std::string target = duck::engine_type(type);
  switch (type.id) {
    case TypeId::kLong:
    case TypeId::kInteger:
    case TypeId::kShort:
    case TypeId::kByte:
      // The engine would round 1.5 and read 1_000: what does not print as it was written is looked
      // at.
      return fmt::format(
          "CASE WHEN {0} IS NULL THEN false WHEN TRY_CAST({0} AS {1}) IS NULL THEN true "
          "WHEN CAST(TRY_CAST({0} AS {1}) AS VARCHAR) = {0} THEN false "
          "ELSE NOT regexp_full_match({0}, '\\s*[+-]?[0-9]+(\\.0*)?\\s*') END",
          value, target);
    case TypeId::kDecimal:
      return fmt::format(
          "({0} IS NOT NULL AND (TRY_CAST({0} AS {1}) IS NULL OR NOT regexp_full_match({0}, "
          "'\\s*[+-]?[0-9]*(\\.[0-9]{{0,{2}}}0*)?\\s*')))",
          value, target, type.scale);
    case TypeId::kDouble:
      return fmt::format("({0} IS NOT NULL AND TRY_CAST({0} AS DOUBLE) IS NULL)", value);
    case TypeId::kFloat:
      return fmt::format(
          "({0} IS NOT NULL AND (TRY_CAST({0} AS FLOAT) IS NULL OR "
          "isinf(TRY_CAST({0} AS FLOAT)) <> isinf(TRY_CAST({0} AS DOUBLE))))",
          value);
    case TypeId::kBoolean:
      return fmt::format("({0} IS NOT NULL AND lower({0}) NOT IN ('true', 'false'))", value);
    case TypeId::kDate:
      // The engine would drop a time of day.
      return fmt::format(
          "({0} IS NOT NULL AND (TRY_CAST({0} AS DATE) IS NULL OR NOT regexp_full_match({0}, "
          "'\\s*[+-]?[0-9]+-[0-9]{{1,2}}-[0-9]{{1,2}}\\s*')))",
          value);
    case TypeId::kTimestamp:
      return fmt::format(
          "({0} IS NOT NULL AND (TRY_CAST({0} AS TIMESTAMPTZ) IS NULL OR (contains({0}, '.') AND "
          "regexp_matches({0}, '\\.[0-9]{{6}}[0-9]*[1-9]'))))",
          value);
    case TypeId::kTimestampNtz:
      // The engine would drop a zone.
      return fmt::format(
          "({0} IS NOT NULL AND (TRY_CAST({0} AS TIMESTAMP) IS NULL OR (contains({0}, '.') AND "
          "regexp_matches({0}, '\\.[0-9]{{6}}[0-9]*[1-9]')) OR regexp_matches({0}, "
          "':.*([Zz+-]|[0-9] ?[A-Za-z])')))",
          value);
    case TypeId::kBinary:
      if (kind == TextKind::kText) return "false";
      return fmt::format("({0} IS NOT NULL AND TRY(from_base64({0})) IS NULL)", value);
    case TypeId::kString:
      return "false";
    case TypeId::kStruct: {
      std::string out;
      for (const auto& field : *type.fields) {
        const std::string part =
            fmt::format("struct_extract({}, {})", value, quote_literal(field.name));
        out += (out.empty() ? "(" : " OR ") + bad_value(part, field.type, kind);
      }
      return fmt::format("({} IS NOT NULL AND {}))", value, out);
    }
    case TypeId::kArray: {
      const std::string item = fmt::format("sl_item{}", value.size());
      return fmt::format("COALESCE(len(list_filter({0}, lambda {1}: {2})) > 0, false)", value, item,
                         bad_value(item, *type.element, kind));
    }
    case TypeId::kMap: {
      const std::string item = fmt::format("sl_item{}", value.size());
      return fmt::format(
          "COALESCE(len(list_filter(map_entries({0}), lambda {1}: {2} OR {3})) > 0, false)", value,
          item,
          bad_value(fmt::format("struct_extract({}, 'key')", item), *type.key, TextKind::kText),
          bad_value(fmt::format("struct_extract({}, 'value')", item), *type.element, kind));
    }
    default:
      return fmt::format("({0} IS NOT NULL AND TRY_CAST({0} AS {1}) IS NULL)", value, target);
  }
}

std::string good_value(const std::string& value, const DataType& type, TextKind kind) {
  const std::string target = duck::engine_type(type);
  switch (type.id) {
    case TypeId::kString:
      return value;
    case TypeId::kBinary:
      return kind == TextKind::kText ? fmt::format("encode({})", value)
                                     : fmt::format("TRY(from_base64({}))", value);
    case TypeId::kStruct: {
      std::string out;
      for (const auto& field : *type.fields) {
        const std::string part =
            fmt::format("struct_extract({}, {})", value, quote_literal(field.name));
        if (!out.empty()) out += ", ";
        out += quote_name(field.name) + " := " + good_value(part, field.type, kind);
      }
      return fmt::format("CASE WHEN {} IS NOT NULL THEN struct_pack({}) END", value, out);
    }
    case TypeId::kArray: {
      const std::string item = fmt::format("sl_item{}", value.size());
      return fmt::format("list_transform({}, lambda {}: {})", value, item,
                         good_value(item, *type.element, kind));
    }
    case TypeId::kMap: {
      const std::string item = fmt::format("sl_item{}", value.size());
      return fmt::format(
          "CASE WHEN {0} IS NOT NULL THEN map_from_entries(list_transform(map_entries({0}), lambda "
          "{1}: "
          "struct_pack(k := {2}, v := {3}))) END",
          value, item,
          good_value(fmt::format("struct_extract({}, 'key')", item), *type.key, TextKind::kText),
          good_value(fmt::format("struct_extract({}, 'value')", item), *type.element, kind));
    }
    default:
      if (type.id == TypeId::kTimestamp) return sql::duckdb_instant_of_text(value, true);
      return fmt::format("TRY_CAST({} AS {})", value, target);
  }
}

namespace {

std::string try_cast_of(const std::string& value, const DataType& from, const DataType& to) {
  const std::string exact = sql::duckdb_exact_cast(value, from, to, true);
  return exact.empty() ? fmt::format("TRY_CAST({} AS {})", value, engine_type(to)) : exact;
}

}  // namespace

std::string bad_typed_value(const std::string& value, const DataType& from, const DataType& to) {
  if (same_type(from, to)) return "false";
  if (from.id == TypeId::kString) return bad_value(value, to, TextKind::kText);
  const std::string there = try_cast_of(value, from, to);
  return fmt::format("({0} IS NOT NULL AND ({1} IS NULL OR {2} IS DISTINCT FROM {0}))", value,
                     there, try_cast_of(there, to, from));
}

std::string good_typed_value(const std::string& value, const DataType& from, const DataType& to) {
  if (same_type(from, to)) return value;
  if (from.id == TypeId::kString) return good_value(value, to, TextKind::kText);
  return try_cast_of(value, from, to);
}

}  // namespace strandline::pipeline
