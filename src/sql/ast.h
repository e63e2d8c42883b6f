// Parsed Spark SQL: statements with positions. Expressions and queries are trees that hold meaning,
// not spelling; printers (duckdb_printer.h, later spark_printer.h) turn them into dialect text.
#pragma once

#include <strandline/result.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/data_type.h"

namespace strandline::sql {

struct Expr;      // expr.h
struct Relation;  // query.h
struct Query;     // query.h: SELECT, VALUES, set operations, CTEs, pipes
using ExprPtr = std::shared_ptr<const Expr>;
using QueryPtr = std::shared_ptr<const Query>;

// A word of the user's text and where it stands.
struct Name {
  std::string text;
  SourcePlace place;
};

// catalog.schema.table, one to three parts; or delta.`/path` (is_path, one part).
struct TableName {
  std::vector<std::string> parts;
  bool is_path = false;
  SourcePlace place;
};
std::string to_string(const TableName& name);  // backquoted where needed

// A property or option: key and literal value as text.
struct Option {
  std::string key;
  std::string value;
  SourcePlace place;
};
using Options = std::vector<Option>;

// GENERATED {ALWAYS | BY DEFAULT} AS IDENTITY [(START WITH n INCREMENT BY n)]
struct IdentityDefinition {
  int64_t start = 1;
  int64_t step = 1;
  bool by_default = false;  // rows may bring their own values
  SourcePlace place;
};

// [NOT NULL], DEFAULT, GENERATED, COMMENT of a column definition. The log of a table keeps
// expressions as they were written: ..._sql is their text.
struct ColumnDefinition {
  Name name;
  DataType type;
  std::string sized_type;  // "varchar(5)", "char(5)" where a STRING is declared so; else ""
  bool nullable = true;
  std::optional<std::string> comment;
  ExprPtr default_value;
  std::string default_sql;
  ExprPtr generated_as;
  std::string generated_sql;
  std::optional<IdentityDefinition> identity;
};

// CONSTRAINT name CHECK (condition)
struct CheckDefinition {
  Name name;
  ExprPtr condition;
  std::string sql;  // the condition as written
};

enum class OnViolation { kKeep, kDropRow, kFailUpdate };
struct Expectation {
  Name name;
  ExprPtr condition;
  OnViolation on_violation = OnViolation::kKeep;
};

// COLUMNS / TRACK HISTORY ON / IGNORE NULL UPDATES ON: all, a list, or all but a list.
struct ColumnList {
  bool except = false;      // * EXCEPT (names)
  std::vector<Name> names;  // empty and except: everything
  SourcePlace place;
};

enum class StoredAs { kScdType1, kScdType2, kBitemporal };

// The clauses after INTO target, as written (auto-cdc.md section 2). Checking them is cdc's work;
// the parser only reports what is not grammar, and repeated clauses (DUPLICATE_CLAUSES).
struct AutoCdcClauses {
  bool once = false;
  QueryPtr source;  // FROM: stream(name), STREAM name WITH (...), STREAM read_files(...), (query)
  bool from_snapshot = false;  // FROM SNAPSHOT (query) [WITH VERSION (query)]
  QueryPtr snapshot_version;
  std::vector<Name> keys;  // plain column names; several parts are the parser's error
  SourcePlace keys_place;
  bool has_keys = false;
  ExprPtr sequence_by;
  ExprPtr system_sequence_by;
  ExprPtr delete_when;
  ExprPtr truncate_when;
  std::optional<ColumnList> columns;
  std::optional<StoredAs> stored_as;
  std::optional<ColumnList> track_history;
  SourcePlace stored_as_place, sequence_place, delete_place, truncate_place, system_sequence_place;
  bool ignore_null_updates = false;
  std::optional<ColumnList> ignore_null_columns;  // set only for ON ...
  SourcePlace ignore_null_place;
  std::optional<Name> columns_to_update;
};

// A column, or a field inside one: a.b.c
struct ColumnPath {
  std::vector<std::string> parts;
  SourcePlace place;
};
std::string to_string(const ColumnPath& path);  // backquoted where needed

struct TableOptions {
  std::vector<ColumnDefinition> columns;
  std::vector<Expectation> expectations;
  std::vector<CheckDefinition> checks;
  std::optional<Name> using_format;
  std::vector<Name> partitioned_by;
  std::vector<ColumnPath> cluster_by;
  std::optional<std::string> location;
  std::optional<std::string> comment;
  Options properties;
};

// --- pipeline statements -------------------------------------------------------------------------
struct CreateStreamingTable {
  bool or_refresh = false, is_private = false, if_not_exists = false;
  TableName name;
  TableOptions options;
  QueryPtr query;                          // AS query
  std::optional<AutoCdcClauses> auto_cdc;  // FLOW AUTO CDC ...
};
struct CreateMaterializedView {
  bool or_refresh = false;  // OR REPLACE too
  bool is_private = false, if_not_exists = false;
  TableName name;
  TableOptions options;
  QueryPtr query;
};
struct CreateView {
  bool or_replace = false, temporary = false, if_not_exists = false;
  TableName name;
  std::vector<Name> columns;
  std::optional<std::string> comment;
  Options properties;
  std::vector<Expectation> expectations;
  QueryPtr query;
};
struct CreateAutoCdcFlow {
  std::optional<Name> flow_name;  // absent for APPLY CHANGES INTO: the target's name
  std::optional<std::string> comment;
  TableName target;
  AutoCdcClauses clauses;
};
struct CreateInsertFlow {
  Name flow_name;
  std::optional<std::string> comment;
  bool once = false;
  TableName target;
  bool by_name = true;
  QueryPtr query;
};
struct SetOption {
  std::string key;
  std::optional<std::string> value;
};

// --- other statements ----------------------------------------------------------------------------
struct SelectStatement {
  QueryPtr query;
};
// One of the two: a query, or an INSERT, UPDATE, DELETE or MERGE.
struct Statement;
struct Explain {
  QueryPtr query;
  std::shared_ptr<const Statement> statement;
};
struct CreateSchema {
  bool if_not_exists = false;
  TableName name;
  std::optional<std::string> comment;
};
struct CreateTable {
  bool or_replace = false, if_not_exists = false;
  TableName name;
  TableOptions options;
  QueryPtr query;
  std::optional<TableName> like;  // LIKE source
};

// FIRST, or AFTER a sibling.
struct ColumnPosition {
  bool first = false;
  Name after;
};
// What ALTER TABLE may do.
struct SetTableProperties {
  Options properties;
};
struct UnsetTableProperties {
  bool if_exists = false;
  std::vector<Name> keys;
};
struct NewColumn {
  ColumnPath path;
  ColumnDefinition definition;  // its name is the path's last part
  std::optional<ColumnPosition> position;
};
struct AddColumns {
  std::vector<NewColumn> columns;
};
// The columns that the table has afterwards, in their order.
struct ReplaceColumns {
  std::vector<NewColumn> columns;
};
// DROP FEATURE name [TRUNCATE HISTORY]
struct DropFeature {
  Name feature;
  bool truncate_history = false;
};
struct RenameColumn {
  ColumnPath column;
  Name new_name;
};
struct DropColumns {
  bool if_exists = false;
  std::vector<ColumnPath> columns;
};
// One change of ALTER COLUMN, or several of the old form CHANGE COLUMN.
struct ColumnChange {
  ColumnPath column;
  std::optional<DataType> type;
  std::string sized_type;  // of the new type, as in ColumnDefinition
  std::optional<bool> nullable;
  std::optional<std::string> comment;
  bool drop_default = false;
  bool sync_identity = false;
  ExprPtr default_value;
  std::string default_sql;
  std::optional<ColumnPosition> position;
};
struct AlterColumns {
  std::vector<ColumnChange> changes;
};
struct AddConstraint {
  CheckDefinition check;
};
struct DropConstraint {
  bool if_exists = false;
  Name name;
};
struct SetClustering {
  std::vector<ColumnPath> columns;  // empty: NONE
};
struct RenameTable {
  TableName to;
};
struct AlterTable {
  TableName table;
  std::variant<SetTableProperties, UnsetTableProperties, AddColumns, RenameColumn, DropColumns,
               AlterColumns, AddConstraint, DropConstraint, SetClustering, RenameTable,
               ReplaceColumns, DropFeature>
      action;
};
// COMMENT ON {TABLE | COLUMN | SCHEMA} name IS 'text' | NULL
struct CommentOn {
  enum class What { kTable, kColumn, kSchema } what = What::kTable;
  TableName name;
  Name column;  // kColumn
  std::optional<std::string> comment;
};
enum class InsertMode { kAppend, kOverwrite, kReplaceWhere };
struct Insert {
  InsertMode mode = InsertMode::kAppend;
  bool schema_evolution = false;  // WITH SCHEMA EVOLUTION
  TableName table;
  std::vector<std::pair<Name, ExprPtr>> partition;  // PARTITION (p = 1, q); null: from the query
  std::vector<Name> columns;
  bool by_name = false;
  ExprPtr replace_where;
  QueryPtr query;
};
// target = value. The target is a column or a field inside one; its first part may be the table's
// alias. The value may be the column reference DEFAULT.
struct Assignment {
  std::vector<std::string> target;
  ExprPtr value;
  SourcePlace place;
};
struct Update {
  TableName table;
  std::optional<Name> alias;
  std::vector<Assignment> assignments;
  ExprPtr where;
};
struct Delete {
  TableName table;
  std::optional<Name> alias;
  ExprPtr where;
};
// WHEN [NOT] MATCHED ... THEN ... of MERGE.
struct MergeClause {
  enum class When { kMatched, kNotMatched, kNotMatchedBySource } when = When::kMatched;
  enum class Action { kUpdate, kInsert, kDelete } action = Action::kUpdate;
  ExprPtr condition;  // null: always
  bool star = false;  // UPDATE SET * and INSERT *, but for the columns of except
  std::vector<Name> except;
  std::vector<Assignment> assignments;  // UPDATE SET a = x; of INSERT (a) VALUES (x) too
  SourcePlace place;
};
struct Merge {
  bool schema_evolution = false;
  TableName table;
  std::optional<Name> alias;
  std::shared_ptr<const Relation> source;
  ExprPtr on;
  std::vector<MergeClause> clauses;  // in text order; never empty
};
struct Drop {
  enum class What { kTable, kView, kSchema } what = What::kTable;
  bool if_exists = false, cascade = false;
  TableName name;
};
struct Truncate {
  TableName table;
};
struct Describe {
  enum class What {
    kColumns,
    kExtended,
    kDetail,
    kHistory,
    kColumn,
    kSchema,
    kSchemaExtended,
    kQuery
  } what = What::kColumns;
  TableName table;
  std::optional<ColumnPath> column;  // kColumn
  std::optional<int64_t> limit;      // kHistory: so many of the newest versions
  QueryPtr query;                    // kQuery
};
struct Show {
  enum class What {
    kTables,
    kViews,
    kSchemas,
    kCatalogs,
    kTableProperties,
    kCreateTable,
    kColumns,
    kPartitions
  } what = What::kTables;
  std::optional<TableName> name;
  std::optional<std::string> pattern;  // LIKE 'a*|b': * is any text, | separates alternatives
  std::optional<std::string> key;
};
struct Use {
  bool catalog = false;
  TableName name;
};  // USE [SCHEMA] a.b; USE CATALOG a
// OPTIMIZE t [FULL] [WHERE ...] [ZORDER BY (...)]; REORG TABLE t [WHERE ...] APPLY (PURGE)
struct Optimize {
  TableName table;
  bool full = false;
  bool purge = false;  // REORG
  ExprPtr where;
  std::vector<Name> zorder_by;
};
struct Vacuum {
  TableName table;
  std::optional<double> retain_hours;
  bool dry_run = false;
};
struct Restore {
  TableName table;
  std::optional<std::string> version_as_of;    // literal text; one of these is there
  std::optional<std::string> timestamp_as_of;  // literal text, or that of timestamp_expr
  ExprPtr timestamp_expr;                      // null: a literal
};
// REFRESH {STREAMING TABLE | MATERIALIZED VIEW | TABLE} t [FULL] [SYNC]
struct RefreshTable {
  enum class What { kStreamingTable, kMaterializedView, kTable } what = What::kTable;
  TableName table;
  bool full = false;
};
// A statement of Spark or Databricks that is not built: recognised and refused by this name; its
// text is skipped to the next semicolon.
struct NotYet {
  std::string construct;
};

struct Statement {
  std::variant<CreateStreamingTable, CreateMaterializedView, CreateView, CreateAutoCdcFlow,
               CreateInsertFlow, SetOption, SelectStatement, Explain, CreateSchema, CreateTable,
               AlterTable, CommentOn, Insert, Update, Delete, Merge, Drop, Truncate, Describe, Show,
               Use, Optimize, Vacuum, Restore, RefreshTable, NotYet>
      body;
  SourcePlace place;
  std::string text;  // the statement's own text
};

}  // namespace strandline::sql
