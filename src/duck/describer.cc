#include "duck/describer.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "delta/text_length.h"
#include "sql/described_columns.h"

namespace strandline::duck {
namespace {

constexpr std::string_view kCharType = "ENUM('sl_char_";

// The type with BYTE for each INTEGER in it.
DataType narrow_integers(const DataType& type) {
  DataType narrow = type;
  if (type.id == TypeId::kInteger) return DataType::primitive(TypeId::kByte);
  if (type.id == TypeId::kStruct) {
    auto fields = *type.fields;
    for (auto& field : fields) field.type = narrow_integers(field.type);
    return DataType::structure(std::move(fields));
  }
  if (type.id == TypeId::kArray) return DataType::array(narrow_integers(*type.element));
  if (type.id == TypeId::kMap)
    return DataType::map(narrow_integers(*type.key), narrow_integers(*type.element));
  return narrow;
}

// The type with VOID for each INTEGER that became a BYTE in the answer.
DataType with_voids(const DataType& type, const DataType& answer) {
  if (type.id == TypeId::kInteger && answer.id == TypeId::kByte)
    return DataType::primitive(TypeId::kVoid);
  if (type.id != answer.id) return type;
  if (type.id == TypeId::kStruct && type.fields->size() == answer.fields->size()) {
    auto fields = *type.fields;
    for (size_t i = 0; i < fields.size(); ++i)
      fields[i].type = with_voids(fields[i].type, (*answer.fields)[i].type);
    return DataType::structure(std::move(fields));
  }
  if (type.id == TypeId::kArray) return DataType::array(with_voids(*type.element, *answer.element));
  if (type.id == TypeId::kMap) {
    return DataType::map(with_voids(*type.key, *answer.key),
                         with_voids(*type.element, *answer.element));
  }
  return type;
}

// Whether a NULL without a type may be in the text.
bool mentions_null(std::string_view text) {
  constexpr std::string_view kNull = "NULL";
  const auto after = [&](size_t at, std::string_view word) {
    return at >= word.size() && text.substr(at - word.size(), word.size()) == word;
  };
  for (size_t at = text.find(kNull); at != text.npos; at = text.find(kNull, at + kNull.size())) {
    if (!after(at, "IS ") && !after(at, "NOT ") && !after(at, "CAST(")) return true;
  }
  return text.find("[]") != text.npos || text.find("MAP {}") != text.npos;
}

}  // namespace

Result<std::vector<ResultColumn>> describe_with_voids(Connection& connection,
                                                      const std::string& query) {
  SL_ASSIGN(auto columns, connection.describe(query));
  if (!mentions_null(query)) return columns;
  std::string aliases;
  std::string probes;
  std::vector<size_t> probed;
  for (size_t i = 0; i < columns.size(); ++i) {
    aliases += fmt::format("{}c{}", aliases.empty() ? "" : ", ", i);
    if (!columns[i].has_delta_type) continue;
    const auto narrowed = narrow_integers(columns[i].type);
    if (same_type(narrowed, columns[i].type)) continue;
    // NULL takes the type of its companion, a true INTEGER keeps its own.
    probes += fmt::format("{}coalesce(given.c{}, CAST(NULL AS {}))", probed.empty() ? "" : ", ", i,
                          engine_type(narrowed));
    probed.push_back(i);
  }
  if (probed.empty()) return columns;
  SL_ASSIGN(const auto answers, connection.describe(fmt::format("SELECT {} FROM ({}) AS given({})",
                                                                probes, query, aliases)));
  for (size_t i = 0; i < probed.size(); ++i) {
    auto& type = columns[probed[i]].type;
    type = with_voids(type, answers[i].type);
  }
  return columns;
}

sql::DescribeQuery describer(Connection& connection) {
  return [&connection](const std::string& query) -> std::optional<std::vector<Field>> {
    auto columns = describe_with_voids(connection, query);
    if (!columns.ok()) return std::nullopt;
    std::vector<Field> fields;
    for (auto& column : *columns) {
      auto& field =
          fields.emplace_back(Field{std::move(column.name), std::move(column.type), true, {}});
      if (column.engine_type.starts_with(kCharType))
        field.metadata[sql::kCharLengthKey] = std::to_string(
            std::strtoll(column.engine_type.c_str() + kCharType.size(), nullptr, 10));
    }
    return fields;
  };
}

std::string described_type(const Field& field) {
  if (!delta::is_char(field)) return engine_type(field.type);
  const auto sized = delta::text_length(field);
  // No text is compared with an ENUM as one: it becomes a VARCHAR wherever it is used.
  return fmt::format("{}{}')", kCharType, (*sized)->length);
}

}  // namespace strandline::duck
