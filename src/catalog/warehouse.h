// Warehouse: a directory of catalog/schema/table, where names find Delta tables and views.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "delta/snapshot.h"
#include "sql/ast.h"
#include "storage/store.h"

namespace strandline::catalog {

// Resolved three-part name, spelled as stored (or as given when new).
struct QualifiedName {
  std::string catalog, schema, name;
  std::string to_string() const;  // backquoted where needed
};
bool operator==(const QualifiedName& a, const QualifiedName& b);  // without regard to case

struct View {
  std::string sql;                   // the defining query as written
  std::vector<std::string> columns;  // renamed columns, may be empty
  std::string catalog, schema;       // names inside resolve against these
  std::optional<std::string> comment;
};

struct Defaults {
  std::string catalog = "main";
  std::string schema = "default";
};

// Layout: <root>/<catalog>/<schema>/<table>/ with _delta_log; names percent-encoded where the file
// system or this layout needs it; `_strandline/` holds warehouse.json (format version), pipelines/
// (checkpoints, event logs) and catalog/ (views, tables that lie elsewhere, comments of schemas).
// The schema `default` exists in every catalog. Thread-safe.
class Warehouse {
 public:
  // Opens or prepares a warehouse; nothing is written until something is created.
  // Errors: kUnsupported for a format version above ours (WAREHOUSE_TOO_NEW), kCorrupt, kIo.
  static Result<std::shared_ptr<Warehouse>> open(std::shared_ptr<storage::Store> store,
                                                 std::shared_ptr<delta::ParquetPort> parquet,
                                                 const std::string& root);
  virtual ~Warehouse() = default;

  virtual const std::string& root() const = 0;
  virtual const std::shared_ptr<storage::Store>& store() const = 0;
  // Writes the format version if it is missing; create_* call it, and whoever creates a table
  // through its handle calls it first.
  virtual Status prepare() = 0;
  // Directory for this pipeline's own files: <root>/_strandline/pipelines/<encoded name>.
  virtual std::string pipeline_directory(const std::string& pipeline_name) const = 0;

  // One, two or three parts. Errors: kInvalidArgument for more; hive_metastore is kUnsupported.
  virtual Result<QualifiedName> qualify(const sql::TableName& name,
                                        const Defaults& defaults) const = 0;
  // The table's handle whether or not it exists; delta.`path` names resolve to that path, relative
  // ones against the current directory.
  virtual Result<delta::Table> table(const sql::TableName& name,
                                     const Defaults& defaults) const = 0;
  virtual Result<delta::Table> table(const QualifiedName& name) const = 0;
  virtual Result<bool> table_exists(const QualifiedName& name) const = 0;
  virtual Result<std::optional<View>> view(const QualifiedName& name) const = 0;

  virtual Result<bool> schema_exists(const std::string& catalog,
                                     const std::string& schema) const = 0;
  virtual Status create_schema(const std::string& catalog, const std::string& schema,
                               bool if_not_exists) = 0;
  // Errors: kNotFound, kInvalidArgument when not empty and not cascade.
  virtual Status drop_schema(const std::string& catalog, const std::string& schema,
                             bool cascade) = 0;
  // nullopt takes the comment away. Errors: kNotFound.
  virtual Status set_schema_comment(const std::string& catalog, const std::string& schema,
                                    const std::optional<std::string>& comment) = 0;
  virtual Result<std::optional<std::string>> schema_comment(const std::string& catalog,
                                                            const std::string& schema) const = 0;
  virtual Status create_view(const QualifiedName& name, const View& view, bool or_replace) = 0;
  virtual Status drop_view(const QualifiedName& name) = 0;
  // Makes the name stand for a table elsewhere (CREATE TABLE ... LOCATION), an absolute directory.
  // Errors: kAlreadyExists, kNotFound (schema).
  virtual Status register_location(const QualifiedName& name, const std::string& path) = 0;
  virtual Result<bool> is_external(const QualifiedName& name) const = 0;
  // Removes the table's directory; of an external table only the name. Cut short it leaves the
  // whole table, or a hidden folder for remove_dropped. Errors: kNotFound.
  virtual Status drop_table(const QualifiedName& name) = 0;
  // Removes the hidden folders that drops of a schema's tables left when they were cut short, as
  // far as it can.
  virtual void remove_dropped(const std::string& catalog, const std::string& schema) = 0;

  // Gives a table another name, in its schema or another one: its directory moves; an external
  // table stays where it is. Errors: kNotFound, kAlreadyExists.
  virtual Status rename_table(const QualifiedName& from, const QualifiedName& to) = 0;

  virtual Result<std::vector<std::string>> catalogs() const = 0;
  virtual Result<std::vector<std::string>> schemas(const std::string& catalog) const = 0;
  struct Entry {
    QualifiedName name;
    bool is_view = false;
  };
  virtual Result<std::vector<Entry>> tables(const std::string& catalog,
                                            const std::string& schema) const = 0;
};

}  // namespace strandline::catalog
