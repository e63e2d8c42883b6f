#include <fmt/format.h>

#include "cdc/dialect.h"
#include "sql/duckdb_printer.h"

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

class DuckDbDialect : public Dialect {
 public:
  std::string quote_name(const std::string& name) const override { return quote(name, '"'); }
  std::string quote_literal(const std::string& text) const override { return quote(text, '\''); }
  std::string type(const DataType& type) const override;
  Status check(const Field&) const override { return {}; }

  Result<std::string> print(const sql::Expr& expr, std::optional<int64_t> now_us) const override {
    sql::PrintOptions options;
    options.now_us = now_us;
    return sql::print_duckdb(expr, options);
  }

  std::string member(const std::string& expr, const std::string& name) const override {
    return fmt::format("struct_extract({}, {})", expr, quote_literal(name));
  }
  std::string pack(const Members& members) const override {
    Parts parts;
    parts.reserve(members.size());
    for (const auto& [name, value] : members) parts.push_back(quote_name(name) + " := " + value);
    return fmt::format("struct_pack({})", fmt::join(parts, ", "));
  }
  std::string row(const Parts& parts) const override {
    return fmt::format("row({})", fmt::join(parts, ", "));
  }
  std::string transform(const std::string& list, const std::string& x,
                        const std::string& body) const override {
    return fmt::format("list_transform({}, lambda {}: {})", list, x, body);
  }
  std::string filter(const std::string& list, const std::string& x,
                     const std::string& condition) const override {
    return fmt::format("list_filter({}, lambda {}: {})", list, x, condition);
  }
  std::string sort(const std::string& list) const override {
    return fmt::format("list_sort({})", list);
  }
  std::string list(const Parts& elements, const DataType& element) const override {
    return fmt::format("CAST([{}] AS {}[])", fmt::join(elements, ", "), type(element));
  }
  std::string contains(const std::string& list, const std::string& value) const override {
    return fmt::format("list_contains({}, {})", list, value);
  }
  std::string unnest(const std::string& list) const override {
    return fmt::format("unnest({})", list);
  }
  std::string entries(const std::string& map) const override {
    return fmt::format("map_entries({})", map);
  }
  std::string map_of(const std::string& entries) const override {
    return fmt::format("map_from_entries({})", entries);
  }

  std::string value_of_greatest(const std::string& value, const std::string& by) const override {
    return fmt::format("arg_max({}, {})", value, by);
  }
  std::string value_of_least(const std::string& value, const std::string& by) const override {
    return fmt::format("arg_min({}, {})", value, by);
  }
  std::string box_of_greatest(const std::string& box, const Parts& by) const override {
    return fmt::format("list_extract(list({} ORDER BY {} DESC NULLS LAST), 1)", box,
                       fmt::join(by, " DESC NULLS LAST, "));
  }
  std::string last_not_null(const std::string& expr, const std::string& window) const override {
    return fmt::format("last_value({} IGNORE NULLS) OVER {}", expr, window);
  }

  // For few rows a tenth of the work of a window of many partitions, for many no more.
  std::string along(const std::string& keys, const std::string& terms) const override {
    return fmt::format("ORDER BY {}, {}", keys, terms);
  }

  std::string hash(const Parts& values, int bits) const override {
    if (values.empty() || bits == 0) return "CAST(0 AS UBIGINT)";
    const std::string hash = fmt::format("hash({})", fmt::join(values, ", "));
    return bits >= 64 ? hash : fmt::format("({} >> {})", hash, 64 - bits);
  }

  // Every table has the pseudo column rowid.
  std::string numbered(const std::string& query) const override { return query; }
  std::string append(const std::string& table, const std::string& query, bool) const override {
    return fmt::format("INSERT INTO {} {}", table, query);
  }
  std::string update(const std::string& table, const std::string& column, const std::string& value,
                     const std::string& from, const std::string& condition) const override {
    return fmt::format("UPDATE {} AS r SET {} = {} FROM {} AS f WHERE {}", table, column, value,
                       from, condition);
  }
  std::string remove(const std::string& table, const std::string& from,
                     const std::string& condition) const override {
    return fmt::format("DELETE FROM {} AS r USING {} AS f WHERE {}", table, from, condition);
  }
};

std::string DuckDbDialect::type(const DataType& type) const {
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
      return this->type(*type.element) + "[]";
    case TypeId::kMap:
      return fmt::format("MAP({}, {})", this->type(*type.key), this->type(*type.element));
    case TypeId::kStruct: {
      std::vector<std::string> parts;
      for (const Field& field : *type.fields)
        parts.push_back(quote_name(field.name) + " " + this->type(field.type));
      return fmt::format("STRUCT({})", fmt::join(parts, ", "));
    }
  }
  return "VARCHAR";
}

}  // namespace

const Dialect& duckdb_dialect() {
  static const DuckDbDialect dialect;
  return dialect;
}

}  // namespace strandline::cdc
