#include <strandline/strandline.h>

#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "storage/store.h"
#include "strandline/paths.h"

namespace strandline {
namespace {

struct NewFile {
  const char* path;
  std::string_view text;
};

constexpr std::string_view kCustomersSql =
    R"(-- The customers as they are now: the latest change of each id, no row for a deleted one.
CREATE OR REFRESH STREAMING TABLE customers;

CREATE FLOW customers_cdc AS AUTO CDC INTO
  customers
FROM
  STREAM read_files(
    'data/customers',
    format => 'json',
    schema => 'id INT, name STRING, city STRING, operation STRING, changed_at TIMESTAMP')
KEYS
  (id)
APPLY AS DELETE WHEN
  operation = 'DELETE'
SEQUENCE BY
  changed_at
COLUMNS * EXCEPT
  (operation, changed_at)
STORED AS
  SCD TYPE 1;
)";

constexpr std::string_view kHistorySql =
    R"(-- Every version of each customer, from __START_AT up to __END_AT.
CREATE OR REFRESH STREAMING TABLE customers_history;

CREATE FLOW customers_history_cdc AS AUTO CDC INTO
  customers_history
FROM
  STREAM read_files(
    'data/customers',
    format => 'json',
    schema => 'id INT, name STRING, city STRING, operation STRING, changed_at TIMESTAMP')
KEYS
  (id)
APPLY AS DELETE WHEN
  operation = 'DELETE'
SEQUENCE BY
  changed_at
COLUMNS * EXCEPT
  (operation, changed_at)
STORED AS
  SCD TYPE 2;
)";

constexpr std::string_view kFirstChanges =
    R"({"id": 1, "name": "Ana", "city": "Lisbon", "operation": "INSERT", "changed_at": "2026-01-05T09:00:00Z"}
{"id": 2, "name": "Bruno", "city": "Porto", "operation": "INSERT", "changed_at": "2026-01-05T09:05:00Z"}
{"id": 3, "name": "Carla", "city": "Faro", "operation": "INSERT", "changed_at": "2026-01-06T14:30:00Z"}
{"id": 1, "name": "Ana", "city": "Coimbra", "operation": "UPDATE", "changed_at": "2026-01-08T11:00:00Z"}
)";

// Late (Bruno's move), repeated (Ana's) and out of order: the targets are right all the same.
constexpr std::string_view kSecondChanges =
    R"({"id": 3, "operation": "DELETE", "changed_at": "2026-01-12T08:00:00Z"}
{"id": 1, "name": "Ana", "city": "Coimbra", "operation": "UPDATE", "changed_at": "2026-01-08T11:00:00Z"}
{"id": 2, "name": "Bruno", "city": "Braga", "operation": "UPDATE", "changed_at": "2026-01-07T16:00:00Z"}
{"id": 4, "name": "Duarte", "city": "Évora", "operation": "INSERT", "changed_at": "2026-01-11T10:00:00Z"}
)";

constexpr std::string_view kExploration =
    R"(-- Look at the tables: strandline sql -f explorations/history.sql
SELECT * FROM customers ORDER BY id;

SELECT * FROM customers_history ORDER BY id, __START_AT;

DESCRIBE HISTORY customers_history;
)";

constexpr std::string_view kIgnore = "warehouse/\n";

std::string spec_text(const std::string& name) {
  return fmt::format(
      R"(# A pipeline of declarative SQL. Tables go to warehouse/ beside this file; `storage: DIR`
# puts them elsewhere.
name: {}
libraries:
  - glob:
      include: transformations/**
catalog: main
schema: default
)",
      json_string(name));
}

std::string readme_text(const std::string& name) {
  return fmt::format(R"(# {0}

Customer changes (`data/customers/*.json`, one JSON object a line) become two Delta tables:

- `customers`: what is true now (SCD type 1),
- `customers_history`: every version with its interval (SCD type 2).

Run it from this directory:

    strandline run
    strandline sql -f explorations/history.sql

Put another file of changes into `data/customers/` and run it again: only the new file is read, and
late or repeated changes do no harm. `strandline run --dry-run` checks everything and touches nothing,
`strandline events` shows what each run did, `strandline run --full-refresh-all` starts over.
)",
                     name);
}

}  // namespace

Status init_pipeline(const std::string& directory) {
  SL_ASSIGN(const std::string given, local_path(directory));
  std::error_code failed;
  auto root = std::filesystem::absolute(given, failed).lexically_normal();
  if (!root.has_filename()) root = root.parent_path();
  if (directory.empty() || failed || root.filename().empty()) {
    return invalid_argument("INVALID_NAME", "'{}' is not a directory name", directory);
  }
  if (std::filesystem::exists(root, failed) && !std::filesystem::is_empty(root, failed)) {
    return already_exists("DIRECTORY_EXISTS", "{} exists and is not empty: choose another name",
                          directory);
  }
  const auto name = root.filename().string();
  const auto spec = spec_text(name);
  const auto readme = readme_text(name);
  const auto store = storage::make_local_store();
  for (const auto& [path, text] : {NewFile{"spark-pipeline.yml", spec},
                                   {"README.md", readme},
                                   {".gitignore", kIgnore},
                                   {"transformations/customers.sql", kCustomersSql},
                                   {"transformations/customers_history.sql", kHistorySql},
                                   {"data/customers/2026-01-10.json", kFirstChanges},
                                   {"data/customers/2026-01-12.json", kSecondChanges},
                                   {"explorations/history.sql", kExploration}}) {
    const auto full = root / path;
    SL_TRY(store->make_directories(full.parent_path().string()));
    SL_TRY(store->put(full.string(), std::string(text)));
  }
  return {};
}

}  // namespace strandline
