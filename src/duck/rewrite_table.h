// The rows of a table in new files under another definition of the same columns, such as one
// without column mapping.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "delta/snapshot.h"
#include "duck/connection.h"

namespace strandline::duck {

struct Redefinition {
  delta::Metadata metadata;  // columns of the same names and types
  std::vector<delta::DomainMetadata> domains = {};
};

// Every file anew and the definition, in one commit that changes no row: row ids and commit
// versions stay. After a change of others it starts over. Errors: of `redefine`, kConflict, those
// of scan_table and write_files.
Status rewrite_table(Connection& connection, const delta::Table& table,
                     const std::string& operation,
                     const std::function<Result<Redefinition>(const delta::Snapshot&)>& redefine);

}  // namespace strandline::duck
