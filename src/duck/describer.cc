#include "duck/describer.h"

namespace strandline::duck {

sql::DescribeQuery describer(Connection& connection) {
  return [&connection](const std::string& query) -> std::optional<std::vector<Field>> {
    auto columns = connection.describe(query);
    if (!columns.ok()) return std::nullopt;
    std::vector<Field> fields;
    for (auto& column : *columns) {
      fields.push_back(Field{std::move(column.name), std::move(column.type), true, {}});
    }
    return fields;
  };
}

}  // namespace strandline::duck
