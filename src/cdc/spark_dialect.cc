#include <fmt/format.h>

#include "base/error.h"
#include "cdc/dialect.h"
#include "sql/duckdb_printer.h"

namespace strandline::cdc {

namespace {

// A type that Spark cannot compare, group or sort by, or not write down.
const DataType* find_unsupported(const DataType& type) {
  switch (type.id) {
    case TypeId::kVariant:
    case TypeId::kInterval:
    case TypeId::kVoid:
      return &type;
    case TypeId::kArray:
      return find_unsupported(*type.element);
    case TypeId::kMap: {
      const DataType* key = find_unsupported(*type.key);
      return key != nullptr ? key : find_unsupported(*type.element);
    }
    case TypeId::kStruct:
      for (const Field& field : *type.fields) {
        if (const DataType* part = find_unsupported(field.type)) return part;
      }
      return nullptr;
    default:
      return nullptr;
  }
}

// What a flow may say and Spark itself does not know.
Status check_expression(const sql::Expr& expr) {
  if (expr.as<sql::JsonAccess>() != nullptr) {
    Error error = unsupported("UNSUPPORTED_IN_DIALECT",
                              "{}: Spark SQL has no operator ':': write get_json_object(column, "
                              "'$.field')",
                              sql::print_spark(expr));
    error.place = expr.place;
    return error;
  }
  Status status;
  sql::for_each_child(expr, [&](const sql::ExprPtr& child) {
    if (status.ok()) status = check_expression(*child);
  });
  return status;
}

class SparkDialect : public Dialect {
 public:
  std::string quote_name(const std::string& name) const override {
    std::string quoted = "`";
    for (const char c : name) {
      if (c == '`') quoted += '`';
      quoted += c;
    }
    return quoted + "`";
  }
  std::string quote_literal(const std::string& text) const override {
    std::string quoted = "'";
    for (const char c : text) {
      if (c == '\'' || c == '\\') quoted += '\\';
      quoted += c;
    }
    return quoted + "'";
  }
  // Names of struct fields are quoted, whatever they are.
  std::string type(const DataType& type) const override {
    switch (type.id) {
      case TypeId::kArray:
        return fmt::format("ARRAY<{}>", this->type(*type.element));
      case TypeId::kMap:
        return fmt::format("MAP<{}, {}>", this->type(*type.key), this->type(*type.element));
      case TypeId::kStruct: {
        Parts parts;
        for (const Field& field : *type.fields)
          parts.push_back(quote_name(field.name) + ": " + this->type(field.type));
        return fmt::format("STRUCT<{}>", fmt::join(parts, ", "));
      }
      default:
        return to_sql(type);
    }
  }
  Status check(const Field& column) const override {
    const DataType* part = find_unsupported(column.type);
    if (part == nullptr) return {};
    return unsupported("UNSUPPORTED_IN_DIALECT",
                       "column '{}' is {}, and Spark SQL has no equality for {}: leave it out with "
                       "COLUMNS * EXCEPT ({}), or select it as a STRING in the source query",
                       column.name, to_sql(column.type), to_sql(*part), column.name);
  }
  // The batch's time is the engine's own: Spark has one for each query.
  Result<std::string> print(const sql::Expr& expr, std::optional<int64_t>) const override {
    SL_TRY(check_expression(expr));
    return sql::print_spark(expr);
  }

  std::string member(const std::string& expr, const std::string& name) const override {
    return fmt::format("({}).{}", expr, quote_name(name));
  }
  std::string pack(const Members& members) const override {
    Parts parts;
    for (const auto& [name, value] : members) {
      parts.push_back(quote_literal(name));
      parts.push_back(value);
    }
    return fmt::format("named_struct({})", fmt::join(parts, ", "));
  }
  // Names must be equal, or two structs do not compare.
  std::string row(const Parts& parts) const override {
    Members members;
    for (const std::string& part : parts) {
      members.emplace_back(fmt::format("p{}", members.size()), part);
    }
    return pack(members);
  }
  std::string transform(const std::string& list, const std::string& x,
                        const std::string& body) const override {
    return fmt::format("transform({}, {} -> {})", list, x, body);
  }
  std::string filter(const std::string& list, const std::string& x,
                     const std::string& condition) const override {
    return fmt::format("filter({}, {} -> {})", list, x, condition);
  }
  std::string sort(const std::string& list) const override {
    return fmt::format("sort_array({})", list);
  }
  std::string list(const Parts& elements, const DataType& element) const override {
    return fmt::format("CAST(array({}) AS {})", fmt::join(elements, ", "),
                       type(DataType::array(element)));
  }
  std::string contains(const std::string& list, const std::string& value) const override {
    return fmt::format("array_contains({}, {})", list, value);
  }
  std::string unnest(const std::string& list) const override {
    return fmt::format("explode({})", list);
  }
  std::string entries(const std::string& map) const override {
    return fmt::format("map_entries({})", map);
  }
  std::string map_of(const std::string& entries) const override {
    return fmt::format("map_from_entries({})", entries);
  }

  // Rows whose value is null are rows whose `by` is.
  std::string value_of_greatest(const std::string& value, const std::string& by) const override {
    return fmt::format("max_by({}, {})", value, by);
  }
  std::string value_of_least(const std::string& value, const std::string& by) const override {
    return fmt::format("min_by({}, {})", value, by);
  }
  // Structs compare part by part, nulls least.
  std::string box_of_greatest(const std::string& box, const Parts& by) const override {
    return fmt::format("max_by({}, {})", box, row(by));
  }
  std::string last_not_null(const std::string& expr, const std::string& window) const override {
    return fmt::format("last_value({}) IGNORE NULLS OVER {}", expr, window);
  }

  std::string along(const std::string& keys, const std::string& terms) const override {
    return fmt::format("PARTITION BY {} ORDER BY {}", keys, terms);
  }

  std::string hash(const Parts& values, int bits) const override {
    if (values.empty() || bits == 0) return "0L";
    const std::string hash = fmt::format("xxhash64({})", fmt::join(values, ", "));
    return bits >= 64 ? hash : fmt::format("shiftrightunsigned({}, {})", hash, 64 - bits);
  }

  std::string numbered(const std::string& query) const override {
    return fmt::format("SELECT monotonically_increasing_id() AS rowid, q.* FROM ({}) AS q", query);
  }
  std::string append(const std::string& table, const std::string& query,
                     bool is_numbered) const override {
    if (!is_numbered) {
      return fmt::format("SELECT * FROM {} UNION ALL SELECT * FROM ({})", table, query);
    }
    return fmt::format(
        "SELECT * FROM {0} UNION ALL SELECT (SELECT coalesce(max(rowid), -1) + 1 FROM {0}) + "
        "monotonically_increasing_id(), q.* FROM ({1}) AS q",
        table, query);
  }
  std::string update(const std::string& table, const std::string& column, const std::string& value,
                     const std::string& from, const std::string& condition) const override {
    return fmt::format(
        "SELECT r.* EXCEPT ({1}), CASE WHEN f.is_met THEN {2} ELSE r.{1} END AS {1} FROM {0} AS r "
        "LEFT JOIN (SELECT *, true AS is_met FROM {3}) AS f ON {4}",
        table, column, value, from, condition);
  }
  std::string remove(const std::string& table, const std::string& from,
                     const std::string& condition) const override {
    return fmt::format("SELECT r.* FROM {} AS r ANTI JOIN {} AS f ON {}", table, from, condition);
  }
};

}  // namespace

const Dialect& spark_dialect() {
  static const SparkDialect dialect;
  return dialect;
}

}  // namespace strandline::cdc
