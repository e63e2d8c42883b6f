// A Delta table as a value: what one version of it is made of.
#pragma once

#include <strandline/result.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace strandline {

struct TableField {
  std::string name;
  std::string type;  // as SQL spells it
  bool nullable = true;
  std::optional<std::string> comment;
};

// One commit.
struct TableVersion {
  int64_t version = 0;
  int64_t timestamp_ms = 0;  // since the epoch, UTC
  std::string operation;     // "WRITE", "MERGE", "AUTO CDC", ...
  std::map<std::string, std::string> metrics;
};

// The version that was the newest when the handle was made, or last refreshed.
class Table {
 public:
  virtual ~Table() = default;

  virtual const std::string& name() const = 0;  // catalog.schema.table, or delta.`/path`
  virtual const std::string& path() const = 0;  // of its directory
  virtual const std::string& id() const = 0;    // of the metadata: another table has another
  virtual int64_t version() const = 0;
  virtual std::vector<TableField> fields() const = 0;
  virtual std::string schema_text() const = 0;  // DDL: "id INT NOT NULL, name STRING"
  virtual std::vector<std::string> partition_columns() const = 0;
  virtual std::map<std::string, std::string> properties() const = 0;
  virtual int64_t file_count() const = 0;
  virtual int64_t size_bytes() const = 0;                // of its live data files
  virtual std::optional<int64_t> row_count() const = 0;  // none: a file has no statistics
  // Newest first, as far as the log is kept; at most `limit`, 0 for all. Errors: kIo, kCorrupt.
  virtual Result<std::vector<TableVersion>> history(size_t limit = 0) const = 0;
  // Moves to the newest version. Errors: kNotFound when the table is gone, kIo, kCorrupt.
  virtual Status refresh() = 0;
};

}  // namespace strandline
