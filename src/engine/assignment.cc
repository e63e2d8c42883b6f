#include "engine/assignment.h"

#include <strandline/suggest.h>

#include "base/error.h"

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

// The cast alone, without the column's NOT NULL.
std::optional<std::string> cast_text(const std::string& value, const DataType& from,
                                     const Field& column, const std::string& table) {
  const DataType& to = column.type;
  if (same_type(from, to)) return value;
  const auto target = duck::engine_type(to);
  auto plain = fmt::format("CAST({} AS {})", value, target);
  const auto common = least_common_type(from, to);
  if (common && same_type(*common, to)) return plain;
  const auto where = fmt::format(" in column {} of {}", column.name, table);
  if (is_numeric(from) && is_floating(to)) return plain;
  if (is_numeric(from) && is_numeric(to)) {
    const auto attempt = fmt::format("TRY_CAST({} AS {})", value, target);
    return fmt::format(
        "CASE WHEN {0} IS NULL THEN NULL WHEN {1} IS NULL OR CAST({1} AS {2}) <> {0} THEN {3} ELSE "
        "{1} END",
        value, attempt, duck::engine_type(from),
        failing("CAST_OVERFLOW", "the value ", value,
                " does not fit " + to_sql(to) + " exactly" + where));
  }
  if (to.id == TypeId::kString && (is_integer(from) || from.id == TypeId::kDecimal ||
                                   from.id == TypeId::kBoolean || from.id == TypeId::kDate)) {
    return plain;
  }
  if (from.id == TypeId::kString && (is_numeric(to) || is_time(to) || to.id == TypeId::kBoolean)) {
    const auto attempt = fmt::format("TRY_CAST({} AS {})", value, target);
    return fmt::format(
        "CASE WHEN {0} IS NULL THEN NULL WHEN {1} IS NULL THEN {2} ELSE {1} END", value, attempt,
        failing("CAST_INVALID_INPUT", "the text '", value, "' is no " + to_sql(to) + where));
  }
  const bool widens_time = (from.id == TypeId::kDate && to.id == TypeId::kTimestamp) ||
                           (from.id == TypeId::kTimestampNtz && to.id == TypeId::kTimestamp) ||
                           (from.id == TypeId::kTimestamp && to.id == TypeId::kTimestampNtz);
  if (widens_time) return plain;
  return std::nullopt;
}

}  // namespace

Result<std::string> assign(const std::string& value, const DataType& from, const Field& column,
                           const std::string& table) {
  auto cast = cast_text(value, from, column, table);
  if (!cast) {
    return invalid_argument("INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST",
                            "column {} of {} is {} and cannot take {}: cast the value", column.name,
                            table, to_sql(column.type), to_sql(from));
  }
  if (column.nullable) return *cast;
  return fmt::format(
      "CASE WHEN ({0}) IS NULL THEN error({1}) ELSE ({0}) END", *cast,
      duck::quote_literal(fmt::format("[DELTA_NOT_NULL_CONSTRAINT_VIOLATED] column {} of {} is NOT "
                                      "NULL, but a row gives null",
                                      column.name, table)));
}

Result<std::vector<duck::ResultColumn>> given_columns(duck::Connection& connection,
                                                      const std::string& query) {
  SL_ASSIGN(auto columns, connection.describe(query));
  std::string aliases;
  std::string probes;
  std::vector<size_t> probed;
  for (size_t i = 0; i < columns.size(); ++i) {
    aliases += fmt::format("{}c{}", aliases.empty() ? "" : ", ", i);
    if (columns[i].type.id != TypeId::kInteger) continue;
    // NULL takes the type of its companion, a true INTEGER keeps its own.
    probes += fmt::format("{}coalesce(given.c{}, 1::UTINYINT)", probed.empty() ? "" : ", ", i);
    probed.push_back(i);
  }
  if (probed.empty()) return columns;
  SL_ASSIGN(const auto answers, connection.describe(fmt::format("SELECT {} FROM ({}) AS given({})",
                                                                probes, query, aliases)));
  for (size_t i = 0; i < probed.size(); ++i) {
    if (answers[i].engine_type != "UTINYINT") continue;
    columns[probed[i]].type = DataType::primitive(TypeId::kVoid);
  }
  return columns;
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
    const auto value = sources[i] ? fmt::format("given.c{}", *sources[i]) : std::string("NULL");
    const auto type = sources[i] ? given[*sources[i]].type : DataType::primitive(TypeId::kVoid);
    SL_ASSIGN(const auto text, assign(value, type, field, table));
    items +=
        fmt::format("{}{} AS {}", items.empty() ? "" : ", ", text, duck::quote_name(field.name));
  }
  return fmt::format("SELECT {} FROM ({}) AS given({})", items, source, aliases);
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
      return column.type;
  }
}

}  // namespace strandline::engine
