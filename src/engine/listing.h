// Small results that do not come from a query: SHOW and DESCRIBE.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "duck/connection.h"

namespace strandline::engine {

// Rows of SQL literals under typed columns, given as a query so that every result is rendered
// alike.
class Listing {
 public:
  struct Column {
    std::string name;
    std::string type;  // DuckDB's spelling
  };
  Listing(std::initializer_list<Column> columns) : columns_(columns) {}
  explicit Listing(std::vector<Column> columns);

  // One SQL expression per column; text(), number() and kin make them.
  void add(std::vector<std::string> values);
  std::string query() const;

  static std::string text(const std::optional<std::string>& value);
  static std::string number(const std::optional<int64_t>& value);
  static std::string truth(const std::optional<bool>& value);
  static std::string instant(const std::optional<int64_t>& ms);  // milliseconds since the epoch
  static std::string list(const std::vector<std::string>& values);
  static std::string map(const std::map<std::string, std::string>& values);

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace strandline::engine
