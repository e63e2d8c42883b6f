#include "engine/assignment.h"

#include <strandline/suggest.h>

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "delta/column_rules.h"
#include "duck/describer.h"
#include "engine/conditions.h"
#include "sql/duckdb_printer.h"
#include "sql/parser.h"

namespace strandline::engine {
namespace {

bool is_integer(const DataType& type) {
  return type.id == TypeId::kByte || type.id == TypeId::kShort || type.id == TypeId::kInteger ||
         type.id == TypeId::kLong;
}
bool is_floating(const DataType& type) {
  return type.id == TypeId::kFloat || type.id == TypeId::kDouble;
}
bool is_numeric(const DataType& type) {
  return is_integer(type) || is_floating(type) || type.id == TypeId::kDecimal;
}
bool is_time(const DataType& type) {
  return type.id == TypeId::kDate || type.id == TypeId::kTimestamp ||
         type.id == TypeId::kTimestampNtz;
}

std::string failing(const std::string& code, const std::string& before, const std::string& value,
                    const std::string& after) {
  return fmt::format("error(concat('[', '{}', '] ', {}, CAST({} AS VARCHAR), {}))", code,
                     duck::quote_literal(before), value, duck::quote_literal(after));
}

// The column that a value enters, for messages.
struct CastPlace {
  const Field& column;
  const DataType& source;  // of the whole value
  const std::string& table;
  StructsBy structs_by;

  std::string where() const { return fmt::format(" in column {} of {}", column.name, table); }
  Error misfit() const {
    return invalid_argument("INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST",
                            "column {} of {} is {} and cannot take {}: cast the value", column.name,
                            table, to_sql(column.type), to_sql(source));
  }
  Error other_members(const DataType& given, const DataType& wanted) const {
    return invalid_argument(
        "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION",
        "column {} of {} holds {}, and the value is {}: give all of its fields and no others, set "
        "the fields one by one as in SET {}.{} = ..., or use WITH SCHEMA EVOLUTION",
        column.name, table, to_sql(wanted), to_sql(given), column.name,
        wanted.fields->front().name);
  }
};

// A value to cast: its text, and how many lambdas are around.
struct Item {
  std::string text;
  DataType type;
  int depth = 0;
};

Result<std::string> cast_text(const Item& from, const DataType& to, const CastPlace& place);

const Field* member_of(const DataType& type, const std::string& name) {
  for (const auto& field : *type.fields) {
    if (same_name(field.name, name)) return &field;
  }
  return nullptr;
}

// Member by member, in the order of the target's.
Result<std::string> cast_struct(const Item& from, const DataType& to, const CastPlace& place) {
  const auto& given = *from.type.fields;
  const auto& wanted = *to.fields;
  const bool by_position = place.structs_by == StructsBy::kPosition;
  if (by_position && given.size() != wanted.size()) {
    return invalid_argument(
        given.size() > wanted.size() ? "INSERT_COLUMN_ARITY_MISMATCH.TOO_MANY_DATA_COLUMNS"
                                     : "INSERT_COLUMN_ARITY_MISMATCH.NOT_ENOUGH_DATA_COLUMNS",
        "a struct in column {} of {} has {} fields, but the rows give {}, and "
        "they go by position: give all of {}, or use INSERT INTO ... BY NAME",
        place.column.name, place.table, wanted.size(), given.size(), to_sql(to));
  }
  if (place.structs_by == StructsBy::kWholeName) {
    for (const auto& field : given) {
      if (member_of(to, field.name) == nullptr) return place.other_members(from.type, to);
    }
    if (given.size() != wanted.size()) return place.other_members(from.type, to);
  }
  for (const auto& field : given) {
    if (!by_position && member_of(to, field.name) == nullptr) return place.misfit();
  }
  std::string members;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto& field = wanted[i];
    const auto* source = by_position ? &given[i] : member_of(from.type, field.name);
    auto text = fmt::format("CAST(NULL AS {})", duck::engine_type(field.type));
    if (source != nullptr) {
      const auto extract =
          fmt::format("struct_extract({}, {})", from.text, duck::quote_literal(source->name));
      SL_ASSIGN(text, cast_text({extract, source->type, from.depth}, field.type, place));
    }
    members +=
        fmt::format("{}{} := {}", members.empty() ? "" : ", ", duck::quote_name(field.name), text);
  }
  return fmt::format("CASE WHEN {0} IS NULL THEN NULL ELSE struct_pack({1}) END", from.text,
                     members);
}

Result<std::string> cast_list(const Item& from, const DataType& to, const CastPlace& place) {
  const auto item = fmt::format("__strandline_item_{}", from.depth);
  SL_ASSIGN(const auto inner,
            cast_text({item, *from.type.element, from.depth + 1}, *to.element, place));
  return fmt::format("list_transform({}, lambda {}: {})", from.text, item, inner);
}

Result<std::string> cast_map(const Item& from, const DataType& to, const CastPlace& place) {
  const auto entry = fmt::format("__strandline_item_{}", from.depth);
  SL_ASSIGN(const auto key,
            cast_text({entry + ".key", *from.type.key, from.depth + 1}, *to.key, place));
  SL_ASSIGN(const auto item,
            cast_text({entry + ".value", *from.type.element, from.depth + 1}, *to.element, place));
  return fmt::format(
      "map_from_entries(list_transform(map_entries({}), lambda {}: struct_pack(key := {}, value := "
      "{})))",
      from.text, entry, key, item);
}

// The cast alone, without the column's NOT NULL.
Result<std::string> cast_text(const Item& from, const DataType& to, const CastPlace& place) {
  const auto& [value, type, depth] = from;
  if (same_type(type, to)) return value;
  const auto target = duck::engine_type(to);
  auto plain = fmt::format("CAST({} AS {})", value, target);
  if (type.id == to.id && type.id == TypeId::kStruct) return cast_struct(from, to, place);
  if (type.id == to.id && type.id == TypeId::kArray) return cast_list(from, to, place);
  if (type.id == to.id && type.id == TypeId::kMap) return cast_map(from, to, place);
  const auto common = least_common_type(type, to);
  if (common && same_type(*common, to)) return plain;
  if (is_numeric(type) && is_floating(to)) {
    const auto exact = sql::duckdb_exact_cast(value, type, to, false);
    return exact.empty() ? plain : exact;
  }
  if (is_numeric(type) && is_numeric(to)) {
    auto attempt = sql::duckdb_exact_cast(value, type, to, true);
    if (attempt.empty()) attempt = fmt::format("TRY_CAST({} AS {})", value, target);
    auto back = sql::duckdb_exact_cast(attempt, to, type, true);
    if (back.empty()) back = fmt::format("CAST({} AS {})", attempt, duck::engine_type(type));
    return fmt::format(
        "CASE WHEN {0} IS NULL THEN NULL WHEN {1} IS NULL OR {2} <> {0} THEN {3} ELSE {1} END",
        value, attempt, back,
        failing("CAST_OVERFLOW", "the value ", value,
                " does not fit " + to_sql(to) + " exactly" + place.where()));
  }
  if (to.id == TypeId::kString && type.id != TypeId::kBinary && !type.is_nested()) {
    const auto text = sql::duckdb_text_of(value, type);
    return text.empty() ? Result<std::string>(place.misfit()) : text;
  }
  if (type.id == TypeId::kString && (is_numeric(to) || is_time(to) || to.id == TypeId::kBoolean)) {
    return fmt::format("CASE WHEN {0} IS NULL THEN NULL ELSE coalesce({1}, {2}) END", value,
                       sql::duckdb_try_cast_of_text(value, to),
                       failing("CAST_INVALID_INPUT", "the text '", value,
                               "' is no " + to_sql(to) + place.where()));
  }
  const bool widens_time = (type.id == TypeId::kDate && to.id == TypeId::kTimestamp) ||
                           (type.id == TypeId::kTimestampNtz && to.id == TypeId::kTimestamp) ||
                           (type.id == TypeId::kTimestamp && to.id == TypeId::kTimestampNtz);
  if (widens_time) return plain;
  return place.misfit();
}

std::string checked_null(const std::string& text, const Field& column, const std::string& table) {
  // A null in a computed column is filled in where rows enter the table.
  if (column.nullable || is_generated(column) || is_identity(column)) return text;
  return fmt::format(
      "CASE WHEN ({0}) IS NULL THEN error({1}) ELSE ({0}) END", text,
      duck::quote_literal(fmt::format("[DELTA_NOT_NULL_CONSTRAINT_VIOLATED] column {} of {} is NOT "
                                      "NULL, but a row gives null",
                                      column.name, table)));
}

bool has_void(const DataType& type) {
  if (type.id == TypeId::kStruct) {
    return std::any_of(type.fields->begin(), type.fields->end(),
                       [](const Field& field) { return has_void(field.type); });
  }
  if (type.id == TypeId::kArray) return has_void(*type.element);
  if (type.id == TypeId::kMap) return has_void(*type.key) || has_void(*type.element);
  return type.id == TypeId::kVoid;
}

}  // namespace

bool is_generated(const Field& column) { return column.metadata.contains(delta::kGeneratedKey); }

bool is_identity(const Field& column) {
  const auto at = column.metadata.lower_bound(delta::kIdentityPrefix);
  return at != column.metadata.end() && at->first.starts_with(delta::kIdentityPrefix);
}

Result<std::vector<duck::ResultColumn>> given_columns(duck::Connection& connection,
                                                      const std::string& query) {
  SL_TRY(check_conditions(connection, query));
  return duck::describe_with_voids(connection, query);
}

Status check_identity(const Field& column, bool updates, const std::string& table) {
  if (!is_identity(column)) return {};
  if (updates) {
    return unsupported("DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED",
                       "the identity column {} of {} cannot be updated: leave it out", column.name,
                       table);
  }
  SL_ASSIGN(const auto rules, delta::table_rules(delta::Metadata{}, Schema{{column}}));
  if (rules.columns[0].identity->allow_explicit_insert) return {};
  return invalid_argument(
      "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED",
      "column {} of {} is GENERATED ALWAYS AS IDENTITY and takes no values: list "
      "the other columns, or use DEFAULT",
      column.name, table);
}

Result<std::string> assign_null(const Field& column, const std::string& table) {
  return checked_null(fmt::format("CAST(NULL AS {})", duck::engine_type(column.type)), column,
                      table);
}

Result<sql::ExprPtr> default_of(const Field& column) {
  const auto found = column.metadata.find("CURRENT_DEFAULT");
  if (found == column.metadata.end()) return sql::null_literal();
  SL_ASSIGN(const auto json, Json::parse(found->second));
  auto parsed = sql::parse_expression(json.text(), "");
  if (!parsed.ok()) return std::move(parsed).error().with_context("default of " + column.name);
  return parsed;
}

Result<std::string> assign_default(const Field& column, const std::string& table) {
  SL_ASSIGN(const auto value, default_of(column));
  SL_ASSIGN(const auto text, sql::print_duckdb(*value));
  return checked_null(fmt::format("CAST({} AS {})", text, duck::engine_type(column.type)), column,
                      table);
}

Result<std::string> assign(const std::string& value, const duck::ResultColumn& source,
                           const Field& column, const std::string& table, StructsBy structs_by) {
  // A stand-in VOID is a type that is Delta's only after the cast.
  if (source.type.id == TypeId::kVoid && source.has_delta_type) return assign_null(column, table);
  const CastPlace place{column, source.type, table, structs_by};
  SL_ASSIGN(const auto cast, cast_text({value, source.type, 0}, column.type, place));
  return checked_null(cast, column, table);
}

Result<std::string> assign_all(const std::string& source,
                               const std::vector<duck::ResultColumn>& given, const Schema& schema,
                               const std::string& table, const AssignOptions& options) {
  // Column index of the schema -> source column.
  std::vector<std::optional<size_t>> sources(schema.fields.size());
  std::vector<std::string> targets = options.columns;
  if (options.by_name) {
    targets.clear();
    for (const auto& column : given) targets.push_back(column.name);
  }
  const bool named = options.by_name || !options.columns.empty();
  const size_t expected = named ? targets.size() : schema.fields.size();
  if (given.size() != expected) {
    return invalid_argument(
        given.size() > expected ? "INSERT_COLUMN_ARITY_MISMATCH.TOO_MANY_DATA_COLUMNS"
                                : "INSERT_COLUMN_ARITY_MISMATCH.NOT_ENOUGH_DATA_COLUMNS",
        "{} takes {} columns, but the rows have {}: list the columns meant, as in "
        "INSERT INTO {} (a, b) ...",
        table, expected, given.size(), table);
  }
  for (size_t i = 0; i < given.size(); ++i) {
    const auto index = named ? schema.find(targets[i]) : std::optional<size_t>(i);
    if (!index) {
      std::vector<std::string> known;
      known.reserve(schema.fields.size());
      for (const auto& field : schema.fields) known.push_back(field.name);
      const auto near = nearest_name(targets[i], known);
      return invalid_argument("UNRESOLVED_COLUMN.WITH_SUGGESTION", "{} has no column {}{}", table,
                              targets[i], near ? ": did you mean " + *near + "?" : "");
    }
    if (sources[*index]) {
      return invalid_argument("DUPLICATE_ASSIGNMENTS", "column {} of {} is given twice",
                              schema.fields[*index].name, table);
    }
    sources[*index] = i;
  }
  // Source columns get names of their own: a query may repeat a name.
  std::string aliases;
  for (size_t i = 0; i < given.size(); ++i) {
    aliases += fmt::format("{}c{}", aliases.empty() ? "" : ", ", i);
  }
  std::string items;
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    const auto& field = schema.fields[i];
    if (sources[i] && given[*sources[i]].type.id != TypeId::kVoid) {
      SL_TRY(check_identity(field, false, table));
    }
    auto value = sources[i]
                     ? assign(fmt::format("given.c{}", *sources[i]), given[*sources[i]], field,
                              table, options.by_name ? StructsBy::kName : StructsBy::kPosition)
                     : assign_default(field, table);
    SL_ASSIGN(const auto text, std::move(value));
    items +=
        fmt::format("{}{} AS {}", items.empty() ? "" : ", ", text, duck::quote_name(field.name));
  }
  return fmt::format("SELECT {} FROM ({}) AS given({})", items, source, aliases);
}

DataType aligned_type(const DataType& given, const DataType& column, StructsBy structs_by) {
  if (given.id == TypeId::kVoid) return column;
  if (given.id != column.id) return given;
  if (given.id == TypeId::kStruct) {
    auto fields = *given.fields;
    for (size_t i = 0; i < fields.size(); ++i) {
      const Field* own = member_of(column, fields[i].name);
      if (structs_by == StructsBy::kPosition) {
        own = i < column.fields->size() ? &(*column.fields)[i] : nullptr;
        if (own != nullptr) fields[i].name = own->name;
      }
      if (own != nullptr) fields[i].type = aligned_type(fields[i].type, own->type, structs_by);
    }
    return DataType::structure(std::move(fields));
  }
  if (given.id == TypeId::kArray)
    return DataType::array(aligned_type(*given.element, *column.element, structs_by));
  if (given.id == TypeId::kMap) {
    return DataType::map(aligned_type(*given.key, *column.key, structs_by),
                         aligned_type(*given.element, *column.element, structs_by));
  }
  return given;
}

Result<DataType> storable_type(const duck::ResultColumn& column) {
  switch (column.type.id) {
    case TypeId::kVoid:
    case TypeId::kVariant:
    case TypeId::kInterval:
      return unsupported("DELTA_UNSUPPORTED_DATA_TYPES",
                         "column {} has the type {}, which a table cannot hold: cast it, as in "
                         "CAST({} AS STRING)",
                         column.name, column.type.id == TypeId::kVoid ? "VOID" : column.engine_type,
                         column.name);
    default:
      if (!has_void(column.type)) return column.type;
      return unsupported("DELTA_UNSUPPORTED_DATA_TYPES",
                         "column {} has the type {}, and nothing says what its VOID is to be: cast "
                         "the NULL, as in CAST(NULL AS STRING)",
                         column.name, to_sql(column.type));
  }
}

}  // namespace strandline::engine
