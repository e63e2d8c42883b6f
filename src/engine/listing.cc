#include "engine/listing.h"

#include <fmt/format.h>

namespace strandline::engine {

Listing::Listing(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Listing::add(std::vector<std::string> values) { rows_.push_back(std::move(values)); }

std::string Listing::query() const {
  std::string head;
  std::string names;
  std::string nulls;
  for (const auto& [name, type] : columns_) {
    const auto quoted = duck::quote_name(name);
    head += fmt::format("{}CAST({} AS {}) AS {}", head.empty() ? "" : ", ", quoted, type, quoted);
    names += (names.empty() ? "" : ", ") + quoted;
    nulls += nulls.empty() ? "NULL" : ", NULL";
  }
  std::string values;
  for (const auto& row : rows_) {
    std::string cells;
    for (const auto& cell : row) cells += (cells.empty() ? "" : ", ") + cell;
    values += fmt::format("{}({})", values.empty() ? "" : ", ", cells);
  }
  return fmt::format("SELECT {} FROM (VALUES {}) AS listing({}){}", head,
                     values.empty() ? "(" + nulls + ")" : values, names,
                     values.empty() ? " WHERE false" : "");
}

std::string Listing::text(const std::optional<std::string>& value) {
  return value ? duck::quote_literal(*value) : "NULL";
}

std::string Listing::number(const std::optional<int64_t>& value) {
  return value ? fmt::format("CAST({} AS BIGINT)", *value) : "NULL";
}

std::string Listing::truth(const std::optional<bool>& value) {
  return value ? (*value ? "true" : "false") : "NULL";
}

std::string Listing::instant(const std::optional<int64_t>& ms) {
  if (!ms) return "NULL";
  return fmt::format("make_timestamptz({})", *ms * 1000);
}

std::string Listing::list(const std::vector<std::string>& values) {
  std::string out;
  for (const auto& value : values) out += (out.empty() ? "" : ", ") + duck::quote_literal(value);
  return out.empty() ? "CAST([] AS VARCHAR[])" : "[" + out + "]";
}

std::string Listing::map(const std::map<std::string, std::string>& values) {
  std::string out;
  for (const auto& [key, value] : values) {
    out += fmt::format("{}{}: {}", out.empty() ? "" : ", ", duck::quote_literal(key),
                       duck::quote_literal(value));
  }
  return out.empty() ? "CAST(MAP {} AS MAP(VARCHAR, VARCHAR))" : "MAP {" + out + "}";
}

}  // namespace strandline::engine
