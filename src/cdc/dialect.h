// How an engine spells what the programs are made of: names, types, values, windows, changes of
// tables. What the pieces mean is decided in value_text.h and in the programs; a dialect only
// writes. Plain SQL that both engines read alike stays in the programs. Private to this folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/data_type.h"
#include "sql/expr.h"

namespace strandline::cdc {

class Dialect {
 public:
  using Members = std::vector<std::pair<std::string, std::string>>;  // name, expression
  using Parts = std::vector<std::string>;

  virtual ~Dialect() = default;

  // --- names and types ---
  virtual std::string quote_name(const std::string& name) const = 0;
  virtual std::string quote_literal(const std::string& text) const = 0;
  virtual std::string type(const DataType& type) const = 0;
  // Errors: kUnsupported by name, where values of the type cannot be compared in this engine.
  virtual Status check(const Field& column) const = 0;
  // An expression over the source, with Spark's meaning. now_us: see BatchRelations.
  virtual Result<std::string> print(const sql::Expr& expr, std::optional<int64_t> now_us) const = 0;

  // --- structs, lists, maps ---
  virtual std::string member(const std::string& expr, const std::string& name) const = 0;
  virtual std::string pack(const Members& members) const = 0;
  // A value that compares part by part.
  virtual std::string row(const Parts& parts) const = 0;
  // The list with `body` instead of each element x.
  virtual std::string transform(const std::string& list, const std::string& x,
                                const std::string& body) const = 0;
  // Elements for which the condition on x is true.
  virtual std::string filter(const std::string& list, const std::string& x,
                             const std::string& condition) const = 0;
  virtual std::string sort(const std::string& list) const = 0;
  virtual std::string list(const Parts& elements, const DataType& element) const = 0;
  virtual std::string contains(const std::string& list, const std::string& value) const = 0;
  // In a SELECT list: a row for each element.
  virtual std::string unnest(const std::string& list) const = 0;
  // A map as a list of structs (key, value), and back.
  virtual std::string entries(const std::string& map) const = 0;
  virtual std::string map_of(const std::string& entries) const = 0;

  // --- aggregates and windows ---
  // The value of the row where `by` is greatest or least; its nulls do not count.
  virtual std::string value_of_greatest(const std::string& value, const std::string& by) const = 0;
  virtual std::string value_of_least(const std::string& value, const std::string& by) const = 0;
  // The box of the row where `by`, compared in turn, is greatest, nulls least. The box is carried
  // along untouched.
  virtual std::string box_of_greatest(const std::string& box, const Parts& by) const = 0;
  virtual std::string last_not_null(const std::string& expr, const std::string& window) const = 0;

  // Inside of a window of rows in the order of keys and terms. It may go on from one key to the
  // next, so that the query has to tell where a key begins.
  virtual std::string along(const std::string& keys, const std::string& terms) const = 0;

  // A number that is equal for equal values: `bits` of it, 0 to 64.
  virtual std::string hash(const Parts& values, int bits) const = 0;

  // --- tables ---
  // The query of a table whose rows are told apart by rowid: a column or what the engine has.
  virtual std::string numbered(const std::string& query) const = 0;
  // Text of a Step of Kind::kChange: the rows of a query are added, columns by their place.
  virtual std::string append(const std::string& table, const std::string& query,
                             bool is_numbered) const = 0;
  // `column` of the rows of `table` (by the alias r) becomes `value` where a row of `from` (alias
  // f) meets the condition; at most one does.
  virtual std::string update(const std::string& table, const std::string& column,
                             const std::string& value, const std::string& from,
                             const std::string& condition) const = 0;
  // Rows of `table` (alias r) for which a row of `from` (alias f) meets the condition go away.
  virtual std::string remove(const std::string& table, const std::string& from,
                             const std::string& condition) const = 0;
};

const Dialect& duckdb_dialect();
const Dialect& spark_dialect();

}  // namespace strandline::cdc
