// Query trees of Spark SQL. Pipe syntax is already turned into nested selects.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sql/expr.h"

namespace strandline::sql {

// A table reference in a query, as the user wrote it.
struct TableUse {
  TableName name;                              // empty parts for table functions
  bool stream = false;                         // STREAM(name), STREAM name
  Options stream_options;                      // WITH (readChangeFeed=true, ...)
  std::optional<std::string> version_as_of;    // literal text
  std::optional<std::string> timestamp_as_of;  // literal text, or that of timestamp_expr
  ExprPtr timestamp_expr;                      // TIMESTAMP AS OF anything but a literal; else null
  std::string function;            // lower case: read_files, table_changes, ...; "" for a name
  std::vector<ExprPtr> arguments;  // positional
  std::vector<std::pair<std::string, ExprPtr>> named_arguments;  // format => 'json'
  SourcePlace place;
};

struct Relation;
using RelationPtr = std::shared_ptr<const Relation>;

// (SELECT ...)
struct Derived {
  QueryPtr query;
};

// VALUES (1, 'a'), (2, 'b'): columns col1, col2, ... unless aliased
struct ValuesRows {
  std::vector<std::vector<ExprPtr>> rows;
};

enum class JoinKind { kInner, kLeft, kRight, kFull, kCross, kLeftSemi, kLeftAnti };
struct Join {
  JoinKind kind = JoinKind::kInner;
  bool natural = false;
  bool lateral = false;  // the right side may read the left side's columns
  RelationPtr left;
  RelationPtr right;
  ExprPtr on;
  std::vector<Name> using_columns;
};

// input LATERAL VIEW [OUTER] explode(x) t AS a, b; also JOIN LATERAL explode(x) AS t(a, b)
struct LateralView {
  RelationPtr input;
  bool outer = false;
  ExprPtr generator;
};

struct Relation {
  std::variant<TableUse, Derived, ValuesRows, Join, LateralView> node;
  std::optional<Name> alias;
  std::vector<Name> column_aliases;
  SourcePlace place;

  template <typename T>
  const T* as() const {
    return std::get_if<T>(&node);
  }
};

struct SelectItem {
  ExprPtr expr;
  std::vector<Name> aliases;  // none, one, or several for a generator: explode(m) AS (k, v)
};

struct NamedWindow {
  Name name;
  WindowSpec spec;
};

// One element of GROUP BY beside others: plain expressions (one set), ROLLUP and CUBE over sets, or
// GROUPING SETS.
enum class GroupingKind { kPlain, kRollup, kCube, kSets };
struct Grouping {
  GroupingKind kind = GroupingKind::kPlain;
  std::vector<std::vector<ExprPtr>> sets;
};

struct Select {
  bool distinct = false;
  std::vector<SelectItem> items;
  RelationPtr from;  // null: one row without columns
  ExprPtr where;
  std::vector<ExprPtr> group_by;    // every expression of the groupings, where there are such
  std::vector<Grouping> groupings;  // empty: one row for each group_by
  bool group_by_all = false;
  ExprPtr having;
  ExprPtr qualify;
  std::vector<NamedWindow> windows;
};

enum class SetKind { kUnion, kIntersect, kExcept };
struct SetOperation {
  SetKind kind = SetKind::kUnion;
  bool all = false;
  bool by_name = false;
  QueryPtr left;
  QueryPtr right;
};

// name [(columns)] AS (query)
struct Cte {
  Name name;
  std::vector<Name> columns;
  QueryPtr query;
};

struct Query {
  std::vector<Cte> with;
  std::variant<Select, SetOperation, ValuesRows, Derived> body;
  std::vector<OrderItem> order_by;
  bool order_by_all = false;
  ExprPtr limit;  // null: none, also for LIMIT ALL
  ExprPtr offset;
  SourcePlace place;

  template <typename T>
  const T* as() const {
    return std::get_if<T>(&body);
  }
};

// SELECT * FROM relation
QueryPtr select_all(RelationPtr relation);
// SELECT * FROM name
QueryPtr select_table(const TableName& name);
// The table use, if the query is SELECT * FROM one name or table function and nothing else.
const TableUse* plain_table(const Query& query);

}  // namespace strandline::sql
